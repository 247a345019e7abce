/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomics and READs in a ring that the program drives, as UCX writes them (mlx5-formats 1.5): every form of operands,
 * fences after them, and results in the CQE itself (mlx5-formats 3.2), for programs that read CQEs and for programs
 * that poll. Values are computed by hand.
 */
#include <endian.h>

#include "support/program.h"
#include "support/rings.h"

enum {
	TARGET = 4096, /* in the server's memory */
	RESULT = 64,   /* in the client's */
	UNTOUCHED = 0xee,
	FULL = 0xffffffff,
};

#define ALL_ONES UINT64_MAX

struct form {
	const char *name;
	uint8_t opcode, opmod, size;
	uint64_t before;
	uint64_t operand[4]; /* in the order of the segment */
	uint8_t operands;
	uint64_t after;
};

static const struct form forms[] = {
	{"add", MLX5_OPCODE_ATOMIC_FA, 0, 8, 0x00000000fffffff0, {0x20}, 2, 0x100000010},
	{"add that wraps", MLX5_OPCODE_ATOMIC_FA, 0, 8, ALL_ONES, {2}, 2, 1},
	{"compare, equal", MLX5_OPCODE_ATOMIC_CS, 0, 8, 0x1122334455667788, {0x99, 0x1122334455667788}, 2, 0x99},
	{"compare, different", MLX5_OPCODE_ATOMIC_CS, 0, 8, 5, {0x99, 6}, 2, 5},
	{"masked compare", MLX5_OPCODE_ATOMIC_MASKED_CS, 0, 8, 0x77, {0xa0, 0x107, 0xf0, 0x0f}, 4, 0xa7},
	{"masked add", MLX5_OPCODE_ATOMIC_MASKED_FA, 0, 8, 0xb0, {0x19, 0, 0, 0}, 4, 0xc9},
	/* The WQEs of UCX for its operations on 8 and 4 bytes: and, or, xor, swap, compare and swap, add. */
	{"and",
	 MLX5_OPCODE_ATOMIC_MASKED_CS,
	 9,
	 8,
	 0xff00ff00ff00ff00,
	 {0x0ff00ff00ff00ff0, 0, ~0x0ff00ff00ff00ff0, 0},
	 4,
	 0x0f000f000f000f00},
	{"or",
	 MLX5_OPCODE_ATOMIC_MASKED_CS,
	 9,
	 8,
	 0xf0,
	 {0x8000000000000001, 0, 0x8000000000000001, 0},
	 4,
	 0x80000000000000f1},
	{"xor",
	 MLX5_OPCODE_ATOMIC_MASKED_FA,
	 9,
	 8,
	 0xff00000000000fff,
	 {0x0ff0000000000f01, ALL_ONES},
	 2,
	 0xf0f00000000000fe},
	{"swap", MLX5_OPCODE_ATOMIC_MASKED_CS, 9, 8, 0x0102030405060708, {0x99, 0, ALL_ONES, 0}, 4, 0x99},
	{"compare and swap", MLX5_OPCODE_ATOMIC_MASKED_CS, 9, 8, 7, {8, 7, ALL_ONES, ALL_ONES}, 4, 8},
	{"add in two fields", MLX5_OPCODE_ATOMIC_MASKED_FA, 9, 8, 0xa7, {0x19, 0x08}, 2, 0xb0},
	{"add to 4 bytes", MLX5_OPCODE_ATOMIC_MASKED_FA, 8, 4, 0xfffffff0, {0x20, 0}, 2, 0x10},
	{"xor of 4 bytes", MLX5_OPCODE_ATOMIC_MASKED_FA, 8, 4, 0xf000000f, {0xff000001, FULL}, 2, 0x0f00000e},
	{"swap of 4 bytes", MLX5_OPCODE_ATOMIC_MASKED_CS, 8, 4, 0x01020304, {0x12345678, 0, FULL, 0}, 4, 0x12345678},
	{"compare of 4 bytes, different",
	 MLX5_OPCODE_ATOMIC_MASKED_CS,
	 8,
	 4,
	 0xc9,
	 {0x12345678, 0xc8, FULL, FULL},
	 4,
	 0xc9},
	{"compare of 4 bytes, equal",
	 MLX5_OPCODE_ATOMIC_MASKED_CS,
	 8,
	 4,
	 0xc9,
	 {0x12345678, 0xc9, FULL, FULL},
	 4,
	 0x12345678},
	{"and of 4 bytes",
	 MLX5_OPCODE_ATOMIC_MASKED_CS,
	 8,
	 4,
	 0xff00ff00,
	 {0x0ff00ff0, 0, 0xf00ff00f, 0},
	 4,
	 0x0f000f00},
};

