/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 600 to 643 and 700: mlx5dv calls and builders, and calls that do not exist yet. */
#include "rule_cases.h"

#include "support/mkey.h"

enum { MAX_ENTRIES = 1 << 15 }; /* docs/reference/limits.md, MAX_MKEY_ENTRIES */

/* ---- calls ------------------------------------------------------------------------------------------------------ */

RULE_CASE(DV_OPEN_ATTR)
{
	struct mlx5dv_context_attr attr = {.flags = 0x10, .comp_mask = 0x20};
	struct ibv_device **list = ibv_get_device_list(NULL);

	errno = 0;
	assert_null(mlx5dv_open_device(list[0], &attr));
	expect_error(errno, EINVAL);
	ibv_free_device_list(list);
	expect_refusal(DV_OPEN_ATTR,
		       "mlx5dv_open_device → EINVAL: struct mlx5dv_context_attr has flags 0x10 and comp_mask "
		       "0x20; flags may hold 0x1 only, comp_mask nothing");
}

RULE_CASE(DV_PORT_NUMBER)
{
	struct mlx5dv_port port;

	expect_error(mlx5dv_query_port(client.context, 5, &port), EINVAL);
	expect_refusal(DV_PORT_NUMBER,
		       "mlx5dv_query_port → EINVAL: port 5 does not exist; the device has ports 1 to 1");
}

static void dm_fails(struct mlx5dv_alloc_dm_attr dv, int error)
{
	struct ibv_alloc_dm_attr attr = {.length = 64};

	errno = 0;
	assert_null(mlx5dv_alloc_dm(client.context, &attr, &dv));
	expect_error(errno, error);
}

RULE_CASE(DV_DEVICE_MEMORY_ATTR)
{
	dm_fails((struct mlx5dv_alloc_dm_attr){.comp_mask = 2}, EINVAL);
	expect_refusal(DV_DEVICE_MEMORY_ATTR,
		       "mlx5dv_alloc_dm → EINVAL: comp_mask of struct mlx5dv_alloc_dm_attr is 0x2; "
		       "it is reserved and must be 0");
}

RULE_CASE(DV_DEVICE_MEMORY_TYPE)
{
	dm_fails((struct mlx5dv_alloc_dm_attr){.type = MLX5DV_DM_TYPE_STEERING_SW_ICM}, EOPNOTSUPP);
	expect_refusal(
		DV_DEVICE_MEMORY_TYPE,
		"mlx5dv_alloc_dm → EOPNOTSUPP: device memory of type 1 is for packet steering, which this device does not have");
}

RULE_CASE(DV_QPN_NOT_RESERVED)
{
	expect_error(mlx5dv_reserved_qpn_dealloc(client.context, pair.client.qp->qp_num), EINVAL);
	expect_refusal(DV_QPN_NOT_RESERVED, "mlx5dv_reserved_qpn_dealloc → EINVAL: QP number 0x%x is not reserved",
		       pair.client.qp->qp_num);
}

RULE_CASE(DV_UDP_SPORT_QP)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	expect_error(ibv_modify_qp(pair.client.qp, &attr, IBV_QP_STATE), 0);
	expect_error(mlx5dv_modify_qp_udp_sport(pair.client.qp, 0xc000), EOPNOTSUPP);
	expect_about_qp(DV_UDP_SPORT_QP, pair.client.qp->qp_num,
			" mlx5dv_modify_qp_udp_sport → EOPNOTSUPP: the UDP source port of a QP of type RC in state ERR "
			"cannot be set: it must be RC or UC, and in RTS");
}

RULE_CASE(DV_INIT_OBJ_NONE)
{
	struct mlx5dv_obj object = {0};

	expect_error(mlx5dv_init_obj(&object, 0x100), EINVAL);
	expect_refusal(DV_INIT_OBJ_NONE, "mlx5dv_init_obj → EINVAL: obj_type is 0x100, which selects no object");
}

