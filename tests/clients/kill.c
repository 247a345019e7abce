/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kills peers by SIGKILL at random moments. This process, the survivor, has a connection to a bystander, which never makes a
 * call, and in each round connections to a victim that it kills: while they connect, during traffic of all operations in both
 * directions, or while the victim closes. Every other victim sends first, so that either side has made the connection between
 * the processes.
 *
 *	kill [--netns PATH] [--rounds N] [--seed N] [--timeout N]        PATH: network namespace of victims and bystander
 *
 * After each kill, within the queue pairs' timers: every posted request completes once, in order; then every receive. The
 * bystander's connection continues to move the right bytes, before, during and after. At the end the survivor has no more
 * descriptors and mappings than after the first rounds.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peers.h"

enum {
	QPS = 4,
	MEMORY = 1 << 20,
	LONGEST = MEMORY / 4 / QPS,
	RECEIVE_BYTES = 4096,
	WARM_UP = 60, /* rounds until which pools and tables may grow: a socket for each of 64 flows */
};

/* 1 ms to 4 ms, eight times: a peer that does not answer for 34 ms is dead. --timeout: replaces the value 8. */
static struct patience with_victim = {.timeout = 8, .retries = 7};
/* The bystander is only slow, on a busy machine. */
static const struct patience with_bystander = {.timeout = 14, .retries = 7};
/* A busy machine may delay this process as well, and a timer that expires late is not an error. */
#define LIMIT_SECONDS 10.0

/* QP information exchanged by two processes. */
struct address {
	union ibv_gid gid;
	uint32_t qpn[QPS];
	uint64_t memory;
	uint32_t rkey;
};

/* A QP, and its requests and receives that are posted and not completed. */
struct flow {
	struct ibv_qp *qp;
	uint64_t posted, completed; /* requests: wr_ids from 1 up, in order */
	uint64_t receives_posted, receives_completed;
	bool failed; /* a request has completed with an error */
};

struct end {
	struct device *device;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct flow flow[QPS];
	struct address peer;
	uint64_t random;
	uint64_t errors; /* completions with errors */
};

/* ---- both sides ----------------------------------------------------------------------------------------------- */

static const uint64_t RECEIVE = UINT64_C(1) << 63;

static void post_receive(struct end *end, int index)
{
	struct flow *flow = &end->flow[index];
	struct ibv_sge sge = {.addr = (uintptr_t)end->mr->addr + MEMORY / 2 + (size_t)index * RECEIVE_BYTES,
			      .length = RECEIVE_BYTES,
			      .lkey = end->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = RECEIVE | (uint64_t)index << 56 | (flow->receives_posted + 1),
				 .sg_list = &sge,
				 .num_sge = 1},
			   *bad;
	int error = ibv_post_recv(flow->qp, &wr, &bad);

	if (error)
		die("ibv_post_recv: %s", strerror(error));
	flow->receives_posted++;
}

static void end_open(struct end *end, struct device *device, uint64_t seed)
{
	*end = (struct end){.device = device, .random = seed};
	end->cq = cq_new(device, QPS * 2 * QP_DEPTH);
	end->mr = memory_new(device, MEMORY);
	for (int i = 0; i < QPS; i++)
		end->flow[i].qp = qp_new(device, end->cq, end->cq);
}

static void end_close(struct end *end)
{
	for (int i = 0; i < QPS; i++)
		if (ibv_destroy_qp(end->flow[i].qp))
			die("ibv_destroy_qp");
	memory_free(end->mr);
	if (ibv_destroy_cq(end->cq))
		die("ibv_destroy_cq");
}

static struct address own_address(const struct end *end)
{
	struct address address = {.gid = end->device->gid, .memory = (uintptr_t)end->mr->addr, .rkey = end->mr->rkey};

	for (int i = 0; i < QPS; i++)
		address.qpn[i] = end->flow[i].qp->qp_num;
	return address;
}

/* Returns false if the other process has ended. */
static bool end_connect(struct end *end, int socket, bool first, struct patience patience)
{
	struct address own = own_address(end);

	if (first ? !send_all(socket, &own, sizeof(own)) || !receive_all(socket, &end->peer, sizeof(end->peer))
		  : !receive_all(socket, &end->peer, sizeof(end->peer)) || !send_all(socket, &own, sizeof(own)))
		return false;
	for (int i = 0; i < QPS; i++) {
		/* PSNs that wrap soon. */
		qp_connect(end->device, end->flow[i].qp, &end->peer.gid, end->peer.qpn[i], 0xffff00, 0xffff00,
			   patience);
		while (end->flow[i].receives_posted < QP_DEPTH)
			post_receive(end, i);
	}
	return true;
}

