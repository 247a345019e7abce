/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester: starts WQEs in ring order, turns each into a message or executes it on the spot, and completes them in
 * order. What was started and has not completed is in the in-flight FIFO; sending again means walking that FIFO again:
 * the WQE and the memory it refers to are read anew, nothing is kept.
 */
#include <string.h>

#include "hca/epoch.h"
#include "hca/multicast.h"
#include "link/link.h"
#include "mkey/umr.h"
#include "transport/dci.h"
#include "transport/mmo.h"
#include "transport/requester.h"
#include "transport/wqe_parse.h"

const struct transport *transport_of(enum ibv_qp_type type)
{
#define BOTH .requests = true, .responds = true
	static const struct transport rc = {IBV_QPT_RC, WQE_RC, BOTH, .reliable = true, .connected = true};
	static const struct transport uc = {IBV_QPT_UC, WQE_UC, BOTH, .connected = true};
	static const struct transport ud = {IBV_QPT_UD, WQE_UD, BOTH, .datagram = true};
	static const struct transport xrc_send = {IBV_QPT_XRC_SEND, WQE_XRC, .requests = true, .reliable = true,
						  .connected = true};
	static const struct transport xrc_recv = {IBV_QPT_XRC_SEND, 0, .responds = true, .reliable = true,
						  .connected = true};
	static const struct transport dci = {QP_TYPE_DCI, WQE_DC, .requests = true, .reliable = true};
	static const struct transport dct = {QP_TYPE_DCI, 0, .responds = true, .reliable = true};
#undef BOTH

	switch ((int)type) {
	case IBV_QPT_RC:
		return &rc;
	case IBV_QPT_UC:
		return &uc;
	case IBV_QPT_XRC_SEND:
		return &xrc_send;
	case IBV_QPT_XRC_RECV:
		return &xrc_recv;
	case QP_TYPE_DCI:
		return &dci;
	case QP_TYPE_DCT:
		return &dct;
	default:
		return &ud;
	}
}

#define FORCE_LOOPBACK 0x80 /* of fl_mlid (mlx5-formats 1.6) */

/* What became of the attempt to go on. */
enum progress {
	PROGRESS_NONE,   /* nothing can be started now */
	PROGRESS_MADE,   /* something was executed on the spot; look again */
	PROGRESS_PACKET, /* a packet was built */
};

static void fill_header(const struct hca_qp *qp, const struct wqe *wqe, struct packet *packet)
{
	packet->transport = qp->transport->packets;
	packet->message = wqe_opcodes[wqe->opcode].message;
	packet->place = PLACE_ONLY;
	packet->solicited = wqe->fm_ce_se & MLX5_WQE_CTRL_SOLICITED;
	packet->acknowledge = qp->transport->reliable;
	packet->source_qpn = qp->number;
	packet->destination_qpn = qp->attr.dest_qp_num;
	packet->mtu = (uint16_t)(1u << qp->mtu_shift);
	packet->path = &qp->path;
	packet->link = qp->link;
	packet->remote_address = wqe->remote_address;
	packet->rkey = wqe->rkey;
	packet->xrc_srqn = wqe->xrc_srqn;
	packet->immediate = wqe->imm;
	packet->invalidate_rkey = be32toh(wqe->imm);
	packet->why.rule = RULE_NONE;
}

int requester_address(const struct hca_qp *qp, const struct wqe *wqe, struct packet *packet, struct refusal *why)
{
	uint32_t grh = be32toh(wqe->av.grh_gid_fl);
	uint32_t sgid_index = grh >> 20 & 0xff;
	bool compact = !(be32toh(wqe->av.dqp_dct) & MLX5_EXTENDED_UD_AV);

	if (compact && !(wqe->av.fl_mlid & FORCE_LOOPBACK)) {
		*why = (struct refusal){RULE_DC_COMPACT_ADDRESS, {0}};
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	}
	/* The GRH bit is reserved on Ethernet, where every packet has one. */
	if (sgid_index >= qp->hca->gid_count) {
		*why = (struct refusal){RULE_DATAGRAM_ADDRESS, {sgid_index, qp->hca->gid_count}};
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	}
	packet->destination_qpn = be32toh(wqe->av.dqp_dct) & 0xffffff;
	packet->path = &packet->own_path;
	packet->own_path = (struct packet_path){
		.source = qp->hca->gids[sgid_index].gid,
		.type = qp->hca->gids[sgid_index].type,
		.service_level = wqe->av.stat_rate_sl >> 1 & 7,
		.traffic_class = wqe->av.tclass,
		.hop_limit = wqe->av.hop_limit,
		.flow_label = grh & 0xfffff,
	};
	/* Of a short vector the rest is zero: the first GID of the port is its source, and its destination, too. */
	if (compact)
		packet->own_path.destination = packet->own_path.source;
	else
		memcpy(&packet->own_path.destination, wqe->av.rgid, sizeof(wqe->av.rgid));
	packet->link = link_route(qp->hca, &packet->own_path.destination, packet->destination_qpn);
	return 0;
}

