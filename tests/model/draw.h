/* SPDX-License-Identifier: BSD-2-Clause */
/* Drawing requests at random: keys, ranges, lists. Most succeed, the others miss by one, or by far. */
#ifndef SOFTHCA_TESTS_MODEL_DRAW_H
#define SOFTHCA_TESTS_MODEL_DRAW_H

#include "world.h"

/** A live key of @domain that grants @wanted; with @careful false also any other, or none at all. Slot, or -1. */
int draw_key(struct world *world, int domain, unsigned int wanted, bool careful);

/** A gather or scatter list of @domain. */
uint32_t draw_spans(struct world *world, struct span *span, int domain, unsigned int wanted, bool careful);

/** [@start, +@length) or a part of it; careless: or not quite. */
void draw_range(struct world *world, uint64_t start, uint64_t length, bool careful, uint64_t *address, uint32_t *bytes);

/** A request that moves data from @qp, of any opcode that its type has. */
void draw_transfer(struct world *world, int qp, struct request *request);

/** How to lay out a key of @qp's domain. */
void draw_configure(struct world *world, int qp, int slot, struct configure *configure);

/** A bind of the window in @slot through @qp. */
void draw_bind(struct world *world, int qp, int slot, struct bind *bind);

/** The slot of an object that exists, among @count slots from @first on, or -1. */
int draw_existing(struct world *world, int first, int count);

/** The errno value with which posting @request on @qp must be refused, or 0. */
int request_error(const struct world *world, int qp, const struct request *request);

/** Adds the request to the description of the step. */
void say_request(struct world *world, const struct request *request);

#endif
