/* SPDX-License-Identifier: BSD-2-Clause */
/* Signature fields (mlx5-formats 4.7), as numbers (setup.h). Pure functions; any thread. */
#ifndef SOFTHCA_BLOCK_FIELD_H
#define SOFTHCA_BLOCK_FIELD_H

#include <endian.h>
#include <string.h>

#include "block/setup.h"

#define FIELD_APP_SHIFT 32
#define FIELD_APP (UINT64_C(0xffff) << FIELD_APP_SHIFT)
#define FIELD_REF UINT64_C(0xffffffff)

static inline uint64_t field_load(const uint8_t *bytes, unsigned int size)
{
	uint64_t value = 0;

	if (size == FIELD_LARGEST) {
		memcpy(&value, bytes, FIELD_LARGEST);
		return be64toh(value);
	}
	memcpy(&value, bytes, size);
	return be64toh(value);
}

static inline void field_store(uint8_t *bytes, unsigned int size, uint64_t value)
{
	value = htobe64(value);
	if (size == FIELD_LARGEST)
		memcpy(bytes, &value, FIELD_LARGEST);
	else
		memcpy(bytes, &value, size);
}

/** @guard: finished guard of block @number. */
static inline uint64_t field_of_block(const struct signature_domain *domain, uint64_t number, uint64_t guard)
{
	uint64_t field = guard << guard_shift(domain);

	if (!domain->tags)
		return field;
	return field | (uint64_t)domain->app_tag << FIELD_APP_SHIFT |
	       (uint32_t)(domain->ref_tag + (domain->increments ? number : 0));
}

/**
 * Returns the bits of checked bytes in which @found differs from @expected. An escape excludes the guard
 * (mlx5dv_wr_set_mkey_sig_block(3)), or the whole field (profile connectx).
 */
static inline uint64_t field_difference(const struct signature_setup *signature, const struct signature_domain *domain,
					uint64_t expected, uint64_t found)
{
	uint64_t difference = (expected ^ found) & signature->checked;
	bool escaped;

	if (!difference || !domain->tags)
		return difference;
	if (domain->escape_both)
		escaped = (found & (FIELD_APP | FIELD_REF)) == (FIELD_APP | FIELD_REF);
	else
		escaped = domain->escape_app && (found & FIELD_APP) == FIELD_APP;
	if (!escaped)
		return difference;
	return signature->escape_all ? 0 : difference & (FIELD_APP | FIELD_REF);
}

#endif
