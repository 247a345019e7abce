/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes requester and responder of live QPs with packets. An input is a list of steps; each posts a request or a receive,
 * delivers, loses or duplicates packets of the device, expires a timer, or passes a packet made by the fuzzer to the parser of
 * the links as bytes. Both therefore get valid responses as well as foreign packets.
 *
 * Checks that memory without remote rights does not change, that the QPs' counters are consistent, and that nothing crashes
 * (AddressSanitizer).
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../tests/unit/support/frame_bytes.h"
#include "../tests/unit/support/wire_link.h"
#include "transport/control/commands.h"
#include "core/epoch.h"
#include "wire/link.h"
#include "wire/roce.h"
#include "transport/responder/atomic.h"
#include "transport/responder/dct.h"
#include "transport/qp/transport.h"
#include "transport/run/run.h"
#include "world.h"

enum { STEPS = 64, MOST_DELIVERED = 512, LONGEST = 0x1800, LONGEST_READ = 1 << 20 };

enum step_kind {
	STEP_REQUEST,
	STEP_RECEIVE,
	STEP_DELIVER, /* `count` packets */
	STEP_LOSE,
	STEP_DOUBLE,
	STEP_TIMER,
	STEP_PACKET, /* made by the fuzzer */
	STEP_SPOIL,  /* the device's next packet, changed */
	STEP_RAW,    /* unchanged bytes */
	STEP_ROOM,   /* the link has room, or not */
	STEP_STATE,
	STEP_COUNT,
};

struct step {
	uint8_t kind, end, opcode, flags;
	uint8_t number; /* relative to the expected number, or the first changed byte */
	uint8_t key, syndrome, fill;
	uint8_t offset[2], length[2]; /* little-endian */
	uint8_t value[4];
};

struct input {
	uint8_t pair, flags, retries, reads;
	uint8_t link[2]; /* burst size and window, in units of 4096 bytes; both 0: unlimited */
	uint8_t rest[2];
	struct step step[STEPS];
};

static struct {
	struct input input;
	struct world_pair_of_qps *pair;
	bool full; /* the link has no room */
	struct frame_bytes frame;
} this_run;

static uint32_t word(const uint8_t *bytes)
{
	return bytes[0] | (uint32_t)bytes[1] << 8;
}

static uint32_t value_of(const struct step *step)
{
	return word(step->value) | word(step->value + 2) << 16;
}

static struct world_qp *end_of(const struct step *step)
{
	return &this_run.pair->end[step->end & 1];
}

/* ---- the device's own traffic ---------------------------------------------------------------------------------- */

static void append(uint8_t *wqe, uint32_t *segments, const void *segment, uint32_t bytes)
{
	memcpy(wqe + 16 * *segments, segment, bytes);
	*segments += bytes / 16;
}

static uint32_t key_number(const struct step *step)
{
	return WORLD_KEY(step->key % WORLD_KEYS);
}

/* Returns an address in the middle of WORLD_FULL, or near an end of it. */
static uint64_t address_of(const struct step *step)
{
	return WORLD_BASE + 0x1040 + word(step->offset) % 0x2000;
}

static uint8_t request_opcode(const struct step *step)
{
	static const uint8_t opcodes[] = {
		MLX5_OPCODE_SEND,           MLX5_OPCODE_SEND_IMM,         MLX5_OPCODE_SEND_INVAL,
		MLX5_OPCODE_RDMA_WRITE,     MLX5_OPCODE_RDMA_READ,        MLX5_OPCODE_RDMA_WRITE,
		MLX5_OPCODE_RDMA_WRITE_IMM, MLX5_OPCODE_RDMA_READ,        MLX5_OPCODE_ATOMIC_CS,
		MLX5_OPCODE_ATOMIC_FA,      MLX5_OPCODE_ATOMIC_MASKED_CS, MLX5_OPCODE_ATOMIC_MASKED_FA,
	};

	return opcodes[step->opcode % sizeof(opcodes)];
}

static void append_address(uint8_t *wqe, uint32_t *segments, const struct step *step, const struct hca_qp *qp)
{
	struct mlx5_wqe_av av = {.hop_limit = 1};
	uint32_t peer = this_run.pair->end[!(step->end & 1)].qp->number;

	if (qp->type == IBV_QPT_XRC_SEND) {
		const __be32 srq[4] = {htobe32(WORLD_XRC_SRQ + step->number % 4)};

		append(wqe, segments, srq, sizeof(srq));
		return;
	}
	if (qp->dci && step->flags & 4)
		peer = WORLD_OTHER_TARGET;
	av.dqp_dct = htobe32(MLX5_EXTENDED_UD_AV | peer);
	if (qp->dci)
		av.key.dc_key = htobe64(WORLD_DC_KEY);
	memcpy(av.rgid, &world.gid, sizeof(av.rgid));
	append(wqe, segments, &av, sizeof(av));
}

