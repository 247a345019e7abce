/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command interface of the device, for mlx5dv_devx_*(3): creates, modifies and queries objects with commands of
 * big-endian words (commands.def, fields.def), rings in memory that the program registered (umem), and doorbell pages
 * (UAR). A queue created by a command is the same object as one of verbs, down to its number. The command interface is
 * the layer between the calls of mlx5dv and the commands of the device (process/commands.h).
 *
 * A struct devx belongs to a context of the driver, which creates it at first use and closes it before hca_close().
 * Closing destroys the remaining objects, newest first. Its lock covers everything. Any thread may call, holding no
 * lock. Concurrent calls on one object of which one destroys it are not synchronised.
 *
 * Errors: 0 or -errno. For a refusal by the device itself, -EREMOTEIO, with status and syndrome in the output; the
 * latter is the number of the rule that was broken. Every refusal is explained (explain/rules_devx.def).
 */
#ifndef SOFTHCA_DEVX_DEVX_H
#define SOFTHCA_DEVX_DEVX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "process/commands.h"

struct devx;
struct devx_channel;
struct devx_object;
struct devx_responses;

/** The program's view of a UAR: the page, which belongs to the context, and its number. */
struct devx_uar {
	uint8_t *page;
	uint32_t number; /* 24 bits, not 0 */
	uint32_t offset; /* mmap offset of a real driver, in pages */
};

enum { DEVX_UAR_BF = 0, DEVX_UAR_NC = 1 };

/**
 * Opens the command interface of a context of @hca. @verbs: owner of the objects of verbs. Returns 0, -ENOMEM,
 * -EMFILE ….
 */
int devx_open(struct hca *hca, struct hca_context *verbs, struct devx **devx);
void devx_close(struct devx *devx);
/** Take and release the lock, around a fork. */
void devx_before_fork(struct devx *devx);
void devx_after_fork(struct devx *devx);

/**
 * Execute a command. @in is read once and @out is written once; both belong to the program and may overlap.
 * devx_create() returns the object through @object. Return 0 or -errno, see above.
 */
int devx_general(struct devx *devx, const void *in, size_t in_bytes, void *out, size_t out_bytes);
int devx_create(struct devx *devx, const void *in, size_t in_bytes, void *out, size_t out_bytes,
		struct devx_object **object);
int devx_modify(struct devx *devx, struct devx_object *object, const void *in, size_t in_bytes, void *out,
		size_t out_bytes);
/** @call: name of the calling function, for explanations. */
int devx_query(struct devx *devx, const char *call, struct devx_object *object, const void *in, size_t in_bytes,
	       void *out, size_t out_bytes);
/** Destroys @object. Returns 0, or -EREMOTEIO while it is in use, without any effect. */
int devx_destroy(struct devx *devx, struct devx_object *object);

/** Execute a command on a QP of verbs. @state receives the state of the QP after a successful modification. */
int devx_modify_qp(struct devx *devx, struct hca_qp *qp, const void *in, size_t in_bytes, void *out, size_t out_bytes,
		   enum ibv_qp_state *state);
int devx_query_qp(struct devx *devx, struct hca_qp *qp, const void *in, size_t in_bytes, void *out, size_t out_bytes);

/**
 * Registers [@address, +@size). @access: enum ibv_access_flags; @page_sizes: one bit per acceptable size. Returns 0
 * and a number, not 0, through @number; -EINVAL, -EFAULT, -ENOMEM.
 */
int devx_umem_register(struct devx *devx, void *address, size_t size, uint32_t access, uint64_t page_sizes,
		       uint32_t *number);
/** Deregisters umem @number. Returns 0; -EINVAL if it does not exist; -EBUSY while it contains queues. */
int devx_umem_deregister(struct devx *devx, uint32_t number);

/** Allocates a UAR. @type: DEVX_UAR_*. Returns 0, -EOPNOTSUPP, -ENOMEM. */
int devx_uar_alloc(struct devx *devx, uint32_t type, struct devx_uar *uar);
/** Frees UAR @number. Queues created with it continue to work. */
void devx_uar_free(struct devx *devx, uint32_t number);