static int fill_datagram(const struct hca_qp *qp, const struct wqe *wqe, struct packet *packet, struct refusal *why)
{
	uint32_t qkey = be32toh(wqe->av.key.qkey.qkey);

	/* IBTA 10.2.5: a Q_Key whose top bit is set stands for the QP's own. */
	int syndrome = requester_address(qp, wqe, packet, why);

	packet->qkey = qkey & 0x80000000 ? qp->attr.qkey : qkey;
	if (!syndrome && gid_is_multicast(&packet->own_path.destination))
		packet->link = link_local();
	return syndrome;
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
	int syndrome = wqe_gather(wqe, &qp->send_access, &packet->payload, why);

	if (!syndrome)
		syndrome = check_length(qp, packet->payload.length, why);
	packet->dma_length = (uint32_t)packet->payload.length;
	packet->count = packets_of(packet->payload.length, qp->mtu_shift);
	return syndrome;
}

/* A READ takes as many sequence numbers as its response will have packets (IBTA C9-148). */
static int build_read(const struct hca_qp *qp, const struct wqe *wqe, struct packet *packet, struct refusal *why)
{
	uint64_t bytes;
	int syndrome;

	if (wqe_sink_length(wqe, &bytes, why))
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	syndrome = check_length(qp, bytes, why);
	packet->payload.length = 0;
	packet->dma_length = (uint32_t)bytes;
	packet->count = packets_of(bytes, qp->mtu_shift);
	return syndrome;
}

static int build_atomic(const struct wqe *wqe, struct packet *packet, struct refusal *why)
{
	uint64_t bytes;

	if (wqe_sink_length(wqe, &bytes, why))
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	if (bytes != wqe->operand_bytes) {
		*why = (struct refusal){RULE_ATOMIC_LENGTH, {wqe->operand_bytes, bytes}};
		return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
	}
	packet->swap_add = wqe->swap_add;
	packet->compare = wqe->compare;
	packet->swap_mask = wqe->swap_mask;
	packet->compare_mask = wqe->compare_mask;
	packet->operand_bytes = wqe->operand_bytes;
	packet->payload.length = 0;
	packet->dma_length = wqe->operand_bytes;
	packet->count = 1;
	return 0;
}

/* The run of all of @wqe, but for its sequence number. */
static int build(const struct hca_qp *qp, const struct wqe *wqe, struct packet *packet, struct refusal *why)
{
	int syndrome = 0;

	fill_header(qp, wqe, packet);
	if (qp->transport->datagram)
		syndrome = fill_datagram(qp, wqe, packet, why);
	if (qp->dci)
		syndrome = dci_address(qp, wqe, packet, why);
	if (syndrome)
		return syndrome;
	switch (wqe_opcodes[wqe->opcode].class) {
	case WQE_CLASS_READ:
		return build_read(qp, wqe, packet, why);
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
		.stream = wqe->stream,
		.opcode = wqe->opcode,
		.fm_ce_se = wqe->fm_ce_se,
		.blocks = (uint8_t)wqe->blocks,
	};
	requester->last++;
	requester->next = (uint16_t)(wqe->index + wqe->blocks);
	return entry;
}

/* The same for what is executed here: there is nothing of it to send. */
static struct inflight *push_local(struct requester *requester, const struct wqe *wqe)
{
	struct inflight *entry = push(requester, wqe);

	requester->send_entry = requester->last;
	return entry;
}

