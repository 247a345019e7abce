/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plain UDP between two processes, the upper bound for a link over UDP: a ping-pong, and a stream of datagrams that the kernel
 * segments and joins (UDP_SEGMENT, UDP_GRO), with credits so that none is lost. A receiver of RDMA has to look at the data: with
 * --read, so does this one, once. With --message, calls are as short as those of a link over UDP that sends WRITEs of so many
 * bytes: the first packet is longer than the others by its RETH, so only the second one can leave in the same call. With
 * --addressed, the ping-pong makes the calls of such a link: its sockets are not connected, since one of them receives from
 * all peers; a datagram leaves with its source address, arrives with its addresses, traffic class and hop limit, and
 * brings an acknowledgement as a second datagram in the same call.
 *
 *	softhca-bench-raw-udp ping-pong|stream [--connect ADDRESS] [--port N] [--cpu N] [--size N] [--seconds T] [--blocking]
 *	                      [--read] [--message N] [--addressed]
 *
 * --size: bytes of a datagram. Without --connect it is the server. The client prints "name value".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "affinity.h"

enum {
	TRAIN = 61440,    /* bytes per call, and at most 64 datagrams */
	WINDOW = 24,      /* trains in flight */
	CREDIT_EVERY = 4, /* trains */
	SOCKET_BYTES = 16 << 20,
	ACK_BYTES = 20, /* BTH, AETH, ICRC */
};

static uint8_t buffer[1 << 16];
static struct {
	const char *address;
	uint16_t port;
	int cpu;
	uint32_t size, message;
	double seconds;
	bool blocking, read, addressed;
} options = {.port = 18601, .cpu = -1, .size = 8, .seconds = 0.2};

static struct sockaddr_in peer; /* with --addressed */

