/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams of rsocket(7): all bytes arrive once and in order, in pieces of any size, blocking or not; ends of a direction and of
 * the connection. "Rsocket APIs are intended to match the behavior of corresponding socket calls, except where noted", so the
 * expected values are those of send(2), recv(2), shutdown(2), getpeername(2).
 */
#include "rsocket_support.h"

#include <pthread.h>

TEST(test_message)
{
	struct rpair pair;
	char text[64] = {0};

	rbegin(&pair, -1);
	assert_int_equal(rsend(pair.client, "question", 8, 0), 8);
	assert_int_equal(rrecv(pair.server, text, sizeof(text), 0), 8);
	assert_string_equal(text, "question");
	assert_int_equal(rwrite(pair.server, "answer", 6), 6);
	memset(text, 0, sizeof(text));
	assert_int_equal(rread(pair.client, text, sizeof(text)), 6);
	assert_string_equal(text, "answer");
	rend(&pair);
}

/* Receives parts of a message, several messages at once, with MSG_PEEK, and with MSG_WAITALL. */
TEST(test_parts)
{
	struct rpair pair;
	char text[16] = {0};

	rbegin(&pair, -1);
	assert_int_equal(rsend(pair.client, "abcdef", 6, 0), 6);
	assert_int_equal(rsend(pair.client, "ghi", 3, 0), 3);
	assert_int_equal(rrecv(pair.server, text, 2, 0), 2);
	assert_memory_equal(text, "ab", 2);
	assert_int_equal(rrecv(pair.server, text, 7, MSG_WAITALL | MSG_PEEK), 7);
	assert_memory_equal(text, "cdefghi", 7);
	assert_int_equal(rrecv(pair.server, text, sizeof(text), MSG_DONTWAIT), 7);
	assert_memory_equal(text, "cdefghi", 7);
	assert_bytes_errno(rrecv(pair.server, text, 1, MSG_DONTWAIT), EAGAIN);
	assert_int_equal(rrecv(pair.server, text, 0, 0), 0);
	rend(&pair);
}

TEST(test_vectors)
{
	char a[3] = "abc", b[300], into_a[100], into_b[203];
	struct iovec out[3] = {{a, 3}, {NULL, 0}, {b, sizeof(b)}}, in[2] = {{into_a, 100}, {into_b, 203}};
	struct msghdr message = {.msg_iov = out, .msg_iovlen = 3};
	struct rpair pair;

	fill_stream(b, sizeof(b), 0);
	rbegin(&pair, -1);
	assert_int_equal(rwritev(pair.client, out, 3), 303);
	assert_int_equal(rrecv(pair.server, into_a, 100, MSG_PEEK | MSG_WAITALL), 100);
	assert_int_equal(rreadv(pair.server, in, 2), 303);
	assert_memory_equal(into_a, "abc", 3);
	assert_true(is_of_stream(into_a + 3, 97, 0));
	assert_true(is_of_stream(into_b, 203, 97));
	assert_int_equal(rsendmsg(pair.client, &message, 0), 303);
	message = (struct msghdr){.msg_iov = in, .msg_iovlen = 2, .msg_flags = -1};
	memset(into_b, 0, sizeof(into_b));
	assert_int_equal(rrecvmsg(pair.server, &message, 0), 303);
	assert_int_equal(message.msg_flags, 0);
	assert_true(is_of_stream(into_b, 203, 97));
	message.msg_control = a;
	message.msg_controllen = sizeof(a);
	assert_bytes_errno(rsendmsg(pair.client, &message, 0), EOPNOTSUPP);
	rend(&pair);
}

#define MUCH ((size_t)12 << 20)

static void *send_much(void *argument)
{
	char *memory = malloc(MUCH);
	size_t place = 0, size = 1;

	fill_stream(memory, MUCH, 0);
	while (place < MUCH) {
		size_t now = size < MUCH - place ? size : MUCH - place;

		if (rsend(*(int *)argument, memory + place, now, 0) != (ssize_t)now)
			break;
		place += now;
		size = size * 3 % 300007 + 1;
	}
	free(memory);
	return place == MUCH ? NULL : argument;
}

static void receive_much(int socket)
{
	char memory[70001];
	size_t place = 0, size = 1;

	while (place < MUCH) {
		ssize_t got = rrecv(socket, memory, size, 0);

		assert_true(got > 0);
		assert_true(is_of_stream(memory, (size_t)got, place));
		place += (size_t)got;
		size = size * 5 % sizeof(memory) + 1;
	}
}

