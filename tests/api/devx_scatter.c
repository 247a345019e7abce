/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests READ and atomic results stored in the CQE itself (mlx5-formats 3.2), for queues made by command: cs_req of CREATE_QP
 * permits this, for CQEs of the size that it names. The requests are those of UCX; expected values were computed by hand.
 */
#include "support/devx.h"

enum {
	LOG_CQES = 4,
	ENTRIES = 1 << LOG_CQES,
	TARGET = 4096, /* offset in the client's memory, as */
	RESULT = 8192,
	COPY = 12288,
	UNTOUCHED = 0xee,
	SIGNALLED = 8,
	FENCE = 2 << 5,
};

struct ring {
	struct own own;
	uint32_t cqe_size;
};

/* Opens a queue pair connected to itself. */
static void ring_open(struct ring *ring, uint32_t cqe_size, uint32_t cs_req)
{
	struct own *own = &ring->own;
	struct command command;

	own_open_cq(own, &client);
	assert_int_equal(mlx5dv_devx_obj_destroy(own->cq), 0);
	memset(own->memory + OWN_RING, 0xff, 4096);
	ring->cqe_size = cqe_size;
	command = cq_command(own);
	put32(command.in, 16, (cqe_size == 128) << 21);
	put32(command.in, 28, (uint32_t)LOG_CQES << 24 | own->uar->page_id);
	own->cq = create(client.context, &command, 272);
	assert_non_null(own->cq);
	own->cqn = created_number(&command);
	command = qp_command(own, 0);
	put32(command.in, 220, cs_req << 8);
	own->qp = create(client.context, &command, 272);
	assert_non_null(own->qp);
	own->qpn = created_number(&command);
	own_connect(own, own);
	memset(client.memory + RESULT, UNTOUCHED, 128);
}

/* Polls the next CQE. Returns the data in it, or NULL. */
static const uint8_t *take(struct ring *ring)
{
	struct own *own = &ring->own;
	const uint8_t *entry = own->memory + OWN_RING + (size_t)(own->consumed % ENTRIES) * ring->cqe_size;
	const uint8_t *cqe = entry + ring->cqe_size - 64;
	double deadline = seconds_now() + 20;
	uint8_t op_own;

	do {
		assert_true(seconds_now() < deadline);
		op_own = __atomic_load_n(cqe + 63, __ATOMIC_ACQUIRE);
	} while (op_own >> 4 == 0xf || (op_own & 1) != (own->consumed / ENTRIES & 1));
	own->consumed++;
	put32(own->memory + OWN_CQ_RECORD, 0, own->consumed & 0xffffff);
	assert_int_equal(op_own >> 4, MLX5_CQE_REQ);
	switch (op_own >> 2 & 3) {
	case 0:
		return NULL;
	case 1:
		assert_int_equal(ring->cqe_size, 64);
		return cqe;
	default:
		assert_int_equal(op_own >> 2 & 3, 2);
		assert_int_equal(ring->cqe_size, 128);
		return entry;
	}
}

static const uint8_t *read_of(struct ring *ring, uint32_t bytes)
{
	own_request(&ring->own, MLX5_OPCODE_RDMA_READ, side_address(&client, TARGET), client.mr->rkey,
		    side_address(&client, RESULT), bytes, 0);
	return take(ring);
}

/* cs_req, the CQE size, and the maximum number of bytes in a CQE. */
static const struct permission {
	uint32_t cs_req, cqe_size, most;
} permissions[] = {
	{0, 64, 0}, {0, 128, 0}, {0x11, 64, 32}, {0x22, 64, 0}, {0x22, 128, 64}, {0x11, 128, 0},
};

enum { PERMISSIONS = sizeof(permissions) / sizeof(permissions[0]) };

TEST(reads)
{
	for (size_t i = 0; i < PERMISSIONS; i++) {
		struct ring ring;

		ring_open(&ring, permissions[i].cqe_size, permissions[i].cs_req);
		for (uint32_t bytes = 1; bytes <= 68; bytes++) {
			const uint8_t *data;

			note("cs_req %x, CQEs of %u, a READ of %u", permissions[i].cs_req, ring.cqe_size, bytes);
			memset(client.memory + RESULT, UNTOUCHED, 128);
			data = read_of(&ring, bytes);
			assert_int_equal(data != NULL, bytes <= permissions[i].most);
			assert_memory_equal(data ? data : client.memory + RESULT, client.memory + TARGET, bytes);
			for (uint32_t at = data ? 0 : bytes; at < 128; at++)
				assert_int_equal(client.memory[RESULT + at], UNTOUCHED);
		}
		memcpy(client.expected + RESULT, client.memory + RESULT, 128);
		own_close(&ring.own);
	}
}

