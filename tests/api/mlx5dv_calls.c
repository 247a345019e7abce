/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mlx5dv calls that are not builders: attributes, errors, and input and output members, according to their man
 * pages and mlx5-formats 1.16 and 4.3.
 */
#include "support/program.h"

#include <dlfcn.h>
#include <endian.h>
#include <time.h>

/* ---- devices and contexts -------------------------------------------------------------------------- */

TEST(open_device_takes_known_flags)
{
	struct mlx5dv_context_attr none = {0}, devx = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
	struct mlx5dv_context_attr flag = {.flags = 2}, mask = {.comp_mask = 1};
	struct mlx5dv_context_attr *good[] = {NULL, &none, &devx}, *bad[] = {&flag, &mask};
	struct ibv_device **list = ibv_get_device_list(NULL);

	assert_false(mlx5dv_is_supported(NULL));
	for (int i = 0; i < 3; i++) {
		struct ibv_context *context = mlx5dv_open_device(list[0], good[i]);

		assert_non_null(context);
		assert_ptr_equal(context->device, list[0]);
		assert_int_equal(ibv_close_device(context), 0);
	}
	for (int i = 0; i < 2; i++) {
		errno = 0;
		assert_null(mlx5dv_open_device(list[0], bad[i]));
		assert_int_equal(errno, EINVAL);
	}
	ibv_free_device_list(list);
}

/* comp_mask is both input and output: members that were not requested are not written. */
TEST(query_device_fills_the_requested_fields)
{
	struct ibv_context *context = open_device();
	struct mlx5dv_context attr, filled;
	const uint64_t all = (UINT64_C(1) << 14) - 1;
	const uint64_t absent = MLX5DV_CONTEXT_MASK_HCA_CORE_CLOCK | MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS;

	memset(&filled, 0xa5, sizeof(filled));
	attr = filled;
	attr.comp_mask = 0;
	assert_int_equal(mlx5dv_query_device(context, &attr), 0);
	assert_int_equal(attr.version, 0);
	/* No other flag is set. A CQ may be created for compressed CQEs of 128 bytes, but none is ever written. */
	assert_int_equal(attr.flags, MLX5DV_CONTEXT_FLAGS_CQE_V1 | MLX5DV_CONTEXT_FLAGS_CQE_128B_COMP |
					     MLX5DV_CONTEXT_FLAGS_CQE_128B_PAD);
	/* QPs with that mode are rejected (mlx5dv_create_qp(3)). */
	assert_int_equal(attr.comp_mask, 0);
	assert_memory_equal(&attr.cqe_comp_caps, &filled.cqe_comp_caps,
			    sizeof(attr) - offsetof(struct mlx5dv_context, cqe_comp_caps));

	attr.comp_mask = UINT64_MAX;
	assert_int_equal(mlx5dv_query_device(context, &attr), 0);
	assert_int_equal(attr.comp_mask, all & ~absent);
	/* A CQ may be created for compressed CQEs of any format. */
	assert_int_equal(attr.cqe_comp_caps.max_num, 64);
	assert_int_equal(attr.cqe_comp_caps.supported_format,
			 MLX5DV_CQE_RES_FORMAT_HASH | MLX5DV_CQE_RES_FORMAT_CSUM | MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX);
	assert_int_equal(attr.striding_rq_caps.supported_qpts, 0);
	assert_int_equal(attr.sig_caps.block_prot, MLX5DV_SIG_PROT_CAP_T10DIF | MLX5DV_SIG_PROT_CAP_CRC);
	assert_int_equal(attr.sig_caps.block_size, MLX5DV_BLOCK_SIZE_CAP_512 | MLX5DV_BLOCK_SIZE_CAP_520 |
							   MLX5DV_BLOCK_SIZE_CAP_4048 | MLX5DV_BLOCK_SIZE_CAP_4096 |
							   MLX5DV_BLOCK_SIZE_CAP_4160);
	assert_int_equal(attr.sig_caps.t10dif_bg, MLX5DV_SIG_T10DIF_BG_CAP_CRC | MLX5DV_SIG_T10DIF_BG_CAP_CSUM);
	assert_int_equal(attr.sig_caps.crc_type, MLX5DV_SIG_CRC_TYPE_CAP_CRC32 | MLX5DV_SIG_CRC_TYPE_CAP_CRC32C |
							 MLX5DV_SIG_CRC_TYPE_CAP_CRC64_XP10);
	assert_int_equal(attr.dci_streams_caps.max_log_num_concurent, 6);
	assert_int_equal(attr.dci_streams_caps.max_log_num_errored, 6);
	assert_int_equal(attr.max_wr_memcpy_length, 1 << 28);
	assert_int_equal(attr.crypto_caps.crypto_engines, MLX5DV_CRYPTO_ENGINES_CAP_AES_XTS_SINGLE_BLOCK |
								  MLX5DV_CRYPTO_ENGINES_CAP_AES_XTS_MULTI_BLOCK);
	assert_int_equal(attr.crypto_caps.flags, MLX5DV_CRYPTO_CAPS_CRYPTO);
	assert_true(attr.max_clock_info_update_nsec > 1000000000);

	attr = filled;
	attr.comp_mask = MLX5DV_CONTEXT_MASK_SIGNATURE_OFFLOAD;
	assert_int_equal(mlx5dv_query_device(context, &attr), 0);
	assert_int_equal(attr.comp_mask, MLX5DV_CONTEXT_MASK_SIGNATURE_OFFLOAD);
	assert_int_equal(attr.sig_caps.block_prot, MLX5DV_SIG_PROT_CAP_T10DIF | MLX5DV_SIG_PROT_CAP_CRC);
	assert_int_equal(attr.crypto_caps.flags, filled.crypto_caps.flags);
	assert_int_equal(ibv_close_device(context), 0);
}

