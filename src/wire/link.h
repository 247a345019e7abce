/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links carry packets from one QP to another. A link is a table of functions. The transport chooses a link by the
 * destination of the packet (wire/routes.h): local, a call in this process; shm, shared memory between processes of a
 * host; udp, RoCEv2 between hosts. Captures and faults are filters between the transport and any link
 * (filter/filter.h).
 *
 * A link accepts a run (wire/packet.h) of up to its own maximum length. It must not call the transport while it sends,
 * because the sender's QP lock is held; locks of a link are leaves under that lock. The link's poller
 * (progress/progress.h) hands arriving packets to the transport, without holding any lock that sending takes.
 */
#ifndef SOFTHCA_WIRE_LINK_H
#define SOFTHCA_WIRE_LINK_H

#include <stdbool.h>

#include "core/compiler.h"
#include "hca/hca.h"
#include "wire/waiting.h"
#include "wire/run.h"

struct hca;
struct hca_qp;

enum link_result {
	LINK_SENT, /* sent, or lost silently as on a wire */
	LINK_BUSY, /* no room; nothing was sent. When there is room, link_resume() is called for run->full */
};

/* An RC READ or WRITE of a QP that has nothing in flight, which a link may perform directly in the memory of the peer. */
struct link_access {
	struct hca *hca;
	uint32_t source_qpn, destination_qpn;
	uint32_t rkey;
	bool reads;
	uint64_t address; /* address in the key */
	uint8_t *bytes;   /* source of a WRITE, target of a READ; on the stack */
	uint32_t length;  /* not 0 */
};

struct link {
	const char *name;
	/*
	 * Accepts runs of any length by reference, and delivers them before deliver_queued() returns. The transport then needs
	 * neither pieces nor a window, and replies arrive while the request still exists.
	 */
	bool immediate;
	/*
	 * The peers are queue pairs of this process, so a requester may call their responder instead of send(), and
	 * gets the reply as a return value. Such a link is immediate.
	 */
	bool in_process;
	/*
	 * For a link that is neither immediate nor has a window: maximum length in bytes of RC messages that are sent
	 * as a whole, regardless of the bytes in flight, or not at all while the link is full; 0: none.
	 */
	uint32_t whole;
	/*
	 * Processes of other users or hosts can write to the link, so only a packet's addresses, which the carrier
	 * guarantees, identify its sender.
	 */
	bool shared;
	/*
	 * Packets arrive over connections to single processes: packet.connection identifies the sender's process. A connected QP
	 * accepts only packets of its peer's process.
	 */
	bool paired;
	/* Routers on the way may mark packets when they are congested; the mark is in path->traffic_class of arriving packets. */
	bool routed;
	uint32_t most;   /* most payload bytes of a run, a multiple of the largest MTU; 0: unlimited */
	uint32_t window; /* atomic; most unacknowledged payload bytes of a QP; 0: unlimited */
	/*
	 * All QPs together have a limit for each host, too (transport/qp/host_window.h): the buffer of a socket there.
	 * It is assumed to be as large as `host_buffer`, that of the socket here, in bytes as the kernel counts them.
	 * Atomic; 0: not known yet.
	 */
	bool shares;
	uint32_t host_buffer;
	/**
	 * Sends the packet built in run_slot(@run). Its payload is valid during the call and, for an immediate link, until the
	 * run is drained. The sender's QP lock is held. A packet that cannot be delivered is lost silently, as on a wire.
	 */
	enum link_result (*send)(struct hca *hca, struct run *run);
	/**
	 * Sends @length bytes, BTH to ICRC, unchanged along @path. Unlike for send(), no QP lock is held. NULL: the link does not
	 * carry frames; the filters parse them and use send().
	 */
	enum link_result (*send_frame)(struct hca *hca, const struct packet_path *path, const uint8_t *bytes,
				       uint32_t length);
	/**
	 * Returns a mark after everything sent to QP @qpn so far. NULL: the link does not support marks. Any thread, any lock.
	 */
	uint64_t (*mark)(uint32_t qpn);
	/**
	 * Returns true if the packets sent to QP @qpn before @mark cannot have been lost yet: the peer is alive, and
	 * has not handled all of them or not sent all of its replies. If false, all replies have arrived, though they
	 * may not have been handled here. *@progress changes whenever the peer has handled packets. Wakes a peer that
	 * has not read them yet. NULL if mark is NULL.
	 */
	bool (*pending)(uint32_t qpn, uint64_t mark, uint64_t *progress);
	/**
	 * Returns true if packets have arrived at this host and wait for the receiving process, so that a reply may be among
	 * them. One system call; any thread; may be called under a QP's lock. NULL: no packets wait outside the process.
	 */
	bool (*has_backlog)(void);
	/**
	 * Performs @access without involving the peer. Returns false if that is not possible, not allowed or not worthwhile;
	 * then nothing was done, or only a part that may be repeated. The QP's lock is held. NULL: the link has no direct
	 * access.
	 */
	bool (*access)(const struct link_access *access);
	/**
	 * Sends packets that the link holds back, before another link sends packets that would overtake them. NULL: the
	 * link never holds packets back.
	 */
	void (*let_go)(void);
};

