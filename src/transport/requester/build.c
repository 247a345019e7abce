/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds packets from WQEs: whole messages, or pieces that can be sent now. */
#include "transport/requester/build.h"

#include <string.h>

#include "transport/qp/dci.h"
#include "transport/qp/multicast.h"
#include "wire/link.h"
#include "wire/routes.h"

#define FORCE_LOOPBACK 0x80 /* of fl_mlid (mlx5-formats 1.6) */

int requester_address(const struct hca_qp *qp, const struct wqe *wqe, struct packet *packet, struct refusal *why)
{
	uint32_t grh = be32toh(wqe->av.grh_gid_fl);
	uint32_t sgid_index = grh >> 20 & 0xff;
	bool compact = !(be32toh(wqe->av.dqp_dct) & MLX5_EXTENDED_UD_AV);
	bool loopback = wqe->av.fl_mlid & FORCE_LOOPBACK;

	if (compact && !loopback) {
		*why = (struct refusal){RULE_DC_COMPACT_ADDRESS, {0}};
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	}
	/* The GRH bit is reserved on Ethernet: every packet has one. */
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
	/*
	 * A loopback address leads to this port. The rest of a short vector is zero, and the source is the port's first
	 * GID.
	 */
	if (loopback)
		packet->own_path.destination = packet->own_path.source;
	else
		memcpy(&packet->own_path.destination, wqe->av.rgid, sizeof(wqe->av.rgid));
	packet->link = routes->route(qp->hca, &packet->own_path.destination, packet->destination_qpn);
	return 0;
}

int requester_dci_address(const struct hca_qp *qp, const struct wqe *wqe, struct packet *packet, struct refusal *why)
{
	packet->dc_key = be64toh(wqe->av.key.dc_key);
	return requester_address(qp, wqe, packet, why);
}

int requester_fill_datagram(const struct hca_qp *qp, const struct wqe *wqe, struct packet *packet, struct refusal *why)
{
	uint32_t qkey = be32toh(wqe->av.key.qkey.qkey);

	/* IBTA 10.2.5: the top bit selects the QP's own Q_Key. */
	int syndrome = requester_address(qp, wqe, packet, why);

	packet->qkey = qkey & 0x80000000 ? qp->attr.qkey : qkey;
	if (!syndrome && gid_is_multicast(&packet->own_path.destination))
		packet->link = routes->group(qp->hca, &packet->own_path);
	return syndrome;
}

int requester_build_atomic(const struct wqe *wqe, struct packet *packet, struct refusal *why)
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

int requester_build_atomic_write(const struct hca_qp *qp, const struct wqe *wqe, struct packet *packet,
				 struct refusal *why)
{
	int syndrome = wqe_gather_segments(wqe, &qp->send_access, &packet->payload, why);

	if (!syndrome && packet->payload.length != ATOMIC_WRITE_PAYLOAD) {
		*why = (struct refusal){RULE_ATOMIC_WRITE_DATA, {packet->payload.length}};
		syndrome = MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
	}
	packet->dma_length = ATOMIC_WRITE_PAYLOAD;
	packet->count = 1;
	return syndrome;
}

int requester_refuse_length(const struct hca_qp *qp, uint64_t bytes, uint64_t limit, struct refusal *why)
{
	*why = (struct refusal){RULE_MESSAGE_TOO_LONG, {bytes, limit, qp->type}};
	return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
}

/* ---- pieces ---------------------------------------------------------------------------------------------------- */

/* Limits @bytes to one of @parts of the host's window, to leave room for other QPs. */
static uint64_t piece_limit(const struct hca_qp *qp, const struct link *link, uint64_t bytes, uint32_t parts)
{
	uint32_t mtu = 1u << qp->mtu_shift;
	uint64_t part = link->shares ? host_window_payload(qp, mtu) / parts / mtu * mtu : bytes;

	return part < bytes ? part : bytes;
}

/* Returns the bytes that a link that does not deliver at once may send now; 0: the window is full. */
static uint64_t sendable_bytes(const struct hca_qp *qp, const struct link *link, uint32_t psn)
{
	const struct requester *requester = &qp->requester;
	uint64_t most = link->most ? link->most : UINT64_MAX;
	int32_t packets = psn_distance(psn, psn_add(requester->acknowledged, 1));
	uint64_t under_way = packets > 0 ? (uint64_t)packets << qp->mtu_shift : 0;
	uint32_t window = link_window(qp->hca, link);

	most = piece_limit(qp, link, most, 4);
	/* Without acknowledgements the bytes in flight are unknown. */
	if (!window || !qp->transport->reliable)
		return most;
	/* The QP's window may have its minimum size, or belong to another link if a DCI changed its target. */
	if (window > requester->window)
		window = requester->window;
	if (under_way >= window)
		return 0;
	return most < window - under_way ? most : window - under_way;
}

