/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths of packets and addresses of datagrams, see parts.h. Pure functions, except for explanations. */
#include <endian.h>
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#include "link/host/inner.h"
#include "link/udp/parts.h"

#define DEFAULT_HOP_LIMIT 64
#define FLOW_LABEL_MASK 0xfffff

/* ---- sending --------------------------------------------------------------------------------------------------- */

static void way_add_control(struct udp_way *way, int level, int type, const void *data, size_t size)
{
	struct cmsghdr header = {.cmsg_level = level, .cmsg_type = type, .cmsg_len = CMSG_LEN(size)};
	uint8_t *at = way->control + way->control_length;

	memcpy(at, &header, sizeof(header));
	memcpy(at + CMSG_LEN(0), data, size);
	way->control_length += CMSG_SPACE(size);
}

/* Skips a value that is the socket's default, @usual (sockets.c). */
static void way_add_number(struct udp_way *way, int level, int type, int value, int usual)
{
	if (value != usual)
		way_add_control(way, level, type, &value, sizeof(value));
}

/* Groups have another default: 1 (ip(7), IP_MULTICAST_TTL; ipv6(7), IPV6_MULTICAST_HOPS). */
static int udp_default_hop_limit(const union ibv_gid *destination)
{
	return gid_is_multicast(destination) ? -1 : DEFAULT_HOP_LIMIT;
}

static uint8_t path_hop_limit(const struct packet_path *path)
{
	return path->hop_limit ? path->hop_limit : DEFAULT_HOP_LIMIT;
}

static void way_fill_ipv4(struct udp_way *way, uint16_t port)
{
	struct in_pktinfo source = {.ipi_spec_dst.s_addr = htobe32(gid_ipv4(&way->path.source))};

	way->to.v4 = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htobe16(port),
		.sin_addr.s_addr = htobe32(gid_ipv4(&way->path.destination)),
	};
	way->to_length = sizeof(way->to.v4);
	way_add_control(way, IPPROTO_IP, IP_PKTINFO, &source, sizeof(source));
	way_add_number(way, IPPROTO_IP, IP_TOS, way->path.traffic_class, 0);
	way_add_number(way, IPPROTO_IP, IP_TTL, path_hop_limit(&way->path),
		       udp_default_hop_limit(&way->path.destination));
}

static void way_fill_ipv6(struct udp_way *way, const struct hca *hca, uint16_t port)
{
	struct in6_pktinfo source = {0};
	int index;

	memcpy(&source.ipi6_addr, &way->path.source, sizeof(source.ipi6_addr));
	way->to.v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htobe16(port)};
	memcpy(&way->to.v6.sin6_addr, &way->path.destination, sizeof(way->to.v6.sin6_addr));
	way->to_length = sizeof(way->to.v6);
	/* These addresses are ambiguous without an interface. */
	if (gid_is_link_local(&way->path.destination) || gid_is_multicast(&way->path.destination)) {
		index = gid_find(hca->gids, hca->gid_count, &way->path.source, IBV_GID_TYPE_ROCE_V2);
		way->to.v6.sin6_scope_id = index < 0 ? 0 : hca->gids[index].ifindex;
		source.ipi6_ifindex = way->to.v6.sin6_scope_id;
	}
	way_add_control(way, IPPROTO_IPV6, IPV6_PKTINFO, &source, sizeof(source));
	way_add_number(way, IPPROTO_IPV6, IPV6_TCLASS, way->path.traffic_class, 0);
	way_add_number(way, IPPROTO_IPV6, IPV6_HOPLIMIT, path_hop_limit(&way->path),
		       udp_default_hop_limit(&way->path.destination));
	way->unlabelled = way->control_length;
	/* Without a label the kernel derives one from the flow. */
	if (way->path.flow_label & FLOW_LABEL_MASK) {
		uint32_t label = htobe32(way->path.flow_label & FLOW_LABEL_MASK);

		way_add_control(way, IPPROTO_IPV6, IPV6_FLOWINFO, &label, sizeof(label));
	}
}

bool udp_path_is_ipv6(const struct hca *hca, const struct packet_path *path)
{
	struct packet_path inner;

	if (!inner_path_is_needed(path))
		return !gid_is_ipv4(&path->destination);
	inner = *path;
	inner_path_make(hca, &inner);
	return !gid_is_ipv4(&inner.destination);
}