RULE_CASE(DV_INIT_OBJ_RWQ)
{
	struct mlx5dv_rwq out;
	struct mlx5dv_obj object = {.rwq = {.out = &out}};

	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_RWQ), EOPNOTSUPP);
	expect_refusal(DV_INIT_OBJ_RWQ,
		       "mlx5dv_init_obj → EOPNOTSUPP: this device has no receive work queues (ibv_create_wq)");
}

static void create_fails(uint32_t flags, uint16_t entries, int error)
{
	struct mlx5dv_mkey_init_attr attr = {.pd = client.pd, .create_flags = flags, .max_entries = entries};

	errno = 0;
	assert_null(mlx5dv_create_mkey(&attr));
	expect_error(errno, error);
}

RULE_CASE(MKEY_CREATE_FLAGS)
{
	create_fails(MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | 0x400, 4, EOPNOTSUPP);
	expect_refusal(MKEY_CREATE_FLAGS,
		       "mlx5dv_create_mkey → EOPNOTSUPP: create_flags is 0x%x; it must not be 0 and may hold 0x%x only",
		       MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | 0x400,
		       MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE |
			       MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO | MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG |
			       MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE);
}

RULE_CASE(MKEY_MAX_ENTRIES)
{
	create_fails(MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, MAX_ENTRIES + 1, EINVAL);
	expect_refusal(MKEY_MAX_ENTRIES,
		       "mlx5dv_create_mkey → EINVAL: max_entries is 32769; a key has at most 32768 entries");
}

/* ---- configuring keys ------------------------------------------------------------------------------------------- */

static const char configure[] = "mlx5dv_wr_mkey_configure";
static const char set_access[] = "mlx5dv_wr_set_mkey_access_flags";
static const char set_list[] = "mlx5dv_wr_set_mkey_layout_list";
static const char set_interleaved[] = "mlx5dv_wr_set_mkey_layout_interleaved";

static struct mlx5dv_mkey *begin(uint8_t setters)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&client, 4, NULL);
	struct mlx5dv_mkey_conf_attr attr = {0};

	batch_start(&pair.client, 1, IBV_SEND_INLINE);
	mlx5dv_wr_mkey_configure(pair.client.dv, mkey, setters, &attr);
	return mkey;
}

static void end(int error)
{
	expect_error(ibv_wr_complete(pair.client.ex), error);
}

RULE_CASE(MKEY_CONFIGURE_INLINE)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&client, 4, NULL);
	struct mlx5dv_mkey_conf_attr attr = {0};

	batch_start(&pair.client, 1, IBV_SEND_SIGNALED);
	mlx5dv_wr_mkey_configure(pair.client.dv, mkey, 0, &attr);
	end(EOPNOTSUPP);
	expect_about_qp(
		MKEY_CONFIGURE_INLINE, pair.client.qp->qp_num,
		" %s → EOPNOTSUPP: wr_flags is 0x2, without IBV_SEND_INLINE, but the layout of a key travels inside its work request",
		configure);
}

RULE_CASE(MKEY_CONFIGURE_ATTR)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&client, 4, NULL);
	struct mlx5dv_mkey_conf_attr attr = {.conf_flags = 8, .comp_mask = 4};

	batch_start(&pair.client, 1, IBV_SEND_INLINE);
	mlx5dv_wr_mkey_configure(pair.client.dv, mkey, 0, &attr);
	end(EOPNOTSUPP);
	expect_about_qp(
		MKEY_CONFIGURE_ATTR, pair.client.qp->qp_num,
		" %s → EOPNOTSUPP: struct mlx5dv_mkey_conf_attr has conf_flags 0x8 and comp_mask 0x4; conf_flags may "
		"hold 0x1 only, comp_mask nothing",
		configure);
}