/** Returns the event queue of completion @vector through @number. Returns 0 or -EINVAL. */
int devx_event_queue(struct devx *devx, uint32_t vector, uint32_t *number);

/* ---- events ---------------------------------------------------------------------------------------------------- */

/*
 * Flags of a channel: no data after the cookie; an event of a subscription that already has an event pending is not
 * queued again.
 */
enum { DEVX_CHANNEL_OMIT_DATA = 1 };

/**
 * Creates a channel. @fd receives its descriptor, which is readable while an event is pending; the program may set
 * its O_NONBLOCK. Returns 0, -EINVAL (@flags), -EMFILE, -ENOMEM ….
 */
int devx_channel_create(struct devx *devx, uint32_t flags, struct devx_channel **channel, int *fd);
/**
 * Ends the subscriptions of @channel, drops pending events, closes the descriptor. No thread may be in a call on it.
 */
void devx_channel_destroy(struct devx *devx, struct devx_channel *channel);

/**
 * Subscribes to the @bytes / 2 event @types, in the device's numbering, of @object, or to events without an object if
 * NULL. Subscribes to all or none. Subscriptions end with the object; pending events can still be taken. Returns 0,
 * -EINVAL, -ENOMEM, -EAGAIN.
 */
int devx_subscribe(struct devx *devx, struct devx_channel *channel, struct devx_object *object, const uint16_t *types,
		   size_t bytes, uint64_t cookie);
/**
 * Subscribes to one event, which increments the eventfd(2) @fd and queues no event in the channel. Returns 0, -EBADF,
 * -EINVAL (@fd), -EMFILE.
 */
int devx_subscribe_fd(struct devx *devx, struct devx_channel *channel, int fd, struct devx_object *object,
		      uint16_t type);

/**
 * Takes the oldest event. Writes its cookie and, unless omitted, 64 bytes of event queue entry to the @bytes at @data.
 * Blocks unless the descriptor is nonblocking. A cancellation point, with no lock held. Returns the number of bytes
 * written, -EAGAIN, -EINTR, -EINVAL (@bytes is too small; the event stays pending), -EOVERFLOW (events were lost for
 * lack of memory) or -EFAULT (this event is lost).
 */
ssize_t devx_channel_take(struct devx *devx, struct devx_channel *channel, void *data, size_t bytes);

/* ---- asynchronous responses ------------------------------------------------------------------------------------- */

/**
 * Creates a queue of responses. @fd receives its descriptor, which is readable while a response is pending; the
 * program may set its O_NONBLOCK. Returns 0, -EMFILE, -ENOMEM ….
 */
int devx_responses_create(struct devx *devx, struct devx_responses **responses, int *fd);
/** Drops pending responses and closes the descriptor. No thread may be in a call on it. */
void devx_responses_destroy(struct devx *devx, struct devx_responses *responses);

/**
 * Executes a query as devx_query() does. devx_responses_take() then returns its @wr_id and its output of @out_bytes. A
 * refusal by the device is delivered as a response as well, and not returned as an error. -EAGAIN: too many bytes are
 * pending (LIMIT_DEVX_RESPONSE_BYTES).
 */
int devx_query_async(struct devx *devx, struct devx_object *object, const void *in, size_t in_bytes, size_t out_bytes,
		     uint64_t wr_id, struct devx_responses *responses);

/**
 * Takes the oldest response. @data, of @bytes, receives the 8 bytes of its wr_id and its output. Blocks or not by the
 * descriptor's flags; a cancellation point; no lock is held there. Returns 0, -EAGAIN, -EINTR, -ENOSPC (@bytes is too
 * small; the response stays pending), -EFAULT (it is lost).
 */
int devx_responses_take(struct devx *devx, struct devx_responses *responses, void *data, size_t bytes);

#endif
