/* SPDX-License-Identifier: BSD-2-Clause */
/* AES-XTS (IEEE Std 1619-2007): by xts.c if the CPU has its instructions, otherwise by OpenSSL. */
#include "block/cipher.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/crypto.h>
#include <openssl/err.h>

#include "block/dek.h"
#include "block/xts_blocks.h"
#include "core/cancellation.h"
#include "core/epoch.h"

/* IEEE 1619 5.1: at least 128 bits. OpenSSL: at most 2^20 blocks. */
#define SMALLEST_UNIT 16
#define LARGEST_UNIT (16u << 20)

/*
 * Held around OpenSSL's creation and freeing of contexts, and across a fork: OpenSSL takes locks there that it does not
 * hold across a fork. Using a context takes no lock.
 */
static pthread_mutex_t openssl_lock = PTHREAD_MUTEX_INITIALIZER;

void ciphers_before_fork(void)
{
	pthread_mutex_lock(&openssl_lock);
}

void ciphers_after_fork(bool child)
{
	(void)child;
	pthread_mutex_unlock(&openssl_lock);
}

static void cipher_context_free(struct cipher_context *context)
{
	WITHOUT_CANCELLATION;

	pthread_mutex_lock(&openssl_lock);
	EVP_CIPHER_CTX_free(context->evp);
	pthread_mutex_unlock(&openssl_lock);
	free(context);
}

/* Returns XTS, or ECB for encryption by keys with two equal halves, which OpenSSL's XTS refuses. */
static const EVP_CIPHER *cipher_of(const struct dek *dek, bool encrypt)
{
	bool small = dek->attr.key_bytes == 32;

	if (encrypt && dek->equal_halves)
		return small ? EVP_aes_128_ecb() : EVP_aes_256_ecb();
	return small ? EVP_aes_128_xts() : EVP_aes_256_xts();
}

/* The caller owns the context. Returns NULL without memory. */
static struct cipher_context *cipher_context_new(const struct dek *dek, bool encrypt)
{
	const EVP_CIPHER *cipher = cipher_of(dek, encrypt);
	struct cipher_context *context = aligned_alloc(CACHE_LINE, sizeof(*context));
	WITHOUT_CANCELLATION; /* OpenSSL reads its configuration at first use */
	bool ready;

	if (!context)
		return NULL;
	pthread_mutex_lock(&openssl_lock);
	/* This thread's error queue belongs to the program, so errors of these calls are removed. */
	ERR_set_mark();
	*context = (struct cipher_context){.busy = true, .evp = EVP_CIPHER_CTX_new()};
	ready = context->evp && EVP_CipherInit_ex(context->evp, cipher, NULL, dek->attr.key, NULL, encrypt) &&
		EVP_CIPHER_CTX_set_padding(context->evp, 0);
	ERR_pop_to_mark();
	pthread_mutex_unlock(&openssl_lock);
	if (!ready) {
		cipher_context_free(context);
		return NULL;
	}
	return context;
}

