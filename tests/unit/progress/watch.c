/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbell records that a program writes without a call: each change is noticed soon, and watching costs nothing while
 * there are no changes. Time limits apply to the best tenth of many tries, in one round of several, so that other load
 * on the machine does not decide.
 */
#include "test_case.h"

#include <endian.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "../support/arrivals.h"
#include "hca/hca.h"
#include "kernel_has.h"
#include "progress/watch.h"
#include "process/commands.h"

enum { PAGE = 4096, ROUNDS = 8, MANY = 4000 };

/* A queue: one record that changes, one that does not, and the ringing thread. */
struct queue {
	struct watch watch;
	uint32_t records[2];
	uint32_t begun, count; /* atomic: number of rings */
	uint64_t when;
	uint32_t hold_us; /* duration of a ring */
};

/* Stores fault in no test. */
static struct hca device = {.settings.doorbells = DOORBELLS_SCAN};
static struct watcher watchers[24], *watcher;
static struct queue queue;
static uint64_t *page;

static void sleep_us(uint64_t us)
{
	const struct timespec time = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000 * 1000)};

	nanosleep(&time, NULL);
}

static void rung(struct watch *watch)
{
	struct queue *of = (struct queue *)watch;

	of->when = clock_now_ns();
	__atomic_add_fetch(&of->begun, 1, __ATOMIC_RELEASE);
	if (of->hold_us)
		sleep_us(of->hold_us);
	__atomic_add_fetch(&of->count, 1, __ATOMIC_RELEASE);
}

static uint32_t times_rung(const struct queue *of)
{
	return __atomic_load_n(&of->count, __ATOMIC_ACQUIRE);
}

