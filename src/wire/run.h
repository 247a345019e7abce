/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packets that a thread is handling. Links and filters build one in run_slot(), queue it with run_commit(), and
 * call deliver_queued(); the transport fills in struct delivery. A struct run belongs to the outermost call (doorbell,
 * timer, poll) and lives inside one epoch section.
 */
#ifndef SOFTHCA_WIRE_RUN_H
#define SOFTHCA_WIRE_RUN_H

#include "wire/packet.h"

struct frame;
struct hca;
struct hca_qp;
struct link;
struct link_queue;

/* At most the packet being handled, its reply (replies cause none), and one that a link duplicates. */
#define RUN_PACKETS 4

struct run {
	uint32_t first, last;     /* free-running indices of the queue */
	struct hca_qp *scheduled; /* QPs with requesters that can continue */
	struct link_queue *full;  /* queue of the link that returned LINK_BUSY last */
	struct hca_qp *held;      /* QP that take_whole() has left locked, or NULL */
	/* For the transport: an acknowledgement to the held QP was noted, but not processed. */
	bool acknowledges;
	uint32_t acknowledged;
	struct frame *frame; /* frame (filter/filter.c) in which the queued packet came, or NULL */
	/*
	 * For a requester that sends packet after packet: `more` announces another one, or a call of link.flush(). The
	 * link may then keep the packet, and stores what it kept in `kept`.
	 */
	bool more;
	/* Earlier packets are in flight: it may also wait until the program polls, or they are acknowledged. */
	bool streams;
	const struct link *flushes; /* NULL: no link has kept a packet */
	void *kept;
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
	run->more = run->streams = false;
	run->flushes = NULL;
}

/** Returns the slot in which the next packet is built. */
static inline struct packet *run_slot(struct run *run)
{
	return &run->packet[run->last % RUN_PACKETS];
}

static inline void run_commit(struct run *run)
{
	run->last++;
}

/* Properties of a receiving QP for links and filters. */
struct receiver_view {
	struct hca *hca;
	struct packet_path path; /* to the peer */
	uint32_t peer_qpn, mtu_shift;
};

/* Memory of this process that the peer of a QP may access through a key, until the key changes. */
struct run_reach {
	uint32_t peer_qpn;
	uint64_t start, length; /* range of the key */
	uint64_t memory;        /* address of the byte at `start` */
	bool reads, writes;
};

/* Functions of the transport for links and filters. Any thread, no lock held, inside an epoch section. */
struct delivery {
	/* Handles the queued packets and their replies. */
	void (*drain)(struct run *run);
	/* Runs the scheduled QPs. */
	void (*finish)(struct run *run);
	/*
	 * Replaces drain() for a packet in run_slot(@run), not queued, that contains a whole small RC message; the
	 * queue must be empty. The lock of its QP stays held for the next such packet. The caller must call let_go()
	 * before any other function, and when all packets that arrived together have been handled. let_go() sends the
	 * replies and completes acknowledged requests, as does the QP's next packet that is not an acknowledgement.
	 */
	void (*take_whole)(struct run *run);
	void (*let_go)(struct run *run);
	/*
	 * Sets @reach to the accesses that the QP of @packet, a READ or WRITE just passed to take_whole(), allows its
	 * peer through that key until grants are revoked (hca/grants.h). Returns false if none.
	 */
	bool (*reach)(struct run *run, const struct packet *packet, struct run_reach *reach);
	/* Called when a process of this host has ended: requests to it will not be answered. Outside epoch sections. */
	void (*peer_ended)(void);
	/* Returns the device of QP @qpn, or NULL. Any lock may be held. */
	struct hca *(*device_of)(uint32_t qpn);
	/* Returns false if there is no QP @qpn. */
	bool (*view)(uint32_t qpn, struct receiver_view *view);
};

/* Set before the first link exists (process/devices.c). */
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
