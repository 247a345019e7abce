/* SPDX-License-Identifier: BSD-2-Clause */
/* Signature BSFs: mlx5-formats 1.11, 1.13 and 4.5. */
#include "mlx5dv/bsf.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

enum {
	SIZE_INLINE = 2 << 6,      /* two inline sections */
	SIZE_WITH_CRYPTO = 3 << 6, /* followed by a crypto BSF */
	SAME_STRUCTURE = 1 << 4,   /* the domains have the same blocks and fields */

	FORMAT_CRC32 = 0x20,
	FORMAT_CRC32C = 0x40,
	FORMAT_CRC64_XP10 = 0x50,
	FORMAT_REPEAT = 0x02, /* restart for each block */
	FORMAT_SEED_0 = 0x01, /* otherwise all ones */

	SECTION_VALID = 0x8000,
	SECTION_REFRESH = 0x4000,
	SECTION_CRC = 1,
	SECTION_IP_CHECKSUM = 2,
	SECTION_REPEAT = 0x80,
	SECTION_SEED_ONES = 0x08,
	SECTION_INCREMENT = 0x40,
	SECTION_APP_ESCAPE = 0x01,
	SECTION_APP_REF_ESCAPE = 0x02,
};

struct bsf_section {
	__be16 valid_refresh;
	__be16 app_tag;
	__be32 ref_tag;
	uint8_t guard;
	uint8_t repeat_seed;
	uint8_t reserved[3];
	uint8_t increment_escape;
	__be16 app_tag_mask;
};

struct bsf {
	uint8_t size_structure;
	uint8_t check_mask;
	uint8_t wire; /* copy mask if both domains have the same structure, otherwise block size */
	uint8_t memory_block;
	__be32 raw_data_size;
	__be32 wire_format_psv;
	__be32 memory_format_psv;
	__be32 extension[4];
	struct bsf_section wire_section, memory_section;
};

_Static_assert(sizeof(struct bsf) == BSF_BYTES, "mlx5-formats 1.11");

uint8_t bsf_block_selector(enum mlx5dv_block_size size)
{
	switch (size) {
	case MLX5DV_BLOCK_SIZE_512:
		return 1;
	case MLX5DV_BLOCK_SIZE_520:
		return 2;
	case MLX5DV_BLOCK_SIZE_4048:
		return 6;
	case MLX5DV_BLOCK_SIZE_4096:
		return 3;
	case MLX5DV_BLOCK_SIZE_4160:
		return 4;
	}
	return 0;
}

static uint8_t crc_format(const struct mlx5dv_sig_crc *crc)
{
	static const uint8_t formats[] = {
		[MLX5DV_SIG_CRC_TYPE_CRC32] = FORMAT_CRC32,
		[MLX5DV_SIG_CRC_TYPE_CRC32C] = FORMAT_CRC32C,
		[MLX5DV_SIG_CRC_TYPE_CRC64_XP10] = FORMAT_CRC64_XP10,
	};

	return formats[crc->type] | FORMAT_REPEAT | (crc->seed ? 0 : FORMAT_SEED_0);
}

static void fill_section(struct bsf_section *section, const struct mlx5dv_sig_t10dif *dif)
{
	section->valid_refresh = htobe16(SECTION_VALID | SECTION_REFRESH);
	section->app_tag = htobe16(dif->app_tag);
	section->ref_tag = htobe32(dif->ref_tag);
	section->guard = dif->bg_type == MLX5DV_SIG_T10DIF_CSUM ? SECTION_IP_CHECKSUM : SECTION_CRC;
	section->repeat_seed = SECTION_REPEAT | (dif->bg ? SECTION_SEED_ONES : 0);
	if (dif->flags & MLX5DV_SIG_T10DIF_FLAG_REF_REMAP)
		section->increment_escape |= SECTION_INCREMENT;
	/* If both escapes are requested, the narrower one applies (mlx5-formats 4.7). */
	if (dif->flags & MLX5DV_SIG_T10DIF_FLAG_APP_REF_ESCAPE)
		section->increment_escape |= SECTION_APP_REF_ESCAPE;
	else if (dif->flags & MLX5DV_SIG_T10DIF_FLAG_APP_ESCAPE)
		section->increment_escape |= SECTION_APP_ESCAPE;
	section->app_tag_mask = 0xffff;
}

/* Returns format and PSV. */
static __be32 fill_domain(struct bsf_section *section, const struct key_domain *domain, uint32_t psv)
{
	if (domain->kind == SIGNATURE_CRC)
		return htobe32((uint32_t)crc_format(&domain->crc) << 24 | psv);
	fill_section(section, &domain->dif);
	return htobe32(psv);
}