#define FORMS (sizeof(forms) / sizeof(forms[0]))

/* ---- WQEs ---------------------------------------------------------------------------------------------------------- */

struct wqe {
	union {
		struct mlx5_wqe_ctrl_seg ctrl;
		uint8_t bytes[16 * RING_UNIT];
	};
	uint32_t units;
};

static void begin(const struct rings *rings, struct wqe *wqe, uint8_t opcode, uint8_t opmod, uint8_t fm_ce_se)
{
	*wqe = (struct wqe){.units = 1};
	mlx5dv_set_ctrl_seg(&wqe->ctrl, (uint16_t)rings->producer, opcode, opmod, rings->endpoint->qp->qp_num, fm_ce_se,
			    0, 0, 0);
}

static void add(struct wqe *wqe, const void *segment, uint32_t bytes)
{
	memcpy(wqe->bytes + wqe->units * RING_UNIT, segment, bytes);
	wqe->units += (bytes + RING_UNIT - 1) / RING_UNIT;
}

static void add_remote(struct wqe *wqe, size_t start)
{
	struct mlx5_wqe_raddr_seg segment = {.raddr = htobe64((uintptr_t)server.memory + start),
					     .rkey = htobe32(server.mr->rkey)};

	add(wqe, &segment, sizeof(segment));
}

static void add_data(struct wqe *wqe, size_t start, uint32_t bytes)
{
	struct mlx5_wqe_data_seg segment;

	mlx5dv_set_data_seg(&segment, bytes, client.mr->lkey, (uintptr_t)client.memory + start);
	add(wqe, &segment, sizeof(segment));
}

/* Writes a WQE; the next doorbell announces its blocks. Returns the index of the first block. */
static uint32_t put(struct rings *rings, struct wqe *wqe)
{
	uint32_t index = rings->producer;

	wqe->ctrl.qpn_ds |= htobe32(wqe->units);
	rings_put(rings, wqe->bytes, wqe->units);
	rings_ring(rings, (wqe->units + 3) / 4, RING_DOORBELL);
	return index;
}

static void add_operands(struct wqe *wqe, const struct form *form)
{
	uint8_t segment[4 * sizeof(uint64_t)] = {0};

	for (uint32_t i = 0; i < form->operands; i++) {
		uint64_t wide = htobe64(form->operand[i]);
		uint32_t narrow = htobe32((uint32_t)form->operand[i]);

		memcpy(segment + i * form->size, form->size == 8 ? (const void *)&wide : (const void *)&narrow,
		       form->size);
	}
	add(wqe, segment, form->size * form->operands);
}

static uint32_t put_atomic(struct rings *rings, const struct form *form, uint8_t fm_ce_se)
{
	struct wqe wqe;

	begin(rings, &wqe, form->opcode, form->opmod, fm_ce_se);
	add_remote(&wqe, TARGET);
	add_operands(&wqe, form);
	add_data(&wqe, RESULT, form->size);
	return put(rings, &wqe);
}

static uint32_t put_read(struct rings *rings, uint32_t bytes, uint8_t fm_ce_se)
{
	struct wqe wqe;

	begin(rings, &wqe, MLX5_OPCODE_RDMA_READ, 0, fm_ce_se);
	add_remote(&wqe, TARGET);
	add_data(&wqe, RESULT, bytes);
	return put(rings, &wqe);
}

/* ---- memory -------------------------------------------------------------------------------------------------------- */

/* Sets the target to a number in the host's byte order. */
static void set_target(const struct form *form)
{
	memset(server.memory + TARGET, UNTOUCHED, 16);
	memcpy(server.memory + TARGET, &form->before, form->size);
	memset(client.memory + RESULT, UNTOUCHED, 16);
}

static void expect_bytes(const uint8_t *memory, uint64_t value, uint32_t size)
{
	uint32_t narrow = (uint32_t)value;

	assert_memory_equal(memory, size == 8 ? (const void *)&value : (const void *)&narrow, size);
	for (uint32_t i = size; i < 16; i++)
		assert_int_equal(memory[i], UNTOUCHED);
}

static void expect_untouched(const uint8_t *memory, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		assert_int_equal(memory[i], UNTOUCHED);
}

/* Updates the copies to the memory that the cases have already checked. */
static void memory_is_as_it_is(void)
{
	memcpy(client.expected + RESULT, client.memory + RESULT, 256);
	memcpy(server.expected + TARGET, server.memory + TARGET, 256);
}

/* ---- CQEs ---------------------------------------------------------------------------------------------------------- */

