/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command interface of the device, for mlx5dv_devx_*(3): objects made by commands of big-endian words (commands.def,
 * fields.def), with rings in registered memory (umem) and doorbell pages (UAR). A queue made by a command is the same
 * object as one of verbs, down to its number. The layer below is the commands of the device (process/commands.h).
 *
 * A struct devx belongs to a context of the driver, which creates it at first use and closes it before hca_close().
 * Closing destroys the remaining objects, newest first. Its lock covers everything. Any thread may call, holding no
 * lock. Destruction of an object must not run concurrently with other calls on it.
 *
 * Errors: 0 or -errno. For a refusal by the device, -EREMOTEIO, with status and syndrome in the output; the syndrome is
 * the number of the broken rule. Every refusal is explained (explain/rules_devx.def).
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

/** The program's view of a UAR; the page belongs to the context. */
struct devx_uar {
	uint8_t *page;
	uint32_t number; /* 24 bits, not 0 */
	uint32_t offset; /* mmap offset of a real driver, in pages */
};

enum { DEVX_UAR_BF = 0, DEVX_UAR_NC = 1 };

/** Opens the command interface. @verbs: owner of the objects of verbs. Returns 0, -ENOMEM, -EMFILE …. */
int devx_open(struct hca *hca, struct hca_context *verbs, struct devx **devx);
void devx_close(struct devx *devx);
/** Take and release the lock around a fork. */
void devx_before_fork(struct devx *devx);
void devx_after_fork(struct devx *devx);

/**
 * Execute a command. @in is read once and @out is written once; both are the program's and may overlap. Return 0 or
 * -errno.
 */
int devx_general(struct devx *devx, const void *in, size_t in_bytes, void *out, size_t out_bytes);
int devx_create(struct devx *devx, const void *in, size_t in_bytes, void *out, size_t out_bytes,
		struct devx_object **object);
int devx_modify(struct devx *devx, struct devx_object *object, const void *in, size_t in_bytes, void *out,
		size_t out_bytes);
/** @call: for explanations. */
int devx_query(struct devx *devx, const char *call, struct devx_object *object, const void *in, size_t in_bytes,
	       void *out, size_t out_bytes);
/** Returns 0, or -EREMOTEIO without effect while @object is in use. */
int devx_destroy(struct devx *devx, struct devx_object *object);

/** Execute a command on a QP of verbs. @state: that of the QP after a modification. */
int devx_modify_qp(struct devx *devx, struct hca_qp *qp, const void *in, size_t in_bytes, void *out, size_t out_bytes,
		   enum ibv_qp_state *state);
int devx_query_qp(struct devx *devx, struct hca_qp *qp, const void *in, size_t in_bytes, void *out, size_t out_bytes);

/**
 * Registers [@address, +@size). @access: enum ibv_access_flags; @page_sizes: one bit per acceptable size. *@number is
 * not 0. Returns 0, -EINVAL, -EFAULT, -ENOMEM.
 */
int devx_umem_register(struct devx *devx, void *address, size_t size, uint32_t access, uint64_t page_sizes,
		       uint32_t *number);
/** Returns 0; -EINVAL if @number does not exist; -EBUSY while it contains queues. */
int devx_umem_deregister(struct devx *devx, uint32_t number);

/** @type: DEVX_UAR_*. Returns 0, -EOPNOTSUPP, -ENOMEM. */
int devx_uar_alloc(struct devx *devx, uint32_t type, struct devx_uar *uar);
/** Queues created with it continue to work. */
void devx_uar_free(struct devx *devx, uint32_t number);

/** Finds the event queue of completion @vector. Returns 0 or -EINVAL. */
int devx_event_queue(struct devx *devx, uint32_t vector, uint32_t *number);

/* ---- events ---------------------------------------------------------------------------------------------------- */

/* Flag of a channel: no data after the cookie, and at most one pending event per subscription. */
enum { DEVX_CHANNEL_OMIT_DATA = 1 };

/**
 * *@fd is readable while an event is pending; the program may set its O_NONBLOCK. Returns 0, -EINVAL (@flags), -EMFILE,
 * -ENOMEM ….
 */
int devx_channel_create(struct devx *devx, uint32_t flags, struct devx_channel **channel, int *fd);
/** Ends subscriptions, drops pending events, closes the descriptor. No thread may be in a call on it. */
void devx_channel_destroy(struct devx *devx, struct devx_channel *channel);

/**
 * Subscribes to all @bytes / 2 event @types, in the device's numbering, of @object (NULL: events without an object), or
 * to none. Subscriptions end with the object; pending events can still be taken. Returns 0, -EINVAL, -ENOMEM, -EAGAIN.
 */
int devx_subscribe(struct devx *devx, struct devx_channel *channel, struct devx_object *object, const uint16_t *types,
		   size_t bytes, uint64_t cookie);
/** Subscribes to one event, which only increments the eventfd(2) @fd. Returns 0, -EBADF, -EINVAL (@fd), -EMFILE. */
int devx_subscribe_fd(struct devx *devx, struct devx_channel *channel, int fd, struct devx_object *object,
		      uint16_t type);

/**
 * Takes the oldest event: its cookie and, unless omitted, 64 bytes of event queue entry. Blocks unless the descriptor
 * is nonblocking. A cancellation point, with no lock held. Returns the bytes written, -EAGAIN, -EINTR, -EINVAL (@bytes
 * is too small; the event stays pending), -EOVERFLOW (events were lost for lack of memory) or -EFAULT (this event is
 * lost).
 */
ssize_t devx_channel_take(struct devx *devx, struct devx_channel *channel, void *data, size_t bytes);

/* ---- asynchronous responses ------------------------------------------------------------------------------------- */

/**
 * Creates a queue of responses. *@fd is readable while a response is pending; the program may set its O_NONBLOCK.
 * Returns 0, -EMFILE, -ENOMEM ….
 */
int devx_responses_create(struct devx *devx, struct devx_responses **responses, int *fd);
/** Drops pending responses and closes the descriptor. No thread may be in a call on it. */
void devx_responses_destroy(struct devx *devx, struct devx_responses *responses);

/**
 * As devx_query(), with @wr_id and output from devx_responses_take(). A refusal by the device is also a response, not
 * an error. -EAGAIN: too many bytes are pending (LIMIT_DEVX_RESPONSE_BYTES).
 */
int devx_query_async(struct devx *devx, struct devx_object *object, const void *in, size_t in_bytes, size_t out_bytes,
		     uint64_t wr_id, struct devx_responses *responses);

/**
 * Takes the oldest response: the 8 bytes of its wr_id, then its output. Blocks unless the descriptor is nonblocking. A
 * cancellation point, with no lock held. Returns 0, -EAGAIN, -EINTR, -ENOSPC (@bytes is too small; the response stays
 * pending), -EFAULT (it is lost).
 */
int devx_responses_take(struct devx *devx, struct devx_responses *responses, void *data, size_t bytes);

#endif
