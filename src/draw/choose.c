/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses which parts of a long layout are shown. */
#include "draw/parts.h"

#include <string.h>

/* Merges ranges that touch or have a single number between them: an elision takes as much room. */
static void chosen_merge(struct chosen *chosen)
{
	uint32_t last = 0;

	for (uint32_t i = 1; i < chosen->count; i++) {
		if (chosen->range[i].first <= chosen->range[last].end + 1) {
			if (chosen->range[i].end > chosen->range[last].end)
				chosen->range[last].end = chosen->range[i].end;
		} else {
			chosen->range[++last] = chosen->range[i];
		}
	}
	chosen->count = last + 1;
	if (chosen->range[last].end + 1 == chosen->limit)
		chosen->range[last].end = chosen->limit;
}

void chosen_add(struct chosen *chosen, uint64_t first, uint64_t end)
{
	uint32_t at = 0;

	if (end > chosen->limit)
		end = chosen->limit;
	if (first >= end || chosen->count == CHOSEN_RANGES)
		return;
	while (at < chosen->count && chosen->range[at].first <= first)
		at++;
	memmove(&chosen->range[at + 1], &chosen->range[at], (chosen->count - at) * sizeof(chosen->range[0]));
	chosen->range[at].first = first;
	chosen->range[at].end = end;
	chosen->count++;
	chosen_merge(chosen);
}

void chosen_add_around(struct chosen *chosen, uint64_t number, uint64_t around)
{
	chosen_add(chosen, number > around ? number - around : 0,
		   number >= UINT64_MAX - around ? UINT64_MAX : number + around + 1);
}
