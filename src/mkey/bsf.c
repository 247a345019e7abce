/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses BSFs. */
#include "mkey/bsf.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "core/tweak_order.h"
#include "hca/hca.h"
#include "mkey/psv.h"

/* Byte 0. */
enum {
	SIZE_CODE_SHIFT = 6,
	SIZE_BASIC = 0,
	SIZE_EXTENDED = 1,
	SIZE_INLINE = 2,
	SIZE_WITH_CIPHER = 3,
	SAME_STRUCTURE = 0x10,
	TYPE_MASK = 0x0f,
	TYPE_CIPHER = 1,
};

/* Offsets in a signature BSF, and in its inline T10-DIF sections (mlx5-formats 1.11). */
enum {
	AT_CHECKED = 1,
	AT_WIRE_BLOCK = 2, /* or the bytes to copy */
	AT_MEMORY_BLOCK = 3,
	AT_RAW_SIZE = 4,
	AT_WIRE_FORMAT = 8,
	AT_MEMORY_FORMAT = 12,
	AT_TRANSACTION = 16,
	AT_WIRE_TRANSACTION = 24,
	AT_MEMORY_TRANSACTION = 28,
	AT_WIRE_INLINE = 32,
	AT_MEMORY_INLINE = 48,
};
enum {
	INLINE_VALID = 0x8000,
	INLINE_AT_APP = 2,
	INLINE_AT_REF = 4,
	INLINE_AT_GUARD = 8,
	INLINE_AT_FLAGS = 9,
	INLINE_ONES = 0x08,
	INLINE_AT_CHECKS = 13,
	INLINE_INCREMENT = 0x40,
	INLINE_ESCAPE_APP = 0x01,
	INLINE_ESCAPE_BOTH = 0x02,
};

enum {
	FORMAT_CRC32 = 0x20,
	FORMAT_CRC32C = 0x40,
	FORMAT_CRC64 = 0x50,
	FORMAT_REPEAT = 0x02,
	FORMAT_SEED_ZERO = 0x01,
};

enum {
	MEMORY_CHECK_OR_MAKE = 1 << 24,
	MEMORY_INITIAL = 1 << 25,
	WIRE_CHECK_OR_MAKE = 1 << 28,
	WIRE_INITIAL = 1 << 29,
	TRANSACTION_FLAGS = MEMORY_CHECK_OR_MAKE | MEMORY_INITIAL | WIRE_CHECK_OR_MAKE | WIRE_INITIAL,
};

/* Maximum number of data bytes: the length of data and field together must fit into 32 bits. */
#define TRANSACTION_MOST (UINT32_C(1) << 31)

/* Offsets in a cipher BSF (mlx5-formats 1.12). */
enum {
	CIPHER_AT_ORDER = 1,
	CIPHER_AT_STANDARD = 3,
	CIPHER_AT_UNIT = 8,
	CIPHER_AT_TWEAK = 16,
	CIPHER_AT_DEK = 32,
	CIPHER_AT_KEYTAG = 40,
};

struct bsf {
	const struct walk_access *access;
	uint32_t key;
	const uint8_t *bytes;
	uint8_t size_code;
	bool same;
	struct refusal *why;
};

static uint16_t bsf_be16(const uint8_t *bytes)
{
	uint16_t value;

	memcpy(&value, bytes, sizeof(value));
	return be16toh(value);
}

static uint32_t bsf_be32(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return be32toh(value);
}

/* Returns the data bytes of a block by its selector; 0: no block, or an unknown selector. */
static uint32_t block_bytes(uint8_t selector)
{
	static const uint32_t bytes[] = {0, 512, 520, 4096, 4160, 0, 4048};

	return selector < sizeof(bytes) / sizeof(bytes[0]) ? bytes[selector] : 0;
}