/* Posts a valid request of random kind and length. */
static void post_any(struct end *end, int index)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		bool consumes, atomic;
	} kinds[] = {
		{IBV_WR_SEND, true, false},
		{IBV_WR_SEND_WITH_IMM, true, false},
		{IBV_WR_RDMA_WRITE, false, false},
		{IBV_WR_RDMA_WRITE_WITH_IMM, true, false},
		{IBV_WR_RDMA_READ, false, false},
		{IBV_WR_ATOMIC_CMP_AND_SWP, false, true},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, false, true},
	};
	struct flow *flow = &end->flow[index];
	uint32_t kind = draw_below(&end->random, sizeof(kinds) / sizeof(kinds[0]));
	/* Short and long ones: one packet, and many. */
	uint32_t most = draw_below(&end->random, 4) ? 256 : kinds[kind].consumes ? RECEIVE_BYTES : LONGEST;
	uint32_t length = kinds[kind].atomic ? 8 : 1 + draw_below(&end->random, most);
	/* Responses, and what requests read and change, have a place for each queue pair, which other threads may serve. */
	bool brings = kinds[kind].atomic || kinds[kind].opcode == IBV_WR_RDMA_READ;
	struct ibv_sge sge = {.addr = (uintptr_t)end->mr->addr + (brings ? MEMORY / 4 * 3 + index * LONGEST : 0),
			      .length = length,
			      .lkey = end->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = (uint64_t)index << 56 | (flow->posted + 1),
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = kinds[kind].opcode,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	uint64_t place = end->peer.memory + MEMORY / 4 + (uint64_t)index * LONGEST;
	int error;

	if (kinds[kind].atomic) {
		wr.wr.atomic.remote_addr = place;
		wr.wr.atomic.rkey = end->peer.rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = place;
		wr.wr.rdma.rkey = end->peer.rkey;
	}
	error = ibv_post_send(flow->qp, &wr, &bad);
	if (error)
		die("ibv_post_send: %s", strerror(error));
	flow->posted++;
}

static void take(struct end *end, const struct ibv_wc *wc)
{
	int index = (int)(wc->wr_id >> 56 & 0x7f);
	uint64_t number = wc->wr_id & UINT64_C(0xffffffffffffff);
	struct flow *flow = &end->flow[index];
	uint64_t *count = wc->wr_id & RECEIVE ? &flow->receives_completed : &flow->completed;

	if (index >= QPS || number != *count + 1)
		die("completion %#lx where number %lu is due", (unsigned long)wc->wr_id, (unsigned long)*count + 1);
	(*count)++;
	if (wc->status == IBV_WC_SUCCESS) {
		if (flow->failed && !(wc->wr_id & RECEIVE))
			die("a request succeeds after one that failed");
		if (wc->wr_id & RECEIVE && !flow->failed)
			post_receive(end, index);
		return;
	}
	end->errors++;
	if (wc->wr_id & RECEIVE ? wc->status != IBV_WC_WR_FLUSH_ERR
				: wc->status != IBV_WC_RETRY_EXC_ERR && wc->status != IBV_WC_WR_FLUSH_ERR)
		die("status %s", ibv_wc_status_str(wc->status));
	if (!(wc->wr_id & RECEIVE)) {
		if (!flow->failed && wc->status != IBV_WC_RETRY_EXC_ERR)
			die("the first failure of a QP is %s", ibv_wc_status_str(wc->status));
		flow->failed = true;
	}
}

static bool poll_once(struct end *end)
{
	struct ibv_wc wc[16];
	int found = ibv_poll_cq(end->cq, 16, wc);

	if (found < 0)
		die("ibv_poll_cq");
	for (int i = 0; i < found; i++)
		take(end, &wc[i]);
	return found > 0;
}

/* Performs a step of traffic: polls, and posts where there is room. */
static void step(struct end *end)
{
	int index = (int)draw_below(&end->random, QPS);

	poll_once(end);
	if (!end->flow[index].failed && end->flow[index].posted - end->flow[index].completed < QP_DEPTH / 4)
		post_any(end, index);
}

/* ---- the victim ----------------------------------------------------------------------------------------------- */

static int victim(char **argv)
{
	struct device device;
	struct end end;
	bool first = argv[3][0] == '1';
	/* Seconds of traffic before it closes; 0: never. */
	double closes_after = atof(argv[4]), begin;
	char word;

	role_name = "victim";
	device_open(&device);
	end_open(&end, &device, strtoull(argv[2], NULL, 0));
	if (!end_connect(&end, PROCESS_SOCKET, first, with_victim) || !send_all(PROCESS_SOCKET, "!", 1) ||
	    !receive_all(PROCESS_SOCKET, &word, 1))
		return 0;
	begin = seconds_now();
	do
		step(&end);
	while (!closes_after || seconds_now() - begin < closes_after);
	end_close(&end);
	device_close(&device);
	for (;;)
		pause();
}

