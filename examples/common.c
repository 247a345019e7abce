/* SPDX-License-Identifier: BSD-2-Clause */
/* One end of a connection, see common.h. */
#include "common.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FIRST_PSN = 0,
	READS = 16, /* outstanding RDMA READs */
	/*
	 * Size of inline data for a request that configures an mkey: it contains layout and signature, so the queue's
	 * entries must be large. This value fits up to four pieces of memory and a block signature.
	 */
	KEY_CONFIGURATION = 124,
};

void die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

void die_errno(const char *format, ...)
{
	const char *why = strerror(errno);
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, ": %s\n", why);
	exit(1);
}

static void open_first_device(struct end *end)
{
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0])
		die("there is no RDMA device; run this with: softhca run -- PROGRAM");
	/* As ibv_open_device(), for features of mlx5 only. */
	end->context = mlx5dv_open_device(list[0], &attr);
	ibv_free_device_list(list);
	if (!end->context)
		die_errno("mlx5dv_open_device");
}

/* Finds a GID of RoCE v2; a port also has GIDs of other types. */
static void find_gid(struct end *end)
{
	struct ibv_gid_entry entry;

	for (end->gid_index = 0; end->gid_index < 64; end->gid_index++) {
		if (ibv_query_gid_ex(end->context, 1, end->gid_index, &entry, 0) ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		end->gid = entry.gid;
		return;
	}
	die("port 1 has no GID of RoCE v2");
}

static void create_qp(struct end *end, int key_builders)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = {.max_send_wr = END_QUEUE_DEPTH,
			.max_recv_wr = END_QUEUE_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = key_builders ? KEY_CONFIGURATION : 0},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = end->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
				  IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV,
	};
	struct mlx5dv_qp_init_attr keys = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.send_ops_flags = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE,
	};

	end->qp = key_builders ? mlx5dv_create_qp(end->context, &attr, &keys) : ibv_create_qp_ex(end->context, &attr);
	if (!end->qp)
		die_errno("creating a QP");
}

static void create_objects(struct end *end, int key_builders)
{
	/* Keeps the output in order with the explanations, also in a file. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	end->pd = ibv_alloc_pd(end->context);
	if (!end->pd)
		die_errno("ibv_alloc_pd");
	end->cq = ibv_create_cq(end->context, 2 * END_QUEUE_DEPTH, NULL, NULL, 0);
	if (!end->cq)
		die_errno("ibv_create_cq");
	create_qp(end, key_builders);
}

void end_open(struct end *end, int key_builders)
{
	open_first_device(end);
	find_gid(end);
	create_objects(end, key_builders);
}

void end_open_on(struct end *end, struct ibv_context *context, int key_builders)
{
	end->context = context;
	end->borrowed = 1;
	create_objects(end, key_builders);
}

void end_close(struct end *end)
{
	if (ibv_destroy_qp(end->qp) || ibv_destroy_cq(end->cq) || ibv_dealloc_pd(end->pd) ||
	    (!end->borrowed && ibv_close_device(end->context)))
		die_errno("closing");
}

static void modify(struct end *end, struct ibv_qp_attr attr, int mask)
{
	int error = ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | mask);

	if (error)
		die("ibv_modify_qp to state %d: %s", attr.qp_state, strerror(error));
}

struct end_address end_address(const struct end *end)
{
	return (struct end_address){.qp_num = end->qp->qp_num, .gid = end->gid};
}

void end_connect_to(struct end *end, const struct end_address *peer)
{
	modify(end,
	       (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE},
	       IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	modify(end,
	       (struct ibv_qp_attr){
		       .qp_state = IBV_QPS_RTR,
		       .path_mtu = IBV_MTU_1024,
		       .dest_qp_num = peer->qp_num,
		       .rq_psn = FIRST_PSN,
		       .max_dest_rd_atomic = READS,
		       .min_rnr_timer = 12,
		       .ah_attr = {.is_global = 1,
				   .port_num = 1,
				   .grh = {.dgid = peer->gid, .sgid_index = end->gid_index, .hop_limit = 1}}},
	       IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		       IBV_QP_MIN_RNR_TIMER);
	modify(end,
	       (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .sq_psn = FIRST_PSN,
				    .timeout = 14,
				    .retry_cnt = 7,
				    .rnr_retry = 7,
				    .max_rd_atomic = READS},
	       IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

void end_connect(struct end *one, struct end *other)
{
	struct end_address address_of_one = end_address(one), address_of_other = end_address(other);

	end_connect_to(one, &address_of_other);
	end_connect_to(other, &address_of_one);
}

struct ibv_mr *end_register(struct end *end, void *memory, size_t length, unsigned int access)
{
	struct ibv_mr *mr = ibv_reg_mr(end->pd, memory, length, access);

	if (!mr)
		die_errno("ibv_reg_mr");
	return mr;
}

void end_post(struct end *end, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int error;

	wr->send_flags |= IBV_SEND_SIGNALED;
	error = ibv_post_send(end->qp, wr, &bad);
	if (error)
		die("ibv_post_send: %s", strerror(error));
}

struct ibv_wc end_wait(struct end *end)
{
	struct ibv_wc wc;
	int found;

	do
		found = ibv_poll_cq(end->cq, 1, &wc);
	while (!found);
	if (found < 0)
		die("ibv_poll_cq fails");
	return wc;
}

struct ibv_wc end_wait_success(struct end *end, const char *what)
{
	struct ibv_wc wc = end_wait(end);

	if (wc.status != IBV_WC_SUCCESS)
		die("%s: %s (vendor_err %u)", what, ibv_wc_status_str(wc.status), wc.vendor_err);
	return wc;
}
