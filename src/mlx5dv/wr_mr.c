/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_wr_mr_list and mlx5dv_wr_mr_interleaved of mlx5dv_wr_post(3): rights and layout in one call. The
 * signature attributes of the key stay as they are (mlx5-formats 4.4).
 */
#include "mlx5dv/wr_mkey.h"
#include "verbs/post/wqe_builder.h"

static struct user_qp *mr_builder_open(struct mlx5dv_qp_ex *dv, const char *call, struct mlx5dv_mkey *mkey,
				       uint32_t access_flags)
{
	static const struct mlx5dv_mkey_conf_attr no_attributes;
	struct user_qp *qp = to_user_qp_dv(dv);

	mkey_configure(qp, call, user_container_of(mkey, struct user_mkey, base), 2, &no_attributes);
	mkey_set_access(qp, call, access_flags);
	return qp;
}

void dv_wr_mr_list(struct mlx5dv_qp_ex *dv, struct mlx5dv_mkey *mkey, uint32_t access_flags, uint16_t num_sges,
		   struct ibv_sge *sge)
{
	const char *call = "mlx5dv_wr_mr_list";

	mkey_set_list(mr_builder_open(dv, call, mkey, access_flags), call, num_sges, sge);
}

void dv_wr_mr_interleaved(struct mlx5dv_qp_ex *dv, struct mlx5dv_mkey *mkey, uint32_t access_flags,
			  uint32_t repeat_count, uint16_t num_interleaved, struct mlx5dv_mr_interleaved *data)
{
	const char *call = "mlx5dv_wr_mr_interleaved";

	mkey_set_interleaved(mr_builder_open(dv, call, mkey, access_flags), call, repeat_count, num_interleaved, data);
}
