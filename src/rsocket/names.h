/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses returned to the program, as by getsockname(2). */
#ifndef SOFTHCA_RSOCKET_NAMES_H
#define SOFTHCA_RSOCKET_NAMES_H

#include <sys/socket.h>

/**
 * Copies as getsockname(2): at most *@length bytes, and sets *@length to the full size. Does nothing if @address or
 * @length is NULL. Pure.
 */
void name_copy_out(const struct sockaddr *name, struct sockaddr *address, socklen_t *length);

#endif
