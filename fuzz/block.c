/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes BSFs and the block stage: any setup that bsf_parse() accepts, and any transfer through it, in any parts
 * (block_input.h).
 *
 * Checks that no byte of memory is accessed outside of the result of transfer_range(); that the division into parts does not
 * matter, within one stage or as packets with a stage each; that a part of a key is sent as in the whole; and that received
 * data is received identically when sent again, without a check error if it begins with a block.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mkey/signature_report.h"
#include "mkey/stage.h"
#include "block_key.h"
#include "core/epoch.h"
#include "mkey/stream.h"

#define MOST_WIRE (2 * MOST_BYTES) /* bytes on the wire of a transfer */

enum manner { AT_ONCE, IN_PARTS, IN_PACKETS };

struct reports {
	struct signature_observer observer;
	uint32_t count;
	struct signature_error first;
};

#define MOST_PLAIN 4096u

static struct input input;
static struct reports reports;
static struct block_progress progress;
static uint8_t background[MOST_BYTES]; /* of the key, before any receive */

/* Returns the memory of WORLD_FULL. */
static uint8_t *plain_memory(void)
{
	return (uint8_t *)(uintptr_t)(WORLD_BASE + 0x1040);
}

static void fill(uint8_t *bytes, size_t count, uint32_t salt)
{
	uint64_t state = (input.seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + salt;

	for (size_t i = 0; i < count; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		bytes[i] = (uint8_t)(state >> 32);
	}
	if (input.contents % CONTENTS_COUNT != CONTENTS_RANDOM)
		memset(bytes, input.contents % CONTENTS_COUNT == CONTENTS_ZERO ? 0 : 0xff, count);
}

/* ---- transfers ------------------------------------------------------------------------------------------------ */

static void take_report(struct signature_observer *observer, const struct signature_error *error)
{
	struct reports *to = (struct reports *)observer;

	/* The key keeps the first error. Among packets that end inside a data unit, two process the rest of it and find its
	 * error twice. */
	if (to->count)
		return;
	to->count = 1;
	to->first = *error;
}

/* mlx5dv_mkey_check(3), offset: the start of the block in the transfer from @first on, 0 if it is before @first. */
static void check_kept(const struct signature_error *error, const struct signature_domain *domain, uint64_t first)
{
	const struct signature_domain *wire = &key_setup()->signature.wire;
	uint64_t raw = error->block * domain->block;
	uint64_t begins = raw + (wire->field ? raw / wire->block * wire->field : 0);

	WORLD_CHECK(key->error_state == KEY_ERROR_KEPT);
	WORLD_CHECK(key->error.err.sig.offset == (begins < first ? 0 : begins - first));
}

/* mlx5-formats 3.5 and 6, points 4 to 6. */
static void check_report(bool transmits, uint64_t first, const struct transfer_range *range)
{
	const struct signature_error *error = &reports.first;
	const struct signature_domain *domain =
		transmits ? &key_setup()->signature.memory : &key_setup()->signature.wire;

	if (!reports.count) {
		WORLD_CHECK(key->error_state == KEY_ERROR_NONE);
		return;
	}
	check_kept(error, domain, first);
	WORLD_CHECK(error->key == mkey_number(key) && error->memory == transmits);
	WORLD_CHECK(error->syndrome == SYNDROME_GUARD ||
		    (domain->tags && (error->syndrome == SYNDROME_APP_TAG || error->syndrome == SYNDROME_REF_TAG)));
	WORLD_CHECK((error->expected ^ error->found) & key_setup()->signature.checked);
	WORLD_CHECK(error->offset == (error->block + 1) * extended_block(domain) - 1);
	WORLD_CHECK((error->block + 1) * domain->block >= range->start);
	WORLD_CHECK((error->block + 1) * domain->block <= wire_position(&key_setup()->signature, range->wire.end).raw);
}

static uint64_t part_of(uint32_t number, uint64_t left)
{
	uint64_t bytes = le16(input.cut[number % INPUT_CUTS]);

	return bytes && bytes < left ? bytes : left;
}

/* Transfers [@first, +@length) of the wire to or from @wire. Returns false if refused. */
static bool pass(bool transmits, uint8_t *wire, uint64_t first, uint64_t length, enum manner manner, bool vanishes)
{
	bool remote = input.form & FORM_REMOTE;
	uint8_t rights = transmits ? (remote ? RIGHT_REMOTE_READ : RIGHT_LOCAL_READ)
				   : (remote ? RIGHT_REMOTE_WRITE : RIGHT_LOCAL_WRITE);
	struct walk_access access = {
		.hca = world.hca, .pd = world.pd->number, .progress = &progress, .observer = &reports.observer};
	const struct mapping *map = mkey_mapping(key);
	uint8_t *scratch = key_setup()->cipher.enabled ? malloc(STAGE_SCRATCH) : NULL;
	struct refusal why = {RULE_NONE, {0}};
	struct block_stage stage;
	uint32_t parts = 0;
	int error;

	/* Leftovers of other data in the scratch memory must not matter. */
	if (scratch)
		memset(scratch, 1 + manner, STAGE_SCRATCH);
	reports = (struct reports){.observer = {take_report}};
	progress.valid = key->has_reached = false;
	key->error_state = KEY_ERROR_NONE;
	error = stage_check(&access, rights, map, key_start + first, length, 1, &why);
	for (uint64_t at = 0, bytes; !error && at < length; at += bytes, parts++) {
		bytes = manner == AT_ONCE ? length : part_of(parts, length - at);
		access.unfinished = access.more = !transmits && manner == IN_PACKETS && at + bytes < length;
		if (!parts || manner == IN_PACKETS) {
			/* A message may be sent again from any packet; it arrives packet by packet. */
			error = stage_begin(&stage, &access, rights, map, key_start + first + at,
					    access.more ? bytes : length - at, at, &why);
			/* A message that is valid as a whole is valid in packets. */
			WORLD_CHECK(!error);
		}
		if (transmits)
			stage_transmit(&stage, wire + at, bytes, scratch);
		else
			stage_receive(&stage, wire + at, bytes, scratch);
		if (manner == IN_PACKETS || at + bytes == length)
			stage_end(&stage);
		if (!parts && vanishes)
			world_reset_key(WORLD_MKEY_8);
	}
	free(scratch);
	WORLD_CHECK(!error || (error == -EACCES && why.rule));
	return !error;
}

/*
 * docs/inside/decisions.md: in a block of memory that began earlier, only the copied bytes of the field are written, and none
 * if the field on the wire is incomplete. A block of the wire that began earlier is not checked.
 */
static void check_first_block(const uint8_t *contents, uint64_t first)
{
	const struct signature_setup *signature = &key_setup()->signature;
	const struct signature_domain *domain = &signature->memory;
	const struct wire_position position = wire_position(signature, first);
	uint64_t number = (position.raw - position.in_field) / domain->block;
	uint64_t field = number * extended_block(domain) + domain->block;
	bool cipher_on_memory = key_setup()->cipher.enabled && !key_setup()->cipher.on_wire;

	if (reports.count)
		WORLD_CHECK(reports.first.block * extended_block(&signature->wire) >= first);
	if (cipher_on_memory || (!position.in_field && position.raw % domain->block == 0))
		return;
	for (uint32_t i = 0; i < domain->field && field + i < key_bytes; i++)
		if (position.field || !(signature->copied >> (56 - 8 * i) & 0xff))
			WORLD_CHECK(contents[field + i] == background[field + i]);
}

static bool same_reports(const struct reports *one, const struct reports *other)
{
	const struct signature_error *a = &one->first, *b = &other->first;

	return one->count == other->count && a->syndrome == b->syndrome && a->expected == b->expected &&
	       a->found == b->found && a->block == b->block;
}

/* Sends from a key with @contents to @wire, a buffer of exactly the right size. */
static bool transmit(const uint8_t *contents, uint8_t *wire, uint64_t first, uint64_t length, enum manner manner)
{
	struct transfer_range range = transfer_range(key_setup(), true, first, length, key_bytes);
	uint8_t after[MOST_BYTES];
	bool passed;

	if (range.memory.end > key_bytes)
		range.memory = (struct byte_range){0, 0};
	key_load(contents, range.memory);
	passed = pass(true, wire, first, length, manner, false);
	memcpy(after, contents, sizeof(after));
	key_store(after, range.memory);
	WORLD_CHECK(!memcmp(after, contents, key_bytes));
	if (passed)
		check_report(true, first, &range);
	return passed;
}

/* Receives into a key with @contents. */
static bool receive(uint8_t *contents, uint8_t *wire, uint64_t first, uint64_t length, enum manner manner)
{
	struct transfer_range range = transfer_range(key_setup(), false, first, length, key_bytes);
	bool passed;

	if (range.memory.end > key_bytes)
		range.memory = (struct byte_range){0, 0};
	key_load(contents, range.memory);
	passed = pass(false, wire, first, length, manner, false);
	key_store(contents, range.memory);
	if (passed)
		check_report(false, first, &range);
	return passed;
}

/* ---- what must hold ------------------------------------------------------------------------------------------- */

/*
 * Returns true if the last bytes of a message that ends at @end are the same as in longer messages. The exception: a message
 * may end with a block of AES that is followed by less than another one, in the last data unit of a key, which is short. At the
 * end of a message it is a block; with the rest of the key, ciphertext is stolen from it.
 */
static bool ends_alike(bool transmits, uint64_t end)
{
	const struct cipher_setup *cipher = &key_setup()->cipher;
	uint64_t all = key_bytes;

	if (!cipher->enabled)
		return true;
	if (cipher->on_wire)
		all = wire_length(key_setup(), key_bytes);
	else
		end = transfer_range(key_setup(), transmits, 0, end, key_bytes).needed.end;
	return !ends_inside_unit(cipher, end) || all - end >= CIPHER_BLOCK || all == end;
}

static void check_transmission(uint64_t first, uint64_t length, uint64_t all)
{
	uint8_t *once = malloc(length), *parts = malloc(length), *whole = malloc(all);

	if (transmit(background, once, first, length, AT_ONCE)) {
		const struct reports expected = reports;

		for (enum manner manner = IN_PARTS; manner <= IN_PACKETS; manner++) {
			WORLD_CHECK(transmit(background, parts, first, length, manner));
			WORLD_CHECK(!memcmp(once, parts, length));
			WORLD_CHECK(same_reports(&reports, &expected));
		}
		if (first + length <= all && ends_alike(true, first + length) &&
		    transmit(background, whole, 0, all, AT_ONCE))
			WORLD_CHECK(!memcmp(once, whole + first, length));
	}
	free(once);
	free(parts);
	free(whole);
}

/* Received data is sent back as it came, except where a wrong field would be corrected. */
static void check_return(uint8_t *contents, uint8_t *wire, uint64_t first, uint64_t length)
{
	const struct signature_setup *signature = &key_setup()->signature;
	const struct wire_position position = wire_position(signature, first);
	bool begins = !signature->enabled || (!position.in_field && position.raw % signature->memory.block == 0 &&
					      position.raw % signature->wire.block == 0);
	uint8_t again[MOST_BYTES];

	if (!ends_alike(false, first + length) || !transmit(contents, wire, first, length, AT_ONCE))
		return;
	WORLD_CHECK(!reports.count || !begins || signature->copied);
	memcpy(again, background, sizeof(again));
	WORLD_CHECK(receive(again, wire, first, length, AT_ONCE));
	WORLD_CHECK(!memcmp(again, contents, key_bytes));
	WORLD_CHECK(!reports.count || !begins || signature->copied);
}

static void check_reception(uint64_t first, uint64_t length)
{
	uint8_t once[MOST_BYTES], parts[MOST_BYTES], *wire = malloc(length);

	fill(wire, length, 1);
	memcpy(once, background, sizeof(once));
	if (receive(once, wire, first, length, AT_ONCE)) {
		const struct reports expected = reports;

		if (key_setup()->signature.enabled)
			check_first_block(once, first);
		for (enum manner manner = IN_PARTS; manner <= IN_PACKETS; manner++) {
			memcpy(parts, background, sizeof(parts));
			WORLD_CHECK(receive(parts, wire, first, length, manner));
			WORLD_CHECK(!memcmp(once, parts, key_bytes));
			WORLD_CHECK(same_reports(&reports, &expected));
		}
		if (!(input.form & FORM_NULL))
			check_return(once, wire, first, length);
	}
	free(wire);
}

/*
 * Receives a message into [@first, +@length) of the key and then into plain memory, by two segments or by a key with both
 * parts. Returns false if refused.
 */
static bool receive_in_two(const uint8_t *wire, const struct mlx5_wqe_data_seg *segments, uint32_t count,
			   uint64_t length, enum manner manner)
{
	struct walk_access access = {
		.hca = world.hca, .pd = world.pd->number, .progress = &progress, .observer = &reports.observer};
	struct stream sink, source;
	struct refusal why;
	uint32_t parts = 0;

	memset(plain_memory(), 0, MOST_PLAIN);
	reports = (struct reports){.observer = {take_report}};
	progress.valid = key->has_reached = false;
	key->error_state = KEY_ERROR_NONE;
	for (uint64_t at = 0, bytes; at < length; at += bytes) {
		bytes = manner == AT_ONCE ? length : part_of(parts++, length - at);
		access.unfinished = access.more = at + bytes < length;
		stream_begin(&sink, &access, RIGHT_LOCAL_WRITE);
		if (stream_add_segments(&sink, segments, count, at, bytes, &why))
			return false;
		stream_begin(&source, NULL, 0);
		stream_add_memory(&source, wire + at, bytes);
		stream_copy(&sink, &source, bytes);
	}
	return true;
}

/* A message may continue elsewhere after a part ends in the key; division into packets makes no difference. */
static void check_two_parts(uint64_t first, uint64_t length)
{
	/* Packets of a message that exceeds the range may still be within it. */
	const struct byte_range whole = {0, key_bytes};
	uint64_t rest = 1 + le16(input.cut[1]) % MOST_PLAIN;
	struct mlx5_wqe_data_seg segments[2] = {
		{htobe32((uint32_t)length), htobe32(mkey_number(key)), htobe64(key_start + first)},
		{htobe32((uint32_t)rest), htobe32(WORLD_KEY(WORLD_FULL)), htobe64((uintptr_t)plain_memory())}};
	uint8_t once[MOST_BYTES], parts[MOST_BYTES], plain[MOST_PLAIN], *wire;
	uint32_t count = 2;
	bool received;

	if (input.form & FORM_STARTS) {
		key_join(segments, input.form & FORM_REMOTE);
		count = 1;
	}
	wire = malloc(length + rest);
	fill(wire, length + rest, 2);
	key_load(background, whole);
	received = receive_in_two(wire, segments, count, length + rest, AT_ONCE);
	if (received) {
		const struct reports expected = reports;

		memcpy(once, background, sizeof(once));
		key_store(once, whole);
		memcpy(plain, plain_memory(), sizeof(plain));
		WORLD_CHECK(!memcmp(plain, wire + length, rest));
		memcpy(parts, background, sizeof(parts));
		key_load(background, whole);
		WORLD_CHECK(receive_in_two(wire, segments, count, length + rest, IN_PACKETS));
		key_store(parts, whole);
		WORLD_CHECK(!memcmp(once, parts, key_bytes) && !memcmp(plain, plain_memory(), sizeof(plain)));
		WORLD_CHECK(same_reports(&reports, &expected));
	} else {
		WORLD_CHECK(!receive_in_two(wire, segments, count, length + rest, IN_PACKETS));
	}
	free(wire);
}

/* Deletes a key inside the key during the transfer. */
static void check_vanishing(bool transmits, uint64_t first, uint64_t length)
{
	struct transfer_range range = transfer_range(key_setup(), transmits, first, length, key_bytes);
	uint8_t *wire = calloc(1, length);

	if (range.memory.end <= key_bytes) {
		key_load(background, range.memory);
		pass(transmits, wire, first, length, IN_PARTS, true);
	}
	free(wire);
}

static void check_transfer(uint64_t first, uint64_t length, uint64_t all)
{
	check_transmission(first, length, all);
	check_reception(first, length);
	check_two_parts(first, length);
	if (input.form & FORM_VANISHES && input.form & FORM_NESTED) {
		check_vanishing(true, first, length);
		check_vanishing(false, first, length);
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	world_make();
	key_make();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t all, first;

	memset(&input, 0, sizeof(input));
	memcpy(&input, data, size < sizeof(input) ? size : sizeof(input));
	epoch_enter();
	if (key_configure(&input)) {
		fill(background, sizeof(background), 0);
		all = wire_length(key_setup(), key_bytes);
		WORLD_CHECK(all <= MOST_WIRE);
		/* Some exceed the end slightly. */
		first = le16(input.wire_first) % (all + 8);
		check_transfer(first, 1 + le16(input.length) % (all - (first < all ? first : all) + 8), all);
	}
	epoch_leave();
	key_end();
	block_progress_release(&progress);
	return 0;
}
