/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps of making a picture; for picture.c, failures.c, layout.c, blocks.c and choose.c only. */
#ifndef SOFTHCA_DRAW_PARTS_H
#define SOFTHCA_DRAW_PARTS_H

#include "draw/picture.h"
#include "mkey/refused.h"

/* The key of a picture. */
struct picture_subject {
	const struct mkey *key;
	const struct mapping *map;
	bool refused; /* an access to this mapping was refused; `access` is the latest, which is drawn */
	struct refused_access access;
};

/** Returns true if the access was refused by the key itself rather than by a key nested in it. */
bool refused_by_key(const struct picture_subject *subject);

/** Adds the explanations of refused accesses, bad blocks and refused configurations. Sets subject->access. */
void picture_failures(struct picture *picture, struct picture_subject *subject);
/**
 * Finds the latest explanation of a bad block of this mapping that is older than serial @before (0: any). Returns false if
 * there is none.
 */
bool bad_block_previous(const struct picture_subject *subject, uint64_t before, struct explain_record *out);

/** Adds the range and its memory. */
void picture_layout(struct picture *picture, const struct picture_subject *subject);
/** Adds the blocks of a signature or data units of a cipher. */
void picture_blocks(struct picture *picture, const struct picture_subject *subject);

/** Adds a fact with @name and an empty value, which the caller fills in. */
struct picture_fact *picture_fact(struct picture *picture, const char *name);

/* Numbers of the pieces or blocks that are shown: a sorted list of ranges. */
#define CHOSEN_RANGES 12

struct chosen {
	uint64_t limit; /* total number of pieces or blocks */
	uint32_t count;
	struct {
		uint64_t first, end;
	} range[CHOSEN_RANGES];
};

/** Adds the part of [@first, @end) below the limit. Does nothing if all ranges are used. */
void chosen_add(struct chosen *chosen, uint64_t first, uint64_t end);
/** Adds @number and @around numbers on either side. */
void chosen_add_around(struct chosen *chosen, uint64_t number, uint64_t around);

#endif
