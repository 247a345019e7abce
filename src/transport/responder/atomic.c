/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomic operations. Operands and results are in host order (mlx5-formats 1.5). */
#include "transport/responder/atomic.h"

#include <string.h>

#include "core/thread_memory.h"
#include "hca/hca.h"

static uint32_t execute_short(const struct packet *packet, uint32_t *target)
{
	uint32_t before = __atomic_load_n(target, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(target, &before, (uint32_t)atomic_result(packet, before), true,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	return before;
}

static void sink_begin(const struct walk_access *access, const struct packet *packet, struct stream *sink,
		       uint32_t bytes)
{
	struct refusal why;

	stream_begin(sink, access, RIGHT_ATOMIC);
	stream_add_key(sink, packet->rkey, packet->remote_address, bytes, &why);
}

/*
 * Executes an atomic on memory that a layout divides or shifts. The device's lock makes it atomic among operations of
 * this device (IBV_ATOMIC_HCA). The checked sink is built again for each of the two passes.
 */
static uint64_t execute_pieces(const struct walk_access *access, const struct packet *packet, struct stream *sink,
			       uint32_t bytes)
{
	THREAD_VARIABLE(struct stream, result);
	struct hca *hca = access->hca;
	union {
		uint64_t value;
		uint32_t half;
	} before = {0}, after;

	pthread_mutex_lock(&hca->atomic_lock);
	sink_begin(access, packet, sink, bytes);
	stream_read(sink, &before, bytes);
	if (bytes == sizeof(before.half))
		after.half = (uint32_t)atomic_result(packet, before.half);
	else
		after.value = atomic_result(packet, before.value);
	stream_begin(result, NULL, 0);
	stream_add_memory(result, (const uint8_t *)&after, bytes);
	sink_begin(access, packet, sink, bytes);
	stream_copy(sink, result, bytes);
	pthread_mutex_unlock(&hca->atomic_lock);
	return bytes == sizeof(before.half) ? before.half : before.value;
}

uint64_t atomic_execute(const struct walk_access *access, const struct packet *packet, struct stream *sink)
{
	struct piece piece = {0};
	uint32_t bytes = atomic_bytes(packet);

	stream_next(sink, bytes, &piece);
	if (!piece.address || piece.length != bytes || (uintptr_t)piece.address % bytes)
		return execute_pieces(access, packet, sink, bytes);
	if (bytes == sizeof(uint32_t))
		return execute_short(packet, (uint32_t *)piece.address);
	return atomic_execute_word(packet, (uint64_t *)piece.address);
}
