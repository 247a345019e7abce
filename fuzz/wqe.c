/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the WQE executor: rings and doorbell records with any contents, a link that loses, duplicates and damages packets,
 * timers that expire, keys that vanish, rings rewritten while WQEs are in progress (wqe_input.h).
 *
 * Checks that nothing crashes, that only bytes allowed by a key are written, that drivers can read the CQEs, in order, that QPs
 * are in valid states, and that requests leave nothing when they have ended.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/control/commands.h"
#include "core/epoch.h"
#include "transport/responder/dct.h"
#include "transport/qp/transport.h"
#include "transport/run/run.h"
#include "wqe_input.h"
#include "wqe_link.h"

/* Longer keys only cost time: a layout can repeat one byte a billion times. Unit tests cover ranges near 2^64. */
#define LONGEST_KEY 0x3fffu

/* Completions of a QP seen so far. */
struct seen {
	uint16_t send, receive; /* lowest valid counter of the next one */
	bool send_failed;
};

struct run_of_input {
	struct input input;
	struct world_pair_of_qps *pair;
	struct world_connection connection;
	struct seen seen[2];
	bool modified; /* states were changed by operations */
	bool jumped;   /* doorbell records were changed by operations */
};

static struct run_of_input this_run;

/* ---- rings ---------------------------------------------------------------------------------------------------- */

static uint32_t be32_at(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Enters the QP's own number and GID at their placeholders, and shortens keys. */
static void adapt(uint8_t *ring, uint32_t qpn)
{
	static const uint8_t own_gid[16] = {[0 ... 15] = INPUT_OWN_GID};

	for (uint32_t i = 0; i < WORLD_SQ_BLOCKS; i++) {
		uint8_t *block = ring + i * 64, *next = ring + (i + 1) % WORLD_SQ_BLOCKS * 64;

		if (be32_at(block + 4) >> 8 == INPUT_OWN_QPN) {
			block[4] = (uint8_t)(qpn >> 16);
			block[5] = (uint8_t)(qpn >> 8);
			block[6] = (uint8_t)qpn;
		}
		if (!memcmp(block + 48, own_gid, sizeof(own_gid)))
			memcpy(block + 48, &world.gid, sizeof(world.gid));
		if (block[3] == MLX5_OPCODE_UMR) {
			/* bytes 24 to 31 of the mkey context: its length */
			memset(next + 24, 0, 6);
			next[30] &= LONGEST_KEY >> 8;
		}
	}
}

static void fill(uint8_t *ring, size_t bytes, size_t start, const uint8_t *from)
{
	for (size_t i = 0; i < bytes; i += 32)
		memcpy(ring + (start + i) % bytes, from + i, 32);
}

static void prepare_end(struct world_qp *end, const uint8_t *sq, const uint8_t *rq, uint16_t sq_start,
			uint16_t rq_start)
{
	if (end->sq) {
		fill(end->sq, WORLD_SQ_BLOCKS * 64, sq_start * 64u, sq);
		adapt(end->sq, end->qp->number);
	}
	if (end->rq)
		fill(end->rq, WORLD_RQ_ENTRIES << WORLD_RQ_SHIFT, (size_t)rq_start << WORLD_RQ_SHIFT, rq);
	end->dbrec[MLX5_SND_DBR] = htobe32(sq_start);
	end->dbrec[MLX5_RCV_DBR] = htobe32(rq_start);
}

static void prepare(const uint8_t *data, size_t size)
{
	struct input *input = &this_run.input;
	const struct input_config *config = &input->config;
	struct world_connection *connection = &this_run.connection;

	memset(&this_run, 0, sizeof(this_run));
	memcpy(input, data, size < sizeof(*input) ? size : sizeof(*input));
	*connection = (struct world_connection){
		.to_itself = config->flags & 1,
		.unreachable = config->flags & 2,
		.peer_in_rtr = config->flags & 4,
		.streams = config->flags & 8,
		.sq_start = (uint16_t)(config->sq_start[0] | config->sq_start[1] << 8),
		.rq_start = (uint16_t)(config->rq_start[0] | config->rq_start[1] << 8),
		.access = (config->access & 1 ? IBV_ACCESS_REMOTE_WRITE : 0) |
			  (config->access & 2 ? IBV_ACCESS_REMOTE_READ : 0) |
			  (config->access & 4 ? IBV_ACCESS_REMOTE_ATOMIC : 0) |
			  (config->access & 8 ? IBV_ACCESS_MW_BIND : 0),
		.mtu = (uint8_t[]){IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_4096}[config->retries >> 6],
		.retry_cnt = config->retries >> 3 & 7,
		.rnr_retry = config->retries & 7,
		.max_rd_atomic = config->reads & 15,
		.max_dest_rd_atomic = config->reads >> 4,
	};
	this_run.pair = &world.pair[config->pair % WORLD_PAIRS];
	for (int i = 0; i < 2; i++)
		this_run.seen[i] = (struct seen){.send = connection->sq_start, .receive = connection->rq_start};
	prepare_end(&this_run.pair->end[0], input->sq_a, input->rq_a, connection->sq_start, connection->rq_start);
	prepare_end(&this_run.pair->end[1], input->sq_b, input->rq_b, connection->sq_start, connection->rq_start);
	memcpy(world.srq_ring, input->srq, sizeof(input->srq));
}

/* ---- completions ---------------------------------------------------------------------------------------------- */

static int end_of(uint32_t qpn)
{
	WORLD_CHECK(qpn == this_run.pair->end[0].qp->number || qpn == this_run.pair->end[1].qp->number);
	return qpn == this_run.pair->end[1].qp->number;
}

static void check_send(struct seen *seen, const struct mlx5_cqe64 *cqe, bool failed)
{
	uint16_t counter = be16toh(cqe->wqe_counter);

	/* A DCI continues after a failure, through as many blocks as the doorbell record announces. */
	WORLD_CHECK((uint16_t)(counter - seen->send) < 0x8000 || (this_run.jumped && this_run.connection.streams));
	seen->send = counter + 1;
	/* After an error, requests of the queue never succeed, unless the QP was reset or the error was that of a stream. */
	WORLD_CHECK(failed || !seen->send_failed || this_run.modified || this_run.connection.streams);
	seen->send_failed |= failed;
}

static uint64_t room_of(const struct world_qp *end, uint16_t counter)
{
	const uint8_t *entry = end->rq + ((size_t)(counter % WORLD_RQ_ENTRIES) << WORLD_RQ_SHIFT);
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < (1u << WORLD_RQ_SHIFT) / 16; i++)
		bytes += be32_at(entry + i * 16);
	return bytes;
}

