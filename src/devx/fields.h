/* SPDX-License-Identifier: BSD-2-Clause */
/* Fields of commands (fields.def). Buffers contain whole commands, zero after the program's bytes. */
#ifndef SOFTHCA_DEVX_FIELDS_H
#define SOFTHCA_DEVX_FIELDS_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

struct devx_field {
	uint16_t dword;
	uint8_t high, low; /* bits within it; 63 and 0: this word and the next */
};

#define FIELD(layout, name, dword, high, low)                                                                          \
	static const struct devx_field layout##_##name __attribute__((unused)) = {dword, high, low};
#define FIELD64(layout, name, dword)                                                                                   \
	static const struct devx_field layout##_##name __attribute__((unused)) = {dword, 63, 0};
#include "devx/fields.def"

static inline uint64_t devx_field_mask(struct devx_field field)
{
	unsigned int width = field.high - field.low + 1u;

	return width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
}

static inline uint64_t devx_field_get(const uint8_t *command, struct devx_field field)
{
	uint64_t both;
	uint32_t word;

	if (field.high == 63) {
		memcpy(&both, command + 4 * field.dword, sizeof(both));
		return be64toh(both);
	}
	memcpy(&word, command + 4 * field.dword, sizeof(word));
	return be32toh(word) >> field.low & devx_field_mask(field);
}

/** Drops bits beyond the field's width. */
static inline void devx_field_set(uint8_t *command, struct devx_field field, uint64_t value)
{
	uint64_t both = htobe64(value);
	uint32_t word;

	if (field.high == 63) {
		memcpy(command + 4 * field.dword, &both, sizeof(both));
		return;
	}
	memcpy(&word, command + 4 * field.dword, sizeof(word));
	word = be32toh(word) & ~(uint32_t)(devx_field_mask(field) << field.low);
	word = htobe32(word | (uint32_t)((value & devx_field_mask(field)) << field.low));
	memcpy(command + 4 * field.dword, &word, sizeof(word));
}

#endif
