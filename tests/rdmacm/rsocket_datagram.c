/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams of rsocket(7): each arrives whole, with the address of its sender, first through UDP and then through UD. The headers
 * are compared with rdma-cm 5 by a plain UDP socket. Expected values otherwise: udp(7), recv(2).
 */
#include "rsocket_support.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int new_datagrams(void)
{
	int socket = rsocket(AF_INET, SOCK_DGRAM, 0);

	assert_true(socket >= 0);
	assert_success(rbind(socket, loopback(0), sizeof(struct sockaddr_in)));
	return socket;
}

static ssize_t receive(int socket, char *memory, size_t size, uint16_t *port)
{
	struct sockaddr_in from = {0};
	socklen_t length = sizeof(from);
	ssize_t got;

	assert_int_equal(rready(socket, POLLIN, LIMIT_MS), POLLIN);
	got = rrecvfrom(socket, memory, size, 0, (struct sockaddr *)&from, &length);
	assert_int_equal(length, sizeof(from));
	assert_int_equal(from.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	*port = ntohs(from.sin_port);
	return got;
}

static void test_there_and_back(void **state)
{
	int a = new_datagrams(), b = new_datagrams(), round;
	char memory[100];
	uint16_t port;

	(void)state;
	for (round = 0; round < 20; round++) {
		memset(memory, round, sizeof(memory));
		assert_int_equal(rsendto(a, memory, (size_t)(10 + round), 0, loopback(rport_of(b)),
					 sizeof(struct sockaddr_in)),
				 10 + round);
		memset(memory, 0xee, sizeof(memory));
		assert_int_equal(receive(b, memory, sizeof(memory), &port), 10 + round);
		assert_int_equal(port, rport_of(a));
		assert_int_equal(memory[0], round);
		assert_int_equal(memory[9 + round], round);
		assert_int_equal((uint8_t)memory[10 + round], 0xee);
		assert_int_equal(rsendto(b, "back", 4, 0, loopback(port), sizeof(struct sockaddr_in)), 4);
		assert_int_equal(receive(a, memory, sizeof(memory), &port), 4);
		assert_int_equal(port, rport_of(b));
	}
	assert_bytes_errno(rrecv(a, memory, 1, MSG_DONTWAIT), EAGAIN);
	assert_success(rclose(a));
	assert_success(rclose(b));
}

/* A datagram is taken as a whole, and what does not fit is lost. */
static void test_sizes(void **state)
{
	int a = new_datagrams(), b = new_datagrams();
	static char memory[70000];
	uint16_t port;

	(void)state;
	assert_success(rconnect(a, loopback(rport_of(b)), sizeof(struct sockaddr_in)));
	assert_int_equal(rsend(a, "0123456789", 10, 0), 10);
	assert_int_equal(rsend(a, "next", 4, 0), 4);
	assert_int_equal(receive(b, memory, 3, &port), 3);
	assert_memory_equal(memory, "012", 3);
	assert_int_equal(receive(b, memory, sizeof(memory), &port), 4);
	assert_bytes_errno(rsend(a, memory, sizeof(memory), 0), EMSGSIZE);
	assert_bytes_errno(rsend(b, "x", 1, 0), EDESTADDRREQ);
	assert_success(rclose(a));
	assert_success(rclose(b));
}

/* Of an rsocket that is connected, only its peer's arrive. */
static void test_connected(void **state)
{
	int a = new_datagrams(), b = new_datagrams(), stranger = new_datagrams();
	char memory[10];
	uint16_t port;

	(void)state;
	assert_success(rconnect(a, loopback(rport_of(b)), sizeof(struct sockaddr_in)));
	assert_int_equal(rsendto(stranger, "no", 2, 0, loopback(rport_of(a)), sizeof(struct sockaddr_in)), 2);
	assert_int_equal(rsendto(b, "yes", 3, 0, loopback(rport_of(a)), sizeof(struct sockaddr_in)), 3);
	assert_int_equal(receive(a, memory, sizeof(memory), &port), 3);
	assert_int_equal(port, rport_of(b));
	assert_int_equal(rready(a, POLLIN, 20), 0);
	assert_success(rclose(a));
	assert_success(rclose(b));
	assert_success(rclose(stranger));
}

static void test_headers(void **state)
{
	int a = new_datagrams(), plain = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in own;
	socklen_t length = sizeof(own);
	static const uint8_t bad[][16] = {
		{0x55, 0x55, 0x55, 0x54, 4, 0, 16}, {0x55, 0x55, 0x55, 0x55, 4, 0, 28},
		{0x55, 0x55, 0x55, 0x55, 5, 0, 16}, {0x55, 0x55, 0x55, 0x55, 4, 3, 16},
		{0x55, 0x55, 0x55, 0x55, 6, 0, 28},
	};
	static const uint8_t begin[8] = {0x55, 0x55, 0x55, 0x55, 4, 0, 16, 0}, to[4] = {127, 0, 0, 1};
	uint8_t bytes[64];
	size_t index;

	(void)state;
	assert_int_equal(bind(plain, loopback(0), sizeof(struct sockaddr_in)), 0);
	assert_int_equal(getsockname(plain, (struct sockaddr *)&own, &length), 0);
	assert_int_equal(rsendto(a, "data", 4, 0, (struct sockaddr *)&own, sizeof(own)), 4);
	assert_int_equal(recv(plain, bytes, sizeof(bytes), 0), 20);
	assert_memory_equal(bytes, begin, sizeof(begin));
	/* A number of a QP has 24 bits. */
	assert_int_equal(bytes[8], 0);
	assert_true(bytes[9] || bytes[10] || bytes[11]);
	assert_memory_equal(bytes + 12, to, 4);
	assert_memory_equal(bytes + 16, "data", 4);
	/* What it does not understand it drops. */
	for (index = 0; index < sizeof(bad) / sizeof(bad[0]); index++)
		assert_int_equal(sendto(plain, bad[index], 16, 0, loopback(rport_of(a)), sizeof(own)), 16);
	assert_int_equal(sendto(plain, begin, 5, 0, loopback(rport_of(a)), sizeof(own)), 5);
	assert_int_equal(rready(a, POLLIN, 50), 0);
	/* Data, which it answers. */
	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, begin, sizeof(begin));
	memcpy(bytes + 12, to, 4);
	memcpy(bytes + 16, "plain", 5);
	assert_int_equal(sendto(plain, bytes, 21, 0, loopback(rport_of(a)), sizeof(own)), 21);
	assert_int_equal(rready(a, POLLIN, LIMIT_MS), POLLIN);
	assert_int_equal(rrecv(a, bytes, sizeof(bytes), 0), 5);
	assert_memory_equal(bytes, "plain", 5);
	assert_int_equal(recv(plain, bytes, sizeof(bytes), 0), 16);
	assert_int_equal(bytes[5], 7);
	assert_int_equal(bytes[6], 16);
	close(plain);
	assert_success(rclose(a));
}

