/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_poll_cq(3) on hand-made rings: every opcode, every syndrome, owner bits over many laps, accounting, errors. */
#include "../support/cq_fixture.h"

static const uint32_t sizes[] = {64, 128};

#define FOR_BOTH_SIZES(size) for (uint32_t i_ = 0, size; i_ < 2 && (size = sizes[i_], 1); i_++)

TEST(an_empty_ring_has_no_completion)
{
	struct cq_fixture f;
	struct ibv_wc wc;

	FOR_BOTH_SIZES(size)
	{
		fixture_init(&f, 4, size, 0);
		f.dbrec[0] = 0x12345678;
		assert_int_equal(poll_one(&f, &wc), 0);
		assert_int_equal(f.cq.consumer_index, 0);
		assert_int_equal(f.dbrec[0], 0x12345678);
		fixture_free(&f);

		/* One lap later the ring is full of old CQEs. */
		fixture_init(&f, 4, size, 4);
		assert_int_equal(poll_one(&f, &wc), 0);
		fixture_free(&f);
	}
}

/* mlx5-formats 3.8, rows REQ. */
static const struct {
	uint8_t send_opcode;
	int wc_opcode;
	unsigned int wc_flags;
	int64_t byte_len; /* -1: not written */
} good_sends[] = {
	{0x08, 1, 0, -1},   {0x09, 1, IBV_WC_WITH_IMM, -1},
	{0x0a, 0, 0, -1},   {0x0b, 0, IBV_WC_WITH_IMM, -1},
	{0x01, 0, 0, -1},   {0x10, 2, 0, 777},
	{0x11, 3, 0, 8},    {0x12, 4, 0, 8},
	{0x0e, 7, 0, -1},   {0x25, 135, 0, -1},
	{0x14, 136, 0, -1}, {0x15, 136, 0, -1},
};

TEST(each_send_opcode)
{
	struct cq_fixture f;
	struct ibv_wc wc;

	FOR_BOTH_SIZES(size)
	{
		fixture_init(&f, 4, size, 0);
		for (size_t i = 0; i < sizeof(good_sends) / sizeof(good_sends[0]); i++) {
			struct cqe_spec spec = {
				.send_opcode = good_sends[i].send_opcode,
				.counter = 5,
				.user_index = f.qp[1].user_index,
				.qpn = 0xabcdef,
				.byte_count = 777,
				.imm = 0x11223344,
			};

			write_cqe(&f, &spec);
			assert_int_equal(poll_one(&f, &wc), 1);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_int_equal(wc.opcode, good_sends[i].wc_opcode);
			assert_int_equal(wc.wc_flags, good_sends[i].wc_flags);
			assert_int_equal(wc.byte_len, good_sends[i].byte_len < 0 ? 0xeeeeeeee : good_sends[i].byte_len);
			assert_int_equal(wc.wr_id, 1005);
			assert_int_equal(wc.qp_num, 0xabcdef);
		}
		fixture_free(&f);
	}
}

/* The operation saved in the slot decides for UMR, SET_PSV, NOP and MMO, and for raw WQEs of any opcode. */
TEST(remembered_opcodes)
{
	static const struct {
		uint8_t send_opcode, remembered;
		int wc_opcode;
	} rows[] = {
		{0x25, IBV_WC_BIND_MW, 5},   {0x25, IBV_WC_LOCAL_INV, 6}, {0x25, IBV_WC_DRIVER1, 135},
		{0x20, IBV_WC_DRIVER1, 135}, {0x2f, IBV_WC_DRIVER3, 137}, {0x00, IBV_WC_SEND, 0},
		{0x00, IBV_WC_RDMA_READ, 2}, {0x0a, IBV_WC_DRIVER2, 136}, {0x14, IBV_WC_DRIVER2, 136},
	};
	struct cq_fixture f;
	struct ibv_wc wc;

	fixture_init(&f, 4, 64, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		f.qp[0].sq.wc_opcode[i] = rows[i].remembered;
		write_plain(&f, 0, rows[i].send_opcode, 0, i);
		assert_int_equal(poll_one(&f, &wc), 1);
		assert_int_equal(wc.opcode, rows[i].wc_opcode);
	}
	fixture_free(&f);
}

