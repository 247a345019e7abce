/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies of rings. */
#include "progress/shadow.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/compiler.h"
#include "progress/program_memory.h"

/* Offset of the link in an entry of a linked ring. */
#define LINK_OFFSET 2

int shadow_init(struct shadow *shadow, const void *ring, const uint32_t *record, uint32_t count, uint32_t shift)
{
	*shadow = (struct shadow){.ring = ring, .record = record, .count = count, .shift = shift};
	/* Aligned, because a block of a send queue is read as structures. */
	shadow->copy = aligned_alloc(64, (((size_t)count << shift) + 63) & ~(size_t)63);
	if (!shadow->copy)
		return -ENOMEM;
	memset(shadow->copy, 0, (size_t)count << shift);
	program_rings_begin();
	return 0;
}

void shadow_free(struct shadow *shadow)
{
	if (!shadow->copy)
		return;
	program_rings_end();
	free(shadow->copy);
	shadow->copy = NULL;
}

void shadow_reset(struct shadow *shadow)
{
	shadow->fetched = 0;
	shadow->next = 0;
	__atomic_store_n(&shadow->index, 0, __ATOMIC_RELEASE);
}

static int shadow_fetch_slots(struct shadow *shadow, uint32_t slot, uint32_t count)
{
	size_t at = (size_t)slot << shadow->shift;

	return program_ring_read(shadow->copy + at, shadow->ring + at, (size_t)count << shadow->shift);
}

static int fetch_in_order(struct shadow *shadow, uint32_t count)
{
	uint32_t slot = shadow->fetched & (shadow->count - 1), to_end = shadow->count - slot;
	int error = shadow_fetch_slots(shadow, slot, count < to_end ? count : to_end);

	return error || count <= to_end ? error : shadow_fetch_slots(shadow, 0, count - to_end);
}

static int fetch_linked(struct shadow *shadow, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint16_t link;

		if (shadow_fetch_slots(shadow, shadow->next, 1))
			return -EFAULT;
		memcpy(&link, shadow->copy + ((size_t)shadow->next << shadow->shift) + LINK_OFFSET, sizeof(link));
		shadow->next = be16toh(link) & (uint16_t)(shadow->count - 1);
	}
	return 0;
}

/* Maximum bytes of an entry that is fetched together with the record. */
enum { MOST_AHEAD = 64 };

static uint32_t next_slot(const struct shadow *shadow)
{
	return shadow->linked ? shadow->next : shadow->fetched & (shadow->count - 1);
}

/*
 * Reads the record and, speculatively, the one entry that it usually announces, because a system call takes longer than
 * copying both. The record comes first, and x86-64 does not reorder loads. @ahead: -EFAULT if the entry was not read.
 */
static int shadow_read_record(const struct shadow *shadow, uint32_t *record, uint8_t *entry, int *ahead)
{
	size_t bytes = (size_t)1 << shadow->shift;
	const struct iovec to[] = {{record, sizeof(*record)}, {entry, bytes}};
	const struct iovec from[] = {{(void *)shadow->record, sizeof(*record)},
				     {(void *)(shadow->ring + ((size_t)next_slot(shadow) << shadow->shift)), bytes}};
	size_t read;

	*ahead = -EFAULT;
#if defined(__x86_64__)
	if (bytes <= MOST_AHEAD) {
		read = program_ring_read_each(to, from, 2);
		*ahead = read == 2 ? 0 : -EFAULT;
		return read ? 0 : -EFAULT;
	}
#endif
	read = program_ring_read_each(to, from, 1);
	/* A system call does not order the loads of a weakly ordered processor; entries are read after the record. */
	order_after_loads();
	return read ? 0 : -EFAULT;
}

static int shadow_fetch_entries(struct shadow *shadow, uint32_t count)
{
	return shadow->linked ? fetch_linked(shadow, count) : fetch_in_order(shadow, count);
}

static void shadow_take_entry(struct shadow *shadow, const uint8_t *entry)
{
	uint16_t link;

	memcpy(shadow->copy + ((size_t)next_slot(shadow) << shadow->shift), entry, (size_t)1 << shadow->shift);
	memcpy(&link, entry + LINK_OFFSET, sizeof(link));
	shadow->next = be16toh(link) & (uint16_t)(shadow->count - 1);
}

bool shadow_fetch(struct shadow *shadow)
{
	uint8_t entry[MOST_AHEAD];
	uint16_t announced, fresh;
	uint32_t record, count;
	int ahead;

	if (shadow->gone)
		return false;
	if (shadow_read_record(shadow, &record, entry, &ahead)) {
		shadow->gone = true;
		return false;
	}
	announced = (uint16_t)be32toh(record);
	fresh = (uint16_t)(announced - shadow->fetched);
	if (!fresh)
		return false;
	/* The executor refuses to announce more entries than the ring holds. */
	count = fresh < shadow->count ? fresh : shadow->count;
	if (count == 1 && !ahead) {
		shadow_take_entry(shadow, entry);
	} else if (shadow_fetch_entries(shadow, count)) {
		shadow->gone = true;
		return false;
	}
	shadow->fetched = announced;
	__atomic_store_n(&shadow->index, htobe32(announced), __ATOMIC_RELEASE);
	return true;
}
