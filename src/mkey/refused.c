/* SPDX-License-Identifier: BSD-2-Clause */
/* Ring of refused accesses. */
#include "mkey/refused.h"

#include <stdlib.h>
#include <string.h>

#include "hca/hca.h"

#define KEPT 64

struct refused_ring {
	uint64_t made;
	struct refused_access access[KEPT];
};

struct refused_ring *refused_ring_new(void)
{
	return calloc(1, sizeof(struct refused_ring));
}

void refused_keep(const struct walk_access *access, uint8_t rights, uint32_t number, uint64_t address, uint64_t length,
		  const struct refusal *why)
{
	struct hca *hca = access->hca;
	struct refused_ring *ring = hca->refused;
	const struct mkey *key = mkey_find(hca, number);
	const struct mapping *map = key ? mkey_mapping(key) : NULL;
	struct refused_access refused = {
		.key = number,
		.qpn = access->qpn,
		.rights = rights,
		.address = address,
		.length = length,
		.serial = map ? map->serial : 0,
		.version = map ? map->version : 0,
		.why = *why,
	};

	if (!ring)
		return;
	pthread_mutex_lock(&hca->refused_lock);
	refused.number = ++ring->made;
	ring->access[refused.number % KEPT] = refused;
	pthread_mutex_unlock(&hca->refused_lock);
}

bool refused_previous(struct hca *hca, uint32_t index, uint64_t before, struct refused_access *out)
{
	struct refused_ring *ring = hca->refused;
	bool found = false;

	if (!ring)
		return false;
	pthread_mutex_lock(&hca->refused_lock);
	if (!before || before > ring->made)
		before = ring->made + 1;
	for (uint64_t number = before - 1; !found && number && number + KEPT > ring->made; number--) {
		*out = ring->access[number % KEPT];
		found = KEY_INDEX(out->key) == index;
	}
	pthread_mutex_unlock(&hca->refused_lock);
	return found;
}

bool refused_latest(struct hca *hca, uint32_t qpn, enum explain_rule rule, const uint64_t *args,
		    struct refused_access *out)
{
	struct refused_ring *ring = hca->refused;
	bool found = false;

	if (!ring)
		return false;
	pthread_mutex_lock(&hca->refused_lock);
	for (uint64_t number = ring->made; !found && number && number + KEPT > ring->made; number--) {
		const struct refused_access *access = &ring->access[number % KEPT];

		found = access->qpn == qpn && access->why.rule == rule &&
			!memcmp(access->why.args, args, sizeof(access->why.args));
		if (found)
			*out = *access;
	}
	pthread_mutex_unlock(&hca->refused_lock);
	return found;
}
