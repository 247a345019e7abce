/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A frame: one packet as bytes, from BTH to ICRC, with what a link needs to know of it besides. Filters work on frames; so
 * does the capture. A frame is on the heap; whoever has it owns it and frees it with free(3).
 */
#ifndef SOFTHCA_FILTER_FRAME_H
#define SOFTHCA_FILTER_FRAME_H

#include "filter/faults.h"
#include "wire/link.h"
#include "wire/packet.h"

struct capture;

struct frame {
	struct frame *next, *previous; /* in a list of the filters */
	struct frame *next_held;       /* in flow->held */
	struct fault_flow *flow;       /* that holds it until others have overtaken it; or NULL */
	uint32_t overtake;             /* so many */
	uint64_t due_ns;
	const struct link *link;
	struct packet_path path; /* with the UDP source port that its ICRC covers */
	uint32_t source_qpn;     /* what a frame itself does not always tell: who sends, … */
	struct refusal why;      /* …and why, if it refuses something */
	uint16_t mtu;
	bool spoilt;             /* its ICRC may be wrong */
	struct capture *capture; /* that has not seen it yet; or NULL */
	uint64_t mark;           /* of capture_mark(), before it was delivered */
	uint32_t payload;
	uint32_t length;
	uint8_t bytes[];
};

/** Packets that the run @packet is on a wire: a READ request is one. */
static inline uint32_t frames_of(const struct packet *packet)
{
	return packet->message == MESSAGE_READ_REQUEST ? 1 : packet->count;
}

/**
 * Cuts packet @number of the run @packet: frames are cut in order, each reads its part of the payload and so moves its stream on. @verdict: what the
 * faults want; the payload is spoilt before the ICRC is made, the frame after that. @port: UDP port it is sent to. NULL:
 * no memory, or the transport has no such packet: the rest of the run is lost.
 */
struct frame *frame_cut(struct packet *packet, uint32_t number, uint32_t payload, uint16_t port,
			const struct fault_verdict *verdict);

/** Another one that is the same. NULL without memory. */
struct frame *frame_copy(const struct frame *frame);

/** Payload bytes of packet @number of the run @packet, of which @left have not been cut yet. */
uint32_t frame_payload(const struct packet *packet, uint64_t left);

/**
 * Builds @packet from @frame, which must outlive it. Returns false for a frame that a receiver refuses, after explaining it
 * to @hca.
 */
bool frame_parse(struct hca *hca, const struct frame *frame, uint16_t port, struct packet *packet);

/** As the faults see it. */
struct fault_subject frame_subject(const struct packet *packet, uint32_t payload);

#endif
