/* SPDX-License-Identifier: BSD-2-Clause */
/* From descriptors to rsockets. The process has one table, which the ABI forces: the calls have nothing but a number. */
#ifndef SOFTHCA_RSOCKET_TABLE_H
#define SOFTHCA_RSOCKET_TABLE_H

#include "rsocket/objects.h"

/** Enters @rs at its descriptor; the reference of the caller is the table's from now on. 0 or -ENOMEM. Any thread. */
int table_enter(struct rsocket *rs);

/** The rsocket at @fd with one more reference, or NULL. Any thread. */
struct rsocket *table_find(int fd);

/** Takes it out, which makes the table's reference the caller's: NULL if there is none. */
struct rsocket *table_remove(int fd);

/** One reference less. Any thread that does not hold the lock of @rs. */
void rsocket_put(struct rsocket *rs);

/**
 * Begins @call: the rsocket, referred to and locked. NULL with EBADF, and an explanation: it is none, or of the parent of a
 * forked process, or rclose() has begun.
 */
struct rsocket *rsocket_begin(int fd, const char *call);

/** The same, of a stream or of datagrams only: others are ENOTSUP. */
struct rsocket *rsocket_begin_stream(int fd, const char *call);

/** Ends it with @result, 0 or more, or a negative errno: what the call returns. */
long rsocket_end(struct rsocket *rs, long result);

#endif
