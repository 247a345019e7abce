/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pthread_cancel(3) of threads in calls on rsockets: calls that replace cancellation points of pthreads(7) are cancellation
 * points, whether they would block or not, and leave a working rsocket; all other calls are not.
 */
#include "rsocket_support.h"

#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/uio.h>

enum { ROUNDS = 200, ROUNDS_AT_MOST = 10000, LARGE = 1 << 20, MAPPED = 4096, PATIENCE_SECONDS = 10 };

static struct rpair pair;
static char large[LARGE];
static bool returned; /* atomic: the call returned */
static int made = -1; /* from rsocket() */

/* ---- the calls, each on the descriptor passed to it -------------------------------------------------------------- */

static struct iovec piece = {.iov_base = large, .iov_len = LARGE};

static void call_raccept(int fd)
{
	raccept(fd, NULL, NULL);
}

static void call_rconnect(int fd)
{
	rconnect(fd, loopback(rport_of(pair.listener)), sizeof(struct sockaddr_in));
}

static void call_rread(int fd)
{
	rread(fd, large, 1);
}

static void call_rreadv(int fd)
{
	rreadv(fd, &piece, 1);
}

static void call_rrecv(int fd)
{
	rrecv(fd, large, 1, 0);
}

static void call_rrecvfrom(int fd)
{
	rrecvfrom(fd, large, 1, 0, NULL, NULL);
}

static void call_rrecvmsg(int fd)
{
	struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};

	rrecvmsg(fd, &message, 0);
}

static void call_rwrite(int fd)
{
	rwrite(fd, large, LARGE);
}

static void call_rwritev(int fd)
{
	rwritev(fd, &piece, 1);
}

static void call_rsend(int fd)
{
	rsend(fd, large, LARGE, 0);
}

static void call_rsendto(int fd)
{
	rsendto(fd, large, LARGE, 0, NULL, 0);
}

static void call_rsendmsg(int fd)
{
	const struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};

	rsendmsg(fd, &message, 0);
}

static void call_riowrite(int fd)
{
	riowrite(fd, large, MAPPED, 0, 0);
}

static void call_rpoll(int fd)
{
	struct pollfd polled = {.fd = fd, .events = POLLIN};

	rpoll(&polled, 1, -1);
}

/* More descriptors than rpoll() keeps on its stack. */
static void call_rpoll_of_many(int fd)
{
	struct pollfd polled[100];

	for (size_t i = 0; i < sizeof(polled) / sizeof(polled[0]); i++)
		polled[i] = (struct pollfd){.fd = i % 2 ? fd : -1, .events = POLLIN};
	rpoll(polled, sizeof(polled) / sizeof(polled[0]), -1);
}

static void call_rselect(int fd)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	rselect(fd + 1, &set, NULL, NULL, NULL);
}

static void call_rclose(int fd)
{
	rclose(fd);
}

static void call_rsocket(int fd)
{
	made = rsocket(AF_INET, SOCK_STREAM, 0);
	(void)fd;
}

static void call_rbind(int fd)
{
	rbind(fd, loopback(0), sizeof(struct sockaddr_in));
}

static void call_rlisten(int fd)
{
	rlisten(fd, 1);
}

static void call_rshutdown(int fd)
{
	rshutdown(fd, SHUT_RD);
}

static void call_options(int fd)
{
	int value = 1;
	socklen_t length = sizeof(value);

	rsetsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, length);
	rgetsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &length);
	rfcntl(fd, F_GETFL);
}

static void call_names(int fd)
{
	struct sockaddr_in name;
	socklen_t length = sizeof(name);

	rgetsockname(fd, (struct sockaddr *)&name, &length);
	rgetpeername(fd, (struct sockaddr *)&name, &length);
}

static void call_iomap(int fd)
{
	riomap(fd, large, MAPPED, PROT_NONE, 0, 0);
	riounmap(fd, large, MAPPED);
}

/* ---- threads that are cancelled ---------------------------------------------------------------------------------- */

struct call {
	void (*make)(int fd);
	int fd;
	bool pending; /* cancelled before the call */
};

static void *make_call(void *argument)
{
	const struct call *call = argument;

	if (call->pending)
		pthread_cancel(pthread_self());
	call->make(call->fd);
	__atomic_store_n(&returned, true, __ATOMIC_RELEASE);
	pthread_testcancel();
	return NULL;
}

