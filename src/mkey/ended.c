/* SPDX-License-Identifier: BSD-2-Clause */
/* Ring of the keys that ended last. */
#include "mkey/ended.h"

#include <stdlib.h>

#include "core/timer.h"
#include "hca/hca.h"

#define KEPT 256

struct ended_ring {
	uint64_t made;
	struct ended_key key[KEPT];
};

struct ended_ring *ended_ring_new(void)
{
	return calloc(1, sizeof(struct ended_ring));
}

void ended_keep(struct hca *hca, uint32_t number, uint8_t kind)
{
	const struct ended_key key = {.number = number, .kind = kind, .at = clock_now_ns()};
	struct ended_ring *ring = hca->ended;

	if (!ring)
		return;
	pthread_mutex_lock(&hca->refused_lock);
	ring->key[ring->made++ % KEPT] = key;
	pthread_mutex_unlock(&hca->refused_lock);
}

bool ended_find(struct hca *hca, uint32_t number, struct ended_key *out)
{
	struct ended_ring *ring = hca->ended;
	bool found = false;

	if (!ring)
		return false;
	pthread_mutex_lock(&hca->refused_lock);
	for (uint64_t i = ring->made; !found && i && i + KEPT > ring->made; i--) {
		*out = ring->key[(i - 1) % KEPT];
		found = out->number == number;
	}
	pthread_mutex_unlock(&hca->refused_lock);
	return found;
}

uint64_t ended_ms(const struct ended_key *key)
{
	return (clock_now_ns() - key->at) / 1000000;
}

void ended_explain(struct hca *hca, uint32_t number, struct refusal *why)
{
	struct ended_key key;

	if (ended_find(hca, number, &key))
		*why = (struct refusal){RULE_KEY_ENDED_BEFORE, {number, key.kind, ended_ms(&key)}};
}
