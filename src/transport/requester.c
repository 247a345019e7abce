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
#include "transport/transport.h"
#include "transport/wqe_parse.h"

#define RNR_RETRY_FOREVER 7

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

/* ---- completing ----------------------------------------------------------------------------------------------- */

static struct inflight *inflight_at(struct requester *requester, uint32_t position)
{
	return &requester->inflight[position & (requester->block_count - 1)];
}

static void complete_send(struct hca_qp *qp, uint8_t cqe_opcode, uint8_t send_opcode, uint8_t fm_ce_se, uint16_t index,
			  uint32_t bytes, uint8_t syndrome, enum explain_rule rule)
{
	struct completion completion = {
		.opcode = cqe_opcode,
		.send_opcode = send_opcode,
		.syndrome = syndrome,
		.vendor_syndrome = (uint8_t)rule,
		.wqe_counter = index,
		.user_index = qp->user_index,
		.qpn = qp->number,
		.byte_count = bytes,
		.event = WQE_COMPLETION(fm_ce_se) == WQE_CQE_AND_EVENT,
	};

	qp_complete(qp, qp->send_cq, &completion);
}

static void stop_timer(struct hca_qp *qp)
{
	qp->requester.rnr_wait = false;
	if (!qp->requester.timer_armed)
		return;
	timer_disarm(&qp->hca->timers, &qp->requester.timer);
	qp->requester.timer_armed = false;
}

/* Completes from the front of the FIFO what is done, in the order of the ring (IBTA C10-105). */
static void complete_front(struct hca_qp *qp)
{
	struct requester *requester = &qp->requester;

	while (requester->first != requester->last) {
		struct inflight *entry = inflight_at(requester, requester->first);

		if (!entry->done)
			break;
		if (requester->resend == requester->first)
			requester->resend++;
		requester->first++;
		if (WQE_COMPLETION(entry->fm_ce_se) >= WQE_CQE_ALWAYS)
			complete_send(qp, MLX5_CQE_REQ, entry->opcode, entry->fm_ce_se, entry->index,
				      (uint32_t)entry->bytes, 0, RULE_NONE);
	}
	if (requester->first == requester->last)
		stop_timer(qp);
	requester_check_drained(qp);
}

void requester_check_drained(struct hca_qp *qp)
{
	struct requester *requester = &qp->requester;

	if (requester->state != REQUESTER_DRAINED || requester->first != requester->last || !qp->attr.sq_draining)
		return;
	qp->attr.sq_draining = 0;
	if (qp->attr.en_sqd_async_notify)
		qp_raise(qp, QP_EVENT_SQ_DRAINED);
}

static uint64_t wr_id_of(const struct hca_qp *qp, uint16_t index)
{
	return qp->wr_id_of ? qp->wr_id_of(qp->cookie, index) : 0;
}

static uint64_t explain_wqe(struct hca_qp *qp, uint16_t index, uint8_t opcode, uint8_t syndrome,
			    const struct refusal *why)
{
	struct explain_subject subject = {
		.qpn = qp->number,
		.wr_id = wr_id_of(qp, index),
		.opcode = opcode,
		.syndrome = syndrome,
		.qp_state = (uint8_t)qp->state,
	};

	return explain_make(qp->hca, &subject, why->rule, why->args, EXPLAIN_ARGS);
}

/*
 * A failed WQE: its error completion, then the QP goes to ERR (reliable) or SQE (IBTA 10.3.1), which flushes the rest.
 * Nothing is in flight before it.
 */
static void fail(struct hca_qp *qp, uint16_t index, uint8_t opcode, uint8_t fm_ce_se, uint8_t syndrome,
		 const struct refusal *why)
{
	uint64_t record = explain_wqe(qp, index, opcode, syndrome, why);

	complete_send(qp, MLX5_CQE_REQ_ERR, opcode, fm_ce_se, index, 0, syndrome, why->rule);
	if (transport_of(qp->type)->reliable)
		qp_enter_error(qp, record);
	else
		qp_enter_send_error(qp, record);
}

/* Fails the front of the FIFO. */
static void fail_front(struct hca_qp *qp, uint8_t syndrome, const struct refusal *why)
{
	struct requester *requester = &qp->requester;
	struct inflight entry = *inflight_at(requester, requester->first);

	requester->first++;
	fail(qp, entry.index, entry.opcode, entry.fm_ce_se, syndrome, why);
}

