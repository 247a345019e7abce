/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface between progress.c and substitute_poller.c. */
#ifndef SOFTHCA_PROGRESS_PROGRESS_PARTS_H
#define SOFTHCA_PROGRESS_PROGRESS_PARTS_H

#include <stdbool.h>

/** Starts polling, until progress_end_polling(). Returns false if another thread polls. Any thread may call. */
bool progress_begin_polling(void);
/**
 * As progress_begin_polling(), but waits briefly: a poll takes some microseconds, unless its thread loses its
 * processor.
 */
bool progress_begin_polling_soon(void);
void progress_end_polling(void);

/* The next three only between progress_begin_polling() and progress_end_polling(). */

/** Calls all pollers once. Returns true if anything had arrived. */
bool progress_poll_all(void);
/** Sets whether arrivals wake the threads that sleep on them. */
void progress_arm_all(bool armed);
/**
 * Handles arrivals that do not make a descriptor readable, with pollers armed and before a sleep. @stays: see
 * poller.rest. Returns false if some may be left.
 */
bool progress_rest(bool stays);

/** Returns the epoll descriptor to sleep on for arrivals; -1: none. Any thread may call. */
int progress_arrivals(void);
/** Reads the data that pollers leave in the descriptors of arrivals. Any thread may call, outside an epoch section. */
void progress_drain(void);

#endif
