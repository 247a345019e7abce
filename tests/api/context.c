/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests devices and contexts through the ABI: ibv_get_device_list(3), ibv_open_device(3), ibv_import_device(3) and imported
 * objects, the function tables, the descriptors.
 */
#include "support/check.h"
#include "support/descriptors.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>

enum { DEVICES = 3 };

static struct ibv_context *open_first(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	assert_non_null(list);
	assert_non_null(list[0]);
	context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	assert_non_null(context);
	return context;
}

TEST(list_ends_with_null_and_counts)
{
	struct ibv_device **list;
	int count = -1;

	list = ibv_get_device_list(&count);
	assert_non_null(list);
	assert_int_equal(count, DEVICES);
	for (int i = 0; i < DEVICES; i++) {
		char name[16], dev_name[16], resolved[PATH_MAX];

		snprintf(name, sizeof(name), "soft%d", i);
		snprintf(dev_name, sizeof(dev_name), "uverbs%d", i);
		assert_string_equal(ibv_get_device_name(list[i]), name);
		assert_string_equal(list[i]->name, name);
		assert_string_equal(list[i]->dev_name, dev_name);
		assert_int_equal(list[i]->node_type, IBV_NODE_CA);
		assert_int_equal(list[i]->transport_type, IBV_TRANSPORT_IB);
		/* ibv_get_device_index(3) returns an index of the kernel, which a software device does not have. */
		assert_int_equal(ibv_get_device_index(list[i]), -1);
		assert_int_not_equal(ibv_get_device_guid(list[i]), 0);
		/* A program that finds PCI identifiers under this path would access registers that do not exist. */
		assert_null(realpath(list[i]->ibdev_path, resolved));
		assert_null(realpath(list[i]->dev_path, resolved));
		for (int k = 0; k < i; k++)
			assert_true(ibv_get_device_guid(list[i]) != ibv_get_device_guid(list[k]));
	}
	assert_null(list[DEVICES]);
	ibv_free_device_list(list);
	list = ibv_get_device_list(NULL);
	assert_non_null(list);
	ibv_free_device_list(list);
}

/* pyverbs opens a device after freeing its list. */
TEST(devices_outlive_their_list)
{
	struct ibv_device **list = ibv_get_device_list(NULL), *device;
	struct ibv_context *context;

	device = list[1];
	ibv_free_device_list(list);
	context = ibv_open_device(device);
	assert_non_null(context);
	assert_ptr_equal(context->device, device);
	assert_int_equal(ibv_close_device(context), 0);
	list = ibv_get_device_list(NULL);
	assert_ptr_equal(list[1], device);
	ibv_free_device_list(list);
}

/* verbs.h calls these without checking for NULL. */
TEST(tables_have_what_inline_calls_need)
{
	struct ibv_context *context = open_first();
	struct ibv_context_ops none = {0};
	const char *ops = (const char *)&context->ops;

	assert_ptr_equal(context->abi_compat, __VERBS_ABI_IS_EXTENDED);
	assert_true(context->num_comp_vectors >= 1);
	for (size_t i = 0; i < sizeof(none) / sizeof(void *); i++)
		assert_memory_not_equal(ops + i * sizeof(void *), &none, sizeof(void *));
	assert_non_null(verbs_get_ctx_op(context, query_port));
	assert_non_null(verbs_get_ctx_op(context, query_device_ex));
	assert_non_null(verbs_get_ctx_op(context, create_qp_ex));
	assert_non_null(verbs_get_ctx_op(context, create_cq_ex));
	assert_non_null(verbs_get_ctx_op(context, create_srq_ex));
	assert_int_equal(ibv_close_device(context), 0);
}

TEST(missing_operations_fail_with_eopnotsupp)
{
	struct ibv_context *context = open_first();
	struct ibv_counters_init_attr counters = {0};
	struct ibv_wq_init_attr wq = {0};

	errno = 0;
	assert_null(ibv_create_counters(context, &counters));
	assert_int_equal(errno, EOPNOTSUPP);
	errno = 0;
	assert_null(ibv_create_wq(context, &wq));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_close_device(context), 0);
}

