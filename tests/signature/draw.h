/* SPDX-License-Identifier: BSD-2-Clause */
/* Drawing cases at random. */
#ifndef SOFTHCA_TESTS_SIGNATURE_DRAW_H
#define SOFTHCA_TESTS_SIGNATURE_DRAW_H

#include "../model/choose.h"
#include "case.h"

/* What the device and the link under test can do. */
struct abilities {
	bool memcpy;
	uint32_t datagram_most; /* bytes of a datagram */
	bool refusals;          /* a refused message has written nothing */
	bool unreliable;        /* UC and UD */
};

/** Any case, as @choose has it. */
void draw_case(struct choose *choose, const struct abilities *abilities, bool connectx, struct test_case *test_case);

/**
 * Messages of whole blocks on two RC pairs at once, through one key: which comes first is open, and makes no difference.
 * At most one bit is wrong.
 */
void draw_two_pairs(struct choose *choose, const struct abilities *abilities, bool connectx,
		    struct test_case *test_case);

/**
 * A case of the corruption campaign: all blocks are whole and right but for one bit of the input, and all of it is
 * transferred, in one or several messages.
 */
void draw_flip(struct choose *choose, const struct abilities *abilities, bool connectx, struct test_case *test_case);

/**
 * What must be found, by where the bit is and not by the model: *@fault is FAULT_NONE if the masks leave the bit out. False:
 * it depends, since only a part of the guard is checked.
 */
bool fault_of_flip(const struct test_case *test_case, enum fault *fault);

/* Parts: draw_signature.c, draw_layout.c. */

void draw_signature(struct choose *choose, bool connectx, struct signature *signature);
/** One whose wire domain is @wire. */
void draw_signature_for(struct choose *choose, bool connectx, const struct domain *wire, struct signature *signature);

/** A layout of @length bytes at least in the region from *@free on, which moves. @domain: where cuts are interesting. */
void draw_layout(struct choose *choose, const struct domain *domain, uint32_t length, uint32_t *free, struct end *end);
/** A key over the first @length wire bytes of the key of @end. Returns its length. */
uint32_t draw_over(struct choose *choose, uint32_t length, uint32_t *free, struct end *end);
/** A place in [1, @length), often at or beside the borders of blocks and fields of @domain; 0 if there is none. */
uint32_t draw_cut(struct choose *choose, const struct domain *domain, uint32_t length);

#endif