/* Returns false if the call returned and the thread was cancelled after it. */
static bool is_cancelled_in(void (*make)(int fd), int fd, bool pending)
{
	struct call call = {make, fd, pending};
	struct timespec end;
	pthread_t thread;
	void *result;

	__atomic_store_n(&returned, false, __ATOMIC_RELEASE);
	assert_int_equal(pthread_create(&thread, NULL, make_call, &call), 0);
	if (!pending) {
		usleep(20000);
		assert_int_equal(pthread_cancel(thread), 0);
	}
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += PATIENCE_SECONDS;
	assert_int_equal(pthread_timedjoin_np(thread, &result, &end), 0);
	if (__atomic_load_n(&returned, __ATOMIC_ACQUIRE))
		return false;
	assert_ptr_equal(result, PTHREAD_CANCELED);
	return true;
}

/* ThreadSanitizer ignores locks in a thread that was cancelled inside an intercepted call. */
static void skip_with_threads_checked(void)
{
#ifdef __SANITIZE_THREAD__
	skip();
#endif
}

/* Checks that a cancelled call holds no reference to the rsocket: rclose() closes its descriptor immediately. */
static void close_now(int fd)
{
	assert_success(rclose(fd));
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void end_pair(void)
{
	close_now(pair.client);
	close_now(pair.server);
	close_now(pair.listener);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static void (*const points[])(int) = {
	call_raccept,   call_rconnect, call_rread,    call_rreadv,  call_rrecv,
	call_rrecvfrom, call_rrecvmsg, call_rwrite,   call_rwritev, call_rsend,
	call_rsendto,   call_rsendmsg, call_riowrite, call_rpoll,   call_rselect,
};
static void (*const others[])(int) = {
	call_rsocket, call_rbind, call_rlisten, call_rshutdown, call_options, call_names, call_iomap,
};

/* A pending request also cancels a call that would not block (pthreads(7)). */
TEST(test_pending)
{
	size_t index;

	skip_with_threads_checked();
	rbegin(&pair, -1);
	set_nonblocking(pair.client, true);
	for (index = 0; index < sizeof(points) / sizeof(*points); index++)
		if (!is_cancelled_in(points[index], pair.client, true))
			fail_msg("point %zu was passed", index);
	for (index = 0; index < sizeof(others) / sizeof(*others); index++)
		if (is_cancelled_in(others[index], pair.client, true))
			fail_msg("other call %zu was cancelled", index);
	assert_success(rclose(made));
	/* Cancelled before the call has any effect. */
	assert_true(is_cancelled_in(call_rclose, pair.client, true));
	end_pair();
}

static void exchange(void)
{
	char byte = 0;

	assert_int_equal(rsend(pair.server, "x", 1, 0), 1);
	assert_int_equal(rrecv(pair.client, &byte, 1, 0), 1);
	assert_int_equal(byte, 'x');
	assert_int_equal(rsend(pair.client, "y", 1, 0), 1);
	assert_int_equal(rrecv(pair.server, &byte, 1, 0), 1);
	assert_int_equal(byte, 'y');
}

TEST(test_reading)
{
	static void (*const calls[])(int) = {call_rread,    call_rreadv, call_rrecv,         call_rrecvfrom,
					     call_rrecvmsg, call_rpoll,  call_rpoll_of_many, call_rselect};
	size_t index;

	skip_with_threads_checked();
	rbegin(&pair, -1);
	for (index = 0; index < sizeof(calls) / sizeof(*calls); index++) {
		assert_true(is_cancelled_in(calls[index], pair.client, false));
		exchange();
	}
	end_pair();
}

static void drain(int fd)
{
	set_nonblocking(fd, true);
	while (rready(fd, POLLIN, 100) && rrecv(fd, large, LARGE, 0) > 0)
		;
	set_nonblocking(fd, false);
}

/* Data sent earlier stays sent. */
TEST(test_writing)
{
	static void (*const calls[])(int) = {call_rwrite,  call_rwritev,  call_rsend,
					     call_rsendto, call_rsendmsg, call_riowrite};
	size_t index;

	skip_with_threads_checked();
	rbegin(&pair, -1);
	for (index = 0; index < sizeof(calls) / sizeof(*calls); index++) {
		/* The peer's buffer is full: neither sends nor mapped writes can continue. */
		set_nonblocking(pair.client, true);
		while (rsend(pair.client, large, LARGE, 0) > 0 || rready(pair.client, POLLOUT, 50))
			;
		set_nonblocking(pair.client, false);
		assert_true(is_cancelled_in(calls[index], pair.client, false));
		drain(pair.server);
		exchange();
	}
	end_pair();
}

TEST(test_connecting)
{
	int listener = new_rlistener(4), client = rsocket(AF_INET, SOCK_STREAM, 0), server;

	skip_with_threads_checked();
	assert_true(client >= 0);
	pair.listener = listener;
	assert_true(is_cancelled_in(call_raccept, listener, false));
	/* The listener does not accept. The connection continues, as after a signal (connect(2)). */
	assert_true(is_cancelled_in(call_rconnect, client, false));
	server = raccept(listener, NULL, NULL);
	assert_true(server >= 0);
	assert_success(rconnect(client, loopback(rport_of(listener)), sizeof(struct sockaddr_in)));
	pair.client = client;
	pair.server = server;
	exchange();
	end_pair();
}

static void *read_to_end(void *argument)
{
	char byte;

	return rrecv(*(int *)argument, &byte, 1, 0) ? argument : NULL;
}

/* A child with a peer that never confirms: rclose() waits, and completes if its thread is cancelled. */
TEST(test_closing)
{
	pthread_t reader;
	void *result;
	int client, server;

	skip_with_threads_checked();
	pair.listener = new_rlistener(4);
	client = begin_rconnect(rport_of(pair.listener));
	/* The client processes the answer only in its own calls, and makes none after this. */
	while (!rready(pair.listener, POLLIN, 10))
		rready(client, POLLIN, 1);
	server = raccept(pair.listener, NULL, NULL);
	assert_true(server >= 0);
	assert_int_equal(pthread_create(&reader, NULL, read_to_end, &server), 0);
	usleep(20000);
	assert_true(is_cancelled_in(call_rclose, server, false));
	assert_int_equal(pthread_join(reader, &result), 0);
	assert_ptr_equal(result, &server);
	assert_int_equal(fcntl(server, F_GETFD), -1);
	assert_true(rready(client, POLLIN, LIMIT_MS) & POLLERR);
	assert_success(rclose(client));
	assert_success(rclose(pair.listener));
}

/* Consecutive numbers; threads that are cancelled at any moment send and take each exactly once. */
static uint64_t sent, taken;

static void *count_on(void *argument)
{
	uint64_t number;

	for (;;) {
		if (rsend(pair.client, &sent, sizeof(sent), 0) != sizeof(sent))
			return argument;
		sent++;
		/* Sometimes takes leftovers too, so that it also waits without data. */
		while (taken < sent) {
			if (rrecv(pair.server, &number, sizeof(number), MSG_WAITALL) != sizeof(number) ||
			    number != taken)
				return argument;
			taken++;
		}
	}
}

TEST(test_any_moment)
{
	pthread_t thread;
	void *result;
	int round;

	skip_with_threads_checked();
	srand(1);
	rbegin(&pair, -1);
	/* A thread on a busy processor may end before it sends: more rounds then. */
	for (round = 0; round < ROUNDS || (sent <= ROUNDS && round < ROUNDS_AT_MOST); round++) {
		assert_int_equal(pthread_create(&thread, NULL, count_on, &pair), 0);
		usleep((useconds_t)(rand() % 2000));
		assert_int_equal(pthread_cancel(thread), 0);
		assert_int_equal(pthread_join(thread, &result), 0);
		assert_ptr_equal(result, PTHREAD_CANCELED);
	}
	assert_true(sent > ROUNDS);
	drain(pair.server);
	exchange();
	end_pair();
}

TEST(test_datagram)
{
	int receiver = rsocket(AF_INET, SOCK_DGRAM, 0), sender = rsocket(AF_INET, SOCK_DGRAM, 0);
	char byte = 0;

	skip_with_threads_checked();
	assert_true(receiver >= 0 && sender >= 0);
	assert_success(rbind(receiver, loopback(0), sizeof(struct sockaddr_in)));
	assert_true(is_cancelled_in(call_rrecvfrom, receiver, false));
	assert_true(is_cancelled_in(call_rpoll, receiver, false));
	assert_int_equal(rsendto(sender, "z", 1, 0, loopback(rport_of(receiver)), sizeof(struct sockaddr_in)), 1);
	assert_int_equal(rrecv(receiver, &byte, 1, 0), 1);
	assert_int_equal(byte, 'z');
	close_now(sender);
	close_now(receiver);
}
