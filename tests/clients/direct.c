/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A target that makes no call while its peer stores directly into its memory, and the guarantees that it has. This process is
 * the target; the sender is another process, which WRITEs one word after the other through one key until a WRITE fails.
 *
 *	direct [--rounds N] [--seed N]
 *
 * In each round the target registers memory, waits until it is written to, and deregisters it at some moment. Stores by the
 * target after that stay, although the sender continues until it is refused. Rounds differ in a further event:
 *
 *	quiet    none
 *	stop     the sender is stopped by SIGSTOP before the deregistration, and continues after it
 *	kill     the sender is killed at that moment; the next round has another one
 *	fork     the target has a child; the child's copy of the memory does not change
 *	rights   the key loses remote write access, ibv_rereg_mr(3)
 *	reset    the queue pair moves to RESET, and the key stays
 *
 * Each deregistration returns within a second. The status and the counters of the sender show that the memory was written to
 * without a call of the target, and that the last WRITE was refused by the target's device.
 */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <softhca.h>

#include "peers.h"

enum kind {
	QUIET,
	STOP,
	KILL,
	FORK,
	RIGHTS,
	RESET,
	KINDS,
};

static const char *const kind_names[] = {"quiet", "stop", "kill", "fork", "rights", "reset"};

enum {
	MEMORY = 3 * 4096,
	AT = 4096 - 24, /* a WRITE crosses the end of a page */
	LENGTH = 64,
};

#define LIMIT_SECONDS 1.0

static const struct patience patience = {.timeout = 10, .retries = 3};

struct address {
	union ibv_gid gid;
	uint32_t qpn, rkey;
	uint64_t memory;
};

struct report {
	uint64_t succeeded, direct, torn;
	enum ibv_wc_status status;
};

static uint64_t counter(const struct device *device, const char *name)
{
	uint64_t value = softhca_counter(device->context, name);

	if (value == UINT64_MAX)
		die("there is no counter %s", name);
	return value;
}

/* ---- the sender ------------------------------------------------------------------------------------------------ */

static enum ibv_wc_status execute(struct ibv_qp *qp, struct ibv_cq *cq, enum ibv_wr_opcode opcode, struct ibv_mr *mr,
				  size_t offset, const struct address *target, uint64_t place)
{
	struct ibv_sge sge = {.addr = (uintptr_t)mr->addr + offset, .length = LENGTH, .lkey = mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {.remote_addr = place, .rkey = target->rkey}},
			   *bad;
	struct ibv_wc wc;
	int found;

	if (ibv_post_send(qp, &wr, &bad))
		die("ibv_post_send");
	while (!(found = ibv_poll_cq(cq, 1, &wc)))
		;
	if (found < 0)
		die("ibv_poll_cq");
	return wc.status;
}

/* Each WRITE stores the same byte everywhere; a READ returns the bytes of adjacent WRITEs only. */
static void hammer(struct device *device, struct ibv_qp *qp, struct ibv_cq *cq, struct ibv_mr *mr,
		   const struct address *target, struct report *report)
{
	uint64_t before = counter(device, "shm_direct_writes") + counter(device, "shm_direct_reads");
	uint8_t *bytes = mr->addr;

	*report = (struct report){.status = IBV_WC_SUCCESS};
	while (report->status == IBV_WC_SUCCESS) {
		memset(bytes, (int)(report->succeeded % 255 + 1), LENGTH);
		report->status = execute(qp, cq, IBV_WR_RDMA_WRITE, mr, 0, target, target->memory + AT);
		if (report->status != IBV_WC_SUCCESS || report->succeeded++ % 8)
			continue;
		report->status = execute(qp, cq, IBV_WR_RDMA_READ, mr, LENGTH, target, target->memory + AT);
		report->torn += report->status == IBV_WC_SUCCESS && memcmp(bytes, bytes + LENGTH, LENGTH) != 0;
	}
	report->direct = counter(device, "shm_direct_writes") + counter(device, "shm_direct_reads") - before;
}

/* docs/inside/decisions.md, Shared memory: files of the program never get the numbers of descriptors that lead to others'
 * memory. */
