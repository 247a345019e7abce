/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_query_device(3): comp_mask says which of the later members the caller's structure has; only those
 * are touched, and comp_mask returns the ones that were filled. A capability that the device lacks is a
 * member filled with zeros: programs tell "not asked for" from "not there" by comp_mask.
 */
#include <string.h>

#include "abi/entry_points.h"
#include "hca/limits.h"
#include "verbs/objects.h"

/* Clears @member if @bit is asked for, and grants it. */
#define FILL_ZERO(bit, member)                                                                                         \
	do {                                                                                                           \
		if (asked & (bit)) {                                                                                   \
			memset(&out->member, 0, sizeof(out->member));                                                  \
			granted |= (bit);                                                                              \
		}                                                                                                      \
	} while (0)

int softhca_mlx5dv_query_device(struct ibv_context *context, struct mlx5dv_context *out)
{
	uint64_t asked = out->comp_mask;
	uint64_t granted = 0;

	(void)context;
	out->version = 0;
	/*
	 * CQEs name QPs by user index. 128-byte CQEs are always written whole, which is what padding asks
	 * for. A CQ may be created for compressed CQEs, of which none is ever written (mlx5-formats 3.2).
	 */
	out->flags =
		MLX5DV_CONTEXT_FLAGS_CQE_V1 | MLX5DV_CONTEXT_FLAGS_CQE_128B_COMP | MLX5DV_CONTEXT_FLAGS_CQE_128B_PAD;

	if (asked & MLX5DV_CONTEXT_MASK_CQE_COMPRESION) {
		out->cqe_comp_caps = (struct mlx5dv_cqe_comp_caps){
			.max_num = CQE_COMPRESSED_MAX,
			.supported_format = CQE_FORMATS,
		};
		granted |= MLX5DV_CONTEXT_MASK_CQE_COMPRESION;
	}
	FILL_ZERO(MLX5DV_CONTEXT_MASK_SWP, sw_parsing_caps);
	FILL_ZERO(MLX5DV_CONTEXT_MASK_STRIDING_RQ, striding_rq_caps);
	FILL_ZERO(MLX5DV_CONTEXT_MASK_TUNNEL_OFFLOADS, tunnel_offloads_caps);
	FILL_ZERO(MLX5DV_CONTEXT_MASK_DYN_BFREGS, max_dynamic_bfregs);
	FILL_ZERO(MLX5DV_CONTEXT_MASK_FLOW_ACTION_FLAGS, flow_action_flags);
	FILL_ZERO(MLX5DV_CONTEXT_MASK_DC_ODP_CAPS, dc_odp_caps);
	FILL_ZERO(MLX5DV_CONTEXT_MASK_SIGNATURE_OFFLOAD, sig_caps);
	FILL_ZERO(MLX5DV_CONTEXT_MASK_DCI_STREAMS, dci_streams_caps);
	FILL_ZERO(MLX5DV_CONTEXT_MASK_WR_MEMCPY_LENGTH, max_wr_memcpy_length);
	FILL_ZERO(MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD, crypto_caps);
	if (asked & MLX5DV_CONTEXT_MASK_CLOCK_INFO_UPDATE) {
		/* mlx5dv_ts_to_ns(3) takes what is further away than half the counter for the past. */
		out->max_clock_info_update_nsec = LIMIT_TIMESTAMP_MASK / 2;
		granted |= MLX5DV_CONTEXT_MASK_CLOCK_INFO_UPDATE;
	}
	/* Not granted: HCA_CORE_CLOCK (no memory counts by itself), NUM_LAG_PORTS (no bond). */
	out->comp_mask = granted;
	return 0;
}