static int parse_inline(const struct bsf *bsf, const uint8_t *section, struct signature_domain *domain)
{
	uint16_t flags = bsf_be16(section);
	uint8_t guard = section[INLINE_AT_GUARD], checks = section[INLINE_AT_CHECKS];

	if (bsf->size_code < SIZE_INLINE || !(flags & INLINE_VALID) || guard < 1 || guard > 2)
		return REFUSAL(bsf->why, EACCES, RULE_BSF_INLINE, bsf->key, flags, guard);
	domain->guard = guard == 1 ? GUARD_T10_CRC : GUARD_IP_CHECKSUM;
	domain->field = 8;
	domain->tags = true;
	domain->ones = section[INLINE_AT_FLAGS] & INLINE_ONES;
	domain->app_tag = bsf_be16(section + INLINE_AT_APP);
	domain->ref_tag = bsf_be32(section + INLINE_AT_REF);
	domain->increments = checks & INLINE_INCREMENT;
	domain->escape_app = checks & INLINE_ESCAPE_APP;
	domain->escape_both = checks & INLINE_ESCAPE_BOTH;
	return 0;
}

static int parse_crc(const struct bsf *bsf, uint8_t format, struct signature_domain *domain)
{
	domain->ones = !(format & FORMAT_SEED_ZERO);
	domain->field = 4;
	switch (format & ~FORMAT_SEED_ZERO) {
	case FORMAT_CRC32 | FORMAT_REPEAT:
		domain->guard = GUARD_CRC32;
		return 0;
	case FORMAT_CRC32C | FORMAT_REPEAT:
		domain->guard = GUARD_CRC32C;
		return 0;
	case FORMAT_CRC64 | FORMAT_REPEAT:
		domain->guard = GUARD_CRC64_XP10;
		domain->field = 8;
		return 0;
	}
	return REFUSAL(bsf->why, EACCES, RULE_BSF_FORMAT, bsf->key, format);
}

static int parse_domain(const struct bsf *bsf, uint8_t selector, uint32_t at_format, uint32_t at_inline,
			struct signature_domain *domain)
{
	uint32_t format_psv = bsf_be32(bsf->bytes + at_format);
	uint8_t format = (uint8_t)(format_psv >> 24);

	*domain = (struct signature_domain){0};
	if (!selector)
		return 0;
	domain->block = block_bytes(selector);
	domain->psv = format_psv & 0xffffff;
	if (!psv_find(bsf->access->hca, domain->psv, bsf->access->pd))
		return REFUSAL(bsf->why, EACCES, RULE_BSF_PSV, bsf->key, domain->psv, bsf->access->pd);
	return format ? parse_crc(bsf, format, domain) : parse_inline(bsf, bsf->bytes + at_inline, domain);
}

/* Returns true if bytes can be copied between the fields of @a and @b. */
static bool domains_match(const struct signature_domain *a, const struct signature_domain *b)
{
	return a->tags == b->tags && a->field == b->field && (a->tags || a->guard == b->guard);
}

static int parse_signature(const struct bsf *bsf, struct signature_setup *setup)
{
	uint8_t memory = bsf->bytes[AT_MEMORY_BLOCK], wire = bsf->same ? memory : bsf->bytes[AT_WIRE_BLOCK];
	int error;

	*setup = (struct signature_setup){
		.same = bsf->same,
		.checked = signature_field_mask(bsf->bytes[AT_CHECKED]),
		.copied = bsf->same ? signature_field_mask(bsf->bytes[AT_WIRE_BLOCK]) : 0,
		.limit = bsf_be32(bsf->bytes + AT_RAW_SIZE),
		.escape_all = bsf->access->hca->settings.profile == PROFILE_CONNECTX,
	};
	if (setup->limit == UINT32_MAX)
		setup->limit = UINT64_MAX;
	/* The driver switches the signature off by a BSF without a signature in either domain. */
	if ((memory && !block_bytes(memory)) || (wire && !block_bytes(wire)))
		return REFUSAL(bsf->why, EACCES, RULE_BSF_BLOCK, bsf->key, memory, wire);
	error = parse_domain(bsf, memory, AT_MEMORY_FORMAT, AT_MEMORY_INLINE, &setup->memory);
	error = error ? error : parse_domain(bsf, wire, AT_WIRE_FORMAT, AT_WIRE_INLINE, &setup->wire);
	if (error)
		return error;
	if (bsf->same && !domains_match(&setup->memory, &setup->wire))
		return REFUSAL(bsf->why, EACCES, RULE_BSF_SAME, bsf->key, setup->memory.guard, setup->wire.guard);
	setup->enabled = memory || wire;
	if (!memory)
		setup->memory.block = setup->wire.block;
	if (!wire)
		setup->wire.block = setup->memory.block;
	return 0;
}

