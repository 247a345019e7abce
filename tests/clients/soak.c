/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Soak test: two processes, 16 RC queue pairs, random requests of all operations in both directions, with everything checked,
 * for any length of time. Meant for a link that loses, duplicates and reorders packets (SOFTHCA_FAULTS).
 *
 *	soak [--netns PATH] [--seconds N] [--seed N] [--qps N] [--timeout N]        PATH: namespace of the second process
 *
 * A QP's requester has a region of the peer's memory of its own, and a model of it. It can therefore check each word that a
 * READ or an atomic returns, and detect operations that were lost, executed twice or out of order. Messages that the peer
 * receives are numbered and carry a checksum. Completions come once each, in order. A QP with outstanding signalled requests
 * that completes none for 20 s is stuck.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "peers.h"

enum {
	MOST_QPS = 64,
	DATA = 1 << 18, /* bytes of a region that WRITEs and READs go to */
	WORDS = 64,     /* for atomics, after the data */
	REGION = DATA + WORDS * 8,
	LONGEST = 1 << 16, /* bytes of a message */
	UNDER_WAY = 8,     /* outstanding requests of a QP */
	RECEIVES = 32,     /* posted to a QP */
	RECEIVE_BYTES = LONGEST + 16,
	STUCK_SECONDS = 20,
};

/* 67 ms and more, eight times: on a busy machine a process may have to wait for a tenth of a second. */
static struct patience patience = {.timeout = 14, .retries = 7};

struct request {
	enum ibv_wr_opcode opcode;
	bool signalled;
	uint32_t offset, length; /* in the peer's region; LONGEST of the source */
	uint64_t expected;       /* of an atomic: the old value */
};

/* A QP and this side's state of it. */
struct flow {
	struct ibv_qp *qp;
	uint8_t *slots;    /* UNDER_WAY pieces of LONGEST: sources of WRITEs and SENDs, targets of READs */
	uint8_t *model;    /* model of the peer's region */
	uint8_t *receives; /* RECEIVES pieces of RECEIVE_BYTES */
	struct request request[UNDER_WAY];
	uint64_t posted, completed, observed; /* requests: all before `observed` are known to be complete */
	uint64_t messages_sent, messages_received, receives_posted, receives_completed;
	double last_progress;
};

struct address {
	union ibv_gid gid;
	uint32_t qpn, psn;
	uint64_t region;
	uint32_t rkey;
};

struct side {
	struct device device;
	struct ibv_cq *send_cq, *receive_cq;
	unsigned int qps;
	struct flow flow[MOST_QPS];
	struct address peer[MOST_QPS];
	struct ibv_mr *regions, *slots, *receives; /* for all QPs */
	uint64_t random;
	uint64_t bytes, requests;
};

/* ---- what is where -------------------------------------------------------------------------------------------- */

static uint64_t checksum(const uint8_t *bytes, size_t length, uint64_t seed)
{
	uint64_t sum = seed ^ length * UINT64_C(0x9e3779b97f4a7c15), word;
	size_t i = 0;

	for (; i + 8 <= length; i += 8) {
		memcpy(&word, bytes + i, 8);
		sum = (sum ^ word) * UINT64_C(0xff51afd7ed558ccd);
		sum ^= sum >> 32;
	}
	for (; i < length; i++)
		sum = (sum ^ bytes[i]) * UINT64_C(0xff51afd7ed558ccd);
	return sum;
}

static void fill(uint8_t *bytes, size_t length, uint64_t *random)
{
	uint64_t word;

	for (size_t i = 0; i < length; i += 8) {
		word = draw(random);
		memcpy(bytes + i, &word, length - i < 8 ? length - i : 8);
	}
}

static uint8_t *slot_of(const struct flow *flow, uint64_t number)
{
	return flow->slots + number % UNDER_WAY * LONGEST;
}

/* ---- requests ------------------------------------------------------------------------------------------------- */

