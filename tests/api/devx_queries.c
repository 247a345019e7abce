/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QUERY_QP, QUERY_CQ, QUERY_RMP, QUERY_DCT and QUERY_MKEY return the whole context of the object: for objects by command, the
 * words that CREATE wrote; for those of verbs, the attributes of ibv_create_qp(3) (rdma-core's test_devx_async_query checks
 * log_rq_size). Bytes and bits are those of the mlx5_ifc structures of Linux and rdma-core.
 */
#include "support/devx.h"

enum { CONTEXT_BYTES = 272 };

static void query_qp(struct ibv_qp *verbs, const struct own *own, uint8_t out[CONTEXT_BYTES])
{
	struct command command = command_of(0x50b);

	memset(out, 0xa5, CONTEXT_BYTES);
	put32(command.in, 8, verbs ? verbs->qp_num : own->qpn);
	assert_int_equal(verbs ? mlx5dv_devx_qp_query(verbs, command.in, 16, out, CONTEXT_BYTES)
			       : mlx5dv_devx_obj_query(own->qp, command.in, 16, out, CONTEXT_BYTES),
			 0);
}

/* A word of a context: its byte, and the bits that CREATE sets and the device does not change. */
struct word {
	size_t byte;
	uint32_t bits;
};

static void expect_words(const uint8_t *out, const uint8_t *created, const struct word *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if ((get32(out, words[i].byte) ^ get32(created, words[i].byte)) & words[i].bits)
			fail_msg("word at byte %zu is %#x, CREATE wrote %#x, of which bits %#x count", words[i].byte,
				 get32(out, words[i].byte), get32(created, words[i].byte), words[i].bits);
}

#define EXPECT_WORDS(out, created, words) expect_words(out, created, words, sizeof(words) / sizeof((words)[0]))

static void query(struct mlx5dv_devx_obj *object, uint16_t opcode, uint32_t number, uint8_t *out, size_t bytes)
{
	struct command command = command_of(opcode);

	memset(out, 0xa5, bytes);
	put32(command.in, 8, number);
	assert_int_equal(mlx5dv_devx_obj_query(object, command.in, 16, out, bytes), 0);
}

TEST(qp_by_command)
{
	static const struct word words[] = {
		{24, 0x00ff1800},                     /* st, pm_state */
		{28, 0x04ffffff},                     /* drain_sigerr, pd */
		{32, 0x007ff800},                     /* log_rq_size, log_rq_stride, no_sq, log_sq_size */
		{36, 0x00ffffff},                     /* uar_page */
		{40, 0x00ffffff},                     /* user_index */
		{148, 0xffffff},                      /* cqn_snd */
		{168, 0xfc0},                         /* page_offset */
		{180, 0xffffff},                      /* cqn_rcv */
		{184, UINT32_MAX},                    /* dbr_addr */
		{188, UINT32_MAX}, {196, 0x07000000}, /* rq_type */
		{220, 0x0000ff00},                    /* cs_req */
		{252, UINT32_MAX},                    /* dbr_umem_id */
	};
	struct own own;
	struct command command;
	uint8_t out[CONTEXT_BYTES];

	own_open_cq(&own, &client);
	command = qp_command(&own, 0);
	put32(command.in, 28, 1u << 26 | own.pdn);
	put32(command.in, 32, 3u << 19 | 2u << 16 | 5u << 11);
	put32(command.in, 40, 0x123456);
	put32(command.in, 220, 0x1100);
	own.qp = create(client.context, &command, CONTEXT_BYTES);
	assert_non_null(own.qp);
	own.qpn = created_number(&command);
	query_qp(NULL, &own, out);
	EXPECT_WORDS(out, command.in, words);
	assert_true(get32(out, 232) >> 28 & 1); /* dbr_umem_valid, which the kernel sets */
	own_close(&own);
}

