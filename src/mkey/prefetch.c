/* SPDX-License-Identifier: BSD-2-Clause */
/* Prefetches pages of on-demand regions (ibv_advise_mr(3)). */
#include <errno.h>

#include "core/epoch.h"
#include "hca/hca.h"
#include "mkey/key.h"
#include "mkey/pages.h"

/* Checks the range and sets *@memory. Inside an epoch section. */
static int prefetch_memory(struct hca_pd *pd, uint32_t lkey, uint64_t address, uint64_t length, bool write,
			   const uint8_t **memory)
{
	struct mkey *key = mkey_find(pd->context->hca, lkey);
	const struct mapping *map = key ? mkey_mapping(key) : NULL;

	if (!map || map->number != lkey)
		return -ENOENT;
	if (!mapping_is_direct(map))
		return -EINVAL;
	if (map->kind != KEY_ON_DEMAND && map->kind != KEY_IMPLICIT)
		return -ENOENT;
	if (map->pd != pd->number || (write && !(map->rights & RIGHT_LOCAL_WRITE)))
		return -EPERM;
	if (!mapping_covers(map, address, length))
		return -EFAULT;
	*memory = mapping_memory(map, address);
	return 0;
}

int hca_mr_prefetch(struct hca_pd *pd, uint32_t lkey, uint64_t address, uint64_t length, bool write, bool populate)
{
	const uint8_t *memory = NULL;
	int error;

	epoch_enter();
	error = prefetch_memory(pd, lkey, address, length, write, &memory);
	epoch_leave();
	/* Outside the epoch section, because it may take long. The region may end meanwhile: it is not pinned. */
	if (!error && populate)
		error = pages_present(memory, length, write);
	return error;
}
