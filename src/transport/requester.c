/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester: starts WQEs in ring order, turns each into a message or executes it on the spot, and completes them in
 * order. What was started and has not completed is in the in-flight FIFO; sending again means walking that FIFO again:
 * the WQE and the memory it refers to are read anew, nothing is kept.
 */
#include <string.h>

#include "hca/epoch.h"
#include "link/link.h"
#include "mkey/umr.h"
#include "transport/requester.h"
#include "transport/wqe_parse.h"

const struct transport *transport_of(enum ibv_qp_type type)
{
	static const struct transport rc = {.reliable = true, .connected = true};
	static const struct transport uc = {.connected = true};
	static const struct transport ud = {.datagram = true};

	switch (type) {
	case IBV_QPT_RC:
		return &rc;
	case IBV_QPT_UC:
		return &uc;
	default:
		return &ud;
	}
}

/* What became of the attempt to go on. */
enum progress {
	PROGRESS_NONE,   /* nothing can be started now */
	PROGRESS_MADE,   /* something was executed on the spot; look again */
	PROGRESS_PACKET, /* a packet was built */
};

static void fill_header(const struct hca_qp *qp, const struct wqe *wqe, struct packet *packet)
{
	packet->transport = (uint8_t)qp->type;
	packet->message = wqe_opcodes[wqe->opcode].message;
	packet->place = PLACE_ONLY;
	packet->solicited = wqe->fm_ce_se & MLX5_WQE_CTRL_SOLICITED;
	packet->acknowledge = transport_of(qp->type)->reliable;
	packet->source_qpn = qp->number;
	packet->destination_qpn = qp->attr.dest_qp_num;
	packet->mtu = (uint16_t)(1u << qp->mtu_shift);
	packet->path = &qp->path;
	packet->routed = qp->reachable;
	packet->remote_address = wqe->remote_address;
	packet->rkey = wqe->rkey;
	packet->swap_add = wqe->swap_add;
	packet->compare = wqe->compare;
	packet->immediate = wqe->imm;
	packet->invalidate_rkey = be32toh(wqe->imm);
	packet->why.rule = RULE_NONE;
}

/* mlx5-formats 1.6: the address of a datagram comes with its WQE. */
static int fill_datagram(const struct hca_qp *qp, const struct wqe *wqe, struct packet *packet, struct refusal *why)
{
	uint32_t grh = be32toh(wqe->av.grh_gid_fl), qkey = be32toh(wqe->av.key.qkey.qkey);
	uint32_t sgid_index = grh >> 20 & 0xff;

	/* The GRH bit is reserved on Ethernet, where every packet has one. */
	if (sgid_index >= qp->hca->gid_count) {
		*why = (struct refusal){RULE_DATAGRAM_ADDRESS, {sgid_index, qp->hca->gid_count}};
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	}
	packet->destination_qpn = be32toh(wqe->av.dqp_dct) & 0xffffff;
	/* IBTA 10.2.5: a Q_Key whose top bit is set stands for the QP's own. */
	packet->qkey = qkey & 0x80000000 ? qp->attr.qkey : qkey;
	packet->path = &packet->own_path;
	packet->own_path = (struct packet_path){
		.source = qp->hca->gids[sgid_index].gid,
		.type = qp->hca->gids[sgid_index].type,
		.service_level = wqe->av.stat_rate_sl >> 1 & 7,
		.traffic_class = wqe->av.tclass,
		.hop_limit = wqe->av.hop_limit,
		.flow_label = grh & 0xfffff,
	};
	memcpy(&packet->own_path.destination, wqe->av.rgid, sizeof(wqe->av.rgid));
	packet->routed = qp->hca->link->reaches(qp->hca, &packet->own_path.destination);
	return 0;
}

