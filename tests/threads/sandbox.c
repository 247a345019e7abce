/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Denied system calls (src/core/system_calls.def): for each one of the table, each link, and ENOSYS and EPERM, a child
 * installs a seccomp(2) filter before the device is created, then registers memory, connects two QPs, sends, sleeps for
 * an event, and destroys everything. No step hangs or crashes; each works or fails with an explanation.
 */
#include "fixture.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE = 4 << 20, ALARM_SECONDS = 30, FEW = 8, MOST_AT_ONCE = 8, WAIT_US = 2000 };

/* The timeout of QPs: about 0.3 s until RETRY_EXC_ERR. */
enum { PATIENCE = 13 };

/* Exit statuses of a child, and further expectations of the table. */
enum { WORKS = 0, REFUSED = 10, ELSE_REFUSED };
enum { FILE_SIZE = -1 };

struct refusal {
	const char *name;
	long number;
	int outcome[3];
};

/* What the C library calls instead on processors without them, such as aarch64. */
#ifndef SYS_epoll_wait
#define SYS_epoll_wait SYS_epoll_pwait
#endif
#ifndef SYS_poll
#define SYS_poll SYS_ppoll
#endif

static const char *const links[] = {"local", "shm", "udp"};

static const struct refusal refusals[] = {
#define SYSTEM_CALL(name, local, shm, udp, use, without) {#name, SYS_##name, {local, shm, udp}},
#include "core/system_calls.def"
	/* Besides system calls: files are limited to one page (setrlimit(2)); otherwise the kernel sends SIGXFSZ. */
	{"RLIMIT_FSIZE", FILE_SIZE, {WORKS, REFUSED, WORKS}},
};

static void install_filter(long number, int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

/* ---- traffic; any step may fail -------------------------------------------------------------------------------- */

struct world {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
	struct ibv_mr *mr;
	char *memory;
};

#define STEP(condition)                                                                                                \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			return false;                                                                                  \
		}                                                                                                      \
	} while (0)

static bool open_world(struct world *world)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
	};

	STEP(list && list[0]);
	STEP((world->context = ibv_open_device(list[0])));
	ibv_free_device_list(list);
	STEP((world->pd = ibv_alloc_pd(world->context)));
	STEP((world->channel = ibv_create_comp_channel(world->context)));
	STEP((world->cq = ibv_create_cq(world->context, 64, NULL, world->channel, 0)));
	world->memory = mmap(NULL, 2 * LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(world->memory != MAP_FAILED);
	STEP((world->mr = ibv_reg_mr(world->pd, world->memory, 2 * LARGE, ACCESS)));
	init.send_cq = init.recv_cq = world->cq;
	for (int i = 0; i < 2; i++)
		STEP((world->qp[i] = ibv_create_qp(world->pd, &init)));
	return true;
}

static bool write_and_poll(struct world *world, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)world->memory, bytes, world->mr->lkey};
	struct ibv_send_wr *bad,
		wr = rdma_wr(0, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)world->memory + LARGE, world->mr->rkey);
	struct ibv_wc wc;

	memset(world->memory, (int)bytes | 1, bytes);
	STEP(!ibv_post_send(world->qp[0], &wr, &bad));
	wc = wait_completion(world->cq);
	if (wc.status)
		errno = 0;
	STEP(wc.status == IBV_WC_SUCCESS);
	CHECK(!memcmp(world->memory, world->memory + LARGE, bytes));
	return true;
}

/* Sleeps in poll(2), so the device thread has to handle arriving packets. */
static bool send_and_sleep(struct world *world)
{
	struct ibv_sge sge = {(uintptr_t)world->memory, 64, world->mr->lkey};
	struct ibv_recv_wr *bad_recv, recv = {.wr_id = 2};
	struct ibv_send_wr *bad, wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 0, .opcode = IBV_WR_SEND};
	struct pollfd readable = {.fd = world->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *cookie;

	STEP(!ibv_post_recv(world->qp[1], &recv, &bad_recv));
	STEP(!ibv_req_notify_cq(world->cq, 0));
	STEP(!ibv_post_send(world->qp[0], &wr, &bad));
	/* One of the two system calls may be the denied one. */
	if (syscall(SYS_ppoll, &readable, 1, &(struct timespec){5, 0}, NULL, 8) != 1 &&
	    syscall(SYS_poll, &readable, 1, 5000) != 1) {
		errno = ETIMEDOUT;
		STEP(!"the event");
	}
	STEP(!ibv_get_cq_event(world->channel, &cq, &cookie));
	ibv_ack_cq_events(cq, 1);
	STEP(wait_completion(world->cq).status == IBV_WC_SUCCESS);
	return true;
}

static void *send_soon(void *argument)
{
	struct world *world = argument;
	struct ibv_sge sge = {(uintptr_t)world->memory, 64, world->mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 0, .opcode = IBV_WR_SEND};

	usleep(WAIT_US);
	/* Not NULL: posting failed. */
	return ibv_post_send(world->qp[0], &wr, &bad) ? world : NULL;
}

/* Sleeps in ibv_get_cq_event(3), where a thread substitutes for the device thread. */
static bool wait_for_event(struct world *world)
{
	struct ibv_recv_wr *bad, recv = {.wr_id = 2};
	struct ibv_cq *cq;
	void *cookie, *failed = NULL;
	pthread_t sender;
	bool threads;

	STEP(!ibv_post_recv(world->qp[1], &recv, &bad));
	STEP(!ibv_req_notify_cq(world->cq, 0));
	threads = !pthread_create(&sender, NULL, send_soon, world);
	if (!threads)
		failed = send_soon(world);
	STEP(!ibv_get_cq_event(world->channel, &cq, &cookie));
	ibv_ack_cq_events(cq, 1);
	CHECK(!threads || !pthread_join(sender, &failed));
	STEP(!failed);
	STEP(wait_completion(world->cq).status == IBV_WC_SUCCESS);
	return true;
}

