/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening and closing contexts. The program owns a context. */
#ifndef SOFTHCA_VERBS_CONTEXT_CONTEXT_H
#define SOFTHCA_VERBS_CONTEXT_CONTEXT_H

#include "verbs/object/handles.h"
#include "verbs/object/objects.h"

/**
 * Creates a context of @device. Takes over @cmd_fd and a reference to @handles (NULL: no memory for one), also on
 * failure. NULL with errno set on failure. Any thread.
 */
struct ibv_context *user_context_new(struct ibv_device *device, int cmd_fd, struct handle_table *handles);

/**
 * Finds the open context with command descriptor @fd or a duplicate of it (dup(2), SCM_RIGHTS within the process).
 * Returns 0, with @device and a reference to its handle table in @handles; otherwise -EBADF or -ENODEV.
 */
int user_context_find(int fd, struct ibv_device **device, struct handle_table **handles);

/**
 * Registers handlers that hold the locks of the driver across each fork. The devices exist. Any thread; the caller
 * holds no lock.
 */
void contexts_handle_fork(void);
/** Take and release the lock of the list of devices. (verbs/context/device.c) */
void devices_before_fork(void);
void devices_after_fork(void);

/** Reports, once, if UCX in this process will not find the device. Any thread. (verbs/context/missing_nodes.c) */
void missing_nodes_report(void);

/** Fills the function tables. (verbs/context/context_ops.c) */
void context_ops_fill(struct verbs_context *context);

#endif
