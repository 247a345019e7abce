/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages of this process, for registration and on-demand access. Any thread; makes a system call. */
#ifndef SOFTHCA_MKEY_PAGES_H
#define SOFTHCA_MKEY_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Makes the pages of [@address, +@length) present, and writable if @write, as the kernel does when it pins them. Returns
 * 0, -EFAULT if memory is not mapped or does not allow the access, or -ENOMEM. Length 0 succeeds.
 */
int pages_present(const void *address, uint64_t length, bool write);

#endif
