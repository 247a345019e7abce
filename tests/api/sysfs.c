/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_read_sysfs_file(), which no header declares: device files match ibv_query_*, and counters match the events that
 * occurred.
 */
#include "support/program.h"

#include <arpa/inet.h>
#include <endian.h>
#include <inttypes.h>
#include <net/if.h>

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

/* Checks @file of the device by the path in its structure and by the path that programs use. */
static void expect_file(const char *file, const char *expected)
{
	char path[128], text[128];

	assert_int_equal(ibv_read_sysfs_file(client.context->device->ibdev_path, file, text, sizeof(text)),
			 strlen(expected));
	assert_string_equal(text, expected);
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s", client.context->device->name);
	assert_int_equal(ibv_read_sysfs_file(path, file, text, sizeof(text)), strlen(expected));
	assert_string_equal(text, expected);
}

static void expect_none(const char *file)
{
	char text[128];

	errno = 0;
	assert_int_equal(ibv_read_sysfs_file(client.context->device->ibdev_path, file, text, sizeof(text)), -1);
	assert_int_equal(errno, ENOENT);
}

/* GUIDs and GIDs are groups of four digits, in network order. */
static void print_groups(char *text, const void *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		text += sprintf(text, "%s%04x", i ? ":" : "", be16toh(((const uint16_t *)bytes)[i]));
}

TEST(device_is_that_of_the_queries)
{
	struct ibv_device_attr attr;
	char expected[64];

	assert_int_equal(ibv_query_device(client.context, &attr), 0);
	expect_file("fw_ver", attr.fw_ver);
	print_groups(expected, &attr.node_guid, 4);
	expect_file("node_guid", expected);
	expect_file("sys_image_guid", expected);
	expect_file("node_type", "1: CA");
	snprintf(expected, sizeof(expected), "MT%u", attr.vendor_part_id);
	expect_file("hca_type", expected);
	snprintf(expected, sizeof(expected), "%x", attr.hw_ver);
	expect_file("hw_rev", expected);
	/* A PCI function would make programs access its registers directly. */
	expect_none("device/vendor");
}

TEST(port_is_that_of_the_queries)
{
	struct ibv_port_attr attr;
	char expected[64];

	assert_int_equal(ibv_query_port(client.context, 1, &attr), 0);
	expect_file("ports/1/link_layer", "Ethernet");
	expect_file("ports/1/state", "4: ACTIVE");
	expect_file("ports/1/phys_state", "5: LinkUp");
	snprintf(expected, sizeof(expected), "0x%08x", attr.port_cap_flags);
	expect_file("ports/1/cap_mask", expected);
	snprintf(expected, sizeof(expected), "0x%x", attr.lid);
	expect_file("ports/1/lid", expected);
	expect_file("ports/1/pkeys/0", "0xffff");
	expect_none("ports/1/pkeys/1");
	expect_none("ports/2/state");
}

TEST(gids_are_those_of_the_queries)
{
	struct ibv_port_attr attr;
	int used = 0;

	assert_int_equal(ibv_query_port(client.context, 1, &attr), 0);
	for (int i = 0; i < attr.gid_tbl_len; i++) {
		struct ibv_gid_entry entry;
		char file[64], expected[64], interface[IF_NAMESIZE];
		const union ibv_gid none = {.raw = {0}};
		bool there = ibv_query_gid_ex(client.context, 1, (uint32_t)i, &entry, 0) == 0;

		snprintf(file, sizeof(file), "ports/1/gids/%d", i);
		print_groups(expected, there ? &entry.gid : &none, 8);
		expect_file(file, expected);
		snprintf(file, sizeof(file), "ports/1/gid_attrs/types/%d", i);
		if (!there) {
			expect_none(file);
			continue;
		}
		used++;
		expect_file(file, entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1");
		snprintf(file, sizeof(file), "ports/1/gid_attrs/ndevs/%d", i);
		expect_file(file, if_indextoname(entry.ndev_ifindex, interface));
	}
	assert_true(used >= 4);
	expect_none("ports/1/gids/64");
}

TEST(buffers_end_where_they_end)
{
	char text[16];

	memset(text, '#', sizeof(text));
	errno = 0;
	assert_int_equal(ibv_read_sysfs_file(client.context->device->ibdev_path, "node_type", text, 5), -1);
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(text[5], '#');
	assert_int_equal(ibv_read_sysfs_file(client.context->device->ibdev_path, "node_type", text, 6), 5);
	assert_string_equal(text, "1: CA");
	assert_int_equal(text[6], '#');
}

TEST(nodes_name_their_devices)
{
	char text[64];

	assert_int_equal(ibv_read_sysfs_file("/sys/class", "infiniband_verbs/abi_version", text, sizeof(text)), 1);
	assert_string_equal(text, "6");
	assert_true(ibv_read_sysfs_file(client.context->device->dev_path, "ibdev", text, sizeof(text)) > 0);
	assert_string_equal(text, client.context->device->name);
}

static unsigned long long counter(const char *name)
{
	char file[64], text[64], *end;
	unsigned long long value;

	snprintf(file, sizeof(file), "ports/1/%s", name);
	assert_true(ibv_read_sysfs_file(client.context->device->ibdev_path, file, text, sizeof(text)) > 0);
	value = strtoull(text, &end, 10);
	assert_true(end > text && !*end);
	return value;
}

/* The mlx5 counters of both sides for a receiver that is not ready. */
TEST(counters_count)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	unsigned long long refused = counter("hw_counters/out_of_buffer");
	unsigned long long told = counter("hw_counters/rnr_nak_retry_err");
	struct ibv_sge sge = side_sge(&client, 0, 64);
	struct ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &sge);

	options.rnr_retry = 0;
	pair_replace(&pair, &options);
	post_send(&pair.client, &wr);
	expect_status(&pair.client, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(counter("hw_counters/out_of_buffer"), refused + 1);
	assert_int_equal(counter("hw_counters/rnr_nak_retry_err"), told + 1);
	assert_int_equal(counter("hw_counters/lifespan"), 10);
}
