/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event channels (rdma_create_event_channel(3), rdma_get_cm_event(3), rdma_ack_cm_event(3)): the descriptor, blocking, signals,
 * several threads, the order of events, fork(2), and threads that wait while the channel is destroyed. Expected behaviour:
 * rdma-cm 2.2.
 */
#include "support.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "abi/undeclared_rdmacm.h"

static void sleep_ms(long milliseconds)
{
	nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000}, NULL);
}

/* Writes an event of the program, numbered @number. */
static void write_event(struct rdma_cm_id *id, uint64_t number)
{
	assert_success(rdma_write_cm_event(id, (enum rdma_cm_event_type)RDMA_CM_EVENT_USER_, 0, number));
}

static uint64_t number_of(const struct rdma_cm_event *event)
{
	uint64_t number;

	memcpy(&number, &event->param, sizeof(number));
	return number;
}

static void set_nonblocking(struct rdma_event_channel *channel, bool on)
{
	int flags = fcntl(channel->fd, F_GETFL);

	assert_int_equal(fcntl(channel->fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK), 0);
}

TEST(test_descriptor)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
	struct rdma_cm_event *event;

	set_nonblocking(channel, true);
	assert_false(has_event(channel, 0));
	assert_errno(rdma_get_cm_event(channel, &event), EAGAIN);
	assert_errno(rdma_get_cm_event(channel, NULL), EINVAL);
	assert_errno(rdma_ack_cm_event(NULL), EINVAL);
	assert_errno(rdma_write_cm_event(id, RDMA_CM_EVENT_ESTABLISHED, 0, 0), EINVAL);
	write_event(id, 1);
	write_event(id, 2);
	/* Readable until the last event is taken. */
	assert_true(has_event(channel, 0));
	assert_success(rdma_get_cm_event(channel, &event));
	assert_int_equal(number_of(event), 1);
	assert_ptr_equal(event->id, id);
	assert_success(rdma_ack_cm_event(event));
	assert_true(has_event(channel, 0));
	set_nonblocking(channel, false);
	assert_success(rdma_get_cm_event(channel, &event));
	assert_int_equal(number_of(event), 2);
	assert_success(rdma_ack_cm_event(event));
	assert_false(has_event(channel, 0));
	/* Events not taken are dropped with the id. */
	write_event(id, 3);
	assert_success(rdma_destroy_id(id));
	assert_false(has_event(channel, 0));
	rdma_destroy_event_channel(channel);
}

static void ignore(int signal)
{
	(void)signal;
}

struct getter {
	struct rdma_event_channel *channel;
	int error;
	uint64_t number;
	pthread_t thread;
};

static void *get(void *argument)
{
	struct getter *getter = argument;
	struct rdma_cm_event *event;

	errno = 0;
	if (rdma_get_cm_event(getter->channel, &event)) {
		getter->error = errno;
		return NULL;
	}
	getter->number = number_of(event);
	rdma_ack_cm_event(event);
	return NULL;
}

static void begin_get(struct getter *getter, struct rdma_event_channel *channel)
{
	*getter = (struct getter){.channel = channel};
	assert_int_equal(pthread_create(&getter->thread, NULL, get, getter), 0);
	sleep_ms(50);
}

TEST(test_signals)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
	struct sigaction action = {.sa_handler = ignore};
	struct getter getter;

	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	begin_get(&getter, channel);
	assert_int_equal(pthread_kill(getter.thread, SIGUSR1), 0);
	assert_int_equal(pthread_join(getter.thread, NULL), 0);
	assert_int_equal(getter.error, EINTR);

	action.sa_flags = SA_RESTART;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	begin_get(&getter, channel);
	assert_int_equal(pthread_kill(getter.thread, SIGUSR1), 0);
	sleep_ms(50);
	write_event(id, 7);
	assert_int_equal(pthread_join(getter.thread, NULL), 0);
	assert_int_equal(getter.error, 0);
	assert_int_equal(getter.number, 7);
	assert_success(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

enum { THREADS = 4, EVENTS = 1000 };

struct reader {
	struct rdma_event_channel *channel;
	uint8_t *seen; /* EVENTS */
	bool ordered;
	pthread_t thread;
};

static void *read_all(void *argument)
{
	struct reader *reader = argument;
	struct rdma_cm_event *event;
	uint64_t last = 0, number;

	reader->ordered = true;
	while (!rdma_get_cm_event(reader->channel, &event)) {
		number = number_of(event);
		rdma_ack_cm_event(event);
		if (number > EVENTS)
			break;
		__atomic_add_fetch(&reader->seen[number - 1], 1, __ATOMIC_RELAXED);
		reader->ordered &= number > last;
		last = number;
	}
	return NULL;
}

/* Each event is returned once, and a thread never sees a later event before an earlier one. */
TEST(test_threads)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
	struct reader readers[THREADS];
	uint8_t seen[EVENTS] = {0};

	for (int i = 0; i < THREADS; i++) {
		readers[i] = (struct reader){.channel = channel, .seen = seen};
		assert_int_equal(pthread_create(&readers[i].thread, NULL, read_all, &readers[i]), 0);
	}
	for (uint64_t number = 1; number <= EVENTS; number++)
		write_event(id, number);
	for (int i = 0; i < THREADS; i++)
		write_event(id, EVENTS + 1);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(readers[i].thread, NULL), 0);
		assert_true(readers[i].ordered);
	}
	for (int i = 0; i < EVENTS; i++)
		assert_int_equal(seen[i], 1);
	assert_success(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/* Events dropped while threads wait leave neither tokens nor events. */
TEST(test_dropped_under_readers)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *keeper = new_id(channel, RDMA_PS_TCP);
	struct reader readers[2];
	uint8_t seen[EVENTS] = {0};

	for (int i = 0; i < 2; i++) {
		readers[i] = (struct reader){.channel = channel, .seen = seen};
		assert_int_equal(pthread_create(&readers[i].thread, NULL, read_all, &readers[i]), 0);
	}
	for (uint64_t number = 1; number <= 300; number++) {
		struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);

		write_event(id, number);
		assert_success(rdma_destroy_id(id));
	}
	for (int i = 0; i < 2; i++)
		write_event(keeper, EVENTS + 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(readers[i].thread, NULL), 0);
	for (int i = 0; i < 300; i++)
		assert_in_range(seen[i], 0, 1);
	assert_false(has_event(channel, 0));
	assert_success(rdma_destroy_id(keeper));
	rdma_destroy_event_channel(channel);
}

