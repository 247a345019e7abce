/* SPDX-License-Identifier: BSD-2-Clause */
/* Sizes of a QP's rings, and the capabilities returned to the program (mlx5-formats 2.1, 4.1). Any thread. */
#ifndef SOFTHCA_VERBS_QP_QP_SIZING_H
#define SOFTHCA_VERBS_QP_QP_SIZING_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#include "verbs/object/qp_types.h"

struct hca;

struct qp_sizing_request {
	const struct qp_type_info *type;
	struct ibv_qp_cap cap; /* as requested */
	uint64_t send_ops;     /* type->assumed_ops if the program named none */
	uint64_t dv_send_ops;
	bool srq; /* max_recv_wr and max_recv_sge are ignored */
	/* for explanations */
	struct hca *hca;
	const char *call;
};

struct qp_sizing {
	uint32_t wqe_size;     /* bytes, multiple of 64; 0 without a send queue */
	uint32_t wqebb_count;  /* power of two, or 0 */
	uint32_t rq_count;     /* power of two, or 0 */
	uint32_t rq_shift;     /* log2 of the stride */
	struct ibv_qp_cap cap; /* as returned */
};

/** Returns 0, or -EINVAL for capabilities that exceed every ring of the device. */
int qp_sizing_compute(const struct qp_sizing_request *request, struct qp_sizing *sizing);

#endif
