/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages closed to the program. */
#include "observe/page_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "core/cancellation.h"
#include "core/epoch.h"

/* Values chosen for speed. */
enum {
	/*
	 * ns by which the rest of a WRITE is delayed after its last bytes, if WRITE_READ_EARLY is enabled: longer than
	 * waking a thread takes
	 */
	LINT_LAST_FIRST_NS = 1000000,
};

enum state {
	FREE,
	OPEN,   /* permanently: the program has written there, or the device has read */
	CLOSED, /* not accessed by the program */
	LENT,   /* open for the device, which is receiving */
	READ,   /* open: the program has read */
};

struct range {
	uint32_t state;         /* atomic: the handler changes CLOSED to READ or OPEN */
	uint64_t start, length; /* all members from here are constant while not FREE, except read_at and lent_to */
	uint16_t counter;
	uint64_t read_at;
	const struct epoch_slot *lent_to; /* thread */
	void *owner;
	uint32_t number;
};

bool page_guard_on, page_guard_last_first;
uint32_t page_guard_reads;
void (*page_guard_write_was_read)(struct hca *hca, uint32_t qp_num, uint64_t address, uint64_t start, uint64_t length);

/* Protects all of this, except against the handler, which takes no lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range ranges[PAGE_GUARD_RANGES];
static uint32_t used;       /* atomic; all further ranges are FREE */
static uint32_t generation; /* atomic; counts openings */
static bool stopped;
static struct sigaction before;
static uint64_t page_bytes;

static bool range_has(const struct range *range, uint64_t address)
{
	return address - range->start < range->length;
}

static bool range_overlaps(const struct range *range, uint64_t start, uint64_t length)
{
	return range_has(range, start) || range->start - start < length;
}

static uint32_t range_state(const struct range *range)
{
	return __atomic_load_n(&range->state, __ATOMIC_ACQUIRE);
}

static bool range_change(struct range *range, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&range->state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static void range_set_access(const struct range *range, int access)
{
	if (mprotect((void *)(uintptr_t)range->start, range->length, access) == 0 && access != PROT_NONE)
		__atomic_add_fetch(&generation, 1, __ATOMIC_ACQ_REL);
}

static void range_open_pages(const struct range *range)
{
	range_set_access(range, PROT_READ | PROT_WRITE);
}

/* ---- the handler ------------------------------------------------------------------------------------------------ */

/* Returns whether the fault was a write; -1: this processor does not report it. */
static int is_write(const ucontext_t *context)
{
#if defined(__x86_64__)
	return context->uc_mcontext.gregs[REG_ERR] >> 1 & 1;
#elif defined(__aarch64__)
	/* A sequence of records, one of which has the syndrome; its bit 6 is ESR_ELx.WnR. */
	const uint32_t *record = (const uint32_t *)context->uc_mcontext.__reserved;

	for (; record[0] && record[1]; record = (const uint32_t *)((const char *)record + record[1]))
		if (record[0] == 0x45535201)
			return *(const uint64_t *)(record + 2) >> 6 & 1;
	return -1;
#else
	(void)context;
	return -1;
#endif
}

static bool device_is_running(void)
{
	return epoch_this_thread && epoch_this_thread->depth;
}

static void range_met(struct range *range, uint64_t address, const ucontext_t *context)
{
	range_open_pages(range);
	if (device_is_running() || is_write(context) != 0) {
		range_change(range, CLOSED, OPEN);
		return;
	}
	__atomic_store_n(&range->read_at, address, __ATOMIC_RELAXED);
	if (range_change(range, CLOSED, READ))
		__atomic_add_fetch(&page_guard_reads, 1, __ATOMIC_RELEASE);
}

/* Returns true if another thread may have just resolved the fault: the access is retried once. */
static bool may_be_over(uint64_t address)
{
	static __thread uint64_t last_address __attribute__((tls_model("initial-exec")));
	static __thread uint32_t last_generation __attribute__((tls_model("initial-exec")));
	uint32_t now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);

	if (last_address == address && last_generation == now)
		return false;
	last_address = address;
	last_generation = now;
	return true;
}

