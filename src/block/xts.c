/* SPDX-License-Identifier: BSD-2-Clause */
/* AES-XTS with 64-byte registers, which hold four blocks, each with its own tweak. */
#include "block/xts.h"

#include <string.h>

#include "core/compiler.h"

static bool forbidden;

void xts_forbid(bool forbid)
{
	forbidden = forbid;
}

bool xts_supported(void)
{
	return XTS_NEEDS && !forbidden && cpu_has(XTS_NEEDS);
}

#ifdef __x86_64__
#include <immintrin.h>

#define XTS __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,vaes,vpclmulqdq,aes,sse4.1")))
#define XTS_INLINE XTS static inline SPECIALISED

/* Registers per step of the loop: as many as the CPU has AES instructions in flight. */
enum { LANES = 4, REGISTERS = 4, VECTOR = LANES * AES_BLOCK, STEP = REGISTERS * VECTOR };

/* x^128 modulo the polynomial of IEEE 1619 5.2. */
#define FEEDBACK 0x87

/* ---- keys ----------------------------------------------------------------------------------------------------- */

/* Computes SubWord() (FIPS 197 5.2) by the last AES round: ShiftRows() has no effect on four equal columns. */
XTS_INLINE uint32_t aes_sub_word(uint32_t word)
{
	return (uint32_t)_mm_cvtsi128_si32(_mm_aesenclast_si128(_mm_set1_epi32((int)word), _mm_setzero_si128()));
}

/* Expands a key (FIPS 197 5.2). Words are little-endian here, so RotWord() rotates to the right. */
XTS static void aes_expand_key(uint8_t (*round_keys)[AES_BLOCK], const uint8_t *key, unsigned int words,
			       unsigned int rounds)
{
	uint32_t word[4 * (AES_MOST_ROUNDS + 1)], constant = 1;

	memcpy(word, key, words * sizeof(*word));
	for (unsigned int i = words; i < 4 * (rounds + 1); i++) {
		uint32_t next = word[i - 1];

		if (i % words == 0) {
			next = aes_sub_word(next >> 8 | next << 24) ^ constant;
			constant = constant << 1 ^ (constant >> 7) * 0x11b;
		} else if (words == 8 && i % words == 4) {
			next = aes_sub_word(next);
		}
		word[i] = word[i - words] ^ next;
	}
	memcpy(round_keys, word, sizeof(*word) * 4 * (rounds + 1));
	explicit_bzero(word, sizeof(word));
}

XTS_INLINE __m128i load_block(const void *from)
{
	return _mm_loadu_si128(from);
}

/* Makes the round keys of the equivalent inverse cipher (FIPS 197 5.3.5). */
XTS static void aes_invert_schedule(uint8_t (*to)[AES_BLOCK], uint8_t (*from)[AES_BLOCK], unsigned int rounds)
{
	memcpy(to[0], from[rounds], AES_BLOCK);
	for (unsigned int i = 1; i < rounds; i++)
		_mm_storeu_si128((__m128i *)to[i], _mm_aesimc_si128(load_block(from[rounds - i])));
	memcpy(to[rounds], from[0], AES_BLOCK);
}

XTS void xts_expand(struct xts_keys *keys, const uint8_t *key, unsigned int key_bytes)
{
	unsigned int words = key_bytes / 8;

	keys->rounds = words + 6;
	aes_expand_key(keys->encrypt, key, words, keys->rounds);
	aes_expand_key(keys->tweak, key + key_bytes / 2, words, keys->rounds);
	aes_invert_schedule(keys->decrypt, keys->encrypt, keys->rounds);
}

/* ---- tweaks --------------------------------------------------------------------------------------------------- */

XTS_INLINE __m512i feed_back(__m512i carry)
{
	return _mm512_clmulepi64_epi128(carry, _mm512_set1_epi64(FEEDBACK), 0x00);
}

/* Multiplies each block by x to the power of its two numbers in @powers, which are equal and below 64. */
XTS_INLINE __m512i times_powers(__m512i tweaks, __m512i powers)
{
	__m512i out = _mm512_srlv_epi64(tweaks, _mm512_sub_epi64(_mm512_set1_epi64(64), powers));
	__m512i kept = _mm512_xor_si512(_mm512_sllv_epi64(tweaks, powers), _mm512_bslli_epi128(out, 8));

	return _mm512_xor_si512(kept, feed_back(_mm512_bsrli_epi128(out, 8)));
}

