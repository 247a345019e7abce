/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a DEK is made of; for dek.c and cipher.c only.
 *
 * A DEK holds one reference of its own until dek_destroy(), and one per dek_get(). The last one frees it and wipes the
 * key. `contexts` only grows: a context is in its list for as long as the DEK lives, and whoever holds `busy` owns it.
 */
#ifndef SOFTHCA_BLOCK_DEK_H
#define SOFTHCA_BLOCK_DEK_H

#include <openssl/evp.h>

#include "block/cipher.h"
#include "block/xts.h"

#define CACHE_LINE 64

/* A cipher that is ready but for the tweak. Expanding the keys costs more than a data unit. */
struct cipher_context {
	bool busy; /* atomic */
	EVP_CIPHER_CTX *evp;
	struct cipher_context *next;
} __attribute__((aligned(CACHE_LINE)));

/* Threads have a list each, or share one with few others, so that they do not write to the same cache lines. */
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
	struct xts_keys keys; /* filled: no context is needed, and none is there */
	bool equal_halves;    /* not looked at if `keys` is filled */
	struct context_list contexts[DIRECTIONS][CONTEXT_LISTS];
};

/**
 * Expands the keys for the CPU's own instructions, or makes the first context of each direction, which cipher_transform()
 * falls back on. Returns 0 or -ENOMEM.
 */
int cipher_init(struct dek *dek);
/** Frees all contexts and the expanded keys in them. */
void cipher_contexts_free(struct dek *dek);

#endif
