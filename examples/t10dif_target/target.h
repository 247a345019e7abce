/* SPDX-License-Identifier: BSD-2-Clause */
/* The target: a disk in memory, see target.c. */
#ifndef T10DIF_TARGET_TARGET_H
#define T10DIF_TARGET_TARGET_H

#include <stdint.h>

/** Serves the client behind @socket with a disk of @blocks; returns when the client has ended. */
void target_run(int socket, uint32_t blocks);

#endif
