/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes of a host that all connect to each other at once, write to each other, and lose one of them: requests to it
 * fail in time, everything else continues.
 */
#include "test_case.h"
#include "verbs_process.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

enum {
	PROCESSES = 5,
	ROUNDS = 20,        /* of writing to all others */
	WORDS = 1000,       /* of a message */
	VICTIM = 2,         /* the process that is killed */
	SEEN_WITHIN_S = 20, /* timeout 14: 8 tries of up to 4 times 67 ms */
};

/* Shared state of the processes. */
static struct board {
	uint32_t arrived[8]; /* atomic; at each barrier */
	uint32_t living;     /* atomic; processes that take part in barriers: all until the victim is dead */
	struct {
		uint32_t qpn[PROCESSES], rkey; /* of the QP for each other process */
		uint64_t address;
	} of[PROCESSES];
} * board;

static int self;
static struct ibv_mr *mr;
static struct ibv_qp *qp[PROCESSES];
static struct {
	uint32_t inbox[PROCESSES][WORDS], outbox[PROCESSES][WORDS]; /* from and for each other process */
} memory;

static void barrier(int number)
{
	__atomic_add_fetch(&board->arrived[number], 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&board->arrived[number], __ATOMIC_SEQ_CST) <
	       __atomic_load_n(&board->living, __ATOMIC_SEQ_CST))
		sched_yield();
}

static void connect_to(int peer)
{
	CHECK(!verbs_connect(qp[peer], board->of[peer].qpn[self], .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
			     .timeout = 14));
}

static void post(int peer, uint32_t round)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)memory.outbox[peer], .length = sizeof(memory.outbox[peer]), .lkey = mr->lkey};
	struct ibv_send_wr wr = rdma_wr((uint64_t)peer, IBV_WR_RDMA_WRITE, &sge,
					board->of[peer].address + (uint64_t)self * sizeof(memory.inbox[0]),
					board->of[peer].rkey),
			   *bad;

	for (int i = 0; i < WORDS; i++)
		memory.outbox[peer][i] = round << 16 | (uint32_t)self << 12 | (uint32_t)i;
	CHECK(!ibv_post_send(qp[peer], &wr, &bad));
}

/* Returns the status of the completions of @count requests, by peer. */
static void collect(int count, enum ibv_wc_status *status)
{
	time_t end = time(NULL) + SEEN_WITHIN_S;
	struct ibv_wc wc;

	while (count) {
		int found = ibv_poll_cq(cq, 1, &wc);

		CHECK(found >= 0);
		CHECK(time(NULL) < end);
		if (!found)
			continue;
		status[wc.wr_id] = wc.status;
		count--;
	}
}

/* @survivors: writing to the victim fails, and nothing else does. */
static void write_to_all(uint32_t round, bool survivors)
{
	enum ibv_wc_status status[PROCESSES];

	for (int peer = 0; peer < PROCESSES; peer++)
		if (peer != self)
			post(peer, round);
	collect(PROCESSES - 1, status);
	for (int peer = 0; peer < PROCESSES; peer++)
		if (peer != self)
			CHECK(status[peer] == (survivors && peer == VICTIM ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS));
}

static void check_inbox(uint32_t round, bool survivors)
{
	for (int peer = 0; peer < PROCESSES; peer++)
		for (int i = 0; i < WORDS && peer != self && !(survivors && peer == VICTIM); i++)
			CHECK(memory.inbox[peer][i] == (round << 16 | (uint32_t)peer << 12 | (uint32_t)i));
}

static void open_all(void)
{
	verbs_open();
	mr = verbs_target(&memory, sizeof(memory));
	board->of[self].rkey = mr->rkey;
	board->of[self].address = (uintptr_t)memory.inbox;
}

static void all_with_all(void)
{
	open_all();
	for (int peer = 0; peer < PROCESSES; peer++) {
		if (peer != self) {
			qp[peer] = verbs_target_qp();
			board->of[self].qpn[peer] = qp[peer]->qp_num;
		}
	}
	barrier(0);
	for (int peer = 0; peer < PROCESSES; peer++)
		if (peer != self)
			connect_to(peer);
	barrier(1);
	for (uint32_t round = 1; round <= ROUNDS; round++)
		write_to_all(round, false);
	barrier(2);
	check_inbox(ROUNDS, false);
	barrier(3);
	if (self == VICTIM)
		kill(getpid(), SIGKILL);
	while (__atomic_load_n(&board->living, __ATOMIC_SEQ_CST) == PROCESSES)
		sched_yield();
	write_to_all(ROUNDS + 1, true);
	barrier(4);
	check_inbox(ROUNDS + 1, true);
	barrier(5);
}

TEST(connect_and_lose_one)
{
	pid_t pid[PROCESSES];
	int status;

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(board, MAP_FAILED);
	board->living = PROCESSES;
	for (self = 0; self < PROCESSES; self++) {
		pid[self] = fork();
		assert_true(pid[self] >= 0);
		if (!pid[self]) {
			alarm(50);
			all_with_all();
			_exit(0);
		}
	}
	assert_int_equal(waitpid(pid[VICTIM], &status, 0), pid[VICTIM]);
	__atomic_store_n(&board->living, PROCESSES - 1, __ATOMIC_SEQ_CST);
	assert_int_equal(status, SIGKILL);
	for (int i = 0; i < PROCESSES; i++) {
		if (i == VICTIM)
			continue;
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_int_equal(status, 0);
	}
	munmap(board, sizeof(*board));
}

int main(void)
{
	const char *link = getenv("SOFTHCA_LINK");

	/* There is no other process to connect to. */
	if (link && !strcmp(link, "local"))
		return 77;
	return run_cases();
}
