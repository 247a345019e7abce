/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that has no free descriptor when it connects cannot look up the process with its peer's QP number, and
 * treats the number as unused. It repeats the lookup when one of its requests times out, and when a request of the peer
 * arrives.
 */
#include "test_case.h"
#include "verbs_connect.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <infiniband/verbs.h>

enum { WITHIN_S = 20, TIMEOUT = 12 /* 17 ms */, VALUE = 0x12345678 };

/* Shared state of the two processes: process 0 is the one that cannot route. */
static struct board {
	uint32_t step[2]; /* atomic */
	uint32_t qpn[2], rkey[2];
	uint64_t address[2];
	uint32_t word[2]; /* written by the other process; both register it, because the memory is shared */
} * board;

static int self;
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: process %d: not so: %s\n", __FILE__, __LINE__, self, #condition);      \
			_exit(1);                                                                                      \
		}                                                                                                      \
	} while (0)

/* Waits until both processes are at @step. */
static void meet(uint32_t step)
{
	time_t end = time(NULL) + WITHIN_S;

	__atomic_store_n(&board->step[self], step, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&board->step[!self], __ATOMIC_SEQ_CST) < step) {
		struct ibv_wc wc;

		CHECK(time(NULL) < end && ibv_poll_cq(cq, 1, &wc) == 0);
	}
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC};
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

	CHECK(list && list[0]);
	context = ibv_open_device(list[0]);
	CHECK(context);
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	CHECK(pd && cq);
	attr.send_cq = attr.recv_cq = cq;
	qp = ibv_create_qp(pd, &attr);
	CHECK(qp);
	CHECK(!ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	mr = ibv_reg_mr(pd, board->word, sizeof(board->word), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(mr);
	board->qpn[self] = qp->qp_num;
	board->rkey[self] = mr->rkey;
	board->address[self] = (uintptr_t)&board->word[self];
}

/* Sets up the one-time resources of the device: its thread, and the socket for other processes. */
static void begin_listening(void)
{
	struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD};
	struct ibv_qp_attr state = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp *other;

	attr.cap = (struct ibv_qp_cap){.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
	other = ibv_create_qp(pd, &attr);
	CHECK(other);
	CHECK(!ibv_modify_qp(other, &state, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	state.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(other, &state, IBV_QP_STATE));
}

static void to_rtr(void)
{
	CHECK(!verbs_connect_until(qp, IBV_QPS_RTR, board->qpn[!self],
				   (struct ibv_qp_attr){.ah_attr.grh = {.hop_limit = 1, .sgid_index = 3},
							.max_dest_rd_atomic = 1,
							.min_rnr_timer = 12}));
}

static void to_rtr_without_descriptors(void)
{
	struct rlimit before, none;
	int lowest = dup(STDERR_FILENO);

	CHECK(lowest >= 0 && !getrlimit(RLIMIT_NOFILE, &before));
	close(lowest);
	none = (struct rlimit){(rlim_t)lowest, before.rlim_max};
	CHECK(!setrlimit(RLIMIT_NOFILE, &none));
	to_rtr();
	CHECK(!setrlimit(RLIMIT_NOFILE, &before));
}

static void to_rts(void)
{
	CHECK(!verbs_connect(qp, board->qpn[!self], .ah_attr.grh.sgid_index = 3, .timeout = TIMEOUT));
}

/* Writes to the other process's word. */
static void write_word(void)
{
	uint32_t value = VALUE + (uint32_t)self;
	struct ibv_sge sge = {.addr = (uintptr_t)&value, .length = sizeof(value)};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {board->address[!self], board->rkey[!self]},
	};
	struct ibv_mr *source = ibv_reg_mr(pd, &value, sizeof(value), 0);
	time_t end = time(NULL) + WITHIN_S;
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int found;

	CHECK(source);
	sge.lkey = source->lkey;
	CHECK(!ibv_post_send(qp, &wr, &bad));
	while (!(found = ibv_poll_cq(cq, 1, &wc)))
		CHECK(time(NULL) < end);
	CHECK(found == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(board->word[!self] == value);
	ibv_dereg_mr(source);
}

/* Runs the test; process @first posts the first request. */
static void run(int first)
{
	open_device();
	begin_listening();
	meet(1);
	if (self == 0)
		to_rtr_without_descriptors();
	else
		to_rtr();
	to_rts();
	meet(2);
	if (self == first)
		write_word();
	meet(3);
	if (self != first)
		write_word();
	meet(4);
	_exit(0);
}

static void both_ways(int first)
{
	pid_t pid[2];
	int status;

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(board != MAP_FAILED);
	for (self = 0; self < 2; self++) {
		pid[self] = fork();
		assert_true(pid[self] >= 0);
		if (pid[self])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run(first);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_int_equal(status, 0);
	}
	munmap(board, sizeof(*board));
}

TEST(after_a_time_out)
{
	both_ways(0);
}

TEST(when_the_peer_comes)
{
	both_ways(1);
}

int main(void)
{
	setenv("SOFTHCA_LINK", "auto", 1);
	setenv("SOFTHCA_GIDS", "loopback", 1);
	return run_cases();
}