/* A current timestamp converts to the current wall-clock time. */
TEST(clock_info_leads_to_the_wall_clock)
{
	struct ibv_context *context = open_device();
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct mlx5dv_clock_info info;
	struct timespec wall;
	uint64_t raw, now, converted;

	memset(&info, 0xff, sizeof(info));
	assert_int_equal(mlx5dv_get_clock_info(context, &info), 0);
	assert_int_equal(ibv_query_rt_values_ex(context, &values), 0);
	clock_gettime(CLOCK_REALTIME, &wall);
	raw = (uint64_t)values.raw_clock.tv_sec * 1000000000 + (uint64_t)values.raw_clock.tv_nsec;
	now = (uint64_t)wall.tv_sec * 1000000000 + (uint64_t)wall.tv_nsec;
	converted = mlx5dv_ts_to_ns(&info, raw);
	assert_in_range(converted, now - 500000000, now + 500000000);
	/* One second later and earlier. */
	assert_int_equal(mlx5dv_ts_to_ns(&info, raw + 1000000000), converted + 1000000000);
	assert_int_equal(mlx5dv_ts_to_ns(&info, raw - 1000000000), converted - 1000000000);
	assert_int_equal(ibv_close_device(context), 0);
}

TEST(query_port_knows_no_switch)
{
	struct ibv_context *context = open_device();
	struct mlx5dv_port port;
	uint8_t small[sizeof(port)];

	memset(&port, 0xff, sizeof(port));
	assert_int_equal(mlx5dv_query_port(context, 1, &port), 0);
	assert_int_equal(port.flags, 0);
	assert_int_equal(port.reg_c0.mask, 0);
	assert_int_equal(mlx5dv_query_port(context, 0, &port), EINVAL);
	assert_int_equal(mlx5dv_query_port(context, 2, &port), EINVAL);
	assert_int_equal(mlx5dv_query_port(context, UINT32_MAX, &port), EINVAL);

	/* The structure of an older header is shorter. */
	memset(small, 0xff, sizeof(small));
	assert_int_equal(_mlx5dv_query_port(context, 1, (struct mlx5dv_port *)(void *)small, 8), 0);
	for (size_t i = 0; i < sizeof(small); i++)
		assert_int_equal(small[i], i < 8 ? 0 : 0xff);
	assert_int_equal(ibv_close_device(context), 0);
}

TEST(reserved_qpns_are_unique)
{
	struct ibv_context *context = open_device();
	static uint32_t qpn[1000];

	for (int i = 0; i < 1000; i++) {
		assert_int_equal(mlx5dv_reserved_qpn_alloc(context, &qpn[i]), 0);
		assert_in_range(qpn[i], 2, (1 << 24) - 1);
		for (int j = 0; j < i; j++)
			assert_int_not_equal(qpn[i], qpn[j]);
	}
	for (int i = 0; i < 1000; i++)
		assert_int_equal(mlx5dv_reserved_qpn_dealloc(context, qpn[i]), 0);
	assert_int_equal(mlx5dv_reserved_qpn_dealloc(context, qpn[0]), EINVAL);
	assert_int_equal(mlx5dv_reserved_qpn_dealloc(context, 0), EINVAL);
	assert_int_equal(mlx5dv_reserved_qpn_dealloc(context, UINT32_MAX), EINVAL);
	assert_int_equal(ibv_close_device(context), 0);
}

