/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands for devices, contexts, protection domains and device memory. */
#ifndef SOFTHCA_HCA_COMMANDS_H
#define SOFTHCA_HCA_COMMANDS_H

#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#include "core/event_queue.h"
#include "core/settings.h"
#include "hca/gid.h"

struct hca;
struct hca_context;
struct hca_pd;

const char *hca_name(const struct hca *hca);
const struct settings *hca_settings(const struct hca *hca);
/** Returns the node and system image GUID, which differs per device and host. */
__be64 hca_guid(const struct hca *hca);

/** Returns the clock of CQE timestamps (free running). */
uint64_t hca_clock_ns(const struct hca *hca);

/** See hca/gid.h. */
const struct hca_gid *hca_gids(const struct hca *hca, size_t *count);

/**
 * Opens a context. @async: queue of asynchronous events, owned by the driver, valid until close. Returns 0, -ENOMEM.
 */
int hca_open(struct hca *hca, struct event_queue *async, struct hca_context **context);
/** Returns -EBUSY while the context has objects. */
int hca_close(struct hca_context *context);

int hca_pd_alloc(struct hca_context *context, struct hca_pd **pd);
int hca_pd_dealloc(struct hca_pd *pd); /* -EBUSY while keys or queues refer to it */
/**
 * Returns the PD of @number made in @context, or NULL. The caller ensures that it is not destroyed meanwhile; likewise
 * for hca_cq_find(), hca_srq_find() and hca_qp_find().
 */
struct hca_pd *hca_pd_find(const struct hca_context *context, uint32_t number);
uint32_t hca_pd_number(const struct hca_pd *pd);
struct hca *hca_pd_device(const struct hca_pd *pd);

/** Allocates @length bytes of device memory at 1 << @log_align. @addr: host address. */
int hca_dm_alloc(struct hca_context *context, size_t length, uint32_t log_align, void **addr);
void hca_dm_free(struct hca_context *context, void *addr, size_t length);

#endif
