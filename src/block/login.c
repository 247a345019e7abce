/* SPDX-License-Identifier: BSD-2-Clause */
/* Crypto logins, and import of plaintext or wrapped DEKs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/crypto.h>

#include "block/cipher.h"
#include "block/import_keys.h"
#include "block/commands.h"
#include "hca/hca.h"
#include "explain/refusal.h"

/* AES key wrap adds 8 bytes (RFC 3394). */
#define WRAP_BYTES 8
#define KEYTAG_BYTES 8

struct hca_login {
	struct hca_context *context;
	const struct import_kek *kek;
};

bool hca_crypto_operational(const struct hca *hca)
{
	return hca->settings.crypto == CRYPTO_WRAPPED && hca->import_keys && hca->import_keys->kek_count;
}

static bool credential_matches(const struct import_kek *kek, const struct credential *stored,
			       const struct hca_login_attr *attr)
{
	uint8_t plain[CREDENTIAL_BYTES + WRAP_BYTES];
	bool good = import_unwrap(kek, plain, attr->credential, attr->credential_bytes) &&
		    CRYPTO_memcmp(plain, stored->value, CREDENTIAL_BYTES) == 0;

	OPENSSL_cleanse(plain, sizeof(plain));
	return good;
}

/* Returns 0 with *@kek set, or -EINVAL. */
static int check_login(struct hca *hca, const struct hca_login_attr *attr, const struct import_kek **kek,
		       struct refusal *why)
{
	const struct credential *stored = credential_find(hca->import_keys, attr->credential_id);

	*kek = import_kek_find(hca->import_keys, attr->import_kek_id);
	if (!*kek || !stored)
		return REFUSAL(why, EINVAL, RULE_LOGIN_ID, attr->credential_id, attr->import_kek_id);
	if (!attr->credential || attr->credential_bytes != CREDENTIAL_BYTES + WRAP_BYTES)
		return REFUSAL(why, EINVAL, RULE_LOGIN_CREDENTIAL_LENGTH, attr->credential_bytes,
			       CREDENTIAL_BYTES + WRAP_BYTES);
	if (!credential_matches(*kek, stored, attr))
		return REFUSAL(why, EINVAL, RULE_LOGIN_CREDENTIAL, attr->credential_id, attr->import_kek_id);
	return 0;
}

int hca_login_create(struct hca_context *context, const struct hca_login_attr *attr, struct hca_login **out,
		     struct refusal *why)
{
	struct hca *hca = context->hca;
	struct hca_login *login;
	const struct import_kek *kek;
	bool exists;
	int error;

	if (!hca_crypto_operational(hca))
		return REFUSAL(why, EOPNOTSUPP, RULE_LOGIN_NOT_OPERATIONAL, 0);
	if (hca_logged_in(context))
		return REFUSAL(why, EEXIST, RULE_LOGIN_EXISTS, 0);
	error = check_login(hca, attr, &kek, why);
	if (error)
		return error;
	login = malloc(sizeof(*login));
	if (!login)
		return -ENOMEM;
	*login = (struct hca_login){.context = context, .kek = kek};
	pthread_mutex_lock(&hca->lock);
	exists = context->login;
	if (!exists)
		__atomic_store_n(&context->login, login, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&hca->lock);
	if (exists) {
		free(login);
		return REFUSAL(why, EEXIST, RULE_LOGIN_EXISTS, 0);
	}
	reference_get(&context->references);
	*out = login;
	return 0;
}

void hca_login_destroy(struct hca_login *login)
{
	struct hca_context *context = login->context;

	pthread_mutex_lock(&context->hca->lock);
	__atomic_store_n(&context->login, NULL, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&context->hca->lock);
	free(login);
	reference_put(&context->references);
}

bool hca_logged_in(const struct hca_context *context)
{
	return __atomic_load_n(&context->login, __ATOMIC_ACQUIRE) != NULL;
}

/* Returns the KEK of the login, which lives as long as the device, or NULL. */
static const struct import_kek *login_kek(struct hca_context *context)
{
	const struct import_kek *kek = NULL;

	pthread_mutex_lock(&context->hca->lock);
	if (context->login)
		kek = context->login->kek;
	pthread_mutex_unlock(&context->hca->lock);
	return kek;
}

/* Copies the key, unwrapped. */
static int import_key(struct hca_context *context, const struct hca_dek_attr *attr, uint8_t *plain, size_t bytes,
		      struct refusal *why)
{
	const struct import_kek *kek;

	if (!attr->wrapped) {
		memcpy(plain, attr->key, bytes);
		return 0;
	}
	kek = login_kek(context);
	if (!kek)
		return REFUSAL(why, EINVAL, RULE_DEK_NO_LOGIN, 0);
	if (!import_unwrap(kek, plain, attr->key, bytes + WRAP_BYTES))
		return REFUSAL(why, EINVAL, RULE_DEK_UNWRAP, bytes + WRAP_BYTES, kek->id);
	return 0;
}

int hca_dek_create(struct hca_context *context, const struct hca_pd *pd, const struct hca_dek_attr *attr, uint32_t *id,
		   struct refusal *why)
{
	struct dek_attr dek = {.pd = pd->number, .key_bytes = attr->key_bytes, .has_keytag = attr->has_keytag};
	uint8_t plain[sizeof(dek.key) + KEYTAG_BYTES + WRAP_BYTES];
	int error = import_key(context, attr, plain, attr->key_bytes + (attr->has_keytag ? KEYTAG_BYTES : 0), why);

	if (!error) {
		memcpy(dek.key, plain, attr->key_bytes);
		if (attr->has_keytag)
			memcpy(dek.keytag, plain + attr->key_bytes, KEYTAG_BYTES);
		error = dek_create(context->hca, &dek, id);
	}
	OPENSSL_cleanse(plain, sizeof(plain));
	OPENSSL_cleanse(&dek, sizeof(dek));
	return error;
}

void hca_dek_destroy(struct hca *hca, uint32_t id)
{
	dek_destroy(hca, id);
}