/* Like the end of rping(1): main destroys the channel while the thread waits, then cancels the thread. */
TEST(test_destroyed_under_reader)
{
	struct rdma_event_channel *channel = new_channel();
	struct getter getter;

	begin_get(&getter, channel);
	rdma_destroy_event_channel(channel);
	sleep_ms(100);
	assert_int_equal(pthread_kill(getter.thread, 0), 0);
	assert_int_equal(getter.error, 0);
	assert_int_equal(pthread_cancel(getter.thread), 0);
	assert_int_equal(pthread_join(getter.thread, NULL), 0);
}

struct destroyer {
	struct rdma_cm_id *id;
	bool done;
	pthread_t thread;
};

static void *destroy(void *argument)
{
	struct destroyer *destroyer = argument;

	rdma_destroy_id(destroyer->id);
	__atomic_store_n(&destroyer->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* rdma_destroy_id(3) waits until events that were returned are acknowledged. */
TEST(test_acknowledgement)
{
	struct rdma_event_channel *channel = new_channel();
	struct destroyer destroyer = {.id = new_id(channel, RDMA_PS_TCP)};
	struct rdma_cm_event *first, *second;

	write_event(destroyer.id, 1);
	write_event(destroyer.id, 2);
	write_event(destroyer.id, 3);
	assert_success(rdma_get_cm_event(channel, &first));
	assert_success(rdma_get_cm_event(channel, &second));
	assert_int_equal(pthread_create(&destroyer.thread, NULL, destroy, &destroyer), 0);
	sleep_ms(50);
	assert_false(__atomic_load_n(&destroyer.done, __ATOMIC_ACQUIRE));
	/* The third was dropped. */
	assert_false(has_event(channel, 0));
	assert_success(rdma_ack_cm_event(second));
	sleep_ms(50);
	assert_false(__atomic_load_n(&destroyer.done, __ATOMIC_ACQUIRE));
	assert_success(rdma_ack_cm_event(first));
	assert_int_equal(pthread_join(destroyer.thread, NULL), 0);
	rdma_destroy_event_channel(channel);
}

/* Some programs destroy the channel first. */
TEST(test_id_after_channel)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);

	write_event(id, 1);
	rdma_destroy_event_channel(channel);
	/* Its events can no longer be fetched. */
	assert_success(rdma_bind_addr(id, loopback(0)));
	assert_success(rdma_resolve_addr(id, NULL, loopback(7471), TIMEOUT_MS));
	assert_success(rdma_destroy_id(id));
}

/* The child of fork(2) has copies without connections, and can destroy them. */
TEST(test_fork)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
	struct rdma_cm_event *event;
	int status;
	pid_t child;

	write_event(id, 1);
	child = fork();
	if (!child) {
		struct rdma_event_channel *own;
		struct rdma_cm_id *of_own = NULL;
		bool good = rdma_get_cm_event(channel, &event) == -1 && errno == EBADF;

		good &= rdma_bind_addr(id, loopback(0)) == -1 && errno == EBADF;
		good &= !rdma_destroy_id(id);
		rdma_destroy_event_channel(channel);
		own = rdma_create_event_channel();
		good &= own && !rdma_create_id(own, &of_own, NULL, RDMA_PS_TCP);
		good &= !rdma_bind_addr(of_own, loopback(0)) && !rdma_listen(of_own, 1);
		good &= !rdma_destroy_id(of_own);
		rdma_destroy_event_channel(own);
		_exit(good ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	/* The descriptor is shared, but the child has consumed nothing from it. */
	assert_success(rdma_get_cm_event(channel, &event));
	assert_int_equal(number_of(event), 1);
	assert_success(rdma_ack_cm_event(event));
	assert_success(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

TEST(test_names)
{
	assert_string_equal(rdma_event_str(RDMA_CM_EVENT_ADDR_RESOLVED), "RDMA_CM_EVENT_ADDR_RESOLVED");
	assert_string_equal(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT), "RDMA_CM_EVENT_TIMEWAIT_EXIT");
	assert_string_equal(rdma_event_str((enum rdma_cm_event_type)RDMA_CM_EVENT_USER_), "RDMA_CM_EVENT_USER");
	assert_string_equal(rdma_event_str((enum rdma_cm_event_type)99), "UNKNOWN EVENT");
	assert_string_equal(rdma_event_str((enum rdma_cm_event_type) - 1), "UNKNOWN EVENT");
}

TEST(test_no_descriptors)
{
	struct rdma_event_channel *channel = new_channel();
	struct rlimit before, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	errno = 0;
	assert_null(rdma_create_event_channel());
	assert_int_equal(errno, EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	rdma_destroy_event_channel(channel);
}

TEST(test_destroyed_channel)
{
	struct rdma_event_channel *channel = new_channel();
	int fd = channel->fd;

	assert_int_not_equal(fcntl(fd, F_GETFD), -1);
	rdma_destroy_event_channel(channel);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(errno, EBADF);
}
