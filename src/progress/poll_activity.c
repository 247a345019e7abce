/* SPDX-License-Identifier: BSD-2-Clause */
/* The device thread's estimate of the program's polling. */
#include "progress/poll_activity.h"

#include "core/timer.h"
#include "core/tunables.h"

/* Values chosen for speed. */
enum {
	/*
	 * part of the time for which the program has polled until the next check, which takes the processor from it for
	 * about 20 us
	 */
	POLL_LOOK_PART = 8,
	/* ns: longest time between checks */
	POLL_LOOK_MOST_NS = 1000000,
	/* polls between two checks that count as polling, unlike the few around arming a CQ */
	POLLS_OFTEN = 16,
	/*
	 * ns: a program that takes a completion or arrival at least this often counts as polling, even with few polls
	 */
	POLL_WORK_NS = 50000,
	/*
	 * ns between polls of a program that handles arrivals sooner than another process could store them into its
	 * memory
	 */
	POLL_ATTENDS_NS = 1000,
};

/* Returns the time between two checks of a thread that has handled arrivals for @time_ns. */
static uint64_t look_interval(uint64_t time_ns)
{
	uint64_t part = time_ns / POLL_LOOK_PART;

	if (part < TUNABLE_POLL_LOOK_NS)
		return TUNABLE_POLL_LOOK_NS;
	return part < POLL_LOOK_MOST_NS ? part : POLL_LOOK_MOST_NS;
}

uint64_t poll_activity_interval(const struct poll_activity *activity)
{
	return look_interval(activity->program_polls ? activity->since_ns - activity->polls_ns : 0);
}

bool poll_activity_program_polls(struct poll_activity *activity, const struct program_calls *calls)
{
	uint32_t polls = calls->polls - activity->calls.polls, naps = calls->naps - activity->calls.naps;
	uint32_t works = calls->works - activity->calls.works;
	bool often = (calls->attended && polls) || polls >= POLLS_OFTEN * (1 + (uint64_t)naps);
	uint64_t now_ns = clock_now_ns();

	/* One unit of work may have been the last. */
	if (!naps && works > 1)
		often |= (uint64_t)works * POLL_WORK_NS >= now_ns - activity->since_ns;
	/* Arrivals may wake this thread before the program has had time for so many polls. */
	if (!often && now_ns - activity->since_ns < poll_activity_interval(activity))
		return activity->program_polls;
	if (!activity->program_polls)
		activity->polls_ns = now_ns;
	activity->attends = (uint64_t)(polls + works) * POLL_ATTENDS_NS >= now_ns - activity->since_ns;
	activity->since_ns = now_ns;
	activity->calls = *calls;
	activity->program_polls = often;
	return often;
}

void poll_activity_exclude(struct poll_activity *activity, uint64_t from_ns, uint64_t to_ns)
{
	if (from_ns < activity->since_ns)
		from_ns = activity->since_ns;
	activity->since_ns += to_ns - from_ns;
}

bool poll_activity_has_substitute(struct poll_activity *activity, struct substitute_state state, bool arrived)
{
	uint64_t now_ns = clock_now_ns();
	bool moved = state.beats != activity->beats, before = activity->has_substitute;

	activity->beats = state.beats;
	if (state.resigned) {
		activity->has_substitute = false;
	} else if (moved || (arrived && state.present && !before)) {
		activity->has_substitute = true;
		activity->beat_ns = now_ns;
		if (!before)
			activity->substitute_since_ns = now_ns;
	} else if (now_ns >= poll_activity_substitute_until(activity)) {
		activity->has_substitute = false;
	}
	return activity->has_substitute;
}

uint64_t poll_activity_substitute_until(const struct poll_activity *activity)
{
	return activity->beat_ns + look_interval(activity->beat_ns - activity->substitute_since_ns);
}