RULE_CASE(MKEY_CONFIGURE_TAG)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&client, 4, NULL);
	struct mlx5dv_mkey_conf_attr attr = {0};

	mkey->lkey |= 0x42;
	batch_start(&pair.client, 1, IBV_SEND_INLINE);
	mlx5dv_wr_mkey_configure(pair.client.dv, mkey, 0, &attr);
	end(EOPNOTSUPP);
	expect_about_qp(MKEY_CONFIGURE_TAG, pair.client.qp->qp_num,
			" %s → EOPNOTSUPP: lkey 0x%x of the key has tag 0x42, but the key was created without "
			"MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG",
			configure, mkey->lkey);
}

RULE_CASE(MKEY_SETTER_NOT_OPEN)
{
	batch_start(&pair.client, 1, IBV_SEND_INLINE);
	mlx5dv_wr_set_mkey_access_flags(pair.client.dv, 0);
	end(EINVAL);
	expect_about_qp(
		MKEY_SETTER_NOT_OPEN, pair.client.qp->qp_num,
		" %s → EINVAL: no configuration of a key is open on this QP: mlx5dv_wr_mkey_configure() was not the call before, or all announced setters were called",
		set_access);
}

RULE_CASE(MKEY_ACCESS_FLAGS)
{
	begin(1);
	mlx5dv_wr_set_mkey_access_flags(pair.client.dv, IBV_ACCESS_REMOTE_READ | 0x100);
	end(EINVAL);
	expect_about_qp(
		MKEY_ACCESS_FLAGS, pair.client.qp->qp_num,
		" %s → EINVAL: access_flags is REMOTE_READ|0x100; a key may have LOCAL_WRITE|REMOTE_WRITE|REMOTE_READ|REMOTE_ATOMIC|MW_BIND|ZERO_BASED|ON_DEMAND|HUGETLB|RELAXED_ORDERING",
		set_access);
}

RULE_CASE(MKEY_ACCESS_TWICE)
{
	begin(3);
	mlx5dv_wr_set_mkey_access_flags(pair.client.dv, 0);
	mlx5dv_wr_set_mkey_access_flags(pair.client.dv, 0);
	end(EINVAL);
	expect_about_qp(MKEY_ACCESS_TWICE, pair.client.qp->qp_num,
			" %s → EINVAL: mlx5dv_wr_set_mkey_access_flags() was already called in this work request",
			set_access);
}

RULE_CASE(MKEY_LAYOUT_TWICE)
{
	struct ibv_sge sge = side_sge(&client, 0, 64);

	begin(3);
	mlx5dv_wr_set_mkey_layout_list(pair.client.dv, 1, &sge);
	mlx5dv_wr_set_mkey_layout_list(pair.client.dv, 1, &sge);
	end(EINVAL);
	expect_about_qp(MKEY_LAYOUT_TWICE, pair.client.qp->qp_num,
			" %s → EINVAL: a layout was already set in this work request", set_list);
}

/* A WQE of default size holds four list entries (mlx5-formats 4.1). */
RULE_CASE(MKEY_LAYOUT_WQE)
{
	struct ibv_sge sges[5];

	for (size_t i = 0; i < 5; i++)
		sges[i] = side_sge(&client, 64 * i, 64);
	begin(1);
	mlx5dv_wr_set_mkey_layout_list(pair.client.dv, 5, sges);
	end(ENOMEM);
	expect_about_qp(
		MKEY_LAYOUT_WQE, pair.client.qp->qp_num,
		" %s → ENOMEM: the layout has 5 entries; a work request of this QP holds 4 (max_inline_data is 60)",
		set_list);
}

RULE_CASE(MKEY_LAYOUT_KEY)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	struct ibv_sge sges[5];

	options.max_inline_data = 200;
	pair_replace(&pair, &options);
	for (size_t i = 0; i < 5; i++)
		sges[i] = side_sge(&client, 64 * i, 64);
	begin(1);
	mlx5dv_wr_set_mkey_layout_list(pair.client.dv, 5, sges);
	end(ENOMEM);
	expect_about_qp(MKEY_LAYOUT_KEY, pair.client.qp->qp_num,
			" %s → ENOMEM: the layout has 5 entries; the key was created for 4", set_list);
}

