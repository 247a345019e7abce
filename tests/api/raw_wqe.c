/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_wr_raw_wqe of mlx5dv_wr_post(3): hand-written WQEs of every documented kind, posted among others; their
 * completions, and the errors of malformed ones.
 */
#include <endian.h>
#include <poll.h>

#include "support/program.h"

enum { BYTES = 200, UNITS = 32, IMMEDIATE = 0x11223344 };

/* A WQE under construction: its control segment, then the segments that add_…() appends. */
struct raw {
	union {
		struct mlx5_wqe_ctrl_seg ctrl;
		uint8_t bytes[UNITS * 16];
	};
	uint32_t units;
};

static struct layout layout;

static struct raw raw_begin(const struct endpoint *endpoint, uint8_t opcode, uint8_t opmod, uint8_t fm_ce_se,
			    uint32_t imm)
{
	struct raw raw = {.units = 1};

	/* The library sets the index. */
	raw.ctrl = (struct mlx5_wqe_ctrl_seg){
		.opmod_idx_opcode = htobe32((uint32_t)opmod << 24 | 0xabcd00 | opcode),
		.qpn_ds = htobe32(endpoint->qp->qp_num << 8),
		.fm_ce_se = fm_ce_se,
		.imm = htobe32(imm),
	};
	return raw;
}

static void add(struct raw *raw, const void *segment, uint32_t bytes)
{
	memcpy(raw->bytes + raw->units * 16, segment, bytes);
	raw->units += (bytes + 15) / 16;
}

static void add_remote(struct raw *raw, struct view target)
{
	struct mlx5_wqe_raddr_seg segment = {.raddr = htobe64(target.address), .rkey = htobe32(target.key)};

	add(raw, &segment, sizeof(segment));
}

static void add_data(struct raw *raw, struct view view)
{
	struct mlx5_wqe_data_seg segment;

	mlx5dv_set_data_seg(&segment, (uint32_t)view.length, view.key, view.address);
	add(raw, &segment, sizeof(segment));
}

static void add_inline(struct raw *raw, const void *data, uint32_t bytes)
{
	uint8_t segment[UNITS * 16] = {0};
	uint32_t header = htobe32(MLX5_INLINE_SEG | bytes);

	memcpy(segment, &header, 4);
	memcpy(segment + 4, data, bytes);
	add(raw, segment, 4 + bytes);
}

static void post_raw(struct endpoint *endpoint, struct raw *raw, uint64_t wr_id)
{
	raw->ctrl.qpn_ds |= htobe32(raw->units);
	endpoint->ex->wr_id = wr_id;
	mlx5dv_wr_raw_wqe(endpoint->dv, raw->bytes);
}

/* Posts the WQE in a batch of its own. */
static void run(struct endpoint *endpoint, struct raw *raw, uint64_t wr_id)
{
	ibv_wr_start(endpoint->ex);
	endpoint->ex->wr_flags = 0;
	post_raw(endpoint, raw, wr_id);
	expect_error(ibv_wr_complete(endpoint->ex), 0);
}

static void expect_raw(struct endpoint *endpoint, struct raw *raw, uint64_t wr_id)
{
	run(endpoint, raw, wr_id);
	expect_completion(endpoint, wr_id, MLX5DV_WC_RAW_WQE);
}

static void open_pair(enum ibv_qp_type type)
{
	struct pair_options options = pair_defaults(type);

	options.dv_send_ops |= MLX5DV_QP_EX_WITH_RAW_WQE;
	pair_replace(&pair, &options);
	side_stir(&client);
	side_stir(&server);
}

static struct view here(size_t start, size_t length)
{
	return view_memory(&client, start, length);
}

static struct view there(size_t start, size_t length)
{
	return view_with_key(&server, server.mr->rkey, start, length);
}

static void compare(void)
{
	side_compare(&client);
	side_compare(&server);
}

static uint8_t signal(void)
{
	return MLX5_WQE_CTRL_CQ_UPDATE;
}

/* ---- each kind ---------------------------------------------------------------------------------------------------- */

/*
 * Sends into a receive of the server; @opcode SEND, SEND_IMM or SEND_INVAL. Gathers from three places, two of them in
 * the WQE.
 */