/* A retransmitted READ reads again: its source must not change before it is complete (IBTA 9.4.4). */
static bool is_being_read(const struct flow *flow, uint32_t offset, uint32_t length)
{
	for (uint64_t i = flow->observed; i < flow->posted; i++) {
		const struct request *request = &flow->request[i % UNDER_WAY];

		if (request->opcode == IBV_WR_RDMA_READ && offset < request->offset + request->length &&
		    request->offset < offset + length)
			return true;
	}
	return false;
}

static uint32_t draw_length(uint64_t *random)
{
	switch (draw_below(random, 4)) {
	case 0:
		return 1 + draw_below(random, 64);
	case 1:
		return 1 + draw_below(random, 5000);
	default:
		return 1 + draw_below(random, LONGEST);
	}
}

static bool is_write(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

static bool is_received(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool brings_data(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_READ || is_atomic(opcode);
}

static void draw_atomic(struct side *side, struct flow *flow, struct request *request, struct ibv_send_wr *wr)
{
	uint64_t *word, now;

	request->offset = DATA + draw_below(&side->random, WORDS) * 8;
	request->length = 8;
	word = (uint64_t *)(void *)(flow->model + request->offset);
	now = *word;
	request->expected = now;
	if (request->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.compare_add = draw(&side->random);
		*word = now + wr->wr.atomic.compare_add;
	} else {
		/* Every other one fails. */
		wr->wr.atomic.compare_add = now + draw_below(&side->random, 2);
		wr->wr.atomic.swap = draw(&side->random);
		if (wr->wr.atomic.compare_add == now)
			*word = wr->wr.atomic.swap;
	}
}

/* Writes the first 16 bytes of a message: its number in the flow, and the checksum of the rest. */
static void write_message(struct flow *flow, uint8_t *slot, struct request *request)
{
	uint64_t header[2] = {flow->messages_sent};

	if (request->length < sizeof(header))
		request->length = sizeof(header);
	header[1] = checksum(slot + sizeof(header), request->length - sizeof(header), header[0]);
	memcpy(slot, header, sizeof(header));
}

static void draw_request(struct side *side, struct flow *flow, struct request *request, struct ibv_send_wr *wr)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,        IBV_WR_RDMA_WRITE,         IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,
	};
	uint8_t *slot = slot_of(flow, flow->posted);

	*request = (struct request){.opcode = opcodes[draw_below(&side->random, sizeof(opcodes) / sizeof(opcodes[0]))],
				    .length = draw_length(&side->random)};
	/* The slot of an unsignalled request can be reused only when a later one is complete. */
	request->signalled = brings_data(request->opcode) || draw_below(&side->random, 2) ||
			     flow->posted - flow->observed >= UNDER_WAY / 2;
	if (is_atomic(request->opcode)) {
		draw_atomic(side, flow, request, wr);
		return;
	}
	request->offset = draw_below(&side->random, DATA - request->length + 1);
	if (is_write(request->opcode) && is_being_read(flow, request->offset, request->length))
		request->opcode = request->opcode == IBV_WR_RDMA_WRITE ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM;
	if (request->opcode == IBV_WR_RDMA_READ) {
		memset(slot, 0, request->length);
		return;
	}
	fill(slot, request->length, &side->random);
	if (is_write(request->opcode))
		memcpy(flow->model + request->offset, slot, request->length);
	else
		write_message(flow, slot, request);
}

static void post(struct side *side, unsigned int index)
{
	struct flow *flow = &side->flow[index];
	const struct address *peer = &side->peer[index];
	struct request *request = &flow->request[flow->posted % UNDER_WAY];
	struct ibv_send_wr wr = {0}, *bad;
	struct ibv_sge sge;
	int error;

	draw_request(side, flow, request, &wr);
	sge = (struct ibv_sge){
		.addr = (uintptr_t)slot_of(flow, flow->posted), .length = request->length, .lkey = side->slots->lkey};
	wr.wr_id = (uint64_t)index << 48 | flow->posted;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = request->opcode;
	wr.send_flags = request->signalled ? IBV_SEND_SIGNALED : 0;
	if (is_received(request->opcode))
		wr.imm_data = (uint32_t)flow->messages_sent++;
	if (is_atomic(request->opcode)) {
		wr.wr.atomic.remote_addr = peer->region + request->offset;
		wr.wr.atomic.rkey = peer->rkey;
	} else {
		wr.wr.rdma.remote_addr = peer->region + request->offset;
		wr.wr.rdma.rkey = peer->rkey;
	}
	error = ibv_post_send(flow->qp, &wr, &bad);
	if (error)
		die("ibv_post_send: %s", strerror(error));
	if (flow->posted == flow->observed)
		flow->last_progress = seconds_now();
	flow->posted++;
	side->requests++;
	side->bytes += request->length;
}

