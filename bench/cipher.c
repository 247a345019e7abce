/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WRITEs through keys that encrypt or decrypt (AES-XTS), compared with a loop over OpenSSL's EVP calls: a tweak and an update
 * for each data unit, from and to the same memory.
 */
#include "bench.h"

#include <endian.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

/* A layout of up to four pieces and a cipher, in one request. */
#define INLINE_FOR_CIPHER 124

enum { UNITS = 2, SIZES = 4 };

static const struct {
	uint32_t bytes;
	enum mlx5dv_block_size selector;
} units[UNITS] = {{512, MLX5DV_BLOCK_SIZE_512}, {4096, MLX5DV_BLOCK_SIZE_4096}};

static const struct {
	const char *name;
	uint32_t bytes;
} sizes[SIZES] = {{"4 KiB", 4 << 10}, {"64 KiB", 64 << 10}, {"1 MiB", 1 << 20}, {"64 MiB", 64 << 20}};

struct method {
	const char *name;
	enum mlx5dv_crypto_key_size size;
	bool encrypt;
};

/* The same work by the program. */
struct evp {
	EVP_CIPHER_CTX *context;
	uint8_t *to;
	const uint8_t *from;
	uint32_t unit, bytes;
};

/* Makes any two different halves. */
static void make_key(uint8_t key[64])
{
	for (int i = 0; i < 64; i++)
		key[i] = (uint8_t)(i * 7 + 1);
}

static struct evp *evp_new(const struct device *device, const struct method *method, uint32_t unit, uint32_t bytes)
{
	bool short_key = method->size == MLX5DV_CRYPTO_KEY_SIZE_128;
	struct evp *evp = allocate(sizeof(*evp));
	uint8_t key[64];

	make_key(key);
	*evp = (struct evp){.context = EVP_CIPHER_CTX_new(),
			    .to = device->target,
			    .from = device->source,
			    .unit = unit,
			    .bytes = bytes};
	if (!evp->context || !EVP_CipherInit_ex(evp->context, short_key ? EVP_aes_128_xts() : EVP_aes_256_xts(), NULL,
						key, NULL, method->encrypt))
		die("OpenSSL has no AES-XTS");
	return evp;
}

static void evp_units(void *subject, uint64_t count)
{
	const struct evp *evp = subject;

	while (count--) {
		for (uint32_t i = 0; i * evp->unit < evp->bytes; i++) {
			uint64_t tweak[2] = {htole64(i)};
			int written;

			if (!EVP_CipherInit_ex(evp->context, NULL, NULL, NULL, (const uint8_t *)tweak, -1) ||
			    !EVP_CipherUpdate(evp->context, evp->to + (size_t)i * evp->unit, &written,
					      evp->from + (size_t)i * evp->unit, (int)evp->unit))
				die("OpenSSL fails");
		}
	}
}

static struct mlx5dv_dek *dek_new(struct device *device, enum mlx5dv_crypto_key_size size)
{
	/* No login: the key is plaintext. */
	struct mlx5dv_dek_init_attr attr = {.key_size = size,
					    .key_purpose = MLX5DV_CRYPTO_KEY_PURPOSE_AES_XTS,
					    .pd = device->pd,
					    .comp_mask = MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN};
	struct mlx5dv_dek *dek;
	uint8_t key[64];

	make_key(key);
	memcpy(attr.key, key, size == MLX5DV_CRYPTO_KEY_SIZE_128 ? 32 : 64);
	dek = mlx5dv_dek_create(device->context, &attr);
	if (!dek)
		die("mlx5dv_dek_create: %s", strerror(errno));
	return dek;
}

static struct mlx5dv_mkey *cipher_key(struct device *device, struct pair *pair, const struct method *method, int unit,
				      uint32_t bytes)
{
	struct mlx5dv_crypto_attr attr = {.crypto_standard = MLX5DV_CRYPTO_STANDARD_AES_XTS,
					  .encrypt_on_tx = method->encrypt,
					  .data_unit_size = units[unit].selector,
					  .dek = dek_new(device, method->size)};
	struct mlx5dv_mkey *key = key_new(device, MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO, 1);
	struct mlx5dv_qp_ex *dv = configure_begin(pair, key, 3);

	set_piece(dv, device->source_mr, bytes);
	mlx5dv_wr_set_mkey_crypto(dv, &attr);
	configure_end(pair);
	return key;
}

static void check_against(struct device *device, struct message *message, struct evp *evp)
{
	uint8_t *expected = allocate(evp->bytes);

	evp_units(evp, 1);
	memcpy(expected, device->target, evp->bytes);
	memset(device->target, 0, evp->bytes);
	post_and_poll(message, 1);
	if (memcmp(device->target, expected, evp->bytes) != 0)
		die("AES-XTS of %u bytes: the device and OpenSSL differ", evp->bytes);
	free(expected);
}

static void add_row(struct bench *bench, struct device *device, struct pair *pair, const struct method *method,
		    int unit, int size)
{
	uint32_t bytes = sizes[size].bytes;
	struct message *message;
	struct evp *evp;

	if (bytes > device->size)
		return;
	message = message_new(device, pair, IBV_WR_RDMA_WRITE, bytes);
	message->sge.addr = 0;
	message->sge.lkey = cipher_key(device, pair, method, unit, bytes)->lkey;
	evp = evp_new(device, method, units[unit].bytes, bytes);
	check_against(device, message, evp);
	add_case(bench,
		 &(struct bench_case){.group = "ciphers: AES-XTS, by data unit",
				      .run = post_and_poll,
				      .subject = message,
				      .yardstick_name = "OpenSSL",
				      .yardstick = evp_units,
				      .yardstick_subject = evp,
				      .payload = bytes,
				      .goal = GOAL_SPEED,
				      .limit = 0.9,
				      .threads = true},
		 "%s, %u: %s", method->name, units[unit].bytes, sizes[size].name);
}

void add_cipher_cases(struct bench *bench, struct device *device)
{
	static const struct method methods[] = {
		{"AES-128 encrypt", MLX5DV_CRYPTO_KEY_SIZE_128, true},
		{"AES-256 encrypt", MLX5DV_CRYPTO_KEY_SIZE_256, true},
		{"AES-256 decrypt", MLX5DV_CRYPTO_KEY_SIZE_256, false},
	};
	struct pair *pair = allocate(sizeof(*pair));

	if (!group_wanted(bench, "ciphers"))
		return;
	pair_create(device, &(struct pair_attr){.depth = 64, .builders = true, .max_inline = INLINE_FOR_CIPHER}, pair);
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		for (int unit = 0; unit < UNITS; unit++)
			for (int size = 0; size < SIZES; size++)
				add_row(bench, device, pair, &methods[i], unit, size);
}
