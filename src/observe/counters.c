/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of threads. */
#include "observe/counters.h"

#include <stdlib.h>
#include <string.h>

#include "observe/counter_file.h"

static const struct counter_info table[] = {
#define COUNTER(NAME, name, doc) [COUNTER_##NAME] = {name, doc},
#include "observe/counters.def"
};

const struct counter_info *counter_info(enum counter counter)
{
	return &table[counter];
}

static size_t size_of_all(void)
{
	return the_registry.count * COUNTER_COUNT * sizeof(uint64_t);
}

uint64_t *counters_attach(void)
{
	struct epoch_slot *slot = epoch_this_thread ? epoch_this_thread : epoch_attach();

	uint64_t *counters;

	/* A reused slot keeps the counters of its previous thread. While devices are being made, nothing is counted. */
	if (!slot->counters && the_registry.count) {
		counters = counter_file_row(the_registry.counters);
		__atomic_store_n(&slot->counters, counters ? counters : calloc(1, size_of_all()), __ATOMIC_RELEASE);
	}
	return slot->counters;
}

uint64_t counter_read(const struct hca *hca, enum counter counter)
{
	uint64_t sum = 0;

	for (const struct epoch_slot *slot = epoch_slots(); slot; slot = slot->next) {
		const uint64_t *counters = __atomic_load_n(&slot->counters, __ATOMIC_ACQUIRE);

		if (counters)
			sum += __atomic_load_n(counters + hca->index * COUNTER_COUNT + counter, __ATOMIC_RELAXED);
	}
	return sum;
}

void counters_after_fork(void)
{
	counter_file_after_fork(the_registry.counters);
	for (const struct epoch_slot *slot = epoch_slots(); slot; slot = slot->next)
		if (slot->counters)
			memset(slot->counters, 0, size_of_all());
}
