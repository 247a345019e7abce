/* SPDX-License-Identifier: BSD-2-Clause */
/* Creating and connecting QPs, see pair.h. */
#include "support/pair.h"

enum {
	CQ_ENTRIES = 255,     /* both queues of a QP, all of it flushed */
	FIRST_PSN = 0xfffff0, /* wraps after a few packets */
	UD_OPS = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
	UC_OPS = UD_OPS | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE |
		 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV,
	RC_OPS = UC_OPS | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
		 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
};

struct pair_options pair_defaults(enum ibv_qp_type type)
{
	return (struct pair_options){
		.type = type,
		.max_send_wr = PAIR_WRS,
		.max_send_sge = PAIR_SGES,
		.send_ops = type == IBV_QPT_RC   ? RC_OPS
			    : type == IBV_QPT_UC ? UC_OPS
						 : UD_OPS,
		.dv_send_ops = type == IBV_QPT_RC ? DV_KEY_OPS : 0,
		.cqe = CQ_ENTRIES,
		.access = SIDE_REMOTE,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
	};
}

static void create_cq(struct endpoint *endpoint, const struct pair_options *options, struct ibv_cq *given)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = (uint32_t)options->cqe, .wc_flags = IBV_WC_STANDARD_FLAGS};

	endpoint->cq = given;
	endpoint->owns_cq = !given;
	if (given)
		return;
	if (options->channel) {
		endpoint->channel = ibv_create_comp_channel(endpoint->side->context);
		assert_non_null(endpoint->channel);
	}
	if (!options->extended_cq) {
		endpoint->cq = ibv_create_cq(endpoint->side->context, options->cqe, endpoint, endpoint->channel, 0);
		assert_non_null(endpoint->cq);
		return;
	}
	endpoint->cq_ex = ibv_create_cq_ex(endpoint->side->context, &attr);
	assert_non_null(endpoint->cq_ex);
	endpoint->cq = ibv_cq_ex_to_cq(endpoint->cq_ex);
}

static void create_qp(struct endpoint *endpoint, const struct pair_options *options, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr_ex attr = {
		.srq = srq,
		.send_cq = endpoint->cq,
		.recv_cq = endpoint->cq,
		.cap = {.max_send_wr = options->max_send_wr,
			.max_recv_wr = PAIR_WRS,
			.max_send_sge = options->max_send_sge,
			.max_recv_sge = PAIR_SGES,
			.max_inline_data = options->max_inline_data},
		.qp_type = options->type,
		.sq_sig_all = options->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = endpoint->side->pd,
		.send_ops_flags = options->send_ops,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = (options->dv_send_ops ? MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS : 0) |
			     (options->dv_create_flags ? MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS : 0),
		.create_flags = options->dv_create_flags,
		.send_ops_flags = options->dv_send_ops,
	};

	endpoint->qp = mlx5dv_create_qp(endpoint->side->context, &attr, &dv);
	assert_non_null(endpoint->qp);
	endpoint->cap = attr.cap;
	endpoint->ex = ibv_qp_to_qp_ex(endpoint->qp);
	assert_non_null(endpoint->ex);
	endpoint->dv = mlx5dv_qp_ex_from_ibv_qp_ex(endpoint->ex);
	assert_non_null(endpoint->dv);
}

static struct ibv_ah_attr path_to_peer(const struct endpoint *endpoint)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = endpoint->peer->side->gid, .sgid_index = endpoint->side->gid_index, .hop_limit = 1},
	};
}

void pair_create(struct pair *pair, struct side *client, struct side *server, const struct pair_options *options)
{
	*pair = (struct pair){
		.options = *options,
		.client = {.options = &pair->options, .side = client, .peer = &pair->server},
		.server = {.options = &pair->options, .side = server, .peer = &pair->client},
	};
	create_cq(&pair->client, options, options->client_cq);
	create_cq(&pair->server, options, options->server_cq);
	create_qp(&pair->client, options, NULL);
	create_qp(&pair->server, options, options->srq);
}

