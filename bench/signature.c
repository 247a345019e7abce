/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WRITEs through keys with block signatures, compared with memcpy of the same data and with a program's own code (by_hand.h):
 * signatures inserted by the local key, checked and stripped or checked and passed through by the remote one. The other side is
 * plain memory, so that a row shows the cost of one key.
 */
#include "by_hand.h"

#include <stdlib.h>
#include <string.h>

/* A layout of up to four pieces and a signature, in one request. */
#define INLINE_FOR_SIGNATURE 124

static const char *const check_names[CHECK_COUNT] = {
	[CHECK_T10_CRC] = "T10-DIF CRC", [CHECK_T10_CHECKSUM] = "T10-DIF checksum",
	[CHECK_CRC32] = "CRC32",         [CHECK_CRC32C] = "CRC32C",
	[CHECK_CRC64] = "CRC64",
};

enum way { INSERT, STRIP, PASS };

static const struct {
	const char *name;
	work_fn *by_hand;
} ways[] = {
	[INSERT] = {"insert", by_hand_insert},
	[STRIP] = {"check, strip", by_hand_strip},
	[PASS] = {"check, pass", by_hand_pass},
};

enum { SIZES = 4 };

static const struct {
	const char *name;
	uint32_t bytes;
} sizes[SIZES] = {{"4 KiB", 4 << 10}, {"64 KiB", 64 << 10}, {"1 MiB", 1 << 20}, {"64 MiB", 64 << 20}};

/* Memory of blocks with signatures, of one format at a time: the device makes them from `source`. */
struct wire {
	struct ibv_mr *mr;
	struct message *holds; /* message that made its contents */
};

/* ---- goals ---------------------------------------------------------------------------------------------------- */

/* Goals as shares of memcpy, by the size of the message; 0: no goal. */
struct goals {
	double share[SIZES]; /* for blocks of 4096 bytes */
	double short_blocks; /* for 64 KiB in blocks of 512 bytes; 0: in proportion */
};

/* Returns the goals that a CPU can reach; NULL: long messages must only not be slower than by hand. */
static const struct goals *goals_of(enum check check)
{
	static const struct goals crc16_by_gfni = {.share = {0, 0.65, 0.9, 1}},
				  crc16_by_vpclmulqdq = {.share = {0, 0.4, 0.8, 0.9}},
				  crc32_by_vpclmulqdq = {.share = {0, 0.42, 0.85, 0.9}, .short_blocks = 0.6},
				  crc64_by_vpclmulqdq = {.share = {0, 0.42, 0.85, 0.9}},
				  checksum_by_avx512 = {.share = {0, 0.6, 0.9, 0.9}};
#ifdef __x86_64__
	bool avx512 = __builtin_cpu_supports("avx512bw"), gfni = __builtin_cpu_supports("gfni");
	bool vpclmulqdq = avx512 && __builtin_cpu_supports("vpclmulqdq");
#else
	bool avx512 = false, gfni = false, vpclmulqdq = false;
#endif

	switch (check) {
	case CHECK_T10_CRC:
		if (avx512 && gfni)
			return &crc16_by_gfni;
		return vpclmulqdq ? &crc16_by_vpclmulqdq : NULL;
	case CHECK_T10_CHECKSUM:
		return avx512 ? &checksum_by_avx512 : NULL;
	case CHECK_CRC64:
		return vpclmulqdq ? &crc64_by_vpclmulqdq : NULL;
	default:
		return vpclmulqdq ? &crc32_by_vpclmulqdq : NULL;
	}
}

static void set_goal(struct bench_case *c, const struct format *format, int size)
{
	const struct goals *goals = goals_of(format->check);

	if (!goals && size > 0) {
		c->goal = GOAL_PEER;
		c->limit = 1;
	} else if (goals && goals->share[size] != 0) {
		c->goal = GOAL_SPEED;
		/* With short blocks, data takes a smaller part of the time. */
		c->limit = goals->share[size] * (format->block < 4096 ? 0.75 : 1);
		if (format->block < 4096 && sizes[size].bytes == 64 << 10 && goals->short_blocks != 0)
			c->limit = goals->short_blocks;
	}
}

