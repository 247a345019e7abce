/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams, keys, windows, blocks and 4 KiB, see count.h. */
#include "count.h"

#include <string.h>

#define DEPTH 64
#define DATAGRAM_BYTES 64
#define GRH_BYTES 40
#define BLOCK 4096
#define RECORD 64
/* A layout of up to four pieces and a signature, in one request. */
#define INLINE_FOR_KEYS 124

/* ---- datagrams ------------------------------------------------------------------------------------------------ */

static void check(int error, const char *what)
{
	if (error)
		die("%s: %s", what, strerror(error));
}

static struct ibv_qp *datagram_qp(struct device *device, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1};
	struct ibv_qp *qp = ibv_create_qp(device->pd, &init);

	if (!qp)
		die("ibv_create_qp of UD");
	check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), "INIT");
	attr.qp_state = IBV_QPS_RTR;
	check(ibv_modify_qp(qp, &attr, IBV_QP_STATE), "RTR");
	attr.qp_state = IBV_QPS_RTS;
	check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
	return qp;
}

static struct message *datagram_new(struct device *device)
{
	struct ibv_ah_attr path = {
		.is_global = 1, .port_num = 1, .grh = {.sgid_index = device->gid_index, .hop_limit = 1}};
	struct pair *pair = allocate(sizeof(*pair));
	struct message *message;

	pair->cq = ibv_create_cq(device->context, 4 * DEPTH, NULL, NULL, 0);
	if (!pair->cq)
		die("ibv_create_cq");
	for (int i = 0; i < 2; i++)
		pair->qp[i] = datagram_qp(device, pair->cq);
	message = message_new(device, pair, IBV_WR_SEND, DATAGRAM_BYTES);
	message->receive_sge.length += GRH_BYTES;
	path.grh.dgid = device->gid;
	message->wr.wr.ud.ah = ibv_create_ah(device->pd, &path);
	if (!message->wr.wr.ud.ah)
		die("ibv_create_ah");
	message->wr.wr.ud.remote_qpn = pair->qp[1]->qp_num;
	message->wr.wr.ud.remote_qkey = 1;
	return message;
}

/* ---- windows -------------------------------------------------------------------------------------------------- */

struct window {
	struct pair *pair;
	struct ibv_mw *mw;
	struct ibv_mw_bind bind;
};

static void bind_and_poll(void *subject, uint64_t count)
{
	struct window *window = subject;

	while (count--) {
		check(ibv_bind_mw(window->pair->qp[0], window->mw, &window->bind), "ibv_bind_mw");
		await(window->pair, 1);
	}
}

static struct window *window_new(struct device *device, struct pair *pair)
{
	struct window *window = allocate(sizeof(*window));
	struct ibv_mr *mr = ibv_reg_mr(device->pd, device->target, BLOCK, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);

	window->pair = pair;
	window->mw = ibv_alloc_mw(device->pd, IBV_MW_TYPE_1);
	if (!mr || !window->mw)
		die("a window, or memory for it");
	window->bind = (struct ibv_mw_bind){.send_flags = IBV_SEND_SIGNALED,
					    .bind_info = {.mr = mr,
							  .addr = (uintptr_t)device->target,
							  .length = BLOCK,
							  .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}};
	return window;
}

/* ---- keys ----------------------------------------------------------------------------------------------------- */

struct configuration {
	struct pair *pair;
	struct mlx5dv_mkey *key;
	struct ibv_mr *mr;
};

static void configure_and_poll(void *subject, uint64_t count)
{
	const struct configuration *configuration = subject;

	while (count--) {
		set_piece(configure_begin(configuration->pair, configuration->key, 2), configuration->mr, BLOCK);
		configure_end(configuration->pair);
	}
}

static struct configuration *configuration_new(struct device *device, struct pair *pair)
{
	struct configuration *configuration = allocate(sizeof(*configuration));

	*configuration = (struct configuration){.pair = pair, .key = key_new(device, 0, 4), .mr = device->source_mr};
	return configuration;
}

