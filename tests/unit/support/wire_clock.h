/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device's clock and timers (core/timer.h) for tests of one thread: time stands still until the test lets it pass. Linked
 * instead of core/timer.c, so that what a test does does not depend on how fast the machine is.
 */
#ifndef SOFTHCA_TESTS_WIRE_CLOCK_H
#define SOFTHCA_TESTS_WIRE_CLOCK_H

#include "core/timer.h"

/** Goes to the next deadline and lets its timer fire. False: no timer is armed. */
bool wire_clock_next(void);

/** Nanoseconds until the next timer fires; UINT64_MAX: none is armed. */
uint64_t wire_clock_left(void);

/** Lets @ns pass; timers fire on the way, those that are armed meanwhile, too. */
void wire_clock_pass(uint64_t ns);

#endif