/* The number of an existing QP cannot be released. */
TEST_WITH(reserved_qpn_of_a_living_qp, program_open, program_close)
{
	assert_int_equal(mlx5dv_reserved_qpn_dealloc(client.context, pair.client.qp->qp_num), EINVAL);
}

TEST(device_memory_by_type)
{
	struct ibv_context *context = open_device();
	struct ibv_alloc_dm_attr attr = {.length = 64};
	struct mlx5dv_alloc_dm_attr dv = {.type = MLX5DV_DM_TYPE_MEMIC};
	struct ibv_dm *dm = mlx5dv_alloc_dm(context, &attr, &dv);
	struct mlx5dv_obj obj = {0};
	struct mlx5dv_dm out = {.comp_mask = MLX5DV_DM_MASK_REMOTE_VA};
	char text[8] = "";

	assert_non_null(dm);
	assert_int_equal(ibv_memcpy_to_dm(dm, 8, "softhca", 8), 0);
	obj.dm.in = dm;
	obj.dm.out = &out;
	assert_int_equal(mlx5dv_init_obj(&obj, MLX5DV_OBJ_DM), 0);
	assert_int_equal(out.length, 64);
	assert_int_equal(out.comp_mask, 0);
	memcpy(text, (char *)out.buf + 8, 8);
	assert_string_equal(text, "softhca");
	assert_int_equal(ibv_free_dm(dm), 0);

	dv.comp_mask = 1;
	assert_null(mlx5dv_alloc_dm(context, &attr, &dv));
	assert_int_equal(errno, EINVAL);
	dv = (struct mlx5dv_alloc_dm_attr){.type = MLX5DV_DM_TYPE_STEERING_SW_ICM};
	assert_null(mlx5dv_alloc_dm(context, &attr, &dv));
	assert_int_equal(errno, EOPNOTSUPP);
	dv.type = 77;
	dv.comp_mask = 1; /* checked after the type */
	assert_null(mlx5dv_alloc_dm(context, &attr, &dv));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_close_device(context), 0);
}

/* ---- keys ------------------------------------------------------------------------------------------ */

TEST(mkey_flags_in_order)
{
	static const struct {
		uint32_t flags;
		uint16_t entries;
		int error;
	} row[] = {
		{0, 1, EOPNOTSUPP},
		{0, UINT16_MAX, EOPNOTSUPP},
		{32, 1, EOPNOTSUPP},
		{1 | UINT32_C(1) << 31, 1, EOPNOTSUPP},
		{2 | 32, 1, EOPNOTSUPP},
		{2, UINT16_MAX, EINVAL},
		{1, 32769, EINVAL},
		{1, UINT16_MAX, EINVAL},
		{1, 32768, 0},
		{1, 0, 0},
		{8, 1, 0},
		{16, 1, 0},
		{1 | 8 | 16, 1, 0},
		{1 | 2, 1, 0},
		{1 | 4, 1, 0},
		{1 | 2 | 4 | 8 | 16, 1, 0},
		{2, 32768, 0},
	};
	struct ibv_context *context = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(context);

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct mlx5dv_mkey_init_attr attr = {
			.pd = pd, .create_flags = row[i].flags, .max_entries = row[i].entries};
		struct mlx5dv_mkey *mkey;

		errno = 0;
		mkey = mlx5dv_create_mkey(&attr);
		if (row[i].error) {
			assert_null(mkey);
			assert_int_equal(errno, row[i].error);
			assert_int_equal(attr.max_entries, row[i].entries);
			continue;
		}
		assert_non_null(mkey);
		assert_int_equal(mkey->lkey, mkey->rkey);
		assert_int_equal(mkey->lkey & 0xff, 0);
		assert_int_not_equal(mkey->lkey, 0);
		/* The PD has a key and cannot be deallocated. */
		assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
		assert_int_equal(mlx5dv_destroy_mkey(mkey), 0);
	}
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