/* mlx5-formats 3.8, rows RESP_*. */
TEST(each_receive_opcode)
{
	static const struct {
		uint8_t opcode;
		int wc_opcode;
		unsigned int wc_flags;
	} rows[] = {
		{1, 129, IBV_WC_WITH_IMM},
		{2, 128, 0},
		{3, 128, IBV_WC_WITH_IMM},
		{4, 128, IBV_WC_WITH_INV},
	};
	struct cq_fixture f;
	struct ibv_wc wc;

	FOR_BOTH_SIZES(size)
	{
		fixture_init(&f, 4, size, 0);
		for (uint32_t i = 0; i < 4 * 4; i++) {
			uint32_t grh = i / 4; /* bits 29:28: any value but 0 means a GRH */
			struct cqe_spec spec = {
				.opcode = rows[i % 4].opcode,
				.counter = i,
				.user_index = 0xff000000 | f.qp[0].user_index,
				.qpn = 0x4001,
				.byte_count = 0x80000001,
				.imm = 0x11223344,
				.flags_rqpn = grh << 28 | 0xbu << 24 | 0x654321,
				.slid = 0x1234,
				.ml_path = 0xfe,
				.format_solicited = 2,
			};

			write_cqe(&f, &spec);
			assert_int_equal(poll_one(&f, &wc), 1);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_int_equal(wc.opcode, rows[i % 4].wc_opcode);
			assert_int_equal(wc.wc_flags, rows[i % 4].wc_flags | (grh ? IBV_WC_GRH : 0));
			assert_int_equal(wc.wr_id, 500 + i % RQ_ENTRIES);
			assert_int_equal(wc.byte_len, 0x80000001);
			assert_int_equal(wc.src_qp, 0x654321);
			assert_int_equal(wc.sl, 0xb);
			assert_int_equal(wc.slid, 0x1234);
			assert_int_equal(wc.dlid_path_bits, 0x7e);
			assert_int_equal(wc.pkey_index, 0x3344);
			assert_int_equal(wc.qp_num, 0x4001);
			if (wc.wc_flags & IBV_WC_WITH_IMM)
				assert_memory_equal(&wc.imm_data, "\x11\x22\x33\x44", 4);
			if (wc.wc_flags & IBV_WC_WITH_INV)
				assert_int_equal(wc.invalidated_rkey, 0x11223344);
		}
		fixture_free(&f);
	}
}

/* mlx5-formats 3.4; numbers of enum ibv_wc_status. */
static int status_of(int syndrome)
{
	static const struct {
		int syndrome, status;
	} rows[] = {{0x01, 1}, {0x02, 2},  {0x04, 4},  {0x05, 5},  {0x06, 6},  {0x10, 7}, {0x11, 8},
		    {0x12, 9}, {0x13, 10}, {0x14, 11}, {0x15, 12}, {0x16, 13}, {0x22, 16}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].syndrome == syndrome)
			return rows[i].status;
	return 21;
}

TEST(each_syndrome)
{
	struct cq_fixture f;
	struct ibv_wc wc;

	FOR_BOTH_SIZES(size)
	{
		fixture_init(&f, 8, size, 0);
		for (int syndrome = 0; syndrome < 256; syndrome++) {
			struct cqe_spec spec = {
				.opcode = syndrome & 1 ? 13 : 14,
				.send_opcode = 0x08,
				.counter = syndrome,
				.user_index = f.qp[1].user_index,
				.qpn = 0x4002,
				.syndrome = syndrome,
				.vendor = 255 - syndrome,
			};

			for (int requester = 0; requester < 2; requester++) {
				spec.opcode = requester ? 13 : 14;
				write_cqe(&f, &spec);
				assert_int_equal(poll_one(&f, &wc), 1);
				assert_int_equal(wc.status, status_of(syndrome));
				assert_int_equal(wc.vendor_err, 255 - syndrome);
				assert_int_equal(wc.qp_num, 0x4002);
				assert_int_equal(wc.wr_id, requester ? 1000 + syndrome % SQ_BLOCKS
								     : 1500 + syndrome % RQ_ENTRIES);
				assert_int_equal(wc.wc_flags, 0);
				assert_int_equal((unsigned int)wc.opcode, 0xeeeeeeee); /* not valid: unchanged */
			}
		}
		fixture_free(&f);
	}
}