XTS_INLINE __m512i next_register(__m512i tweaks)
{
	return times_powers(tweaks, _mm512_set1_epi64(LANES));
}

/* Returns the same register's tweaks in the next step: times x^16, a shift by two bytes. */
XTS_INLINE __m512i next_step(__m512i tweaks)
{
	return _mm512_xor_si512(_mm512_bslli_epi128(tweaks, 2), feed_back(_mm512_bsrli_epi128(tweaks, 14)));
}
_Static_assert(REGISTERS *LANES == 16, "a step is sixteen blocks");

XTS_INLINE __m512i first_tweaks(const struct xts_keys *keys, const uint8_t tweak[16])
{
	__m128i value = _mm_xor_si128(load_block(tweak), load_block(keys->tweak[0]));

	for (unsigned int i = 1; i < keys->rounds; i++)
		value = _mm_aesenc_si128(value, load_block(keys->tweak[i]));
	value = _mm_aesenclast_si128(value, load_block(keys->tweak[keys->rounds]));
	return times_powers(_mm512_broadcast_i32x4(value), _mm512_set_epi64(3, 3, 2, 2, 1, 1, 0, 0));
}

/* ---- blocks --------------------------------------------------------------------------------------------------- */

/* Round keys, repeated for all blocks of a register. */
struct schedule {
	__m512i key[AES_MOST_ROUNDS + 1];
};

XTS_INLINE struct schedule schedule_of(const struct xts_keys *keys, bool encrypt, unsigned int rounds)
{
	const uint8_t(*from)[AES_BLOCK] = encrypt ? keys->encrypt : keys->decrypt;
	struct schedule schedule;

#pragma GCC unroll 15
	for (unsigned int i = 0; i <= rounds; i++)
		schedule.key[i] = _mm512_broadcast_i32x4(load_block(from[i]));
	return schedule;
}

/* @count: at most REGISTERS. */
XTS_INLINE void aes_registers(const struct schedule *schedule, bool encrypt, unsigned int rounds, __m512i *value,
			      const __m512i *tweaks, unsigned int count)
{
#pragma GCC unroll 4
	for (unsigned int i = 0; i < count; i++)
		value[i] = _mm512_xor_si512(_mm512_xor_si512(value[i], tweaks[i]), schedule->key[0]);
#pragma GCC unroll 15
	for (unsigned int round = 1; round < rounds; round++) {
#pragma GCC unroll 4
		for (unsigned int i = 0; i < count; i++)
			value[i] = encrypt ? _mm512_aesenc_epi128(value[i], schedule->key[round])
					   : _mm512_aesdec_epi128(value[i], schedule->key[round]);
	}
#pragma GCC unroll 4
	for (unsigned int i = 0; i < count; i++) {
		__m512i last = _mm512_xor_si512(schedule->key[rounds], tweaks[i]);

		value[i] =
			encrypt ? _mm512_aesenclast_epi128(value[i], last) : _mm512_aesdeclast_epi128(value[i], last);
	}
}

/* Returns the bytes of the last whole block and the partial one; 0 if there is none. */
XTS_INLINE size_t stealing_bytes(size_t bytes)
{
	return bytes % AES_BLOCK ? AES_BLOCK + bytes % AES_BLOCK : 0;
}

/*
 * Steals ciphertext (IEEE 1619 5.3.2 and 5.4.2). @tweaks: those of the last whole block and the partial one, which
 * decryption uses in reverse order.
 */
XTS_INLINE void steal_ciphertext(const struct schedule *schedule, bool encrypt, unsigned int rounds, __m512i tweaks,
				 uint8_t *to, const uint8_t *from, size_t bytes)
{
	const size_t part = bytes - AES_BLOCK;
	uint8_t last[AES_BLOCK], whole[AES_BLOCK];
	__m512i value = _mm512_castsi128_si512(load_block(from));

	if (!encrypt)
		tweaks = _mm512_shuffle_i64x2(tweaks, tweaks, 0x01);
	aes_registers(schedule, encrypt, rounds, &value, &tweaks, 1);
	_mm_storeu_si128((__m128i *)whole, _mm512_castsi512_si128(value));
	memcpy(last, from + AES_BLOCK, part);
	memcpy(last + part, whole + part, AES_BLOCK - part);
	value = _mm512_castsi128_si512(load_block(last));
	tweaks = _mm512_shuffle_i64x2(tweaks, tweaks, 0x01);
	aes_registers(schedule, encrypt, rounds, &value, &tweaks, 1);
	_mm_storeu_si128((__m128i *)to, _mm512_castsi512_si128(value));
	memcpy(to + AES_BLOCK, whole, part);
	/* They hold plaintext, or bytes that decrypt to it. */
	explicit_bzero(last, sizeof(last));
	explicit_bzero(whole, sizeof(whole));
}

