/* SPDX-License-Identifier: BSD-2-Clause */
/* Fields of headers (IBTA 9.2, 9.3): big-endian, at any address. Pure functions. */
#ifndef SOFTHCA_WIRE_ROCE_FIELDS_H
#define SOFTHCA_WIRE_ROCE_FIELDS_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define ROCE_RETH_BYTES 16
#define ROCE_AETH_BYTES 4

#define ROCE_P_KEY 0xffff /* the default partition, full member */
/* BTH, byte 1… */
#define ROCE_BTH_SOLICITED 0x80
#define ROCE_BTH_MIGRATED 0x40
#define ROCE_BTH_PAD_SHIFT 4
#define ROCE_BTH_VERSION 0x0f
/* …bytes 4… */
#define ROCE_BTH_BECN 0x40
/* …and 8. */
#define ROCE_BTH_ACKNOWLEDGE 0x80

/** Writes @value at @to. Returns the address of the next field. */
static inline uint8_t *roce_put32(uint8_t *to, uint32_t value)
{
	value = htobe32(value);
	memcpy(to, &value, sizeof(value));
	return to + sizeof(value);
}

static inline uint8_t *roce_put64(uint8_t *to, uint64_t value)
{
	value = htobe64(value);
	memcpy(to, &value, sizeof(value));
	return to + sizeof(value);
}

static inline uint32_t roce_get32(const uint8_t *from)
{
	uint32_t value;

	memcpy(&value, from, sizeof(value));
	return be32toh(value);
}

static inline uint64_t roce_get64(const uint8_t *from)
{
	uint64_t value;

	memcpy(&value, from, sizeof(value));
	return be64toh(value);
}

#endif