/* Checks the data of a READ against the model at its posting; none of it was written since. */
static void check_request(const struct flow *flow, uint64_t number)
{
	const struct request *request = &flow->request[number % UNDER_WAY];
	const uint8_t *slot = slot_of(flow, number), *model = flow->model + request->offset;
	uint64_t original;

	if (request->opcode == IBV_WR_RDMA_READ) {
		for (uint32_t i = 0; i < request->length; i++)
			if (slot[i] != model[i])
				die("qp %#x request %lu: byte %u of %u read from %u is %#x instead of %#x",
				    flow->qp->qp_num, (unsigned long)number, i, request->length, request->offset,
				    slot[i], model[i]);
	} else if (is_atomic(request->opcode)) {
		memcpy(&original, slot, sizeof(original));
		if (original != request->expected)
			die("qp %#x request %lu: an atomic of word %u returns %#lx instead of %#lx", flow->qp->qp_num,
			    (unsigned long)number, (request->offset - DATA) / 8, (unsigned long)original,
			    (unsigned long)request->expected);
	}
}

static void completed(struct side *side, const struct ibv_wc *wc)
{
	uint64_t index = wc->wr_id >> 48, number = wc->wr_id & UINT64_C(0xffffffffffff);
	struct flow *flow = &side->flow[index];

	if (wc->status != IBV_WC_SUCCESS)
		die("qp %#x request %lu: %s (vendor_err %u)", flow->qp->qp_num, (unsigned long)number,
		    ibv_wc_status_str(wc->status), wc->vendor_err);
	if (index >= side->qps || number < flow->observed || number >= flow->posted)
		die("a completion of request %lu, which is not under way", (unsigned long)number);
	for (; flow->observed <= number; flow->observed++) {
		if (flow->observed < number && flow->request[flow->observed % UNDER_WAY].signalled)
			die("qp %#x: the completion of request %lu is missing", flow->qp->qp_num,
			    (unsigned long)flow->observed);
		check_request(flow, flow->observed);
	}
	if (!flow->request[number % UNDER_WAY].signalled)
		die("qp %#x: a completion of request %lu, which asked for none", flow->qp->qp_num,
		    (unsigned long)number);
	flow->completed++;
	flow->last_progress = seconds_now();
}

/* ---- receives ------------------------------------------------------------------------------------------------- */

static void post_receive(struct side *side, unsigned int index)
{
	struct flow *flow = &side->flow[index];
	uint64_t place = flow->receives_posted % RECEIVES;
	struct ibv_sge sge = {.addr = (uintptr_t)flow->receives + place * RECEIVE_BYTES,
			      .length = RECEIVE_BYTES,
			      .lkey = side->receives->lkey};
	struct ibv_recv_wr wr = {.wr_id = (uint64_t)index << 48 | flow->receives_posted, .sg_list = &sge, .num_sge = 1},
			   *bad;
	int error = ibv_post_recv(flow->qp, &wr, &bad);

	if (error)
		die("ibv_post_recv: %s", strerror(error));
	flow->receives_posted++;
}

