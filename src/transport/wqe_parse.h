/* SPDX-License-Identifier: BSD-2-Clause */
/* From ring bytes to a WQE, and from its data segments to streams. The QP's lock is held. */
#ifndef SOFTHCA_TRANSPORT_WQE_PARSE_H
#define SOFTHCA_TRANSPORT_WQE_PARSE_H

#include "transport/qp.h"
#include "format/wqe.h"

/** Blocks that the doorbell record announces beyond @index. */
uint32_t wqe_posted(const struct requester *requester, uint16_t index);

/** Blocks of the WQE at @index, at least 1, whatever the ring holds; its opcode and completion mode: for flushing. */
uint32_t wqe_skim(const struct requester *requester, uint16_t index, uint8_t *opcode, uint8_t *fm_ce_se);

/**
 * Takes the WQE at @index apart; @posted blocks may be looked at. Returns 0, or -EINVAL with @why filled (the request
 * completes with LOC_QP_OP_ERR).
 */
int wqe_parse(const struct hca_qp *qp, uint16_t index, uint32_t posted, struct wqe *wqe, struct refusal *why);

/**
 * The bytes to be sent: inline data and keys (local read). Returns 0, or a CQE syndrome with @why filled:
 * LOCAL_PROT_ERR for a key, LOCAL_QP_OP_ERR for a malformed segment.
 */
int wqe_gather(const struct wqe *wqe, const struct walk_access *access, struct stream *stream, struct refusal *why);

/**
 * The same of bytes [@offset, +@length) of the message; what the WQE lacks of them is not added: compare stream->length. If
 * the message goes on behind them, access->more says so.
 */
int wqe_gather_part(const struct wqe *wqe, const struct walk_access *access, uint64_t offset, uint64_t length,
		    struct stream *stream, struct refusal *why);

/** Sum of the pointer segments, for READ; or a malformed one: -EINVAL with @why. */
int wqe_sink_length(const struct wqe *wqe, uint64_t *bytes, struct refusal *why);

/** The place of bytes [@offset, +@length) of a response. 0, or a CQE syndrome with @why. */
int wqe_scatter(const struct wqe *wqe, const struct walk_access *access, uint64_t offset, uint64_t length,
		struct stream *stream, struct refusal *why);

#endif
