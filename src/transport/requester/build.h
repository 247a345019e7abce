/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Builds a packet with the whole message of a WQE. Compiled for several kinds of WQEs (struct send_kind). An int result
 * is 0, or a CQE syndrome with @why filled. The lock of the QP is held.
 */
#ifndef SOFTHCA_TRANSPORT_REQUESTER_BUILD_H
#define SOFTHCA_TRANSPORT_REQUESTER_BUILD_H

#include "core/compiler.h"
#include "transport/qp/packet_begin.h"
#include "transport/requester/requester.h"
#include "transport/requester/wqe_parse.h"

/** Fills in the address from that of @wqe (mlx5-formats 1.6). Fails for a missing source GID. */
int requester_address(const struct hca_qp *qp, const struct wqe *wqe, struct packet *packet, struct refusal *why);

/** Fills in the address of a datagram. */
int requester_fill_datagram(const struct hca_qp *qp, const struct wqe *wqe, struct packet *packet, struct refusal *why);
/**
 * Fills in address and access key of a DC packet. Fails if the source GID does not exist or the address vector has no
 * GID.
 */
int requester_dci_address(const struct hca_qp *qp, const struct wqe *wqe, struct packet *packet, struct refusal *why);
/** Fills in the operands of an atomic. */
int requester_build_atomic(const struct wqe *wqe, struct packet *packet, struct refusal *why);
/** Fills in an ATOMIC WRITE with its payload. */
int requester_build_atomic_write(const struct hca_qp *qp, const struct wqe *wqe, struct packet *packet,
				 struct refusal *why);
/** Refuses a message of @bytes because of @limit. */
RARE int requester_refuse_length(const struct hca_qp *qp, uint64_t bytes, uint64_t limit, struct refusal *why);

/** Fills in the header fields common to all packets of the message. */
static inline SPECIALISED void requester_fill_header(const struct hca_qp *qp, const struct wqe *wqe,
						     struct packet *packet, const struct transport transport)
{
	packet_begin(packet, qp, transport.packets, wqe_opcodes[wqe->opcode].message);
	packet->solicited = wqe->fm_ce_se & MLX5_WQE_CTRL_SOLICITED;
	packet->acknowledge = transport.reliable;
	/* The packets of a SEND do not use its remote address. */
	/* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign) */
	packet->remote_address = wqe->remote_address;
	packet->rkey = wqe->rkey;
	packet->xrc_srqn = wqe->xrc_srqn;
	packet->immediate = wqe->imm;
	packet->invalidate_rkey = be32toh(wqe->imm);
}

/* IBTA C9-25 and ibv_query_port(3), max_msg_sz; a datagram is one packet (C9-92). */
static inline SPECIALISED int requester_check_length(const struct hca_qp *qp, uint64_t bytes,
						     const struct send_kind kind, struct refusal *why)
{
	uint64_t limit = kind.transport.datagram ? UINT64_C(1) << qp->mtu_shift : LIMIT_MAX_MSG_SIZE;

	return likely(bytes <= limit) ? 0 : requester_refuse_length(qp, bytes, limit, why);
}

static inline SPECIALISED int requester_build_request(const struct hca_qp *qp, const struct wqe *wqe,
						      struct packet *packet, const struct send_kind kind,
						      struct refusal *why)
{
	struct wqe spilled;
	int syndrome;

	/* The fast path for contiguous regions has usually rejected this payload already. */
	if (kind.path == PATH_KEYS)
		syndrome = wqe_gather_segments(SPILL(&spilled, wqe), &qp->send_access, &packet->payload, why);
	else
		syndrome = wqe_gather(wqe, &qp->send_access, &packet->payload, why);
	if (!syndrome)
		syndrome = requester_check_length(qp, packet->payload.length, kind, why);
	packet->dma_length = (uint32_t)packet->payload.length;
	packet->count = packets_of(packet->payload.length, qp->mtu_shift);
	return syndrome;
}

/* A READ takes the sequence numbers of its response (IBTA C9-148). */
static inline SPECIALISED int requester_build_read(const struct hca_qp *qp, const struct wqe *wqe,
						   struct packet *packet, const struct send_kind kind,
						   struct refusal *why)
{
	uint64_t bytes;
	int syndrome;

	if (wqe_sink_length(wqe, &bytes, why))
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	syndrome = requester_check_length(qp, bytes, kind, why);
	packet->payload.length = 0;
	packet->dma_length = (uint32_t)bytes;
	packet->count = packets_of(bytes, qp->mtu_shift);
	return syndrome;
}

/** Refuses a class whose packets no function builds, which must not be sent as a SEND or WRITE. Returns a syndrome. */
int requester_refuse_class(const struct wqe *wqe, struct refusal *why);

/** Builds a packet with the whole message, without sequence number. */
static inline SPECIALISED int requester_build(const struct hca_qp *qp, const struct wqe *wqe, struct packet *packet,
					      const struct send_kind kind, struct refusal *why)
{
	struct wqe spilled;
	int syndrome = 0;

	requester_fill_header(qp, wqe, packet, kind.transport);
	if (kind.transport.datagram)
		syndrome = requester_fill_datagram(qp, SPILL(&spilled, wqe), packet, why);
	if (kind.path == PATH_GENERAL && qp->dci)
		syndrome = requester_dci_address(qp, SPILL(&spilled, wqe), packet, why);
	if (syndrome)
		return syndrome;
	switch (kind.class) {
	case WQE_CLASS_READ:
		return requester_build_read(qp, wqe, packet, kind, why);
	case WQE_CLASS_ATOMIC:
		return requester_build_atomic(SPILL(&spilled, wqe), packet, why);
	case WQE_CLASS_ATOMIC_WRITE:
		return requester_build_atomic_write(qp, SPILL(&spilled, wqe), packet, why);
	case WQE_CLASS_SEND:
	case WQE_CLASS_WRITE:
		return requester_build_request(qp, wqe, packet, kind, why);
	default:
		return requester_refuse_class(SPILL(&spilled, wqe), why);
	}
}

#endif
