/* SPDX-License-Identifier: BSD-2-Clause */
/* The block stage: checks, beginning, end and memory side. */
#include "mkey/stage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mkey/stage_parts.h"
#include "mkey/copy.h"

/* Positions beyond never refer to memory, and the sum of two positions does not wrap. */
#define POSITION_LIMIT (UINT64_C(1) << 61)
/* AES-XTS has no shorter units (IEEE 1619). */
#define SHORTEST_UNIT 16

static bool is_transmission(uint8_t rights)
{
	return !(rights & (RIGHT_LOCAL_WRITE | RIGHT_REMOTE_WRITE));
}

/* ---- where an earlier reception stopped ----------------------------------------------------------------------- */

void block_progress_release(struct block_progress *progress)
{
	free(progress->reached);
	free(progress->unit);
	*progress = (struct block_progress){0};
}

static bool reached_continues(const struct block_reached *reached, const struct mapping *map, uint64_t wire)
{
	return reached->serial == map->serial && reached->version == map->version && reached->wire == wire;
}

static bool own_continues(const struct block_progress *own, const struct mapping *map, uint64_t wire)
{
	return own && own->valid && reached_continues(own->reached, map, wire);
}

static struct mkey *key_of(const struct block_stage *stage)
{
	return mkey_find(stage->access.hca, stage->map->number);
}

static void stage_restore(struct block_stage *stage, const struct block_reached *reached)
{
	struct signature_stage *at = &stage->signature;

	if (stage->setup->signature.enabled) {
		at->raw = reached->raw;
		at->in_field = reached->in_field;
		at->field_at = reached->field_at;
		at->field_torn = reached->field_torn;
		at->field = reached->field;
		at->input_whole = reached->input_whole;
		at->output_whole = reached->output_whole;
		at->input_guard = reached->input_guard;
		at->output_guard = reached->output_guard;
	}
	stage->cipher.held = reached->held;
}

/*
 * Restores the state of a reception that stopped at @wire, from the queue pair, otherwise from the key. Only the queue
 * pair keeps the bytes of an incomplete data unit.
 */
static void find_progress(struct block_stage *stage, uint64_t wire)
{
	struct block_progress *own = stage->access.progress;
	struct mkey *key = key_of(stage);
	bool found = own_continues(own, stage->map, wire);

	if (found)
		stage_restore(stage, own->reached);
	/* Later data continues from this transfer. */
	if (own)
		own->valid = false;
	if (!key || !__atomic_load_n(&key->has_reached, __ATOMIC_RELAXED))
		return;
	queue_lock(mkey_lock(key));
	if (!found && key->has_reached && reached_continues(&key->reached, stage->map, wire))
		stage_restore(stage, &key->reached);
	__atomic_store_n(&key->has_reached, false, __ATOMIC_RELAXED);
	queue_unlock(mkey_lock(key));
}

static struct block_reached reached_of(const struct block_stage *stage)
{
	const struct signature_stage *at = &stage->signature;
	struct block_reached reached = {
		.serial = stage->map->serial,
		.version = stage->map->version,
		.wire = stage->position,
		.held = stage->cipher.held,
	};

	if (!stage->setup->signature.enabled)
		return reached;
	reached.raw = at->raw;
	reached.in_field = at->in_field;
	reached.field_at = at->field_at;
	reached.field_torn = at->field_torn;
	reached.field = at->field;
	reached.input_whole = at->input_whole;
	reached.output_whole = at->output_whole;
	reached.input_guard = at->input_guard;
	reached.output_guard = at->output_guard;
	return reached;
}

static bool inside_block(const struct block_stage *stage)
{
	const struct signature_stage *at = &stage->signature;

	if (stage->cipher.held)
		return true;
	if (!stage->setup->signature.enabled)
		return false;
	return at->in_field || at->raw % at->input->block || at->raw % at->output->block;
}

/* Without memory no state is kept, and the block is neither checked nor gets a field (mkey/stage.h). */
static bool progress_reserve(struct block_progress *own, bool with_unit)
{
	if (!own->reached)
		own->reached = malloc(sizeof(*own->reached));
	if (with_unit && !own->unit)
		own->unit = malloc(BLOCK_LARGEST);
	return own->reached && (own->unit || !with_unit);
}

static void keep_own(const struct block_stage *stage, const struct block_reached *reached)
{
	struct block_progress *own = stage->access.progress;

	if (!own)
		return;
	/* Between messages only the key's state is valid: another queue pair may use the key. */
	own->valid = (stage->access.unfinished || reached->held) && progress_reserve(own, reached->held);
	if (!own->valid)
		return;
	*own->reached = *reached;
	if (reached->held)
		memcpy(own->unit, stage->cipher.scratch, reached->held);
}