/* Checks path attributes that ibv_query_qp(3) does not return. */
TEST(qp_after_its_path)
{
	static const struct word words[] = {
		{44, 0x00ffffff}, /* remote_qpn */
		{48, 0x80000000}, /* fl */
		{60, 0x0fffffff}, /* tclass, flow_label */
		{80, 0x003fffff}, /* dscp, udp_sport */
		{84, 0x00ffffff}, /* vhca_port_num, rmac */
		{88, UINT32_MAX}, /* rmac */
	};
	struct command command = command_of(0x503);
	uint8_t out[CONTEXT_BYTES];
	struct own own;

	own_open(&own, &client, 0);
	own_to_init(&own);
	put32(command.in, 32, 3u << 29 | 30u << 24);
	put32(command.in, 44, own.qpn);
	put32(command.in, 48, 1u << 31);
	put32(command.in, 56, 64);
	put32(command.in, 60, 5u << 22 | 0x12345);
	put32(command.in, 80, 5u << 16 | 0xc123);
	put32(command.in, 84, 1u << 16 | 0x0203);
	put32(command.in, 88, 0x04050607);
	assert_int_equal(own_modify(&own, &command, 272), 0);
	query_qp(NULL, &own, out);
	EXPECT_WORDS(out, command.in, words);
	own_to_rts(&own);
	command = command_of(0x50a);
	assert_int_equal(own_modify(&own, &command, 16), 0);
	query_qp(NULL, &own, out);
	assert_int_equal(get32(out, 24) >> 28, 0);
	own_close(&own);
}

static uint32_t cq_number(struct ibv_cq *cq)
{
	struct mlx5dv_cq dv = {0};
	struct mlx5dv_obj object = {.cq = {cq, &dv}};

	assert_int_equal(mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ), 0);
	return dv.cqn;
}

static uint32_t srq_number(struct ibv_srq *srq)
{
	struct mlx5dv_srq dv = {.comp_mask = MLX5DV_SRQ_MASK_SRQN};
	struct mlx5dv_obj object = {.srq = {srq, &dv}};

	assert_int_equal(mlx5dv_init_obj(&object, MLX5DV_OBJ_SRQ), 0);
	assert_true(dv.comp_mask & MLX5DV_SRQ_MASK_SRQN);
	return dv.srqn;
}

TEST(qp_of_verbs)
{
	struct ibv_cq *send_cq = ibv_create_cq(client.context, 16, NULL, NULL, 0);
	struct ibv_cq *recv_cq = ibv_create_cq(client.context, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = send_cq,
		.recv_cq = recv_cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp *qp = ibv_create_qp(client.pd, &init);
	uint8_t out[CONTEXT_BYTES];

	assert_non_null(qp);
	query_qp(qp, NULL, out);
	assert_int_equal(get32(out, 32) >> 19 & 15, 6); /* log_rq_size */
	assert_int_equal(get32(out, 32) >> 16 & 7, 0);  /* log_rq_stride: 16 bytes */
	assert_true(1u << (get32(out, 32) >> 11 & 15) >= 16);
	assert_int_equal(get32(out, 28) & 0xffffff, pd_number(client.pd));
	assert_int_equal(get32(out, 148) & 0xffffff, cq_number(send_cq));
	assert_int_equal(get32(out, 180) & 0xffffff, cq_number(recv_cq));
	assert_int_equal(get32(out, 196) >> 24 & 7, 0); /* rq_type: private queue */
	expect_error(ibv_destroy_qp(qp), 0);
	expect_error(ibv_destroy_cq(recv_cq), 0);
	expect_error(ibv_destroy_cq(send_cq), 0);
}

TEST(qp_with_an_srq)
{
	struct ibv_srq_init_attr shared = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(client.pd, &shared);
	struct ibv_qp_init_attr init = {
		.send_cq = pair.client.cq,
		.recv_cq = pair.client.cq,
		.srq = srq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_send_sge = 1},
	};
	struct ibv_qp *qp = ibv_create_qp(client.pd, &init);
	uint8_t out[CONTEXT_BYTES];

	assert_non_null(qp);
	query_qp(qp, NULL, out);
	assert_int_equal(get32(out, 196) >> 24 & 7, 1); /* rq_type: shared */
	assert_int_equal(get32(out, 196) & 0xffffff, srq_number(srq));
	expect_error(ibv_destroy_qp(qp), 0);
	expect_error(ibv_destroy_srq(srq), 0);
}

