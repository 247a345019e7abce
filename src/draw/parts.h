/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps of making a picture; for the files of this directory. */
#ifndef SOFTHCA_DRAW_PARTS_H
#define SOFTHCA_DRAW_PARTS_H

#include "draw/picture.h"
#include "mkey/refused.h"

struct picture_subject {
	const struct mkey *key;
	const struct mapping *map;
	bool refused; /* an access was refused; `access` is the latest, which is drawn */
	struct refused_access access;
};

/** Returns true if the key itself, not one nested in it, refused the access. */
bool refused_by_key(const struct picture_subject *subject);

/** Adds the explanations of refused accesses, bad blocks and refused configurations. Sets subject->access. */
void picture_failures(struct picture *picture, struct picture_subject *subject);
/**
 * Finds the latest explanation of a bad block of this mapping older than @before (0: any). Returns false if there is
 * none.
 */
bool bad_block_previous(const struct picture_subject *subject, uint64_t before, struct explain_record *out);

void picture_layout(struct picture *picture, const struct picture_subject *subject);
void picture_blocks(struct picture *picture, const struct picture_subject *subject);

/** The caller fills in the value. */
struct picture_fact *picture_fact(struct picture *picture, const char *name);

/* The pieces or blocks that are shown: a sorted list of ranges. */
#define CHOSEN_RANGES 12

struct chosen {
	uint64_t limit; /* total number of pieces or blocks */
	uint32_t count;
	struct {
		uint64_t first, end;
	} range[CHOSEN_RANGES];
};

/** Adds [@first, @end) below the limit, unless all ranges are used. */
void chosen_add(struct chosen *chosen, uint64_t first, uint64_t end);
/** Adds @number and @around numbers on either side. */
void chosen_add_around(struct chosen *chosen, uint64_t number, uint64_t around);

#endif