/* One direction after the other: rings wrap many times. */
TEST(test_much)
{
	struct rpair pair;
	pthread_t sender;
	void *failed;

	rbegin(&pair, -1);
	assert_int_equal(pthread_create(&sender, NULL, send_much, &pair.client), 0);
	receive_much(pair.server);
	assert_int_equal(pthread_join(sender, &failed), 0);
	assert_null(failed);
	assert_int_equal(pthread_create(&sender, NULL, send_much, &pair.server), 0);
	receive_much(pair.client);
	assert_int_equal(pthread_join(sender, &failed), 0);
	assert_null(failed);
	rend(&pair);
}

static void *echo(void *argument)
{
	static char memory[5000];
	ssize_t got;

	while ((got = rrecv(*(int *)argument, memory, sizeof(memory), 0)) > 0)
		if (rsend(*(int *)argument, memory, (size_t)got, 0) != got)
			return argument;
	return got ? argument : NULL;
}

/* One thread sends and another receives at one end, and an echo comes from the other. */
TEST(test_two_threads_at_one_end)
{
	struct rpair pair;
	pthread_t sender, echoer;
	void *failed;

	rbegin(&pair, -1);
	assert_int_equal(pthread_create(&echoer, NULL, echo, &pair.server), 0);
	assert_int_equal(pthread_create(&sender, NULL, send_much, &pair.client), 0);
	receive_much(pair.client);
	assert_int_equal(pthread_join(sender, &failed), 0);
	assert_null(failed);
	assert_success(rshutdown(pair.client, SHUT_WR));
	assert_int_equal(pthread_join(echoer, &failed), 0);
	assert_null(failed);
	rend(&pair);
}

