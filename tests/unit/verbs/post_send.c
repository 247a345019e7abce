/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Refusals of ibv_post_send(3) and ibv_bind_mw(3), with their errno and order, and the WRs that stay posted:
 * mlx5-formats 4.2, 4.12.
 */
#include "../support/posting_fixture.h"

static struct ibv_sge small[4] = {{0x1000, 8, 1}, {0x2000, 8, 1}, {0x3000, 8, 1}, {0x4000, 8, 1}};

static int post(struct posting *p, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	*bad = NULL;
	device.rule = RULE_NONE;
	return softhca_ibv_post_send(&p->qp.base, wr, bad);
}

/* Expects one WR to be refused with @err and the explanation @rule, without any change to the queue. */
static void refused(struct posting *p, struct ibv_send_wr *wr, int err, enum explain_rule rule)
{
	struct send_queue before = p->qp.sq;
	unsigned int doorbells = device.send_doorbells;
	uint32_t dbrec = p->dbrec[1];
	struct ibv_send_wr *bad;

	assert_int_equal(post(p, wr, &bad), err);
	assert_ptr_equal(bad, wr);
	assert_int_equal(device.rule, rule);
	assert_int_equal(p->qp.sq.cur_post, before.cur_post);
	assert_int_equal(p->qp.sq.head, before.head);
	assert_int_equal(p->qp.sq.fence_cache, before.fence_cache);
	assert_int_equal(p->dbrec[1], dbrec);
	assert_int_equal(device.send_doorbells, doorbells);
}

static struct posting *rc_qp(uint32_t wrs)
{
	return posting_new(IBV_QPT_RC, 0, (struct ibv_qp_cap){.max_send_wr = wrs, .max_send_sge = 3});
}

TEST(bad_opcodes)
{
	struct posting *rc = rc_qp(4);
	struct posting *ud = posting_new(IBV_QPT_UD, 0, (struct ibv_qp_cap){.max_send_wr = 4, .max_send_sge = 1});
	struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_WRITE + 1};

	refused(rc, &wr, EINVAL, RULE_SEND_OPCODE);
	wr.opcode = (enum ibv_wr_opcode) - 1;
	refused(rc, &wr, EINVAL, RULE_SEND_OPCODE);
	wr.opcode = 13; /* between the defined ones */
	refused(rc, &wr, EINVAL, RULE_SEND_OPCODE);
	wr.opcode = IBV_WR_TSO;
	refused(rc, &wr, EINVAL, RULE_SEND_OPCODE);
	refused(ud, &wr, EINVAL, RULE_SEND_OPCODE);
	wr.opcode = IBV_WR_ATOMIC_WRITE;
	refused(ud, &wr, EINVAL, RULE_SEND_OPCODE);
	wr.opcode = IBV_WR_DRIVER1;
	refused(rc, &wr, EOPNOTSUPP, RULE_SEND_OPCODE);
	posting_free(rc);
	posting_free(ud);
}

/* The opcode is checked before room, room before the count of SGEs. */
TEST(order_of_checks)
{
	struct posting *p = rc_qp(1);
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND, .num_sge = 1, .sg_list = small};

	while (p->qp.sq.head - p->qp.sq.tail < p->qp.sq.max_post)
		assert_int_equal(post(p, &wr, &bad), 0);
	wr.num_sge = 4;
	refused(p, &wr, ENOMEM, RULE_SQ_FULL);
	wr.opcode = IBV_WR_TSO;
	refused(p, &wr, EINVAL, RULE_SEND_OPCODE);
	wr.opcode = IBV_WR_SEND;
	p->qp.sq.tail++;
	refused(p, &wr, ENOMEM, RULE_SEND_SGE_COUNT);
	assert_int_equal(device.figures[0], 4);
	assert_int_equal(device.figures[1], 3);
	wr.num_sge = 3;
	assert_int_equal(post(p, &wr, &bad), 0);
	posting_free(p);
}

TEST(before_rts)
{
	struct posting *p = rc_qp(4);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

	p->qp.sq.max_gs = -1;
	sq_update_short(&p->qp.sq);
	refused(p, &wr, ENOMEM, RULE_SEND_BEFORE_RTS);
	wr.num_sge = 1;
	wr.sg_list = small;
	refused(p, &wr, ENOMEM, RULE_SEND_BEFORE_RTS);
	wr.num_sge = -1;
	refused(p, &wr, ENOMEM, RULE_SEND_BEFORE_RTS);
	posting_free(p);
}

