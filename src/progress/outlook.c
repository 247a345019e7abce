/* SPDX-License-Identifier: BSD-2-Clause */
/* What the device thread knows of the program, see outlook.h. */
#include "progress/outlook.h"

#include "core/timer.h"
#include "core/tunables.h"

/* The time from one look to the next at a program that has looked after arrivals for @time_ns. */
static uint64_t interval_after(uint64_t time_ns)
{
	uint64_t part = time_ns / TUNABLE_POLL_LOOK_PART;

	if (part < TUNABLE_POLL_LOOK_NS)
		return TUNABLE_POLL_LOOK_NS;
	return part < TUNABLE_POLL_LOOK_MOST_NS ? part : TUNABLE_POLL_LOOK_MOST_NS;
}

uint64_t outlook_interval(const struct outlook *outlook)
{
	return interval_after(outlook->program_polls ? outlook->since_ns - outlook->polls_ns : 0);
}

bool outlook_polls(struct outlook *outlook, const struct program_calls *calls)
{
	uint32_t polls = calls->polls - outlook->calls.polls, naps = calls->naps - outlook->calls.naps;
	uint32_t works = calls->works - outlook->calls.works;
	bool often = (calls->attended && polls) || polls >= TUNABLE_POLLS_OFTEN * (1 + (uint64_t)naps);
	uint64_t now_ns = clock_now_ns();

	/* One may have been the last. */
	if (!naps && works > 1)
		often |= (uint64_t)works * TUNABLE_POLL_WORK_NS >= now_ns - outlook->since_ns;
	/* Arrivals may wake this thread before the time is over in which it could poll that often. */
	if (!often && now_ns - outlook->since_ns < outlook_interval(outlook))
		return outlook->program_polls;
	if (!outlook->program_polls)
		outlook->polls_ns = now_ns;
	outlook->attends = (uint64_t)(polls + works) * TUNABLE_POLL_ATTENDS_NS >= now_ns - outlook->since_ns;
	outlook->since_ns = now_ns;
	outlook->calls = *calls;
	outlook->program_polls = often;
	return often;
}

bool outlook_stands_aside(struct outlook *outlook, struct stand_in_state state, bool arrived)
{
	uint64_t now_ns = clock_now_ns();
	bool moved = state.beats != outlook->beats, before = outlook->stands_aside;

	outlook->beats = state.beats;
	if (state.resigned) {
		outlook->stands_aside = false;
	} else if (moved || (arrived && state.present && !before)) {
		outlook->stands_aside = true;
		outlook->beat_ns = now_ns;
		if (!before)
			outlook->aside_ns = now_ns;
	} else if (now_ns >= outlook_aside_until(outlook)) {
		outlook->stands_aside = false;
	}
	return outlook->stands_aside;
}

uint64_t outlook_aside_until(const struct outlook *outlook)
{
	return outlook->beat_ns + interval_after(outlook->beat_ns - outlook->aside_ns);
}
