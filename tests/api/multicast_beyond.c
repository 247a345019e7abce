/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast between processes of a host, in the test's own network namespace (IBTA 10.5, annex A17.9.1): each member
 * gets one copy of a datagram, in whichever process, while it is a member, and sockets of groups do not block the RoCE
 * port.
 */
#include "kernel_has.h"
#include "own_network.h"
#include "test_case.h"
#include "verbs_process.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum {
	SENDER, /* a member, too */
	MEMBERS = 3,
	RECEIVES = 8,
	GRH = 40,
	BYTES = 64,
	QKEY = 0x1234,
	V2_IPV4 = 3, /* place of ::ffff:127.0.0.1 with SOFTHCA_GIDS=loopback */
	WITHIN_S = 20,
	QUIET_US = 50000, /* a datagram that has not arrived within this time will not arrive */
};

#define GROUP "::ffff:239.83.1.2"
#define OTHER_GROUP "::ffff:239.83.1.3"

/* Shared state of the processes: the step to perform, and how many steps each has done. */
static struct board {
	uint32_t step;           /* atomic */
	uint32_t done[MEMBERS];  /* atomic */
	uint32_t taken[MEMBERS]; /* datagrams in total */
} * board;

static int self;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t memory[(RECEIVES + 1) * (GRH + BYTES)];

static void open_member(uint32_t create_flags)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.create_flags = create_flags,
	};

	verbs_open();
	attr.pd = pd;
	attr.send_cq = attr.recv_cq = cq;
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	qp = ibv_create_qp_ex(context, &attr);
	CHECK(mr && qp);
	CHECK(!verbs_connect(qp, 0, .qkey = QKEY));
	for (int i = 0; i < RECEIVES; i++) {
		struct ibv_sge sge = {(uintptr_t)memory + (size_t)i * (GRH + BYTES), GRH + BYTES, mr->lkey};
		struct ibv_recv_wr wr = {.wr_id = (uint64_t)i, .sg_list = &sge, .num_sge = 1}, *bad;

		CHECK(!ibv_post_recv(qp, &wr, &bad));
	}
}

static union ibv_gid gid_of(const char *text)
{
	union ibv_gid gid;

	CHECK(inet_pton(AF_INET6, text, gid.raw) == 1);
	return gid;
}

/* Sends a datagram that contains its number. */
static void send_to(const char *group, uint32_t number)
{
	uint8_t *bytes = memory + RECEIVES * (GRH + BYTES);
	struct ibv_sge sge = {(uintptr_t)bytes, BYTES, mr->lkey};
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1, .grh = {.dgid = gid_of(group), .sgid_index = V2_IPV4}};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .wr_id = 100}, *bad;

	memset(bytes, (int)number, BYTES);
	wr.wr.ud.ah = ibv_create_ah(pd, &attr);
	wr.wr.ud.remote_qpn = 0xffffff;
	wr.wr.ud.remote_qkey = QKEY;
	CHECK(wr.wr.ud.ah);
	CHECK(!ibv_post_send(qp, &wr, &bad));
	CHECK(!ibv_destroy_ah(wr.wr.ud.ah));
}

static void look_at(const struct ibv_wc *wc)
{
	const uint8_t *bytes = memory + wc->wr_id * (GRH + BYTES) + GRH;

	CHECK(wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_RECV);
	CHECK(wc->byte_len == GRH + BYTES && wc->wc_flags & IBV_WC_GRH);
	/* They arrive in the order in which they were sent, once each. */
	board->taken[self]++;
	for (int i = 0; i < BYTES; i++)
		CHECK(bytes[i] == board->taken[self]);
}

