/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Page in place of the doorbell registers (UAR) of a context, for programs that ring doorbells themselves after
 * mlx5dv_init_obj(3). Its content is never read: doorbell records and rings contain everything (mlx5-formats 1.16), and
 * the device polls them (progress/watch.h). A store to the page wakes the device if it sleeps.
 *
 * Owned by the context (user_context.doorbell_page). Any thread.
 */
#ifndef SOFTHCA_VERBS_CONTEXT_DOORBELL_PAGE_H
#define SOFTHCA_VERBS_CONTEXT_DOORBELL_PAGE_H

#include "verbs/object/objects.h"

enum {
	DOORBELL_PAGE_SIZE = 4096,
	DOORBELL_SEND_OFFSET = 0x800, /* send doorbell register; the CQ doorbell is at MLX5_CQ_DOORBELL */
};

/** Returns the page, allocated at first use. NULL with errno set on failure. */
void *doorbell_page(struct user_context *context);

/** Frees the page, if any. No thread may use it any more. */
void doorbell_page_free(struct user_context *context);

#endif
