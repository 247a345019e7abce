/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * progress/storing_thread: a store to a doorbell register rings on its thread, before the next instruction, unless the
 * process could not survive the fault; then the watcher notices it as ever.
 */
#include "test_case.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "../support/arrivals.h"
#include "core/thread.h"
#include "core/timer.h"
#include "hca/hca.h"
#include "progress/store_decode.h"
#include "progress/watch.h"
#include "process/commands.h"

enum { PAGE = 4096, REGISTER = 0x800, CQ_REGISTER = 0x20, WATCHERS = 24, PATIENCE_MS = 10000 };

struct queue {
	struct watch watch;
	uint32_t records[2];
	uint32_t count;   /* atomic: number of rings */
	pthread_t ringer; /* thread of the latest */
};

static struct watcher watchers[WATCHERS], *watcher;
static struct queue queue;
static uint8_t *page;

static void sleep_ms(uint32_t ms)
{
	const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	nanosleep(&time, NULL);
}

static void rung(struct watch *watch)
{
	struct queue *of = (struct queue *)watch;

	of->ringer = pthread_self();
	__atomic_add_fetch(&of->count, 1, __ATOMIC_RELEASE);
}

static uint32_t times_rung(const struct queue *of)
{
	return __atomic_load_n(&of->count, __ATOMIC_ACQUIRE);
}

