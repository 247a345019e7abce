/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device's clock and timers (core/timer.h) for single-threaded tests: time passes only at the request of the test.
 * Linked instead of core/timer.c, so that results do not depend on the speed of the machine.
 */
#ifndef SOFTHCA_TESTS_WIRE_CLOCK_H
#define SOFTHCA_TESTS_WIRE_CLOCK_H

#include "core/timer.h"

/** Advances to the next deadline and fires its timer. Returns false if no timer is armed. */
bool wire_clock_next(void);

/** Returns the nanoseconds until the next timer fires; UINT64_MAX: none is armed. */
uint64_t wire_clock_left(void);

/** Advances the clock by @ns; fires due timers on the way, including those armed meanwhile. */
void wire_clock_pass(uint64_t ns);

#endif
