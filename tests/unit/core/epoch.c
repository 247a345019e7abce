/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * core/epoch: which threads wait for which, with two and more threads; forked children; and that no memory is freed too
 * early.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include "test_case.h"

#include <sys/wait.h>
#include <time.h>

#include "core/epoch.h"

/* Replaces the function of the C library. */
static int no_memory; /* atomic */

void *aligned_alloc(size_t alignment, size_t size)
{
	void *memory = NULL;

	if (__atomic_load_n(&no_memory, __ATOMIC_ACQUIRE) || posix_memalign(&memory, alignment, size))
		return NULL;
	return memory;
}

enum { ENTER, LEAVE, END };

/* A thread that enters, leaves and ends on order. */
struct reader {
	pthread_t thread;
	sem_t go, done;
	int order;
};

static void *read_on_order(void *argument)
{
	struct reader *reader = argument;
	int what;

	do {
		sem_wait(&reader->go);
		what = reader->order;
		if (what == ENTER)
			epoch_enter();
		else if (what == LEAVE)
			epoch_leave();
		sem_post(&reader->done);
	} while (what != END);
	return NULL;
}

static void order(struct reader *reader, int what)
{
	reader->order = what;
	sem_post(&reader->go);
	sem_wait(&reader->done);
}

static void start(struct reader *reader)
{
	sem_init(&reader->go, 0, 0);
	sem_init(&reader->done, 0, 0);
	assert_int_equal(pthread_create(&reader->thread, NULL, read_on_order, reader), 0);
}

static void finish(struct reader *reader)
{
	order(reader, END);
	pthread_join(reader->thread, NULL);
}

TEST(sections_before_and_after)
{
	struct reader early, late;
	uint64_t stamp;

	start(&early);
	start(&late);
	order(&early, ENTER);
	stamp = epoch_retire();
	order(&late, ENTER);
	assert_false(epoch_passed(stamp));
	/* Sections that began after the stamp do not count. */
	order(&early, LEAVE);
	assert_true(epoch_passed(stamp));
	/* They count for a later stamp. */
	stamp = epoch_retire();
	assert_false(epoch_passed(stamp));
	order(&late, LEAVE);
	assert_true(epoch_passed(stamp));
	finish(&early);
	finish(&late);
}

TEST(stamps_grow)
{
	uint64_t before = epoch_retire();

	for (int i = 0; i < 1000; i++) {
		uint64_t stamp = epoch_retire();

		assert_true(stamp > before);
		before = stamp;
	}
}

TEST(sections_nest)
{
	struct reader reader;
	uint64_t stamp;

	start(&reader);
	order(&reader, ENTER);
	stamp = epoch_retire();
	order(&reader, ENTER);
	order(&reader, ENTER);
	order(&reader, LEAVE);
	order(&reader, LEAVE);
	assert_false(epoch_passed(stamp));
	order(&reader, LEAVE);
	assert_true(epoch_passed(stamp));
	/* The inner sections did not advance the outer one either. */
	order(&reader, ENTER);
	stamp = epoch_retire();
	order(&reader, ENTER);
	order(&reader, LEAVE);
	assert_false(epoch_passed(stamp));
	order(&reader, LEAVE);
	finish(&reader);
}

TEST(own_section_does_not_count)
{
	uint64_t stamp;

	epoch_enter();
	stamp = epoch_retire();
	assert_true(epoch_passed(stamp));
	epoch_leave();
}

/* ---- waiting --------------------------------------------------------------------------------------------------- */

static int begun, synchronized; /* atomic */

