/* SPDX-License-Identifier: BSD-2-Clause */
/* Usable keys and others, see key_checks.h. */
#include "support/key_checks.h"

struct view lay_sample(struct mlx5dv_mkey *mkey, struct layout *layout)
{
	struct ibv_sge list[] = {side_sge(&server, 7000, 100), side_sge(&server, 100, 33)};

	return lay_list(&pair.server, BY_CONFIGURE, mkey, layout, 2, list);
}

void expect_key_reaches_(struct place place, struct view key)
{
	struct view memory = client_memory(key.length), after = view_part(key, (int64_t)key.length, 1);

	expect_write_(place, &pair, IBV_WR_RDMA_WRITE, memory, key, IBV_WC_SUCCESS);
	expect_read_(place, &pair, memory, key, IBV_WC_SUCCESS);
	expect_send_(place, &pair, IBV_WR_SEND, memory, key, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	expect_write_(place, &pair, IBV_WR_RDMA_WRITE, client_memory(1), after, IBV_WC_REM_ACCESS_ERR);
	expect_read_(place, &pair, client_memory(key.length + 1), view_part(key, 0, key.length + 1),
		     IBV_WC_REM_ACCESS_ERR);
}

void expect_key_unusable_(struct place place, struct view key)
{
	struct view byte = view_part(key, 0, 1), memory = client_memory(1);

	expect_write_(place, &pair, IBV_WR_RDMA_WRITE, memory, byte, IBV_WC_REM_ACCESS_ERR);
	expect_read_(place, &pair, memory, byte, IBV_WC_REM_ACCESS_ERR);
	expect_send_(place, &pair, IBV_WR_SEND, byte, memory, IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS);
}
