/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that receives for its host (SOFTHCA_LINK=udp) ends, is killed, or is stopped for a while, while two
 * others write to each other: one of them takes over, and no request fails. No packet is lost, so this holds for queue
 * pairs that never retransmit, too.
 */
#include "own_network.h"
#include "test_case.h"
#include "verbs_process.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

enum {
	OWNER,      /* has the port, and no traffic */
	FIRST_PEER, /* the two that write */
	PEERS = 2,
	PROCESSES = FIRST_PEER + PEERS,
	WORDS = 4096,
	ROUNDS_BEFORE = 100, /* of writing, until something happens to the owner… */
	ROUNDS_AFTER = 100,  /* …and until the peers stop */
	WITHIN_S = 40,       /* each step: on a busy machine a round may take a tenth of a second */
	TIMEOUT = 15,        /* 134 ms */
	SHORT_TIMEOUT = 11,  /* 8.4 ms: with 7 retries 0.23 s, before another process receives */
};

/* Shared state of the processes. */
static struct board {
	uint32_t ready[PROCESSES];  /* atomic */
	uint32_t rounds[PROCESSES]; /* atomic; done */
	uint32_t stop;              /* atomic; round after which the peers stop */
	uint32_t end;               /* atomic; 1: the owner must end */
	uint8_t timeout;            /* of the queue pairs; 0: they never retransmit */
	uint32_t qpn[PROCESSES], rkey[PROCESSES];
	uint64_t address[PROCESSES];
} * board;

static int self;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static struct {
	uint32_t inbox[WORDS], outbox[WORDS];
} memory;

static void set(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

static bool wait_until(const uint32_t *word, uint32_t value)
{
	time_t end = time(NULL) + WITHIN_S;

	while (__atomic_load_n(word, __ATOMIC_SEQ_CST) < value) {
		if (time(NULL) > end)
			return false;
		usleep(200);
	}
	return true;
}

/* A datagram QP that can receive is enough. */
static void own_the_port(void)
{
	verbs_open();
	CHECK(!verbs_connect_until(verbs_qp(IBV_QPT_UD), IBV_QPS_RTR, 0, (struct ibv_qp_attr){.qkey = 1}));
	set(&board->ready[OWNER], 1);
	while (!__atomic_load_n(&board->end, __ATOMIC_SEQ_CST))
		usleep(200);
	exit(0);
}

static void connect_to(int peer)
{
	CHECK(!verbs_connect(qp, board->qpn[peer], .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
			     .ah_attr.grh.sgid_index = 3, .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
			     .timeout = board->timeout));
}

static void write_round(int peer, uint32_t round)
{
	enum ibv_wc_status status;

	for (uint32_t i = 0; i < WORDS; i++)
		memory.outbox[i] = round << 13 | i;
	verbs_post_write(qp, memory.outbox, sizeof(memory.outbox), mr, board->address[peer], board->rkey[peer]);
	status = verbs_next_status();
	if (status != IBV_WC_SUCCESS)
		fprintf(stderr, "process %d, round %u: %s\n", self, round, ibv_wc_status_str(status));
	CHECK(status == IBV_WC_SUCCESS);
	set(&board->rounds[self], round);
}

static void write_to_each_other(void)
{
	int peer = self == FIRST_PEER ? FIRST_PEER + 1 : FIRST_PEER;

	verbs_open();
	qp = verbs_qp(IBV_QPT_RC);
	mr = verbs_target(&memory, sizeof(memory));
	board->qpn[self] = qp->qp_num;
	board->rkey[self] = mr->rkey;
	board->address[self] = (uintptr_t)memory.inbox;
	set(&board->ready[self], 1);
	CHECK(wait_until(&board->ready[peer], 1));
	connect_to(peer);
	set(&board->ready[self], 2);
	CHECK(wait_until(&board->ready[peer], 2));
	for (uint32_t round = 1; round <= __atomic_load_n(&board->stop, __ATOMIC_SEQ_CST); round++)
		write_round(peer, round);
	set(&board->ready[self], 3);
	CHECK(wait_until(&board->ready[peer], 3));
	/* The data of the peer's last round remains. */
	for (uint32_t i = 0; i < WORDS; i++)
		CHECK(memory.inbox[i] == (board->rounds[peer] << 13 | i));
}

/* ---- the test ---------------------------------------------------------------------------------------------------- */

static pid_t start(int number)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	self = number;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (number == OWNER)
		own_the_port();
	write_to_each_other();
	_exit(0);
}

