/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbell registers that wake a sleeper. A program that rings doorbells itself stores to a page that represents the
 * registers (mlx5-formats 1.16). While armed, the page is absent: the kernel reports a store to it (userfaultfd(2),
 * which needs no privilege for faults of user code) and blocks the storing thread. While released, the page is present
 * and a store is an ordinary store. The stored value matters only for queues with a stale doorbell record
 * (progress/watch.h), so arming discards the page.
 *
 * If the kernel, or a container's system call filter, does not support this, nothing can be armed, and everything else
 * works without it.
 *
 * Owned by struct watcher; its lock covers all calls. A page belongs to its context, which removes it before it is
 * freed.
 */
#ifndef SOFTHCA_PROGRESS_TRAP_H
#define SOFTHCA_PROGRESS_TRAP_H

#include <stdbool.h>
#include <stdint.h>

struct trap_page;

struct trap {
	int fd; /* readable when a store is blocked; -1: not available, or not opened yet */
	struct trap_page *pages;
	bool armed;
};

void trap_init(struct trap *trap);
/** Opens @trap->fd, if possible. */
void trap_open(struct trap *trap);
/** Turns all pages into ordinary ones in a forked child, where no thread handles reports. */
void trap_after_fork(struct trap *trap);

/** Adds the page (4096 bytes, an anonymous mapping of its own). Without memory it is not trapped. */
void trap_add(struct trap *trap, void *page);
/** Removes a page, if it was added; blocked stores continue. */
void trap_remove(struct trap *trap, void *page);

/** Arms all pages. Returns false, with all released, if one cannot be armed or no page was added. */
bool trap_arm(struct trap *trap);
/** Releases all pages; blocked stores continue. */
void trap_release(struct trap *trap);

/**
 * Returns true if a register of a page holds the doorbell of queue pair @number: the first 8 bytes of a control segment
 * that names it (mlx5-formats 1.16). Armed pages have no content.
 */
bool trap_holds_doorbell(const struct trap *trap, uint32_t number);
/** Clears the registers that hold the doorbell of queue pair @number. */
void trap_clear_doorbell(struct trap *trap, uint32_t number);

#endif
