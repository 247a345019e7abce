/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 40 to 64: configuring keys, binding windows, invalidating. The server does it, with its own keys. */
#include "rule_cases.h"

#include "support/mkey.h"

enum { NO_KEY = 0xabcdef00, PAGE = 4096 };

/* Offsets in a UMR WQE (mlx5-formats 1.2, 1.8). */
enum {
	QPN_DS = 4,
	UMR_FLAGS = 16,
	KLM_OCTOWORDS = 20,
	BSF_OCTOWORDS = 22,
	MKEY_MASK = 24,
	CONTEXT_QPN = 64 + 4,
	CONTEXT_LENGTH = 64 + 24,
	ENTRIES = 128,
	REPEAT_ENTRIES = 128 + 14,
};

/* Posts a local invalidation of @rkey. */
static void invalidate(uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.wr_id = WR_ID, .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = rkey};

	post_send(&pair.server, &wr);
}

/* The client posts a SEND without data that invalidates @rkey of the server; the server posts a receive. */
static void send_invalidate(uint32_t rkey)
{
	struct ibv_send_wr wr = {.wr_id = WR_ID,
				 .opcode = IBV_WR_SEND_WITH_INV,
				 .send_flags = IBV_SEND_SIGNALED,
				 .invalidate_rkey = rkey};

	post_receive(&pair.server, WR_ID, NULL, 0);
	post_send(&pair.client, &wr);
}

/* Posts the bind of a type 2 window to @length bytes at @offset of the server's memory; returns its future rkey. */
static uint32_t bind(struct ibv_mw *mw, struct ibv_mr *mr, uint64_t offset, uint64_t length, unsigned int access)
{
	struct ibv_send_wr wr = {
		.wr_id = WR_ID,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {.mw = mw,
			    .rkey = ibv_inc_rkey(mw->rkey),
			    .bind_info = {.mr = mr,
					  .addr = side_address(&server, offset),
					  .length = length,
					  .mw_access_flags = access}},
	};

	post_send(&pair.server, &wr);
	return wr.bind_mw.rkey;
}

/* Posts a configuration of a new key to 64 bytes of memory; returns the key. */
static struct mlx5dv_mkey *configure(void)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct ibv_sge sge = side_sge(&server, 0, 64);

	expect_error(configure_list(&pair.server, BY_MR_CALL, mkey, KEY_ACCESS, 1, &sge), 0);
	return mkey;
}

RULE_CASE(UMR_SHORT)
{
	struct raw raw = raw_begin(&pair.server);

	invalidate(NO_KEY);
	raw_put32(&raw, QPN_DS, pair.server.qp->qp_num << 8 | 4);
	raw_run(&raw);
	expect_failure(&pair.server, WR_ID, MW_BIND_ERR, UMR_SHORT, "LOCAL_INV",
		       "the UMR WQE has 64 bytes; the parts that it announces take 128");
}

RULE_CASE(UMR_NOT_INLINE)
{
	struct raw raw = raw_begin(&pair.server);
	struct mlx5dv_mkey *mkey = configure();

	raw_put8(&raw, UMR_FLAGS, 0);
	raw_put32(&raw, ENTRIES, 63);
	raw_run(&raw);
	expect_failure(
		&pair.server, CONFIGURE_WR_ID, MW_BIND_ERR, UMR_NOT_INLINE, "UMR",
		"the 64 bytes of entries and block setup for key 0x%x are not in the WQE, and the memory that it names has 63 bytes",
		mkey->lkey);
}

/* The bits of mlx5-formats 1.8 except PAGE_SIZE (1), PD (7), EN_RINVAL (8). */
RULE_CASE(UMR_MASK)
{
	const uint64_t allowed = 1 << 0 | 1 << 6 | 1 << 9 | 1 << 12 | 1 << 13 | 1 << 14 | 1 << 17 | 1 << 18 | 1 << 19 |
				 1 << 20 | 1 << 21 | 1 << 23 | 1 << 25 | 1 << 26 | 1 << 29;
	struct raw raw = raw_begin(&pair.server);
	struct mlx5dv_mkey *mkey = configure();

	raw_put64(&raw, MKEY_MASK, 1 << 7 | 1 << 0);
	raw_run(&raw);
	expect_failure(&pair.server, CONFIGURE_WR_ID, MW_BIND_ERR, UMR_MASK, "UMR",
		       "the UMR of key 0x%x asks to change 0x81; a program may change 0x%" PRIx64, mkey->lkey, allowed);
}

RULE_CASE(UMR_NOT_ENABLED)
{
	invalidate(server.mr->rkey);
	expect_failure(&pair.server, WR_ID, MW_BIND_ERR, UMR_NOT_ENABLED, "LOCAL_INV",
		       "key 0x%x is a memory region, which is registered and cannot be configured by work requests",
		       server.mr->rkey);
}

