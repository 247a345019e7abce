/* SPDX-License-Identifier: BSD-2-Clause */
/* Opcodes of WQEs that infiniband/mlx5dv.h does not define. */
#ifndef SOFTHCA_FORMAT_WQE_CODES_H
#define SOFTHCA_FORMAT_WQE_CODES_H

enum {
	WQE_OPCODE_ATOMIC_WRITE = 0x13, /* segments of an RDMA WRITE, with 8 bytes of data */
};

#endif