static void send_once(uint8_t opcode, uint32_t imm)
{
	struct ibv_sge sge = side_sge(&server, 5000, BYTES);
	struct view source = here(0, BYTES), sink = view_memory(&server, 5000, BYTES);
	struct raw raw = raw_begin(&pair.client, opcode, 0, signal() | MLX5_WQE_CTRL_SOLICITED, imm);
	struct ibv_wc wc;

	add_inline(&raw, client.memory, 21);
	add_data(&raw, here(21, 100));
	add_inline(&raw, client.memory + 121, BYTES - 121);
	post_receive(&pair.server, 3, &sge, 1);
	expect_raw(&pair.client, &raw, 4);
	wc = expect_completion(&pair.server, 3, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, BYTES);
	assert_int_equal(wc.wc_flags, opcode == MLX5_OPCODE_SEND_IMM     ? IBV_WC_WITH_IMM
				      : opcode == MLX5_OPCODE_SEND_INVAL ? IBV_WC_WITH_INV
									 : 0);
	if (opcode == MLX5_OPCODE_SEND_IMM)
		assert_int_equal(be32toh(wc.imm_data), imm);
	if (opcode == MLX5_OPCODE_SEND_INVAL)
		assert_int_equal(wc.invalidated_rkey, imm);
	model_copy(&source, &sink);
	compare();
}

TEST(sends)
{
	struct ibv_mw *mw;
	struct ibv_send_wr bind = {.wr_id = 8, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};

	open_pair(IBV_QPT_RC);
	send_once(MLX5_OPCODE_SEND, 0);
	send_once(MLX5_OPCODE_SEND_IMM, IMMEDIATE);
	mw = side_alloc_mw(&server, IBV_MW_TYPE_2);
	bind.bind_mw.mw = mw;
	bind.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	bind.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = server.mr,
							   .addr = side_address(&server, 0),
							   .length = 64,
							   .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	post_send(&pair.server, &bind);
	expect_completion(&pair.server, 8, IBV_WC_BIND_MW);
	send_once(MLX5_OPCODE_SEND_INVAL, bind.bind_mw.rkey);
}

