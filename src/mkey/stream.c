/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds, reads and copies streams. */
#include "core/thread_memory.h"
#include "mkey/stream.h"

#include <errno.h>
#include <string.h>

#include "observe/key_observer.h"
#include "mkey/copy.h"
#include "mkey/records.h"
#include "mkey/refused.h"

/* Returns @own, a copy with @more, if the access of @stream differs, which is rare. */
static inline const struct walk_access *part_access(const struct stream *stream, bool more, struct walk_access *own)
{
	if (__builtin_expect(stream->access->more == more, 1))
		return stream->access;
	*own = *stream->access;
	own->more = more;
	return own;
}

static int resolve_part(struct stream *stream, uint32_t key, uint64_t address, uint64_t length, struct refusal *why)
{
	struct stream_part *part = &stream->part[stream->count];
	struct walk_access own;
	const struct walk_access *access = part_access(stream, part->more, &own);
	struct piece piece;
	const struct mapping *layout;
	int error = walk_direct(access, stream->rights, key, address, length, &piece, &layout, why);

	if (error)
		return error;
	part->address = piece.address;
	part->key = 0;
	part->stage = NULL;
	if (piece.stage) {
		part->stage = piece.stage;
		part->key_address = address;
		/* There is room for one stage, for the first part with a stage; further ones are only checked. */
		if (stream->staged != STREAM_PARTS)
			return stage_check(access, stream->rights, piece.stage, address, length, 1, why);
		stream->staged = stream->count;
		error = stage_begin(&stream->stage, access, stream->rights, piece.stage, address, length,
				    stream->offset + stream->length, why);
		stream->stage.start = stream->offset + stream->length - part->lead;
		return error;
	}
	if (!layout)
		return 0;
	part->key = key;
	part->key_address = address;
	stream->walked = stream->count;
	if (!walk_enter_list(&stream->walk, access, stream->rights, layout, address - layout->start, length)) {
		error = walk_check(access, stream->rights, layout, address - layout->start, length, 1, why);
		if (error)
			return error;
		walk_enter(&stream->walk, access, layout, address - layout->start, length);
	}
	walk_continues(&stream->walk, part->lead);
	return 0;
}

/* Fills the part after the last one. Records a refusal, or reports the access to the key observer. */
static int fill_part(struct stream *stream, uint32_t key, uint64_t address, uint64_t length, struct refusal *why)
{
	const struct walk_access *access = stream->access;
	int error = resolve_part(stream, key, address, length, why);

	if (unlikely(error))
		refused_keep(access, stream->rights, key, address, length, why);
	else if (unlikely(access->hca->key_observer))
		access->hca->key_observer->used(access->hca, key, access->qpn, stream->rights, address, length);
	return error;
}

/*
 * Returns the memory of the part after the last one if only page guards (observe/page_guard.h), none of which acts
 * there, keep @number from being plain.
 */
static uint8_t *guarded_memory(const struct stream *stream, uint32_t number)
{
	const struct mkey *key = mkey_find(stream->access->hca, number);
	const struct mapping *map = key ? mkey_mapping(key) : NULL;
	/* Such a WRITE needs copied_last_first(). */
	bool is_write = page_guard_last_first && stream->rights == RIGHT_REMOTE_WRITE;

	return map && map->kind == KEY_MEMORY && map->qpn == KEY_QPN_ANY && !is_write
		       ? stream->part[stream->count].address
		       : NULL;
}

int stream_add_other(struct stream *stream, uint32_t key, uint64_t address, uint64_t length, uint64_t lead, bool more,
		     struct refusal *why)
{
	struct stream_part *part = &stream->part[stream->count];
	uint8_t *memory;
	int error;

	part->address = NULL;
	part->key = 0;
	part->stage = NULL;
	part->lead = lead;
	part->more = more;
	error = fill_part(stream, key, address, length, why);
	if (error)
		return error;
	memory = page_guard_is_on() ? guarded_memory(stream, key) : NULL;
	part->length = length;
	stream->whole = stream->count ? NULL : memory;
	stream->length += length;
	stream->count++;
	return 0;
}