/* ---- keys ----------------------------------------------------------------------------------------------------- */

static struct mlx5dv_mkey *signature_key(struct device *device, struct pair *pair, const struct format *format,
					 bool in_memory, const struct ibv_mr *mr, uint32_t bytes)
{
	static const enum mlx5dv_sig_crc_type crc_types[] = {[CHECK_CRC32] = MLX5DV_SIG_CRC_TYPE_CRC32,
							     [CHECK_CRC32C] = MLX5DV_SIG_CRC_TYPE_CRC32C,
							     [CHECK_CRC64] = MLX5DV_SIG_CRC_TYPE_CRC64_XP10};
	bool is_t10dif = format->check <= CHECK_T10_CHECKSUM;
	const struct mlx5dv_sig_t10dif t10dif = {
		.bg_type = format->check == CHECK_T10_CRC ? MLX5DV_SIG_T10DIF_CRC : MLX5DV_SIG_T10DIF_CSUM,
		.app_tag = BY_HAND_APPLICATION_TAG,
		.ref_tag = BY_HAND_FIRST_REFERENCE_TAG,
		.flags = MLX5DV_SIG_T10DIF_FLAG_REF_REMAP,
	};
	const struct mlx5dv_sig_crc crc = {.type = is_t10dif ? 0 : crc_types[format->check],
					   .seed = format->check == CHECK_CRC64 ? UINT64_MAX : UINT32_MAX};
	struct mlx5dv_sig_block_domain domain = {
		.sig_type = is_t10dif ? MLX5DV_SIG_TYPE_T10DIF : MLX5DV_SIG_TYPE_CRC,
		.block_size = format->block == 512 ? MLX5DV_BLOCK_SIZE_512 : MLX5DV_BLOCK_SIZE_4096,
	};
	const struct mlx5dv_sig_block_attr attr = {
		.mem = in_memory ? &domain : NULL, .wire = &domain, .check_mask = 0xff};
	struct mlx5dv_mkey *key = key_new(device, MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE, 1);
	struct mlx5dv_qp_ex *dv = configure_begin(pair, key, 3);

	if (is_t10dif)
		domain.sig.dif = &t10dif;
	else
		domain.sig.crc = &crc;
	set_piece(dv, mr, bytes);
	mlx5dv_wr_set_mkey_sig_block(dv, &attr);
	configure_end(pair);
	return key;
}

/* ---- one row -------------------------------------------------------------------------------------------------- */

struct row {
	struct device *device;
	struct pair *pair;
	struct wire *wire;
	struct message *make_wire;
	struct format format;
	enum way way;
	uint32_t bytes, wire_bytes; /* of the data only, and with signatures */
	struct mlx5dv_mkey *key;
	struct message *message;
	struct by_hand by_hand;
	struct copies copies;
};

/* Rows of one format are adjacent, so this is rarely done. */
static void make_wire(void *subject)
{
	struct row *row = subject;

	if (row->wire->holds == row->make_wire || row->way == INSERT)
		return;
	post_and_poll(row->make_wire, 1);
	row->wire->holds = row->make_wire;
}

static void build(struct row *row)
{
	struct device *device = row->device;
	const struct ibv_mr *plain = row->way == INSERT ? device->source_mr : device->target_mr;
	uint32_t in_memory = row->way == PASS ? row->wire_bytes : row->bytes;

	row->key = signature_key(device, row->pair, &row->format, row->way == PASS, plain, in_memory);
	row->message = message_new(device, row->pair, IBV_WR_RDMA_WRITE, row->wire_bytes);
	if (row->way == INSERT) {
		row->message->sge.addr = 0;
		row->message->sge.lkey = row->key->lkey;
	} else {
		row->message->sge.addr = (uintptr_t)row->wire->mr->addr;
		row->message->sge.lkey = row->wire->mr->lkey;
		row->message->wr.wr.rdma.remote_addr = 0;
		row->message->wr.wr.rdma.rkey = row->key->rkey;
	}
	row->by_hand = (struct by_hand){
		.format = row->format,
		.to = device->target,
		.from = row->way == INSERT ? device->source : row->wire->mr->addr,
		.blocks = row->bytes / row->format.block,
	};
	row->copies =
		(struct copies){.to = device->target, .from = row->by_hand.from, .bytes = row->bytes, .pieces = 1};
}

