/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes pictures of keys: the head, and the uses. */
#include "draw/picture.h"

#include <inttypes.h>
#include <unistd.h>

#include "hca/hca.h"
#include "draw/parts.h"
#include "draw/words.h"
#include "explain/names.h"

struct picture_fact *picture_fact(struct picture *picture, const char *name)
{
	struct picture_fact *fact = &picture->fact[picture->facts];

	if (picture->facts < PICTURE_FACTS - 1)
		picture->facts++;
	SAY(fact->name, "%s", name);
	fact->value[0] = '\0';
	return fact;
}

static const char *key_state_text(const struct mapping *map)
{
	bool window = map->kind == KEY_WINDOW_1 || map->kind == KEY_WINDOW_2;

	if (!map->free)
		return "live";
	if (!map->version)
		return window ? "not bound yet" : "not configured yet";
	return window ? "invalidated or unbound: it gives no access" : "invalidated: it gives no access";
}

static void describe_key(struct picture *picture, const struct picture_subject *subject)
{
	const struct mapping *map = subject->map;
	const struct hca *hca = subject->key->hca;

	picture->number = map->number;
	picture->serial = map->serial;
	picture->version = map->version;
	SAY(picture->title, "%s %s 0x%x", hca->name, key_kind_name(map->kind), map->number);
	SAY(picture->state, "%s", key_state_text(map));
	picture->live = !map->free;
	SAY(picture_fact(picture, "generation")->value,
	    "%" PRIu64 ".%" PRIu64 " of process %d: key %" PRIu64 " of the device, changed %s time%s", map->serial,
	    map->version, (int)getpid(), map->serial, COMMAS(map->version), map->version == 1 ? "" : "s");
	SAY(picture_fact(picture, "range")->value, "[0x%" PRIx64 ", +%s)", map->start, COMMAS(map->length));
	SAY(picture_fact(picture, "rights")->value, "%s", RIGHTS(map->rights));
	SAY(picture_fact(picture, "domain")->value, "protection domain 0x%x", map->pd);
	if (map->qpn == KEY_QPN_ANY)
		SAY_MORE(picture->fact[picture->facts - 1].value, ", any queue pair");
	else
		SAY_MORE(picture->fact[picture->facts - 1].value, ", queue pair 0x%x only", map->qpn);
}

static void describe_layout(struct picture *picture, const struct mapping *map)
{
	struct picture_fact *fact;

	if (map->kind != KEY_INDIRECT || map->form == LAYOUT_NONE)
		return;
	fact = picture_fact(picture, "layout");
	if (map->form == LAYOUT_LIST)
		SAY(fact->value, "list of %s entr%s", COMMAS(map->count), map->count == 1 ? "y" : "ies");
	else
		SAY(fact->value, "interleaved: %s entr%s of %s bytes in all, repeated %s times", COMMAS(map->count),
		    map->count == 1 ? "y" : "ies", COMMAS(map->period), COMMAS(map->repeat));
	for (uint32_t i = 0; map->form == LAYOUT_REPEAT && i < map->count && i < 8; i++) {
		char name[24];

		SAY(name, "entry %u", i);
		SAY(picture_fact(picture, name)->value, "%s bytes, every %s bytes from 0x%" PRIx64 " of key 0x%x",
		    COMMAS(map->entries[i].bytes), COMMAS(map->entries[i].stride), map->entries[i].address,
		    map->entries[i].key);
	}
	if (map->form == LAYOUT_REPEAT && map->count > 8)
		SAY(picture_fact(picture, "…")->value, "%s more entries", COMMAS(map->count - 8));
}

static void describe_uses(struct picture *picture, const struct key_uses *uses)
{
	for (uint32_t i = 0; uses && i < uses->count; i++) {
		const struct key_use *use = &uses->use[i];

		SAY(picture->use[picture->uses++].line,
		    "queue pair 0x%x, %s: %s time%s, %s bytes, within [0x%" PRIx64 ", +%s)", use->qpn,
		    RIGHTS(use->rights), COMMAS(use->times), use->times == 1 ? "" : "s", COMMAS(use->bytes), use->first,
		    COMMAS(use->end - use->first));
	}
	if (uses && uses->more)
		SAY(picture->use[picture->uses++].line, "… %s more accesses", COMMAS(uses->more));
}

static void sum_up_blocks(struct picture *picture)
{
	for (uint32_t i = 0; i < picture->blocks; i++) {
		picture->memory_fields |= *picture->block[i].memory_field;
		picture->wire_fields |= *picture->block[i].wire_field;
	}
}

void picture_make(struct picture *picture, const struct mkey *key, const struct key_uses *uses)
{
	struct picture_subject subject = {.key = key, .map = mkey_mapping(key)};

	*picture = (struct picture){.facts = 0};
	picture_failures(picture, &subject);
	describe_key(picture, &subject);
	describe_layout(picture, subject.map);
	picture_layout(picture, &subject);
	picture_blocks(picture, &subject);
	sum_up_blocks(picture);
	describe_uses(picture, uses);
}