void stream_skip(struct stream *stream, uint64_t bytes)
{
	stream->length -= bytes;
	stream->whole = NULL;
	for (struct stream_part *part = &stream->part[stream->current]; bytes && part->length <= bytes; part++) {
		bytes -= part->length;
		stream->current++;
	}
	if (bytes) {
		stream->part[stream->current].address += bytes;
		stream->part[stream->current].length -= bytes;
	}
}

/* @lead: bytes of the message directly before the first segment. */
static RARE uint64_t segment_bytes_before(const struct mlx5_wqe_data_seg *segments, uint32_t i, uint64_t lead)
{
	uint64_t bytes = 0;

	for (; i && segment_continues(&segments[i - 1], &segments[i]); i--)
		bytes += be32toh(segments[i - 1].byte_count);
	return i ? bytes : bytes + lead;
}

int stream_add_any_segments(struct stream *stream, const struct mlx5_wqe_data_seg *segments, uint32_t count,
			    uint64_t offset, uint64_t length, uint64_t lead, struct refusal *why)
{
	for (uint32_t i = 0; i < count && length; i++) {
		uint64_t bytes = be32toh(segments[i].byte_count), address = be64toh(segments[i].addr);
		bool more = false;
		int error;

		if (offset >= bytes) {
			offset -= bytes;
			continue;
		}
		bytes -= offset;
		if (bytes > length) {
			bytes = length;
			more = stream->access->more;
		}
		if (__builtin_add_overflow(address, offset, &address))
			return REFUSAL(why, EACCES, RULE_SEGMENT_WRAPS, be32toh(segments[i].lkey),
				       be64toh(segments[i].addr), offset);
		if (!stream_add_plain(stream, be32toh(segments[i].lkey), address, bytes, more)) {
			error = stream_add_other(stream, be32toh(segments[i].lkey), address, bytes,
						 segment_bytes_before(segments, i, lead) + offset, more, why);
			if (error)
				return error;
		}
		offset = 0;
		length -= bytes;
	}
	return 0;
}

static void advance_piece(struct stream *stream, uint64_t bytes)
{
	if (stream->piece.address)
		stream->piece.address += bytes;
	stream->piece.wire += bytes;
	stream->piece.length -= bytes;
}

/*
 * Begins the walk of the current part, which becomes a null piece if another thread has changed the key since the check.
 */
static __attribute__((noinline)) void begin_walk(struct stream *stream)
{
	const struct stream_part *part = &stream->part[stream->current];
	struct walk_access own;
	const struct walk_access *access = part_access(stream, part->more, &own);
	struct refusal ignored;

	stream->walking =
		stream->walked == stream->current || !walk_begin(&stream->walk, access, stream->rights, part->key,
								 part->key_address, part->length, &ignored);
	if (stream->walking && stream->walked != stream->current)
		walk_continues(&stream->walk, part->lead);
	stream->walked = STREAM_PARTS;
	if (stream->walking)
		return;
	stream->piece = (struct piece){.length = part->length};
	stream->current++;
}

/* Returns false at the end. */
static bool refill_piece(struct stream *stream)
{
	for (;;) {
		if (stream->walking) {
			if (walk_next(&stream->walk, UINT64_MAX, &stream->piece))
				return true;
			stream->walking = false;
			stream->current++;
		} else if (stream->current >= stream->count) {
			return false;
		} else if (stream->part[stream->current].key) {
			begin_walk(stream);
			if (!stream->walking)
				return true;
		} else {
			const struct stream_part *part = &stream->part[stream->current++];

			stream->piece = (struct piece){
				.address = part->address,
				.length = part->length,
				.stage = part->stage,
				.wire = part->key_address,
				.more = part->more,
			};
			return true;
		}
	}
}

