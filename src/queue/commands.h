/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands of completion queues, XRC domains and shared receive queues. */
#ifndef SOFTHCA_QUEUE_COMMANDS_H
#define SOFTHCA_QUEUE_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/event_queue.h"

struct hca_context;
struct hca_cq;
struct ibv_wc;
struct hca_pd;
struct hca_srq;
struct hca_xrcd;

/* ---- completion queues ---------------------------------------------------------------------------------------- */

struct hca_cq_attr {
	void *buffer;                /* cqe_count * cqe_size bytes: zero, except op_own, 0xf0 (invalid) */
	uint32_t cqe_count;          /* power of two */
	uint32_t cqe_size;           /* 64 or 128 */
	uint32_t *dbrec;             /* two be32: [0] consumer index, [1] arm word (mlx5-formats 3.6) */
	struct event_queue *channel; /* or NULL */
	void *cookie;                /* the driver's CQ: object of its events */
	bool timestamps;
	bool ignore_overrun;
	/*
	 * buffer and dbrec are the program's memory, which it may unmap (progress/program_memory.h). Only the program
	 * reads it.
	 */
	bool in_umem;
	bool collapsed; /* with in_umem: every CQE goes to entry 0 of the program's ring */
};

int hca_cq_create(struct hca_context *context, const struct hca_cq_attr *attr, struct hca_cq **cq);
int hca_cq_destroy(struct hca_cq *cq); /* -EBUSY while QPs or SRQs use it; drops pending events */
uint32_t hca_cq_number(const struct hca_cq *cq);
uint32_t hca_cq_entry_size(const struct hca_cq *cq);
uint32_t hca_cq_entries(struct hca_cq *cq);
struct hca_cq *hca_cq_find(const struct hca_context *context, uint32_t number);
struct hca_cq_state {
	uint32_t producer, consumer; /* 24 bits: CQEs written so far, last index in the program's record */
	bool overrun;
	bool armed, armed_solicited; /* for the next CQE; for the next solicited one */
	bool event_waits;            /* event is due, but delayed by moderation */
};

void hca_cq_query(struct hca_cq *cq, struct hca_cq_state *state);

/**
 * Records in the timeline, if on, that the program polled @count CQEs at @time, from @consumer_index. Uses wr_id and
 * status of @wc. Any lock.
 */
void hca_cq_polled(const struct hca_cq *cq, uint64_t time, uint32_t consumer_index, const struct ibv_wc *wc,
		   uint32_t count);
/**
 * Watches the record of a CQ whose ring was exported (mlx5dv_init_obj(3)): the program writes the arm word without a
 * call. Signature errors are then reported by CQEs. A CQ in a umem is armed by the word in its record at that time,
 * even 0. One call is enough. Returns 0 or -EAGAIN.
 */
int hca_cq_watch(struct hca_cq *cq);
/**
 * Arms the CQ by @word, whose consumer index decides whether the event is due at once. dbrec[1], which another thread
 * may have written, is not read.
 */
void hca_cq_request(struct hca_cq *cq, uint32_t word);
/**
 * Continues in a new ring. A RESIZE_CQ CQE with an index of its own goes into the old ring; later ones go into @buffer
 * from the next index on. @copy, called under the lock of the device, copies the rest of the old ring (mlx5-formats
 * 3.7) and advances the consumer index past the marker; meanwhile no CQE is written and the CQ is not armed. Returns
 * -EINVAL unless the new count exceeds the unconsumed CQEs. The driver holds its own CQ lock.
 */
int hca_cq_resize(struct hca_cq *cq, void *buffer, uint32_t cqe_count, void (*copy)(void *argument), void *argument);
/** Sets event moderation: an armed CQ raises its event after @count CQEs or @period_us; 0, 0: off. */
int hca_cq_moderate(struct hca_cq *cq, uint16_t count, uint16_t period_us);

/* ---- XRC domains ---------------------------------------------------------------------------------------------- */

/**
 * Opens the domain of @fd's inode, or for -1 a private one (ibv_open_xrcd(3)). @oflags: O_CREAT, O_EXCL. @fd may be
 * closed afterwards. Returns 0, -EBADF (@fd), -EAGAIN (no domain, and no O_CREAT), -EINVAL (O_EXCL, and there is one),
 * -ENOMEM, -EMFILE.
 */
int hca_xrcd_open(struct hca_context *context, int fd, int oflags, struct hca_xrcd **xrcd);
/** Returns -EBUSY while the opening has SRQs, or QPs created or opened through it. The last closing ends the domain. */
int hca_xrcd_close(struct hca_xrcd *xrcd);

/* ---- shared receive queues ------------------------------------------------------------------------------------ */

struct hca_srq_attr {
	void *buffer; /* linked list of entries, mlx5-formats 2.2 */
	uint32_t entry_count;
	uint32_t entry_shift;
	uint32_t *dbrec; /* be32: 16-bit count of posted entries */
	uint32_t limit;
	void *cookie; /* the driver's SRQ: object of its events */
	/* Owner of the SRQ and its events; NULL: the PD's. */
	struct hca_context *context;
	/* As in struct hca_cq_attr. */
	bool in_umem;
	bool cyclic; /* with in_umem: entries are taken in order, regardless of links */
	bool basic;  /* with cyclic: the entries have no link segment */
	/* For an XRC SRQ: domain, CQ of its receives, user index as for a QP. Otherwise NULL. */
	struct hca_xrcd *xrcd;
	struct hca_cq *cq;
	uint32_t user_index;
};

int hca_srq_create(struct hca_pd *pd, const struct hca_srq_attr *attr, struct hca_srq **srq);
/** Returns -EBUSY while QPs use it. Afterwards an XRC SRQ gets no packets and completes nothing. */
int hca_srq_destroy(struct hca_srq *srq);
uint32_t hca_srq_number(const struct hca_srq *srq);
struct hca_srq *hca_srq_find(const struct hca_context *context, uint32_t number);
/** Arms IBV_EVENT_SRQ_LIMIT_REACHED, raised once fewer than @limit entries are posted; 0 disarms. */
int hca_srq_set_limit(struct hca_srq *srq, uint32_t limit);
uint32_t hca_srq_limit(struct hca_srq *srq);
uint32_t hca_srq_entries(const struct hca_srq *srq);
/**
 * Continues in a new ring. @fill, called under the lock of the device with the next entry to consume and the number
 * posted, copies these into @buffer and sets @first, the next entry there. The counters restart with @posted entries.
 * Returns 0, or -EINVAL if the ring is too small.
 */
int hca_srq_resize(struct hca_srq *srq, void *buffer, uint32_t entry_count,
		   void (*fill)(void *argument, uint32_t next_index, uint32_t posted, uint32_t *first), void *argument);

#endif
