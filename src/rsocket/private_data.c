/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The private data of REQ and REP, 40 bytes (rdma-cm 5):
 *
 *     0 version 1 | 1 flags | 2 credits, be16 | 4 reserved | 7 size of the table of mappings, scaled
 *     8 list of targets: address be64, key be32, entries be32 | 24 data: address be64, key be32, bytes be32
 *
 * In lists the key precedes the length, as in struct stream_target.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "rsocket/objects.h"

enum { VERSION = 1, FLAG_BIG_ENDIAN = 1, FLAG_MAPPINGS = 2 };

struct description {
	uint8_t version;
	uint8_t flags;
	uint16_t credits;
	uint8_t reserved[3];
	uint8_t mappings;
	struct stream_target list;
	struct stream_target data;
};

_Static_assert(sizeof(struct description) == STREAM_PRIVATE_DATA, "rdma-cm 5");

static const uint8_t own_flags = FLAG_MAPPINGS | (BYTE_ORDER == BIG_ENDIAN ? FLAG_BIG_ENDIAN : 0);

/* Yields seven bits, or one set bit and bits 8 to 14 of the number. */
uint8_t stream_scale(uint32_t value)
{
	return (uint8_t)(value <= 128 ? value : 0x80 | (value >> 8 & 0x7f));
}

uint32_t stream_unscale(uint8_t scaled)
{
	return scaled <= 128 ? scaled : (uint32_t)(scaled & 0x7f) << 8;
}

void stream_describe(const struct rsocket *rs, uint8_t *bytes)
{
	const struct stream *stream = &rs->stream;
	struct description description = {
		.version = VERSION,
		.flags = own_flags,
		.credits = htobe16((uint16_t)stream->receive_entries),
		.mappings = stream_scale(stream->iomap_entries),
		.list = {.address = htobe64((uintptr_t)stream->list),
			 .key = htobe32(stream->list_mr->rkey),
			 .length = htobe32(STREAM_TARGETS)},
		.data = {.address = htobe64((uintptr_t)stream->ring),
			 .key = htobe32(stream->ring_mr->rkey),
			 .length = htobe32(stream->receive_bytes / 2)},
	};

	memcpy(bytes, &description, sizeof(description));
}

int stream_apply_description(struct rsocket *rs, const void *bytes, uint32_t length)
{
	struct stream *stream = &rs->stream;
	struct description description;

	if (!bytes || length < sizeof(description))
		return -EPROTO;
	memcpy(&description, bytes, sizeof(description));
	/* Without a slot, nothing could be granted to the peer. */
	if (description.version != VERSION || !description.list.length)
		return -EPROTO;
	stream->peer_list = be64toh(description.list.address);
	stream->peer_list_key = be32toh(description.list.key);
	stream->peer_slots = be32toh(description.list.length);
	/* The private data stands for slot 0: the first half of the ring. */
	stream->peer_slot = 1 % stream->peer_slots;
	stream->swap = (description.flags ^ own_flags) & FLAG_BIG_ENDIAN;
	if (description.flags & FLAG_MAPPINGS) {
		stream->peer_map = stream->peer_list + (uint64_t)stream->peer_slots * sizeof(struct stream_target);
		stream->peer_map_entries = stream_unscale(description.mappings);
	}
	stream->target.address = be64toh(description.data.address);
	stream->target.key = be32toh(description.data.key);
	stream->target.length = be32toh(description.data.length);
	stream->next_target = 1;
	stream->sequence_limit = be16toh(description.credits);
	return 0;
}