/* Forms that UCX uses: 64-bit add, fetch and add, compare and swap; fetch and xor of 64 and of 32 bits. */
static const struct form {
	const char *name;
	uint8_t opcode, opmod, size;
	uint64_t before, operand[4], after;
} forms[] = {
	{"add", MLX5_OPCODE_ATOMIC_FA, 0, 8, 0xfffffffffffffff0, {0x21}, 0x11},
	{"compare, equal", MLX5_OPCODE_ATOMIC_CS, 0, 8, 0x1122334455667788, {0x99, 0x1122334455667788}, 0x99},
	{"compare, different", MLX5_OPCODE_ATOMIC_CS, 0, 8, 5, {0x99, 6}, 5},
	{"xor of 8",
	 MLX5_OPCODE_ATOMIC_MASKED_FA,
	 9,
	 8,
	 0xff00000000000fff,
	 {0x0ff0000000000f01, UINT64_MAX},
	 0xf0f00000000000fe},
	{"xor of 4", MLX5_OPCODE_ATOMIC_MASKED_FA, 8, 4, 0xf0f0f0f0, {0x0ff0ffff, UINT32_MAX}, 0xff000f0f},
	{"add of 4", MLX5_OPCODE_ATOMIC_MASKED_FA, 8, 4, 0xffffffff, {2, 0}, 1},
};

/* Sets the target, a number in the host's byte order. */
static void set_target(const struct form *form)
{
	memset(client.memory + TARGET, UNTOUCHED, 16);
	memcpy(client.memory + TARGET, &form->before, form->size);
	memset(client.memory + RESULT, UNTOUCHED, 16);
}

static void put_form(struct ring *ring, const struct form *form, uint8_t flags)
{
	uint8_t wqe[64] = {0};

	put32(wqe, 8, flags);
	put64(wqe, 16, side_address(&client, TARGET));
	put32(wqe, 24, client.mr->rkey);
	if (form->size == 8) {
		put64(wqe, 32, form->operand[0]);
		put64(wqe, 40, form->operand[1]);
	} else {
		put32(wqe, 32, (uint32_t)form->operand[0]);
		put32(wqe, 36, (uint32_t)form->operand[1]);
	}
	put_data(wqe, 48, form->size, client.mr->lkey, side_address(&client, RESULT));
	own_post(&ring->own, (uint32_t)form->opmod << 24 | form->opcode, wqe, sizeof(wqe));
}

TEST(atomics)
{
	for (size_t i = 0; i < PERMISSIONS; i++) {
		struct ring ring;

		ring_open(&ring, permissions[i].cqe_size, permissions[i].cs_req);
		for (size_t k = 0; k < sizeof(forms) / sizeof(forms[0]); k++) {
			const struct form *form = &forms[k];
			const uint8_t *data;

			note("cs_req %x, CQEs of %u, %s", permissions[i].cs_req, ring.cqe_size, form->name);
			set_target(form);
			put_form(&ring, form, SIGNALLED);
			data = take(&ring);
			assert_int_equal(data != NULL, permissions[i].most > 0);
			/* The number is big-endian in a CQE. */
			for (uint32_t at = 0; data && at < form->size; at++)
				assert_int_equal(data[at], (uint8_t)(form->before >> 8 * (form->size - 1 - at)));
			if (data)
				assert_int_equal(client.memory[RESULT], UNTOUCHED);
			else
				assert_memory_equal(client.memory + RESULT, &form->before, form->size);
			assert_int_equal(client.memory[RESULT + form->size], UNTOUCHED);
			assert_memory_equal(client.memory + TARGET, &form->after, form->size);
			assert_int_equal(client.memory[TARGET + form->size], UNTOUCHED);
		}
		memcpy(client.expected + TARGET, client.memory + TARGET, 16);
		memcpy(client.expected + RESULT, client.memory + RESULT, 128);
		own_close(&ring.own);
	}
}

/* After an atomic, a fenced WRITE sends its result; one doorbell covers both. */
TEST(fences)
{
	struct ring ring;

	ring_open(&ring, 64, 0);
	for (uint32_t i = 0; i < 50; i++) {
		uint8_t wqe[48] = {0};

		set_target(&forms[0]);
		memset(client.memory + COPY, UNTOUCHED, 8);
		put_form(&ring, &forms[0], 0);
		put32(wqe, 8, FENCE | SIGNALLED);
		put64(wqe, 16, side_address(&client, COPY));
		put32(wqe, 24, client.mr->rkey);
		put_data(wqe, 32, 8, client.mr->lkey, side_address(&client, RESULT));
		own_post(&ring.own, MLX5_OPCODE_RDMA_WRITE, wqe, sizeof(wqe));
		assert_null(take(&ring));
		assert_memory_equal(client.memory + COPY, &forms[0].before, 8);
	}
	memcpy(client.expected + TARGET, client.memory + TARGET, 16);
	memcpy(client.expected + RESULT, client.memory + RESULT, 128);
	memcpy(client.expected + COPY, client.memory + COPY, 8);
	own_close(&ring.own);
}
