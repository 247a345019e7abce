/* SPDX-License-Identifier: BSD-2-Clause */
/* Extended polling (ibv_create_cq_ex(3)) on hand-made rings. */
#include <time.h>

#include "../support/cq_fixture.h"

static struct ibv_poll_cq_attr no_attr;

static void init(struct cq_fixture *f, uint32_t size, uint64_t wc_flags)
{
	fixture_init(f, 8, size, 0);
	cq_poll_ex_fill(&f->cq, wc_flags);
}

static bool is_locked(struct cq_fixture *f)
{
	return __atomic_load_n(&f->cq.lock.held, __ATOMIC_RELAXED);
}

TEST(readers_are_those_asked_for)
{
	struct cq_fixture f;
	struct ibv_cq_ex *ex = &f.cq.ex;

	for (int bit = 0; bit < 12; bit++) {
		uint64_t flag = UINT64_C(1) << bit;

		init(&f, 64, flag);
		assert_non_null(ex->start_poll);
		assert_non_null(ex->next_poll);
		assert_non_null(ex->end_poll);
		assert_non_null(ex->read_opcode);
		assert_non_null(ex->read_vendor_err);
		assert_non_null(ex->read_wc_flags);
		assert_int_equal(!!ex->read_byte_len, bit == 0);
		assert_int_equal(!!ex->read_imm_data, bit == 1);
		assert_int_equal(!!ex->read_qp_num, bit == 2);
		assert_int_equal(!!ex->read_src_qp, bit == 3);
		assert_int_equal(!!ex->read_slid, bit == 4);
		assert_int_equal(!!ex->read_sl, bit == 5);
		assert_int_equal(!!ex->read_dlid_path_bits, bit == 6);
		assert_int_equal(!!ex->read_completion_ts, bit == 7);
		assert_int_equal(!!ex->read_cvlan, bit == 8);
		assert_int_equal(!!ex->read_flow_tag, bit == 9);
		assert_int_equal(!!ex->read_tm_info, bit == 10);
		assert_int_equal(!!ex->read_completion_wallclock_ns, bit == 11);
		fixture_free(&f);
	}
}

/* The lock is held from start_poll to end_poll, which publishes the consumer index. */
TEST(iterator)
{
	struct ibv_poll_cq_attr bad = {.comp_mask = 1};
	struct cq_fixture f;

	init(&f, 64, IBV_WC_STANDARD_FLAGS);
	assert_int_equal(ibv_start_poll(&f.cq.ex, &bad), EINVAL);
	assert_false(is_locked(&f));
	assert_int_equal(ibv_start_poll(&f.cq.ex, &no_attr), ENOENT);
	assert_false(is_locked(&f));

	for (int i = 0; i < 3; i++)
		write_plain(&f, 0, 0x0a, 0, 10 + i);
	assert_int_equal(ibv_start_poll(&f.cq.ex, &no_attr), 0);
	assert_true(is_locked(&f));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(f.cq.ex.wr_id, 10 + i);
		assert_int_equal(f.cq.ex.status, IBV_WC_SUCCESS);
		assert_int_equal(ibv_next_poll(&f.cq.ex), i < 2 ? 0 : ENOENT);
		assert_int_equal(published(&f), 0);
	}
	assert_true(is_locked(&f));
	ibv_end_poll(&f.cq.ex);
	assert_false(is_locked(&f));
	assert_int_equal(published(&f), 3);

	/* A batch may end before the CQ is empty. */
	write_plain(&f, 0, 0x0a, 0, 1);
	write_plain(&f, 0, 0x0a, 0, 2);
	assert_int_equal(ibv_start_poll(&f.cq.ex, &no_attr), 0);
	ibv_end_poll(&f.cq.ex);
	assert_int_equal(published(&f), 4);
	assert_int_equal(ibv_start_poll(&f.cq.ex, &no_attr), 0);
	assert_int_equal(f.cq.ex.wr_id, 2);
	ibv_end_poll(&f.cq.ex);
	fixture_free(&f);
}