static bool domains_same_structure(const struct key_domain *a, const struct key_domain *b)
{
	return a->kind == b->kind && a->block_size == b->block_size &&
	       (a->kind != SIGNATURE_CRC || a->crc.type == b->crc.type);
}

/*
 * mlx5dv_wr_set_mkey_sig_block(3), copy_mask: "The signature is copied if the same signature type is configured on both
 * domains. The parts of the T10-DIF are compared and handled independently." A part is equal if both domains generate
 * it in the same way: for reference tags this depends on REF_REMAP, which a ConnectX's library ignores (mlx5-formats
 * 4.5). Escapes affect checks only. For a CRC the type is compared, not the seed, as the page says.
 */
static uint8_t automatic_copy_mask(const struct key_domain *memory, const struct key_domain *wire,
				   enum setting_PROFILE profile)
{
	const uint16_t compared = profile == PROFILE_MAN ? MLX5DV_SIG_T10DIF_FLAG_REF_REMAP : 0;
	const struct mlx5dv_sig_t10dif *a = &memory->dif, *b = &wire->dif;
	uint8_t mask = 0;

	if (memory->kind == SIGNATURE_CRC)
		return memory->crc.type == MLX5DV_SIG_CRC_TYPE_CRC64_XP10 ? MLX5DV_SIG_MASK_CRC64_XP10
									  : MLX5DV_SIG_MASK_CRC32;
	if (a->bg_type == b->bg_type && a->bg == b->bg)
		mask |= MLX5DV_SIG_MASK_T10DIF_GUARD;
	if (a->app_tag == b->app_tag)
		mask |= MLX5DV_SIG_MASK_T10DIF_APPTAG;
	if (a->ref_tag == b->ref_tag && (a->flags & compared) == (b->flags & compared))
		mask |= MLX5DV_SIG_MASK_T10DIF_REFTAG;
	return mask;
}

/*
 * "The MKEY configuration will fail if MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK is set but the domains have different
 * signature structures": this includes a domain without one. A ConnectX's library checks only if there is a wire domain
 * (mlx5-formats 4.5).
 */
static bool mask_allowed(const struct key_signature *signature, enum setting_PROFILE profile)
{
	const struct key_domain *memory = &signature->memory, *wire = &signature->wire;

	if (!(signature->flags & MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK) ||
	    (memory->kind == SIGNATURE_NONE && wire->kind == SIGNATURE_NONE))
		return true;
	return domains_same_structure(memory, wire) || (profile == PROFILE_CONNECTX && wire->kind == SIGNATURE_NONE);
}

int signature_bsf(const struct key_signature *signature, enum setting_PROFILE profile, bool crypto_follows,
		  uint8_t out[BSF_BYTES])
{
	const struct key_domain *memory = &signature->memory, *wire = &signature->wire;
	bool copy = signature->flags & MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK;
	struct bsf bsf = {
		.size_structure = crypto_follows ? SIZE_WITH_CRYPTO : SIZE_INLINE,
		.raw_data_size = htobe32(UINT32_MAX),
	};

	if (!mask_allowed(signature, profile))
		return -EINVAL;
	if (memory->kind != SIGNATURE_NONE || wire->kind != SIGNATURE_NONE)
		bsf.check_mask = signature->check_mask;
	if (memory->kind != SIGNATURE_NONE) {
		bsf.memory_format_psv = fill_domain(&bsf.memory_section, memory, signature->memory_psv);
		bsf.memory_block = bsf_block_selector(memory->block_size);
	}
	if (wire->kind != SIGNATURE_NONE) {
		bsf.wire_format_psv = fill_domain(&bsf.wire_section, wire, signature->wire_psv);
		if (domains_same_structure(memory, wire)) {
			bsf.size_structure |= SAME_STRUCTURE;
			bsf.wire = copy ? signature->copy_mask : automatic_copy_mask(memory, wire, profile);
		} else {
			bsf.wire = bsf_block_selector(wire->block_size);
		}
	}
	memcpy(out, &bsf, sizeof(bsf));
	return 0;
}

uint64_t signature_transient(const struct key_domain *domain)
{
	const struct mlx5dv_sig_t10dif *dif = &domain->dif;

	if (domain->kind == SIGNATURE_T10DIF)
		return (uint64_t)dif->bg << 48 | (uint64_t)dif->app_tag << 32 | dif->ref_tag;
	return domain->crc.type == MLX5DV_SIG_CRC_TYPE_CRC64_XP10 ? domain->crc.seed : domain->crc.seed << 32;
}