TEST(cq_by_command)
{
	static const struct word words[] = {
		{16, 0x00f2c000}, /* cqe_sz, cc, oi, cqe_comp_en */
		{20, UINT32_MAX}, /* dbr_umem_id */
		{24, 0x00000fc0}, /* page_offset */
		{28, 0x1fffffff}, /* log_cq_size, uar_page */
		{32, 0x0fffffff}, /* cq_period, cq_max_count */
		{36, 0x000000ff}, /* c_eqn */
		{72, UINT32_MAX}, /* dbr_addr */
		{76, UINT32_MAX},
	};
	struct mlx5dv_devx_obj *cq;
	uint8_t out[CONTEXT_BYTES];
	struct command command;
	struct own own;

	own_open_cq(&own, &client);
	assert_int_equal(mlx5dv_devx_query_eqn(client.context, 1, &own.eqn), 0);
	command = cq_command(&own);
	put32(command.in, 16, 1u << 17);
	put32(command.in, 24, 2u << 6);
	put32(command.in, 32, 7u << 16 | 3);
	cq = create(client.context, &command, CONTEXT_BYTES);
	assert_non_null(cq);
	query(cq, 0x402, created_number(&command), out, sizeof(out));
	EXPECT_WORDS(out, command.in, words);
	assert_true(get32(out, 16) >> 25 & 1);          /* dbr_umem_valid */
	assert_int_equal(get32(out, 16) >> 28, 0);      /* status: OK */
	assert_int_equal(get32(out, 16) >> 8 & 15, 10); /* st: FIRED, as it was never armed */
	assert_int_equal(get32(out, 80), 0);            /* after the context, where CREATE has the umem of the ring */
	assert_int_equal(mlx5dv_devx_obj_destroy(cq), 0);
	own_close(&own);
}

/* Checks the status of a CQ that is full when a completion arrives: CQ_OVERFLOW. The completion is lost, so 64 were written. */
TEST(cq_that_overran)
{
	double deadline = seconds_now() + 20;
	uint8_t out[CONTEXT_BYTES];
	struct own own;

	own_open(&own, &client, 0);
	own_connect(&own, &own);
	for (uint32_t i = 0; i <= OWN_CQES; i++) {
		uint8_t wqe[16] = {0};

		put32(wqe, 8, 8);
		own_post(&own, MLX5_OPCODE_NOP, wqe, sizeof(wqe));
		while (i < OWN_CQES && own.memory[OWN_RING + i * 64 + 63] >> 4 == 0xf)
			assert_true(seconds_now() < deadline);
	}
	do {
		assert_true(seconds_now() < deadline);
		query(own.cq, 0x402, own.cqn, out, sizeof(out));
	} while (!(get32(out, 16) >> 28));
	assert_int_equal(get32(out, 16) >> 28, 9);
	assert_int_equal(get32(out, 60), OWN_CQES); /* producer_counter */
	assert_int_equal(get32(out, 56), 0);        /* consumer_counter */
	own_close(&own);
}

/* Checks st of a CQ that a program arms for a channel: armed for the next completion. */
TEST(cq_that_is_armed)
{
	struct mlx5dv_devx_event_channel *channel = mlx5dv_devx_create_event_channel(client.context, 0);
	double deadline = seconds_now() + 20;
	const uint16_t completion = 0;
	uint8_t out[CONTEXT_BYTES];
	struct own own;

	assert_non_null(channel);
	own_open(&own, &client, 0);
	own_connect(&own, &own);
	put32(own.memory + OWN_CQ_RECORD, 4, 1u << 28); /* arm_sn 1, index 0 */
	assert_int_equal(
		mlx5dv_devx_subscribe_devx_event(channel, own.cq, sizeof(completion), (uint16_t *)&completion, 1), 0);
	/* COMPLETION_REQUEST_ARMED, once the device has read the arm word. */
	do {
		assert_true(seconds_now() < deadline);
		query(own.cq, 0x402, own.cqn, out, sizeof(out));
	} while ((get32(out, 16) >> 8 & 15) != 9);
	own_close(&own);
	mlx5dv_devx_destroy_event_channel(channel);
}

