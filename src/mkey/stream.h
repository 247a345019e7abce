/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream is the payload of one packet: ranges of keys or plain memory, read or written front to back.
 *
 * Adding a range checks the whole access (walk.h), so every range may be used. A stream lives inside one epoch section,
 * and no longer than the WQE that it was built from. One thread uses it.
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
 * More than the data segments of any WQE (the control segment takes one slot), so no code checks for the end of the
 * array.
 */
#define STREAM_PARTS (LIMIT_MAX_WQE_SIZE / 16)

struct stream_part {
	uint8_t *address; /* memory, or NULL for the null key… */
	uint64_t length;
	uint32_t key; /* …or, if not 0: walk this key from `key_address` */
	uint64_t key_address;
	const struct mapping *stage; /* …or, if not NULL: pass a block stage of this key from `key_address` */
	uint64_t lead; /* bytes of the message directly before this part in the same key; undefined for plain memory */
	bool more;     /* the message continues directly after it, in the same key */
};

struct stream {
	const struct walk_access *access;
	uint8_t rights;  /* enum key_rights that the keys must grant */
	uint64_t length; /* of all parts */
	/* Offset of the first byte in the message; modulo 2^64, as a datagram's header precedes the message. */
	uint64_t offset;
	uint8_t *whole; /* the memory of an unused stream of one contiguous piece; otherwise NULL */
	uint32_t count;
	uint32_t walked; /* part of `walk`, or STREAM_PARTS */
	/* Not next to `count`: a combined load would stall, as both are stored separately. */
	uint32_t current;
	bool walking;       /* `piece` is from the walk */
	bool staging;       /* `stage` was begun with `piece` */
	uint32_t staged;    /* part of `stage`, or STREAM_PARTS */
	struct piece piece; /* rest of the current one */
	struct walk walk;
	struct block_stage stage;
	struct stream_part part[STREAM_PARTS];
};

/** All keys of the stream must grant @rights to @access (NULL: plain memory only). */
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

static inline void stream_add_memory(struct stream *stream, const uint8_t *address, uint64_t length)
{
	if (!length)
		return;
	stream->whole = stream->count ? NULL : (uint8_t *)address;
	stream->part[stream->count++] = (struct stream_part){.address = (uint8_t *)address, .length = length};
	stream->length += length;
}

/** Skips the first @bytes of an unused stream of plain memory. */
void stream_skip(struct stream *stream, uint64_t bytes);

/* Returns the memory if the key is a plain region and allows the access. NULL: check in detail. */
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
 * Adds [@address, +@length) of @key if it is contiguous memory of a plain region, directly or through a list, and the
 * access is allowed. Otherwise returns false. @more: as in struct stream_part.
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
 * Checks and adds [@address, +@length) of @key after stream_add_plain() has returned false. @lead: as in struct
 * stream_part. Returns 0 or -EACCES with @why.
 */
int stream_add_other(struct stream *stream, uint32_t key, uint64_t address, uint64_t length, uint64_t lead, bool more,
		     struct refusal *why);

/**
 * Checks and adds [@address, +@length) of @key, for a message that lies in it from the beginning. Returns 0 or -EACCES
 * with @why.
 */
static inline SPECIALISED int stream_add_key(struct stream *stream, uint32_t key, uint64_t address, uint64_t length,
					     struct refusal *why)
{
	if (likely(stream_add_plain(stream, key, address, length, stream->access->more)))
		return 0;
	return stream_add_other(stream, key, address, length, stream->offset + stream->length, stream->access->more,
				why);
}

/** Adds the first @length bytes of the first segment if they lie in a plain region. Otherwise returns false. */
static inline SPECIALISED bool stream_add_plain_segment(struct stream *stream, const struct mlx5_wqe_data_seg *segments,
							uint32_t count, uint64_t offset, uint64_t length)
{
	uint64_t bytes = count ? be32toh(segments[0].byte_count) : 0;

	if (unlikely(offset || bytes < length))
		return false;
	return stream_add_plain(stream, be32toh(segments[0].lkey), be64toh(segments[0].addr), length,
				bytes > length && stream->access->more);
}

/** As stream_add_segments(), for any list. @lead: of the first segment, as in struct stream_part. */
int stream_add_any_segments(struct stream *stream, const struct mlx5_wqe_data_seg *segments, uint32_t count,
			    uint64_t offset, uint64_t length, uint64_t lead, struct refusal *why);

static inline bool segment_continues(const struct mlx5_wqe_data_seg *segment, const struct mlx5_wqe_data_seg *next)
{
	return segment->lkey == next->lkey &&
	       be64toh(segment->addr) + be32toh(segment->byte_count) == be64toh(next->addr);
}

/**
 * Adds the bytes [@offset, +@length) of a scatter or gather list, or fewer if it is shorter: compare stream->length.
 * Returns 0 or -EACCES with @why.
 */
static inline SPECIALISED int stream_add_segments(struct stream *stream, const struct mlx5_wqe_data_seg *segments,
						  uint32_t count, uint64_t offset, uint64_t length, struct refusal *why)
{
	if (likely(stream_add_plain_segment(stream, segments, count, offset, length)))
		return 0;
	return stream_add_any_segments(stream, segments, count, offset, length, 0, why);
}

/** As stream_copy(), for any streams. */
void stream_copy_parts(struct stream *sink, struct stream *source, uint64_t length);

/** As stream_copy(), for two unused streams of one piece of memory each, to their end. */
static inline SPECIALISED void stream_copy_whole(struct stream *sink, struct stream *source, uint64_t length)
{
	copy_bytes_last(sink->whole, source->whole, length);
	source->whole = sink->whole = NULL;
	source->current = sink->current = 1;
}

/** Copies the next @length bytes. The last ones become visible last, as programs spin on them. */
static inline SPECIALISED void stream_copy(struct stream *sink, struct stream *source, uint64_t length)
{
	if (unlikely(!source->whole || !sink->whole || source->length != length || sink->length != length)) {
		stream_copy_parts(sink, source, length);
		return;
	}
	stream_copy_whole(sink, source, length);
}

void stream_read(struct stream *source, void *buffer, uint64_t length);

/**
 * Takes the next contiguous piece, of at most @max bytes. Returns false at the end. Not for streams with block stages,
 * whose bytes are not in memory: see stream_read().
 */
bool stream_next(struct stream *stream, uint64_t max, struct piece *piece);

#endif
