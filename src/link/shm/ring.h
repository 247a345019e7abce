/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring in memory that two processes share: records from one of them, the producer, to the other. Functions over memory;
 * waking, and what records mean, is the link's (link/shm/peer.h).
 *
 * A record is a slot of two cache lines, which processors fetch as a pair, and payload that does not fit there as lines of the
 * data area behind the slots. The consumer spins on the slot itself: its sequence word, written last, says by the lap that the
 * record is there. So a packet of 64 bytes costs the transfer of a pair of lines, a smaller one that of its first line. Where in the data area a record lies, nobody writes down: both sides
 * reckon it from the sizes in the slots (shm_step), so the consumer has no offset to check.
 *
 * Producers are many threads: each reserves its place by one exchange (shm_reserve), fills it, and publishes it; the
 * consumer takes records in the order of their places. The consumer is one thread at a time.
 *
 * Neither side trusts the other. The consumer copies what it has to believe of a slot, and then checks it; what it hands out lies inside the ring,
 * whose bytes the other side may change at any time. The producer believes a head that lies between the last and its
 * tail. The worst that either can do to the other is to send nonsense, or nothing.
 */
#ifndef SOFTHCA_LINK_SHM_RING_H
#define SOFTHCA_LINK_SHM_RING_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/compiler.h"
#include "wire/roce.h"

/*
 * ThreadSanitizer sees nothing of the other process, which takes what one thread published before it moves the head that lets
 * another thread use the place again: so it is told.
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
/* Of the data area: measured, as large as keeps both processors at work, and small enough for their second-level caches. */
#ifndef SHM_DATA_BYTES
#define SHM_DATA_BYTES (512u << 10)
#endif
#define SHM_DATA_LINES (SHM_DATA_BYTES / SHM_LINE)
#define SHM_INLINE_BYTES 116u
/* Payload of one record. Twice a record has to fit into the data area: what is left before its end may be skipped. */
#define SHM_MOST_PAYLOAD (64u << 10)
#define SHM_GRANTS 64u
/* Slots, and lines of the data area, that are on their way to a processor before it needs them. */
#define SHM_AHEAD 4u

enum shm_flag {
	SHM_FLAG_PATH = 1 << 0,  /* a path comes along */
	SHM_FLAG_FRAME = 1 << 1, /* from another host: the answer goes there */
	SHM_FLAGS = (1 << 2) - 1,
};

/*
 * The headers are in `bytes`, and behind them the payload, if it fits. Else the payload is in the data area, at the beginning of
 * a line; so is, before it, the path.
 */
struct shm_slot {
	uint32_t sequence; /* atomic; the lap, from 1 */
	uint8_t flags;     /* enum shm_flag */
	uint8_t headers;   /* bytes of BTH and extension headers */
	uint16_t rule;     /* 1..255: of a NAK, the rule by which the responder refuses; otherwise 0 */
	uint32_t length;   /* of the payload, without pad */
	uint8_t bytes[SHM_INLINE_BYTES];
} __attribute__((aligned(SHM_SLOT_BYTES)));

/* What the process that fills a ring says about itself, and rarely changes. */
struct shm_state {
	uint32_t sleeps;  /* atomic; 1: it is to be woken when there is a record for it, or room that it waits for */
	uint32_t starved; /* atomic; 1: it waits for room in this ring */
	uint32_t barrier; /* atomic; 0: the other process needs a barrier between a record and its look at `sleeps` */
	uint64_t probe;   /* address of a word of its memory that has the value probe_value */
	uint64_t probe_value;
	uint32_t process; /* its id, as it sees it */
	uint32_t attends; /* atomic; 1: its program polls all the time */
	uint32_t granted; /* atomic; counts the grants that it made */
} __attribute__((aligned(SHM_LINE)));

/*
 * What the process that fills a ring lets the other one do in its memory (link/shm/grants.c): READs, WRITEs or both by QP
 * `source` of the other one, connected to QP `destination` of its own, through `rkey`.
 */
struct shm_grant {
	uint32_t sequence; /* atomic; odd while it is being written */
	uint32_t source, destination;
	uint32_t rkey;
	uint64_t generation; /* it counts while this is shm_ring.generation */
	uint64_t start, length;
	uint64_t memory; /* address of the byte at `start` */
	uint32_t reads, writes;
	uint64_t reserved; /* 0 */
} __attribute__((aligned(SHM_LINE)));

