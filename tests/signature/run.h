/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs cases: each step on the device and in the model; compares completions, checks of keys and all memory. */
#ifndef SOFTHCA_TESTS_SIGNATURE_RUN_H
#define SOFTHCA_TESTS_SIGNATURE_RUN_H

#include "fill.h"
#include "world.h"

/* Categories in which keys are counted. */
enum { NO_SIGNATURE, MEMORY_ONLY, WIRE_ONLY, SAME_STRUCTURE, OTHER_STRUCTURE, STRUCTURES };
enum { LIST, INTERLEAVED, WITH_KEY_UNDER, WITH_KEY_OVER, LAYOUTS };

struct run {
	struct world world;
	struct pooled_key *pool[SIDES]; /* KEYS in each */
	uint8_t *memory[SIDES];         /* of the model */
	struct model_end *end[SIDES];
	const struct test_case *test_case;
	uint32_t bytes; /* used by the case in each region */
	/* Results of the last case. */
	struct finding found[SIDES]; /* the last error reported by a check */
	uint64_t cases, transfers, refusals, findings, message_bytes;
	uint64_t operations[OPERATIONS], back, other, faults[FAULTS], structures[STRUCTURES], layouts[LAYOUTS];
};

/** Opens the device, once per process. SOFTHCA_PROFILE is set already. */
void run_open(struct run *run, bool connectx);
/** Runs a case, and ends the process at the first difference. */
void run_case(struct run *run, const struct test_case *test_case);
void run_close(struct run *run);

#endif