/* Returns a command for an RMP of 16 entries, cyclic, with its record after that of the QP. */
static struct command rmp_command(const struct own *own)
{
	struct command command = command_of(0x90c);

	put32(command.in, 32, 1u << 20);             /* state: RDY */
	put32(command.in, 80, 1u << 28);             /* wq_type: cyclic */
	put32(command.in, 88, own->pdn);             /* pd */
	put32(command.in, 100, OWN_QP_RECORD + 64);  /* dbr_addr */
	put32(command.in, 112, 5u << 16 | 4);        /* log_wq_stride, log_wq_sz */
	put32(command.in, 120, own->umem->umem_id);  /* dbr_umem_id */
	put32(command.in, 124, own->umem->umem_id);  /* wq_umem_id */
	put32(command.in, 132, OWN_QUEUES + 0x1000); /* wq_umem_offset */
	return command;
}

TEST(rmp)
{
	static const struct word words[] = {
		{36, 0x80000000},                     /* basic_cyclic_rcv_wqe */
		{80, 0xf0000000},                     /* wq_type */
		{88, 0x00ffffff},                     /* pd */
		{96, UINT32_MAX},  {100, UINT32_MAX}, /* dbr_addr */
		{112, 0x000f1f1f},                    /* log_wq_stride, log_wq_pg_sz, log_wq_sz */
		{120, UINT32_MAX}, {124, UINT32_MAX}, /* dbr_umem_id, wq_umem_id */
		{128, UINT32_MAX}, {132, UINT32_MAX}, /* wq_umem_offset */
	};
	struct command command, change = command_of(0x90d);
	struct mlx5dv_devx_obj *rmp;
	uint8_t out[CONTEXT_BYTES];
	struct own own;
	uint32_t rmpn;

	own_open_cq(&own, &client);
	command = rmp_command(&own);
	put32(command.in, 104, 0x11111111); /* hw_counter and sw_counter, maintained by the device */
	put32(command.in, 108, 0x22222222);
	rmp = create(client.context, &command, CONTEXT_BYTES);
	assert_non_null(rmp);
	rmpn = created_number(&command);
	query(rmp, 0x90f, rmpn, out, sizeof(out));
	EXPECT_WORDS(out, command.in, words);
	assert_int_equal(get32(out, 32) >> 20 & 15, 1); /* state: RDY */
	assert_int_equal(get32(out, 84) & 0xffff, 0);   /* lwm */
	assert_int_equal(get32(out, 104), 0);
	assert_int_equal(get32(out, 108), 0);
	assert_int_equal(get32(out, 116) >> 30, 3); /* dbr_umem_valid, wq_umem_valid */
	/* 8 receives, and a limit of 5 that stays armed. */
	put32(own.memory + OWN_QP_RECORD + 64, 0, 8);
	put32(change.in, 8, 1u << 28 | rmpn);
	put32(change.in, 20, 1);
	put32(change.in, 32, 1u << 20);
	put32(change.in, 84, 5);
	assert_int_equal(mlx5dv_devx_obj_modify(rmp, change.in, CONTEXT_BYTES, change.out, 16), 0);
	query(rmp, 0x90f, rmpn, out, sizeof(out));
	assert_int_equal(get32(out, 84) & 0xffff, 5);
	assert_int_equal(mlx5dv_devx_obj_destroy(rmp), 0);
	own_close(&own);
}

