/* SPDX-License-Identifier: BSD-2-Clause */
/* The steps of the model test: each draws an action, performs it on the device and in the model, and compares. */
#ifndef SOFTHCA_TESTS_MODEL_STEPS_H
#define SOFTHCA_TESTS_MODEL_STEPS_H

#include "world.h"

/** Draws and performs one step with world->choose. */
void step(struct world *world);

/* Steps on objects (steps_objects.c): each performs a few. */
void step_register(struct world *world);
void step_deregister(struct world *world);
void step_reregister(struct world *world);
void step_mkey(struct world *world);
void step_window(struct world *world);

#endif
