/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands of logins and DEKs, see process/commands.h. Any thread. */
#ifndef SOFTHCA_BLOCK_COMMANDS_H
#define SOFTHCA_BLOCK_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca;
struct hca_context;
struct hca_pd;

struct hca_login;
struct refusal;

/** Returns true if the device has import KEKs and credentials (SOFTHCA_CRYPTO, SOFTHCA_CRYPTO_FILE). */
bool hca_crypto_operational(const struct hca *hca);

struct hca_login_attr {
	uint32_t credential_id, import_kek_id;
	const void *credential; /* wrapped by the import KEK */
	size_t credential_bytes;
};

/**
 * Logs @context in, at most once; the login references it. Returns 0, -EOPNOTSUPP (the device has no import keys),
 * -EEXIST (logged in already), -EINVAL (unknown ids, wrong credential), these with @why, or -ENOMEM.
 */
int hca_login_create(struct hca_context *context, const struct hca_login_attr *attr, struct hca_login **login,
		     struct refusal *why);
void hca_login_destroy(struct hca_login *login);
bool hca_logged_in(const struct hca_context *context);

struct hca_dek_attr {
	unsigned int key_bytes; /* both keys together: 32 or 64 */
	bool has_keytag;        /* 8 bytes after the keys */
	const void *key;        /* keys and tag; 8 bytes longer if wrapped */
	bool wrapped;           /* wrapped by the import KEK of the context's login */
};

/**
 * Creates a DEK and stores its object id (24 bits, not 0) in @id. Returns 0, -EINVAL (with @why if @context is not
 * logged in, or the wrapped key does not unwrap), or -ENOMEM.
 */
int hca_dek_create(struct hca_context *context, const struct hca_pd *pd, const struct hca_dek_attr *attr, uint32_t *id,
		   struct refusal *why);
/** Mkeys configured with the DEK continue to work until they are reconfigured. */
void hca_dek_destroy(struct hca *hca, uint32_t id);

#endif
