/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams, see stream.h. */
#include "mkey/stream.h"

#include <errno.h>
#include <string.h>

#include "mkey/copy.h"

#define REFUSAL(why, name, ...) (*(why) = (struct refusal){RULE_##name, {__VA_ARGS__}}, -EACCES)

int stream_add_key(struct stream *stream, uint32_t key, uint64_t address, uint64_t length, struct refusal *why)
{
	struct stream_part *part = &stream->part[stream->count];
	struct piece piece;
	bool direct;
	int error;

	if (!length)
		return 0;
	if (stream->count == STREAM_PARTS)
		return REFUSAL(why, WQE_SEGMENTS, STREAM_PARTS);
	error = walk_direct(stream->access, stream->rights, key, address, length, &piece, &direct, why);
	if (error)
		return error;
	if (direct) {
		part->address = piece.address;
		part->key = 0;
	} else {
		error = walk_begin(&stream->walk, stream->access, stream->rights, key, address, length, why);
		if (error)
			return error;
		part->key = key;
		part->key_address = address;
		stream->walked = stream->count;
	}
	part->length = length;
	stream->length += length;
	stream->count++;
	return 0;
}

int stream_add_segments(struct stream *stream, const struct mlx5_wqe_data_seg *segments, uint32_t count,
			uint64_t offset, uint64_t length, struct refusal *why)
{
	for (uint32_t i = 0; i < count && length; i++) {
		uint64_t bytes = be32toh(segments[i].byte_count), address = be64toh(segments[i].addr);
		int error;

		if (offset >= bytes) {
			offset -= bytes;
			continue;
		}
		bytes -= offset;
		if (bytes > length)
			bytes = length;
		if (__builtin_add_overflow(address, offset, &address))
			return REFUSAL(why, SEGMENT_WRAPS, be32toh(segments[i].lkey), be64toh(segments[i].addr),
				       be32toh(segments[i].byte_count));
		error = stream_add_key(stream, be32toh(segments[i].lkey), address, bytes, why);
		if (error)
			return error;
		offset = 0;
		length -= bytes;
	}
	return 0;
}

/* Readies stream->piece; false at the end. */
static bool refill(struct stream *stream)
{
	struct refusal ignored;

	for (;;) {
		const struct stream_part *part = &stream->part[stream->current];

		if (stream->walking) {
			if (walk_next(&stream->walk, UINT64_MAX, &stream->piece))
				return true;
			stream->walking = false;
			stream->current++;
			continue;
		}
		if (stream->current >= stream->count)
			return false;
		if (!part->key) {
			stream->piece = (struct piece){part->address, part->length};
			stream->current++;
			return true;
		}
		/* Checked when it was added; a key changed since then by another thread gives a null piece. */
		if (stream->walked != stream->current &&
		    walk_begin(&stream->walk, stream->access, stream->rights, part->key, part->key_address, part->length, &ignored)) {
			stream->piece = (struct piece){NULL, part->length};
			stream->current++;
			return true;
		}
		stream->walked = STREAM_PARTS;
		stream->walking = true;
	}
}

static void take(struct stream *stream, uint64_t bytes)
{
	if (stream->piece.address)
		stream->piece.address += bytes;
	stream->piece.length -= bytes;
}

bool stream_next(struct stream *stream, uint64_t max, struct piece *piece)
{
	if (!stream->piece.length && !refill(stream))
		return false;
	*piece = stream->piece;
	if (piece->length > max)
		piece->length = max;
	take(stream, piece->length);
	return true;
}

void stream_copy(struct stream *sink, struct stream *source, uint64_t length)
{
	while (length) {
		uint64_t bytes = length;

		if (!source->piece.length && !refill(source))
			return;
		if (!sink->piece.length && !refill(sink))
			return;
		if (bytes > source->piece.length)
			bytes = source->piece.length;
		if (bytes > sink->piece.length)
			bytes = sink->piece.length;
		length -= bytes;
		if (length)
			copy_bytes(sink->piece.address, source->piece.address, bytes);
		else
			copy_bytes_last(sink->piece.address, source->piece.address, bytes);
		take(source, bytes);
		take(sink, bytes);
	}
}

void stream_read(struct stream *source, void *buffer, uint64_t length)
{
	struct piece piece;
	uint8_t *to = buffer;

	while (length && stream_next(source, length, &piece)) {
		copy_bytes(to, piece.address, piece.length);
		to += piece.length;
		length -= piece.length;
	}
}
