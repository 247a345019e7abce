/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A walk resolves (key, address, length, needed rights) into contiguous pieces of memory.
 *
 * walk_begin() first checks everything, down to the memory regions, so a refused request has not touched any memory. A
 * walk can begin at any offset (retransmission) and does not allocate. It lives inside one epoch section. One thread
 * uses it.
 */
#ifndef SOFTHCA_MKEY_WALK_H
#define SOFTHCA_MKEY_WALK_H

#include "core/limits.h"
#include "explain/refusal.h"
#include "mkey/key.h"

struct block_progress;
struct signature_observer;

/* The owner of an access and its state; each requester and responder has one. */
struct walk_access {
	struct hca *hca;
	uint32_t pd;
	uint32_t qpn; /* QP that carries the request */
	uint64_t qp_serial;
	bool staged;                         /* on the memory side of a block stage; a second stage is refused */
	bool unfinished;                     /* not the last range of its message */
	bool more;                           /* the message continues after the range, in the same key */
	bool repeated;                       /* a retransmission: block errors were reported before */
	struct block_progress *progress;     /* progress of the current message, or NULL (mkey/block_progress.h) */
	struct signature_observer *observer; /* or NULL (mkey/signature_report.h) */
};

struct piece {
	uint8_t *address; /* NULL: the null key */
	uint64_t length;
	const struct mapping *stage; /* not NULL: wire bytes of this key instead of memory… */
	uint64_t wire;               /* …from this position on, to be passed through a block stage */
	bool more;                   /* the message continues in this key */
};

struct walk_level {
	const struct mapping *map;
	uint64_t left;       /* bytes still to walk */
	uint64_t repetition; /* LAYOUT_REPEAT */
	uint64_t inside;     /* bytes of the entry already walked */
	uint64_t reach;      /* bytes from where the message enters this layout to the end of the range */
	uint32_t entry;
};

#define WALK_BASES 8

struct walk {
	struct hca *hca;
	uint64_t left; /* bytes still to hand out */
	uint32_t depth;
	bool staged;
	bool more;
	/* `base` is valid: all entries of a repeated layout are direct. */
	bool resolved;
	/* The plain region of a list if all its entries refer to it, so pieces need no key lookup. Otherwise NULL. */
	const struct mapping *region;
	uint64_t entered;          /* wire position at which the message enters the key of the latest staged piece */
	uint8_t *base[WALK_BASES]; /* byte 0 of each entry; pieces need no key lookup */
	struct walk_level level[LIMIT_MKEY_DEPTH];
};

/** Returns @bytes / @period. 64-bit divisions are slow, and the operands nearly always fit into 32 bits. */
static inline uint64_t periods_in(uint64_t bytes, uint64_t period)
{
	if (bytes < period)
		return 0;
	return (bytes | period) <= UINT32_MAX ? (uint32_t)bytes / (uint32_t)period : bytes / period;
}

/**
 * Checks the access and prepares the walk. @rights: enum key_rights that the outermost key must grant; inner keys need
 * the corresponding local rights. @length: at least 1 (IBTA C9-88: an RDMA of length zero needs no valid R_Key). Returns
 * 0, or -EACCES with @why and @walk unusable.
 */
int walk_begin(struct walk *walk, const struct walk_access *access, uint8_t rights, uint32_t key, uint64_t address,
	       uint64_t length, struct refusal *why);

/**
 * Checks [@offset, +@length) of the translation of a key that was checked itself, as walk_begin() does. @depth: nesting
 * level of the key, 1 for the outermost. Length 0 passes. Returns 0, or
 * -EACCES with @why.
 */
int walk_check(const struct walk_access *access, uint8_t rights, const struct mapping *map, uint64_t offset,
	       uint64_t length, uint32_t depth, struct refusal *why);

/**
 * Returns true if [@offset, +@length) of the translation of @map is one piece of a plain region that grants @rights;
 * @piece is then the whole walk. Otherwise check in detail.
 */
bool walk_at_once(const struct walk_access *access, uint8_t rights, const struct mapping *map, uint64_t offset,
		  uint64_t length, struct piece *piece);

/**
 * Returns the memory of [@address, +@length) of @key if it is one piece of a plain region to which a list refers, and
 * the access is allowed. NULL: check in detail. In an epoch section.
 */
uint8_t *walk_contiguous(const struct walk_access *access, uint8_t rights, uint32_t key, uint64_t address,
			 uint64_t length);

/** Begins a walk that passed walk_check(). */
void walk_enter(struct walk *walk, const struct walk_access *access, const struct mapping *map, uint64_t offset,
		uint64_t length);

/**
 * As walk_check() and walk_enter(), if @map is a list and its entries in the range refer to one plain region that allows
 * the access. Otherwise returns false without effect.
 */
bool walk_enter_list(struct walk *walk, const struct walk_access *access, uint8_t rights, const struct mapping *map,
		     uint64_t offset, uint64_t length);

/** Records that the @lead bytes of the key before a new walk belong to the same message. */
static inline void walk_continues(struct walk *walk, uint64_t lead)
{
	walk->level[0].reach += lead;
}

/** Returns the next contiguous piece, at most @max bytes. Returns false at the end. */
bool walk_next(struct walk *walk, uint64_t max, struct piece *piece);

/**
 * Checks an access to the key itself. @piece is the whole access and *layout NULL if the key is direct or has a block
 * stage. Otherwise *layout is its mapping: continue with walk_check() and walk_enter(). Returns 0, or -EACCES with @why.
 */
int walk_direct(const struct walk_access *access, uint8_t rights, uint32_t key, uint64_t address, uint64_t length,
		struct piece *piece, const struct mapping **layout, struct refusal *why);

#endif