/* IBTA C9-25 and ibv_query_port(3), max_msg_sz; a datagram is one packet (C9-92). */
static int check_length(const struct hca_qp *qp, uint64_t bytes, struct refusal *why)
{
	uint64_t limit = qp->type == IBV_QPT_UD ? UINT64_C(1) << qp->mtu_shift : LIMIT_MAX_MSG_SIZE;

	if (bytes <= limit)
		return 0;
	*why = (struct refusal){RULE_MESSAGE_TOO_LONG, {bytes, limit, qp->type}};
	return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
}

static int build_request(const struct hca_qp *qp, const struct wqe *wqe, struct packet *packet, struct refusal *why)
{
	int syndrome = wqe_gather(wqe, &qp->access, &packet->payload, why);

	if (!syndrome)
		syndrome = check_length(qp, packet->payload.length, why);
	packet->dma_length = (uint32_t)packet->payload.length;
	packet->count = packets_of(packet->payload.length, qp->mtu_shift);
	return syndrome;
}

/* A READ takes as many sequence numbers as its response will have packets (IBTA C9-148). */
static int build_read(const struct hca_qp *qp, const struct wqe *wqe, uint64_t arrived, struct packet *packet,
		      struct refusal *why)
{
	uint64_t bytes;
	int syndrome;

	if (wqe_sink_length(wqe, &bytes, why))
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	syndrome = check_length(qp, bytes, why);
	packet->payload.length = 0;
	packet->remote_address += arrived;
	packet->dma_length = (uint32_t)(bytes - arrived);
	packet->count = packets_of(bytes - arrived, qp->mtu_shift);
	return syndrome;
}

static int build_atomic(const struct wqe *wqe, struct packet *packet, struct refusal *why)
{
	uint64_t bytes;

	if (wqe_sink_length(wqe, &bytes, why))
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	if (bytes != sizeof(uint64_t)) {
		*why = (struct refusal){RULE_ATOMIC_LENGTH, {bytes}};
		return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
	}
	packet->payload.length = 0;
	packet->dma_length = sizeof(uint64_t);
	packet->count = 1;
	return 0;
}

/* The packet of @wqe, all but its sequence number. @arrived: bytes of a READ that need not be asked for again. */
static int build(const struct hca_qp *qp, const struct wqe *wqe, uint64_t arrived, struct packet *packet,
		 struct refusal *why)
{
	int syndrome = 0;

	fill_header(qp, wqe, packet);
	if (transport_of(qp->type)->datagram)
		syndrome = fill_datagram(qp, wqe, packet, why);
	if (syndrome)
		return syndrome;
	switch (wqe_opcodes[wqe->opcode].class) {
	case WQE_CLASS_READ:
		return build_read(qp, wqe, arrived, packet, why);
	case WQE_CLASS_ATOMIC:
		return build_atomic(wqe, packet, why);
	default:
		return build_request(qp, wqe, packet, why);
	}
}

static struct inflight *push(struct requester *requester, const struct wqe *wqe)
{
	struct inflight *entry = inflight_at(requester, requester->last);

	*entry = (struct inflight){
		.index = wqe->index,
		.opcode = wqe->opcode,
		.fm_ce_se = wqe->fm_ce_se,
		.blocks = (uint8_t)wqe->blocks,
	};
	if (requester->resend == requester->last)
		requester->resend++;
	requester->last++;
	requester->next = (uint16_t)(wqe->index + wqe->blocks);
	return entry;
}

static enum progress fail_start(struct hca_qp *qp, const struct wqe *wqe, uint8_t syndrome, const struct refusal *why)
{
	struct requester *requester = &qp->requester;

	/* What came before completes first: this WQE is looked at again when the FIFO is empty. */
	if (requester->first != requester->last)
		return PROGRESS_NONE;
	requester->next = (uint16_t)(wqe->index + wqe->blocks);
	requester_fail(qp, wqe->index, wqe->opcode, wqe->fm_ce_se, syndrome, why);
	return PROGRESS_NONE;
}