static struct ibv_cq *cq;

static void open_scattering(uint16_t cqe_size)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	struct ibv_cq_init_attr_ex attr = {.cqe = 64};
	struct mlx5dv_cq_init_attr dv = {.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE, .cqe_size = cqe_size};

	cq = ibv_cq_ex_to_cq(mlx5dv_create_cq(client.context, &attr, &dv));
	assert_non_null(cq);
	options.client_cq = cq;
	options.dv_create_flags = MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE;
	pair_replace(&pair, &options);
}

static void close_scattering(void)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	memory_is_as_it_is();
	pair_replace(&pair, &options);
	expect_error(ibv_destroy_cq(cq), 0);
}

/* Takes the next CQE, of the WQE at @index. Returns its inline data, or NULL. */
static const uint8_t *take(struct rings *rings, uint32_t index)
{
	struct mlx5_cqe64 cqe = rings_next_cqe(rings);
	const uint8_t *entry = (const uint8_t *)rings->cq.buf +
			       (size_t)((rings->consumer - 1) % rings->cq.cqe_cnt) * rings->cq.cqe_size;

	assert_int_equal(cqe.op_own >> 4, MLX5_CQE_REQ);
	assert_int_equal(be16toh(cqe.wqe_counter), index & 0xffff);
	switch (cqe.op_own & 0xc) {
	case 0:
		return NULL;
	case MLX5_INLINE_SCATTER_32:
		assert_int_equal(rings->cq.cqe_size, 64);
		return entry;
	case MLX5_INLINE_SCATTER_64:
		assert_int_equal(rings->cq.cqe_size, 128);
		return entry;
	default:
		fail_at(HERE, "op_own %x", cqe.op_own);
		return NULL;
	}
}

/* ---- cases --------------------------------------------------------------------------------------------------------- */

TEST(every_form)
{
	struct rings rings = rings_open(&pair.client);

	/* Several laps of the ring, so that each WQE starts at many blocks, including the last one. */
	for (uint32_t i = 0; i < 12 * FORMS; i++) {
		const struct form *form = &forms[i % FORMS];

		note("%s", form->name);
		set_target(form);
		assert_null(take(&rings, put_atomic(&rings, form, MLX5_WQE_CTRL_CQ_UPDATE)));
		expect_bytes(client.memory + RESULT, form->before, form->size);
		expect_bytes(server.memory + TARGET, form->after, form->size);
	}
	memory_is_as_it_is();
}

/* The result is big-endian in the CQE only. */
TEST(results_in_cqes)
{
	for (uint16_t size = 64; size <= 128; size *= 2) {
		struct rings rings;

		open_scattering(size);
		rings = rings_open(&pair.client);
		for (uint32_t i = 0; i < 4 * FORMS; i++) {
			const struct form *form = &forms[i % FORMS];
			const uint8_t *data;

			note("CQEs of %u bytes, %s", size, form->name);
			set_target(form);
			data = take(&rings, put_atomic(&rings, form, MLX5_WQE_CTRL_CQ_UPDATE));
			assert_non_null(data);
			for (uint32_t k = 0; k < form->size; k++)
				assert_int_equal(data[k], (uint8_t)(form->before >> 8 * (form->size - 1 - k)));
			expect_untouched(client.memory + RESULT, 16);
			expect_bytes(server.memory + TARGET, form->after, form->size);
		}
		close_scattering();
	}
}

/* As many bytes as fit into half of a CQE, and one more, which go to memory. */
TEST(reads_into_cqes)
{
	for (uint16_t size = 64; size <= 128; size *= 2) {
		struct rings rings;

		open_scattering(size);
		rings = rings_open(&pair.client);
		side_stir(&server);
		for (uint32_t bytes = 1; bytes <= size / 2u + 4; bytes++) {
			const uint8_t *data;

			note("CQEs of %u bytes, a READ of %u", size, bytes);
			memset(client.memory + RESULT, UNTOUCHED, 128);
			data = take(&rings, put_read(&rings, bytes, MLX5_WQE_CTRL_CQ_UPDATE));
			assert_int_equal(data != NULL, bytes <= size / 2u);
			if (data)
				expect_untouched(client.memory + RESULT, 128);
			assert_memory_equal(data ? data : client.memory + RESULT, server.memory + TARGET, bytes);
			expect_untouched(client.memory + RESULT + bytes, 128 - bytes);
		}
		close_scattering();
	}
}

