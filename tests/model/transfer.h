/* SPDX-License-Identifier: BSD-2-Clause */
/* Moving bytes between lists of spans, in the shadow memory; and changing keys. Parts of the model. */
#ifndef SOFTHCA_TESTS_MODEL_TRANSFER_H
#define SOFTHCA_TESTS_MODEL_TRANSFER_H

#include "queues.h"

/* One side of a transfer: a list of spans, or bytes that have no key. */
struct side {
	const struct span *span;
	uint32_t count;
	unsigned int wanted; /* enum want */
	struct who who;
	uint8_t *bytes; /* if not NULL: these instead of the list */
	bool overlaps;  /* the other side: what is copied from here becomes loose there */
	bool early;     /* may be read before what earlier requests of the step write has been written */
};

/** True if [@offset, +@length) of the side's bytes may be accessed. */
bool side_allows(const struct model *model, const struct side *side, uint64_t offset, uint64_t length);

/**
 * True if a byte of a message of @length bytes occurs on both sides, or twice in the target: then its value depends on an
 * order that nobody promised.
 */
bool sides_overlap(struct model *model, const struct side *to, uint64_t to_offset, const struct side *from,
		   uint64_t length);

/** Copies @length bytes, a message or a piece of it. Both sides allow it. */
void side_copy(struct model *model, const struct side *to, uint64_t to_offset, const struct side *from,
	       uint64_t from_offset, uint64_t length);

/** True if one of the bytes is loose. */
bool side_is_loose(struct model *model, const struct side *side, uint64_t offset, uint64_t length);
/** Makes the bytes loose: nothing says what they are. */
void side_loosen(struct model *model, const struct side *side, uint64_t offset, uint64_t length);

/* Requests on keys; false: they fail and nothing has changed. @who: the QP that carries them out. */
bool key_configure(struct model *model, const struct configure *configure, struct who who);
bool key_bind(struct model *model, const struct bind *bind, struct who who);
bool key_invalidate(struct model *model, uint32_t number, struct who who);
/** By a SEND with invalidate; @act false: only whether it would succeed. */
bool key_invalidate_remotely(struct model *model, uint32_t number, struct who who, bool act);

#endif
