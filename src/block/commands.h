/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of encryption: logins and DEKs; see process/commands.h. */
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

/** True if the device has the import KEKs and credentials that wrapped DEKs need (SOFTHCA_CRYPTO, SOFTHCA_CRYPTO_FILE). */
bool hca_crypto_operational(const struct hca *hca);

struct hca_login_attr {
	uint32_t credential_id, import_kek_id;
	const void *credential; /* wrapped by the import KEK */
	size_t credential_bytes;
};

/**
 * Logs @context in, once at a time. Returns 0, -EOPNOTSUPP (the device has no keys for it), -EEXIST (it is), -EINVAL (unknown
 * ids, wrong credential), all of these with @why, or -ENOMEM. A login keeps its context.
 */
int hca_login_create(struct hca_context *context, const struct hca_login_attr *attr, struct hca_login **login,
		     struct refusal *why);
void hca_login_destroy(struct hca_login *login);
/** True if @context is logged in. */
bool hca_logged_in(const struct hca_context *context);

struct hca_dek_attr {
	unsigned int key_bytes; /* of both keys together: 32 or 64 */
	bool has_keytag;        /* 8 bytes behind them */
	const void *key;        /* keys and tag; wrapped, 8 bytes more */
	bool wrapped;           /* by the import KEK of the context's login */
};

/**
 * A DEK of @pd; @context is the one that is logged in. Returns 0, -EINVAL with @why (does not unwrap, no login, equal keys),
 * -ENOMEM. @id: 24 bits, not 0.
 */
int hca_dek_create(struct hca_context *context, const struct hca_pd *pd, const struct hca_dek_attr *attr, uint32_t *id,
		   struct refusal *why);
/** Keys that are configured with it go on until they are configured anew. */
void hca_dek_destroy(struct hca *hca, uint32_t id);

#endif
