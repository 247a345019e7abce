/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys with layouts, configured and used: the examples and promises of mlx5dv_wr_mkey_configure(3) and
 * mlx5dv_wr_post(3), with real transfers between two QPs.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "mlx5dv_pair.h"

enum {
	BYTES = 16384,
	KEY_OPS = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE,
};

static struct pair pair;
static uint8_t *memory[3]; /* [0] is the plain side, [1] and [2] are behind keys */
static struct ibv_mr *mr[3];
static struct mlx5dv_mkey_conf_attr no_attributes;

static void open_with_inline(uint32_t max_inline)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

	pair_open(&pair, KEY_OPS, max_inline);
	for (int i = 0; i < 3; i++) {
		memory[i] = aligned_alloc(4096, BYTES);
		for (int j = 0; j < BYTES; j++)
			memory[i][j] = (uint8_t)(j * 7 + j / 256 + i * 31);
		mr[i] = ibv_reg_mr(pair.pd, memory[i], BYTES, access);
		assert_non_null(mr[i]);
	}
}

static int set_up(void **state)
{
	(void)state;
	open_with_inline(0);
	return 0;
}

static int set_up_large(void **state)
{
	(void)state;
	open_with_inline(512);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ibv_dereg_mr(mr[i]), 0);
		free(memory[i]);
	}
	pair_close(&pair);
	return 0;
}

static struct mlx5dv_mkey *new_key(uint16_t max_entries, uint32_t more_flags)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = pair.pd,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | more_flags,
		.max_entries = max_entries,
	};
	struct mlx5dv_mkey *key = mlx5dv_create_mkey(&attr);

	assert_non_null(key);
	return key;
}

static void start(uint64_t wr_id)
{
	ibv_wr_start(pair.ex[0]);
	pair.ex[0]->wr_id = wr_id;
	pair.ex[0]->wr_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
}

/* Configures @key with rights and a list; waits for the completion. */
static void configure_list(struct mlx5dv_mkey *key, uint32_t access, uint16_t count,
			   const struct ibv_sge *sge)
{
	start(1);
	mlx5dv_wr_mkey_configure(pair.dv[0], key, 2, &no_attributes);
	mlx5dv_wr_set_mkey_access_flags(pair.dv[0], access);
	mlx5dv_wr_set_mkey_layout_list(pair.dv[0], count, sge);
	assert_int_equal(ibv_wr_complete(pair.ex[0]), 0);
	pair_expect(&pair, 1, IBV_WC_DRIVER1);
}

static void configure_interleaved(struct mlx5dv_mkey *key, uint32_t access, uint32_t repeat, uint16_t count,
				  const struct mlx5dv_mr_interleaved *data)
{
	start(1);
	mlx5dv_wr_mkey_configure(pair.dv[0], key, 2, &no_attributes);
	mlx5dv_wr_set_mkey_access_flags(pair.dv[0], access);
	mlx5dv_wr_set_mkey_layout_interleaved(pair.dv[0], repeat, count, data);
	assert_int_equal(ibv_wr_complete(pair.ex[0]), 0);
	pair_expect(&pair, 1, IBV_WC_DRIVER1);
}

/* One RDMA of @length bytes between memory[0] and offset @at of @rkey, posted by qp[1]. */
static void rdma(enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t at, uint32_t length)
{
	struct ibv_sge sge = {.addr = (uintptr_t)memory[0], .length = length, .lkey = mr[0]->lkey};
	struct ibv_send_wr wr = {
		.wr_id = 2,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = {.remote_addr = at, .rkey = rkey},
	};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(pair.qp[1], &wr, &bad), 0);
}

static void write_ok(uint32_t rkey, uint64_t at, uint32_t length)
{
	rdma(IBV_WR_RDMA_WRITE, rkey, at, length);
	pair_expect(&pair, 2, IBV_WC_RDMA_WRITE);
}

static void read_ok(uint32_t rkey, uint64_t at, uint32_t length)
{
	rdma(IBV_WR_RDMA_READ, rkey, at, length);
	pair_expect(&pair, 2, IBV_WC_RDMA_READ);
}

