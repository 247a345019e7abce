/* SPDX-License-Identifier: BSD-2-Clause */
/* A list of pieces of the program's memory, processed in order; shared by the calls that send and receive. */
#ifndef SOFTHCA_RSOCKET_TRANSFER_H
#define SOFTHCA_RSOCKET_TRANSFER_H

#include <stdint.h>
#include <sys/uio.h>

/* A position in a list of pieces of the program's memory. */
struct pieces {
	const struct iovec *list;
	size_t count; /* pieces left */
	size_t used;  /* bytes of the first one */
};

/** Returns SIZE_MAX if the sum overflows. Pure. */
size_t pieces_bytes(const struct iovec *list, size_t count);

/** Returns the current position; *@bytes: contiguous bytes there, 0 at the end. */
void *pieces_here(struct pieces *pieces, size_t *bytes);

void pieces_skip(struct pieces *pieces, size_t bytes);

/** These also advance. */
void pieces_copy_out(struct pieces *pieces, void *memory, size_t bytes);
void pieces_copy_in(struct pieces *pieces, const void *memory, size_t bytes);

#endif
