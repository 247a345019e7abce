/* SPDX-License-Identifier: BSD-2-Clause */
/* Maps descriptors to rsockets. Global, because calls pass only a number. */
#ifndef SOFTHCA_RSOCKET_TABLE_H
#define SOFTHCA_RSOCKET_TABLE_H

#include "rsocket/objects.h"

/** Enters @rs at its descriptor, with the caller's reference. Returns 0, -EMFILE or -ENOMEM. Any thread. */
int table_enter(struct rsocket *rs);

/** Returns the rsocket at @fd with one more reference, or NULL. Any thread. */
struct rsocket *table_find(int fd);

/** Removes the rsocket at @fd and returns it with the table's reference, or NULL. */
struct rsocket *table_remove(int fd);

/** Releases a reference. Any thread that does not hold the lock of @rs. */
void rsocket_put(struct rsocket *rs);

/**
 * Returns the rsocket, with a reference and locked, or NULL with EBADF and an explanation if @fd is not an rsocket,
 * belongs to the parent process, or rclose() has begun.
 */
struct rsocket *rsocket_begin(int fd, const char *call);

/** As rsocket_begin(), but refuses datagrams (EOPNOTSUPP). */
struct rsocket *rsocket_begin_stream(int fd, const char *call);

/** Ends a call with @result, at least 0 or a negative errno. Returns the call's result. */
long rsocket_end(struct rsocket *rs, long result);

#endif
