/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks that QUERY_HCA_CAP and the verbs queries describe the same device. Each row of the table names a field of the adapter's
 * capabilities and computes its value from the verbs attributes, by the rules with which the kernel's mlx5 driver derives those
 * attributes from the field (mlx5_ib_query_device(), get_atomic_caps(), mlx5_ib_internal_fill_odp_caps()).
 */
#include "support/devx.h"

enum group { GENERAL = 0, ODP = 2, ATOMIC = 3, MEMORY = 0xf };

struct verbs_view {
	struct ibv_device_attr_ex device;
	struct ibv_port_attr port;
	struct mlx5dv_context dv;
	bool ece; /* ibv_query_ece(3) names a vendor */
};

/* Returns the smallest n such that 2^n is at least @value. */
static uint32_t log2_up(uint64_t value)
{
	uint32_t n = 0;

	while (UINT64_C(1) << n < value)
		n++;
	return n;
}

/* Converts to the bit order of the ODP capability: send, receive, write, read, atomic, SRQ receive. */
static uint32_t odp_bits(uint32_t caps)
{
	return (caps & IBV_ODP_SUPPORT_SEND ? 32u : 0) | (caps & IBV_ODP_SUPPORT_RECV ? 16u : 0) |
	       (caps & IBV_ODP_SUPPORT_WRITE ? 8u : 0) | (caps & IBV_ODP_SUPPORT_READ ? 4u : 0) |
	       (caps & IBV_ODP_SUPPORT_ATOMIC ? 2u : 0) | (caps & IBV_ODP_SUPPORT_SRQ_RECV ? 1u : 0);
}

#define DEVICE view->device.orig_attr
#define FLAG(flag) !!(DEVICE.device_cap_flags & (flag))
#define FIELDS(FIELD)                                                                                                  \
	FIELD(GENERAL, log_max_srq_sz, 4, 31, 24, log2_up((uint32_t)DEVICE.max_srq_wr))                                \
	FIELD(GENERAL, log_max_qp_sz, 4, 23, 16, log2_up((uint32_t)DEVICE.max_qp_wr))                                  \
	FIELD(GENERAL, log_max_qp, 4, 4, 0, log2_up((uint32_t)DEVICE.max_qp))                                          \
	FIELD(GENERAL, ece_support, 5, 28, 28, view->ece)                                                              \
	FIELD(GENERAL, log_max_srq, 5, 20, 16, log2_up((uint32_t)DEVICE.max_srq))                                      \
	FIELD(GENERAL, log_max_cq_sz, 6, 23, 16, log2_up((uint32_t)DEVICE.max_cqe + 1))                                \
	FIELD(GENERAL, log_max_cq, 6, 4, 0, log2_up((uint32_t)DEVICE.max_cq))                                          \
	FIELD(GENERAL, log_max_mkey, 7, 21, 16, log2_up((uint32_t)DEVICE.max_mr))                                      \
	FIELD(GENERAL, log_max_ra_res_dc, 9, 5, 0, log2_up((uint32_t)DEVICE.max_qp_init_rd_atom))                      \
	FIELD(GENERAL, log_max_ra_req_dc, 9, 21, 16, log2_up((uint32_t)DEVICE.max_qp_rd_atom))                         \
	FIELD(GENERAL, sig_crc32c, 10, 23, 23, !!(view->dv.sig_caps.crc_type & MLX5DV_SIG_CRC_TYPE_CAP_CRC32C))        \
	FIELD(GENERAL, sig_crc64_xp10, 10, 24, 24,                                                                     \
	      !!(view->dv.sig_caps.crc_type & MLX5DV_SIG_CRC_TYPE_CAP_CRC64_XP10))                                     \
	FIELD(GENERAL, log_max_ra_req_qp, 10, 21, 16, log2_up((uint32_t)DEVICE.max_qp_rd_atom))                        \
	FIELD(GENERAL, log_max_ra_res_qp, 10, 5, 0, log2_up((uint32_t)DEVICE.max_qp_init_rd_atom))                     \
	FIELD(GENERAL, gid_table_size, 11, 15, 0, log2_up((uint32_t)view->port.gid_tbl_len / 8))                       \
	FIELD(GENERAL, device_memory, 13, 23, 23, view->device.max_dm_size > 0)                                        \
	FIELD(GENERAL, local_ca_ack_delay, 13, 20, 16, DEVICE.local_ca_ack_delay)                                      \
	FIELD(GENERAL, port_type, 13, 9, 8, view->port.link_layer == IBV_LINK_LAYER_ETHERNET)                          \
	FIELD(GENERAL, num_ports, 13, 7, 0, DEVICE.phys_port_cnt)                                                      \
	FIELD(GENERAL, log_max_msg, 14, 28, 24, log2_up(view->port.max_msg_sz))                                        \
	FIELD(GENERAL, sig_block_4048, 15, 15, 15, !!(view->dv.sig_caps.block_size & MLX5DV_BLOCK_SIZE_CAP_4048))      \
	FIELD(GENERAL, cqe_version, 15, 3, 0, !!(view->dv.flags & MLX5DV_CONTEXT_FLAGS_CQE_V1))                        \
	FIELD(GENERAL, sho, 16, 8, 8, view->dv.sig_caps.block_prot != 0)                                               \
	FIELD(GENERAL, atomic, 16, 1, 1, DEVICE.atomic_cap != IBV_ATOMIC_NONE)                                         \
	FIELD(GENERAL, cq_moderation, 17, 29, 29, view->device.cq_mod_caps.max_cq_count > 0)                           \
	FIELD(GENERAL, pg, 17, 24, 24, !!(view->device.odp_caps.general_caps & IBV_ODP_SUPPORT))                       \
	FIELD(GENERAL, apm, 17, 17, 17, FLAG(IBV_DEVICE_AUTO_PATH_MIG))                                                \
	FIELD(GENERAL, imaicl, 17, 14, 14, FLAG(IBV_DEVICE_MEM_WINDOW_TYPE_2B))                                        \
	FIELD(GENERAL, qkv, 17, 9, 9, FLAG(IBV_DEVICE_BAD_QKEY_CNTR))                                                  \
	FIELD(GENERAL, pkv, 17, 8, 8, FLAG(IBV_DEVICE_BAD_PKEY_CNTR))                                                  \
	FIELD(GENERAL, xrc, 17, 3, 3, FLAG(IBV_DEVICE_XRC))                                                            \
	FIELD(GENERAL, rc_uc_ud, 17, 2, 0, 7)                                                                          \
	FIELD(GENERAL, max_qp_mcg, 23, 24, 0, (uint32_t)DEVICE.max_mcast_qp_attach)                                    \
	FIELD(GENERAL, log_max_mcg, 24, 7, 0, log2_up((uint32_t)DEVICE.max_mcast_grp))                                 \
	FIELD(GENERAL, log_max_pd, 25, 20, 16, log2_up((uint32_t)DEVICE.max_pd))                                       \
	FIELD(GENERAL, crypto, 35, 22, 22, !!(view->dv.crypto_caps.flags & MLX5DV_CRYPTO_CAPS_CRYPTO))                 \
	FIELD(GENERAL, tag_matching, 47, 15, 15, view->device.tm_caps.max_num_tags > 0)                                \
	FIELD(GENERAL, dma_mmo_qp, 58, 23, 23, view->dv.max_wr_memcpy_length > 0)                                      \
	FIELD(GENERAL, log_dma_mmo_max_size, 3, 20, 16, log2_up(view->dv.max_wr_memcpy_length))                        \
	FIELD(ODP, rc, 4, 31, 26, odp_bits(view->device.odp_caps.per_transport_caps.rc_odp_caps))                      \
	FIELD(ODP, uc, 5, 31, 26, odp_bits(view->device.odp_caps.per_transport_caps.uc_odp_caps))                      \
	FIELD(ODP, ud, 6, 31, 26, odp_bits(view->device.odp_caps.per_transport_caps.ud_odp_caps))                      \
	FIELD(ODP, xrc, 7, 31, 26, odp_bits(view->device.xrc_odp_caps))                                                \
	FIELD(ODP, dc, 8, 31, 26, odp_bits(view->dv.dc_odp_caps))                                                      \
	/* Mode 1 is the host's byte order, without which the kernel reports no IBV_ATOMIC_HCA. */                     \
	FIELD(ATOMIC, atomic_req_8B_endianness_mode, 2, 31, 30, DEVICE.atomic_cap == IBV_ATOMIC_HCA)                   \
	FIELD(ATOMIC, supported_atomic_req_8B_endianness_mode_1, 2, 25, 25, DEVICE.atomic_cap == IBV_ATOMIC_HCA)       \
	FIELD(MEMORY, memic, 0, 31, 31, view->device.max_dm_size > 0)                                                  \
	FIELD(MEMORY, max_memic_size, 5, 31, 0, (uint32_t)view->device.max_dm_size)

