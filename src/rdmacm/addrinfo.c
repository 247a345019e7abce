/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_getaddrinfo(3), rdma_freeaddrinfo(3): getaddrinfo(3) with QP type and port space in place of socket type and
 * protocol. Only its first result is used. On InfiniBand a service would add routes and private data.
 */
#include "rdmacm/addrinfo.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "abi/rdmacm_entry_points.h"
#include "core/cancellation.h"
#include "explain/explain.h"
#include "rdmacm/channel.h"
#include "rdmacm/devices.h"
#include "rdmacm/id.h"
#include "rdmacm/sockaddr.h"

/* Flags of later versions, RAI_SA and RAI_DNS. */
enum { RAI_SA_ = 0x10, RAI_DNS_ = 0x20 };

static int addrinfo_socket_type(int qp_type)
{
	switch (qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return SOCK_STREAM;
	case IBV_QPT_UD:
		return SOCK_DGRAM;
	default:
		return 0;
	}
}

static int addrinfo_protocol(int port_space, int type)
{
	switch (port_space) {
	case RDMA_PS_TCP:
		return IPPROTO_TCP;
	case RDMA_PS_IPOIB:
	case RDMA_PS_UDP:
		return IPPROTO_UDP;
	case RDMA_PS_IB:
		return type == SOCK_STREAM ? IPPROTO_TCP : type == SOCK_DGRAM ? IPPROTO_UDP : 0;
	default:
		return 0;
	}
}

static void addrinfo_from_hints(const struct rdma_addrinfo *hints, struct addrinfo *out)
{
	*out = (struct addrinfo){0};
	if (hints->ai_flags & RAI_PASSIVE)
		out->ai_flags |= AI_PASSIVE;
	if (hints->ai_flags & RAI_NUMERICHOST)
		out->ai_flags |= AI_NUMERICHOST;
	if (hints->ai_family != AF_IB)
		out->ai_family = hints->ai_family;
	out->ai_socktype = addrinfo_socket_type(hints->ai_qp_type);
	out->ai_protocol = addrinfo_protocol(hints->ai_port_space, out->ai_socktype);
}

static int addrinfo_copy_address(struct sockaddr **to, socklen_t *length, const struct sockaddr *from, socklen_t size)
{
	*to = malloc(size);
	if (!*to)
		return -ENOMEM;
	memcpy(*to, from, size);
	*length = size;
	return 0;
}

static int addrinfo_copy_name(char **to, const char *name)
{
	if (!name)
		return 0;
	*to = strdup(name);
	return *to ? 0 : -ENOMEM;
}

/* Returns true if IPv6 text stands for a GID: AF_IB with RAI_FAMILY and RAI_NUMERICHOST (rdma-cm 2.4). */
static bool addrinfo_is_gid(const struct rdma_addrinfo *hints, const struct addrinfo *found)
{
	const int both = RAI_FAMILY | RAI_NUMERICHOST;

	return hints->ai_family == AF_IB && (hints->ai_flags & both) == both && found->ai_family == AF_INET6;
}

static int addrinfo_add_ib_address(struct rdma_addrinfo *result, const struct sockaddr *from, bool passive)
{
	struct sockaddr_ib address = {.sib_family = AF_IB, .sib_pkey = htobe16(0xffff)};
	union ibv_gid gid = address_gid(from);
	uint64_t service = (uint64_t)(uint32_t)result->ai_port_space << 16 | address_port(from);

	memcpy(&address.sib_addr, &gid, sizeof(gid));
	address.sib_sid = htobe64(service);
	address.sib_sid_mask = htobe64(UINT64_MAX);
	result->ai_family = AF_IB;
	return addrinfo_copy_address(passive ? &result->ai_src_addr : &result->ai_dst_addr,
				     passive ? &result->ai_src_len : &result->ai_dst_len,
				     (const struct sockaddr *)&address, sizeof(address));
}

/* Sets the requested types; by default, those of socket type and protocol. */
static void addrinfo_choose_types(struct rdma_addrinfo *result, const struct rdma_addrinfo *hints,
				  const struct addrinfo *found)
{
	result->ai_qp_type = hints->ai_qp_type;
	if (!result->ai_qp_type)
		result->ai_qp_type = found->ai_socktype == SOCK_DGRAM ? IBV_QPT_UD : IBV_QPT_RC;
	result->ai_port_space = hints->ai_port_space;
	if (!result->ai_port_space)
		result->ai_port_space = found->ai_protocol == IPPROTO_UDP ? RDMA_PS_UDP : RDMA_PS_TCP;
}

static int addrinfo_convert(struct rdma_addrinfo *result, const struct rdma_addrinfo *hints,
			    const struct addrinfo *found)
{
	bool passive = hints->ai_flags & RAI_PASSIVE;
	int error;

	result->ai_flags = hints->ai_flags & RAI_PASSIVE;
	result->ai_family = found->ai_family;
	addrinfo_choose_types(result, hints, found);
	if (addrinfo_is_gid(hints, found))
		return addrinfo_add_ib_address(result, found->ai_addr, passive);
	if (passive) {
		error = addrinfo_copy_address(&result->ai_src_addr, &result->ai_src_len, found->ai_addr,
					      found->ai_addrlen);
		return error ? error : addrinfo_copy_name(&result->ai_src_canonname, found->ai_canonname);
	}
	error = addrinfo_copy_address(&result->ai_dst_addr, &result->ai_dst_len, found->ai_addr, found->ai_addrlen);
	return error ? error : addrinfo_copy_name(&result->ai_dst_canonname, found->ai_canonname);
}

