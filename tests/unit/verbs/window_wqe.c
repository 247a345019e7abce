/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WQEs of window binds and local invalidates against the format sheet, row by row (mlx5-formats 1.15), with the ring's
 * end in each of their segments; and the fence of the WQE that follows (1.3).
 */
#include "../support/posting_fixture.h"

enum { LKEY = 0x55667788, INV = 0x0badf00d };
static const uint64_t wr_id = 0xfeedfacecafebeef;

#define MASK_FREE (UINT64_C(1) << 29)
#define MASK_QPN (UINT64_C(1) << 14)
#define MASK_MKEY (UINT64_C(1) << 13)
#define MASK_BIND                                                                                                      \
	(MASK_FREE | MASK_MKEY | 1 << 0 | 1 << 6 | 1 << 18 | 1 << 19 | 1 << 20 | 1 << 21) /* LEN START LW RR RW A */

struct window_case {
	enum ibv_mw_type type;
	bool invalidate;
	uint64_t length;
	unsigned int access;
	/* expected */
	uint8_t flags, units, access_byte, free_byte;
	uint64_t mask;
	uint32_t qpn_tag;
	uint64_t start;
};

#define ADDR UINT64_C(0x00007f1234567010)
#define NEW_RKEY 0x0000ab5c

static const struct window_case windows[] = {
	{IBV_MW_TYPE_1, false, 4096, IBV_ACCESS_REMOTE_WRITE, 0x90, 4, 0x20, 0, MASK_BIND, 0xffffff5c, ADDR},
	{IBV_MW_TYPE_1, false, 1, IBV_ACCESS_REMOTE_READ, 0x90, 4, 0x10, 0, MASK_BIND, 0xffffff5c, ADDR},
	{IBV_MW_TYPE_1, false, 4096, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED, 0x90, 4, 0x10, 0, MASK_BIND,
	 0xffffff5c, 0},
	{IBV_MW_TYPE_1, false, 0, IBV_ACCESS_REMOTE_WRITE, 0x90, 0, 0, 0x40, MASK_FREE | MASK_MKEY, 0xffffff5c, 0},
	{IBV_MW_TYPE_2, false, 4096, IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE, 0xb0, 4, 0x48, 0,
	 MASK_BIND | MASK_QPN, TEST_QPN << 8 | 0x5c, ADDR},
	{IBV_MW_TYPE_2, false, UINT64_C(1) << 31, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE, 0xb0, 4, 0x30, 0,
	 MASK_BIND | MASK_QPN, TEST_QPN << 8 | 0x5c, ADDR},
	/* Not unbinding, for the device to refuse (IBTA o10-37.2.40). */
	{IBV_MW_TYPE_2, false, 0, IBV_ACCESS_REMOTE_READ, 0xb0, 4, 0x10, 0, MASK_BIND | MASK_QPN, TEST_QPN << 8 | 0x5c,
	 ADDR},
	{IBV_MW_TYPE_2, true, 0, 0, 0x98, 0, 0, 0x40, MASK_FREE | MASK_MKEY | MASK_QPN, 0xffffff00, 0},
};

static void expect_window(struct expected *e, const struct window_case *w, uint32_t index, uint32_t imm)
{
	bool bind = w->units;

	expect_ctrl(e, index, 0x25, 0x08, imm);
	expect_be(e, w->flags, 1);
	expect_be(e, 0, 3);
	expect_be(e, w->units, 2);
	expect_be(e, 0, 2);
	expect_be(e, w->mask, 8);
	expect_zeros(e, 32);
	/* mkey context */
	expect_be(e, w->free_byte, 1);
	expect_be(e, 0, 1);
	if (bind)
		expect_be(e, w->access_byte, 1);
	else
		expect_garbage(e, 1);
	expect_be(e, 0, 1);
	expect_be(e, w->qpn_tag, 4);
	expect_be(e, 0, 8);
	if (bind) {
		expect_be(e, w->start, 8);
		expect_be(e, w->length, 8);
	} else {
		expect_garbage(e, 16);
	}
	expect_zeros(e, 32);
	if (!bind)
		return;
	/* one KLM, padded: a byte count of 0 is 2 GiB (mlx5-formats 1.9) */
	expect_be(e, w->length == UINT64_C(1) << 31 ? 0 : w->length, 4);
	expect_be(e, LKEY, 4);
	expect_be(e, ADDR, 8);
	expect_zeros(e, 48);
}

