/* SPDX-License-Identifier: BSD-2-Clause */
/* MMO WQEs: copies of local memory (mlx5-formats 1.14 and 4.9). */
#ifndef SOFTHCA_TRANSPORT_REQUESTER_MMO_H
#define SOFTHCA_TRANSPORT_REQUESTER_MMO_H

#include "format/wqe.h"
#include "mkey/stream.h"

/**
 * Checks a DMA request; copying source->length bytes from @source to @sink then cannot fail. @access: the send queue's.
 * Returns 0, or a CQE syndrome with @why: LOCAL_QP_OP_ERR for a malformed request, LOCAL_LENGTH_ERR, LOCAL_PROT_ERR for
 * keys and ranges (mlx5-formats 6, point 50). Inside an epoch section.
 */
int mmo_prepare(const struct wqe *wqe, const struct walk_access *access, struct stream *sink, struct stream *source,
		struct refusal *why);

#endif
