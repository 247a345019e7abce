/* SPDX-License-Identifier: BSD-2-Clause */
/* See transfer.h. */
#include "rsocket/transfer.h"

#include <stdbool.h>
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

static void copy(struct pieces *pieces, char *memory, size_t bytes, bool in)
{
	while (bytes) {
		size_t here;
		char *piece = pieces_here(pieces, &here);

		if (!here)
			return;
		if (here > bytes)
			here = bytes;
		memcpy(in ? piece : memory, in ? memory : piece, here);
		pieces->used += here;
		memory += here;
		bytes -= here;
	}
}

void pieces_copy_out(struct pieces *pieces, void *memory, size_t bytes)
{
	copy(pieces, memory, bytes, false);
}

void pieces_copy_in(struct pieces *pieces, const void *memory, size_t bytes)
{
	copy(pieces, (char *)memory, bytes, true);
}