RULE_CASE(UMR_STALE)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);
	uint32_t before = mw->rkey;

	lend(mw, server.mr, PAGE, IBV_ACCESS_REMOTE_READ);
	invalidate(before);
	expect_failure(&pair.server, WR_ID, MW_BIND_ERR, UMR_STALE, "LOCAL_INV",
		       "no key has the number 0x%x: the type 2 window of that index has 0x%x", before, mw->rkey);
}

RULE_CASE(UMR_NOT_FREE)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);

	lend(mw, server.mr, PAGE, IBV_ACCESS_REMOTE_READ);
	bind(mw, server.mr, 0, 2 * PAGE, IBV_ACCESS_REMOTE_READ);
	expect_failure(&pair.server, WR_ID, MW_BIND_ERR, UMR_NOT_FREE, "BIND_MW",
		       "key 0x%x is a type 2 window that is in use, [0x%" PRIx64
		       ", +4096): a type 2 window is bound again only after it was invalidated",
		       mw->rkey, side_address(&server, 0));
}

RULE_CASE(UMR_FREE)
{
	struct raw raw = raw_begin(&pair.server);
	struct mlx5dv_mkey *mkey = configure();

	raw_put8(&raw, UMR_FLAGS, 0x80 | 0x40);
	raw_run(&raw);
	expect_failure(&pair.server, CONFIGURE_WR_ID, MW_BIND_ERR, UMR_FREE, "UMR",
		       "key 0x%x is a layout key that is not in use", mkey->lkey);
}

/* mlx5-formats 6, no. 41: the header of an interleaved layout takes an entry too, and entries are allocated in fours. */
RULE_CASE(UMR_CAPACITY)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	struct mlx5dv_mr_interleaved entries[4];
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	options.max_inline_data = 256;
	pair_replace(&pair, &options);
	for (size_t i = 0; i < 4; i++)
		entries[i] = side_interleaved(&server, 64 * i, 16, 16);
	expect_error(configure_interleaved(&pair.server, BY_MR_CALL, mkey, KEY_ACCESS, 2, 4, entries), 0);
	expect_failure(&pair.server, CONFIGURE_WR_ID, MW_BIND_ERR, UMR_CAPACITY, "UMR",
		       "key 0x%x gets 8 translation entries, but was created for 4", mkey->lkey);
}

RULE_CASE(UMR_BSF_CAPACITY)
{
	struct raw raw = raw_begin(&pair.server);
	struct mlx5dv_mkey *mkey = configure();

	raw_put16(&raw, KLM_OCTOWORDS, 0);
	raw_put16(&raw, BSF_OCTOWORDS, 4);
	raw_run(&raw);
	expect_failure(&pair.server, CONFIGURE_WR_ID, MW_BIND_ERR, UMR_BSF_CAPACITY, "UMR",
		       "key 0x%x gets 4 units of block setup, but was created for 0", mkey->lkey);
}

/* mlx5-formats 1.8, (6): entries starting at an offset, in the field where libmlx5 puts the size of the block setup. */
RULE_CASE(UMR_OFFSET)
{
	struct mlx5dv_mr_interleaved entry = side_interleaved(&server, 0, 16, 16);
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 8, NULL);
	struct ibv_sge sge = side_sge(&server, 0, 64);
	struct raw raw;

	expect_error(configure_interleaved(&pair.server, BY_MR_CALL, mkey, KEY_ACCESS, 2, 1, &entry), 0);
	expect_completion(&pair.server, CONFIGURE_WR_ID, MLX5DV_WC_UMR);
	raw = raw_begin(&pair.server);
	expect_error(configure_list(&pair.server, BY_MR_CALL, mkey, KEY_ACCESS, 1, &sge), 0);
	raw_put8(&raw, UMR_FLAGS, 0x80 | 0x10);
	raw_put16(&raw, BSF_OCTOWORDS, 4);
	raw_run(&raw);
	expect_failure(
		&pair.server, CONFIGURE_WR_ID, MW_BIND_ERR, UMR_OFFSET, "UMR",
		"the entries for key 0x%x are to replace those from number 4 on, which is possible only in a list without gaps",
		mkey->lkey);
}

RULE_CASE(UMR_REPEAT_ENTRIES)
{
	struct raw raw = raw_begin(&pair.server);
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct mlx5dv_mr_interleaved entry = side_interleaved(&server, 0, 16, 16);

	expect_error(configure_interleaved(&pair.server, BY_MR_CALL, mkey, KEY_ACCESS, 2, 1, &entry), 0);
	raw_put16(&raw, REPEAT_ENTRIES, 9);
	raw_run(&raw);
	expect_failure(&pair.server, CONFIGURE_WR_ID, MW_BIND_ERR, UMR_REPEAT_ENTRIES, "UMR",
		       "the repeat block of key 0x%x announces 9 entries; the WQE holds 3", mkey->lkey);
}

