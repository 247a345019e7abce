/* SPDX-License-Identifier: BSD-2-Clause */
/* Layouts as the wire format has them, see layout.h. */
#include "mkey/layout.h"

#include <errno.h>
#include <string.h>

#define REFUSAL(why, name, ...) (*(why) = (struct refusal){RULE_##name, {__VA_ARGS__}}, -EACCES)

/* Second word of a repeat block; as a key of a list entry it cannot occur, key indices begin above it. */
#define REPEAT_BLOCK 0x400u
#define LIST_ENTRY_MAX (UINT64_C(1) << 31) /* what a byte count of 0 stands for */

/*
 * A byte count of 0 is 2 GiB; an entry that is all zero is the padding to a multiple of four (mlx5-formats 1.9).
 */
static int parse_list(struct mapping *next, const uint8_t *entries, uint32_t bytes)
{
	uint64_t total = 0;
	uint32_t count = 0;

	for (uint32_t at = 0; at < bytes; at += sizeof(struct mlx5_wqe_umr_klm_seg)) {
		struct mlx5_wqe_umr_klm_seg klm;
		struct layout_entry *entry = &next->entries[count];

		memcpy(&klm, entries + at, sizeof(klm));
		if (!klm.byte_count && !klm.mkey)
			continue;
		*entry = (struct layout_entry){
			.address = be64toh(klm.address),
			.bytes = klm.byte_count ? be32toh(klm.byte_count) : LIST_ENTRY_MAX,
			.before = total,
			.key = be32toh(klm.mkey),
		};
		total += entry->bytes;
		count++;
	}
	next->form = LAYOUT_LIST;
	next->count = count;
	next->repeat = 1;
	next->period = total;
	return 0;
}

static int parse_repeat(struct mapping *next, uint32_t number, const uint8_t *entries, uint32_t bytes,
			struct refusal *why)
{
	struct mlx5_wqe_umr_repeat_block_seg block;
	uint32_t count, room = bytes / 16 - 1;
	uint64_t total = 0;

	memcpy(&block, entries, sizeof(block));
	count = be16toh(block.num_ent);
	if (count > room)
		return REFUSAL(why, UMR_REPEAT_ENTRIES, number, count, room);
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
	if (be32toh(block.op) == REPEAT_BLOCK)
		return parse_repeat(next, number, entries, bytes, why);
	return parse_list(next, entries, bytes);
}
