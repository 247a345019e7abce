/* SPDX-License-Identifier: BSD-2-Clause */
/* Fills memory, see fill.h. */
#include "fill.h"

#include <string.h>

#include "../model/choose.h"

enum { MARGIN = 512 };

/* Returns the end of all messages, as addressed by requests; without header. */
static uint32_t end_of_steps(const struct test_case *test_case)
{
	uint32_t end = 0;

	for (uint32_t i = 0; i < test_case->step_count; i++) {
		const struct step *step = &test_case->step[i];

		if (!step->configures && step->start + step->length > end)
			end = step->start + step->length;
	}
	return end;
}

/* Returns the end of the used part of an end's region. */
static uint32_t extent(const struct test_case *test_case, const struct model_end *end)
{
	uint32_t most = PLAIN_START + OTHER_LAYOUT_BYTES;
	const struct layout *over = &end->end->over;
	uint32_t repeat = over->repeat ? over->repeat : 1;

	if (!end->pooled)
		return PLAIN_START + end->end->plain + test_case->header + end_of_steps(test_case);
	for (uint64_t i = 0; i < end->pooled->key.length; i++)
		if (end->pooled->key.place[i] >= most)
			most = end->pooled->key.place[i] + 1;
	for (uint32_t i = 0; i < over->count; i++) {
		const struct piece *piece = &over->piece[i];
		uint32_t last = piece->at + (repeat - 1) * (piece->bytes + piece->skip) + piece->bytes;

		if (piece->plain && last > most)
			most = last;
	}
	return most;
}

static void scribble(uint8_t *bytes, size_t count, struct choose *choose, enum pattern pattern)
{
	uint8_t same = (uint8_t)choose_bits(choose);

	for (size_t i = 0; i < count; i += 8) {
		uint64_t word = choose_bits(choose);

		memcpy(bytes + i, &word, count - i < 8 ? count - i : 8);
	}
	if (pattern != PATTERN_RANDOM)
		memset(bytes, pattern == PATTERN_ZEROS ? 0 : pattern == PATTERN_ONES ? 0xff : same, count);
}

/* Access to a stream of @length bytes through @byte, for correct fields. */
struct stream {
	uint8_t *memory;
	const uint32_t *place; /* NULL: contiguous */
	uint64_t length;
};

static uint8_t *byte_of(const struct stream *stream, uint64_t at)
{
	return &stream->memory[stream->place ? stream->place[at] : at];
}

static void make_fields(const struct domain *domain, const struct stream *stream)
{
	uint8_t data[4160], field[GUARD_MOST];

	if (domain->kind == KIND_NONE)
		return;
	for (uint64_t number = 0; place_of_field(domain, number) + field_bytes(domain) <= stream->length; number++) {
		for (uint64_t i = 0; i < domain->block; i++)
			data[i] = *byte_of(stream, place_of_field(domain, number) - domain->block + i);
		field_make(domain, data, number, field);
		for (uint64_t i = 0; i < field_bytes(domain); i++)
			*byte_of(stream, place_of_field(domain, number) + i) = field[i];
	}
}

/* Returns the source as addressed by requests: from byte 0 on. Not through a key over the key. */
static struct stream stream_of_source(const struct test_case *test_case, const struct model_end *source)
{
	if (source->pooled)
		return (struct stream){source->memory, source->pooled->key.place, source->pooled->key.length};
	return (struct stream){source->memory + PLAIN_START + source->end->plain, NULL,
			       test_case->header + end_of_steps(test_case)};
}

/*
 * A source without signature holds the fields that the target's key expects on the wire, at the places given by the key
 * over that key. The header, which comes first in each message, shifts them.
 */
static void make_wire_fields(const struct test_case *test_case, const struct model_end *source,
			     struct model_end *target, struct choose *choose)
{
	static uint8_t wire[STREAM_MOST];
	struct stream to = stream_of_source(test_case, source), whole = {wire, NULL, STREAM_MOST};
	uint64_t at = test_case->header, most = 0;

	if (!end_resolve(target, 0, 0, end_of_steps(test_case), 0) || test_case->no_fields)
		return;
	for (uint32_t i = 0; i < target->span_count; i++)
		if (!target->span[i].plain && target->span[i].at + target->span[i].bytes > most)
			most = target->span[i].at + target->span[i].bytes;
	whole.length = most;
	scribble(wire, most, choose, test_case->pattern);
	make_fields(&target->end->signature.wire, &whole);
	for (uint32_t i = 0; i < target->span_count; i++) {
		const struct span *span = &target->span[i];

		for (uint64_t b = 0; b < span->bytes; b++, at++)
			if (!span->plain && at < to.length)
				*byte_of(&to, at) = wire[span->at + b];
	}
}

static void apply_patches(const struct test_case *test_case, const struct stream *stream)
{
	for (uint32_t i = 0; i < test_case->patch_count; i++) {
		const struct patch *patch = &test_case->patch[i];

		for (uint32_t b = 0; b < patch->count && patch->at + b < stream->length; b++) {
			uint8_t *byte = byte_of(stream, patch->at + b);

			*byte = patch->flips ? *byte ^ patch->bytes[b] : patch->bytes[b];
		}
	}
}

uint64_t input_bytes(const struct test_case *test_case, const struct model_end *source)
{
	return stream_of_source(test_case, source).length;
}

uint32_t fill_ends(const struct test_case *test_case, struct model_end *source, struct model_end *target)
{
	struct choose choose = choose_for(test_case->data, 1);
	uint32_t bytes = extent(test_case, source), other = extent(test_case, target);
	struct stream input;

	if (other > bytes)
		bytes = other;
	bytes = bytes < REGION - MARGIN ? bytes + MARGIN : REGION;
	scribble(source->memory, bytes, &choose, test_case->pattern);
	scribble(target->memory, bytes, &choose, PATTERN_RANDOM);
	input = stream_of_source(test_case, source);
	if (source->end->is_key && source->end->has_signature) {
		if (!test_case->no_fields)
			make_fields(&source->end->signature.memory, &input);
	} else if (target->end->is_key && target->end->has_signature) {
		make_wire_fields(test_case, source, target, &choose);
	}
	apply_patches(test_case, &input);
	return bytes;
}