int udp_way_make(struct udp_way *way, struct hca *hca, const struct packet_path *path)
{
	uint16_t port = (uint16_t)hca->settings.roce_port;

	way->path = *path;
	way->control_length = 0;
	memset(way->control, 0, sizeof(way->control));
	inner_path_make(hca, &way->path);
	way->ipv6 = !gid_is_ipv4(&way->path.destination);
	if (way->ipv6 == gid_is_ipv4(&way->path.source)) {
		const union ibv_gid *to = &path->destination, *from = &path->source;

		udp_explain(hca, 0, RULE_UDP_FAMILIES,
			    FIGURES(be64toh(to->global.subnet_prefix), be64toh(to->global.interface_id),
				    be64toh(from->global.subnet_prefix), be64toh(from->global.interface_id)));
		return -EAFNOSUPPORT;
	}
	way->unlabelled = 0;
	if (way->ipv6)
		way_fill_ipv6(way, hca, port);
	else
		way_fill_ipv4(way, port);
	return 0;
}

/* ---- receiving ------------------------------------------------------------------------------------------------- */

static int control_number(const struct cmsghdr *header)
{
	int number = 0;

	/* IP_TOS is a byte, the others are int (ip(7), ipv6(7)). */
	if (header->cmsg_len == CMSG_LEN(1))
		return *CMSG_DATA(header);
	if (header->cmsg_len >= CMSG_LEN(sizeof(number)))
		memcpy(&number, CMSG_DATA(header), sizeof(number));
	return number;
}

/* Returns true if @header contains the address that the datagram was sent to. */
static bool control_read_ipv4(struct packet_path *wire, const struct cmsghdr *header)
{
	struct in_pktinfo info;

	switch (header->cmsg_type) {
	case IP_PKTINFO:
		memcpy(&info, CMSG_DATA(header), sizeof(info));
		wire->destination = gid_of_ipv4(be32toh(info.ipi_addr.s_addr));
		return true;
	case IP_TOS:
		wire->traffic_class = (uint8_t)control_number(header);
		break;
	case IP_TTL:
		wire->hop_limit = (uint8_t)control_number(header);
		break;
	default:
		break;
	}
	return false;
}

static bool control_read_ipv6(struct packet_path *wire, const struct cmsghdr *header)
{
	struct in6_pktinfo info;
	uint32_t flow;

	switch (header->cmsg_type) {
	case IPV6_PKTINFO:
		memcpy(&info, CMSG_DATA(header), sizeof(info));
		memcpy(&wire->destination, &info.ipi6_addr, sizeof(wire->destination));
		return true;
	case IPV6_FLOWINFO:
		memcpy(&flow, CMSG_DATA(header), sizeof(flow));
		wire->flow_label = be32toh(flow) & 0xfffff;
		wire->traffic_class = (uint8_t)(be32toh(flow) >> 20);
		break;
	case IPV6_HOPLIMIT:
		wire->hop_limit = (uint8_t)control_number(header);
		break;
	default:
		break;
	}
	return false;
}

bool udp_gid_of_name(union ibv_gid *gid, const struct sockaddr *name)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	switch (name->sa_family) {
	case AF_INET:
		memcpy(&v4, name, sizeof(v4));
		*gid = gid_of_ipv4(be32toh(v4.sin_addr.s_addr));
		return true;
	case AF_INET6:
		memcpy(&v6, name, sizeof(v6));
		memcpy(gid, &v6.sin6_addr, sizeof(*gid));
		return true;
	default:
		return false;
	}
}

static void arrival_read_source(struct udp_arrival *arrival, const struct msghdr *message)
{
	const struct sockaddr *from = message->msg_name;
	const struct sockaddr_in *v4 = message->msg_name;
	const struct sockaddr_in6 *v6 = message->msg_name;

	udp_gid_of_name(&arrival->wire.source, from);
	arrival->source_port = be16toh(from->sa_family == AF_INET ? v4->sin_port : v6->sin6_port);
}

bool udp_arrival_read(struct udp_arrival *arrival, struct msghdr *message)
{
	const struct hca *hca = &the_registry.devices[0];
	bool complete = false;

	arrival->wire = (struct packet_path){.type = IBV_GID_TYPE_ROCE_V2};
	arrival->segment = 0;
	for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at)) {
		if (at->cmsg_level == IPPROTO_IP)
			complete |= control_read_ipv4(&arrival->wire, at);
		else if (at->cmsg_level == IPPROTO_IPV6)
			complete |= control_read_ipv6(&arrival->wire, at);
		else if (at->cmsg_level == IPPROTO_UDP && at->cmsg_type == UDP_GRO)
			arrival->segment = (uint32_t)control_number(at);
	}
	if (!complete)
		return false;
	arrival_read_source(arrival, message);
	arrival->path = arrival->wire;
	inner_path_resolve(hca, &arrival->path);
	return true;
}
