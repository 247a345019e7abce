/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stack use of data-path calls, for coroutines and threads with small stacks: docs/reference/limits.md promises that 8
 * KiB below the call are enough. Each case runs on a stack of STACK_BYTES that ends at an inaccessible page and is
 * filled with a pattern: the page catches a call that needs more than all of it, and the rest of the pattern shows how
 * much was used.
 */
#include "test_case.h"
#include "verbs_connect.h"

#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

enum {
	PROMISED_BYTES = 8 << 10, /* STACK_BYTES of docs/reference/limits.md */
	STACK_BYTES = 64 << 10,   /* larger, so that the result can be printed if the promise is broken */
	FRAME_BYTES = 1024,       /* of the case itself, above its calls */
	PAGE = 4096,
	PATTERN = 0xa5,
	BYTES = 64 << 10,
	DEADLINE_SECONDS = 20,
	ROUNDS = 20,
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq_ex *cq_ex;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp[2];
static char memory[2][BYTES];

static int open_pair(void **state)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_cq_init_attr_ex cq_attr = {.cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS};

	(void)state;
	assert_non_null(list);
	context = ibv_open_device(list[0]);
	assert_non_null(context);
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(context);
	cq_ex = ibv_create_cq_ex(context, &cq_attr);
	assert_non_null(cq_ex);
	cq = ibv_cq_ex_to_cq(cq_ex);
	mr = ibv_reg_mr(pd, memory, sizeof(memory),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC);
	assert_non_null(mr);
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr_ex attr = {
			.send_cq = cq,
			.recv_cq = cq,
			.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 4, .max_recv_sge = 4},
			.qp_type = IBV_QPT_RC,
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			.pd = pd,
			.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ |
					  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
		};

		qp[i] = ibv_create_qp_ex(context, &attr);
		assert_non_null(qp[i]);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(verbs_connect(qp[i], qp[!i]->qp_num,
					       .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
								  IBV_ACCESS_REMOTE_ATOMIC,
					       .max_dest_rd_atomic = 4, .min_rnr_timer = 1, .timeout = 14,
					       .max_rd_atomic = 4),
				 0);
	return 0;
}

static int close_pair(void **state)
{
	(void)state;
	assert_int_equal(ibv_destroy_qp(qp[0]), 0);
	assert_int_equal(ibv_destroy_qp(qp[1]), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(context), 0);
	return 0;
}

/* ---- the stack ---------------------------------------------------------------------------------------------------- */

static struct {
	ucontext_t outside, inside;
	uint8_t *stack; /* STACK_BYTES above an inaccessible page */
	void (*run)(void);
	bool failed;
	int line;
} small;

/* Only the measured calls run on the small stack: no assertions. */
#define HOLDS(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition) && !small.failed) {                                                                   \
			small.failed = true;                                                                           \
			small.line = __LINE__;                                                                         \
		}                                                                                                      \
	} while (0)

static void enter(void)
{
	small.run();
}

/* Runs @run on the small stack. Returns how many bytes of it were used. */
static size_t run_on_small_stack(void (*run)(void))
{
	uint8_t *mapped = mmap(NULL, PAGE + STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t untouched = 0;

	assert_ptr_not_equal(mapped, MAP_FAILED);
	assert_int_equal(mprotect(mapped, PAGE, PROT_NONE), 0);
	small.stack = mapped + PAGE;
	small.run = run;
	small.failed = false;
	memset(small.stack, PATTERN, STACK_BYTES);
	assert_int_equal(getcontext(&small.inside), 0);
	small.inside.uc_stack = (stack_t){.ss_sp = small.stack, .ss_size = STACK_BYTES};
	small.inside.uc_link = &small.outside;
	makecontext(&small.inside, enter, 0);
	assert_int_equal(swapcontext(&small.outside, &small.inside), 0);
	if (small.failed)
		fail_msg("a check on the small stack failed in line %d", small.line);
	while (untouched < STACK_BYTES && small.stack[untouched] == PATTERN)
		untouched++;
	munmap(mapped, PAGE + STACK_BYTES);
	return STACK_BYTES - untouched;
}

/* ---- cases that run on the small stack ---------------------------------------------------------------------------- */

static time_t end;
static struct ibv_wc wc;
static struct ibv_sge sges[4];
static struct ibv_send_wr send_wr, *bad_send;
static struct ibv_recv_wr recv_wr, *bad_recv;

static void poll_one(enum ibv_wc_status status)
{
	int found;

	while (!(found = ibv_poll_cq(cq, 1, &wc)) && time(NULL) < end)
		;
	HOLDS(found == 1 && wc.status == status);
}

static void post(enum ibv_wr_opcode opcode, uint32_t length, int count)
{
	for (int i = 0; i < count; i++)
		sges[i] = (struct ibv_sge){(uintptr_t)memory[0] + (uint32_t)i * length, length, mr->lkey};
	send_wr = (struct ibv_send_wr){
		.sg_list = sges, .num_sge = count, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
	send_wr.wr.rdma.remote_addr = (uintptr_t)memory[1];
	send_wr.wr.rdma.rkey = mr->rkey;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		send_wr.wr.atomic.remote_addr = (uintptr_t)memory[1];
		send_wr.wr.atomic.rkey = mr->rkey;
		send_wr.wr.atomic.compare_add = 1;
	}
	HOLDS(!ibv_post_send(qp[0], &send_wr, &bad_send));
}

static void writes_and_reads(void)
{
	static const uint32_t lengths[] = {8, 64, 4096, 16384};

	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
			for (int count = 1; count <= 4; count += 3) {
				post(IBV_WR_RDMA_WRITE, lengths[i], count);
				poll_one(IBV_WC_SUCCESS);
				post(IBV_WR_RDMA_READ, lengths[i], count);
				poll_one(IBV_WC_SUCCESS);
			}
}

static void atomics(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		post(IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 1);
		poll_one(IBV_WC_SUCCESS);
	}
}

