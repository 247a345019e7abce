/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue pair that is connected to itself receives into pages, which the program reads as its argument selects;
 * docs/use/lint.md shows the warnings of `softhca run --lint`. Exit status 0 if everything works as without warnings.
 */
#include "verbs_connect.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <infiniband/verbs.h>

enum { PAGE = 4096, BYTES = 4 * PAGE };

static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_srq *srq;
static struct ibv_mr *mr;
static volatile uint8_t *memory; /* BYTES to receive into, BYTES to send from */
static sigjmp_buf back;

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                        \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

static void connect_to_itself(void)
{
	CHECK(!verbs_connect(qp, qp->qp_num, .qp_access_flags = IBV_ACCESS_LOCAL_WRITE, .ah_attr.grh.sgid_index = 1,
			     .max_dest_rd_atomic = 1, .max_rd_atomic = 1, .min_rnr_timer = 12, .timeout = 14));
}

static void begin(int shared)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};

	CHECK(pd);
	ibv_free_device_list(list);
	memory = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED);
	mr = ibv_reg_mr(pd, (void *)memory, 2 * BYTES, IBV_ACCESS_LOCAL_WRITE);
	cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	srq = shared ? ibv_create_srq(pd, &srq_attr) : NULL;
	attr.send_cq = attr.recv_cq = cq;
	attr.srq = srq;
	qp = ibv_create_qp(pd, &attr);
	CHECK(mr && cq && qp && (srq || !shared));
	connect_to_itself();
	memset((void *)(memory + BYTES), 7, BYTES);
}

static void end(void)
{
	struct ibv_context *context = qp->context;
	struct ibv_pd *pd = qp->pd;

	CHECK(!ibv_destroy_qp(qp));
	CHECK(!srq || !ibv_destroy_srq(srq));
	CHECK(!ibv_destroy_cq(cq));
	/* The received data belongs to the program again, also for system calls. */
	CHECK(memory[PAGE] == 7 || memory[PAGE] == 0);
	CHECK(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) && !ibv_close_device(context));
}

static void post(void)
{
	struct ibv_sge sge = {(uintptr_t)memory, BYTES, mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(!(srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad)));
}

static void send_all(void)
{
	struct ibv_sge sge = {(uintptr_t)memory + BYTES, BYTES, mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	CHECK(!ibv_post_send(qp, &wr, &bad));
}

static void poll_both(void)
{
	struct ibv_wc wc;

	for (int left = 2; left;) {
		int polled = ibv_poll_cq(cq, 1, &wc);

		CHECK(polled >= 0 && (!polled || wc.status == IBV_WC_SUCCESS));
		left -= polled;
	}
}

static void write_out(void)
{
	int pipe_ends[2];

	CHECK(!pipe(pipe_ends));
	CHECK(write(pipe_ends[1], (void *)memory, BYTES) == BYTES);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
}

static void jump_back(int signal)
{
	(void)signal;
	siglongjmp(back, 1);
}

/* Faults of the program itself reach its own handler. */
static void fault_and_come_back(void)
{
	void *page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(page != MAP_FAILED);
	if (sigsetjmp(back, 1))
		return;
	CHECK(!*(volatile uint8_t *)page);
	exit(1);
}

static void read_in_child(void)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(memory[PAGE] != 0);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	struct sigaction own = {.sa_handler = jump_back};
	sigset_t all;

	if (strstr(how, "handler"))
		sigaction(SIGSEGV, &own, NULL);
	if (strstr(how, "fork"))
		ibv_fork_init();
	begin(strstr(how, "srq") != NULL);
	if (strstr(how, "replaces"))
		sigaction(SIGSEGV, &own, NULL);
	if (strstr(how, "blocks")) {
		sigfillset(&all);
		sigprocmask(SIG_BLOCK, &all, NULL);
	}
	post();
	if (strstr(how, "handler"))
		fault_and_come_back();
	if (strstr(how, "fork"))
		read_in_child();
	if (strstr(how, "null"))
		raise(memory[BYTES] == 7 && *(volatile uint8_t *)0 ? SIGTERM : SIGKILL);
	if (strstr(how, "sent"))
		raise(SIGSEGV);
	if (strstr(how, "before"))
		CHECK(memory[PAGE] == 0);
	send_all();
	if (strstr(how, "late"))
		while (memory[BYTES - 1] != 7)
			;
	if (strstr(how, "never")) {
		end();
		write_out();
		return 0;
	}
	poll_both();
	CHECK(memory[0] == 7 && memory[BYTES - 1] == 7);
	write_out();
	/* Flushed with the queue pair. */
	post();
	end();
	write_out();
	return 0;
}
