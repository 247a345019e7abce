/* SPDX-License-Identifier: BSD-2-Clause */
/* Data encryption keys of a device, see cipher.h. */
#include "block/dek.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/crypto.h>

#include "core/epoch.h"
#include "block/commands.h"
#include "hca/hca.h"

static void dek_free(struct dek *dek)
{
	cipher_contexts_free(dek);
	OPENSSL_cleanse(dek, sizeof(*dek));
	free(dek);
}

int dek_create(struct hca *hca, const struct dek_attr *attr, uint32_t *id)
{
	struct dek *dek;
	int error;

	if (attr->key_bytes != 32 && attr->key_bytes != 64)
		return -EINVAL;
	dek = aligned_alloc(CACHE_LINE, sizeof(*dek));
	if (!dek)
		return -ENOMEM;
	/* Not assigned as a whole: compilers may build that value on the stack, and leave the key there. */
	memset(dek, 0, sizeof(*dek));
	dek->hca = hca;
	dek->references = 1;
	dek->attr = *attr;
	error = cipher_init(dek);
	if (!error)
		error = id_table_alloc(&hca->deks, &dek->id);
	if (error) {
		dek_free(dek);
		return error;
	}
	*id = dek->id;
	id_table_publish(&hca->deks, dek->id, dek);
	return 0;
}

/* Makes DEK @id unknown and returns it, or NULL. */
static struct dek *dek_unpublish(struct hca *hca, uint32_t id)
{
	struct dek *dek;

	pthread_mutex_lock(&hca->lock);
	epoch_enter();
	dek = id_table_find(&hca->deks, id);
	epoch_leave();
	if (dek)
		id_table_unpublish(&hca->deks, id);
	pthread_mutex_unlock(&hca->lock);
	return dek;
}

int dek_destroy(struct hca *hca, uint32_t id)
{
	struct dek *dek = dek_unpublish(hca, id);

	if (!dek)
		return -ENOENT;
	/* Another thread may have found the DEK but not yet counted its reference. */
	epoch_synchronize();
	id_table_release(&hca->deks, id);
	dek_put(dek);
	return 0;
}

struct dek *dek_get(struct hca *hca, uint32_t id)
{
	struct dek *dek;

	epoch_enter();
	dek = id_table_find(&hca->deks, id);
	if (dek)
		reference_get(&dek->references);
	epoch_leave();
	return dek;
}

void dek_hold(struct dek *dek)
{
	reference_get(&dek->references);
}

void dek_put(struct dek *dek)
{
	if (__atomic_sub_fetch(&dek->references, 1, __ATOMIC_ACQ_REL) == 0)
		dek_free(dek);
}

uint32_t dek_pd(const struct dek *dek)
{
	return dek->attr.pd;
}

bool dek_accepts_keytag(const struct dek *dek, const uint8_t keytag[8])
{
	return !dek->attr.has_keytag || CRYPTO_memcmp(dek->attr.keytag, keytag, sizeof(dek->attr.keytag)) == 0;
}