/* Atomic; the link that holds packets back, or NULL. */
extern const struct link *link_holding;

/* Atomic; 1: link.access() may succeed. */
extern uint32_t link_has_access;

/*
 * The filters between transport and all links of a device (src/filter); hca->filters points to a structure that begins
 * with these functions. The functions for arriving packets are called by pollers only, without a lock.
 */
struct link_filters {
	/* Replaces link->send: cuts the run into frames and queues them. Same rules as for link_send(). */
	enum link_result (*send)(struct hca *hca, struct run *run);
	/* Hands due frames to the links. Returns true if it put a packet into @run: drain it and call again. No lock held. */
	bool (*drain)(struct hca *hca, struct run *run);
	/* Called for a packet that arrived over a link other than the local one; its payload is plain memory. */
	void (*received)(struct hca *hca, const struct packet *packet);
	/* Called when that packet has been handled, so its outcome is known. */
	void (*handled)(struct hca *hca);
	/*
	 * Implements the fault "rnr": returns true if a receive must not be found for the request @packet to QP @qpn of
	 * @hca, which needs one and gets a reliable reply. Any lock.
	 */
	bool (*hides_receives)(struct hca *hca, uint32_t qpn, const struct packet *packet);
};

/** Returns the filters of @hca, which must have some. */
static inline const struct link_filters *link_filters(const struct hca *hca)
{
	return (const struct link_filters *)hca->filters;
}

/** Returns link_filters.hides_receives(), false without filters. */
static inline bool link_hides_receives(struct hca *hca, uint32_t qpn, const struct packet *packet)
{
	return __builtin_expect(hca->filters != NULL, 0) && link_filters(hca)->hides_receives(hca, qpn, packet);
}

/**
 * Sends the packet built in run_slot(@run) through the filters of @hca and packet->link, which is not NULL. If it returns
 * LINK_BUSY, run->full is the queue in which to wait for room. The QP's lock is held.
 */
enum link_result link_send(struct hca *hca, struct run *run);
/** After LINK_BUSY: queues @waiter of @sender and tries again once. */
enum link_result link_wait_or_send(struct hca *hca, struct run *run, struct link_waiter *waiter,
				   struct link_sender *sender, bool requester);

/**
 * Sends like link_send(). If the link is full, queues @waiter of @sender. @requester: the packet is the requester's,
 * otherwise a reply.
 */
static inline enum link_result link_send_or_wait(struct hca *hca, struct run *run, struct link_waiter *waiter,
						 struct link_sender *sender, bool requester)
{
	if (likely(link_send(hca, run) == LINK_SENT))
		return LINK_SENT;
	return link_wait_or_send(hca, run, waiter, sender, requester);
}

/* Maximum payload bytes that a QP may have in flight while filters hold packets back. */
#define FILTER_WINDOW (1u << 20)

/** Return link->immediate and link->window, restricted if @hca has filters. */
static inline bool link_is_immediate(const struct hca *hca, const struct link *link)
{
	return link->immediate && !hca->filters;
}

static inline uint32_t link_window(const struct hca *hca, const struct link *link)
{
	uint32_t window = __atomic_load_n(&link->window, __ATOMIC_RELAXED);

	return hca->filters && (!window || window > FILTER_WINDOW) ? FILTER_WINDOW : window;
}

/** Returns the initial window of a connection; never 0, as filters may be added later. */
static inline uint32_t link_first_window(const struct hca *hca, const struct link *link)
{
	uint32_t window = link_window(hca, link);

	return window ? window : FILTER_WINDOW;
}

#endif