static void look_at_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	const struct dirent *entry;
	char path[300], target[64];
	bool found = false;

	if (!directory)
		die("/proc/self/fd");
	while ((entry = readdir(directory))) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		length = readlink(path, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = 0;
		if (length < 5 || strcmp(target + length - 4, "/mem") != 0)
			continue;
		found = true;
		if (atoi(entry->d_name) < 512)
			die("descriptor %s leads to %s", entry->d_name, target);
	}
	closedir(directory);
	if (!found)
		die("no descriptor leads to another process");
}

static int sender(void)
{
	struct device device;
	struct address own, target;
	struct report report;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	char ready;

	role_name = "sender";
	device_open(&device);
	cq = cq_new(&device, QP_DEPTH);
	mr = memory_new(&device, 4096);
	while (receive_all(PROCESS_SOCKET, &target, sizeof(target))) {
		qp = qp_new(&device, cq, cq);
		own = (struct address){.gid = device.gid, .qpn = qp->qp_num};
		if (!send_all(PROCESS_SOCKET, &own, sizeof(own)))
			break;
		qp_connect(&device, qp, &target.gid, target.qpn, 0, 0, patience);
		/* Its retries last 20 ms, in which a busy machine may not run the target. */
		if (!receive_all(PROCESS_SOCKET, &ready, 1))
			break;
		hammer(&device, qp, cq, mr, &target, &report);
		if (report.direct)
			look_at_descriptors();
		if (ibv_destroy_qp(qp))
			die("ibv_destroy_qp");
		if (!send_all(PROCESS_SOCKET, &report, sizeof(report)))
			break;
	}
	return 0;
}

/* ---- the target ------------------------------------------------------------------------------------------------ */

struct target {
	struct device device;
	struct process sender;
	uint8_t *memory;
	struct ibv_cq *cq;
	uint64_t random;
	uint64_t rounds[KINDS], succeeded, direct;
	double slowest;
};

static void start_sender(struct target *target)
{
	const char *const arguments[] = {"--role", "sender", NULL};

	target->sender = process_start(NULL, arguments);
}

/* Makes no call of the library. */
static void spin(const struct target *target, double seconds)
{
	const uint8_t *last = target->memory + AT + LENGTH - 1;
	double begin = seconds_now();

	while (!__atomic_load_n(last, __ATOMIC_ACQUIRE))
		if (seconds_now() - begin > 20)
			die("nothing arrives");
	begin = seconds_now();
	while (seconds_now() - begin < seconds)
		;
}

static bool is_all(const uint8_t *bytes, uint8_t value)
{
	for (int i = 0; i < MEMORY; i++)
		if (bytes[i] != value)
			return false;
	return true;
}

/* Forks a child with a copy of the current memory; it reports at its end whether the copy is unchanged. */
static pid_t fork_child(const struct target *target, int *socket)
{
	uint8_t *before = malloc(MEMORY);
	int pipes[2];
	pid_t child;
	char word;

	if (!before || pipe(pipes))
		die("pipe");
	child = fork();
	if (child < 0)
		die("fork");
	if (child) {
		close(pipes[0]);
		free(before);
		*socket = pipes[1];
		return child;
	}
	close(pipes[1]);
	memcpy(before, target->memory, MEMORY);
	if (read(pipes[0], &word, 1) < 0)
		_exit(2);
	_exit(memcmp(before, target->memory, MEMORY) != 0);
}

static void end_child(pid_t child, int socket)
{
	int status;

	close(socket);
	if (waitpid(child, &status, 0) != child || status)
		die("memory of a child was written to");
}

/* Revokes the right that the sender uses. */
static void take_back(struct target *target, enum kind kind, struct ibv_mr *mr, struct ibv_qp *qp)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	double begin = seconds_now(), took;
	int error;

	switch (kind) {
	case RIGHTS:
		error = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE);
		break;
	case RESET:
		error = ibv_modify_qp(qp, &reset, IBV_QP_STATE);
		break;
	default:
		error = ibv_dereg_mr(mr);
	}
	/* No remote writes after this point. */
	memset(target->memory, 0, MEMORY);
	if (error)
		die("%s: error %d", kind_names[kind], error);
	took = seconds_now() - begin;
	if (took > LIMIT_SECONDS)
		die("%s: it took %.3f s", kind_names[kind], took);
	if (took > target->slowest)
		target->slowest = took;
}

