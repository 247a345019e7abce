/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that has no free descriptor when it connects cannot look up the process with its peer's QP number, and
 * treats the number as unused. It repeats the lookup when one of its requests times out, and when a request of the peer
 * arrives. If the peer has none, it refuses the connection, and the process connects again.
 */
#include "test_case.h"
#include "verbs_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum { WITHIN_S = 20, TIMEOUT = 12 /* 17 ms */, REFUSED_US = 20000, VALUE = 0x12345678 };

/* Shared state of the two processes: process 0 is the one that cannot route. */
static struct board {
	uint32_t step[2]; /* atomic */
	uint32_t qpn[2], rkey[2];
	uint64_t address[2];
	uint32_t word[2]; /* written by the other process; both register it, because the memory is shared */
} * board;

static int self;
static struct ibv_qp *qp;
static struct ibv_mr *mr;

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
	verbs_open();
	qp = verbs_target_qp();
	mr = verbs_target(board->word, sizeof(board->word));
	board->qpn[self] = qp->qp_num;
	board->rkey[self] = mr->rkey;
	board->address[self] = (uintptr_t)&board->word[self];
}

/* Sets up the one-time resources of the device: its thread, and the socket for other processes. */
static void begin_listening(void)
{
	CHECK(!verbs_connect_until(verbs_qp(IBV_QPT_UD), IBV_QPS_RTR, 0, (struct ibv_qp_attr){0}));
}

static void to_rtr(void)
{
	CHECK(!verbs_connect_until(qp, IBV_QPS_RTR, board->qpn[!self],
				   (struct ibv_qp_attr){.ah_attr.grh = {.hop_limit = 1, .sgid_index = 3},
							.max_dest_rd_atomic = 1,
							.min_rnr_timer = 12}));
}

/* Lowers the limit, so that @spare descriptors are free. Returns the limit before. */
static struct rlimit use_up_descriptors(int spare)
{
	struct rlimit before, none;
	int lowest = dup(STDERR_FILENO);

	CHECK(lowest >= 0 && !getrlimit(RLIMIT_NOFILE, &before));
	close(lowest);
	none = (struct rlimit){(rlim_t)(lowest + spare), before.rlim_max};
	CHECK(!setrlimit(RLIMIT_NOFILE, &none));
	return before;
}

static void to_rtr_without_descriptors(void)
{
	struct rlimit before = use_up_descriptors(0);

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
	struct ibv_mr *source = ibv_reg_mr(pd, &value, sizeof(value), 0);

	CHECK(source);
	verbs_post_write(qp, &value, sizeof(value), source, board->address[!self], board->rkey[!self]);
	CHECK(verbs_next_status() == IBV_WC_SUCCESS);
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
	meet(2);
	if (self == 1)
		to_rtr();
	to_rts();
	meet(3);
	if (self == first)
		write_word();
	meet(4);
	if (self != first)
		write_word();
	meet(5);
	_exit(0);
}

/* Process 1 connects, and posts a request, while process 0 cannot keep what it accepts. */
static void run_refused(int first)
{
	struct rlimit before = {0};

	open_device();
	begin_listening();
	if (self == first)
		before = use_up_descriptors(1);
	meet(1);
	if (self != first) {
		to_rtr();
		to_rts();
	}
	meet(2);
	if (self == first) {
		usleep(REFUSED_US);
		CHECK(!setrlimit(RLIMIT_NOFILE, &before));
		to_rtr();
		to_rts();
	} else {
		write_word();
	}
	meet(3);
	_exit(0);
}

static void both_processes(void (*run_one)(int first), int first)
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
		run_one(first);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_int_equal(status, 0);
	}
	munmap(board, sizeof(*board));
}

TEST(after_a_time_out)
{
	both_processes(run, 0);
}

TEST(when_the_peer_comes)
{
	both_processes(run, 1);
}

TEST(when_it_was_refused)
{
	both_processes(run_refused, 0);
}

int main(void)
{
	setenv("SOFTHCA_LINK", "auto", 1);
	setenv("SOFTHCA_GIDS", "loopback", 1);
	return run_cases();
}