/* Checks the data: the speed of wrong data means nothing. */
static void check_row(struct row *row)
{
	struct device *device = row->device;
	uint32_t length = row->way == STRIP ? row->bytes : row->wire_bytes;
	uint8_t *expected = allocate(row->wire_bytes);
	struct mlx5dv_mkey_err error;

	make_wire(row);
	ways[row->way].by_hand(&row->by_hand, 1);
	memcpy(expected, device->target, length);
	memset(device->target, 0, length);
	post_and_poll(row->message, 1);
	if (mlx5dv_mkey_check(row->key, &error) || error.err_type != MLX5DV_MKEY_NO_ERR)
		die("%s, %s: a signature is wrong", check_names[row->format.check], ways[row->way].name);
	/* ISA-L has no CRC of this polynomial to compare with; only the data is compared. */
	if (row->format.check == CHECK_CRC64 && row->way == INSERT)
		for (uint64_t i = 0; i < row->by_hand.blocks; i++)
			memcpy(expected + i * (row->format.block + 8) + row->format.block,
			       device->target + i * (row->format.block + 8) + row->format.block, 8);
	else if (row->format.check != CHECK_CRC64 && row->by_hand.wrong)
		die("%s, %s: by hand a signature is wrong", check_names[row->format.check], ways[row->way].name);
	if (memcmp(device->target, expected, length) != 0)
		die("%s, %s: the device and the program differ", check_names[row->format.check], ways[row->way].name);
	free(expected);
}

static void add_row(struct bench *bench, const struct row *model, const char *group, int size)
{
	struct row *row = allocate(sizeof(*row));
	struct bench_case c = {
		.group = group,
		.run = post_and_poll,
		.yardstick_name = "memcpy",
		.yardstick = copy_pieces,
		.peer_name = "by hand",
		.peer = ways[model->way].by_hand,
		.prepare = make_wire,
		.payload = sizes[size].bytes,
		.threads = true,
	};

	*row = *model;
	row->bytes = sizes[size].bytes;
	row->wire_bytes = row->bytes / row->format.block * (row->format.block + format_signature(&row->format));
	if (row->wire_bytes > row->device->size)
		return;
	build(row);
	check_row(row);
	c.subject = row->message;
	c.yardstick_subject = &row->copies;
	c.peer_subject = &row->by_hand;
	c.prepare_subject = row;
	set_goal(&c, &row->format, size);
	add_case(bench, &c, "%s, %s", ways[row->way].name, sizes[size].name);
}

/* ---- all of them ---------------------------------------------------------------------------------------------- */

/* Returns the message that fills the wire memory with as many blocks of @row's format as fit. */
static struct message *wire_maker(const struct row *row)
{
	uint32_t block = row->format.block, stride = block + format_signature(&row->format);
	uint32_t blocks = (uint32_t)(row->device->size / stride);
	struct message *message = message_new(row->device, row->pair, IBV_WR_RDMA_WRITE, blocks * stride);

	message->sge.addr = 0;
	message->sge.lkey =
		signature_key(row->device, row->pair, &row->format, false, row->device->source_mr, blocks * block)
			->lkey;
	message->wr.wr.rdma.remote_addr = (uintptr_t)row->wire->mr->addr;
	message->wr.wr.rdma.rkey = row->wire->mr->rkey;
	return message;
}

