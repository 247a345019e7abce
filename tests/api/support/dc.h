/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DCIs and DCTs on the sides of a test, each with its own CQ, a DCT with an SRQ. Both have an endpoint, so the helpers
 * of completion.h work on them; dct_receive() posts receives.
 */
#ifndef SOFTHCA_TESTS_API_SUPPORT_DC_H
#define SOFTHCA_TESTS_API_SUPPORT_DC_H

#include "support/completion.h"

enum {
	DC_WRS = 32,
	DC_INLINE = 64,
	DC_SRQ_WRS = 63,
	DC_RC_OPS = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_INV |
		    IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
		    IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV |
		    IBV_QP_EX_WITH_BIND_MW,
};

struct dci_options {
	uint64_t dv_send_ops;
	uint32_t dv_create_flags; /* enum mlx5dv_qp_create_flags */
	uint32_t max_send_sge, max_inline_data;
	bool streams; /* created with MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS */
	uint8_t log_streams, log_errored;
	uint8_t timeout, retry_cnt, rnr_retry, max_rd_atomic;
};

struct dci {
	struct endpoint end;
	struct dci_options options;
	struct ibv_ah *ah; /* to the side given to dci_open() */
};

struct dct {
	struct endpoint end;
	struct ibv_srq *srq;
	uint64_t key;
};

/** Returns options without streams and with long timeouts. */
struct dci_options dci_defaults(void);

/** A DCI on @side in RTS, with all operations of RC and an address handle to @peer. */
void dci_open(struct dci *dci, struct side *side, struct side *peer, const struct dci_options *options);
/** As dci_open(), but the DCI stays in RESET. */
void dci_create(struct dci *dci, struct side *side, struct side *peer, const struct dci_options *options);
/** Moves the DCI from any state to RTS. */
void dci_connect(struct dci *dci);
void dci_close(struct dci *dci);

/** Opens a DCT on @side in RTR, with remote writes, reads and atomics enabled. */
void dct_open(struct dct *dct, struct side *side, uint64_t key);
/** As dct_open(), but the DCT stays in RESET. */
void dct_create(struct dct *dct, struct side *side, uint64_t key);
int dct_to_init(struct dct *dct, unsigned int access);
int dct_to_rtr(struct dct *dct);
void dct_close(struct dct *dct);

/** Posts a receive into the @count entries of @sge to the SRQ of @dct. */
void dct_receive(struct dct *dct, uint64_t wr_id, struct ibv_sge *sge, int count);

/** Sets the target of the open request: with its stream, or by mlx5dv_wr_set_dc_addr(3) if @stream is 0. */
void dci_address(struct dci *dci, const struct dct *target, uint16_t stream);

/** Posts a signalled WRITE, or SEND, of @source; see dci_address(). */
void dci_write(struct dci *dci, const struct dct *target, uint16_t stream, uint64_t wr_id, struct ibv_sge source,
	       uint32_t rkey, uint64_t remote_addr);
void dci_send(struct dci *dci, const struct dct *target, uint16_t stream, uint64_t wr_id, struct ibv_sge source);

#endif