static int parse_transaction_domain(const struct bsf *bsf, uint32_t at, bool checks, bool initial,
				    struct signature_domain *domain)
{
	uint32_t format_psv = bsf_be32(bsf->bytes + at), psv = format_psv & 0xffffff;
	uint8_t format = (uint8_t)(format_psv >> 24);

	domain->block = bsf_be32(bsf->bytes + AT_RAW_SIZE);
	if (!format_psv)
		return 0;
	if ((format & ~FORMAT_SEED_ZERO) != FORMAT_CRC32C)
		return REFUSAL(bsf->why, EACCES, RULE_BSF_TRANSACTION, bsf->key, bsf_be32(bsf->bytes + AT_TRANSACTION),
			       format, domain->block);
	if (!psv_find(bsf->access->hca, psv, bsf->access->pd))
		return REFUSAL(bsf->why, EACCES, RULE_BSF_PSV, bsf->key, psv, bsf->access->pd);
	domain->guard = GUARD_CRC32C;
	domain->field = checks ? 4 : 0;
	domain->ones = !(format & FORMAT_SEED_ZERO);
	domain->psv = psv;
	domain->transaction = true;
	domain->continues = !initial;
	return 0;
}

/*
 * Parses a transaction signature: one CRC-32C over all of the data (mlx5-formats 1.11). No driver is known to combine
 * both kinds of signature, as the format would allow.
 */
static int parse_transaction(const struct bsf *bsf, struct signature_setup *setup)
{
	uint32_t flags = bsf_be32(bsf->bytes + AT_TRANSACTION), size = bsf_be32(bsf->bytes + AT_RAW_SIZE);
	int error;

	if (flags & ~TRANSACTION_FLAGS || bsf->bytes[AT_MEMORY_BLOCK] || bsf->bytes[AT_WIRE_BLOCK] || !size ||
	    size > TRANSACTION_MOST)
		return REFUSAL(bsf->why, EACCES, RULE_BSF_TRANSACTION, bsf->key, flags, 0, size);
	*setup = (struct signature_setup){
		.transaction = true,
		.checked = signature_field_mask(bsf->bytes[AT_CHECKED]),
		.limit = size,
	};
	error = parse_transaction_domain(bsf, AT_MEMORY_TRANSACTION, flags & MEMORY_CHECK_OR_MAKE,
					 flags & MEMORY_INITIAL, &setup->memory);
	if (!error)
		error = parse_transaction_domain(bsf, AT_WIRE_TRANSACTION, flags & WIRE_CHECK_OR_MAKE,
						 flags & WIRE_INITIAL, &setup->wire);
	setup->enabled = setup->memory.transaction || setup->wire.transaction;
	return error;
}

/*
 * Returns true if the BSF has a transaction signature. Without flags, the words of the domains request a guard that
 * continues from the PSV, or are ignored if there are block signatures.
 */
static bool has_transaction(const struct bsf *bsf)
{
	if (bsf->size_code < SIZE_EXTENDED)
		return false;
	if (bsf_be32(bsf->bytes + AT_TRANSACTION))
		return true;
	return !bsf->bytes[AT_MEMORY_BLOCK] && !bsf->bytes[AT_WIRE_BLOCK] &&
	       (bsf_be32(bsf->bytes + AT_WIRE_TRANSACTION) || bsf_be32(bsf->bytes + AT_MEMORY_TRANSACTION));
}

