/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends of a transfer, see ends.h. */
#include "ends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct signature other_signature = {
	.memory = {.kind = KIND_CRC, .block = 4160, .guard = GUARD_CRC64, .ones = true},
	.wire = {.kind = KIND_T10, .block = 512, .guard = GUARD_T10_CSUM, .ones = true, .app = 0xdead, .ref = 77},
	.check = 0xff,
};

/* ---- layouts --------------------------------------------------------------------------------------------------- */

/* Repetition i of an entry begins at AT + i * (BYTES + SKIP) (mlx5dv_wr_mkey_configure(3)). */
static uint64_t lay(const struct layout *layout, uint32_t *place)
{
	uint32_t repeat = layout->repeat ? layout->repeat : 1;
	uint64_t length = 0;

	for (uint32_t i = 0; i < repeat; i++)
		for (uint32_t e = 0; e < layout->count; e++)
			for (uint32_t b = 0; b < layout->piece[e].bytes; b++)
				place[length++] =
					layout->piece[e].at + i * (layout->piece[e].bytes + layout->piece[e].skip) + b;
	return length;
}

void end_lay(struct model_end *end, bool other)
{
	static const struct layout other_layout = {.count = 1,
						   .piece = {{.at = PLAIN_START, .bytes = OTHER_LAYOUT_BYTES}}};
	static uint32_t under[STREAM_MOST];
	struct model_key *key = &end->pooled->key;

	key->memory = end->memory;
	if (other) {
		key->length = lay(&other_layout, key->place);
		return;
	}
	key->length = lay(&end->end->layout, key->place);
	if (!end->end->under.count)
		return;
	lay(&end->end->under, under);
	for (uint64_t i = 0; i < key->length; i++)
		key->place[i] = under[key->place[i]];
}

/* ---- configuring ----------------------------------------------------------------------------------------------- */

void end_configure(struct model_end *end, const char *letters)
{
	struct pooled_key *pooled = end->pooled;

	key_configured(&pooled->key);
	if (strchr(letters, 'r'))
		pooled->key.has_signature = false;
	if (strchr(letters, 's') || strchr(letters, 'j')) {
		pooled->key.has_signature = true;
		pooled->key.signature = strchr(letters, 's') ? end->end->signature : other_signature;
	}
	if (strchr(letters, 'l') || strchr(letters, 'k'))
		end_lay(end, strchr(letters, 'k'));
	if (pooled->errors.polled)
		pooled->errors.silent = pooled->errors.polled = false;
}

/* ---- spans ----------------------------------------------------------------------------------------------------- */

static void add_span(struct model_end *end, bool plain, uint64_t at, uint64_t bytes)
{
	if (!bytes)
		return;
	if (end->span_count == SPANS) {
		fprintf(stderr, "a message has more than %d pieces\n", SPANS);
		abort();
	}
	end->span[end->span_count++] = (struct span){plain, at, bytes};
}

/* Adds [@start, @start + @length) of the key in the request. */
static bool add_range(struct model_end *end, uint64_t start, uint64_t length)
{
	const struct layout *over = &end->end->over;
	uint32_t repeat = over->repeat ? over->repeat : 1;
	uint64_t at = 0, stop = start + length;

	if (!end->pooled) {
		add_span(end, true, PLAIN_START + end->end->plain + start, length);
		return true;
	}
	if (!over->count) {
		add_span(end, false, start, length);
		return true;
	}
	for (uint32_t i = 0; i < repeat; i++) {
		for (uint32_t e = 0; e < over->count; e++) {
			const struct piece *piece = &over->piece[e];
			uint64_t first = start > at ? start - at : 0;
			uint64_t last = stop - at < piece->bytes ? stop - at : piece->bytes;

			if (first < last)
				add_span(end, piece->plain,
					 piece->at + i * ((uint64_t)piece->bytes + piece->skip) + first, last - first);
			at += piece->bytes;
			if (at >= stop)
				return true;
		}
	}
	return !length;
}

