/* SPDX-License-Identifier: BSD-2-Clause */
/* The buffer of copy requests, see verbs/memory/memcpy_buffer.h. */
#include "verbs/memory/memcpy_buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int memcpy_buffer_make(struct user_pd *pd, struct memcpy_buffer **out)
{
	struct memcpy_buffer *buffer = aligned_alloc(_Alignof(struct memcpy_buffer), sizeof(*buffer));
	struct hca_mr_attr attr = {.length = sizeof(buffer->bytes), .access = IBV_ACCESS_LOCAL_WRITE};
	int error;

	if (!buffer)
		return -ENOMEM;
	memset(buffer, 0, sizeof(*buffer));
	attr.addr = buffer->bytes;
	attr.start = (uintptr_t)buffer->bytes;
	error = hca_mr_register(pd->device, &attr, &buffer->key);
	if (error) {
		free(buffer);
		return error;
	}
	buffer->lkey = mkey_number(buffer->key);
	*out = buffer;
	return 0;
}

int memcpy_buffer_get(struct user_pd *pd, const struct memcpy_buffer **out)
{
	int error = 0;

	while (pd->parent)
		pd = pd->parent;
	queue_lock(&pd->lock);
	if (!pd->memcpy_buffer)
		error = memcpy_buffer_make(pd, &pd->memcpy_buffer);
	*out = pd->memcpy_buffer;
	queue_unlock(&pd->lock);
	return error;
}

void memcpy_buffer_free(struct user_pd *pd)
{
	if (!pd->memcpy_buffer)
		return;
	hca_mr_deregister(pd->memcpy_buffer->key);
	free(pd->memcpy_buffer);
	pd->memcpy_buffer = NULL;
}
