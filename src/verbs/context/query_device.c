/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_query_device(3), ibv_query_device_ex(3), ibv_query_rt_values_ex(3). The limits are those of core/limits.def. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "abi/entry_points.h"
#include "core/limits.h"
#include "hca/identity.h"
#include "explain/explain.h"
#include "verbs/object/objects.h"
#include "verbs/object/ops.h"

/*
 * Only capabilities that work, because programs choose their code path by them. Type 2 windows are bound to QP and PD
 * (2B).
 */
enum {
	CAPABILITIES = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
		       IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
		       IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_XRC,
	ODP_UD = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV,
	/* ibv_create_qp(3): UC has no SRQ */
	ODP_UC = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE,
	ODP_RC = ODP_UD | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC,
};

static void fill_limits(const struct hca *hca, struct ibv_device_attr *attr)
{
	identity_firmware(attr->fw_ver, sizeof(attr->fw_ver));
	attr->node_guid = attr->sys_image_guid = hca_guid(hca);
	attr->max_mr_size = LIMIT_MAX_MR_SIZE;
	attr->page_size_cap = LIMIT_PAGE_SIZE_CAP;
	attr->vendor_id = LIMIT_VENDOR_ID;
	attr->vendor_part_id = LIMIT_VENDOR_PART_ID;
	attr->hw_ver = LIMIT_HW_VERSION;
	attr->max_qp = LIMIT_MAX_QP;
	attr->max_qp_wr = LIMIT_MAX_QP_WR;
	attr->device_cap_flags = CAPABILITIES;
	attr->max_sge = LIMIT_MAX_SGE;
	attr->max_sge_rd = LIMIT_MAX_SGE_READ;
	attr->max_cq = LIMIT_MAX_CQ;
	attr->max_cqe = LIMIT_MAX_CQE;
	attr->max_mr = LIMIT_MAX_MR;
	attr->max_pd = LIMIT_MAX_PD;
	attr->max_qp_rd_atom = LIMIT_MAX_RD_ATOMIC;
	attr->max_res_rd_atom = LIMIT_MAX_RES_RD_ATOMIC;
	attr->max_qp_init_rd_atom = LIMIT_MAX_RD_ATOMIC;
	attr->atomic_cap = IBV_ATOMIC_HCA;
	attr->max_mw = LIMIT_MAX_MW;
	attr->max_ah = LIMIT_MAX_AH;
	attr->max_srq = LIMIT_MAX_SRQ;
	attr->max_srq_wr = LIMIT_MAX_SRQ_WR;
	attr->max_srq_sge = LIMIT_MAX_SRQ_SGE;
	attr->max_mcast_grp = LIMIT_MAX_TOTAL_MCAST_QP_ATTACH;
	attr->max_mcast_qp_attach = LIMIT_MAX_MCAST_QP_ATTACH;
	attr->max_total_mcast_qp_attach = LIMIT_MAX_TOTAL_MCAST_QP_ATTACH;
	attr->max_pkeys = LIMIT_PKEY_TABLE;
	attr->local_ca_ack_delay = LIMIT_ACK_DELAY;
	attr->phys_port_cnt = LIMIT_PORTS;
}

/* Zero for missing features: tag matching, RSS, TSO, packet pacing, raw packets. */
static void fill_extended(const struct hca *hca, struct ibv_device_attr_ex *attr)
{
	memset(attr, 0, sizeof(*attr));
	fill_limits(hca, &attr->orig_attr);
	attr->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps = ODP_RC;
	attr->odp_caps.per_transport_caps.uc_odp_caps = ODP_UC;
	attr->odp_caps.per_transport_caps.ud_odp_caps = ODP_UD;
	attr->xrc_odp_caps = ODP_RC;
	attr->completion_timestamp_mask = LIMIT_TIMESTAMP_MASK;
	attr->hca_core_clock = LIMIT_CLOCK_KHZ;
	attr->device_cap_flags_ex = CAPABILITIES;
	attr->cq_mod_caps.max_cq_count = LIMIT_MAX_CQ_COUNT;
	attr->cq_mod_caps.max_cq_period = LIMIT_MAX_CQ_PERIOD;
	attr->max_dm_size = LIMIT_MAX_DM_SIZE;
	attr->phys_port_cnt_ex = LIMIT_PORTS;
}

int softhca_ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	fill_limits(hca_of_context(context), attr);
	return 0;
}

/* @attr_size: size in the program's header. */
int softhca_ibv_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
				struct ibv_device_attr_ex *attr, size_t attr_size)
{
	const struct hca *hca = hca_of_context(context);
	struct ibv_device_attr_ex all;

	if (input && input->comp_mask)
		return REFUSE(hca_of_context(context), "ibv_query_device_ex", EINVAL, RULE_COMP_MASK, input->comp_mask,
			      0);
	if (attr_size < sizeof(attr->orig_attr))
		return REFUSE(hca_of_context(context), "ibv_query_device_ex", EINVAL, RULE_QUERY_DEVICE_SIZE, attr_size,
			      sizeof(attr->orig_attr));
	fill_extended(hca, &all);
	memset(attr, 0, attr_size);
	memcpy(attr, &all, attr_size < sizeof(all) ? attr_size : sizeof(all));
	return 0;
}

/* All nanoseconds are in tv_nsec, as in the real library. */
int softhca_ibv_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	struct hca *hca = hca_of_context(context);

	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return REFUSE(hca, "ibv_query_rt_values_ex", EINVAL, RULE_COMP_MASK, values->comp_mask,
			      IBV_VALUES_MASK_RAW_CLOCK);
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) {
		values->raw_clock.tv_sec = 0;
		values->raw_clock.tv_nsec = (long)(hca_clock_ns(hca) & LIMIT_TIMESTAMP_MASK);
	}
	return 0;
}
