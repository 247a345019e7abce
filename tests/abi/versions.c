/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two versions of one name are two functions: mlx5dv_init_obj of MLX5_1.0 returns the location of the address of a CQ's
 * doorbell page, that of MLX5_1.2 the address itself. A program of libibverbs 1.0 finds no device and is told why.
 */
#include <dlfcn.h>
#include "test_case.h"

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

typedef int (*init_obj)(struct mlx5dv_obj *, uint64_t);

static struct mlx5dv_cq layout(const char *version, struct ibv_cq *cq)
{
	init_obj call = (init_obj)dlvsym(RTLD_DEFAULT, "mlx5dv_init_obj", version);
	struct mlx5dv_cq out;
	struct mlx5dv_obj object = {.cq = {.in = cq, .out = &out}};

	memset(&out, 0, sizeof(out));
	assert_non_null(call);
	assert_int_equal(call(&object, MLX5DV_OBJ_CQ), 0);
	return out;
}

TEST(test_init_obj)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;
	struct ibv_cq *cq;
	struct mlx5dv_cq old, current;

	assert_non_null(list);
	context = ibv_open_device(list[0]);
	assert_non_null(context);
	cq = ibv_create_cq(context, 10, NULL, NULL, 0);
	assert_non_null(cq);

	/* A program linked today gets this version. */
	assert_ptr_equal(dlvsym(RTLD_DEFAULT, "mlx5dv_init_obj", "MLX5_1.2"), (void *)mlx5dv_init_obj);
	current = layout("MLX5_1.2", cq);
	old = layout("MLX5_1.0", cq);
	assert_non_null(current.cq_uar);
	assert_ptr_not_equal(old.cq_uar, current.cq_uar);
	assert_ptr_equal(*(void **)old.cq_uar, current.cq_uar);
	/* The other members are the same. */
	assert_ptr_equal(old.buf, current.buf);
	assert_ptr_equal(old.dbrec, current.dbrec);
	assert_int_equal(old.cqe_cnt, current.cqe_cnt);
	assert_int_equal(old.cqe_size, current.cqe_size);
	assert_int_equal(old.cqn, current.cqn);

	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_close_device(context), 0);
	ibv_free_device_list(list);
}

TEST(test_libibverbs_1_0)
{
	void *(*get_device_list)(int *) = (void *(*)(int *))dlvsym(RTLD_DEFAULT, "ibv_get_device_list", "IBVERBS_1.0");
	int count = 7;

	assert_non_null(get_device_list);
	errno = 0;
	assert_null(get_device_list(&count));
	assert_int_equal(errno, EOPNOTSUPP);
}