XTS_INLINE void xts_transform_rounds(const struct xts_keys *keys, bool encrypt, unsigned int rounds,
				     const uint8_t tweak[16], uint8_t *to, const uint8_t *from, size_t bytes)
{
	const struct schedule schedule = schedule_of(keys, encrypt, rounds);
	const size_t end = bytes - stealing_bytes(bytes);
	__m512i value[REGISTERS], tweaks[REGISTERS];
	size_t done = 0;

	tweaks[0] = first_tweaks(keys, tweak);
	if (end >= STEP) {
#pragma GCC unroll 4
		for (unsigned int i = 1; i < REGISTERS; i++)
			tweaks[i] = next_register(tweaks[i - 1]);
		for (; end - done >= STEP; done += STEP) {
#pragma GCC unroll 4
			for (unsigned int i = 0; i < REGISTERS; i++)
				value[i] = _mm512_loadu_si512(from + done + (size_t)VECTOR * i);
			aes_registers(&schedule, encrypt, rounds, value, tweaks, REGISTERS);
#pragma GCC unroll 4
			for (unsigned int i = 0; i < REGISTERS; i++) {
				_mm512_storeu_si512(to + done + (size_t)VECTOR * i, value[i]);
				tweaks[i] = next_step(tweaks[i]);
			}
		}
	}
	while (done < end) {
		size_t now = end - done < VECTOR ? end - done : VECTOR;
		__mmask64 mask = ~0ull >> (VECTOR - now);

		value[0] = _mm512_maskz_loadu_epi8(mask, from + done);
		aes_registers(&schedule, encrypt, rounds, value, tweaks, 1);
		_mm512_mask_storeu_epi8(to + done, mask, value[0]);
		done += now;
		/* After a partial register only ciphertext stealing can follow. */
		tweaks[0] = now == VECTOR ? next_register(tweaks[0])
					  : times_powers(tweaks[0], _mm512_set1_epi64((long long)(now / AES_BLOCK)));
	}
	if (done < bytes)
		steal_ciphertext(&schedule, encrypt, rounds, tweaks[0], to + done, from + done, bytes - done);
}

XTS static __attribute__((noinline)) void encrypt_128(const struct xts_keys *keys, const uint8_t tweak[16], uint8_t *to,
						      const uint8_t *from, size_t bytes)
{
	xts_transform_rounds(keys, true, 10, tweak, to, from, bytes);
}

XTS static __attribute__((noinline)) void decrypt_128(const struct xts_keys *keys, const uint8_t tweak[16], uint8_t *to,
						      const uint8_t *from, size_t bytes)
{
	xts_transform_rounds(keys, false, 10, tweak, to, from, bytes);
}

XTS static __attribute__((noinline)) void encrypt_256(const struct xts_keys *keys, const uint8_t tweak[16], uint8_t *to,
						      const uint8_t *from, size_t bytes)
{
	xts_transform_rounds(keys, true, 14, tweak, to, from, bytes);
}

XTS static __attribute__((noinline)) void decrypt_256(const struct xts_keys *keys, const uint8_t tweak[16], uint8_t *to,
						      const uint8_t *from, size_t bytes)
{
	xts_transform_rounds(keys, false, 14, tweak, to, from, bytes);
}

void xts_transform(const struct xts_keys *keys, bool encrypt, const uint8_t tweak[16], uint8_t *to, const uint8_t *from,
		   size_t bytes)
{
	if (keys->rounds == 10)
		(encrypt ? encrypt_128 : decrypt_128)(keys, tweak, to, from, bytes);
	else
		(encrypt ? encrypt_256 : decrypt_256)(keys, tweak, to, from, bytes);
}
#else
void xts_expand(struct xts_keys *keys, const uint8_t *key, unsigned int key_bytes)
{
	(void)keys;
	(void)key;
	(void)key_bytes;
}

void xts_transform(const struct xts_keys *keys, bool encrypt, const uint8_t tweak[16], uint8_t *to, const uint8_t *from,
		   size_t bytes)
{
	(void)keys;
	(void)encrypt;
	(void)tweak;
	(void)to;
	(void)from;
	(void)bytes;
}
#endif
