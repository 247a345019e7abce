/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The links of the WQE fuzzer. One passes on whole messages, as the device's own does, the other cuts them into packets
 * (tests/unit/support/wire_link.h); both lose, duplicate and damage some as the input specifies.
 */
#ifndef SOFTHCA_FUZZ_WQE_LINK_H
#define SOFTHCA_FUZZ_WQE_LINK_H

#include "wqe_input.h"

/** Replaces the device's link by the one that @config selects. @pair: the sender of its packets. */
void link_begin(const struct input_config *config, const struct world_pair_of_qps *pair);
/** Delivers until no packet is in flight. */
void link_deliver(void);
void link_end(void);

#endif
