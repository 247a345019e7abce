/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queries: mlx5dv_query_device(3), mlx5dv_query_port(3), mlx5dv_get_clock_info(3), mlx5dv_get_export_sizes(3).
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "abi/entry_points.h"
#include "core/limits.h"
#include "explain/explain.h"
#include "verbs/object/objects.h"

/* On-demand regions are checked when accessed, over any transport. A DCT receives from an SRQ only. */
enum {
	ODP_DC = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_SRQ_RECV | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
		 IBV_ODP_SUPPORT_ATOMIC
};

/*
 * Members that the header of rdma-core 44 lacks. A program that requests the bit has them, after the last member of
 * that header. If it requests bits that no known header defines, it requests everything, and its structure may be of
 * any version.
 */
#define MASK_MAX_DC_RD_ATOM (UINT64_C(1) << 14)
#define MASK_OF_NO_HEADER (~UINT64_C(0) << 17)
struct newer_context {
	_Alignas(struct mlx5dv_context) unsigned char older[offsetof(struct mlx5dv_context, crypto_caps) +
							    sizeof(struct mlx5dv_crypto_caps)];
	uint64_t max_dc_rd_atom, max_dc_init_rd_atom;
};

/* Clears @member if @bit is requested, and grants the bit. */
#define FILL_ZERO(bit, member)                                                                                         \
	do {                                                                                                           \
		if (asked & (bit)) {                                                                                   \
			memset(&out->member, 0, sizeof(out->member));                                                  \
			granted |= (bit);                                                                              \
		}                                                                                                      \
	} while (0)

static struct mlx5dv_crypto_caps crypto_caps(const struct hca *hca)
{
	bool wrapped = hca_settings(hca)->crypto == CRYPTO_WRAPPED;
	struct mlx5dv_crypto_caps caps = {0};

	if (hca_settings(hca)->crypto == CRYPTO_OFF)
		return caps;
	/* Bit 0 of the engines is deprecated, and drivers no longer set it. */
	caps.crypto_engines =
		MLX5DV_CRYPTO_ENGINES_CAP_AES_XTS_SINGLE_BLOCK | MLX5DV_CRYPTO_ENGINES_CAP_AES_XTS_MULTI_BLOCK;
	caps.wrapped_import_method = wrapped ? MLX5DV_CRYPTO_WRAPPED_IMPORT_METHOD_CAP_AES_XTS : 0;
	caps.log_max_num_deks = LIMIT_LOG_MAX_DEK;
	caps.flags = MLX5DV_CRYPTO_CAPS_CRYPTO;
	if (hca_crypto_operational(hca))
		caps.flags |= MLX5DV_CRYPTO_CAPS_WRAPPED_CRYPTO_OPERATIONAL;
	return caps;
}

/*
 * mlx5dv_query_device(3): comp_mask names the later members of the caller's structure, and returns those that were
 * filled. A capability that the device lacks is filled with zeros: programs distinguish "not requested" from "absent".
 */
