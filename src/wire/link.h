/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links: what carries packets from one QP to another. One transport above, many links below; a link is a table of
 * functions. Where a packet goes decides which one carries it (wire/routes.h): local, a call in this process; shm, shared
 * memory between processes of a host; udp, RoCEv2 between hosts. Captures and faults are filters in front of any link
 * (filter/filter.h).
 *
 * A link takes a run (wire/packet.h) of a length that suits it. It must not call the transport while it sends: the
 * sender's QP lock is held, and locks of a link are leaves below it. What arrives is handed to the transport by the
 * link's poller (progress/progress.h), without any lock of a link that sending takes.
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
	LINK_SENT, /* or lost, as on a wire: nobody tells */
	LINK_BUSY, /* there is no room now, and nothing was taken; whoever makes room calls link_resume() of run->full */
};

/* A READ or WRITE of RC, of a QP of which nothing is under way, that may be done in the memory of the peer at once. */
struct link_access {
	struct hca *hca;
	uint32_t source_qpn, destination_qpn;
	uint32_t rkey;
	bool reads;
	uint64_t address; /* of the key */
	uint8_t *bytes;   /* that are written, or where those go that are read; on the stack */
	uint32_t length;  /* not 0 */
};

struct link {
	const char *name;
	/*
	 * Takes runs of any length by reference, and delivers them before deliver_queued() returns: the transport needs neither
	 * pieces nor a window, and an answer comes while the request is still there.
	 */
	bool immediate;
	/*
	 * The peers are queue pairs of this process, so a requester may call their responder in place of send(), which returns the reply.
	 * Such a link is immediate.
	 */
	bool in_process;
	/*
	 * Of a link that is not immediate, and has no window: a message of RC of at most so many bytes leaves whole, whatever is
	 * under way, or finds no room; 0: none does.
	 */
	uint32_t whole;
	/*
	 * Others than the processes of this user can write to it: the addresses of a packet tell its sender, and its carrier
	 * vouches for them.
	 */
	bool shared;
	/*
	 * Packets arrive over connections to single processes: packet.connection tells the sender's process. A connected QP
	 * accepts packets of its peer's process only.
	 */
	bool paired;
	/* Routers are on the way, which mark packets when they are congested: with path->traffic_class of what arrives. */
	bool routed;
	uint32_t most;   /* payload bytes of a run; a multiple of the largest MTU; 0: any number */
	uint32_t window; /* atomic; payload bytes that a QP may have under way and not acknowledged; 0: any number */
	/*
	 * What all QPs have under way to one host is bounded as well (transport/host_window.h), by the buffer of a socket there: as
	 * large as the one here, which has so many bytes as the kernel counts them. Atomic; 0: it is not known yet.
	 */
	bool shares;
	uint32_t host_buffer;
	/**
	 * Sends the packet built in run_slot(@run). Its payload is valid during the call, and, for an immediate link, until
	 * the run is drained. The sender's QP lock is held. What cannot be delivered is lost in silence, as on a wire.
	 */
	enum link_result (*send)(struct hca *hca, struct run *run);
	/**
	 * Sends @length bytes, BTH to ICRC, as they are along @path, unlike send() without any lock of a QP held. NULL: the
	 * link carries no frames; the filters parse them and use send().
	 */
	enum link_result (*send_frame)(struct hca *hca, const struct packet_path *path, const uint8_t *bytes,
				       uint32_t length);
	/** A mark behind all that was sent to QP @qpn until now. NULL: the link cannot tell. Any thread, any lock. */
	uint64_t (*mark)(uint32_t qpn);
	/**
	 * True if nothing of what was sent to QP @qpn before @mark can have been lost yet: the peer lives, and has not dealt with
	 * it, or has not sent all that it wants to answer. Else its answers, if there are any, have arrived; whether they have been
	 * handled is another question. *@progress is another whenever the peer has dealt with something. A peer that has not looked
	 * is woken. NULL with mark.
	 */
	bool (*pending)(uint32_t qpn, uint64_t mark, uint64_t *progress);
	/**
	 * Returns true if packets have arrived at this host and wait for the process that receives them, so that an answer may be
	 * among them. One system call; any thread; may be called under a QP's lock. NULL: no packets wait outside of the process.
	 */
	bool (*has_backlog)(void);
	/**
	 * Does what @access says without asking the peer. False: that is not possible, or not allowed, or not worth it, and nothing
	 * was done, or a part of it that may be done again. The lock of the QP is held. NULL: the link cannot.
	 */
	bool (*access)(const struct link_access *access);
	/** Sends what it holds back: another link is about to send, which is not to overtake it. NULL: it holds nothing back. */
	void (*let_go)(void);
};