/* The page's example: 64 bytes go to mr1, the next 4096 to mr2. */
static void list_example(void **state)
{
	struct mlx5dv_mkey *key = new_key(2, 0);
	struct ibv_sge sgl[2] = {
		{.addr = (uintptr_t)memory[1], .length = 64, .lkey = mr[1]->lkey},
		{.addr = (uintptr_t)memory[2], .length = 4096, .lkey = mr[2]->lkey},
	};
	uint8_t old = memory[1][64], plain[64 + 4096];

	(void)state;
	configure_list(key, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE, 2, sgl);
	write_ok(key->rkey, 0, 64 + 4096);
	assert_memory_equal(memory[1], memory[0], 64);
	assert_memory_equal(memory[2], memory[0] + 64, 4096);
	assert_int_equal(memory[1][64], old);

	/* And back, from the middle: an address is an offset in the total data. */
	memcpy(plain, memory[0], sizeof(plain));
	memset(memory[0], 0, BYTES);
	read_ok(key->rkey, 60, 100);
	assert_memory_equal(memory[0], plain + 60, 100);
	assert_int_equal(mlx5dv_destroy_mkey(key), 0);
}

/* The page's example: 512 to mr1+0, 8 to mr2+0, 512 to mr1+516, 8 to mr2+8. */
static void interleaved_example(void **state)
{
	struct mlx5dv_mkey *key = new_key(3, 0);
	struct mlx5dv_mr_interleaved data[2] = {
		{.addr = (uintptr_t)memory[1], .bytes_count = 512, .bytes_skip = 4, .lkey = mr[1]->lkey},
		{.addr = (uintptr_t)memory[2], .bytes_count = 8, .bytes_skip = 0, .lkey = mr[2]->lkey},
	};
	uint8_t skipped[4];

	(void)state;
	memcpy(skipped, memory[1] + 512, 4);
	configure_interleaved(key, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE, 2, 2, data);
	write_ok(key->rkey, 0, 1040);
	assert_memory_equal(memory[1], memory[0], 512);
	assert_memory_equal(memory[2], memory[0] + 512, 8);
	assert_memory_equal(memory[1] + 516, memory[0] + 520, 512);
	assert_memory_equal(memory[2] + 8, memory[0] + 1032, 8);
	assert_memory_equal(memory[1] + 512, skipped, 4);

	rdma(IBV_WR_RDMA_WRITE, key->rkey, 1, 1040); /* one byte past the end */
	pair_expect_error(&pair, 2, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mlx5dv_destroy_mkey(key), 0);
}

/* A key as lkey of a SEND and of the receive that takes it; used without waiting for its completion. */
static void key_on_both_sides_of_a_send(void **state)
{
	struct mlx5dv_mkey *from = new_key(4, 0), *to = new_key(3, 0);
	struct mlx5dv_mr_interleaved data[2] = {
		{.addr = (uintptr_t)memory[2], .bytes_count = 10, .bytes_skip = 6, .lkey = mr[2]->lkey},
		{.addr = (uintptr_t)memory[2] + 4096, .bytes_count = 6, .bytes_skip = 0, .lkey = mr[2]->lkey},
	};
	struct ibv_sge piece[2] = {
		{.addr = (uintptr_t)memory[1] + 100, .length = 20, .lkey = mr[1]->lkey},
		{.addr = (uintptr_t)memory[1], .length = 12, .lkey = mr[1]->lkey},
	};
	struct ibv_sge receive_sge = {.addr = 0, .length = 32, .lkey = to->lkey};
	struct ibv_recv_wr receive = {.wr_id = 3, .sg_list = &receive_sge, .num_sge = 1}, *bad;
	uint8_t message[32];

	(void)state;
	memcpy(message, memory[1] + 100, 20);
	memcpy(message + 20, memory[1], 12);
	configure_interleaved(to, IBV_ACCESS_LOCAL_WRITE, 2, 2, data);
	assert_int_equal(ibv_post_recv(pair.qp[1], &receive, &bad), 0);

	ibv_wr_start(pair.ex[0]);
	pair.ex[0]->wr_id = 4;
	pair.ex[0]->wr_flags = IBV_SEND_INLINE;
	mlx5dv_wr_mkey_configure(pair.dv[0], from, 1, &no_attributes);
	mlx5dv_wr_set_mkey_layout_list(pair.dv[0], 2, piece);
	pair.ex[0]->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(pair.ex[0]);
	ibv_wr_set_sge(pair.ex[0], from->lkey, 0, 32);
	assert_int_equal(ibv_wr_complete(pair.ex[0]), 0);
	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc = pair_poll(&pair);

		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, wc.wr_id == 3 ? IBV_WC_RECV : IBV_WC_SEND);
	}
	assert_memory_equal(memory[2], message, 10);
	assert_memory_equal(memory[2] + 4096, message + 10, 6);
	assert_memory_equal(memory[2] + 16, message + 16, 10);
	assert_memory_equal(memory[2] + 4102, message + 26, 6);
	assert_int_equal(mlx5dv_destroy_mkey(from), 0);
	assert_int_equal(mlx5dv_destroy_mkey(to), 0);
}

