/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses that are handed to the program, as getsockname(2) does. */
#ifndef SOFTHCA_RSOCKET_NAMES_H
#define SOFTHCA_RSOCKET_NAMES_H

#include <sys/socket.h>

/**
 * Copies @name to @address, no more than *@length bytes, and sets *@length to its whole size. NULL @address or @length: nothing.
 * Pure.
 */
void name_copy_out(const struct sockaddr *name, struct sockaddr *address, socklen_t *length);

#endif