static void check_receive(const struct world_qp *end, struct seen *seen, const struct mlx5_cqe64 *cqe, bool failed)
{
	uint16_t counter = be16toh(cqe->wqe_counter);

	if (end->srq) {
		WORLD_CHECK(counter < WORLD_SRQ_ENTRIES);
		return;
	}
	/* In order and complete; a small CQ loses some. */
	WORLD_CHECK(counter == seen->receive ||
		    (end->recv_cq->count < 256 && (uint16_t)(counter - seen->receive) < 0x8000));
	seen->receive = counter + 1;
	if (!failed && cqe->op_own >> 4 != MLX5_CQE_RESP_WR_IMM)
		WORLD_CHECK(be32toh(cqe->byte_cnt) <= room_of(end, counter));
}

static void check_error(const struct mlx5_err_cqe *error)
{
	static const uint8_t known[] = {
		MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR,
		MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR,
		MLX5_CQE_SYNDROME_LOCAL_PROT_ERR,
		MLX5_CQE_SYNDROME_WR_FLUSH_ERR,
		MLX5_CQE_SYNDROME_MW_BIND_ERR,
		MLX5_CQE_SYNDROME_BAD_RESP_ERR,
		MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR,
		MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR,
		MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR,
		MLX5_CQE_SYNDROME_REMOTE_OP_ERR,
		MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR,
		MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR,
		MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR,
	};

	WORLD_CHECK(error->syndrome && memchr(known, error->syndrome, sizeof(known)));
	/* The number of the explanation; with an aborted request, 0x93 would be a page fault to drivers (mlx5-formats 2.2). */
	WORLD_CHECK(error->vendor_err_synd && error->vendor_err_synd != 0x93);
}

/* mlx5-formats 3.5. The key may be gone by now. */
static void check_signature_error(const struct world_cq *cq, const uint8_t *cqe)
{
	const struct world_qp *end = &this_run.pair->end[end_of(be32_at(cqe + 56))];
	uint32_t syndrome = be32_at(cqe + 32) >> 16;

	WORLD_CHECK(cq == end->send_cq || cq == end->recv_cq);
	WORLD_CHECK(syndrome == 0x0800 || syndrome == 0x1000 || syndrome == 0x2000);
	WORLD_CHECK(cqe[34] == 0 && cqe[35] <= 1);
	WORLD_CHECK(be32_at(cqe + 36) >> 8 >= WORLD_KEY(0) >> 8 && be32_at(cqe + 36) >> 8 < WORLD_KEY(WORLD_KEYS) >> 8);
	/* Some expected and actual values differ. */
	WORLD_CHECK(be32_at(cqe + 16) != be32_at(cqe + 20) || be32_at(cqe + 24) != be32_at(cqe + 28));
}

