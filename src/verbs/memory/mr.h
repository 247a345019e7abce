/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions of the driver. Functions that check return 0, or an errno value after an explanation. Any thread. */
#ifndef SOFTHCA_VERBS_MEMORY_MR_H
#define SOFTHCA_VERBS_MEMORY_MR_H

#include "verbs/object/objects.h"

/**
 * Returns EINVAL for an unknown flag outside IBV_ACCESS_OPTIONAL_RANGE, and for remote write or atomics without local
 * write.
 */
int mr_check_access(struct hca *hca, const char *call, unsigned int access);

/**
 * Checks the range of a region of plain memory, and fills @attr. @iova: address of the first byte in requests;
 * IBV_ACCESS_ZERO_BASED overrides it with 0.
 */
int mr_describe(struct hca *hca, const char *call, void *addr, size_t length, uint64_t iova, unsigned int access,
		struct hca_mr_attr *attr);

/** Implements ibv_reg_mr(3) for @call. @pd is alive. @iova: as in mr_describe(). NULL with errno set on failure. */
struct ibv_mr *mr_register(struct ibv_pd *pd, const char *call, void *addr, size_t length, uint64_t iova,
			   unsigned int access);

/** Explains why the device refused to register. Returns @error, an errno value. */
int mr_explain_failure(struct hca *hca, const char *call, int error, const struct hca_mr_attr *attr);

/**
 * Registers the memory of @attr and creates the driver object, with @addr as its public addr. NULL with errno set on
 * failure.
 */
struct ibv_mr *mr_new(struct ibv_pd *pd, const char *call, void *addr, const struct hca_mr_attr *attr,
		      uint32_t dm_handle);

#endif
