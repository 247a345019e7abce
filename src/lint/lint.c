/* SPDX-License-Identifier: BSD-2-Clause */
/* Warnings about misuse: which are wanted, making and counting them, and their sum when the process ends. See state.h. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/device.h"
#include "explain/log.h"
#include "explain/rules.h"
#include "lint/state.h"

uint64_t lint_wanted;
struct lint lint;

/* Atomic. */
static uint64_t counts[MISUSE_RULES];
/* Atomic; a bit for each rule of the other profile that was told of. */
static uint64_t differences[16];

static void count_none(void)
{
	for (int i = 0; i < MISUSE_RULES; i++)
		__atomic_store_n(&counts[i], 0, __ATOMIC_RELAXED);
	for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++)
		__atomic_store_n(&differences[i], 0, __ATOMIC_RELAXED);
}

/* "lint: 3 warnings: 2 LEAKED_OBJECTS, 1 QUEUE_UNSIGNALED": before the report of the device, which ends the sink. */
static void summarise(void)
{
	char line[MISUSE_RULES * 48];
	size_t used = 0;
	uint64_t sum = 0;

	queue_lock(&lint.lock);
	lint_reads_tell();
	queue_unlock(&lint.lock);
	for (uint32_t i = 0; i < MISUSE_RULES; i++) {
		uint64_t count = __atomic_load_n(&counts[i], __ATOMIC_RELAXED);

		if (!count)
			continue;
		used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%" PRIu64 " %s", sum ? ", " : ": ", count,
					 rule_text(MISUSE_FIRST + i)->name);
		sum += count;
	}
	line[used] = '\0';
	{
		char note[sizeof(line) + 64];

		snprintf(note, sizeof(note), "lint: %" PRIu64 " warning%s%s", sum, sum == 1 ? "" : "s", line);
		explain_log_note(first_device()->explain_log, note);
	}
}

/* ---- fork(2) ---------------------------------------------------------------------------------------------------- */

/* Atomic. */
static bool fork_prepared;

void lint_driver_fork_prepared(void)
{
	__atomic_store_n(&fork_prepared, true, __ATOMIC_RELAXED);
}

static bool has_regions(void)
{
	bool some = false;

	queue_lock(&lint.lock);
	for (int i = 0; i < LINT_BUCKETS; i++)
		some |= lint.mrs[i] != NULL;
	queue_unlock(&lint.lock);
	return some;
}

/* Variables that the real library reads; ibv_fork_init(3). Before the locks of the library are held. */
static void before_fork(void)
{
	if (!__atomic_load_n(&fork_prepared, __ATOMIC_RELAXED) && !getenv("RDMAV_FORK_SAFE") &&
	    !getenv("IBV_FORK_SAFE") && has_regions())
		WARN(first_device(), "fork", RULE_FORK_UNPREPARED, 0);
}

/* ---- beginning -------------------------------------------------------------------------------------------------- */

static void start(void)
{
	char error[256], note[320];
	uint64_t wanted = 0;

	if (misuse_parse(hca_settings(first_device())->lint, &wanted, error, sizeof(error))) {
		snprintf(note, sizeof(note), "SOFTHCA_LINT: %s; there are no warnings", error);
		explain_log_note(first_device()->explain_log, note);
	}
	if (!wanted)
		return;
	queue_lock_init(&lint.lock, LOCK_LEVEL_LINT, false);
	/* A child tells of itself alone. */
	pthread_atfork(before_fork, NULL, count_none);
	atexit(summarise);
	if (wanted & (misuse_bit(RULE_RECEIVE_READ_EARLY) | misuse_bit(RULE_WRITE_READ_EARLY)) && guard_start()) {
		guard_write_was_read = lint_write_was_read;
		guard_last_first = wanted & misuse_bit(RULE_WRITE_READ_EARLY);
	}
	lint_wanted = wanted;
	lint_hooks_enable();
}

void lint_driver_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, start);
}

void lint_profile_differs(struct hca *hca, const char *call, uint32_t rule)
{
	uint64_t bit = UINT64_C(1) << rule % 64;
	uint64_t *word = &differences[rule / 64 % (sizeof(differences) / sizeof(differences[0]))];
	bool told = __atomic_fetch_or(word, bit, __ATOMIC_RELAXED) & bit;
	uint64_t warned = told ? UINT64_MAX : 0;

	WARN_UNLESS(&warned, hca, call, RULE_PROFILE_DIFFERS, rule);
}

void lint_warn(struct hca *hca, const struct explain_subject *subject, uint64_t *warned, enum explain_rule rule,
	       const uint64_t *figures, size_t count)
{
	uint64_t bit = misuse_bit(rule);

	if (!(lint_wanted & bit))
		return;
	__atomic_add_fetch(&counts[rule - MISUSE_FIRST], 1, __ATOMIC_RELAXED);
	if (warned && *warned & bit)
		return;
	if (warned)
		*warned |= bit;
	explain_make(hca, subject, rule, figures, count);
}