static void flush_one(struct hca_qp *qp, uint16_t index, uint8_t opcode, uint8_t fm_ce_se)
{
	struct refusal why = {RULE_FLUSHED, {qp->error_record}};

	/* mlx5-formats 6, point 46: completion mode 1 asks for no completion of flushed requests. */
	if (WQE_COMPLETION(fm_ce_se) == WQE_CQE_ON_FIRST_ERROR)
		return;
	explain_wqe(qp, index, opcode, MLX5_CQE_SYNDROME_WR_FLUSH_ERR, &why);
	complete_send(qp, MLX5_CQE_REQ_ERR, opcode, fm_ce_se, index, 0, MLX5_CQE_SYNDROME_WR_FLUSH_ERR, why.rule);
}

void requester_flush(struct hca_qp *qp)
{
	struct requester *requester = &qp->requester;
	/* A doorbell record can claim 65535 blocks of a ring that holds four: each is flushed once. */
	uint32_t posted, left = requester->block_count;

	stop_timer(qp);
	/* A completion gives the memory back (ibv_poll_cq(3)): the thread that is using it flushes when it is done. */
	if (requester->delivering)
		return;
	while (requester->first != requester->last) {
		struct inflight entry = *inflight_at(requester, requester->first++);

		flush_one(qp, entry.index, entry.opcode, entry.fm_ce_se);
	}
	requester->resend = requester->last;
	requester->responses_due = 0;
	/* A CQ that fills on the way leads here again (qp_complete): what is posted is looked at each time. */
	while (left && (posted = wqe_posted(requester, requester->next))) {
		uint16_t index = requester->next;
		uint8_t opcode, fm_ce_se;
		uint32_t blocks = wqe_skim(requester, index, &opcode, &fm_ce_se);

		if (blocks > posted)
			blocks = posted;
		if (blocks > left)
			blocks = left;
		left -= blocks;
		requester->next = (uint16_t)(index + blocks);
		flush_one(qp, index, opcode, fm_ce_se);
	}
}

void requester_reset(struct hca_qp *qp)
{
	struct requester *requester = &qp->requester;

	stop_timer(qp);
	requester->state = REQUESTER_IDLE;
	requester->next = 0;
	requester->psn = 0;
	requester->first = requester->last = requester->resend = 0;
	requester->responses_due = 0;
}

/* ---- starting ------------------------------------------------------------------------------------------------- */

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
	fail(qp, wqe->index, wqe->opcode, wqe->fm_ce_se, syndrome, why);
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
	complete_front(qp);
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
		fail_front(qp, (uint8_t)syndrome, &why);
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
	complete_front(qp);
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

/* ---- responses ------------------------------------------------------------------------------------------------ */

static void go_on(struct hca_qp *qp, struct run *run)
{
	if (!qp->requester.running)
		run_schedule(run, qp);
}

static void progressed(struct hca_qp *qp)
{
	qp->requester.retries_left = qp->attr.retry_cnt;
	qp->requester.rnr_retries_left = qp->attr.rnr_retry;
	/* The timer watches the oldest packet: the next one has its own time. */
	stop_timer(qp);
}

/* Everything up to and including @psn has arrived. */
static void acknowledge(struct hca_qp *qp, uint32_t psn, struct run *run)
{
	struct requester *requester = &qp->requester;
	uint32_t position, before = requester->first;
	bool newer;

	for (position = requester->first; position != requester->last; position++) {
		struct inflight *entry = inflight_at(requester, position);

		if (!entry->packets)
			continue;
		if (psn_distance(psn_add(entry->psn, entry->packets - 1), psn) > 0)
			break;
		if (!entry->responds)
			entry->done = true;
		else if (!entry->done)
			break;
	}
	complete_front(qp);
	/* A part of a message counts, too: one of many packets would else run out of retries (IBTA 9.7.6.1.3). */
	newer = psn_distance(psn, requester->acknowledged) > 0;
	if (newer)
		requester->acknowledged = psn;
	if (requester->first == before && !newer)
		return;
	progressed(qp);
	go_on(qp, run);
}

/* The entry that @psn belongs to, in FIFO position, or false. */
static bool find_entry(struct requester *requester, uint32_t psn, uint32_t *position)
{
	for (uint32_t i = requester->first; i != requester->last; i++) {
		struct inflight *entry = inflight_at(requester, i);
		int32_t distance = psn_distance(psn, entry->psn);

		if (entry->packets && distance >= 0 && (uint32_t)distance < entry->packets) {
			*position = i;
			return true;
		}
	}
	return false;
}