TEST(no_send_queue)
{
	struct posting *p = posting_new(IBV_QPT_RC, 0, (struct ibv_qp_cap){.max_recv_wr = 1});
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

	refused(p, &wr, ENOMEM, RULE_SQ_FULL);
	ibv_wr_start(&p->qp.ex);
	ibv_wr_send(&p->qp.ex);
	ibv_wr_set_sge(&p->qp.ex, 1, 0x1000, 8);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), ENOMEM);
	posting_free(p);
}

/* WRs before the failing one are posted, under one doorbell. */
TEST(bad_wr_in_list)
{
	struct posting *p = rc_qp(8);
	struct ibv_send_wr *bad, wr[4];

	for (int i = 0; i < 4; i++)
		wr[i] = (struct ibv_send_wr){.wr_id = i, .opcode = IBV_WR_SEND, .next = i < 3 ? &wr[i + 1] : NULL};
	wr[2].num_sge = 4;
	wr[2].sg_list = small;
	assert_int_equal(post(p, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[2]);
	assert_int_equal(p->qp.sq.head, 2);
	assert_int_equal(p->qp.sq.cur_post, 2);
	assert_int_equal(be32toh(p->dbrec[1]), 2);
	assert_int_equal(device.send_doorbells, 1);
	/* An empty list rings no doorbell. */
	assert_int_equal(post(p, NULL, &bad), 0);
	assert_int_equal(device.send_doorbells, 1);
	posting_free(p);
}

/* The queue holds max_post WRs, counted over the wrap of all counters; an unsignalled WR counts until a later CQE. */
TEST(full_queue)
{
	struct posting *p = rc_qp(5);
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND, .sg_list = small};

	p->qp.sq.head = p->qp.sq.tail = UINT32_MAX - 2;
	place_producer(p, UINT32_MAX - 1);
	for (uint32_t i = 0; i < p->qp.sq.max_post; i++) {
		wr.num_sge = i & 1;
		assert_int_equal(post(p, &wr, &bad), 0);
	}
	wr.num_sge = 0;
	refused(p, &wr, ENOMEM, RULE_SQ_FULL);
	wr.num_sge = 1;
	refused(p, &wr, ENOMEM, RULE_SQ_FULL);
	p->qp.sq.tail += 2;
	assert_int_equal(post(p, &wr, &bad), 0);
	assert_int_equal(post(p, &wr, &bad), 0);
	refused(p, &wr, ENOMEM, RULE_SQ_FULL);

	/* Within one list, and within one chain of builders. */
	p->qp.sq.tail = p->qp.sq.head - (p->qp.sq.max_post - 1);
	struct ibv_send_wr list[2] = {{.opcode = IBV_WR_SEND, .next = &list[1]}, {.opcode = IBV_WR_SEND}};

	assert_int_equal(post(p, list, &bad), ENOMEM);
	assert_ptr_equal(bad, &list[1]);
	p->qp.sq.tail++;
	ibv_wr_start(&p->qp.ex);
	for (int i = 0; i < 2; i++) {
		ibv_wr_send(&p->qp.ex);
		ibv_wr_set_sge(&p->qp.ex, 1, 0x1000, 8);
	}
	assert_int_equal(ibv_wr_complete(&p->qp.ex), ENOMEM);
	posting_free(p);
}

/*
 * A QP sized for SEND has blocks of 64 bytes; a WRITE with all SGEs and a LOCAL_INV take two, a bind three. Such WQEs
 * must never overwrite an outstanding one: random postings and completions are compared with a count kept here.
 */
struct outstanding {
	uint32_t blocks[64]; /* per WR, a FIFO */
	uint32_t first, count, used;
};

static void complete_some(struct posting *p, struct outstanding *o)
{
	/* A completion frees all WRs up to its own. */
	uint32_t done = rand() % o->count + 1;

	p->qp.sq.tail += done;
	o->count -= done;
	while (done--)
		o->used -= o->blocks[o->first++ % 64];
}

static void posted(struct posting *p, struct outstanding *o, uint32_t blocks)
{
	o->blocks[(o->first + o->count++) % 64] = blocks;
	o->used += blocks;
	assert_true(o->used <= p->qp.sq.wqebb_count);
	assert_true(o->count <= p->qp.sq.max_post);
}