TEST(test_nonblocking)
{
	struct rpair pair;
	size_t sent = 0, got = 0;
	char memory[3001];
	ssize_t result;

	rbegin(&pair, -1);
	set_nonblocking(pair.client, true);
	assert_int_equal(rfcntl(pair.client, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	set_nonblocking(pair.server, true);
	assert_bytes_errno(rrecv(pair.server, memory, 1, 0), EAGAIN);
	for (;;) {
		fill_stream(memory, sizeof(memory), sent);
		result = rsend(pair.client, memory, sizeof(memory), 0);
		if (result < 0)
			break;
		assert_true(result > 0);
		sent += (size_t)result;
	}
	assert_int_equal(errno, EAGAIN);
	/* The peer's ring of 128 KiB, plus at most our own. */
	assert_in_range(sent, 128 << 10, 256 << 10);
	assert_int_equal(rready(pair.client, POLLOUT, 0), 0);
	while (got < sent) {
		result = rrecv(pair.server, memory, sizeof(memory), 0);
		if (result < 0) {
			assert_int_equal(errno, EAGAIN);
			assert_int_equal(rready(pair.server, POLLIN, LIMIT_MS), POLLIN);
			continue;
		}
		assert_true(is_of_stream(memory, (size_t)result, got));
		got += (size_t)result;
	}
	assert_int_equal(rready(pair.client, POLLOUT, LIMIT_MS), POLLOUT);
	assert_int_equal(rsend(pair.client, "x", 1, 0), 1);
	rend(&pair);
}

TEST(test_names)
{
	struct sockaddr_in own, peer;
	socklen_t length = sizeof(own);
	struct rpair pair;

	rbegin(&pair, -1);
	assert_success(rgetsockname(pair.client, (struct sockaddr *)&own, &length));
	length = sizeof(peer);
	assert_success(rgetpeername(pair.server, (struct sockaddr *)&peer, &length));
	assert_int_equal(length, sizeof(peer));
	assert_int_equal(own.sin_port, peer.sin_port);
	assert_int_equal(own.sin_addr.s_addr, peer.sin_addr.s_addr);
	length = sizeof(peer);
	assert_success(rgetpeername(pair.client, (struct sockaddr *)&peer, &length));
	assert_int_equal(ntohs(peer.sin_port), rport_of(pair.listener));
	length = 4;
	memset(&peer, 0xee, sizeof(peer));
	assert_success(rgetpeername(pair.client, (struct sockaddr *)&peer, &length));
	assert_int_equal(length, sizeof(peer));
	assert_int_equal(peer.sin_addr.s_addr, 0xeeeeeeee);
	length = sizeof(peer);
	assert_errno(rgetpeername(pair.listener, (struct sockaddr *)&peer, &length), ENOTCONN);
	rend(&pair);
}

TEST(test_half_close)
{
	struct rpair pair;
	char text[8];

	rbegin(&pair, -1);
	assert_int_equal(rsend(pair.client, "last", 4, 0), 4);
	assert_success(rshutdown(pair.client, SHUT_WR));
	assert_bytes_errno(rsend(pair.client, "x", 1, 0), EPIPE);
	/* Data sent earlier is read first. */
	assert_int_equal(rrecv(pair.server, text, sizeof(text), MSG_WAITALL), 4);
	assert_int_equal(rrecv(pair.server, text, sizeof(text), 0), 0);
	assert_int_equal(rrecv(pair.server, text, sizeof(text), 0), 0);
	assert_int_equal(rready(pair.server, POLLIN, 0), POLLIN);
	/* The other direction still works. */
	assert_int_equal(rsend(pair.server, "reply", 5, 0), 5);
	assert_int_equal(rrecv(pair.client, text, 5, MSG_WAITALL), 5);
	assert_memory_equal(text, "reply", 5);
	assert_success(rshutdown(pair.server, SHUT_WR));
	assert_int_equal(rrecv(pair.client, text, sizeof(text), 0), 0);
	rend(&pair);
}

TEST(test_close)
{
	struct rpair pair;
	char memory[100];

	rbegin(&pair, -1);
	assert_int_equal(rsend(pair.client, "bye", 3, 0), 3);
	assert_success(rclose(pair.client));
	assert_errno(rclose(pair.client), EBADF);
	/* End of stream is reported too, without an error while data is left to read. */
	assert_int_equal(rready(pair.server, POLLIN, LIMIT_MS), POLLIN);
	assert_int_equal(rrecv(pair.server, memory, sizeof(memory), MSG_WAITALL), 3);
	assert_int_equal(rrecv(pair.server, memory, sizeof(memory), 0), 0);
	assert_bytes_errno(rsend(pair.server, memory, sizeof(memory), 0), ECONNRESET);
	assert_int_equal(rready(pair.server, POLLIN, 0), POLLIN | POLLHUP);
	assert_success(rclose(pair.server));
	assert_success(rclose(pair.listener));
}

static void *receive_one(void *argument)
{
	char byte;

	return (void *)(intptr_t)rrecv(*(int *)argument, &byte, 1, 0);
}

/* Shutting down its own end wakes a thread that sleeps in rrecv(), as for a kernel socket. */
TEST(test_shutdown_wakes)
{
	struct rpair pair;
	pthread_t sleeper;
	void *result;

	rbegin(&pair, -1);
	assert_int_equal(pthread_create(&sleeper, NULL, receive_one, &pair.server), 0);
	usleep(50000);
	assert_success(rshutdown(pair.server, SHUT_RDWR));
	assert_int_equal(pthread_join(sleeper, &result), 0);
	assert_null(result);
	assert_errno(rshutdown(pair.server, 7), EINVAL);
	rend(&pair);
}

TEST(test_not_connected)
{
	int socket = rsocket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
	/* Too short even for a family: nothing after it is read. */
	void *short_address = malloc(1);
	char byte;

	assert_true(socket >= 0);
	memset(short_address, AF_INET, 1);
	assert_errno(rconnect(socket, short_address, 1), EINVAL);
	free(short_address);
	assert_bytes_errno(rsend(socket, "x", 1, 0), ENOTCONN);
	assert_bytes_errno(rrecv(socket, &byte, 1, 0), ENOTCONN);
	assert_errno(rshutdown(socket, SHUT_WR), ENOTCONN);
	assert_errno(raccept(socket, NULL, NULL), EINVAL);
	assert_success(rclose(socket));
	assert_bytes_errno(rsend(socket, "x", 1, 0), EBADF);
	assert_errno(rlisten(socket, 1), EBADF);
	assert_errno(rsocket(AF_UNIX, SOCK_STREAM, 0), ENOTSUP);
	assert_errno(rsocket(AF_INET, SOCK_RAW, 0), ENOTSUP);
	assert_errno(rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP), ENOTSUP);
}
