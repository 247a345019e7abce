/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of completion queues, XRC domains and shared receive queues; see process/commands.h. */
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
	void *buffer;                /* cqe_count * cqe_size bytes: zero, but for op_own, 0xf0 (invalid) */
	uint32_t cqe_count;          /* power of two */
	uint32_t cqe_size;           /* 64 or 128 */
	uint32_t *dbrec;             /* two be32: [0] consumer index, [1] arm word (mlx5-formats 3.6) */
	struct event_queue *channel; /* completion channel, or NULL */
	void *cookie;                /* the driver's CQ: object of its completion and asynchronous events */
	bool timestamps;             /* write the timestamp field */
	bool ignore_overrun;
	/* buffer and dbrec are the program's memory, which it may unmap (progress/program_memory.h), and which only it reads. */
	bool in_umem;
	bool collapsed; /* of in_umem: every CQE is written to entry 0 of the program's ring */
};

int hca_cq_create(struct hca_context *context, const struct hca_cq_attr *attr, struct hca_cq **cq);
int hca_cq_destroy(struct hca_cq *cq); /* -EBUSY while QPs or SRQs use it; drops events not yet taken */
uint32_t hca_cq_number(const struct hca_cq *cq);
/** Bytes of a CQE. */
uint32_t hca_cq_entry_size(const struct hca_cq *cq);
/** CQEs in the ring. */
uint32_t hca_cq_entries(struct hca_cq *cq);
struct hca_cq *hca_cq_find(const struct hca_context *context, uint32_t number);
struct hca_cq_state {
	uint32_t producer,
		consumer; /* 24 bits: CQEs written so far, and the index that the program last had in its record */
	bool overrun;
	bool armed, armed_solicited; /* for the next CQE; for the next that is solicited */
};

void hca_cq_query(struct hca_cq *cq, struct hca_cq_state *state);

/**
 * For the timeline, if that is on: at @time the program polled the CQEs of @consumer_index and those behind it, as the @count completions
 * @wc, of which wr_id and status are looked at. Any lock.
 */
void hca_cq_polled(const struct hca_cq *cq, uint64_t time, uint32_t consumer_index, const struct ibv_wc *wc,
		   uint32_t count);
/**
 * The ring and its doorbell record were given to the program (mlx5dv_init_obj(3)): from now on the device itself looks at
 * the arm word, which the program rings without a call, and signature errors are told by CQEs. Once is enough. A CQ in a umem
 * is armed by the word that is in its record then, even if that is 0. Returns 0 or -EAGAIN.
 */
int hca_cq_watch(struct hca_cq *cq);
/**
 * Arms the CQ by the arm @word of its driver, whose consumer index decides whether the event is due at once. The word in dbrec[1] may be
 * that of another thread by now, and is not read.
 */
void hca_cq_request(struct hca_cq *cq, uint32_t word);
/**
 * Continues in a new ring: one RESIZE_CQ CQE goes into the old ring at the device's position, where it takes an index
 * of its own; all later ones go into @buffer from the index after it. The driver copies what is left of the old ring
 * (mlx5-formats 3.7) and moves the consumer index on by the marker in @copy, under the device's own lock: nobody writes
 * a CQE or arms meanwhile. The new count must exceed the number of CQEs not yet consumed: -EINVAL. The driver holds its
 * own CQ lock.
 */
int hca_cq_resize(struct hca_cq *cq, void *buffer, uint32_t cqe_count, void (*copy)(void *argument), void *argument);
/** Event moderation: an armed CQ raises its event after @count CQEs or @period_us, whichever comes first. 0,0 = off. */
int hca_cq_moderate(struct hca_cq *cq, uint16_t count, uint16_t period_us);

/* ---- XRC domains ---------------------------------------------------------------------------------------------- */

/**
 * Opens the domain of the inode behind @fd, or with @fd -1 a domain of its own, as ibv_open_xrcd(3) says. @oflags:
 * O_CREAT, O_EXCL. The descriptor may be closed afterwards: the inode is held. Returns 0, -EBADF (@fd), -EAGAIN (no
 * domain, and no O_CREAT), -EINVAL (O_EXCL, and there is one), -ENOMEM, -EMFILE.
 */
int hca_xrcd_open(struct hca_context *context, int fd, int oflags, struct hca_xrcd **xrcd);
/** -EBUSY while SRQs, and QPs created or opened, through this opening are left. The last closing ends the domain. */
int hca_xrcd_close(struct hca_xrcd *xrcd);

/* ---- shared receive queues ------------------------------------------------------------------------------------ */

struct hca_srq_attr {
	void *buffer; /* linked list of entries, mlx5-formats 2.2 */
	uint32_t entry_count;
	uint32_t entry_shift; /* log2 of the entry size */
	uint32_t *dbrec;      /* one be32: counter of posted entries, 16 bits */
	uint32_t limit;
	void *cookie; /* the driver's SRQ: object of its asynchronous events */
	/* Its owner: where it is found, and told of; NULL: that of its PD. */
	struct hca_context *context;
	/* buffer and dbrec are the program's memory, which it may unmap (progress/program_memory.h). */
	bool in_umem;
	bool cyclic; /* of in_umem: the entries are taken in order, whatever their links say */
	bool basic;  /* of cyclic: they have no link segment */
	/* Of an XRC SRQ, else NULL: where it can be reached, and where its receives complete; user index as for a QP. */
	struct hca_xrcd *xrcd;
	struct hca_cq *cq;
	uint32_t user_index;
};

int hca_srq_create(struct hca_pd *pd, const struct hca_srq_attr *attr, struct hca_srq **srq);
/** -EBUSY while QPs use it. An XRC SRQ can be reached by no packet any more, and completes nothing, on return. */
int hca_srq_destroy(struct hca_srq *srq);
uint32_t hca_srq_number(const struct hca_srq *srq);
struct hca_srq *hca_srq_find(const struct hca_context *context, uint32_t number);
/** Arms the limit event: IBV_EVENT_SRQ_LIMIT_REACHED once fewer than @limit entries are posted; 0 disarms. */
int hca_srq_set_limit(struct hca_srq *srq, uint32_t limit);
uint32_t hca_srq_limit(struct hca_srq *srq);
/** Entries of its ring. */
uint32_t hca_srq_entries(const struct hca_srq *srq);
/**
 * Continues in a new ring. The driver, under its SRQ lock, has copied the entries that are still posted: the next one
 * to consume is @first, the counters restart: @posted entries are posted. (The device's own lock covers the exchange:
 * @fill is called under it to do the copying, with the index of the next entry to consume and the number posted.)
 */
int hca_srq_resize(struct hca_srq *srq, void *buffer, uint32_t entry_count,
		   void (*fill)(void *argument, uint32_t next_index, uint32_t posted, uint32_t *first), void *argument);

#endif
