/* SPDX-License-Identifier: BSD-2-Clause */
/* Fields of signatures, see signature.h. */
#include "signature.h"

#include <string.h>

size_t field_bytes(const struct domain *domain)
{
	if (domain->kind == KIND_NONE)
		return 0;
	return domain->kind == KIND_T10 ? 8 : guard_bytes(domain->guard);
}

uint64_t place_of_raw(const struct domain *domain, uint64_t raw)
{
	if (domain->kind == KIND_NONE)
		return raw;
	return raw / domain->block * (domain->block + field_bytes(domain)) + raw % domain->block;
}

bool is_raw(const struct domain *domain, uint64_t place, uint64_t *raw)
{
	uint64_t whole = domain->block + field_bytes(domain);

	*raw = place;
	if (domain->kind == KIND_NONE)
		return true;
	*raw = place / whole * domain->block;
	if (place % whole >= domain->block) {
		*raw += domain->block;
		return false;
	}
	*raw += place % whole;
	return true;
}

uint64_t place_of_field(const struct domain *domain, uint64_t number)
{
	return number * (domain->block + field_bytes(domain)) + domain->block;
}

uint64_t stream_bytes(const struct domain *domain, uint64_t raw)
{
	return domain->kind == KIND_NONE ? raw : raw + raw / domain->block * field_bytes(domain);
}

static uint32_t reference_of(const struct domain *domain, uint64_t number)
{
	return domain->remap ? domain->ref + (uint32_t)number : domain->ref;
}

static void put_big_endian(uint8_t *bytes, uint64_t value, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)(value >> (8 * (count - 1 - i)));
}

void field_make(const struct domain *domain, const uint8_t *data, uint64_t number, uint8_t field[GUARD_MOST])
{
	guard_compute(domain->guard, domain->ones, data, domain->block, field);
	if (domain->kind == KIND_T10) {
		put_big_endian(field + 2, domain->app, 2);
		put_big_endian(field + 4, reference_of(domain, number), 4);
	}
}

bool in_mask(uint8_t mask, size_t byte)
{
	return mask & 0x80 >> byte;
}

static bool differ(const uint8_t *a, const uint8_t *b, size_t first, size_t count, uint8_t mask)
{
	for (size_t i = first; i < first + count; i++)
		if (in_mask(mask, i) && a[i] != b[i])
			return true;
	return false;
}

/* Both flags together require both tags: the library lets the second override the first (mlx5-formats 4.7). */
static bool escapes(const struct domain *domain, const uint8_t *field)
{
	bool app = big_endian(field + 2, 2) == 0xffff, ref = big_endian(field + 4, 4) == 0xffffffff;

	if (domain->kind != KIND_T10)
		return false;
	if (domain->app_ref_escape)
		return app && ref;
	return domain->app_escape && app;
}

static struct finding finding_of(enum fault fault, bool connectx, const uint8_t *computed, const uint8_t *found,
				 size_t first, size_t count)
{
	uint64_t wanted = big_endian(computed + first, count), there = big_endian(found + first, count);

	return (struct finding){
		.fault = fault,
		.actual = connectx ? there : wanted,
		.expected = connectx ? wanted : there,
	};
}

struct finding field_check(const struct domain *domain, uint8_t mask, bool connectx, const uint8_t *data,
			   uint64_t number, const uint8_t field[GUARD_MOST])
{
	struct finding finding = {.fault = FAULT_NONE};
	size_t guard = guard_bytes(domain->guard);
	bool skips = escapes(domain, field);
	uint8_t right[GUARD_MOST];
	uint64_t whole = domain->block + field_bytes(domain);

	if (skips && connectx)
		return finding;
	field_make(domain, data, number, right);
	if (!skips && differ(field, right, 0, guard, mask))
		finding = finding_of(FAULT_GUARD, connectx, right, field, 0, guard);
	else if (domain->kind == KIND_T10 && differ(field, right, 2, 2, mask))
		finding = finding_of(FAULT_APP, connectx, right, field, 2, 2);
	else if (domain->kind == KIND_T10 && differ(field, right, 4, 4, mask))
		finding = finding_of(FAULT_REF, connectx, right, field, 4, 4);
	finding.raw = number * domain->block;
	finding.offset = connectx ? (number + 1) * whole - 1 : 0;
	return finding;
}

bool same_structure(const struct signature *signature)
{
	const struct domain *memory = &signature->memory, *wire = &signature->wire;

	if (memory->kind == KIND_NONE || memory->kind != wire->kind || memory->block != wire->block)
		return false;
	return memory->kind == KIND_T10 || memory->guard == wire->guard;
}

/*
 * copy_mask: "copied if the same signature type is configured on both domains", for T10-DIF part by part; mlx5-formats
 * 4.5.
 */
uint8_t copy_mask(const struct signature *signature, bool connectx)
{
	const struct domain *memory = &signature->memory, *wire = &signature->wire;
	bool same_reference;

	if (!same_structure(signature))
		return 0;
	if (signature->has_copy)
		return signature->copy;
	if (memory->kind == KIND_CRC)
		return memory->guard == GUARD_CRC64 ? 0xff : 0xf0;
	same_reference = memory->ref == wire->ref && (connectx || memory->remap == wire->remap);
	return (uint8_t)((memory->guard == wire->guard && memory->ones == wire->ones ? 0xc0 : 0) |
			 (memory->app == wire->app ? 0x30 : 0) | (same_reference ? 0x0f : 0));
}