/* Returns true if a block of @stage has a signature that is checked, or gets one. A transaction has a single block. */
static bool block_has_signature(const struct block_stage *stage)
{
	const struct signature_setup *setup = &stage->setup->signature;
	const struct signature_domain *input = stage->transmits ? &setup->memory : &setup->wire;
	const struct signature_domain *output = stage->transmits ? &setup->wire : &setup->memory;

	return setup->enabled && !setup->transaction && ((input->field && setup->checked) || output->field);
}

/* Block 0: none. */
static struct hca_cut_block cut_block_of(const struct block_stage *stage)
{
	const struct signature_setup *setup = &stage->setup->signature;
	const struct signature_domain *wire = &setup->wire, *memory = &setup->memory;
	const struct wire_position at = wire_position(setup, stage->position);

	if (at.in_field)
		return (struct hca_cut_block){wire->block + at.field, extended_block(wire)};
	if (wire->field && at.raw % wire->block)
		return (struct hca_cut_block){(uint32_t)(at.raw % wire->block), extended_block(wire)};
	if (memory->field && at.raw % memory->block)
		return (struct hca_cut_block){(uint32_t)(at.raw % memory->block), memory->block};
	return (struct hca_cut_block){0};
}

static void note_block_end(const struct block_stage *stage)
{
	struct mkey *key = key_of(stage);

	if (!key || !stage->begun || !block_has_signature(stage))
		return;
	queue_lock(mkey_lock(key));
	key->cut = cut_block_of(stage);
	key->cut_version = stage->map->version;
	queue_unlock(mkey_lock(key));
}

void stage_end(struct block_stage *stage)
{
	struct block_reached reached;
	struct mkey *key;

	if (unlikely(stage->access.hca->notes_block_ends))
		note_block_end(stage);
	if (stage->transmits || !inside_block(stage))
		return;
	reached = reached_of(stage);
	keep_own(stage, &reached);
	key = key_of(stage);
	if (!key || reached.held)
		return;
	queue_lock(mkey_lock(key));
	key->reached = reached;
	__atomic_store_n(&key->has_reached, true, __ATOMIC_RELAXED);
	queue_unlock(mkey_lock(key));
}

/* ---- checks --------------------------------------------------------------------------------------------------- */

/*
 * Returns where the last data unit of a reception ends on the cipher's side: at @end if the message may end there,
 * otherwise at the end of the key.
 */
static uint64_t last_unit_end(const struct walk_access *access, const struct mapping *map, uint64_t end)
{
	const struct cipher_setup *cipher = &map->blocks->cipher;

	if (!access->more && ends_inside_unit(cipher, end))
		return end;
	return cipher->on_wire ? wire_length(map->blocks, map->length) : map->length;
}

/* Returns true if the previous packet ended at @position, inside its data unit. */
static bool unit_continues(const struct walk_access *access, const struct mapping *map, uint64_t wire,
			   uint64_t position)
{
	return own_continues(access->progress, map, wire) &&
	       access->progress->reached->held == position % map->blocks->cipher.unit;
}

/*
 * Checks the boundaries of data units. A reception is deciphered by whole units: it must begin at a unit or where the
 * previous packet ended, and end with a unit, with a part that can be deciphered alone, or at the end of the key, unless
 * more of the message follows.
 */
static int check_units(const struct walk_access *access, const struct mapping *map, bool sends, uint64_t wire,
		       uint64_t length, const struct transfer_range *range, struct refusal *why)
{
	const struct cipher_setup *cipher = &map->blocks->cipher;
	uint64_t all = cipher->on_wire ? wire_length(map->blocks, map->length) : map->length;
	uint64_t first = cipher->on_wire ? wire : range->needed.first;
	uint64_t end = cipher->on_wire ? wire + length : range->needed.end;
	uint64_t rest = all % cipher->unit;

	if (rest && rest < SHORTEST_UNIT && end > all - rest)
		return REFUSAL(why, EACCES, RULE_CIPHER_SHORT_UNIT, map->number, all, cipher->unit, rest);
	if (sends)
		return 0;
	/* A transfer of field bytes alone may have no bytes on the cipher's side, and begins no unit. */
	if ((first % cipher->unit && first != end && !unit_continues(access, map, wire, first)) ||
	    (end % cipher->unit && !access->more && end != last_unit_end(access, map, end)))
		return REFUSAL(why, EACCES, RULE_CIPHER_CUT, map->number, first, end, cipher->unit, all);
	return 0;
}