RULE_CASE(BIND_REGION_UNKNOWN)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);
	struct ibv_mr gone = {.lkey = NO_KEY};
	uint32_t rkey = bind(mw, &gone, 0, PAGE, IBV_ACCESS_REMOTE_READ);

	expect_failure(&pair.server, WR_ID, MW_BIND_ERR, BIND_REGION_UNKNOWN, "BIND_MW",
		       "window 0x%x is to be bound to memory region 0xabcdef00, which does not exist", rkey);
}

RULE_CASE(BIND_NOT_A_REGION)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);
	struct mlx5dv_mkey *mkey = configure();
	struct ibv_mr mr = {.lkey = mkey->lkey};
	uint32_t rkey;

	expect_completion(&pair.server, CONFIGURE_WR_ID, MLX5DV_WC_UMR);
	rkey = bind(mw, &mr, 0, 64, IBV_ACCESS_REMOTE_READ);
	expect_failure(&pair.server, WR_ID, MW_BIND_ERR, BIND_NOT_A_REGION, "BIND_MW",
		       "window 0x%x is to be bound to key 0x%x, a layout key", rkey, mkey->lkey);
}

RULE_CASE(BIND_DOMAIN)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);
	struct mlx5dv_pd own = {0}, others = {0};
	struct mlx5dv_obj object = {.pd = {.in = server.pd, .out = &own}};
	uint32_t rkey;

	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_PD), 0);
	object = (struct mlx5dv_obj){.pd = {.in = client.pd, .out = &others}};
	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_PD), 0);
	rkey = bind(mw, client.mr, 0, PAGE, IBV_ACCESS_REMOTE_READ);
	expect_failure(&pair.server, WR_ID, MW_BIND_ERR, BIND_DOMAIN, "BIND_MW",
		       "window 0x%x of protection domain 0x%x is to be bound to region 0x%x of domain 0x%x", rkey,
		       own.pdn, client.mr->lkey, others.pdn);
}

RULE_CASE(BIND_NOT_ALLOWED)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);
	struct ibv_mr *mr = side_register(&server, 0, PAGE, IBV_ACCESS_LOCAL_WRITE);
	uint32_t rkey = bind(mw, mr, 0, PAGE, IBV_ACCESS_REMOTE_READ);

	expect_failure(&pair.server, WR_ID, MW_BIND_ERR, BIND_NOT_ALLOWED, "BIND_MW",
		       "window 0x%x is to be bound to region 0x%x, which was registered without IBV_ACCESS_MW_BIND",
		       rkey, mr->lkey);
}

RULE_CASE(BIND_RIGHTS)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);
	struct ibv_mr *mr = side_register(&server, 0, PAGE, IBV_ACCESS_MW_BIND);
	uint32_t rkey = bind(mw, mr, 0, PAGE, IBV_ACCESS_REMOTE_WRITE);

	expect_failure(&pair.server, WR_ID, MW_BIND_ERR, BIND_RIGHTS, "BIND_MW",
		       "window 0x%x asks for local read|remote write over region 0x%x, which allows local read: remote "
		       "write and atomics need local write",
		       rkey, mr->lkey);
}

RULE_CASE(BIND_RANGE)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);
	struct ibv_mr *mr = side_register(&server, 0, PAGE, SIDE_ACCESS);
	uint32_t rkey = bind(mw, mr, 1, PAGE, IBV_ACCESS_REMOTE_WRITE);

	expect_failure(&pair.server, WR_ID, MW_BIND_ERR, BIND_RANGE, "BIND_MW",
		       "window 0x%x is to span [0x%" PRIx64 ", +4096); region 0x%x spans [0x%" PRIx64 ", +4096)", rkey,
		       side_address(&server, 1), mr->lkey, side_address(&server, 0));
}

/* The 64-bit length of the window exceeds that of its only entry. */
RULE_CASE(BIND_FORM)
{
	struct raw raw = raw_begin(&pair.server);
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);
	uint32_t rkey = bind(mw, server.mr, 0, PAGE, IBV_ACCESS_REMOTE_WRITE);

	raw_put64(&raw, CONTEXT_LENGTH, 5000);
	raw_run(&raw);
	expect_failure(&pair.server, WR_ID, MW_BIND_ERR, BIND_FORM, "BIND_MW",
		       "window 0x%x is to be bound to 1 ranges for 5000 bytes: a window spans one range of one region",
		       rkey);
}

RULE_CASE(BIND_EMPTY)
{
	uint32_t rkey = bind(side_alloc_mw(&server, IBV_MW_TYPE_2), server.mr, 0, 0, IBV_ACCESS_REMOTE_WRITE);

	expect_failure(&pair.server, WR_ID, MW_BIND_ERR, BIND_EMPTY, "BIND_MW",
		       "type 2 window 0x%x is to be bound to 0 bytes", rkey);
}

