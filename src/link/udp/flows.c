/* SPDX-License-Identifier: BSD-2-Clause */
/* Identifications of senders, see flows.h. */
#include "core/tunables.h"
#include "link/udp/flows.h"

#include <string.h>

#define FLOWS 128 /* a power of two */

struct flow {
	union ibv_gid source;
	uint16_t source_port; /* 0: empty, no packet comes from there */
	uint16_t last;        /* identification */
	bool may_fragment;
	uint32_t row;    /* packets, each near the one before */
	uint32_t steady; /* so many, and others are refused */
};

static struct flow flows[FLOWS];

static struct flow *place_of(const struct udp_arrival *arrival)
{
	uint64_t low, high;

	memcpy(&high, arrival->wire.source.raw, sizeof(high));
	memcpy(&low, arrival->wire.source.raw + 8, sizeof(low));
	/* Fibonacci hashing. */
	low = (low ^ high ^ arrival->source_port) * UINT64_C(0x9e3779b97f4a7c15);
	return &flows[low >> 32 & (FLOWS - 1)];
}

static bool is_of(const struct flow *flow, const struct udp_arrival *arrival)
{
	return flow->source_port == arrival->source_port &&
	       !memcmp(&flow->source, &arrival->wire.source, sizeof(flow->source));
}

/* Begins to count: the first packet of a flow, or one that leaps. */
static void begin(struct flow *flow, const struct ipv4_unseen *unseen, uint32_t steady)
{
	flow->last = unseen->identification;
	flow->may_fragment = unseen->may_fragment;
	flow->row = 0;
	flow->steady = steady;
}

static void take(struct flow *flow, const struct udp_arrival *arrival, const struct ipv4_unseen *unseen)
{
	flow->source = arrival->wire.source;
	flow->source_port = arrival->source_port;
	begin(flow, unseen, TUNABLE_UDP_FLOW_STEADY);
}

static bool is_near(const struct flow *flow, const struct ipv4_unseen *unseen)
{
	return flow->may_fragment == unseen->may_fragment &&
	       (uint16_t)(unseen->identification - flow->last + TUNABLE_UDP_FLOW_BEHIND) <
		       TUNABLE_UDP_FLOW_BEHIND + TUNABLE_UDP_FLOW_AHEAD;
}

static void count(struct flow *flow, uint16_t identification, uint32_t packets)
{
	flow->last = identification;
	if (__builtin_add_overflow(flow->row, packets, &flow->row))
		flow->row = UINT32_MAX;
}

bool udp_flow_continues(const struct udp_arrival *arrival, const struct ipv4_unseen *unseen, uint16_t *last,
			uint32_t *row)
{
	struct flow *flow = place_of(arrival);

	if (!is_of(flow, arrival)) {
		take(flow, arrival, unseen);
		return true;
	}
	if (is_near(flow, unseen)) {
		count(flow, unseen->identification, 1);
		return true;
	}
	*last = flow->last;
	*row = flow->row;
	if (flow->row < flow->steady) {
		begin(flow, unseen, flow->steady);
		return true;
	}
	begin(flow, unseen, flow->steady > UINT32_MAX / 2 ? UINT32_MAX : 2 * flow->steady);
	return false;
}

void udp_flow_note(const struct udp_arrival *arrival, uint16_t identification, uint32_t packets)
{
	const struct ipv4_unseen unseen = {.identification = identification};
	struct flow *flow = place_of(arrival);

	if (!is_of(flow, arrival))
		take(flow, arrival, &unseen);
	else if (!is_near(flow, &unseen))
		begin(flow, &unseen, flow->steady);
	count(flow, identification, packets);
}
