/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests queue pairs that a forked child inherits: by docs/inside/decisions.md they remain the parent's. The child tries every way
 * to use or change them; each fails with EBADF and rule 236, and the parent's connection is unaffected: its next WRITE arrives at
 * the peer, a third process, and the peer's next WRITE arrives at the parent.
 */
#include "kernel_has.h"
#include "test_case.h"
#include "verbs_process.h"

#include <endian.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <infiniband/mlx5dv.h>

#include "softhca.h"

enum { PARENT, PEER, SIDES };
enum { RULE_QP_OF_PARENT = 236, BYTES = 64, DEADLINE_SECONDS = 20, WQE_BYTES = 64 };

/* Shared by all processes. The QPs write to memory that is part of it, so that each process sees the data. */
static struct board {
	uint32_t step[SIDES]; /* atomic; progress of each side */
	struct {
		uint32_t qpn, rkey;
		uint64_t address;
	} of[SIDES];
	_Alignas(4096) char inbox[SIDES][4096], outbox[SIDES][4096];
} * board;

static int self;
static struct ibv_mr *mr;
static struct ibv_qp *qp;

/* Announces that this side has reached @step, and waits until the other one has. */
static void meet(uint32_t step)
{
	__atomic_store_n(&board->step[self], step, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&board->step[!self], __ATOMIC_SEQ_CST) < step)
		sched_yield();
}

static struct ibv_qp *create(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 8,
			.max_recv_wr = 8,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = 32},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_qp *created = ibv_create_qp_ex(context, &attr);

	CHECK(created);
	CHECK(!verbs_connect_until(created, IBV_QPS_INIT, 0,
				   (struct ibv_qp_attr){.qp_access_flags = IBV_ACCESS_REMOTE_WRITE}));
	return created;
}

static void connect_qp(struct ibv_qp *of, uint32_t number)
{
	CHECK(!verbs_connect(of, number, .max_dest_rd_atomic = 1, .min_rnr_timer = 12, .timeout = 14));
}

/* Posts a WRITE of @text to the inbox of side @to. */
static int post_write(struct ibv_qp *from, int to, const char *text, unsigned int flags)
{
	struct ibv_sge sge = {(uintptr_t)board->outbox[self], BYTES, mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED | flags,
					 .wr.rdma = {board->of[to].address, board->of[to].rkey},
				 };

	if (flags & IBV_SEND_INLINE)
		sge.length = 16;
	memset(board->outbox[self], 0, BYTES);
	snprintf(board->outbox[self], BYTES, "%s", text);
	return ibv_post_send(from, &wr, &bad);
}

/* Writes @text to the other side, where it has arrived when the request completes. */
static void write_across(const char *text)
{
	CHECK(!post_write(qp, !self, text, 0));
	CHECK(verbs_next_status() == IBV_WC_SUCCESS);
	CHECK(!strcmp(board->inbox[!self], text));
}

/* ---- the child ------------------------------------------------------------------------------------------------- */

static uint32_t newest_rule(void)
{
	struct softhca_explanation newest;

	return softhca_explanations(context, 0, &newest, 1) == 1 ? newest.rule : 0;
}

static void check_refused(int error)
{
	CHECK(error == EBADF);
	CHECK(newest_rule() == RULE_QP_OF_PARENT);
}

static void post_by_builder(void)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);

	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, board->of[PEER].rkey, board->of[PEER].address);
	ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)board->outbox[self], BYTES);
	check_refused(ibv_wr_complete(ex));
	ibv_wr_start(ex);
	ibv_wr_abort(ex);
}

static void post_receive(void)
{
	struct ibv_sge sge = {(uintptr_t)board->inbox[self], BYTES, mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	check_refused(ibv_post_recv(qp, &wr, &bad));
	CHECK(bad == &wr);
}

static void modify(void)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_ERR, IBV_QPS_RESET, IBV_QPS_SQD, IBV_QPS_RTS};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		attr = (struct ibv_qp_attr){.qp_state = states[i]};
		check_refused(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	}
	check_refused(mlx5dv_modify_qp_udp_sport(qp, 50000));
	CHECK(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	CHECK(attr.qp_state == IBV_QPS_RTS);
}