TEST(remote_memory)
{
	struct view source = here(300, BYTES), target = there(700, BYTES);
	struct raw raw;
	struct ibv_wc wc;

	open_pair(IBV_QPT_RC);
	raw = raw_begin(&pair.client, MLX5_OPCODE_RDMA_WRITE, 0, signal(), 0);
	add_remote(&raw, target);
	add_data(&raw, here(300, 50));
	add_data(&raw, here(350, 0));
	add_data(&raw, here(350, BYTES - 50));
	expect_raw(&pair.client, &raw, 1);
	model_copy(&source, &target);
	compare();

	source = here(900, BYTES);
	raw = raw_begin(&pair.client, MLX5_OPCODE_RDMA_WRITE_IMM, 0, signal(), IMMEDIATE);
	add_remote(&raw, target);
	add_data(&raw, source);
	post_receive(&pair.server, 2, NULL, 0);
	expect_raw(&pair.client, &raw, 2);
	wc = expect_completion(&pair.server, 2, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(be32toh(wc.imm_data), IMMEDIATE);
	model_copy(&source, &target);
	compare();

	source = there(4000, BYTES);
	target = here(8000, BYTES);
	raw = raw_begin(&pair.client, MLX5_OPCODE_RDMA_READ, 0, signal(), 0);
	add_remote(&raw, source);
	add_data(&raw, here(8000, 3));
	add_data(&raw, here(8003, BYTES - 3));
	expect_raw(&pair.client, &raw, 3);
	model_copy(&source, &target);
	compare();
}

/* @operands: as in the WQE, big-endian. Returns the previous value. */
static uint64_t atomic(uint8_t opcode, uint8_t opmod, const uint64_t *operands, uint32_t units, uint32_t bytes)
{
	struct raw raw = raw_begin(&pair.client, opcode, opmod, signal(), 0);
	uint64_t before = 0;

	memset(client.memory + 64, 0xee, 8);
	add_remote(&raw, there(4096, bytes));
	add(&raw, operands, units * 16);
	add_data(&raw, here(64, bytes));
	expect_raw(&pair.client, &raw, opcode);
	memcpy(&before, client.memory + 64, bytes);
	memcpy(client.expected + 64, client.memory + 64, 8);
	return before;
}

static uint64_t target_value(uint32_t bytes)
{
	uint64_t value = 0;

	memcpy(&value, server.memory + 4096, bytes);
	memcpy(server.expected + 4096, server.memory + 4096, bytes);
	return value;
}

static uint64_t be64_pair(uint32_t high, uint32_t low)
{
	return htobe64((uint64_t)high << 32 | low);
}

/* mlx5-formats 1.5, with values computed by hand. The target's memory is in the host's byte order. */
TEST(atomics)
{
	const uint64_t start = UINT64_C(0x00000000fffffff0);
	uint64_t operands[4];

	open_pair(IBV_QPT_RC);
	memcpy(server.memory + 4096, &start, 8);

	operands[0] = htobe64(0x20); /* add */
	operands[1] = htobe64(0xdead);
	assert_int_equal(atomic(MLX5_OPCODE_ATOMIC_FA, 0, operands, 1, 8), 0xfffffff0);
	assert_int_equal(target_value(8), 0x100000010);

	operands[0] = htobe64(0x77); /* swap */
	operands[1] = htobe64(0x100000010);
	assert_int_equal(atomic(MLX5_OPCODE_ATOMIC_CS, 0, operands, 1, 8), 0x100000010);
	assert_int_equal(target_value(8), 0x77);
	assert_int_equal(atomic(MLX5_OPCODE_ATOMIC_CS, 0, operands, 1, 8), 0x77);
	assert_int_equal(target_value(8), 0x77);

	/* Compares the low four bits, replaces the four above. */
	operands[0] = htobe64(0xa0);
	operands[1] = htobe64(0x107);
	operands[2] = htobe64(0xf0);
	operands[3] = htobe64(0x0f);
	assert_int_equal(atomic(MLX5_OPCODE_ATOMIC_MASKED_CS, 0, operands, 2, 8), 0x77);
	assert_int_equal(target_value(8), 0xa7);
	operands[1] = htobe64(0x106);
	assert_int_equal(atomic(MLX5_OPCODE_ATOMIC_MASKED_CS, 9, operands, 2, 8), 0xa7);
	assert_int_equal(target_value(8), 0xa7);

	/* Two fields of four bits: 7 + 9 does not carry into a + 1. */
	operands[0] = htobe64(0x19);
	operands[1] = htobe64(0x08);
	assert_int_equal(atomic(MLX5_OPCODE_ATOMIC_MASKED_FA, 9, operands, 1, 8), 0xa7);
	assert_int_equal(target_value(8), 0xb0);
	operands[0] = htobe64(0x19);
	operands[1] = htobe64(0x1234);
	operands[2] = htobe64(0);
	operands[3] = htobe64(0x5678);
	assert_int_equal(atomic(MLX5_OPCODE_ATOMIC_MASKED_FA, 0, operands, 2, 8), 0xb0);
	assert_int_equal(target_value(8), 0xc9);

	/* Four bytes: swap, compare, swap mask, compare mask; add, boundary. */
	operands[0] = be64_pair(0x12345678, 0xc0);
	operands[1] = be64_pair(0xffffffff, 0xf0);
	assert_int_equal(atomic(MLX5_OPCODE_ATOMIC_MASKED_CS, 8, operands, 1, 4), 0xc9);
	assert_int_equal(target_value(8), 0x12345678);
	operands[0] = be64_pair(0xf0000000, 0);
	operands[1] = 0;
	assert_int_equal(atomic(MLX5_OPCODE_ATOMIC_MASKED_FA, 8, operands, 1, 4), 0x12345678);
	assert_int_equal(target_value(8), 0x02345678);
	compare();
}

TEST(local_operations)
{
	struct mlx5dv_mkey *mkey;
	struct ibv_sge sge[2];
	struct view key, target = there(9000, 700), source = here(50, 300), copy = here(20000, 300);
	struct {
		struct mlx5_wqe_umr_ctrl_seg umr;
		struct mlx5_wqe_mkey_context_seg context;
		struct mlx5_wqe_umr_klm_seg entry[4];
	} umr = {0};
	struct mlx5_wqe_data_seg none = {0};
	struct raw raw;

	open_pair(IBV_QPT_RC);
	raw = raw_begin(&pair.client, MLX5_OPCODE_NOP, 0, signal(), 0);
	expect_raw(&pair.client, &raw, 1);
	/* The bytes after the control segment of a NOP are ignored. */
	raw = raw_begin(&pair.client, MLX5_OPCODE_NOP, 0x77, signal(), 0x1234);
	add(&raw, client.memory, 20 * 16);
	expect_raw(&pair.client, &raw, 2);

	mkey = side_create_mkey(&client, 4, NULL);
	sge[0] = side_sge(&client, 1000, 300);
	sge[1] = side_sge(&client, 3000, 400);
	layout_of_list(&layout, &client, 2, sge);
	umr.umr.flags = 0x80;
	umr.umr.klm_octowords = htobe16(4);
	umr.umr.mkey_mask = htobe64(1 | 1 << 13 | 1 << 18 | 1 << 29);
	umr.context.access_flags = 0x0c;
	umr.context.qpn_mkey = htobe32(0xffffff00);
	umr.context.len = htobe64(700);
	for (int i = 0; i < 2; i++)
		umr.entry[i] = (struct mlx5_wqe_umr_klm_seg){.byte_count = htobe32(sge[i].length),
							     .mkey = htobe32(sge[i].lkey),
							     .address = htobe64(sge[i].addr)};
	raw = raw_begin(&pair.client, MLX5_OPCODE_UMR, 0, signal(), mkey->lkey);
	add(&raw, &umr, sizeof(umr));
	expect_raw(&pair.client, &raw, 3);
	key = view_key(&client, mkey, &layout);
	raw = raw_begin(&pair.client, MLX5_OPCODE_RDMA_WRITE, 0, signal(), 0);
	add_remote(&raw, target);
	add_data(&raw, key);
	expect_raw(&pair.client, &raw, 4);
	model_copy(&key, &target);
	compare();

	raw = raw_begin(&pair.client, MLX5_OPCODE_MMO, 1, signal(), 0);
	add(&raw, &none, sizeof(none));
	add_data(&raw, source);
	add_data(&raw, copy);
	expect_raw(&pair.client, &raw, 5);
	model_copy(&source, &copy);
	compare();
}

/* QP types with a send queue. */
TEST(other_types)
{
	struct view source = here(100, BYTES), target = there(200, BYTES), sink = view_memory(&server, 1000, BYTES);
	struct ibv_sge sge;
	struct mlx5dv_ah out = {0};
	struct mlx5dv_obj object;
	struct mlx5_wqe_av address;
	struct raw raw;

	open_pair(IBV_QPT_UC);
	raw = raw_begin(&pair.client, MLX5_OPCODE_RDMA_WRITE, 0, signal(), 0);
	add_remote(&raw, target);
	add_data(&raw, source);
	expect_raw(&pair.client, &raw, 1);
	model_copy(&source, &target);
	compare();

	open_pair(IBV_QPT_UD);
	object = (struct mlx5dv_obj){.ah = {.in = pair.client.ah, .out = &out}};
	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_AH), 0);
	address = *out.av;
	address.key.qkey.qkey = htobe32(PAIR_QKEY);
	address.dqp_dct |= htobe32(MLX5_EXTENDED_UD_AV | pair.server.qp->qp_num);
	raw = raw_begin(&pair.client, MLX5_OPCODE_SEND, 0, signal(), 0);
	add(&raw, &address, sizeof(address));
	add_data(&raw, source);
	sge = side_sge(&server, 1000 - 40, BYTES + 40);
	post_receive(&pair.server, 6, &sge, 1);
	expect_raw(&pair.client, &raw, 7);
	expect_completion(&pair.server, 6, IBV_WC_RECV);
	model_copy(&source, &sink);
	memcpy(server.expected + 960, server.memory + 960, 40);
	compare();
}

