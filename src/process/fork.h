/* SPDX-License-Identifier: BSD-2-Clause */
/* Handling of fork(2) (process/fork.md). Also declares the parts of core/locks.def without a header. */
#ifndef SOFTHCA_PROCESS_FORK_H
#define SOFTHCA_PROCESS_FORK_H

#include <stdbool.h>

/** Makes every later fork hold the locks of the device. Any thread, any number of times, no lock held. */
void fork_handle(void);

/* Lock for the creation of the devices (process/devices.c). */
void registry_before_fork(void);
void registry_after_fork(bool child);

#endif
