/* SPDX-License-Identifier: BSD-2-Clause */
/* The work of a program without offload, see by_hand.h. */
#include "by_hand.h"

#include <endian.h>
#include <isa-l.h>
#include <string.h>

struct t10dif {
	uint16_t guard, application_tag;
	uint32_t reference_tag;
};

uint32_t format_signature(const struct format *format)
{
	static const uint32_t bytes[] = {[CHECK_T10_CRC] = sizeof(struct t10dif),
					 [CHECK_T10_CHECKSUM] = sizeof(struct t10dif),
					 [CHECK_CRC32] = 4,
					 [CHECK_CRC32C] = 4,
					 [CHECK_CRC64] = 8};

	return bytes[format->check];
}

/* Computes the Internet checksum. Sums of words in either byte order have the same bytes, so wide words can be used. */
static uint16_t checksum(const uint8_t *data, size_t bytes)
{
	uint64_t sum[4] = {0}, carries = 0, word, total;

	/* Independent sums. */
	for (size_t i = 0; i < bytes; i += sizeof(sum)) {
		for (size_t j = 0; j < 4; j++) {
			memcpy(&word, data + i + j * sizeof(word), sizeof(word));
			carries += __builtin_add_overflow(sum[j], word, &sum[j]);
		}
	}
	total = carries;
	for (int j = 0; j < 4; j++)
		total += (sum[j] >> 32) + (sum[j] & UINT32_MAX);
	while (total >> 16)
		total = (total & 0xffff) + (total >> 16);
	return (uint16_t)~total;
}

static void make_t10dif(const struct format *format, const uint8_t *block, uint64_t number, uint8_t *signature)
{
	struct t10dif tuple = {
		.guard = format->check == CHECK_T10_CRC ? htobe16(crc16_t10dif(0, block, format->block))
							: checksum(block, format->block),
		.application_tag = htobe16(BY_HAND_APPLICATION_TAG),
		.reference_tag = htobe32((uint32_t)(BY_HAND_FIRST_REFERENCE_TAG + number)),
	};

	memcpy(signature, &tuple, sizeof(tuple));
}

static void make_crc32(uint32_t crc, uint8_t *signature)
{
	memcpy(signature, &crc, sizeof(crc));
}

static void make_crc64(const struct format *format, const uint8_t *block, uint8_t *signature)
{
	uint64_t crc = htole64(crc64_jones_refl(0, block, format->block));

	memcpy(signature, &crc, sizeof(crc));
}

/* Writes the signature of @block, the @number-th block. */
static void make(const struct format *format, const uint8_t *block, uint64_t number, uint8_t *signature)
{
	switch (format->check) {
	case CHECK_T10_CRC:
	case CHECK_T10_CHECKSUM:
		make_t10dif(format, block, number, signature);
		break;
	case CHECK_CRC32:
		make_crc32(htobe32(crc32_ieee(0, block, format->block)), signature);
		break;
	case CHECK_CRC32C:
		make_crc32(htole32(~crc32_iscsi((uint8_t *)(uintptr_t)block, (int)format->block, UINT32_MAX)),
			   signature);
		break;
	case CHECK_CRC64:
		make_crc64(format, block, signature);
		break;
	default:
		break;
	}
}

static void insert(const struct by_hand *work)
{
	uint32_t block = work->format.block, stride = block + format_signature(&work->format);

	for (uint64_t i = 0; i < work->blocks; i++) {
		uint8_t *to = work->to + i * stride;

		memcpy(to, work->from + i * block, block);
		make(&work->format, to, i, to + block);
	}
}

static void check(struct by_hand *work, uint64_t i, const uint8_t *block, uint32_t signature)
{
	uint8_t expected[8];

	make(&work->format, block, i, expected);
	work->wrong += memcmp(expected, block + work->format.block, signature) != 0;
}

static void strip(struct by_hand *work)
{
	uint32_t block = work->format.block, signature = format_signature(&work->format);

	for (uint64_t i = 0; i < work->blocks; i++) {
		const uint8_t *from = work->from + i * (block + signature);

		check(work, i, from, signature);
		memcpy(work->to + i * block, from, block);
	}
}

static void pass(struct by_hand *work)
{
	uint32_t signature = format_signature(&work->format), stride = work->format.block + signature;

	for (uint64_t i = 0; i < work->blocks; i++) {
		const uint8_t *from = work->from + i * stride;

		check(work, i, from, signature);
		memcpy(work->to + i * stride, from, stride);
	}
}

void by_hand_insert(void *subject, uint64_t count)
{
	while (count--) {
		insert(subject);
		memory_barrier_of_compiler();
	}
}

void by_hand_strip(void *subject, uint64_t count)
{
	while (count--) {
		strip(subject);
		memory_barrier_of_compiler();
	}
}

void by_hand_pass(void *subject, uint64_t count)
{
	while (count--) {
		pass(subject);
		memory_barrier_of_compiler();
	}
}
