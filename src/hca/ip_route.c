/* SPDX-License-Identifier: BSD-2-Clause */
/* Routes and neighbours. */
#include "hca/ip_route.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* Destination ports of lookups: RoCE's, because routing rules may match it; discard (RFC 863) for probes. */
enum { ROCE_PORT = 4791, DISCARD_PORT = 9 };

/* States in which the kernel has a link address, or needs none (NUD_VALID of Linux). */
#define KNOWN_STATES (NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY)

/* The answer has some ten attributes. */
enum { REQUEST_BYTES = 256, ANSWER_BYTES = 4096 };

/* Maximum wait for an answer; rtnetlink normally answers within send(2). */
static const struct timeval patience = {.tv_usec = 200000};

union name {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* ---- sockets ----------------------------------------------------------------------------------------------------- */

static socklen_t socket_address_of(const union ibv_gid *gid, uint32_t ifindex, uint16_t port, union name *name)
{
	memset(name, 0, sizeof(*name));
	if (gid_is_ipv4(gid)) {
		name->v4.sin_family = AF_INET;
		name->v4.sin_port = htobe16(port);
		memcpy(&name->v4.sin_addr, gid->raw + 12, sizeof(name->v4.sin_addr));
		return sizeof(name->v4);
	}
	name->v6.sin6_family = AF_INET6;
	name->v6.sin6_port = htobe16(port);
	name->v6.sin6_scope_id = gid_is_link_local(gid) ? ifindex : 0;
	memcpy(&name->v6.sin6_addr, gid, sizeof(name->v6.sin6_addr));
	return sizeof(name->v6);
}

/* Opens a UDP socket bound to @source. Returns a negative errno on failure. */
static int socket_open_at(const struct hca_gid *source)
{
	union name name;
	socklen_t size = socket_address_of(&source->gid, source->ifindex, 0, &name);
	int on = 1, fd = socket(name.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	/* Otherwise a broadcast address also results in EACCES. */
	setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on));
	if (!bind(fd, &name.any, size))
		return fd;
	close(fd);
	return -EADDRNOTAVAIL;
}

/* ---- rtnetlink --------------------------------------------------------------------------------------------------- */

struct request {
	_Alignas(struct nlmsghdr) uint8_t bytes[REQUEST_BYTES];
	uint32_t length;
};

struct answer {
	_Alignas(struct nlmsghdr) uint8_t bytes[ANSWER_BYTES];
	ssize_t length;
};

/* Starts a request of @type with the fixed part @body. */
static void request_begin(struct request *request, uint16_t type, const void *body, size_t size)
{
	struct nlmsghdr header = {.nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST};

	memset(request, 0, sizeof(*request));
	memcpy(request->bytes, &header, sizeof(header));
	memcpy(request->bytes + NLMSG_HDRLEN, body, size);
	request->length = NLMSG_LENGTH((uint32_t)size);
}

static void request_add(struct request *request, uint16_t type, const void *value, size_t size)
{
	struct rtattr attribute = {.rta_type = type, .rta_len = (uint16_t)RTA_LENGTH(size)};
	uint8_t *at = request->bytes + NLMSG_ALIGN(request->length);

	memcpy(at, &attribute, sizeof(attribute));
	memcpy(at + RTA_LENGTH(0), value, size);
	request->length = NLMSG_ALIGN(request->length) + (uint32_t)RTA_ALIGN(attribute.rta_len);
}

static void request_add_address(struct request *request, uint16_t type, const union ibv_gid *gid)
{
	bool ipv4 = gid_is_ipv4(gid);

	request_add(request, type, ipv4 ? gid->raw + 12 : gid->raw, ipv4 ? 4 : 16);
}

static uint8_t gid_family(const union ibv_gid *gid)
{
	return gid_is_ipv4(gid) ? AF_INET : AF_INET6;
}

