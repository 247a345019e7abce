/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_query_*: device, port, GIDs, P_Keys, clock; with the sizes that older and newer programs pass. The GID
 * table is that of SOFTHCA_GIDS=loopback, the same on every machine.
 */
#include "support/objects.h"

#include <arpa/inet.h>
#include <endian.h>

/* Attributes that programs of the mlx5 class check or compute sizes from. */
TEST(device_looks_like_a_connectx_6_dx)
{
	struct ibv_device_attr attr;

	memset(&attr, 0xa5, sizeof(attr));
	assert_int_equal(ibv_query_device(context, &attr), 0);
	assert_int_equal(attr.vendor_id, 0x02c9);
	assert_int_equal(attr.vendor_part_id, 0x101d);
	assert_int_equal(strncmp(attr.fw_ver, "22.", 3), 0);
	assert_int_equal(attr.node_guid, ibv_get_device_guid(context->device));
	assert_int_equal(attr.sys_image_guid, attr.node_guid);
	assert_true(attr.page_size_cap & 4096);
	assert_int_equal(attr.phys_port_cnt, 1);
	assert_int_equal(attr.max_pkeys, 1);
	assert_int_equal(attr.atomic_cap, IBV_ATOMIC_HCA);
	assert_true(attr.max_qp > 0 && attr.max_qp_wr > 0 && attr.max_sge > 0 && attr.max_sge_rd > 0);
	assert_true(attr.max_cq > 0 && attr.max_cqe > 0 && attr.max_mr > 0 && attr.max_mw > 0 && attr.max_pd > 0);
	assert_true(attr.max_srq > 0 && attr.max_srq_wr > 0 && attr.max_srq_sge > 0 && attr.max_ah > 0);
	assert_true(attr.max_qp_rd_atom > 0 && attr.max_qp_init_rd_atom > 0 && attr.max_res_rd_atom > 0);
	assert_true(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
	assert_true(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	assert_false(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A);
	assert_true(attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS);
	assert_true(attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
	assert_true(attr.device_cap_flags & IBV_DEVICE_XRC);
	assert_true(attr.max_mcast_grp > 0 && attr.max_mcast_qp_attach > 0 && attr.max_total_mcast_qp_attach > 0);
	/* No raw packets yet. */
	assert_int_equal(attr.max_raw_ethy_qp, 0);
}

TEST(extended_attributes)
{
	struct ibv_device_attr_ex attr;
	struct ibv_device_attr plain;

	memset(&attr, 0xa5, sizeof(attr));
	assert_int_equal(ibv_query_device_ex(context, NULL, &attr), 0);
	assert_int_equal(ibv_query_device(context, &plain), 0);
	assert_memory_equal(&attr.orig_attr, &plain, sizeof(plain));
	assert_int_equal(attr.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	assert_int_equal(attr.odp_caps.per_transport_caps.rc_odp_caps, 0x3f);
	/* ibv_create_qp(3): UC has no SRQ */
	assert_int_equal(attr.odp_caps.per_transport_caps.uc_odp_caps,
			 IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE);
	assert_true(attr.odp_caps.per_transport_caps.ud_odp_caps & IBV_ODP_SUPPORT_SEND);
	assert_false(attr.odp_caps.per_transport_caps.ud_odp_caps & IBV_ODP_SUPPORT_WRITE);
	/* ibv_query_device_ex(3): the bits are those of the others */
	assert_int_equal(attr.xrc_odp_caps, 0x3f);
	assert_true(attr.completion_timestamp_mask != 0);
	assert_int_equal(attr.hca_core_clock, 1000000);
	assert_int_equal(attr.phys_port_cnt_ex, 1);
	assert_true(attr.max_dm_size > 0);
	assert_true(attr.cq_mod_caps.max_cq_count > 0 && attr.cq_mod_caps.max_cq_period > 0);
	assert_int_equal(attr.tso_caps.max_tso, 0);
	assert_int_equal(attr.rss_caps.supported_qpts, 0);
	assert_int_equal(attr.tm_caps.max_num_tags, 0);
	assert_int_equal(attr.raw_packet_caps, 0);
	assert_int_equal(attr.comp_mask, 0);
}

static int query_sized(struct ibv_device_attr_ex *attr, size_t size)
{
	return verbs_get_ctx_op(context, query_device_ex)->query_device_ex(context, NULL, attr, size);
}

/* Programs compiled against older headers have a shorter structure, followed by other data. */
TEST(extended_attributes_end_where_the_program_s_do)
{
	static const size_t ends[] = {
		sizeof(struct ibv_device_attr),
		offsetof(struct ibv_device_attr_ex, completion_timestamp_mask),
		offsetof(struct ibv_device_attr_ex, hca_core_clock),
		offsetof(struct ibv_device_attr_ex, tm_caps),
		offsetof(struct ibv_device_attr_ex, max_dm_size),
		sizeof(struct ibv_device_attr_ex),
	};
	struct ibv_device_attr_ex all;
	unsigned char buffer[sizeof(all) + 64];

	assert_int_equal(ibv_query_device_ex(context, NULL, &all), 0);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		memset(buffer, 0xa5, sizeof(buffer));
		assert_int_equal(query_sized((struct ibv_device_attr_ex *)(void *)buffer, ends[i]), 0);
		assert_memory_equal(buffer, &all, ends[i]);
		for (size_t k = ends[i]; k < sizeof(buffer); k++)
			assert_int_equal(buffer[k], 0xa5);
	}
	/* A newer header: unknown members are zero. */
	memset(buffer, 0xa5, sizeof(buffer));
	assert_int_equal(query_sized((struct ibv_device_attr_ex *)(void *)buffer, sizeof(buffer)), 0);
	assert_memory_equal(buffer, &all, sizeof(all));
	for (size_t k = sizeof(all); k < sizeof(buffer); k++)
		assert_int_equal(buffer[k], 0);
}

TEST(device_queries_that_are_refused)
{
	const struct ibv_query_device_ex_input input = {.comp_mask = 1};
	struct ibv_device_attr_ex attr;

	assert_int_equal(ibv_query_device_ex(context, &input, &attr), EINVAL);
	assert_int_equal(query_sized(&attr, sizeof(struct ibv_device_attr) - 1), EINVAL);
	assert_int_equal(query_sized(&attr, 0), EINVAL);
}

TEST(port_is_active_ethernet)
{
	struct ibv_port_attr attr;

	memset(&attr, 0xa5, sizeof(attr));
	assert_int_equal(ibv_query_port(context, 1, &attr), 0);
	assert_int_equal(attr.state, IBV_PORT_ACTIVE);
	assert_int_equal(attr.phys_state, 5);
	assert_int_equal(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(attr.max_mtu, IBV_MTU_4096);
	assert_int_equal(attr.active_mtu, IBV_MTU_1024); /* SOFTHCA_MTU */
	assert_int_equal(attr.pkey_tbl_len, 1);
	assert_int_equal(attr.gid_tbl_len, 64);
	assert_int_equal(attr.max_msg_sz, 1 << 30);
	assert_int_equal(attr.lid, 0);
	assert_true(attr.flags & IBV_QPF_GRH_REQUIRED);
	assert_true(attr.active_width && attr.active_speed);
}

#undef ibv_query_port
/* The exported function serves programs with a structure that ends before port_cap_flags2. */
TEST(port_query_of_old_programs_writes_no_more_than_they_have)
{
	struct ibv_port_attr attr;
	unsigned char *end = (unsigned char *)&attr + offsetof(struct ibv_port_attr, port_cap_flags2);

	memset(&attr, 0xa5, sizeof(attr));
	assert_int_equal(ibv_query_port(context, 1, (struct _compat_ibv_port_attr *)&attr), 0);
	assert_int_equal(attr.state, IBV_PORT_ACTIVE);
	assert_int_equal(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	for (size_t i = 0; i < sizeof(attr.port_cap_flags2); i++)
		assert_int_equal(end[i], 0xa5);
	assert_int_equal(ibv_query_port(context, 2, (struct _compat_ibv_port_attr *)&attr), EINVAL);
}

TEST(ports_that_do_not_exist)
{
	static const uint8_t ports[] = {0, 2, 255};
	struct ibv_port_attr attr;
	union ibv_gid gid;
	__be16 pkey;

	for (size_t i = 0; i < sizeof(ports); i++) {
		assert_int_equal(___ibv_query_port(context, ports[i], &attr), EINVAL);
		errno = 0;
		assert_int_equal(ibv_query_gid(context, ports[i], 0, &gid), -1);
		assert_int_equal(errno, EINVAL);
		errno = 0;
		assert_int_equal(ibv_query_pkey(context, ports[i], 0, &pkey), -1);
		assert_int_equal(errno, EINVAL);
		assert_int_equal(ibv_get_pkey_index(context, ports[i], 0xffff), -1);
	}
}

TEST(the_only_pkey_is_the_default_one)
{
	__be16 pkey = 0;

	assert_int_equal(ibv_query_pkey(context, 1, 0, &pkey), 0);
	assert_int_equal(pkey, htobe16(0xffff));
	assert_int_equal(ibv_query_pkey(context, 1, 1, &pkey), -1);
	assert_int_equal(ibv_query_pkey(context, 1, -1, &pkey), -1);
	assert_int_equal(ibv_get_pkey_index(context, 1, htobe16(0xffff)), 0);
	assert_int_equal(ibv_get_pkey_index(context, 1, htobe16(0x7fff)), -1);
}

/* Of SOFTHCA_GIDS=loopback: fe80::200:ff:fe00:0 as v1 and v2, ::ffff:127.0.0.1 as v1 and v2. */
static void expect_gid(const union ibv_gid *gid, unsigned int index)
{
	union ibv_gid expected = {{0}};

	if (index < 4)
		assert_int_equal(
			inet_pton(AF_INET6, index < 2 ? "fe80::200:ff:fe00:0" : "::ffff:127.0.0.1", expected.raw), 1);
	assert_memory_equal(gid, &expected, sizeof(expected));
}

TEST(gids_one_by_one)
{
	struct ibv_gid_entry entry;
	union ibv_gid gid;

	for (unsigned int index = 0; index < 64; index++) {
		memset(&gid, 0xa5, sizeof(gid));
		assert_int_equal(ibv_query_gid(context, 1, (int)index, &gid), 0);
		expect_gid(&gid, index); /* empty entries are zero */
		memset(&entry, 0xa5, sizeof(entry));
		if (index >= 4) {
			assert_int_equal(ibv_query_gid_ex(context, 1, index, &entry, 0), ENODATA);
			continue;
		}
		assert_int_equal(ibv_query_gid_ex(context, 1, index, &entry, 0), 0);
		expect_gid(&entry.gid, index);
		assert_int_equal(entry.gid_index, index);
		assert_int_equal(entry.port_num, 1);
		assert_int_equal(entry.gid_type, index & 1 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1);
		assert_int_equal(entry.ndev_ifindex, 1);
	}
}

TEST(gids_that_do_not_exist)
{
	struct ibv_gid_entry entry;
	union ibv_gid gid;

	errno = 0;
	assert_int_equal(ibv_query_gid(context, 1, 64, &gid), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_query_gid(context, 1, -1, &gid), -1);
	assert_int_equal(ibv_query_gid_ex(context, 1, 64, &entry, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(context, 1, 0, &entry, 1), EINVAL);
	assert_int_equal(ibv_query_gid_ex(context, 0, 0, &entry, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(context, 257, 0, &entry, 0), EINVAL); /* not port 1 */
}

TEST(gid_table_in_one_call)
{
	struct ibv_gid_entry entries[64];

	memset(entries, 0xa5, sizeof(entries));
	assert_int_equal(ibv_query_gid_table(context, entries, 4, 0), 4);
	for (unsigned int i = 0; i < 4; i++) {
		expect_gid(&entries[i].gid, i);
		assert_int_equal(entries[i].gid_index, i);
	}
	assert_int_equal(entries[4].port_num, 0xa5a5a5a5);
	assert_int_equal(ibv_query_gid_table(context, entries, 64, 0), 4);
	assert_int_equal(ibv_query_gid_table(context, entries, 3, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(context, entries, 0, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(context, entries, 64, 1), -EINVAL);
}

/* Entries of a newer header are larger, those of an older one smaller: each is placed by its size. */
TEST(gid_entries_of_other_sizes)
{
	unsigned char buffer[4 * 40];

	memset(buffer, 0xa5, sizeof(buffer));
	assert_int_equal(_ibv_query_gid_table(context, (struct ibv_gid_entry *)(void *)buffer, 4, 0, 40), 4);
	for (unsigned int i = 0; i < 4; i++) {
		expect_gid((const union ibv_gid *)(void *)(buffer + 40 * i), i);
		for (size_t k = sizeof(struct ibv_gid_entry); k < 40; k++)
			assert_int_equal(buffer[40 * i + k], 0);
	}
	memset(buffer, 0xa5, sizeof(buffer));
	assert_int_equal(_ibv_query_gid_table(context, (struct ibv_gid_entry *)(void *)buffer, 4, 0, 16), 4);
	for (unsigned int i = 0; i < 4; i++)
		expect_gid((const union ibv_gid *)(void *)(buffer + 16 * i), i);
	assert_int_equal(buffer[64], 0xa5);
}

/* ibv_query_rt_values_ex(3): the clock runs, in nanoseconds of hca_core_clock. */
TEST(clock_runs)
{
	struct ibv_values_ex first = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK}, second = first;

	assert_int_equal(ibv_query_rt_values_ex(context, &first), 0);
	assert_int_equal(first.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	usleep(2000);
	assert_int_equal(ibv_query_rt_values_ex(context, &second), 0);
	assert_int_equal(first.raw_clock.tv_sec, 0);
	assert_true(second.raw_clock.tv_nsec - first.raw_clock.tv_nsec >= 2000000);
	assert_true(second.raw_clock.tv_nsec - first.raw_clock.tv_nsec < 30000000000L);
	first.comp_mask = 0;
	assert_int_equal(ibv_query_rt_values_ex(context, &first), 0);
	assert_int_equal(first.comp_mask, 0);
	first.comp_mask = IBV_VALUES_MASK_RESERVED;
	assert_int_equal(ibv_query_rt_values_ex(context, &first), EINVAL);
}

int main(void)
{
	setenv("SOFTHCA_GIDS", "loopback", 1);
	setenv("SOFTHCA_MTU", "1024", 1);
	return run_cases(.group_setup = objects_open, .group_teardown = objects_close);
}
