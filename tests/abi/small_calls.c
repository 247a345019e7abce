/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small calls: ibv_fork_init(3), ibv_is_fork_initialized(3), ibv_query_ece(3), ibv_set_ece(3),
 * ibv_query_qp_data_in_order(3), ibv_query_port_speed(3), mlx5dv_get_export_sizes(3), mlx5dv_qp_ex_from_ibv_qp_ex.
 */
#include "test_case.h"

#include <sys/wait.h>
#include <infiniband/mlx5dv.h>

#include "abi/undeclared.h"

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;

static int setup(void **state)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.send_ops_flags = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE,
	};

	(void)state;
	context = list ? mlx5dv_open_device(list[0], &(struct mlx5dv_context_attr){.flags = 0}) : NULL;
	pd = context ? ibv_alloc_pd(context) : NULL;
	cq = pd ? ibv_create_cq(context, 4, NULL, NULL, 0) : NULL;
	attr.pd = pd;
	attr.send_cq = attr.recv_cq = cq;
	qp = cq ? mlx5dv_create_qp(context, &attr, &dv) : NULL;
	if (list)
		ibv_free_device_list(list);
	return qp ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return ibv_destroy_qp(qp) || ibv_destroy_cq(cq) || ibv_dealloc_pd(pd) || ibv_close_device(context);
}

/* EINVAL is for memory that is already registered and that the child could lose, which cannot happen here. */
TEST(test_fork_init)
{
	long page = sysconf(_SC_PAGESIZE);
	char *memory = aligned_alloc(page, 2 * page);
	struct ibv_mr *mr;
	pid_t child;
	int status;

	assert_non_null(memory);
	memset(memory, 'x', 2 * page);
	mr = ibv_reg_mr(pd, memory, page, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_not_equal(ibv_is_fork_initialized(), IBV_FORK_DISABLED);
	assert_int_equal(ibv_dontfork_range(memory + page, page), 0);
	assert_int_equal(ibv_dofork_range(memory + page, page), 0);

	/* "Unneeded" promises that a child may keep using its copy of registered memory. */
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		memory[0] = 'y';
		_exit(ibv_is_fork_initialized() == IBV_FORK_UNNEEDED ? memory[0] != 'y' : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(memory[0], 'x');
	assert_int_equal(ibv_dereg_mr(mr), 0);
	free(memory);
}

/* As a connection manager does: query the local QP, send the options, set those of the peer. */
TEST(test_ece)
{
	struct ibv_ece ece = {.vendor_id = 1, .options = 1, .comp_mask = 1};

	assert_int_equal(ibv_query_ece(qp, &ece), 0);
	assert_int_equal(ece.comp_mask, 0);
	assert_int_not_equal(ece.vendor_id, 0);
	assert_int_equal(ibv_set_ece(qp, &ece), 0);
	/* The accepted options are returned in the same structure. */
	ece.options = 0xffffffff;
	assert_int_equal(ibv_set_ece(qp, &ece), 0);
	assert_int_equal(ece.options, 0);

	ece.comp_mask = 1;
	assert_int_equal(ibv_set_ece(qp, &ece), EINVAL);
	ece.comp_mask = 0;
	ece.vendor_id++;
	assert_int_equal(ibv_set_ece(qp, &ece), EINVAL);
}

TEST(test_wr_opcode_str)
{
	assert_string_equal(ibv_wr_opcode_str(IBV_WR_RDMA_WRITE), "rdma-write");
	assert_string_equal(ibv_wr_opcode_str(IBV_WR_ATOMIC_WRITE), "atomic-write");
	assert_string_equal(ibv_wr_opcode_str((enum ibv_wr_opcode)14), "flush");
	assert_string_equal(ibv_wr_opcode_str((enum ibv_wr_opcode)13), "unknown");
	assert_string_equal(ibv_wr_opcode_str((enum ibv_wr_opcode) - 1), "unknown");
	assert_string_equal(ibv_wr_opcode_str((enum ibv_wr_opcode)1000), "unknown");
}

/* The answer is 0 or 1, and unknown flags promise nothing. */
TEST(test_data_in_order)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND};

	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		int answer = ibv_query_qp_data_in_order(qp, opcodes[i], 0);

		assert_true(answer == 0 || answer == 1);
		assert_int_equal(ibv_query_qp_data_in_order(qp, opcodes[i], 1U << 31), 0);
	}
}

/*
 * The man page: "in 100Mb/s granularity". The speed of ibv_query_port(3), encoded by IBTA 14.2.5.6, is 4 lanes of 25
 * Gb/s.
 */
TEST(test_port_speed)
{
	struct ibv_port_attr attr;
	uint64_t speed = 0;

	assert_int_equal(ibv_query_port(context, 1, &attr), 0);
	assert_int_equal(attr.active_width, 2);
	assert_int_equal(attr.active_speed, 32);
	assert_int_equal(ibv_query_port_speed(context, 1, &speed), 0);
	assert_int_equal(speed, 4 * 250);
	assert_int_equal(ibv_query_port_speed(context, 0, &speed), EINVAL);
	assert_int_equal(ibv_query_port_speed(context, 257, &speed), EINVAL);
}

/*
 * Exporting is not supported: a buffer of zero bytes is enough, also for members of later structures, and nothing is
 * written.
 */
TEST(test_export_sizes)
{
	uint32_t sizes[5] = {7, 7, 7, 7, 7};

	_mlx5dv_get_export_sizes((struct mlx5dv_export_sizes *)sizes, 4 * sizeof(sizes[0]));
	for (int i = 0; i < 4; i++)
		assert_int_equal(sizes[i], 0);
	assert_int_equal(sizes[4], 7);
}

/* Three views of one QP. */
TEST(test_qp_ex)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	struct mlx5dv_qp_ex *dv;

	assert_non_null(ex);
	assert_ptr_equal(&ex->qp_base, qp);
	dv = mlx5dv_qp_ex_from_ibv_qp_ex(ex);
	assert_non_null(dv);
	assert_non_null(dv->wr_mkey_configure);
}

int main(void)
{
	return run_cases(.group_setup = setup, .group_teardown = teardown);
}
