/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For dek.c and cipher.c only.
 *
 * A DEK has one reference until dek_destroy(), and one per dek_get() or dek_hold(). Releasing the last one wipes the key
 * and frees the DEK. Contexts stay in their list as long as the DEK lives. The thread that set `busy` owns the context.
 */
#ifndef SOFTHCA_BLOCK_DEK_H
#define SOFTHCA_BLOCK_DEK_H

#include <openssl/evp.h>

#include "block/cipher.h"
#include "block/xts.h"

#define CACHE_LINE 64

/* An OpenSSL context, complete except for the tweak. Kept, because expanding the keys takes longer than a data unit. */
struct cipher_context {
	bool busy; /* atomic */
	EVP_CIPHER_CTX *evp;
	struct cipher_context *next;
} __attribute__((aligned(CACHE_LINE)));

/* Each thread uses one list, so that few threads write to the same cache lines. */
#define CONTEXT_LISTS 8

struct context_list {
	struct cipher_context *first; /* atomic */
} __attribute__((aligned(CACHE_LINE)));

enum { DECRYPT, ENCRYPT, DIRECTIONS };

struct dek {
	struct hca *hca;
	uint32_t id;
	uint32_t references; /* atomic */
	struct dek_attr attr;
	struct xts_keys keys; /* if filled, contexts are not used */
	bool equal_halves;    /* both halves of the key are equal; unused if `keys` is filled */
	struct context_list contexts[DIRECTIONS][CONTEXT_LISTS];
};

/**
 * Expands the keys for the CPU's own instructions. Otherwise creates the first context of each direction, so that
 * cipher_transform() has one even if memory runs out. Returns 0 or -ENOMEM.
 */
int cipher_init(struct dek *dek);
void cipher_contexts_free(struct dek *dek);

#endif