/* Polls batches of any size up to a full ring, over many laps and through the wrap of 24 and of 32 bits. */
TEST(owner_bits_over_many_laps)
{
	static const uint32_t starts[] = {0, 0xffffff - 20, UINT32_MAX - 20};
	struct ibv_wc wc[64];
	struct cq_fixture f;

	srand(1);
	FOR_BOTH_SIZES(size)
	{
		for (int i = 0; i < 3; i++) {
			uint32_t written = 0, polled = 0;

			fixture_init(&f, 16, size, starts[i]);
			while (polled < 16 * 20) {
				uint32_t room = 16 - (written - polled);
				uint32_t batch = room ? rand() % (room + 1) : 0;
				int found;

				for (; batch; batch--, written++)
					write_plain(&f, 0, 0x0a, 0, written);
				batch = 1 + rand() % 20;
				found = softhca_ibv_poll_cq(&f.cq.base, batch, wc);
				assert_int_equal(found, written - polled < batch ? written - polled : batch);
				for (int n = 0; n < found; n++, polled++)
					assert_int_equal(wc[n].wr_id, polled % SQ_BLOCKS);
				if (found)
					assert_int_equal(published(&f), (starts[i] + polled) & 0xffffff);
			}
			fixture_free(&f);
		}
	}
}

/* mlx5-formats 3.3: a completion frees all WQEs up to its own; the counter has 16 bits. */
TEST(unsignalled_accounting)
{
	struct cq_fixture f;
	struct ibv_wc wc;

	fixture_init(&f, 4, 64, 0);
	f.qp[0].sq.tail = 70000;
	f.qp[0].sq.wqe_head[0xffff % SQ_BLOCKS] = 70041;
	f.qp[0].sq.wqe_head[0] = UINT32_MAX;
	write_plain(&f, 0, 0x08, 0, 0xffff);
	write_plain(&f, 13, 0x08, 0, 0);
	assert_int_equal(poll_one(&f, &wc), 1);
	assert_int_equal(wc.wr_id, SQ_BLOCKS - 1);
	assert_int_equal(f.qp[0].sq.tail, 70042);
	assert_int_equal(poll_one(&f, &wc), 1);
	assert_int_equal(wc.wr_id, 0);
	assert_int_equal(f.qp[0].sq.tail, 0);
	assert_int_equal(f.qp[1].sq.tail, 0);

	/* Receives: one each, in order. */
	f.qp[1].rq.tail = UINT32_MAX;
	write_plain(&f, 2, 0, 1, 0xffff);
	write_plain(&f, 14, 0, 1, 0);
	assert_int_equal(poll_one(&f, &wc), 1);
	assert_int_equal(wc.wr_id, 1500 + RQ_ENTRIES - 1);
	assert_int_equal(f.qp[1].rq.tail, 0);
	assert_int_equal(poll_one(&f, &wc), 1);
	assert_int_equal(wc.wr_id, 1500);
	assert_int_equal(f.qp[1].rq.tail, 1);
	fixture_free(&f);
}

/* mlx5-formats 2.2: receives of an SRQ complete by entry index, in any order, and return their entry. */
TEST(receives_from_an_srq)
{
	uint32_t index[3];
	struct cq_fixture f;
	struct ibv_wc wc;

	fixture_init(&f, 8, 64, 0);
	for (int i = 0; i < 3; i++)
		index[i] = post_to_srq(&f, 7000 + i);
	assert_int_equal(f.srq.used, 3);
	write_plain(&f, 2, 0, SRQ_QP, index[2]);
	write_plain(&f, 14, 0, SRQ_QP, index[0]);
	write_plain(&f, 1, 0, SRQ_QP, index[1]);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(poll_one(&f, &wc), 1);
		assert_int_equal(wc.wr_id, 7000 + (i + 2) % 3);
		assert_int_equal(f.srq.used, 2 - i);
	}
	assert_int_equal(f.qp[SRQ_QP].rq.tail, 0);

	/* An entry number beyond the SRQ. */
	write_plain(&f, 2, 0, SRQ_QP, SRQ_ENTRIES);
	assert_int_equal(poll_one(&f, &wc), -2);
	assert_int_equal(f.srq.used, 0);
	fixture_free(&f);
}

