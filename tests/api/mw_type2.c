/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of type 2: NOTES of ibv_bind_mw(3). */
#include <endian.h>
#include <sys/mman.h>

#include "support/program.h"

enum { BIND_ID = 0xb14d };

/*
 * Builds a request of the server to bind @mw, with its next rkey, to [@address, +@length) of @mr. Valid until the next
 * call.
 */
static struct ibv_send_wr *bind_request(struct ibv_mw *mw, struct ibv_mr *mr, uint64_t address, uint64_t length)
{
	static struct ibv_send_wr wr;

	wr = (struct ibv_send_wr){
		.wr_id = BIND_ID,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {.mw = mw,
			    .rkey = ibv_inc_rkey(mw->rkey),
			    .bind_info = {.mr = mr,
					  .addr = address,
					  .length = length,
					  .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}},
	};
	return &wr;
}

/* Checks that the bind ends with MW_BIND_ERR and the QP in ERR, and that @rkey then gives no access. */
static void expect_not_bound(uint32_t rkey, size_t start, size_t length)
{
	expect_status(&pair.server, BIND_ID, IBV_WC_MW_BIND_ERR);
	expect_state(&pair.server, IBV_QPS_ERR);
	pair_renew(&pair);
	expect_write(&pair, client_memory(8), view_with_key(&server, rkey, start, length), IBV_WC_REM_ACCESS_ERR);
}

TEST(bind_by_post_send)
{
	enum { WR_ID = 0x2222, START = 8192, LENGTH = 4096 };
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);
	uint32_t before = mw->rkey, bound = ibv_inc_rkey(before);
	struct ibv_send_wr wr = {
		.wr_id = WR_ID,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {.mw = mw,
			    .rkey = bound,
			    .bind_info = {.mr = server.mr,
					  .addr = side_address(&server, START),
					  .length = LENGTH,
					  .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}},
	};
	struct view memory = view_memory(&client, 1000, LENGTH);

	post_send(&pair.server, &wr);
	expect_completion(&pair.server, WR_ID, IBV_WC_BIND_MW);
	expect_idle(&pair.server);
	assert_int_equal(mw->rkey, before);
	expect_write(&pair, memory, view_with_key(&server, bound, START, LENGTH), IBV_WC_SUCCESS);
	expect_write(&pair, memory, view_with_key(&server, before, START, LENGTH), IBV_WC_REM_ACCESS_ERR);
}

/* IBTA o10-37.2.40. Neither a previously bound range is accessed nor the one at the address. */
TEST(bind_of_no_bytes)
{
	enum { WR_ID = 0x2222, START = 8192, LENGTH = 4096 };

	for (int i = 0; i < 4; i++) {
		bool by_builder = i & 1, with_region = i & 2;
		struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);
		struct ibv_send_wr wr = {
			.wr_id = WR_ID,
			.opcode = IBV_WR_BIND_MW,
			.send_flags = IBV_SEND_SIGNALED,
			.bind_mw = {.mw = mw,
				    .rkey = ibv_inc_rkey(mw->rkey),
				    .bind_info = {.mr = with_region ? server.mr : NULL,
						  .addr = with_region ? side_address(&server, START) : 0,
						  .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}},
		};

		note("by builder %d, with a region %d", by_builder, with_region);
		if (by_builder) {
			ibv_wr_start(pair.server.ex);
			pair.server.ex->wr_id = WR_ID;
			pair.server.ex->wr_flags = IBV_SEND_SIGNALED;
			ibv_wr_bind_mw(pair.server.ex, mw, wr.bind_mw.rkey, &wr.bind_mw.bind_info);
			expect_error(ibv_wr_complete(pair.server.ex), 0);
		} else {
			post_send(&pair.server, &wr);
		}
		expect_status(&pair.server, WR_ID, IBV_WC_MW_BIND_ERR);
		expect_state(&pair.server, IBV_QPS_ERR);
		pair_renew(&pair);
		expect_write(&pair, client_memory(8), view_with_key(&server, wr.bind_mw.rkey, START, LENGTH),
			     IBV_WC_REM_ACCESS_ERR);
	}
}

/*
 * As above with a region of 2 GiB, the length of an entry with byte count 0 (mlx5-formats 1.9): only the length of
 * the window is wrong.
 */
TEST(bind_of_no_bytes_of_a_large_region)
{
	const size_t bytes = (size_t)1 << 31, piece = 1 << 20;
	uint8_t *memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);
	int file = memfd_create("region", MFD_CLOEXEC);
	struct ibv_mr *mr;

	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_true(file >= 0);
	expect_error(ftruncate(file, (off_t)piece), 0);
	/* Map the same memory repeatedly: a registration touches all of its pages. */
	for (size_t at = 0; at < bytes; at += piece)
		assert_ptr_equal(mmap(memory + at, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0),
				 memory + at);
	mr = ibv_reg_mr(server.pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	assert_non_null(mr);
	post_send(&pair.server, bind_request(mw, mr, (uintptr_t)memory, 0));
	expect_status(&pair.server, BIND_ID, IBV_WC_MW_BIND_ERR);
	expect_state(&pair.server, IBV_QPS_ERR);
	expect_error(ibv_dereg_mr(mr), 0);
	expect_error(munmap(memory, bytes), 0);
	expect_error(close(file), 0);
}