static inline SPECIALISED bool at_layout(struct stream *stream)
{
	if (stream->piece.length || stream->current >= stream->count || !stream->part[stream->current].key)
		return false;
	if (!stream->walking)
		begin_walk(stream);
	return stream->walking;
}

/* Returns true if the current piece, or the next one if it is used up, is memory. */
static inline SPECIALISED bool at_memory(struct stream *stream)
{
	return (stream->piece.length || refill_piece(stream)) && stream->piece.address;
}

/* Returns how many repetitions fit into the current piece of @memory. */
static inline SPECIALISED uint64_t records_at_once(struct stream *records, struct stream *memory, uint64_t length)
{
	uint64_t count, most;

	if (!at_layout(records) || walk_repetitions(&records->walk) <= 1 || !at_memory(memory))
		return 0;
	if (length > memory->piece.length)
		length = memory->piece.length;
	count = periods_in(length, walk_period(&records->walk));
	most = walk_repetitions(&records->walk);
	return count < most ? count : most;
}

static inline SPECIALISED bool has_layout(const struct stream *stream)
{
	return stream->current < stream->count && stream->part[stream->current].key;
}

/* Copies repetitions. Returns the bytes copied, 0 unless the other side is contiguous memory. */
static uint64_t copy_records(struct stream *sink, struct stream *source, uint64_t length)
{
	uint64_t count = records_at_once(source, sink, length), bytes;

	if (count) {
		bytes = count * walk_period(&source->walk);
		records_gather(&source->walk, sink->piece.address, count, bytes == length);
		advance_piece(sink, bytes);
		return bytes;
	}
	count = records_at_once(sink, source, length);
	if (!count)
		return 0;
	bytes = count * walk_period(&sink->walk);
	records_scatter(&sink->walk, source->piece.address, count, bytes == length);
	advance_piece(source, bytes);
	return bytes;
}

/* Returns how many bytes of @list fit into the current piece of @memory. */
static inline SPECIALISED uint64_t list_at_once(struct stream *list, struct stream *memory, uint64_t length)
{
	if (!at_layout(list) || !list->walk.region || !at_memory(memory))
		return 0;
	if (length > memory->piece.length)
		length = memory->piece.length;
	return length < list->walk.left ? length : list->walk.left;
}

/* Like copy_records(), for entries of a list in one region. */
static uint64_t copy_list(struct stream *sink, struct stream *source, uint64_t length)
{
	uint64_t bytes = list_at_once(source, sink, length);

	if (bytes) {
		list_gather(&source->walk, sink->piece.address, bytes, bytes == length);
		advance_piece(sink, bytes);
		return bytes;
	}
	bytes = list_at_once(sink, source, length);
	if (!bytes)
		return 0;
	list_scatter(&sink->walk, source->piece.address, bytes, bytes == length);
	advance_piece(source, bytes);
	return bytes;
}

/* ---- block stages --------------------------------------------------------------------------------------------- */

/* Wire bytes between two stages, or a stage and scattered memory: a few blocks, within the L1 cache. */
#define WIRE_BYTES 8448u

/* Buffers of one copy. Not in struct stream, as there are many streams. */
struct workspace {
	uint8_t wire[WIRE_BYTES];
	uint8_t source_scratch[STAGE_SCRATCH], sink_scratch[STAGE_SCRATCH];
};

static void end_stage(struct stream *stream)
{
	if (stream->staging)
		stage_end(&stream->stage);
	stream->staging = false;
}

/* Returns the offset of the current piece in the message. refill_piece() has already passed a part of one piece. */
static uint64_t offset_of_piece(const struct stream *stream)
{
	uint32_t part = stream->walking ? stream->current : stream->current - 1;
	uint64_t offset = stream->offset;

	for (uint32_t i = 0; i < part; i++)
		offset += stream->part[i].length;
	return offset + stream->part[part].length - (stream->walking ? stream->walk.left : 0) - stream->piece.length;
}

/*
 * Begins the stage of the current piece, which becomes a null piece if another thread has changed the key since the
 * check.
 */
