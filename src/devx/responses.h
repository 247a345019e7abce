/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the command interface: responses to queries that a program takes later (devx.h, mlx5dv_devx_create_cmd_comp(3)).
 *
 * The device executes a query when it is given; what is asynchronous is only how the program learns of it. A response that waits
 * belongs to its queue, and is freed by whoever takes it. The list of queues is under devx.lock, which is not held while a
 * response is raised or taken.
 */
#ifndef SOFTHCA_DEVX_RESPONSES_H
#define SOFTHCA_DEVX_RESPONSES_H

#include "devx/context.h"

/** Destroys the queues that the program has left. */
void devx_responses_close(struct devx *devx);

#endif
