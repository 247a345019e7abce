/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internal to the command interface: responses to queries that a program takes later (devx.h,
 * mlx5dv_devx_create_cmd_comp(3)).
 *
 * The device executes a query at once; only the delivery of the response is asynchronous. A pending response belongs
 * to its queue; the thread that takes it frees it. The list of queues is under devx.lock, which is not held while a
 * response is raised or taken.
 */
#ifndef SOFTHCA_DEVX_RESPONSES_H
#define SOFTHCA_DEVX_RESPONSES_H

#include "devx/context.h"

/** Destroys the queues that the program did not destroy. */
void devx_responses_close(struct devx *devx);

#endif