/* Waits until @writer has done @rounds, while no writer ends. However slow the machine is, each round has its own time. */
static void expect_rounds(const pid_t *pid, int writer, uint32_t rounds)
{
	time_t end = time(NULL) + WITHIN_S;
	uint32_t done = 0, now;
	int status;

	while ((now = __atomic_load_n(&board->rounds[writer], __ATOMIC_SEQ_CST)) < rounds) {
		if (now != done)
			end = time(NULL) + WITHIN_S;
		done = now;
		if (time(NULL) > end)
			fail_msg("process %d is stuck after round %u", writer, done);
		for (int i = FIRST_PEER; i < PROCESSES; i++)
			if (waitpid(pid[i], &status, WNOHANG) > 0)
				fail_msg("process %d has ended, status %#x, in its round %u", i, status,
					 board->rounds[i]);
		usleep(200);
	}
}

static void rounds_go_on(const pid_t *pid, uint32_t rounds)
{
	uint32_t before[PROCESSES];

	for (int i = FIRST_PEER; i < PROCESSES; i++)
		before[i] = __atomic_load_n(&board->rounds[i], __ATOMIC_SEQ_CST);
	for (int i = FIRST_PEER; i < PROCESSES; i++)
		expect_rounds(pid, i, before[i] + rounds);
}

static void begin(pid_t *pid, uint8_t timeout)
{
	memset(board, 0, sizeof(*board));
	board->stop = UINT32_MAX;
	board->timeout = timeout;
	for (int i = 0; i < PROCESSES; i++) {
		pid[i] = start(i);
		assert_true(wait_until(&board->ready[i], 1));
	}
	rounds_go_on(pid, ROUNDS_BEFORE);
}

static void end(const pid_t *pid)
{
	int status;

	rounds_go_on(pid, ROUNDS_AFTER);
	set(&board->stop, 0);
	for (int i = FIRST_PEER; i < PROCESSES; i++) {
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_int_equal(status, 0);
	}
}

static void kill_the_owner(uint8_t timeout)
{
	pid_t pid[PROCESSES];
	int status;

	begin(pid, timeout);
	kill(pid[OWNER], SIGKILL);
	assert_int_equal(waitpid(pid[OWNER], &status, 0), pid[OWNER]);
	end(pid);
}

TEST(the_owner_is_killed)
{
	kill_the_owner(0);
}

TEST(the_owner_is_killed_and_timers_run)
{
	kill_the_owner(TIMEOUT);
}

TEST(the_owner_ends)
{
	pid_t pid[PROCESSES];
	int status;

	begin(pid, 0);
	set(&board->end, 1);
	assert_int_equal(waitpid(pid[OWNER], &status, 0), pid[OWNER]);
	assert_int_equal(status, 0);
	end(pid);
}

/* The others continue while the owner is stopped, and after it continues and ends. */
static void stop_the_owner(uint8_t timeout)
{
	pid_t pid[PROCESSES];
	int status;

	begin(pid, timeout);
	kill(pid[OWNER], SIGSTOP);
	assert_int_equal(waitpid(pid[OWNER], &status, WUNTRACED), pid[OWNER]);
	rounds_go_on(pid, ROUNDS_AFTER);
	kill(pid[OWNER], SIGCONT);
	rounds_go_on(pid, ROUNDS_AFTER);
	set(&board->end, 1);
	assert_int_equal(waitpid(pid[OWNER], &status, 0), pid[OWNER]);
	assert_int_equal(status, 0);
	end(pid);
}

TEST(the_owner_is_stopped)
{
	stop_the_owner(0);
}

/* A packet that waits in the socket is not lost: no retry is counted while the socket is not read. */
TEST(the_owner_is_stopped_for_longer_than_retries_last)
{
	stop_the_owner(SHORT_TIMEOUT);
}

int main(int argc, char **argv)
{
	if (!own_network()) {
		printf("1..0 # SKIP no network of its own: %s\n", strerror(errno));
		return 77;
	}
	setenv("SOFTHCA_LINK", "udp", 1);
	setenv("SOFTHCA_GIDS", "loopback", 1);
	/* Makes the processes explain failures. */
	setenv("SOFTHCA_EXPLAIN", "stderr", 0);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		return 1;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return run_cases();
}