static void fail_refused(struct hca_qp *qp, const struct packet *packet)
{
	static const struct {
		uint8_t syndrome;
		enum explain_rule rule;
	} codes[] = {
		[NAK_INVALID_REQUEST] = {MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, RULE_NAK_INVALID_REQUEST},
		[NAK_REMOTE_ACCESS] = {MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, RULE_NAK_REMOTE_ACCESS},
		[NAK_REMOTE_OPERATION] = {MLX5_CQE_SYNDROME_REMOTE_OP_ERR, RULE_NAK_REMOTE_OPERATION},
	};
	uint8_t code = packet->syndrome & AETH_CODE_MASK;
	struct refusal why = packet->why;

	if (code >= sizeof(codes) / sizeof(codes[0]))
		code = NAK_INVALID_REQUEST;
	if (why.rule == RULE_NONE)
		why = (struct refusal){codes[code].rule, {packet->psn, packet->source_qpn}};
	fail_front(qp, codes[code].syndrome, &why);
}

static void retry_later(struct hca_qp *qp, const struct packet *packet)
{
	struct requester *requester = &qp->requester;
	uint8_t code = packet->syndrome & AETH_CODE_MASK;

	if (qp->attr.rnr_retry != RNR_RETRY_FOREVER) {
		if (!requester->rnr_retries_left) {
			struct refusal why = {RULE_RNR_EXHAUSTED,
					      {packet->source_qpn, qp->attr.rnr_retry, rnr_timer_ns(code) / 1000}};

			fail_front(qp, MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR, &why);
			return;
		}
		requester->rnr_retries_left--;
	}
	stop_timer(qp);
	requester->rnr_wait = true;
	requester->timer_armed = true;
	timer_arm(&qp->hca->timers, &requester->timer, clock_now_ns() + rnr_timer_ns(code));
}

/* A NAK acknowledges what came before its packet (IBTA C9-116) and refuses from there on. */
static void refused(struct hca_qp *qp, const struct packet *packet, struct run *run)
{
	struct requester *requester = &qp->requester;
	uint32_t position;
	bool sequence;

	acknowledge(qp, psn_add(packet->psn, PSN_MASK), run);
	if (!find_entry(requester, packet->psn, &position) || position != requester->first)
		return;
	requester->resend = position;
	if ((packet->syndrome & AETH_KIND_MASK) == AETH_RNR_NAK) {
		retry_later(qp, packet);
		return;
	}
	sequence = (packet->syndrome & AETH_CODE_MASK) == NAK_SEQUENCE;
	if (sequence && requester->retries_left--)
		go_on(qp, run);
	else if (sequence)
		fail_front(
			qp, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR,
			&(struct refusal){RULE_RETRY_EXHAUSTED,
					  {qp->attr.dest_qp_num, qp->attr.retry_cnt, qp->attr.timeout, qp->reachable}});
	else
		fail_refused(qp, packet);
}

/* Places a piece of a response; returns false if that failed and the QP is in error. */
static bool place(struct hca_qp *qp, struct inflight *entry, uint64_t offset, struct stream *payload)
{
	struct stream sink;
	struct refusal why;
	struct wqe wqe;
	int syndrome = MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;

	if (!wqe_parse(qp, entry->index, entry->blocks, &wqe, &why))
		syndrome = wqe_scatter(&wqe, &qp->access, offset, payload->length, &sink, &why);
	if (!syndrome && sink.length != payload->length) {
		syndrome = MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
		why = (struct refusal){RULE_WQE_CHANGED,
				       {wqe.opcode, offset + sink.length, entry->opcode, entry->bytes}};
	}
	if (syndrome) {
		fail_front(qp, (uint8_t)syndrome, &why);
		return false;
	}
	if (payload->length)
		stream_copy(&sink, payload, payload->length);
	return true;
}

static void answered(struct hca_qp *qp, struct inflight *entry, struct run *run)
{
	entry->done = true;
	qp->requester.responses_due--;
	progressed(qp);
	complete_front(qp);
	go_on(qp, run);
}

static void bad_response(struct hca_qp *qp, const struct packet *packet, const struct inflight *entry)
{
	struct refusal why = {RULE_BAD_RESPONSE,
			      {packet->message, packet->psn, packet->payload.length, entry->arrived, entry->bytes}};

	fail_front(qp, MLX5_CQE_SYNDROME_BAD_RESP_ERR, &why);
}

