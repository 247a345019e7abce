/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 300 to 313 and 380 to 387: queries, imports, address handles. */
#include "rule_cases.h"

#include <endian.h>
#include <inttypes.h>
#include <unistd.h>
#include <sys/eventfd.h>

enum { GRH_VERSION_6 = 6u << 28, NEXT_TCP = 6, NEXT_IBA = 0x1b };

static const union ibv_gid unknown = {
	.raw = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x99}}; /* RFC 3849: documentation */

static ssize_t gid_count(void)
{
	struct ibv_gid_entry entries[64];

	return ibv_query_gid_table(client.context, entries, ARRAY_SIZE(entries), 0);
}

/* Makes an address handle for the sender of a datagram, from the header before its payload. */
static int address_from(struct ibv_grh *grh)
{
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	struct ibv_ah_attr attr;

	errno = 0;
	return ibv_init_ah_from_wc(client.context, 1, &wc, grh, &attr) ? errno : 0;
}

RULE_CASE(PORT_NUMBER)
{
	struct ibv_port_attr attr;

	expect_error(ibv_query_port(client.context, 9, &attr), EINVAL);
	expect_refusal(PORT_NUMBER, "ibv_query_port → EINVAL: port 9 does not exist: the device has ports 1 to 1");
}

RULE_CASE(GID_INDEX)
{
	struct ibv_port_attr attr;
	union ibv_gid gid;

	expect_error(ibv_query_port(client.context, 1, &attr), 0);
	assert_int_equal(ibv_query_gid(client.context, 1, -5, &gid), -1);
	expect_refusal(GID_INDEX, "ibv_query_gid → EINVAL: GID index -5 is outside of the table, which has %d entries",
		       attr.gid_tbl_len);
}

RULE_CASE(GID_EMPTY)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = server.gid, .sgid_index = 63}};

	assert_null(ibv_create_ah(client.pd, &attr));
	expect_error(errno, EINVAL);
	expect_refusal(GID_EMPTY, "ibv_create_ah → EINVAL: GID index 63 is empty: the first %zd entries are in use",
		       gid_count());
}

RULE_CASE(GID_TABLE_ROOM)
{
	struct ibv_gid_entry entry;
	ssize_t count = gid_count();

	assert_int_equal(ibv_query_gid_table(client.context, &entry, 1, 0), -EINVAL);
	expect_refusal(GID_TABLE_ROOM,
		       "ibv_query_gid_table → EINVAL: the array has room for 1 entries, but the table has %zd", count);
}

RULE_CASE(QUERY_FLAGS)
{
	struct ibv_gid_entry entry;

	expect_error(ibv_query_gid_ex(client.context, 1, 0, &entry, 4), EINVAL);
	expect_refusal(QUERY_FLAGS, "ibv_query_gid_ex → EINVAL: flags 0x4 are set, but none is defined");
}

RULE_CASE(PKEY_INDEX)
{
	__be16 pkey;

	assert_int_equal(ibv_query_pkey(client.context, 1, -3, &pkey), -1);
	expect_refusal(PKEY_INDEX,
		       "ibv_query_pkey → EINVAL: P_Key index -3 is outside of the table, which has 1 entries");
}

RULE_CASE(PKEY_UNKNOWN)
{
	assert_int_equal(ibv_get_pkey_index(client.context, 1, htobe16(0x1234)), -1);
	expect_refusal(PKEY_UNKNOWN, "ibv_get_pkey_index → EINVAL: P_Key 0x1234 is not in the table");
}

RULE_CASE(QUERY_DEVICE_SIZE)
{
	struct verbs_context *operations = verbs_get_ctx_op(client.context, query_device_ex);
	struct ibv_device_attr_ex attr;

	assert_non_null(operations);
	expect_error(operations->query_device_ex(client.context, NULL, &attr, 8), EINVAL);
	expect_refusal(QUERY_DEVICE_SIZE,
		       "ibv_query_device_ex → EINVAL: the structure has 8 bytes and must have at least %zu",
		       sizeof(attr.orig_attr));
}

RULE_CASE(COMP_MASK)
{
	struct ibv_values_ex values = {.comp_mask = 0x12};

	expect_error(ibv_query_rt_values_ex(client.context, &values), EINVAL);
	expect_refusal(COMP_MASK, "ibv_query_rt_values_ex → EINVAL: comp_mask 0x12 has bits outside of 0x1");
}

RULE_CASE(CONTEXT_IN_USE)
{
	struct ibv_context *context = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(context);

	/* Succeeds, as with a real adapter: the kernel frees the rest when the process ends. */
	expect_error(ibv_close_device(context), 0);
	expect_refusal(CONTEXT_IN_USE,
		       "ibv_close_device: objects of the context still exist: they and the context stay until the "
		       "process ends");
	expect_error(ibv_dealloc_pd(pd), 0);
	expect_error(ibv_close_device(context), 0);
}