static void sends_and_receives(void)
{
	for (int round = 0; round < ROUNDS; round++)
		for (int late = 0; late < 2; late++) {
			recv_wr = (struct ibv_recv_wr){.sg_list = sges, .num_sge = 1};
			if (late)
				post(IBV_WR_SEND, 8192, 1);
			sges[0] = (struct ibv_sge){(uintptr_t)memory[1], 8192, mr->lkey};
			HOLDS(!ibv_post_recv(qp[1], &recv_wr, &bad_recv));
			if (!late)
				post(IBV_WR_SEND, 8192, 1);
			HOLDS(!ibv_req_notify_cq(cq, 0));
			poll_one(IBV_WC_SUCCESS);
			poll_one(IBV_WC_SUCCESS);
		}
}

static void builders(void)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp[0]);
	struct ibv_poll_cq_attr attr = {0};
	int error;

	for (int round = 0; round < ROUNDS; round++) {
		ibv_wr_start(ex);
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)memory[1]);
		ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)memory[0], 4096);
		HOLDS(!ibv_wr_complete(ex));
		while ((error = ibv_start_poll(cq_ex, &attr)) == ENOENT && time(NULL) < end)
			;
		HOLDS(!error && cq_ex->status == IBV_WC_SUCCESS);
		if (!error) {
			HOLDS(ibv_next_poll(cq_ex) == ENOENT);
			ibv_end_poll(cq_ex);
		}
	}
}

/* A failing request is explained by the call; later requests are flushed. */
static void refusals(void)
{
	post(IBV_WR_RDMA_WRITE, 64, 1);
	poll_one(IBV_WC_SUCCESS);
	send_wr.wr.rdma.rkey ^= 0x100;
	HOLDS(!ibv_post_send(qp[0], &send_wr, &bad_send));
	poll_one(IBV_WC_REM_ACCESS_ERR);
	HOLDS(!ibv_post_send(qp[0], &send_wr, &bad_send));
	poll_one(IBV_WC_WR_FLUSH_ERR);
	send_wr.num_sge = 100;
	HOLDS(ibv_post_send(qp[0], &send_wr, &bad_send) != 0);
}

static void need_little(const char *name, void (*run)(void))
{
	size_t used;

	end = time(NULL) + DEADLINE_SECONDS;
	used = run_on_small_stack(run);
	print_message("%s: %zu bytes of stack\n", name, used);
	assert_in_range(used, 1, PROMISED_BYTES + FRAME_BYTES);
}

#define STACK_CASE(function)                                                                                           \
	TEST(function##_case)                                                                                          \
	{                                                                                                              \
		need_little(#function, function);                                                                      \
	}

STACK_CASE(writes_and_reads)
STACK_CASE(atomics)
STACK_CASE(sends_and_receives)
STACK_CASE(builders)
STACK_CASE(refusals)

int main(void)
{
	/* Sanitizers use larger frames. */
	if (getenv("TEST_SANITIZED"))
		return 77;
	return run_cases(.setup = open_pair, .teardown = close_pair);
}
