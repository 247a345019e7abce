/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The WQEs of ibv_post_send(3) and of the ibv_wr_* builders, byte by byte against the format sheet
 * (mlx5-formats 1.2 to 1.7), at every place of the ring: with the ring's end after each 16 bytes of each kind
 * of segment, and in inline data after each byte; with producer indices on both sides of 2^16 and 2^32.
 */
#include "../support/posting_fixture.h"

enum {
	RKEY = 0x11223344,
	LKEY = 0x55667788,
	IMM = 0xa1b2c3d4,
	INV = 0x0badf00d,
	REMOTE_QPN = 0x345678,
	REMOTE_QKEY = 0x80010203,
	REMOTE_SRQN = 0xabcdef,
	SGES = 9,
};
static const uint64_t remote_addr = 0xfedcba9876543210;
static const uint64_t local_addr = 0x0123456789abcdef;
static const uint64_t wr_id = 0xfeedfacecafebeef;
static const uint64_t compare_add = 0x1020304050607080, swap_value = 0x90a0b0c0d0e0f001;

/* Producer indices; the ring's blocks follow each of them. */
static const uint32_t bases[] = {0, 0xfff0, 0x1fff0, 0xfffffff0};

enum data_form { POINTERS, INLINED };

/* One work request of an operation, posted both ways, with the header before its data. */
struct operation {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint8_t wqe_opcode;
	uint32_t imm;
	bool raddr, atomic;
	void (*build)(struct ibv_qp_ex *ex);
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
static void build_cmp_swp(struct ibv_qp_ex *ex)
{
	ibv_wr_atomic_cmp_swp(ex, RKEY, remote_addr, compare_add, swap_value);
}
static void build_fetch_add(struct ibv_qp_ex *ex)
{
	ibv_wr_atomic_fetch_add(ex, RKEY, remote_addr, compare_add);
}

/* The first two are for UD. */
static const struct operation operations[] = {
	{"SEND", IBV_WR_SEND, 0x0a, 0, false, false, build_send},
	{"SEND_WITH_IMM", IBV_WR_SEND_WITH_IMM, 0x0b, IMM, false, false, build_send_imm},
	{"SEND_WITH_INV", IBV_WR_SEND_WITH_INV, 0x01, INV, false, false, build_send_inv},
	{"RDMA_WRITE", IBV_WR_RDMA_WRITE, 0x08, 0, true, false, build_write},
	{"RDMA_WRITE_WITH_IMM", IBV_WR_RDMA_WRITE_WITH_IMM, 0x09, IMM, true, false, build_write_imm},
	{"RDMA_READ", IBV_WR_RDMA_READ, 0x10, 0, true, false, build_read},
	{"ATOMIC_CMP_AND_SWP", IBV_WR_ATOMIC_CMP_AND_SWP, 0x11, 0, true, true, build_cmp_swp},
	{"ATOMIC_FETCH_AND_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, 0x12, 0, true, true, build_fetch_add},
};

static struct user_ah address = {
	.av =
		{
			.stat_rate_sl = 0x5a,
			.fl_mlid = 0x12,
			.rmac = {1, 2, 3, 4, 5, 6},
			.tclass = 7,
			.hop_limit = 64,
			.rgid = {0xfe, 0x80, [15] = 0x99},
		},
};

static void expect_av(struct expected *e)
{
	expect_be(e, REMOTE_QKEY, 4);
	expect_be(e, 0, 4);
	expect_be(e, UINT32_C(0x80000000) | REMOTE_QPN, 4);
	expect_be(e, 0x5a12, 2);
	expect_bytes(e, &address.av.rlid, 2);
	expect_be(e, 0, 4);
	expect_be(e, 0x010203040506, 6);
	expect_be(e, 0x0740, 2);
	expect_bytes(e, &address.av.grh_gid_fl, 4);
	expect_be(e, 0xfe80000000000000, 8);
	expect_be(e, 0x99, 8);
}

/* Expects the segments before the data. */
static void expect_header(struct expected *e, const struct operation *op, enum ibv_qp_type type, uint32_t index)
{
	/* signalled, solicited, fenced: 0x08 | 0x02 | 0x80 */
	expect_ctrl(e, index, op->wqe_opcode, 0x8a, op->imm);
	if (type == IBV_QPT_UD)
		expect_av(e);
	if (type == IBV_QPT_XRC_SEND) {
		expect_be(e, REMOTE_SRQN, 4);
		expect_be(e, 0, 4);
		expect_be(e, 0, 8);
	}
	if (op->raddr)
		expect_raddr(e, remote_addr, RKEY);
	if (op->atomic) {
		bool swap = op->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

		expect_be(e, swap ? swap_value : compare_add, 8);
		if (swap)
			expect_be(e, compare_add, 8);
		else
			expect_garbage(e, 8);
	}
}

enum { FLAGS = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_FENCE };

static void post_with(struct posting *p, const struct operation *op, enum data_form form, struct ibv_sge *sge, int sges)
{
	struct ibv_send_wr *bad, wr = {
					 .wr_id = wr_id,
					 .sg_list = sge,
					 .num_sge = sges,
					 .opcode = op->opcode,
					 .send_flags = FLAGS | (form == INLINED ? IBV_SEND_INLINE : 0),
				 };

	if (op->opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = INV;
	else
		wr.imm_data = htobe32(IMM);
	if (op->atomic) {
		wr.wr.atomic.remote_addr = remote_addr;
		wr.wr.atomic.rkey = RKEY;
		wr.wr.atomic.compare_add = compare_add;
		wr.wr.atomic.swap = swap_value;
	} else if (p->qp.type == IBV_QPT_UD) {
		wr.wr.ud.ah = &address.base;
		wr.wr.ud.remote_qpn = REMOTE_QPN;
		wr.wr.ud.remote_qkey = REMOTE_QKEY;
	} else {
		wr.wr.rdma.remote_addr = remote_addr;
		wr.wr.rdma.rkey = RKEY;
	}
	if (p->qp.type == IBV_QPT_XRC_SEND)
		wr.qp_type.xrc.remote_srqn = REMOTE_SRQN;
	assert_int_equal(softhca_ibv_post_send(&p->qp.base, &wr, &bad), 0);
}

static void set_address(struct posting *p)
{
	if (p->qp.type == IBV_QPT_UD)
		ibv_wr_set_ud_addr(&p->qp.ex, &address.base, REMOTE_QPN, REMOTE_QKEY);
	else if (p->qp.type == IBV_QPT_XRC_SEND)
		ibv_wr_set_xrc_srqn(&p->qp.ex, REMOTE_SRQN);
}

/* Builds a WQE. @address_first: order of the two setters of UD and XRC. */
static void build_with(struct posting *p, const struct operation *op, enum data_form form, struct ibv_sge *sge,
		       int sges, bool address_first)
{
	struct ibv_qp_ex *ex = &p->qp.ex;
	struct ibv_data_buf bufs[SGES];

	ibv_wr_start(ex);
	ex->wr_id = wr_id;
	ex->wr_flags = FLAGS;
	op->build(ex);
	/* The builder has already read both. */
	ex->wr_id = 1;
	ex->wr_flags = 0;
	if (address_first)
		set_address(p);
	if (form == POINTERS && sges == 1) {
		ibv_wr_set_sge(ex, sge->lkey, sge->addr, sge->length);
	} else if (form == POINTERS) {
		ibv_wr_set_sge_list(ex, sges, sge);
	} else if (sges == 1) {
		ibv_wr_set_inline_data(ex, (void *)(uintptr_t)sge->addr, sge->length);
	} else {
		for (int i = 0; i < sges; i++)
			bufs[i] = (struct ibv_data_buf){(void *)(uintptr_t)sge[i].addr, sge[i].length};
		ibv_wr_set_inline_data_list(ex, sges, bufs);
	}
	if (!address_first)
		set_address(p);
	assert_int_equal(ibv_wr_complete(ex), 0);
}

/* Way 0: ibv_post_send; 1 and 2: builders, the address last and first. */
static void one_wqe(struct posting *p, const struct operation *op, enum data_form form, struct ibv_sge *sge, int sges,
		    struct expected *e, uint32_t index, int way)
{
	uint32_t head = p->qp.sq.head;

	place_producer(p, index);
	if (way)
		build_with(p, op, form, sge, sges, way == 2);
	else
		post_with(p, op, form, sge, sges);
	check_wqe(p, index, e);
	check_tables(p, index, head, wr_id, WC_OPCODE_FROM_CQE);
}

static void at_all_places(struct posting *p, const struct operation *op, enum data_form form, struct ibv_sge *sge,
			  int sges, void (*data)(struct expected *, const struct ibv_sge *, int, bool))
{
	bool addressed = p->qp.type == IBV_QPT_UD || p->qp.type == IBV_QPT_XRC_SEND;
	struct expected e;

	for (size_t b = 0; b < sizeof(bases) / sizeof(bases[0]); b++) {
		for (uint32_t block = 0; block < p->qp.sq.wqebb_count; block++) {
			uint32_t index = bases[b] + block;

			for (int way = 0; way <= (addressed ? 2 : 1); way++) {
				expect_header(&e, op, p->qp.type, index);
				/* The builders do not change the length of an atomic's SGE. */
				data(&e, sge, sges, op->atomic && !way);
				one_wqe(p, op, form, sge, sges, &e, index, way);
			}
		}
	}
}

static void expect_pointers(struct expected *e, const struct ibv_sge *sge, int sges, bool atomic)
{
	for (int i = 0; i < sges; i++)
		if (sge[i].length)
			expect_pointer(e, atomic ? 8 : sge[i].length, sge[i].lkey, sge[i].addr);
}

static void expect_inlined(struct expected *e, const struct ibv_sge *sge, int sges, bool atomic)
{
	uint8_t data[1024];
	uint32_t length = 0;

	(void)atomic;
	for (int i = 0; i < sges; i++) {
		memcpy(data + length, (void *)(uintptr_t)sge[i].addr, sge[i].length);
		length += sge[i].length;
	}
	if (length)
		expect_inline(e, data, length);
}

/* Posts all counts of SGEs, with an empty one at each place among them. */
static void pointers(struct posting *p, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (int sges = 0; sges <= (int)SGES; sges++) {
			for (int empty = -1; empty < sges; empty++) {
				struct ibv_sge sge[SGES];

				for (int s = 0; s < sges; s++)
					sge[s] = (struct ibv_sge){local_addr + s, s == empty ? 0 : 4096 + s, LKEY + s};
				at_all_places(p, &operations[i], POINTERS, sge, sges, expect_pointers);
			}
		}
	}
}

/* Posts all lengths, in one, two and three pieces. */
static void inlined(struct posting *p, size_t count)
{
	uint8_t data[256];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = i + 1;
	assert_true(p->qp.sq.max_inline <= sizeof(data));
	for (size_t i = 0; i < count; i++) {
		for (uint32_t length = 0; length <= p->qp.sq.max_inline; length++) {
			struct ibv_sge whole = {(uintptr_t)data, length, 0};
			struct ibv_sge pieces[3] = {
				{(uintptr_t)data, length / 3, 0},
				{(uintptr_t)data + length / 3, 0, 0},
				{(uintptr_t)data + length / 3, length - length / 3, 0},
			};

			at_all_places(p, &operations[i], INLINED, &whole, 1, expect_inlined);
			at_all_places(p, &operations[i], INLINED, pieces, 3, expect_inlined);
		}
	}
}

static struct posting *ring_for(enum ibv_qp_type type, uint32_t sges, uint32_t inline_bytes)
{
	uint64_t ops = type == IBV_QPT_UD ? IBV_QP_EX_WITH_SEND
					  : IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
						    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
	struct ibv_qp_cap cap = {.max_send_wr = 2, .max_send_sge = sges, .max_inline_data = inline_bytes};

	return posting_new(type, ops, cap);
}

enum { RC_OPERATIONS = sizeof(operations) / sizeof(operations[0]), UC_OPERATIONS = 5, UD_OPERATIONS = 2 };

TEST(rc_pointers)
{
	struct posting *p = ring_for(IBV_QPT_RC, SGES, 0);

	pointers(p, RC_OPERATIONS);
	posting_free(p);
}

TEST(rc_inline)
{
	struct posting *p = ring_for(IBV_QPT_RC, SGES, 76);

	inlined(p, RC_OPERATIONS);
	posting_free(p);
}

TEST(uc)
{
	struct posting *p = posting_new(IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_WRITE,
					(struct ibv_qp_cap){.max_send_wr = 2, .max_send_sge = SGES});

	pointers(p, UC_OPERATIONS);
	inlined(p, UC_OPERATIONS);
	posting_free(p);
}

TEST(ud)
{
	struct posting *p = ring_for(IBV_QPT_UD, SGES, 0);

	pointers(p, UD_OPERATIONS);
	inlined(p, UD_OPERATIONS);
	posting_free(p);
}

/* mlx5-formats 1.4, 1.7: the number of the SRQ precedes the segments of RC. */
TEST(xrc)
{
	struct posting *p = ring_for(IBV_QPT_XRC_SEND, SGES, 0);

	pointers(p, RC_OPERATIONS);
	inlined(p, RC_OPERATIONS);
	posting_free(p);
}

/* ATOMIC WRITE: opcode 0x13, segments of an RDMA WRITE with 8 inline bytes. */
TEST(atomic_write)
{
	struct posting *p = ring_for(IBV_QPT_RC, 1, 0);
	static const uint8_t value[8] = {1, 2, 3, 4, 5, 6, 7, 8};

	for (uint32_t index = 0xfff0; index < 0xfff0 + 2 * p->qp.sq.wqebb_count; index++) {
		struct ibv_sge sge = {(uintptr_t)value, 8, 0};
		struct ibv_send_wr *bad, wr = {
						 .wr_id = wr_id,
						 .sg_list = &sge,
						 .num_sge = 1,
						 .opcode = IBV_WR_ATOMIC_WRITE,
						 .send_flags = IBV_SEND_INLINE,
						 .wr.rdma = {remote_addr & ~UINT64_C(7), RKEY},
					 };
		struct expected e;

		for (int way = 0; way < 2; way++) {
			uint32_t head = p->qp.sq.head;

			place_producer(p, index);
			expect_ctrl(&e, index, 0x13, 0, 0);
			expect_raddr(&e, remote_addr & ~UINT64_C(7), RKEY);
			expect_inline(&e, value, 8);
			if (way) {
				ibv_wr_start(&p->qp.ex);
				p->qp.ex.wr_id = wr_id;
				p->qp.ex.wr_flags = 0;
				ibv_wr_atomic_write(&p->qp.ex, RKEY, remote_addr & ~UINT64_C(7), value);
				assert_int_equal(ibv_wr_complete(&p->qp.ex), 0);
			} else {
				assert_int_equal(softhca_ibv_post_send(&p->qp.base, &wr, &bad), 0);
			}
			check_wqe(p, index, &e);
			check_tables(p, index, head, wr_id, IBV_WC_ATOMIC_WRITE);
		}
	}
	posting_free(p);
}

/* sq_sig_all: every WQE is signalled, binds included. */
TEST(signal_all)
{
	struct posting *p = posting_new(IBV_QPT_RC, 0, (struct ibv_qp_cap){.max_send_wr = 4, .max_send_sge = 1});
	struct ibv_send_wr *bad, wr[2] = {
					 {.opcode = IBV_WR_SEND, .next = &wr[1]},
					 {.opcode = IBV_WR_LOCAL_INV},
				 };

	p->qp.sq_sig_all = true;
	send_queue_derive(&p->qp);
	place_producer(p, 0);
	assert_int_equal(softhca_ibv_post_send(&p->qp.base, wr, &bad), 0);
	assert_int_equal(wqe_byte(p, 0, 11), 0x08);
	assert_int_equal(wqe_byte(p, 1, 11), 0x08);
	posting_free(p);
}

/* An operation that its transport does not support is sent without the segments it would need (mlx5-formats 3.8). */
TEST(foreign_operations)
{
	struct posting *uc_qp = posting_new(IBV_QPT_UC, 0, (struct ibv_qp_cap){.max_send_wr = 4, .max_send_sge = 1});
	struct posting *ud_qp = posting_new(IBV_QPT_UD, 0, (struct ibv_qp_cap){.max_send_wr = 4, .max_send_sge = 1});
	struct ibv_sge sge = {local_addr, 8, LKEY};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1};
	struct expected e;

	place_producer(uc_qp, 0);
	assert_int_equal(softhca_ibv_post_send(&uc_qp->qp.base, &wr, &bad), 0);
	expect_ctrl(&e, 0, 0x10, 0, 0);
	expect_pointer(&e, 8, LKEY, local_addr);
	check_wqe(uc_qp, 0, &e);

	/* The member of the union for the address handle holds other data here. */
	place_producer(ud_qp, 0);
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr.rdma.remote_addr = 8;
	assert_int_equal(softhca_ibv_post_send(&ud_qp->qp.base, &wr, &bad), 0);
	expect_ctrl(&e, 0, 0x08, 0, 0);
	expect_pointer(&e, 8, LKEY, local_addr);
	check_wqe(ud_qp, 0, &e);
	posting_free(uc_qp);
	posting_free(ud_qp);
}

int main(void)
{
	address.av.rlid = htobe16(0xc0de);
	address.av.grh_gid_fl = htobe32(0x40312345);

	return run_cases();
}
