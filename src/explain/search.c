/* SPDX-License-Identifier: BSD-2-Clause */
/* Searches for a limit, see search.h. */
#include "explain/search.h"

#include "core/tunables.h"

#include <stddef.h>

#define SEARCH_NS (TUNABLE_SEARCH_MS * UINT64_C(1000000))

static bool is_limit(enum explain_rule rule)
{
	return rule == RULE_QP_MAX_INLINE || rule == RULE_QP_MAX_SEND_SGE;
}

bool search_takes(struct search *search, const char *device, const struct explain_record *record)
{
	if (!is_limit(record->rule))
		return false;
	if (record->time_ns < search->until_ns) {
		search->until_ns = record->time_ns + SEARCH_NS;
		return true;
	}
	if (search->device)
		return search->record.rule == record->rule;
	search->device = device;
	search->record = *record;
	return true;
}

void search_found(struct search *search, uint64_t now_ns)
{
	if (!search->device && now_ns >= search->until_ns)
		return;
	search->device = NULL;
	search->until_ns = now_ns + SEARCH_NS;
}

const char *search_due(struct search *search, uint64_t before_ns, struct explain_record *record)
{
	const char *device = search->device;

	if (!device || search->record.time_ns >= before_ns)
		return NULL;
	*record = search->record;
	search->device = NULL;
	return device;
}
