/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring in memory that two processes share, from one of them, the producer, to the other (DESIGN.md): functions over
 * memory; waking, and the meaning of records, belong to the link (link/shm/peer.h). Any thread may call the functions
 * of the producer, one thread at a time those of the consumer.
 *
 * Neither side trusts the other. The consumer copies the fields of a slot that it depends on, then checks the copy. Its
 * pointers lie inside the ring, whose bytes the other side may change at any time. The producer accepts only a head
 * between the last one and its tail. So the worst that either side can do to the other is to send invalid records, or
 * none.
 */
#ifndef SOFTHCA_LINK_SHM_RING_H
#define SOFTHCA_LINK_SHM_RING_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/compiler.h"
#include "link/shm/end.h"
#include "wire/roce.h"

/*
 * ThreadSanitizer does not see the other process, which consumes what one thread published before it moves the head and
 * so lets another thread reuse the place. These annotations declare that order.
 */
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#define SHM_TSAN(order, ring) __tsan_##order((void *)(ring))
#else
#define SHM_TSAN(order, ring) ((void)(ring))
#endif

#define SHM_LINE 64u /* bytes */
#define SHM_SLOT_BYTES (2 * SHM_LINE)
#ifndef SHM_SLOTS
#define SHM_SLOTS 512u
#endif
/* Keeps both processors busy, and fits into their second-level caches. */
#ifndef SHM_DATA_BYTES
#define SHM_DATA_BYTES (512u << 10)
#endif
#define SHM_DATA_LINES (SHM_DATA_BYTES / SHM_LINE)
#define SHM_INLINE_BYTES 116u
/* Payload of one record. The data area must hold two, because up to one record's length may be skipped at its end. */
#define SHM_MOST_PAYLOAD (64u << 10)
#define SHM_GRANTS 64u
#define SHM_ENDS 256u
/* Slots, and lines of the data area, that are prefetched. */
#define SHM_AHEAD 4u

enum shm_flag {
	SHM_FLAG_PATH = 1 << 0,
	SHM_FLAG_FRAME = 1 << 1, /* a frame from another host: replies go there */
	SHM_FLAGS = (1 << 2) - 1,
};

/*
 * The headers are in `bytes`, followed by the payload if both fit. Otherwise the payload begins at a line of the data
 * area, after the path, if any.
 */
struct shm_slot {
	uint32_t sequence; /* atomic; the lap number, from 1 */
	uint8_t flags;     /* enum shm_flag */
	uint8_t headers;   /* bytes of BTH and extension headers */
	uint16_t rule;     /* for a NAK, the rule by which the responder refuses, 1..255; otherwise 0 */
	uint32_t length;   /* of the payload, without padding */
	uint8_t bytes[SHM_INLINE_BYTES];
} __attribute__((aligned(SHM_SLOT_BYTES)));

/* State of the process that fills a ring. It rarely changes. */
struct shm_state {
	uint32_t sleeps;  /* atomic; 1: wake this process for a record, or for room that it waits for */
	uint32_t starved; /* atomic; 1: this process waits for room in this ring */
	uint32_t barrier; /* atomic; 0: the other process needs a barrier before it reads `sleeps` */
	uint64_t probe;   /* address of a word in this process that contains probe_value */
	uint64_t probe_value;
	uint32_t process;           /* process ID, in this process's own PID namespace */
	uint32_t attends;           /* atomic; 1: the program polls continuously */
	uint32_t granted;           /* atomic; grants made so far */
	uint32_t services_released; /* atomic; services of the connection manager (link/host/host.h) */
} __attribute__((aligned(SHM_LINE)));

/*
 * Permission by the process that fills the ring: QP `source` of the other process, connected to QP `destination` of
 * this one, may READ, WRITE or both through `rkey` directly (link/shm/grants.c).
 */
struct shm_grant {
	uint32_t sequence; /* atomic; odd while the grant is being written */
	uint32_t source, destination;
	uint32_t rkey;
	uint64_t generation; /* valid while this equals shm_ring.generation */
	uint64_t start, length;
	uint64_t memory; /* address of the byte at `start` */
	uint32_t reads, writes;
	uint64_t reserved; /* 0 */
} __attribute__((aligned(SHM_LINE)));

/* A direct access in progress, by the process that fills the ring to memory of the other one. */
struct shm_access {
	uint64_t ticket; /* atomic; unique for each access; 0: none */
	uint32_t thread; /* thread ID */
	uint32_t count;  /* atomic; accesses so far */
};

/* Initially all zero. A change of the layout requires a new HOST_VERSION (link/host/hello.h). */
struct shm_ring {
	struct shm_state state;
	uint64_t head __attribute__((
		aligned(2 * SHM_LINE))); /* atomic; written by the consumer: the end of the room that may be reused */
	uint32_t handled; /* atomic; slots, written by the consumer: end of the records that it has replied to */
	struct shm_access access __attribute__((aligned(2 * SHM_LINE)));
	uint64_t generation __attribute__((aligned(2 * SHM_LINE))); /* atomic; of grants, from 1 */
	struct shm_grant grant[SHM_GRANTS];
	struct shm_end end[SHM_ENDS];
	struct shm_slot slot[SHM_SLOTS];
	uint8_t data[SHM_DATA_BYTES] __attribute__((aligned(SHM_LINE)));
};

