/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * core/event_queue: order, the descriptor as programs see it (poll, O_NONBLOCK), purging during concurrent reads.
 */
#include "test_case.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "core/event_queue.h"

static uint32_t taken_count;

static void count_taken(int type, void *object)
{
	(void)type;
	(void)object;
	taken_count++;
}

static int queue_setup(void **state)
{
	struct event_queue *queue = malloc(sizeof(*queue));

	if (event_queue_init(queue))
		return -1;
	/* A test that would block fails instead. */
	fcntl(queue->fd, F_SETFL, fcntl(queue->fd, F_GETFL) | O_NONBLOCK);
	queue->taken = count_taken;
	taken_count = 0;
	*state = queue;
	return 0;
}

static int queue_teardown(void **state)
{
	event_queue_destroy(*state);
	free(*state);
	return 0;
}

static bool readable(const struct event_queue *queue)
{
	struct pollfd pollfd = {.fd = queue->fd, .events = POLLIN};

	return poll(&pollfd, 1, 0) == 1;
}

/* Takes one event and checks its source. */
static void expect(struct event_queue *queue, const struct event_source *source)
{
	void *object;
	int type;

	assert_int_equal(event_queue_take(queue, &type, &object), 0);
	assert_int_equal(type, source->type);
	assert_ptr_equal(object, source->object);
}

static void expect_nothing(struct event_queue *queue)
{
	void *object;
	int type;

	assert_false(readable(queue));
	assert_int_equal(event_queue_take(queue, &type, &object), -EAGAIN);
}

TEST(takes_in_the_order_of_raising)
{
	struct event_source a = {.type = 1, .object = "a"}, b = {.type = 2, .object = "b"};

	expect_nothing(*state);
	event_queue_raise(*state, &a);
	event_queue_raise(*state, &b);
	event_queue_raise(*state, &a);
	assert_true(readable(*state));
	expect(*state, &a);
	expect(*state, &b);
	assert_true(readable(*state));
	expect(*state, &a);
	expect_nothing(*state);
	assert_int_equal(taken_count, 3);
}

/* A source that raises repeatedly does not delay the others. */
TEST(sources_take_turns)
{
	struct event_source busy = {.type = 1, .object = "busy"}, quiet = {.type = 2, .object = "quiet"};

	event_queue_raise(*state, &busy);
	event_queue_raise(*state, &busy);
	event_queue_raise(*state, &busy);
	event_queue_raise(*state, &quiet);
	expect(*state, &busy);
	expect(*state, &quiet);
	expect(*state, &busy);
	expect(*state, &busy);
	expect_nothing(*state);
}

TEST(purge_removes_unpolled_cqes)
{
	struct event_source a = {.type = 1, .object = "a"}, b = {.type = 2, .object = "b"}, c = {.type = 3};

	event_queue_raise(*state, &a);
	event_queue_raise(*state, &b);
	event_queue_raise(*state, &a);
	event_queue_raise(*state, &c);
	expect(*state, &a);
	assert_int_equal(event_source_purge(*state, &a), 1);
	assert_int_equal(event_source_purge(*state, &a), 0);
	assert_int_equal(event_source_purge(*state, &c), 1);
	expect(*state, &b);
	expect_nothing(*state);
	assert_int_equal(taken_count, 2);
	/* The queue keeps working, for purged sources too. */
	event_queue_raise(*state, &c);
	expect(*state, &c);
	expect_nothing(*state);
}

/* A purge of the last source in the list must leave the end of the list valid. */
TEST(purge_of_the_last_keeps_the_list_intact)
{
	struct event_source a = {.type = 1}, b = {.type = 2}, c = {.type = 3};

	event_queue_raise(*state, &a);
	event_queue_raise(*state, &b);
	assert_int_equal(event_source_purge(*state, &b), 1);
	event_queue_raise(*state, &c);
	expect(*state, &a);
	expect(*state, &c);
	assert_int_equal(event_source_purge(*state, &c), 0);
	event_queue_raise(*state, &b);
	expect(*state, &b);
	expect_nothing(*state);
}

/*
 * A thread has read the descriptor, but its event is purged before it takes it. It must not take the next event
 * instead, which would leave the descriptor readable forever.
 */
TEST(event_purged_in_the_hands_of_a_taker)
{
	struct event_queue *queue = *state;
	struct event_source a = {.type = 1}, b = {.type = 2};
	uint64_t token;

	event_queue_raise(queue, &a);
	assert_int_equal(read(queue->fd, &token, sizeof(token)), sizeof(token)); /* as the thread does, up to here */
	assert_int_equal(event_source_purge(queue, &a), 1);
	assert_int_equal(queue->stale, 1);
	event_queue_raise(queue, &b);
	/* This call skips the stale event and then finds the one of b. The thread would block in its next read. */
	assert_int_equal(write(queue->fd, &(uint64_t){1}, sizeof(uint64_t)), sizeof(uint64_t));
	expect(queue, &b);
	assert_int_equal(queue->stale, 0);
	expect_nothing(queue);
}

