/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5-formats 4.1 and 4.2; the operations of each transport as in ibv_wr_post(3). */
#include "verbs/object/qp_types.h"

#include <stddef.h>

#define OPS_SEND (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define OPS_WRITE (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
#define OPS_KEYS (IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW)
#define OPS_UC (OPS_SEND | IBV_QP_EX_WITH_SEND_WITH_INV | OPS_WRITE | OPS_KEYS)
#define OPS_RELIABLE                                                                                                   \
	(OPS_UC | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
#define DV_OPS_RC                                                                                                      \
	(MLX5DV_QP_EX_WITH_MR_INTERLEAVED | MLX5DV_QP_EX_WITH_MR_LIST | MLX5DV_QP_EX_WITH_MKEY_CONFIGURE |             \
	 MLX5DV_QP_EX_WITH_RAW_WQE | MLX5DV_QP_EX_WITH_MEMCPY)

enum {
	AV_BYTES = sizeof(struct mlx5_wqe_datagram_seg),
	XRC_BYTES = 16,
	ETH_BYTES = 32,
};

static const struct qp_type_info rc = {
	.name = "RC",
	.implemented = true,
	.srq = true,
	.send_ops = OPS_RELIABLE | IBV_QP_EX_WITH_ATOMIC_WRITE,
	.assumed_ops = OPS_RELIABLE,
	.dv_send_ops = DV_OPS_RC,
};

static const struct qp_type_info uc = {
	.name = "UC",
	.implemented = true,
	.send_ops = OPS_UC,
	/* As for RC, because real drivers size the rings of these QPs for them. */
	.assumed_ops = OPS_RELIABLE,
	.dv_send_ops = MLX5DV_QP_EX_WITH_RAW_WQE,
};

static const struct qp_type_info ud = {
	.name = "UD",
	.implemented = true,
	.srq = true,
	.address_bytes = AV_BYTES,
	.send_ops = OPS_SEND,
	.assumed_ops = OPS_SEND | IBV_QP_EX_WITH_TSO,
	.dv_send_ops = MLX5DV_QP_EX_WITH_RAW_WQE,
};

static const struct qp_type_info raw_packet = {
	.name = "RAW_PACKET",
	.srq = true,
	.address_bytes = ETH_BYTES,
	.send_ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO,
	.assumed_ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO,
	.dv_send_ops = MLX5DV_QP_EX_WITH_RAW_WQE,
};

static const struct qp_type_info xrc_send = {
	.name = "XRC_SEND",
	.implemented = true,
	.send_only = true,
	.address_bytes = XRC_BYTES,
	.send_ops = OPS_RELIABLE,
	.assumed_ops = OPS_RELIABLE,
	.dv_send_ops = MLX5DV_QP_EX_WITH_RAW_WQE,
};

static const struct qp_type_info xrc_recv = {
	.name = "XRC_RECV",
	.implemented = true,
};

static const struct qp_type_info dci = {
	.name = "DCI",
	.implemented = true,
	/*
	 * Accepted but never used: the kernel's driver refuses receive capacities for this type, and programs name an
	 * SRQ.
	 */
	.srq = true,
	.address_bytes = AV_BYTES,
	/* mlx5dv_wr_post(3): the builders of a DCI are those of RC. */
	.send_ops = OPS_RELIABLE | IBV_QP_EX_WITH_ATOMIC_WRITE,
	.assumed_ops = OPS_RELIABLE,
	.dv_send_ops = DV_OPS_RC,
};

static const struct qp_type_info dct = {
	.name = "DCT",
	.implemented = true,
	.srq = true,
};

const struct qp_type_info *qp_type_info(enum ibv_qp_type type, enum mlx5dv_dc_type dc)
{
	switch (type) {
	case IBV_QPT_RC:
		return &rc;
	case IBV_QPT_UC:
		return &uc;
	case IBV_QPT_UD:
		return &ud;
	case IBV_QPT_RAW_PACKET:
		return &raw_packet;
	case IBV_QPT_XRC_SEND:
		return &xrc_send;
	case IBV_QPT_XRC_RECV:
		return &xrc_recv;
	case IBV_QPT_DRIVER:
		return dc == MLX5DV_DCTYPE_DCI ? &dci : dc == MLX5DV_DCTYPE_DCT ? &dct : NULL;
	}
	return NULL;
}
