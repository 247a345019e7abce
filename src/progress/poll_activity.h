/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Estimates, for the device thread (progress.c), whether the program polls, or one of its threads polls as a
 * substitute, so that arrivals are handled without the device thread. Evaluated from time to time from changes of
 * counters. On the device thread only.
 */
#ifndef SOFTHCA_PROGRESS_POLL_ACTIVITY_H
#define SOFTHCA_PROGRESS_POLL_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>

#include "progress/substitute_poller.h"

/* Counters of the program, free running. */
struct program_calls {
	uint32_t polls;
	uint32_t naps;  /* times that the program was about to sleep */
	uint32_t works; /* progress_worked() */
	bool attended;  /* a thread of the library currently polls on its behalf */
};

struct poll_activity {
	uint64_t since_ns; /* start of the current observation */
	struct program_calls calls;
	bool program_polls;           /* latest evaluation */
	uint64_t polls_ns;            /* time since which program_polls has been true */
	uint32_t found_polling;       /* consecutive arrivals that woke the thread although the program polls */
	bool attends;                 /* the program polls so often that arrivals do not wait */
	bool attention_reported;      /* value of `attends` that pollers were last informed of */
	bool has_substitute;          /* a thread of the program substitutes for this one */
	uint64_t substitute_since_ns; /* time since which has_substitute has been true */
	uint64_t beat_ns;             /* latest known time at which the substitute handled arrivals */
	uint32_t beats;               /* value of the substitutes' beats at that time */
};

/** Returns the time between two checks of a program that polls. */
uint64_t poll_activity_interval(const struct poll_activity *activity);

/**
 * Returns true if the program polls. It need not be polling at this very moment: on a machine with few processors this
 * thread may be preempting it.
 */
bool poll_activity_program_polls(struct poll_activity *activity, const struct program_calls *calls);

/**
 * Returns true if a sleeping thread of the program handles arrivals (substitute_poller.h). If the event that woke this
 * thread (@arrived) may also have woken the substitute, the substitute gets time to become active. If it does not, this
 * thread handles arrivals again, so a substitute that gets no processor, or that left in an unusual way, delays
 * arrivals by at most one check.
 */
bool poll_activity_has_substitute(struct poll_activity *activity, struct substitute_state state, bool arrived);

/** Returns the time of the next check of a substitute. */
uint64_t poll_activity_substitute_until(const struct poll_activity *activity);

#endif