static void append_operation(uint8_t *wqe, uint32_t *segments, const struct step *step, uint8_t opcode, uint32_t *bytes)
{
	const struct mlx5_wqe_raddr_seg remote = {.raddr = htobe64(address_of(step)),
						  .rkey = htobe32(key_number(step))};
	bool masked = opcode == MLX5_OPCODE_ATOMIC_MASKED_CS || opcode == MLX5_OPCODE_ATOMIC_MASKED_FA;
	bool atomic = masked || opcode == MLX5_OPCODE_ATOMIC_CS || opcode == MLX5_OPCODE_ATOMIC_FA;
	uint8_t operands[32];

	if (opcode == MLX5_OPCODE_SEND || opcode == MLX5_OPCODE_SEND_IMM || opcode == MLX5_OPCODE_SEND_INVAL)
		return;
	append(wqe, segments, &remote, sizeof(remote));
	if (!atomic)
		return;
	memset(operands, step->fill, sizeof(operands));
	append(wqe, segments, operands, masked ? 32 : 16);
	*bytes = 8;
}

static void post_request(const struct step *step)
{
	struct world_qp *end = end_of(step);
	struct hca_qp *qp = end->qp;
	uint8_t wqe[256] = {0}, opcode = request_opcode(step);
	uint16_t index = (uint16_t)be32toh(end->dbrec[MLX5_SND_DBR]);
	uint32_t segments = 1, bytes = word(step->length) % LONGEST, blocks;
	struct mlx5_wqe_ctrl_seg ctrl = {
		.opmod_idx_opcode = htobe32((uint32_t)index << 8 | opcode),
		.fm_ce_se = step->flags & 0xfa,
		.imm = htobe32(key_number(step)),
	};

	if (!end->sq || (uint16_t)(index - qp->requester.next) + 4u > WORLD_SQ_BLOCKS)
		return;
	if (qp->type == IBV_QPT_UD || qp->type == QP_TYPE_DCI || qp->type == IBV_QPT_XRC_SEND)
		append_address(wqe, &segments, step, qp);
	append_operation(wqe, &segments, step, opcode, &bytes);
	if (bytes) {
		const struct mlx5_wqe_data_seg data = {htobe32(bytes), htobe32(WORLD_KEY(step->flags & 1)),
						       htobe64(step->flags & 1 ? 0 : WORLD_BASE + 0x1040)};

		append(wqe, &segments, &data, sizeof(data));
	}
	ctrl.qpn_ds = htobe32(qp->number << 8 | segments);
	memcpy(wqe, &ctrl, sizeof(ctrl));
	blocks = (segments + 3) / 4;
	for (uint32_t i = 0; i < blocks * 64; i++)
		end->sq[(index * 64u + i) % (WORLD_SQ_BLOCKS * 64)] = wqe[i];
	end->dbrec[MLX5_SND_DBR] = htobe32((uint16_t)(index + blocks));
	hca_qp_send_doorbell(qp);
}

/* The initial contents of the rings are used. */
static void post_receive(const struct step *step)
{
	struct world_qp *end = end_of(step);
	uint32_t *dbrec = end->srq ? &world.srq_dbrec : &end->dbrec[MLX5_RCV_DBR];

	*dbrec = htobe32((be32toh(*dbrec) + step->number % 4) & 0xffff);
	hca_qp_recv_doorbell(end->qp);
}

static void deliver(uint32_t count)
{
	while (count-- && wire_deliver())
		;
}

static void lose_or_double(bool twice)
{
	struct wire_packet *packet = wire_take();

	if (!packet)
		return;
	for (int i = 0; twice && i < 2; i++)
		wire_receive(packet);
	free(packet);
}

static void spoil(const struct step *step)
{
	struct wire_packet *packet = wire_take();

	if (!packet)
		return;
	switch (step->number % 8) {
	case 0:
		packet->psn = psn_add(packet->psn, value_of(step));
		break;
	case 1:
		packet->length = value_of(step) % (LIMIT_MAX_MTU + 1);
		break;
	case 2:
		packet->syndrome = step->syndrome;
		break;
	case 3:
		packet->dma_length = value_of(step) & 0xffff;
		break;
	case 4:
		packet->rkey = key_number(step);
		break;
	case 5:
		packet->remote_address += value_of(step);
		break;
	case 6:
		packet->destination_qpn = this_run.pair->end[step->fill & 1].qp->number;
		break;
	default:
		if (packet_opcodes[step->opcode].name)
			packet->opcode = step->opcode;
	}
	wire_receive(packet);
	free(packet);
}

