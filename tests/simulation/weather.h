/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link between the two ends: what the device sends is cut into packets (tests/unit/support/wire_link.h), each of which arrives
 * at a time of its own, or never, or twice. In the order of sending, but for those that are late.
 */
#ifndef SOFTHCA_TESTS_SIMULATION_WEATHER_H
#define SOFTHCA_TESTS_SIMULATION_WEATHER_H

#include "../unit/support/wire_link.h"
#include "plan.h"

/* A packet that was delivered. */
struct arrival {
	uint32_t destination_qpn, psn;
	uint8_t opcode;
};

enum { MOST_ARRIVALS = 1 << 14 };

struct weather_log {
	uint64_t sent, lost, doubled, late, joined, busy;
	/* All that arrived, in its order. */
	uint32_t arrivals;
	struct arrival arrival[MOST_ARRIVALS];
};

extern struct weather_log weather_log;
extern bool weather_traced; /* tell of each packet */

/** From now on packets of @hca travel as @plan says; @fair: without any mishap, over a link that takes all. */
void weather_begin(struct hca *hca, const struct plan *plan, bool fair);
void weather_end(struct hca *hca);

/** Takes what the device has sent since. @mercy: nothing happens to it. */
void weather_collect(bool mercy);

/** When the next packet arrives, or there is room again, in time of the device; UINT64_MAX: nothing is on its way. */
uint64_t weather_next_ns(void);
/** That event, which must be due. */
void weather_happen(void);

#endif