TEST(oversized_wqes)
{
	struct posting *p =
		posting_new(IBV_QPT_RC, IBV_QP_EX_WITH_SEND, (struct ibv_qp_cap){.max_send_wr = 8, .max_send_sge = 3});
	struct user_mr mr = {.base.lkey = 1};
	struct user_mw mw = {.base.type = IBV_MW_TYPE_2};
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_LOCAL_INV, IBV_WR_BIND_MW,
						     IBV_WR_SEND};
	static const uint32_t blocks[] = {1, 2, 2, 3, 1}, sges[] = {3, 3, 3, 3, 1};
	struct outstanding o = {.count = 0};
	uint32_t accepted[5] = {0}, full = 0;

	assert_int_equal(p->qp.sq.wqebb_count, 8);
	srand(7);
	for (int i = 0; i < 200000; i++) {
		uint32_t kind = rand() % 5, before = p->qp.sq.cur_post;
		struct ibv_send_wr *bad, wr = {.opcode = opcodes[kind], .sg_list = small, .num_sge = (int)sges[kind]};
		int err;

		if (o.count && rand() % 2) {
			complete_some(p, &o);
			continue;
		}
		if (wr.opcode == IBV_WR_BIND_MW) {
			wr.bind_mw.mw = &mw.base;
			wr.bind_mw.bind_info = (struct ibv_mw_bind_info){&mr.base, 0x1000, 64, 0};
		}
		err = post(p, &wr, &bad);
		if (err) {
			assert_int_equal(err, ENOMEM);
			assert_true(o.count == 8 || o.used + blocks[kind] > 8);
			full++;
			continue;
		}
		assert_int_equal(p->qp.sq.cur_post - before, blocks[kind]);
		posted(p, &o, blocks[kind]);
		accepted[kind]++;
	}
	for (int i = 0; i < 5; i++)
		assert_true(accepted[i] > 1000);
	assert_true(full > 1000);
	posting_free(p);
}

/* As above with WQEs of any length, as mlx5dv_wr_raw_wqe(3) makes them, where max_post is not a power of two. */
TEST(raw_lengths)
{
	struct posting *p =
		posting_new(IBV_QPT_RC, IBV_QP_EX_WITH_SEND, (struct ibv_qp_cap){.max_send_wr = 10, .max_send_sge = 8});
	struct outstanding o = {.count = 0};
	uint32_t accepted = 0, full = 0;

	assert_int_equal(p->qp.sq.wqe_size, 192);
	assert_int_equal(p->qp.sq.wqebb_count, 32);
	assert_int_equal(p->qp.sq.max_post, 10);
	srand(8);
	for (int i = 0; i < 200000; i++) {
		uint32_t bytes = (rand() % 63 + 1) * 16;
		struct wqe wqe;
		bool opened;

		if (o.count && rand() % 2) {
			complete_some(p, &o);
			continue;
		}
		ibv_wr_start(&p->qp.ex);
		opened = wr_begin(&p->qp, "test", 0, 0, bytes, 0, WR_SETTER_DATA, &wqe);
		if (opened)
			wr_finish(&p->qp, bytes);
		assert_int_equal(ibv_wr_complete(&p->qp.ex), opened ? 0 : ENOMEM);
		if (!opened) {
			assert_true(o.count == 10 || o.used + wqe_blocks(bytes) > 32);
			full++;
			continue;
		}
		posted(p, &o, wqe_blocks(bytes));
		accepted++;
	}
	assert_true(accepted > 1000 && full > 1000);
	posting_free(p);
}

/* A ring smaller than the WQE. */
TEST(ring_too_small)
{
	struct posting *p =
		posting_new(IBV_QPT_RC, IBV_QP_EX_WITH_SEND, (struct ibv_qp_cap){.max_send_wr = 1, .max_send_sge = 1});
	struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV};

	refused(p, &wr, ENOMEM, RULE_SQ_FULL);
	posting_free(p);
}