/* Returns 0, the negative errno in the kernel's answer, or -EIO. */
static int rtnetlink_ask(struct request *request, uint16_t expected, struct answer *answer)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	struct nlmsghdr *header = (struct nlmsghdr *)(void *)answer->bytes;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), error = -EIO;
	uint32_t length = request->length;

	if (fd < 0)
		return -EIO;
	memcpy(request->bytes + offsetof(struct nlmsghdr, nlmsg_len), &length, sizeof(length));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	answer->length = -1;
	if (sendto(fd, request->bytes, length, 0, (struct sockaddr *)&kernel, sizeof(kernel)) == (ssize_t)length)
		answer->length = recv(fd, answer->bytes, sizeof(answer->bytes), 0);
	close(fd);
	if (answer->length < (ssize_t)sizeof(*header) || !NLMSG_OK(header, (uint32_t)answer->length))
		return -EIO;
	if (header->nlmsg_type == expected)
		return 0;
	if (header->nlmsg_type == NLMSG_ERROR && header->nlmsg_len >= NLMSG_LENGTH(sizeof(struct nlmsgerr)))
		error = ((const struct nlmsgerr *)NLMSG_DATA(header))->error;
	return error < 0 ? error : -EIO;
}

/* ---- routes ------------------------------------------------------------------------------------------------------ */

static void take_metrics(struct ip_route *route, const struct rtattr *metrics)
{
	uint32_t left = (uint32_t)RTA_PAYLOAD(metrics), value;

	for (const struct rtattr *at = RTA_DATA(metrics); RTA_OK(at, left); at = RTA_NEXT(at, left)) {
		if (at->rta_type != RTAX_HOPLIMIT || RTA_PAYLOAD(at) < sizeof(value))
			continue;
		memcpy(&value, RTA_DATA(at), sizeof(value));
		if (value && value < 256)
			route->hop_limit = (uint8_t)value;
	}
}

static void take_router(struct ip_route *route, const struct rtattr *gateway)
{
	if (RTA_PAYLOAD(gateway) == 4) {
		uint32_t address;

		memcpy(&address, RTA_DATA(gateway), sizeof(address));
		route->next_hop = gid_of_ipv4(be32toh(address));
	} else if (RTA_PAYLOAD(gateway) == 16) {
		memcpy(&route->next_hop, RTA_DATA(gateway), sizeof(route->next_hop));
	}
}

/* RTA_VIA: a router of the other address family (struct rtvia). */
static void take_via(struct ip_route *route, const struct rtattr *via)
{
	if (RTA_PAYLOAD(via) == sizeof(sa_family_t) + 16)
		memcpy(&route->next_hop, (const uint8_t *)RTA_DATA(via) + sizeof(sa_family_t), 16);
}

static void read_route(struct ip_route *route, const struct answer *answer)
{
	const struct nlmsghdr *header = (const void *)answer->bytes;
	const struct rtmsg *body = NLMSG_DATA(header);
	uint32_t left;

	if (header->nlmsg_len < NLMSG_LENGTH(sizeof(*body)))
		return;
	left = (uint32_t)RTM_PAYLOAD(header);
	for (const struct rtattr *at = RTM_RTA(body); RTA_OK(at, left); at = RTA_NEXT(at, left)) {
		switch (at->rta_type) {
		case RTA_OIF:
			if (RTA_PAYLOAD(at) >= sizeof(route->ifindex))
				memcpy(&route->ifindex, RTA_DATA(at), sizeof(route->ifindex));
			break;
		case RTA_GATEWAY:
			take_router(route, at);
			break;
		case RTA_VIA:
			take_via(route, at);
			break;
		case RTA_METRICS:
			take_metrics(route, at);
			break;
		default:
			break;
		}
	}
	route->has_neighbour = body->rtm_type == RTN_UNICAST && route->ifindex;
}

