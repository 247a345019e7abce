/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface between the files of the filters. */
#ifndef SOFTHCA_FILTER_FILTER_PARTS_H
#define SOFTHCA_FILTER_FILTER_PARTS_H

#include <pthread.h>

#include "hca/hca.h"
#include "filter/filter.h"
#include "filter/frame.h"

/* Above this, senders get LINK_BUSY; below half of it they may continue. */
#define FILTER_MOST_BYTES (UINT64_C(64) << 20)

struct frame_list {
	struct frame *first, *last;
};

struct filters {
	struct link_filters front; /* first member; used by the transport and the links (wire/link.h) */
	struct hca *hca;
	struct capture *capture; /* or NULL; constant */
	pthread_mutex_t lock;
	struct faults *faults;     /* or NULL */
	uint32_t generation;       /* number of replacements of `faults` */
	struct frame_list ready;   /* in sending order */
	struct frame_list delayed; /* by due_ns */
	struct frame_list arrived; /* frames of the poller, while their packet is being handled */
	uint64_t bytes;            /* in `ready` and `delayed` */
	bool full;                 /* a sender got LINK_BUSY */
	struct link_queue waiting; /* senders waiting for room */
	const struct run *drainer; /* run that passes frames on now, or NULL */
	struct timer timer;        /* for the next delayed frame */
	uint64_t timer_ns;         /* deadline of the timer; 0: not armed */
};

static inline struct filters *filters_of(const struct hca *hca)
{
	return __atomic_load_n(&hca->filters, __ATOMIC_ACQUIRE);
}

static inline uint16_t filters_port(const struct hca *hca)
{
	return (uint16_t)hca->settings.roce_port;
}

/* ---- filter_queue.c -------------------------------------------------------------------------------------------- */

/** Inserts at the front if @before is NULL. The lock is held, as for the following functions. */
void frame_list_insert(struct frame_list *list, struct frame *before, struct frame *frame);
void frame_list_remove(struct frame_list *list, struct frame *frame);
void frame_list_free(struct frame_list *list);

/** Queues @frame according to @verdict (except drop and copies). */
void queue_add(struct filters *filters, struct frame *frame, const struct fault_verdict *verdict, uint64_t now);
/** Removes and returns the next due frame, or NULL. */
struct frame *queue_take(struct filters *filters, uint64_t now);
/** Puts @frame back as the next one; the timer tries again. */
void queue_put_back(struct filters *filters, struct frame *frame, uint64_t now);
void queue_timer(struct timer *timer);

/* ---- filter_capture.c ------------------------------------------------------------------------------------------ */

/** Captures @frame, which is about to leave or to be delivered. No lock. */
void filter_capture_leaving(struct frame *frame);
/** Captures @frame, which was passed on, if that was not done earlier, and frees it. May be NULL. */
void filter_capture_done(struct frame *frame);

/*
 * ---- called by links and the transport, through filters.front -----------------------------------------------------
 */

/** Queues the run as frames, in place of link->send. Rules as for link_send(). */
enum link_result filter_send(struct hca *hca, struct run *run);

/**
 * Passes due frames to the links. Returns true if it put a frame of the local link into @run, whose queue must be
 * empty: the caller drains @run and calls again, until this returns false. No lock held; inside an epoch section.
 */
bool filter_drain(struct hca *hca, struct run *run);

/**
 * Records a packet that arrived over a link other than the local one, with its payload in plain memory.
 * filter_handled() captures it when the result is known. For pollers only (progress/progress.h); no lock held.
 */
void filter_received(struct hca *hca, const struct packet *packet);
void filter_handled(struct hca *hca);
/** See link_filters.hides_receives. */
bool filter_hides_receives(struct hca *hca, uint32_t qpn, const struct packet *packet);

#endif
