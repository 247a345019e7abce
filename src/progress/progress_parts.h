/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the two files of progress share: progress.c, the device thread and programs that poll, and substitute_poller.c, threads of the
 * program that sleep in the device thread's place.
 */
#ifndef SOFTHCA_PROGRESS_PROGRESS_PARTS_H
#define SOFTHCA_PROGRESS_PROGRESS_PARTS_H

#include <stdbool.h>

/** False: another thread polls. One thread at a time, until progress_end_polling(). Any thread. */
bool progress_begin_polling(void);
/** The same, but waits a little: a poll takes some microseconds. */
bool progress_begin_polling_soon(void);
void progress_end_polling(void);

/* Between these two: */

/** Polls all pollers once; true if there was anything. */
bool progress_poll_all(void);
/** Arrivals wake who sleeps on them, or need not. */
void progress_arm_all(bool armed);
/** Armed, and about to sleep: looks at what does not show at a descriptor. @stays: poller.rest. False: something may be left. */
bool progress_rest(bool stays);

/** The descriptor to sleep on for arrivals, an epoll; -1: there is none. Any thread. */
int progress_arrivals(void);
/** Takes out of the descriptors of arrivals what no poller takes. Any thread, in no epoch section. */
void progress_drain(void);

#endif