/*
 * IBTA 10.6.6.2.3: window, region and QP must be in the same protection domain. Tested with ibv_post_send(3) and
 * ibv_wr_bind_mw(3).
 */
TEST(region_of_another_domain)
{
	enum { START = 8192, LENGTH = 4096 };
	struct ibv_pd *pd = ibv_alloc_pd(server.context);
	struct ibv_mr *mr;

	assert_non_null(pd);
	mr = ibv_reg_mr(pd, server.memory, server.bytes, SIDE_ACCESS);
	assert_non_null(mr);
	for (int by_builder = 0; by_builder < 2; by_builder++) {
		struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);
		struct ibv_send_wr *wr = bind_request(mw, mr, side_address(&server, START), LENGTH);

		note("by builder %d", by_builder);
		if (by_builder) {
			batch_start(&pair.server, BIND_ID, IBV_SEND_SIGNALED);
			ibv_wr_bind_mw(pair.server.ex, mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
			expect_error(ibv_wr_complete(pair.server.ex), 0);
		} else {
			post_send(&pair.server, wr);
		}
		expect_not_bound(wr->bind_mw.rkey, START, LENGTH);
	}
	expect_error(ibv_dereg_mr(mr), 0);
	expect_error(ibv_dealloc_pd(pd), 0);
}

/* Posts a bind in the format of mlx5-formats 1.15 with @qpn as the QP of the window. */
static void post_raw_bind(struct ibv_mw *mw, uint32_t rkey, uint32_t qpn, uint64_t address, uint32_t length)
{
	struct {
		struct mlx5_wqe_ctrl_seg ctrl;
		struct mlx5_wqe_umr_ctrl_seg umr;
		struct mlx5_wqe_mkey_context_seg mkey;
		struct mlx5_wqe_data_seg entry;
		uint8_t zero[48];
	} wqe;

	memset(&wqe, 0, sizeof(wqe));
	mlx5dv_set_ctrl_seg(&wqe.ctrl, 0, MLX5_OPCODE_UMR, 0, pair.server.qp->qp_num, MLX5_WQE_CTRL_CQ_UPDATE,
			    sizeof(wqe) / 16, 0, htobe32(mw->rkey));
	wqe.umr.flags = 0xb0;
	wqe.umr.klm_octowords = htobe16(4);
	wqe.umr.mkey_mask = htobe64(
		MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE | MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY | MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN |
		MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE |
		MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ |
		MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC | MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN);
	wqe.mkey.access_flags = MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_WRITE;
	wqe.mkey.qpn_mkey = htobe32(qpn << 8 | (rkey & 0xff));
	wqe.mkey.start_addr = htobe64(address);
	wqe.mkey.len = htobe64(length);
	mlx5dv_set_data_seg(&wqe.entry, length, server.mr->lkey, address);
	ibv_wr_start(pair.server.ex);
	pair.server.ex->wr_id = BIND_ID;
	mlx5dv_wr_raw_wqe(pair.server.dv, &wqe);
	expect_error(ibv_wr_complete(pair.server.ex), 0);
}

/*
 * IBTA 10.6.7.2.3: a type 2 window gives access to the QP that binds it. A request with the number of another QP of the
 * process binds nothing, neither for its own QP nor for the other one.
 */
TEST(bind_for_another_qp)
{
	enum { START = 8192, LENGTH = 4096 };
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	struct pair other;

	options.dv_send_ops |= MLX5DV_QP_EX_WITH_RAW_WQE;
	pair_replace(&pair, &options);
	pair_open(&other, &client, &server, &options);
	post_raw_bind(mw, rkey, other.server.qp->qp_num, side_address(&server, START), LENGTH);
	expect_not_bound(rkey, START, LENGTH);
	expect_write(&other, client_memory(8), view_with_key(&server, rkey, START, LENGTH), IBV_WC_REM_ACCESS_ERR);
	pair_close(&other);

	/* The same request with its own QP number binds the window. */
	post_raw_bind(mw, rkey, pair.server.qp->qp_num, side_address(&server, START), LENGTH);
	expect_completion(&pair.server, BIND_ID, IBV_WC_DRIVER2);
	expect_write(&pair, client_memory(LENGTH), view_with_key(&server, rkey, START, LENGTH), IBV_WC_SUCCESS);
}

/* The man page requires IBV_ACCESS_MW_BIND, and local write for remote writes and atomics; an adapter does not. */
TEST(region_without_rights)
{
	static const unsigned int regions[] = {IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_MW_BIND, 0};
	bool connectx = in_profile("connectx", __func__); /* then in the other profile */

	for (size_t i = 0; i < ARRAY_SIZE(regions); i++) {
		struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);
		struct ibv_send_wr wr = {
			.wr_id = 7,
			.opcode = IBV_WR_BIND_MW,
			.send_flags = IBV_SEND_SIGNALED,
			.bind_mw = {.mw = mw,
				    .rkey = ibv_inc_rkey(mw->rkey),
				    .bind_info = {.mr = side_register(&server, 8192, 4096, regions[i]),
						  .addr = side_address(&server, 8192),
						  .length = 4096,
						  .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}},
		};

		note("region %zu", i);
		post_send(&pair.server, &wr);
		if (connectx) {
			expect_completion(&pair.server, 7, IBV_WC_BIND_MW);
			continue;
		}
		expect_status(&pair.server, 7, IBV_WC_MW_BIND_ERR);
		pair_renew(&pair);
	}
}