static void *synchronize(void *argument)
{
	(void)argument;
	__atomic_store_n(&begun, 1, __ATOMIC_SEQ_CST);
	epoch_synchronize();
	__atomic_store_n(&synchronized, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

TEST(synchronize_waits)
{
	const struct timespec moment = {.tv_nsec = 20000000};
	struct reader reader;
	pthread_t waiter;

	begun = synchronized = 0;
	start(&reader);
	order(&reader, ENTER);
	assert_int_equal(pthread_create(&waiter, NULL, synchronize, NULL), 0);
	while (!__atomic_load_n(&begun, __ATOMIC_SEQ_CST))
		nanosleep(&moment, NULL);
	nanosleep(&moment, NULL);
	assert_int_equal(__atomic_load_n(&synchronized, __ATOMIC_SEQ_CST), 0);
	/* It does not wait for sections that begin meanwhile. */
	order(&reader, LEAVE);
	order(&reader, ENTER);
	pthread_join(waiter, NULL);
	assert_int_equal(__atomic_load_n(&synchronized, __ATOMIC_SEQ_CST), 1);
	order(&reader, LEAVE);
	finish(&reader);
	/* Without other threads it returns at once. */
	epoch_synchronize();
}

/* Threads start and end; their slots are reused, without the section of the former thread. */
TEST(slots_are_used_again)
{
	for (int i = 0; i < 200; i++) {
		struct reader reader;
		uint64_t stamp;

		start(&reader);
		order(&reader, ENTER);
		stamp = epoch_retire();
		assert_false(epoch_passed(stamp));
		order(&reader, LEAVE);
		finish(&reader);
		assert_true(epoch_passed(stamp));
	}
}

TEST(section_of_another_thread_in_a_child)
{
	struct reader reader;
	uint64_t stamp;
	pid_t child;
	int status;

	start(&reader);
	order(&reader, ENTER);
	epoch_enter(); /* this thread continues in the child, inside its section */
	stamp = epoch_retire();
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		alarm(10);
		epoch_after_fork();
		epoch_leave();
		if (!epoch_passed(stamp))
			_exit(1);
		epoch_synchronize();
		epoch_enter();
		epoch_leave();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	/* The child is still inside its section. */
	epoch_leave();
	assert_false(epoch_passed(stamp));
	order(&reader, LEAVE);
	finish(&reader);
}

/* ---- use --------------------------------------------------------------------------------------------------------- */

enum { READERS = 3, EXCHANGES = 400, ALIVE = 0x600d, DEAD = 0xdead };

static int *published;  /* atomic */
static int stop, wrong; /* atomic */

static void *look_at_it(void *argument)
{
	(void)argument;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		epoch_enter();
		for (int i = 0; i < 10; i++) {
			const int *object = __atomic_load_n(&published, __ATOMIC_ACQUIRE);

			if (__atomic_load_n(object, __ATOMIC_RELAXED) != ALIVE)
				__atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
		}
		epoch_leave();
		/* On a single processor the other threads would not run for a long time. */
		sched_yield();
	}
	return NULL;
}

static int *new_object(void)
{
	int *object = malloc(sizeof(*object));

	__atomic_store_n(object, ALIVE, __ATOMIC_RELAXED);
	return object;
}

/* An unpublished object is not freed before its last reader has released it. */
TEST(nothing_is_freed_too_early)
{
	pthread_t threads[READERS];

	stop = wrong = 0;
	published = new_object();
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, look_at_it, NULL), 0);
	for (int i = 0; i < EXCHANGES && !__atomic_load_n(&wrong, __ATOMIC_RELAXED); i++) {
		int *old = __atomic_exchange_n(&published, new_object(), __ATOMIC_ACQ_REL);

		/* Both ways to wait. */
		if (i % 2) {
			epoch_synchronize();
		} else {
			uint64_t stamp = epoch_retire();

			while (!epoch_passed(stamp))
				sched_yield();
		}
		__atomic_store_n(old, DEAD, __ATOMIC_RELAXED);
		free(old);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	free(published);
	assert_int_equal(wrong, 0);
}

/* More threads than there have ever been slots. */
TEST(slots_without_memory)
{
	enum { THREADS = 16 };
	struct reader readers[THREADS];
	uint64_t stamp;

	__atomic_store_n(&no_memory, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < THREADS; i++) {
		start(&readers[i]);
		order(&readers[i], ENTER);
	}
	stamp = epoch_retire();
	for (int i = 0; i < THREADS; i++) {
		assert_false(epoch_passed(stamp));
		order(&readers[i], LEAVE);
	}
	assert_true(epoch_passed(stamp));
	for (int i = 0; i < THREADS; i++)
		finish(&readers[i]);
	__atomic_store_n(&no_memory, 0, __ATOMIC_RELEASE);
}

static unsigned int count_slots(void)
{
	unsigned int count = 0;

	for (const struct epoch_slot *slot = epoch_slots(); slot; slot = slot->next)
		count++;
	return count;
}

/* Runs @body in a child process in which no thread has a slot yet; @body returns the exit status. */
static void in_a_child(int (*body)(void))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		alarm(30);
		_exit(body());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int use_all_keys(void)
{
	struct reader reader, other;
	pthread_key_t key;
	uint64_t stamp;

	while (!pthread_key_create(&key, NULL))
		;
	epoch_enter();
	epoch_leave();
	for (int i = 0; i < 20; i++) {
		start(&reader);
		start(&other);
		order(&reader, ENTER);
		order(&other, ENTER);
		order(&other, LEAVE);
		stamp = epoch_retire();
		if (epoch_passed(stamp))
			return 1;
		order(&reader, LEAVE);
		if (!epoch_passed(stamp))
			return 2;
		finish(&reader);
		finish(&other);
	}
	/* The slot of this thread, and those that the two others reuse. */
	return count_slots() > 3 ? 3 : 0;
}

/* Runs first: the key is made with the first slot. */
TEST_FIRST(no_key_is_left)
{
	in_a_child(use_all_keys);
}

static int use_all_slots(void)
{
	enum { THREADS = EPOCH_RESERVE };
	static struct reader readers[THREADS];
	struct reader last;
	struct timespec moment = {.tv_nsec = 20000000};

	__atomic_store_n(&no_memory, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < THREADS; i++) {
		start(&readers[i]);
		order(&readers[i], ENTER);
	}
	/* One more thread waits until another ends. */
	start(&last);
	last.order = ENTER;
	sem_post(&last.go);
	nanosleep(&moment, NULL);
	if (!sem_trywait(&last.done))
		return 1;
	order(&readers[0], LEAVE);
	finish(&readers[0]);
	sem_wait(&last.done);
	return epoch_passed(epoch_retire()) ? 2 : 0;
}

TEST_FIRST(more_threads_than_slots)
{
	in_a_child(use_all_slots);
}
