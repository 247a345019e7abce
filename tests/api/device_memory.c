/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests ibv_alloc_dm(3), ibv_memcpy_to_dm(3), ibv_reg_dm_mr(3): sizes, ranges, alignment, and which object keeps which. */
#include "support/objects.h"

#include <sys/wait.h>

#define ZERO_BASED IBV_ACCESS_ZERO_BASED

static uint64_t memory_size(void)
{
	struct ibv_device_attr_ex attr;

	assert_int_equal(ibv_query_device_ex(context, NULL, &attr), 0);
	return attr.max_dm_size;
}

static struct ibv_dm *take(size_t length)
{
	struct ibv_alloc_dm_attr attr = {.length = length};
	struct ibv_dm *dm = ibv_alloc_dm(context, &attr);

	assert_non_null(dm);
	return dm;
}

TEST(sizes)
{
	struct ibv_alloc_dm_attr attr = {.length = memory_size() + 1}, rest = {.length = 1};
	struct ibv_dm *dm;

	expect_null(ibv_alloc_dm(context, &attr), EINVAL);
	attr.length = 0;
	expect_null(ibv_alloc_dm(context, &attr), EINVAL);
	attr.length = memory_size();
	dm = ibv_alloc_dm(context, &attr);
	assert_non_null(dm);
	expect_null(ibv_alloc_dm(context, &rest), ENOMEM);
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(ibv_free_dm(take(1)), 0);
}

TEST(attributes)
{
	struct ibv_alloc_dm_attr attr = {.length = 64, .comp_mask = 1};
	struct ibv_dm *dm;

	expect_null(ibv_alloc_dm(context, &attr), EINVAL);
	attr = (struct ibv_alloc_dm_attr){.length = 64, .log_align_req = 40};
	expect_null(ibv_alloc_dm(context, &attr), EINVAL);
	attr.log_align_req = 12;
	dm = ibv_alloc_dm(context, &attr);
	assert_non_null(dm);
	assert_ptr_equal(dm->context, context);
	assert_true(dm->comp_mask & IBV_DM_MASK_HANDLE);
	assert_int_equal(ibv_free_dm(dm), 0);
}

TEST(copies_there_and_back)
{
	struct ibv_dm *dm = take(256), *other = take(256);
	unsigned char out[256], in[256];

	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (unsigned char)i;
	assert_int_equal(ibv_memcpy_from_dm(in, dm, 0, 256), 0);
	for (size_t i = 0; i < sizeof(in); i++)
		assert_int_equal(in[i], 0);
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, out, 256), 0);
	assert_int_equal(ibv_memcpy_to_dm(dm, 100, out, 8), 0);
	memcpy(out + 100, out, 8);
	assert_int_equal(ibv_memcpy_from_dm(in, dm, 0, 256), 0);
	assert_memory_equal(in, out, 256);
	assert_int_equal(ibv_memcpy_from_dm(in, dm, 252, 4), 0);
	assert_memory_equal(in, out + 252, 4);
	/* Neighbours do not overlap. */
	assert_int_equal(ibv_memcpy_from_dm(in, other, 0, 256), 0);
	for (size_t i = 0; i < sizeof(in); i++)
		assert_int_equal(in[i], 0);
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(ibv_free_dm(other), 0);
}

TEST(copies_that_are_refused)
{
	static const struct {
		uint64_t offset;
		size_t length;
		int error;
	} cases[] = {
		{1, 4, EINVAL},
		{4, 3, EINVAL},
		{2, 2, EINVAL},
		{104, 4, EFAULT},
		{0, 104, EFAULT},
		{96, 8, EFAULT},
		{UINT64_MAX - 3, 4, EFAULT},
		{4, SIZE_MAX - 3, EFAULT},
		{UINT64_MAX - 3, 8, EFAULT},
		{101, 0, EFAULT},
	};
	struct ibv_dm *dm = take(100); /* bytes after it, up to the next block, are not accessible */
	char buffer[128] = "untouched";

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(ibv_memcpy_to_dm(dm, cases[i].offset, buffer, cases[i].length), cases[i].error);
		assert_int_equal(ibv_memcpy_from_dm(buffer, dm, cases[i].offset, cases[i].length), cases[i].error);
	}
	assert_string_equal(buffer, "untouched");
	assert_int_equal(ibv_memcpy_to_dm(dm, 100, buffer, 0), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

TEST(regions_keep_the_memory)
{
	struct ibv_dm *dm = take(128);
	struct ibv_mr *mr = ibv_reg_dm_mr(pd, dm, 0, 128, ZERO_BASED | IBV_ACCESS_LOCAL_WRITE), *part, *none;

	assert_non_null(mr);
	assert_null(mr->addr);
	assert_int_equal(mr->length, 128);
	assert_int_equal(mr->lkey, mr->rkey);
	part = ibv_reg_dm_mr(pd, dm, 64, 64, ZERO_BASED | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_RELAXED_ORDERING);
	assert_non_null(part);
	none = ibv_reg_dm_mr(pd, dm, 128, 0, ZERO_BASED);
	assert_non_null(none);
	errno = 0;
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dereg_mr(none), 0);
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	assert_int_equal(ibv_dereg_mr(part), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

TEST(regions_that_are_refused)
{
	struct ibv_dm *dm = take(128);
	const unsigned int write = ZERO_BASED | IBV_ACCESS_LOCAL_WRITE;

	expect_null(ibv_reg_dm_mr(pd, dm, 0, 128, IBV_ACCESS_LOCAL_WRITE), EINVAL);
	expect_null(ibv_reg_dm_mr(pd, dm, 0, 132, write), EINVAL);
	expect_null(ibv_reg_dm_mr(pd, dm, 4, 128, write), EINVAL);
	expect_null(ibv_reg_dm_mr(pd, dm, 132, 0, write), EINVAL);
	expect_null(ibv_reg_dm_mr(pd, dm, UINT64_MAX - 3, 8, write), EINVAL);
	expect_null(ibv_reg_dm_mr(pd, dm, 2, 64, write), EINVAL);
	expect_null(ibv_reg_dm_mr(pd, dm, 0, 63, write), EINVAL);
	expect_null(ibv_reg_dm_mr(pd, dm, 0, 128, write | IBV_ACCESS_MW_BIND), EINVAL);
	expect_null(ibv_reg_dm_mr(pd, dm, 0, 128, write | IBV_ACCESS_ON_DEMAND), EINVAL);
	expect_null(ibv_reg_dm_mr(pd, dm, 0, 128, ZERO_BASED | IBV_ACCESS_REMOTE_WRITE), EINVAL);
	assert_int_equal(ibv_free_dm(dm), 0);
}

/* Five children of one process allocate device memory through their parent's context at the same time. */
TEST(children_take_memory)
{
	struct ibv_alloc_dm_attr attr = {.length = memory_size() / 10};
	pid_t child[5];
	int status;

	for (int i = 0; i < 5; i++) {
		child[i] = fork();
		if (child[i] == 0) {
			alarm(20);
			_exit(ibv_alloc_dm(context, &attr) ? 0 : 1);
		}
	}
	for (int i = 0; i < 5; i++) {
		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(ibv_free_dm(take(memory_size())), 0);
}

int main(void)
{
	return run_cases(.group_setup = objects_open, .group_teardown = objects_close);
}
