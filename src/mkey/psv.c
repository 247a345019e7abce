/* SPDX-License-Identifier: BSD-2-Clause */
/* State of signature domains. */
#include "mkey/psv.h"

#include <errno.h>
#include <stdlib.h>

#include "core/epoch.h"
#include "mkey/commands.h"

struct psv *psv_find(struct hca *hca, uint32_t index, uint32_t pd)
{
	struct psv *psv = id_table_find(&hca->psvs, index);

	return psv && psv->pd->number == pd ? psv : NULL;
}

static pthread_mutex_t *lock_of(const struct psv *psv)
{
	return &psv->pd->context->hca->psv_lock;
}

void psv_set(struct psv *psv, uint64_t transient)
{
	pthread_mutex_t *lock = lock_of(psv);

	pthread_mutex_lock(lock);
	psv->transient = transient;
	psv->serial = 0;
	pthread_mutex_unlock(lock);
}

uint32_t psv_begin(struct psv *psv, uint64_t serial, uint64_t version)
{
	pthread_mutex_t *lock = lock_of(psv);
	uint64_t start;

	pthread_mutex_lock(lock);
	if (psv->serial != serial || psv->version != version) {
		psv->serial = serial;
		psv->version = version;
		psv->start = psv->transient;
	}
	start = psv->start;
	pthread_mutex_unlock(lock);
	return (uint32_t)(start >> 32);
}

void psv_store(struct psv *psv, uint32_t running)
{
	pthread_mutex_t *lock = lock_of(psv);

	pthread_mutex_lock(lock);
	psv->transient = (uint64_t)running << 32;
	pthread_mutex_unlock(lock);
}

int hca_psv_create(struct hca_pd *pd, uint32_t *index)
{
	struct hca *hca = pd->context->hca;
	struct psv *psv = calloc(1, sizeof(*psv));

	if (!psv)
		return -ENOMEM;
	if (id_table_alloc(&hca->psvs, &psv->index)) {
		free(psv);
		return -ENOMEM;
	}
	psv->pd = pd;
	reference_get(&pd->references);
	id_table_publish(&hca->psvs, psv->index, psv);
	*index = psv->index;
	return 0;
}

int hca_psv_destroy(struct hca *hca, uint32_t index)
{
	struct psv *psv;

	epoch_enter();
	psv = id_table_find(&hca->psvs, index);
	epoch_leave();
	if (!psv)
		return -ENOENT;
	id_table_unpublish(&hca->psvs, index);
	epoch_synchronize();
	id_table_release(&hca->psvs, index);
	reference_put(&psv->pd->references);
	free(psv);
	return 0;
}
