/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_query_port(3), ibv_query_pkey(3), ibv_get_pkey_index(3). */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "abi/entry_points.h"
#include "core/limits.h"
#include "explain/explain.h"
#include "hca/port_mtu.h"
#include "verbs/object/objects.h"
#include "verbs/object/ops.h"

/* Programs that call the exported symbol have a structure without port_cap_flags2. */
#define COMPAT_PORT_ATTR_SIZE offsetof(struct ibv_port_attr, port_cap_flags2)

/* Encodings of PortInfo (IBTA 14.2.5.6) that no header defines. */
enum {
	WIDTH_4X = 2,
	SPEED_EDR = 32,    /* 25 Gbit/s per lane: 100 Gbit/s */
	PORT_SPEED = 1000, /* the same in units of 100 Mb/s, for ibv_query_port_speed(3) */
	PHYS_STATE_LINK_UP = 5,
	DEFAULT_PKEY = 0xffff,
};

static enum ibv_mtu mtu_code(uint32_t bytes)
{
	enum ibv_mtu code = IBV_MTU_256;

	while (code < IBV_MTU_4096 && (128u << code) < bytes)
		code++;
	return code;
}

/* RoCE has no LIDs, subnet manager or virtual lanes. */
static void fill_port(const struct hca *hca, struct ibv_port_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->state = IBV_PORT_ACTIVE;
	attr->max_mtu = mtu_code(LIMIT_MAX_MTU);
	attr->active_mtu = mtu_code(port_active_mtu(hca));
	attr->gid_tbl_len = LIMIT_GID_TABLE;
	attr->port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
	attr->max_msg_sz = LIMIT_MAX_MSG_SIZE;
	attr->pkey_tbl_len = LIMIT_PKEY_TABLE;
	attr->active_width = WIDTH_4X;
	attr->active_speed = SPEED_EDR;
	attr->phys_state = PHYS_STATE_LINK_UP;
	attr->link_layer = IBV_LINK_LAYER_ETHERNET;
	attr->flags = IBV_QPF_GRH_REQUIRED;
}

/* @size: size in the program's header. */
int softhca_ibv_query_port_ex(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	struct hca *hca = hca_of_context(context);
	struct ibv_port_attr all;

	if (port < 1 || port > LIMIT_PORTS)
		return REFUSE(hca, "ibv_query_port", EINVAL, RULE_PORT_NUMBER, port, LIMIT_PORTS);
	fill_port(hca, &all);
	memset(attr, 0, size);
	memcpy(attr, &all, size < sizeof(all) ? size : sizeof(all));
	return 0;
}

int softhca_ibv_query_port(struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr *port_attr)
{
	return softhca_ibv_query_port_ex(context, port_num, (struct ibv_port_attr *)port_attr, COMPAT_PORT_ATTR_SIZE);
}

int softhca_ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *port_speed)
{
	struct hca *hca = hca_of_context(context);

	if (port_num < 1 || port_num > LIMIT_PORTS)
		return REFUSE(hca, "ibv_query_port_speed", EINVAL, RULE_PORT_NUMBER, port_num, LIMIT_PORTS);
	*port_speed = PORT_SPEED;
	return 0;
}

/* RoCE has the default partition only. */
int softhca_ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	struct hca *hca = hca_of_context(context);

	if (port_num < 1 || port_num > LIMIT_PORTS) {
		errno = REFUSE(hca, "ibv_query_pkey", EINVAL, RULE_PORT_NUMBER, port_num, LIMIT_PORTS);
		return -1;
	}
	if (index < 0 || index >= LIMIT_PKEY_TABLE) {
		errno = REFUSE(hca, "ibv_query_pkey", EINVAL, RULE_PKEY_INDEX, index, LIMIT_PKEY_TABLE);
		return -1;
	}
	*pkey = htobe16(DEFAULT_PKEY);
	return 0;
}

int softhca_ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	struct hca *hca = hca_of_context(context);
	__be16 entry;

	if (softhca_ibv_query_pkey(context, port_num, 0, &entry))
		return -1;
	if (pkey == entry)
		return 0;
	errno = REFUSE(hca, "ibv_get_pkey_index", EINVAL, RULE_PKEY_UNKNOWN, be16toh(pkey));
	return -1;
}