/* ---- among others ------------------------------------------------------------------------------------------------- */

static struct raw raw_write(struct view source, struct view target, uint8_t fm_ce_se)
{
	struct raw raw = raw_begin(&pair.client, MLX5_OPCODE_RDMA_WRITE, 0, fm_ce_se, 0);

	add_remote(&raw, target);
	add_data(&raw, source);
	return raw;
}

/* The WQEs' own flags apply, not those of the batch; each completion belongs to its own request. */
TEST(mixed_chains)
{
	open_pair(IBV_QPT_RC);
	for (int lap = 0; lap < 40; lap++) {
		ibv_wr_start(pair.client.ex);
		for (int i = 0; i < 8; i++) {
			struct view source = here(lap * 10 + i * 500, 400), target = there(i * 450 + lap, 400);

			if (i % 2) {
				batch_write(&pair.client, 100 + i, IBV_SEND_SIGNALED, source, target);
			} else {
				struct raw raw = raw_write(source, target, i % 4 ? signal() : 0);

				pair.client.ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
				post_raw(&pair.client, &raw, 100 + i);
			}
			model_copy(&source, &target);
		}
		expect_error(ibv_wr_complete(pair.client.ex), 0);
		for (int i = 1; i < 8; i++)
			if (i % 4)
				expect_completion(&pair.client, 100 + i,
						  i % 2 ? IBV_WC_RDMA_WRITE : (int)MLX5DV_WC_RAW_WQE);
		expect_idle(&pair.client);
		compare();
	}
}

