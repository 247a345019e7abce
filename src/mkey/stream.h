/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream: the bytes that one packet covers, as a sequence of keyed or plain memory, read or written front to back.
 * The source of what is sent and the sink of what arrives are streams; moving data is copying one into the other.
 *
 * Building a stream checks all it covers (walk.h), so a stream that exists may be used to its end. It refers to
 * mappings and to WQE memory: it lives inside one epoch section, and no longer than the WQE it was built from.
 */
#ifndef SOFTHCA_MKEY_STREAM_H
#define SOFTHCA_MKEY_STREAM_H

#include <infiniband/mlx5dv.h>

#include "mkey/stage.h"
#include "core/compiler.h"
#include "observe/page_guard.h"
#include "mkey/copy.h"
#include "mkey/walk.h"

/* More than a WQE has segments: its control segment is none of them. So nothing checks for the end of the array. */
#define STREAM_PARTS (LIMIT_MAX_WQE_SIZE / 16)

struct stream_part {
	uint8_t *address; /* memory, or NULL for the null key… */
	uint64_t length;
	uint32_t key; /* …or, if not 0: walk this key from `key_address` */
	uint64_t key_address;
	const struct mapping *stage; /* …or, if not NULL: a block stage of this key from there */
	uint64_t lead; /* not of plain memory: bytes of the message that lie directly before it in the same key */
	bool more;     /* the message goes on behind it, in the same key */
};

struct stream {
	const struct walk_access *access;
	uint8_t rights;  /* enum key_rights that its keys must give */
	uint64_t length; /* of all parts */
	uint64_t
		offset; /* of its first byte in the message; modulo 2^64, since a datagram's header lies in front of it */
	uint8_t *
		whole; /* memory of all of it, as long as none of it was used; NULL: it is more than one piece, or none */
	uint32_t count;
	uint32_t walked;    /* part that `walk` is ready for, or STREAM_PARTS */
	uint32_t current;   /* part being used; not beside `count`: they are written apart and compared together */
	bool walking;       /* `piece` came from the walk */
	bool staging;       /* `piece` passes `stage`, which has begun with it */
	uint32_t staged;    /* part that `stage` is ready for, or STREAM_PARTS */
	struct piece piece; /* what is left of the current piece */
	struct walk walk;
	struct block_stage stage;
	struct stream_part part[STREAM_PARTS];
};

/** Begins an empty stream for keys that must give @rights to @access (NULL: plain memory only). */
static inline void stream_begin(struct stream *stream, const struct walk_access *access, uint8_t rights)
{
	stream->access = access;
	stream->rights = rights;
	stream->length = 0;
	stream->offset = 0;
	stream->count = 0;
	stream->current = 0;
	stream->walked = STREAM_PARTS;
	stream->walking = false;
	stream->staging = false;
	stream->staged = STREAM_PARTS;
	stream->whole = NULL;
	stream->piece.length = 0;
	stream->piece.stage = NULL;
}

/** Adds plain memory, such as inline data. */
static inline void stream_add_memory(struct stream *stream, const uint8_t *address, uint64_t length)
{
	if (!length)
		return;
	stream->whole = stream->count ? NULL : (uint8_t *)address;
	stream->part[stream->count++] = (struct stream_part){.address = (uint8_t *)address, .length = length};
	stream->length += length;
}

/** Skips the first @bytes of @stream, at most its length, which is of plain memory and has not been used yet. */
void stream_skip(struct stream *stream, uint64_t bytes);

/* Memory of a plain region if nothing speaks against the access, which is nearly always; NULL: look closer. */
SPECIALISED uint8_t *stream_plain_memory(const struct stream *stream, uint32_t number, uint64_t address,
					 uint64_t length)
{
	const struct mkey *key = mkey_find(stream->access->hca, number);
	const struct mapping *map = key ? mkey_mapping(key) : NULL;

	if (likely(map && map->number == number && map->pd == stream->access->pd &&
		   (map->plain_rights & stream->rights) == stream->rights && mapping_covers(map, address, length)))
		return mapping_memory(map, address);
	return NULL;
}

/**
 * Adds [@address, +@length) of @key if that is contiguous memory of a plain region, directly or through a list. Returns false if it
 * is not, or the access is not allowed; then nothing was added. @more as below.
 */
