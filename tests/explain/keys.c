/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 1 to 13 and 66: keys along the path of a request. The client writes to keys of the server. */
#include "kernel_has.h"
#include "rule_cases.h"
#include "test_clock.h"

#include <sys/mman.h>
#include <unistd.h>

#include "support/mkey.h"

enum { NO_KEY = 0xabcdef00, PAGE = 4096 };

static uint32_t pd_number(struct ibv_pd *pd)
{
	struct mlx5dv_pd out = {0};
	struct mlx5dv_obj object = {.pd = {.in = pd, .out = &out}};

	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_PD), 0);
	return out.pdn;
}

/* Makes a key of the server over one interleaved entry. */
static struct mlx5dv_mkey *interleave(struct mlx5dv_mr_interleaved entry, uint32_t repeat)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	expect_error(configure_interleaved(&pair.server, BY_MR_CALL, mkey, KEY_ACCESS, repeat, 1, &entry), 0);
	expect_completion(&pair.server, CONFIGURE_WR_ID, MLX5DV_WC_UMR);
	return mkey;
}

RULE_CASE(KEY_UNKNOWN)
{
	write_to(NO_KEY, 0x1000);
	expect_failure(&pair.client, WR_ID, REM_ACCESS_ERR, KEY_UNKNOWN, "RDMA_WRITE",
		       "key 0xabcdef00 does not exist; the request covers [0x1000, +16)");
	/* The peer gets the explanation too, under its own QP. */
	expect_about_qp(KEY_UNKNOWN, pair.server.qp->qp_num,
			": key 0xabcdef00 does not exist; the request covers [0x1000, +16)");
	expect_state(&pair.server, IBV_QPS_ERR);

	/* The rkey was sent without byte order conversion. */
	pair_renew(&pair);
	write_to(__builtin_bswap32(server.mr->rkey), 0x1000);
	expect_failure(
		&pair.client, WR_ID, REM_ACCESS_ERR, KEY_UNKNOWN, "RDMA_WRITE",
		"key 0x%x does not exist (0x%x, the same bytes in the other order, does); the request covers [0x1000, "
		"+16)",
		__builtin_bswap32(server.mr->rkey), server.mr->rkey);
}

/* SPDK keeps the lkey of a region that it deregisters and registers again. */
RULE_CASE(KEY_ENDED)
{
	struct ibv_mr *mr = ibv_reg_mr(server.pd, server.memory, PAGE, SIDE_ACCESS), *again;
	struct softhca_explanation newest;
	const double begin = seconds_now();
	uint32_t key = mr->rkey;

	expect_error(ibv_dereg_mr(mr), 0);
	again = ibv_reg_mr(server.pd, server.memory, PAGE, SIDE_ACCESS);
	assert_int_not_equal(again->rkey, key);
	usleep(5000);
	write_to(key, 0x1000);
	assert_int_equal(expect_status(&pair.client, WR_ID, IBV_WC_REM_ACCESS_ERR).vendor_err, RULE_KEY_ENDED);
	assert_int_equal(softhca_explanations(client.context, pair.server.qp->qp_num, &newest, 1), 1);
	assert_in_range(newest.figure[2], 5, (uint64_t)((seconds_now() - begin) * 1000));
	expect_about_qp(KEY_ENDED, pair.server.qp->qp_num,
			": key 0x%x, a memory region, was deregistered or destroyed %" PRIu64
			" ms ago; the request covers [0x1000, +16)",
			key, newest.figure[2]);
	expect_error(ibv_dereg_mr(again), 0);
}

RULE_CASE(KEY_FREE)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	write_to(mkey->rkey, 32);
	expect_failure(
		&pair.client, WR_ID, REM_ACCESS_ERR, KEY_FREE, "RDMA_WRITE",
		"key 0x%x, a layout key, was never configured or bound, or was invalidated; the request covers [0x20, +16)",
		mkey->rkey);
}

RULE_CASE(KEY_STALE)
{
	uint32_t other_tag = server.mr->rkey ^ 1;

	write_to(other_tag, side_address(&server, 0));
	expect_failure(&pair.client, WR_ID, REM_ACCESS_ERR, KEY_STALE, "RDMA_WRITE",
		       "key 0x%x does not exist: the memory region with that index is 0x%x; the request "
		       "covers [0x%" PRIx64 ", +16)",
		       other_tag, server.mr->rkey, side_address(&server, 0));
}