static void check_cqe(const struct world_cq *cq, const struct mlx5_cqe64 *cqe)
{
	uint32_t qpn = be32toh(cqe->sop_drop_qpn) & 0xffffff;
	uint8_t opcode = cqe->op_own >> 4;
	int number = end_of(qpn);
	const struct world_qp *end = &this_run.pair->end[number];
	bool failed = opcode == MLX5_CQE_REQ_ERR || opcode == MLX5_CQE_RESP_ERR;

	if (opcode == MLX5_CQE_SIG_ERR) {
		check_signature_error(cq, (const uint8_t *)cqe);
		return;
	}
	WORLD_CHECK((be32toh(cqe->srqn_uidx) & 0xffffff) == (qpn & 0xff));
	if (failed)
		check_error((const struct mlx5_err_cqe *)cqe);
	switch (opcode) {
	case MLX5_CQE_REQ:
	case MLX5_CQE_REQ_ERR:
		WORLD_CHECK(cq == end->send_cq);
		check_send(&this_run.seen[number], cqe, failed);
		break;
	case MLX5_CQE_RESP_WR_IMM:
	case MLX5_CQE_RESP_SEND:
	case MLX5_CQE_RESP_SEND_IMM:
	case MLX5_CQE_RESP_SEND_INV:
	case MLX5_CQE_RESP_ERR:
		WORLD_CHECK(cq == end->recv_cq);
		check_receive(end, &this_run.seen[number], cqe, failed);
		break;
	default:
		WORLD_CHECK(!"an opcode of a CQE");
	}
}

static void poll(struct world_cq *cq)
{
	for (;;) {
		size_t slot = cq->consumer & (cq->count - 1);
		const struct mlx5_cqe64 *cqe = (const struct mlx5_cqe64 *)(cq->buffer + (slot + 1) * cq->size - 64);

		if (cqe->op_own >> 4 == MLX5_CQE_INVALID || (cqe->op_own & 1) != !!(cq->consumer & cq->count))
			break;
		check_cqe(cq, cqe);
		cq->consumer++;
	}
	cq->dbrec[0] = htobe32(cq->consumer & 0xffffff);
}

static void poll_all(void)
{
	poll(this_run.pair->end[0].send_cq);
	poll(this_run.pair->end[0].recv_cq);
}

/* ---- operations ----------------------------------------------------------------------------------------------- */

static void move_dbrec(uint32_t *dbrec, uint32_t by)
{
	*dbrec = htobe32((be32toh(*dbrec) + by) & 0xffff);
}

static void receive(struct world_qp *end, uint32_t entries)
{
	move_dbrec(end->srq ? &world.srq_dbrec : &end->dbrec[MLX5_RCV_DBR], entries);
	hca_qp_recv_doorbell(end->qp);
}

/* Expires the timer as the device thread would; that thread sleeps because the deadlines are far away. */
static void run_out(struct hca_qp *qp)
{
	if (!qp->requester.timer_armed)
		return;
	timer_disarm(&qp->hca->timers, &qp->requester.timer);
	qp->requester.timer.deadline_ns = 0;
	run_requester_timer(&qp->requester.timer);
}

static void change_state(struct world_qp *end, uint8_t argument)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPS_ERR};
	const struct ibv_qp_attr attr = {.qp_state = states[argument % 3], .en_sqd_async_notify = argument >> 7};
	int mask = IBV_QP_STATE | (attr.qp_state == IBV_QPS_SQD ? IBV_QP_EN_SQD_ASYNC_NOTIFY : 0);

	this_run.modified = true;
	hca_qp_modify(end->qp, &attr, mask);
}

static void announce(struct world_qp *end, uint32_t blocks)
{
	if (!end->sq)
		return;
	move_dbrec(&end->dbrec[MLX5_SND_DBR], blocks);
	hca_qp_send_doorbell(end->qp);
}

static void rewrite(struct world_qp *end, const uint8_t *blocks, uint8_t argument)
{
	if (!end->sq)
		return;
	memcpy(end->sq + (argument & 15) * 64, blocks + (argument >> 4) * 64, 64);
	adapt(end->sq, end->qp->number);
}