static void run_out(struct hca_qp *qp)
{
	if (!qp->requester.timer_armed)
		return;
	timer_disarm(&qp->hca->timers, &qp->requester.timer);
	qp->requester.timer.deadline_ns = clock_now_ns();
	run_requester_timer(&qp->requester.timer);
}

static void resume(void)
{
	struct run run;

	epoch_enter();
	run_begin(&run);
	link_resume(&link_common_queue, UINT32_MAX, &run);
	run_finish(&run);
	epoch_leave();
}

static bool is_full(void *argument)
{
	(void)argument;
	return this_run.full;
}

static void change_state(const struct step *step)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPS_ERR};
	const struct ibv_qp_attr attr = {.qp_state = states[step->number % 3]};

	hca_qp_modify(end_of(step)->qp, &attr, IBV_QP_STATE);
}

/* ---- packets of the fuzzer -------------------------------------------------------------------------------------- */

/* Passes bytes on as a link does (link/udp/receive.c). */
static void hand_over(const uint8_t *bytes, uint32_t length)
{
	uint8_t *exact = malloc(length ? length : 1);
	struct packet *packet;
	struct refusal why;
	struct run run;

	WORLD_CHECK(exact);
	memcpy(exact, bytes, length);
	epoch_enter();
	run_begin(&run);
	packet = run_slot(&run);
	memset(packet, 0xa5, sizeof(*packet));
	/* The wire of this harness keeps every packet of a response. */
	if (!roce_parse(packet, exact, length, &why) &&
	    (packet->message != MESSAGE_READ_REQUEST || packet->dma_length <= LONGEST_READ)) {
		packet->link = world.hca->link;
		packet->own_path = (struct packet_path){
			.source = world.gid, .destination = world.gid, .type = IBV_GID_TYPE_ROCE_V2, .hop_limit = 1};
		packet->path = &packet->own_path;
		packet->mtu = (uint16_t)packet->payload.length;
		run_commit(&run);
		run_drain(&run, NULL);
	}
	run_finish(&run);
	epoch_leave();
	free(exact);
}

/* Returns the PSN that one half of @qp expects, or one near it. A DCT expects a different number from each initiator. */
static uint32_t number_of(const struct hca_qp *qp, const struct step *step, bool response)
{
	uint32_t number = response ? qp->requester.psn - 1 : qp->responder.expected_psn;

	if (qp->dct && qp->dct->all)
		number = qp->dct->all->responder.expected_psn;
	if (step->flags & 1)
		return value_of(step);
	return number + step->number - (step->number & 0x80 ? 256u : 0);
}

static void put_headers(struct frame_bytes *frame, const struct step *step, uint16_t headers)
{
	const struct world_qp *peer = &this_run.pair->end[!(step->end & 1)];
	uint32_t length = word(step->length);

	if (headers & HEADER_DETH)
		frame_deth(frame, step->flags & 2 ? value_of(step) : 0, peer->qp->number);
	if (headers & HEADER_XRCETH)
		frame_put(frame, WORLD_XRC_SRQ + step->fill % 4, 4);
	if (headers & HEADER_DCETH) {
		const struct dct *dct = end_of(step)->qp->dct;
		const struct dct_initiator *initiator = dct ? dct->all : NULL;

		frame_put(frame, WORLD_DC_KEY, 8);
		frame_put(frame, (initiator ? initiator->connection : 1) + (step->flags & 2 ? 1 : 0), 8);
		frame_put(frame, step->flags & 2 ? value_of(step) & 0xffffff : 0xfffffe, 4);
		frame_put(frame, step->flags & 4 ? step->fill : peer->qp->number, 4);
	}
	if (headers & HEADER_RETH)
		frame_reth(frame, address_of(step), key_number(step), length);
	if (headers & HEADER_ATOMICETH)
		frame_atomic_eth(frame, address_of(step), key_number(step), value_of(step), step->fill);
	if (headers & HEADER_AETH)
		frame_aeth(frame, step->syndrome, step->fill);
	if (headers & HEADER_ATOMICACKETH)
		frame_put(frame, value_of(step), 8);
	if (headers & HEADER_IMMDT)
		frame_put(frame, value_of(step), 4);
	if (headers & HEADER_IETH)
		frame_put(frame, key_number(step), 4);
}

