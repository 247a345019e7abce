/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets that receive: that of the port and those of groups, see parts.h. */
#include <errno.h>
#include <netinet/udp.h>

#include "core/descriptor.h"
#include "link/udp/parts.h"

/* Values chosen for speed. */
enum {
	/* bytes requested for the receiving socket */
	UDP_RECEIVE_BUFFER_BYTES = 8 << 20,
};

/* Makes datagrams arrive as trains, with their addresses and hop limits. */
static void receiver_set_options(int fd, bool ipv6)
{
	if (ipv6) {
		udp_set_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
		udp_set_option(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
		udp_set_option(fd, IPPROTO_IPV6, IPV6_FLOWINFO, 1);
		/* RoCE has the ICRC, so senders may omit the UDP checksum (annex A17). */
		udp_set_option(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
	} else {
		udp_set_option(fd, IPPROTO_IP, IP_PKTINFO, 1);
	}
	udp_set_option(fd, IPPROTO_IP, IP_RECVTOS, 1);
	udp_set_option(fd, IPPROTO_IP, IP_RECVTTL, 1);
	/* Since Linux 5.0; otherwise each packet takes a system call. */
	udp_set_option(fd, IPPROTO_UDP, UDP_GRO, 1);
	/* Receives only from groups that this socket has joined; the socket of the port has joined none. */
	udp_set_option(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
	if (ipv6)
		udp_set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
}

static void receiver_note_window(int fd)
{
	socklen_t length = sizeof(int);
	int bytes;

	if (!getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &length) && bytes > 0)
		udp_set_window((uint32_t)bytes);
}

int udp_receiver_open(bool *ipv6)
{
	int fd = descriptor_keep(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));

	*ipv6 = fd >= 0;
	if (fd < 0)
		fd = descriptor_keep(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (fd < 0)
		return -errno;
	if (*ipv6)
		udp_set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	receiver_set_options(fd, *ipv6);
	udp_set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, UDP_RECEIVE_BUFFER_BYTES);
	receiver_note_window(fd);
	return fd;
}

int udp_set_consent(int fd, bool consents)
{
	return udp_set_option(fd, SOL_SOCKET, SO_REUSEPORT, consents);
}

int udp_group_open(bool ipv6)
{
	int fd = descriptor_keep(socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));

	if (fd < 0)
		return -errno;
	if (ipv6)
		udp_set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	receiver_set_options(fd, ipv6);
	udp_set_consent(fd, true);
	return fd;
}

void udp_receiver_adopt(int fd)
{
	socklen_t length = sizeof(int);
	int family = AF_INET;

	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length);
	receiver_set_options(fd, family == AF_INET6);
	receiver_note_window(fd);
}
