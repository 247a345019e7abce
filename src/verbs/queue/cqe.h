/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completions from CQEs (mlx5-formats 3.1 to 3.5, 3.8).
 *
 * The device writes op_own of a CQE last, and the driver reads it first. The caller holds the CQ lock. The functions
 * take the SRQ lock for a receive from an SRQ, and that of the signature table for a signature error. They read no
 * clock, do not allocate, and make no system call unless the latter lock is contended.
 */
#ifndef SOFTHCA_VERBS_QUEUE_CQE_H
#define SOFTHCA_VERBS_QUEUE_CQE_H

#include <endian.h>
#include <errno.h>

#include "core/compiler.h"
#include "core/visibility.h"
#include "verbs/object/objects.h"

/* The CQE belongs to no QP (mlx5-formats 3.8). */
#define CQ_POLL_ERROR (-2)
/* The CQE was for the driver only, and the caller takes the next one. */
#define CQE_ABSORBED 1

/* ---- the ring ------------------------------------------------------------------------------------------------- */

/** Returns the completion in entry @index (free running): in a 128-byte entry, the second half. */
static inline struct mlx5_cqe64 *cqe_at(void *ring, uint32_t cqe_count, uint32_t cqe_size, uint32_t index)
{
	size_t offset = (size_t)(index & (cqe_count - 1)) * cqe_size + (cqe_size - sizeof(struct mlx5_cqe64));

	return (struct mlx5_cqe64 *)((char *)ring + offset);
}

/** Makes @ring (may be NULL), of @count entries of cq->cqe_size, the ring of @cq. */
static inline void cq_set_ring(struct user_cq *cq, void *ring, uint32_t count)
{
	cq->buffer = ring;
	cq->first = ring ? cqe_at(ring, count, cq->cqe_size, 0) : NULL;
	cq->cqe_count = count;
	cq->entries = count - 1;
}

/** As cqe_at(), in the ring of @cq. */
static inline const struct mlx5_cqe64 *user_cq_entry(const struct user_cq *cq, uint32_t index)
{
	return (const struct mlx5_cqe64 *)((const char *)cq->first + (size_t)(index & cq->entries) * cq->cqe_size);
}

/** Returns the owner bit of entry @index, which changes with each lap. */
static inline uint8_t cqe_owner(uint32_t cqe_count, uint32_t index)
{
	return (index & cqe_count) != 0;
}

static inline uint8_t cqe_opcode(const struct mlx5_cqe64 *cqe)
{
	return cqe->op_own >> 4;
}

/* Bits of op_own: the CQE contains data, in its first 32 bytes or in the 64 bytes before it. */
#define CQE_SCATTERED (MLX5_INLINE_SCATTER_32 | MLX5_INLINE_SCATTER_64)

/** Returns true if the device has written @cqe for @index. Everything written before op_own is then visible. */
static inline bool cqe_is_written(const struct mlx5_cqe64 *cqe, uint32_t cqe_count, uint32_t index)
{
	uint8_t op_own = __atomic_load_n(&cqe->op_own, __ATOMIC_ACQUIRE);

	return op_own >> 4 != MLX5_CQE_INVALID && (op_own & MLX5_CQE_OWNER_MASK) == cqe_owner(cqe_count, index);
}

static inline const struct mlx5_cqe64 *cq_next(const struct user_cq *cq)
{
	const struct mlx5_cqe64 *cqe = user_cq_entry(cq, cq->consumer_index);

	return cqe_is_written(cqe, cq->cqe_count, cq->consumer_index) ? cqe : NULL;
}

/** Records that the CQEs before @index are taken; they stay valid until cq_publish_consumer(). */
static inline void cq_set_consumer(struct user_cq *cq, uint32_t index)
{
	/* ibv_req_notify_cq(3) reads it without the lock. */
	__atomic_store_n(&cq->consumer_index, index, __ATOMIC_RELAXED);
}

/** Takes the next CQE; NULL if it is not written yet. It stays valid until cq_publish_consumer(). */
static inline const struct mlx5_cqe64 *cq_take(struct user_cq *cq)
{
	const struct mlx5_cqe64 *cqe = cq_next(cq);

	if (cqe)
		cq_set_consumer(cq, cq->consumer_index + 1);
	return cqe;
}