/* Receives are flushed after another failure, which other completions or the async events show. */
static __attribute__((noreturn)) void die_flushed(struct side *side, uint32_t qpn)
{
	double begin = seconds_now();
	struct ibv_async_event event;
	struct pollfd wait = {.fd = side->device.context->async_fd, .events = POLLIN};
	struct ibv_wc wc;

	while (seconds_now() - begin < 2) {
		if (ibv_poll_cq(side->send_cq, 1, &wc) > 0 && wc.status != IBV_WC_SUCCESS)
			die("qp %#x request %lu: %s (vendor_err %u)", wc.qp_num,
			    (unsigned long)(wc.wr_id & UINT64_C(0xffffffffffff)), ibv_wc_status_str(wc.status),
			    wc.vendor_err);
		if (poll(&wait, 1, 0) > 0 && ibv_get_async_event(side->device.context, &event) == 0)
			die("qp %#x: receives were flushed; %s", qpn, ibv_event_type_str(event.event_type));
	}
	die("qp %#x: receives were flushed", qpn);
}

static void received(struct side *side, const struct ibv_wc *wc)
{
	uint64_t index = wc->wr_id >> 48, number = wc->wr_id & UINT64_C(0xffffffffffff), header[2];
	struct flow *flow = &side->flow[index];
	const uint8_t *bytes = flow->receives + number % RECEIVES * RECEIVE_BYTES;

	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		die_flushed(side, flow->qp->qp_num);
	if (wc->status != IBV_WC_SUCCESS)
		die("qp %#x receive %lu: %s (vendor_err %u)", flow->qp->qp_num, (unsigned long)number,
		    ibv_wc_status_str(wc->status), wc->vendor_err);
	if (index >= side->qps || number != flow->receives_completed)
		die("receive %lu completes where %lu is due", (unsigned long)number,
		    (unsigned long)flow->receives_completed);
	flow->receives_completed++;
	if (wc->wc_flags & IBV_WC_WITH_IMM && wc->imm_data != (uint32_t)flow->messages_received)
		die("qp %#x: message %u where %lu is due", flow->qp->qp_num, wc->imm_data,
		    (unsigned long)flow->messages_received);
	if (wc->opcode == IBV_WC_RECV) {
		memcpy(header, bytes, sizeof(header));
		if (wc->byte_len < sizeof(header) || header[0] != flow->messages_received)
			die("qp %#x: %u bytes with number %lu where message %lu is due", flow->qp->qp_num, wc->byte_len,
			    (unsigned long)header[0], (unsigned long)flow->messages_received);
		if (header[1] != checksum(bytes + sizeof(header), wc->byte_len - sizeof(header), header[0]))
			die("qp %#x: message %lu of %u bytes: wrong data", flow->qp->qp_num, (unsigned long)header[0],
			    wc->byte_len);
	}
	flow->messages_received++;
	post_receive(side, (unsigned int)index);
}

/* ---- the run -------------------------------------------------------------------------------------------------- */

static void poll_both(struct side *side)
{
	struct ibv_wc wc[16];
	int found = ibv_poll_cq(side->send_cq, 16, wc);

	if (found < 0)
		die("ibv_poll_cq");
	for (int i = 0; i < found; i++)
		completed(side, &wc[i]);
	found = ibv_poll_cq(side->receive_cq, 16, wc);
	if (found < 0)
		die("ibv_poll_cq");
	for (int i = 0; i < found; i++)
		received(side, &wc[i]);
}

/* Without a later completion, the program does not learn that a request without one is complete. */
static bool flow_awaits_completion(const struct flow *flow)
{
	for (uint64_t i = flow->observed; i < flow->posted; i++)
		if (flow->request[i % UNDER_WAY].signalled)
			return true;
	return false;
}

static void look_for_stuck(const struct side *side)
{
	double now = seconds_now();

	for (unsigned int i = 0; i < side->qps; i++) {
		const struct flow *flow = &side->flow[i];

		if (flow_awaits_completion(flow) && now - flow->last_progress > STUCK_SECONDS)
			die("qp %#x is stuck: request %lu of %lu", flow->qp->qp_num, (unsigned long)flow->observed,
			    (unsigned long)flow->posted);
	}
}