/* A QP goes on after a failure only if it was that of one of its streams. */
static enum progress after_failure(const struct hca_qp *qp)
{
	return qp->requester.state == REQUESTER_READY ? PROGRESS_MADE : PROGRESS_NONE;
}

static enum progress fail_start(struct hca_qp *qp, const struct wqe *wqe, uint8_t syndrome, const struct refusal *why)
{
	struct requester *requester = &qp->requester;

	/* What came before completes first: this WQE is looked at again when the FIFO is empty. */
	if (requester->first != requester->last)
		return PROGRESS_NONE;
	requester->next = (uint16_t)(wqe->index + wqe->blocks);
	requester_fail(qp,
		       &(struct inflight){.index = wqe->index,
					  .stream = wqe->stream,
					  .opcode = wqe->opcode,
					  .fm_ce_se = wqe->fm_ce_se},
		       syndrome, why);
	return after_failure(qp);
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

/* @entry was executed; the lock may have been let go meanwhile. */
static enum progress end_local(struct hca_qp *qp, struct inflight *entry)
{
	/* Reset: there is no entry any more. */
	if (qp->requester.state == REQUESTER_IDLE)
		return PROGRESS_NONE;
	entry->done = true;
	requester_complete_front(qp);
	return PROGRESS_MADE;
}

/* The lock is not held while data moves, which may take long; whoever flushes meanwhile leaves it to this thread. */
static void copy_unlocked(struct hca_qp *qp, struct stream *sink, struct stream *source)
{
	qp->requester.delivering = true;
	queue_unlock(&qp->lock);
	stream_copy(sink, source, source->length);
	queue_lock(&qp->lock);
	qp->requester.delivering = false;
}

static enum progress start_copy(struct hca_qp *qp, const struct wqe *wqe)
{
	struct walk_access access = qp->send_access;
	struct stream source, sink;
	struct inflight *entry;
	struct refusal why;
	int syndrome;

	/* Not that of READ responses, which come under the lock. */
	access.progress = &qp->requester.copied;
	syndrome = mmo_prepare(wqe, &access, &sink, &source, &why);
	if (syndrome)
		return fail_start(qp, wqe, (uint8_t)syndrome, &why);
	entry = push_local(&qp->requester, wqe);
	entry->bytes = source.length;
	copy_unlocked(qp, &sink, &source);
	return end_local(qp, entry);
}

/* What a local operation does to keys; for NOP nothing. */
static int change_keys(const struct hca_qp *qp, const struct wqe *wqe, uint64_t *revoked, struct refusal *why)
{
	switch (wqe_opcodes[wqe->opcode].class) {
	case WQE_CLASS_UMR:
		return umr_execute(&qp->send_access, wqe->bytes, wqe->size, revoked, why);
	case WQE_CLASS_SET_PSV:
		return set_psv_execute(&qp->send_access, wqe->bytes, wqe->size, why);
	default:
		return 0;
	}
}

static enum progress start_local(struct hca_qp *qp, const struct wqe *wqe)
{
	struct inflight *entry;
	uint64_t revoked = 0;
	struct refusal why;

	if (change_keys(qp, wqe, &revoked, &why))
		return fail_start(qp, wqe, MLX5_CQE_SYNDROME_MW_BIND_ERR, &why);
	entry = push_local(&qp->requester, wqe);
	if (revoked)
		let_transfers_end(qp, revoked);
	return end_local(qp, entry);
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

/* mlx5dv_dci_stream_id_reset(3): what a stream in error has posted is flushed in the order of the send queue. */
static enum progress flush_start(struct hca_qp *qp, const struct wqe *wqe)
{
	struct requester *requester = &qp->requester;