static bool run(struct world *world)
{
	STEP(open_world(world));
	for (int i = 0; i < 2; i++)
		STEP(!verbs_connect(world->qp[i], world->qp[!i]->qp_num, .qp_access_flags = ACCESS,
				    .max_dest_rd_atomic = 4, .min_rnr_timer = 1, .timeout = PATIENCE, .retry_cnt = 4,
				    .max_rd_atomic = 4));
	for (int i = 0; i < FEW; i++)
		STEP(write_and_poll(world, 64));
	STEP(write_and_poll(world, LARGE));
	usleep(20000);
	STEP(send_and_sleep(world));
	for (int i = 0; i < 2; i++)
		STEP(wait_for_event(world));
	return true;
}

static void close_world(struct world *world)
{
	for (int i = 0; i < 2; i++)
		CHECK(!world->qp[i] || !ibv_destroy_qp(world->qp[i]));
	CHECK(!world->mr || !ibv_dereg_mr(world->mr));
	CHECK(!world->cq || !ibv_destroy_cq(world->cq));
	CHECK(!world->channel || !ibv_destroy_comp_channel(world->channel));
	CHECK(!world->pd || !ibv_dealloc_pd(world->pd));
	CHECK(!world->context || !ibv_close_device(world->context));
}

/* ---- each attempt in a child ----------------------------------------------------------------------------------- */

struct attempt {
	pid_t child; /* 0: none */
	const struct refusal *refusal;
	int link, error;
	char sink[64]; /* file for the explanations */
};

static int attempt_in_child(const struct attempt *attempt)
{
	struct world world = {0};
	char port[16];
	bool worked;

	setenv("SOFTHCA_LINK", links[attempt->link], 1);
	setenv("SOFTHCA_GIDS", "loopback", 1);
	/* A port that differs from that of a concurrent test, which would receive for this one. */
	snprintf(port, sizeof(port), "%d", 20000 + getppid() % 20000);
	setenv("SOFTHCA_ROCE_PORT", port, 1);
	setenv("SOFTHCA_EXPLAIN", attempt->sink, 1);
	/* Time to wait for a peer that is alive but silent. */
	setenv("SOFTHCA_PEER_SILENCE", "1", 1);
	alarm(ALARM_SECONDS);
	if (attempt->refusal->number == FILE_SIZE)
		CHECK(!setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, 4096}));
	else
		install_filter(attempt->refusal->number, attempt->error);
	worked = run(&world);
	close_world(&world);
	return worked ? WORKS : REFUSED;
}

static void start(struct attempt *attempt, const struct refusal *refusal, int link, int error)
{
	int file;

	*attempt = (struct attempt){.refusal = refusal, .link = link, .error = error, .sink = "/tmp/sandbox-XXXXXX"};
	file = mkstemp(attempt->sink);
	CHECK(file >= 0);
	close(file);
	attempt->child = fork();
	CHECK(attempt->child >= 0);
	if (attempt->child == 0)
		_exit(attempt_in_child(attempt));
}

/* Returns false if the result differs from the table, or the failure was not explained. */
static bool end(struct attempt *attempt)
{
	const struct refusal *refusal = attempt->refusal;
	int status, wanted = refusal->outcome[attempt->link];
	struct stat sink;
	bool good;

	if (wanted == ELSE_REFUSED)
		wanted = attempt->error == ENOSYS ? WORKS : REFUSED;
	CHECK(waitpid(attempt->child, &status, 0) == attempt->child);
	CHECK(!stat(attempt->sink, &sink) && !unlink(attempt->sink));
	good = WIFEXITED(status) && WEXITSTATUS(status) == wanted && (wanted == WORKS || sink.st_size > 0);
	if (!good)
		fprintf(stderr, "%s refused with %s, link %s: %s %d with %s explanation, expected exit status %d\n",
			refusal->name, strerrorname_np(attempt->error), links[attempt->link],
			WIFEXITED(status) ? "exit status" : "signal",
			WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), sink.st_size ? "an" : "no", wanted);
	attempt->child = 0;
	return good;
}

/*
 * Runs attempts over udp one at a time: one process receives for the whole host, and its denied call must not affect
 * other attempts.
 */
static bool refuse_over(int link, const char *only)
{
	static const int errors[] = {ENOSYS, EPERM};
	struct attempt attempts[MOST_AT_ONCE] = {0};
	size_t at_once = strcmp(links[link], "udp") == 0 ? 1 : MOST_AT_ONCE, next = 0;
	bool good = true;

	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		for (int e = 0; e < 2 && (!only || !strcmp(only, refusals[i].name)); e++) {
			struct attempt *attempt = &attempts[next++ % at_once];

			if (attempt->child)
				good &= end(attempt);
			start(attempt, &refusals[i], link, errors[e]);
		}
	for (size_t i = 0; i < at_once; i++)
		if (attempts[i].child)
			good &= end(&attempts[i]);
	return good;
}

/* sandbox [CALL]: all system calls, or one. */
int main(int argc, char **argv)
{
	bool good = true;

	for (int link = 0; link < 3; link++)
		good &= refuse_over(link, argc > 1 ? argv[1] : NULL);
	return !good;
}