static void run(struct side *side, double seconds)
{
	double end = seconds_now() + seconds;

	for (unsigned long turn = 0; turn % 64 || seconds_now() < end; turn++) {
		unsigned int index = draw_below(&side->random, side->qps);

		if (side->flow[index].posted - side->flow[index].observed < UNDER_WAY)
			post(side, index);
		poll_both(side);
		if (turn % 1024 == 0)
			look_for_stuck(side);
	}
}

static bool is_idle(const struct side *side)
{
	for (unsigned int i = 0; i < side->qps; i++)
		if (side->flow[i].observed < side->flow[i].posted)
			return false;
	return true;
}

/* Waits for room in the flow, and reads a piece of the peer's region back. */
static void read_back(struct side *side, unsigned int index, uint32_t offset)
{
	struct flow *flow = &side->flow[index];
	uint32_t length = REGION - offset < LONGEST ? REGION - offset : LONGEST;
	struct ibv_sge sge = {.length = length, .lkey = side->slots->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = side->peer[index].region + offset, .rkey = side->peer[index].rkey},
	};
	struct ibv_send_wr *bad;
	int error;

	while (flow->posted - flow->observed >= UNDER_WAY) {
		poll_both(side);
		look_for_stuck(side);
	}
	sge.addr = (uintptr_t)slot_of(flow, flow->posted);
	wr.wr_id = (uint64_t)index << 48 | flow->posted;
	flow->request[flow->posted % UNDER_WAY] =
		(struct request){.opcode = IBV_WR_RDMA_READ, .signalled = true, .offset = offset, .length = length};
	error = ibv_post_send(flow->qp, &wr, &bad);
	if (error)
		die("ibv_post_send: %s", strerror(error));
	flow->last_progress = seconds_now();
	flow->posted++;
}

/* Reads all regions back, which also proves that earlier requests are complete, signalled or not. */
static void settle(struct side *side)
{
	for (uint32_t offset = 0; offset < REGION; offset += LONGEST)
		for (unsigned int i = 0; i < side->qps; i++)
			read_back(side, i, offset);
	while (!is_idle(side)) {
		poll_both(side);
		look_for_stuck(side);
	}
}

/* ---- setting up ----------------------------------------------------------------------------------------------- */

static void side_open(struct side *side, unsigned int qps, uint64_t seed)
{
	side->qps = qps;
	side->random = seed;
	device_open(&side->device);
	side->send_cq = cq_new(&side->device, (int)qps * QP_DEPTH);
	side->receive_cq = cq_new(&side->device, (int)qps * QP_DEPTH);
	side->regions = memory_new(&side->device, (size_t)qps * REGION);
	side->slots = memory_new(&side->device, (size_t)qps * UNDER_WAY * LONGEST);
	side->receives = memory_new(&side->device, (size_t)qps * RECEIVES * RECEIVE_BYTES);
	for (unsigned int i = 0; i < qps; i++) {
		struct flow *flow = &side->flow[i];

		flow->qp = qp_new(&side->device, side->send_cq, side->receive_cq);
		flow->slots = (uint8_t *)side->slots->addr + (size_t)i * UNDER_WAY * LONGEST;
		flow->receives = (uint8_t *)side->receives->addr + (size_t)i * RECEIVES * RECEIVE_BYTES;
		flow->model = calloc(1, REGION);
		if (!flow->model)
			die("no memory");
	}
}

static void side_connect(struct side *side, int socket)
{
	for (unsigned int i = 0; i < side->qps; i++) {
		struct address own = {
			.gid = side->device.gid,
			.qpn = side->flow[i].qp->qp_num,
			.psn = (uint32_t)draw(&side->random) & 0xffffff,
			.region = (uintptr_t)side->regions->addr + (size_t)i * REGION,
			.rkey = side->regions->rkey,
		};

		if (!send_all(socket, &own, sizeof(own)) || !receive_all(socket, &side->peer[i], sizeof(side->peer[i])))
			die("the peer has gone");
		qp_connect(&side->device, side->flow[i].qp, &side->peer[i].gid, side->peer[i].qpn, own.psn,
			   side->peer[i].psn, patience);
		for (int j = 0; j < RECEIVES; j++)
			post_receive(side, i);
	}
}