/* Checks everything except the memory. Stores its range in range->memory. */
static int check_transfer(const struct walk_access *access, uint8_t rights, const struct mapping *map, uint64_t wire,
			  uint64_t length, struct transfer_range *range, struct refusal *why)
{
	if (access->staged)
		return REFUSAL(why, EACCES, RULE_STAGE_NESTED, map->number);
	if (rights & RIGHT_ATOMIC)
		return REFUSAL(why, EACCES, RULE_STAGE_ATOMIC, map->number);
	if (map->needs_cipher && !map->blocks->cipher.enabled)
		return REFUSAL(why, EACCES, RULE_CIPHER_MISSING, map->number);
	if (wire < map->start || wire - map->start >= POSITION_LIMIT || length >= POSITION_LIMIT)
		return REFUSAL(why, EACCES, RULE_KEY_RANGE, map->number, map->kind, map->start, map->length, wire,
			       length);
	wire -= map->start;
	transfer_range_set(range, map->blocks, is_transmission(rights), wire, length, map->length);
	if (range->memory.end > map->length)
		return REFUSAL(why, EACCES, RULE_STAGE_RANGE, map->number, wire, length, range->memory.first,
			       range->memory.end, map->length);
	if (map->blocks->signature.enabled && map->blocks->signature.limit != UINT64_MAX &&
	    wire_position(&map->blocks->signature, range->wire.end).raw > map->blocks->signature.limit)
		return REFUSAL(why, EACCES, RULE_STAGE_LIMIT, map->number, wire, length, map->blocks->signature.limit);
	if (map->blocks->cipher.enabled)
		return check_units(access, map, is_transmission(rights), wire, length, range, why);
	return 0;
}

static int check_memory(const struct walk_access *access, uint8_t rights, const struct mapping *map,
			const struct byte_range *memory, uint32_t depth, struct refusal *why)
{
	struct walk_access inside = *access;

	inside.staged = true;
	return walk_check(&inside, rights, map, memory->first, memory->end - memory->first, depth, why);
}

int stage_check(const struct walk_access *access, uint8_t rights, const struct mapping *map, uint64_t wire,
		uint64_t length, uint32_t depth, struct refusal *why)
{
	struct transfer_range range;
	int error = check_transfer(access, rights, map, wire, length, &range, why);

	return error ? error : check_memory(access, rights, map, &range.memory, depth, why);
}

/* ---- beginning ------------------------------------------------------------------------------------------------ */

static void begin_cipher(struct block_stage *stage, const struct transfer_range *range)
{
	const struct cipher_setup *setup = &stage->setup->cipher;
	struct cipher_stage *cipher = &stage->cipher;
	const struct byte_range *units = setup->on_wire ? &range->wire : &range->memory;

	if (!setup->enabled) {
		cipher->held = 0;
		return;
	}
	cipher->scratch = NULL;
	cipher->memory = (struct piece){0};
	cipher->held = 0;
	cipher->taken = 0;
	cipher->position = units->first;
	cipher->limit = units->end;
	if (setup->enabled && !stage->transmits)
		cipher->limit =
			last_unit_end(&stage->access, stage->map, setup->on_wire ? range->wire.end : range->needed.end);
}

int stage_begin(struct block_stage *stage, const struct walk_access *access, uint8_t rights, const struct mapping *map,
		uint64_t wire, uint64_t length, uint64_t offset, struct refusal *why)
{
	struct transfer_range *range = &stage->range;
	struct piece piece = {0};
	int error = check_transfer(access, rights, map, wire, length, range, why);
	uint64_t bytes;

	if (error)
		return error;
	bytes = range->memory.end - range->memory.first;
	stage->walk.left = 0;
	if (!walk_at_once(access, rights, map, range->memory.first, bytes, &piece)) {
		if (!walk_enter_list(&stage->walk, access, rights, map, range->memory.first, bytes)) {
			error = check_memory(access, rights, map, &range->memory, 1, why);
			if (error)
				return error;
			walk_enter(&stage->walk, access, map, range->memory.first, bytes);
		}
		stage->walk.staged = true;
	}
	stage->map = map;
	stage->setup = map->blocks;
	stage->access = *access;
	stage->transmits = is_transmission(rights);
	stage->position = wire - map->start;
	stage->origin = offset - stage->position;
	stage->start = 0;
	stage->begun = false;
	begin_cipher(stage, range);
	/* Set member by member: see transfer_range_set(). */
	stage->cipher.memory = (struct piece){.address = piece.address, .length = piece.length};
	stage->piece = (struct piece){0};
	/* With a cipher on the memory side, the signature works on deciphered units. */
	if (!cipher_on_memory(stage))
		stage->piece = (struct piece){.address = piece.address, .length = piece.length};
	return 0;
}