enum { TAKERS = 3, RAISED = 20000 };

struct crowd {
	struct event_queue queue;
	struct event_source source[2];
	uint32_t purged; /* by source 1 */
};

/* Takes events until one of type 0. */
static void *taker(void *argument)
{
	struct crowd *crowd = argument;
	void *object;
	int type;

	do {
		if (event_queue_take(&crowd->queue, &type, &object))
			abort();
	} while (type);
	return NULL;
}

/*
 * Every event is taken or purged exactly once; at the end no thread is left waiting and none is woken without an event.
 */
static void take_and_purge(void)
{
	struct crowd crowd = {.source = {{.type = 1}, {.type = 2}}};
	struct event_source stop = {.type = 0};
	pthread_t threads[TAKERS];

	assert_int_equal(event_queue_init(&crowd.queue), 0);
	crowd.queue.taken = count_taken;
	taken_count = 0;
	for (int i = 0; i < TAKERS; i++)
		pthread_create(&threads[i], NULL, taker, &crowd);
	for (int i = 0; i < RAISED; i++) {
		event_queue_raise(&crowd.queue, &crowd.source[i & 1]);
		if (i & 1)
			crowd.purged += event_source_purge(&crowd.queue, &crowd.source[1]);
	}
	for (int i = 0; i < TAKERS; i++)
		event_queue_raise(&crowd.queue, &stop);
	for (int i = 0; i < TAKERS; i++)
		pthread_join(threads[i], NULL);
	/* Taken events are counted under the lock; events that a stopped thread left are still in the list. */
	assert_int_equal(taken_count + crowd.purged + event_source_purge(&crowd.queue, &crowd.source[0]),
			 RAISED + TAKERS);
	assert_int_equal(crowd.queue.stale, 0);
	assert_false(readable(&crowd.queue));
	event_queue_destroy(&crowd.queue);
}

TEST_WITH(takers_and_purges_at_once, NULL, NULL)
{
	take_and_purge();
}

/* A pending event is not queued a second time; once taken, it can be queued again. */
TEST(once)
{
	struct event_source a = {.type = 1, .object = "a"}, b = {.type = 2, .object = "b"};

	assert_true(event_queue_raise_once(*state, &a));
	assert_false(event_queue_raise_once(*state, &a));
	assert_true(event_queue_raise_once(*state, &b));
	assert_false(event_queue_raise_once(*state, &a));
	expect(*state, &a);
	assert_true(event_queue_raise_once(*state, &a));
	expect(*state, &b);
	expect(*state, &a);
	expect_nothing(*state);
}

static const struct event_source *relayed;
static struct event_queue *relayed_by;

static void keep(struct event_queue *queue, const struct event_source *source)
{
	relayed_by = queue;
	relayed = source;
}

TEST_WITH(relay_lists_nothing, NULL, NULL)
{
	struct event_source a = {.type = 1, .object = "a"};
	struct event_queue relay;

	event_queue_init_relay(&relay, keep);
	event_queue_raise(&relay, &a);
	assert_ptr_equal(relayed, &a);
	assert_ptr_equal(relayed_by, &relay);
	assert_int_equal(a.pending, 0);
	assert_int_equal(event_source_purge(&relay, &a), 0);
	event_queue_destroy(&relay);
}

static int refusal; /* errno value of preadv2(2), or 0; atomic */

/* Replaces the function of the C library: old kernels and system call filters reject it. */
ssize_t preadv2(int fd, const struct iovec *list, int count, off_t offset, int flags)
{
	int error = __atomic_load_n(&refusal, __ATOMIC_RELAXED);

	if (!error)
		return syscall(SYS_preadv2, fd, list, count, offset, 0, flags);
	errno = error;
	return -1;
}

TEST(purge_without_preadv2)
{
	static const int errors[] = {EOPNOTSUPP, ENOSYS, EPERM};
	struct event_source a = {.type = 1, .object = "a"}, b = {.type = 2, .object = "b"};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		__atomic_store_n(&refusal, errors[i], __ATOMIC_RELAXED);
		event_queue_raise(*state, &a);
		event_queue_raise(*state, &b);
		event_queue_raise(*state, &a);
		assert_int_equal(event_source_purge(*state, &a), 2);
		expect(*state, &b);
		expect_nothing(*state);
	}
	__atomic_store_n(&refusal, 0, __ATOMIC_RELAXED);
}

/* A purge does not wait for a token that a thread takes at the same time, and no thread finds the descriptor empty. */
TEST_WITH(takers_and_purges_without_preadv2, NULL, NULL)
{
	__atomic_store_n(&refusal, EOPNOTSUPP, __ATOMIC_RELAXED);
	take_and_purge();
	__atomic_store_n(&refusal, 0, __ATOMIC_RELAXED);
}

int main(void)
{
	return run_cases(.setup = queue_setup, .teardown = queue_teardown);
}
