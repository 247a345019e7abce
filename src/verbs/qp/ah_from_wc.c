/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The address of the sender of a datagram. The 40 bytes before its payload are a GRH or IPv6 header or, for RoCE v2
 * over IPv4, 20 undefined bytes and an IPv4 header (IBTA annex A17).
 */
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <string.h>

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "hca/gid.h"
#include "verbs/object/objects.h"

enum { NEXT_HEADER_IBA = 0x1b, IPV4_WORDS = 5 };

#define IPV4_OFFSET (sizeof(struct ibv_grh) - sizeof(struct iphdr))

/* A copy, because programs place the received headers at any address. */
struct headers {
	struct ibv_grh grh;
	struct iphdr ip;
};

static const char call[] = "ibv_init_ah_from_wc";

static int ah_fail(int error)
{
	errno = error;
	return -1;
}

/* RFC 1071: the 16-bit words of a valid header add up to all ones. */
static bool ipv4_checksum_holds(const struct iphdr *ip)
{
	uint16_t halves[sizeof(*ip) / 2];
	uint32_t sum = 0;
	size_t i;

	memcpy(halves, ip, sizeof(halves));
	for (i = 0; i < sizeof(halves) / 2; i++)
		sum += halves[i];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

/*
 * Returns 4, 6, or 0 for neither. The first 20 bytes may look like an IPv6 header by chance, so an IPv4 header with a
 * valid checksum takes precedence.
 */
static int ip_version(const struct headers *headers)
{
	unsigned int version = be32toh(headers->grh.version_tclass_flow) >> 28;

	if (version != 6)
		return headers->ip.version == 4 ? 4 : 0;
	return headers->ip.ihl == IPV4_WORDS && ipv4_checksum_holds(&headers->ip) ? 4 : 6;
}

static void map_ipv4(union ibv_gid *gid, __be32 address)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = gid->raw[11] = 0xff;
	memcpy(gid->raw + 12, &address, sizeof(address));
}

/* Replies come from the GID that the datagram was sent to. */
static int ah_set_source(struct hca *hca, const union ibv_gid *gid, enum ibv_gid_type type, struct ibv_ah_attr *attr)
{
	size_t count;
	const struct hca_gid *gids = hca_gids(hca, &count);
	int index = gid_find(gids, count, gid, type);

	if (index < 0)
		return ah_fail(REFUSE(hca, call, EINVAL, RULE_WC_GID_UNKNOWN, be64toh(gid->global.subnet_prefix),
				      be64toh(gid->global.interface_id)));
	attr->grh.sgid_index = (uint8_t)index;
	return 0;
}

static int ah_from_ipv4(struct hca *hca, const struct iphdr *ip, struct ibv_ah_attr *attr)
{
	union ibv_gid target;

	if (IN_MULTICAST(ntohl(ip->daddr)))
		return ah_fail(REFUSE(hca, call, EINVAL, RULE_WC_MULTICAST, 0));
	map_ipv4(&target, ip->daddr);
	map_ipv4(&attr->grh.dgid, ip->saddr);
	attr->grh.hop_limit = ip->ttl;
	attr->grh.traffic_class = ip->tos;
	return ah_set_source(hca, &target, IBV_GID_TYPE_ROCE_V2, attr);
}

static int ah_from_ipv6(struct hca *hca, const struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	enum ibv_gid_type type = IBV_GID_TYPE_ROCE_V1;

	if (grh->dgid.raw[0] == 0xff)
		return ah_fail(REFUSE(hca, call, EINVAL, RULE_WC_MULTICAST, 0));
	if (grh->next_hdr == IPPROTO_UDP)
		type = IBV_GID_TYPE_ROCE_V2;
	else if (grh->next_hdr != NEXT_HEADER_IBA)
		return ah_fail(REFUSE(hca, call, EPROTONOSUPPORT, RULE_WC_NEXT_HEADER, grh->next_hdr));
	attr->grh.dgid = grh->sgid;
	attr->grh.hop_limit = grh->hop_limit;
	attr->grh.flow_label = be32toh(grh->version_tclass_flow) & IB_GRH_FLOWLABEL_MASK;
	attr->grh.traffic_class = be32toh(grh->version_tclass_flow) >> 20 & 0xff;
	return ah_set_source(hca, &grh->dgid, type, attr);
}

int softhca_ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc, struct ibv_grh *grh,
				struct ibv_ah_attr *attr)
{
	struct hca *hca = hca_of_context(context);
	struct headers headers;

	memset(attr, 0, sizeof(*attr));
	attr->dlid = wc->slid;
	attr->sl = wc->sl;
	attr->src_path_bits = wc->dlid_path_bits;
	attr->port_num = port_num;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;

	memcpy(&headers.grh, grh, sizeof(headers.grh));
	memcpy(&headers.ip, (const char *)grh + IPV4_OFFSET, sizeof(headers.ip));
	attr->is_global = 1;
	switch (ip_version(&headers)) {
	case 4:
		return ah_from_ipv4(hca, &headers.ip, attr);
	case 6:
		return ah_from_ipv6(hca, &headers.grh, attr);
	default:
		return ah_fail(REFUSE(hca, call, EPROTONOSUPPORT, RULE_WC_HEADER_VERSION, headers.ip.version));
	}
}

struct ibv_ah *softhca_ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
					     uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (object_refused("ibv_create_ah_from_wc", NULL, pd))
		return NULL;
	return softhca_ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr) ? NULL
										  : softhca_ibv_create_ah(pd, &attr);
}