/* "greater than or equal to the value requested" */
TEST(mkey_capacity_is_reported)
{
	static const uint16_t asked[] = {0, 1, 3, 4, 5, 8, 9, 32767}, got[] = {0, 4, 4, 4, 8, 8, 12, 32768};
	struct ibv_context *context = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct mlx5dv_mkey *mkey[8];

	for (int i = 0; i < 8; i++) {
		struct mlx5dv_mkey_init_attr attr = {
			.pd = pd,
			.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
			.max_entries = asked[i],
		};

		mkey[i] = mlx5dv_create_mkey(&attr);
		assert_non_null(mkey[i]);
		assert_int_equal(attr.max_entries, got[i]);
		for (int j = 0; j < i; j++)
			assert_int_not_equal(mkey[i]->lkey, mkey[j]->lkey);
	}
	for (int i = 0; i < 8; i++)
		assert_int_equal(mlx5dv_destroy_mkey(mkey[i]), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

/* ---- QPs ------------------------------------------------------------------------------------------- */

TEST_WITH(udp_source_port_needs_a_running_connection, program_open, program_close)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	assert_int_equal(mlx5dv_modify_qp_udp_sport(pair.client.qp, 55555), 0);
	pair_close(&pair);
	pair_create(&pair, &client, &server, &options);
	assert_int_equal(mlx5dv_modify_qp_udp_sport(pair.client.qp, 55555), EOPNOTSUPP);
	endpoint_to_init(&pair.client);
	assert_int_equal(mlx5dv_modify_qp_udp_sport(pair.client.qp, 55555), EOPNOTSUPP);
	options = pair_defaults(IBV_QPT_UD);
	pair_replace(&pair, &options);
	assert_int_equal(mlx5dv_modify_qp_udp_sport(pair.client.qp, 55555), EOPNOTSUPP);
}

TEST_WITH(no_link_aggregation, program_open, program_close)
{
	uint8_t port, active;

	assert_int_equal(mlx5dv_query_qp_lag_port(pair.client.qp, &port, &active), EOPNOTSUPP);
	assert_int_equal(mlx5dv_modify_qp_lag_port(pair.client.qp, 1), EOPNOTSUPP);
}

static struct ibv_qp *create_qp_with(enum ibv_qp_type type, uint64_t dv_send_ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = pair.client.cq,
		.recv_cq = pair.client.cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = client.pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.send_ops_flags = dv_send_ops,
	};

	errno = 0;
	return mlx5dv_create_qp(client.context, &attr, &dv);
}

/* mlx5dv_wr_post(3), USAGE: creating a QP fails if its type does not support all requested builders. */
TEST_WITH(qp_with_builders_of_its_type, program_open, program_close)
{
	/* RC supports all of them; UC and UD support raw WQEs. */
	for (uint64_t ops = 1; ops < 64; ops++) {
		static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

		for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
			struct ibv_qp *qp;

			note("type %d, flags %#lx", types[i], (unsigned long)ops);
			qp = create_qp_with(types[i], ops);
			if (types[i] == IBV_QPT_RC ? ops < 32 : ops == MLX5DV_QP_EX_WITH_RAW_WQE) {
				assert_non_null(qp);
				assert_int_equal(ibv_destroy_qp(qp), 0);
			} else {
				assert_null(qp);
				assert_int_equal(errno, EOPNOTSUPP);
			}
		}
	}
}

/* ---- rings by hand --------------------------------------------------------------------------------- */

struct rings {
	struct mlx5dv_qp qp;
	struct mlx5dv_cq cq;
	struct mlx5dv_pd pd;
	struct mlx5_cqe64 *cqe;
};

static struct rings rings_of(struct endpoint *endpoint)
{
	struct rings rings = {.qp.comp_mask = UINT64_MAX, .cq.comp_mask = UINT64_MAX, .pd.comp_mask = UINT64_MAX};
	struct mlx5dv_obj obj = {
		.qp = {.in = endpoint->qp, .out = &rings.qp},
		.cq = {.in = endpoint->cq, .out = &rings.cq},
		.pd = {.in = endpoint->side->pd, .out = &rings.pd},
	};

	expect_error(mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ | MLX5DV_OBJ_PD), 0);
	rings.cqe = rings.cq.buf;
	return rings;
}

