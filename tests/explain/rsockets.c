/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 880 to 897: rsockets of librdmacm. */
#include "../rdmacm/rsocket_peer.h"
#include "rule_cases.h"

#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int new_stream(void)
{
	int socket = rsocket(AF_INET, SOCK_STREAM, 0);

	assert_true(socket >= 0);
	return socket;
}

RULE_CASE(RSOCKET_NONE)
{
	assert_errno(rclose(0), EBADF);
	expect_refusal(RSOCKET_NONE, "rclose → EBADF: descriptor 0 is not an rsocket, or was closed");
}

RULE_CASE(RSOCKET_KIND)
{
	assert_errno(rsocket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 5), ENOTSUP);
	expect_refusal(RSOCKET_KIND,
		       "rsocket → EOPNOTSUPP: rsockets of domain 1, type 0x80001 and protocol 5 are not supported");
}

RULE_CASE(RSOCKET_NOT_STREAM)
{
	int socket = rsocket(AF_INET, SOCK_DGRAM, 0);

	assert_true(socket >= 0);
	assert_errno(rlisten(socket, 1), EOPNOTSUPP);
	expect_refusal(RSOCKET_NOT_STREAM, "rlisten → EOPNOTSUPP: rsocket %d is a datagram socket", socket);
	assert_success(rclose(socket));
}

RULE_CASE(RSOCKET_STATE)
{
	int socket = new_rlistener(1);

	assert_errno(rbind(socket, loopback(0), sizeof(struct sockaddr_in)), EINVAL);
	expect_refusal(
		RSOCKET_STATE,
		"rbind → EINVAL: rsocket %d is listening, connected or bound, or has been, and the call is not possible in that state",
		socket);
	assert_success(rclose(socket));
}

RULE_CASE(RSOCKET_NOT_CONNECTED)
{
	int socket = new_stream();

	assert_bytes_errno(rwrite(socket, "x", 1), ENOTCONN);
	expect_refusal(RSOCKET_NOT_CONNECTED, "rwrite → ENOTCONN: rsocket %d is not connected", socket);
	assert_success(rclose(socket));
}

RULE_CASE(RSOCKET_ADDRESS)
{
	int socket = new_stream();

	assert_errno(rconnect(socket, loopback(0), 3), EINVAL);
	expect_refusal(RSOCKET_ADDRESS, "rconnect → EINVAL: 3 bytes of address family 2 are not an IP address");
	assert_success(rclose(socket));
}

RULE_CASE(RSOCKET_OPTION)
{
	int socket = new_stream(), value = 1;

	assert_errno(rsetsockopt(socket, SOL_SOCKET, SO_BROADCAST, &value, sizeof(value)), ENOTSUP);
	expect_refusal(RSOCKET_OPTION, "rsetsockopt → EOPNOTSUPP: option 6 of level 1 does not exist");
	assert_success(rclose(socket));
}

RULE_CASE(RSOCKET_OPTION_STATE)
{
	struct rpair pair;
	int value = 100;

	rbegin(&pair, -1);
	assert_errno(rsetsockopt(pair.client, SOL_RDMA, RDMA_SQSIZE, &value, sizeof(value)), EINVAL);
	expect_refusal(
		RSOCKET_OPTION_STATE,
		"rsetsockopt → EINVAL: rsocket %d already has its queues and buffers, and their sizes cannot change",
		pair.client);
	rend(&pair);
}

RULE_CASE(RSOCKET_COMMAND)
{
	int socket = new_stream();

	assert_errno(rfcntl(socket, F_GETOWN), ENOTSUP);
	expect_refusal(RSOCKET_COMMAND, "rfcntl → EOPNOTSUPP: rfcntl() does not have command %d", F_GETOWN);
	assert_success(rclose(socket));
}

RULE_CASE(RSOCKET_FLAGS)
{
	int socket = new_stream();

	assert_bytes_errno(rsend(socket, "x", 1, MSG_OOB), EOPNOTSUPP);
	expect_refusal(RSOCKET_FLAGS, "rsend → EOPNOTSUPP: flags 0x1 request urgent data, which rsockets do not have");
	assert_success(rclose(socket));
}

RULE_CASE(RSOCKET_ANCILLARY)
{
	char control[8];
	struct msghdr message = {.msg_control = control, .msg_controllen = sizeof(control)};
	int socket = new_stream();

	assert_bytes_errno(rsendmsg(socket, &message, 0), EOPNOTSUPP);
	expect_refusal(RSOCKET_ANCILLARY,
		       "rsendmsg → EOPNOTSUPP: there are 8 bytes of ancillary data, which rsockets do not have");
	assert_success(rclose(socket));
}

