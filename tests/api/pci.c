/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices shown as PCI functions: attributes of the function from ibv_read_sysfs_file(). The files exist only under
 * `softhca run`, so no path may lead to one (tests/tool/presence.py tests them).
 */
#include "support/program.h"

#include <limits.h>

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

static void expect_file(const struct ibv_device *device, const char *file, const char *expected)
{
	char text[128] = "";

	assert_int_equal(ibv_read_sysfs_file(device->ibdev_path, file, text, sizeof(text)), strlen(expected));
	assert_string_equal(text, expected);
}

/* pci.ids has 15b3 for Mellanox; the device is the one of ibv_query_device(3); 0x020000 is an Ethernet controller (PCI 3.0 D.2). */
TEST(function_is_that_of_the_queries)
{
	const struct ibv_device *device = client.context->device;
	struct ibv_device_attr attr;
	char expected[64];

	assert_int_equal(ibv_query_device(client.context, &attr), 0);
	expect_file(device, "device/vendor", "0x15b3");
	snprintf(expected, sizeof(expected), "0x%04x", attr.vendor_part_id);
	expect_file(device, "device/device", expected);
	expect_file(device, "device/class", "0x020000");
	expect_file(device, "device/numa_node", "-1");
	expect_file(device, "device/current_link_width", "16");
	expect_file(device, "device/current_link_speed", "16.0 GT/s PCIe");
}

TEST(each_device_is_a_function)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; i < 2; i++) {
		char text[128], slot[64], resolved[PATH_MAX];

		assert_true(ibv_read_sysfs_file(list[i]->ibdev_path, "device/uevent", text, sizeof(text)) > 0);
		snprintf(slot, sizeof(slot), "PCI_SLOT_NAME=5348:00:%02d.0", i);
		assert_non_null(strstr(text, slot));
		assert_null(realpath(list[i]->ibdev_path, resolved));
	}
	ibv_free_device_list(list);
}

int main(void)
{
	setenv("SOFTHCA_PCI", "on", 1);
	setenv("SOFTHCA_DEVICES", "2", 1);
	return run_program();
}
