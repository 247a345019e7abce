/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A user's program, which sanitized.py builds under a sanitizer and runs on softhca: it writes from one buffer into another.
 * Its argument selects the error: "freed" (the target is freed before), "leaked" (regions and buffers stay), "race" (another
 * thread changes the source meanwhile), or none.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <infiniband/verbs.h>

enum { SIZE = 4096, GID_INDEX = 3 };

static char *source, *target;
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;

static int connect_to_itself(void)
{
	union ibv_gid gid;
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = GID_INDEX, .hop_limit = 1}},
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};

	if (ibv_query_gid(context, 1, GID_INDEX, &gid))
		return 1;
	rtr.ah_attr.grh.dgid = gid;
	return ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ||
	       ibv_modify_qp(qp, &rtr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) ||
	       ibv_modify_qp(qp, &rts,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC);
}

static void *change(void *unused)
{
	memset(source, 2, SIZE);
	return unused;
}

int main(int argc, char **argv)
{
	const char *wrong = argc > 1 ? argv[1] : "";
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_mr *source_mr, *target_mr;
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	pthread_t thread;

	context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	if (!context)
		return 1;
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(context);
	attr.send_cq = attr.recv_cq = cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	qp = ibv_create_qp(pd, &attr);
	source = malloc(SIZE);
	target = malloc(SIZE);
	memset(source, 1, SIZE);
	source_mr = ibv_reg_mr(pd, source, SIZE, IBV_ACCESS_LOCAL_WRITE);
	target_mr = ibv_reg_mr(pd, target, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!source_mr || !target_mr || connect_to_itself())
		return 1;

	if (strcmp(wrong, "race") == 0 && pthread_create(&thread, NULL, change, NULL))
		return 1;
	if (strcmp(wrong, "freed") == 0)
		free(target);
	if (ibv_post_send(qp,
			  &(struct ibv_send_wr){
				  .sg_list = &(struct ibv_sge){(uintptr_t)source, SIZE, source_mr->lkey},
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = {(uintptr_t)target, target_mr->rkey},
			  },
			  &bad))
		return 1;
	while (!ibv_poll_cq(cq, 1, &wc))
		;
	puts(ibv_wc_status_str(wc.status));
	if (strcmp(wrong, "race") == 0)
		pthread_join(thread, NULL);
	if (strcmp(wrong, "leaked") == 0) {
		source_mr = target_mr = NULL;
		return 0;
	}
	if (wc.status != IBV_WC_SUCCESS || target[SIZE - 1] != 1)
		return 1;
	return ibv_destroy_qp(qp) || ibv_dereg_mr(source_mr) || ibv_dereg_mr(target_mr) || ibv_destroy_cq(cq) ||
	       ibv_dealloc_pd(pd) || ibv_close_device(context) || (free(source), free(target), 0);
}