/* ---- the bystander -------------------------------------------------------------------------------------------- */

static int bystander(void)
{
	struct device device;
	struct end end;
	char word;

	role_name = "bystander";
	device_open(&device);
	end_open(&end, &device, 0);
	if (!end_connect(&end, PROCESS_SOCKET, false, with_bystander) || !send_all(PROCESS_SOCKET, "!", 1))
		die("the survivor has gone");
	/* Makes no call of the library until it ends. */
	receive_all(PROCESS_SOCKET, &word, 1);
	return 0;
}

static void transfer(struct end *end, enum ibv_wr_opcode opcode, size_t offset, uint32_t length)
{
	struct flow *flow = &end->flow[0];
	struct ibv_sge sge = {.addr = (uintptr_t)end->mr->addr + offset, .length = length, .lkey = end->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = ++flow->posted,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {.remote_addr = end->peer.memory, .rkey = end->peer.rkey}},
			   *bad;
	double begin = seconds_now();

	if (ibv_post_send(flow->qp, &wr, &bad))
		die("bystander's QP: ibv_post_send: %s", strerror(errno));
	while (flow->completed < flow->posted) {
		poll_once(end);
		if (end->errors)
			die("bystander's QP has failed");
		if (seconds_now() - begin > LIMIT_SECONDS)
			die("bystander's QP is stuck");
	}
}

/* Writes a value to the bystander and reads it back. */
static void ask_bystander(struct end *end)
{
	uint8_t *memory = end->mr->addr;
	uint32_t length = 1 + draw_below(&end->random, 20000);

	for (uint32_t i = 0; i < length; i++)
		memory[i] = (uint8_t)draw(&end->random);
	memset(memory + MEMORY / 2, 0, length);
	transfer(end, IBV_WR_RDMA_WRITE, 0, length);
	transfer(end, IBV_WR_RDMA_READ, MEMORY / 2, length);
	if (memcmp(memory, memory + MEMORY / 2, length) != 0)
		die("bystander's memory is not what was written");
}

/* ---- the survivor --------------------------------------------------------------------------------------------- */

struct tally {
	unsigned int connecting, traffic, closing; /* kills by the victim's activity */
	uint64_t completions, errors;
	double slowest; /* seconds from the kill to the last completion */
};

static bool is_finished(const struct end *end)
{
	for (int i = 0; i < QPS; i++) {
		const struct flow *flow = &end->flow[i];

		if (!flow->failed || flow->completed < flow->posted || flow->receives_completed < flow->receives_posted)
			return false;
	}
	return true;
}

/* The peer is dead: all posted requests and one more complete with errors, and no others. */
static void expect_errors(struct end *end, struct tally *tally)
{
	double begin = seconds_now(), took;

	for (int i = 0; i < QPS; i++)
		if (!end->flow[i].failed)
			post_any(end, i);
	while (!is_finished(end)) {
		poll_once(end);
		if (seconds_now() - begin < LIMIT_SECONDS)
			continue;
		for (int i = 0; i < QPS; i++) {
			const struct flow *flow = &end->flow[i];

			fprintf(stderr, "qp %#x: %s; requests: %lu of %lu; receives: %lu of %lu\n", flow->qp->qp_num,
				flow->failed ? "failed" : "has not failed", (unsigned long)flow->completed,
				(unsigned long)flow->posted, (unsigned long)flow->receives_completed,
				(unsigned long)flow->receives_posted);
		}
		die("completions are missing");
	}
	took = seconds_now() - begin;
	if (took > tally->slowest)
		tally->slowest = took;
	if (poll_once(end))
		die("a completion too many");
	for (int i = 0; i < QPS; i++)
		tally->completions += end->flow[i].completed + end->flow[i].receives_completed;
	tally->errors += end->errors;
}

/* Returns true when the victim is connected, false if its time came first. */
static bool connect_victim(struct end *end, const struct process *process, bool first, double kill_at)
{
	struct pollfd wait = {.fd = process->socket, .events = POLLIN};
	char word;

	/* The side that sends first sends immediately; the answer may never come. */
	if (first) {
		struct address own = own_address(end);

		if (!send_all(process->socket, &own, sizeof(own)))
			return false;
	}
	while (poll(&wait, 1, 0) == 0)
		if (seconds_now() >= kill_at)
			return false;
	if (first) {
		if (!receive_all(process->socket, &end->peer, sizeof(end->peer)))
			return false;
	} else if (!receive_all(process->socket, &end->peer, sizeof(end->peer))) {
		return false;
	} else {
		struct address own = own_address(end);

		if (!send_all(process->socket, &own, sizeof(own)))
			return false;
	}
	for (int i = 0; i < QPS; i++) {
		qp_connect(end->device, end->flow[i].qp, &end->peer.gid, end->peer.qpn[i], 0xffff00, 0xffff00,
			   with_victim);
		while (end->flow[i].receives_posted < QP_DEPTH)
			post_receive(end, i);
	}
	while (poll(&wait, 1, 0) == 0)
		if (seconds_now() >= kill_at)
			return true;
	return receive_all(process->socket, &word, 1) && send_all(process->socket, "!", 1);
}

