/* SPDX-License-Identifier: BSD-2-Clause */
/* Opcodes of masked atomics (mlx5-formats 1.5), and RNR timers (IBTA table 45), defined independently. */
#ifndef SOFTHCA_TESTS_SIMULATION_OPCODES_H
#define SOFTHCA_TESTS_SIMULATION_OPCODES_H

#include <stdint.h>

enum { OPCODE_MASKED_CS = 0x14, OPCODE_MASKED_FA = 0x15 };

/** Returns the nanoseconds of RNR timer @code. */
uint64_t rnr_ns(uint8_t code);

#endif
