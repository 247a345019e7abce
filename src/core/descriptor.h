/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * File descriptors of the library (DESIGN.md): those that the program does not get are moved to high numbers, and the
 * file of each number is recorded. A number that the program has assigned to another file is never used or closed.
 *
 * Descriptors that src/ keeps pass through these functions (scripts/check-descriptors). Any thread may call. No lock is
 * taken, none need be held. A child of fork(2) inherits the records.
 */
#ifndef SOFTHCA_CORE_DESCRIPTOR_H
#define SOFTHCA_CORE_DESCRIPTOR_H

#include <stdbool.h>

/**
 * Takes ownership of @fd, moves it to a high number and records its file. Returns the new number; on failure closes @fd
 * and returns -1 with errno EMFILE or ENOMEM. A negative @fd is returned with errno unchanged.
 */
int descriptor_keep(int fd);
/**
 * As descriptor_keep(), for a duplicate of @fd; the program shares the open file. Returns the duplicate, or -1 with
 * errno.
 */
int descriptor_keep_duplicate(int fd);
/** As descriptor_keep(), for @fd that the program sees, such as that of a completion channel: the number stays low. */
int descriptor_show(int fd);

/** Records @fd, which the program opened and handed over. Without memory it has no record and is never closed. */
void descriptor_adopt(int fd);

/** Returns true if @fd still refers to its recorded file. */
bool descriptor_is_ours(int fd);
/** As descriptor_is_ours(), and reports the first mismatch. */
bool descriptor_check(int fd);
/**
 * Removes the record of @fd, and closes it if it still refers to the recorded file. @fd may be negative. Preserves
 * errno.
 */
void descriptor_close(int fd);

/** Makes descriptor_check() call @report with each lost descriptor. Set once, before other threads exist. */
void descriptor_set_report(void (*report)(int fd));

#endif
