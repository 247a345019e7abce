/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page that stands for the doorbell registers (UAR) of a context, for programs that ring by hand after
 * mlx5dv_init_obj(3). Its content is never looked at: the doorbell records and the rings tell everything
 * (mlx5-formats 1.16), and the device watches those (progress/watch.h). A store to the page wakes it if it sleeps.
 *
 * Owner: the context (user_context.doorbell_page), made at first use, freed when the context is closed. Any
 * thread.
 */
#ifndef SOFTHCA_VERBS_CONTEXT_DOORBELL_PAGE_H
#define SOFTHCA_VERBS_CONTEXT_DOORBELL_PAGE_H

#include "verbs/object/objects.h"

enum {
	DOORBELL_PAGE_SIZE = 4096,
	DOORBELL_SEND_OFFSET = 0x800, /* send doorbell register; the CQ doorbell is at MLX5_CQ_DOORBELL */
};

/** The page of @context, made if there is none yet. NULL with errno set on failure. */
void *doorbell_page(struct user_context *context);

/** Frees it, if there is one. For the closing of a context, when nobody else uses it any more. */
void doorbell_page_free(struct user_context *context);

#endif
