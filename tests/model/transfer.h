/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies bytes between lists of spans, in the shadow memory; and changes keys. Parts of the model. */
#ifndef SOFTHCA_TESTS_MODEL_TRANSFER_H
#define SOFTHCA_TESTS_MODEL_TRANSFER_H

#include "queues.h"

/* One side of a transfer: a list of spans, or bytes that have no key. */
struct side {
	const struct span *span;
	uint32_t count;
	unsigned int wanted; /* enum want */
	struct accessor accessor;
	uint8_t *bytes; /* if not NULL: these instead of the list */
	bool overlaps;  /* the other side: bytes copied from here become loose there */
	bool early;     /* may be read before earlier requests of the step have written it */
};

/** Returns true if [@offset, @offset + @length) of the side's bytes may be accessed. */
bool side_allows(const struct model *model, const struct side *side, uint64_t offset, uint64_t length);

/**
 * Returns true if a byte of a message of @length bytes occurs on both sides, or twice in the target: then its value
 * depends on an undefined order.
 */
bool sides_overlap(struct model *model, const struct side *to, uint64_t to_offset, const struct side *from,
		   uint64_t length);

/** Copies @length bytes, a message or a piece of it. Both sides allow it. */
void side_copy(struct model *model, const struct side *to, uint64_t to_offset, const struct side *from,
	       uint64_t from_offset, uint64_t length);

/** Returns true if one of the bytes is loose. */
bool side_is_loose(struct model *model, const struct side *side, uint64_t offset, uint64_t length);
/** Makes the bytes loose: their value is undefined. */
void side_loosen(struct model *model, const struct side *side, uint64_t offset, uint64_t length);

/* Execute requests on keys; return false if they fail and nothing has changed. @accessor: the QP that executes them. */
bool key_configure(struct model *model, const struct configure *configure, struct accessor accessor);
bool key_bind(struct model *model, const struct bind *bind, struct accessor accessor);
bool key_invalidate(struct model *model, uint32_t number, struct accessor accessor);
/** Invalidates a key by a SEND with invalidate; @act false: only checks whether it would succeed. */
bool key_invalidate_remotely(struct model *model, uint32_t number, struct accessor accessor, bool act);

#endif
