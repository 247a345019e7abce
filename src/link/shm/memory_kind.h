/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Determines which memory of this process another process may access through /proc/PID/mem without waiting for a server
 * or a third process. A page that is not present must be backed by memory or swap: a page of a file may have to be
 * fetched from a server (NFS) or a process (FUSE) that does not respond, and the accessing thread cannot be
 * interrupted. Memory of userfaultfd(2) is not a problem, because the kernel refuses such an access at once.
 *
 * Any thread; takes no lock. Reads files in /proc, which takes some 100 microseconds: too slow for the data path.
 */
#ifndef SOFTHCA_LINK_SHM_MEMORY_KIND_H
#define SOFTHCA_LINK_SHM_MEMORY_KIND_H

#include <stdbool.h>
#include <stdint.h>

/**
 * Returns true if all of [@start, +@length) is anonymous memory, shared memory, or a file of a file system in memory
 * (tmpfs, hugetlbfs). If @written, the pages were made present by writing, and private mappings of files count too,
 * because such pages are anonymous. Returns false also if /proc cannot be read.
 */
bool memory_kind_is_local(uint64_t start, uint64_t length, bool written);

#endif