struct field {
	enum group group;
	const char *name;
	size_t dword;
	unsigned int high, low;
	uint32_t expected;
};

static struct verbs_view look(void)
{
	struct verbs_view view = {.dv.comp_mask =
					  MLX5DV_CONTEXT_MASK_DC_ODP_CAPS | MLX5DV_CONTEXT_MASK_SIGNATURE_OFFLOAD |
					  MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD | MLX5DV_CONTEXT_MASK_WR_MEMCPY_LENGTH};
	struct ibv_ece ece;

	assert_int_equal(ibv_query_device_ex(client.context, NULL, &view.device), 0);
	assert_int_equal(ibv_query_port(client.context, 1, &view.port), 0);
	assert_int_equal(mlx5dv_query_device(client.context, &view.dv), 0);
	view.ece = !ibv_query_ece(pair.client.qp, &ece) && ece.vendor_id;
	return view;
}

static uint32_t field_value(const struct field *field)
{
	struct command command = command_of(0x100);
	uint8_t out[4112] = {0};

	put32(command.in, 4, (uint32_t)field->group << 1 | 1);
	assert_int_equal(mlx5dv_devx_general_cmd(client.context, command.in, 16, out, sizeof(out)), 0);
	return get32(out, 16 + 4 * field->dword) >> field->low &
	       (uint32_t)((UINT64_C(1) << (field->high - field->low + 1)) - 1);
}

TEST(fields_agree_with_verbs)
{
	const struct verbs_view here = look(), *view = &here;
#define FIELD(group, name, dword, high, low, expected) {group, #name, dword, high, low, (uint32_t)(expected)},
	const struct field fields[] = {FIELDS(FIELD)};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		uint32_t value = field_value(&fields[i]);

		if (value != fields[i].expected)
			fail_msg("%s is %#x, and verbs says %#x", fields[i].name, value, fields[i].expected);
	}
}
