/* SPDX-License-Identifier: BSD-2-Clause */
/* Running cases: each step on the device and in the model; completions, checks of keys and all memory are compared. */
#ifndef SOFTHCA_TESTS_SIGNATURE_RUN_H
#define SOFTHCA_TESTS_SIGNATURE_RUN_H

#include "fill.h"
#include "world.h"

/* What keys are counted by. */
enum { NO_SIGNATURE, MEMORY_ONLY, WIRE_ONLY, SAME_STRUCTURE, OTHER_STRUCTURE, STRUCTURES };
enum { LIST, INTERLEAVED, WITH_KEY_UNDER, WITH_KEY_OVER, LAYOUTS };

struct run {
	struct world world;
	struct pooled_key *pool[SIDES]; /* KEYS of them */
	uint8_t *memory[SIDES];         /* the model's */
	struct model_end *end[SIDES];
	const struct test_case *test_case;
	uint32_t bytes; /* of each region, that the case uses */
	/* Of the case that ran last. */
	struct finding found[SIDES]; /* the last error that a check told */
	uint64_t cases, transfers, refusals, findings, message_bytes;
	uint64_t operations[OPERATIONS], back, other, faults[FAULTS], structures[STRUCTURES], layouts[LAYOUTS];
};

/** One per process. SOFTHCA_PROFILE is set already. */
void run_open(struct run *run, bool connectx);
/** Ends the process at the first difference. */
void run_case(struct run *run, const struct test_case *test_case);
void run_close(struct run *run);

#endif