/*
 * Completes stage_begin() when scratch memory is there: reads the bytes before the transfer, or restores earlier state.
 */
static void stage_start(struct block_stage *stage, uint8_t *scratch)
{
	stage->begun = true;
	stage->cipher.scratch = scratch;
	if (stage->transmits && cipher_on_memory(stage))
		memory_skip(stage, stage->range.needed.first - stage->range.memory.first);
	signature_begin(stage);
	if (stage->transmits) {
		if (cipher_on_wire(stage))
			stage->cipher.taken = (uint32_t)(stage->position - stage->range.wire.first);
		return;
	}
	find_progress(stage, stage->position);
	if (!stage->cipher.held)
		return;
	memcpy(scratch, stage->access.progress->unit, stage->cipher.held);
	if (cipher_on_memory(stage))
		cipher_memory_resume(stage);
}

void stage_transmit(struct block_stage *stage, uint8_t *to, uint64_t length, uint8_t *scratch)
{
	if (!stage->begun)
		stage_start(stage, scratch);
	if (cipher_on_wire(stage))
		cipher_transmit(stage, to, length);
	else
		signature_transmit(stage, to, length);
	stage->position += length;
}

void stage_receive(struct block_stage *stage, const uint8_t *from, uint64_t length, uint8_t *scratch)
{
	if (!stage->begun)
		stage_start(stage, scratch);
	if (cipher_on_wire(stage))
		cipher_receive(stage, from, length);
	else
		signature_receive(stage, from, length);
	stage->position += length;
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

static void walk_ready(struct block_stage *stage, struct piece *piece)
{
	if (!piece->length && !walk_next(&stage->walk, UINT64_MAX, piece))
		*piece = (struct piece){.length = BLOCK_LARGEST};
}

static void piece_advance(struct piece *piece, uint64_t bytes)
{
	if (piece->address)
		piece->address += bytes;
	piece->length -= bytes;
}

void walk_read(struct block_stage *stage, uint8_t *to, uint64_t bytes)
{
	struct piece *piece = &stage->cipher.memory;

	while (bytes) {
		uint64_t part;

		walk_ready(stage, piece);
		part = min_bytes(bytes, piece->length);
		copy_bytes(to, piece->address, part);
		piece_advance(piece, part);
		to += part;
		bytes -= part;
	}
}

void walk_write(struct block_stage *stage, const uint8_t *from, uint64_t bytes)
{
	struct piece *piece = &stage->cipher.memory;

	while (bytes) {
		uint64_t part;

		walk_ready(stage, piece);
		part = min_bytes(bytes, piece->length);
		copy_bytes(piece->address, from, part);
		piece_advance(piece, part);
		from += part;
		bytes -= part;
	}
}

void memory_ready(struct block_stage *stage)
{
	if (cipher_on_memory(stage))
		cipher_memory_ready(stage);
	else
		walk_ready(stage, &stage->piece);
}

void memory_passed(struct block_stage *stage, uint64_t bytes)
{
	bool scratch = stage->piece.address;

	piece_advance(&stage->piece, bytes);
	if (scratch && cipher_on_memory(stage))
		cipher_memory_passed(stage, bytes);
}

void memory_read(struct block_stage *stage, uint8_t *to, uint64_t bytes)
{
	while (bytes) {
		uint64_t part;

		memory_ready(stage);
		part = min_bytes(bytes, stage->piece.length);
		copy_bytes(to, stage->piece.address, part);
		memory_passed(stage, part);
		to += part;
		bytes -= part;
	}
}

void memory_write(struct block_stage *stage, const uint8_t *from, uint64_t bytes)
{
	while (bytes) {
		uint64_t part;

		memory_ready(stage);
		part = min_bytes(bytes, stage->piece.length);
		copy_bytes(stage->piece.address, from, part);
		memory_passed(stage, part);
		from += part;
		bytes -= part;
	}
}

void memory_skip(struct block_stage *stage, uint64_t bytes)
{
	while (bytes) {
		uint64_t part;

		memory_ready(stage);
		part = min_bytes(bytes, stage->piece.length);
		/* Zeroed, because the unit is written as a whole. */
		if (!stage->transmits && cipher_on_memory(stage))
			copy_bytes(stage->piece.address, NULL, part);
		memory_passed(stage, part);
		bytes -= part;
	}
}
