/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_query_gid_type, used by rdma-core's programs only: returns the type of ibv_query_gid_ex(3) as sysfs has it. */
#include "test_case.h"

#include "abi/undeclared.h"

static struct ibv_context *context;

static int open_device(void **state)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	(void)state;
	context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	if (list)
		ibv_free_device_list(list);
	return context ? 0 : -1;
}

static int close_device(void **state)
{
	(void)state;
	return ibv_close_device(context);
}

static int table_length(void)
{
	struct ibv_port_attr attr;

	assert_int_equal(ibv_query_port(context, 1, &attr), 0);
	return attr.gid_tbl_len;
}

TEST(test_table)
{
	int length = table_length(), seen[2] = {0};

	for (int i = 0; i < length; i++) {
		struct ibv_gid_entry entry;
		enum ibv_gid_type_sysfs type = 99;
		int error = ibv_query_gid_ex(context, 1, i, &entry, 0);

		assert_int_equal(ibv_query_gid_type(context, 1, i, &type), 0);
		if (error) {
			assert_int_equal(error, ENODATA);
			assert_int_equal(type, 0);
			continue;
		}
		/*
		 * Names and numbers of /sys/class/infiniband/…/gid_attrs/types: "IB/RoCE v1" 0, "RoCE v2" 1.
		 */
		assert_int_equal(type, entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 1 : 0);
		seen[type]++;
	}
	assert_true(seen[0] > 0);
	assert_true(seen[1] > 0);
}

TEST(test_outside)
{
	enum ibv_gid_type_sysfs type;

	errno = 0;
	assert_int_equal(ibv_query_gid_type(context, 1, table_length(), &type), -1);
	assert_int_not_equal(errno, 0);
	errno = 0;
	assert_int_equal(ibv_query_gid_type(context, 2, 0, &type), -1);
	assert_int_not_equal(errno, 0);
}

int main(void)
{
	return run_cases(.group_setup = open_device, .group_teardown = close_device);
}
