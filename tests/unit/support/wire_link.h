/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link for tests: what it is given is cut into packets of the path MTU, which wait in a queue until the test delivers
 * them, one by one. A packet keeps what its headers can say, and no more: nothing goes past the wire. On their way packets
 * can be lost, doubled, or overtaken.
 *
 * The link is one per process and belongs to the test. Packets are queued by any thread (the timers of the device run on
 * their own) and delivered by one.
 */
#ifndef SOFTHCA_TESTS_WIRE_LINK_H
#define SOFTHCA_TESTS_WIRE_LINK_H

#include "hca/hca.h"
#include "wire/packet.h"

/* The syndrome of each acknowledgement, of READs and atomics, too: no credits are counted (IBTA 9.7.7.2). */
enum { ACKNOWLEDGED = 0x1f };

/* As on the wire: which fields count depends on the opcode. */
struct wire_packet {
	struct wire_packet *next;
	const struct link *link; /* it was given to; NULL: the wire itself */
	uint8_t opcode;
	bool solicited, acknowledge;
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

/* What becomes of @packet, the @number-th that was sent (from 1). Called under the queue's lock. */
typedef enum wire_verdict wire_filter(void *argument, uint64_t number, const struct wire_packet *packet);

/** Puts the wire in the place of the link of @hca; QPs that are connected from now on use it. @filter may be NULL. */
void wire_attach(struct hca *hca, wire_filter *filter, void *argument);
/** Puts the device's own link back and forgets what is queued. */
void wire_detach(struct hca *hca);

/*
 * How the wire behaves towards the transport. As wire_attach() makes it, it takes any run whole; with WIRE_PIECES in the
 * environment it takes pieces, and a window of them. It waits with what it delivers until the test says so.
 */
struct wire_manner {
	bool immediate, routed;
	uint32_t most, window; /* as in struct link */
	/** True: there is no room now, the run is not taken. NULL: there always is. */
	bool (*busy)(void *argument);
	void *argument;
};

/** Until the next wire_attach(). */
void wire_behave(const struct wire_manner *manner);

/** Delivers the packet that is next. False: there is none. */
bool wire_deliver(void);

/** Takes the next packet off the wire; to be freed by the caller, or given to wire_receive. NULL: there is none. */
struct wire_packet *wire_take(void);
/** Hands @packet to the device it is for, as if it had come off the wire now. */
void wire_receive(const struct wire_packet *packet);

/**
 * Hands over @count packets, each of which goes on where the one before it ended, as one run: as links do that need no
 * packets. True if @next can follow @packet so.
 */
void wire_receive_run(const struct wire_packet *const *packets, uint32_t count);
bool wire_goes_on(const struct wire_packet *packet, const struct wire_packet *next);

/** Packets sent since wire_attach(). */
uint64_t wire_sent(void);

/* A filter that throws dice. Shares in percent, each packet of the transports whose bit (1 << enum ibv_qp_type) is set. */
struct wire_dice {
	uint64_t state;
	unsigned int drop, twice, delay;
	unsigned int transports;
};
wire_filter wire_dice;

#endif