RULE_CASE(BIND_OTHER_QP)
{
	struct raw raw = raw_begin(&pair.server);
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);
	uint32_t rkey = bind(mw, server.mr, 0, PAGE, IBV_ACCESS_REMOTE_WRITE);

	raw_put32(&raw, CONTEXT_QPN, pair.client.qp->qp_num << 8 | (rkey & 0xff));
	raw_run(&raw);
	expect_failure(&pair.server, WR_ID, MW_BIND_ERR, BIND_OTHER_QP, "BIND_MW",
		       "type 2 window 0x%x is to be bound to queue pair 0x%x by a request of 0x%x", rkey,
		       pair.client.qp->qp_num, pair.server.qp->qp_num);
}

/* IBTA 9.9.6.3, class J: only the receiver has an error. */
#define expect_invalidation_fails(rule, ...)                                                                           \
	do {                                                                                                           \
		expect_completion(&pair.client, WR_ID, IBV_WC_SEND);                                                   \
		expect_receive_failure(&pair.server, WR_ID, LOC_ACCESS_ERR, rule, __VA_ARGS__);                        \
	} while (0)

RULE_CASE(INVALIDATE_NOT_ALLOWED)
{
	send_invalidate(server.mr->rkey);
	expect_invalidation_fails(INVALIDATE_NOT_ALLOWED, "key 0x%x is a memory region that a peer cannot invalidate",
				  server.mr->rkey);
}

RULE_CASE(UMR_UNKNOWN)
{
	invalidate(NO_KEY);
	expect_failure(&pair.server, WR_ID, MW_BIND_ERR, UMR_UNKNOWN, "LOCAL_INV",
		       "key 0xabcdef00, which the request is to configure, bind or invalidate, does not exist");
}

/* Expects the server's request or receive to fail because of @key; the line about it begins with @request. */
static void expect_ended(uint32_t key, enum ibv_wc_status status, const char *request)
{
	struct softhca_explanation newest;

	assert_int_equal(expect_status(&pair.server, WR_ID, status).vendor_err, RULE_KEY_ENDED_BEFORE);
	assert_int_equal(softhca_explanations(client.context, pair.server.qp->qp_num, &newest, 1), 1);
	expect_about_qp(KEY_ENDED_BEFORE, pair.server.qp->qp_num,
			" %s: key 0x%x, a memory region, was deregistered or destroyed %" PRIu64
			" ms ago, before this request to configure, invalidate or bind it, or to bind a window to it",
			request, key, newest.figure[2]);
}

RULE_CASE(KEY_ENDED_BEFORE)
{
	struct ibv_mr *mr = ibv_reg_mr(server.pd, server.memory, PAGE, SIDE_ACCESS);
	struct ibv_mr gone = *mr;

	expect_error(ibv_dereg_mr(mr), 0);
	bind(side_alloc_mw(&server, IBV_MW_TYPE_2), &gone, 0, PAGE, IBV_ACCESS_REMOTE_READ);
	expect_ended(gone.lkey, IBV_WC_MW_BIND_ERR, "BIND_MW wr_id 32343 → MW_BIND_ERR");
	pair_renew(&pair);
	invalidate(gone.lkey);
	expect_ended(gone.lkey, IBV_WC_MW_BIND_ERR, "LOCAL_INV wr_id 32343 → MW_BIND_ERR");
	pair_renew(&pair);
	send_invalidate(gone.rkey);
	expect_completion(&pair.client, WR_ID, IBV_WC_SEND);
	expect_ended(gone.rkey, IBV_WC_LOC_ACCESS_ERR, "receive → LOC_ACCESS_ERR");
}

RULE_CASE(INVALIDATE_UNKNOWN)
{
	send_invalidate(NO_KEY);
	expect_invalidation_fails(INVALIDATE_UNKNOWN,
				  "key 0xabcdef00, which the SEND is to invalidate, does not exist");
}

RULE_CASE(INVALIDATE_FREE)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);

	send_invalidate(mw->rkey);
	expect_invalidation_fails(INVALIDATE_FREE,
				  "key 0x%x, which the SEND is to invalidate, is a type 2 window that is not in use",
				  mw->rkey);
}

RULE_CASE(INVALIDATE_STALE)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);
	uint32_t before = mw->rkey;

	lend(mw, server.mr, PAGE, IBV_ACCESS_REMOTE_READ);
	send_invalidate(before);
	expect_invalidation_fails(
		INVALIDATE_STALE,
		"key 0x%x, which the SEND is to invalidate, does not exist: the type 2 window of that index has the "
		"number 0x%x",
		before, mw->rkey);
}
