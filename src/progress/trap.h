/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbell registers that wake a sleeper. A program that rings by hand stores to a page that stands for the registers
 * (mlx5-formats 1.16). Armed, the page is absent, and the kernel reports a store to it (userfaultfd(2), which needs no
 * privilege for faults of user code) and lets it wait; released, the page is there and a store is a store. What was
 * stored matters for queues alone whose doorbell record is stale (progress/watch.h), so arming discards the page.
 *
 * Where the kernel, or a container's filter of system calls, does not offer this, nothing can be armed, and all else
 * works without.
 *
 * Owner: struct watcher, whose lock covers all calls. A page belongs to its context, which removes it before it goes.
 */
#ifndef SOFTHCA_PROGRESS_TRAP_H
#define SOFTHCA_PROGRESS_TRAP_H

#include <stdbool.h>
#include <stdint.h>

struct trap_page;

struct trap {
	int fd; /* becomes readable when a store waits; -1: not to be had, or not opened yet */
	struct trap_page *pages;
	bool armed;
};

void trap_init(struct trap *trap);
/** Opens @trap->fd, if that is possible. */
void trap_open(struct trap *trap);
/** In the child of a fork nobody takes reports: all pages are ordinary ones there. */
void trap_after_fork(struct trap *trap);

/** Adds the page (4096 bytes, of an anonymous mapping of its own). Without memory it is not trapped. */
void trap_add(struct trap *trap, void *page);
/** Removes a page, if it was added; stores that wait go on. */
void trap_remove(struct trap *trap, void *page);

/** Arms all pages. Returns false, and leaves them released, if one cannot be armed, or there is none. */
bool trap_arm(struct trap *trap);
/** Releases all pages and lets the stores that wait go on. */
void trap_release(struct trap *trap);

/**
 * Returns true if a register of a page holds the doorbell of queue pair @number: the first 8 bytes of a control segment that names it
 * (mlx5-formats 1.16). Armed pages have no content.
 */
bool trap_holds_doorbell(const struct trap *trap, uint32_t number);
/** Clears the registers that hold the doorbell of queue pair @number. */
void trap_clear_doorbell(struct trap *trap, uint32_t number);

#endif