/* An aborted WQE leaves no trace. */
TEST(aborted)
{
	struct raw raw;

	open_pair(IBV_QPT_RC);
	raw = raw_write(here(0, 100), there(0, 100), signal());
	ibv_wr_start(pair.client.ex);
	post_raw(&pair.client, &raw, 1);
	ibv_wr_abort(pair.client.ex);
	expect_nothing_posted(&pair.client);
	compare();
}

/* Opcodes as returned by extended polling. */
TEST(extended_polling)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	struct ibv_poll_cq_attr attr = {0};
	struct raw raw;

	options.dv_send_ops |= MLX5DV_QP_EX_WITH_RAW_WQE;
	options.extended_cq = true;
	pair_replace(&pair, &options);
	raw = raw_write(here(0, 100), there(0, 100), signal());
	run(&pair.client, &raw, 11);
	expect_error(ibv_start_poll(pair.client.cq_ex, &attr), 0);
	assert_int_equal(pair.client.cq_ex->wr_id, 11);
	assert_int_equal(pair.client.cq_ex->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(pair.client.cq_ex), IBV_WC_DRIVER2);
	ibv_end_poll(pair.client.cq_ex);
	/* Some programs read fields that no longer apply. */
	assert_int_equal(ibv_wc_read_opcode(pair.client.cq_ex), IBV_WC_DRIVER2);
	expect_error(ibv_start_poll(pair.client.cq_ex, &attr), ENOENT);
	memcpy(server.expected, client.expected, 100);
	compare();
}

/* ---- room --------------------------------------------------------------------------------------------------------- */

/* Returns the blocks of the ring, from mlx5dv_init_obj(3). */
static uint32_t ring_blocks(void)
{
	struct mlx5dv_qp out = {0};
	struct mlx5dv_obj object = {.qp = {.in = pair.client.qp, .out = &out}};

	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_QP), 0);
	return out.sq.wqe_cnt;
}

/* In a ring of one block each WQE is the first. */
TEST(smallest_queue)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	options.dv_send_ops = MLX5DV_QP_EX_WITH_RAW_WQE;
	options.send_ops = IBV_QP_EX_WITH_SEND;
	options.max_send_wr = 1;
	options.max_send_sge = 2;
	pair_replace(&pair, &options);
	side_stir(&client);
	side_stir(&server);
	assert_int_equal(ring_blocks(), 1);
	for (int i = 0; i < 10; i++) {
		struct ibv_sge sge = side_sge(&server, 0, BYTES);
		struct view source = here(i, BYTES), sink = view_memory(&server, 0, BYTES);
		struct raw raw = raw_begin(&pair.client, MLX5_OPCODE_SEND, 0, signal(), 0), again;

		add_data(&raw, here(i, 77));
		add_data(&raw, here(i + 77, BYTES - 77));
		post_receive(&pair.server, 1, &sge, 1);
		if (i % 2) {
			batch_start(&pair.client, 5, IBV_SEND_SIGNALED);
			batch_send(&pair.client, 5, IBV_SEND_SIGNALED, source);
			expect_error(ibv_wr_complete(pair.client.ex), 0);
		} else {
			again = raw;
			run(&pair.client, &raw, 5);
			/* Not polled yet: the queue is full. */
			ibv_wr_start(pair.client.ex);
			post_raw(&pair.client, &again, 6);
			expect_error(ibv_wr_complete(pair.client.ex), ENOMEM);
		}
		expect_completion(&pair.client, 5, i % 2 ? IBV_WC_SEND : (int)MLX5DV_WC_RAW_WQE);
		expect_completion(&pair.server, 1, IBV_WC_RECV);
		model_copy(&source, &sink);
		compare();
	}
}