/* Receives datagrams until @number have arrived in total, and then waits a little longer. */
static void expect_datagrams(uint32_t number)
{
	time_t end = time(NULL) + WITHIN_S;
	struct ibv_wc wc;
	int found, quiet = 0;

	while (quiet < QUIET_US) {
		found = ibv_poll_cq(cq, 1, &wc);
		CHECK(found >= 0 && time(NULL) < end);
		if (found)
			look_at(&wc);
		else
			usleep(100);
		if (board->taken[self] >= number)
			quiet += 100;
	}
	CHECK(board->taken[self] == number);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

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

static void done(uint32_t step)
{
	__atomic_store_n(&board->done[self], step + 1, __ATOMIC_SEQ_CST);
	CHECK(wait_until(&board->step, step + 1));
}

/*
 * All members receive it once. A member that leaves receives no more; the group keeps working, and the member may
 * rejoin.
 */
static void be_member(void)
{
	union ibv_gid group = gid_of(GROUP);

	open_member(0);
	CHECK(!ibv_attach_mcast(qp, &group, 0));
	done(0);
	if (self == SENDER) {
		send_to(OTHER_GROUP, 77);
		send_to(GROUP, 1);
	}
	expect_datagrams(1);
	done(1);
	if (self == MEMBERS - 1)
		CHECK(!ibv_detach_mcast(qp, &group, 0));
	done(2);
	if (self == SENDER)
		send_to(GROUP, 2);
	expect_datagrams(self == MEMBERS - 1 ? 1 : 2);
	done(3);
	if (self == MEMBERS - 1) {
		board->taken[self]++; /* it missed one */
		CHECK(!ibv_attach_mcast(qp, &group, 0));
	}
	done(4);
	if (self == SENDER)
		send_to(GROUP, 3);
	expect_datagrams(3);
	done(5);
	CHECK(!ibv_detach_mcast(qp, &group, 0));
}

/* A QP that blocks its own datagrams, and another that attaches late. */
static void block_own(void)
{
	union ibv_gid group = gid_of(GROUP);

	open_member(self == SENDER ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0);
	CHECK(!ibv_attach_mcast(qp, &group, 0));
	done(0);
	if (self == SENDER)
		send_to(GROUP, 1);
	expect_datagrams(self != SENDER);
	done(1);
}

/* The processes exit one after the other while they are members: the next one takes over the port and the group. */
static void end_in_turn(void)
{
	union ibv_gid group = gid_of(GROUP);

	open_member(0);
	CHECK(!ibv_attach_mcast(qp, &group, 0));
	done(0);
	for (int step = 1; step < MEMBERS; step++) {
		if (self == step - 1)
			_exit(0);
		done((uint32_t)step);
		if (self == MEMBERS - 1)
			send_to(GROUP, (uint32_t)step);
		expect_datagrams((uint32_t)step);
	}
}

/* ---- the test ---------------------------------------------------------------------------------------------------- */

static pid_t start(int number, void (*body)(void))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	self = number;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	body();
	_exit(0);
}

/* Runs the steps in all processes, one step at a time; processes that have exited are not waited for. */
static void run(void (*body)(void))
{
	bool ended[MEMBERS] = {false};
	time_t end = time(NULL) + 6 * WITHIN_S;
	pid_t pid[MEMBERS];
	int left = MEMBERS, status;

	memset(board, 0, sizeof(*board));
	for (int i = 0; i < MEMBERS; i++)
		pid[i] = start(i, body);
	while (left) {
		bool all = true;

		for (int i = 0; i < MEMBERS; i++) {
			if (!ended[i] && waitpid(pid[i], &status, WNOHANG) == pid[i]) {
				assert_int_equal(status, 0);
				ended[i] = true;
				left--;
			}
			all &= ended[i] || __atomic_load_n(&board->done[i], __ATOMIC_SEQ_CST) > board->step;
		}
		if (all)
			__atomic_store_n(&board->step, board->step + 1, __ATOMIC_SEQ_CST);
		assert_true(time(NULL) < end);
		usleep(200);
	}
}

TEST(members_of_other_processes)
{
	run(be_member);
}

TEST(own_datagrams_are_blocked)
{
	run(block_own);
}

TEST(members_end)
{
	run(end_in_turn);
}

int main(void)
{
	if (!own_network()) {
		puts("1..0 # SKIP no network of its own");
		return 77;
	}
	if (!kernel_has_groups_by_index()) {
		puts("1..0 # SKIP no membership of groups");
		return 77;
	}
	setenv("SOFTHCA_GIDS", "loopback", 1);
	/* Makes the processes explain failures. */
	setenv("SOFTHCA_EXPLAIN", "stderr", 0);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		return 1;
	return run_cases();
}