/** Gives the entries taken so far back to the device. */
static inline void cq_publish_consumer(struct user_cq *cq)
{
	__atomic_store_n(&cq->dbrec[0], htobe32(cq->consumer_index & 0xffffff), __ATOMIC_RELEASE);
}

/* ---- fields of a CQE ------------------------------------------------------------------------------------------ */

static inline uint32_t cqe_user_index(const struct mlx5_cqe64 *cqe)
{
	return be32toh(cqe->srqn_uidx) & 0xffffff;
}

static inline uint32_t cqe_qpn(const struct mlx5_cqe64 *cqe)
{
	return be32toh(cqe->sop_drop_qpn) & 0xffffff;
}

static inline uint8_t cqe_send_opcode(const struct mlx5_cqe64 *cqe)
{
	return be32toh(cqe->sop_drop_qpn) >> 24;
}

static inline bool cqe_is_responder(const struct mlx5_cqe64 *cqe)
{
	switch (cqe_opcode(cqe)) {
	case MLX5_CQE_RESP_WR_IMM:
	case MLX5_CQE_RESP_SEND:
	case MLX5_CQE_RESP_SEND_IMM:
	case MLX5_CQE_RESP_SEND_INV:
	case MLX5_CQE_RESP_ERR:
		return true;
	default:
		return false;
	}
}

static inline bool cqe_is_error(const struct mlx5_cqe64 *cqe)
{
	return cqe_opcode(cqe) == MLX5_CQE_REQ_ERR || cqe_opcode(cqe) == MLX5_CQE_RESP_ERR;
}

static inline uint8_t cqe_vendor_err(const struct mlx5_cqe64 *cqe)
{
	return ((const struct mlx5_err_cqe *)cqe)->vendor_err_synd;
}

/** Returns the status by the syndrome (mlx5-formats 3.4). */
static inline enum ibv_wc_status cqe_error_status(const struct mlx5_cqe64 *cqe)
{
	switch (((const struct mlx5_err_cqe *)cqe)->syndrome) {
	case MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR:
		return IBV_WC_LOC_LEN_ERR;
	case MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR:
		return IBV_WC_LOC_QP_OP_ERR;
	case MLX5_CQE_SYNDROME_LOCAL_PROT_ERR:
		return IBV_WC_LOC_PROT_ERR;
	case MLX5_CQE_SYNDROME_WR_FLUSH_ERR:
		return IBV_WC_WR_FLUSH_ERR;
	case MLX5_CQE_SYNDROME_MW_BIND_ERR:
		return IBV_WC_MW_BIND_ERR;
	case MLX5_CQE_SYNDROME_BAD_RESP_ERR:
		return IBV_WC_BAD_RESP_ERR;
	case MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR:
		return IBV_WC_LOC_ACCESS_ERR;
	case MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR:
		return IBV_WC_REM_INV_REQ_ERR;
	case MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR:
		return IBV_WC_REM_ACCESS_ERR;
	case MLX5_CQE_SYNDROME_REMOTE_OP_ERR:
		return IBV_WC_REM_OP_ERR;
	case MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR:
		return IBV_WC_RETRY_EXC_ERR;
	case MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR:
		return IBV_WC_RNR_RETRY_EXC_ERR;
	case MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR:
		return IBV_WC_REM_ABORT_ERR;
	default:
		return IBV_WC_GENERAL_ERR;
	}
}

/* Completion of a successful request, by MLX5_OPCODE_*. */
struct request_completion {
	uint8_t wc_opcode; /* enum ibv_wc_opcode */
	uint8_t fills;
};

/*
 * Other members of struct ibv_wc to fill (mlx5-formats 3.8). As with the real driver, FILLS_FLAG is for a request's own
 * immediate.
 */
enum {
	FILLS_DRIVER, /* not an opcode of libibverbs: IBV_WC_DRIVER2 */
	FILLS_NOTHING,
	FILLS_LENGTH, /* byte_len: data was returned */
	FILLS_ATOMIC, /* byte_len, always 8 */
	FILLS_FLAG,   /* IBV_WC_WITH_IMM */
};

/** By MLX5_OPCODE_*. (verbs/queue/cq_poll.c) */
extern const struct request_completion request_completions[256] SOFTHCA_OWN;

/**
 * Returns the opcode (mlx5-formats 3.8). @remembered, stored by the send queue for the WQE's slot, determines it for
 * raw WQEs and for WQEs with an mlx5 opcode that serves several verbs.
 */
