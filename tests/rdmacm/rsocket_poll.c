/* SPDX-License-Identifier: BSD-2-Clause */
/* rpoll() and rselect() of rsocket(7): as poll(2) and select(2), for rsockets and ordinary descriptors. */
#include "rsocket_support.h"

#include <pthread.h>
#include <time.h>

TEST(test_waiting)
{
	struct timeval none = {0};
	struct pollfd readable;
	int ends[2];
	fd_set set;

	assert_int_equal(pipe(ends), 0);
	readable = (struct pollfd){.fd = ends[0], .events = POLLIN};
	assert_int_equal(rpoll(&readable, 1, 0), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(rpoll(&readable, 1, 1000), 1);
	assert_int_equal(readable.revents, POLLIN);
	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	assert_int_equal(rselect(ends[0] + 1, &set, NULL, NULL, &none), 1);
	assert_true(FD_ISSET(ends[0], &set));
	close(ends[0]);
	close(ends[1]);
}

TEST(test_listener)
{
	int listener = new_rlistener(4), client, server;

	assert_int_equal(rready(listener, POLLIN | POLLOUT, 0), 0);
	client = begin_rconnect(rport_of(listener));
	assert_int_equal(rready(listener, POLLIN | POLLOUT, LIMIT_MS), POLLIN);
	server = raccept(listener, NULL, NULL);
	assert_true(server >= 0);
	assert_int_equal(rready(listener, POLLIN, 0), 0);
	assert_int_equal(rready(client, POLLIN | POLLOUT, LIMIT_MS), POLLOUT);
	assert_success(rclose(server));
	assert_success(rclose(client));
	assert_success(rclose(listener));
}

static uint64_t own_time_ms(void)
{
	struct timespec time;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time), 0);
	return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

/*
 * Connections wait, but the call does not ask for them, so it sleeps, as does rselect(). Calls that do ask find all of them
 * meanwhile.
 */
TEST(test_not_asked)
{
	int listener = new_rlistener(4), clients[3], servers[3], index;
	uint16_t port = rport_of(listener);
	struct timeval time = {.tv_usec = 300000};
	struct pollfd fd = {.fd = listener};
	uint64_t before;
	fd_set set;

	set_nonblocking(listener, true);
	for (index = 0; index < 3; index++)
		clients[index] = begin_rconnect(port);
	assert_int_equal(rready(listener, POLLIN, LIMIT_MS), POLLIN);
	for (index = 0; index < 3; index++)
		assert_int_equal(rready(clients[index], POLLOUT, 20), 0);
	before = own_time_ms();
	assert_int_equal(rpoll(&fd, 1, 300), 0);
	FD_ZERO(&set);
	FD_SET(listener, &set);
	assert_int_equal(rselect(listener + 1, NULL, &set, NULL, &time), 0);
	assert_true(own_time_ms() - before < 100);
	for (index = 0; index < 3; index++) {
		assert_int_equal(rready(listener, POLLIN, LIMIT_MS), POLLIN);
		servers[index] = raccept(listener, NULL, NULL);
		assert_true(servers[index] >= 0);
	}
	for (index = 0; index < 3; index++) {
		assert_int_equal(rready(clients[index], POLLOUT, LIMIT_MS), POLLOUT);
		assert_success(rclose(clients[index]));
		assert_success(rclose(servers[index]));
	}
	assert_success(rclose(listener));
}

static void *poll_for_nothing(void *argument)
{
	struct pollfd fd = {.fd = *(int *)argument};

	return rpoll(&fd, 1, 2000) ? argument : NULL;
}

