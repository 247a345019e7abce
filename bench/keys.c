/* SPDX-License-Identifier: BSD-2-Clause */
/* Indirect keys and their configuration, see bench.h. */
#include "bench.h"

#include <errno.h>
#include <string.h>

struct mlx5dv_mkey *key_new(struct device *device, uint32_t flags, uint16_t entries)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = device->pd, .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | flags, .max_entries = entries};
	struct mlx5dv_mkey *key = mlx5dv_create_mkey(&attr);

	if (!key)
		die("mlx5dv_create_mkey: %s", strerror(errno));
	return key;
}

struct mlx5dv_qp_ex *configure_begin(struct pair *pair, struct mlx5dv_mkey *key, uint8_t setters)
{
	struct mlx5dv_mkey_conf_attr attr = {0};
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(pair->qp[0]);
	struct mlx5dv_qp_ex *dv = mlx5dv_qp_ex_from_ibv_qp_ex(qp);

	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
	mlx5dv_wr_mkey_configure(dv, key, setters, &attr);
	mlx5dv_wr_set_mkey_access_flags(dv, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	return dv;
}

void configure_end(struct pair *pair)
{
	int error = ibv_wr_complete(ibv_qp_to_qp_ex(pair->qp[0]));

	if (error)
		die("the configuration of a key: %s", strerror(error));
	await(pair, 1);
}

void set_piece(struct mlx5dv_qp_ex *dv, const struct ibv_mr *mr, uint32_t bytes)
{
	struct ibv_sge piece = {.addr = (uintptr_t)mr->addr, .length = bytes, .lkey = mr->lkey};

	mlx5dv_wr_set_mkey_layout_list(dv, 1, &piece);
}
