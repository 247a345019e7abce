/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws requests at random: keys, ranges, lists. Most succeed, the others miss by one, or by far. */
#ifndef SOFTHCA_TESTS_MODEL_DRAW_H
#define SOFTHCA_TESTS_MODEL_DRAW_H

#include "world.h"

/**
 * Draws a live key of @domain that grants @wanted; with @careful false also any other, or none at all. Returns the slot,
 * or -1.
 */
int draw_key(struct world *world, int domain, unsigned int wanted, bool careful);

/** Draws a gather or scatter list of @domain. */
uint32_t draw_spans(struct world *world, struct span *span, int domain, unsigned int wanted, bool careful);

/** Draws [@start, @start + @length) or a part of it; not @careful: or a nearly correct range. */
void draw_range(struct world *world, uint64_t start, uint64_t length, bool careful, uint64_t *address, uint32_t *bytes);

/** Draws a request that transfers data from @qp, of any opcode of its type. */
void draw_transfer(struct world *world, int qp, struct request *request);

/** Draws the layout of a key of @qp's domain. */
void draw_configure(struct world *world, int qp, int slot, struct configure *configure);

/** Draws a bind of the window in @slot through @qp. */
void draw_bind(struct world *world, int qp, int slot, struct bind *bind);

/** Returns the slot of an existing object, among @count slots from @first on, or -1. */
int draw_existing(struct world *world, int first, int count);

/** Returns the errno value with which posting @request on @qp must be refused, or 0. */
int request_error(const struct world *world, int qp, const struct request *request);

/** Adds the request to the description of the step. */
void say_request(struct world *world, const struct request *request);

#endif