/* A position in the ring: free-running counts of slots and lines. */
struct shm_cursor {
	uint32_t slot, line;
};

struct shm_producer {
	struct shm_ring *ring;
	uint64_t tail; /* atomic; a packed cursor: the end of what is reserved */
	uint64_t head; /* atomic; the last head read from the ring */
} __attribute__((aligned(2 * SHM_LINE)));

struct shm_consumer {
	struct shm_ring *ring;
	struct shm_cursor at;
};

/* A record taken from a ring: checked and owned by the consumer, except the bytes that the pointers lead to. */
struct shm_record {
	struct shm_slot slot;   /* all fields except `bytes` */
	const uint8_t *path;    /* SHM_LINE bytes, or NULL */
	const uint8_t *headers; /* slot.headers bytes */
	const uint8_t *payload; /* slot.length bytes */
};

static inline uint64_t shm_pack(struct shm_cursor cursor)
{
	return (uint64_t)cursor.line << 32 | cursor.slot;
}

static inline struct shm_cursor shm_unpack(uint64_t packed)
{
	return (struct shm_cursor){.slot = (uint32_t)packed, .line = (uint32_t)(packed >> 32)};
}

static inline uint32_t shm_lines(uint32_t bytes)
{
	return (bytes + SHM_LINE - 1) / SHM_LINE;
}

/* The fields between sequence and bytes of a slot, to be copied as one word. */
struct shm_sizes {
	uint8_t flags, headers;
	uint16_t rule;
	uint32_t length;
};

static inline uint32_t shm_path_lines(const struct shm_slot *slot)
{
	return slot->flags & SHM_FLAG_PATH ? 1 : 0;
}

static inline uint32_t shm_payload_lines(const struct shm_slot *slot)
{
	return slot->headers + slot->length <= SHM_INLINE_BYTES ? 0 : shm_lines(slot->length);
}

static inline uint32_t shm_record_lines(const struct shm_slot *slot)
{
	return shm_path_lines(slot) + shm_payload_lines(slot);
}

/** Moves @cursor past a record of @lines contiguous lines. Returns the record's first line, below SHM_DATA_LINES. */
static inline uint32_t shm_step(struct shm_cursor *cursor, uint32_t lines)
{
	uint32_t at = cursor->line % SHM_DATA_LINES;

	if (lines > SHM_DATA_LINES - at) {
		cursor->line += SHM_DATA_LINES - at;
		at = 0;
	}
	cursor->line += lines;
	cursor->slot++;
	return at;
}

static inline uint32_t shm_sequence(uint32_t slot)
{
	return slot / SHM_SLOTS + 1;
}

static inline struct shm_cursor shm_tail(const struct shm_producer *producer)
{
	return shm_unpack(__atomic_load_n(&producer->tail, __ATOMIC_RELAXED));
}

/**
 * Reserves the range from @from, the tail, to @to, the result of shm_step(). Returns 0, -EAGAIN if the tail has moved
 * and the caller must start over, -ENOBUFS if the ring is full, or -EPROTO if the consumer claims to have taken records
 * that were never sent.
 */
int shm_reserve(struct shm_producer *producer, struct shm_cursor from, struct shm_cursor to);

/* Returns true if everything up to @to fits when the consumer is at @head. */
static inline bool shm_fits(struct shm_cursor to, uint64_t head)
{
	struct shm_cursor done = shm_unpack(head);

	return to.slot - done.slot <= SHM_SLOTS && to.line - done.line <= SHM_DATA_LINES;
}

/**
 * Reserves a place for a record of @lines lines: slot number *@at (of the cursor before its step) and first line
 * *@line, below SHM_DATA_LINES. Returns 0, -ENOBUFS or -EPROTO as shm_reserve().
 */
static inline int shm_reserve_one(struct shm_producer *producer, uint32_t lines, uint32_t *at, uint32_t *line)
{
	int error;

	do {
		struct shm_cursor from = shm_tail(producer), to = from;
		uint64_t expected = shm_pack(from);

		*at = from.slot;
		*line = shm_step(&to, lines);
		/* Same steps as shm_reserve(), inlined for the common case. */
		if (likely(shm_fits(to, __atomic_load_n(&producer->head, __ATOMIC_ACQUIRE))))
			error = likely(__atomic_compare_exchange_n(&producer->tail, &expected, shm_pack(to), false,
								   __ATOMIC_RELAXED, __ATOMIC_RELAXED))
					? 0
					: -EAGAIN;
		else
			error = shm_reserve(producer, from, to);
	} while (unlikely(error == -EAGAIN));
	return error;
}

