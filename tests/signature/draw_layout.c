/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws layouts: lists, interleaved ones, keys over and under the key; cuts fall anywhere, also within fields. */
#include "draw.h"

enum { LIST_MOST = 12, GAP = 70, FIELD_16_BITS = 65535 };

uint32_t draw_cut(struct choose *c, const struct domain *domain, uint32_t length)
{
	uint32_t whole = domain->block + (uint32_t)field_bytes(domain), at;

	if (length < 2)
		return 0;
	at = 1 + (uint32_t)choose_below(c, length - 1);
	if (domain->kind == KIND_NONE || chance(c, 30))
		return at;
	/* The beginning of a block, of a field, within a field; and adjacent places. */
	at = at / whole * whole;
	if (chance(c, 60))
		at += domain->block + (chance(c, 50) ? (uint32_t)choose_below(c, field_bytes(domain)) : 0);
	if (chance(c, 25))
		at += (uint32_t)choose_below(c, 5) - 2;
	return at && at < length ? at : 1 + (uint32_t)choose_below(c, length - 1);
}

static uint32_t gap(struct choose *c)
{
	return chance(c, 50) ? 0 : (uint32_t)choose_below(c, GAP);
}

/* Cuts @length bytes into up to @most pieces, in order. Returns their number. */
static uint32_t cut_up(struct choose *c, const struct domain *domain, uint32_t length, uint32_t most, uint32_t *bytes)
{
	uint32_t cut[LIST_MOST + 1] = {0}, count = 1, pieces = 1 + (uint32_t)choose_below(c, most);

	for (uint32_t i = 1; i < pieces; i++) {
		uint32_t at = draw_cut(c, domain, length), place = count;

		while (place && cut[place - 1] > at)
			place--;
		if (!at || (place && cut[place - 1] == at))
			continue;
		for (uint32_t j = count; j > place; j--)
			cut[j] = cut[j - 1];
		cut[place] = at;
		count++;
	}
	for (uint32_t i = 0; i < count; i++)
		bytes[i] = (i + 1 < count ? cut[i + 1] : length) - cut[i];
	return count;
}

/* Draws pieces with a total of @length bytes, shuffled in the stream from *@free on. */
static void draw_list(struct choose *c, const struct domain *domain, uint32_t length, uint32_t *free,
		      struct layout *layout)
{
	uint32_t bytes[LIST_MOST], order[LIST_MOST];

	layout->repeat = 0;
	layout->count = cut_up(c, domain, length, chance(c, 30) ? 1 : LIST_MOST, bytes);
	for (uint32_t i = 0; i < layout->count; i++)
		order[i] = i;
	for (uint32_t i = 0; i < layout->count && layout->count > 1; i++) {
		uint32_t other = (uint32_t)choose_below(c, layout->count), swap = order[i];

		order[i] = order[other];
		order[other] = swap;
	}
	for (uint32_t i = 0; i < layout->count; i++) {
		*free += gap(c);
		layout->piece[order[i]] = (struct piece){.at = *free, .bytes = bytes[order[i]]};
		*free += bytes[order[i]];
	}
}

static void draw_interleaved(struct choose *c, const struct domain *domain, uint32_t length, uint32_t *free,
			     struct layout *layout)
{
	bool natural = domain->kind != KIND_NONE && chance(c, 50);
	uint32_t sum = 0, skips;

	layout->count = natural ? 2 : 1 + (uint32_t)choose_below(c, 4);
	for (uint32_t i = 0; i < layout->count; i++) {
		uint32_t bytes = 1 + (uint32_t)choose_below(c, chance(c, 50) ? 600 : 3000);

		if (natural)
			bytes = i ? (uint32_t)field_bytes(domain) : domain->block;
		/* Long keys have no short records: the model processes them a record at a time. */
		if (!natural && length > 40000 && bytes < 1000)
			bytes += 1000;
		layout->piece[i] = (struct piece){.bytes = bytes, .skip = gap(c)};
		sum += bytes;
	}
	layout->repeat = (length + sum - 1) / sum;
	/* Short records with wide gaps would exceed the region. */
	skips = (uint64_t)layout->repeat * (sum + layout->count * GAP) > REGION / 2 ? 0 : 1;
	for (uint32_t i = 0; i < layout->count; i++) {
		layout->piece[i].skip *= skips;
		*free += gap(c);
		layout->piece[i].at = *free;
		*free += layout->repeat * (layout->piece[i].bytes + layout->piece[i].skip);
	}
}

void draw_layout(struct choose *c, const struct domain *domain, uint32_t length, uint32_t *free, struct end *end)
{
	const struct domain none = {.kind = KIND_NONE};
	bool nested = chance(c, 20);
	uint32_t within = 0, *from = nested ? &within : free;

	if (chance(c, 30))
		draw_interleaved(c, domain, length, from, &end->layout);
	else
		draw_list(c, domain, length, from, &end->layout);
	if (nested)
		draw_list(c, &none, within, free, &end->under);
}

/* Draws repetitions over the key: of whole blocks, of blocks without fields, or of anything. */
static uint32_t draw_over_interleaved(struct choose *c, const struct domain *wire, uint32_t length, uint32_t *free,
				      struct layout *over)
{
	uint32_t bytes = 100 + (uint32_t)choose_below(c, 3000), skip = gap(c), plain;

	if (wire->kind != KIND_NONE && chance(c, 60)) {
		bytes = wire->block;
		skip = (uint32_t)field_bytes(wire);
		if (chance(c, 50)) {
			bytes += skip;
			skip = 0;
		}
	}
	if (bytes > length)
		bytes = length;
	over->count = 1;
	over->repeat = (length - bytes) / (bytes + skip) + 1;
	over->piece[0] = (struct piece){.bytes = bytes, .skip = skip};
	if (chance(c, 40)) {
		plain = 1 + (uint32_t)choose_below(c, 50);
		over->piece[over->count++] = (struct piece){.plain = true, .at = *free, .bytes = plain};
		*free += over->repeat * plain;
		bytes += plain;
	}
	return over->repeat * bytes;
}

uint32_t draw_over(struct choose *c, uint32_t length, uint32_t *free, struct end *end)
{
	const struct domain *wire = &end->signature.wire;
	struct layout *over = &end->over;
	uint32_t bytes[LIST_MOST], count, at = 0, sum = 0;

	if (chance(c, 35))
		return draw_over_interleaved(c, wire, length, free, over);
	count = cut_up(c, wire, length, 5, bytes);
	for (uint32_t i = 0; i < count; i++) {
		if (chance(c, 40)) {
			uint32_t plain = 1 + (uint32_t)choose_below(c, 300);

			over->piece[over->count++] = (struct piece){.plain = true, .at = *free, .bytes = plain};
			*free += plain;
			sum += plain;
		}
		/* Some pieces are omitted: the data after them is entered in the middle. */
		if (count == 1 || chance(c, 90)) {
			over->piece[over->count++] = (struct piece){.at = at, .bytes = bytes[i]};
			sum += bytes[i];
		}
		at += bytes[i];
	}
	if (!over->count) {
		over->piece[over->count++] = (struct piece){.at = 0, .bytes = length};
		sum = length;
	}
	return sum;
}