/* The victim's activity when it is killed. */
enum phase { CONNECTING, TRAFFIC, CLOSING };

static enum phase draw_phase(uint64_t *random)
{
	uint32_t number = draw_below(random, 10);

	return number < 3 ? CONNECTING : number < 8 ? TRAFFIC : CLOSING;
}

static void round_of(struct end *bystander_end, struct device *device, const char *netns, uint64_t *random,
		     struct tally *tally)
{
	/* Time to start and connect, as measured before: it depends on the machine. */
	static double usual = 0.02;
	enum phase phase = draw_phase(random);
	bool first = draw_below(random, 2);
	double closes_after = phase == CLOSING ? 1e-6 * (1 + draw_below(random, 3000)) : 0;
	double kill_at, begin, traffic;
	char seed[32], closes[32];
	const char *arguments[] = {"victim", seed, first ? "0" : "1", closes, NULL};
	struct end end;
	struct process process;
	bool connected;

	snprintf(seed, sizeof(seed), "%lu", (unsigned long)draw(random));
	snprintf(closes, sizeof(closes), "%.6f", closes_after);
	end_open(&end, device, draw(random));
	process = process_start(netns, arguments);
	begin = seconds_now();
	kill_at = phase == CONNECTING ? begin + usual * 1.2e-6 * draw_below(random, 1000000) : begin + LIMIT_SECONDS;
	connected = connect_victim(&end, &process, first, kill_at);
	traffic = seconds_now();
	if (connected) {
		if (phase == TRAFFIC)
			kill_at = traffic + 1e-6 * draw_below(random, 20000);
		else if (phase == CLOSING)
			kill_at = traffic + closes_after + 1e-6 * draw_below(random, 3000);
		usual += (traffic - begin - usual) / 4;
		while (seconds_now() < kill_at)
			step(&end);
	}
	if (!connected && phase != CONNECTING)
		die("the victim has not connected");
	*(!connected ? &tally->connecting : phase == CLOSING ? &tally->closing : &tally->traffic) += 1;
	process_kill(&process);
	ask_bystander(bystander_end);
	/* Unconnected QPs have nothing to complete. */
	if (connected)
		expect_errors(&end, tally);
	ask_bystander(bystander_end);
	end_close(&end);
}

static int survivor(const char *netns, unsigned long rounds, uint64_t seed)
{
	static const char *const arguments[] = {"bystander", NULL};
	struct process process = process_start(netns, arguments);
	struct held held = {0};
	struct tally tally = {0};
	struct device device;
	struct end end;
	char word;

	role_name = "survivor";
	device_open(&device);
	end_open(&end, &device, seed);
	if (!end_connect(&end, process.socket, true, with_bystander) || !receive_all(process.socket, &word, 1))
		die("the bystander has gone");
	for (unsigned long i = 0; i < rounds; i++) {
		round_of(&end, &device, netns, &seed, &tally);
		if (i + 1 == WARM_UP) {
			usleep(100000);
			held = held_now();
		}
	}
	if (rounds > WARM_UP)
		expect_no_more_held(&held, LIMIT_SECONDS);
	process_kill(&process);
	end_close(&end);
	device_close(&device);
	printf("%lu kills: %u while connecting, %u in traffic, %u while or after closing; %lu completions, %lu of them "
	       "errors; the last one %.0f ms after the kill at most\n",
	       rounds, tally.connecting, tally.traffic, tally.closing, (unsigned long)tally.completions,
	       (unsigned long)tally.errors, tally.slowest * 1e3);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"netns", required_argument, NULL, 'n'},
		{"rounds", required_argument, NULL, 'r'},
		{"seed", required_argument, NULL, 's'},
		{"timeout", required_argument, NULL, 't'},
		{NULL, 0, NULL, 0},
	};
	const char *netns = NULL;
	unsigned long rounds = 200;
	uint64_t seed = 1;
	int option;

	if (argc > 1 && strcmp(argv[1], "victim") == 0)
		return victim(argv);
	if (argc > 1 && strcmp(argv[1], "bystander") == 0)
		return bystander();
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'n')
			netns = optarg;
		else if (option == 'r')
			rounds = strtoul(optarg, NULL, 0);
		else if (option == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (option == 't')
			with_victim.timeout = (uint8_t)strtoul(optarg, NULL, 0);
		else
			return 2;
	}
	return survivor(netns, rounds, seed);
}
