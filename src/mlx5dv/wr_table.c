/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5-formats 4.2, "send_ops at QP creation". A builder that a QP lacks latches EOPNOTSUPP and explains it. */
#include "core/settings.h"
#include "verbs/memory/memcpy_buffer.h"
#include "mlx5dv/wr_block.h"
#include "mlx5dv/wr_crypto.h"
#include "mlx5dv/wr_mkey.h"
#include "mlx5dv/wr_simple.h"
#include "mlx5dv/wr_table.h"
#include "verbs/object/qp_types.h"
#include "verbs/post/wqe_builder.h"

/* In profile connectx each enables all builders of keys, as in drivers. */
#define KEY_BUILDERS (MLX5DV_QP_EX_WITH_MR_INTERLEAVED | MLX5DV_QP_EX_WITH_MR_LIST | MLX5DV_QP_EX_WITH_MKEY_CONFIGURE)

static void refuse_type(struct mlx5dv_qp_ex *dv, const char *call)
{
	struct user_qp *qp = to_user_qp_dv(dv);

	if (!qp->builder.error)
		wr_refuse(qp, call, EOPNOTSUPP, RULE_WR_NOT_OF_TYPE, FIGURES(qp->type));
}

static void refuse_builder(struct mlx5dv_qp_ex *dv, const char *call, uint64_t needed)
{
	struct user_qp *qp = to_user_qp_dv(dv);

	if (!qp->builder.error)
		wr_refuse(qp, call, EOPNOTSUPP, RULE_DV_BUILDER_NOT_ENABLED, FIGURES(qp->dv_send_ops, needed));
}

static void no_mkey_configure(struct mlx5dv_qp_ex *dv, struct mlx5dv_mkey *mkey, uint8_t num_setters,
			      struct mlx5dv_mkey_conf_attr *attr)
{
	(void)mkey, (void)num_setters, (void)attr;
	refuse_builder(dv, "mlx5dv_wr_mkey_configure", MLX5DV_QP_EX_WITH_MKEY_CONFIGURE);
}

static void no_mr_list(struct mlx5dv_qp_ex *dv, struct mlx5dv_mkey *mkey, uint32_t access_flags, uint16_t num_sges,
		       struct ibv_sge *sge)
{
	(void)mkey, (void)access_flags, (void)num_sges, (void)sge;
	refuse_builder(dv, "mlx5dv_wr_mr_list", MLX5DV_QP_EX_WITH_MR_LIST);
}

static void no_mr_interleaved(struct mlx5dv_qp_ex *dv, struct mlx5dv_mkey *mkey, uint32_t access_flags,
			      uint32_t repeat_count, uint16_t num_interleaved, struct mlx5dv_mr_interleaved *data)
{
	(void)mkey, (void)access_flags, (void)repeat_count, (void)num_interleaved, (void)data;
	refuse_builder(dv, "mlx5dv_wr_mr_interleaved", MLX5DV_QP_EX_WITH_MR_INTERLEAVED);
}

static void no_raw_wqe(struct mlx5dv_qp_ex *dv, const void *wqe)
{
	(void)wqe;
	refuse_builder(dv, "mlx5dv_wr_raw_wqe", MLX5DV_QP_EX_WITH_RAW_WQE);
}

static void no_memcpy(struct mlx5dv_qp_ex *dv, uint32_t dest_lkey, uint64_t dest_addr, uint32_t src_lkey,
		      uint64_t src_addr, size_t length)
{
	(void)dest_lkey, (void)dest_addr, (void)src_lkey, (void)src_addr, (void)length;
	refuse_builder(dv, "mlx5dv_wr_memcpy", MLX5DV_QP_EX_WITH_MEMCPY);
}

static void no_dc_addr(struct mlx5dv_qp_ex *dv, struct ibv_ah *ah, uint32_t remote_dctn, uint64_t remote_dc_key)
{
	(void)ah, (void)remote_dctn, (void)remote_dc_key;
	refuse_type(dv, "mlx5dv_wr_set_dc_addr");
}

static void no_dc_addr_stream(struct mlx5dv_qp_ex *dv, struct ibv_ah *ah, uint32_t remote_dctn, uint64_t remote_dc_key,
			      uint16_t stream_id)
{
	(void)ah, (void)remote_dctn, (void)remote_dc_key, (void)stream_id;
	refuse_type(dv, "mlx5dv_wr_set_dc_addr_stream");
}

int dv_wr_table_fill(struct user_qp *qp, uint64_t dv_send_ops)
{
	const struct qp_type_info *type = qp_type_info(qp->type, qp->dc_type);
	uint64_t offered = type ? type->dv_send_ops : 0;
	bool connectx = hca_settings(hca_of_context(qp->base.context))->profile == PROFILE_CONNECTX;
	uint64_t enabled = connectx && dv_send_ops & KEY_BUILDERS ? dv_send_ops | KEY_BUILDERS : dv_send_ops;
	bool dc = qp->dc_type == MLX5DV_DCTYPE_DCI;

	if (dv_send_ops & ~offered)
		return -REFUSE(hca_of_context(qp->base.context), "mlx5dv_create_qp", EOPNOTSUPP, RULE_DV_SEND_OPS,
			       dv_send_ops, qp->type, offered);
	qp->dv = (struct mlx5dv_qp_ex){
		.wr_set_dc_addr = dc ? dv_wr_set_dc_addr : no_dc_addr,
		.wr_mr_interleaved =
			enabled & MLX5DV_QP_EX_WITH_MR_INTERLEAVED ? dv_wr_mr_interleaved : no_mr_interleaved,
		.wr_mr_list = enabled & MLX5DV_QP_EX_WITH_MR_LIST ? dv_wr_mr_list : no_mr_list,
		.wr_mkey_configure =
			enabled & MLX5DV_QP_EX_WITH_MKEY_CONFIGURE ? dv_wr_mkey_configure : no_mkey_configure,
		/* Without an open configuration these refuse the call and explain it. */
		.wr_set_mkey_access_flags = dv_wr_set_mkey_access_flags,
		.wr_set_mkey_layout_list = dv_wr_set_mkey_layout_list,
		.wr_set_mkey_layout_interleaved = dv_wr_set_mkey_layout_interleaved,
		.wr_set_mkey_sig_block = dv_wr_set_mkey_sig_block,
		.wr_raw_wqe = dv_send_ops & MLX5DV_QP_EX_WITH_RAW_WQE ? dv_wr_raw_wqe : no_raw_wqe,
		.wr_set_dc_addr_stream = dc ? dv_wr_set_dc_addr_stream : no_dc_addr_stream,
		.wr_memcpy = dv_send_ops & MLX5DV_QP_EX_WITH_MEMCPY ? dv_wr_memcpy : no_memcpy,
		.wr_set_mkey_crypto = dv_wr_set_mkey_crypto,
	};
	return dv_send_ops & MLX5DV_QP_EX_WITH_MEMCPY ? memcpy_buffer_get(qp->pd, &qp->memcpy_buffer) : 0;
}

static void __attribute__((constructor)) register_builders(void)
{
	static const struct dv_builders builders = {
		.table_fill = dv_wr_table_fill,
		.chain_dropped = block_chain_dropped,
	};

	dv_builders = &builders;
}
