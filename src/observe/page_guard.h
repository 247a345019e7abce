/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages closed to the program for a while, for warnings about misuse (docs/use/lint.md): a receive's buffer until its
 * completion is polled, and the rest of a WRITE after its last bytes have been stored. A closed page is protected with
 * PROT_NONE (mprotect(2)); a handler of SIGSEGV records the program's access and opens the page. Other faults go to the
 * previous handler.
 *
 * A correct program never faults on a closed page, nor gets EFAULT from a system call. The device opens pages that it
 * is about to use (page_guard_device_access()): while there are guards, plain memory regions take the slow path through
 * mkey/walk.h. If the program replaces the handler, all pages are opened for good. A thread that blocks SIGSEGV closes
 * nothing, because a fault would end the process.
 *
 * Any thread may call, under any lock. Closed pages belong to their range until page_guard_open().
 */
#ifndef SOFTHCA_OBSERVE_PAGE_GUARD_H
#define SOFTHCA_OBSERVE_PAGE_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/compiler.h"

extern bool page_guard_on;
/* Ranges that the program has read and for which the read was not taken; atomic. */
extern uint32_t page_guard_reads;

/* Maximum number of closed ranges. Each splits a mapping twice, and the kernel allows 65530 mappings. */
#define PAGE_GUARD_RANGES 1024

struct page_guard_read {
	void *owner;
	uint32_t number;
	uint64_t address; /* of the first byte read */
};

/**
 * Installs the handler, once. Returns false if that is impossible. One thread, before the first region is registered.
 */
bool page_guard_start(void);

/** Opens all pages for good. */
void page_guard_stop(void);

/**
 * Closes the whole pages of [@start, +@length), which must be readable and writable and in no other closed range.
 * page_guard_take_read() returns @owner and @number. @counter: wqe_counter of a CQE, after which the range is closed
 * again if the device has written to it. Returns the range, or -1 without a whole page or if it cannot be closed.
 */
int page_guard_close(uint64_t start, uint64_t length, void *owner, uint32_t number, uint16_t counter);

/**
 * Opens and frees @range. Returns the first address in it that the program has read, or 0, also if that read was taken.
 */
uint64_t page_guard_open(int range);

/** Opens all ranges that overlap [@start, +@length); they stay allocated. */
void page_guard_open_memory(uint64_t start, uint64_t length);

/** Takes one read that was not taken yet. Returns false if there is none. */
bool page_guard_take_read(struct page_guard_read *read);

/**
 * Opens [@start, +@length) before the device uses it. @write: by a local right to write, as for a receive or a READ.
 */
void page_guard_device_access(const void *start, uint64_t length, bool write);

/** Closes again what this thread has opened for the receive with @counter. Called when this thread writes the CQE. */
void page_guard_received(uint16_t counter);

/*
 * If true, the last bytes of a WRITE are stored first, the rest after a while. Set before the first region is
 * registered.
 */
extern bool page_guard_last_first;

struct hca;
/*
 * Called when the program has read at @address in [@start, +@length) before queue pair @qp_num has written it. Under
 * its lock.
 */
extern void (*page_guard_write_was_read)(struct hca *hca, uint32_t qp_num, uint64_t address, uint64_t start,
					 uint64_t length);

/**
 * Waits for a while, then opens @range. @range: what page_guard_close() returned before the bytes after it were written;
 * -1: none. Returns the first address in it that the program has read, or 0. The device may hold the lock of a queue pair.
 */
uint64_t page_guard_wait(int range);

/* Handlers around fork(2); in a child all pages are open. */
void page_guard_before_fork(void);
void page_guard_after_fork(bool child);

static inline bool page_guard_is_on(void)
{
	return unlikely(page_guard_on);
}

#endif
