/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening and closing a context, for the calls that do: ibv_open_device(3), ibv_import_device(3).
 *
 * Open contexts are listed so that a descriptor can be traced back to its context. Owner of a context: the
 * program.
 */
#ifndef SOFTHCA_VERBS_CONTEXT_CONTEXT_H
#define SOFTHCA_VERBS_CONTEXT_CONTEXT_H

#include "verbs/object/handles.h"
#include "verbs/object/objects.h"

/**
 * Makes a context of @device behind @cmd_fd, whose objects are those in @handles. Takes over @cmd_fd and a
 * reference to @handles (NULL: no memory for one), on failure too. Returns NULL with errno set on failure.
 * Any thread.
 */
struct ibv_context *user_context_new(struct ibv_device *device, int cmd_fd, struct handle_table *handles);

/**
 * Finds the open context whose command descriptor @fd is, or is a duplicate of (dup(2), SCM_RIGHTS to
 * ourselves). Fills @device and gets a reference to its handle table through @handles. Returns 0, -EBADF, or
 * -ENODEV.
 */
int user_context_find(int fd, struct ibv_device **device, struct handle_table **handles);

/** Has the locks of the driver held across every fork from now on. The devices exist. Any thread, no lock held. */
void contexts_handle_fork(void);
/** The lock of the list of devices, around a fork. (verbs/context/device.c) */
void devices_before_fork(void);
void devices_after_fork(void);

/** Fills the function tables of @context. (verbs/context/context_ops.c) */
void context_ops_fill(struct verbs_context *context);

#endif