void endpoint_to_init(struct endpoint *endpoint)
{
	bool datagram = endpoint->qp->qp_type == IBV_QPT_UD;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = endpoint->options->access,
		.qkey = PAIR_QKEY,
	};

	expect_error(ibv_modify_qp(endpoint->qp, &attr,
				   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					   (datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)),
		     0);
}

void endpoint_to_rtr(struct endpoint *endpoint)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = endpoint->peer->qp->qp_num,
		.rq_psn = (FIRST_PSN + endpoint->options->later_psn) & 0xffffff,
		.max_dest_rd_atomic = endpoint->options->max_dest_rd_atomic,
		.min_rnr_timer = endpoint->options->min_rnr_timer,
		.ah_attr = path_to_peer(endpoint),
	};
	int mask = IBV_QP_STATE;

	if (endpoint->qp->qp_type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (endpoint->qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	expect_error(ibv_modify_qp(endpoint->qp, &attr, mask), 0);
}

void endpoint_to_rts(struct endpoint *endpoint)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = (FIRST_PSN + endpoint->options->later_psn) & 0xffffff,
		.timeout = endpoint->options->timeout,
		.retry_cnt = endpoint->options->retry_cnt,
		.rnr_retry = endpoint->options->rnr_retry,
		.max_rd_atomic = endpoint->options->max_rd_atomic,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (endpoint->qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	expect_error(ibv_modify_qp(endpoint->qp, &attr, mask), 0);
}

static void connect_endpoint(struct endpoint *endpoint)
{
	struct ibv_ah_attr path = path_to_peer(endpoint);

	endpoint_to_init(endpoint);
	endpoint_to_rtr(endpoint);
	if (endpoint->qp->qp_type == IBV_QPT_UD) {
		endpoint->ah = ibv_create_ah(endpoint->side->pd, &path);
		assert_non_null(endpoint->ah);
	}
}

void pair_connect(struct pair *pair)
{
	connect_endpoint(&pair->client);
	connect_endpoint(&pair->server);
	endpoint_to_rts(&pair->client);
	endpoint_to_rts(&pair->server);
}

void pair_open(struct pair *pair, struct side *client, struct side *server, const struct pair_options *options)
{
	pair_create(pair, client, server, options);
	pair_connect(pair);
}

void endpoint_destroy_qp(struct endpoint *endpoint)
{
	expect_error(ibv_destroy_qp(endpoint->qp), 0);
	endpoint->qp = NULL;
}

static void close_endpoint(struct endpoint *endpoint)
{
	if (endpoint->ah)
		expect_error(ibv_destroy_ah(endpoint->ah), 0);
	if (endpoint->qp)
		endpoint_destroy_qp(endpoint);
	if (endpoint->owns_cq)
		expect_error(ibv_destroy_cq(endpoint->cq), 0);
	if (endpoint->channel)
		expect_error(ibv_destroy_comp_channel(endpoint->channel), 0);
}

void pair_close(struct pair *pair)
{
	close_endpoint(&pair->client);
	close_endpoint(&pair->server);
}

void pair_replace(struct pair *pair, const struct pair_options *options)
{
	struct side *client = pair->client.side, *server = pair->server.side;
	struct pair_options kept = *options;

	pair_close(pair);
	pair_open(pair, client, server, &kept);
}

void pair_renew(struct pair *pair)
{
	pair_replace(pair, &pair->options);
}

struct endpoint *pair_at(struct pair *pair, const struct side *side)
{
	return pair->client.side == side ? &pair->client : &pair->server;
}

void expect_state_(struct place place, struct endpoint *endpoint, enum ibv_qp_state state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	expect_error_(place, "ibv_query_qp()", ibv_query_qp(endpoint->qp, &attr, IBV_QP_STATE, &init), 0);
	if (attr.qp_state != state)
		fail_at(place, "the %s's QP is in state %d, not %d", endpoint->side->name, attr.qp_state, state);
}
