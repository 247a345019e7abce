/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program without RDMA: a server that serves several connections in one loop of poll(2), and returns the data that it gets,
 * and its client. Under librspreload both run over rsockets, with descriptors that are not kernel sockets: each end reports the
 * kind of its own.
 *
 *     sockets PORT            serves CONNECTIONS, then ends
 *     sockets PORT ADDRESS
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONNECTIONS = 4, BYTES = 8 << 20, BLOCK = 1 << 16 };

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int check(int result, const char *what)
{
	if (result < 0)
		fail(what);
	return result;
}

/* fstat(2) is not intercepted by librspreload. */
static bool is_socket(int fd)
{
	struct stat status;

	check(fstat(fd, &status), "fstat");
	return S_ISSOCK(status.st_mode);
}

static const char *kind(int sockets)
{
	return sockets ? "sockets" : "descriptors that are not sockets";
}

struct connection {
	int fd;
	uint8_t block[BLOCK];
	size_t first, end; /* of the data to be returned */
	bool ended;        /* the client sends no more data */
};

/* Handles the events of poll(2). Returns false when the connection is done. */
static bool serve(struct connection *connection)
{
	ssize_t count;

	if (connection->first < connection->end) {
		count = send(connection->fd, connection->block + connection->first, connection->end - connection->first,
			     0);
		if (count < 0 && errno != EAGAIN)
			fail("send");
		if (count > 0)
			connection->first += (size_t)count;
		return true;
	}
	if (connection->ended) {
		check(shutdown(connection->fd, SHUT_WR), "shutdown");
		close(connection->fd);
		return false;
	}
	count = recv(connection->fd, connection->block, sizeof(connection->block), 0);
	if (count < 0 && errno != EAGAIN)
		fail("recv");
	connection->ended = !count;
	connection->first = 0;
	connection->end = count > 0 ? (size_t)count : 0;
	return true;
}

static int server(uint16_t port)
{
	static struct connection connections[CONNECTIONS];
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct pollfd fds[CONNECTIONS + 1];
	int listener = check(socket(AF_INET, SOCK_STREAM, 0), "socket"), one = 1, count = 0, open = 0, sockets = 0, i;

	check(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), "setsockopt");
	check(bind(listener, (struct sockaddr *)&address, sizeof(address)), "bind");
	check(listen(listener, CONNECTIONS), "listen");
	sockets += is_socket(listener);
	while (count < CONNECTIONS || open) {
		fds[CONNECTIONS] = (struct pollfd){.fd = count < CONNECTIONS ? listener : -1, .events = POLLIN};
		for (i = 0; i < CONNECTIONS; i++) {
			struct connection *connection = &connections[i];
			bool sends = connection->first < connection->end || connection->ended;

			fds[i] = (struct pollfd){.fd = connection->fd > 0 ? connection->fd : -1,
						 .events = sends ? POLLOUT : POLLIN};
		}
		check(poll(fds, CONNECTIONS + 1, -1), "poll");
		for (i = 0; i < CONNECTIONS; i++)
			if (fds[i].revents && !serve(&connections[i])) {
				connections[i].fd = 0;
				open--;
			}
		if (fds[CONNECTIONS].revents) {
			int fd = check(accept(listener, NULL, NULL), "accept");

			check(fcntl(fd, F_SETFL, O_NONBLOCK), "fcntl");
			sockets += is_socket(fd);
			connections[count++].fd = fd;
			open++;
		}
	}
	close(listener);
	printf("served %d connections; %s\n", count, kind(sockets));
	return 0;
}

/* Returns the byte that connection @number sends at @place. */
static uint8_t byte_at(int number, size_t place)
{
	return (uint8_t)(place * 31 + place / 251 + (size_t)number);
}

static int client(uint16_t port, const char *host)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fds[CONNECTIONS], sockets = 0, i;
	static uint8_t block[BLOCK];
	size_t place, count, got;

	if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
		return 2;
	for (i = 0; i < CONNECTIONS; i++) {
		fds[i] = check(socket(AF_INET, SOCK_STREAM, 0), "socket");
		check(connect(fds[i], (struct sockaddr *)&address, sizeof(address)), "connect");
		sockets += is_socket(fds[i]);
	}
	for (place = 0; place < BYTES; place += BLOCK)
		for (i = 0; i < CONNECTIONS; i++) {
			for (count = 0; count < BLOCK; count++)
				block[count] = byte_at(i, place + count);
			for (got = 0; got < BLOCK; got += count)
				count = (size_t)check((int)send(fds[i], block + got, BLOCK - got, 0), "send");
			for (got = 0; got < BLOCK; got += count)
				if (!(count = (size_t)check((int)recv(fds[i], block + got, BLOCK - got, 0), "recv")))
					return 3;
			for (count = 0; count < BLOCK; count++)
				if (block[count] != byte_at(i, place + count))
					return 4;
		}
	for (i = 0; i < CONNECTIONS; i++) {
		check(shutdown(fds[i], SHUT_WR), "shutdown");
		if (check((int)recv(fds[i], block, BLOCK, 0), "recv"))
			return 5;
		close(fds[i]);
	}
	printf("%d connections, %d bytes each, right; %s\n", CONNECTIONS, BYTES, kind(sockets));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	return argc > 2 ? client((uint16_t)atoi(argv[1]), argv[2]) : server((uint16_t)atoi(argv[1]));
}