/*
 * WQEs of several blocks in a queue created for one block each: as many as the ring has blocks for, none overwritten.
 */
TEST(larger_than_the_share)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	uint32_t blocks, fit;

	options.dv_send_ops = MLX5DV_QP_EX_WITH_RAW_WQE;
	options.send_ops = IBV_QP_EX_WITH_RDMA_WRITE;
	options.max_send_wr = 16;
	options.max_send_sge = 1;
	pair_replace(&pair, &options);
	side_stir(&client);
	side_stir(&server);
	blocks = ring_blocks();
	assert_int_equal(blocks, 16);
	fit = blocks / 3;
	for (int lap = 0; lap < 20; lap++) {
		note("lap %d", lap);
		for (uint32_t i = 0; i < fit; i++) {
			struct view target = there(i * 200, 150);
			struct raw raw =
				raw_begin(&pair.client, MLX5_OPCODE_RDMA_WRITE, 0, i + 1 == fit ? signal() : 0, 0);

			/* 2 + 10 units: the first 70 bytes come from the WQE, the rest in pieces of 16. */
			add_remote(&raw, target);
			add_inline(&raw, client.memory + lap, 70);
			for (int k = 0; k < 5; k++)
				add_data(&raw, here(lap + 70 + k * 16, 16));
			assert_int_equal(raw.units, 12);
			run(&pair.client, &raw, i);
			memcpy(server.expected + i * 200, client.expected + lap, 150);
		}
		/* One block is left: enough for a small WQE, not for another large one. */
		{
			struct raw raw = raw_begin(&pair.client, MLX5_OPCODE_NOP, 0, signal(), 0);

			raw.units = 5;
			ibv_wr_start(pair.client.ex);
			post_raw(&pair.client, &raw, 99);
			expect_error(ibv_wr_complete(pair.client.ex), ENOMEM);
			raw = raw_begin(&pair.client, MLX5_OPCODE_NOP, 0, signal(), 0);
			run(&pair.client, &raw, 100);
		}
		expect_completion(&pair.client, fit - 1, MLX5DV_WC_RAW_WQE);
		expect_completion(&pair.client, 100, MLX5DV_WC_RAW_WQE);
		expect_idle(&pair.client);
		compare();
	}
}

/* ---- invalid WQEs --------------------------------------------------------------------------------------------------- */

static void expect_bad(struct raw *raw, enum ibv_wc_status status)
{
	struct raw next = raw_write(here(0, 64), there(0, 64), signal());

	ibv_wr_start(pair.client.ex);
	post_raw(&pair.client, raw, 1);
	post_raw(&pair.client, &next, 2);
	expect_error(ibv_wr_complete(pair.client.ex), 0);
	assert_int_not_equal(expect_status(&pair.client, 1, status).vendor_err, 0);
	expect_status(&pair.client, 2, IBV_WC_WR_FLUSH_ERR);
	expect_state(&pair.client, IBV_QPS_ERR);
	compare();
	pair_renew(&pair);
}