/* IBTA 10.6.5: an invalidation completes when nobody uses what it took back, such as a READ that is being answered. */
static void let_transfers_end(struct hca_qp *qp, uint64_t stamp)
{
	if (epoch_passed(stamp))
		return;
	qp->requester.delivering = true;
	queue_unlock(&qp->lock);
	epoch_wait(stamp);
	queue_lock(&qp->lock);
	qp->requester.delivering = false;
}

static enum progress start_local(struct hca_qp *qp, const struct wqe *wqe)
{
	struct inflight *entry;
	uint64_t revoked = 0;
	struct refusal why;

	if (wqe_opcodes[wqe->opcode].class == WQE_CLASS_UMR &&
	    umr_execute(&qp->access, wqe->bytes, wqe->size, &revoked, &why))
		return fail_start(qp, wqe, MLX5_CQE_SYNDROME_MW_BIND_ERR, &why);
	entry = push(&qp->requester, wqe);
	if (revoked)
		let_transfers_end(qp, revoked);
	/* Reset meanwhile: there is no entry any more. */
	if (qp->requester.state == REQUESTER_IDLE)
		return PROGRESS_NONE;
	entry->done = true;
	requester_complete_front(qp);
	return PROGRESS_MADE;
}

/*
 * mlx5-formats 1.3: a fence waits for READs and atomics. And no more of them may be out than the peer has resources for
 * (IBTA C10-79); a program that set max_rd_atomic to 0 gets one, as on a ConnectX.
 */
static bool must_wait(const struct hca_qp *qp, const struct wqe *wqe)
{
	uint8_t class = wqe_opcodes[wqe->opcode].class;
	uint32_t most = qp->attr.max_rd_atomic ? qp->attr.max_rd_atomic : 1;

	if (!qp->requester.responses_due)
		return false;
	if (WQE_FENCE_WAITS(WQE_FENCE(wqe->fm_ce_se)))
		return true;
	return (class == WQE_CLASS_READ || class == WQE_CLASS_ATOMIC) && qp->requester.responses_due >= most;
}

static enum progress start_message(struct hca_qp *qp, const struct wqe *wqe, struct packet *packet)
{
	struct requester *requester = &qp->requester;
	uint8_t class = wqe_opcodes[wqe->opcode].class;
	struct inflight *entry;
	struct refusal why;
	int syndrome = build(qp, wqe, 0, packet, &why);

	if (syndrome)
		return fail_start(qp, wqe, (uint8_t)syndrome, &why);
	entry = push(requester, wqe);
	entry->psn = requester->psn;
	entry->packets = packet->count;
	entry->bytes = packet->dma_length;
	entry->responds = class == WQE_CLASS_READ || class == WQE_CLASS_ATOMIC;
	requester->responses_due += entry->responds;
	packet->psn = requester->psn;
	requester->psn = psn_add(requester->psn, packet->count);
	return PROGRESS_PACKET;
}

static enum progress start_next(struct hca_qp *qp, struct packet *packet)
{
	struct requester *requester = &qp->requester;
	uint32_t posted = wqe_posted(requester, requester->next);
	struct refusal why;
	struct wqe wqe;
	uint8_t class;

	/* A ring can be written over WQEs that have not completed; the FIFO holds no more of them than the ring did. */
	if (!posted || requester->last - requester->first == requester->block_count)
		return PROGRESS_NONE;
	if (wqe_parse(qp, requester->next, posted, &wqe, &why))
		return fail_start(qp, &wqe, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, &why);
	if (must_wait(qp, &wqe))
		return PROGRESS_NONE;
	class = wqe_opcodes[wqe.opcode].class;
	if (class == WQE_CLASS_NOP || class == WQE_CLASS_UMR)
		return start_local(qp, &wqe);
	return start_message(qp, &wqe, packet);
}

/* Sends the next entry of the FIFO again; local operations were done once and stay done. */
static enum progress resend_next(struct hca_qp *qp, struct packet *packet)
{
	struct requester *requester = &qp->requester;
	struct inflight *entry = inflight_at(requester, requester->resend);
	struct refusal why;
	struct wqe wqe;
	int syndrome = MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;

