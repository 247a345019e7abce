/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WQEs of a DCI, byte by byte (mlx5-formats 1.2, 1.4 to 1.6, 4.10): every operation, the setters in either order, at
 * every block of a ring, so that address, remote address and data straddle its end.
 */
#include "../support/posting_fixture.h"

#include "mlx5dv/wr_simple.h"

enum { RKEY = 0x10203040, LKEY = 0x50607080, IMM = 0x0a0b0c0d, INV = 0x99aabbcc, DCTN = 0x123456, STREAM = 0xbeef };

static const uint64_t remote_addr = UINT64_C(0x1122334455667788), operand = UINT64_C(0x0102030405060708),
		      compare = UINT64_C(0x1112131415161718), dc_key = UINT64_C(0x8182838485868788),
		      local_addr = UINT64_C(0x2122232425262728);
static char inlined[] = "seven bytes and eleven more";

static struct user_ah address = {
	.av = {.stat_rate_sl = 0x5a,
	       .fl_mlid = 0x12,
	       .rmac = {1, 2, 3, 4, 5, 6},
	       .tclass = 7,
	       .hop_limit = 64,
	       .rgid = {0xfe, 0x80, [15] = 0x99}},
};

static void build_send(struct ibv_qp_ex *ex)
{
	ibv_wr_send(ex);
}
static void build_send_imm(struct ibv_qp_ex *ex)
{
	ibv_wr_send_imm(ex, htobe32(IMM));
}
static void build_send_inv(struct ibv_qp_ex *ex)
{
	ibv_wr_send_inv(ex, INV);
}
static void build_write(struct ibv_qp_ex *ex)
{
	ibv_wr_rdma_write(ex, RKEY, remote_addr);
}
static void build_write_imm(struct ibv_qp_ex *ex)
{
	ibv_wr_rdma_write_imm(ex, RKEY, remote_addr, htobe32(IMM));
}
static void build_read(struct ibv_qp_ex *ex)
{
	ibv_wr_rdma_read(ex, RKEY, remote_addr);
}
static void build_swap(struct ibv_qp_ex *ex)
{
	ibv_wr_atomic_cmp_swp(ex, RKEY, remote_addr, compare, operand);
}
static void build_add(struct ibv_qp_ex *ex)
{
	ibv_wr_atomic_fetch_add(ex, RKEY, remote_addr, operand);
}

static const struct operation {
	uint8_t opcode;
	uint32_t imm;
	bool remote, atomic;
	void (*build)(struct ibv_qp_ex *ex);
} operations[] = {
	{0x0a, 0, false, false, build_send},       {0x0b, IMM, false, false, build_send_imm},
	{0x01, INV, false, false, build_send_inv}, {0x08, 0, true, false, build_write},
	{0x09, IMM, true, false, build_write_imm}, {0x10, 0, true, false, build_read},
	{0x11, 0, true, true, build_swap},         {0x12, 0, true, true, build_add},
};

#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

static struct posting *make(void)
{
	return posting_new(IBV_QPT_DRIVER, IBV_QP_EX_WITH_SEND,
			   (struct ibv_qp_cap){.max_send_wr = 8, .max_send_sge = 1, .max_inline_data = 200});
}

static void expect_address(struct expected *e, uint32_t index, uint8_t opcode, uint32_t imm, uint16_t stream)
{
	expect_ctrl(e, index, opcode, 0x08, imm);
	e->bytes[9] = (uint8_t)(stream >> 8);
	e->bytes[10] = (uint8_t)stream;
	expect_be(e, dc_key, 8);
	expect_be(e, UINT32_C(0x80000000) | DCTN, 4);
	expect_be(e, 0x5a12, 2);
	expect_be(e, 0, 2);
	expect_be(e, 0, 4);
	expect_be(e, 0x010203040506, 6);
	expect_be(e, 0x0740, 2);
	expect_be(e, 0, 4);
	expect_be(e, 0xfe80000000000000, 8);
	expect_be(e, 0x99, 8);
}

static void set_address(struct posting *p, uint16_t stream)
{
	if (stream)
		dv_wr_set_dc_addr_stream(&p->qp.dv, &address.base, DCTN, dc_key, stream);
	else
		dv_wr_set_dc_addr(&p->qp.dv, &address.base, DCTN, dc_key);
}

static void set_data(struct posting *p, bool in_wqe)
{
	if (in_wqe)
		ibv_wr_set_inline_data(&p->qp.ex, inlined, sizeof(inlined));
	else
		ibv_wr_set_sge(&p->qp.ex, LKEY, local_addr, 8);
}