static void read_response(struct hca_qp *qp, struct packet *packet, struct inflight *entry, struct run *run)
{
	uint64_t offset = (uint64_t)psn_distance(packet->psn, entry->psn) << qp->mtu_shift;
	uint64_t bytes = packet->payload.length, left = entry->bytes - entry->arrived;
	bool last = packet->place & PLACE_LAST, full = !(bytes & ((UINT64_C(1) << qp->mtu_shift) - 1));

	/* A packet of the response is missing, or was placed before: the request is repeated by the timer, or it was. */
	if (offset != entry->arrived)
		return;
	/* All packets but the last are full, and the last, and it alone, brings the last byte. */
	if (bytes > left || last != (bytes == left) || (!last && !full)) {
		bad_response(qp, packet, entry);
		return;
	}
	if (!place(qp, entry, offset, &packet->payload))
		return;
	entry->arrived += bytes;
	if (last) {
		answered(qp, entry, run);
		return;
	}
	/* The rest has its own time, and its own retries. */
	progressed(qp);
	go_on(qp, run);
}

static void atomic_response(struct hca_qp *qp, struct packet *packet, struct inflight *entry, struct run *run)
{
	stream_begin(&packet->payload, NULL, 0);
	stream_add_memory(&packet->payload, (const uint8_t *)&packet->original, sizeof(packet->original));
	if (place(qp, entry, 0, &packet->payload))
		answered(qp, entry, run);
}

static void response(struct hca_qp *qp, struct packet *packet, struct run *run)
{
	struct requester *requester = &qp->requester;
	struct inflight *entry;
	uint32_t position;
	bool atomic = packet->message == MESSAGE_ATOMIC_ACKNOWLEDGE;

	if (!find_entry(requester, packet->psn, &position))
		return;
	entry = inflight_at(requester, position);
	/* A response acknowledges all requests before its own (IBTA C9-117). */
	acknowledge(qp, psn_add(entry->psn, PSN_MASK), run);
	if (position != requester->first || entry->done)
		return;
	if (!entry->responds || atomic != (wqe_opcodes[entry->opcode].class == WQE_CLASS_ATOMIC))
		bad_response(qp, packet, entry);
	else if (atomic)
		atomic_response(qp, packet, entry, run);
	else
		read_response(qp, packet, entry, run);
}

void requester_receive(struct hca_qp *qp, const struct packet *received, struct run *run)
{
	struct packet *packet = (struct packet *)received;

	if (!transport_of(qp->type)->reliable || qp->requester.state == REQUESTER_IDLE)
		return;
	/* IBTA 9.7.5.1.2: an answer to what was not sent yet is a ghost. */
	if (psn_distance(packet->psn, qp->requester.psn) >= 0)
		return;
	switch (packet->message) {
	case MESSAGE_READ_RESPONSE:
	case MESSAGE_ATOMIC_ACKNOWLEDGE:
		response(qp, packet, run);
		break;
	default:
		if ((packet->syndrome & AETH_KIND_MASK) != AETH_ACK) {
			refused(qp, packet, run);
			break;
		}
		acknowledge(qp, packet->psn, run);
	}
}

/* ---- timer ---------------------------------------------------------------------------------------------------- */

static void timed_out(struct hca_qp *qp)
{
	struct requester *requester = &qp->requester;

	if (requester->rnr_wait) {
		requester->rnr_wait = false;
		return;
	}
	if (requester->first == requester->last || requester->state == REQUESTER_FLUSH)
		return;
	requester->resend = requester->first;
	if (requester->retries_left--)
		return;
	fail_front(qp, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR,
		   &(struct refusal){RULE_RETRY_EXHAUSTED,
				     {qp->attr.dest_qp_num, qp->attr.retry_cnt, qp->attr.timeout, qp->reachable}});
}

void requester_timer(struct timer *timer)
{
	struct hca_qp *qp = (struct hca_qp *)((char *)timer - offsetof(struct hca_qp, requester.timer));
	struct run run;

	epoch_enter();
	run_begin(&run);
	queue_lock(&qp->lock);
	/* Disarmed, or armed anew, since it ran out: then this is not its time. */
	if (qp->requester.timer_armed && clock_now_ns() >= timer->deadline_ns) {
		qp->requester.timer_armed = false;
		timed_out(qp);
	}
	queue_unlock(&qp->lock);
	requester_run(qp, &run);
	run_finish(&run);
	epoch_leave();
}

uint64_t rnr_timer_ns(uint8_t code)
{
	/* IBTA table 45, in units of 10 us; code 0 is the longest. */
	static const uint32_t tens[32] = {65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
					  48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
					  2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

	return tens[code & 31] * UINT64_C(10000);
}