TEST(fields_of_a_receive)
{
	struct cq_fixture f;
	struct ibv_cq_ex *ex = &f.cq.ex;
	struct cqe_spec spec = {
		.opcode = 3,
		.qpn = 0x654321,
		.byte_count = 0x80000001,
		.imm = 0x11223344,
		.flags_rqpn = 1u << 28 | 0xbu << 24 | 0xabcdef,
		.slid = 0x1234,
		.vlan = 0x0fed,
		.ml_path = 0xfe,
		.timestamp = 0x0123456789abcdef,
	};
	__be32 imm;

	for (uint32_t size = 64; size <= 128; size += 64) {
		init(&f, size, IBV_CREATE_CQ_SUP_WC_FLAGS);
		spec.user_index = f.qp[1].user_index;
		write_cqe(&f, &spec);
		assert_int_equal(ibv_start_poll(ex, &no_attr), 0);
		assert_int_equal(ex->status, IBV_WC_SUCCESS);
		assert_int_equal(ex->wr_id, 1500);
		assert_int_equal(ibv_wc_read_opcode(ex), IBV_WC_RECV);
		assert_int_equal(ibv_wc_read_wc_flags(ex), IBV_WC_GRH | IBV_WC_WITH_IMM);
		assert_int_equal(ibv_wc_read_byte_len(ex), 0x80000001);
		imm = ibv_wc_read_imm_data(ex);
		assert_memory_equal(&imm, "\x11\x22\x33\x44", 4);
		assert_int_equal(ibv_wc_read_qp_num(ex), 0x654321);
		assert_int_equal(ibv_wc_read_src_qp(ex), 0xabcdef);
		assert_int_equal(ibv_wc_read_slid(ex), 0x1234);
		assert_int_equal(ibv_wc_read_sl(ex), 0xb);
		assert_int_equal(ibv_wc_read_dlid_path_bits(ex), 0x7e);
		assert_int_equal(ibv_wc_read_completion_ts(ex), 0x0123456789abcdef);
		assert_int_equal(ibv_wc_read_cvlan(ex), 0x0fed);
		assert_int_equal(ibv_wc_read_flow_tag(ex), 0x654321);
		ibv_end_poll(ex);

		spec.opcode = 4;
		write_cqe(&f, &spec);
		assert_int_equal(ibv_start_poll(ex, &no_attr), 0);
		assert_int_equal(ibv_wc_read_opcode(ex), IBV_WC_RECV);
		assert_int_equal(ibv_wc_read_wc_flags(ex), IBV_WC_GRH | IBV_WC_WITH_INV);
		assert_int_equal(ibv_wc_read_invalidated_rkey(ex), 0x11223344);
		ibv_end_poll(ex);

		spec.opcode = 1;
		write_cqe(&f, &spec);
		assert_int_equal(ibv_start_poll(ex, &no_attr), 0);
		assert_int_equal(ibv_wc_read_opcode(ex), IBV_WC_RECV_RDMA_WITH_IMM);
		ibv_end_poll(ex);
		spec.opcode = 3;
		fixture_free(&f);
	}
}

/* The slot of the queue may be reused once the CQE is consumed: its saved values must have been kept. */
TEST(fields_of_a_send)
{
	struct cq_fixture f;
	struct ibv_cq_ex *ex = &f.cq.ex;

	init(&f, 64, IBV_WC_STANDARD_FLAGS);
	f.qp[0].sq.wc_opcode[3] = IBV_WC_LOCAL_INV;
	write_plain(&f, 0, 0x25, 0, 3);
	write_plain(&f, 0, 0x09, 0, 4);
	write_plain(&f, 0, 0x12, 0, 5);
	assert_int_equal(ibv_start_poll(ex, &no_attr), 0);
	f.qp[0].sq.wc_opcode[3] = IBV_WC_BIND_MW;
	f.qp[0].sq.wr_id[3] = 99;
	assert_int_equal(ibv_wc_read_opcode(ex), IBV_WC_LOCAL_INV);
	assert_int_equal(ex->wr_id, 3);
	assert_int_equal(ibv_next_poll(ex), 0);
	assert_int_equal(ibv_wc_read_opcode(ex), IBV_WC_RDMA_WRITE);
	assert_int_equal(ibv_wc_read_wc_flags(ex), 0);
	assert_int_equal(ibv_next_poll(ex), 0);
	assert_int_equal(ibv_wc_read_opcode(ex), IBV_WC_FETCH_ADD);
	assert_int_equal(ibv_wc_read_byte_len(ex), 8);
	ibv_end_poll(ex);
	fixture_free(&f);
}