/* Atomic; the link that holds something back, or NULL. */
extern const struct link *link_holding;

/* Atomic; 1: link.access() has a chance to succeed. */
extern uint32_t link_has_access;

/*
 * The filters in front of all links of a device (src/filter), the first part of what hca->filters points to. Those of
 * packets that arrive are called by pollers only, no lock held.
 */
struct link_filters {
	/* In place of link->send: cuts the run into frames and queues them. Same rules as link_send(). */
	enum link_result (*send)(struct hca *hca, struct run *run);
	/* Hands what is due to the links; true if it put a packet into @run: drain it and call again. No lock held. */
	bool (*drain)(struct hca *hca, struct run *run);
	/* A packet arrived over a link other than the local one; its payload is plain memory. */
	void (*received)(struct hca *hca, const struct packet *packet);
	/* And was handled: what became of it is known. */
	void (*handled)(struct hca *hca);
	/*
	 * The fault "rnr": true if the request @packet to QP @qpn of @hca, which takes a receive and answers reliably, shall find
	 * none. Any lock.
	 */
	bool (*hides_receives)(struct hca *hca, uint32_t qpn, const struct packet *packet);
};

/** Those of @hca, which has some. */
static inline const struct link_filters *link_filters(const struct hca *hca)
{
	return (const struct link_filters *)hca->filters;
}

/** As link_filters.hides_receives; false without filters. */
static inline bool link_hides_receives(struct hca *hca, uint32_t qpn, const struct packet *packet)
{
	return __builtin_expect(hca->filters != NULL, 0) && link_filters(hca)->hides_receives(hca, qpn, packet);
}

/**
 * Sends the packet built in run_slot(@run) with packet->link, past the filters of @hca. packet->link is not NULL. If it says
 * LINK_BUSY, run->full is where room can be waited for. The lock of the QP is held.
 */
enum link_result link_send(struct hca *hca, struct run *run);
/** There was no room: @waiter of @sender waits for it, unless there is some by now. */
enum link_result link_wait_or_send(struct hca *hca, struct run *run, struct link_waiter *waiter,
				   struct link_sender *sender, bool requester);

/** link_send(); without room, @waiter of @sender, which is its requester or something that it owes, waits for it. */
static inline enum link_result link_send_or_wait(struct hca *hca, struct run *run, struct link_waiter *waiter,
						 struct link_sender *sender, bool requester)
{
	if (likely(link_send(hca, run) == LINK_SENT))
		return LINK_SENT;
	return link_wait_or_send(hca, run, waiter, sender, requester);
}

/* Bytes that a QP may have under way where filters hold packets back. */
#define FILTER_WINDOW (1u << 20)

/** What link->immediate and link->window say, if no filter of @hca comes between. */
static inline bool link_is_immediate(const struct hca *hca, const struct link *link)
{
	return link->immediate && !hca->filters;
}

static inline uint32_t link_window(const struct hca *hca, const struct link *link)
{
	uint32_t window = __atomic_load_n(&link->window, __ATOMIC_RELAXED);

	return hca->filters && (!window || window > FILTER_WINDOW) ? FILTER_WINDOW : window;
}

/** The window that a connection begins with; never 0, as filters may come later. */
static inline uint32_t link_first_window(const struct hca *hca, const struct link *link)
{
	uint32_t window = link_window(hca, link);

	return window ? window : FILTER_WINDOW;
}

#endif
