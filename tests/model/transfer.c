/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies bytes in the model, see transfer.h. */
#include "transfer.h"

#include <string.h>

uint64_t spans_length(const struct span *span, uint32_t count)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count; i++)
		bytes += span[i].length;
	return bytes;
}

/* Finds byte @offset of the side; returns false if it is refused, or does not exist. */
static bool find(const struct model *model, const struct side *side, uint64_t offset, struct spot *spot)
{
	for (uint32_t i = 0; i < side->count; i++) {
		const struct span *span = &side->span[i];

		if (offset >= span->length) {
			offset -= span->length;
			continue;
		}
		/* An SGE may not exceed the end of the address space, whatever the key. */
		if (span->address + offset < span->address)
			return false;
		if (!keys_locate(&model->keys, span->key, span->address + offset, side->wanted, side->accessor, spot))
			return false;
		if (spot->run > span->length - offset)
			spot->run = span->length - offset;
		return true;
	}
	return false;
}

bool side_is_loose(struct model *model, const struct side *side, uint64_t offset, uint64_t length)
{
	while (length) {
		struct spot spot;

		if (!find(model, side, offset, &spot))
			return false;
		if (spot.run > length)
			spot.run = length;
		if (spot.block != NOWHERE && memchr(&model->memory.loose[spot.block][spot.offset], 1, spot.run))
			return true;
		offset += spot.run;
		length -= spot.run;
	}
	return false;
}

bool side_allows(const struct model *model, const struct side *side, uint64_t offset, uint64_t length)
{
	if (side->bytes)
		return true;
	while (length) {
		struct spot spot;

		if (!find(model, side, offset, &spot))
			return false;
		if (spot.run > length)
			spot.run = length;
		offset += spot.run;
		length -= spot.run;
	}
	return true;
}

/* Returns the next bytes of a side: NULL for those of the null region. */
static uint8_t *next_bytes(struct model *model, const struct side *side, uint64_t offset, uint64_t length,
			   struct spot *spot)
{
	if (side->bytes) {
		*spot = (struct spot){NOWHERE, 0, length};
		return side->bytes + offset;
	}
	if (!find(model, side, offset, spot))
		*spot = (struct spot){NOWHERE, 0, length};
	if (spot->run > length)
		spot->run = length;
	return spot->block == NOWHERE ? NULL : model->memory.shadow[spot->block] + spot->offset;
}

/* Returns true if a byte of the side was written in this step. */
static bool is_fresh(struct model *model, const struct side *side, uint64_t offset, uint64_t length)
{
	bool found = false;

	while (length) {
		struct spot spot;

		next_bytes(model, side, offset, length, &spot);
		if (spot.block != NOWHERE)
			found |= memchr(&model->memory.fresh[spot.block][spot.offset], 1, spot.run) != NULL;
		offset += spot.run;
		length -= spot.run;
	}
	return found;
}

static bool marked[BLOCKS][BLOCK_BYTES];

/* Marks the bytes of a side; returns true if one of them was marked before. */
static bool mark(struct model *model, const struct side *side, uint64_t offset, uint64_t length, bool value)
{
	bool before = false;

	while (length) {
		struct spot spot;

		next_bytes(model, side, offset, length, &spot);
		if (spot.block != NOWHERE) {
			before |= memchr(&marked[spot.block][spot.offset], 1, spot.run) != NULL;
			memset(&marked[spot.block][spot.offset], value, spot.run);
		}
		offset += spot.run;
		length -= spot.run;
	}
	return before;
}

void side_loosen(struct model *model, const struct side *side, uint64_t offset, uint64_t length)
{
	while (length) {
		struct spot spot;

		next_bytes(model, side, offset, length, &spot);
		if (spot.block != NOWHERE) {
			memset(&model->memory.loose[spot.block][spot.offset], true, spot.run);
			memset(&model->memory.fresh[spot.block][spot.offset], true, spot.run);
		}
		offset += spot.run;
		length -= spot.run;
	}
	model->memory.any_loose = true;
}

bool sides_overlap(struct model *model, const struct side *to, uint64_t to_offset, const struct side *from,
		   uint64_t length)
{
	bool found = false;

	mark(model, from, 0, length, true);
	for (uint64_t done = 0; done < length;) {
		struct spot spot;

		next_bytes(model, to, to_offset + done, length - done, &spot);
		found |= mark(model, to, to_offset + done, spot.run, true);
		done += spot.run;
	}
	mark(model, from, 0, length, false);
	mark(model, to, to_offset, length, false);
	return found;
}

/* The target is loose if its source is. */
static void pass_on(struct memory *memory, const struct spot *there, const struct spot *here)
{
	if (there->block == NOWHERE)
		return;
	memset(&memory->fresh[there->block][there->offset], true, here->run);
	if (here->block == NOWHERE)
		memset(&memory->loose[there->block][there->offset], false, here->run);
	else
		memcpy(&memory->loose[there->block][there->offset], &memory->loose[here->block][here->offset],
		       here->run);
}

void side_copy(struct model *model, const struct side *to, uint64_t to_offset, const struct side *from,
	       uint64_t from_offset, uint64_t length)
{
	if (from->overlaps || (model->pipelined && from->early && is_fresh(model, from, from_offset, length))) {
		side_loosen(model, to, to_offset, length);
		return;
	}
	while (length) {
		struct spot there, here;
		uint8_t *target = next_bytes(model, to, to_offset, length, &there);
		uint8_t *source = next_bytes(model, from, from_offset, there.run, &here);

		if (target && source)
			memcpy(target, source, here.run);
		else if (target)
			memset(target, 0, here.run);
		pass_on(&model->memory, &there, &here);
		to_offset += here.run;
		from_offset += here.run;
		length -= here.run;
	}
}