/** As shm_reserve_one(), for a record that fits into its slot. */
static inline int shm_reserve_slot(struct shm_producer *producer, uint32_t *at)
{
	struct shm_cursor from = shm_tail(producer), to = {.slot = from.slot + 1, .line = from.line};
	uint64_t expected = shm_pack(from);
	uint32_t line;

	*at = from.slot;
	if (likely(shm_fits(to, __atomic_load_n(&producer->head, __ATOMIC_ACQUIRE))) &&
	    likely(__atomic_compare_exchange_n(&producer->tail, &expected, shm_pack(to), false, __ATOMIC_RELAXED,
					       __ATOMIC_RELAXED)))
		return 0;
	return shm_reserve_one(producer, 0, at, &line);
}

/** Returns true if at least a quarter of the slots and of the lines is free. */
bool shm_has_room(struct shm_producer *producer);

/**
 * Copies @length bytes to @to, which begins at a line of the data area, past the caches (DESIGN.md). @from must not lie
 * in the ring. (lines.c)
 */
void shm_write_lines(uint8_t *to, const uint8_t *from, uint32_t length);

/** Publishes the record in slot @at (of the cursor before its step), whose other fields are already written. */
static inline void shm_publish_filled(struct shm_ring *ring, uint32_t at)
{
	SHM_TSAN(release, ring);
	__atomic_store_n(&ring->slot[at % SHM_SLOTS].sequence, shm_sequence(at), __ATOMIC_RELEASE);
}

/** Copies @slot, except its sequence, to slot @at and publishes it. */
static inline void shm_publish(struct shm_ring *ring, uint32_t at, const struct shm_slot *slot)
{
	uint32_t used = slot->headers + (shm_payload_lines(slot) ? 0 : slot->length);

	__builtin_memcpy((uint8_t *)&ring->slot[at % SHM_SLOTS] + sizeof(slot->sequence),
			 (const uint8_t *)slot + sizeof(slot->sequence),
			 offsetof(struct shm_slot, bytes) - sizeof(slot->sequence) +
				 (used < SHM_INLINE_BYTES ? used : SHM_INLINE_BYTES));
	shm_publish_filled(ring, at);
}

static inline const struct shm_slot *shm_next(const struct shm_consumer *consumer)
{
	return &consumer->ring->slot[consumer->at.slot % SHM_SLOTS];
}

/*
 * Compilers replace prefetchw by a read prefetch unless a target flag is given. On processors without it, it is a
 * no-op.
 */
static inline void shm_prefetch_to_write(const void *line)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/**
 * Prefetches lines that will be written soon. Stores become visible in order, so each would otherwise wait until its
 * line has arrived. Not the next slot, because the consumer spins on it.
 */
static inline void shm_prepare(const struct shm_producer *producer)
{
	struct shm_cursor tail = shm_tail(producer);

	for (uint32_t i = 1; i <= SHM_AHEAD; i++) {
		shm_prefetch_to_write(&producer->ring->slot[(tail.slot + i) % SHM_SLOTS]);
		shm_prefetch_to_write(&producer->ring->data[(tail.line + i) % SHM_DATA_LINES * SHM_LINE]);
	}
}

/**
 * As shm_prepare(), after reserving slot @at and no lines: earlier reservations have prefetched the slots before it.
 */
static inline void shm_prepare_slot(const struct shm_producer *producer, uint32_t at)
{
	const struct shm_slot *slot = &producer->ring->slot[(at + 1 + SHM_AHEAD) % SHM_SLOTS];

	shm_prefetch_to_write(slot);
	shm_prefetch_to_write((const uint8_t *)slot + SHM_LINE);
}

/** Prefetches the slots and lines of the next records. */
static inline void shm_look_ahead(const struct shm_consumer *consumer)
{
	const struct shm_ring *ring = consumer->ring;
	const struct shm_cursor *at = &consumer->at;

	for (uint32_t i = 0; i < SHM_AHEAD; i++) {
		__builtin_prefetch(&ring->slot[(at->slot + i) % SHM_SLOTS]);
		__builtin_prefetch(&ring->data[(at->line + i) % SHM_DATA_LINES * SHM_LINE]);
	}
}

/** As shm_look_ahead(), after a record that was entirely in its slot. */
static inline void shm_look_ahead_slot(const struct shm_consumer *consumer)
{
	const struct shm_slot *slot = &consumer->ring->slot[(consumer->at.slot + SHM_AHEAD - 1) % SHM_SLOTS];

	__builtin_prefetch(slot);
	__builtin_prefetch((const uint8_t *)slot + SHM_LINE);
}

static inline bool shm_ready(const struct shm_consumer *consumer)
{
	const struct shm_slot *slot = shm_next(consumer);

	return __atomic_load_n(&slot->sequence, __ATOMIC_ACQUIRE) == shm_sequence(consumer->at.slot);
}

/**
 * Takes the next record, which must be there (shm_ready()) and stays in the ring until shm_release(). Returns 0, or
 * -EPROTO if a field breaks the format; then *@field is the number of the field of struct shm_slot, from 1, *@value its
 * value, and the ring must not be used any more.
 */
int shm_take(struct shm_consumer *consumer, struct shm_record *record, uint32_t *field, uint32_t *value);

/** Frees the room of all records taken so far. */
static inline void shm_release(struct shm_consumer *consumer)
{
	__atomic_store_n(&consumer->ring->head, shm_pack(consumer->at), __ATOMIC_RELEASE);
}

#endif