/* Returns the opcode of the QP's transport selected by the step; the top bits select any other opcode. */
static uint8_t opcode_for(const struct hca_qp *qp, const struct step *step)
{
	uint8_t known[256];
	uint32_t count = 0;

	if (step->flags & 8)
		return step->opcode;
	for (uint32_t i = 0; i < 256; i++)
		if (packet_opcodes[i].name && packet_opcodes[i].transport == qp->transport->packets)
			known[count++] = (uint8_t)i;
	return known[step->opcode % count];
}

static uint32_t payload_for(const struct hca_qp *qp, const struct step *step, const struct packet_opcode *opcode)
{
	uint32_t mtu = 1u << qp->mtu_shift;

	if (message_is_masked_atomic(opcode->message))
		return step->flags & 16 ? 8 : 16;
	if (!(opcode->headers & HEADER_PAYLOAD))
		return 0;
	if (step->flags & 16)
		return word(step->length) % (LIMIT_MAX_MTU + 64);
	return opcode->place & PLACE_LAST ? word(step->length) % (mtu + 1) : mtu;
}

static void make_packet(const struct step *step)
{
	struct hca_qp *qp = end_of(step)->qp;
	uint8_t opcode = opcode_for(qp, step);
	const struct packet_opcode *what = &packet_opcodes[opcode];
	struct frame_bytes *frame = &this_run.frame;
	bool response = what->name && message_has(what->message, MESSAGE_IS_RESPONSE);

	frame_begin(frame, opcode, qp->number, number_of(qp, step, response));
	put_headers(frame, step, what->headers);
	frame_payload(frame, step->fill, payload_for(qp, step, what));
	if (step->flags & 32)
		frame->byte[step->key % frame->length] ^= step->syndrome;
	if (step->flags & 64)
		frame->length -= step->fill % (frame->length + 1);
	hand_over(frame->byte, frame->length);
}

/* Passes on the step itself and those after it as a packet for this QP. */
static void hand_over_raw(const struct step *step, uint32_t steps_left)
{
	struct frame_bytes *frame = &this_run.frame;
	uint32_t bytes = word(step->length) % 256;

	if (bytes > (steps_left - 1) * sizeof(*step))
		bytes = (steps_left - 1) * sizeof(*step);
	frame->length = bytes;
	memcpy(frame->byte, step + 1, bytes);
	if (bytes > FRAME_DESTINATION + 2 && step->flags & 1) {
		frame->byte[FRAME_DESTINATION] = 0;
		frame->byte[FRAME_DESTINATION + 1] = (uint8_t)(end_of(step)->qp->number >> 8);
		frame->byte[FRAME_DESTINATION + 2] = (uint8_t)end_of(step)->qp->number;
	}
	hand_over(frame->byte, frame->length);
}

/* ---- a run ------------------------------------------------------------------------------------------------------ */

static void take_step(const struct step *step, uint32_t steps_left)
{
	switch (step->kind % STEP_COUNT) {
	case STEP_REQUEST:
		post_request(step);
		break;
	case STEP_RECEIVE:
		post_receive(step);
		break;
	case STEP_DELIVER:
		deliver(step->number);
		break;
	case STEP_LOSE:
	case STEP_DOUBLE:
		lose_or_double(step->kind % STEP_COUNT == STEP_DOUBLE);
		break;
	case STEP_TIMER:
		run_out(end_of(step)->qp);
		break;
	case STEP_PACKET:
		make_packet(step);
		break;
	case STEP_SPOIL:
		spoil(step);
		break;
	case STEP_RAW:
		hand_over_raw(step, steps_left);
		break;
	case STEP_ROOM:
		this_run.full = step->number & 1;
		if (!this_run.full)
			resume();
		break;
	case STEP_STATE:
		change_state(step);
		break;
	}
}

static void poll(struct world_cq *cq)
{
	for (;;) {
		size_t slot = cq->consumer & (cq->count - 1);
		const struct mlx5_cqe64 *cqe = (const struct mlx5_cqe64 *)(cq->buffer + (slot + 1) * cq->size - 64);

		if (cqe->op_own >> 4 == MLX5_CQE_INVALID || (cqe->op_own & 1) != !!(cq->consumer & cq->count))
			break;
		cq->consumer++;
	}
	cq->dbrec[0] = htobe32(cq->consumer & 0xffffff);
}

