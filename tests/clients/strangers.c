/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Target of strangers.py: memory of 64 slots of 64 bytes that peers may write, through queue pairs that each have one peer.
 *
 *   strangers far ADDRESS   an RC and a UC queue pair with queue pair 0x11 at ADDRESS as their peer
 *   strangers near          two processes with an RC queue pair each for the other; one of them also has a datagram queue
 *                           pair, and so receives for the host
 *
 * A line "TYPE QPN RKEY ADDRESS" identifies a queue pair; its next sequence number is 1000. A line "slot N TEXT" reports that a
 * slot was written. On SIGUSR1 one of two processes writes to slot 63 of the other, by its queue pair.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peers.h"
#include "verbs_connect.h"

enum { SLOTS = 64, SLOT_BYTES = 64, PSN = 1000, STRANGERS_QPN = 0x11, LAST = 63 };

static struct device device;
static struct ibv_cq *cq;
static struct ibv_mr *mr;

/* Shared by both processes of "near". */
static struct board {
	uint32_t qpn[2], rkey[2];
	uint64_t address[2];
	uint32_t ready; /* atomic */
} * board;

static struct ibv_qp *create(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type,
	};
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qkey = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
	struct ibv_qp *qp = ibv_create_qp(device.pd, &attr);

	if (!qp || ibv_modify_qp(qp, &init,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					 (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)))
		die("no queue pair");
	return qp;
}

static void connect_qp(struct ibv_qp *qp, const union ibv_gid *to, uint32_t qpn)
{
	if (verbs_connect(qp, qpn, .ah_attr.grh = {.dgid = *to, .sgid_index = device.gid_index}, .rq_psn = PSN,
			  .sq_psn = PSN, .max_dest_rd_atomic = 1, .min_rnr_timer = 12, .timeout = 14,
			  .max_rd_atomic = 1))
		die("no connection");
}

static void announce(const char *type, const struct ibv_qp *qp)
{
	printf("%s %#x %#x %#" PRIxPTR "\n", type, qp->qp_num, mr->rkey, (uintptr_t)mr->addr);
	fflush(stdout);
}

static void look_at_slots(void)
{
	static char before[SLOTS];

	for (int i = 0; i < SLOTS; i++) {
		const char *slot = (const char *)mr->addr + i * SLOT_BYTES;

		if (__atomic_load_n(slot, __ATOMIC_ACQUIRE) == before[i])
			continue;
		before[i] = *slot;
		printf("slot %d %.*s\n", i, SLOT_BYTES - 1, slot);
		fflush(stdout);
	}
}

static volatile sig_atomic_t asked;

static void ask(int signal)
{
	(void)signal;
	asked = 1;
}

static void write_to_peer(struct ibv_qp *qp, int self)
{
	char *text = (char *)mr->addr + SLOTS * SLOT_BYTES;
	struct ibv_sge sge = {.addr = (uintptr_t)text, .length = 8, .lkey = mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {board->address[!self] + LAST * SLOT_BYTES, board->rkey[!self]},
	};
	struct ibv_send_wr *bad;

	memcpy(text, "the peer", 8);
	if (ibv_post_send(qp, &wr, &bad))
		die("not posted");
}

/* Serves until killed. @qp: for "near", otherwise NULL. */
static void __attribute__((noreturn)) serve(struct ibv_qp *qp, int self)
{
	struct ibv_wc wc;

	signal(SIGUSR1, ask);
	for (;;) {
		if (ibv_poll_cq(cq, 1, &wc) > 0 && wc.status) {
			printf("completion with status %d\n", wc.status);
			fflush(stdout);
		}
		if (qp && asked) {
			asked = 0;
			write_to_peer(qp, self);
		}
		look_at_slots();
		usleep(200);
	}
}

static void open_all(void)
{
	device_open(&device);
	cq = cq_new(&device, 64);
	mr = memory_new(&device, (SLOTS + 1) * SLOT_BYTES);
}

static void far(const char *address)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};
	struct ibv_qp *rc, *uc;

	if (inet_pton(AF_INET, address, gid.raw + 12) != 1)
		die("%s is not an address", address);
	open_all();
	rc = create(IBV_QPT_RC);
	uc = create(IBV_QPT_UC);
	connect_qp(rc, &gid, STRANGERS_QPN);
	connect_qp(uc, &gid, STRANGERS_QPN);
	announce("rc", rc);
	announce("uc", uc);
	serve(NULL, 0);
}

static void meet(uint32_t many)
{
	__atomic_add_fetch(&board->ready, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&board->ready, __ATOMIC_SEQ_CST) < many)
		usleep(1000);
}

static void near(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	struct ibv_qp *rc;
	int self;

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		die("no memory");
	self = fork() == 0;
	if (self)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_all();
	rc = create(IBV_QPT_RC);
	board->qpn[self] = rc->qp_num;
	board->rkey[self] = mr->rkey;
	board->address[self] = (uintptr_t)mr->addr;
	/* The first of them takes the port before the other one tries. */
	if (!self && ibv_modify_qp(create(IBV_QPT_UD), &attr, IBV_QP_STATE))
		die("not to RTR");
	meet(2);
	connect_qp(rc, &device.gid, board->qpn[!self]);
	meet(4);
	announce(self ? "other" : "owner", rc);
	printf("process %d\n", (int)getpid());
	fflush(stdout);
	serve(rc, self);
}

int main(int count, char **arguments)
{
	if (count == 3 && !strcmp(arguments[1], "far"))
		far(arguments[2]);
	if (count == 2 && !strcmp(arguments[1], "near"))
		near();
	fprintf(stderr, "strangers far ADDRESS | near\n");
	return 2;
}
