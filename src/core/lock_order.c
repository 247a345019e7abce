/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks that a thread holds. */
#include "core/lock_order.h"

#ifdef SOFTHCA_CHECK_LOCK_ORDER

#include <stdio.h>
#include <stdlib.h>

#include "core/lock.h"

/* More than any path takes; further locks are not checked. */
#define MOST_HELD 16

static const char *const names[] = {
#define LOCK_OF_OBJECTS(LEVEL, file, member, covers) [LOCK_LEVEL_##LEVEL] = #member,
#include "core/locks.def"
};

static __thread struct {
	const struct queue_lock *lock[MOST_HELD];
	unsigned int count;
} held;

void lock_order_waits(const struct queue_lock *lock)
{
	for (unsigned int i = 0; !lock->elided && i < held.count; i++) {
		if (held.lock[i]->level < lock->level)
			continue;
		fprintf(stderr, "softhca: lock order: waits for %s while holding %s (src/core/locks.def)\n",
			names[lock->level], names[held.lock[i]->level]);
		abort();
	}
}

void lock_order_taken(const struct queue_lock *lock)
{
	if (!lock->elided && held.count < MOST_HELD)
		held.lock[held.count++] = lock;
}

void lock_order_left(const struct queue_lock *lock)
{
	for (unsigned int i = held.count; i-- > 0;) {
		if (held.lock[i] != lock)
			continue;
		held.lock[i] = held.lock[--held.count];
		return;
	}
}

#endif
