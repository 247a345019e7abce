/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The walk: from (key, address, length, wanted rights) to contiguous pieces of memory.
 *
 * walk_begin() checks everything first: number, tag, live, domain, QP, rights, range, and for indirect keys every
 * entry that the range touches, down to the memory regions. Only then are pieces handed out, so a refused request has
 * touched nothing. A walk is a position: it can begin at any offset (retransmission), and costs no allocation.
 *
 * A walk lives inside one epoch section; it points into mappings.
 */
#ifndef SOFTHCA_MKEY_WALK_H
#define SOFTHCA_MKEY_WALK_H

#include "core/limits.h"
#include "explain/refusal.h"
#include "mkey/key.h"

struct block_progress;
struct signature_observer;

/* The QP that asks. It owns two: for what its send queue does, and for what it does for others. */
struct walk_access {
	struct hca *hca;
	uint32_t pd;
	uint32_t qpn; /* of the QP that carries the request */
	uint64_t qp_serial;
	bool staged;                         /* on the memory side of a block stage: no other one may follow */
	bool unfinished;                     /* the range is not the last of its message */
	bool more;                           /* and what follows in the message, follows it in the same key */
	bool repeated;                       /* all of it has passed before: errors of blocks were told then */
	struct block_progress *progress;     /* of the message under way, or NULL (mkey/block_progress.h) */
	struct signature_observer *observer; /* takes signature errors, or NULL (mkey/signature_report.h) */
};

struct piece {
	uint8_t *address; /* NULL: the null key; reads give zeros, writes vanish */
	uint64_t length;
	const struct mapping *stage; /* if not NULL: to be passed by a block stage of this key… */
	uint64_t wire;               /* …from here on */
	bool more;                   /* and what follows it on the wire of this key, follows in the message, too */
};

struct walk_level {
	const struct mapping *map;
	uint64_t left;       /* bytes still to walk on this level */
	uint64_t repetition; /* LAYOUT_REPEAT */
	uint64_t inside;     /* bytes already walked of the current entry */
	uint64_t reach;      /* bytes from where the message enters this layout to the end of the range walked */
	uint32_t entry;
};

#define WALK_BASES 8

struct walk {
	struct hca *hca;
	uint64_t left; /* bytes still to hand out */
	uint32_t depth;
	bool staged; /* the memory side of a block stage */
	bool more;   /* as in struct walk_access */
	/* memory of each entry's byte 0 when all of a repeated layout's entries are direct: no look-up per piece */
	bool resolved;
	/* the plain region that all entries of the range refer to, if the layout is a list; else NULL: no look-up per piece */
	const struct mapping *region;
	uint64_t entered; /* of the last piece with a stage: where on its wire the message enters the key */
	uint8_t *base[WALK_BASES];
	struct walk_level level[LIMIT_MKEY_DEPTH];
};

/** @bytes / @period. Divisions of 64 bits are slow, and what is divided here is nearly always small. */
static inline uint64_t periods_in(uint64_t bytes, uint64_t period)
{
	if (bytes < period)
		return 0;
	return (bytes | period) <= UINT32_MAX ? (uint32_t)bytes / (uint32_t)period : bytes / period;
}

/**
 * Checks the access and prepares the walk. @rights: enum key_rights, all of them needed on the outermost key; keys
 * inside it are reached with the local rights that follow. Returns 0, or -EACCES with @why filled and @walk unusable.
 * @length is at least 1: the R_Key of an RDMA of length zero is not checked (IBTA C9-88), so nobody asks then.
 */
int walk_begin(struct walk *walk, const struct walk_access *access, uint8_t rights, uint32_t key, uint64_t address,
	       uint64_t length, struct refusal *why);

/**
 * What walk_begin() checks below the outermost key, whose @map is known: [@offset, +@length) of its translation. @depth:
 * keys that it lies in, itself included. A length of 0 is good.
 */
int walk_check(const struct walk_access *access, uint8_t rights, const struct mapping *map, uint64_t offset,
	       uint64_t length, uint32_t depth, struct refusal *why);

/**
 * True if [@offset, +@length) of the translation of @map is one piece of a plain region, good for @rights: then @piece is
 * all of the walk. Else nothing is known.
 */
bool walk_at_once(const struct walk_access *access, uint8_t rights, const struct mapping *map, uint64_t offset,
		  uint64_t length, struct piece *piece);

/**
 * Returns the memory of [@address, +@length) of @key if that is one contiguous piece of a plain region to which a list of the key
 * refers, and the access is allowed; otherwise NULL, and the caller checks the access in detail. In an epoch section.
 */
uint8_t *walk_contiguous(const struct walk_access *access, uint8_t rights, uint32_t key, uint64_t address,
			 uint64_t length);

/** Begins a walk that walk_check() has found good. */
void walk_enter(struct walk *walk, const struct walk_access *access, const struct mapping *map, uint64_t offset,
		uint64_t length);

/**
 * As walk_check() and walk_enter(), if @map is a list and all its entries in the range refer to one plain region, and the access to
 * them is allowed. Otherwise returns false, and nothing was done.
 */
bool walk_enter_list(struct walk *walk, const struct walk_access *access, uint8_t rights, const struct mapping *map,
		     uint64_t offset, uint64_t length);

/** Tells a walk that has just begun that the message has @lead bytes of the key directly before its range. */
static inline void walk_continues(struct walk *walk, uint64_t lead)
{
	walk->level[0].reach += lead;
}

/**
 * The next contiguous piece, at most @max bytes: memory, or wire bytes of a key with a block stage. False at the end.
 */
bool walk_next(struct walk *walk, uint64_t max, struct piece *piece);

/**
 * The single piece of an access to a direct key, or to one with a block stage, and *layout NULL; else *layout is that of a
 * plain indirect key, of which nothing is checked beyond the key itself: walk_check() and walk_enter() go on. Returns 0 or
 * -EACCES with @why.
 */
int walk_direct(const struct walk_access *access, uint8_t rights, uint32_t key, uint64_t address, uint64_t length,
		struct piece *piece, const struct mapping **layout, struct refusal *why);

#endif