/* Expects one completion in the CQ, not polled yet. */
static void expect_one_cqe(const struct rings *rings, uint8_t opcode, uint32_t qp_num)
{
	assert_int_equal(mlx5dv_get_cqe_opcode(&rings->cqe[0]), opcode);
	assert_int_equal(mlx5dv_get_cqe_owner(&rings->cqe[0]), 0);
	assert_int_equal(be32toh(rings->cqe[0].sop_drop_qpn) & 0xffffff, qp_num);
	assert_int_equal(mlx5dv_get_cqe_opcode(&rings->cqe[1]), MLX5_CQE_INVALID);
	assert_int_equal(be32toh(rings->cq.dbrec[0]), 0);
}

/* The QP and CQ rings that mlx5dv_init_obj(3) returns contain the entries of ordinary calls. */
TEST_WITH(rings_are_the_real_ones, program_open, program_close)
{
	struct rings client_rings = rings_of(&pair.client), server_rings = rings_of(&pair.server);
	struct mlx5dv_qp *qp = &client_rings.qp;
	struct mlx5dv_cq *cq = &client_rings.cq;
	struct ibv_send_wr send = {.wr_id = 6,
				   .opcode = IBV_WR_SEND_WITH_IMM,
				   .send_flags = IBV_SEND_SIGNALED,
				   .imm_data = htobe32(0x12345678)};
	const uint8_t *wqe = qp->sq.buf;

	assert_int_equal(qp->comp_mask, 0);
	assert_int_equal(qp->sq.stride, 64);
	assert_int_equal(qp->rq.stride, 16 * PAIR_SGES);
	assert_int_equal(qp->rq.wqe_cnt, PAIR_WRS);
	assert_int_equal(qp->bf.size, 0);
	assert_int_equal(cq->comp_mask, 0);
	assert_int_equal(cq->cqe_cnt, pair.client.cq->cqe + 1);
	assert_int_equal(cq->cqe_size, 64);
	assert_int_equal(client_rings.pd.comp_mask, 0);

	post_receive(&pair.server, 5, NULL, 0);
	assert_int_equal(be32toh(server_rings.qp.dbrec[MLX5_RCV_DBR]), 1);
	assert_int_equal(be32toh(server_rings.qp.dbrec[MLX5_SND_DBR]), 0);
	/* The lkey of the terminating entry. */
	assert_int_equal(be32toh(((__be32 *)server_rings.qp.rq.buf)[1]), 0x100);
	post_send(&pair.client, &send);
	assert_int_equal(be32toh(qp->dbrec[MLX5_SND_DBR]), 1);
	assert_int_equal(wqe[3], MLX5_OPCODE_SEND_IMM);
	assert_int_equal(wqe[4] << 16 | wqe[5] << 8 | wqe[6], pair.client.qp->qp_num);

	expect_one_cqe(&client_rings, MLX5_CQE_REQ, pair.client.qp->qp_num);
	assert_int_equal(be32toh(client_rings.cqe->sop_drop_qpn) >> 24, MLX5_OPCODE_SEND_IMM);
	expect_one_cqe(&server_rings, MLX5_CQE_RESP_SEND_IMM, pair.server.qp->qp_num);
	assert_int_equal(be32toh(server_rings.cqe->imm_inval_pkey), 0x12345678);
	expect_completion(&pair.client, 6, IBV_WC_SEND);
	expect_completion(&pair.server, 5, IBV_WC_RECV);
	assert_int_equal(be32toh(cq->dbrec[0]), 1);

	/* Doorbell registers: writing to them must not crash the program. */
	*(volatile uint64_t *)qp->bf.reg = UINT64_MAX;
	*(volatile uint64_t *)((uint8_t *)qp->bf.reg + 256) = UINT64_MAX;
	*(volatile uint64_t *)((uint8_t *)cq->cq_uar + MLX5_CQ_DOORBELL) = UINT64_MAX;
}

/* Both CQE sizes work, other sizes are rejected, and the ring has entries of that size. */
TEST(completion_queue_with_a_cqe_size)
{
	static const uint16_t sizes[] = {64, 128, 0, 32, 100, 256};
	struct ibv_context *context = open_device();

	for (int i = 0; i < 6; i++) {
		struct ibv_cq_init_attr_ex attr = {.cqe = 10};
		struct mlx5dv_cq_init_attr dv = {.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE, .cqe_size = sizes[i]};
		struct mlx5dv_cq out = {0};
		struct mlx5dv_obj obj = {.cq.out = &out};
		struct ibv_cq_ex *cq;

		errno = 0;
		cq = mlx5dv_create_cq(context, &attr, &dv);
		if (i >= 2) {
			assert_null(cq);
			assert_int_equal(errno, EINVAL);
			continue;
		}
		assert_non_null(cq);
		obj.cq.in = ibv_cq_ex_to_cq(cq);
		assert_int_equal(mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ), 0);
		assert_int_equal(out.cqe_size, sizes[i]);
		assert_int_equal(out.cqe_cnt, 16);
		for (uint32_t j = 0; j < 16; j++)
			assert_int_equal(((uint8_t *)out.buf)[(j + 1) * sizes[i] - 1], 0xf0);
		assert_int_equal(ibv_destroy_cq(obj.cq.in), 0);
	}
	assert_int_equal(ibv_close_device(context), 0);
}