TEST(descriptors_are_real)
{
	int before = count_descriptors();
	struct ibv_context *context = open_first();
	struct pollfd pollfd[2] = {{.fd = context->cmd_fd, .events = POLLIN},
				   {.fd = context->async_fd, .events = POLLIN}};
	struct ibv_async_event event;

	assert_true(context->cmd_fd >= 0 && context->async_fd >= 0 && context->cmd_fd != context->async_fd);
	assert_true(fcntl(context->cmd_fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(context->async_fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(poll(pollfd, 2, 0), 0);
	/* ibv_get_async_event(3), non-blocking mode */
	assert_int_equal(fcntl(context->async_fd, F_SETFL, fcntl(context->async_fd, F_GETFL) | O_NONBLOCK), 0);
	errno = 0;
	assert_int_equal(ibv_get_async_event(context, &event), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(ibv_close_device(context), 0);
	assert_true(descriptors_come_back_to(before));
}

/* ibv_open_device(3): closing "does not release all the resources". The PD must survive and stay usable. */
TEST(closing_with_objects_left_is_harmless)
{
	struct ibv_context *context = open_first();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	static char buffer[64];
	struct ibv_mr *mr;

	assert_non_null(pd);
	assert_int_equal(ibv_close_device(context), 0);
	mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

TEST(import_needs_a_command_descriptor)
{
	struct ibv_context *context = open_first();
	int pipes[2];

	errno = 0;
	assert_null(ibv_import_device(-1));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(pipe(pipes), 0);
	errno = 0;
	assert_null(ibv_import_device(pipes[0]));
	assert_int_equal(errno, ENODEV);
	errno = 0;
	assert_null(ibv_import_device(context->async_fd));
	assert_int_equal(errno, ENODEV);
	/* The library does not close descriptors that it refuses. */
	assert_int_equal(close(pipes[0]), 0);
	assert_int_equal(close(pipes[1]), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

/* Two contexts; the second is imported through a duplicate of the descriptor of the first. */
struct imported {
	struct ibv_context *first, *second;
};

static int import_setup(void **state)
{
	static struct imported both;

	both.first = open_first();
	both.second = ibv_import_device(dup(both.first->cmd_fd));
	assert_non_null(both.second);
	*state = &both;
	return 0;
}

static int import_teardown(void **state)
{
	struct imported *both = *state;

	assert_int_equal(ibv_close_device(both->second), 0);
	assert_int_equal(ibv_close_device(both->first), 0);
	return 0;
}

TEST_WITH(imported_context_is_one_of_the_device, import_setup, import_teardown)
{
	struct imported *both = *state;

	assert_ptr_not_equal(both->first, both->second);
	assert_ptr_equal(both->first->device, both->second->device);
	assert_int_not_equal(both->first->async_fd, both->second->async_fd);
}

TEST_WITH(handles_lead_to_the_same_objects, import_setup, import_teardown)
{
	struct imported *both = *state;
	struct ibv_alloc_dm_attr dm_attr = {.length = 64};
	uint32_t word = 0x12345678, read = 0;
	static char buffer[4096];
	struct ibv_pd *pd = ibv_alloc_pd(both->first), *pd2;
	struct ibv_mr *mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE), *mr2;
	struct ibv_dm *dm = ibv_alloc_dm(both->first, &dm_attr), *dm2;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;

	pd2 = ibv_import_pd(both->second, pd->handle);
	assert_non_null(pd2);
	assert_ptr_equal(pd2->context, both->second);
	mr2 = ibv_import_mr(pd2, mr->handle);
	assert_non_null(mr2);
	assert_int_equal(mr2->lkey, mr->lkey);
	assert_int_equal(mr2->rkey, mr->rkey);
	assert_int_equal(mr2->length, sizeof(buffer));
	assert_null(mr2->addr); /* ibv_import_mr(3): "not applicable, NULL value is expected" */
	dm2 = ibv_import_dm(both->second, dm->handle);
	assert_non_null(dm2);
	assert_int_equal(ibv_memcpy_to_dm(dm, 60, &word, 4), 0);
	assert_int_equal(ibv_memcpy_from_dm(&read, dm2, 60, 4), 0);
	assert_int_equal(read, word);
	/* A channel serves all contexts of one descriptor, since the kernel identifies them by it. */
	channel = ibv_create_comp_channel(both->first);
	assert_non_null(channel);
	cq = ibv_create_cq(both->second, 1, NULL, channel, 0);
	assert_non_null(cq);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	/* An imported region has no known address, so it cannot be reregistered. */
	errno = 0;
	assert_int_equal(ibv_rereg_mr(mr2, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);

	ibv_unimport_dm(dm2);
	ibv_unimport_mr(mr2);
	ibv_unimport_pd(pd2);
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST_WITH(wrong_handles_are_refused, import_setup, import_teardown)
{
	struct imported *both = *state;
	struct ibv_pd *pd = ibv_alloc_pd(both->first);

	errno = 0;
	assert_null(ibv_import_pd(both->second, 12345));
	assert_int_equal(errno, ENOENT);
	errno = 0;
	assert_null(ibv_import_mr(pd, pd->handle)); /* of another kind */
	assert_int_equal(errno, ENOENT);
	errno = 0;
	assert_null(ibv_import_dm(both->second, UINT32_MAX));
	assert_int_equal(errno, ENOENT);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* ibv_import_pd(3): the object is destroyed once, through any of its handles; the others unimport. */
TEST_WITH(destroyed_through_the_import, import_setup, import_teardown)
{
	struct imported *both = *state;
	struct ibv_pd *pd = ibv_alloc_pd(both->first), *pd2 = ibv_import_pd(both->second, pd->handle);
	static char buffer[4096];
	struct ibv_mr *mr = ibv_reg_mr(pd, buffer, sizeof(buffer), 0), *mr2 = ibv_import_mr(pd2, mr->handle);

	assert_int_equal(ibv_dealloc_pd(pd2), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr2), 0);
	assert_int_equal(ibv_dereg_mr(mr), ENOENT);
	ibv_unimport_mr(mr);
	assert_int_equal(ibv_dealloc_pd(pd2), 0);
	assert_int_equal(ibv_dealloc_pd(pd), ENOENT);
	ibv_unimport_pd(pd);
}

/* The device object is in use although this handle of it is not. */
TEST_WITH(in_use_through_the_import, import_setup, import_teardown)
{
	struct imported *both = *state;
	struct ibv_pd *pd = ibv_alloc_pd(both->first), *pd2 = ibv_import_pd(both->second, pd->handle);
	struct ibv_alloc_dm_attr dm_attr = {.length = 64};
	struct ibv_dm *dm = ibv_alloc_dm(both->first, &dm_attr), *dm2 = ibv_import_dm(both->second, dm->handle);
	struct ibv_mr *mr = ibv_reg_dm_mr(pd2, dm2, 0, 64, IBV_ACCESS_ZERO_BASED);

	assert_non_null(mr);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	/* An import may be dropped before the objects made through it. */
	ibv_unimport_dm(dm2);
	ibv_unimport_pd(pd2);
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

int main(void)
{
	setenv("SOFTHCA_DEVICES", "3", 1);
	setenv("SOFTHCA_DEVICE_NAME", "soft", 1);
	return run_cases();
}
