/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Facilities of Linux that a system call filter, an old kernel or an emulator (qemu-user) lacks. Each function tries the
 * facility itself, without softhca: cases that depend on it are skipped where it fails. Any thread may call.
 */
#ifndef SOFTHCA_TESTS_KERNEL_HAS_H
#define SOFTHCA_TESTS_KERNEL_HAS_H

#include <stdbool.h>

/** Returns true if process_vm_readv(2) works. */
bool kernel_has_memory_copies(void);

/**
 * Returns true if the kernel reports that pages cannot be read: madvise(2) with MADV_POPULATE_READ, or
 * process_vm_readv(2). qemu-user ignores advice that it does not know, and reports success.
 */
bool kernel_has_page_checks(void);

/** Returns true if a child of a process with threads can create threads. */
bool kernel_has_threads_after_fork(void);

/** Returns true if MSG_CTRUNC reports descriptors that found no room, and the kernel closes those. */
bool kernel_has_control_truncation(void);

/** Returns true if sendmsg(2) and recvmsg(2) pass flow labels (IPV6_FLOWINFO). */
bool kernel_has_flow_labels(void);

/** Returns true if a socket can join a group of IPv4 on an interface given by its index (struct ip_mreqn). */
bool kernel_has_groups_by_index(void);

/** Returns true if rtnetlink(7) takes requests for neighbours (RTM_GETNEIGH). */
bool kernel_has_neighbour_requests(void);

/** Returns true if the context of a SIGSEGV says whether the access was a write. Not while other threads may fault. */
bool kernel_has_kinds_of_faults(void);

/** Returns true if /proc/self/task/…/syscall has the numbers of this program's architecture. */
bool kernel_has_names_of_calls(void);

/** Returns errno of a mapping of huge pages, or 0 if it succeeds. */
int kernel_huge_page_error(void);

#endif