bool end_resolve(struct model_end *end, uint32_t header, uint32_t start, uint32_t length, uint32_t cut)
{
	end->span_count = 0;
	add_span(end, true, 0, header);
	if (!cut || cut >= length)
		return add_range(end, start, length);
	return add_range(end, start, cut) && add_range(end, start + cut, length - cut);
}

bool end_fits(const struct model_end *end, bool transmits)
{
	for (uint32_t i = 0; i < end->span_count; i++)
		if (!end->span[i].plain && !key_fits(&end->pooled->key, transmits, end->span[i].at, end->span[i].bytes))
			return false;
	return true;
}

/*
 * mlx5dv_mkey_check(3): "The offset within the transfer where the error happened. In block signature, this is guaranteed
 * to be a block boundary offset". Stores the offset of the block in the message; span @i begins at @at; if the
 * message enters the key inside the block, the offset of the entry: earlier bytes belong to other SGEs.
 */
static void place_finding(const struct model_end *end, uint32_t i, uint64_t at, struct finding *finding)
{
	const struct model_key *key = &end->pooled->key;
	const struct span *span = &end->span[i];
	uint64_t begins = place_of_raw(&key->signature.wire, finding->raw), enters = span->at, here = span->at;

	if (!finding->fault || key->connectx)
		return;
	for (; begins < enters && i && !span[-1].plain && span[-1].at + span[-1].bytes == enters; i--)
		enters = (--span)->at;
	finding->offset = at + (begins < enters ? enters : begins) - here;
}

struct finding end_gather(const struct model_end *end, uint8_t *message)
{
	struct finding first = {.fault = FAULT_NONE}, found;
	uint64_t at = 0;

	for (uint32_t i = 0; i < end->span_count; i++) {
		const struct span *span = &end->span[i];

		if (span->plain) {
			memcpy(message + at, end->memory + span->at, span->bytes);
		} else {
			found = key_transmit(&end->pooled->key, span->at, span->bytes, message + at);
			place_finding(end, i, at, &found);
			if (!first.fault)
				first = found;
		}
		at += span->bytes;
	}
	return first;
}

struct finding end_scatter(const struct model_end *end, const uint8_t *message)
{
	struct finding first = {.fault = FAULT_NONE}, found;
	uint64_t at = 0;

	for (uint32_t i = 0; i < end->span_count; i++) {
		const struct span *span = &end->span[i];

		if (span->plain) {
			memcpy(end->memory + span->at, message + at, span->bytes);
		} else {
			found = key_receive(&end->pooled->key, span->at, span->bytes, message + at);
			place_finding(end, i, at, &found);
			if (!first.fault)
				first = found;
		}
		at += span->bytes;
	}
	return first;
}

/* ---- errors ---------------------------------------------------------------------------------------------------- */

void errors_found(struct pooled_key *pooled, struct finding finding, enum queue queue)
{
	struct errors *errors = &pooled->errors;

	if (!pooled->key.connectx && !errors->recorded.fault)
		errors->recorded = finding;
	if (!finding.fault || errors->silent || !pooled->key.connectx)
		return;
	errors->silent = true;
	errors->queued = finding;
	errors->queue = queue;
}

void errors_polled(struct errors *errors, enum queue queue)
{
	if (!errors->queued.fault || errors->queue != queue)
		return;
	errors->recorded = errors->queued;
	errors->queued.fault = FAULT_NONE;
	errors->polled = true;
}

bool errors_check(struct pooled_key *pooled, struct finding *finding)
{
	const struct model_key *key = &pooled->key;
	const struct domain *domain = pooled->errors.recorded.in_wire ? &key->signature.wire : &key->signature.memory;

	*finding = pooled->errors.recorded;
	if (!finding->fault)
		return true;
	if (key->connectx && (!key->has_signature || domain->kind == KIND_NONE))
		return false;
	pooled->errors.recorded.fault = FAULT_NONE;
	return true;
}
