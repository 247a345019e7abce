/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links carry packets from one QP to another: local, within this process; shm, shared memory between processes of a
 * host; udp, RoCEv2 between hosts. Filters between transport and links capture packets and make faults
 * (filter/filter.h).
 *
 * A link must not call the transport while it sends, because the sender's QP lock is held; locks of a link are leaves
 * under that lock. Its poller (progress/progress.h) hands arriving packets to the transport, without holding any lock
 * that sending takes.
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
	LINK_BUSY, /* no room; nothing was sent. link_resume() follows for run->full */
};

/* An RC READ or WRITE that a link may perform directly in the memory of the peer; the QP has nothing in flight. */
struct link_access {
	struct hca *hca;
	uint32_t source_qpn, destination_qpn;
	uint32_t rkey;
	bool reads;
	bool streams;     /* the program posted it before it polled the completion of the request before */
	uint64_t address; /* address in the key */
	uint8_t *bytes;   /* source of a WRITE, target of a READ; on the stack */
	uint32_t length;  /* not 0 */
};

struct link {
	const char *name;
	/*
	 * Accepts runs of any length by reference, and delivers them before deliver_queued() returns, so there are
	 * neither pieces nor a window, and the request still exists when replies arrive.
	 */
	bool immediate;
	/*
	 * The peers are queue pairs of this process, so a requester may call their responder instead of send(). Implies
	 * `immediate`.
	 */
	bool in_process;
	/*
	 * maximum bytes of RC messages that are sent as a whole, regardless of the bytes in flight, or not at all while
	 * the link is full; 0: none. For links that are not immediate and have no window.
	 */
	uint32_t whole;
	/*
	 * Other users or hosts can write to the link, so only a packet's addresses, which the carrier guarantees,
	 * identify its sender.
	 */
	bool shared;
	/*
	 * packet.connection identifies the sender's process. A connected QP accepts only packets of its peer's process.
	 */
	bool paired;
	/* Congested routers on the way may mark packets: path->traffic_class on arrival. */
	bool routed;
	uint32_t most;   /* maximum payload bytes of a run, a multiple of the largest MTU; 0: unlimited */
	uint32_t window; /* atomic; maximum unacknowledged payload bytes of a QP; 0: unlimited */
	/*
	 * All QPs together have a limit for each host, too (transport/qp/host_window.h): the buffer of a socket there,
	 * assumed to be as large as the one here, `host_buffer`, in bytes as the kernel counts them. Atomic; 0: not
	 * known.
	 */
	bool shares;
	uint32_t host_buffer;
	/**
	 * Sends the packet built in run_slot(@run), whose payload is valid during the call and, for an immediate link,
	 * until the run is drained. The sender's QP lock is held. A packet that cannot be delivered is lost silently.
	 */
	enum link_result (*send)(struct hca *hca, struct run *run);
	/**
	 * Sends the packets that send() has kept in run->kept because of run->more, or lets them wait if run->streams.
	 * The sender's QP lock is held. NULL: send() keeps none.
	 */
	void (*flush)(struct run *run);
	/**
	 * Sends @length bytes, BTH to ICRC, unchanged. No QP lock is held. NULL: the filters parse frames and use
	 * send().
	 */
	enum link_result (*send_frame)(struct hca *hca, const struct packet_path *path, const uint8_t *bytes,
				       uint32_t length);
	/** Returns a mark after everything sent to QP @qpn so far. NULL: not supported. Any thread, any lock. */
	uint64_t (*mark)(uint32_t qpn);
	/**
	 * Returns true if the packets sent to QP @qpn before @mark cannot have been lost yet: the peer is alive, and
	 * has not handled all of them or not sent all of its replies. If false, all replies have arrived, but may not
	 * have been handled. *@progress changes whenever the peer has handled packets. Wakes a peer that has not read
	 * them yet.
	 */
	bool (*pending)(uint32_t qpn, uint64_t mark, uint64_t *progress);
	/**
	 * Returns true if packets wait at this host for the receiving process: a reply may be among them. One system
	 * call; any thread; may be called under a QP's lock. NULL: never.
	 */
	bool (*has_backlog)(void);
	/**
	 * Performs @access without the peer. Returns false if that is not possible, allowed or worthwhile; then nothing
	 * was done, or only a part that may be repeated. The QP's lock is held. NULL: no direct access.
	 */
	bool (*access)(const struct link_access *access);
	/**
	 * Sends packets that the link holds back, before another link sends packets that would overtake them. NULL:
	 * none.
	 */
	void (*let_go)(void);
};

/* Atomic; the link that holds packets back, or NULL. */
extern const struct link *link_holding;

/* Atomic; 1: link.access() may succeed. */
extern uint32_t link_has_access;

/*
 * Filters of a device (src/filter), at the beginning of the structure at hca->filters. Only pollers call those for
 * arriving packets, without a lock.
 */
struct link_filters {
	/* Replaces link->send: cuts the run into frames and queues them. */
	enum link_result (*send)(struct hca *hca, struct run *run);
	/*
	 * Hands due frames to the links. Returns true if it put a packet into @run: drain it and call again. No lock
	 * held.
	 */
	bool (*drain)(struct hca *hca, struct run *run);
	/* Called for a packet that arrived over a link other than the local one; its payload is plain memory. */
	void (*received)(struct hca *hca, const struct packet *packet);
	/* Called when that packet has been handled. */
	void (*handled)(struct hca *hca);
	/*
	 * The fault "rnr": returns true if no receive must be found for the request @packet to QP @qpn, which needs one
	 * and gets a reliable reply. Any lock.
	 */
	bool (*hides_receives)(struct hca *hca, uint32_t qpn, const struct packet *packet);
};

/** @hca must have filters. */
static inline const struct link_filters *link_filters(const struct hca *hca)
{
	return (const struct link_filters *)hca->filters;
}

static inline bool link_hides_receives(struct hca *hca, uint32_t qpn, const struct packet *packet)
{
	return __builtin_expect(hca->filters != NULL, 0) && link_filters(hca)->hides_receives(hca, qpn, packet);
}

/** Makes the link that holds packets back send them. Any thread, also under a QP's lock. */
static inline void link_let_go(void)
{
	const struct link *holding = __atomic_load_n(&link_holding, __ATOMIC_ACQUIRE);

	if (__builtin_expect(holding != NULL, 0))
		holding->let_go();
}

/**
 * Sends the packet built in run_slot(@run) through the filters of @hca and packet->link (not NULL). After LINK_BUSY,
 * run->full is the queue in which to wait. The QP's lock is held.
 */
enum link_result link_send(struct hca *hca, struct run *run);
/** After LINK_BUSY: queues @waiter of @sender and tries again once. */
enum link_result link_wait_or_send(struct hca *hca, struct run *run, struct link_waiter *waiter,
				   struct link_sender *sender, bool requester);

/** As link_send(); queues @waiter of @sender if the link is full. @requester: the packet is not a reply. */
static inline enum link_result link_send_or_wait(struct hca *hca, struct run *run, struct link_waiter *waiter,
						 struct link_sender *sender, bool requester)
{
	if (likely(link_send(hca, run) == LINK_SENT))
		return LINK_SENT;
	return link_wait_or_send(hca, run, waiter, sender, requester);
}

/* Maximum payload bytes in flight of a QP while filters hold packets back. */
#define FILTER_WINDOW (1u << 20)

/** Return properties of @link, restricted if @hca has filters. */
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