/* Used if neither node nor service is given. */
static int addrinfo_copy_hints(struct rdma_addrinfo *result, const struct rdma_addrinfo *hints)
{
	int error = 0;

	result->ai_flags = hints->ai_flags;
	result->ai_family = hints->ai_family;
	result->ai_qp_type = hints->ai_qp_type;
	result->ai_port_space = hints->ai_port_space;
	if (hints->ai_dst_len)
		error = addrinfo_copy_address(&result->ai_dst_addr, &result->ai_dst_len, hints->ai_dst_addr,
					      hints->ai_dst_len);
	return error;
}

static int addrinfo_add_source(struct rdma_addrinfo *result, const struct rdma_addrinfo *hints)
{
	if (result->ai_src_len || !hints->ai_src_len)
		return 0;
	return addrinfo_copy_address(&result->ai_src_addr, &result->ai_src_len, hints->ai_src_addr, hints->ai_src_len);
}

struct addrinfo_error addrinfo_find(const char *node, const char *service, const struct rdma_addrinfo *hints,
				    struct rdma_addrinfo **found)
{
	static const struct rdma_addrinfo none = {.ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_RC};
	struct rdma_addrinfo *result;
	struct addrinfo wanted, *list = NULL;
	int resolver, error;

	if (!node && !service && !hints)
		return (struct addrinfo_error){.error = -EINVAL};
	result = calloc(1, sizeof(*result));
	if (!result)
		return (struct addrinfo_error){.error = -ENOMEM};
	if (!hints)
		hints = &none;
	if (node || service) {
		addrinfo_from_hints(hints, &wanted);
		resolver = getaddrinfo(node, service, &wanted, &list);
		if (resolver) {
			free(result);
			return (struct addrinfo_error){.resolver = resolver};
		}
		error = addrinfo_convert(result, hints, list);
		freeaddrinfo(list);
	} else {
		error = addrinfo_copy_hints(result, hints);
	}
	if (!error)
		error = addrinfo_add_source(result, hints);
	if (error) {
		softhca_rdma_freeaddrinfo(result);
		result = NULL;
	}
	*found = result;
	return (struct addrinfo_error){.error = error};
}

int softhca_rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
			     struct rdma_addrinfo **res)
{
	WITHOUT_CANCELLATION;
	int count = devices_open();
	struct addrinfo_error result;

	if (count <= 0)
		return result_of(count ? count : -ENODEV);
	if (!node && !service && !hints)
		return result_of(-REFUSE(hca_of_id(NULL), "rdma_getaddrinfo", EINVAL, RULE_RDMACM_NOTHING_ASKED, 0));
	result = addrinfo_find(node, service, hints, res);
	return result.resolver ? result.resolver : result_of(result.error);
}

void softhca_rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;

		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
		res = next;
	}
}

static int id_resolve_addrinfo(struct user_cm_id *id, const char *node, const char *service,
			       const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *found = NULL;
	struct addrinfo_error result;
	int flags = hints ? hints->ai_flags : 0;

	if (flags & RAI_SA_)
		return -REFUSE(hca_of_id(id), "rdma_resolve_addrinfo", flags & RAI_DNS_ ? EINVAL : ENOENT,
			       RULE_RDMACM_RAI_SA, flags);
	if (id->found)
		return -REFUSE(hca_of_id(id), "rdma_resolve_addrinfo", EBUSY, RULE_RDMACM_ADDRINFO_PENDING, 0);
	if (!node && !service && !hints)
		return -REFUSE(hca_of_id(id), "rdma_resolve_addrinfo", EINVAL, RULE_RDMACM_NOTHING_ASKED, 0);
	result = addrinfo_find(node, service, hints, &found);
	if (result.error)
		return result.error;
	id->found = found;
	return event_raise(id,
			   (enum rdma_cm_event_type)(found ? (int)RDMA_CM_EVENT_ADDRINFO_RESOLVED_
							   : (int)RDMA_CM_EVENT_ADDRINFO_ERROR_),
			   found ? 0 : -EHOSTUNREACH, NULL);
}

int softhca_rdma_resolve_addrinfo(struct rdma_cm_id *base, const char *node, const char *service,
				  const struct rdma_addrinfo *hints)
{
	WITHOUT_CANCELLATION;
	struct user_cm_id *id = id_begin(base, "rdma_resolve_addrinfo");

	return id ? id_end_complete(id, id_resolve_addrinfo(id, node, service, hints)) : -1;
}

int softhca_rdma_query_addrinfo(struct rdma_cm_id *base, struct rdma_addrinfo **info)
{
	WITHOUT_CANCELLATION;
	struct user_cm_id *id = id_begin(base, "rdma_query_addrinfo");

	if (!id)
		return -1;
	if (!id->found)
		return id_end(id, -REFUSE(hca_of_id(id), "rdma_query_addrinfo", ENOENT, RULE_RDMACM_NO_ADDRINFO, 0));
	*info = id->found;
	id->found = NULL;
	return id_end(id, 0);
}
