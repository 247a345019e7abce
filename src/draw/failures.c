/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds the failures of a key, from the rings of refused accesses and of explanations. */
#include <inttypes.h>
#include <string.h>

#include "draw/parts.h"
#include "draw/words.h"
#include "hca/hca.h"
#include "explain/rules.h"

bool refused_by_key(const struct picture_subject *subject)
{
	return subject->refused && KEY_INDEX(subject->access.why.args[0]) == subject->key->index &&
	       subject->access.why.rule <= RULE_KEY_NOT_MAPPED;
}

/* Fills @out with the explanation of @access, or with rule and figures alone if the ring has lost it. */
static void find_explanation(struct hca *hca, const struct refused_access *access, struct explain_record *out)
{
	struct explain_record record = {.serial = 0};

	*out = (struct explain_record){.rule = access->why.rule, .subject = {.qpn = access->qpn}};
	memcpy(out->args, access->why.args, sizeof(out->args));
	while (explain_previous(hca, access->qpn, record.serial, &record)) {
		if (record.rule != access->why.rule || memcmp(record.args, access->why.args, sizeof(record.args)) != 0)
			continue;
		*out = record;
		return;
	}
}

/* Returns NULL if the failure was counted with an equal one, or the picture is full. */
static struct picture_failure *picture_add_failure(struct picture *picture, struct hca *hca,
						   const struct explain_record *record)
{
	char line[sizeof(picture->failure[0].line)];
	struct picture_failure *failure = picture->failure;

	explain_render(hca->name, record, line, sizeof(line));
	for (; failure < picture->failure + picture->failures; failure++) {
		if (!strcmp(failure->line, line)) {
			failure->more++;
			return NULL;
		}
	}
	if (picture->failures == PICTURE_FAILURES)
		return NULL;
	picture->failures++;
	SAY(failure->line, "%s", line);
	return failure;
}

static bool access_matches(const struct refused_access *access, const struct mapping *map)
{
	return access->serial == map->serial && access->version == map->version;
}

static void picture_add_accesses(struct picture *picture, struct picture_subject *subject)
{
	struct hca *hca = subject->key->hca;
	struct refused_access access = {.number = 0};

	while (refused_previous(hca, subject->key->index, access.number, &access)) {
		struct picture_failure *failure;
		struct explain_record record;

		if (!access_matches(&access, subject->map))
			continue;
		find_explanation(hca, &access, &record);
		failure = picture_add_failure(picture, hca, &record);
		if (failure)
			SAY(failure->access, "%s of [0x%" PRIx64 ", +%s) by key 0x%x through queue pair 0x%x",
			    RIGHTS(access.rights), access.address, COMMAS(access.length), access.key, access.qpn);
		if (subject->refused)
			continue;
		subject->refused = true;
		subject->access = access;
	}
}

/* Returns true if the first figure of @rule is a key or window. */
static bool rule_names_key(enum explain_rule rule)
{
	const char *text = rule_text(rule)->text;

	return strstr(text, "key {0:x}") || strstr(text, "window {0:x}");
}

/* Returns true if @rule refuses an access; picture_add_accesses() adds these. */
static bool rule_is_of_access(enum explain_rule rule)
{
	return rule <= RULE_SEGMENT_WRAPS || (rule >= RULE_STAGE_RANGE && rule <= RULE_CIPHER_SHORT_UNIT);
}

static bool rule_is_of_block(enum explain_rule rule)
{
	return rule == RULE_BLOCK_GUARD || rule == RULE_BLOCK_APP_TAG || rule == RULE_BLOCK_REF_TAG;
}

/* Finds the latest record older than @before of this mapping with a @wanted rule. Returns false if there is none. */
static bool record_previous(const struct picture_subject *subject, bool (*wanted)(enum explain_rule rule),
			    uint64_t before, struct explain_record *out)
{
	out->serial = before;
	while (explain_previous(subject->key->hca, 0, out->serial, out) && out->serial > subject->map->explained)
		if (wanted(out->rule) && KEY_INDEX(out->args[0]) == subject->key->index)
			return true;
	return false;
}

bool bad_block_previous(const struct picture_subject *subject, uint64_t before, struct explain_record *out)
{
	return record_previous(subject, rule_is_of_block, before, out);
}

bool rule_concerns_key(enum explain_rule rule)
{
	return rule_names_key(rule) && !rule_is_of_access(rule);
}

void picture_failures(struct picture *picture, struct picture_subject *subject)
{
	struct explain_record record;
	uint64_t before = 0;

	picture_add_accesses(picture, subject);
	while (record_previous(subject, rule_concerns_key, before, &record)) {
		picture_add_failure(picture, subject->key->hca, &record);
		before = record.serial;
	}
}
