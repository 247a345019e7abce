/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * File descriptors of the library. The program shares the descriptor table: a daemon closes every number that it did
 * not open, and the kernel reuses the numbers for the next files. Therefore descriptors that the program does not get
 * from the library are moved to high numbers, and the library records the file of each number. It never writes to,
 * reads from or closes a number that the program has assigned to another file.
 *
 * Every function of src/ that opens a descriptor and keeps it passes it to one of the functions here
 * (scripts/check-descriptors). A descriptor that is closed by the function that opened it is exempt.
 *
 * Any thread may call. No lock is taken, none need be held. A child of fork(2) inherits the records with the
 * descriptors.
 */
#ifndef SOFTHCA_CORE_DESCRIPTOR_H
#define SOFTHCA_CORE_DESCRIPTOR_H

#include <stdbool.h>

/**
 * Takes ownership of @fd, which the program never gets: moves it to a high number and records its file. Returns the new
 * number; on failure closes @fd and returns -1 with errno EMFILE or ENOMEM. Returns a negative @fd unchanged and leaves
 * errno alone.
 */
int descriptor_keep(int fd);
/**
 * Duplicates @fd and keeps the duplicate; the program shares the open file. Returns the duplicate, or -1 with errno.
 * Otherwise as descriptor_keep().
 */
int descriptor_keep_duplicate(int fd);
/**
 * Records @fd, which the program sees, such as that of a completion channel. As descriptor_keep(), but the number stays
 * low.
 */
int descriptor_show(int fd);

/** Records @fd, which the program opened and handed over. Without memory it has no record and is never closed. */
void descriptor_adopt(int fd);

/** Returns true if @fd still refers to the file that was recorded for it. */
bool descriptor_is_ours(int fd);
/** As descriptor_is_ours(), and reports the first mismatch. */
bool descriptor_check(int fd);
/**
 * Closes @fd if it still refers to the recorded file, and removes its record in any case. Does nothing if @fd is
 * negative. Preserves errno.
 */
void descriptor_close(int fd);

/**
 * Makes descriptor_check() call @report with the number of each lost descriptor. Set once, before other threads exist.
 */
void descriptor_set_report(void (*report)(int fd));

#endif