static uint8_t *new_page(void)
{
	void *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

static enum trap_state trap_state(void)
{
	enum trap_state state;

	pthread_mutex_lock(&watcher->lock);
	state = watcher->trap.state;
	pthread_mutex_unlock(&watcher->lock);
	return state;
}

static bool becomes(enum trap_state state)
{
	for (int i = 0; i < PATIENCE_MS && trap_state() != state; i++)
		sleep_ms(1);
	return trap_state() == state;
}

/* A watcher cannot be ended: each test leaves one asleep. */
static void new_watcher(void)
{
	static size_t used;
	struct hca *hca = hca_device(0);

	assert_non_null(hca);
	/* That of the device has not started. */
	if (!used)
		free(hca->watcher);
	watcher = &watchers[used++];
	hca->settings.doorbells = DOORBELLS_TRAP;
	hca->watcher = watcher;
	watcher_init(watcher, hca);
	memset(&queue, 0, sizeof(queue));
	page = new_page();
	watch_page(watcher, page);
	assert_int_equal(watch_start(watcher, &queue.watch, queue.records, 2, rung), 0);
}

static int end(void **state)
{
	(void)state;
	if (!watcher)
		return 0;
	watch_stop(watcher, &queue.watch);
	unwatch_page(watcher, page);
	munmap(page, PAGE);
	watcher = NULL;
	return 0;
}

static void store_to(uint8_t *memory, struct queue *of)
{
	__atomic_store_n(&of->records[1], of->records[1] + 1, __ATOMIC_RELEASE);
	__atomic_store_n((uint64_t *)(memory + REGISTER), of->records[1], __ATOMIC_RELEASE);
}

static void store(struct queue *of)
{
	store_to(page, of);
}

static bool is_rung(const struct queue *of, uint32_t count)
{
	for (int i = 0; i < PATIENCE_MS && times_rung(of) < count; i++)
		sleep_ms(1);
	return times_rung(of) >= count;
}

/*
 * Rings until stores fault: the watcher tries again when something rings, and at first it may find that its creator still
 * blocks all signals.
 */
static void expect_faults(void)
{
	for (int i = 0; i < PATIENCE_MS && trap_state() != TRAP_FAULTS; i++) {
		uint32_t count = times_rung(&queue);

		store(&queue);
		assert_true(is_rung(&queue, count + 1));
		sleep_ms(1);
	}
	assert_int_equal(trap_state(), TRAP_FAULTS);
}

/* In the case itself, because cmocka installs handlers before it. */
static void begin(void)
{
	if (!store_decode_works())
		skip();
	new_watcher();
	expect_faults();
	queue.count = 0;
}

/* Rings are those of the watcher, and the store arrives in memory. */
static void expect_watcher(void)
{
	uint32_t count = times_rung(&queue);

	store(&queue);
	assert_true(is_rung(&queue, count + 1));
	assert_false(pthread_equal(queue.ringer, pthread_self()));
}

/* At its regular looks the watcher may be first: once in 20 ms. */
static void expect_this_thread(void)
{
	uint32_t at_once = 0;

	for (uint32_t i = 0; i < 100; i++) {
		uint32_t count = times_rung(&queue);

		store(&queue);
		at_once += times_rung(&queue) == count + 1 && pthread_equal(queue.ringer, pthread_self());
		assert_true(is_rung(&queue, count + 1));
	}
	assert_true(at_once >= 90);
}

/* ---- the storing thread ------------------------------------------------------------------------------------------ */

TEST(rings_at_once)
{
	uint64_t content;

	begin();
	content = *(volatile uint64_t *)(page + REGISTER);
	expect_this_thread();
	/* Nothing reaches the register. */
	assert_int_equal(*(volatile uint64_t *)(page + REGISTER), content);
}

/* Records without a register, as those of receive queues. */
TEST(watcher_looks_too)
{
	begin();
	__atomic_store_n(&queue.records[0], 7, __ATOMIC_RELEASE);
	assert_true(is_rung(&queue, 1));
	assert_int_equal(trap_state(), TRAP_FAULTS);
	expect_this_thread();
}

TEST(pages_come_and_go)
{
	uint8_t *other = new_page();

	begin();
	watch_page(watcher, other);
	store_to(other, &queue);
	assert_true(is_rung(&queue, 1));
	assert_int_equal(*(volatile uint64_t *)(other + REGISTER), 0);
	unwatch_page(watcher, other);
	/* Memory of the program again. */
	*(volatile uint64_t *)(other + REGISTER) = 7;
	assert_int_equal(*(volatile uint64_t *)(other + REGISTER), 7);
	munmap(other, PAGE);
	expect_this_thread();
}

/* The last page goes, and the handler of SIGSEGV with it; another page comes at once. */
TEST(all_pages_go)
{
	begin();
	unwatch_page(watcher, page);
	watch_page(watcher, page);
	store(&queue);
	assert_true(is_rung(&queue, 1));
	expect_faults();
	expect_this_thread();
}

static void *store_often(void *argument)
{
	struct queue *of = argument;

	for (int i = 0; i < 5000; i++)
		store(of);
	return NULL;
}

/* Each has its queue; the last value of each is seen. */
TEST(several_threads)
{
	enum { THREADS = 4 };
	static struct queue many[THREADS];
	pthread_t threads[THREADS];

	memset(many, 0, sizeof(many));
	begin();
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(watch_start(watcher, &many[i].watch, many[i].records, 2, rung), 0);
		assert_int_equal(pthread_create(&threads[i], NULL, store_often, &many[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < THREADS; i++) {
		for (int wait = 0; wait < PATIENCE_MS && many[i].watch.seen[1] != 5000; wait++)
			sleep_ms(1);
		watch_stop(watcher, &many[i].watch);
		assert_int_equal(many[i].watch.seen[1], 5000);
	}
}

/* ---- stores that must not fault ---------------------------------------------------------------------------------- */

/* The kernel ends a process whose fault is blocked. */
static void *block_and_store(void *argument)
{
	sigset_t blocked;

	(void)argument;
	sigfillset(&blocked);
	pthread_sigmask(SIG_SETMASK, &blocked, NULL);
	assert_true(becomes(TRAP_RELEASED) || becomes(TRAP_WAKES));
	for (int i = 0; i < 20; i++) {
		expect_watcher();
		sleep_ms(10);
	}
	return NULL;
}

TEST(blocked_signal)
{
	pthread_t thread;

	begin();
	assert_int_equal(pthread_create(&thread, NULL, block_and_store, NULL), 0);
	pthread_join(thread, NULL);
	/* When it has ended. */
	expect_faults();
	expect_this_thread();
}

static void on_signal(int signal)
{
	_exit(signal);
}

TEST(program_replaces_the_handler)
{
	const struct sigaction own = {.sa_handler = on_signal};
	struct sigaction before;

	begin();
	assert_int_equal(sigaction(SIGSEGV, &own, &before), 0);
	while (trap_state() == TRAP_FAULTS)
		sleep_ms(1);
	expect_watcher();
	sigaction(SIGSEGV, &before, NULL);
	expect_faults();
	expect_this_thread();
}

/* An exchange is not a plain store: the instruction runs, and the watcher notices the doorbell. */
TEST(other_instruction)
{
	begin();
	__atomic_store_n(&queue.records[1], 1234567, __ATOMIC_RELEASE);
	__atomic_exchange_n((uint64_t *)(page + REGISTER), 1234567, __ATOMIC_SEQ_CST);
	assert_int_equal(*(volatile uint64_t *)(page + REGISTER), 1234567);
	assert_true(is_rung(&queue, 1));
}

/* A doorbell record that does not count until its register is written (watch_restart()). */
TEST(stale_record)
{
	begin();
	store(&queue);
	assert_true(watch_restart(watcher, &queue.watch, 0x1234));
	*(volatile uint64_t *)(page + REGISTER) = (uint64_t)htobe32(0x1234 << 8) << 32;
	assert_true(is_rung(&queue, 2));
	expect_faults();
	expect_this_thread();
}

static bool stores_are_refused(void)
{
	bool refused;

	pthread_mutex_lock(&watcher->lock);
	refused = watcher->stores.refused;
	pthread_mutex_unlock(&watcher->lock);
	return refused;
}

static void *store_on_small_stack(void *argument)
{
	static uint8_t memory[1 << 16];
	const stack_t small = {.ss_sp = memory, .ss_size = 16384};
	stack_t before;

	(void)argument;
	sigaltstack(&small, &before);
	/* Starting a thread blocks all signals for a moment, which may have released the page. */
	for (int i = 0; i < PATIENCE_MS && !stores_are_refused(); i++) {
		uint32_t count = times_rung(&queue);

		store(&queue);
		assert_true(is_rung(&queue, count + 1));
		sleep_ms(1);
	}
	expect_watcher();
	/* AddressSanitizer frees the one that it has set. */
	sigaltstack(&before, NULL);
	return NULL;
}

static void in_process_with_small_stack(void)
{
	pthread_t thread;

	/* cmocka's handler uses no other stack. */
	signal(SIGSEGV, SIG_DFL);
	new_watcher();
	expect_faults();
	if (pthread_create(&thread, NULL, store_on_small_stack, NULL))
		_exit(1);
	pthread_join(thread, NULL);
	_exit(stores_are_refused() ? 0 : 2);
}

static void expect_success_of(void (*body)(void))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		alarm(60);
		body();
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

TEST(small_signal_stack)
{
	if (!store_decode_works())
		skip();
	expect_success_of(in_process_with_small_stack);
}

static void in_child(void)
{
	watcher_after_fork(watcher);
	store(&queue);
	_exit(times_rung(&queue));
}

TEST(forked_child)
{
	begin();
	expect_success_of(in_child);
	expect_this_thread();
}

static void on_alarm(int signal)
{
	(void)signal;
	store(&queue);
}

/* A handler of the program stores while the thread that it interrupts holds the lock of the watcher. */
TEST(store_under_the_lock)
{
	struct sigaction action = {.sa_handler = on_alarm};

	begin();
	sigaction(SIGUSR1, &action, NULL);
	pthread_mutex_lock(&watcher->lock);
	raise(SIGUSR1);
	pthread_mutex_unlock(&watcher->lock);
	assert_true(is_rung(&queue, 1));
}

/* ---- arrivals --------------------------------------------------------------------------------------------------- */

static void *answer(void *argument)
{
	(void)argument;
	sleep_ms(20);
	__atomic_store_n(&arrivals.waits, true, __ATOMIC_SEQ_CST);
	return NULL;
}

TEST(polls_until_an_answer)
{
	uint32_t before = __atomic_load_n(&arrivals.taken, __ATOMIC_ACQUIRE);
	pthread_t thread;

	begin();
	assert_int_equal(progress_add(&arrivals_link), 0);
	assert_int_equal(pthread_create(&thread, NULL, answer, NULL), 0);
	assert_true(progress_poll_until(&arrivals.taken, before, ARRIVALS_PATIENCE_NS));
	assert_int_equal(arrivals.taken, before + 1);
	pthread_join(thread, NULL);
	assert_false(progress_poll_until(&arrivals.taken, before + 1, 100000));
	/* From now on, arrivals wake the device thread. */
	assert_true(arrivals_armed());
}

/* The register of CQs: the program is about to sleep. */
TEST(arming_wakes_the_device_thread)
{
	uint32_t polls = 0, at_once = 0;

	begin();
	for (int i = 0; i < 100; i++) {
		uint32_t count = times_rung(&queue);

		/* Disarms the link, as long as the program polls. */
		assert_true(progress_poll_until(&polls, 1, 0));
		__atomic_store_n(&queue.records[1], queue.records[1] + 1, __ATOMIC_RELEASE);
		__atomic_store_n((uint64_t *)(page + CQ_REGISTER), 1, __ATOMIC_RELEASE);
		at_once += arrivals_armed();
		assert_true(is_rung(&queue, count + 1));
	}
	/* Otherwise the device thread was polling, and arms the link itself. */
	assert_true(at_once >= 90);
}

/* ---- processors -------------------------------------------------------------------------------------------------- */

enum { SPIN_NS = 200000000, TOLERANCE_NS = 10000000 };

struct spinner {
	uint64_t waited_ns, idle_ns; /* as the kernel says, and by the clocks */
};

static uint64_t thread_time_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void *spin(void *argument)
{
	struct spinner *spinner = argument;
	/* The thread may wait between two of these calls: that is idle time, and may be outside the other two intervals. */
	uint64_t start_ns = clock_now_ns(), waited_ns = thread_waited_ns(), time_ns = thread_time_ns();

	while (clock_now_ns() - start_ns < SPIN_NS)
		;
	time_ns = thread_time_ns() - time_ns;
	spinner->waited_ns = thread_waited_ns() - waited_ns;
	spinner->idle_ns = clock_now_ns() - start_ns - time_ns;
	return NULL;
}

/* A thread alone, then two on one processor. Time that a hypervisor takes counts as idle, not as waited. */
TEST(waiting_for_a_processor)
{
	struct spinner alone, both[2];
	cpu_set_t before, one;
	pthread_t threads[2];

	if (access("/proc/thread-self/schedstat", R_OK))
		skip();
	spin(&alone);
	assert_true(alone.waited_ns <= alone.idle_ns + TOLERANCE_NS);
	pthread_getaffinity_np(pthread_self(), sizeof(before), &before);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(pthread_setaffinity_np(pthread_self(), sizeof(one), &one), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, spin, &both[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	pthread_setaffinity_np(pthread_self(), sizeof(before), &before);
	assert_true(both[0].waited_ns + both[1].waited_ns >= SPIN_NS / 4);
	for (int i = 0; i < 2; i++)
		assert_true(both[i].waited_ns <= both[i].idle_ns + TOLERANCE_NS);
}

int main(void)
{
	return run_cases(.teardown = end);
}