/* A thread that does not ask for connections does not delay threads that do. */
TEST(test_beside_not_asked)
{
	int listener = new_rlistener(4), clients[3], servers[3], index;
	struct timespec begin, end;
	pthread_t sleeper;
	void *failed;

	clients[0] = begin_rconnect(rport_of(listener));
	assert_int_equal(rready(listener, POLLIN, LIMIT_MS), POLLIN);
	assert_int_equal(pthread_create(&sleeper, NULL, poll_for_nothing, &listener), 0);
	usleep(50000);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (index = 0; index < 3; index++) {
		if (index)
			clients[index] = begin_rconnect(rport_of(listener));
		while (index && !rready(listener, POLLIN, 10))
			rready(clients[index], POLLOUT, 1);
		servers[index] = raccept(listener, NULL, NULL);
		assert_true(servers[index] >= 0);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_true(end.tv_sec - begin.tv_sec < 2);
	assert_int_equal(pthread_join(sleeper, &failed), 0);
	assert_null(failed);
	for (index = 0; index < 3; index++) {
		assert_int_equal(rready(clients[index], POLLOUT, LIMIT_MS), POLLOUT);
		assert_success(rclose(clients[index]));
		assert_success(rclose(servers[index]));
	}
	assert_success(rclose(listener));
}

/* rsockets and ordinary descriptors in one list. */
TEST(test_together)
{
	struct rpair pair;
	struct pollfd fds[4];
	int ends[2];
	fd_set readable, writable;
	struct timeval none = {0};
	char byte;

	rbegin(&pair, -1);
	assert_int_equal(pipe(ends), 0);
	fds[0] = (struct pollfd){.fd = ends[0], .events = POLLIN};
	fds[1] = (struct pollfd){.fd = pair.server, .events = POLLIN};
	fds[2] = (struct pollfd){.fd = -1, .events = POLLIN, .revents = 7};
	fds[3] = (struct pollfd){.fd = pair.client, .events = POLLIN};
	assert_int_equal(rpoll(fds, 4, 20), 0);
	assert_int_equal(fds[2].revents, 0);
	assert_int_equal(rsend(pair.client, "x", 1, 0), 1);
	assert_int_equal(rpoll(fds, 4, LIMIT_MS), 1);
	assert_int_equal(fds[1].revents, POLLIN);
	assert_int_equal(write(ends[1], "y", 1), 1);
	assert_int_equal(rpoll(fds, 4, LIMIT_MS), 2);
	assert_int_equal(fds[0].revents, POLLIN);
	assert_int_equal(fds[3].revents, 0);
	FD_ZERO(&readable);
	FD_SET(ends[0], &readable);
	FD_SET(pair.server, &readable);
	FD_SET(pair.client, &readable);
	FD_ZERO(&writable);
	FD_SET(pair.client, &writable);
	assert_int_equal(rselect(FD_SETSIZE, &readable, &writable, NULL, &none), 3);
	assert_true(FD_ISSET(ends[0], &readable));
	assert_true(FD_ISSET(pair.server, &readable));
	assert_false(FD_ISSET(pair.client, &readable));
	assert_true(FD_ISSET(pair.client, &writable));
	assert_int_equal(rrecv(pair.server, &byte, 1, 0), 1);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(rpoll(fds, 4, 0), 0);
	close(ends[0]);
	close(ends[1]);
	rend(&pair);
}

static void *send_later(void *argument)
{
	usleep(50000);
	return rsend(*(int *)argument, "x", 1, 0) == 1 ? NULL : argument;
}

/* It sleeps no longer than needed: all sleepers for one rsocket are woken. */
static void *poll_for_data(void *argument)
{
	return rready(*(int *)argument, POLLIN, LIMIT_MS) == POLLIN ? NULL : argument;
}

TEST(test_sleepers)
{
	pthread_t sleepers[4], sender;
	struct rpair pair;
	void *failed;
	int round;
	size_t index;

	rbegin(&pair, -1);
	for (round = 0; round < 5; round++) {
		char byte;

		for (index = 0; index < 4; index++)
			assert_int_equal(pthread_create(&sleepers[index], NULL, poll_for_data, &pair.server), 0);
		assert_int_equal(pthread_create(&sender, NULL, send_later, &pair.client), 0);
		for (index = 0; index < 4; index++) {
			assert_int_equal(pthread_join(sleepers[index], &failed), 0);
			assert_null(failed);
		}
		assert_int_equal(pthread_join(sender, &failed), 0);
		assert_null(failed);
		assert_int_equal(rrecv(pair.server, &byte, 1, 0), 1);
	}
	rend(&pair);
}

static void *poll_for_ever(void *argument)
{
	struct pollfd fd = {.fd = *(int *)argument, .events = POLLIN};

	return rpoll(&fd, 1, -1) == 1 ? NULL : argument;
}

static void *cancel_sleeper(int *fd)
{
	pthread_t sleeper;
	void *result;

	assert_int_equal(pthread_create(&sleeper, NULL, poll_for_ever, fd), 0);
	usleep(50000);
	assert_int_equal(pthread_cancel(sleeper), 0);
	assert_int_equal(pthread_join(sleeper, &result), 0);
	return result;
}

/* poll(2) is a cancellation point (pthreads(7)); a thread that ended there holds no lock, and others continue. */
TEST(test_cancelled)
{
	pthread_t sleeper;
	struct rpair pair;
	void *failed;
	int ends[2];
	char byte;

#ifdef __SANITIZE_THREAD__
	/* ThreadSanitizer ignores locks in a thread that was cancelled inside an intercepted call. */
	skip();
#endif
	assert_int_equal(pipe(ends), 0);
	assert_ptr_equal(cancel_sleeper(&ends[0]), PTHREAD_CANCELED);
	rbegin(&pair, -1);
	assert_ptr_equal(cancel_sleeper(&pair.server), PTHREAD_CANCELED);
	assert_int_equal(pthread_create(&sleeper, NULL, poll_for_data, &pair.server), 0);
	assert_ptr_equal(cancel_sleeper(&pair.server), PTHREAD_CANCELED);
	assert_int_equal(rsend(pair.client, "x", 1, 0), 1);
	assert_int_equal(pthread_join(sleeper, &failed), 0);
	assert_null(failed);
	assert_int_equal(rrecv(pair.server, &byte, 1, 0), 1);
	rend(&pair);
	close(ends[0]);
	close(ends[1]);
}