/* A key whose entries are in another key. */
static void key_inside_a_key(void **state)
{
	struct mlx5dv_mkey *inner = new_key(3, 0), *outer = new_key(4, 0);
	struct mlx5dv_mr_interleaved every_other = {
		.addr = (uintptr_t)memory[1], .bytes_count = 1, .bytes_skip = 1, .lkey = mr[1]->lkey};
	struct ibv_sge halves[2] = {
		{.addr = 50, .length = 50, .lkey = inner->lkey},
		{.addr = 0, .length = 50, .lkey = inner->lkey},
	};

	(void)state;
	configure_interleaved(inner, IBV_ACCESS_LOCAL_WRITE, 100, 1, &every_other);
	configure_list(outer, IBV_ACCESS_REMOTE_READ, 2, halves);
	read_ok(outer->rkey, 0, 100);
	for (int i = 0; i < 100; i++)
		assert_int_equal(memory[0][i], memory[1][2 * ((i + 50) % 100)]);
	assert_int_equal(mlx5dv_destroy_mkey(outer), 0);
	assert_int_equal(mlx5dv_destroy_mkey(inner), 0);
}

/* mlx5dv_wr_mr_list and mlx5dv_wr_mr_interleaved; IBV_WC_DRIVER1 is MLX5DV_WC_UMR. */
static void mr_builders(void **state)
{
	struct mlx5dv_mkey *key = new_key(4, 0);
	struct ibv_sge sge[2] = {
		{.addr = (uintptr_t)memory[1] + 5, .length = 7, .lkey = mr[1]->lkey},
		{.addr = (uintptr_t)memory[2] + 6, .length = 9, .lkey = mr[2]->lkey},
	};
	struct mlx5dv_mr_interleaved data = {
		.addr = (uintptr_t)memory[2], .bytes_count = 3, .bytes_skip = 5, .lkey = mr[2]->lkey};

	(void)state;
	start(10);
	mlx5dv_wr_mr_list(pair.dv[0], key, IBV_ACCESS_REMOTE_READ, 2, sge);
	assert_int_equal(ibv_wr_complete(pair.ex[0]), 0);
	pair_expect(&pair, 10, (enum ibv_wc_opcode)MLX5DV_WC_UMR);
	read_ok(key->rkey, 0, 16);
	assert_memory_equal(memory[0], memory[1] + 5, 7);
	assert_memory_equal(memory[0] + 7, memory[2] + 6, 9);

	start(11);
	mlx5dv_wr_mr_interleaved(pair.dv[0], key, IBV_ACCESS_REMOTE_READ, 4, 1, &data);
	assert_int_equal(ibv_wr_complete(pair.ex[0]), 0);
	pair_expect(&pair, 11, (enum ibv_wc_opcode)MLX5DV_WC_UMR);
	read_ok(key->rkey, 0, 12);
	for (int i = 0; i < 4; i++)
		assert_memory_equal(memory[0] + 3 * i, memory[2] + 8 * i, 3);
	assert_int_equal(mlx5dv_destroy_mkey(key), 0);
}