static bool ready_stage(struct stream *stream)
{
	const struct stream_part *part;
	struct piece *piece = &stream->piece;
	struct walk_access own;
	struct refusal ignored;
	uint64_t offset, entered;

	if (stream->staging)
		return true;
	/* refill_piece() has already passed the part. */
	stream->staging = stream->staged == stream->current - 1 && !stream->walking;
	stream->staged = STREAM_PARTS;
	if (stream->staging)
		return true;
	offset = offset_of_piece(stream);
	if (stream->walking) {
		entered = stream->walk.entered;
	} else {
		part = &stream->part[stream->current - 1];
		entered = part->key_address - part->lead;
	}
	stream->staging = !stage_begin(&stream->stage, part_access(stream, piece->more, &own), stream->rights,
				       piece->stage, piece->wire, piece->length, offset, &ignored);
	stream->stage.start = offset - (piece->wire - entered);
	if (!stream->staging)
		*piece = (struct piece){.length = piece->length};
	return stream->staging;
}

static void advance_staged(struct stream *stream, uint64_t bytes)
{
	advance_piece(stream, bytes);
	if (!stream->piece.length)
		end_stage(stream);
}

/* Reads at most @length wire bytes, and at most the current piece. Returns their number. */
static uint64_t read_piece(struct stream *source, uint8_t *to, uint64_t length, uint8_t *scratch)
{
	if (length > source->piece.length)
		length = source->piece.length;
	if (source->piece.stage && ready_stage(source)) {
		stage_transmit(&source->stage, to, length, scratch);
		advance_staged(source, length);
		return length;
	}
	copy_bytes(to, source->piece.address, length);
	advance_piece(source, length);
	return length;
}

/* Writes at most @length wire bytes, and at most the current piece. Returns their number. */
static uint64_t write_piece(struct stream *sink, const uint8_t *from, uint64_t length, uint8_t *scratch)
{
	if (length > sink->piece.length)
		length = sink->piece.length;
	if (sink->piece.stage && ready_stage(sink)) {
		stage_receive(&sink->stage, from, length, scratch);
		advance_staged(sink, length);
		return length;
	}
	copy_bytes(sink->piece.address, from, length);
	advance_piece(sink, length);
	return length;
}

/* Copies at most WIRE_BYTES. Returns the bytes copied. */
static uint64_t copy_through_workspace(struct stream *sink, struct stream *source, uint64_t length,
				       struct workspace *space)
{
	uint64_t read = 0, written = 0;

	if (length > WIRE_BYTES)
		length = WIRE_BYTES;
	while (read < length && (source->piece.length || refill_piece(source)))
		read += read_piece(source, space->wire + read, length - read, space->source_scratch);
	while (written < read && (sink->piece.length || refill_piece(sink)))
		written += write_piece(sink, space->wire + written, read - written, space->sink_scratch);
	return written;
}

/* Copies if a side passes a stage: without buffer if the pieces of the other side are large enough. */
static uint64_t copy_staged(struct stream *sink, struct stream *source, uint64_t length, struct workspace *space)
{
	uint64_t bytes = length;

	if (bytes > source->piece.length)
		bytes = source->piece.length;
	if (bytes > sink->piece.length)
		bytes = sink->piece.length;
	if (bytes < length && bytes < BLOCK_LARGEST + FIELD_LARGEST)
		return copy_through_workspace(sink, source, length, space);
	if (source->piece.address) {
		write_piece(sink, source->piece.address, bytes, space->sink_scratch);
		advance_piece(source, bytes);
	} else if (sink->piece.address) {
		read_piece(source, sink->piece.address, bytes, space->source_scratch);
		advance_piece(sink, bytes);
	} else {
		return copy_through_workspace(sink, source, bytes, space);
	}
	return bytes;
}

static inline bool meets_stage(const struct stream *sink, const struct stream *source)
{
	return sink->piece.stage || source->piece.stage;
}