RULE_CASE(RSOCKET_HOW)
{
	int socket = new_stream();

	assert_errno(rshutdown(socket, 7), EINVAL);
	expect_refusal(RSOCKET_HOW, "rshutdown → EINVAL: 7 is not a direction to shut down");
	assert_success(rclose(socket));
}

RULE_CASE(RSOCKET_MAP)
{
	struct rpair pair;
	char memory[8];

	rbegin(&pair, -1);
	assert_errno((int)riomap(pair.client, memory, 8, PROT_READ, 0, 0), EINVAL);
	expect_refusal(RSOCKET_MAP, "riomap → EINVAL: 8 bytes with protection 0x1 cannot be mapped at offset 0");
	rend(&pair);
}

RULE_CASE(RSOCKET_MAP_FULL)
{
	struct rpair pair;
	char memory[8];

	rbegin(&pair, -1);
	assert_errno((int)riomap(pair.client, memory, 8, PROT_WRITE, 0, 0), ENOMEM);
	expect_refusal(RSOCKET_MAP_FULL, "riomap → ENOMEM: the peer takes 0 mappings, and all are in use");
	rend(&pair);
}

RULE_CASE(RSOCKET_NOT_MAPPED)
{
	struct rpair pair;

	rbegin(&pair, -1);
	assert_bytes_errno((ssize_t)riowrite(pair.client, "x", 1, 0x55, 0), EINVAL);
	expect_refusal(RSOCKET_NOT_MAPPED,
		       "riowrite → EINVAL: the peer has mapped nothing at offset 0x55, or has not reported it yet");
	rend(&pair);
}

RULE_CASE(RSOCKET_UNMAP)
{
	struct rpair pair;

	rbegin(&pair, -1);
	assert_errno(riounmap(pair.client, (void *)0x1000, 8), EINVAL);
	expect_refusal(RSOCKET_UNMAP, "riounmap → EINVAL: no mapping begins at 0x1000 and has 8 bytes");
	rend(&pair);
}

/* Skips the explanations that the connection manager makes around it. */
static struct softhca_explanation newest_of(uint32_t rule)
{
	struct softhca_explanation found[16];
	size_t count = softhca_explanations(client.context, 0, found, 16), index;

	for (index = 0; index < count && found[index].rule != rule; index++)
		;
	assert_true(index < count);
	return found[index];
}

RULE_CASE(RSOCKET_DESCRIPTION)
{
	struct softhca_explanation found;
	struct peer *peer = calloc(1, sizeof(*peer));
	int listener = new_rlistener(2);
	struct rdma_conn_param param = {.private_data = peer->own, .private_data_len = PEER_DESCRIPTION};

	peer_make(peer, listener);
	peer->own[0] = 9;
	assert_success(rdma_connect(peer->id, &param));
	assert_int_equal(rready(listener, POLLIN, LIMIT_MS), POLLIN);
	set_nonblocking(listener, true);
	assert_errno(raccept(listener, NULL, NULL), EAGAIN);
	/* 92 bytes of a REQ, 36 of which are the header. */
	found = newest_of(RULE_RSOCKET_DESCRIPTION);
	expect_explanation(
		&found, RSOCKET_DESCRIPTION,
		" raccept → EPROTO: the other end is not an rsocket: its private data of 56 bytes does not describe version 1");
	peer_end(peer);
	free(peer);
}

RULE_CASE(RSOCKET_PROTOCOL)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	int listener = new_rlistener(1);
	struct softhca_explanation found[8];
	size_t count, index;
	char byte;

	peer_make(peer, listener);
	peer_connect(peer, listener);
	assert_int_equal(rready(peer->socket, POLLOUT, LIMIT_MS), POLLOUT);
	peer_write(peer, 0, 0, 0, 5u << 29 | 77);
	assert_bytes_errno(rrecv(peer->socket, &byte, 1, 0), EPROTO);
	count = softhca_explanations(client.context, 0, found, 8);
	for (index = 0; index < count && found[index].rule != RULE_RSOCKET_PROTOCOL; index++)
		;
	assert_true(index < count);
	expect_explanation(
		&found[index], RSOCKET_PROTOCOL,
		" qp 0x%x rrecv → EPROTO: the peer violated the stream protocol: operation 5 with data 77 and 0 bytes, when it had room for 131072",
		found[index].qp_num);
	peer_end(peer);
	free(peer);
}
