/* SPDX-License-Identifier: BSD-2-Clause */
/* Passes the port's socket from one process to another, see parts.h. All input is hostile until checked. */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/descriptor.h"
#include "core/descriptor_message.h"
#include "core/limits.h"
#include "explain/explain.h"
#include "explain/limit.h"
#include "link/host/hello.h"
#include "link/udp/parts.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71 /* Linux 5.14 */
#endif

#define MAGIC "softport" /* without a NUL */
#define VERSION 1

struct handover {
	uint8_t magic[8];
	uint32_t version;
	uint32_t reserved; /* 0 */
};

int udp_handover_send(int connection, const struct udp_share *share)
{
	struct handover handover = {.magic = MAGIC, .version = VERSION};
	const int descriptors[] = {share->socket, share->page};

	return descriptor_message_send(connection, &handover, sizeof(handover), descriptors, 2, MSG_DONTWAIT);
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

static bool socket_option_is(int fd, int option, int wanted)
{
	socklen_t length = sizeof(int);
	int value;

	return !getsockopt(fd, SOL_SOCKET, option, &value, &length) && value == wanted;
}

/*
 * Returns true if @fd is of the same network namespace as @own, a socket of this process, or if the kernel does not
 * say.
 */
static bool socket_is_of_this_host(int fd, int own)
{
	uint64_t there = 0, here = 0;
	socklen_t length = sizeof(uint64_t);

	return getsockopt(own, SOL_SOCKET, SO_NETNS_COOKIE, &here, &length) ||
	       (!getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &there, &length) && here == there);
}

/* Returns true if @fd is bound to @port on all addresses, and not connected. */
static bool socket_is_bound(int fd, uint16_t port)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} name = {0}, peer;
	socklen_t length = sizeof(name), peer_length = sizeof(peer);

	if (getsockname(fd, &name.any, &length) || !getpeername(fd, &peer.any, &peer_length))
		return false;
	if (name.any.sa_family == AF_INET)
		return name.v4.sin_port == htobe16(port) && name.v4.sin_addr.s_addr == htobe32(INADDR_ANY);
	return name.any.sa_family == AF_INET6 && name.v6.sin6_port == htobe16(port) &&
	       IN6_IS_ADDR_UNSPECIFIED(&name.v6.sin6_addr);
}

static bool socket_is_the_port(int fd, int own, uint16_t port)
{
	return socket_option_is(fd, SO_TYPE, SOCK_DGRAM) && socket_option_is(fd, SO_PROTOCOL, IPPROTO_UDP) &&
	       socket_is_bound(fd, port) && socket_is_of_this_host(fd, own);
}

static int share_receive(int connection, struct udp_share *share)
{
	struct handover handover;
	int given[2];
	struct descriptor_message message =
		descriptor_message_receive(connection, &handover, sizeof(handover), given, 2, MSG_DONTWAIT);

	if (message.length <= 0)
		return message.length == -EAGAIN || message.length == -EINTR ? -EAGAIN : -ECONNRESET;
	*share = (struct udp_share){descriptor_keep(given[0]), descriptor_keep(given[1])};
	return message.length == sizeof(handover) && !message.truncated &&
			       memcmp(handover.magic, MAGIC, sizeof(handover.magic)) == 0 &&
			       handover.version == VERSION && share->page >= 0
		       ? 0
		       : -EPROTO;
}

void udp_share_close(struct udp_share *share)
{
	descriptor_close(share->socket);
	descriptor_close(share->page);
	*share = (struct udp_share){-1, -1};
}

int udp_handover_receive(int connection, pid_t pid, int own, uint16_t port, struct udp_share *share)
{
	int error;

	*share = (struct udp_share){-1, -1};
	error = share_receive(connection, share);
	if (error == -EAGAIN || error == -ECONNRESET)
		return error;
	if (!error && socket_is_the_port(share->socket, own, port) &&
	    !host_memory_check(share->page, UDP_PAGE_BYTES, pid))
		return 0;
	EXPLAIN_LIMITED(first_device(), (&(const struct explain_subject){0}), LIMIT_EXPLAINED_DROPS,
			RULE_UDP_PORT_NOT_GIVEN, port, (uint64_t)pid);
	udp_share_close(share);
	return -EPROTO;
}