static void *new_page(void)
{
	void *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

/* A watcher cannot be ended, just as a device cannot: each test leaves one asleep. */
static void new_watcher(void)
{
	static size_t used;

	assert_true(used < sizeof(watchers) / sizeof(watchers[0]));
	watcher = &watchers[used++];
	watcher_init(watcher, &device);
	memset(&queue, 0, sizeof(queue));
}

static int begin(void **state)
{
	(void)state;
	new_watcher();
	page = new_page();
	watch_page(watcher, page);
	assert_int_equal(watch_start(watcher, &queue.watch, queue.records, 2, rung), 0);
	return 0;
}

static int begin_without_page(void **state)
{
	(void)state;
	new_watcher();
	page = new_page();
	assert_int_equal(watch_start(watcher, &queue.watch, queue.records, 2, rung), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	watch_stop(watcher, &queue.watch);
	unwatch_page(watcher, page);
	munmap(page, PAGE);
	return 0;
}

/* Writes the record, then the register. */
static void store(struct queue *of)
{
	__atomic_store_n(&of->records[1], of->records[1] + 1, __ATOMIC_RELEASE);
	__atomic_store_n(page, of->records[1], __ATOMIC_RELEASE);
}

/* Waits as a program that polls its CQ does. */
static bool wait_for(const struct queue *of, uint32_t count)
{
	uint64_t deadline = clock_now_ns() + UINT64_C(10000000000);

	while (times_rung(of) < count)
		if (clock_now_ns() > deadline)
			return false;
	return true;
}

static int by_value(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

/*
 * Returns the nanoseconds from store to call, the best tenth of @tries, each of which follows @silence_us without
 * stores.
 */
static uint64_t short_delay(uint32_t tries, uint64_t silence_us)
{
	uint64_t delay[256];

	assert_true(tries <= 256);
	for (uint32_t i = 0; i < tries; i++) {
		uint32_t before = times_rung(&queue);
		uint64_t start;

		sleep_us(silence_us);
		start = clock_now_ns();
		store(&queue);
		assert_true(wait_for(&queue, before + 1));
		delay[i] = queue.when - start;
	}
	qsort(delay, tries, sizeof(delay[0]), by_value);
	return delay[tries / 10];
}

static uint64_t best_delay(uint32_t tries, uint64_t silence_us, uint64_t enough_ns)
{
	uint64_t best = UINT64_MAX;

	for (int round = 0; round < ROUNDS && best > enough_ns; round++) {
		uint64_t delay = short_delay(tries, silence_us);

		if (delay < best)
			best = delay;
	}
	print_message("          noticed after %.1f us\n", (double)best / 1e3);
	return best;
}

static uint64_t process_time_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Returns the nanoseconds of processor time used during @us without stores. */
static uint64_t cost_of_silence(uint64_t us)
{
	uint64_t best = UINT64_MAX;

	for (int round = 0; round < 3; round++) {
		uint64_t before;

		sleep_us(30000); /* until it counts as silence */
		before = process_time_ns();
		sleep_us(us);
		before = process_time_ns() - before;
		if (before < best)
			best = before;
	}
	print_message("          %.3f %% of a processor\n", (double)best / 10.0 / (double)us);
	return best;
}

static bool traps(void)
{
	bool result;

	pthread_mutex_lock(&watcher->lock);
	result = watcher->trap.fd >= 0;
	pthread_mutex_unlock(&watcher->lock);
	return result;
}

/* ---- detection ------------------------------------------------------------------------------------------------- */

TEST(every_change)
{
	for (uint32_t i = 1; i <= 20000; i++) {
		store(&queue);
		assert_true(wait_for(&queue, i));
	}
	sleep_us(2000);
	assert_int_equal(times_rung(&queue), 20000);
}

TEST(either_record)
{
	__atomic_store_n(&queue.records[0], 7, __ATOMIC_RELEASE);
	assert_true(wait_for(&queue, 1));
	sleep_us(30000);
	/* No register: not trapped, but polled. */
	__atomic_store_n(&queue.records[0], 8, __ATOMIC_RELEASE);
	assert_true(wait_for(&queue, 2));
	sleep_us(30000);
	store(&queue);
	assert_true(wait_for(&queue, 3));
}

/* The initial values of the records count as a change if the queue requests that, in its own memory and in a umem. */
TEST(rung_at_once)
{
	for (int in_umem = 0; in_umem < 2; in_umem++) {
		struct queue other = {.watch = {.at_once = true, .in_umem = in_umem}, .records = {0, 7}};

		assert_int_equal(watch_start(watcher, &other.watch, other.records, 2, rung), 0);
		assert_true(wait_for(&other, 1));
		assert_int_equal(other.watch.seen[0], 0);
		assert_int_equal(other.watch.seen[1], 7);
		sleep_us(2000);
		assert_int_equal(times_rung(&other), 1);
		store(&other);
		assert_true(wait_for(&other, 2));
		assert_int_equal(other.watch.seen[1], 8);
		watch_stop(watcher, &other.watch);
	}
}

TEST(soon_while_it_rings)
{
	assert_true(best_delay(256, 0, 50000) < 50000);
	assert_true(best_delay(256, 300, 50000) < 50000);
	assert_true(best_delay(100, 5000, 50000) < 50000);
}

/* The kernel wakes the thread, which costs a fault and a context switch; without the trap it polls every 20 ms. */
TEST(soon_after_silence)
{
	if (!traps())
		skip();
	assert_true(best_delay(5, 200000, 200000) < 1000000);
}

/* After an eighth of the silence, but at most 20 ms. */
TEST_WITH(in_time_without_trap, begin_without_page, end)
{
	assert_true(best_delay(15, 40000, 6000000) < 10000000);
	sleep_us(500000);
	assert_true(best_delay(5, 300000, 20000000) < 40000000);
}

/* A page that is locked in place cannot be trapped, and no store to it may be delayed. */
TEST(locked_page)
{
	if (mlock(page, PAGE))
		skip();
	assert_true(best_delay(15, 40000, 6000000) < 10000000);
	/* The other records are released as well. */
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t *other = new_page();

		watch_page(watcher, other);
		sleep_us(30000);
		*(volatile uint64_t *)other = 1;
		unwatch_page(watcher, other);
		munmap(other, PAGE);
	}
}

/* ---- cost ------------------------------------------------------------------------------------------------------ */

TEST(silence_is_free)
{
	store(&queue);
	assert_true(cost_of_silence(500000) < 10000000); /* 2 % */
}

TEST_WITH(silence_without_trap_is_free, begin_without_page, end)
{
	silence_is_free(state);
}

TEST(nothing_watched_is_free)
{
	watch_stop(watcher, &queue.watch);
	assert_true(cost_of_silence(300000) < 1500000); /* 0.5 % */
	assert_int_equal(watch_start(watcher, &queue.watch, queue.records, 2, rung), 0);
	store(&queue);
	assert_true(wait_for(&queue, 1));
}

/* ---- many queues ----------------------------------------------------------------------------------------------- */

TEST(thousands)
{
	struct queue *many = calloc(MANY, sizeof(*many));

	for (int i = 0; i < MANY; i++)
		assert_int_equal(watch_start(watcher, &many[i].watch, many[i].records, 2, rung), 0);
	for (int lap = 1; lap <= 3; lap++) {
		for (int i = 0; i < MANY; i++)
			store(&many[i]);
		for (int i = 0; i < MANY; i++)
			assert_true(wait_for(&many[i], 1));
		/* The number of calls depends on timing: two stores between two checks count as one. */
		for (int i = 0; i < MANY; i++)
			assert_true(times_rung(&many[i]) <= (uint32_t)lap);
	}
	assert_true(cost_of_silence(300000) < 12000000); /* 4 % */
	for (int i = 0; i < MANY; i++)
		watch_stop(watcher, &many[i].watch);
	for (int i = 0; i < MANY; i++)
		store(&many[i]);
	sleep_us(5000);
	for (int i = 0; i < MANY; i++)
		assert_true(times_rung(&many[i]) <= 3);
	free(many);
}

/* Unmaps the page and keeps its address reserved. The kernel fails to copy from it, as from an unmapped page. */
static void take_away(void *page)
{
	assert_ptr_equal(mmap(page, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), page);
}

/* More records in unmappable memory than are read at once, some of which are unmapped. The others are still noticed. */
TEST(records_that_go)
{
	enum { PAGES = 3, EACH = 50 };
	struct queue *many = calloc((size_t)PAGES * EACH, sizeof(*many));
	uint32_t *pages = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint32_t words = PAGE / sizeof(*pages);

	assert_ptr_not_equal(pages, MAP_FAILED);
	if (!kernel_has_memory_copies())
		skip();
	/* Their last contents differ from what a read of an unmapped address yields. */
	for (uint32_t i = 0; i < PAGES * words; i++)
		pages[i] = 5;
	for (int i = 0; i < PAGES * EACH; i++) {
		many[i].watch.in_umem = true;
		assert_int_equal(watch_start(watcher, &many[i].watch, pages + i / EACH * words + i % EACH * 2, 2, rung),
				 0);
	}
	take_away(pages + words);
	for (int i = 0; i < PAGES * EACH; i++)
		if (i / EACH != 1)
			__atomic_store_n(pages + i / EACH * words + i % EACH * 2 + i % 2, 7, __ATOMIC_RELEASE);
	store(&queue);
	for (int i = 0; i < PAGES * EACH; i++)
		assert_true(i / EACH == 1 || wait_for(&many[i], 1));
	for (int i = 0; i < PAGES * EACH; i++) {
		watch_stop(watcher, &many[i].watch);
		assert_int_equal(times_rung(&many[i]), i / EACH != 1);
	}
	munmap(pages, (size_t)PAGES * PAGE);
	free(many);
}

/* One of two records is in a page that is unmapped: the other is no longer reported. */
TEST(records_that_go_in_part)
{
	uint32_t *pages = mmap(NULL, (size_t)2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct queue torn = {.watch.in_umem = true}, whole = {.watch.in_umem = true};

	assert_ptr_not_equal(pages, MAP_FAILED);
	if (!kernel_has_memory_copies())
		skip();
	assert_int_equal(watch_start(watcher, &whole.watch, pages, 2, rung), 0);
	assert_int_equal(watch_start(watcher, &torn.watch, pages + PAGE / sizeof(*pages) - 1, 2, rung), 0);
	take_away(pages + PAGE / sizeof(*pages));
	__atomic_store_n(pages + PAGE / sizeof(*pages) - 1, 7, __ATOMIC_RELEASE);
	for (uint32_t i = 1; i <= 3; i++) {
		__atomic_store_n(pages, i, __ATOMIC_RELEASE);
		assert_true(wait_for(&whole, i));
	}
	watch_stop(watcher, &whole.watch);
	watch_stop(watcher, &torn.watch);
	assert_int_equal(times_rung(&torn), 0);
	munmap(pages, (size_t)2 * PAGE);
}

/* Replaces the function of the C library: a system call filter rejects it. */
static bool refused; /* atomic */

ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count, const struct iovec *remote,
			 unsigned long remote_count, unsigned long flags)
{
	if (__atomic_load_n(&refused, __ATOMIC_ACQUIRE)) {
		errno = EPERM;
		return -1;
	}
	return syscall(SYS_process_vm_readv, pid, local, local_count, remote, remote_count, flags);
}

TEST(refused_calls)
{
	struct queue other = {.watch.in_umem = true};

	__atomic_store_n(&refused, true, __ATOMIC_RELEASE);
	assert_int_equal(watch_start(watcher, &other.watch, other.records, 2, rung), 0);
	for (uint32_t i = 1; i <= 3; i++) {
		store(&other);
		assert_true(wait_for(&other, i));
	}
	watch_stop(watcher, &other.watch);
	__atomic_store_n(&refused, false, __ATOMIC_RELEASE);
}

/* All blocked stores continue, to any page. */
static void *store_often(void *argument)
{
	volatile uint64_t *to = argument;

	for (int i = 0; i < 12; i++) {
		sleep_us(14000); /* armed again */
		*to = (uint64_t)i;
	}
	return NULL;
}

TEST(several_pages)
{
	enum { PAGES = 4 };
	pthread_t threads[PAGES];
	void *pages[PAGES];

	for (int i = 0; i < PAGES; i++) {
		pages[i] = new_page();
		watch_page(watcher, pages[i]);
		assert_int_equal(pthread_create(&threads[i], NULL, store_often, pages[i]), 0);
	}
	for (int i = 0; i < PAGES; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < PAGES; i++) {
		unwatch_page(watcher, pages[i]);
		*(volatile uint64_t *)pages[i] = 1;
		munmap(pages[i], PAGE);
	}
	store(&queue);
	assert_true(wait_for(&queue, 1));
}

/* ---- arrivals --------------------------------------------------------------------------------------------------- */

/*
 * A program that writes doorbells by hand makes no calls: the watcher polls for arrivals, and no thread is woken for
 * them. The first few arrivals establish this. After a silence, arrivals wake the device thread again.
 */
TEST(takes_arrivals)
{
	uint64_t deadline = clock_now_ns() + UINT64_C(10000000000);
	uint32_t unwoken = 0;

	assert_non_null(hca_device(0));
	assert_int_equal(progress_add(&arrivals_link), 0);
	for (uint32_t i = 1; unwoken < 50; i++) {
		store(&queue);
		assert_true(wait_for(&queue, i));
		unwoken = arrive() ? 0 : unwoken + 1;
		assert_true(clock_now_ns() < deadline);
	}
	arrivals_become_armed();
	assert_true(arrive());
}

/* ---- two threads that scan -------------------------------------------------------------------------------------- */

static bool may_end; /* atomic */

static void rung_until_it_may_end(struct watch *watch)
{
	rung(watch);
	while (!__atomic_load_n(&may_end, __ATOMIC_ACQUIRE))
		sleep_us(100);
}

static void *scan(void *argument)
{
	bool *rang = argument;

	pthread_mutex_lock(&watcher->lock);
	*rang = watcher_scan(watcher);
	pthread_mutex_unlock(&watcher->lock);
	return NULL;
}

/* The first rings what changes meanwhile, wherever it is in the list; the second does not wait. */
TEST_WITH(scan_during_a_scan, NULL, NULL)
{
	struct queue newer = {0};
	bool first = false, second = true;
	pthread_t thread;

	new_watcher();
	watcher->started = true; /* no thread besides these */
	assert_int_equal(watch_start(watcher, &queue.watch, queue.records, 2, rung_until_it_may_end), 0);
	assert_int_equal(watch_start(watcher, &newer.watch, newer.records, 2, rung), 0);
	queue.records[1] = 1;
	assert_int_equal(pthread_create(&thread, NULL, scan, &first), 0);
	assert_true(wait_for(&queue, 1));
	newer.records[1] = 1;
	scan(&second);
	assert_false(second);
	assert_int_equal(times_rung(&newer), 0);
	__atomic_store_n(&may_end, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	assert_true(first);
	assert_int_equal(times_rung(&newer), 1);
}

/* ---- end of a watch -------------------------------------------------------------------------------------------- */

TEST(stopping_waits)
{
	for (int i = 0; i < 50; i++) {
		uint32_t count = times_rung(&queue);

		queue.hold_us = 500;
		store(&queue);
		while (__atomic_load_n(&queue.begun, __ATOMIC_ACQUIRE) == count)
			;
		watch_stop(watcher, &queue.watch);
		assert_int_equal(times_rung(&queue), count + 1);
		store(&queue);
		sleep_us(200);
		assert_int_equal(times_rung(&queue), count + 1);
		assert_int_equal(watch_start(watcher, &queue.watch, queue.records, 2, rung), 0);
	}
}

static void in_a_child(void)
{
	struct queue other = {0};

	watcher_after_fork(watcher);
	store(&queue); /* must not block */
	sleep_us(5000);
	if (times_rung(&queue))
		_exit(1);
	if (watch_start(watcher, &other.watch, other.records, 2, rung))
		_exit(2);
	for (uint32_t i = 1; i < 4; i++) {
		sleep_us(30000);
		store(&other);
		if (!wait_for(&other, i))
			_exit(3);
	}
	_exit(0);
}

TEST(fork_while_armed)
{
	pid_t child;
	int status;

#ifdef __SANITIZE_THREAD__
	skip(); /* children of a multi-threaded process cannot have threads there */
#endif
	if (!kernel_has_threads_after_fork())
		skip();
	sleep_us(30000);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		in_a_child();
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	store(&queue);
	assert_true(wait_for(&queue, 1));
}

enum { NUMBER = 0x40c, OTHER_NUMBER = 0x40d };

/* Stores the first 8 bytes of a control segment (mlx5-formats 1.16). */
static void store_doorbell_to(uint64_t *registers, size_t offset, uint32_t number)
{
	__atomic_store_n(registers + offset / sizeof(*registers), htobe64((uint64_t)number << 8 | 1), __ATOMIC_RELEASE);
}

static void store_doorbell(size_t offset, uint32_t number)
{
	store_doorbell_to(page, offset, number);
}

static void expect_silence(uint32_t times)
{
	sleep_us(30000);
	assert_int_equal(times_rung(&queue), times);
}

/* Makes the queue stale: its record holds a value from its previous use. */
static void restart(void)
{
	store(&queue);
	assert_true(wait_for(&queue, 1));
	store_doorbell(0x800, NUMBER);
	assert_true(watch_restart(watcher, &queue.watch, NUMBER));
}

TEST(stale_record_is_ignored)
{
	restart();
	expect_silence(1);
	/* A doorbell of another queue does not ring it. */
	store_doorbell(0x800, OTHER_NUMBER);
	expect_silence(1);
	store(&queue);
	assert_true(wait_for(&queue, 2));
	expect_silence(2);
}

/* The first value of the new use equals the last one of the previous use, so only the register shows the change. */
TEST(stale_record_with_doorbell)
{
	static const size_t registers[] = {0x800, 0x900, 0xa00, 0xb00};

	restart();
	for (uint32_t i = 0; i < 4; i++) {
		/* Shortly after, and while the watcher sleeps. */
		if (i % 2)
			expect_silence(i + 1);
		store_doorbell(registers[i], NUMBER);
		assert_true(wait_for(&queue, i + 2));
		expect_silence(i + 2);
		assert_true(watch_restart(watcher, &queue.watch, NUMBER));
	}
	expect_silence(5);
}

/* Each page of registers is checked, the oldest and the newest, while the others hold doorbells of other queues. */
TEST(stale_record_with_doorbell_of_two_pages)
{
	uint64_t *pages[] = {page, new_page()};

	watch_page(watcher, pages[1]);
	restart();
	for (uint32_t i = 0; i < 4; i++) {
		store_doorbell_to(pages[!(i % 2)], 0x800, OTHER_NUMBER);
		store_doorbell_to(pages[i % 2], i < 2 ? 0x800 : 0x900, NUMBER);
		assert_true(wait_for(&queue, i + 2));
		expect_silence(i + 2);
		assert_true(watch_restart(watcher, &queue.watch, NUMBER));
	}
	/* A page that was removed does not ring. */
	unwatch_page(watcher, pages[1]);
	store_doorbell_to(pages[1], 0x800, NUMBER);
	expect_silence(5);
	munmap(pages[1], PAGE);
	store_doorbell(0xa00, NUMBER);
	assert_true(wait_for(&queue, 6));
}

/* The other record of a stale watch rings it, and it stays stale. */
TEST(other_record_of_a_stale_watch)
{
	restart();
	__atomic_store_n(&queue.records[0], 77, __ATOMIC_RELEASE);
	assert_true(wait_for(&queue, 2));
	assert_true(__atomic_load_n(&queue.watch.stale, __ATOMIC_RELAXED));
	store_doorbell(0x800, NUMBER);
	assert_true(wait_for(&queue, 3));
	assert_false(__atomic_load_n(&queue.watch.stale, __ATOMIC_RELAXED));
}

TEST(restart_with_record_zero)
{
	store(&queue);
	assert_true(wait_for(&queue, 1));
	__atomic_store_n(&queue.records[1], 0, __ATOMIC_RELEASE);
	assert_false(watch_restart(watcher, &queue.watch, NUMBER));
}

int main(void)
{
	return run_cases(.setup = begin, .teardown = end);
}