/* Fills the rings with receives into the two regions that requests may reach. */
static void fill_rings(void)
{
	for (int i = 0; i < 2; i++) {
		struct world_qp *end = &this_run.pair->end[i];

		for (uint32_t r = 0; end->rq && r < WORLD_RQ_ENTRIES; r++) {
			const struct mlx5_wqe_data_seg data[2] = {{htobe32(0x400), htobe32(WORLD_KEY(WORLD_FULL)),
								   htobe64(WORLD_BASE + 0x1100 + r * 0x40)},
								  {htobe32(0x800), htobe32(WORLD_KEY(WORLD_ZERO_BASED)),
								   htobe64(r * 0x20)}};

			memcpy(end->rq + (r << WORLD_RQ_SHIFT), data, sizeof(data));
		}
		if (end->sq)
			memset(end->sq, 0, WORLD_SQ_BLOCKS * 64);
		end->dbrec[0] = end->dbrec[1] = 0;
	}
	for (uint16_t r = 0; r < WORLD_SRQ_ENTRIES; r++) {
		const struct mlx5_wqe_srq_next_seg link = {.next_wqe_index = htobe16((r + 1) % WORLD_SRQ_ENTRIES)};
		const struct mlx5_wqe_data_seg data = {htobe32(0x800), htobe32(WORLD_KEY(WORLD_FULL)),
						       htobe64(WORLD_BASE + 0x1200 + r * 0x40)};
		uint8_t *entry = world.srq_ring + (r << WORLD_SRQ_SHIFT);

		memset(entry, 0, 1u << WORLD_SRQ_SHIFT);
		memcpy(entry, &link, sizeof(link));
		memcpy(entry + 16, &data, sizeof(data));
	}
}

static void begin(const uint8_t *data, size_t size)
{
	struct input *input = &this_run.input;
	struct world_connection connection = {
		.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.mtu = IBV_MTU_256,
	};
	struct wire_manner manner = {.busy = is_full};

	memset(&this_run, 0, sizeof(this_run));
	memcpy(input, data, size < sizeof(*input) ? size : sizeof(*input));
	this_run.pair = &world.pair[input->pair % WORLD_PAIRS];
	connection.to_itself = input->flags & 1;
	connection.streams = input->flags & 2;
	connection.peer_in_rtr = input->flags & 4;
	connection.mtu = input->flags & 8 ? IBV_MTU_1024 : IBV_MTU_256;
	connection.retry_cnt = input->retries & 7;
	connection.rnr_retry = input->retries >> 3 & 7;
	connection.max_rd_atomic = input->reads & 15;
	connection.max_dest_rd_atomic = input->reads >> 4;
	manner.immediate = input->flags & 16;
	if (!manner.immediate) {
		manner.most = input->link[0] % 8 * LIMIT_MAX_MTU;
		manner.window = input->link[1] % 8 * LIMIT_MAX_MTU;
	}
	wire_attach(world.hca, NULL, NULL);
	wire_behave(&manner);
	fill_rings();
	world_connect(this_run.pair, &connection);
}

/* Takes the lock of @qp when it is free: the device thread may hold it for an expired timer. */
static void lock_quiet(struct hca_qp *qp)
{
	for (int i = 0; i < 1000; i++) {
		queue_lock(&qp->lock);
		if (!qp->requester.running && !qp->scheduled)
			return;
		queue_unlock(&qp->lock);
		usleep(1000);
	}
	WORLD_CHECK(!"a thread that was at the queue pair has ended with it");
}

static void check_end(const struct world_qp *end)
{
	struct hca_qp *qp = end->qp;
	const struct requester *requester = &qp->requester;
	uint32_t under_way;

	lock_quiet(qp);
	under_way = requester->last - requester->first;
	WORLD_CHECK(under_way <= requester->block_count);
	WORLD_CHECK(requester->responses_due <= under_way);
	if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_SQE)
		WORLD_CHECK(!under_way);
	WORLD_CHECK(qp->state != IBV_QPS_ERR || !qp->responder.has_receive);
	queue_unlock(&qp->lock);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	world_make();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	world_reset();
	begin(data, size);
	for (uint32_t i = 0; i < STEPS; i++) {
		take_step(&this_run.input.step[i], STEPS - i);
		poll(this_run.pair->end[0].send_cq);
		poll(this_run.pair->end[0].recv_cq);
	}
	this_run.full = false;
	resume();
	deliver(MOST_DELIVERED);
	poll(this_run.pair->end[0].send_cq);
	poll(this_run.pair->end[0].recv_cq);
	check_end(&this_run.pair->end[0]);
	check_end(&this_run.pair->end[1]);
	WORLD_CHECK(!epoch_this_thread->depth);
	world_check_memory();
	world_disconnect(this_run.pair);
	wire_detach(world.hca);
	world_take_events();
	return 0;
}