TEST(malformed)
{
	struct raw raw;

	open_pair(IBV_QPT_RC);
	for (uint32_t opcode = 0; opcode < 256; opcode++) {
		switch (opcode) {
		case 0x00:
		case 0x01:
		case 0x08:
		case 0x09:
		case 0x0a:
		case 0x0b:
		case 0x10:
		case 0x11:
		case 0x12:
		case 0x14:
		case 0x15:
		case 0x20:
		case 0x23:
		case 0x25:
		case 0x2f:
			continue;
		}
		note("opcode %#x", opcode);
		raw = raw_begin(&pair.client, (uint8_t)opcode, 0, signal(), 0);
		expect_bad(&raw, IBV_WC_LOC_QP_OP_ERR);
	}
	note("the number of another queue pair");
	raw = raw_write(here(0, 64), there(0, 64), signal());
	raw.ctrl.qpn_ds = htobe32(pair.server.qp->qp_num << 8);
	expect_bad(&raw, IBV_WC_LOC_QP_OP_ERR);
	note("no length");
	raw = raw_write(here(0, 64), there(0, 64), signal());
	raw.units = 0;
	expect_bad(&raw, IBV_WC_LOC_QP_OP_ERR);
	note("a WRITE without an address");
	raw = raw_begin(&pair.client, MLX5_OPCODE_RDMA_WRITE, 0, signal(), 0);
	expect_bad(&raw, IBV_WC_LOC_QP_OP_ERR);
	note("inline data beyond the end");
	raw = raw_begin(&pair.client, MLX5_OPCODE_SEND, 0, signal(), 0);
	add_inline(&raw, client.memory, 60);
	raw.units--;
	expect_bad(&raw, IBV_WC_LOC_QP_OP_ERR);
	note("a READ into the WQE");
	raw = raw_begin(&pair.client, MLX5_OPCODE_RDMA_READ, 0, signal(), 0);
	add_remote(&raw, there(0, 12));
	add_inline(&raw, client.memory, 12);
	expect_bad(&raw, IBV_WC_LOC_QP_OP_ERR);
	note("a key that there is not");
	raw = raw_write(view_with_key(&client, 0x12345600, 0, 64), there(0, 64), signal());
	expect_bad(&raw, IBV_WC_LOC_PROT_ERR);
	note("a remote key that there is not");
	raw = raw_write(here(0, 64), view_with_key(&server, 0x12345600, 0, 64), signal());
	expect_bad(&raw, IBV_WC_REM_ACCESS_ERR);
	note("a UMR without a mkey");
	raw = raw_begin(&pair.client, MLX5_OPCODE_UMR, 0, signal(), 0x12345600);
	add(&raw, (const uint8_t[112]){0}, 112);
	expect_bad(&raw, IBV_WC_MW_BIND_ERR);
	note("an unsignalled one that fails all the same");
	raw = raw_begin(&pair.client, 0x77, 0, 0, 0);
	expect_bad(&raw, IBV_WC_LOC_QP_OP_ERR);
}

static bool event_is_there(const struct endpoint *endpoint)
{
	struct pollfd pollfd = {.fd = endpoint->channel->fd, .events = POLLIN};

	return poll(&pollfd, 1, 0) == 1;
}

/*
 * Posts @count requests with the completion @mode in fm_ce_se; returns true if the CQ, armed for solicited completions,
 * raised an event.
 */
static bool tells(uint8_t mode, int count)
{
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(ibv_req_notify_cq(pair.client.cq, 1), 0);
	for (int i = 0; i < count; i++) {
		struct raw raw = raw_write(here(0, 64), there(0, 64), mode);

		expect_raw(&pair.client, &raw, (uint64_t)i);
	}
	if (!event_is_there(&pair.client))
		return false;
	assert_int_equal(ibv_get_cq_event(pair.client.channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	return true;
}

/* mlx5-formats 1.3: the modes 2, a CQE, and 3, a CQE and an EQE. */
TEST(events_of_requests)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	struct view source = here(0, 64), target = there(0, 64);

	options.dv_send_ops |= MLX5DV_QP_EX_WITH_RAW_WQE;
	options.channel = true;
	pair_replace(&pair, &options);
	for (int count = 1; count < 4; count++) {
		assert_false(tells(2 << 2, count));
		assert_true(tells(3 << 2, count));
	}
	model_copy(&source, &target);
	compare();
}

TEST(not_asked_for)
{
	struct raw raw;

	raw = raw_write(here(0, 64), there(0, 64), signal());
	ibv_wr_start(pair.client.ex);
	post_raw(&pair.client, &raw, 1);
	expect_batch_refused(&pair.client, EOPNOTSUPP);
}