/* An unannounced operation may make a WQE longer than 63 units although the SGEs are within the limit. */
TEST(longest_wqe)
{
	struct posting *p =
		posting_new(IBV_QPT_RC, IBV_QP_EX_WITH_SEND, (struct ibv_qp_cap){.max_send_wr = 4, .max_send_sge = 62});
	struct ibv_sge sge[62];
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND, .sg_list = sge, .num_sge = 62};

	for (int i = 0; i < 62; i++)
		sge[i] = small[0];
	assert_int_equal(post(p, &wr, &bad), 0);
	wr.opcode = IBV_WR_RDMA_WRITE;
	refused(p, &wr, ENOMEM, RULE_WQE_LENGTH);
	ibv_wr_start(&p->qp.ex);
	ibv_wr_rdma_write(&p->qp.ex, 1, 0x1000);
	ibv_wr_set_sge_list(&p->qp.ex, 62, sge);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), ENOMEM);
	wr.num_sge = 61;
	assert_int_equal(post(p, &wr, &bad), 0);
	posting_free(p);
}

/* Inline data is summed beyond 32 bits; data that does not fit is not read. */
TEST(inline_limit)
{
	struct posting *p = rc_qp(4);
	static char data[64];
	struct ibv_sge sge[3] = {{(uintptr_t)data, 0x20, 0}, {8, 0xfffffff0, 0}, {8, 0, 0}};
	struct ibv_data_buf bufs[2] = {{data, 0x20}, {(void *)8, SIZE_MAX - 15}};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE, .sg_list = sge, .num_sge = 3};

	assert_int_equal(p->qp.sq.max_inline, 60);
	refused(p, &wr, ENOMEM, RULE_INLINE_LENGTH);
	assert_int_equal(device.figures[0], UINT64_C(0x100000010));
	assert_int_equal(device.figures[1], 60);
	sge[0] = (struct ibv_sge){(uintptr_t)data, 30, 0};
	sge[1] = (struct ibv_sge){(uintptr_t)data, 31, 0};
	refused(p, &wr, ENOMEM, RULE_INLINE_LENGTH);

	ibv_wr_start(&p->qp.ex);
	ibv_wr_send(&p->qp.ex);
	ibv_wr_set_inline_data_list(&p->qp.ex, 2, bufs);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), ENOMEM);
	ibv_wr_start(&p->qp.ex);
	ibv_wr_send(&p->qp.ex);
	ibv_wr_set_inline_data(&p->qp.ex, (void *)8, 61);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), ENOMEM);
	assert_int_equal(device.rule, RULE_INLINE_LENGTH);
	posting_free(p);
}

/* Bit 31 of a length means inline data to the device; the device checks sums beyond 32 bits. */
TEST(sge_lengths)
{
	struct posting *p = rc_qp(4);
	struct ibv_sge sge[3] = {{8, INT32_MAX, 1}, {8, INT32_MAX, 1}, {8, INT32_MAX, 1}};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND, .sg_list = sge, .num_sge = 3};
	struct expected e;

	assert_int_equal(post(p, &wr, &bad), 0);
	expect_ctrl(&e, 0, 0x0a, 0, 0);
	for (int i = 0; i < 3; i++)
		expect_pointer(&e, INT32_MAX, 1, 8);
	check_wqe(p, 0, &e);

	sge[2].length = UINT32_C(1) << 31;
	refused(p, &wr, EINVAL, RULE_SGE_LENGTH);
	ibv_wr_start(&p->qp.ex);
	ibv_wr_send(&p->qp.ex);
	ibv_wr_set_sge_list(&p->qp.ex, 3, sge);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), EINVAL);
	ibv_wr_start(&p->qp.ex);
	ibv_wr_send(&p->qp.ex);
	ibv_wr_set_sge(&p->qp.ex, 1, 8, UINT32_MAX);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), EINVAL);
	posting_free(p);
}

TEST(atomic_write_rules)
{
	struct posting *p = rc_qp(4);
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_ATOMIC_WRITE, .sg_list = small, .num_sge = 1};

	wr.wr.rdma.remote_addr = 0x1004;
	refused(p, &wr, EINVAL, RULE_ATOMIC_WRITE_ALIGNMENT);
	wr.wr.rdma.remote_addr = 0x1008;
	wr.num_sge = 2;
	refused(p, &wr, EINVAL, RULE_ATOMIC_WRITE_LENGTH);
	wr.num_sge = 0;
	refused(p, &wr, EINVAL, RULE_ATOMIC_WRITE_LENGTH);
	wr.num_sge = 1;
	assert_int_equal(post(p, &wr, &bad), 0);

	ibv_wr_start(&p->qp.ex);
	ibv_wr_atomic_write(&p->qp.ex, 1, 0x1001, "12345678");
	assert_int_equal(ibv_wr_complete(&p->qp.ex), EINVAL);
	posting_free(p);
}

