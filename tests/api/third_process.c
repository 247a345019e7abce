/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue pair accepts packets of its peer's process only. A third process of the same user knows the number, the PSN,
 * the key and the address of a connected queue pair, and connects its own queue pair to it: its WRITE changes nothing
 * and is not answered, and the two connected processes continue. IBTA 9.6: a connected queue pair drops packets that
 * are not from its peer.
 */
#include "own_network.h"
#include "test_case.h"
#include "verbs_process.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum { TARGET, PEER, THIRD, PROCESSES, WITHIN_S = 40, PSN = 7, PATIENT = 14, IMPATIENT = 8 };

/* Shared by the processes. */
static struct board {
	uint32_t step[PROCESSES]; /* atomic */
	uint32_t third_first;     /* 1: it sends before the peer does */
	uint32_t qpn[PROCESSES], rkey;
	uint64_t memory[2]; /* of the target: words that the peer and the third process write */
	uint64_t address;
} * board;

static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint64_t outbox;

static void reach(int process, uint32_t step)
{
	__atomic_store_n(&board->step[process], step, __ATOMIC_SEQ_CST);
}

static void await(int process, uint32_t step)
{
	time_t end = time(NULL) + WITHIN_S;

	while (__atomic_load_n(&board->step[process], __ATOMIC_SEQ_CST) < step) {
		CHECK(time(NULL) < end);
		usleep(200);
	}
}

static void open_device(int process)
{
	verbs_open();
	qp = verbs_qp(IBV_QPT_RC);
	mr = process == TARGET ? verbs_target(board->memory, sizeof(board->memory))
			       : ibv_reg_mr(pd, &outbox, sizeof(outbox), 0);
	CHECK(mr);
	board->qpn[process] = qp->qp_num;
}

static void connect_to(uint32_t number, uint8_t timeout, uint32_t psn)
{
	CHECK(!verbs_connect(qp, number, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE, .rq_psn = PSN, .sq_psn = psn,
			     .ah_attr.grh.sgid_index = 3, .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
			     .timeout = timeout, .retry_cnt = 3));
}

/* Writes @value to word @index of the target; returns the status. */
static enum ibv_wc_status write_word(int index, uint64_t value)
{
	outbox = value;
	verbs_post_write(qp, &outbox, sizeof(outbox), mr, board->address + (uint64_t)index * sizeof(uint64_t),
			 board->rkey);
	return verbs_next_status();
}

static void be_target(void)
{
	struct ibv_wc wc;

	open_device(TARGET);
	board->rkey = mr->rkey;
	board->address = (uintptr_t)board->memory;
	reach(TARGET, 1);
	await(PEER, 1);
	connect_to(board->qpn[PEER], PATIENT, PSN);
	reach(TARGET, 2);
	while (__atomic_load_n(&board->step[PEER], __ATOMIC_SEQ_CST) < 4)
		ibv_poll_cq(cq, 1, &wc);
}

/* Writes before the third process does, and after it. */
static void be_peer(void)
{
	open_device(PEER);
	reach(PEER, 1);
	await(TARGET, 2);
	connect_to(board->qpn[TARGET], PATIENT, PSN);
	if (board->third_first)
		await(THIRD, 1);
	CHECK(write_word(0, 1) == IBV_WC_SUCCESS);
	reach(PEER, 3);
	await(THIRD, 1);
	CHECK(write_word(0, 2) == IBV_WC_SUCCESS);
	reach(PEER, 4);
}

static void be_third(void)
{
	open_device(THIRD);
	await(TARGET, 2);
	if (!board->third_first)
		await(PEER, 3);
	/* The number that the target expects next. */
	connect_to(board->qpn[TARGET], IMPATIENT, board->third_first ? PSN : PSN + 1);
	CHECK(write_word(1, 3) == IBV_WC_RETRY_EXC_ERR);
	reach(THIRD, 1);
}

static pid_t start(void (*body)(void))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	body();
	_exit(0);
}

static void run(uint32_t third_first)
{
	static void (*const bodies[PROCESSES])(void) = {be_target, be_peer, be_third};
	pid_t pid[PROCESSES];
	int status;

	memset(board, 0, sizeof(*board));
	board->third_first = third_first;
	for (int i = 0; i < PROCESSES; i++)
		pid[i] = start(bodies[i]);
	for (int i = 0; i < PROCESSES; i++) {
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(board->memory[0], 2);
	assert_int_equal(board->memory[1], 0);
}

TEST(after_the_peer)
{
	run(0);
}

/* The target has accepted no packet yet. */
TEST(before_the_peer)
{
	run(1);
}

int main(void)
{
	if (!own_network()) {
		printf("1..0 # SKIP no network of its own: %s\n", strerror(errno));
		return 77;
	}
	setenv("SOFTHCA_LINK", "shm", 1);
	setenv("SOFTHCA_GIDS", "loopback", 1);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		return 1;
	return run_cases();
}
