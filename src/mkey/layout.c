/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses translation entries. */
#include "mkey/layout.h"

#include <errno.h>
#include <string.h>

/* Second word of a repeat block. List entries have their key there, and key indices begin above this value. */
#define REPEAT_BLOCK 0x400u
#define LIST_ENTRY_MAX (UINT64_C(1) << 31) /* meaning of byte count 0 */

static uint64_t entry_bytes(const struct mapping *next, const struct mlx5_wqe_umr_klm_seg *klm)
{
	if (next->log_entity)
		return UINT64_C(1) << next->log_entity;
	return klm->byte_count ? be32toh(klm->byte_count) : LIST_ENTRY_MAX;
}

/*
 * Appends list entries after the first @count entries of @next. An all-zero entry is padding to a multiple of four, or a
 * gap (mlx5-formats 1.9), recorded in *@gap. Entries of a fixed size have no byte count, so they are never gaps.
 */
static void parse_entries(struct mapping *next, uint32_t count, const uint8_t *entries, uint32_t bytes, bool *gap)
{
	for (uint32_t at = 0; at < bytes; at += sizeof(struct mlx5_wqe_umr_klm_seg)) {
		struct mlx5_wqe_umr_klm_seg klm;

		memcpy(&klm, entries + at, sizeof(klm));
		if (!next->log_entity && !klm.byte_count && !klm.mkey) {
			*gap = true;
			continue;
		}
		next->gaps |= *gap;
		next->entries[count++] = (struct layout_entry){
			.address = be64toh(klm.address),
			.bytes = entry_bytes(next, &klm),
			.key = be32toh(klm.mkey),
		};
	}
	next->count = count;
}

static bool is_repeat(const struct mapping *next, const struct mlx5_wqe_umr_repeat_block_seg *block)
{
	return !next->log_entity && be32toh(block->op) == REPEAT_BLOCK;
}

static void end_list(struct mapping *next)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < next->count; i++) {
		next->entries[i].before = total;
		total += next->entries[i].bytes;
	}
	next->form = LAYOUT_LIST;
	next->repeat = 1;
	next->period = total;
}

static int layout_parse_list(struct mapping *next, const uint8_t *entries, uint32_t bytes)
{
	bool gap = false;

	next->gaps = false;
	parse_entries(next, 0, entries, bytes, &gap);
	end_list(next);
	return 0;
}

int layout_replace(struct mapping *next, uint32_t number, uint32_t offset, const uint8_t *entries, uint32_t bytes,
		   struct refusal *why)
{
	struct mlx5_wqe_umr_repeat_block_seg block;
	uint32_t behind = offset + bytes / 16, old = next->form == LAYOUT_NONE ? 0 : next->count;
	uint32_t kept = old < offset ? old : offset, moved = old > behind ? old - behind : 0;
	bool gap = old < offset;

	memcpy(&block, entries, sizeof(block));
	if (next->form == LAYOUT_REPEAT || is_repeat(next, &block) || (old && next->gaps))
		return REFUSAL(why, EACCES, RULE_UMR_OFFSET, number, offset);
	next->gaps = false;
	/* The later entries stay in place for now: the new entries need no more room than those they replace. */
	parse_entries(next, kept, entries, bytes, &gap);
	next->gaps |= gap && moved;
	memmove(&next->entries[next->count], &next->entries[behind], moved * sizeof(next->entries[0]));
	next->count += moved;
	end_list(next);
	return 0;
}

static int layout_parse_repeat(struct mapping *next, uint32_t number, const uint8_t *entries, uint32_t bytes,
			       struct refusal *why)
{
	struct mlx5_wqe_umr_repeat_block_seg block;
	uint32_t count, room = bytes / 16 - 1;
	uint64_t total = 0;

	memcpy(&block, entries, sizeof(block));
	count = be16toh(block.num_ent);
	if (count > room)
		return REFUSAL(why, EACCES, RULE_UMR_REPEAT_ENTRIES, number, count, room);
	for (uint32_t i = 0; i < count; i++) {
		struct mlx5_wqe_umr_repeat_ent_seg wire;

		memcpy(&wire, entries + sizeof(block) + i * sizeof(wire), sizeof(wire));
		next->entries[i] = (struct layout_entry){
			.address = be64toh(wire.va),
			.bytes = be16toh(wire.byte_count),
			.before = total,
			.stride = be16toh(wire.stride),
			.key = be32toh(wire.memkey),
		};
		total += next->entries[i].bytes;
	}
	next->form = LAYOUT_REPEAT;
	next->count = count;
	next->repeat = be32toh(block.repeat_count);
	next->period = total;
	return 0;
}

int layout_parse(struct mapping *next, uint32_t number, const uint8_t *entries, uint32_t bytes, struct refusal *why)
{
	struct mlx5_wqe_umr_repeat_block_seg block;

	memcpy(&block, entries, sizeof(block));
	if (is_repeat(next, &block))
		return layout_parse_repeat(next, number, entries, bytes, why);
	return layout_parse_list(next, entries, bytes);
}
