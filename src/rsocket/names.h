/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses returned to the program, as by getsockname(2). */
#ifndef SOFTHCA_RSOCKET_NAMES_H
#define SOFTHCA_RSOCKET_NAMES_H

#include <sys/socket.h>

/**
 * Copies at most *@length bytes of @name to @address, and sets *@length to its full size. Does nothing if @address or
 * @length is NULL. Pure.
 */
void name_copy_out(const struct sockaddr *name, struct sockaddr *address, socklen_t *length);

#endif
