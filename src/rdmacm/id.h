/* SPDX-License-Identifier: BSD-2-Clause */
/* Making, locking and freeing ids, for the calls that do. See rdmacm/objects.h. */
#ifndef SOFTHCA_RDMACM_ID_H
#define SOFTHCA_RDMACM_ID_H

#include <errno.h>

#include "rdmacm/objects.h"

/**
 * Makes an id on @channel or, if that is NULL, a synchronous one with a channel of its own. Its state is @state. NULL
 * with errno. No lock is held.
 */
struct user_cm_id *id_new(struct user_cm_channel *channel, void *context, enum rdma_port_space space,
			  enum ibv_qp_type type, enum id_state state);

/** Destroys @id as rdma_destroy_id(3) does; no lock is held. */
void id_free(struct user_cm_id *id);

/**
 * Begins @call on @base: takes its lock. NULL, with EBADF in errno and an explanation, for an id of the parent process
 * in a forked child.
 */
struct user_cm_id *id_begin(struct rdma_cm_id *base, const char *call);

/** Ends it, with @result, 0 or a negative errno, and returns what the call returns: 0, or -1 with errno set. */
int id_end(struct user_cm_id *id, int result);

/**
 * The same for a call whose outcome a synchronous id waits for: the next event, whatever it is, which takes the place
 * of id->event. -1 if its status is not 0 (rdma_create_id(3), NOTES).
 */
int id_end_complete(struct user_cm_id *id, int result);

/** Binds the device of @path to @id: its public members as well. The lock of @id is held, or nobody knows it yet. */
void id_bind_device(struct user_cm_id *id, const struct resolved_path *path);

/** Writes the addresses of id->path to the public members, and binds the device as id_bind_device() does. Locks as there. */
void id_publish_addresses(struct user_cm_id *id);

/** Gives @id its communication id, if it has none. Returns 0 or a negative errno. (rdmacm/manager.c) */
int id_make_cm(struct user_cm_id *id);

/** 0, or -1 with errno set: how the calls of rdma_cma.h tell an error. */
static inline int result_of(int negative_errno)
{
	if (!negative_errno)
		return 0;
	errno = -negative_errno;
	return -1;
}

#endif