/* "Default WQE size can fit only 4 SGE entries", "only 3 interleaved entries". */
static void limits_of_a_default_queue(void **state)
{
	struct mlx5dv_mkey *key = new_key(64, 0);
	struct mlx5dv_mr_interleaved data[5];
	struct ibv_sge sge[5];

	(void)state;
	for (int i = 0; i < 5; i++) {
		sge[i] = (struct ibv_sge){.addr = (uintptr_t)memory[1] + i, .length = 1, .lkey = mr[1]->lkey};
		data[i] = (struct mlx5dv_mr_interleaved){
			.addr = (uintptr_t)memory[1] + i, .bytes_count = 1, .lkey = mr[1]->lkey};
	}
	configure_list(key, 0, 4, sge);
	configure_interleaved(key, 0, 1, 3, data);
	start(1);
	mlx5dv_wr_mr_list(pair.dv[0], key, 0, 5, sge);
	assert_int_equal(ibv_wr_complete(pair.ex[0]), ENOMEM);
	start(1);
	mlx5dv_wr_mr_interleaved(pair.dv[0], key, 0, 1, 4, data);
	assert_int_equal(ibv_wr_complete(pair.ex[0]), ENOMEM);
	/* The refused ones left nothing behind. */
	configure_list(key, 0, 4, sge);
	assert_int_equal(mlx5dv_destroy_mkey(key), 0);
}

/* "the QP should be created with a larger WQE size … max_inline_data" */
static void more_entries_with_a_larger_work_request(void **state)
{
	struct mlx5dv_mkey *key = new_key(32, 0);
	struct ibv_sge sge[32];

	(void)state;
	for (int i = 0; i < 32; i++)
		sge[i] = (struct ibv_sge){
			.addr = (uintptr_t)memory[1] + 100 * (31 - i), .length = 10, .lkey = mr[1]->lkey};
	configure_list(key, IBV_ACCESS_REMOTE_READ, 32, sge);
	read_ok(key->rkey, 0, 320);
	for (int i = 0; i < 32; i++)
		assert_memory_equal(memory[0] + 10 * i, memory[1] + 100 * (31 - i), 10);
	assert_int_equal(mlx5dv_destroy_mkey(key), 0);
}