RULE_CASE(IMPORT_DESCRIPTOR)
{
	int fd = eventfd(0, 0);

	assert_null(ibv_import_device(fd));
	expect_error(errno, ENODEV);
	expect_refusal(IMPORT_DESCRIPTOR,
		       "ibv_import_device → ENODEV: descriptor %d is not the command descriptor of an open context of "
		       "this process",
		       fd);
	close(fd);
}

RULE_CASE(IMPORT_HANDLE)
{
	assert_null(ibv_import_pd(client.context, 4711));
	expect_error(errno, ENOENT);
	expect_refusal(IMPORT_HANDLE, "ibv_import_pd → ENOENT: no object of that kind has handle 4711 in the context");
}

RULE_CASE(HANDLE_GONE)
{
	struct ibv_mr *mr = ibv_reg_mr(client.pd, client.memory, 64, 0), *again;
	uint32_t handle = mr->handle;

	again = ibv_import_mr(client.pd, handle);
	assert_non_null(again);
	expect_error(ibv_dereg_mr(mr), 0);
	expect_error(ibv_dereg_mr(again), ENOENT);
	expect_refusal(
		HANDLE_GONE,
		"ibv_dereg_mr → ENOENT: the object behind handle %u was already destroyed through another import",
		handle);
	ibv_unimport_mr(again);
}

RULE_CASE(AH_NO_GRH)
{
	struct ibv_ah_attr attr = {.dlid = 1, .port_num = 1};

	assert_null(ibv_create_ah(client.pd, &attr));
	expect_error(errno, EINVAL);
	expect_refusal(AH_NO_GRH,
		       "ibv_create_ah → EINVAL: is_global is 0, but RoCE packets always have a global route");
}

RULE_CASE(DESTINATION_FAMILY)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = client.gid_index}};

	assert_null(ibv_create_ah(client.pd, &attr));
	expect_error(errno, EINVAL);
	expect_refusal(DESTINATION_FAMILY,
		       "ibv_create_ah → EINVAL: the destination GID 0x0:0x0 is zero, or of another address family than "
		       "the source GID 0x%" PRIx64 ":0x%" PRIx64,
		       be64toh(client.gid.global.subnet_prefix), be64toh(client.gid.global.interface_id));
}

/* Exported for connection managers; not declared in a header. */
int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr, uint8_t mac[6], uint16_t *vid);

RULE_CASE(GID_NO_NEIGHBOUR)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1, .grh = {.dgid = unknown, .sgid_index = client.gid_index}};
	uint16_t vlan;
	uint8_t mac[6];

	assert_int_equal(ibv_resolve_eth_l2_from_gid(client.context, &attr, mac, &vlan), -EHOSTUNREACH);
	expect_refusal(
		GID_NO_NEIGHBOUR,
		"ibv_resolve_eth_l2_from_gid → EHOSTUNREACH: no interface and no neighbour has GID 0x20010db800000000:0x99");
}

/* Byte 20 begins an IPv4 header, byte 0 an IPv6 header: neither is valid here. */
RULE_CASE(WC_HEADER_VERSION)
{
	uint8_t bytes[40] = {[20] = 0x95};
	struct ibv_grh grh;

	memcpy(&grh, bytes, sizeof(grh));
	expect_error(address_from(&grh), EPROTONOSUPPORT);
	expect_refusal(
		WC_HEADER_VERSION,
		"ibv_init_ah_from_wc → EPROTONOSUPPORT: the 40 bytes before the payload hold neither an IPv4 nor an IPv6 header (version 9)");
}

RULE_CASE(WC_NEXT_HEADER)
{
	struct ibv_grh grh = {.version_tclass_flow = htobe32(GRH_VERSION_6),
			      .next_hdr = NEXT_TCP,
			      .dgid = client.gid,
			      .sgid = unknown};

	expect_error(address_from(&grh), EPROTONOSUPPORT);
	expect_refusal(WC_NEXT_HEADER, "ibv_init_ah_from_wc → EPROTONOSUPPORT: next header 6 is neither UDP (RoCE v2) "
				       "nor IBA (RoCE v1)");
}

RULE_CASE(WC_MULTICAST)
{
	struct ibv_grh grh = {.version_tclass_flow = htobe32(GRH_VERSION_6), .next_hdr = NEXT_IBA, .sgid = unknown};

	grh.dgid.raw[0] = 0xff;
	expect_error(address_from(&grh), EINVAL);
	expect_refusal(
		WC_MULTICAST,
		"ibv_init_ah_from_wc → EINVAL: the datagram went to a multicast group, which cannot be the source of an answer");
}

RULE_CASE(WC_GID_UNKNOWN)
{
	struct ibv_grh grh = {.version_tclass_flow = htobe32(GRH_VERSION_6),
			      .next_hdr = NEXT_IBA,
			      .dgid = unknown,
			      .sgid = client.gid};

	expect_error(address_from(&grh), EINVAL);
	expect_refusal(WC_GID_UNKNOWN, "ibv_init_ah_from_wc → EINVAL: the datagram was sent to GID "
				       "0x20010db800000000:0x99, which is not in the table");
}