int softhca_mlx5dv_query_device(struct ibv_context *context, struct mlx5dv_context *out)
{
	uint64_t asked = out->comp_mask;
	uint64_t granted = 0;

	out->version = 0;
	/*
	 * CQEs name QPs by user index. 128-byte CQEs are always written whole, as padding requires. A CQ may be created
	 * for compressed CQEs, but the device never writes one (mlx5-formats 3.2).
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
	if (asked & MLX5DV_CONTEXT_MASK_DC_ODP_CAPS) {
		out->dc_odp_caps = ODP_DC;
		granted |= MLX5DV_CONTEXT_MASK_DC_ODP_CAPS;
	}
	if (asked & MLX5DV_CONTEXT_MASK_SIGNATURE_OFFLOAD) {
		out->sig_caps = (struct mlx5dv_sig_caps){
			.block_size = MLX5DV_BLOCK_SIZE_CAP_512 | MLX5DV_BLOCK_SIZE_CAP_520 |
				      MLX5DV_BLOCK_SIZE_CAP_4048 | MLX5DV_BLOCK_SIZE_CAP_4096 |
				      MLX5DV_BLOCK_SIZE_CAP_4160,
			.block_prot = MLX5DV_SIG_PROT_CAP_T10DIF | MLX5DV_SIG_PROT_CAP_CRC,
			.t10dif_bg = MLX5DV_SIG_T10DIF_BG_CAP_CRC | MLX5DV_SIG_T10DIF_BG_CAP_CSUM,
			.crc_type = MLX5DV_SIG_CRC_TYPE_CAP_CRC32 | MLX5DV_SIG_CRC_TYPE_CAP_CRC32C |
				    MLX5DV_SIG_CRC_TYPE_CAP_CRC64_XP10,
		};
		granted |= MLX5DV_CONTEXT_MASK_SIGNATURE_OFFLOAD;
	}
	if (asked & MLX5DV_CONTEXT_MASK_DCI_STREAMS) {
		out->dci_streams_caps.max_log_num_concurent = LIMIT_LOG_DCI_STREAMS;
		out->dci_streams_caps.max_log_num_errored = LIMIT_LOG_DCI_ERRORED;
		granted |= MLX5DV_CONTEXT_MASK_DCI_STREAMS;
	}
	if (asked & MLX5DV_CONTEXT_MASK_WR_MEMCPY_LENGTH) {
		out->max_wr_memcpy_length = LIMIT_MAX_MEMCPY;
		granted |= MLX5DV_CONTEXT_MASK_WR_MEMCPY_LENGTH;
	}
	if (asked & MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD) {
		out->crypto_caps = crypto_caps(hca_of_context(context));
		granted |= MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD;
	}
	if (asked & MLX5DV_CONTEXT_MASK_CLOCK_INFO_UPDATE) {
		/* mlx5dv_ts_to_ns(3) treats a distance of more than half the counter as the past. */
		out->max_clock_info_update_nsec = LIMIT_TIMESTAMP_MASK / 2;
		granted |= MLX5DV_CONTEXT_MASK_CLOCK_INFO_UPDATE;
	}
	if (asked & MASK_MAX_DC_RD_ATOM && !(asked & MASK_OF_NO_HEADER)) {
		((struct newer_context *)out)->max_dc_rd_atom = LIMIT_MAX_RD_ATOMIC;
		((struct newer_context *)out)->max_dc_init_rd_atom = LIMIT_MAX_RD_ATOMIC;
		granted |= MASK_MAX_DC_RD_ATOM;
	}
	/* Not granted: HCA_CORE_CLOCK (no memory contains a running clock), NUM_LAG_PORTS (no bond). */
	out->comp_mask = granted;
	return 0;
}

/* For the steering of a switching adapter. This device has no embedded switch, so `flags` marks none as valid. */
int softhca__mlx5dv_query_port(struct ibv_context *context, uint32_t port_num, struct mlx5dv_port *info,
			       size_t info_len)
{
	if (port_num < 1 || port_num > LIMIT_PORTS)
		return REFUSE(hca_of_context(context), "mlx5dv_query_port", EINVAL, RULE_DV_PORT_NUMBER, port_num,
			      LIMIT_PORTS);
	/* @info_len: size in the program's header. */
	memset(info, 0, info_len);
	return 0;
}

/*
 * mlx5dv_ts_to_ns(3) converts a CQE's timestamp to wall-clock time by this. The device counts nanoseconds, so the
 * factor is 1. Only the offset varies, since the wall clock may be set.
 */
int softhca_mlx5dv_get_clock_info(struct ibv_context *context, struct mlx5dv_clock_info *info)
{
	struct timespec wall;

	info->last_cycles = hca_clock_ns(hca_of_context(context)) & LIMIT_TIMESTAMP_MASK;
	clock_gettime(CLOCK_REALTIME, &wall);
	info->nsec = (uint64_t)wall.tv_sec * 1000000000 + (uint64_t)wall.tv_nsec;
	info->frac = 0;
	info->mult = 1;
	info->shift = 0;
	info->mask = LIMIT_TIMESTAMP_MASK;
	return 0;
}

/* 0, since no object can be exported to another process. */
void softhca__mlx5dv_get_export_sizes(struct mlx5dv_export_sizes *sizes, size_t sizes_len)
{
	memset(sizes, 0, sizes_len);
}