static void rtnetlink_ask_route(const struct hca_gid *source, const union ibv_gid *destination, struct ip_route *route)
{
	uint8_t bits = gid_is_ipv4(destination) ? 32 : 128;
	struct rtmsg body = {.rtm_family = gid_family(destination), .rtm_dst_len = bits, .rtm_src_len = bits};
	struct request request;
	struct answer answer;

	request_begin(&request, RTM_GETROUTE, &body, sizeof(body));
	request_add_address(&request, RTA_DST, destination);
	request_add_address(&request, RTA_SRC, &source->gid);
	if (gid_is_link_local(destination))
		request_add(&request, RTA_OIF, &source->ifindex, sizeof(source->ifindex));
	if (!rtnetlink_ask(&request, RTM_NEWROUTE, &answer))
		read_route(route, &answer);
}

/* Returns the hop limit of a socket, from the sysctl or IPv6 router advertisements. */
static uint8_t socket_hop_limit(int fd, bool ipv4)
{
	int value = 0;
	socklen_t size = sizeof(value);

	if (getsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_TTL : IPV6_UNICAST_HOPS, &value, &size) ||
	    value < 1 || value > 255)
		return IP_DEFAULT_HOP_LIMIT;
	return (uint8_t)value;
}

/* Returns true for interfaces without link addresses. */
static bool resolves_nothing(int fd, uint32_t ifindex)
{
	struct ifreq interface = {.ifr_ifindex = (int)ifindex};

	return !ioctl(fd, SIOCGIFNAME, &interface) && !ioctl(fd, SIOCGIFFLAGS, &interface) &&
	       interface.ifr_flags & (IFF_NOARP | IFF_LOOPBACK | IFF_POINTOPOINT);
}

int ip_route_find(const struct hca_gid *source, const union ibv_gid *destination, struct ip_route *route)
{
	union name name;
	socklen_t size = socket_address_of(destination, source->ifindex, ROCE_PORT, &name);
	int error = 0, fd = socket_open_at(source);

	*route = (struct ip_route){.hop_limit = IP_DEFAULT_HOP_LIMIT, .next_hop = *destination};
	if (fd < 0)
		return 0;
	if (connect(fd, &name.any, size)) {
		error = errno;
	} else {
		route->hop_limit = socket_hop_limit(fd, gid_is_ipv4(destination));
		rtnetlink_ask_route(source, destination, route);
		if (route->has_neighbour)
			route->has_neighbour = !resolves_nothing(fd, route->ifindex);
	}
	close(fd);
	return error == ENETUNREACH || error == EHOSTUNREACH || error == EACCES ? -error : 0;
}

/* ---- neighbours -------------------------------------------------------------------------------------------------- */

bool ip_neighbour_is_known(const struct ip_route *route)
{
	struct ndmsg body = {.ndm_family = gid_family(&route->next_hop), .ndm_ifindex = (int)route->ifindex};
	const struct ndmsg *found;
	struct request request;
	struct answer answer;
	int error;

	request_begin(&request, RTM_GETNEIGH, &body, sizeof(body));
	request_add_address(&request, NDA_DST, &route->next_hop);
	/* Linux 5.0 and newer answer for one neighbour. */
	error = rtnetlink_ask(&request, RTM_NEWNEIGH, &answer);
	if (error)
		return error != -ENOENT;
	found = NLMSG_DATA((const struct nlmsghdr *)(const void *)answer.bytes);
	return found->ndm_state & KNOWN_STATES;
}

void ip_neighbour_probe(const struct hca_gid *source, const union ibv_gid *destination)
{
	union name name;
	socklen_t size = socket_address_of(destination, source->ifindex, DISCARD_PORT, &name);
	int hops = 1, fd = socket_open_at(source);

	if (fd < 0)
		return;
	if (gid_is_ipv4(destination))
		setsockopt(fd, IPPROTO_IP, IP_TTL, &hops, sizeof(hops));
	else
		setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &hops, sizeof(hops));
	sendto(fd, NULL, 0, MSG_DONTWAIT | MSG_NOSIGNAL, &name.any, size);
	close(fd);
}