/* An access of the process that fills a ring to the memory of the other one that is under way. */
struct shm_access {
	uint64_t ticket; /* atomic; 0: there is none; no two have the same */
	uint32_t thread; /* its id */
};

/* All zero at first. A change of the layout is a new HOST_VERSION (link/host/hello.h). */
struct shm_ring {
	struct shm_state state;
	uint64_t head
		__attribute__((aligned(2 * SHM_LINE))); /* atomic; of the consumer: up to where there is room again… */
	uint32_t handled; /* …atomic; slots: and up to where it has sent what it answers */
	struct shm_access access __attribute__((aligned(2 * SHM_LINE)));
	uint64_t generation __attribute__((aligned(2 * SHM_LINE))); /* atomic; of grants, from 1 */
	struct shm_grant grant[SHM_GRANTS];
	struct shm_slot slot[SHM_SLOTS];
	uint8_t data[SHM_DATA_BYTES] __attribute__((aligned(SHM_LINE)));
};

/* A place in the ring: free running counts of slots and lines. */
struct shm_cursor {
	uint32_t slot, line;
};

struct shm_producer {
	struct shm_ring *ring;
	uint64_t tail; /* atomic; a cursor: what is reserved */
	uint64_t head; /* atomic; the last seen */
} __attribute__((aligned(2 * SHM_LINE)));

struct shm_consumer {
	struct shm_ring *ring;
	struct shm_cursor at;
};