static void add_format(struct bench *bench, struct row *row)
{
	char *group = allocate(64);

	snprintf(group, 64, "signatures: %s, %u", check_names[row->format.check], row->format.block);
	if (!group_wanted(bench, group))
		return;
	row->make_wire = wire_maker(row);
	for (row->way = INSERT; row->way <= PASS; row->way++) {
		/* Storing and comparing a CRC cost the same: one such row is enough. */
		if (row->way == PASS && row->format.check != CHECK_T10_CRC)
			continue;
		for (int size = 0; size < SIZES; size++)
			add_row(bench, row, group, size);
	}
}

/* Compares a key that could have a signature and has none with a key that could not. */
static void add_without(struct bench *bench, struct device *device, struct pair *pair, int size)
{
	struct bench_case c = {
		.group = "signatures: none",
		.run = post_and_poll,
		.yardstick_name = "plain key",
		.yardstick = post_and_poll,
		.payload = sizes[size].bytes,
		.goal = GOAL_SPEED,
		.limit = 0.95,
		.threads = true,
	};
	struct message *message[2];

	for (int i = 0; i < 2; i++) {
		struct mlx5dv_mkey *key = key_new(device, i ? MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE : 0, 1);

		set_piece(configure_begin(pair, key, 2), device->source_mr, sizes[size].bytes);
		configure_end(pair);
		message[i] = message_new(device, pair, IBV_WR_RDMA_WRITE, sizes[size].bytes);
		message[i]->sge.addr = 0;
		message[i]->sge.lkey = key->lkey;
		post_and_poll(message[i], 1);
	}
	c.yardstick_subject = message[0];
	c.subject = message[1];
	add_case(bench, &c, "key without its signature, %s", sizes[size].name);
}

/* Compares one block with a WRITE of the same memory through a plain region. */
static void add_one_block(struct bench *bench, struct row *model, enum way way, bool threads)
{
	struct row *row = allocate(sizeof(*row));
	struct message *plain = message_new(model->device, model->pair, IBV_WR_RDMA_WRITE, model->format.block);

	*row = *model;
	row->way = way;
	row->bytes = row->format.block;
	row->wire_bytes = row->bytes + format_signature(&row->format);
	build(row);
	check_row(row);
	add_case(bench,
		 &(struct bench_case){.group = "signatures: one block",
				      .run = post_and_poll,
				      .subject = row->message,
				      .yardstick_name = "plain region",
				      .yardstick = post_and_poll,
				      .yardstick_subject = plain,
				      .prepare = make_wire,
				      .prepare_subject = row,
				      .payload = row->bytes,
				      .goal = GOAL_TIME,
				      .limit = 2.2,
				      .threads = threads},
		 "T10-DIF CRC, %s, 4 KiB%s", ways[way].name, threads ? "" : ", one thread");
}

static void add_one_blocks(struct bench *bench, struct row *row)
{
	row->format = (struct format){.check = CHECK_T10_CRC, .block = 4096};
	row->make_wire = wire_maker(row);
	for (int threads = 0; threads < 2; threads++)
		for (enum way way = INSERT; way <= STRIP; way++)
			add_one_block(bench, row, way, threads);
}

void add_signature_cases(struct bench *bench, struct device *device)
{
	static const uint32_t blocks[] = {4096, 512};
	struct pair *pair = allocate(sizeof(*pair));
	struct wire *wire = allocate(sizeof(*wire));
	struct row row = {.device = device, .pair = pair, .wire = wire};

	if (!group_wanted(bench, "signatures"))
		return;
	pair_create(device, &(struct pair_attr){.depth = 64, .builders = true, .max_inline = INLINE_FOR_SIGNATURE},
		    pair);
	wire->mr = device_register(device, buffer_new(device->size, 2), device->size);
	for (int i = 0; i < 2; i++) {
		row.format.block = blocks[i];
		for (row.format.check = 0; row.format.check < CHECK_COUNT; row.format.check++)
			add_format(bench, &row);
	}
	if (group_wanted(bench, "signatures: one block"))
		add_one_blocks(bench, &row);
	for (int size = 0; size < SIZES - 1; size++)
		add_without(bench, device, pair, size);
}
