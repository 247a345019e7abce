/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command interface of the device, for mlx5dv_devx_*(3): objects made, changed and queried by commands of big-endian words
 * (commands.def, fields.def), rings in memory that the program registered (umem), pages that it rings by (UAR). A queue that is
 * made so is the same as one of verbs, down to its number. Between the calls of mlx5dv and hca.h, nothing else.
 *
 * A struct devx belongs to a context of the driver, which makes it at first use and closes it before hca_close(). It owns what is
 * left in it then, and destroys that, newest first. Its lock covers all of it; calls come from any thread, with no lock held, and
 * two that are about one object and one of which destroys it are not kept apart.
 *
 * Errors: 0 or -errno. What the device itself refuses is -EREMOTEIO, and status and syndrome are in the output, the latter the
 * number of the rule that was broken. Every refusal is explained (explain/rules_devx.def).
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

/** What a program sees of a UAR: the page, which belongs to the context, and its number. */
struct devx_uar {
	uint8_t *page;
	uint32_t number; /* 24 bits, not 0 */
	uint32_t offset; /* by which a real driver maps it, in pages */
};

enum { DEVX_UAR_BF = 0, DEVX_UAR_NC = 1 };

/** Of a context of @hca whose own objects are those of @verbs. Returns 0, -ENOMEM, -EMFILE …. */
int devx_open(struct hca *hca, struct hca_context *verbs, struct devx **devx);
void devx_close(struct devx *devx);
/** The lock, around a fork. */
void devx_before_fork(struct devx *devx);
void devx_after_fork(struct devx *devx);

/**
 * Commands. @in is read once, @out is written once; both are the program's and may overlap. devx_create() returns the object
 * through @object.
 */
int devx_general(struct devx *devx, const void *in, size_t in_bytes, void *out, size_t out_bytes);
int devx_create(struct devx *devx, const void *in, size_t in_bytes, void *out, size_t out_bytes,
		struct devx_object **object);
int devx_modify(struct devx *devx, struct devx_object *object, const void *in, size_t in_bytes, void *out,
		size_t out_bytes);
/** @call: who asks, for the explanation of a refusal. */
int devx_query(struct devx *devx, const char *call, struct devx_object *object, const void *in, size_t in_bytes,
	       void *out, size_t out_bytes);
/** -EREMOTEIO while it is in use; then it lives on. */
int devx_destroy(struct devx *devx, struct devx_object *object);

/** The same on a QP of verbs. Of a modification that worked @state is what the QP is in now. */
int devx_modify_qp(struct devx *devx, struct hca_qp *qp, const void *in, size_t in_bytes, void *out, size_t out_bytes,
		   enum ibv_qp_state *state);
int devx_query_qp(struct devx *devx, struct hca_qp *qp, const void *in, size_t in_bytes, void *out, size_t out_bytes);

/**
 * Registers [@address, +@size). @access: enum ibv_access_flags; @page_sizes: a bit per size that will do. Returns 0 and its
 * number, not 0; -EINVAL, -EFAULT, -ENOMEM.
 */
int devx_umem_register(struct devx *devx, void *address, size_t size, uint32_t access, uint64_t page_sizes,
		       uint32_t *number);
/** -EINVAL: there is none of @number; -EBUSY while queues are in it. */
int devx_umem_deregister(struct devx *devx, uint32_t number);

/** @type: DEVX_UAR_*. Returns 0, -EOPNOTSUPP, -ENOMEM. */
int devx_uar_alloc(struct devx *devx, uint32_t type, struct devx_uar *uar);
/** Queues that were made with it go on. */
void devx_uar_free(struct devx *devx, uint32_t number);

/** The event queue of completion @vector. Returns 0, -EINVAL. */
int devx_event_queue(struct devx *devx, uint32_t vector, uint32_t *number);

/* ---- events ---------------------------------------------------------------------------------------------------- */

/* Flags of a channel: no data behind the cookie, and an event of a subscription that waits already is not told again. */
enum { DEVX_CHANNEL_OMIT_DATA = 1 };

/**
 * Makes a channel, and through @fd its descriptor, which is readable as long as an event waits and whose O_NONBLOCK the program may
 * set. Returns 0, -EINVAL (@flags), -EMFILE, -ENOMEM ….
 */
int devx_channel_create(struct devx *devx, uint32_t flags, struct devx_channel **channel, int *fd);
/** Ends its subscriptions, drops what waits, closes the descriptor. No thread is in a call on it. */
void devx_channel_destroy(struct devx *devx, struct devx_channel *channel);

/**
 * Subscribes to the @bytes / 2 events of @types, by the device's numbers, of @object, or of none if NULL. Either all are subscribed
 * to or none. They end with the object; what waits then can still be taken. Returns 0, -EINVAL, -ENOMEM, -EAGAIN.
 */
int devx_subscribe(struct devx *devx, struct devx_channel *channel, struct devx_object *object, const uint16_t *types,
		   size_t bytes, uint64_t cookie);
/** Subscribes to one, upon which eventfd(2) @fd counts one more, and nothing is to be taken. -EBADF, -EINVAL (@fd), -EMFILE. */
int devx_subscribe_fd(struct devx *devx, struct devx_channel *channel, int fd, struct devx_object *object,
		      uint16_t type);

/**
 * Takes the oldest event: @data, of @bytes, gets the cookie and, unless omitted, 64 bytes of event queue entry. Blocks as the
 * descriptor's flags say; a cancellation point, at which no lock is held. Returns the bytes written, -EAGAIN, -EINTR, -EINVAL (it
 * does not fit, and waits on), -EOVERFLOW (events were lost for lack of memory), -EFAULT (this one is).
 */
ssize_t devx_channel_take(struct devx *devx, struct devx_channel *channel, void *data, size_t bytes);

/* ---- responses that are taken later ---------------------------------------------------------------------------- */

/**
 * Makes a queue of responses, and through @fd its descriptor, which is readable as long as one waits and whose O_NONBLOCK the
 * program may set. Returns 0, -EMFILE, -ENOMEM ….
 */
int devx_responses_create(struct devx *devx, struct devx_responses **responses, int *fd);
/** Drops what waits, closes the descriptor. No thread is in a call on it. */
void devx_responses_destroy(struct devx *devx, struct devx_responses *responses);

/**
 * As devx_query(), with output of @out_bytes that devx_responses_take() gets, behind @wr_id; what the device refuses is such a
 * response, too, and no error. -EAGAIN: too much waits (LIMIT_DEVX_RESPONSE_BYTES).
 */
int devx_query_async(struct devx *devx, struct devx_object *object, const void *in, size_t in_bytes, size_t out_bytes,
		     uint64_t wr_id, struct devx_responses *responses);

/**
 * Takes the oldest response: @data, of @bytes, gets the 8 bytes of its wr_id and its output. Blocks as the descriptor's flags say;
 * a cancellation point, at which no lock is held. Returns 0, -EAGAIN, -EINTR, -ENOSPC (it does not fit, and waits on), -EFAULT (it
 * is lost).
 */
int devx_responses_take(struct devx *devx, struct devx_responses *responses, void *data, size_t bytes);

#endif
