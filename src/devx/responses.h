/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internal to the command interface: responses to queries (mlx5dv_devx_create_cmd_comp(3)).
 *
 * Queries are executed at once; only the delivery is asynchronous. A pending response belongs to its queue; the thread
 * that takes it frees it. devx.lock covers the list of queues, but is not held while a response is raised or taken.
 */
#ifndef SOFTHCA_DEVX_RESPONSES_H
#define SOFTHCA_DEVX_RESPONSES_H

#include "devx/context.h"

/** Destroys the remaining queues. */
void devx_responses_close(struct devx *devx);

#endif
