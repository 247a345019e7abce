/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Store instructions of the program, decoded so that they need not run: a store to a doorbell register has no effect but
 * its doorbell (storing_thread.h). x86-64; elsewhere nothing is decoded. Source: Intel SDM volume 2, instruction format.
 *
 * Reads no memory but the instructions. Any thread may call, also in a signal handler.
 */
#ifndef SOFTHCA_PROGRESS_STORE_DECODE_H
#define SOFTHCA_PROGRESS_STORE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

/** Returns true if stores can be decoded on this processor. */
bool store_decode_works(void);

/**
 * Skips consecutive store instructions to [@start, +@bytes) in a signal handler with @context: a copy to a register is
 * several. Returns their number, 0 if the next instruction is not such a store.
 */
size_t stores_skip(ucontext_t *context, uintptr_t start, size_t bytes);

#endif
