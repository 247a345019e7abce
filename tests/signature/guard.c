/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes guards bit by bit; see guard.h. The parameters are those of mlx5-formats 5.1. */
#include "guard.h"

struct parameters {
	unsigned int bits;
	uint64_t polynomial; /* without the highest term, bit n is x^n */
	bool reflected;      /* bytes enter by their lowest bit first; the remainder is stored little-endian */
	bool inverted;       /* the remainder is complemented */
};

static const struct parameters parameters[GUARDS] = {
	[GUARD_T10_CRC] = {16, 0x8bb7, false, false},
	[GUARD_CRC32] = {32, 0x04c11db7, false, true},
	[GUARD_CRC32C] = {32, 0x1edc6f41, true, true},
	[GUARD_CRC64] = {64, 0xad93d23594c93659, true, true},
};

size_t guard_bytes(enum guard guard)
{
	return guard == GUARD_T10_CSUM ? 2 : parameters[guard].bits / 8;
}

uint64_t big_endian(const uint8_t *bytes, size_t count)
{
	uint64_t value = 0;

	for (size_t i = 0; i < count; i++)
		value = value << 8 | bytes[i];
	return value;
}

static uint64_t reflect(uint64_t value, unsigned int bits)
{
	uint64_t reflected = 0;

	for (unsigned int i = 0; i < bits; i++)
		if (value >> i & 1)
			reflected |= UINT64_C(1) << (bits - 1 - i);
	return reflected;
}

static uint64_t all_ones(unsigned int bits)
{
	return ~UINT64_C(0) >> (64 - bits);
}

static uint64_t remainder_of(const struct parameters *p, bool ones, const uint8_t *data, size_t length)
{
	uint64_t polynomial = p->reflected ? reflect(p->polynomial, p->bits) : p->polynomial;
	uint64_t value = ones ? all_ones(p->bits) : 0;

	for (size_t i = 0; i < length; i++) {
		if (p->reflected) {
			value ^= data[i];
			for (int bit = 0; bit < 8; bit++)
				value = value >> 1 ^ (polynomial & -(value & 1));
		} else {
			value ^= (uint64_t)data[i] << (p->bits - 8);
			for (int bit = 0; bit < 8; bit++)
				value = value << 1 ^ (polynomial & -(value >> (p->bits - 1) & 1));
		}
	}
	value &= all_ones(p->bits);
	return p->inverted ? value ^ all_ones(p->bits) : value;
}

/* Computes the Internet checksum (RFC 1071) of 16-bit words in network order. */
static uint64_t checksum(bool ones, const uint8_t *data, size_t length)
{
	uint64_t sum = ones ? 0xffff : 0;

	for (size_t i = 0; i < length; i++)
		sum += i % 2 ? data[i] : (uint64_t)data[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

void guard_compute(enum guard guard, bool ones, const uint8_t *data, size_t length, uint8_t *field)
{
	size_t bytes = guard_bytes(guard);
	bool little_endian = guard != GUARD_T10_CSUM && parameters[guard].reflected;
	uint64_t value = guard == GUARD_T10_CSUM ? checksum(ones, data, length)
						 : remainder_of(&parameters[guard], ones, data, length);

	for (size_t i = 0; i < bytes; i++)
		field[little_endian ? i : bytes - 1 - i] = (uint8_t)(value >> (8 * i));
}
