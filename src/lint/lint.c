/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts the warnings about misuse if the setting enables them, and writes their summary when the process ends. See state.h. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "hca/hca.h"
#include "explain/log.h"
#include "lint/state.h"

/* Runs before the device's report, which closes the sink. */
static void summary_write(void)
{
	char line[LINT_SUMMARY_BYTES];

	queue_lock(&lint.lock);
	lint_reads_tell();
	queue_unlock(&lint.lock);
	lint_warn_summary(line);
	explain_log_note(first_device()->explain_log, line);
}

/* ---- fork(2) ---------------------------------------------------------------------------------------------------- */

/* Atomic. */
static bool fork_prepared;

static void note_fork_prepared(void)
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

/*
 * Warns unless the program called ibv_fork_init(3) or set a variable that libibverbs reads. Runs before the handler
 * that takes the library's locks.
 */
static void fork_check(void)
{
	if (!__atomic_load_n(&fork_prepared, __ATOMIC_RELAXED) && !getenv("RDMAV_FORK_SAFE") &&
	    !getenv("IBV_FORK_SAFE") && has_regions())
		lint_warn_call(first_device(), "fork", RULE_FORK_UNPREPARED, FIGURES(0));
}

/* ---- hooks ------------------------------------------------------------------------------------------------------ */

static const struct lint_hooks hooks = {
#define LINT_HOOK(name, parameters) .name = lint_##name,
#include "verbs/object/lint_hooks.def"
#undef LINT_HOOK
};

/* ---- beginning -------------------------------------------------------------------------------------------------- */

static void hooks_start(void)
{
	char error[256], note[320];
	uint64_t wanted = 0;

	if (misuse_parse(hca_settings(first_device())->lint, &wanted, error, sizeof(error))) {
		snprintf(note, sizeof(note), "SOFTHCA_LINT: %s; no warnings will be made", error);
		explain_log_note(first_device()->explain_log, note);
	}
	if (!wanted)
		return;
	queue_lock_init(&lint.lock, LOCK_LEVEL_LINT, false);
	/* A child reports its own warnings only. */
	pthread_atfork(fork_check, NULL, lint_warn_reset);
	atexit(summary_write);
	if (wanted & (misuse_bit(RULE_RECEIVE_READ_EARLY) | misuse_bit(RULE_WRITE_READ_EARLY)) && page_guard_start()) {
		page_guard_write_was_read = lint_write_was_read;
		page_guard_last_first = wanted & misuse_bit(RULE_WRITE_READ_EARLY);
	}
	for (size_t i = 0; i < the_registry.count; i++)
		the_registry.devices[i].notes_block_ends = wanted & misuse_bit(RULE_BLOCK_CUT);
	lint_sleeps_start();
	lint_wanted = wanted;
	lint_hooks = &hooks;
}

static void hooks_start_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, hooks_start);
}

static void __attribute__((constructor)) register_driver(void)
{
	static const struct lint_driver driver = {.start = hooks_start_once, .fork_prepared = note_fork_prepared};

	lint_driver = &driver;
}
