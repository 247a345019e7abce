/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device thread's estimate, from changes of counters, whether the program polls or one of its threads substitutes.
 * On the device thread only.
 */
#ifndef SOFTHCA_PROGRESS_POLL_ACTIVITY_H
#define SOFTHCA_PROGRESS_POLL_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>

#include "progress/substitute_poller.h"

/* Counters, free running. */
struct program_calls {
	uint32_t polls;
	uint32_t naps;  /* times that the program was about to sleep */
	uint32_t works; /* progress_worked() */
	bool attended;  /* a thread of the library polls on its behalf */
};

struct poll_activity {
	uint64_t since_ns; /* start of the current observation */
	struct program_calls calls;
	bool program_polls;
	uint64_t polls_ns;       /* since when program_polls is true */
	uint32_t found_polling;  /* consecutive arrivals that woke the thread although the program polls */
	bool attends;            /* the program polls so often that arrivals do not wait */
	bool attention_reported; /* value of `attends` last passed to the pollers */
	bool has_substitute;
	uint64_t substitute_since_ns; /* since when has_substitute is true */
	uint64_t beat_ns;             /* when the substitute was last known to handle arrivals */
	uint32_t beats;               /* the substitutes' beats at that time */
};

/** Returns the time between two checks of a program that polls. */
uint64_t poll_activity_interval(const struct poll_activity *activity);

/** Returns true if the program polls, possibly preempted by this very thread. */
bool poll_activity_program_polls(struct poll_activity *activity, const struct program_calls *calls);

/**
 * Excludes a time, up to the present, in which this thread was awake: where it shares a processor with the program, the
 * program could not poll. Work that the program did on another processor still counts, so a program that stops may be
 * considered polling for one interval longer.
 */
void poll_activity_exclude(struct poll_activity *activity, uint64_t from_ns, uint64_t to_ns);

/**
 * Returns true if a substitute (substitute_poller.h) handles arrivals. An arrival that woke this thread (@arrived) may
 * also have woken the substitute, which gets time to become active until the next check.
 */
bool poll_activity_has_substitute(struct poll_activity *activity, struct substitute_state state, bool arrived);

/** Returns the time of the next check of a substitute. */
uint64_t poll_activity_substitute_until(const struct poll_activity *activity);

#endif
