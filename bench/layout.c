/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WRITEs through indirect keys, on the source or on the target side, compared with the same copies in a plain loop: 64-byte
 * records with gaps of 64 bytes (interleaved), and pieces of equal size with gaps of the same size (list).
 */
#include "bench.h"

#include <string.h>

#define RECORD 64
#define STRIDE 128
#define MANY_PIECES 32
#define INLINE_FOR_MANY (MANY_PIECES * 16)

static void set_records(struct pair *pair, struct mlx5dv_mkey *key, const struct ibv_mr *mr, uint32_t bytes)
{
	struct mlx5dv_mr_interleaved records = {
		.addr = (uintptr_t)mr->addr, .bytes_count = RECORD, .bytes_skip = STRIDE - RECORD, .lkey = mr->lkey};

	mlx5dv_wr_set_mkey_layout_interleaved(configure_begin(pair, key, 2), bytes / RECORD, 1, &records);
	configure_end(pair);
}

static struct mlx5dv_mkey *interleaved_key(struct device *device, struct pair *pair, struct ibv_mr *mr, uint32_t bytes)
{
	struct mlx5dv_mkey *key = key_new(device, 0, 4);

	set_records(pair, key, mr, bytes);
	return key;
}

/* Times the UMR from post to polled completion, repeatedly on a live key. */
struct configuration {
	struct pair *pair;
	struct mlx5dv_mkey *key;
	struct ibv_mr *mr;
};

static void configure_again(void *subject, uint64_t count)
{
	const struct configuration *configuration = subject;

	while (count--)
		set_records(configuration->pair, configuration->key, configuration->mr, RECORD);
}

static void add_configuration(struct bench *bench, struct device *device, struct pair *pair)
{
	struct configuration *configuration = allocate(sizeof(*configuration));

	*configuration = (struct configuration){
		.pair = pair, .key = interleaved_key(device, pair, device->source_mr, RECORD), .mr = device->source_mr};
	for (int threads = 0; threads < 2; threads++)
		add_case(bench,
			 &(struct bench_case){.group = "layouts",
					      .run = configure_again,
					      .subject = configuration,
					      .yardstick_name = "bare model",
					      .yardstick = bare_model,
					      .threads = threads},
			 "configure a key%s", threads ? "" : ", one thread");
}

static struct mlx5dv_mkey *list_key(struct device *device, struct pair *pair, struct ibv_mr *mr, uint32_t bytes,
				    uint16_t pieces)
{
	struct ibv_sge list[MANY_PIECES];
	struct mlx5dv_mkey *key = key_new(device, 0, pieces);

	for (uint32_t i = 0; i < pieces; i++)
		list[i] = (struct ibv_sge){.addr = (uintptr_t)mr->addr + (size_t)2 * i * (bytes / pieces),
					   .length = bytes / pieces,
					   .lkey = mr->lkey};
	mlx5dv_wr_set_mkey_layout_list(configure_begin(pair, key, 2), pieces, list);
	configure_end(pair);
	return key;
}

/* Returns the copies that a WRITE of @bytes in @pieces makes, with gaps on the source or on the target side. */
static struct copies *same_copies(const struct device *device, uint32_t bytes, uint32_t piece, bool gaps_in_source)
{
	struct copies *copies = allocate(sizeof(*copies));

	*copies = (struct copies){
		.to = device->target,
		.from = device->source,
		.bytes = piece,
		.pieces = bytes / piece,
		.from_stride = gaps_in_source ? 2 * piece : piece,
		.to_stride = gaps_in_source ? piece : 2 * piece,
	};
	return copies;
}

/* Checks that the key moves the same data as the loop. */
static void check_against(struct device *device, struct message *message, work_fn *yardstick, struct copies *copies)
{
	size_t bytes = copies->pieces * copies->to_stride;
	uint8_t *expected = allocate(bytes);

	memset(device->target, 0, bytes);
	yardstick(copies, 1);
	memcpy(expected, device->target, bytes);
	memset(device->target, 0, bytes);
	post_and_poll(message, 1);
	if (memcmp(device->target, expected, bytes) != 0)
		die("a key did not place %zu bytes as the loop does", bytes);
}

struct layout {
	const char *name;
	uint32_t piece;
	work_fn *yardstick;
	bool gaps_in_source;
	enum goal goal;
};

static void add_layout(struct bench *bench, struct device *device, struct pair *pair, const struct layout *layout,
		       const struct mlx5dv_mkey *key, uint32_t bytes)
{
	struct message *message = message_new(device, pair, IBV_WR_RDMA_WRITE, bytes);
	struct copies *copies = same_copies(device, bytes, layout->piece, layout->gaps_in_source);

	if (layout->gaps_in_source) {
		message->sge.lkey = key->lkey;
		message->sge.addr = 0;
	} else {
		message->wr.wr.rdma.rkey = key->rkey;
		message->wr.wr.rdma.remote_addr = 0;
	}
	check_against(device, message, layout->yardstick, copies);
	add_case(bench,
		 &(struct bench_case){.group = "layouts",
				      .run = post_and_poll,
				      .subject = message,
				      .yardstick_name = "plain loop",
				      .yardstick = layout->yardstick,
				      .yardstick_subject = copies,
				      .payload = bytes,
				      .goal = layout->goal,
				      .limit = 2,
				      .threads = true},
		 "%s, %u KiB", layout->name, bytes >> 10);
}

void add_layout_cases(struct bench *bench, struct device *device)
{
	static const uint32_t sizes[] = {4 << 10, 64 << 10, 256 << 10, 1 << 20};
	static const struct layout gather = {"gather 64-byte records", RECORD, copy_records, true, GOAL_TIME},
				   scatter = {"scatter 64-byte records", RECORD, copy_records, false, GOAL_TIME};
	struct pair *pair = allocate(sizeof(*pair));

	if (!group_wanted(bench, "layouts"))
		return;
	pair_create(device, &(struct pair_attr){.depth = 64, .builders = true, .max_inline = INLINE_FOR_MANY}, pair);
	add_configuration(bench, device, pair);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		add_layout(bench, device, pair, &gather, interleaved_key(device, pair, device->source_mr, sizes[i]),
			   sizes[i]);
		add_layout(bench, device, pair, &scatter, interleaved_key(device, pair, device->target_mr, sizes[i]),
			   sizes[i]);
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct layout four = {"list of 4", sizes[i] / 4, copy_pieces, true, GOAL_NONE},
			      many = {"list of 32", sizes[i] / MANY_PIECES, copy_pieces, true, GOAL_NONE};

		add_layout(bench, device, pair, &four, list_key(device, pair, device->source_mr, sizes[i], 4),
			   sizes[i]);
		add_layout(bench, device, pair, &many, list_key(device, pair, device->source_mr, sizes[i], MANY_PIECES),
			   sizes[i]);
	}
}
