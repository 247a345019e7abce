/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of the state PROBED: the device does not have their feature, and programs call them to find out. softhca_NAME_asks() is true
 * if the arguments are such a question, whose refusal the program expects, and not a use of the feature. Pure functions.
 */
#ifndef SOFTHCA_ABI_PROBES_H
#define SOFTHCA_ABI_PROBES_H

#include <stdbool.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

/* Without a descriptor there is no memory to register: UCX tells by errno whether the kernel and the driver have dma-buf. */
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

/* An attribute is a wish: the queues have the memory of the library without it. DPDK does not look at the result. */
static inline bool softhca_mlx5dv_set_context_attr_asks(struct ibv_context *context, enum mlx5dv_set_ctx_attr_type type,
							void *attr)
{
	(void)context;
	(void)type;
	(void)attr;
	return true;
}

#endif
