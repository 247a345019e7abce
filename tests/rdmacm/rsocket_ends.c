/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections that fail, and processes that end without closing: one is killed, one forks. */
#include "rsocket_support.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

TEST(test_refused)
{
	int listener = new_rlistener(1), socket = rsocket(AF_INET, SOCK_STREAM, 0), error;
	uint16_t port = rport_of(listener);
	socklen_t length = sizeof(error);

	assert_success(rclose(listener));
	assert_errno(rconnect(socket, loopback(port), sizeof(struct sockaddr_in)), ECONNREFUSED);
	assert_success(rclose(socket));
	socket = begin_rconnect(port);
	assert_true(rready(socket, POLLOUT, LIMIT_MS) & POLLERR);
	assert_success(rgetsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length));
	assert_int_equal(error, ECONNREFUSED);
	assert_bytes_errno(rsend(socket, "x", 1, 0), ENOTCONN);
	assert_success(rclose(socket));
}

/* As many connections wait as the backlog allows; each is accepted once. */
TEST(test_backlog)
{
	int listener = new_rlistener(8), clients[8], servers[8], index;

	set_nonblocking(listener, true);
	for (index = 0; index < 8; index++)
		clients[index] = begin_rconnect(rport_of(listener));
	for (index = 0; index < 8; index++) {
		assert_int_equal(rready(listener, POLLIN, LIMIT_MS), POLLIN);
		servers[index] = raccept(listener, NULL, NULL);
		assert_true(servers[index] >= 0);
	}
	assert_errno(raccept(listener, NULL, NULL), EAGAIN);
	for (index = 0; index < 8; index++) {
		assert_int_equal(rready(clients[index], POLLOUT, LIMIT_MS), POLLOUT);
		assert_success(rclose(clients[index]));
		assert_success(rclose(servers[index]));
	}
	assert_success(rclose(listener));
}

/* A closed listener rejects waiting connections. */
TEST(test_unaccepted)
{
	int listener = new_rlistener(8), client = begin_rconnect(rport_of(listener));

	assert_int_equal(rready(listener, POLLIN, LIMIT_MS), POLLIN);
	assert_success(rclose(listener));
	assert_true(rready(client, POLLOUT, LIMIT_MS) & POLLERR);
	assert_success(rclose(client));
}

/* As with a kernel socket, the connection of a killed process ends: reads return end of stream, and writes fail. */
TEST(test_killed)
{
	int ends[2], server, listener, status;
	uint16_t port;
	ssize_t got;
	char byte;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		int client;

		if (read(ends[0], &port, sizeof(port)) != sizeof(port))
			_exit(1);
		client = rsocket(AF_INET, SOCK_STREAM, 0);
		if (rconnect(client, loopback(port), sizeof(struct sockaddr_in)) || rsend(client, "x", 1, 0) != 1)
			_exit(2);
		pause();
		_exit(3);
	}
	listener = new_rlistener(1);
	port = rport_of(listener);
	assert_int_equal(write(ends[1], &port, sizeof(port)), sizeof(port));
	assert_int_equal(rready(listener, POLLIN, LIMIT_MS), POLLIN);
	server = raccept(listener, NULL, NULL);
	assert_true(server >= 0);
	assert_int_equal(rrecv(server, &byte, 1, 0), 1);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	/* Either the end of the connection, or once the error of a transfer in progress to the peer. */
	got = rrecv(server, &byte, 1, 0);
	assert_true(!got || (got == -1 && errno == EIO));
	assert_int_equal(rrecv(server, &byte, 1, 0), 0);
	assert_bytes_errno(rsend(server, "x", 1, 0), ECONNRESET);
	assert_success(rclose(server));
	assert_success(rclose(listener));
	close(ends[0]);
	close(ends[1]);
}

/* A child of fork(2) does not own inherited rsockets; closing one leaves it open in the parent. */
TEST(test_forked)
{
	struct rpair pair;
	int status;
	char byte;
	pid_t child;

	rbegin(&pair, -1);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(!(rsend(pair.client, "x", 1, 0) == -1 && errno == EBADF && !rclose(pair.client) &&
			!rclose(pair.server) && !rclose(pair.listener)));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(rsend(pair.client, "y", 1, 0), 1);
	assert_int_equal(rrecv(pair.server, &byte, 1, 0), 1);
	assert_int_equal(byte, 'y');
	rend(&pair);
}

static void *receive_end(void *argument)
{
	char byte;

	return rrecv(*(int *)argument, &byte, 1, 0) ? argument : NULL;
}

/* The same while a thread of the parent sleeps in a call: the child closes the descriptor. */
TEST(test_forked_in_call)
{
	struct rpair pair;
	pthread_t sleeper;
	void *failed;
	int status;
	pid_t child;

	rbegin(&pair, -1);
	assert_int_equal(pthread_create(&sleeper, NULL, receive_end, &pair.server), 0);
	usleep(50000);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(!(!rclose(pair.server) && fcntl(pair.server, F_GETFD) == -1 && errno == EBADF));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_success(rshutdown(pair.client, SHUT_WR));
	assert_int_equal(pthread_join(sleeper, &failed), 0);
	assert_null(failed);
	rend(&pair);
}

/* Connects to @port, sends a byte and waits for the other end to close. */
static bool talk(uint16_t port)
{
	int client = rsocket(AF_INET, SOCK_STREAM, 0);
	char byte;

	return client >= 0 && !rconnect(client, loopback(port), sizeof(struct sockaddr_in)) &&
	       rsend(client, "z", 1, 0) == 1 && !rrecv(client, &byte, 1, 0) && !rclose(client);
}

/* A child of a process with connections makes its own. */
TEST(test_connects_after_fork)
{
	struct rpair pair;
	int status, server;
	uint16_t port;
	char byte;
	pid_t child;

	rbegin(&pair, -1);
	port = rport_of(pair.listener);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(!talk(port));
	assert_int_equal(rready(pair.listener, POLLIN, LIMIT_MS), POLLIN);
	server = raccept(pair.listener, NULL, NULL);
	assert_true(server >= 0);
	assert_int_equal(rrecv(server, &byte, 1, 0), 1);
	assert_int_equal(byte, 'z');
	assert_success(rclose(server));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	rend(&pair);
}

static bool binding; /* atomic */

static void *bind_and_close(void *argument)
{
	while (__atomic_load_n(&binding, __ATOMIC_RELAXED)) {
		int socket = rsocket(AF_INET, SOCK_STREAM, 0);

		if (socket < 0 || rbind(socket, loopback(0), sizeof(struct sockaddr_in)) || rclose(socket))
			return argument;
	}
	return NULL;
}

/* fork(2) waits for a thread that is taking the name of a port, but not forever. */
TEST(test_fork_while_binding)
{
	pthread_t binder;
	int round, status;
	void *failed;

	__atomic_store_n(&binding, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_create(&binder, NULL, bind_and_close, &binding), 0);
	for (round = 0; round < 500; round++) {
		pid_t child = fork();

		assert_true(child >= 0);
		if (!child)
			_exit(0);
		assert_int_equal(waitpid(child, &status, 0), child);
	}
	__atomic_store_n(&binding, false, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(binder, &failed), 0);
	assert_null(failed);
}

int main(void)
{
	/* Another process is reached through shared memory. */
	setenv("SOFTHCA_LINK", "auto", 1);
	return run_cases();
}