	if (requester->first != requester->last)
		return PROGRESS_NONE;
	requester->next = (uint16_t)(wqe->index + wqe->blocks);
	requester_flush_one(qp, &(struct inflight){.index = wqe->index,
						   .stream = wqe->stream,
						   .opcode = wqe->opcode,
						   .fm_ce_se = wqe->fm_ce_se});
	return PROGRESS_MADE;
}

/* ---- pieces ---------------------------------------------------------------------------------------------------- */

/* Bytes that may be sent now on a link that does not deliver at once; 0: the window is full. */
static uint64_t sendable_bytes(const struct hca_qp *qp, const struct link *link, uint32_t psn)
{
	const struct requester *requester = &qp->requester;
	uint64_t most = link->most ? link->most : UINT64_MAX;
	int32_t packets = psn_distance(psn, psn_add(requester->acknowledged, 1));
	uint64_t under_way = packets > 0 ? (uint64_t)packets << qp->mtu_shift : 0;

	/* Without acknowledgements nobody knows what is under way. */
	if (!link_window(qp->hca, link) || !qp->transport->reliable)
		return most;
	if (under_way >= requester->window)
		return 0;
	return most < requester->window - under_way ? most : requester->window - under_way;
}

/* True if @packet, all of a message, can be sent as it is; else it is sent in pieces. */
static bool fits(const struct hca_qp *qp, const struct inflight *entry, const struct packet *packet)
{
	if (!packet->link || link_is_immediate(qp->hca, packet->link))
		return true;
	return (uint64_t)entry->packets << qp->mtu_shift <= sendable_bytes(qp, packet->link, packet->psn);
}

/*
 * A piece of a READ, one at a time, so that it is known where its response ends: what was asked for and has not come, or the
 * next that nobody asked for. What is repeated ends where it did before: to the responder a request is a repetition or a
 * new one, none is partly both.
 */
static bool cut_read(const struct hca_qp *qp, struct inflight *entry, uint64_t offset, struct packet *packet)
{
	uint64_t window = packet->link ? link_window(qp->hca, packet->link) : 0;
	uint64_t left = entry->bytes - offset;

	if (offset != entry->arrived)
		return false;
	if (offset < entry->asked)
		left = entry->asked - offset;
	else if (window && left > window)
		left = window;
	entry->asked = offset + left;
	packet->remote_address += offset;
	packet->dma_length = (uint32_t)left;
	packet->count = packets_of(left, qp->mtu_shift);
	return true;
}

/* The piece of a SEND or WRITE from @offset on that can be sent now. */
static enum progress cut_request(struct hca_qp *qp, const struct wqe *wqe, const struct inflight *entry,
				 uint64_t offset, struct packet *packet, struct refusal *why, int *syndrome)
{
	uint64_t bytes = entry->bytes - offset;
	uint64_t most =
		!packet->link || link_is_immediate(qp->hca, packet->link)
			? UINT64_MAX
			: sendable_bytes(qp, packet->link, psn_add(entry->psn, (uint32_t)(offset >> qp->mtu_shift)));
	bool last;

	if (!most)
		return PROGRESS_NONE;
	if (bytes > most) {
		bytes = most >> qp->mtu_shift << qp->mtu_shift;
		if (!bytes)
			return PROGRESS_NONE;
	}
	last = offset + bytes == entry->bytes;
	qp->send_access.unfinished = qp->send_access.more = !last;
	*syndrome = wqe_gather_part(wqe, &qp->send_access, offset, bytes, &packet->payload, why);
	qp->send_access.unfinished = qp->send_access.more = false;
	if (!*syndrome && packet->payload.length != bytes) {
		*syndrome = MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
		*why = (struct refusal){RULE_WQE_CHANGED,
					{wqe->opcode, offset + packet->payload.length, entry->opcode, entry->bytes}};
	}
	packet->dma_length = (uint32_t)entry->bytes;
	packet->count = packets_of(bytes, qp->mtu_shift);
	packet->place = (uint8_t)((offset ? 0 : PLACE_FIRST) | (last ? PLACE_LAST : 0));
	return PROGRESS_PACKET;
}

static enum progress start_message(struct hca_qp *qp, const struct wqe *wqe, struct packet *packet)
{
	struct requester *requester = &qp->requester;
	uint8_t class = wqe_opcodes[wqe->opcode].class;
	struct inflight *entry;
	struct refusal why;
	int syndrome = build(qp, wqe, packet, &why);

