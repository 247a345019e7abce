/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WQEs as any program may write them (mlx5-formats 1.1 to 1.6): completion modes, fence modes, inline data anywhere,
 * short and long address vectors; and every kind of malformed WQE, each of which ends in one error CQE with a rule,
 * moves no byte, and stops the queue.
 */
#include "test_case.h"

#include "../support/device_fixture.h"

#include "transport/control/commands.h"

enum { BLOCKS = 16, CQES = 256, FROM = 1024, TO = 32768, MMO_DMA = 1 << 24 | 0x2f, UNITS = 32 };

static struct raw_cq cq;
static struct raw_qp client, server;
static const struct ibv_qp_attr defaults = {.rnr_retry = 7, .retry_cnt = 7, .min_rnr_timer = 1};
static uint8_t before[1 << 16];

static void connect_ends(void)
{
	raw_qp_connect(&device, &client, server.qp->number, &defaults);
	raw_qp_connect(&device, &server, client.qp->number, &defaults);
	while (raw_cq_poll(&cq))
		;
	for (size_t i = 0; i < sizeof(device.memory); i++)
		device.memory[i] = (uint8_t)(i * 7 + i / 251);
	memcpy(before, device.memory, sizeof(before));
}

static void make_ends(enum ibv_qp_type type)
{
	raw_cq_make(&device, &cq, CQES);
	raw_qp_make(&device, &client, type, &cq, BLOCKS);
	raw_qp_make(&device, &server, type, &cq, BLOCKS);
	connect_ends();
}

static int begin(void **state)
{
	(void)state;
	make_ends(IBV_QPT_RC);
	return 0;
}

static int finish(void **state)
{
	(void)state;
	raw_qp_destroy(&client);
	raw_qp_destroy(&server);
	raw_cq_destroy(&cq);
	return 0;
}

static void change_type(enum ibv_qp_type type)
{
	finish(NULL);
	make_ends(type);
}

/* ---- building a WQE ----------------------------------------------------------------------------------------------- */

struct form {
	uint8_t bytes[UNITS * 16];
	uint32_t units;
};

/* Begins a WQE. @code: opcode, with the opmod in the top byte. */
static struct form form(uint32_t code, uint8_t fm_ce_se)
{
	struct mlx5_wqe_ctrl_seg ctrl = ctrl_segment(&client, 0, 0);
	struct form result = {.units = 1};

	ctrl.opmod_idx_opcode |= htobe32(code);
	ctrl.fm_ce_se = fm_ce_se;
	memcpy(result.bytes, &ctrl, sizeof(ctrl));
	return result;
}

static void add(struct form *form, const void *segment, uint32_t bytes)
{
	memcpy(form->bytes + form->units * 16, segment, bytes);
	form->units += (bytes + 15) / 16;
}

static void add_data(struct form *form, uint32_t offset, uint32_t length)
{
	const struct mlx5_wqe_data_seg data = data_segment(&device, offset, length);

	add(form, &data, sizeof(data));
}

static void add_inline(struct form *form, uint32_t offset, uint32_t length)
{
	uint8_t segment[UNITS * 16] = {0};
	uint32_t header = htobe32(0x80000000 | length);

	memcpy(segment, &header, 4);
	memcpy(segment + 4, device.memory + offset, length);
	add(form, segment, 4 + length);
}

static void add_remote(struct form *form, uint32_t offset)
{
	const struct mlx5_wqe_raddr_seg remote = {.raddr = htobe64((uintptr_t)device.memory + offset),
						  .rkey = htobe32(mkey_number(device.region))};

	add(form, &remote, sizeof(remote));
}

/* Announces @blocks of the WQE; its `ds` is @units. */
static void put_as(struct form *form, uint32_t units, uint32_t blocks)
{
	form->bytes[7] = (uint8_t)units;
	put_wqe(&client, form->bytes, form->units, blocks);
}

static void put(struct form *form)
{
	put_as(form, form->units, (form->units + 3) / 4);
}

