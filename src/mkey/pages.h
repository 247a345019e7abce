/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages of this process: what registration pins and what an on-demand access faults in. Any thread; a system call.
 */
#ifndef SOFTHCA_MKEY_PAGES_H
#define SOFTHCA_MKEY_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Makes the pages of [@address, +@length) present, writable ones if @write, as the kernel does when it pins them.
 * Returns 0, -EFAULT where memory is not mapped or not accessible that way, -ENOMEM. Length 0 is 0.
 */
int pages_present(const void *address, uint64_t length, bool write);

#endif