static inline enum ibv_wc_opcode cqe_wc_opcode(const struct mlx5_cqe64 *cqe, uint8_t remembered)
{
	switch (cqe_opcode(cqe)) {
	case MLX5_CQE_RESP_WR_IMM:
		return IBV_WC_RECV_RDMA_WITH_IMM;
	case MLX5_CQE_RESP_SEND:
	case MLX5_CQE_RESP_SEND_IMM:
	case MLX5_CQE_RESP_SEND_INV:
		return IBV_WC_RECV;
	}
	if (unlikely(remembered != WC_OPCODE_FROM_CQE))
		return remembered;
	/* For example masked atomics: only raw WQEs have them (mlx5-formats 6, point 61). */
	if (request_completions[cqe_send_opcode(cqe)].fills == FILLS_DRIVER)
		return IBV_WC_DRIVER2;
	return request_completions[cqe_send_opcode(cqe)].wc_opcode;
}

/** Returns the bytes of a successful completion; always 8 for atomics (mlx5-formats 3.8). */
static inline uint32_t cqe_byte_len(const struct mlx5_cqe64 *cqe)
{
	if (cqe_opcode(cqe) == MLX5_CQE_REQ &&
	    (cqe_send_opcode(cqe) == MLX5_OPCODE_ATOMIC_CS || cqe_send_opcode(cqe) == MLX5_OPCODE_ATOMIC_FA))
		return 8;
	return be32toh(cqe->byte_cnt);
}

/** Returns enum ibv_wc_flags. */
static inline unsigned int cqe_responder_flags(const struct mlx5_cqe64 *cqe)
{
	unsigned int flags = be32toh(cqe->flags_rqpn) >> 28 & 3 ? IBV_WC_GRH : 0;

	switch (cqe_opcode(cqe)) {
	case MLX5_CQE_RESP_WR_IMM:
	case MLX5_CQE_RESP_SEND_IMM:
		return flags | IBV_WC_WITH_IMM;
	case MLX5_CQE_RESP_SEND_INV:
		return flags | IBV_WC_WITH_INV;
	default:
		return flags;
	}
}

/** Returns the immediate in network order, or the invalidated rkey in host order. */
static inline __be32 cqe_imm_or_rkey(const struct mlx5_cqe64 *cqe)
{
	if (cqe_opcode(cqe) == MLX5_CQE_RESP_SEND_INV)
		return be32toh(cqe->imm_inval_pkey);
	return cqe->imm_inval_pkey;
}

static inline uint8_t cqe_sl(const struct mlx5_cqe64 *cqe)
{
	return be32toh(cqe->flags_rqpn) >> 24 & 0xf;
}

static inline uint32_t cqe_src_qp(const struct mlx5_cqe64 *cqe)
{
	return be32toh(cqe->flags_rqpn) & 0xffffff;
}

static inline uint8_t cqe_dlid_path_bits(const struct mlx5_cqe64 *cqe)
{
	return cqe->ml_path & 0x7f;
}

/* ---- work request that a CQE completes --------------------------------------------------------------------------- */

/* Properties of the work request that are stored in its queue and not in the CQE. */
struct work_completion {
	uint64_t wr_id;
	enum ibv_wc_status status;
	uint8_t wc_opcode; /* as stored for the slot; WC_OPCODE_FROM_CQE for receives */
};

/** Explains a CQE of no QP of the context. Returns CQ_POLL_ERROR. (verbs/queue/cq_poll.c) */
int cqe_refuse(struct user_cq *cq, const struct mlx5_cqe64 *cqe);

/** Copies the result of a READ or atomic to the memory that its WQE names. (verbs/queue/cqe_scatter.c) */
void cqe_scatter(const struct send_queue *sq, const struct mlx5_cqe64 *cqe);

/*
 * Completes the WQE in @slot and all before it (mlx5-formats 3.3). The release pairs with the acquire of the poster,
 * which may then reuse the slots.
 */
static inline void sends_completed(struct send_queue *sq, uint32_t slot)
{
	__atomic_store_n(&sq->tail, sq->wqe_head[slot] + 1, __ATOMIC_RELEASE);
}

static inline uint32_t cqe_slot(const struct send_queue *sq, const struct mlx5_cqe64 *cqe)
{
	return be16toh(cqe->wqe_counter) & sq->slots;
}

