/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws signatures: all combinations of domains (mlx5dv_wr_set_mkey_sig_block(3)). */
#include "draw.h"

static uint32_t draw_block(struct choose *c)
{
	static const uint32_t blocks[] = {512, 512, 512, 520, 520, 4048, 4096, 4096, 4160};

	return CHOOSE_OF(c, blocks);
}

static void draw_flags(struct choose *c, struct domain *domain)
{
	domain->remap = chance(c, 65);
	domain->app_escape = chance(c, 20);
	domain->app_ref_escape = chance(c, 20);
}

static uint16_t draw_app(struct choose *c)
{
	static const uint16_t apps[] = {0, 0xffff, 0x5678, 0xff00, 1};

	return chance(c, 60) ? (uint16_t)choose_bits(c) : CHOOSE_OF(c, apps);
}

/* Draws a reference tag, often one that wraps within few blocks. */
static uint32_t draw_reference(struct choose *c)
{
	static const uint32_t references[] = {0, 0xffffffff, 0xfffffffe, 0x7fffffff, 0xffff, 0xf0debc9a, 0x0000fffe};

	return chance(c, 50) ? (uint32_t)choose_bits(c) : CHOOSE_OF(c, references);
}

static void draw_domain(struct choose *c, struct domain *domain)
{
	*domain = (struct domain){.kind = chance(c, 50) ? KIND_T10 : KIND_CRC, .ones = chance(c, 50)};
	domain->block = draw_block(c);
	if (domain->kind == KIND_CRC) {
		domain->guard = GUARD_CRC32 + (enum guard)choose_below(c, 3);
		return;
	}
	domain->guard = chance(c, 50) ? GUARD_T10_CRC : GUARD_T10_CSUM;
	domain->app = draw_app(c);
	domain->ref = draw_reference(c);
	draw_flags(c, domain);
}

/* Draws a domain with the structure of @from; the parts of its field are partly the same. */
static void draw_alike(struct choose *c, const struct domain *from, struct domain *to)
{
	*to = *from;
	if (chance(c, 35))
		to->ones = !to->ones;
	if (from->kind == KIND_CRC)
		return;
	if (chance(c, 30))
		to->guard = to->guard == GUARD_T10_CRC ? GUARD_T10_CSUM : GUARD_T10_CRC;
	if (chance(c, 40))
		to->app = draw_app(c);
	if (chance(c, 40))
		to->ref = draw_reference(c);
	if (chance(c, 40))
		draw_flags(c, to);
}

static uint8_t draw_mask(struct choose *c)
{
	static const uint8_t masks[] = {0xff, 0xc0, 0x30, 0x0f, 0xf0, 0x00, 0xfe, 0x7f, 0x10, 0x20, 0x40, 0x80, 0x01};

	return chance(c, 50) ? CHOOSE_OF(c, masks) : (uint8_t)choose_bits(c);
}

static void draw_masks(struct choose *c, bool connectx, struct signature *signature)
{
	signature->check = chance(c, 50) ? 0xff : draw_mask(c);
	/*
	 * "may be used only if input and output domains have the same structure"; connectx: or without a wire domain
	 * (mlx5-formats 4.5).
	 */
	signature->has_copy =
		chance(c, 40) && (same_structure(signature) || (connectx && signature->wire.kind == KIND_NONE));
	signature->copy = signature->has_copy ? draw_mask(c) : 0;
}

void draw_signature(struct choose *c, bool connectx, struct signature *signature)
{
	unsigned int shape = (unsigned int)choose_below(c, 100);

	*signature = (struct signature){.check = 0};
	if (shape < 60 || shape >= 80)
		draw_domain(c, &signature->memory);
	if (shape >= 60)
		draw_domain(c, &signature->wire);
	if (shape < 40)
		draw_alike(c, &signature->memory, &signature->wire);
	draw_masks(c, connectx, signature);
}

void draw_signature_for(struct choose *c, bool connectx, const struct domain *wire, struct signature *signature)
{
	unsigned int shape = (unsigned int)choose_below(c, 100);

	*signature = (struct signature){.wire = *wire};
	if (wire->kind == KIND_NONE || shape < 30)
		draw_domain(c, &signature->memory);
	else if (shape < 70)
		draw_alike(c, wire, &signature->memory);
	draw_masks(c, connectx, signature);
}