/* Repeats the parent's first WRITE manually, with the number of the next request. No call refuses it; rule 236 reports it. */
static void post_into_ring(void)
{
	struct mlx5dv_qp rings = {0};
	struct mlx5dv_obj object = {.qp = {.in = qp, .out = &rings}};
	time_t end = time(NULL) + DEADLINE_SECONDS;
	struct softhca_explanation newest;
	uint64_t before = 0;
	uint32_t next;
	char *wqe;

	if (softhca_explanations(context, 0, &newest, 1) == 1)
		before = newest.serial;
	CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_QP));
	next = be32toh(rings.dbrec[MLX5_SND_DBR]);
	wqe = (char *)rings.sq.buf + next % rings.sq.wqe_cnt * WQE_BYTES;
	memcpy(wqe, rings.sq.buf, WQE_BYTES);
	*(uint32_t *)wqe = htobe32(next << 8 | MLX5_OPCODE_RDMA_WRITE);
	__atomic_store_n(&rings.dbrec[MLX5_SND_DBR], htobe32(next + 1), __ATOMIC_RELEASE);
	*(volatile uint64_t *)rings.bf.reg = *(uint64_t *)wqe;
	while (softhca_explanations(context, 0, &newest, 1) != 1 || newest.serial == before)
		CHECK(time(NULL) < end);
	CHECK(newest.rule == RULE_QP_OF_PARENT);
}

/* The child's own QPs work over the objects that it inherited. */
static void use_own(void)
{
	struct ibv_qp *own = create();

	connect_qp(own, own->qp_num);
	CHECK(!post_write(own, PARENT, "child to itself", 0));
	CHECK(verbs_next_status() == IBV_WC_SUCCESS);
	CHECK(!strcmp(board->inbox[PARENT], "child to itself"));
	CHECK(!ibv_destroy_qp(own));
}

static void be_child(void)
{
	struct ibv_wc wc;

	alarm(2 * DEADLINE_SECONDS);
	check_refused(post_write(qp, PEER, "child", 0));
	check_refused(post_write(qp, PEER, "child", IBV_SEND_INLINE));
	post_by_builder();
	post_receive();
	modify();
	post_into_ring();
	CHECK(ibv_poll_cq(cq, 1, &wc) == 0);
	CHECK(!ibv_req_notify_cq(cq, 0));
	use_own();
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_dereg_mr(mr));
	CHECK(!ibv_destroy_cq(cq));
	CHECK(!ibv_dealloc_pd(pd));
	CHECK(!ibv_close_device(context));
	/* Runs the handlers of atexit(3), which find the parent's device. */
	exit(0);
}

/* ---- the processes --------------------------------------------------------------------------------------------- */

static void be_side(int side)
{
	int status;
	pid_t child;

	self = side;
	alarm(3 * DEADLINE_SECONDS);
	verbs_open();
	mr = verbs_target(board, sizeof(*board));
	qp = create();
	board->of[self].qpn = qp->qp_num;
	board->of[self].rkey = mr->rkey;
	board->of[self].address = (uintptr_t)board->inbox[self];
	meet(1);
	connect_qp(qp, board->of[!self].qpn);
	meet(2);
	if (self == PARENT) {
		write_across("before the fork");
		child = fork();
		CHECK(child >= 0);
		if (!child)
			be_child();
		CHECK(waitpid(child, &status, 0) == child);
		CHECK(status == 0);
		CHECK(!strcmp(board->inbox[PEER], "before the fork"));
		write_across("after the fork");
		write_across("once more");
	}
	meet(3);
	if (self == PEER)
		write_across("from the peer");
	meet(4);
	_exit(0);
}

TEST(child_cannot_use_them)
{
	pid_t pid[SIDES];
	int status;

	if (!kernel_has_threads_after_fork())
		skip();
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(board, MAP_FAILED);
	for (int side = 0; side < SIDES; side++) {
		pid[side] = fork();
		assert_true(pid[side] >= 0);
		if (!pid[side])
			be_side(side);
	}
	for (int side = 0; side < SIDES; side++) {
		assert_int_equal(waitpid(pid[side], &status, 0), pid[side]);
		assert_int_equal(status, 0);
	}
	munmap(board, sizeof(*board));
}

int main(void)
{
	const char *link = getenv("SOFTHCA_LINK");

	/* The local link does not reach other processes. */
	if (link && !strcmp(link, "local"))
		return 77;
	return run_cases();
}
