/* SPDX-License-Identifier: BSD-2-Clause */
/* What computes guards and ciphers on this CPU, for `softhca doctor`. */
#ifndef SOFTHCA_BLOCK_CHOSEN_H
#define SOFTHCA_BLOCK_CHOSEN_H

#include "core/visibility.h"

struct softhca_kernels {
	char chosen[160];  /* "T10-DIF by gfni, CRC32 by gfni, …" */
	char present[160]; /* features that kernels need (block/cpu.h), separated by spaces */
	char missing[160]; /* those of the fastest kernels that the CPU lacks */
};

/** Any thread may call. */
SOFTHCA_API void softhca_block_kernels(struct softhca_kernels *kernels);

#endif
