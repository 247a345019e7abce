/* SPDX-License-Identifier: BSD-2-Clause */
/* fork(2), of the device; see process/fork.c. The parts of core/locks.def that have no header of their own are here as well. */
#ifndef SOFTHCA_PROCESS_FORK_H
#define SOFTHCA_PROCESS_FORK_H

#include <stdbool.h>

/** Has the locks of the device held across every fork from now on. Any thread, any number of times, no lock held. */
void fork_handle(void);

/* The lock of making the devices (process/devices.c). */
void registry_before_fork(void);
void registry_after_fork(bool child);

#endif