/* Handles the signal as if this handler were not installed. */
static void page_guard_pass_on(int signal, siginfo_t *info, void *context)
{
	if (before.sa_flags & SA_SIGINFO) {
		before.sa_sigaction(signal, info, context);
	} else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
		before.sa_handler(signal);
	} else {
		const struct sigaction plain = {.sa_handler = SIG_DFL};

		/* The instruction faults again and ends the process; a signal that was sent must be sent again. */
		sigaction(signal, &plain, NULL);
		if (info->si_code <= 0)
			raise(signal);
	}
}

static void page_guard_fault(int signal, siginfo_t *info, void *context)
{
	uint64_t address = (uintptr_t)info->si_addr;
	uint32_t count = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
	int error = errno;

	for (uint32_t i = 0; i < count && info->si_code == SEGV_ACCERR; i++) {
		struct range *range = &ranges[i];

		if (range_state(range) == FREE || !range_has(range, address))
			continue;
		range_met(range, address, context);
		errno = error;
		return;
	}
	if (info->si_code != SEGV_ACCERR || !may_be_over(address))
		page_guard_pass_on(signal, info, context);
	errno = error;
}

static bool handler_is_there(void)
{
	struct sigaction now;

	return sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO && now.sa_sigaction == page_guard_fault;
}

static bool signal_is_blocked(void)
{
	sigset_t blocked;

	return pthread_sigmask(SIG_BLOCK, NULL, &blocked) || sigismember(&blocked, SIGSEGV);
}

bool page_guard_start(void)
{
	struct sigaction action = {.sa_sigaction = page_guard_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};

#if !defined(__x86_64__) && !defined(__aarch64__)
	return false;
#endif
	sigemptyset(&action.sa_mask);
	page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	page_guard_on = sigaction(SIGSEGV, &action, &before) == 0;
	return page_guard_on;
}

/* ---- closing and opening ---------------------------------------------------------------------------------------- */

/* The lock is held. */
static void page_guard_open_all(void)
{
	for (uint32_t i = 0; i < used; i++) {
		uint32_t state = range_state(&ranges[i]);

		if (state == FREE || state == OPEN)
			continue;
		range_open_pages(&ranges[i]);
		range_change(&ranges[i], CLOSED, OPEN);
		range_change(&ranges[i], LENT, OPEN);
	}
}

static void page_guard_stop_locked(void)
{
	stopped = true;
	page_guard_open_all();
}

void page_guard_stop(void)
{
	if (!page_guard_on)
		return;
	pthread_mutex_lock(&lock);
	page_guard_stop_locked();
	pthread_mutex_unlock(&lock);
}

static struct range *free_range(void)
{
	for (uint32_t i = 0; i < PAGE_GUARD_RANGES; i++)
		if (range_state(&ranges[i]) == FREE)
			return &ranges[i];
	return NULL;
}

/* Closes the pages of a copy of @as. The lock is held. */
static struct range *range_close_pages(const struct range *as)
{
	struct range *range;

	if (stopped || signal_is_blocked())
		return NULL;
	if (!handler_is_there()) {
		page_guard_stop_locked();
		return NULL;
	}
	range = free_range();
	if (!range)
		return NULL;
	/* Not the state, which tells the handler that the rest is valid. */
	memcpy(&range->start, &as->start, sizeof(*range) - offsetof(struct range, start));
	if (range - ranges >= used)
		__atomic_store_n(&used, (uint32_t)(range - ranges) + 1, __ATOMIC_RELEASE);
	/* First, because the handler may look for the range as soon as the pages are closed. */
	__atomic_store_n(&range->state, CLOSED, __ATOMIC_RELEASE);
	if (mprotect((void *)(uintptr_t)range->start, range->length, PROT_NONE)) {
		/* Some of the pages may have been closed. */
		range_open_pages(range);
		__atomic_store_n(&range->state, FREE, __ATOMIC_RELEASE);
		return NULL;
	}
	return range;
}