static inline void completion_of_send(struct send_queue *sq, const struct mlx5_cqe64 *cqe, struct work_completion *out)
{
	uint32_t slot = cqe_slot(sq, cqe);

	out->wr_id = sq->wr_id[slot];
	out->wc_opcode = sq->wc_opcode[slot];
	sends_completed(sq, slot);
}

/* Completes the oldest receive: a receive queue completes strictly in order (mlx5-formats 2.1). Returns its wr_id. */
static inline uint64_t receive_completed(struct receive_queue *rq)
{
	uint32_t tail = rq->tail;
	uint64_t wr_id = rq->wr_id[tail & (rq->count - 1)];

	__atomic_store_n(&rq->tail, tail + 1, __ATOMIC_RELEASE);
	return wr_id;
}

static inline int completion_of_receive(struct user_qp *qp, const struct mlx5_cqe64 *cqe, struct work_completion *out)
{
	out->wc_opcode = WC_OPCODE_FROM_CQE;
	if (qp->base.srq)
		return user_srq_complete(to_user_srq(qp->base.srq), be16toh(cqe->wqe_counter), &out->wr_id);
	out->wr_id = receive_completed(&qp->rq);
	return 0;
}

/* An XRC_RECV QP may belong to another context: the CQE names the SRQ. */
static inline int completion_of_xrc_receive(struct user_cq *cq, const struct mlx5_cqe64 *cqe,
					    struct work_completion *out)
{
	struct user_srq *srq = user_index_find_srq(&to_user_context(cq->base.context)->qps, cqe_user_index(cqe));

	out->wc_opcode = WC_OPCODE_FROM_CQE;
	return srq ? user_srq_complete(srq, be16toh(cqe->wqe_counter), &out->wr_id) : -EINVAL;
}

/**
 * Handles a signature error: it belongs to a key, and the program sees no completion. Profile connectx records it for
 * mlx5dv_mkey_check(3) (mlx5-formats 3.5). Returns CQE_ABSORBED or, in that profile, CQ_POLL_ERROR after an explanation
 * if the context has no such key. (verbs/queue/cqe_signature.c)
 */
int cqe_note_signature_error(struct user_cq *cq, const struct mlx5_cqe64 *cqe);

/**
 * Fills @out with the work request that @cqe completes, and releases its room in the queue. Returns 0, CQE_ABSORBED, or
 * CQ_POLL_ERROR for a CQE of an unknown QP or kind.
 */
static inline int cqe_complete(struct user_cq *cq, const struct mlx5_cqe64 *cqe, struct work_completion *out)
{
	struct user_qp *qp = user_index_find(&to_user_context(cq->base.context)->qps, cqe_user_index(cqe));
	uint8_t opcode = cqe_opcode(cqe);

	switch (opcode) {
	case MLX5_CQE_REQ:
	case MLX5_CQE_REQ_ERR:
		if (!qp)
			return cqe_refuse(cq, cqe);
		out->status = opcode == MLX5_CQE_REQ ? IBV_WC_SUCCESS : cqe_error_status(cqe);
		/* before the slot is released, which the poster may then reuse */
		if (cqe->op_own & CQE_SCATTERED)
			cqe_scatter(&qp->sq, cqe);
		completion_of_send(&qp->sq, cqe, out);
		return 0;
	case MLX5_CQE_RESP_WR_IMM:
	case MLX5_CQE_RESP_SEND:
	case MLX5_CQE_RESP_SEND_IMM:
	case MLX5_CQE_RESP_SEND_INV:
	case MLX5_CQE_RESP_ERR:
		if (qp ? completion_of_receive(qp, cqe, out) : completion_of_xrc_receive(cq, cqe, out))
			return cqe_refuse(cq, cqe);
		out->status = opcode == MLX5_CQE_RESP_ERR ? cqe_error_status(cqe) : IBV_WC_SUCCESS;
		return 0;
	case MLX5_CQE_SIG_ERR:
		return cqe_note_signature_error(cq, cqe) < 0 ? CQ_POLL_ERROR : CQE_ABSORBED;
	case MLX5_CQE_RESIZE_CQ:
		return CQE_ABSORBED; /* its successors are in the new ring: ibv_resize_cq(3) */
	default:
		return cqe_refuse(cq, cqe);
	}
}

#endif