static void post_window(struct posting *p, const struct window_case *w, struct user_mw *mw, struct user_mr *mr,
			bool by_builder)
{
	struct ibv_mw_bind_info info = {&mr->base, ADDR, w->length, w->access};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = wr_id,
					 .opcode = w->invalidate ? IBV_WR_LOCAL_INV : IBV_WR_BIND_MW,
					 .send_flags = IBV_SEND_SIGNALED,
				 };

	if (!by_builder) {
		if (w->invalidate)
			wr.invalidate_rkey = INV;
		else
			wr.bind_mw.mw = &mw->base, wr.bind_mw.rkey = NEW_RKEY, wr.bind_mw.bind_info = info;
		assert_int_equal(softhca_ibv_post_send(&p->qp.base, &wr, &bad), 0);
		return;
	}
	ibv_wr_start(&p->qp.ex);
	p->qp.ex.wr_id = wr_id;
	p->qp.ex.wr_flags = IBV_SEND_SIGNALED;
	if (w->invalidate)
		ibv_wr_local_inv(&p->qp.ex, INV);
	else
		ibv_wr_bind_mw(&p->qp.ex, &mw->base, NEW_RKEY, &info);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), 0);
}

TEST(window_wqes)
{
	struct posting *p = posting_new(IBV_QPT_RC, IBV_QP_EX_WITH_BIND_MW,
					(struct ibv_qp_cap){.max_send_wr = 2, .max_send_sge = 1});
	struct user_mr mr = {.base.lkey = LKEY};
	struct expected e;

	for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
		const struct window_case *w = &windows[i];
		struct user_mw mw = {.base = {.rkey = 0xab5b, .type = w->type}};

		for (uint32_t index = 0xfff8; index < 0x10008; index++) {
			/* The builder treats any window as type 2. */
			for (int way = 0; way <= (w->type == IBV_MW_TYPE_2); way++) {
				uint32_t head = p->qp.sq.head;

				place_producer(p, index);
				post_window(p, w, &mw, &mr, way);
				expect_window(&e, w, index, w->invalidate ? INV : 0xab5b);
				check_wqe(p, index, &e);
				check_tables(p, index, head, wr_id, w->invalidate ? IBV_WC_LOCAL_INV : IBV_WC_BIND_MW);
				/*
				 * The library never changes the rkey of a posted bind; ibv_bind_mw(3) does.
				 */
				assert_int_equal(mw.base.rkey, 0xab5b);
			}
		}
	}
	posting_free(p);
}

/* The WQE after a bind or an invalidate carries the small fence, unless it is fenced already (mlx5-formats 1.3). */
TEST(fence_cache)
{
	struct ibv_sge sge = {.addr = 0x1000, .length = 8, .lkey = 1};
	struct posting *p = posting_new(IBV_QPT_RC, 0, (struct ibv_qp_cap){.max_send_wr = 8, .max_send_sge = 1});
	struct ibv_send_wr *bad, wr[4] = {
					 {.opcode = IBV_WR_LOCAL_INV, .next = &wr[1]},
					 {.opcode = IBV_WR_LOCAL_INV, .next = &wr[2]},
					 {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1, .next = &wr[3]},
					 {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1},
				 };

	place_producer(p, 0);
	assert_int_equal(softhca_ibv_post_send(&p->qp.base, wr, &bad), 0);
	assert_int_equal(wqe_byte(p, 0, 11), 0x00);
	assert_int_equal(wqe_byte(p, 2, 11), 0x20);
	assert_int_equal(wqe_byte(p, 4, 11), 0x20);
	assert_int_equal(wqe_byte(p, 5, 11), 0x00);

	/* The fence applies across calls, and is not added to a fenced WQE. */
	place_producer(p, 0);
	wr[0].next = NULL;
	wr[2].next = NULL;
	wr[2].send_flags = IBV_SEND_FENCE;
	assert_int_equal(softhca_ibv_post_send(&p->qp.base, &wr[0], &bad), 0);
	assert_int_equal(softhca_ibv_post_send(&p->qp.base, &wr[2], &bad), 0);
	assert_int_equal(softhca_ibv_post_send(&p->qp.base, &wr[3], &bad), 0);
	assert_int_equal(wqe_byte(p, 2, 11), 0x80);
	assert_int_equal(wqe_byte(p, 3, 11), 0x00);

	/* The builders share the cache. */
	place_producer(p, 0);
	ibv_wr_start(&p->qp.ex);
	p->qp.ex.wr_flags = 0;
	ibv_wr_local_inv(&p->qp.ex, INV);
	ibv_wr_local_inv(&p->qp.ex, INV);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), 0);
	assert_int_equal(softhca_ibv_post_send(&p->qp.base, &wr[3], &bad), 0);
	assert_int_equal(wqe_byte(p, 2, 11), 0x20);
	assert_int_equal(wqe_byte(p, 4, 11), 0x20);
	posting_free(p);
}
