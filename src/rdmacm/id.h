/* SPDX-License-Identifier: BSD-2-Clause */
/* Creates, locks and frees IDs. See rdmacm/objects.h. */
#ifndef SOFTHCA_RDMACM_ID_H
#define SOFTHCA_RDMACM_ID_H

#include <errno.h>

#include "rdmacm/objects.h"

/**
 * Creates an ID in @state on @channel; if NULL, a synchronous ID with its own channel. Returns NULL with errno on
 * failure. The caller holds no lock.
 */
struct user_cm_id *id_new(struct user_cm_channel *channel, void *context, enum rdma_port_space space,
			  enum ibv_qp_type type, enum id_state state);

/** Destroys @id as rdma_destroy_id(3) does. The caller holds no lock. */
void id_free(struct user_cm_id *id);

/**
 * Begins @call: takes the lock of the ID. Returns NULL with EBADF in errno and an explanation for an ID of the parent
 * process.
 */
struct user_cm_id *id_begin(struct rdma_cm_id *base, const char *call);

/** Ends a call with @result, 0 or a negative errno. Returns 0, or -1 with errno set. */
int id_end(struct user_cm_id *id, int result);

/**
 * As id_end(); after success a synchronous ID waits for the next event, of any type, which replaces id->event. Returns
 * -1 if the event's status is not 0 (rdma_create_id(3), NOTES).
 */
int id_end_complete(struct user_cm_id *id, int result);

/** Sets the device, with its public members. The caller holds the lock of @id, or no other thread has the ID yet. */
void id_bind_device(struct user_cm_id *id, const struct resolved_path *path);

/** Sets the public addresses and the device from id->path. Locks as id_bind_device(). */
void id_publish_addresses(struct user_cm_id *id);

/** Creates id->cm, unless it exists. Returns 0 or a negative errno. (rdmacm/manager.c) */
int id_make_cm(struct user_cm_id *id);

/** Returns 0, or -1 with errno set. */
static inline int result_of(int negative_errno)
{
	if (!negative_errno)
		return 0;
	errno = -negative_errno;
	return -1;
}

#endif