TEST(dct_by_command)
{
	static const struct word words[] = {
		{20, 0x00ffffff},                   /* user_index */
		{24, 0x00ffffff},                   /* cqn */
		{28, 0x00fe0000},                   /* atomic_mode, rre, rwe, rae */
		{32, 0x00001f00},                   /* min_rnr_nak */
		{36, 0x00ffffff},                   /* srqn_xrqn */
		{40, 0x00ffffff},                   /* pd */
		{44, 0xff0fffff},                   /* tclass, flow_label */
		{48, UINT32_MAX}, {52, UINT32_MAX}, /* dc_access_key */
		{56, 0x07ffffff},                   /* mtu, port, pkey_index */
		{60, 0x00ff00ff},                   /* my_addr_index, hop_limit */
	};
	struct command made, command = command_of(0x710);
	struct mlx5dv_devx_obj *rmp, *dct;
	uint8_t out[128];
	struct own own;

	own_open_cq(&own, &client);
	made = rmp_command(&own);
	rmp = create(client.context, &made, CONTEXT_BYTES);
	assert_non_null(rmp);
	put32(command.in, 20, 0xabcdef);
	put32(command.in, 24, own.cqn);
	put32(command.in, 28, 0x003e0000);
	put32(command.in, 32, 0x00000d00);
	put32(command.in, 36, created_number(&made));
	put32(command.in, 40, own.pdn);
	put32(command.in, 44, 0x2c << 24 | 0x54321);
	put32(command.in, 48, 0x01234567);
	put32(command.in, 52, 0x89abcdef);
	put32(command.in, 56, 4u << 24 | 1u << 16);
	put32(command.in, 60, 1u << 16 | 64);
	dct = create(client.context, &command, 128);
	assert_non_null(dct);
	query(dct, 0x713, created_number(&command), out, sizeof(out));
	EXPECT_WORDS(out, command.in, words);
	assert_int_equal(out[16] & 15, 0);   /* state: ACTIVE */
	assert_int_equal(get32(out, 64), 0); /* dc_access_key_violation_count */
	assert_int_equal(mlx5dv_devx_obj_destroy(dct), 0);
	assert_int_equal(mlx5dv_devx_obj_destroy(rmp), 0);
	own_close(&own);
}

/* libmlx5 queries a DCT of mlx5dv_create_qp(3) by QUERY_DCT; the kernel refuses QUERY_QP, which is for other objects. */
TEST(dct_of_verbs)
{
	struct ibv_srq_init_attr shared = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(client.pd, &shared);
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = client.pd,
		.send_cq = pair.client.cq,
		.recv_cq = pair.client.cq,
		.srq = srq,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCT, .dct_access_key = 0x1234567890abcdef},
	};
	struct ibv_qp_attr ready = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
		.path_mtu = IBV_MTU_1024,
		.min_rnr_timer = 9,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.sgid_index = (uint8_t)client.gid_index, .hop_limit = 33, .traffic_class = 0x2c}},
	};
	struct ibv_qp *dct = mlx5dv_create_qp(client.context, &init, &dv);
	struct command command = command_of(0x713);
	uint8_t out[128];

	assert_non_null(dct);
	expect_error(ibv_modify_qp(dct, &ready, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		     0);
	ready.qp_state = IBV_QPS_RTR;
	expect_error(ibv_modify_qp(dct, &ready, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER), 0);
	put32(command.in, 8, dct->qp_num);
	memset(out, 0xa5, sizeof(out));
	assert_int_equal(mlx5dv_devx_qp_query(dct, command.in, 16, out, sizeof(out)), 0);
	assert_int_equal(get32(out, 24) & 0xffffff, cq_number(pair.client.cq));
	assert_int_equal(get32(out, 36) & 0xffffff, srq_number(srq));
	assert_int_equal(get32(out, 40) & 0xffffff, pd_number(client.pd));
	assert_int_equal(get32(out, 48), 0x12345678);
	assert_int_equal(get32(out, 52), 0x90abcdef);
	assert_int_equal(get32(out, 28) >> 17 & 7, 3);                           /* not rre; rwe, rae */
	assert_int_equal(get32(out, 32) >> 8 & 31, 9);                           /* min_rnr_nak */
	assert_int_equal(get32(out, 44) >> 24, 0x2c);                            /* tclass */
	assert_int_equal(get32(out, 56), 3u << 24 | 1u << 16);                   /* mtu, port, pkey_index */
	assert_int_equal(get32(out, 60), (uint32_t)client.gid_index << 16 | 33); /* my_addr_index, hop_limit */
	put32(command.in, 0, 0x50bu << 16);
	assert_int_equal(mlx5dv_devx_qp_query(dct, command.in, 16, out, sizeof(out)), EINVAL);
	expect_error(ibv_destroy_qp(dct), 0);
	expect_error(ibv_destroy_srq(srq), 0);
}

