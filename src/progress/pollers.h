/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pollers of the process, and the rule that one thread at a time calls them. For this directory: the device thread
 * (device_thread.c) and substitutes (substitute_poller.c) poll with these functions, programs with progress_poll().
 */
#ifndef SOFTHCA_PROGRESS_POLLERS_H
#define SOFTHCA_PROGRESS_POLLERS_H

#include <stdbool.h>

#include "progress/poll_activity.h"

struct poller;

/** Starts polling, until progress_end_polling(). Returns false if another thread polls. Any thread may call. */
bool progress_begin_polling(void);
/**
 * As progress_begin_polling(), but waits briefly: a poll takes some microseconds, unless its thread loses its
 * processor.
 */
bool progress_begin_polling_soon(void);
void progress_end_polling(void);

/* The next five only between progress_begin_polling() and progress_end_polling(). */

/** Calls all pollers once. Returns true if anything had arrived. */
bool progress_poll_all(void);
/** Sets whether arrivals wake the threads that sleep on them. */
void progress_arm_all(bool armed);
/**
 * Handles arrivals that do not make a descriptor readable, with pollers armed and before a sleep. @stays: see
 * poller.rest. Returns false if some may be left.
 */
bool progress_rest(bool stays);
/** Polls until nothing is left, within limits, since timers are due as well. Returns false if something may be left. */
bool pollers_poll_to_the_end(void);
/** Arms the pollers, polling before and after. Returns false if something may be left. */
bool pollers_arm_and_poll(void);

/* ---- for the device thread ------------------------------------------------------------------------------------- */

/** Adds @poller. The caller holds a lock that excludes other callers. */
void pollers_add(struct poller *poller);
/** Returns true if there is a poller. */
bool pollers_exist(void);
/** Returns what the program has called so far. */
struct program_calls pollers_program_calls(void);
/** Passes @attends to poller.attend of all pollers. */
void pollers_attend(bool attends);
/** Disarms the armed pollers that `repeats`; a program that starts to poll may do the same at the same time. */
void pollers_disarm_repeating(void);
/** Sets whether the next poll of the program disarms all pollers. */
void pollers_request_disarm(bool disarm);
/** Sets whether the device thread will check soon; if not, the next poll of the program wakes it. */
void pollers_set_looks(bool looks);
/** Forgets the pollers, in a forked child. */
void pollers_after_fork(void);

#endif