	if (entry->done || !entry->packets) {
		requester->resend++;
		return PROGRESS_MADE;
	}
	if (!wqe_parse(qp, entry->index, entry->blocks, &wqe, &why))
		syndrome = build(qp, &wqe, entry->arrived, packet, &why);
	if (!syndrome && (wqe.opcode != entry->opcode || packet->dma_length != entry->bytes - entry->arrived)) {
		syndrome = MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
		why = (struct refusal){RULE_WQE_CHANGED,
				       {wqe.opcode, (uint32_t)(packet->dma_length + entry->arrived), entry->opcode,
					entry->bytes}};
	}
	if (syndrome) {
		if (requester->resend != requester->first)
			return PROGRESS_NONE;
		requester_fail_front(qp, (uint8_t)syndrome, &why);
		return PROGRESS_NONE;
	}
	requester->resend++;
	packet->psn = psn_add(entry->psn, (uint32_t)(entry->arrived >> qp->mtu_shift));
	return PROGRESS_PACKET;
}

/* Builds the next packet; true if there is one. */
static bool next_packet(struct hca_qp *qp, struct packet *packet)
{
	struct requester *requester = &qp->requester;
	enum progress progress = PROGRESS_NONE;

	if (requester->rnr_wait)
		return false;
	do {
		switch (requester->state) {
		case REQUESTER_IDLE:
			return false;
		case REQUESTER_FLUSH:
			requester_flush(qp);
			return false;
		case REQUESTER_DRAINED:
			if (requester->resend == requester->last)
				return false;
			progress = resend_next(qp, packet);
			break;
		case REQUESTER_READY:
			progress =
				requester->resend != requester->last ? resend_next(qp, packet) : start_next(qp, packet);
			break;
		}
	} while (progress == PROGRESS_MADE);
	return progress == PROGRESS_PACKET;
}

/* UC and UD complete once their packet has left (IBTA C9-161): all references to the source have been used. */
static void complete_unreliable(struct hca_qp *qp)
{
	struct requester *requester = &qp->requester;

	for (uint32_t i = requester->first; i != requester->last; i++)
		inflight_at(requester, i)->done = true;
	requester_complete_front(qp);
}

/* IBTA 9.7.6.1.3: what is not acknowledged when all has been delivered waits for the acknowledgement timer. */
static void watch_acknowledgement(struct hca_qp *qp)
{
	struct requester *requester = &qp->requester;

	if (requester->timer_armed || requester->first == requester->last || !qp->attr.timeout ||
	    requester->state == REQUESTER_FLUSH)
		return;
	requester->timer_armed = true;
	timer_arm(&qp->hca->timers, &requester->timer, clock_now_ns() + (UINT64_C(4096) << qp->attr.timeout));
}

void requester_run(struct hca_qp *qp, struct run *run)
{
	struct requester *requester = &qp->requester;
	bool reliable = transport_of(qp->type)->reliable;

	queue_lock(&qp->lock);
	/* Whoever runs it looks once more, under the lock, before it stops: what is posted now is seen then. */
	if (requester->running) {
		queue_unlock(&qp->lock);
		return;
	}
	requester->running = true;
	/* Until a packet says otherwise it leads nowhere. */
	while (run_slot(run)->routed = false, next_packet(qp, run_slot(run))) {
		if (run_slot(run)->routed)
			qp->hca->link->send(qp->hca, run);
		do {
			requester->delivering = true;
			queue_unlock(&qp->lock);
			run_drain(run, qp);
			queue_lock(&qp->lock);
			requester->delivering = false;
		} while (run_take(run, qp));
		if (!reliable)
			complete_unreliable(qp);
	}
	requester->running = false;
	if (reliable)
		watch_acknowledgement(qp);
	queue_unlock(&qp->lock);
}

void hca_qp_send_doorbell(struct hca_qp *qp)
{
	struct run run;

	epoch_enter();
	run_begin(&run);
	requester_run(qp, &run);
	run_finish(&run);
	epoch_leave();
}