RULE_CASE(KEY_DOMAIN)
{
	struct ibv_pd *other = ibv_alloc_pd(server.context);
	struct ibv_mr *mr = ibv_reg_mr(other, server.memory, PAGE, SIDE_ACCESS);

	write_to(mr->rkey, side_address(&server, 0));
	expect_failure(&pair.client, WR_ID, REM_ACCESS_ERR, KEY_DOMAIN, "RDMA_WRITE",
		       "key 0x%x is a memory region of protection domain 0x%x; the queue pair is in domain 0x%x",
		       mr->rkey, pd_number(other), pd_number(server.pd));
	expect_error(ibv_dereg_mr(mr), 0);
	expect_error(ibv_dealloc_pd(other), 0);
}

RULE_CASE(KEY_OTHER_QP)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);
	uint32_t owner = pair.server.qp->qp_num;
	struct pair mine = pair;

	lend(mw, server.mr, PAGE, IBV_ACCESS_REMOTE_WRITE);
	pair_open(&pair, &client, &server, &options);
	write_to(mw->rkey, side_address(&server, 0));
	expect_failure(&pair.client, WR_ID, REM_ACCESS_ERR, KEY_OTHER_QP, "RDMA_WRITE",
		       "key 0x%x is a type 2 window bound to queue pair 0x%x; the request came through queue pair 0x%x",
		       mw->rkey, owner, pair.server.qp->qp_num);
	pair_close(&pair);
	pair = mine;
	pair.client.peer = &pair.server;
	pair.server.peer = &pair.client;
}

RULE_CASE(KEY_RIGHTS)
{
	struct ibv_mr *mr = side_register(&server, 0, PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);

	write_to(mr->rkey, side_address(&server, 8));
	expect_failure(&pair.client, WR_ID, REM_ACCESS_ERR, KEY_RIGHTS, "RDMA_WRITE",
		       "key 0x%x is a memory region that allows local read|local write|remote read; the request needs "
		       "remote write for [0x%" PRIx64 ", +16)",
		       mr->rkey, side_address(&server, 8));
}

RULE_CASE(KEY_RANGE)
{
	struct ibv_mr *mr = side_register(&server, 0, 100, SIDE_ACCESS);

	write_to(mr->rkey, side_address(&server, 90));
	expect_failure(&pair.client, WR_ID, REM_ACCESS_ERR, KEY_RANGE, "RDMA_WRITE",
		       "key 0x%x is a memory region of [0x%" PRIx64 ", +100); the request covers [0x%" PRIx64 ", +16)",
		       mr->rkey, side_address(&server, 0), side_address(&server, 90));

	/* The address was truncated to 32 bits, and sent without byte order conversion. */
	pair_renew(&pair);
	write_to(mr->rkey, side_address(&server, 0) & UINT32_MAX);
	expect_failure(&pair.client, WR_ID, REM_ACCESS_ERR, KEY_RANGE, "RDMA_WRITE",
		       "key 0x%x is a memory region of [0x%" PRIx64 ", +100); the request covers [0x%" PRIx64
		       ", +16); its address lost its upper 32 bits: 0x%" PRIx64 " would be inside",
		       mr->rkey, side_address(&server, 0), side_address(&server, 0) & UINT32_MAX,
		       side_address(&server, 0));
	pair_renew(&pair);
	write_to(mr->rkey, __builtin_bswap64(side_address(&server, 0)));
	expect_failure(&pair.client, WR_ID, REM_ACCESS_ERR, KEY_RANGE, "RDMA_WRITE",
		       "key 0x%x is a memory region of [0x%" PRIx64 ", +100); the request covers [0x%" PRIx64
		       ", +16); its address is in the other byte order: 0x%" PRIx64 " would be inside",
		       mr->rkey, side_address(&server, 0), __builtin_bswap64(side_address(&server, 0)),
		       side_address(&server, 0));
}

RULE_CASE(KEY_NOT_MAPPED)
{
	if (!kernel_has_page_checks())
		skip();
	uint8_t *memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(server.pd, memory, 2 * PAGE, SIDE_ACCESS | IBV_ACCESS_ON_DEMAND);

	assert_non_null(mr);
	/* mprotect() rather than munmap(): another thread could reuse unmapped memory. */
	expect_error(mprotect(memory + PAGE, PAGE, PROT_NONE), 0);
	write_to(mr->rkey, (uintptr_t)memory + PAGE + 4);
	expect_failure(&pair.client, WR_ID, REM_ACCESS_ERR, KEY_NOT_MAPPED, "RDMA_WRITE",
		       "key 0x%x is a memory region on demand, and its memory at [0x%" PRIxPTR
		       ", +16) is not mapped, or does not permit the access",
		       mr->rkey, (uintptr_t)memory + PAGE + 4);
	expect_error(ibv_dereg_mr(mr), 0);
	munmap(memory, 2 * PAGE);
}