/* Without its own CQE, or with more than one piece of memory, the data goes to the addresses of the WQE. */
TEST(impossible_cqe_fields)
{
	struct rings rings;
	struct wqe wqe;
	uint32_t index;

	open_scattering(128);
	rings = rings_open(&pair.client);
	set_target(&forms[0]);
	put_read(&rings, 8, 0);
	index = put_atomic(&rings, &forms[0], MLX5_WQE_CTRL_CQ_UPDATE);
	assert_non_null(take(&rings, index));
	expect_bytes(client.memory + RESULT, forms[0].before, 8);

	side_stir(&server);
	memset(client.memory + RESULT, UNTOUCHED, 128);
	begin(&rings, &wqe, MLX5_OPCODE_RDMA_READ, 0, MLX5_WQE_CTRL_CQ_UPDATE);
	add_remote(&wqe, TARGET);
	add_data(&wqe, RESULT, 8);
	add_data(&wqe, RESULT + 32, 8);
	assert_null(take(&rings, put(&rings, &wqe)));
	assert_memory_equal(client.memory + RESULT, server.memory + TARGET, 8);
	assert_memory_equal(client.memory + RESULT + 32, server.memory + TARGET + 8, 8);
	/* Two adjacent pieces count as two: software that copies data out of a CQE expects one. */
	memset(client.memory + RESULT, UNTOUCHED, 128);
	begin(&rings, &wqe, MLX5_OPCODE_RDMA_READ, 0, MLX5_WQE_CTRL_CQ_UPDATE);
	add_remote(&wqe, TARGET);
	add_data(&wqe, RESULT, 8);
	add_data(&wqe, RESULT + 8, 8);
	assert_null(take(&rings, put(&rings, &wqe)));
	assert_memory_equal(client.memory + RESULT, server.memory + TARGET, 16);
	close_scattering();
}

