/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Send WQEs (mlx5-formats 1), keys and BSFs: the order of their parts, as in transport/requester/wqe_parse.c,
 * mkey/umr.c and mkey/bsf.c.
 */
#include "format/wqe.h"
#include "tool/decoder.h"

#define OCTOWORD 16u
#define BLOCK 64u
#define REPEAT_OP 0x400u /* mlx5-formats 1.10 */

/* ---- BSFs ------------------------------------------------------------------------------------------------------- */

enum { BSF_TYPE_CRYPTO = 1, BSF_BASIC = 0, BSF_EXTENDED = 1, BSF_CRYPTO_FOLLOWS = 3 };

void decode_bsf(struct decoder *decoder)
{
	const uint8_t *bsf = decoder->bytes + decoder->at;
	uint64_t code;

	if (decoder_left(decoder) >= part_infos[PART_BSF].bytes && part_get(bsf, PART_BSF, "type") == BSF_TYPE_CRYPTO) {
		decoder_take(decoder, PART_BSF_CRYPTO, 0);
		return;
	}
	bsf = decoder_take(decoder, PART_BSF, 0);
	if (!bsf)
		return;
	code = part_get(bsf, PART_BSF, "size_code");
	if (code >= BSF_EXTENDED && !decoder_take(decoder, PART_BSF_EXTENSION, 0))
		return;
	if (code > BSF_EXTENDED && (!decoder_take(decoder, PART_BSF_T10, 0) || !decoder_take(decoder, PART_BSF_T10, 0)))
		return;
	if (code == BSF_CRYPTO_FOLLOWS)
		decoder_take(decoder, PART_BSF_CRYPTO, 0);
}

/* ---- segments --------------------------------------------------------------------------------------------------- */