/* 3 * (2^32 - 1) bytes, 2^31 times. */
RULE_CASE(MKEY_INTERLEAVED_LENGTH)
{
	struct mlx5dv_mr_interleaved entries[3];

	for (size_t i = 0; i < 3; i++)
		entries[i] = side_interleaved(&client, 0, UINT32_MAX, 0);
	begin(1);
	mlx5dv_wr_set_mkey_layout_interleaved(pair.client.dv, 1u << 31, 3, entries);
	end(EINVAL);
	expect_about_qp(MKEY_INTERLEAVED_LENGTH, pair.client.qp->qp_num,
			" %s → EINVAL: 12884901885 bytes repeated 2147483648 times exceed 2^64 bytes", set_interleaved);
}

/* 70000 and 70100 modulo 65536. */
RULE_CASE(MKEY_INTERLEAVED_WIDE)
{
	struct mlx5dv_mr_interleaved entries[2] = {side_interleaved(&client, 0, 8, 8),
						   side_interleaved(&client, 0, 70000, 100)};

	begin(1);
	mlx5dv_wr_set_mkey_layout_interleaved(pair.client.dv, 1, 2, entries);
	end(EINVAL);
	expect_about_qp(MKEY_INTERLEAVED_WIDE, pair.client.qp->qp_num,
			" %s → EINVAL: entry 1 has bytes_count 70000 and bytes_skip 100; the work request has 16 bits "
			"for bytes_count and for their sum, and would lay 4464 bytes every 4564",
			set_interleaved);
}

RULE_CASE(DV_BUILDER_NOT_ENABLED)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	struct mlx5dv_mkey *mkey = side_create_mkey(&client, 4, NULL);
	struct mlx5dv_mkey_conf_attr attr = {0};

	options.dv_send_ops = 0;
	pair_replace(&pair, &options);
	batch_start(&pair.client, 1, IBV_SEND_INLINE);
	mlx5dv_wr_mkey_configure(pair.client.dv, mkey, 1, &attr);
	end(EOPNOTSUPP);
	expect_about_qp(
		DV_BUILDER_NOT_ENABLED, pair.client.qp->qp_num,
		" %s → EOPNOTSUPP: this QP was created without the builder: its mlx5dv send_ops_flags are 0x0, but the call needs 0x%x",
		configure, MLX5DV_QP_EX_WITH_MKEY_CONFIGURE);
}

RULE_CASE(DV_SEND_OPS)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = pair.client.cq,
		.recv_cq = pair.client.cq,
		.cap = {.max_send_wr = 4, .max_send_sge = 1},
		.qp_type = IBV_QPT_UC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = client.pd,
	};
	struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
					 .send_ops_flags = MLX5DV_QP_EX_WITH_MR_LIST};

	errno = 0;
	assert_null(mlx5dv_create_qp(client.context, &attr, &dv));
	expect_error(errno, EOPNOTSUPP);
	expect_refusal(
		DV_SEND_OPS,
		"mlx5dv_create_qp → EOPNOTSUPP: mlx5dv send_ops_flags are 0x2 for a QP of type UC, for which this device offers 0x8");
}

/* ---- the rest --------------------------------------------------------------------------------------------------- */

RULE_CASE(CALL_NOT_IMPLEMENTED)
{
	errno = 0;
	assert_null(mlx5dv_dr_domain_create(client.context, MLX5DV_DR_DOMAIN_TYPE_NIC_RX));
	expect_error(errno, EOPNOTSUPP);
	expect_refusal(CALL_NOT_IMPLEMENTED, "mlx5dv_dr_domain_create → EOPNOTSUPP: this call is not implemented");
}
