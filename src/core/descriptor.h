/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors of the library. The program shares the table of descriptors with it: a daemon closes every number that it did not
 * open, and the kernel gives the numbers to the next files. Therefore descriptors that the program does not know have high
 * numbers, and the library records the file behind each number. Nothing is written to, read from or closed at a number behind
 * which the program has put another file.
 *
 * Every function of src/ that opens a descriptor and keeps it passes it to one of the functions here (scripts/check-descriptors).
 * A descriptor that is closed by the function that opened it need not be.
 *
 * Any thread may call. No lock is taken, none need be held. A child of fork(2) inherits the records with the descriptors.
 */
#ifndef SOFTHCA_CORE_DESCRIPTOR_H
#define SOFTHCA_CORE_DESCRIPTOR_H

#include <stdbool.h>

/**
 * Takes over @fd, which the program does not know: moves it to a high number and records its file. Returns the new number; on
 * failure closes @fd and returns -1 with errno EMFILE or ENOMEM. Passes a negative @fd on and leaves errno alone.
 */
int descriptor_keep(int fd);
/** Duplicates @fd, whose open file the program shares, and keeps the duplicate. Returns it, or -1 with errno. As descriptor_keep(). */
int descriptor_keep_duplicate(int fd);
/** Records @fd, which the program sees, such as that of a completion channel. As descriptor_keep(), but it keeps a low number. */
int descriptor_show(int fd);

/** Records @fd, which the program opened and gave away. Without memory it has no record and is never closed. */
void descriptor_adopt(int fd);

/** True if the file that was recorded for @fd is still there. */
bool descriptor_is_ours(int fd);
/** As descriptor_is_ours(); reports the first time that it is not. */
bool descriptor_check(int fd);
/** Closes @fd if it is still ours, and ends its record in any case. Does nothing if @fd is negative. Preserves errno. */
void descriptor_close(int fd);

/** Has descriptor_check() call @report with the number of each lost descriptor. Set once, before other threads exist. */
void descriptor_set_report(void (*report)(int fd));

#endif
