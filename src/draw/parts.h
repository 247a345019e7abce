/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the making of a picture, for picture.c and its neighbours only. */
#ifndef SOFTHCA_DRAW_PARTS_H
#define SOFTHCA_DRAW_PARTS_H

#include "draw/picture.h"
#include "mkey/refused.h"

/* What a picture is made from. */
struct picture_subject {
	const struct mkey *key;
	const struct mapping *map;
	bool refused; /* there is an access of this mapping that was: the latest, and it is drawn */
	struct refused_access access;
};

/** True if @refused was refused because of the key of @map itself, and not of what lies in it. */
bool refused_by_key(const struct picture_subject *subject);

/** Explanations: those of refused accesses, of bad blocks, and of configurations that were refused. */
void picture_failures(struct picture *picture, struct picture_subject *subject);
/** The latest explanation of a bad block of this mapping that is older than number @before; false: there is none. */
bool bad_block_previous(const struct picture_subject *subject, uint64_t before, struct explain_record *out);

/** The range and its memory. */
void picture_layout(struct picture *picture, const struct picture_subject *subject);
/** Blocks of a signature or a cipher. */
void picture_blocks(struct picture *picture, const struct picture_subject *subject);

struct picture_fact *picture_fact(struct picture *picture, const char *name);

/* Numbers of pieces or blocks that are shown: a sorted list of ranges. */
#define CHOSEN_RANGES 12

struct chosen {
	uint64_t limit; /* how many there are */
	uint32_t count;
	struct {
		uint64_t first, end;
	} range[CHOSEN_RANGES];
};

/** Adds [@first, @end), as far as it is below the limit; nothing if there is no room. */
void chosen_add(struct chosen *chosen, uint64_t first, uint64_t end);
/** The numbers around @number: it, and @around on either side. */
void chosen_add_around(struct chosen *chosen, uint64_t number, uint64_t around);

#endif
