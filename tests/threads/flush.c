/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A completion, even with WR_FLUSH_ERR, returns the buffers of its request to the program (ibv_poll_cq(3)): after a
 * thread moves a QP to ERR or RESET while another thread's request executes, the device no longer accesses that memory.
 */
#include "fixture.h"

enum { BYTES = 64 << 20, ROUNDS = 8 };

struct sender {
	struct ibv_qp *qp;
	struct ibv_mr *from, *to;
};

static void *send(void *argument)
{
	const struct sender *sender = argument;
	struct ibv_sge sge = {(uintptr_t)sender->from->addr, BYTES, sender->from->lkey};
	struct ibv_send_wr wr = rdma_wr(0, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)sender->to->addr, sender->to->rkey);
	struct ibv_send_wr *bad;

	CHECK(!ibv_post_send(sender->qp, &wr, &bad));
	return NULL;
}

static struct ibv_mr *make_buffer(struct ibv_pd *pd)
{
	void *memory = malloc(BYTES);
	struct ibv_mr *mr;

	CHECK(memory);
	memset(memory, 0, BYTES);
	mr = ibv_reg_mr(pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(mr);
	return mr;
}

/* Reads memory that another thread is writing, which ThreadSanitizer must ignore. */
__attribute__((no_sanitize_thread)) static bool has_begun(const volatile char *memory)
{
	return *memory;
}

/* Returns true if the request was stopped in the middle. */
static bool stop_in_the_middle(struct ibv_qp *end[2], const struct sender *sender, struct ibv_cq *cq,
			       enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	char *from = sender->from->addr, *to = sender->to->addr;
	bool flushed = true;
	pthread_t thread;

	memset(from, 1, BYTES);
	memset(to, 0, BYTES);
	CHECK(!pthread_create(&thread, NULL, send, (void *)sender));
	while (!has_begun(to))
		;
	CHECK(!ibv_modify_qp(end[0], &attr, IBV_QP_STATE));
	if (state == IBV_QPS_ERR)
		flushed = wait_completion(cq).status == IBV_WC_WR_FLUSH_ERR;
	/* The request is over and must not read this memory any more. */
	memset(from, 2, BYTES);
	CHECK(!pthread_join(thread, NULL));
	CHECK(!memchr(to, 2, BYTES));
	return flushed;
}

int main(void)
{
	struct ibv_context *context = open_first_device();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	struct ibv_qp *end[2] = {make_qp(pd, IBV_QPT_RC, cq, cq, NULL), make_qp(pd, IBV_QPT_RC, cq, cq, NULL)};
	struct sender sender = {end[0], make_buffer(pd), make_buffer(pd)};
	int caught = 0;

	for (int round = 0; round < ROUNDS; round++) {
		connect_pair(end[0], end[1]);
		caught += stop_in_the_middle(end, &sender, cq, round % 2 ? IBV_QPS_RESET : IBV_QPS_ERR);
		to_reset(end[0]);
		to_reset(end[1]);
	}
	CHECK(caught > 0);
	CHECK(!ibv_destroy_qp(end[0]) && !ibv_destroy_qp(end[1]));
	free(sender.from->addr);
	free(sender.to->addr);
	CHECK(!ibv_dereg_mr(sender.from) && !ibv_dereg_mr(sender.to));
	CHECK(!ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd) && !ibv_close_device(context));
	return 0;
}
