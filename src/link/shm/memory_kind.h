/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Determines which memory of this process another one may access through /proc/PID/mem without waiting for a server
 * (NFS) or a third process (FUSE), which may not respond: an absent page must be backed by memory or swap (DESIGN.md,
 * "Safety").
 *
 * Any thread; no lock. Reads files in /proc, which takes some 100 microseconds: too slow for the data path.
 */
#ifndef SOFTHCA_LINK_SHM_MEMORY_KIND_H
#define SOFTHCA_LINK_SHM_MEMORY_KIND_H

#include <stdbool.h>
#include <stdint.h>

/**
 * Returns true if all of [@start, @start + @length) is anonymous memory, shared memory, or a file in memory (tmpfs,
 * hugetlbfs). With @written, the pages were made present by writing, so those of private mappings of files are
 * anonymous too. Returns false also if /proc cannot be read.
 */
bool memory_kind_is_local(uint64_t start, uint64_t length, bool written);

#endif