/* The CQE of a failed request contains no response data. */
TEST(refusals_bring_nothing)
{
	struct rings rings;
	struct mlx5_cqe64 cqe;
	struct wqe wqe;

	open_scattering(64);
	rings = rings_open(&pair.client);
	begin(&rings, &wqe, MLX5_OPCODE_RDMA_READ, 0, MLX5_WQE_CTRL_CQ_UPDATE);
	add_remote(&wqe, TARGET);
	add_data(&wqe, RESULT, 8);
	/* The key is checked although no data would be written through it. */
	((struct mlx5_wqe_data_seg *)(wqe.bytes + 2 * RING_UNIT))->lkey = htobe32(server.mr->lkey ^ 0x100);
	put(&rings, &wqe);
	cqe = rings_next_cqe(&rings);
	assert_int_equal(cqe.op_own >> 4, MLX5_CQE_REQ_ERR);
	assert_int_equal(cqe.op_own & 0xc, 0);
	assert_int_equal(((struct mlx5_err_cqe *)&cqe)->syndrome, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
	close_scattering();
}

/* ibv_poll_cq(3) copies data out of CQEs, also for WQEs that wrap the ring. */
TEST(polling_copies)
{
	struct ibv_sge sge = side_sge(&client, RESULT, 8);

	for (uint16_t size = 64; size <= 128; size *= 2) {
		open_scattering(size);
		side_stir(&server);
		for (uint32_t i = 0; i < 200; i++) {
			uint32_t length = 1 + i % 70;
			struct ibv_send_wr wr =
				send_wr(i, i % 2 ? IBV_WR_RDMA_READ : IBV_WR_ATOMIC_FETCH_AND_ADD, &sge);
			uint64_t before;

			note("CQEs of %u bytes, request %u", size, i);
			memset(client.memory + RESULT, UNTOUCHED, 128);
			memcpy(&before, server.memory + TARGET, 8);
			sge.length = i % 2 ? length : 8;
			if (i % 2) {
				wr.wr.rdma.remote_addr = (uintptr_t)server.memory + TARGET;
				wr.wr.rdma.rkey = server.mr->rkey;
			} else {
				wr.wr.atomic.remote_addr = (uintptr_t)server.memory + TARGET;
				wr.wr.atomic.rkey = server.mr->rkey;
				wr.wr.atomic.compare_add = 0x0102030405060708;
			}
			post_send(&pair.client, &wr);
			expect_completion(&pair.client, i, i % 2 ? IBV_WC_RDMA_READ : IBV_WC_FETCH_ADD);
			if (i % 2)
				assert_memory_equal(client.memory + RESULT, server.memory + TARGET, length);
			else
				assert_memory_equal(client.memory + RESULT, &before, 8);
			expect_untouched(client.memory + RESULT + sge.length, 128 - sge.length);
		}
		close_scattering();
	}
}

/* MLX5_SCATTER_TO_CQE=0 overrides the flag. */
TEST(variable_forbids_it)
{
	struct rings rings;

	setenv("MLX5_SCATTER_TO_CQE", "0", 1);
	open_scattering(128);
	unsetenv("MLX5_SCATTER_TO_CQE");
	rings = rings_open(&pair.client);
	side_stir(&server);
	assert_null(take(&rings, put_read(&rings, 8, MLX5_WQE_CTRL_CQ_UPDATE)));
	assert_memory_equal(client.memory + RESULT, server.memory + TARGET, 8);
	close_scattering();
}

/*
 * mlx5-formats 1.3: a WQE with fence mode 2, 3 or 4 starts when the results of earlier atomics have arrived. A WRITE of
 * these results sends all of them, however many blocks were announced.
 */
TEST(fences_after_atomics)
{
	static const uint8_t modes[] = {0x40, 0x60, 0x80};
	struct rings rings = rings_open(&pair.client);

	for (uint32_t i = 0; i < 60; i++) {
		uint64_t result[4], start = (uint64_t)i << 40 | 0xffffffff;
		uint32_t last = 0;

		note("round %u", i);
		memcpy(server.memory + TARGET, &start, 8);
		memset(client.memory + RESULT, 0, 32);
		memset(server.memory + TARGET + 64, 0, 32);
		for (uint32_t k = 0; k < 5; k++) {
			struct wqe wqe;
			const struct form *one = &(struct form){.size = 8, .operands = 2, .operand = {1 + i}};

			begin(&rings, &wqe, k < 4 ? MLX5_OPCODE_ATOMIC_FA : MLX5_OPCODE_RDMA_WRITE, 0,
			      k < 4 ? 0 : MLX5_WQE_CTRL_CQ_UPDATE | modes[i % 3]);
			add_remote(&wqe, k < 4 ? TARGET : TARGET + 64);
			if (k < 4)
				add_operands(&wqe, one);
			add_data(&wqe, k < 4 ? RESULT + 8 * k : RESULT, k < 4 ? 8 : 32);
			wqe.ctrl.qpn_ds |= htobe32(wqe.units);
			rings_put(&rings, wqe.bytes, wqe.units);
			last = rings.producer++;
		}
		/* One doorbell for all five. */
		rings.producer--;
		rings_ring(&rings, 1, RING_DOORBELL);
		assert_null(take(&rings, last));
		memcpy(result, server.memory + TARGET + 64, 32);
		for (uint32_t k = 0; k < 4; k++)
			assert_int_equal(result[k], start + k * (1 + (uint64_t)i));
	}
	memory_is_as_it_is();
}

/*
 * Corrupted WQEs, each followed by a good READ: the READ completes, or one of the two fails, the scatter bits of the
 * CQE fit its kind, and no memory outside the regions is accessed.
 */
TEST(spoilt_requests)
{
	struct rings rings;
	uint32_t random = 7, refused = 0;

	open_scattering(128);
	rings = rings_open(&pair.client);
	for (uint32_t i = 0; i < 300; i++) {
		const struct form *form = &forms[i % FORMS];
		struct mlx5_cqe64 cqe;
		struct wqe wqe;
		uint32_t index;

		note("round %u, %s", i, form->name);
		begin(&rings, &wqe, form->opcode, form->opmod, MLX5_WQE_CTRL_CQ_UPDATE);
		add_remote(&wqe, TARGET);
		add_operands(&wqe, form);
		add_data(&wqe, RESULT, form->size);
		for (uint32_t k = 0; k <= i % 3; k++) {
			random = random * 1664525 + 1013904223;
			wqe.bytes[(random >> 8) % (wqe.units * RING_UNIT)] ^= (uint8_t)(1u << (random >> 24 & 7));
		}
		put(&rings, &wqe);
		index = put_read(&rings, 8, MLX5_WQE_CTRL_CQ_UPDATE);
		do {
			cqe = rings_next_cqe(&rings);
			if (cqe.op_own >> 4 != MLX5_CQE_REQ)
				assert_int_equal(cqe.op_own & 0xc, 0);
		} while (cqe.op_own >> 4 == MLX5_CQE_REQ && be16toh(cqe.wqe_counter) != (index & 0xffff));
		if (cqe.op_own >> 4 == MLX5_CQE_REQ)
			continue;
		refused++;
		close_scattering();
		open_scattering(128);
		rings = rings_open(&pair.client);
	}
	/* Most bits of a WQE are checked. */
	assert_true(refused > 100);
	memcpy(client.expected, client.memory, SIDE_BYTES);
	memcpy(server.expected, server.memory, SIDE_BYTES);
	close_scattering();
}
