/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link for tests: it cuts runs into packets of the path MTU, which are queued until the test delivers them, one by
 * one. A packet keeps only what its headers can encode: no information bypasses the wire. Packets can be lost,
 * duplicated or reordered.
 *
 * There is one link per process, and it belongs to the test. Packets are queued by any thread (the timers of the device
 * run on their own) and delivered by one.
 */
#ifndef SOFTHCA_TESTS_WIRE_LINK_H
#define SOFTHCA_TESTS_WIRE_LINK_H

#include "hca/hca.h"
#include "wire/packet.h"

/* Syndrome of each acknowledgement, including those of READs and atomics: no credits are counted (IBTA 9.7.7.2). */
enum { ACKNOWLEDGED = 0x1f };

/* As on the wire: the opcode determines which fields are valid. */
struct wire_packet {
	struct wire_packet *next;
	const struct link *link; /* link that sends it; NULL: the wire itself */
	uint8_t opcode;
	bool solicited, acknowledge;
	bool more, streams; /* of the run */
	uint32_t destination_qpn, psn;
	uint32_t qkey, source_qpn, xrc_srqn;
	uint64_t dc_key, dc_connection;
	uint32_t dc_first_psn;
	uint64_t remote_address;
	uint32_t rkey, dma_length;
	uint64_t swap_add, compare;
	uint8_t syndrome;
	uint32_t msn;
	uint64_t original;
	__be32 immediate;
	uint32_t invalidate_rkey;
	struct packet_path path;
	uint32_t length;
	uint8_t payload[LIMIT_MAX_MTU];
};

enum wire_verdict { WIRE_PASS, WIRE_DROP, WIRE_DOUBLE, WIRE_DELAY };

/* Decides the fate of @packet, the @number-th that was sent (from 1). Called with the queue locked. */
typedef enum wire_verdict wire_filter(void *argument, uint64_t number, const struct wire_packet *packet);

/** Replaces the link of @hca with the wire; QPs connected from now on use it. @filter may be NULL. */
void wire_attach(struct hca *hca, wire_filter *filter, void *argument);
/** Restores the device's own link and discards queued packets. */
void wire_detach(struct hca *hca);

/*
 * Behaviour of the wire towards the transport. After wire_attach() it accepts any run whole; with WIRE_PIECES in the
 * environment it accepts pieces, and a window of them. It delivers only at the request of the test.
 */
struct wire_manner {
	bool immediate, routed;
	uint32_t most, window; /* as in struct link */
	/** Returns true if there is no room, so that the run is rejected. NULL: there is always room. */
	bool (*busy)(void *argument);
	void *argument;
};

/** Sets the behaviour until the next wire_attach(). */
void wire_behave(const struct wire_manner *manner);

/** Delivers the next packet. Returns false if there is none. */
bool wire_deliver(void);

/**
 * Removes the next packet from the wire, for the caller to free or to pass to wire_receive(). Returns NULL if there is
 * none.
 */
struct wire_packet *wire_take(void);
/** Delivers @packet to its device, as if it had just arrived on the wire. */
void wire_receive(const struct wire_packet *packet);

/**
 * Delivers @count consecutive packets as one run, as links without packets do. Requires that each can follow the one
 * before.
 */
void wire_receive_run(const struct wire_packet *const *packets, uint32_t count);

/** Receives @count packets in one poll, each by itself. Calls @before_end when all have been handled. */
void wire_receive_poll(const struct wire_packet *const *packets, uint32_t count, void (*before_end)(void));
bool wire_goes_on(const struct wire_packet *packet, const struct wire_packet *next);

/** Returns true if the last flush let the packets wait for others. */
bool wire_lets_wait(void);

/** Returns the number of packets sent since wire_attach(). */
uint64_t wire_sent(void);

/* A random filter. Shares in percent, of the packets of the transports with their bit (1 << enum ibv_qp_type) set. */
struct wire_dice {
	uint64_t state;
	unsigned int drop, twice, delay;
	unsigned int transports;
};
wire_filter wire_dice;

#endif