bool requester_fits(const struct hca_qp *qp, const struct inflight *entry, const struct packet *packet)
{
	if (!packet->link || link_is_immediate(qp->hca, packet->link))
		return true;
	return (uint64_t)entry->packets << qp->mtu_shift <= sendable_bytes(qp, packet->link, packet->psn);
}

/* Fills in address and operands from the WQE of a FIFO entry. */
static int piece_begin(struct hca_qp *qp, const struct wqe *wqe, const struct inflight *entry, struct packet *packet,
		       struct refusal *why)
{
	int syndrome = 0;

	requester_fill_header(qp, wqe, packet, *qp->transport);
	packet->payload.length = 0;
	if (wqe->opcode != entry->opcode)
		goto changed;
	if (qp->transport->datagram)
		syndrome = requester_fill_datagram(qp, wqe, packet, why);
	if (qp->dci)
		syndrome = requester_dci_address(qp, wqe, packet, why);
	if (syndrome)
		return syndrome;
	if (qp->dci && !dci_continue(qp->dci, wqe->stream, packet))
		goto changed;
	return wqe_opcodes[wqe->opcode].class == WQE_CLASS_ATOMIC ? requester_build_atomic(wqe, packet, why) : 0;
changed:
	*why = (struct refusal){RULE_WQE_CHANGED, {wqe->opcode, 0, entry->opcode, entry->bytes}};
	return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
}

int requester_refuse_class(const struct wqe *wqe, struct refusal *why)
{
	*why = (struct refusal){RULE_WQE_OPCODE_UNSUPPORTED, {wqe->opcode, wqe->index}};
	return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
}

/* Refuses a WQE changed since it was started. */
static int piece_check_sink(const struct wqe *wqe, const struct inflight *entry, struct refusal *why)
{
	uint64_t bytes;

	if (wqe_sink_length(wqe, &bytes, why))
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	if (bytes == entry->bytes)
		return 0;
	*why = (struct refusal){RULE_WQE_CHANGED, {wqe->opcode, bytes, entry->opcode, entry->bytes}};
	return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
}

/*
 * Cuts off the next piece of a READ, or requests the missing rest of one. Only one piece is requested at a time, so
 * that the end of its response is known. A repeated request ends where it did before, because a responder cannot handle
 * one that is partly a repetition.
 */
static bool piece_cut_read(const struct hca_qp *qp, struct inflight *entry, uint64_t offset, struct packet *packet)
{
	uint64_t window = packet->link ? link_window(qp->hca, packet->link) : 0;
	uint64_t left = entry->bytes - offset;

	if (packet->link)
		window = piece_limit(qp, packet->link, window, 2);
	if (offset != entry->arrived)
		return false;
	if (offset < entry->requested)
		left = entry->requested - offset;
	else if (window && left > window)
		left = window;
	entry->requested = (uint32_t)(offset + left);
	/* Set for another READ, which may have the same address (docs/inside/wire.md). */
	packet->acknowledge = !offset;
	packet->remote_address += offset;
	packet->dma_length = (uint32_t)left;
	packet->count = packets_of(left, qp->mtu_shift);
	return true;
}

/* Builds the longest piece of a SEND or WRITE from @offset that can be sent now. */
static enum progress piece_cut_request(struct hca_qp *qp, const struct wqe *wqe, const struct inflight *entry,
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
	packet->dma_length = entry->bytes;
	packet->count = packets_of(bytes, qp->mtu_shift);
	packet->place = (uint8_t)((offset ? 0 : PLACE_FIRST) | (last ? PLACE_LAST : 0));
	return PROGRESS_PACKET;
}

/* Builds as much of the rest of the entry as can be sent now. */
static enum progress piece_cut(struct hca_qp *qp, const struct wqe *wqe, struct inflight *entry, struct packet *packet,
			       struct refusal *why, int *syndrome)
{
	uint64_t offset = (uint64_t)qp->requester.send_offset << qp->mtu_shift;

	switch (wqe_opcodes[wqe->opcode].class) {
	case WQE_CLASS_READ:
		*syndrome = piece_check_sink(wqe, entry, why);
		return !*syndrome && piece_cut_read(qp, entry, offset, packet) ? PROGRESS_PACKET : PROGRESS_NONE;
	case WQE_CLASS_ATOMIC:
		return PROGRESS_PACKET;
	case WQE_CLASS_SEND:
	case WQE_CLASS_WRITE:
	case WQE_CLASS_ATOMIC_WRITE:
		return piece_cut_request(qp, wqe, entry, offset, packet, why, syndrome);
	default:
		*syndrome = requester_refuse_class(wqe, why);
		return PROGRESS_NONE;
	}
}

enum progress requester_build_piece(struct hca_qp *qp, const struct wqe *wqe, struct inflight *entry,
				    struct packet *packet, int *syndrome, struct refusal *why)
{
	*syndrome = piece_begin(qp, wqe, entry, packet, why);
	return *syndrome ? PROGRESS_NONE : piece_cut(qp, wqe, entry, packet, why, syndrome);
}