/* Returns the rest of @length once no side passes a stage. */
static __attribute__((noinline)) uint64_t copy_stages(struct stream *sink, struct stream *source, uint64_t length)
{
	THREAD_VARIABLE(struct workspace, space);

	while (length && (source->piece.length || refill_piece(source)) && (sink->piece.length || refill_piece(sink)) &&
	       meets_stage(sink, source))
		length -= copy_staged(sink, source, length, space);
	end_stage(source);
	end_stage(sink);
	return length;
}

static __attribute__((noinline)) void copy_pieces(struct stream *sink, struct stream *source, uint64_t length)
{
	while (length) {
		uint64_t bytes = 0;

		if (has_layout(source) || has_layout(sink)) {
			bytes = copy_records(sink, source, length);
			if (!bytes)
				bytes = copy_list(sink, source, length);
		}
		if (bytes) {
			length -= bytes;
			continue;
		}
		bytes = length;
		if (!source->piece.length && !refill_piece(source))
			return;
		if (!sink->piece.length && !refill_piece(sink))
			return;
		if (__builtin_expect(meets_stage(sink, source), 0)) {
			length = copy_stages(sink, source, length);
			continue;
		}
		if (bytes > source->piece.length)
			bytes = source->piece.length;
		if (bytes > sink->piece.length)
			bytes = sink->piece.length;
		length -= bytes;
		if (length)
			copy_bytes(sink->piece.address, source->piece.address, bytes);
		else
			copy_bytes_last(sink->piece.address, source->piece.address, bytes);
		advance_piece(source, bytes);
		advance_piece(sink, bytes);
	}
}

/* Returns NULL unless @stream is unused and one piece of @length bytes. */
static uint8_t *unused_memory(const struct stream *stream, uint64_t length)
{
	const struct stream_part *part = &stream->part[0];

	return !stream->current && !stream->piece.length && stream->count == 1 && !part->key && !part->stage &&
			       part->length == length
		       ? part->address
		       : NULL;
}

/*
 * Copies the end of a WRITE last bytes first, as adapters may (observe/page_guard.h). Returns false if @sink is not the
 * end of a WRITE, or a stream is not one piece of memory.
 */
static bool copied_last_first(struct stream *sink, struct stream *source, uint64_t length)
{
	uint8_t *to = unused_memory(sink, length), *from = unused_memory(source, length);
	uint64_t tail = 8, rest = length - tail, read_at;
	int range;

	if (sink->rights != RIGHT_REMOTE_WRITE || sink->access->more || length <= tail || !to || !from)
		return false;
	/* First, because a program that polls the last bytes reads the others at once. */
	range = page_guard_close((uintptr_t)to, rest, NULL, 0, 0);
	store_tail(to + rest, from + rest, tail);
	read_at = page_guard_wait(range);
	if (read_at)
		page_guard_write_was_read(sink->access->hca, sink->access->qpn, read_at, (uintptr_t)to, rest);
	copy_bytes(to, from, rest);
	sink->current = source->current = 1;
	return true;
}

void stream_copy_parts(struct stream *sink, struct stream *source, uint64_t length)
{
	source->whole = sink->whole = NULL;
	if (unlikely(page_guard_last_first) && copied_last_first(sink, source, length))
		return;
	copy_pieces(sink, source, length);
}

bool stream_next(struct stream *stream, uint64_t max, struct piece *piece)
{
	stream->whole = NULL;
	if (!stream->piece.length && !refill_piece(stream))
		return false;
	*piece = stream->piece;
	if (piece->length > max)
		piece->length = max;
	advance_piece(stream, piece->length);
	return true;
}

struct scratch {
	uint8_t bytes[STAGE_SCRATCH];
};

void stream_read(struct stream *source, void *buffer, uint64_t length)
{
	THREAD_VARIABLE(struct scratch, scratch);
	uint8_t *to = buffer;

	source->whole = NULL;
	while (length && (source->piece.length || refill_piece(source))) {
		uint64_t bytes = read_piece(source, to, length, scratch->bytes);

		to += bytes;
		length -= bytes;
	}
	end_stage(source);
}
