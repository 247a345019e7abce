/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packets that a thread is handling, and how those that bring packets hand them over. A link or a filter builds a packet
 * in run_slot(), queues it with run_commit(), and has the transport handle it with deliver_queued(): an interface that the transport
 * fills in (transport/run.h has the loop), so that nothing here knows it.
 *
 * A struct run is on the stack of the outermost call (doorbell, timer, poll), inside one epoch section.
 */
#ifndef SOFTHCA_WIRE_RUN_H
#define SOFTHCA_WIRE_RUN_H

#include "wire/packet.h"

struct frame;
struct hca;
struct hca_qp;
struct link_queue;

/*
 * A packet in the queue causes at most one reply, and replies cause none: one packet being handled, its reply, and one
 * that a link duplicates.
 */
#define RUN_PACKETS 4

struct run {
	uint32_t first, last;     /* queue of packets, free running */
	struct hca_qp *scheduled; /* QPs whose requester can go on */
	struct link_queue *full;  /* of the link that said LINK_BUSY last: where room can be waited for */
	struct hca_qp *held;      /* whose lock the last packet left held (delivery.take_whole), or NULL */
	/* The transport's, of the held QP: what was acknowledged, if anything was, and was not seen to yet. */
	bool acknowledges;
	uint32_t acknowledged;
	struct frame *frame; /* that the packet in the queue came in; of filter/filter.c, or NULL */
	struct packet packet[RUN_PACKETS];
};

static inline void run_begin(struct run *run)
{
	run->first = 0;
	run->last = 0;
	run->scheduled = NULL;
	run->held = NULL;
	run->acknowledges = false;
	run->frame = NULL;
}

/** The slot in which the next packet is built; queued by run_commit. */
static inline struct packet *run_slot(struct run *run)
{
	return &run->packet[run->last % RUN_PACKETS];
}

static inline void run_commit(struct run *run)
{
	run->last++;
}

/* What a link or a filter may ask of the QP that a packet is for. */
struct receiver_view {
	struct hca *hca;
	struct packet_path path; /* from here to its peer */
	uint32_t peer_qpn, mtu_shift;
};

/* What the peer of a QP may do in the memory of this process, through a key that stays as it is. */
struct run_reach {
	uint32_t peer_qpn;
	uint64_t start, length; /* of the key */
	uint64_t memory;        /* address of the byte at `start` */
	bool reads, writes;
};

/* What the transport does for those that bring packets. Any thread, no lock held, inside an epoch section. */
struct delivery {
	/* Handles what is queued in @run, and the replies, until nothing is left. */
	void (*drain)(struct run *run);
	/* Runs the QPs that were scheduled, until nothing is left. */
	void (*finish)(struct run *run);
	/*
	 * In place of drain(), for a packet in run_slot(@run), not queued, that is all of a message of RC, and small; nothing else is
	 * queued. The lock of its QP stays held for the next such packet: let_go() is due, before anything else than that is called,
	 * and when all that arrived together has been handled. That sends what is owed for it as well, and completes what was
	 * acknowledged; so does, of acknowledgements, the next packet of the QP that is none.
	 */
	void (*take_whole)(struct run *run);
	void (*let_go)(struct run *run);
	/*
	 * After take_whole() of the READ or WRITE @packet: true and in @reach what its QP allows its peer through that key until
	 * grants are taken back (hca/grants.h).
	 */
	bool (*reach)(struct run *run, const struct packet *packet, struct run_reach *reach);
	/* A process of this host has ended: what was sent to it is not going to be answered. In no epoch section. */
	void (*peer_ended)(void);
	/* The device of QP @qpn, NULL if there is none. Any locks. */
	struct hca *(*device_of)(uint32_t qpn);
	/* False if there is no QP @qpn. */
	bool (*view)(uint32_t qpn, struct receiver_view *view);
};

/* Set before there is a link (process/devices.c). */
extern const struct delivery *delivery;

static inline void deliver_queued(struct run *run)
{
	delivery->drain(run);
}

static inline void deliver_rest(struct run *run)
{
	delivery->finish(run);
}

#endif
