/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream is the payload of one packet: a sequence of ranges of keys or plain memory, read or written front to back. Data
 * moves by copying a source stream into a sink stream.
 *
 * Adding a range checks the whole access (walk.h), so every range of a finished stream may be used. A stream refers to mappings
 * and to WQE memory: it lives inside one epoch section, and no longer than the WQE that it was built from. One thread uses it.
 */
#ifndef SOFTHCA_MKEY_STREAM_H
#define SOFTHCA_MKEY_STREAM_H

#include <infiniband/mlx5dv.h>

#include "mkey/stage.h"
#include "core/compiler.h"
#include "observe/page_guard.h"
#include "mkey/copy.h"
#include "mkey/walk.h"

/*
 * A WQE can have fewer data segments than this, because its control segment takes one slot. So no code checks for the
 * end of the array.
 */
#define STREAM_PARTS (LIMIT_MAX_WQE_SIZE / 16)

struct stream_part {
	uint8_t *address; /* memory, or NULL for the null key… */
	uint64_t length;
	uint32_t key; /* …or, if not 0: walk this key from `key_address` */
	uint64_t key_address;
	const struct mapping *stage; /* …or, if not NULL: pass a block stage of this key from `key_address` */
	uint64_t lead; /* bytes of the message directly before this part in the same key; undefined for plain memory */
	bool more;     /* the message continues directly after this part, in the same key */
};

struct stream {
	const struct walk_access *access;
	uint8_t rights;  /* enum key_rights that the keys must grant */
	uint64_t length; /* of all parts */
	/* Offset of the first byte in the message; modulo 2^64, as the header of a datagram precedes the message. */
	uint64_t offset;
	uint8_t *whole; /* the memory, while the stream is one unused contiguous piece; otherwise NULL */
	uint32_t count;
	uint32_t walked; /* part that `walk` was prepared for, or STREAM_PARTS */
	/* Current part. Not next to `count`: a combined load of both would stall, as they are stored separately. */
	uint32_t current;
	bool walking;       /* `piece` came from the walk */
	bool staging;       /* `stage` was begun with `piece` */
	uint32_t staged;    /* part that `stage` was prepared for, or STREAM_PARTS */
	struct piece piece; /* rest of the current piece */
	struct walk walk;
	struct block_stage stage;
	struct stream_part part[STREAM_PARTS];
};

/** Begins an empty stream. All its keys must grant @rights to @access (NULL: plain memory only). */
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

/** Skips the first @bytes, at most the length, of an unused stream of plain memory. */
void stream_skip(struct stream *stream, uint64_t bytes);

/*
 * Returns the memory if the key is a plain region and the access passes all checks, the usual case. Otherwise returns
 * NULL: the caller must check in detail.
 */
static inline SPECIALISED uint8_t *stream_plain_memory(const struct stream *stream, uint32_t number, uint64_t address,
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
 * Adds [@address, +@length) of @key if that is contiguous memory of a plain region, directly or through a list, and the access is
 * allowed. Otherwise returns false and adds nothing. @more: the message continues directly after it in the same key.
 */
static inline SPECIALISED bool stream_add_plain(struct stream *stream, uint32_t key, uint64_t address, uint64_t length,
						bool more)
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
 * Checks and adds [@address, +@length) of @key after stream_add_plain() has returned false. @lead: bytes of the message
 * directly before it in the same key. @more: as there. Returns 0 or -EACCES with @why.
 */
int stream_add_other(struct stream *stream, uint32_t key, uint64_t address, uint64_t length, uint64_t lead, bool more,
		     struct refusal *why);

/**
 * Checks and adds [@address, +@length) of @key, for a message that lies in that key from its beginning. Returns 0 or -EACCES
 * with @why. Length 0 adds nothing.
 */
static inline SPECIALISED int stream_add_key(struct stream *stream, uint32_t key, uint64_t address, uint64_t length,
					     struct refusal *why)
{
	if (likely(stream_add_plain(stream, key, address, length, stream->access->more)))
		return 0;
	return stream_add_other(stream, key, address, length, stream->offset + stream->length, stream->access->more,
				why);
}

/** Adds the first @length bytes of the first segment if they lie in a plain region. Otherwise returns false and adds nothing. */
static inline SPECIALISED bool stream_add_plain_segment(struct stream *stream, const struct mlx5_wqe_data_seg *segments,
							uint32_t count, uint64_t offset, uint64_t length)
{
	uint64_t bytes = count ? be32toh(segments[0].byte_count) : 0;

	if (unlikely(offset || bytes < length))
		return false;
	return stream_add_plain(stream, be32toh(segments[0].lkey), be64toh(segments[0].addr), length,
				bytes > length && stream->access->more);
}

/**
 * Does the same as stream_add_segments() for any list. @lead: bytes of the message directly before the first segment in the
 * same key.
 */
int stream_add_any_segments(struct stream *stream, const struct mlx5_wqe_data_seg *segments, uint32_t count,
			    uint64_t offset, uint64_t length, uint64_t lead, struct refusal *why);

/** Returns true if @next begins in the same key where @segment ends. */
static inline bool segment_continues(const struct mlx5_wqe_data_seg *segment, const struct mlx5_wqe_data_seg *next)
{
	return segment->lkey == next->lkey &&
	       be64toh(segment->addr) + be32toh(segment->byte_count) == be64toh(next->addr);
}

/**
 * Adds the bytes [@offset, +@length) of a scatter or gather list. If the list is shorter, only the bytes that it has are added:
 * compare stream->length. Returns 0 or -EACCES with @why.
 */
static inline SPECIALISED int stream_add_segments(struct stream *stream, const struct mlx5_wqe_data_seg *segments,
						  uint32_t count, uint64_t offset, uint64_t length, struct refusal *why)
{
	if (likely(stream_add_plain_segment(stream, segments, count, offset, length)))
		return 0;
	return stream_add_any_segments(stream, segments, count, offset, length, 0, why);
}

/** Does the same as stream_copy() for any streams. */
void stream_copy_parts(struct stream *sink, struct stream *source, uint64_t length);

/** Does the same as stream_copy() for two unused streams that are each one piece of memory (`whole`), to their end. */
static inline SPECIALISED void stream_copy_whole(struct stream *sink, struct stream *source, uint64_t length)
{
	copy_bytes_last(sink->whole, source->whole, length);
	source->whole = sink->whole = NULL;
	source->current = sink->current = 1;
}

/** Copies the next @length bytes of @source to @sink. The last bytes become visible last, as programs spin on them. */
static inline SPECIALISED void stream_copy(struct stream *sink, struct stream *source, uint64_t length)
{
	if (unlikely(!source->whole || !sink->whole || source->length != length || sink->length != length)) {
		stream_copy_parts(sink, source, length);
		return;
	}
	stream_copy_whole(sink, source, length);
}

/** Reads the next @length bytes into @buffer. */
void stream_read(struct stream *source, void *buffer, uint64_t length);

/**
 * Takes the next contiguous piece, of at most @max bytes. Returns false at the end. For streams with block stages use
 * stream_read(), because their bytes are not in memory.
 */
bool stream_next(struct stream *stream, uint64_t max, struct piece *piece);

#endif