static struct mlx5dv_mkey *list_key(struct device *device, struct pair *pair)
{
	struct mlx5dv_mkey *key = key_new(device, 0, 4);
	struct ibv_sge list[4];

	for (uint32_t i = 0; i < 4; i++)
		list[i] = (struct ibv_sge){.addr = (uintptr_t)device->source + (size_t)2 * i * (BLOCK / 4),
					   .length = BLOCK / 4,
					   .lkey = device->source_mr->lkey};
	mlx5dv_wr_set_mkey_layout_list(configure_begin(pair, key, 2), 4, list);
	configure_end(pair);
	return key;
}

static struct mlx5dv_mkey *records_key(struct device *device, struct pair *pair)
{
	struct mlx5dv_mkey *key = key_new(device, 0, 4);
	struct mlx5dv_mr_interleaved records = {.addr = (uintptr_t)device->source,
						.bytes_count = RECORD,
						.bytes_skip = RECORD,
						.lkey = device->source_mr->lkey};

	mlx5dv_wr_set_mkey_layout_interleaved(configure_begin(pair, key, 2), BLOCK / RECORD, 1, &records);
	configure_end(pair);
	return key;
}

/* Inserts the T10-DIF tuple of one block. */
static struct mlx5dv_mkey *signature_key(struct device *device, struct pair *pair)
{
	const struct mlx5dv_sig_t10dif t10dif = {.bg_type = MLX5DV_SIG_T10DIF_CRC,
						 .app_tag = 1,
						 .ref_tag = 1,
						 .flags = MLX5DV_SIG_T10DIF_FLAG_REF_REMAP};
	const struct mlx5dv_sig_block_domain wire = {
		.sig_type = MLX5DV_SIG_TYPE_T10DIF, .sig.dif = &t10dif, .block_size = MLX5DV_BLOCK_SIZE_4096};
	const struct mlx5dv_sig_block_attr attr = {.wire = &wire, .check_mask = 0xff};
	struct mlx5dv_mkey *key = key_new(device, MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE, 1);
	struct mlx5dv_qp_ex *dv = configure_begin(pair, key, 3);

	set_piece(dv, device->source_mr, BLOCK);
	mlx5dv_wr_set_mkey_sig_block(dv, &attr);
	configure_end(pair);
	return key;
}

static struct message *write_through(struct device *device, struct pair *pair, const struct mlx5dv_mkey *key,
				     uint32_t bytes)
{
	struct message *message = message_new(device, pair, IBV_WR_RDMA_WRITE, bytes);

	message->sge.addr = 0;
	message->sge.lkey = key->lkey;
	return message;
}

/* ---- all of them ---------------------------------------------------------------------------------------------- */

void add_further_operations(struct operations *operations, struct device *device)
{
	struct pair *pair = allocate(sizeof(*pair));
	struct copies *copies = allocate(sizeof(*copies));

	pair_create(device, &(struct pair_attr){.depth = DEPTH, .builders = true, .max_inline = INLINE_FOR_KEYS}, pair);
	*copies = (struct copies){.to = device->target, .from = device->source, .bytes = BLOCK, .pieces = 1};

	const struct operation list[] = {
		{"memcpy of 4 KiB, to compare with", copy_pieces, copies, 1},
		{"WRITE of 4 KiB", post_and_poll, message_new(device, pair, IBV_WR_RDMA_WRITE, BLOCK), 1},
		{"WRITE of 4 KiB through a list of 4", post_and_poll,
		 write_through(device, pair, list_key(device, pair), BLOCK), 1},
		{"WRITE of 4 KiB in records of 64 bytes", post_and_poll,
		 write_through(device, pair, records_key(device, pair), BLOCK), 1},
		{"WRITE of 4 KiB, T10-DIF inserted", post_and_poll,
		 write_through(device, pair, signature_key(device, pair), BLOCK + 8), 1},
		{"configuring a key", configure_and_poll, configuration_new(device, pair), 1},
		{"binding a window", bind_and_poll, window_new(device, pair), 1},
		{"SEND of a datagram of 64 bytes with its receive", send_and_poll, datagram_new(device), 1},
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		add_operation(operations, &list[i]);
}
