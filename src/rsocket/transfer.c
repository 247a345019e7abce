/* SPDX-License-Identifier: BSD-2-Clause */
/* Pieces of the program's memory, see transfer.h. */
#include "rsocket/transfer.h"

#include <string.h>

size_t pieces_bytes(const struct iovec *list, size_t count)
{
	size_t sum = 0;

	for (; count--; list++)
		if (__builtin_add_overflow(sum, list->iov_len, &sum))
			return SIZE_MAX;
	return sum;
}

void *pieces_here(struct pieces *pieces, size_t *bytes)
{
	while (pieces->count && pieces->used == pieces->list->iov_len) {
		pieces->list++;
		pieces->count--;
		pieces->used = 0;
	}
	*bytes = pieces->count ? pieces->list->iov_len - pieces->used : 0;
	return *bytes ? (char *)pieces->list->iov_base + pieces->used : NULL;
}

void pieces_skip(struct pieces *pieces, size_t bytes)
{
	size_t here;

	while (bytes) {
		pieces_here(pieces, &here);
		if (!here)
			return;
		if (here > bytes)
			here = bytes;
		pieces->used += here;
		bytes -= here;
	}
}

/* Returns the rest of the current piece, at most @most bytes, and moves past it. NULL at the end. */
static char *pieces_take(struct pieces *pieces, size_t most, size_t *bytes)
{
	char *piece = pieces_here(pieces, bytes);

	if (*bytes > most)
		*bytes = most;
	pieces->used += *bytes;
	return piece;
}

void pieces_copy_out(struct pieces *pieces, void *memory, size_t bytes)
{
	const char *piece;
	char *to = memory;
	size_t here;

	for (; bytes && (piece = pieces_take(pieces, bytes, &here)); to += here, bytes -= here)
		memcpy(to, piece, here);
}

void pieces_copy_in(struct pieces *pieces, const void *memory, size_t bytes)
{
	const char *from = memory;
	char *piece;
	size_t here;

	for (; bytes && (piece = pieces_take(pieces, bytes, &here)); from += here, bytes -= here)
		memcpy(piece, from, here);
}
