/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls in state PROBED: the device lacks their feature. softhca_NAME_asks() returns true if the arguments only probe
 * for it, so that the program expects a refusal, and false if they use it. Pure functions; any thread.
 */
#ifndef SOFTHCA_ABI_PROBES_H
#define SOFTHCA_ABI_PROBES_H

#include <stdbool.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

/*
 * Without a descriptor the call cannot register memory: UCX detects by errno whether kernel and driver support dma-buf.
 */
static inline bool softhca_ibv_reg_dmabuf_mr_asks(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
						  int fd, int access)
{
	(void)pd;
	(void)offset;
	(void)length;
	(void)iova;
	(void)access;
	return fd < 0;
}

/* An attribute is a hint: without it queues use the library's memory. DPDK ignores the result. */
static inline bool softhca_mlx5dv_set_context_attr_asks(struct ibv_context *context, enum mlx5dv_set_ctx_attr_type type,
							void *attr)
{
	(void)context;
	(void)type;
	(void)attr;
	return true;
}

#endif
