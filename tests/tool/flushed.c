/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request that fails and 127 after it that are flushed, for explain.py. Prints the number of softhca.h's explanations of the
 * queue pair. At the end it forks a child, which has no explanations of them.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "softhca.h"
#include "verbs_connect.h"

enum { REQUESTS = 128, GID = 0 };

static void check(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static void post(struct ibv_qp *qp, const struct ibv_mr *mr, uint64_t wr_id)
{
	/* The first exceeds the region. */
	struct ibv_sge sge = {(uintptr_t)mr->addr, wr_id ? 8 : 8192, mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = wr_id,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .wr.rdma = {(uintptr_t)mr->addr, mr->rkey},
				 };

	check(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

int main(void)
{
	static struct softhca_explanation last[2 * REQUESTS];
	static uint8_t memory[4096] __attribute__((aligned(4096)));
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	struct ibv_cq *cq = pd ? ibv_create_cq(context, REQUESTS, NULL, NULL, 0) : NULL;
	struct ibv_mr *mr =
		pd ? ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE) : NULL;
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.cap = {.max_send_wr = REQUESTS, .max_send_sge = 1},
					.qp_type = IBV_QPT_RC};
	struct ibv_qp *qp;
	struct ibv_wc wc;
	pid_t pid;

	check(cq && mr, "objects");
	qp = ibv_create_qp(pd, &init);
	check(qp != NULL, "ibv_create_qp");
	check(!verbs_connect(qp, qp->qp_num, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE, .ah_attr.grh.sgid_index = GID,
			     .timeout = 14, .max_rd_atomic = 1, .max_dest_rd_atomic = 1),
	      "verbs_connect");
	for (uint64_t i = 0; i < REQUESTS; i++)
		post(qp, mr, i);
	for (int i = 0; i < REQUESTS;) {
		int polled = ibv_poll_cq(cq, 1, &wc);

		check(polled >= 0 && (!polled || wc.status), "ibv_poll_cq");
		i += polled;
	}
	printf("%zu\n", softhca_explanations(context, qp->qp_num, last, 2 * REQUESTS));
	fflush(stdout);
	pid = fork();
	if (!pid)
		exit(0);
	check(waitpid(pid, NULL, 0) == pid, "waitpid");
	return 0;
}