int page_guard_close(uint64_t start, uint64_t length, void *owner, uint32_t number, uint16_t counter)
{
	uint64_t first = (start + page_bytes - 1) & -page_bytes, end = (start + length) & -page_bytes;
	struct range as = {.start = first, .length = end - first, .owner = owner, .number = number, .counter = counter};
	struct range *range;

	if (!page_guard_on || first < start || end <= first)
		return -1;
	pthread_mutex_lock(&lock);
	range = range_close_pages(&as);
	pthread_mutex_unlock(&lock);
	return range ? (int)(range - ranges) : -1;
}

static uint64_t range_take_read(struct range *range)
{
	if (!range_change(range, READ, OPEN))
		return 0;
	__atomic_sub_fetch(&page_guard_reads, 1, __ATOMIC_RELAXED);
	return __atomic_load_n(&range->read_at, __ATOMIC_RELAXED);
}

uint64_t page_guard_open(int number)
{
	struct range *range = &ranges[number];
	uint64_t read_at;

	pthread_mutex_lock(&lock);
	if (range_state(range) != OPEN)
		range_open_pages(range);
	read_at = range_take_read(range);
	__atomic_store_n(&range->state, FREE, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return read_at;
}

void page_guard_open_memory(uint64_t start, uint64_t length)
{
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < used; i++) {
		struct range *range = &ranges[i];
		uint32_t state = range_state(range);

		if ((state != CLOSED && state != LENT) || !range_overlaps(range, start, length))
			continue;
		range_open_pages(range);
		range_change(range, state, OPEN);
	}
	pthread_mutex_unlock(&lock);
}

bool page_guard_take_read(struct page_guard_read *read)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < used && !found; i++) {
		/* page_guard_wait() waits for ranges without an owner. */
		read->address = ranges[i].owner ? range_take_read(&ranges[i]) : 0;
		if (!read->address)
			continue;
		read->owner = ranges[i].owner;
		read->number = ranges[i].number;
		found = true;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* ---- the device ------------------------------------------------------------------------------------------------- */

static void range_lend(struct range *range, bool write)
{
	uint32_t state = range_state(range);

	if (state == CLOSED)
		range_open_pages(range);
	if (!write) {
		range_change(range, state == LENT ? LENT : CLOSED, OPEN);
	} else if (state == LENT || range_change(range, CLOSED, LENT)) {
		range->lent_to = epoch_this_thread;
	}
}

void page_guard_device_access(const void *start, uint64_t length, bool write)
{
	if (!__atomic_load_n(&used, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < used; i++) {
		uint32_t state = range_state(&ranges[i]);

		if ((state == CLOSED || state == LENT) && range_overlaps(&ranges[i], (uintptr_t)start, length))
			range_lend(&ranges[i], write);
	}
	pthread_mutex_unlock(&lock);
}

void page_guard_received(uint16_t counter)
{
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < used && !stopped; i++) {
		struct range *range = &ranges[i];

		/*
		 * If another queue's receive has the same counter, its range is closed too, and the device opens it
		 * again when needed.
		 */
		if (range->counter != counter || range->lent_to != epoch_this_thread ||
		    !range_change(range, LENT, CLOSED))
			continue;
		range_set_access(range, PROT_NONE);
	}
	pthread_mutex_unlock(&lock);
}

uint64_t page_guard_wait(int range)
{
	const struct timespec pause = {.tv_nsec = LINT_LAST_FIRST_NS};
	WITHOUT_CANCELLATION;

	nanosleep(&pause, NULL);
	return range < 0 ? 0 : page_guard_open(range);
}

/* ---- fork(2) ---------------------------------------------------------------------------------------------------- */

void page_guard_before_fork(void)
{
	pthread_mutex_lock(&lock);
}

void page_guard_after_fork(bool child)
{
	if (child)
		page_guard_stop_locked();
	for (uint32_t i = 0; i < used && child; i++)
		range_take_read(&ranges[i]);
	pthread_mutex_unlock(&lock);
}