	if (syndrome)
		return fail_start(qp, wqe, (uint8_t)syndrome, &why);
	if (qp->dci) {
		switch (dci_connect(qp, wqe->stream, packet)) {
		case DCI_WAIT:
			return PROGRESS_NONE;
		case DCI_LEAVE:
			return PROGRESS_PACKET;
		case DCI_CONNECTED:
			break;
		}
	}
	entry = push(requester, wqe);
	entry->psn = requester->psn;
	entry->packets = packet->count;
	entry->bytes = packet->dma_length;
	entry->responds = class == WQE_CLASS_READ || class == WQE_CLASS_ATOMIC;
	requester->responses_due += entry->responds;
	packet->psn = requester->psn;
	requester->psn = psn_add(requester->psn, packet->count);
	if (!fits(qp, entry, packet))
		return PROGRESS_MADE;
	entry->asked = entry->bytes;
	return PROGRESS_PACKET;
}

static enum progress start_next(struct hca_qp *qp, struct packet *packet)
{
	struct requester *requester = &qp->requester;
	uint32_t posted = wqe_posted(requester, requester->next);
	struct refusal why;
	struct wqe wqe;
	uint8_t class;
	int error;

	/* A ring can be written over WQEs that have not completed; the FIFO holds no more of them than the ring did. */
	if (!posted || requester->last - requester->first == requester->block_count)
		return PROGRESS_NONE;
	error = wqe_parse(qp, requester->next, posted, &wqe, &why);
	if (qp->dci && dci_stream_error(qp->dci, wqe.stream))
		return flush_start(qp, &wqe);
	if (error)
		return fail_start(qp, &wqe, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, &why);
	if (must_wait(qp, &wqe))
		return PROGRESS_NONE;
	class = wqe_opcodes[wqe.opcode].class;
	if (class == WQE_CLASS_NOP || class == WQE_CLASS_UMR || class == WQE_CLASS_SET_PSV)
		return start_local(qp, &wqe);
	if (class == WQE_CLASS_MMO)
		return start_copy(qp, &wqe);
	return start_message(qp, &wqe, packet);
}

/* The address of @packet and what the opcode needs, for an entry of the FIFO, from its WQE. */
static int rebuild(struct hca_qp *qp, const struct wqe *wqe, const struct inflight *entry, struct packet *packet,
		   struct refusal *why)
{
	int syndrome = 0;

	fill_header(qp, wqe, packet);
	packet->payload.length = 0;
	if (wqe->opcode != entry->opcode)
		goto changed;
	if (qp->transport->datagram)
		syndrome = fill_datagram(qp, wqe, packet, why);
	if (qp->dci)
		syndrome = dci_address(qp, wqe, packet, why);
	if (syndrome)
		return syndrome;
	if (qp->dci && !dci_continue(qp->dci, wqe->stream, packet))
		goto changed;
	return wqe_opcodes[wqe->opcode].class == WQE_CLASS_ATOMIC ? build_atomic(wqe, packet, why) : 0;
changed:
	*why = (struct refusal){RULE_WQE_CHANGED, {wqe->opcode, 0, entry->opcode, entry->bytes}};
	return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
}

/* A WQE that was changed since it was started. */
static int check_sink(const struct wqe *wqe, const struct inflight *entry, struct refusal *why)
{
	uint64_t bytes;

	if (wqe_sink_length(wqe, &bytes, why))
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	if (bytes == entry->bytes)
		return 0;
	*why = (struct refusal){RULE_WQE_CHANGED, {wqe->opcode, bytes, entry->opcode, entry->bytes}};
	return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
}

/* What is left to send of the entry, or as much as can be sent now. */
static enum progress cut(struct hca_qp *qp, const struct wqe *wqe, struct inflight *entry, struct packet *packet,
			 struct refusal *why, int *syndrome)
{
	uint64_t offset = (uint64_t)qp->requester.send_offset << qp->mtu_shift;

	switch (wqe_opcodes[wqe->opcode].class) {
	case WQE_CLASS_READ:
		*syndrome = check_sink(wqe, entry, why);
		return !*syndrome && cut_read(qp, entry, offset, packet) ? PROGRESS_PACKET : PROGRESS_NONE;
	case WQE_CLASS_ATOMIC:
		return PROGRESS_PACKET;
	default:
		return cut_request(qp, wqe, entry, offset, packet, why, syndrome);
	}
}

/* Goes on with the FIFO: the rest of a message, or what is sent again; local operations were done once and stay done. */
static enum progress send_next(struct hca_qp *qp, struct packet *packet)
{
	struct requester *requester = &qp->requester;
	struct inflight *entry = inflight_at(requester, requester->send_entry);
	enum progress progress = PROGRESS_PACKET;
	struct refusal why;
	struct wqe wqe;
	int syndrome = MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;