static void context_list_add(struct context_list *list, struct cipher_context *context)
{
	context->next = __atomic_load_n(&list->first, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&list->first, &context->next, context, true, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

/* Returns NULL if no context is free. */
static struct cipher_context *context_list_acquire(struct context_list *list)
{
	struct cipher_context *context = __atomic_load_n(&list->first, __ATOMIC_ACQUIRE);

	for (; context; context = context->next)
		if (!__atomic_load_n(&context->busy, __ATOMIC_RELAXED) &&
		    !__atomic_exchange_n(&context->busy, true, __ATOMIC_ACQUIRE))
			return context;
	return NULL;
}

static void cipher_context_release(struct cipher_context *context)
{
	__atomic_store_n(&context->busy, false, __ATOMIC_RELEASE);
}

static unsigned int context_list_index(void)
{
	return (uint64_t)(uintptr_t)epoch_this_thread * UINT64_C(0x9e3779b97f4a7c15) >> 61;
}
_Static_assert(CONTEXT_LISTS == 1 << 3, "the upper three bits of the product choose a list");

/* Waits for a context if memory for a new one is missing. Contexts are in use only during a call. */
static struct cipher_context *cipher_context_wait(struct context_list *lists)
{
	struct cipher_context *context = NULL;

	for (unsigned int i = 0; !context; i++) {
		context = context_list_acquire(&lists[i % CONTEXT_LISTS]);
		if (!context && i % CONTEXT_LISTS == CONTEXT_LISTS - 1)
			sched_yield();
	}
	return context;
}

static struct cipher_context *cipher_context_acquire(struct dek *dek, bool encrypt)
{
	struct context_list *lists = dek->contexts[encrypt], *own = &lists[context_list_index()];
	struct cipher_context *context = context_list_acquire(own);

	if (__builtin_expect(context != NULL, 1))
		return context;
	context = cipher_context_new(dek, encrypt);
	if (!context)
		return cipher_context_wait(lists);
	context_list_add(own, context);
	return context;
}

int cipher_init(struct dek *dek)
{
	unsigned int half = dek->attr.key_bytes / 2;

	if (xts_supported()) {
		xts_expand(&dek->keys, dek->attr.key, dek->attr.key_bytes);
		return 0;
	}
	dek->equal_halves = CRYPTO_memcmp(dek->attr.key, dek->attr.key + half, half) == 0;
	for (int direction = 0; direction < DIRECTIONS; direction++) {
		struct cipher_context *context = cipher_context_new(dek, direction == ENCRYPT);

		if (!context)
			return -ENOMEM;
		context_list_add(&dek->contexts[direction][context_list_index()], context);
		cipher_context_release(context);
	}
	return 0;
}

static void context_list_free(struct context_list *list)
{
	struct cipher_context *context, *next;

	for (context = list->first; context; context = next) {
		next = context->next;
		cipher_context_free(context);
	}
}

void cipher_contexts_free(struct dek *dek)
{
	for (int direction = 0; direction < DIRECTIONS; direction++)
		for (int i = 0; i < CONTEXT_LISTS; i++)
			context_list_free(&dek->contexts[direction][i]);
}

/* A 128-bit number, little-endian in memory. */
struct tweak {
	uint64_t low, high;
};

/* mlx5dv_wr_set_mkey_crypto(3), initial_tweak: "incremented by the device for every data unit in the message". */
static void tweak_add(struct tweak *tweak, uint64_t units)
{
	uint64_t low = le64toh(tweak->low) + units;

	if (low < units)
		tweak->high = htole64(le64toh(tweak->high) + 1);
	tweak->low = htole64(low);
}

static bool transform_unit(EVP_CIPHER_CTX *evp, const struct tweak *tweak, void *to, const void *from, size_t bytes)
{
	int written = 0;

	return EVP_CipherInit_ex(evp, NULL, NULL, NULL, (const unsigned char *)tweak, -1) &&
	       EVP_CipherUpdate(evp, to, &written, from, (int)bytes) && written == (int)bytes;
}

/* Checks the lengths, as a refusal by OpenSSL would leave an error in the queue of the program's thread. */
static bool can_be_divided(size_t unit, size_t bytes)
{
	size_t rest;

	if (unit < SMALLEST_UNIT || unit > LARGEST_UNIT)
		return false;
	rest = bytes % unit;
	return rest == 0 || rest >= SMALLEST_UNIT;
}

static int transform_units(struct dek *dek, const struct cipher_units *units, struct tweak tweak, uint8_t *to,
			   const uint8_t *from, size_t bytes)
{
	struct cipher_context *context = cipher_context_acquire(dek, units->encrypt);
	bool good = true;

	for (size_t done = 0; good && done < bytes; tweak_add(&tweak, 1)) {
		size_t part = bytes - done < units->unit ? bytes - done : units->unit;

		if (units->encrypt && dek->equal_halves)
			good = xts_encrypt_by_blocks(context->evp, (const uint8_t *)&tweak, to + done, from + done,
						     part);
		else
			good = transform_unit(context->evp, &tweak, to + done, from + done, part);
		done += part;
	}
	cipher_context_release(context);
	return good ? 0 : -EIO;
}

int cipher_transform(struct dek *dek, const struct cipher_units *units, void *to, const void *from, size_t bytes)
{
	struct tweak tweak;

	if (!can_be_divided(units->unit, bytes))
		return -EIO;
	memcpy(&tweak, units->tweak, sizeof(tweak));
	tweak_add(&tweak, units->first);
	if (!dek->keys.rounds)
		return transform_units(dek, units, tweak, to, from, bytes);
	for (size_t done = 0; done < bytes; tweak_add(&tweak, 1)) {
		size_t part = bytes - done < units->unit ? bytes - done : units->unit;

		xts_transform(&dek->keys, units->encrypt, (const uint8_t *)&tweak, (uint8_t *)to + done,
			      (const uint8_t *)from + done, part);
		done += part;
	}
	return 0;
}
