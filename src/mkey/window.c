/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks binds of memory windows. */
#include "mkey/window.h"

#include <errno.h>

#include "hca/hca.h"
#include "mkey/ended.h"

/*
 * IBTA C10-74, ibv_bind_mw(3). Adapters check neither, as their keys do not have IBV_ACCESS_MW_BIND (mlx5-formats 4.12).
 */
static int window_check_rights(const struct walk_access *access, const struct mapping *next,
			       const struct mapping *region, struct refusal *why)
{
	if (access->hca->settings.profile == PROFILE_CONNECTX)
		return 0;
	if (!region->bind_allowed)
		return REFUSAL(why, EACCES, RULE_BIND_NOT_ALLOWED, next->number, region->number);
	if (next->rights & (RIGHT_REMOTE_WRITE | RIGHT_ATOMIC) && !(region->rights & RIGHT_LOCAL_WRITE))
		return REFUSAL(why, EACCES, RULE_BIND_RIGHTS, next->number, region->number, next->rights,
			       region->rights);
	return 0;
}

static int window_check_region(const struct walk_access *access, struct mapping *next, struct refusal *why)
{
	struct layout_entry *entry = &next->entries[0];
	const struct mkey *key = mkey_find(access->hca, entry->key);
	const struct mapping *region;
	int error;

	region = key ? mkey_mapping(key) : NULL;
	if (!region || region->number != entry->key || region->free) {
		error = REFUSAL(why, EACCES, RULE_BIND_REGION_UNKNOWN, next->number, entry->key);
		ended_explain(access->hca, entry->key, why);
		return error;
	}
	if (!mapping_is_direct(region) || region->kind == KEY_NULL)
		return REFUSAL(why, EACCES, RULE_BIND_NOT_A_REGION, next->number, entry->key, region->kind);
	if (region->pd != next->pd)
		return REFUSAL(why, EACCES, RULE_BIND_DOMAIN, next->number, next->pd, entry->key, region->pd);
	error = window_check_rights(access, next, region, why);
	if (error)
		return error;
	if (!mapping_covers(region, entry->address, entry->bytes))
		return REFUSAL(why, EACCES, RULE_BIND_RANGE, next->number, entry->address, entry->bytes, entry->key,
			       region->start, region->length);
	entry->serial = region->serial;
	return 0;
}

void window_count(struct hca *hca, const struct mapping *map, int change)
{
	const struct layout_entry *entry = &map->entries[0];
	struct mkey *region;

	if ((map->kind != KEY_WINDOW_1 && map->kind != KEY_WINDOW_2) || map->free || !map->count)
		return;
	region = mkey_find(hca, entry->key);
	if (region && mkey_mapping(region)->serial == entry->serial)
		__atomic_add_fetch(&region->windows, change, __ATOMIC_RELAXED);
}

int window_check(const struct walk_access *access, struct mapping *next, struct refusal *why)
{
	if (next->free)
		return 0;
	if (next->kind == KEY_WINDOW_2 && !next->length)
		return REFUSAL(why, EACCES, RULE_BIND_EMPTY, next->number);
	if (next->form != LAYOUT_LIST || next->count != 1 || next->length > next->entries[0].bytes)
		return REFUSAL(why, EACCES, RULE_BIND_FORM, next->number, next->count, next->length);
	/* IBTA 10.6.7.2.3. */
	if (next->kind == KEY_WINDOW_2 && next->qpn != access->qpn)
		return REFUSAL(why, EACCES, RULE_BIND_OTHER_QP, next->number, next->qpn, access->qpn);
	return window_check_region(access, next, why);
}