/* A record taken from a ring. All but the bytes that the pointers lead to is checked, and belongs to the consumer. */
struct shm_record {
	struct shm_slot slot;   /* but for its bytes */
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

/* What a slot says of its record, but for its sequence, in one word. */
struct shm_sizes {
	uint8_t flags, headers;
	uint16_t rule;
	uint32_t length;
};

/* What is in the data area comes in this order. */
static inline uint32_t shm_path_lines(const struct shm_slot *slot)
{
	return slot->flags & SHM_FLAG_PATH ? 1 : 0;
}

static inline uint32_t shm_payload_lines(const struct shm_slot *slot)
{
	return slot->headers + slot->length <= SHM_INLINE_BYTES ? 0 : shm_lines(slot->length);
}

/** The lines that a record with such a slot takes. */
static inline uint32_t shm_record_lines(const struct shm_slot *slot)
{
	return shm_path_lines(slot) + shm_payload_lines(slot);
}

/** Moves @cursor behind a record of @lines lines, which are contiguous; returns the first, below SHM_DATA_LINES. */
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
 * Reserves what lies between @from, which was the tail, and @to, reached by steps. Returns 0; -EAGAIN: the tail is another
 * by now, reckon again; -ENOBUFS: there is no room; -EPROTO: the consumer claims to have taken what was not there.
 * Any thread.
 */
int shm_reserve(struct shm_producer *producer, struct shm_cursor from, struct shm_cursor to);

/* True if all up to @to fits in behind @head. */
static inline bool shm_fits(struct shm_cursor to, uint64_t head)
{
	struct shm_cursor done = shm_unpack(head);

	return to.slot - done.slot <= SHM_SLOTS && to.line - done.line <= SHM_DATA_LINES;
}

/**
 * Reserves a place for a record of @lines lines: its slot in *@at (of a cursor before its step), the first of the lines, below
 * SHM_DATA_LINES, in *@line. Returns 0, -ENOBUFS, -EPROTO as shm_reserve(). Any thread.
 */
static inline int shm_reserve_one(struct shm_producer *producer, uint32_t lines, uint32_t *at, uint32_t *line)
{
	int error;

	do {
		struct shm_cursor from = shm_tail(producer), to = from;
		uint64_t expected = shm_pack(from);

		*at = from.slot;
		*line = shm_step(&to, lines);
		/* As in shm_reserve(), for the common case. */
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

/** shm_reserve_one() of a record that is all in its slot. */
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

/** True if at least a quarter of slots and lines is free. Any thread. */
bool shm_has_room(struct shm_producer *producer);

/**
 * Copies @length bytes to @to, at the beginning of a line of the data area, past the caches: the other processor, which has read
 * these lines, has them in its own, and each would be fetched from there before it is written. @from is no memory of the ring. Any
 * thread. (lines.c)
 */
void shm_write_lines(uint8_t *to, const uint8_t *from, uint32_t length);

/** Publishes the record in slot @at (of a cursor before its step), whose other fields have been written. */
static inline void shm_publish_filled(struct shm_ring *ring, uint32_t at)
{
	SHM_TSAN(release, ring);
	__atomic_store_n(&ring->slot[at % SHM_SLOTS].sequence, shm_sequence(at), __ATOMIC_RELEASE);
}

/** The same of a slot that is filled from @slot; its sequence is ignored. */
static inline void shm_publish(struct shm_ring *ring, uint32_t at, const struct shm_slot *slot)
{
	uint32_t used = slot->headers + (shm_payload_lines(slot) ? 0 : slot->length);

	__builtin_memcpy((uint8_t *)&ring->slot[at % SHM_SLOTS] + sizeof(slot->sequence),
			 (const uint8_t *)slot + sizeof(slot->sequence),
			 offsetof(struct shm_slot, bytes) - sizeof(slot->sequence) +
				 (used < SHM_INLINE_BYTES ? used : SHM_INLINE_BYTES));
	shm_publish_filled(ring, at);
}

/** The slot of the next record. */
static inline const struct shm_slot *shm_next(const struct shm_consumer *consumer)
{
	return &consumer->ring->slot[consumer->at.slot % SHM_SLOTS];
}

/* Without a flag compilers take the prefetch for reading; processors that do not know this one take it for a no-op. */
static inline void shm_prefetch_to_write(const void *line)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/**
 * Asks for lines that will be written soon: stores become visible one after the other, and each would else wait until its line
 * has come from the other processor. Not the next slot, on which the consumer spins. Any thread.
 */
static inline void shm_prepare(const struct shm_producer *producer)
{
	struct shm_cursor tail = shm_tail(producer);

	for (uint32_t i = 1; i <= SHM_AHEAD; i++) {
		shm_prefetch_to_write(&producer->ring->slot[(tail.slot + i) % SHM_SLOTS]);
		shm_prefetch_to_write(&producer->ring->data[(tail.line + i) % SHM_DATA_LINES * SHM_LINE]);
	}
}

/** The same, for one that has just reserved slot @at and no lines: those before it have asked for what comes before. */
static inline void shm_prepare_slot(const struct shm_producer *producer, uint32_t at)
{
	const struct shm_slot *slot = &producer->ring->slot[(at + 1 + SHM_AHEAD) % SHM_SLOTS];

	shm_prefetch_to_write(slot);
	shm_prefetch_to_write((const uint8_t *)slot + SHM_LINE);
}

/** Asks for what will be read when the next records are taken. */
static inline void shm_look_ahead(const struct shm_consumer *consumer)
{
	const struct shm_ring *ring = consumer->ring;
	const struct shm_cursor *at = &consumer->at;

	for (uint32_t i = 0; i < SHM_AHEAD; i++) {
		__builtin_prefetch(&ring->slot[(at->slot + i) % SHM_SLOTS]);
		__builtin_prefetch(&ring->data[(at->line + i) % SHM_DATA_LINES * SHM_LINE]);
	}
}

/** The same, behind a record that is all in its slot. */
static inline void shm_look_ahead_slot(const struct shm_consumer *consumer)
{
	const struct shm_slot *slot = &consumer->ring->slot[(consumer->at.slot + SHM_AHEAD - 1) % SHM_SLOTS];

	__builtin_prefetch(slot);
	__builtin_prefetch((const uint8_t *)slot + SHM_LINE);
}

/** True if the next record is there. */
static inline bool shm_ready(const struct shm_consumer *consumer)
{
	const struct shm_slot *slot = shm_next(consumer);

	return __atomic_load_n(&slot->sequence, __ATOMIC_ACQUIRE) == shm_sequence(consumer->at.slot);
}

/**
 * Takes the next record, which is there (shm_ready). It stays in the ring until shm_release(). Returns 0, or -EPROTO and in
 * *@field and *@value what breaks the format, as struct shm_slot counts its fields from 1; then the ring cannot be used.
 */
int shm_take(struct shm_consumer *consumer, struct shm_record *record, uint32_t *field, uint32_t *value);

/** Gives the room of all records taken so far back to the producer. */
static inline void shm_release(struct shm_consumer *consumer)
{
	__atomic_store_n(&consumer->ring->head, shm_pack(consumer->at), __ATOMIC_RELEASE);
}

#endif
