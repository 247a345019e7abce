/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the filters share.
 *
 *   filter.c          runs become frames and go into the queue; frames leave it for their links
 *   filter_queue.c    the queue: order, and time
 *   filter_capture.c  what the capture gets
 *   filter_make.c     filters are made and changed, and tell what they did
 */
#ifndef SOFTHCA_FILTER_FILTER_PARTS_H
#define SOFTHCA_FILTER_FILTER_PARTS_H

#include <pthread.h>

#include "hca/hca.h"
#include "filter/filter.h"
#include "filter/frame.h"

/* Of bytes that wait. Above it senders are told to wait; below half of it they may go on. */
#define FILTER_MOST_BYTES (UINT64_C(64) << 20)

struct frame_list {
	struct frame *first, *last;
};

struct filters {
	struct link_filters front; /* first: what the transport and the links see (wire/link.h) */
	struct hca *hca;
	struct capture *capture; /* or NULL; does not change */
	pthread_mutex_t lock;
	struct faults *faults;     /* or NULL */
	uint32_t generation;       /* of these */
	struct frame_list ready;   /* in the order in which they go */
	struct frame_list delayed; /* by due_ns */
	struct frame_list arrived; /* of the poller, while their packet is handled */
	uint64_t bytes;            /* of `ready` and `delayed` */
	bool full;                 /* somebody was told LINK_BUSY… */
	struct link_queue waiting; /* …and may be here */
	const struct run *drainer; /* that hands out frames now, or NULL */
	struct timer timer;        /* for the next that becomes due */
	uint64_t timer_ns;         /* armed for; 0: not */
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

/** Puts @frame behind @before, or in front of all if that is NULL. The lock is held, as in the following. */
void frame_list_insert(struct frame_list *list, struct frame *before, struct frame *frame);
void frame_list_remove(struct frame_list *list, struct frame *frame);
void frame_list_free(struct frame_list *list);

/** Queues @frame as @verdict has it (drop and copies aside): ready, delayed, or held until others have passed. */
void queue_add(struct filters *filters, struct frame *frame, const struct fault_verdict *verdict, uint64_t now);
/** Takes the next frame that is due, or NULL. */
struct frame *queue_take(struct filters *filters, uint64_t now);
/** Puts it back: it is the next. The timer tries again. */
void queue_put_back(struct filters *filters, struct frame *frame, uint64_t now);
/** Function of filters.timer. */
void queue_timer(struct timer *timer);

/* ---- filter_capture.c ------------------------------------------------------------------------------------------ */

/** @frame leaves, or, within the process, is delivered. No lock. */
void filter_capture_leaving(struct frame *frame);
/** And has been. @frame may be NULL. Frees it. */
void filter_capture_done(struct frame *frame);

/* ---- what links and the transport call, by filters.front -------------------------------------------------------- */

/** In place of link->send: cuts the run into frames and queues them. Same rules as link_send(). */
enum link_result filter_send(struct hca *hca, struct run *run);

/**
 * Hands what is queued and due to the links, frame by frame; those of the local link are put into @run, whose queue is empty
 * and which the caller drains between. Returns true if it put a packet into @run: drain it and call again, until it
 * returns false. No lock held; inside an epoch section.
 */
bool filter_drain(struct hca *hca, struct run *run);

/**
 * A packet arrived over a link other than the local one; its payload is plain memory. For the capture, which has it written
 * by filter_handled(), when it was handled and what became of it is known. Of pollers only (progress/progress.h); no lock held.
 */
void filter_received(struct hca *hca, const struct packet *packet);
void filter_handled(struct hca *hca);
/** See link_filters.hides_receives. */
bool filter_hides_receives(struct hca *hca, uint32_t qpn, const struct packet *packet);

#endif
