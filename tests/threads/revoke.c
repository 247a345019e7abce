/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An invalidated window gives no access any more, not even to a READ that another thread has in flight: data that the
 * owner writes after the completion is not read (IBTA 10.6.5, ibv_post_send(3), IBV_WR_LOCAL_INV).
 */
#include "fixture.h"

enum { BYTES = 64 << 20, ROUNDS = 8 };

struct borrower {
	struct ibv_qp *qp;
	struct ibv_mr *to;
	uint64_t remote_address;
	uint32_t rkey;
};

static void post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->send_flags = IBV_SEND_SIGNALED;
	CHECK(!ibv_post_send(qp, wr, &bad));
}

static void *read_all(void *argument)
{
	const struct borrower *borrower = argument;
	struct ibv_sge sge = {(uintptr_t)borrower->to->addr, BYTES, borrower->to->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.wr.rdma = {.remote_addr = borrower->remote_address, .rkey = borrower->rkey},
	};

	post(borrower->qp, &wr);
	return NULL;
}

static struct ibv_mr *make_buffer(struct ibv_pd *pd)
{
	void *memory = malloc(BYTES);
	struct ibv_mr *mr;

	CHECK(memory);
	memset(memory, 0, BYTES);
	mr = ibv_reg_mr(pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	CHECK(mr);
	return mr;
}

static void lend(struct ibv_qp *qp, struct ibv_cq *cq, struct ibv_mw *mw, struct ibv_mr *mr)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = {.mw = mw,
			    .rkey = ibv_inc_rkey(mw->rkey),
			    .bind_info = {mr, (uintptr_t)mr->addr, BYTES, IBV_ACCESS_REMOTE_READ}},
	};

	post(qp, &wr);
	CHECK(wait_completion(cq).status == IBV_WC_SUCCESS);
	mw->rkey = wr.bind_mw.rkey;
}

static void revoke(struct ibv_qp *qp, struct ibv_cq *cq, struct ibv_mw *mw)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = mw->rkey};

	post(qp, &wr);
	CHECK(wait_completion(cq).status == IBV_WC_SUCCESS);
}

/* Reads memory that another thread is writing, which ThreadSanitizer must ignore. */
__attribute__((no_sanitize_thread)) static bool has_begun(const volatile char *memory)
{
	return *memory;
}

int main(void)
{
	struct ibv_context *context = open_first_device();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *lender_cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	struct ibv_cq *borrower_cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	struct ibv_qp *lender = make_qp(pd, IBV_QPT_RC, lender_cq, lender_cq, NULL);
	struct borrower borrower = {.qp = make_qp(pd, IBV_QPT_RC, borrower_cq, borrower_cq, NULL),
				    .to = make_buffer(pd)};
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_mr *mr = make_buffer(pd);

	borrower.remote_address = (uintptr_t)mr->addr;
	for (int round = 0; round < ROUNDS; round++) {
		pthread_t thread;

		connect_pair(lender, borrower.qp);
		memset(mr->addr, 1, BYTES);
		memset(borrower.to->addr, 0, BYTES);
		lend(lender, lender_cq, mw, mr);
		borrower.rkey = mw->rkey;
		CHECK(!pthread_create(&thread, NULL, read_all, &borrower));
		while (!has_begun(borrower.to->addr))
			;
		revoke(lender, lender_cq, mw);
		memset(mr->addr, 2, BYTES);
		CHECK(!pthread_join(thread, NULL));
		CHECK(!memchr(borrower.to->addr, 2, BYTES));
		CHECK(wait_completion(borrower_cq).status == IBV_WC_SUCCESS);
		to_reset(lender);
		to_reset(borrower.qp);
	}
	CHECK(!ibv_dealloc_mw(mw));
	CHECK(!ibv_destroy_qp(lender) && !ibv_destroy_qp(borrower.qp));
	free(mr->addr);
	free(borrower.to->addr);
	CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(borrower.to));
	CHECK(!ibv_destroy_cq(lender_cq) && !ibv_destroy_cq(borrower_cq));
	CHECK(!ibv_dealloc_pd(pd) && !ibv_close_device(context));
	return 0;
}