TEST_WITH(shared_receive_queue_and_address_by_hand, program_open, program_close)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 7, .max_sge = 1}};
	struct ibv_ah_attr address = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 9, .flow_label = 0x12345}};
	struct mlx5dv_srq srq = {.comp_mask = UINT64_MAX};
	struct mlx5dv_ah ah = {.comp_mask = UINT64_MAX};
	struct mlx5dv_obj obj = {.srq.out = &srq, .ah.out = &ah};
	struct ibv_recv_wr recv = {.wr_id = 5}, *bad;
	uint32_t number;

	obj.srq.in = ibv_create_srq(client.pd, &init);
	assert_non_null(obj.srq.in);
	address.grh.dgid = server.gid;
	address.grh.sgid_index = client.gid_index;
	obj.ah.in = ibv_create_ah(client.pd, &address);
	assert_non_null(obj.ah.in);
	assert_int_equal(mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ | MLX5DV_OBJ_AH), 0);

	assert_int_equal(srq.comp_mask, MLX5DV_SRQ_MASK_SRQN);
	assert_int_equal(srq.stride, 32);
	assert_int_equal(ibv_get_srq_num(obj.srq.in, &number), 0);
	assert_int_equal(srq.srqn, number);
	assert_int_equal(srq.head, 0);
	assert_int_equal(be32toh(srq.dbrec[0]), 0);
	assert_int_equal(ibv_post_srq_recv(obj.srq.in, &recv, &bad), 0);
	assert_int_equal(be32toh(srq.dbrec[0]), 1);
	assert_int_equal(be16toh(((struct mlx5_wqe_srq_next_seg *)srq.buf)->next_wqe_index), 1);

	assert_int_equal(ah.comp_mask, 0);
	assert_int_equal(ah.av->hop_limit, 9);
	assert_memory_equal(ah.av->rgid, &server.gid, 16);
	assert_int_equal(be32toh(ah.av->grh_gid_fl) & 0xfffff, 0x12345);
	assert_int_equal(be32toh(ah.av->grh_gid_fl) >> 30, 0); /* reserved on Ethernet, where a GRH is always present */
	assert_int_equal(ah.av->dqp_dct, 0);

	assert_int_equal(ibv_destroy_ah(obj.ah.in), 0);
	assert_int_equal(ibv_destroy_srq(obj.srq.in), 0);
}

TEST(init_obj_without_objects)
{
	struct mlx5dv_obj obj = {0};

	assert_int_equal(mlx5dv_init_obj(&obj, 0), EINVAL);
	assert_int_equal(mlx5dv_init_obj(&obj, UINT64_C(1) << 40), EINVAL);
	assert_int_equal(mlx5dv_init_obj(&obj, MLX5DV_OBJ_RWQ), EOPNOTSUPP);
}

/* The version of old programs returns the location of the doorbell page's address instead of the address. */
TEST_WITH(init_obj_of_version_1_0, program_open, program_close)
{
	int (*old)(struct mlx5dv_obj *, uint64_t) = dlvsym(RTLD_DEFAULT, "mlx5dv_init_obj", "MLX5_1.0");
	struct mlx5dv_cq now = {0}, then = {0};
	struct mlx5dv_obj obj = {.cq.out = &now};

	assert_non_null(old);
	obj.cq.in = pair.client.cq;
	assert_int_equal(mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ), 0);
	obj.cq.out = &then;
	assert_int_equal(old(&obj, MLX5DV_OBJ_CQ), 0);
	assert_ptr_not_equal(then.cq_uar, now.cq_uar);
	assert_ptr_equal(*(void **)then.cq_uar, now.cq_uar);
	assert_int_equal(then.cqn, now.cqn);
}