static void fail(const char *what)
{
	fprintf(stderr, "softhca-bench-raw-udp: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void set(int fd, int level, int option, int value)
{
	if (setsockopt(fd, level, option, &value, sizeof(value)))
		fail("setsockopt");
}

/* Sets the largest size allowed: root may exceed the limit. */
static void enlarge(int fd)
{
	int bytes = SOCKET_BYTES;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

/* As recv(). With --addressed, gets what a link needs to know of a datagram, and keeps its sender as the peer. */
static ssize_t receive_once(int fd)
{
	_Alignas(struct cmsghdr) uint8_t control[256];
	struct iovec vector = {buffer, sizeof(buffer)};
	struct msghdr message = {
		.msg_name = &peer,
		.msg_namelen = sizeof(peer),
		.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};

	return options.addressed ? recvmsg(fd, &message, MSG_DONTWAIT) : recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
}

/* As send() to the peer. With --addressed, an acknowledgement follows each datagram. */
static ssize_t transmit_once(int fd, size_t length)
{
	_Alignas(struct cmsghdr) uint8_t control[128] = {0};
	struct iovec vector = {buffer, length + ACK_BYTES};
	struct msghdr message = {
		.msg_name = &peer,
		.msg_namelen = sizeof(peer),
		.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = CMSG_SPACE(sizeof(struct in_pktinfo)) + CMSG_SPACE(sizeof(uint16_t)),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	uint16_t segment = (uint16_t)length;

	if (!options.addressed)
		return send(fd, buffer, length, 0);
	/* A word at the start. */
	if (length < ACK_BYTES)
		return sendto(fd, buffer, length, 0, (struct sockaddr *)&peer, sizeof(peer));
	header->cmsg_level = IPPROTO_IP;
	header->cmsg_type = IP_PKTINFO;
	header->cmsg_len = CMSG_LEN(sizeof(struct in_pktinfo));
	header = CMSG_NXTHDR(&message, header);
	header->cmsg_level = IPPROTO_UDP;
	header->cmsg_type = UDP_SEGMENT;
	header->cmsg_len = CMSG_LEN(sizeof(segment));
	memcpy(CMSG_DATA(header), &segment, sizeof(segment));
	return sendmsg(fd, &message, 0);
}

/* Receives one datagram, or several joined ones; waits at most @seconds. Returns 0 on timeout. */
static size_t receive(int fd, double seconds)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	double end = now() + seconds;

	for (;;) {
		ssize_t got;

		if (options.blocking && poll(&wait, 1, (int)(seconds * 1e3)) == 0)
			return 0;
		for (int i = 0; i < 10000; i++) {
			got = receive_once(fd);
			if (got >= 0)
				return (size_t)got;
			if (errno == ECONNREFUSED)
				continue;
			if (errno != EAGAIN)
				fail("recv");
			if (options.blocking)
				break;
		}
		if (now() > end)
			return 0;
	}
}

static void transmit(int fd, size_t length)
{
	while (transmit_once(fd, length) < 0)
		if (errno != ECONNREFUSED && errno != EAGAIN && errno != ENOBUFS)
			fail("send");
}

/* Reads @length bytes of the buffer. Returns a value that depends on all of them. */
static uint64_t sum(size_t length)
{
	uint64_t result = 0, word;

	for (size_t i = 0; i + sizeof(word) <= length; i += sizeof(word)) {
		memcpy(&word, buffer + i, sizeof(word));
		result += word;
	}
	return result;
}

static void socket_set_peer(int fd, const struct sockaddr_in *address)
{
	peer = *address;
	if (!options.addressed && connect(fd, (const struct sockaddr *)address, sizeof(*address)))
		fail("connect");
}

/* Opens a socket; the server waits for a word from the peer to get its address. */
static int open_socket(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(options.port)};
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0)
		fail("socket");
	enlarge(fd);
	if (options.addressed) {
		set(fd, IPPROTO_IP, IP_PKTINFO, 1);
		set(fd, IPPROTO_IP, IP_RECVTOS, 1);
		set(fd, IPPROTO_IP, IP_RECVTTL, 1);
		set(fd, SOL_UDP, UDP_GRO, 1);
	}
	if (options.address) {
		if (inet_pton(AF_INET, options.address, &address.sin_addr) != 1)
			fail(options.address);
		socket_set_peer(fd, &address);
		do
			transmit(fd, 1);
		while (!receive(fd, 0.01));
	} else {
		if (bind(fd, (struct sockaddr *)&address, sizeof(address)))
			fail("bind");
		if (recvfrom(fd, buffer, 1, 0, (struct sockaddr *)&address, &length) < 0)
			fail("recvfrom");
		socket_set_peer(fd, &address);
		transmit(fd, 1);
	}
	return fd;
}

/* ---- ping-pong ------------------------------------------------------------------------------------------------ */

static void ping_pong(int fd)
{
	uint64_t count = 0;
	double begin, end;

	if (!options.address) {
		/* Until the client stops. */
		for (size_t got = receive(fd, 2); got; got = receive(fd, 0.5))
			if (got >= options.size)
				transmit(fd, options.size);
		return;
	}
	while (receive(fd, 0.02))
		;
	begin = now();
	end = begin + options.seconds;
	for (; count % 64 || now() < end; count++) {
		transmit(fd, options.size);
		if (!receive(fd, 1)) {
			errno = ETIMEDOUT;
			fail("a datagram is lost");
		}
	}
	printf("half_round_trip_us %.4f\n", (now() - begin) * 1e6 / (double)count / 2);
}

/* ---- stream --------------------------------------------------------------------------------------------------- */

/* Returns the bytes of the call that follows @sent bytes. */
static size_t next_train(uint64_t sent, size_t most)
{
	size_t at, left;

	if (!options.message)
		return most;
	at = sent % options.message;
	left = options.message - at;
	if (!at && left > 2 * (size_t)options.size)
		left = 2 * (size_t)options.size;
	return left < most ? left : most;
}

static void stream(int fd)
{
	size_t datagrams = TRAIN / options.size > 64 ? 64 : TRAIN / options.size, train = datagrams * options.size;
	uint64_t sent = 0, granted = 0, received = 0, told = 0;
	volatile uint64_t seen = 0;
	double begin, end;

	if (!options.address) {
		set(fd, SOL_UDP, UDP_GRO, 1);
		for (size_t got = receive(fd, 2); got; got = receive(fd, 0.5)) {
			received += got;
			if (options.read)
				seen = seen + sum(got);
			if (got > 8 && received - told >= CREDIT_EVERY * train) {
				told = received;
				memcpy(buffer, &told, sizeof(told));
				transmit(fd, sizeof(told));
			}
		}
		return;
	}
	set(fd, SOL_UDP, UDP_SEGMENT, (int)options.size);
	begin = now();
	end = begin + options.seconds;
	while (now() < end) {
		if (sent - granted < WINDOW * train) {
			size_t next = next_train(sent, train);

			transmit(fd, next);
			sent += next;
		}
		while (sent - granted >= WINDOW * train ? receive(fd, 1) : recv(fd, buffer, 8, MSG_DONTWAIT) == 8)
			memcpy(&granted, buffer, sizeof(granted));
		if (now() > end + 0.9) {
			errno = ETIMEDOUT;
			fail("datagrams are lost");
		}
	}
	printf("bytes_per_second %.0f\n", (double)granted / (now() - begin));
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"connect", required_argument, NULL, 'a'}, {"port", required_argument, NULL, 'p'},
		{"cpu", required_argument, NULL, 'c'},     {"size", required_argument, NULL, 's'},
		{"seconds", required_argument, NULL, 't'}, {"blocking", no_argument, NULL, 'b'},
		{"read", no_argument, NULL, 'r'},          {"message", required_argument, NULL, 'm'},
		{"addressed", no_argument, NULL, 'd'},     {NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (option) {
		case 'a':
			options.address = optarg;
			break;
		case 'p':
			options.port = (uint16_t)atoi(optarg);
			break;
		case 'c':
			options.cpu = atoi(optarg);
			break;
		case 's':
			options.size = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 't':
			options.seconds = atof(optarg);
			break;
		case 'b':
			options.blocking = true;
			break;
		case 'r':
			options.read = true;
			break;
		case 'm':
			options.message = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'd':
			options.addressed = true;
			break;
		default:
			return 2;
		}
	}
	if (options.cpu >= 0)
		stay_on(options.cpu);
	if (options.size < 2 || options.size > TRAIN || optind + 1 != argc)
		return 2;
	if (options.message % options.size || (options.addressed && options.size < ACK_BYTES))
		return 2;
	if (strcmp(argv[optind], "ping-pong") == 0)
		ping_pong(open_socket());
	else if (strcmp(argv[optind], "stream") == 0 && !options.addressed)
		stream(open_socket());
	else
		return 2;
	return 0;
}
