/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A key in plain and wrapped form (RFC 3394), made with the Python package `cryptography`, which wraps by single AES
 * blocks: the credential and import KEK 0 of SOFTHCA_CRYPTO_FILE=built-in, and those of FILE_TEXT.
 */
#ifndef SOFTHCA_TESTS_API_SUPPORT_CRYPTO_KEYS_H
#define SOFTHCA_TESTS_API_SUPPORT_CRYPTO_KEYS_H

#include <stdio.h>

#include "support/check.h"

/* Key byte i is 0x10 + i; the tag is "softhca!". */
#define PLAIN_KEY_FIRST 0x10
#define PLAIN_TAG "softhca!"

static const char built_in_credential[] =
	"826d3a563b568a4e9a13a4f2c8c3677d38bf65dc440b92468f67cc478c27a089a050151b505e04e271cfb9876e2aa0c1";
static const char wrapped_128[] = "68480d1c56ee44ad2d7177280102b967b5956c3e2746433ce95eef87fce88b5ebc5d0c04f52d2a8a";
static const char wrapped_128_tag[] =
	"f2d99a487939841f367cbf7c242ebc559042e3724d652421564e6e8b61df81d9ea06afd0d503c1d8c1653efaa410db96";
static const char wrapped_256[] =
	"a1dc57d229e5d53dcd109aeb79a349f079c7c50563d4c1fc0c0a1f5e8eb01c2ce4382dbc76ae8256fcc8eb53dd551c09"
	"c0cf8f0a4ffb43b1962ec8007b2fa51a7463ad34647741fc";
static const char wrapped_256_tag[] =
	"8a9446b6b6b5a95924305822441369ed60f581d6682ce1b8c576be250ed45c61821610ac5c05a882eb1b78586d68ba96"
	"7de40ef07c867a3d09498523ca8e4a25f78eeea1badab26afc58fd3ec7ed5e4b";
/* The first 16 bytes of the key, twice. */
static const char wrapped_equal_halves[] =
	"00c93aaf790106e458ce24fff5c31f32a5530c07a2643f61e82d22ac3ce3f9bdc6f8c108dc5793c9";

#define FILE_TEXT                                                                                                      \
	"# two of each\n"                                                                                              \
	"import_kek 1 ffffffffffffffffffffffffffffffff\n"                                                              \
	"import_kek 16777215 808182838485868788898a8b8c8d8e8f909192939495969798999A9B9C9D9E9F\n\n"                     \
	"credential 0 "                                                                                                \
	"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff\n"                           \
	"credential 7 "                                                                                                \
	"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f2021222324252627 # this one\n"
#define FILE_KEK_ID 0xffffff
#define FILE_CREDENTIAL_ID 7
static const char file_credential[] =
	"de6da8bfd0af82f4b9e6c7f5a410904eb60e08144539e03fb5271e8f676283b787aa999de5b8c60182b73814bd530c6a";
static const char file_wrapped_128[] =
	"6f1028686f3c991938c0753df71dccdfa814766ffe1ebe849a827865ebce66523ee45b5b4a36d755";

/** Converts @hex to bytes in @out; returns their number. */
static inline size_t bytes_of_hex(void *out, const char *hex)
{
	size_t bytes = strlen(hex) / 2;

	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(sscanf(hex + 2 * i, "%2hhx", (uint8_t *)out + i), 1);
	return bytes;
}

/** Writes the plain key of @key_bytes (both keys together), and the tag after it. */
static inline void plain_key(void *out, size_t key_bytes)
{
	for (size_t i = 0; i < key_bytes; i++)
		((uint8_t *)out)[i] = (uint8_t)(PLAIN_KEY_FIRST + i);
	memcpy((uint8_t *)out + key_bytes, PLAIN_TAG, strlen(PLAIN_TAG));
}

#endif
