/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets that send datagrams of the connection manager, one for each family, with an error queue (IP_RECVERR,
 * ip(7)); see DESIGN.md, "Hosts without softhca". The connection manager compares the datagram that an ICMP message
 * quotes with those that it has sent, so a forger would have to know the source port and the contents.
 */
#include <errno.h>
#include <time.h>
#include <linux/errqueue.h>
#include <string.h>
#include <sys/epoll.h>

#include "observe/counters.h"
#include "progress/progress.h"
#include "format/opcode.h"
#include "link/udp/parts.h"
#include "wire/mad.h"
#include "wire/roce.h"

/* Bytes of BTH and DETH. */
#define HEADERS 20
/* Errors taken at a time. */
#define MOST_ERRORS 16

static bool error_is_port_unreachable(const struct sock_extended_err *error)
{
	return error->ee_errno == ECONNREFUSED &&
	       (error->ee_origin == SO_EE_ORIGIN_ICMP || error->ee_origin == SO_EE_ORIGIN_ICMP6);
}

static const struct sock_extended_err *message_error(struct msghdr *message)
{
	for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at))
		if (((at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_RECVERR) ||
		     (at->cmsg_level == IPPROTO_IPV6 && at->cmsg_type == IPV6_RECVERR)) &&
		    at->cmsg_len >= CMSG_LEN(sizeof(struct sock_extended_err)))
			return (const struct sock_extended_err *)CMSG_DATA(at);
	return NULL;
}

/* Handles a datagram, @bytes from the BTH on, for which @to has no open port. */
static void datagram_refused(const union ibv_gid *to, const uint8_t *bytes, size_t length)
{
	const struct packet_path path = {.destination = *to, .type = IBV_GID_TYPE_ROCE_V2};
	const uint8_t *mad = bytes + HEADERS;

	/* Some routers quote only the first 8 bytes of a datagram, which do not identify it. */
	if (length < HEADERS + MAD_BYTES || packet_opcodes[bytes[0]].transport != IBV_QPT_UD ||
	    roce_destination(bytes) != GSI_QPN || mad_word(mad) != MAD_CM_WORD ||
	    mad_address(mad).addressee != MAD_FOR_SERVICE || !management)
		return;
	counter_add(first_device(), COUNTER_CM_UNREACHABLE, 1);
	management->lost(first_device(), &path, mad, MAD_UNREACHABLE);
}

/* Takes one error from the queue. Returns false if there is none. */
static bool error_queue_take(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} to;
	uint8_t bytes[HEADERS + MAD_BYTES + ROCE_ICRC_BYTES];
	_Alignas(struct cmsghdr) uint8_t control[512];
	struct iovec vector = {bytes, sizeof(bytes)};
	struct msghdr message = {
		.msg_name = &to,
		.msg_namelen = sizeof(to),
		.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t length = recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT);
	const struct sock_extended_err *error;
	union ibv_gid gid;

	if (length < 0)
		return false;
	error = message_error(&message);
	if (error && error_is_port_unreachable(error) && udp_gid_of_name(&gid, &to.any))
		datagram_refused(&gid, bytes, (size_t)length);
	return true;
}

static void socket_clear_error(int fd)
{
	socklen_t length = sizeof(int);
	int error;

	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
}

static void error_queue_ready(struct watched_fd *socket, uint32_t events)
{
	(void)events;
	for (int i = 0; i < MOST_ERRORS && error_queue_take(socket->fd); i++)
		;
	socket_clear_error(socket->fd);
}

void udp_unreachable_watch(struct watched_fd *refusals, int fd, bool ipv6)
{
	const int on = 1;

	if (ipv6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof(on));
	else
		setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on));
	*refusals = (struct watched_fd){.fd = fd, .ready = error_queue_ready};
	/* Errors are reported without an event mask. If watching fails, requests end by their timeout. */
	progress_watch(refusals, 0);
}
