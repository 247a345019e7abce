/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The links of the WQE fuzzer. One hands messages over whole, as the device's own does, the other cuts them into packets
 * (tests/unit/support/wire_link.h); both lose, double and damage some as an input says.
 */
#ifndef SOFTHCA_FUZZ_WQE_LINK_H
#define SOFTHCA_FUZZ_WQE_LINK_H

#include "wqe_input.h"

/** Puts the link that @config asks for in the place of the device's own. @pair: whose packets they are. */
void link_begin(const struct input_config *config, const struct world_pair_of_qps *pair);
/** Delivers what is under way, until nothing is. */
void link_deliver(void);
void link_end(void);

#endif
