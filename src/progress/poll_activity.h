/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the device thread (progress.c) knows of the program: whether that polls, or a thread of it stands in, so that what arrives
 * is looked after. It looks now and then, and goes by what has moved since. On that thread only.
 */
#ifndef SOFTHCA_PROGRESS_POLL_ACTIVITY_H
#define SOFTHCA_PROGRESS_POLL_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>

#include "progress/substitute_poller.h"

/* Of the program, free running. */
struct program_calls {
	uint32_t polls;
	uint32_t naps;  /* times that it was about to sleep */
	uint32_t works; /* progress_worked() */
	bool attended;  /* a thread of the library polls in its place at the moment */
};

struct poll_activity {
	uint64_t since_ns; /* what follows counts from then on */
	struct program_calls calls;
	bool program_polls;           /* as far as is known… */
	uint64_t polls_ns;            /* …since then */
	uint32_t found_polling;       /* arrivals in a row that woke the thread in vain */
	bool attends;                 /* it polls so often that what arrives does not wait… */
	bool attention_reported;      /* …and pollers know */
	bool has_substitute;          /* a thread of the program stands in for this one… */
	uint64_t substitute_since_ns; /* …since then… */
	uint64_t beat_ns;             /* …and has looked after arrivals, as far as is known, then */
	uint32_t beats;               /* of those that stand in, at that time */
};

/** The time from one look at a program that polls to the next. */
uint64_t poll_activity_interval(const struct poll_activity *activity);

/**
 * True if the program polls. Not whether it does at this very time: where processors are few, it may be this thread that
 * keeps it from doing so.
 */
bool poll_activity_program_polls(struct poll_activity *activity, const struct program_calls *calls);

/**
 * True if a thread of the program looks after what arrives, sleeping (substitute_poller.h). One that was woken by what has woken this
 * thread, too, (@arrived) is given the time to show it. All comes back to this thread when nothing arrives any more: so one
 * that does not get a processor, or has left in an unusual way, keeps arrivals waiting for one look.
 */
bool poll_activity_has_substitute(struct poll_activity *activity, struct substitute_state state, bool arrived);

/** When to look again at one that stands in. */
uint64_t poll_activity_substitute_until(const struct poll_activity *activity);

#endif
