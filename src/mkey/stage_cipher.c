/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AES-XTS over data units, in scratch memory, or directly if both sides are contiguous. Units of a transmission are read
 * whole. In a reception, an incomplete unit waits in scratch. The last unit of a key may be shorter.
 */
#include <string.h>

#include "mkey/stage_parts.h"

/* Transforms @bytes from @position of the cipher's side, in the direction of the transfer. */
static void stage_transform(const struct block_stage *stage, uint64_t position, void *to, const void *from,
			    uint64_t bytes)
{
	const struct cipher_setup *setup = &stage->setup->cipher;
	struct cipher_units units = {
		.encrypt = setup->encrypts_on_tx == stage->transmits,
		.unit = setup->unit,
		.first = position / setup->unit,
	};

	memcpy(units.tweak, setup->tweak, sizeof(units.tweak));
	if (!cipher_transform(setup->dek, &units, to, from, bytes))
		return;
	memset(to, 0, bytes);
	EXPLAIN(stage->access.hca, (&(const struct explain_subject){.qpn = stage->access.qpn}), RULE_CIPHER_FAILED,
		stage->map->number, units.first, bytes);
}

/* Returns the bytes of whole units among @bytes; the last one may be shorter. */
static uint64_t whole_units(const struct block_stage *stage, uint64_t bytes)
{
	uint64_t left = stage->cipher.limit > stage->cipher.position ? stage->cipher.limit - stage->cipher.position : 0;

	return bytes >= left ? left : bytes - bytes % stage->setup->cipher.unit;
}

/* Limits whole_units() to scratch. */
static uint64_t scratch_units(const struct block_stage *stage, uint64_t bytes)
{
	uint32_t unit = stage->setup->cipher.unit;

	return min_bytes(whole_units(stage, bytes), STAGE_SCRATCH / unit * unit);
}

/* ---- on the memory side --------------------------------------------------------------------------------------- */

void cipher_memory_ready(struct block_stage *stage)
{
	struct cipher_stage *cipher = &stage->cipher;
	uint64_t bytes;

	if (stage->piece.length)
		return;
	if (cipher->position + cipher->held >= cipher->limit) {
		stage->piece = (struct piece){.length = BLOCK_LARGEST};
		return;
	}
	if (!stage->transmits) {
		stage->piece.address = cipher->scratch + cipher->held;
		stage->piece.length =
			min_bytes(stage->setup->cipher.unit, cipher->limit - cipher->position) - cipher->held;
		return;
	}
	bytes = scratch_units(stage, UINT64_MAX);
	walk_read(stage, cipher->scratch, bytes);
	stage_transform(stage, cipher->position, cipher->scratch, cipher->scratch, bytes);
	cipher->position += bytes;
	stage->piece = (struct piece){.address = cipher->scratch, .length = bytes};
}

/* Receiving: deciphers and writes the unit in scratch if complete. */
static void end_unit(struct block_stage *stage)
{
	struct cipher_stage *cipher = &stage->cipher;

	if (cipher->held < stage->setup->cipher.unit && cipher->position + cipher->held < cipher->limit)
		return;
	stage_transform(stage, cipher->position, cipher->scratch, cipher->scratch, cipher->held);
	walk_write(stage, cipher->scratch, cipher->held);
	cipher->position += cipher->held;
	cipher->held = 0;
	stage->piece.length = 0;
}

void cipher_memory_resume(struct block_stage *stage)
{
	end_unit(stage);
}

void cipher_memory_passed(struct block_stage *stage, uint64_t bytes)
{
	if (stage->transmits || !stage->piece.address)
		return;
	stage->cipher.held += (uint32_t)bytes;
	end_unit(stage);
}

/* ---- on the wire side ----------------------------------------------------------------------------------------- */

/* Returns the bytes of whole units that need no scratch; 0 with a signature. */
static uint64_t direct_units(struct block_stage *stage, uint64_t bytes)
{
	if (stage->setup->signature.enabled)
		return 0;
	memory_ready(stage);
	return stage->piece.address ? whole_units(stage, min_bytes(bytes, stage->piece.length)) : 0;
}

static uint64_t transmit_units(struct block_stage *stage, uint8_t *to, uint64_t bytes)
{
	struct cipher_stage *cipher = &stage->cipher;
	uint64_t units = direct_units(stage, bytes);

	if (units) {
		stage_transform(stage, cipher->position, to, stage->piece.address, units);
		memory_passed(stage, units);
	} else {
		units = scratch_units(stage, bytes);
		if (!units)
			return 0;
		signature_transmit(stage, cipher->scratch, units);
		stage_transform(stage, cipher->position, to, cipher->scratch, units);
	}
	cipher->position += units;
	return units;
}

void cipher_transmit(struct block_stage *stage, uint8_t *to, uint64_t bytes)
{
	struct cipher_stage *cipher = &stage->cipher;

	while (bytes) {
		/* Bytes before the transfer count as taken. */
		uint64_t passed = cipher->taken || cipher->held ? 0 : transmit_units(stage, to, bytes);

		if (!passed && cipher->held <= cipher->taken) {
			uint64_t unit = whole_units(stage, stage->setup->cipher.unit);

			if (!unit) {
				memset(to, 0, bytes);
				return;
			}
			signature_transmit(stage, cipher->scratch, unit);
			stage_transform(stage, cipher->position, cipher->scratch, cipher->scratch, unit);
			cipher->position += unit;
			cipher->held = (uint32_t)unit;
		}
		if (!passed) {
			passed = min_bytes(bytes, cipher->held - cipher->taken);
			memcpy(to, cipher->scratch + cipher->taken, passed);
			cipher->taken += (uint32_t)passed;
			if (cipher->taken == cipher->held)
				cipher->taken = cipher->held = 0;
		}
		to += passed;
		bytes -= passed;
	}
}

static uint64_t receive_units(struct block_stage *stage, const uint8_t *from, uint64_t bytes)
{
	struct cipher_stage *cipher = &stage->cipher;
	uint64_t units = direct_units(stage, bytes);

	if (units) {
		stage_transform(stage, cipher->position, stage->piece.address, from, units);
		memory_passed(stage, units);
	} else {
		units = scratch_units(stage, bytes);
		if (!units)
			return 0;
		stage_transform(stage, cipher->position, cipher->scratch, from, units);
		signature_receive(stage, cipher->scratch, units);
	}
	cipher->position += units;
	return units;
}

void cipher_receive(struct block_stage *stage, const uint8_t *from, uint64_t bytes)
{
	struct cipher_stage *cipher = &stage->cipher;

	while (bytes) {
		uint64_t passed = cipher->held ? 0 : receive_units(stage, from, bytes), unit;

		if (!passed) {
			unit = min_bytes(stage->setup->cipher.unit,
					 cipher->limit > cipher->position ? cipher->limit - cipher->position : 0);
			if (unit <= cipher->held)
				return;
			passed = min_bytes(bytes, unit - cipher->held);
			memcpy(cipher->scratch + cipher->held, from, passed);
			cipher->held += (uint32_t)passed;
			if (cipher->held == unit) {
				stage_transform(stage, cipher->position, cipher->scratch, cipher->scratch, unit);
				signature_receive(stage, cipher->scratch, unit);
				cipher->position += unit;
				cipher->held = 0;
			}
		}
		from += passed;
		bytes -= passed;
	}
}
