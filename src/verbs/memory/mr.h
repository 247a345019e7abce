/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of memory regions share. Functions that check return an errno value and leave an
 * explanation.
 */
#ifndef SOFTHCA_VERBS_MEMORY_MR_H
#define SOFTHCA_VERBS_MEMORY_MR_H

#include "verbs/object/objects.h"

/**
 * Access flags of ibv_reg_mr(3): EINVAL for an unknown flag outside of IBV_ACCESS_OPTIONAL_RANGE, and for
 * remote write or atomics without local write.
 */
int mr_check_access(struct hca *hca, const char *call, unsigned int access);

/**
 * Range and kind of a region of plain memory. Fills @attr: kind, addr, start, length, access. @iova: address
 * of the first byte in requests; IBV_ACCESS_ZERO_BASED overrides it with 0.
 */
int mr_describe(struct hca *hca, const char *call, void *addr, size_t length, uint64_t iova, unsigned int access,
		struct hca_mr_attr *attr);

/**
 * ibv_reg_mr(3), for @call: registers [@addr, +@length) of @pd, which is alive, with @iova as the address of its first byte in requests.
 * Returns NULL with errno set on failure. Any thread.
 */
struct ibv_mr *mr_register(struct ibv_pd *pd, const char *call, void *addr, size_t length, uint64_t iova,
			   unsigned int access);

/** The device refused to (re-)register: says why. Returns @error, an errno value. */
int mr_explain_failure(struct hca *hca, const char *call, int error, const struct hca_mr_attr *attr);

/**
 * Registers what @attr describes and makes the driver object; addr and length of the public structure are
 * @addr and attr->length. NULL with errno set on failure.
 */
struct ibv_mr *mr_new(struct ibv_pd *pd, const char *call, void *addr, const struct hca_mr_attr *attr,
		      uint32_t dm_handle);

#endif
