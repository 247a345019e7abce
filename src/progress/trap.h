/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbell registers that wake a sleeper (DESIGN.md): pages to which programs store (mlx5-formats 1.16). While armed, a
 * page is absent, and a store is reported and blocked. The stored value matters only for queues with a stale doorbell
 * record (watch.h), so arming discards the page. Without support by the kernel, nothing can be armed.
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
	int fd; /* readable when a store is blocked; -1: not available or not opened */
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

/** Arms all pages. Returns false, with all released, if one cannot be armed or there is none. */
bool trap_arm(struct trap *trap);
/** Releases all pages; blocked stores continue. */
void trap_release(struct trap *trap);

/**
 * Returns true if a register holds a doorbell of queue pair @number: the first 8 bytes of a control segment
 * (mlx5-formats 1.16). Armed pages have no content.
 */
bool trap_holds_doorbell(const struct trap *trap, uint32_t number);
/** Clears the registers that hold that doorbell. */
void trap_clear_doorbell(struct trap *trap, uint32_t number);

#endif
