/* SPDX-License-Identifier: BSD-2-Clause */
/* Simplifies cases, see shrink.h. Each change is tried separately. */
#include "shrink.h"

#include <string.h>

static bool (*still_fails)(const struct test_case *);

/* Returns true if the key is configured. A key without rights, layout or known signature fails, too, but differently. */
static bool is_configured(const struct test_case *test_case, const struct end *end, bool target)
{
	bool rights = false, layout = false, signature = false;

	for (uint32_t i = 0; i < test_case->step_count && end->is_key; i++) {
		const struct step *step = &test_case->step[i];

		if (!step->configures)
			break;
		if (step->of_target != target)
			continue;
		rights |= strchr(step->letters, 'a') != NULL;
		layout |= strchr(step->letters, 'l') != NULL;
		signature |= strchr(step->letters, end->has_signature ? 's' : 'r') != NULL;
		if (!end->has_signature && strchr(step->letters, 's'))
			return false;
	}
	if (end->has_signature && end->signature.memory.kind == KIND_NONE && end->signature.wire.kind == KIND_NONE)
		return false;
	return !end->is_key || (rights && layout && signature);
}

/* Keeps @changed if it is another case and fails, too. */
static bool keep(struct test_case *test_case, const struct test_case *changed)
{
	char before[LINE], after[LINE];
	struct test_case parsed;

	case_print(test_case, before);
	case_print(changed, after);
	/* A case that cannot be printed is not valid. */
	if (!strcmp(before, after) || !is_configured(changed, &changed->source, false) ||
	    !is_configured(changed, &changed->target, true) || !case_parse(after, &parsed) || !still_fails(changed))
		return false;
	*test_case = *changed;
	return true;
}

static bool drop_parts(struct test_case *test_case)
{
	bool changes = false;

	for (uint32_t i = test_case->step_count; i-- > 0;) {
		struct test_case changed = *test_case;

		memmove(&changed.step[i], &changed.step[i + 1], (changed.step_count - i - 1) * sizeof(struct step));
		changed.step_count--;
		changes |= keep(test_case, &changed);
	}
	for (uint32_t i = test_case->patch_count; i-- > 0;) {
		struct test_case changed = *test_case;

		memmove(&changed.patch[i], &changed.patch[i + 1], (changed.patch_count - i - 1) * sizeof(struct patch));
		changed.patch_count--;
		changes |= keep(test_case, &changed);
	}
	return changes;
}

static uint32_t bytes_of(const struct layout *layout)
{
	uint32_t bytes = 0;

	for (uint32_t i = 0; i < layout->count; i++)
		bytes += layout->piece[i].bytes;
	return layout->repeat ? bytes * layout->repeat : bytes;
}

static bool simplify_end(struct test_case *test_case, bool target)
{
	bool changes = false;
	struct test_case changed;

#define TRY(statement)                                                                                                 \
	do {                                                                                                           \
		struct end *end = target ? &changed.target : &changed.source;                                          \
		changed = *test_case;                                                                                  \
		statement;                                                                                             \
		changes |= keep(test_case, &changed);                                                                  \
	} while (0)

	TRY(end->over.count = 0);
	TRY(end->under.count = 0);
	TRY(end->under.count = 0;
	    end->layout =
		    ((struct layout){.count = 1, .piece = {{.at = PLAIN_START, .bytes = bytes_of(&end->layout)}}}));
	TRY(end->plain = 0);
	TRY(end->key = 0);
	TRY(end->signature.check = 0xff);
	TRY(end->signature.has_copy = false);
	TRY(end->signature.memory.kind = KIND_NONE);
	TRY(end->signature.wire.kind = KIND_NONE);
	TRY(end->signature.memory.remap = end->signature.wire.remap = false);
	TRY(end->signature.memory.app_escape = end->signature.wire.app_escape = false);
	TRY(end->signature.memory.app_ref_escape = end->signature.wire.app_ref_escape = false);
	TRY(end->signature.memory.ones = end->signature.wire.ones = false);
	TRY(end->signature.memory.app = end->signature.wire.app = 0x5678);
	TRY(end->signature.memory.ref = end->signature.wire.ref = 1);
	TRY(end->has_signature = false);
#undef TRY
	return changes;
}

static bool simplify(struct test_case *test_case)
{
	bool changes = false;
	struct test_case changed;

#define TRY(statement)                                                                                                 \
	do {                                                                                                           \
		changed = *test_case;                                                                                  \
		statement;                                                                                             \
		changes |= keep(test_case, &changed);                                                                  \
	} while (0)

	TRY(changed.header = 0);
	TRY(changed.late = changed.lazy = changed.together = false);
	TRY(changed.together = false);
	TRY(changed.extended = false);
	TRY(changed.pattern = PATTERN_RANDOM);
	TRY(changed.no_fields = false);
	for (uint32_t i = 0; i < test_case->step_count; i++) {
		if (test_case->step[i].configures) {
			/* In one request. */
			TRY(memcpy(changed.step[i].letters, "als", 4));
			continue;
		}
		TRY(changed.step[i].cut = 0);
		TRY(changed.step[i].back = false);
		TRY(changed.step[i].other = false);
		TRY(changed.step[i].operation = SEND);
		TRY(changed.step[i].start = 0);
		TRY(changed.step[i].length -= changed.step[i].length / 2);
	}
#undef TRY
	return changes;
}

void shrink(struct test_case *test_case, bool (*fails)(const struct test_case *test_case))
{
	bool changes = true;

	still_fails = fails;
	for (int round = 0; changes && round < 4; round++) {
		changes = drop_parts(test_case);
		changes |= simplify(test_case);
		changes |= simplify_end(test_case, false);
		changes |= simplify_end(test_case, true);
	}
}
