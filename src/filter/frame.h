/* SPDX-License-Identifier: BSD-2-Clause */
/* A frame: one packet as bytes, from BTH to ICRC. It is on the heap; its holder owns it and frees it with free(3). */
#ifndef SOFTHCA_FILTER_FRAME_H
#define SOFTHCA_FILTER_FRAME_H

#include "filter/faults.h"
#include "wire/link.h"
#include "wire/packet.h"

struct capture;

struct frame {
	struct frame *next, *previous; /* in a list of the filters */
	struct frame *next_held;       /* in flow->held */
	struct fault_flow *flow;       /* holds it back until other frames have overtaken it; or NULL */
	uint32_t overtake;             /* frames that must still overtake it */
	uint64_t due_ns;
	const struct link *link;
	struct packet_path path; /* including the UDP source port that the ICRC covers */
	uint32_t source_qpn;     /* a frame does not always contain it */
	struct refusal why;      /* if the frame refuses something */
	uint16_t mtu;
	bool spoilt;             /* its ICRC may be wrong */
	struct capture *capture; /* capture to which it must still be written, or NULL */
	uint64_t mark;           /* result of capture_mark() before delivery */
	uint32_t payload;
	uint32_t length;
	uint8_t bytes[];
};

/** Returns the number of packets of the run on a wire: one for a READ request. */
static inline uint32_t frames_of(const struct packet *packet)
{
	return packet->message == MESSAGE_READ_REQUEST ? 1 : packet->count;
}

/**
 * Cuts packet @number of the run @packet. Packets must be cut in order, because each advances the payload's stream.
 * @verdict: faults to apply; the payload is corrupted before the ICRC is computed, the frame after that. @port:
 * destination UDP port. Returns NULL without memory or if the transport has no such packet; the rest of the run is then
 * lost.
 */
struct frame *frame_cut(struct packet *packet, uint32_t number, uint32_t payload, uint16_t port,
			const struct fault_verdict *verdict);

/** Returns NULL without memory. */
struct frame *frame_copy(const struct frame *frame);

/** Returns the number of payload bytes of packet @number of the run @packet, of which @left are not cut yet. */
uint32_t frame_payload(const struct packet *packet, uint64_t left);

/**
 * Builds @packet from @frame, which must outlive it. Returns false, with an explanation, for a frame that a receiver
 * refuses.
 */
bool frame_parse(struct hca *hca, const struct frame *frame, uint16_t port, struct packet *packet);

/** Returns the properties that faults match. */
struct fault_subject frame_subject(const struct packet *packet, uint32_t payload);

#endif
