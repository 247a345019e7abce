/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link between the two ends: messages of the device are split into packets (tests/unit/support/wire_link.h), each of
 * which arrives at its own time, or never, or twice. They arrive in the order of sending, except for late ones.
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
	/* All arrivals, in order. */
	uint32_t arrivals;
	struct arrival arrival[MOST_ARRIVALS];
};

extern struct weather_log weather_log;
extern bool weather_traced; /* print each packet */

/** Sets up the link of @hca according to @plan; @fair: without any mishap, over a link that accepts everything. */
void weather_begin(struct hca *hca, const struct plan *plan, bool fair);
void weather_end(struct hca *hca);

/** Takes the packets that the device has sent since. @mercy: they have no mishap. */
void weather_collect(bool mercy);

/** Returns the time of the device when the next packet arrives, or there is room again; UINT64_MAX: nothing is in flight. */
uint64_t weather_next_ns(void);
/** Performs that event, which must be due. */
void weather_happen(void);

#endif