static struct form copy_form(uint32_t from, uint32_t to, uint32_t length, uint8_t fm_ce_se)
{
	struct form wqe = form(MMO_DMA, fm_ce_se);

	add_data(&wqe, 0, 0);
	add_data(&wqe, from, length);
	add_data(&wqe, to, length);
	return wqe;
}

/* ---- completion and fences ---------------------------------------------------------------------------------------- */

enum { ON_ERROR = 0 << 2, ON_FIRST_ERROR = 1 << 2, ALWAYS = 2 << 2, AND_EVENT = 3 << 2 };

/* mlx5-formats 1.3: two modes generate a CQE on success. */
TEST(modes_of_success)
{
	for (int i = 0; i < 40; i++) {
		struct form nop = form(MLX5_OPCODE_NOP, (uint8_t)(i % 4 << 2));

		put(&nop);
		ring(&client);
		if (i % 4 >= 2)
			expect_cqe(&cq, (uint16_t)i, 0);
		assert_null(raw_cq_poll(&cq));
	}
}

/* mlx5-formats 6, no. 46: an error always has a CQE; a flushed request in mode 1 has none. */
TEST(modes_of_failure)
{
	for (uint8_t mode = 0; mode < 4; mode++) {
		struct form bad = form(0x77, (uint8_t)(mode << 2));

		connect_ends();
		put(&bad);
		for (uint8_t other = 0; other < 4; other++) {
			struct form nop = form(MLX5_OPCODE_NOP, (uint8_t)(other << 2));

			put(&nop);
		}
		ring(&client);
		expect_cqe(&cq, 0, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
		expect_cqe(&cq, 1, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
		expect_cqe(&cq, 3, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
		expect_cqe(&cq, 4, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
		assert_null(raw_cq_poll(&cq));
	}
}

/* The fences that wait for READs: a copy after a READ without an answer. */
TEST(fences)
{
	static const bool waits[8] = {false, false, true, true, true, true, true, true};
	const struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};

	for (uint32_t mode = 0; mode < 8; mode++) {
		struct form copy;
		bool moved;

		connect_ends();
		raw_qp_connect(&device, &client, 0xfffff0, &defaults);
		put_rdma(&device, &client, MLX5_OPCODE_RDMA_READ, 0, 8192, 8);
		copy = copy_form(FROM, TO, 64, (uint8_t)(mode << 5 | ALWAYS));
		put(&copy);
		ring(&client);
		moved = !memcmp(device.memory + TO, before + FROM, 64);
		assert_int_equal(moved, !waits[mode]);
		assert_int_equal(hca_qp_modify(client.qp, &error, IBV_QP_STATE), 0);
	}
}

/* ---- data --------------------------------------------------------------------------------------------------------- */

/* Any sequence of inline and other segments, including empty ones, at any place of the ring. */
TEST(segments_in_any_order)
{
	uint32_t random = 1;

	for (int round = 0; round < 4000; round++) {
		struct form wqe = form(MLX5_OPCODE_RDMA_WRITE, ALWAYS);
		uint16_t index = client.posted;
		uint32_t at = 0;

		add_remote(&wqe, TO);
		for (;;) {
			uint32_t length, from;

			random = random * 1664525 + 1013904223;
			length = (random >> 16) % 80;
			from = FROM + (random >> 8) % 4096;
			if (wqe.units + 1 + (length + 19) / 16 > UNITS)
				break;
			if (random >> 31)
				add_inline(&wqe, from, length);
			else
				add_data(&wqe, from, length);
			memcpy(before + TO + at, before + from, length);
			at += length;
		}
		put(&wqe);
		ring(&client);
		expect_cqe(&cq, index, 0);
		assert_memory_equal(device.memory, before, sizeof(before));
	}
}

/* ---- addresses ---------------------------------------------------------------------------------------------------- */

static struct form datagram(uint32_t address_bytes, uint8_t fl_mlid, bool extended)
{
	struct form wqe = form(MLX5_OPCODE_SEND, ALWAYS);
	struct mlx5_wqe_av av = {.fl_mlid = fl_mlid};
	size_t gids;

	av.key.qkey.qkey = htobe32(0x11111111);
	av.dqp_dct = htobe32((extended ? 0x80000000 : 0) | server.qp->number);
	av.grh_gid_fl = htobe32(1 << 30);
	memcpy(av.rgid, &hca_gids(device.hca, &gids)[0].gid, 16);
	add(&wqe, &av, address_bytes);
	add_data(&wqe, FROM, 100);
	return wqe;
}

/* 48 bytes of address, or 16, which have no GID and can only mean the own port, if that is set. */
TEST(address_vectors)
{
	struct form wqe;

	for (int which = 0; which < 3; which++) {
		change_type(IBV_QPT_UD);
		post_receive(&device, &server, TO, 140);
		wqe = which == 1 ? datagram(16, 0x80, false) : datagram(48, which ? 0x80 : 0, true);
		/* Forced to the own port, the address does not matter: 203.0.113.9 (RFC 5737). */
		if (which == 2)
			memcpy(wqe.bytes + 48,
			       (uint8_t[16]){[10] = 0xff, [11] = 0xff, [12] = 203, [14] = 113, [15] = 9}, 16);
		put(&wqe);
		ring(&client);
		expect_cqe(&cq, 0, 0);
		expect_cqe(&cq, 0, 0);
		memcpy(before + TO + 40, before + FROM, 100);
		memcpy(before + TO, device.memory + TO, 40);
		assert_memory_equal(device.memory, before, sizeof(before));
	}
	change_type(IBV_QPT_UD);
	wqe = datagram(16, 0, false);
	put(&wqe);
	ring(&client);
	expect_cqe(&cq, 0, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
	assert_int_equal(hca_qp_state(client.qp), IBV_QPS_SQE);
}

/* ---- malformed WQEs ----------------------------------------------------------------------------------------------- */

/* Posts the WQE at the producer, with a NOP after it that must not be executed. */
static void expect_bad(uint8_t syndrome, enum explain_rule rule)
{
	bool reliable = client.qp->type == IBV_QPT_RC;
	const struct mlx5_err_cqe *cqe;

	put_nop(&client);
	ring(&client);
	cqe = raw_cq_poll(&cq);
	assert_non_null(cqe);
	assert_int_equal(cqe->op_own >> 4, MLX5_CQE_REQ_ERR);
	assert_int_equal(be16toh(cqe->wqe_counter), 0);
	assert_int_equal(cqe->syndrome, syndrome);
	assert_int_equal(cqe->vendor_err_synd, rule);
	cqe = raw_cq_poll(&cq);
	assert_non_null(cqe);
	assert_int_equal(cqe->syndrome, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	assert_int_equal(hca_qp_state(client.qp), reliable ? IBV_QPS_ERR : IBV_QPS_SQE);
	assert_memory_equal(device.memory, before, sizeof(before));
	connect_ends();
}

static void expect_bad_form(struct form *wqe, uint8_t syndrome, enum explain_rule rule)
{
	put(wqe);
	expect_bad(syndrome, rule);
}

enum {
	QP_OP = MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR,
	LENGTH = MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR,
	PROT = MLX5_CQE_SYNDROME_LOCAL_PROT_ERR,
	BIND = MLX5_CQE_SYNDROME_MW_BIND_ERR
};

/* Executed opcodes: those of mlx5-formats 1.4, and 0x13 (ATOMIC WRITE); and opcodes that the format only names. */
static const uint8_t executed[] = {0x00, 0x01, 0x08, 0x09, 0x0a, 0x0b, 0x10, 0x11,
				   0x12, 0x13, 0x14, 0x15, 0x20, 0x23, 0x25, 0x2f};
static const uint8_t known[] = {0x0e, 0x0f, 0x17, 0x18, 0x19, 0x1b, 0x1f, 0x21,
				0x22, 0x26, 0x27, 0x28, 0x29, 0x2c, 0x2d};

TEST(opcodes)
{
	for (uint32_t opcode = 0; opcode < 256; opcode++) {
		struct form wqe = form(opcode, ALWAYS);

		if (memchr(executed, (int)opcode, sizeof(executed)))
			continue;
		expect_bad_form(&wqe, QP_OP,
				memchr(known, (int)opcode, sizeof(known)) ? RULE_WQE_OPCODE_UNSUPPORTED
									  : RULE_WQE_OPCODE_UNKNOWN);
	}
}

TEST(opcodes_of_other_transports)
{
	static const uint8_t not_uc[] = {0x10, 0x11, 0x12, 0x14, 0x15, 0x2f};
	static const uint8_t not_ud[] = {0x01, 0x08, 0x09, 0x10, 0x11, 0x12, 0x14, 0x15, 0x23, 0x25, 0x2f};

	change_type(IBV_QPT_UC);
	for (size_t i = 0; i < sizeof(not_uc); i++) {
		struct form wqe = form(not_uc[i], ALWAYS);

		expect_bad_form(&wqe, QP_OP, RULE_WQE_OPCODE_TRANSPORT);
	}
	change_type(IBV_QPT_UD);
	for (size_t i = 0; i < sizeof(not_ud); i++) {
		struct form wqe = form(not_ud[i], ALWAYS);

		expect_bad_form(&wqe, QP_OP, RULE_WQE_OPCODE_TRANSPORT);
	}
}

/*
 * mlx5-formats 4.5: SET_PSVs follow a UMR that sets a signature, so a transport has both or neither. mlx5dv_wr_post(3):
 * a DCI has the same builders as an RC QP.
 */
TEST_WITH(opcodes_that_belong_together, NULL, NULL)
{
	assert_int_equal(wqe_opcodes[MLX5_OPCODE_SET_PSV].transports, wqe_opcodes[MLX5_OPCODE_UMR].transports);
	for (uint32_t opcode = 0; opcode < 256; opcode++)
		assert_int_equal(!(wqe_opcodes[opcode].transports & WQE_RC),
				 !(wqe_opcodes[opcode].transports & WQE_DC));
}

TEST(control_segments)
{
	struct form wqe;

	/* Longer than announced: it takes all announced blocks. */
	for (uint32_t units = 9; units < 64; units++) {
		wqe = form(MLX5_OPCODE_SEND, ALWAYS);
		put_as(&wqe, units, 2);
		ring(&client);
		expect_cqe(&cq, 0, QP_OP);
		assert_null(raw_cq_poll(&cq));
		assert_int_equal(hca_qp_state(client.qp), IBV_QPS_ERR);
		connect_ends();
	}
	wqe = form(MLX5_OPCODE_NOP, ALWAYS);
	put_as(&wqe, 0, 1);
	expect_bad(QP_OP, RULE_WQE_DS);
	wqe = form(MLX5_OPCODE_NOP, ALWAYS);
	wqe.bytes[6] ^= 1;
	expect_bad_form(&wqe, QP_OP, RULE_WQE_QPN);
	/* More blocks than there are. */
	wqe = form(MLX5_OPCODE_NOP, ALWAYS);
	put_as(&wqe, 1, BLOCKS + 1);
	ring(&client);
	expect_cqe(&cq, 0, QP_OP);
	connect_ends();
}

/* Fixed segments truncated after each unit except the last. */
TEST(cut_off)
{
	static const struct {
		uint32_t code, units;
	} fixed[] = {
		{MLX5_OPCODE_RDMA_WRITE, 2},
		{MLX5_OPCODE_RDMA_WRITE_IMM, 2},
		{MLX5_OPCODE_RDMA_READ, 2},
		{MLX5_OPCODE_ATOMIC_CS, 3},
		{MLX5_OPCODE_ATOMIC_FA, 3},
		{MLX5_OPCODE_ATOMIC_MASKED_CS, 4},
		{MLX5_OPCODE_ATOMIC_MASKED_FA, 4},
		{8 << 24 | MLX5_OPCODE_ATOMIC_MASKED_CS, 3},
		{9 << 24 | MLX5_OPCODE_ATOMIC_MASKED_FA, 3},
		{MMO_DMA, 4},
	};

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		for (uint32_t units = 1; units < fixed[i].units; units++) {
			struct form wqe = form(fixed[i].code, ALWAYS);

			wqe.units = units;
			expect_bad_form(&wqe, QP_OP, RULE_WQE_SHORT);
		}
	}
	for (uint32_t units = 1; units < 8; units++) {
		struct form wqe = form(MLX5_OPCODE_UMR, ALWAYS);

		wqe.units = units;
		expect_bad_form(&wqe, BIND, RULE_UMR_SHORT);
	}
	change_type(IBV_QPT_UD);
	for (uint32_t units = 1; units < 4; units++) {
		struct form wqe = datagram(48, 0, true);

		wqe.units = units;
		expect_bad_form(&wqe, QP_OP, RULE_WQE_SHORT);
	}
}

/* An inline segment after @units others that claims more bytes than the WQE has. */
TEST(inline_beyond_the_end)
{
	for (uint32_t others = 0; others < 4; others++) {
		static const uint32_t lengths[] = {13, 28, 29, 1000, 0x3ff, 0x400, 0x7fffffff};

		for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			struct form wqe = form(MLX5_OPCODE_SEND, ALWAYS);
			__be32 header[4] = {htobe32(0x80000000 | lengths[i])};

			for (uint32_t k = 0; k < others; k++)
				add_data(&wqe, FROM, 16);
			add(&wqe, header, sizeof(header));
			expect_bad_form(&wqe, QP_OP, RULE_WQE_INLINE);
		}
	}
}

TEST(inline_where_a_response_goes)
{
	const uint64_t operands[4] = {0};
	struct form wqe;

	for (int others = 0; others < 3; others++) {
		wqe = form(MLX5_OPCODE_RDMA_READ, ALWAYS);
		add_remote(&wqe, TO);
		for (int k = 0; k < others; k++)
			add_data(&wqe, FROM, 16);
		add_inline(&wqe, FROM, 8);
		expect_bad_form(&wqe, QP_OP, RULE_WQE_INLINE_SINK);
	}
	wqe = form(MLX5_OPCODE_ATOMIC_FA, ALWAYS);
	add_remote(&wqe, TO);
	add(&wqe, operands, 16);
	add_inline(&wqe, FROM, 8);
	expect_bad_form(&wqe, QP_OP, RULE_WQE_INLINE_SINK);
	wqe = form(MLX5_OPCODE_ATOMIC_MASKED_CS, ALWAYS);
	add_remote(&wqe, TO);
	add(&wqe, operands, 32);
	add_inline(&wqe, FROM, 8);
	expect_bad_form(&wqe, QP_OP, RULE_WQE_INLINE_SINK);
}

TEST(lengths)
{
	struct form wqe;

	/* A READ longer than a message can be; none of it is read. */
	wqe = form(MLX5_OPCODE_RDMA_READ, ALWAYS);
	add_remote(&wqe, TO);
	add_data(&wqe, FROM, 0x7fffffff);
	expect_bad_form(&wqe, LENGTH, RULE_MESSAGE_TOO_LONG);
	wqe = form(MLX5_OPCODE_RDMA_READ, ALWAYS);
	add_remote(&wqe, TO);
	for (int i = 0; i < 4; i++)
		add_data(&wqe, FROM, 0x7fffffff);
	expect_bad_form(&wqe, LENGTH, RULE_MESSAGE_TOO_LONG);
	wqe = form(MLX5_OPCODE_SEND, ALWAYS);
	add_data(&wqe, sizeof(device.memory) - 8, 9);
	expect_bad_form(&wqe, PROT, RULE_KEY_RANGE);
	change_type(IBV_QPT_UD);
	wqe = datagram(48, 0, true);
	add_data(&wqe, FROM, 4000);
	expect_bad_form(&wqe, LENGTH, RULE_MESSAGE_TOO_LONG);
}

int main(void)
{
	return run_cases(.setup = begin, .teardown = finish, .group_setup = device_group_open,
			 .group_teardown = device_group_close);
}
