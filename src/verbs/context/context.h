/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contexts, for the calls that open and close them: ibv_open_device(3), ibv_import_device(3).
 *
 * Open contexts are listed, so that a descriptor can be mapped to its context. The program owns a context.
 */
#ifndef SOFTHCA_VERBS_CONTEXT_CONTEXT_H
#define SOFTHCA_VERBS_CONTEXT_CONTEXT_H

#include "verbs/object/handles.h"
#include "verbs/object/objects.h"

/**
 * Creates a context of @device with command descriptor @cmd_fd and handle table @handles. Takes over @cmd_fd and a
 * reference to @handles (NULL: no memory for one), also on failure. Returns NULL with errno set on failure. Any
 * thread.
 */
struct ibv_context *user_context_new(struct ibv_device *device, int cmd_fd, struct handle_table *handles);

/**
 * Finds the open context with command descriptor @fd, or one of which @fd is a duplicate (dup(2), SCM_RIGHTS within the
 * process). Fills @device, and returns a reference to its handle table through @handles. Returns 0, -EBADF or -ENODEV.
 */
int user_context_find(int fd, struct ibv_device **device, struct handle_table **handles);

/**
 * Registers handlers that hold the locks of the driver across each fork. The devices exist. Any thread; the caller
 * holds no lock.
 */
void contexts_handle_fork(void);
/** Take and release the lock of the list of devices, around a fork. (verbs/context/device.c) */
void devices_before_fork(void);
void devices_after_fork(void);

/** Reports, once, if UCX is in this process and will not find the device. Any thread. (verbs/context/missing_nodes.c) */
void missing_nodes_report(void);

/** Fills the function tables of @context. (verbs/context/context_ops.c) */
void context_ops_fill(struct verbs_context *context);

#endif