/* The network is full of strangers, whose number is no reason not to send to anybody else. */
static void test_strangers(void **state)
{
	static const uint8_t datagram[17] = {0x55, 0x55, 0x55, 0x55, 4, 0, 16, 0, 0, 0, 0, 1, 127, 0, 0, 1, 'x'};
	int a = new_datagrams(), plain = socket(AF_INET, SOCK_DGRAM, 0), number;
	struct sockaddr_in own, from = {.sin_family = AF_INET};
	socklen_t length = sizeof(own);
	uint8_t bytes[64];

	(void)state;
	assert_int_equal(bind(plain, loopback(0), sizeof(struct sockaddr_in)), 0);
	assert_int_equal(getsockname(plain, (struct sockaddr *)&own, &length), 0);
	/* Of 127.1.0.0/16, each with an address of its own. */
	for (number = 0; number < 4200; number++) {
		int stranger = socket(AF_INET, SOCK_DGRAM, 0);

		from.sin_addr.s_addr = htonl(0x7f010001u + (uint32_t)number);
		assert_int_equal(bind(stranger, (struct sockaddr *)&from, sizeof(from)), 0);
		assert_int_equal(sendto(stranger, datagram, sizeof(datagram), 0, loopback(rport_of(a)), sizeof(own)),
				 sizeof(datagram));
		assert_int_equal(rrecv(a, bytes, sizeof(bytes), 0), 1);
		close(stranger);
	}
	assert_int_equal(rsendto(a, "data", 4, 0, (struct sockaddr *)&own, sizeof(own)), 4);
	assert_int_equal(recv(plain, bytes, sizeof(bytes), 0), 20);
	close(plain);
	assert_success(rclose(a));
}

enum { ROUNDS = 1000 };

struct receiver {
	int socket;
	sem_t received;
};

static void *receive_all(void *argument)
{
	struct receiver *receiver = argument;
	int round;
	char byte;

	for (round = 0; round < ROUNDS; round++) {
		if (rrecv(receiver->socket, &byte, 1, 0) != 1 || byte != (char)round)
			return argument;
		sem_post(&receiver->received);
	}
	return NULL;
}

/* What a call that sends finds in the socket is for a thread that sleeps, which it wakes. */
static void test_found_by_sender(void **state)
{
	uint8_t datagram[17] = {0x55, 0x55, 0x55, 0x55, 4, 0, 16, 0, 0, 0, 0, 0, 127, 0, 0, 1, 0};
	struct receiver receiver = {.socket = new_datagrams()};
	int plain = socket(AF_INET, SOCK_DGRAM, 0), round;
	struct timespec limit;
	struct sockaddr_in own, to = *(struct sockaddr_in *)loopback(rport_of(receiver.socket));
	socklen_t length = sizeof(own);
	pthread_t thread;
	void *failed;

	(void)state;
	assert_int_equal(bind(plain, loopback(0), sizeof(struct sockaddr_in)), 0);
	assert_int_equal(getsockname(plain, (struct sockaddr *)&own, &length), 0);
	assert_int_equal(sem_init(&receiver.received, 0, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, receive_all, &receiver), 0);
	for (round = 0; round < ROUNDS; round++) {
		/* It lies down. */
		usleep(200);
		datagram[16] = (uint8_t)round;
		assert_int_equal(sendto(plain, datagram, sizeof(datagram), 0, (struct sockaddr *)&to, sizeof(to)),
				 sizeof(datagram));
		assert_int_equal(rsendto(receiver.socket, "x", 1, 0, (struct sockaddr *)&own, sizeof(own)), 1);
		assert_int_equal(clock_gettime(CLOCK_REALTIME, &limit), 0);
		limit.tv_sec += 5;
		assert_int_equal(sem_timedwait(&receiver.received, &limit), 0);
	}
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	sem_destroy(&receiver.received);
	close(plain);
	assert_success(rclose(receiver.socket));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_connected),      cmocka_unit_test(test_headers),
		cmocka_unit_test(test_strangers),      cmocka_unit_test(test_found_by_sender),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