static void one(struct posting *p, const struct operation *op, uint32_t index, bool in_wqe, bool address_first,
		uint16_t stream)
{
	struct ibv_qp_ex *ex = &p->qp.ex;
	uint32_t head = p->qp.sq.head;
	struct expected e;

	place_producer(p, index);
	ibv_wr_start(ex);
	ex->wr_id = 0x1d00 + index;
	ex->wr_flags = IBV_SEND_SIGNALED;
	op->build(ex);
	if (address_first)
		set_address(p, stream);
	set_data(p, in_wqe);
	if (!address_first)
		set_address(p, stream);
	assert_int_equal(ibv_wr_complete(ex), 0);

	expect_address(&e, index, op->opcode, op->imm, stream);
	if (op->remote)
		expect_raddr(&e, remote_addr, RKEY);
	if (op->atomic) {
		expect_be(&e, operand, 8);
		if (op->opcode == 0x11)
			expect_be(&e, compare, 8);
		else
			expect_garbage(&e, 8);
	}
	if (in_wqe)
		expect_inline(&e, inlined, sizeof(inlined));
	else
		expect_pointer(&e, 8, LKEY, local_addr);
	check_wqe(p, index, &e);
	check_tables(p, index, head, 0x1d00 + index, WC_OPCODE_FROM_CQE);
}

TEST(every_operation)
{
	struct posting *p = make();

	for (size_t i = 0; i < OPERATIONS; i++)
		for (uint32_t index = 65530; index < 65530 + p->qp.sq.wqebb_count; index++)
			for (int form = 0; form < 8; form++)
				one(p, &operations[i], index, form & 1, form & 2, form & 4 ? STREAM : 0);
	posting_free(p);
}

/* ibv_wr_post(3), ibv_wr_atomic_write(): 8 bytes of inline data; only the address setter must follow. */
TEST(atomic_write)
{
	struct posting *p = make();
	struct expected e;

	place_producer(p, 3);
	ibv_wr_start(&p->qp.ex);
	p->qp.ex.wr_flags = IBV_SEND_SIGNALED;
	p->qp.ex.wr_atomic_write(&p->qp.ex, RKEY, remote_addr, inlined);
	set_address(p, 0);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), 0);
	expect_address(&e, 3, 0x13, 0, 0);
	expect_raddr(&e, remote_addr, RKEY);
	expect_inline(&e, inlined, 8);
	check_wqe(p, 3, &e);
	posting_free(p);
}

/* A setter without its operation, a repeated one, and a missing one. */
TEST(setters_out_of_place)
{
	struct posting *p = make();

	ibv_wr_start(&p->qp.ex);
	set_address(p, 0);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), EINVAL);
	assert_int_equal(device.rule, RULE_WR_SETTER_UNEXPECTED);

	device.rule = RULE_NONE;
	ibv_wr_start(&p->qp.ex);
	ibv_wr_send(&p->qp.ex);
	set_address(p, STREAM);
	set_address(p, STREAM);
	set_data(p, false);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), EINVAL);
	assert_int_equal(device.rule, RULE_WR_SETTER_UNEXPECTED);

	device.rule = RULE_NONE;
	ibv_wr_start(&p->qp.ex);
	ibv_wr_send(&p->qp.ex);
	set_data(p, false);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), EINVAL);
	assert_int_equal(device.rule, RULE_WR_DC_ADDRESS_MISSING);
	assert_int_equal(p->qp.sq.head, 0);
	assert_int_equal(p->qp.sq.cur_post, 0);

	/* The library of an adapter omits the request. */
	device.settings.profile = PROFILE_CONNECTX;
	device.rule = RULE_NONE;
	ibv_wr_start(&p->qp.ex);
	ibv_wr_send(&p->qp.ex);
	set_data(p, false);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), 0);
	assert_int_equal(device.rule, RULE_WR_DROPPED);
	assert_int_equal(p->qp.sq.head, 0);
	device.settings.profile = PROFILE_MAN;

	/* No state of a stream remains for the next request. */
	ibv_wr_start(&p->qp.ex);
	ibv_wr_send(&p->qp.ex);
	set_address(p, STREAM);
	set_data(p, false);
	ibv_wr_send(&p->qp.ex);
	set_data(p, false);
	set_address(p, 0);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), 0);
	assert_int_equal(wqe_byte(p, 0, 9) << 8 | wqe_byte(p, 0, 10), STREAM);
	/* 16 and 48 and 16: the second one begins two blocks later. */
	assert_int_equal(wqe_byte(p, 2, 9) | wqe_byte(p, 2, 10), 0);
	posting_free(p);
}
