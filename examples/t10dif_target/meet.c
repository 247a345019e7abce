/* SPDX-License-Identifier: BSD-2-Clause */
/* How initiator and target find each other, see protocol.h. */
#include <endian.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol.h"

/* ---- the TCP connection --------------------------------------------------------------------------------------- */

static struct addrinfo *look_up(const char *address, const char *port, int flags)
{
	struct addrinfo hints = {.ai_flags = flags, .ai_socktype = SOCK_STREAM}, *found;
	int error = getaddrinfo(address, port, &hints, &found);

	if (error)
		die("%s port %s: %s", address, port, gai_strerror(error));
	return found;
}

static void print_port(int listener)
{
	struct sockaddr_storage own;
	socklen_t length = sizeof(own);
	char port[8];

	if (getsockname(listener, (struct sockaddr *)&own, &length) ||
	    getnameinfo((struct sockaddr *)&own, length, NULL, 0, port, sizeof(port), NI_NUMERICSERV))
		die("the port cannot be told");
	printf("target: waiting at port %s\n", port);
	fflush(stdout);
}

int accept_initiator(const char *address, const char *port)
{
	struct addrinfo *found = look_up(address, port, AI_PASSIVE);
	int listener = socket(found->ai_family, found->ai_socktype, 0), one = 1, accepted;

	if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(listener, found->ai_addr, found->ai_addrlen) || listen(listener, 1))
		die_errno("waiting at %s port %s", address, port);
	freeaddrinfo(found);
	print_port(listener);
	accepted = accept(listener, NULL, NULL);
	if (accepted < 0)
		die_errno("waiting at %s port %s", address, port);
	close(listener);
	return accepted;
}

int connect_to_target(const char *address, const char *port)
{
	struct addrinfo *found = look_up(address, port, 0);

	for (int tries = 0;; tries++) {
		int connected = socket(found->ai_family, found->ai_socktype, 0);

		if (connected >= 0 && connect(connected, found->ai_addr, found->ai_addrlen) == 0) {
			freeaddrinfo(found);
			return connected;
		}
		if (tries == 100)
			die_errno("connecting to %s port %s", address, port);
		close(connected);
		usleep(50000);
	}
}

/*
 * A GID of RoCE v2 is an IP address: the one that leads to the peer is the one that TCP has chosen. On one host it may
 * have chosen one that no GID has; any leads there.
 */
static void choose_gid(struct end *end, int socket)
{
	struct sockaddr_storage own = {.ss_family = AF_UNSPEC};
	socklen_t length = sizeof(own);
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	if (getsockname(socket, (struct sockaddr *)&own, &length))
		die_errno("the address of the TCP connection");
	if (own.ss_family == AF_INET6)
		memcpy(gid.raw, &((struct sockaddr_in6 *)&own)->sin6_addr, 16);
	else
		memcpy(gid.raw + 12, &((struct sockaddr_in *)&own)->sin_addr, 4);
	end_use_gid(end, &gid);
}

/* ---- what goes over it ---------------------------------------------------------------------------------------- */

static void send_all(int socket, const void *bytes, size_t length)
{
	for (size_t done = 0; done < length;) {
		ssize_t sent = send(socket, (const char *)bytes + done, length - done, MSG_NOSIGNAL);

		if (sent < 0)
			die_errno("sending to the peer");
		done += (size_t)sent;
	}
}

static void receive_all(int socket, void *bytes, size_t length)
{
	for (size_t done = 0; done < length;) {
		ssize_t received = recv(socket, (char *)bytes + done, length - done, 0);

		if (received < 0)
			die_errno("receiving from the peer");
		if (!received)
			die("the peer has gone");
		done += (size_t)received;
	}
}

void wait_for_peer(int socket)
{
	char word = '!';

	send_all(socket, &word, sizeof(word));
	receive_all(socket, &word, sizeof(word));
}

uint32_t meet(struct end *end, int socket, uint32_t blocks)
{
	struct end_address own, peer;
	struct hello mine, theirs;

	choose_gid(end, socket);
	own = end_address(end);
	mine = (struct hello){.qp_num = htobe32(own.qp_num), .blocks = htobe32(blocks)};
	memcpy(mine.gid, own.gid.raw, sizeof(mine.gid));
	send_all(socket, &mine, sizeof(mine));
	receive_all(socket, &theirs, sizeof(theirs));

	peer.qp_num = be32toh(theirs.qp_num);
	memcpy(peer.gid.raw, theirs.gid, sizeof(theirs.gid));
	end_connect_to(end, &peer);
	return be32toh(theirs.blocks);
}

void add_message(struct end *end, uint64_t wr_id, void *message, size_t length)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(end->qp);

	qp->wr_id = wr_id;
	/* Signalled: what has been completed makes room in the queue. */
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, message, length);
}