/* While this side waits for the other, the other still needs its receives. */
static void meet(struct side *side, int socket)
{
	char word = '!';

	if (!send_all(socket, &word, 1))
		die("the peer has gone");
	while (recv(socket, &word, 1, MSG_DONTWAIT) != 1) {
		if (errno != EAGAIN)
			die("the peer has gone");
		poll_both(side);
	}
}

static void compare_counts(struct side *side, int socket)
{
	for (unsigned int i = 0; i < side->qps; i++) {
		uint64_t sent = side->flow[i].messages_sent, by_peer;

		if (!send_all(socket, &sent, sizeof(sent)) || !receive_all(socket, &by_peer, sizeof(by_peer)))
			die("the peer has gone");
		/* Operations that the peer knows to be complete were executed; their completions here were written before. */
		poll_both(side);
		if (side->flow[i].messages_received != by_peer)
			die("qp %#x: %lu messages received, %lu sent", side->flow[i].qp->qp_num,
			    (unsigned long)side->flow[i].messages_received, (unsigned long)by_peer);
	}
}

static void side_close(struct side *side)
{
	for (unsigned int i = 0; i < side->qps; i++) {
		if (ibv_destroy_qp(side->flow[i].qp))
			die("ibv_destroy_qp");
		free(side->flow[i].model);
	}
	memory_free(side->regions);
	memory_free(side->slots);
	memory_free(side->receives);
	if (ibv_destroy_cq(side->send_cq) || ibv_destroy_cq(side->receive_cq))
		die("ibv_destroy_cq");
	device_close(&side->device);
}

static void soak(int socket, unsigned int qps, double seconds, uint64_t seed)
{
	static struct side side;
	double begin = seconds_now();

	side_open(&side, qps, seed);
	side_connect(&side, socket);
	meet(&side, socket);
	run(&side, seconds);
	settle(&side);
	meet(&side, socket);
	compare_counts(&side, socket);
	printf("%s: %lu requests, %.1f MB, %u queue pairs, %.1f s\n", role_name, (unsigned long)side.requests,
	       (double)side.bytes / 1e6, qps, seconds_now() - begin);
	meet(&side, socket);
	side_close(&side);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"netns", required_argument, NULL, 'n'},   {"seconds", required_argument, NULL, 't'},
		{"seed", required_argument, NULL, 's'},    {"qps", required_argument, NULL, 'q'},
		{"timeout", required_argument, NULL, 'w'}, {NULL, 0, NULL, 0},
	};
	const char *netns = NULL;
	char seconds[32] = "10", qps[32] = "16", seed[32] = "1", timeout[32] = "14";
	const char *arguments[] = {"second", qps, seconds, seed, timeout, NULL};
	struct process process;
	int option, status;

	if (argc == 6 && strcmp(argv[1], "second") == 0) {
		role_name = "second";
		patience.timeout = (uint8_t)atoi(argv[5]);
		soak(PROCESS_SOCKET, (unsigned int)atoi(argv[2]), atof(argv[3]), ~strtoull(argv[4], NULL, 0));
		return 0;
	}
	role_name = "first";
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'n')
			netns = optarg;
		else if (option == 't')
			snprintf(seconds, sizeof(seconds), "%s", optarg);
		else if (option == 's')
			snprintf(seed, sizeof(seed), "%s", optarg);
		else if (option == 'q')
			snprintf(qps, sizeof(qps), "%s", optarg);
		else if (option == 'w')
			snprintf(timeout, sizeof(timeout), "%s", optarg);
		else
			return 2;
	}
	patience.timeout = (uint8_t)atoi(timeout);
	if (atoi(qps) < 1 || atoi(qps) > MOST_QPS)
		die("1 to %d queue pairs", MOST_QPS);
	process = process_start(netns, arguments);
	printf("seed %s\n", seed);
	fflush(stdout);
	soak(process.socket, (unsigned int)atoi(qps), atof(seconds), strtoull(seed, NULL, 0));
	if (waitpid(process.pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
		die("the second process ends with status %#x", status);
	return 0;
}