TEST(failed_completions)
{
	struct cq_fixture f;
	struct ibv_cq_ex *ex = &f.cq.ex;
	struct cqe_spec spec = {
		.send_opcode = 0x10,
		.counter = 6,
		.qpn = 0x4001,
		.flags_rqpn = 1 << 28,
		.vendor = 200,
		.syndrome = 0x13,
	};

	init(&f, 128, IBV_WC_STANDARD_FLAGS);
	for (spec.opcode = 13; spec.opcode <= 14; spec.opcode++) {
		spec.user_index = f.qp[0].user_index;
		write_cqe(&f, &spec);
		assert_int_equal(ibv_start_poll(ex, &no_attr), 0);
		assert_int_equal(ex->status, IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(ex->wr_id, spec.opcode == 13 ? 6 : 500);
		assert_int_equal(ibv_wc_read_vendor_err(ex), 200);
		assert_int_equal(ibv_wc_read_qp_num(ex), 0x4001);
		assert_int_equal(ibv_wc_read_opcode(ex), 0);
		assert_int_equal(ibv_wc_read_wc_flags(ex), 0);
		ibv_end_poll(ex);
	}
	fixture_free(&f);
}

/* mlx5-formats 3.5: a poll that meets only signature errors consumes them and returns nothing. */
TEST(absorbed_cqes)
{
	struct cq_fixture f;

	init(&f, 64, IBV_WC_STANDARD_FLAGS);
	write_plain(&f, 12, 0, 0, 0);
	assert_int_equal(ibv_start_poll(&f.cq.ex, &no_attr), ENOENT);
	assert_false(is_locked(&f));
	assert_int_equal(published(&f), 1);

	write_plain(&f, 12, 0, 0, 0);
	write_plain(&f, 5, 0, 0, 0);
	write_plain(&f, 0, 0x0a, 0, 9);
	write_plain(&f, 12, 0, 0, 0);
	assert_int_equal(ibv_start_poll(&f.cq.ex, &no_attr), 0);
	assert_int_equal(f.cq.ex.wr_id, 9);
	assert_int_equal(ibv_next_poll(&f.cq.ex), ENOENT);
	ibv_end_poll(&f.cq.ex);
	assert_int_equal(published(&f), 5);
	fixture_free(&f);
}

TEST(a_cqe_of_no_qp)
{
	struct cqe_spec spec = {.user_index = 4711};
	struct cq_fixture f;

	init(&f, 64, IBV_WC_STANDARD_FLAGS);
	write_cqe(&f, &spec);
	assert_int_equal(ibv_start_poll(&f.cq.ex, &no_attr), -2);
	assert_false(is_locked(&f));
	write_plain(&f, 0, 0x0a, 0, 1);
	write_cqe(&f, &spec);
	assert_int_equal(ibv_start_poll(&f.cq.ex, &no_attr), 0);
	assert_int_equal(ibv_next_poll(&f.cq.ex), -2);
	ibv_end_poll(&f.cq.ex);
	assert_false(is_locked(&f));
	fixture_free(&f);
}

TEST(wallclock)
{
	struct cq_fixture f;
	struct cqe_spec spec = {.opcode = 2};
	struct timespec now;
	int64_t before, stamp;

	init(&f, 64, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	spec.user_index = f.qp[0].user_index;
	clock_gettime(CLOCK_REALTIME, &now);
	before = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	spec.timestamp = hca_clock_ns(f.device.hca);
	write_cqe(&f, &spec);
	assert_int_equal(ibv_start_poll(&f.cq.ex, &no_attr), 0);
	stamp = ibv_wc_read_completion_wallclock_ns(&f.cq.ex);
	ibv_end_poll(&f.cq.ex);
	/* The clocks are read one after the other; the tolerance is for a machine that sleeps in between. */
	assert_true(stamp > before - 50000000);
	assert_true(stamp < before + 1000000000);
	fixture_free(&f);
}
