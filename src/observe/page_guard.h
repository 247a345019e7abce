/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages that the program is not to read for a while, for warnings about misuse (docs/use/lint.md): a receive's buffer until its
 * completion is polled, the rest of a WRITE whose last bytes are there. Such pages are closed, mprotect(2) with PROT_NONE; a handler
 * of SIGSEGV notes who reads one all the same, opens it, and the program goes on. What is no fault of these pages goes to the
 * handler that was there before.
 *
 * A page is closed only as long as nobody has a right to it, so that a program which does right never meets one, in a system call
 * either, where it would be EFAULT. The device opens what it is about to use (page_guard_device_access()): a region of plain memory takes
 * the slow way through mkey/walk.h while there are guards.
 *
 * Closing gives up, for good and with all pages opened, when the program has put its own handler in the place of this one; and
 * a thread that blocks SIGSEGV, which would end it in the place of the handler, closes nothing.
 *
 * Any thread, under any lock. What is closed belongs to its range until page_guard_open().
 */
#ifndef SOFTHCA_OBSERVE_PAGE_GUARD_H
#define SOFTHCA_OBSERVE_PAGE_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/compiler.h"

/* True from page_guard_start() on. */
extern bool page_guard_on;
/* Ranges that were read and whose reader nobody has taken; atomic. */
extern uint32_t page_guard_reads;

/* So many ranges are closed at a time: each splits a mapping of the process twice, of which the kernel has 65530. */
#define PAGE_GUARD_RANGES 1024

struct page_guard_read {
	void *owner;
	uint32_t number;
	uint64_t address; /* of the first byte that was read */
};

/** Puts the handler into place, once. Returns false where there can be none. Before the first region is registered. One thread. */
bool page_guard_start(void);

/** Opens all for good. */
void page_guard_stop(void);

/**
 * Closes the whole pages of [@start, +@length), which nobody else has closed, and which are readable and writable. @owner and @number are what
 * page_guard_take_read() says of it; @counter: wqe_counter of the CQE behind which it is closed again after the device has written there.
 * Returns the range, or -1: there is no whole page, or it cannot be closed.
 */
int page_guard_close(uint64_t start, uint64_t length, void *owner, uint32_t number, uint16_t counter);

/** Opens @range, which is no range any more. Returns the first address that the program has read of it and nobody has taken, or 0. */
uint64_t page_guard_open(int range);

/** Opens the pages of all ranges that have some of [@start, +@length); they stay ranges. */
void page_guard_open_memory(uint64_t start, uint64_t length);

/** Takes a read that nobody has taken. */
bool page_guard_take_read(struct page_guard_read *read);

/** The device is about to use [@start, +@length); @write: by a local right to write, as a receive or a READ does. */
void page_guard_device_access(const void *start, uint64_t length, bool write);

/** This thread writes the CQE with @counter of a receive: what it has opened of that one is closed again. */
void page_guard_received(uint16_t counter);

/* True: the last bytes of a WRITE are stored before the rest, which follows after a while. Set before the first region is registered. */
extern bool page_guard_last_first;

struct hca;
/* Told that the program has read at @address of [@start, +@length), which queue pair @qp_num was still to write. Under its lock. */
extern void (*page_guard_write_was_read)(struct hca *hca, uint32_t qp_num, uint64_t address, uint64_t start,
					 uint64_t length);

/**
 * Waits for a while, in which [@start, +@length) is not there although what is behind it is: its whole pages are closed. Returns
 * the first address that the program has read of them, or 0. The device may hold the lock of a queue pair.
 */
uint64_t page_guard_wait(uint64_t start, uint64_t length);

/* Around fork(2); a child has all pages open. */
void page_guard_before_fork(void);
void page_guard_after_fork(bool child);

static inline bool page_guard_is_on(void)
{
	return unlikely(page_guard_on);
}

#endif