/* docs/reference/limits.md, MKEY_DEPTH: a walk passes through 4 keys; the fifth must be plain memory. */
RULE_CASE(KEY_DEPTH)
{
	struct ibv_sge sge = side_sge(&server, 0, 64);
	struct mlx5dv_mkey *innermost = NULL, *mkey = NULL;

	for (int level = 0; level < 5; level++) {
		mkey = side_create_mkey(&server, 4, NULL);
		expect_error(configure_list(&pair.server, BY_MR_CALL, mkey, KEY_ACCESS, 1, &sge), 0);
		expect_completion(&pair.server, CONFIGURE_WR_ID, MLX5DV_WC_UMR);
		innermost = innermost ? innermost : mkey;
		sge = (struct ibv_sge){.addr = 0, .length = 64, .lkey = mkey->lkey};
	}
	write_to(mkey->rkey, 0);
	expect_failure(&pair.client, WR_ID, REM_ACCESS_ERR, KEY_DEPTH, "RDMA_WRITE",
		       "key 0x%x lies below 4 other keys, the most levels that a request passes through",
		       innermost->rkey);
}

/* mlx5-formats 6, no. 42: the key is 65536 + 24 bytes long; its entry holds the low 16 bits of that. */
RULE_CASE(LAYOUT_SHORT, .profile = "connectx")
{
	struct mlx5dv_mkey *mkey = interleave(side_interleaved(&server, 0, 65536 + 24, 0), 1);

	write_to(mkey->rkey, 20);
	expect_failure(
		&pair.client, WR_ID, REM_ACCESS_ERR, LAYOUT_SHORT, "RDMA_WRITE",
		"key 0x%x is a layout key with a layout that translates 24 bytes; the request needs [0x14, +16) of them",
		mkey->rkey);
}

RULE_CASE(LAYOUT_WRAPS)
{
	struct mlx5dv_mr_interleaved entry = {
		.addr = 0xffffffffffffff00, .bytes_count = BYTES, .bytes_skip = 256 - BYTES, .lkey = server.mr->lkey};
	struct mlx5dv_mkey *mkey = interleave(entry, 2);

	write_to(mkey->rkey, BYTES);
	expect_failure(
		&pair.client, WR_ID, REM_ACCESS_ERR, LAYOUT_WRAPS, "RDMA_WRITE",
		"an entry of the layout begins at 0xffffffffffffff00 of key 0x%x; byte 0x0 of its repetition 0x100 bytes further on is beyond the address space (16 bytes are needed)",
		server.mr->lkey);
}

RULE_CASE(WINDOW_REGION_GONE, .profile = "connectx")
{
	struct ibv_mr *mr = side_register(&server, 0, PAGE, SIDE_ACCESS);
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);
	uint32_t region = mr->lkey;

	lend(mw, mr, PAGE, IBV_ACCESS_REMOTE_WRITE);
	side_deregister(&server, mr);
	write_to(mw->rkey, side_address(&server, 64));
	expect_failure(
		&pair.client, WR_ID, REM_ACCESS_ERR, WINDOW_REGION_GONE, "RDMA_WRITE",
		"the window was bound to memory region 0x%x, which has been deregistered since; the request covers [0x%" PRIx64
		", +16)",
		region, side_address(&server, 64));
}

RULE_CASE(REGION_HAS_WINDOWS)
{
	struct ibv_mr *mr = ibv_reg_mr(server.pd, server.memory, PAGE, SIDE_ACCESS);
	struct ibv_mw *mw = ibv_alloc_mw(server.pd, IBV_MW_TYPE_2);

	lend(mw, mr, PAGE, IBV_ACCESS_REMOTE_WRITE);
	expect_error(ibv_dereg_mr(mr), EBUSY);
	expect_refusal(REGION_HAS_WINDOWS, "ibv_dereg_mr → EBUSY: memory region 0x%x has 1 windows bound to it",
		       mr->lkey);
	expect_error(ibv_dealloc_mw(mw), 0);
	expect_error(ibv_dereg_mr(mr), 0);
}