/* "As one entry will be consumed for strided header, the MKEY should be created with one more entry" */
static void header_takes_an_entry_of_the_key(void **state)
{
	struct mlx5dv_mkey *five = new_key(5, 0), *four = new_key(4, 0);
	struct mlx5dv_mr_interleaved data[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		data[i] = (struct mlx5dv_mr_interleaved){
			.addr = (uintptr_t)memory[1] + i, .bytes_count = 1, .lkey = mr[1]->lkey};
	configure_interleaved(five, 0, 1, 4, data);
	start(1);
	mlx5dv_wr_mr_interleaved(pair.dv[0], four, 0, 1, 4, data);
	assert_int_equal(ibv_wr_complete(pair.ex[0]), 0);
	pair_expect_error(&pair, 1, IBV_WC_MW_BIND_ERR);
	assert_int_equal(mlx5dv_destroy_mkey(five), 0);
	assert_int_equal(mlx5dv_destroy_mkey(four), 0);
}

/* The page's example: the second configuration overrides the rights, and the layout stays. */
static void rights_are_overridden(void **state)
{
	struct mlx5dv_mkey *key = new_key(1, 0);
	struct ibv_sge sge = {.addr = (uintptr_t)memory[1], .length = 256, .lkey = mr[1]->lkey};

	(void)state;
	configure_list(key, IBV_ACCESS_REMOTE_READ, 1, &sge);
	read_ok(key->rkey, 0, 256);
	start(1);
	mlx5dv_wr_mkey_configure(pair.dv[0], key, 1, &no_attributes);
	mlx5dv_wr_set_mkey_access_flags(pair.dv[0], IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(ibv_wr_complete(pair.ex[0]), 0);
	pair_expect(&pair, 1, IBV_WC_DRIVER1);
	memory[0][0] ^= 0xff;
	write_ok(key->rkey, 0, 256);
	assert_memory_equal(memory[0], memory[1], 256);
	rdma(IBV_WR_RDMA_READ, key->rkey, 0, 256);
	pair_expect_error(&pair, 2, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mlx5dv_destroy_mkey(key), 0);
}

/* A layout overrides the one before, whichever form either has; the rights stay. */
static void layout_is_overridden(void **state)
{
	struct mlx5dv_mkey *key = new_key(4, 0);
	struct ibv_sge first = {.addr = (uintptr_t)memory[1], .length = 64, .lkey = mr[1]->lkey};
	struct ibv_sge second = {.addr = (uintptr_t)memory[2], .length = 32, .lkey = mr[2]->lkey};
	struct mlx5dv_mr_interleaved data = {
		.addr = (uintptr_t)memory[1], .bytes_count = 2, .bytes_skip = 2, .lkey = mr[1]->lkey};

	(void)state;
	configure_list(key, IBV_ACCESS_REMOTE_READ, 1, &first);
	start(1);
	mlx5dv_wr_mkey_configure(pair.dv[0], key, 1, &no_attributes);
	mlx5dv_wr_set_mkey_layout_interleaved(pair.dv[0], 100, 1, &data);
	assert_int_equal(ibv_wr_complete(pair.ex[0]), 0);
	pair_expect(&pair, 1, IBV_WC_DRIVER1);
	read_ok(key->rkey, 0, 200);
	for (int i = 0; i < 100; i++)
		assert_memory_equal(memory[0] + 2 * i, memory[1] + 4 * i, 2);

	start(1);
	mlx5dv_wr_mkey_configure(pair.dv[0], key, 1, &no_attributes);
	mlx5dv_wr_set_mkey_layout_list(pair.dv[0], 1, &second);
	assert_int_equal(ibv_wr_complete(pair.ex[0]), 0);
	pair_expect(&pair, 1, IBV_WC_DRIVER1);
	read_ok(key->rkey, 0, 32);
	assert_memory_equal(memory[0], memory[2], 32);
	rdma(IBV_WR_RDMA_READ, key->rkey, 0, 33);
	pair_expect_error(&pair, 2, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mlx5dv_destroy_mkey(key), 0);
}

static void invalidate(uint32_t rkey)
{
	struct ibv_send_wr wr = {.wr_id = 9,
				 .opcode = IBV_WR_LOCAL_INV,
				 .send_flags = IBV_SEND_SIGNALED,
				 .invalidate_rkey = rkey};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(pair.qp[0], &wr, &bad), 0);
	pair_expect(&pair, 9, IBV_WC_LOCAL_INV);
}

/* "To clear configuration of mkey, use ibv_post_send() with IBV_WR_LOCAL_INV" */
static void invalidated_key_takes_a_new_layout(void **state)
{
	struct mlx5dv_mkey *key = new_key(1, 0);
	struct ibv_sge sge = {.addr = (uintptr_t)memory[1], .length = 256, .lkey = mr[1]->lkey};

	(void)state;
	for (int i = 0; i < 3; i++) {
		sge.addr++;
		configure_list(key, IBV_ACCESS_REMOTE_READ, 1, &sge);
		read_ok(key->rkey, 0, 256);
		assert_memory_equal(memory[0], memory[1] + i + 1, 256);
		invalidate(key->rkey);
	}
	rdma(IBV_WR_RDMA_READ, key->rkey, 0, 1);
	pair_expect_error(&pair, 2, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mlx5dv_destroy_mkey(key), 0);
}

/* MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG: the program chooses the low byte; the number before is stale. */
static void tag_of_a_live_key(void **state)
{
	struct mlx5dv_mkey *key = new_key(1, MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG);
	struct ibv_sge sge = {.addr = (uintptr_t)memory[1], .length = 256, .lkey = mr[1]->lkey};
	uint32_t before = key->rkey;

	(void)state;
	configure_list(key, IBV_ACCESS_REMOTE_READ, 1, &sge);
	read_ok(before, 0, 256);
	key->lkey |= 0x77;
	key->rkey = key->lkey;
	configure_list(key, IBV_ACCESS_REMOTE_READ, 1, &sge);
	memset(memory[0], 0, 256);
	read_ok(key->rkey, 0, 256);
	assert_memory_equal(memory[0], memory[1], 256);
	rdma(IBV_WR_RDMA_READ, before, 0, 256);
	pair_expect_error(&pair, 2, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mlx5dv_destroy_mkey(key), 0);
}

/* Pieces without bytes have no part in the layout. */
static void empty_pieces(void **state)
{
	struct mlx5dv_mkey *key = new_key(4, 0);
	struct ibv_sge sge[4] = {
		{.addr = (uintptr_t)memory[2], .length = 0, .lkey = mr[2]->lkey},
		{.addr = (uintptr_t)memory[1], .length = 8, .lkey = mr[1]->lkey},
		{.addr = 0, .length = 0, .lkey = 0},
		{.addr = (uintptr_t)memory[2], .length = 8, .lkey = mr[2]->lkey},
	};

	(void)state;
	configure_list(key, IBV_ACCESS_REMOTE_READ, 4, sge);
	read_ok(key->rkey, 0, 16);
	assert_memory_equal(memory[0], memory[1], 8);
	assert_memory_equal(memory[0] + 8, memory[2], 8);
	rdma(IBV_WR_RDMA_READ, key->rkey, 0, 17);
	pair_expect_error(&pair, 2, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mlx5dv_destroy_mkey(key), 0);
}

/* "In order to use MKEY with RDMA operations it must be configured with a layout." */
static void key_without_a_layout(void **state)
{
	struct mlx5dv_mkey *key = new_key(4, 0);

	(void)state;
	start(1);
	mlx5dv_wr_mkey_configure(pair.dv[0], key, 1, &no_attributes);
	mlx5dv_wr_set_mkey_access_flags(pair.dv[0], IBV_ACCESS_REMOTE_READ);
	assert_int_equal(ibv_wr_complete(pair.ex[0]), 0);
	pair_expect(&pair, 1, IBV_WC_DRIVER1);
	rdma(IBV_WR_RDMA_READ, key->rkey, 0, 1);
	pair_expect_error(&pair, 2, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mlx5dv_destroy_mkey(key), 0);
}

/* A refused chain posts nothing, and the QP works on. (Profile man: too few setters are refused.) */
static void refused_chain(void **state)
{
	struct mlx5dv_mkey *key = new_key(4, 0);
	struct ibv_sge sge = {.addr = (uintptr_t)memory[1], .length = 256, .lkey = mr[1]->lkey};
	struct ibv_wc wc;

	(void)state;
	start(1);
	mlx5dv_wr_mr_list(pair.dv[0], key, IBV_ACCESS_REMOTE_READ, 1, &sge);
	mlx5dv_wr_mkey_configure(pair.dv[0], key, 2, &no_attributes);
	mlx5dv_wr_set_mkey_access_flags(pair.dv[0], 0);
	assert_int_equal(ibv_wr_complete(pair.ex[0]), EINVAL);
	assert_int_equal(ibv_poll_cq(pair.cq, 1, &wc), 0);
	start(1);
	mlx5dv_wr_mr_list(pair.dv[0], key, IBV_ACCESS_REMOTE_READ, 1, &sge);
	ibv_wr_abort(pair.ex[0]);
	assert_int_equal(ibv_poll_cq(pair.cq, 1, &wc), 0);
	configure_list(key, IBV_ACCESS_REMOTE_READ, 1, &sge);
	read_ok(key->rkey, 0, 256);
	assert_memory_equal(memory[0], memory[1], 256);
	assert_int_equal(mlx5dv_destroy_mkey(key), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define TEST_LARGE(name) cmocka_unit_test_setup_teardown(name, set_up_large, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(list_example),
		TEST(interleaved_example),
		TEST(key_on_both_sides_of_a_send),
		TEST(key_inside_a_key),
		TEST(mr_builders),
		TEST(limits_of_a_default_queue),
		TEST_LARGE(more_entries_with_a_larger_work_request),
		TEST_LARGE(header_takes_an_entry_of_the_key),
		TEST(rights_are_overridden),
		TEST(layout_is_overridden),
		TEST(invalidated_key_takes_a_new_layout),
		TEST(tag_of_a_live_key),
		TEST(empty_pieces),
		TEST(key_without_a_layout),
		TEST(refused_chain),
	};

	return cmocka_run_group_tests_name("mkey_layout", tests, NULL, NULL);
}