static uint32_t wqe_be32(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Also decodes the padding to 16 bytes. */
static bool take_inline(struct decoder *decoder)
{
	uint32_t bytes = wqe_be32(decoder->bytes + decoder->at) & ~MLX5_INLINE_SEG;
	size_t left, padding;

	if (!decoder_take(decoder, PART_INLINE, bytes))
		return false;
	padding = -(part_infos[PART_INLINE].bytes + (size_t)bytes) % OCTOWORD;
	left = decoder_left(decoder);
	if (padding)
		decoder_take(decoder, PART_PAD, padding < left ? padding : left);
	return true;
}

static void take_data(struct decoder *decoder)
{
	while (decoder_left(decoder)) {
		bool is_inline = decoder_left(decoder) >= sizeof(uint32_t) &&
				 wqe_be32(decoder->bytes + decoder->at) & MLX5_INLINE_SEG;

		if (is_inline ? !take_inline(decoder) : !decoder_take(decoder, PART_DATA, 0))
			return;
	}
}

static void address_decode(struct decoder *decoder, enum part part)
{
	const uint8_t *address = decoder_take(decoder, part, 0);

	if (address && part_get(address, part, "extended"))
		decoder_take(decoder, PART_ADDRESS_GRH, 0);
}

/* mlx5-formats 1.5: opmod selects the form. */
static enum part masked_atomic(uint8_t opcode, uint8_t opmod)
{
	bool adds = opcode == MLX5_OPCODE_ATOMIC_MASKED_FA;

	if (opmod == 8)
		return adds ? PART_MASKED_ADD_4 : PART_MASKED_SWAP_4;
	return opmod && adds ? PART_MASKED_ADD_8 : PART_MASKED_ATOMIC;
}

static void request_decode(struct decoder *decoder, const uint8_t *ctrl, enum decode_transport transport)
{
	uint8_t opcode = (uint8_t)part_get(ctrl, PART_CTRL, "opcode"), class = wqe_opcodes[opcode].class;
	bool atomic = class == WQE_CLASS_ATOMIC;

	if (transport == DECODE_UD)
		address_decode(decoder, PART_ADDRESS_UD);
	else if (transport == DECODE_DC)
		address_decode(decoder, PART_ADDRESS_DC);
	else if (transport == DECODE_XRC)
		decoder_take(decoder, PART_XRC, 0);
	if (class == WQE_CLASS_WRITE || wqe_class_is_answered(class))
		decoder_take(decoder, PART_RADDR, 0);
	if (atomic)
		decoder_take(decoder,
			     opcode == MLX5_OPCODE_ATOMIC_MASKED_CS || opcode == MLX5_OPCODE_ATOMIC_MASKED_FA
				     ? masked_atomic(opcode, (uint8_t)part_get(ctrl, PART_CTRL, "opmod"))
				     : PART_ATOMIC,
			     0);
	take_data(decoder);
}

/* ---- UMR -------------------------------------------------------------------------------------------------------- */

/* Returns the end of @octowords or of the WQE. */
static size_t end_of(const struct decoder *decoder, uint64_t octowords)
{
	uint64_t left = decoder_left(decoder);

	return decoder->at + (size_t)(octowords * OCTOWORD < left ? octowords * OCTOWORD : left);
}

static void take_translations(struct decoder *decoder, uint64_t octowords)
{
	size_t end = end_of(decoder, octowords), whole = decoder->end;

	decoder->end = end;
	while (decoder_left(decoder) >= OCTOWORD) {
		const uint8_t *entry = decoder->bytes + decoder->at;
		uint64_t entries = 0;

		if (wqe_be32(entry + 4) != REPEAT_OP) {
			decoder_take(decoder, PART_KLM, 0);
			continue;
		}
		decoder_take(decoder, PART_REPEAT, 0);
		for (entries = part_get(entry, PART_REPEAT, "entries"); entries && decoder_left(decoder) >= OCTOWORD;
		     entries--)
			decoder_take(decoder, PART_REPEAT_ENTRY, 0);
	}
	decoder_rest(decoder, end);
	decoder->end = whole;
}

static void take_umr(struct decoder *decoder)
{
	const uint8_t *umr = decoder_take(decoder, PART_UMR, 0);
	uint64_t translations, bsf;

	if (!umr || !decoder_take(decoder, PART_MKEY, 0))
		return;
	translations = part_get(umr, PART_UMR, "klm_octowords");
	/* The same two bytes have two meanings. */
	bsf = part_get(umr, PART_UMR, "translation_offset_on") ? 0 : part_get(umr, PART_UMR, "bsf_octowords");
	if (!part_get(umr, PART_UMR, "inline")) {
		take_data(decoder);
		return;
	}
	if ((translations + bsf) * OCTOWORD > decoder_left(decoder))
		decoder_fault(decoder, "the UMR at byte %zu announces %llu bytes behind its key, there are %zu",
			      decoder->at, (unsigned long long)(translations + bsf) * OCTOWORD, decoder_left(decoder));
	take_translations(decoder, translations);
	if (bsf) {
		size_t end = end_of(decoder, bsf), whole = decoder->end;

		decoder->end = end;
		decode_bsf(decoder);
		decoder_rest(decoder, end);
		decoder->end = whole;
	}
}

/* ---- WQEs ------------------------------------------------------------------------------------------------------- */

static void take_body(struct decoder *decoder, const uint8_t *ctrl, enum decode_transport transport)
{
	/* Without a default, so that the compiler reports a class that is missing here. */
	switch ((enum wqe_class)wqe_opcodes[ctrl[3]].class) {
	case WQE_CLASS_SEND:
	case WQE_CLASS_WRITE:
	case WQE_CLASS_READ:
	case WQE_CLASS_ATOMIC:
	case WQE_CLASS_ATOMIC_WRITE:
		request_decode(decoder, ctrl, transport);
		break;
	case WQE_CLASS_UMR:
		take_umr(decoder);
		break;
	case WQE_CLASS_SET_PSV:
		decoder_take(decoder, PART_PSV, 0);
		break;
	case WQE_CLASS_DUMP:
		take_data(decoder);
		break;
	case WQE_CLASS_MMO:
		if (decoder_take(decoder, PART_MMO, 0))
			take_data(decoder);
		break;
	case WQE_CLASS_UNKNOWN:
	case WQE_CLASS_NOP:
	case WQE_CLASS_LATER:
	case WQE_CLASS_REFUSED:
		if (ctrl[3] == MLX5_OPCODE_TSO && decoder_left(decoder) >= part_infos[PART_ETH].bytes)
			decoder_take(decoder, PART_ETH, 0);
		else if (ctrl[3] == 0x28 && decoder_left(decoder) >= part_infos[PART_TAG_MATCHING].bytes)
			decoder_take(decoder, PART_TAG_MATCHING, 0);
	}
}

static void take_wqe(struct decoder *decoder, enum decode_transport transport)
{
	size_t begin = decoder->at, size, blocks;
	const uint8_t *ctrl;
	const char *name;

	if (decoder_left(decoder) >= part_infos[PART_CTRL].bytes) {
		name = wqe_opcodes[decoder->bytes[begin + 3]].name;
		decoder_note(decoder, "WQE at byte %zu: %s", begin, name ? name : "an opcode that does not exist");
	}
	ctrl = decoder_take(decoder, PART_CTRL, 0);
	if (!ctrl)
		return;
	size = (size_t)part_get(ctrl, PART_CTRL, "ds") * OCTOWORD;
	blocks = (size + BLOCK - 1) / BLOCK * BLOCK;
	if (size < OCTOWORD || size > decoder->length - begin) {
		decoder_fault(decoder, "the WQE at byte %zu has %zu bytes, there are %zu", begin, size,
			      decoder->length - begin);
		blocks = decoder->length - begin;
		if (size < OCTOWORD || size > blocks)
			size = blocks;
	}
	decoder->end = begin + size;
	take_body(decoder, ctrl, transport);
	decoder_rest(decoder, begin + size);
	decoder->end = decoder->length;
	/* The rest of the last block does not belong to any WQE. */
	if (blocks > decoder->length - begin)
		blocks = decoder->length - begin;
	decoder_rest(decoder, begin + blocks);
}

/* A ring has blocks that were never written. */
static bool is_clear(const struct decoder *decoder)
{
	for (size_t i = decoder->at; i < decoder->end; i++)
		if (decoder->bytes[i])
			return false;
	return true;
}

void decode_wqes(struct decoder *decoder, enum decode_transport transport)
{
	if (!decoder_left(decoder))
		decoder_fault(decoder, "no bytes were given");
	while (decoder_left(decoder)) {
		if (decoder->at && is_clear(decoder))
			decoder_rest(decoder, decoder->end);
		else
			take_wqe(decoder, transport);
	}
}

void decode_mkey(struct decoder *decoder)
{
	if (decoder_take(decoder, PART_MKEY, 0))
		take_translations(decoder, UINT32_MAX);
	decoder_rest(decoder, decoder->end);
}