TEST(bind_rules)
{
	struct posting *p = rc_qp(4);
	struct user_mr mr = {.base.lkey = 1};
	struct user_mw mw = {.base.type = IBV_MW_TYPE_2};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_BIND_MW, .bind_mw.mw = &mw.base};
	struct ibv_mw_bind_info *info = &wr.bind_mw.bind_info;

	*info = (struct ibv_mw_bind_info){&mr.base, 0x1000, (UINT64_C(1) << 31) + 1, 0};
	refused(p, &wr, EOPNOTSUPP, RULE_BIND_LENGTH);
	ibv_wr_start(&p->qp.ex);
	ibv_wr_bind_mw(&p->qp.ex, &mw.base, 5, info);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), EOPNOTSUPP);
	info->length = UINT64_C(1) << 31;
	assert_int_equal(post(p, &wr, &bad), 0);
	info->mr = NULL;
	refused(p, &wr, EINVAL, RULE_BIND_NO_MR);
	info->length = 0;
	assert_int_equal(post(p, &wr, &bad), 0);
	posting_free(p);
}

/* ibv_bind_mw(3): returns the next rkey at once; refusals of each profile. */
TEST(bind_mw_call)
{
	struct posting *p = rc_qp(16);
	struct user_mr mr = {.base.lkey = 0x77};
	struct user_mw mw = {.base = {.type = IBV_MW_TYPE_1, .rkey = 0x1234ff}};
	struct ibv_mw_bind bind = {.wr_id = 9, .bind_info = {&mr.base, 0x1000, 64, IBV_ACCESS_REMOTE_WRITE}};

	place_producer(p, 0);
	assert_int_equal(softhca_ibv_bind_mw(&p->qp.base, &mw.base, &bind), 0);
	assert_int_equal(mw.base.rkey, 0x123400); /* the tag wraps, the index stays */
	assert_int_equal(p->qp.sq.wr_id[0], 9);
	assert_int_equal(wqe_byte(p, 0, 15), 0xff); /* imm: the rkey before */
	assert_int_equal(wqe_byte(p, 0, 71), 0x00); /* tag of the mkey context: the rkey after */

	/* man: start 0 instead of the address */
	bind.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED;
	assert_int_equal(softhca_ibv_bind_mw(&p->qp.base, &mw.base, &bind), 0);
	assert_int_equal(mw.base.rkey, 0x123401);
	for (int i = 80; i < 88; i++)
		assert_int_equal(wqe_byte(p, 3, i), 0);
	device.settings.profile = PROFILE_CONNECTX;
	assert_int_equal(softhca_ibv_bind_mw(&p->qp.base, &mw.base, &bind), EINVAL);
	assert_int_equal(device.rule, RULE_BIND_ZERO_BASED);
	bind.bind_info.mw_access_flags = 0;

	mr.access = IBV_ACCESS_ZERO_BASED;
	assert_int_equal(softhca_ibv_bind_mw(&p->qp.base, &mw.base, &bind), EINVAL);
	assert_int_equal(device.rule, RULE_BIND_ZERO_BASED_MR);
	mr.access = 0;
	mr.kind = MR_NULL;
	assert_int_equal(softhca_ibv_bind_mw(&p->qp.base, &mw.base, &bind), ENOTSUP);
	assert_int_equal(device.rule, RULE_BIND_NULL_MR);
	assert_int_equal(device.figures[0], 0x77);
	mr.kind = MR_MEMORY;
	mr.imported = true;
	assert_int_equal(softhca_ibv_bind_mw(&p->qp.base, &mw.base, &bind), ENOTSUP);
	assert_int_equal(device.rule, RULE_BIND_IMPORTED_MR);
	mr.imported = false;
	bind.bind_info.length = (UINT64_C(1) << 31) + 1;
	assert_int_equal(softhca_ibv_bind_mw(&p->qp.base, &mw.base, &bind), EOPNOTSUPP);
	/* None of these calls changed the key. */
	assert_int_equal(mw.base.rkey, 0x123401);
	/* Unbind, without an MR. */
	bind.bind_info = (struct ibv_mw_bind_info){0};
	assert_int_equal(softhca_ibv_bind_mw(&p->qp.base, &mw.base, &bind), 0);
	assert_int_equal(mw.base.rkey, 0x123402);
	posting_free(p);
}