SPECIALISED bool stream_add_plain(struct stream *stream, uint32_t key, uint64_t address, uint64_t length, bool more)
{
	struct stream_part *part = &stream->part[stream->count];
	uint8_t *memory;

	if (!length)
		return true;
	memory = stream_plain_memory(stream, key, address, length);
	if (unlikely(!memory)) {
		memory = walk_contiguous(stream->access, stream->rights, key, address, length);
		if (!memory)
			return false;
	}
	part->address = memory;
	part->length = length;
	part->key = 0;
	part->stage = NULL;
	part->more = more;
	stream->whole = stream->count ? NULL : memory;
	stream->length += length;
	stream->count++;
	return true;
}

/**
 * Adds [@address, +@length) of @key, which stream_add_plain() did not add, after checking it. @lead: bytes of the message
 * directly before it in the same key; @more: the message continues directly after it there. Returns 0 or -EACCES with @why.
 */
int stream_add_other(struct stream *stream, uint32_t key, uint64_t address, uint64_t length, uint64_t lead, bool more,
		     struct refusal *why);

/**
 * Adds [@address, +@length) of @key after checking it; all of the message before it is in that key, too. Returns 0 or -EACCES
 * with @why. Length 0 adds nothing.
 */
SPECIALISED int stream_add_key(struct stream *stream, uint32_t key, uint64_t address, uint64_t length,
			       struct refusal *why)
{
	if (likely(stream_add_plain(stream, key, address, length, stream->access->more)))
		return 0;
	return stream_add_other(stream, key, address, length, stream->offset + stream->length, stream->access->more,
				why);
}

/** stream_add_segments() of the beginning of one segment, in a plain region; false: it is not that, and nothing was added. */
SPECIALISED bool stream_add_plain_segment(struct stream *stream, const struct mlx5_wqe_data_seg *segments,
					  uint32_t count, uint64_t offset, uint64_t length)
{
	uint64_t bytes = count ? be32toh(segments[0].byte_count) : 0;

	if (unlikely(offset || bytes < length))
		return false;
	return stream_add_plain(stream, be32toh(segments[0].lkey), be64toh(segments[0].addr), length,
				bytes > length && stream->access->more);
}

/** stream_add_segments() of anything else. @lead: bytes of the message directly before the first segment in the same key. */
int stream_add_any_segments(struct stream *stream, const struct mlx5_wqe_data_seg *segments, uint32_t count,
			    uint64_t offset, uint64_t length, uint64_t lead, struct refusal *why);

/** True if @next begins in the same key where @segment ends. */
static inline bool segment_continues(const struct mlx5_wqe_data_seg *segment, const struct mlx5_wqe_data_seg *next)
{
	return segment->lkey == next->lkey &&
	       be64toh(segment->addr) + be32toh(segment->byte_count) == be64toh(next->addr);
}

/**
 * Adds the bytes [@offset, +@length) of a scatter or gather list. What the list lacks of @length is not added: compare
 * stream->length. Returns 0 or -EACCES with @why.
 */
SPECIALISED int stream_add_segments(struct stream *stream, const struct mlx5_wqe_data_seg *segments, uint32_t count,
				    uint64_t offset, uint64_t length, struct refusal *why)
{
	if (likely(stream_add_plain_segment(stream, segments, count, offset, length)))
		return 0;
	return stream_add_any_segments(stream, segments, count, offset, length, 0, why);
}

/** stream_copy() of anything but memory in one piece. */
void stream_copy_parts(struct stream *sink, struct stream *source, uint64_t length);

/** stream_copy() of all of both, which are memory in one piece. */
SPECIALISED void stream_copy_whole(struct stream *sink, struct stream *source, uint64_t length)
{
	copy_bytes_last(sink->whole, source->whole, length);
	source->whole = sink->whole = NULL;
	source->current = sink->current = 1;
}

/** Copies @length bytes of @source to @sink and moves both on. The last bytes become visible last: programs spin on them. */
SPECIALISED void stream_copy(struct stream *sink, struct stream *source, uint64_t length)
{
	if (unlikely(!source->whole || !sink->whole || source->length != length || sink->length != length)) {
		stream_copy_parts(sink, source, length);
		return;
	}
	stream_copy_whole(sink, source, length);
}

/** Reads @length bytes into @buffer. */
void stream_read(struct stream *source, void *buffer, uint64_t length);

/**
 * The next contiguous piece of at most @max bytes, moving on. Returns false at the end. Of a stream without block stages
 * only: what passes one is not memory; read it.
 */
bool stream_next(struct stream *stream, uint64_t max, struct piece *piece);

#endif
