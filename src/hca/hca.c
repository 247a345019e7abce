/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices, contexts and protection domains. */
#include "hca/hca.h"

#include <errno.h>
#include <stdlib.h>

#include "core/epoch.h"

uint64_t hca_random(struct hca *hca)
{
	/* splitmix64 over a shared counter; reproducible under a seed if only one thread calls. */
	uint64_t z = __atomic_add_fetch(&hca->random_state, 0x9e3779b97f4a7c15, __ATOMIC_RELAXED);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

const char *hca_name(const struct hca *hca)
{
	return hca->name;
}

const struct settings *hca_settings(const struct hca *hca)
{
	return &hca->settings;
}

__be64 hca_guid(const struct hca *hca)
{
	return hca->guid;
}

uint64_t hca_clock_ns(const struct hca *hca)
{
	(void)hca;
	return clock_now_ns();
}

const struct hca_gid *hca_gids(const struct hca *hca, size_t *count)
{
	*count = hca->gid_count;
	return hca->gids;
}

int hca_open(struct hca *hca, struct event_queue *async, struct hca_context **out)
{
	struct hca_context *context = calloc(1, sizeof(*context));

	if (!context)
		return -ENOMEM;
	context->hca = hca;
	context->async = async;
	*out = context;
	return 0;
}

int hca_close(struct hca_context *context)
{
	if (reference_count(&context->references))
		return -EBUSY;
	free(context);
	return 0;
}

int hca_pd_alloc(struct hca_context *context, struct hca_pd **out)
{
	struct hca_pd *pd = calloc(1, sizeof(*pd));
	struct hca *hca = context->hca;

	if (!pd)
		return -ENOMEM;
	if (id_table_alloc(&hca->pds, &pd->number)) {
		free(pd);
		return -ENOMEM;
	}
	pd->context = context;
	reference_get(&context->references);
	id_table_publish(&hca->pds, pd->number, pd);
	*out = pd;
	return 0;
}

struct hca_pd *hca_pd_find(const struct hca_context *context, uint32_t number)
{
	struct hca_pd *pd;

	epoch_enter();
	pd = id_table_find(&context->hca->pds, number);
	epoch_leave();
	return pd && pd->context == context ? pd : NULL;
}

int hca_pd_dealloc(struct hca_pd *pd)
{
	if (reference_count(&pd->references))
		return -EBUSY;
	id_table_unpublish(&pd->context->hca->pds, pd->number);
	id_table_release(&pd->context->hca->pds, pd->number);
	reference_put(&pd->context->references);
	free(pd);
	return 0;
}

uint32_t hca_pd_number(const struct hca_pd *pd)
{
	return pd->number;
}

struct hca *hca_pd_device(const struct hca_pd *pd)
{
	return pd->context->hca;
}

int hca_dm_alloc(struct hca_context *context, size_t length, uint32_t log_align, void **addr)
{
	return dm_pool_alloc(&context->hca->dm, length, log_align, addr);
}

void hca_dm_free(struct hca_context *context, void *addr, size_t length)
{
	dm_pool_free(&context->hca->dm, addr, length);
}
