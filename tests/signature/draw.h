/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws cases at random. */
#ifndef SOFTHCA_TESTS_SIGNATURE_DRAW_H
#define SOFTHCA_TESTS_SIGNATURE_DRAW_H

#include "../model/choose.h"
#include "case.h"

/* Abilities of the device and the link under test. */
struct abilities {
	bool memcpy;
	uint32_t datagram_most; /* bytes of a datagram */
	bool refusals;          /* a refused message has written nothing */
	bool unreliable;        /* UC and UD */
};

/** Draws any case, from @choose. */
void draw_case(struct choose *choose, const struct abilities *abilities, bool connectx, struct test_case *test_case);

/**
 * Draws messages of whole blocks on two RC pairs at once, through one key: their order is open, and does not matter. At
 * most one bit is wrong.
 */
void draw_two_pairs(struct choose *choose, const struct abilities *abilities, bool connectx,
		    struct test_case *test_case);

/**
 * Draws a case of the corruption campaign: all blocks are whole and correct except for one bit of the input, and all of
 * it is transferred, in one or several messages.
 */
void draw_flip(struct choose *choose, const struct abilities *abilities, bool connectx, struct test_case *test_case);

/**
 * Derives the expected error from the place of the bit, not from the model: *@fault is FAULT_NONE if the masks exclude
 * the bit. Returns false if it is undetermined, since only a part of the guard is checked.
 */
bool fault_of_flip(const struct test_case *test_case, enum fault *fault);

/* Parts: draw_signature.c, draw_layout.c. */

void draw_signature(struct choose *choose, bool connectx, struct signature *signature);
/** Draws a signature with the wire domain @wire. */
void draw_signature_for(struct choose *choose, bool connectx, const struct domain *wire, struct signature *signature);

/**
 * Draws a layout of at least @length bytes in the region from *@free on, and advances *@free. @domain: where cuts are
 * interesting.
 */
void draw_layout(struct choose *choose, const struct domain *domain, uint32_t length, uint32_t *free, struct end *end);
/** Draws a key over the first @length wire bytes of the key of @end. Returns its length. */
uint32_t draw_over(struct choose *choose, uint32_t length, uint32_t *free, struct end *end);
/** Returns a place in [1, @length), often at or next to the borders of blocks and fields of @domain; 0 if there is none. */
uint32_t draw_cut(struct choose *choose, const struct domain *domain, uint32_t length);

#endif