TEST(mkey)
{
	static const struct word words[] = {
		{16, 0x5c00ff00},                   /* free, access_mode, umr_en, a, rw, rr, lw, lr */
		{20, UINT32_MAX},                   /* qpn, mkey_7_0 */
		{28, 0x41ffffff},                   /* bsf_en, en_rinval, pd */
		{32, UINT32_MAX}, {36, UINT32_MAX}, /* start_addr */
		{40, UINT32_MAX}, {44, UINT32_MAX}, /* len */
		{48, UINT32_MAX},                   /* bsf_octword_size */
		{68, UINT32_MAX},                   /* translations_octword_size */
		{72, 0x0000001f},                   /* log_page_size */
		{76, 0x18000000},                   /* crypto_en */
	};
	struct command command = command_of(0x200), query_key = command_of(0x201);
	struct mlx5dv_devx_obj *key;
	uint8_t out[304];

	put32(command.in, 16, 1u << 30 | 0xbc00 | 2u << 8); /* free, umr_en, rw, rr, lw, lr; KLM */
	put32(command.in, 20, 0xffffff00 | 0x42);
	put32(command.in, 28, 1u << 30 | 1u << 24 | pd_number(client.pd));
	put64(command.in, 32, 0x1234567890000);
	put64(command.in, 40, 0x5000);
	put32(command.in, 48, 8);
	put32(command.in, 68, 16);
	key = create(client.context, &command, CONTEXT_BYTES);
	assert_non_null(key);
	query(key, 0x201, created_number(&command), out, sizeof(out));
	EXPECT_WORDS(out, command.in, words);
	/* pg_access requests the entries, which this device does not return. */
	put32(query_key.in, 8, created_number(&command));
	put32(query_key.in, 12, 1u << 31);
	errno = 0;
	expect_device_refusal(mlx5dv_devx_obj_query(key, query_key.in, 16, query_key.out, 16), &query_key, 3, 954);
	assert_int_equal(mlx5dv_devx_obj_destroy(key), 0);
}

/* After a UMR makes a free key live, with another range, the query returns the new state. */
TEST(mkey_after_a_umr)
{
	struct command command = command_of(0x200);
	struct mlx5dv_devx_obj *key;
	uint8_t wqe[192] = {0}, out[304];
	uint32_t number;
	struct own own;

	own_open(&own, &client, 0);
	own_connect(&own, &own);
	put32(command.in, 16, 1u << 30 | 0xbc00 | 2u << 8);
	put32(command.in, 20, 0xffffff00 | 0x42);
	put32(command.in, 28, own.pdn);
	put32(command.in, 68, 4);
	key = create(client.context, &command, CONTEXT_BYTES);
	assert_non_null(key);
	number = created_number(&command);
	put32(wqe, 8, 8);
	put32(wqe, 12, number << 8 | 0x42);
	wqe[16] = 0x80; /* inline */
	wqe[21] = 4;
	put64(wqe, 24, 1 | 1 << 6 | 1 << 29); /* LEN, START_ADDR, FREE */
	put64(wqe, 64 + 16, 0x770000);
	put64(wqe, 64 + 24, 4096);
	put_data(wqe, 128, 4096, client.mr->lkey, side_address(&client, 0));
	own_post(&own, MLX5_OPCODE_UMR, wqe, sizeof(wqe));
	assert_int_equal(own_next_cqe(&own).op_own >> 4, MLX5_CQE_REQ);
	query(key, 0x201, number, out, sizeof(out));
	assert_int_equal(get32(out, 16) >> 30 & 1, 0); /* free */
	assert_int_equal(get32(out, 32), 0);           /* start_addr */
	assert_int_equal(get32(out, 36), 0x770000);
	assert_int_equal(get32(out, 40), 0); /* len */
	assert_int_equal(get32(out, 44), 4096);
	assert_int_equal(get32(out, 20), 0xffffff42);       /* qpn, mkey_7_0 */
	assert_int_equal(get32(out, 16) >> 8 & 0xff, 0xbe); /* rights and mode as before */
	assert_int_equal(mlx5dv_devx_obj_destroy(key), 0);
	own_close(&own);
}
