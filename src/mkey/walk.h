/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A walk resolves (key, address, length, needed rights) into contiguous pieces of memory.
 *
 * walk_begin() first checks everything: number, tag, state, domain, QP, rights, range, and for indirect keys every
 * entry that the range touches, down to the memory regions. Pieces are handed out only after that, so a refused request
 * has not touched any memory. A walk can begin at any offset (retransmission) and does not allocate.
 *
 * A walk points into mappings, so it lives inside one epoch section. One thread uses it.
 */
#ifndef SOFTHCA_MKEY_WALK_H
#define SOFTHCA_MKEY_WALK_H

#include "core/limits.h"
#include "explain/refusal.h"
#include "mkey/key.h"

struct block_progress;
struct signature_observer;

/* The owner of an access to memory and its state. Each QP has two: one for its requester, one for its responder. */
struct walk_access {
	struct hca *hca;
	uint32_t pd;
	uint32_t qpn; /* QP that carries the request */
	uint64_t qp_serial;
	bool staged;                         /* the access is on the memory side of a block stage; a second stage is
					      * refused */
	bool unfinished;                     /* the range is not the last one of its message */
	bool more;                           /* the message continues after the range, in the same key */
	bool repeated;                       /* a retransmission: block errors of this range were reported before */
	struct block_progress *progress;     /* progress of the current message, or NULL (mkey/block_progress.h) */
	struct signature_observer *observer; /* receives signature errors, or NULL (mkey/signature_report.h) */
};

struct piece {
	uint8_t *address; /* NULL: the null key; reads return zeros, writes are discarded */
	uint64_t length;
	const struct mapping *stage; /* not NULL: the piece is not memory but wire bytes of this key… */
	uint64_t wire;               /* …from this position on, to be passed through a block stage */
	bool more;                   /* the message continues with the wire bytes that follow in this key */
};

struct walk_level {
	const struct mapping *map;
	uint64_t left;       /* bytes still to walk on this level */
	uint64_t repetition; /* LAYOUT_REPEAT */
	uint64_t inside;     /* bytes of the current entry already walked */
	uint64_t reach;      /* bytes from where the message enters this layout to the end of the range */
	uint32_t entry;
};

#define WALK_BASES 8

struct walk {
	struct hca *hca;
	uint64_t left; /* bytes still to hand out */
	uint32_t depth;
	bool staged; /* as in struct walk_access */
	bool more;   /* as in struct walk_access */
	/* `base` is valid: all entries of a repeated layout are direct, so pieces need no key lookup. */
	bool resolved;
	/*
	 * The plain region of a list if all its entries refer to the same one, so that pieces need no key lookup.
	 * Otherwise NULL.
	 */
	const struct mapping *region;
	uint64_t entered;          /* wire position at which the message enters the key of the latest staged piece */
	uint8_t *base[WALK_BASES]; /* memory of byte 0 of each entry */
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
 * Checks the access and prepares the walk. @rights: enum key_rights, all of which the outermost key must grant; inner keys need
 * the corresponding local rights. Returns 0, or -EACCES with @why filled and @walk unusable. @length must be at least 1: the
 * R_Key of an RDMA of length zero is not checked (IBTA C9-88), so callers skip the walk.
 */
int walk_begin(struct walk *walk, const struct walk_access *access, uint8_t rights, uint32_t key, uint64_t address,
	       uint64_t length, struct refusal *why);

/**
 * Checks [@offset, +@length) of the translation of the outermost key's @map, as walk_begin() does after it has checked the key
 * itself. @depth: nesting level of the key, 1 for the outermost. A length of 0 passes. Returns 0, or -EACCES with @why filled.
 */
int walk_check(const struct walk_access *access, uint8_t rights, const struct mapping *map, uint64_t offset,
	       uint64_t length, uint32_t depth, struct refusal *why);

/**
 * Returns true if [@offset, +@length) of the translation of @map is one piece of a plain region that grants @rights;
 * @piece is then the whole walk. If it returns false, the access may still be valid: the caller must check in detail.
 */
bool walk_at_once(const struct walk_access *access, uint8_t rights, const struct mapping *map, uint64_t offset,
		  uint64_t length, struct piece *piece);

/**
 * Returns the memory of [@address, +@length) of @key if that is one contiguous piece of a plain region to which a list of the key
 * refers, and the access is allowed; otherwise NULL, and the caller checks the access in detail. In an epoch section.
 */
uint8_t *walk_contiguous(const struct walk_access *access, uint8_t rights, uint32_t key, uint64_t address,
			 uint64_t length);

/** Begins a walk that passed walk_check(). */
void walk_enter(struct walk *walk, const struct walk_access *access, const struct mapping *map, uint64_t offset,
		uint64_t length);

/**
 * Checks and begins a walk, as walk_check() and walk_enter() do, if @map is a list and all its entries in the range
 * refer to one plain region that allows the access. Otherwise returns false without effect.
 */
bool walk_enter_list(struct walk *walk, const struct walk_access *access, uint8_t rights, const struct mapping *map,
		     uint64_t offset, uint64_t length);

/** Records, for a walk that has just begun, that @lead bytes of the key directly before its range belong to the same message. */
static inline void walk_continues(struct walk *walk, uint64_t lead)
{
	walk->level[0].reach += lead;
}

/**
 * Returns the next contiguous piece, of at most @max bytes: memory, or wire bytes of a key with a block stage. Returns false at
 * the end.
 */
bool walk_next(struct walk *walk, uint64_t max, struct piece *piece);

/**
 * Checks an access to the key itself. If the key is direct or has a block stage, @piece is the whole access and *layout is
 * NULL. Otherwise *layout is the mapping of the plain indirect key, and the caller continues with walk_check() and
 * walk_enter(). Returns 0, or -EACCES with @why filled.
 */
int walk_direct(const struct walk_access *access, uint8_t rights, uint32_t key, uint64_t address, uint64_t length,
		struct piece *piece, const struct mapping **layout, struct refusal *why);

#endif