static void judge(struct target *target, enum kind kind, const struct report *report)
{
	enum ibv_wc_status expected = kind == RESET ? IBV_WC_RETRY_EXC_ERR : IBV_WC_REM_ACCESS_ERR;

	if (report->status != expected)
		die("%s: the sender ends with %s", kind_names[kind], ibv_wc_status_str(report->status));
	if (report->torn)
		die("%s: %lu READs bring what was not written", kind_names[kind], (unsigned long)report->torn);
	target->succeeded += report->succeeded;
	target->direct += report->direct;
}

static void play(struct target *target, enum kind kind)
{
	struct ibv_qp *qp = qp_new(&target->device, target->cq, target->cq);
	struct ibv_mr *mr = ibv_reg_mr(target->device.pd, target->memory, MEMORY,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	struct address own = {.gid = target->device.gid, .qpn = qp->qp_num, .memory = (uintptr_t)target->memory}, peer;
	struct report report;
	pid_t child = 0;
	int socket = -1;

	if (!mr)
		die("ibv_reg_mr");
	own.rkey = mr->rkey;
	memset(target->memory, 0, MEMORY);
	if (!send_all(target->sender.socket, &own, sizeof(own)) ||
	    !receive_all(target->sender.socket, &peer, sizeof(peer)))
		die("the sender has gone");
	qp_connect(&target->device, qp, &peer.gid, peer.qpn, 0, 0, patience);
	if (!send_all(target->sender.socket, "", 1))
		die("the sender has gone");
	if (kind == FORK) {
		spin(target, 0.001);
		child = fork_child(target, &socket);
	}
	spin(target, draw_below(&target->random, 3000) * 1e-6);
	if (kind == STOP)
		kill(target->sender.pid, SIGSTOP);
	if (kind == KILL)
		kill(target->sender.pid, SIGKILL);
	take_back(target, kind, mr, qp);
	if (kind == STOP) {
		usleep(1000);
		kill(target->sender.pid, SIGCONT);
	}
	if (kind == KILL) {
		process_kill(&target->sender);
		start_sender(target);
	} else {
		if (!receive_all(target->sender.socket, &report, sizeof(report)))
			die("the sender has gone");
		judge(target, kind, &report);
	}
	if (!is_all(target->memory, 0))
		die("%s: memory was written to that is not the sender's any more", kind_names[kind]);
	if (kind == FORK)
		end_child(child, socket);
	if (ibv_destroy_qp(qp))
		die("ibv_destroy_qp");
	if ((kind == RIGHTS || kind == RESET) && ibv_dereg_mr(mr))
		die("ibv_dereg_mr");
	target->rounds[kind]++;
}

static int run(unsigned long rounds, uint64_t seed)
{
	struct target target = {.random = seed};

	start_sender(&target);
	device_open(&target.device);
	target.cq = cq_new(&target.device, 2 * QP_DEPTH);
	target.memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (target.memory == MAP_FAILED)
		die("mmap");
	for (unsigned long i = 0; i < rounds; i++) {
		enum kind kind = (enum kind)(i % KINDS);

#ifdef __SANITIZE_THREAD__
		/* The child reads memory written by the other thread of its parent. */
		if (kind == FORK)
			kind = QUIET;
#endif
		play(&target, kind);
	}
	process_kill(&target.sender);
	printf("# %lu rounds, %lu WRITEs that succeeded, %lu accesses without the target, slowest end %.1f ms\n",
	       rounds, (unsigned long)target.succeeded, (unsigned long)target.direct, target.slowest * 1e3);
	if (target.direct < target.succeeded / 2) {
		printf("1..0 # SKIP the kernel does not let a process write to the memory of another\n");
		return target.direct ? 1 : 77;
	}
	printf("1..1\nok 1 - a target that makes no call\n");
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option known[] = {{"rounds", required_argument, NULL, 'r'},
					      {"seed", required_argument, NULL, 's'},
					      {"role", required_argument, NULL, 'R'},
					      {NULL, 0, NULL, 0}};
	unsigned long rounds = 60;
	uint64_t seed = 1;
	int option;

	role_name = "target";
	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case 'r':
			rounds = strtoul(optarg, NULL, 0);
			break;
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'R':
			return sender();
		default:
			return 2;
		}
	}
	return run(rounds, seed);
}