	if (entry->done || requester->send_offset >= entry->packets) {
		requester->send_entry++;
		requester->send_offset = 0;
		return PROGRESS_MADE;
	}
	if (!wqe_parse(qp, entry->index, entry->blocks, &wqe, &why))
		syndrome = rebuild(qp, &wqe, entry, packet, &why);
	if (!syndrome)
		progress = cut(qp, &wqe, entry, packet, &why, &syndrome);
	if (syndrome) {
		if (requester->send_entry != requester->first)
			return PROGRESS_NONE;
		requester_fail_front(qp, (uint8_t)syndrome, &why);
		return after_failure(qp);
	}
	packet->psn = psn_add(entry->psn, requester->send_offset);
	return progress;
}

/* @packet has left: the next one follows it. */
static void has_left(struct requester *requester, const struct packet *packet)
{
	struct inflight *entry;
	uint32_t behind = psn_add(packet->psn, packet->count);

	if (packet->message == MESSAGE_DISCONNECT)
		return;
	entry = inflight_at(requester, requester->send_entry);
	if (psn_distance(behind, requester->newest) > 0)
		requester->newest = behind;
	requester->send_offset += packet->count;
	if (requester->send_offset < entry->packets)
		return;
	requester->send_entry++;
	requester->send_offset = 0;
}

/* Builds the next packet; true if there is one. */
static bool next_packet(struct hca_qp *qp, struct packet *packet)
{
	struct requester *requester = &qp->requester;
	enum progress progress = PROGRESS_NONE;

	if (requester->rnr_wait)
		return false;
	do {
		if (qp->dci && qp->dci->flushing)
			requester_flush_stream(qp);
		switch (requester->state) {
		case REQUESTER_IDLE:
			return false;
		case REQUESTER_FLUSH:
			requester_flush(qp);
			return false;
		case REQUESTER_DRAINED:
			if (requester->send_entry == requester->last)
				return false;
			progress = send_next(qp, packet);
			break;
		case REQUESTER_READY:
			if (requester->send_entry == requester->last && qp_stops_at_signature_error(qp))
				return false;
			progress = requester->send_entry != requester->last ? send_next(qp, packet)
									    : start_next(qp, packet);
			break;
		}
	} while (progress == PROGRESS_MADE);
	return progress == PROGRESS_PACKET;
}

/* UC and UD complete once their last packet has left (IBTA C9-161): all references to the source have been used. */
static void complete_unreliable(struct hca_qp *qp)
{
	struct requester *requester = &qp->requester;

	for (uint32_t i = requester->first; i != requester->send_entry; i++)
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
	requester->strokes_seen = requester->strokes;
	/* Without a thread nobody watches; the acknowledgement comes all the same, or the next request tries again. */
	requester->timer_armed =
		!timer_arm(&qp->hca->timers, &requester->timer, clock_now_ns() + (UINT64_C(4096) << qp->attr.timeout));
}

/* Sends the packet that was built; false: there is no room, link_resume() goes on. */
static bool send_packet(struct hca_qp *qp, struct run *run)
{
	struct packet *packet = run_slot(run);

	if (packet->link && link_send(qp->hca, run) == LINK_BUSY) {
		/* Room that was made before the QP waited for it would else be missed. */
		link_enqueue(qp);
		if (link_send(qp->hca, run) == LINK_BUSY)
			return false;
	}
	has_left(&qp->requester, packet);
	return true;
}

void requester_run(struct hca_qp *qp, struct run *run)
{
	struct requester *requester = &qp->requester;
	bool reliable = qp->transport->reliable;

	queue_lock(&qp->lock);
	/* Whoever runs it looks once more, under the lock, before it stops: what is posted now is seen then. */
	if (requester->running) {
		queue_unlock(&qp->lock);
		return;
	}
	requester->running = true;
	/* Until a packet says otherwise it leads nowhere. */
	while (run_slot(run)->link = NULL, next_packet(qp, run_slot(run))) {
		if (!send_packet(qp, run))
			break;
		while (run_has_packets(run, qp->hca)) {
			requester->delivering = true;
			queue_unlock(&qp->lock);
			run_drain(run, qp);
			queue_lock(&qp->lock);
			requester->delivering = false;
			if (!run_take(run, qp))
				break;
		}
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
