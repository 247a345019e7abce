/* SPDX-License-Identifier: BSD-2-Clause */
/* What the calls that send and receive share: pieces of the program's memory, one after the other. */
#ifndef SOFTHCA_RSOCKET_TRANSFER_H
#define SOFTHCA_RSOCKET_TRANSFER_H

#include <stdint.h>
#include <sys/uio.h>

/* A place in a list of pieces. */
struct pieces {
	const struct iovec *list;
	size_t count; /* left */
	size_t used;  /* bytes of the first one */
};

/** All bytes of @list; SIZE_MAX if their number is none. Pure. */
size_t pieces_bytes(const struct iovec *list, size_t count);

/** Where it stands, and how many bytes follow in one piece: 0 at the end. */
void *pieces_here(struct pieces *pieces, size_t *bytes);

/** Goes on by @bytes. */
void pieces_skip(struct pieces *pieces, size_t bytes);

/** Copies @bytes between the pieces and @memory, and goes on by so many. */
void pieces_copy_out(struct pieces *pieces, void *memory, size_t bytes);
void pieces_copy_in(struct pieces *pieces, const void *memory, size_t bytes);

#endif