static int check_dek(const struct bsf *bsf, const struct dek *dek, uint32_t id)
{
	if (dek_pd(dek) != bsf->access->pd)
		return REFUSAL(bsf->why, EACCES, RULE_BSF_DEK_DOMAIN, bsf->key, id, dek_pd(dek), bsf->access->pd);
	if (!dek_accepts_keytag(dek, bsf->bytes + CIPHER_AT_KEYTAG))
		return REFUSAL(bsf->why, EACCES, RULE_BSF_KEYTAG, bsf->key, id);
	return 0;
}

static int parse_cipher(const struct bsf *bsf, struct cipher_setup *setup)
{
	uint8_t order = bsf->bytes[CIPHER_AT_ORDER], standard = bsf->bytes[CIPHER_AT_STANDARD];
	uint8_t selector = bsf->bytes[CIPHER_AT_UNIT];
	uint32_t id = bsf_be32(bsf->bytes + CIPHER_AT_DEK) & 0xffffff;
	int error;

	*setup = (struct cipher_setup){
		.enabled = true,
		.encrypts_on_tx = order == 0 || order == 2,
		.on_wire = order == 0 || order == 3,
		.unit = block_bytes(selector),
	};
	if (standard || order > 3 || !setup->unit)
		return REFUSAL(bsf->why, EACCES, RULE_BSF_CIPHER, bsf->key, standard, order, selector);
	tweak_copy(bsf->access->hca->settings.crypto_tweak, setup->tweak, bsf->bytes + CIPHER_AT_TWEAK);
	setup->dek = dek_get(bsf->access->hca, id);
	if (!setup->dek)
		return REFUSAL(bsf->why, EACCES, RULE_BSF_DEK, bsf->key, id);
	error = check_dek(bsf, setup->dek, id);
	if (error)
		dek_put(setup->dek);
	return error;
}

/* Returns the octowords of BSFs that begin with @first; 0: invalid size code. */
static uint32_t octowords_of(uint8_t first)
{
	uint8_t code = first >> SIZE_CODE_SHIFT;

	if ((first & TYPE_MASK) == TYPE_CIPHER)
		return code == SIZE_INLINE ? OCTOWORDS_OF_BSF : 0;
	return code == SIZE_WITH_CIPHER ? 2 * OCTOWORDS_OF_BSF : 1u << code;
}

void block_setup_clear(struct block_setup *setup)
{
	if (setup->cipher.dek)
		dek_put(setup->cipher.dek);
	*setup = (struct block_setup){0};
}

int bsf_parse(const struct walk_access *access, uint32_t key, const uint8_t *bytes, uint32_t octowords,
	      struct block_setup *setup, struct refusal *why)
{
	struct bsf bsf = {access, key, bytes, bytes[0] >> SIZE_CODE_SHIFT, bytes[0] & SAME_STRUCTURE, why};
	bool cipher_only = (bytes[0] & TYPE_MASK) == TYPE_CIPHER;
	struct block_setup next = {0};
	int error = 0;

	if (!octowords_of(bytes[0]) || octowords < octowords_of(bytes[0]))
		return REFUSAL(why, EACCES, RULE_BSF_SIZE, key, octowords, bsf.size_code, octowords_of(bytes[0]));
	if (!cipher_only) {
		error = has_transaction(&bsf) ? parse_transaction(&bsf, &next.signature)
					      : parse_signature(&bsf, &next.signature);
	}
	if (!error && bsf.size_code == SIZE_WITH_CIPHER)
		bsf.bytes += OCTOWORDS_OF_BSF * 16;
	if (!error && (cipher_only || bsf.size_code == SIZE_WITH_CIPHER))
		error = parse_cipher(&bsf, &next.cipher);
	if (error)
		return error;
	/* Without a signature the order does not matter; the wire side avoids a copy. */
	next.cipher.on_wire |= !next.signature.enabled;
	block_setup_clear(setup);
	*setup = next;
	return 0;
}
