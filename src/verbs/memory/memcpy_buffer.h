/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The 64 bytes that every copy work request names beside source and destination (mlx5-formats 1.14), and their key: one
 * buffer per protection domain, which its requests share, since nobody reads it.
 *
 * Owner: the plain PD (user_pd.memcpy_buffer, under its lock), made with the first QP that can copy; parent domains use
 * that of the PD they are over. Any thread.
 */
#ifndef SOFTHCA_VERBS_MEMORY_MEMCPY_BUFFER_H
#define SOFTHCA_VERBS_MEMORY_MEMCPY_BUFFER_H

#include "verbs/object/objects.h"

struct memcpy_buffer {
	_Alignas(64) uint8_t bytes[64];
	uint32_t lkey;
	struct mkey *key;
};

/** The buffer of @pd in @out, valid as long as @pd. Returns 0 or -ENOMEM. */
int memcpy_buffer_get(struct user_pd *pd, const struct memcpy_buffer **out);

/** Frees the buffer of @pd, if it has one: its key keeps the device's PD in use. No QP of @pd exists any more. */
void memcpy_buffer_free(struct user_pd *pd);

#endif
