/* SPDX-License-Identifier: BSD-2-Clause */
/* Epoch slots. */
#include "core/epoch.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__thread struct epoch_slot *epoch_this_thread;
uint64_t epoch_current = 1;

/* All slots ever made. Belongs to the process, because threads exist before and after any device. */
static struct epoch_slot *slots;
static pthread_key_t detach_key;
static bool has_detach_key; /* false: the program uses all keys; slots are reclaimed when their thread has ended */
static pthread_once_t detach_once = PTHREAD_ONCE_INIT;

static void epoch_detach(void *slot)
{
	epoch_this_thread = NULL;
	__atomic_store_n(&((struct epoch_slot *)slot)->owned, 0, __ATOMIC_RELEASE);
}

static void make_detach_key(void)
{
	has_detach_key = !pthread_key_create(&detach_key, epoch_detach);
}

static struct epoch_slot *claim_free_slot(void)
{
	for (struct epoch_slot *slot = __atomic_load_n(&slots, __ATOMIC_ACQUIRE); slot; slot = slot->next) {
		uint32_t free = 0;

		if (__atomic_compare_exchange_n(&slot->owned, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return slot;
	}
	return NULL;
}

static uint32_t this_thread_id(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

/* Returns true if no thread of this process has the id @thread, or only the calling one, which has no slot yet. */
static bool thread_has_ended(uint32_t thread)
{
	return thread == this_thread_id() || (syscall(SYS_tgkill, getpid(), thread, 0) && errno == ESRCH);
}

/*
 * Claims the slot of a thread that ended without epoch_detach(). Preserves errno for callers in a call that does not
 * fail.
 */
static struct epoch_slot *claim_abandoned_slot(void)
{
	struct epoch_slot *slot = __atomic_load_n(&slots, __ATOMIC_ACQUIRE);
	int error = errno;

	for (; slot; slot = slot->next) {
		uint32_t thread = __atomic_load_n(&slot->thread, __ATOMIC_RELAXED);

		if (thread && thread_has_ended(thread) &&
		    __atomic_compare_exchange_n(&slot->thread, &thread, this_thread_id(), false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			break;
	}
	errno = error;
	return slot;
}

static struct epoch_slot *reserved_slot(void)
{
	static struct epoch_slot reserve[EPOCH_RESERVE];
	static uint32_t used;
	uint32_t index = __atomic_load_n(&used, __ATOMIC_RELAXED);

	while (index < EPOCH_RESERVE)
		if (__atomic_compare_exchange_n(&used, &index, index + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return &reserve[index];
	return NULL;
}

/* Returns thread memory or NULL. Untouched pages take up no memory. */
static uint8_t *thread_memory_map(void)
{
	static uint8_t reserve[EPOCH_MEMORY_RESERVE][THREAD_MEMORY_BYTES] __attribute__((aligned(64)));
	static uint32_t used;
	void *memory = mmap(NULL, THREAD_MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t index = __atomic_load_n(&used, __ATOMIC_RELAXED);

	if (memory != MAP_FAILED)
		return memory;
	while (index < EPOCH_MEMORY_RESERVE)
		if (__atomic_compare_exchange_n(&used, &index, index + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return reserve[index];
	return NULL;
}

static struct epoch_slot *epoch_slot_add(void)
{
	uint8_t *memory = thread_memory_map();
	struct epoch_slot *slot = memory ? aligned_alloc(128, sizeof(*slot)) : NULL;

	if (!memory)
		return NULL;
	if (!slot)
		slot = reserved_slot();
	if (!slot)
		return NULL;
	*slot = (struct epoch_slot){.owned = 1, .memory = memory, .next = __atomic_load_n(&slots, __ATOMIC_RELAXED)};
	while (!__atomic_compare_exchange_n(&slots, &slot->next, slot, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return slot;
}

static struct epoch_slot *epoch_slot_find(void)
{
	struct epoch_slot *slot = claim_free_slot();

	if (!slot && !has_detach_key)
		slot = claim_abandoned_slot();
	return slot ? slot : epoch_slot_add();
}

struct epoch_slot *epoch_attach(void)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct epoch_slot *slot;

	pthread_once(&detach_once, make_detach_key);
	while (!(slot = epoch_slot_find()))
		nanosleep(&pause, NULL);
	slot->depth = 0;
	slot->memory_used = 0;
	epoch_this_thread = slot;
	if (has_detach_key)
		pthread_setspecific(detach_key, slot);
	else
		__atomic_store_n(&slot->thread, this_thread_id(), __ATOMIC_RELAXED);
	return slot;
}

struct epoch_slot *epoch_slots(void)
{
	return __atomic_load_n(&slots, __ATOMIC_ACQUIRE);
}

uint64_t epoch_retire(void)
{
	uint64_t stamp = __atomic_add_fetch(&epoch_current, 1, __ATOMIC_SEQ_CST);

	/* A section that epoch_passed() did not see finds the object unpublished. */
	order_after_exchange();
	return stamp;
}

bool epoch_passed(uint64_t stamp)
{
	for (struct epoch_slot *slot = __atomic_load_n(&slots, __ATOMIC_ACQUIRE); slot; slot = slot->next) {
		uint64_t active = __atomic_load_n(&slot->active, __ATOMIC_SEQ_CST);

		if (active && active < stamp && slot != epoch_this_thread)
			return false;
	}
	return true;
}

static bool epoch_is_used_by_others(uint64_t stamp)
{
	for (struct epoch_slot *slot = __atomic_load_n(&slots, __ATOMIC_ACQUIRE); slot; slot = slot->next) {
		uint64_t active = __atomic_load_n(&slot->active, __ATOMIC_SEQ_CST);

		if (active && active < stamp && !__atomic_load_n(&slot->waits, __ATOMIC_SEQ_CST))
			return true;
	}
	return false;
}

/*
 * If two threads wait for each other's sections, each finds that the other waits. The exchanges guarantee that, as in
 * epoch_enter().
 */
void epoch_wait(uint64_t stamp)
{
	uint32_t *waits = &epoch_this_thread->waits;

	__atomic_exchange_n(waits, 1, __ATOMIC_SEQ_CST);
	while (epoch_is_used_by_others(stamp))
		sched_yield();
	__atomic_exchange_n(waits, 0, __ATOMIC_SEQ_CST);
}

void epoch_synchronize(void)
{
	uint64_t stamp = epoch_retire();

	while (!epoch_passed(stamp))
		sched_yield();
}

void epoch_after_fork(void)
{
	for (struct epoch_slot *slot = slots; slot; slot = slot->next) {
		if (slot == epoch_this_thread) {
			/* The child's thread has a different id. */
			if (slot->thread)
				slot->thread = this_thread_id();
			continue;
		}
		slot->active = 0;
		slot->thread = 0;
		slot->waits = 0;
		slot->owned = 0;
	}
}