/* mlx5-formats 3.8: -2, and completions collected by the same call are lost; the CQ continues after it. */
TEST(a_cqe_of_no_qp)
{
	struct cq_fixture f;
	struct ibv_wc wc[4];

	FOR_BOTH_SIZES(size)
	{
		for (uint8_t opcode = 0; opcode < 15; opcode++) {
			struct cqe_spec spec = {.opcode = opcode, .user_index = 77, .qpn = 0x4001};

			if (opcode == 5 || opcode == 12)
				continue;
			fixture_init(&f, 8, size, 0);
			write_plain(&f, 0, 0x0a, 0, 1);
			write_cqe(&f, &spec);
			write_plain(&f, 0, 0x0a, 0, 2);
			assert_int_equal(softhca_ibv_poll_cq(&f.cq.base, 4, wc), -2);
			assert_int_equal(published(&f), 2);
			assert_int_equal(softhca_ibv_poll_cq(&f.cq.base, 4, wc), 1);
			assert_int_equal(wc[0].wr_id, 2);
			fixture_free(&f);
		}
		/* Undefined opcodes, of a QP that exists. */
		for (uint8_t opcode = 6; opcode < 12; opcode++) {
			fixture_init(&f, 8, size, 0);
			write_plain(&f, opcode, 0x0a, 0, 1);
			assert_int_equal(softhca_ibv_poll_cq(&f.cq.base, 4, wc), -2);
			fixture_free(&f);
		}
	}
}

/* mlx5-formats 3.5 and 3.7: CQEs for the driver are consumed and never reported. */
TEST(absorbed_cqes)
{
	static const uint8_t opcodes[] = {12, 5};
	struct cq_fixture f;
	struct ibv_wc wc[4];

	for (int i = 0; i < 2; i++) {
		FOR_BOTH_SIZES(size)
		{
			fixture_init(&f, 8, size, 0);
			write_plain(&f, opcodes[i], 0, 0, 0);
			write_plain(&f, opcodes[i], 0, 0, 0);
			assert_int_equal(softhca_ibv_poll_cq(&f.cq.base, 4, wc), 0);
			assert_int_equal(published(&f), 2);

			write_plain(&f, 0, 0x0a, 0, 3);
			write_plain(&f, opcodes[i], 0, 0, 0);
			write_plain(&f, 2, 0, 1, 0);
			write_plain(&f, opcodes[i], 0, 0, 0);
			assert_int_equal(softhca_ibv_poll_cq(&f.cq.base, 4, wc), 2);
			assert_int_equal(wc[0].wr_id, 3);
			assert_int_equal(wc[1].wr_id, 1500);
			assert_int_equal(published(&f), 6);
			fixture_free(&f);
		}
	}
}

TEST(no_more_than_asked_for)
{
	struct ibv_wc wc[3];
	struct cq_fixture f;

	fixture_init(&f, 8, 64, 0);
	for (int i = 0; i < 5; i++)
		write_plain(&f, 0, 0x0a, 0, i);
	memset(wc, 0xee, sizeof(wc));
	assert_int_equal(softhca_ibv_poll_cq(&f.cq.base, 0, wc), 0);
	assert_int_equal(softhca_ibv_poll_cq(&f.cq.base, -1, wc), 0);
	assert_int_equal(softhca_ibv_poll_cq(&f.cq.base, 2, wc), 2);
	assert_int_equal(wc[2].wr_id, 0xeeeeeeeeeeeeeeee);
	assert_int_equal(published(&f), 2);
	assert_int_equal(softhca_ibv_poll_cq(&f.cq.base, 3, wc), 3);
	assert_int_equal(wc[2].wr_id, 4);
	fixture_free(&f);
}
