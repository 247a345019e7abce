/* SPDX-License-Identifier: BSD-2-Clause */
/* See ring.h. */
#include "link/shm/ring.h"

#include <errno.h>
#include <string.h>

_Static_assert(sizeof(struct shm_slot) == SHM_SLOT_BYTES, "a slot is a pair of cache lines");
_Static_assert(offsetof(struct shm_slot, bytes) - offsetof(struct shm_slot, flags) == sizeof(struct shm_sizes) &&
		       offsetof(struct shm_slot, length) - offsetof(struct shm_slot, flags) ==
			       offsetof(struct shm_sizes, length),
	       "sizes are what is between sequence and bytes");
_Static_assert(ROCE_MOST_HEADERS <= SHM_INLINE_BYTES, "headers are in the slot");
_Static_assert(sizeof(struct shm_state) == SHM_LINE, "so is a state");
_Static_assert(!(SHM_SLOTS & (SHM_SLOTS - 1)) && !(SHM_DATA_LINES & (SHM_DATA_LINES - 1)),
	       "counts that run freely are reduced");
_Static_assert(2 * (SHM_MOST_PAYLOAD / SHM_LINE + 4) <= SHM_DATA_LINES, "what is skipped may be as long as a record");

/* Returns 0, -EAGAIN, or -EPROTO. */
static int producer_refresh_head(struct shm_producer *producer, struct shm_cursor from)
{
	uint64_t head = __atomic_load_n(&producer->ring->head, __ATOMIC_ACQUIRE);

	SHM_TSAN(acquire, producer->ring);
	/* A valid head cannot be beyond a tail that is read later. */
	if (__atomic_load_n(&producer->tail, __ATOMIC_RELAXED) != shm_pack(from))
		return -EAGAIN;
	if (!shm_fits(from, head))
		return -EPROTO;
	__atomic_store_n(&producer->head, head, __ATOMIC_RELEASE);
	return 0;
}

int shm_reserve(struct shm_producer *producer, struct shm_cursor from, struct shm_cursor to)
{
	uint64_t expected = shm_pack(from);

	/*
	 * Pairs with the consumer's release of the head, whichever thread read it: the consumer has finished with the
	 * place.
	 */
	if (!shm_fits(to, __atomic_load_n(&producer->head, __ATOMIC_ACQUIRE))) {
		int error = producer_refresh_head(producer, from);

		if (error)
			return error;
		/* Another thread may have stored a newer head meanwhile. */
		if (!shm_fits(to, __atomic_load_n(&producer->head, __ATOMIC_ACQUIRE)))
			return -ENOBUFS;
	}
	if (!__atomic_compare_exchange_n(&producer->tail, &expected, shm_pack(to), false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return -EAGAIN;
	return 0;
}

bool shm_has_room(struct shm_producer *producer)
{
	struct shm_cursor tail = shm_tail(producer);
	struct shm_cursor head = shm_unpack(__atomic_load_n(&producer->ring->head, __ATOMIC_ACQUIRE));

	return tail.slot - head.slot <= SHM_SLOTS / 4 * 3 && tail.line - head.line <= SHM_DATA_LINES / 4 * 3;
}

/* Returns the number of the field that breaks the format, with its value in *@value, or 0. */
static uint32_t slot_bad_field(const struct shm_slot *slot, uint32_t *value)
{
	*value = slot->flags;
	if (slot->flags & ~SHM_FLAGS || (slot->flags & SHM_FLAG_FRAME && !(slot->flags & SHM_FLAG_PATH)))
		return 2;
	*value = slot->headers;
	if (slot->headers < ROCE_BTH_BYTES || slot->headers > ROCE_MOST_HEADERS || slot->headers % 4)
		return 3;
	*value = slot->rule;
	if (slot->rule > UINT8_MAX)
		return 4;
	*value = slot->length;
	if (slot->length > SHM_MOST_PAYLOAD)
		return 5;
	return 0;
}

int shm_take(struct shm_consumer *consumer, struct shm_record *record, uint32_t *field, uint32_t *value)
{
	const struct shm_ring *ring = consumer->ring;
	struct shm_slot *slot = &record->slot;
	const struct shm_slot *in_ring;
	const uint8_t *at;

	in_ring = &ring->slot[consumer->at.slot % SHM_SLOTS];
	memcpy(slot, in_ring, offsetof(struct shm_slot, bytes));
	/* The compiler must not read the slot again. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*field = slot_bad_field(slot, value);
	if (*field)
		return -EPROTO;
	at = ring->data + (uint64_t)shm_step(&consumer->at, shm_record_lines(slot)) * SHM_LINE;
	record->path = slot->flags & SHM_FLAG_PATH ? at : NULL;
	at += (uint64_t)shm_path_lines(slot) * SHM_LINE;
	record->headers = in_ring->bytes;
	record->payload = shm_payload_lines(slot) ? at : in_ring->bytes + slot->headers;
	return 0;
}
