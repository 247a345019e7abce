/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbell registers that trap stores (DESIGN.md): pages to which programs store (mlx5-formats 1.16). The stored value
 * matters only for queues with a stale doorbell record (watch.h), so it need not reach a trapped page.
 *
 * Owned by struct watcher; its lock covers all calls. A page belongs to its context, which removes it before it is
 * freed.
 */
#ifndef SOFTHCA_PROGRESS_TRAP_H
#define SOFTHCA_PROGRESS_TRAP_H

#include <stdbool.h>
#include <stdint.h>

#define TRAP_PAGE_BYTES 4096

struct trap_page;

enum trap_state {
	TRAP_RELEASED, /* ordinary memory */
	TRAP_WAKES,    /* absent: a store is blocked and wakes the watcher; discards the content */
	TRAP_FAULTS,   /* write-protected: a store raises SIGSEGV in its thread (storing_thread.h) */
};

struct trap {
	int fd; /* readable when a store is blocked; -1: not available or not opened */
	struct trap_page *pages;
	enum trap_state state;
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

/**
 * Changes released pages to TRAP_WAKES. Returns false, with all released, if there is none, or if the kernel does not
 * support it.
 */
bool trap_arm(struct trap *trap);
/** Changes released pages to TRAP_FAULTS. Returns false, with all released, if there is none or it cannot be done. */
bool trap_protect(struct trap *trap);
/** Releases all pages; blocked stores continue. */
void trap_release(struct trap *trap);
/** Returns the added page that contains @address, or NULL. */
void *trap_page_at(const struct trap *trap, uintptr_t address);

/**
 * Returns true if a register holds a doorbell of queue pair @number: the first 8 bytes of a control segment
 * (mlx5-formats 1.16). Pages in TRAP_WAKES have no content.
 */
bool trap_holds_doorbell(const struct trap *trap, uint32_t number);
/** Clears the registers that hold that doorbell; not in TRAP_FAULTS. */
void trap_clear_doorbell(struct trap *trap, uint32_t number);

#endif