static void arm(uint8_t argument)
{
	struct world_cq *cq = argument & 1 ? this_run.pair->end[0].send_cq : this_run.pair->end[0].recv_cq;

	hca_cq_request(cq->cq, (uint32_t)(argument >> 6) << 28 | (argument & 2 ? 1u << 24 : 0) | cq->consumer);
}

static void operate(uint8_t kind, uint8_t argument)
{
	struct world_qp *a = &this_run.pair->end[0], *b = &this_run.pair->end[1];

	switch (kind % OP_COUNT) {
	case OP_SEND_A:
	case OP_SEND_B:
		announce(kind & 1 ? b : a, argument % (WORLD_SQ_BLOCKS + 1));
		break;
	case OP_RECEIVE_A:
	case OP_RECEIVE_B:
		receive(kind & 1 ? b : a, argument % (WORLD_RQ_ENTRIES + 1));
		break;
	case OP_TIMER_A:
	case OP_TIMER_B:
		run_out((kind & 1 ? b : a)->qp);
		break;
	case OP_MODIFY_A:
	case OP_MODIFY_B:
		change_state(kind & 1 ? b : a, argument);
		break;
	case OP_REWRITE_A:
		rewrite(a, this_run.input.sq_a, argument);
		break;
	case OP_REWRITE_B:
		rewrite(b, this_run.input.sq_b, argument);
		break;
	case OP_JUMP_A:
	case OP_JUMP_B:
		this_run.jumped = true;
		move_dbrec(&(kind & 1 ? b : a)->dbrec[argument & 1], argument * 257u);
		break;
	case OP_POLL:
		poll_all();
		break;
	case OP_KEY:
		if (argument % WORLD_KEYS == WORLD_FULL)
			world_narrow();
		else
			world_reset_key(argument % WORLD_KEYS);
		break;
	case OP_ARM:
		arm(argument);
		break;
	case OP_LIMIT:
		hca_srq_set_limit(world.srq, argument);
		break;
	}
}

/* ---- what must hold ------------------------------------------------------------------------------------------- */

static bool is_possible(const struct hca_qp *qp)
{
	switch (qp->state) {
	case IBV_QPS_RTS:
	case IBV_QPS_ERR:
		return true;
	case IBV_QPS_SQE:
		return !qp->transport->reliable;
	case IBV_QPS_SQD:
		return this_run.modified || qp->stop_at_signature_error;
	case IBV_QPS_RTR:
		return this_run.connection.peer_in_rtr || qp->dct;
	default:
		return false;
	}
}

static void check_end(const struct world_qp *end)
{
	const struct hca_qp *qp = end->qp;
	const struct requester *requester = &qp->requester;
	uint32_t under_way = requester->last - requester->first;

	WORLD_CHECK(is_possible(qp));
	WORLD_CHECK(!requester->running && !qp->scheduled);
	WORLD_CHECK(requester->send_entry - requester->first <= under_way);
	WORLD_CHECK(under_way || !requester->responses_due);
	WORLD_CHECK(requester->responses_due <= under_way);
	if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_SQE)
		WORLD_CHECK(!under_way);
	if (!qp->transport->reliable)
		WORLD_CHECK(!under_way);
	if (qp->state != IBV_QPS_ERR)
		return;
	/* A receive is taken and not completed only in the middle of a message. */
	WORLD_CHECK(!qp->responder.has_receive);
	for (const struct dct_initiator *initiator = qp->dct ? qp->dct->all : NULL; initiator;
	     initiator = initiator->next)
		WORLD_CHECK(!initiator->responder.has_receive);
}

/* The last explanation must be printable. */
static void check_explanation(void)
{
	struct explain_record record;
	char text[1024];

	if (explain_previous(world.hca, 0, 0, &record))
		WORLD_CHECK(explain_render(hca_name(world.hca), &record, text, sizeof(text)) > 0);
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
	prepare(data, size);
	link_begin(&this_run.input.config, this_run.pair);
	world_connect(this_run.pair, &this_run.connection);
	for (int i = 0; i < INPUT_OPS; i++) {
		operate(this_run.input.op[i].kind, this_run.input.op[i].argument);
		link_deliver();
	}
	poll_all();
	check_end(&this_run.pair->end[0]);
	check_end(&this_run.pair->end[1]);
	WORLD_CHECK(!epoch_this_thread->depth);
	world_check_memory();
	check_explanation();
	world_disconnect(this_run.pair);
	link_end();
	world_take_events();
	return 0;
}
