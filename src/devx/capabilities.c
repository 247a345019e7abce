/* SPDX-License-Identifier: BSD-2-Clause */
/* Queries without an object, QUERY_HCA_CAP among them. */
#include <assert.h>
#include <string.h>

#include "core/limits.h"
#include "devx/command.h"

/* Limits in the encoding of capabilities: powers of two. */
enum {
	LOG_MAX_MEMCPY = 28,
	LOG_MAX_RD_ATOMIC = 4,
	LOG_MAX_QP = 18,
	LOG_MAX_QP_WR = 15,
	LOG_MAX_SRQ = 23,
	LOG_MAX_SRQ_WR = 15,
	LOG_MAX_CQ = 24,
	LOG_MAX_CQE = 22,
	LOG_MAX_MKEY = 24,
	LOG_MAX_PD = 23,
	LOG_MAX_MCG = 12,
	GID_TABLE_CODE = 3, /* 8 << code entries */
};
static_assert(LIMIT_MAX_MEMCPY == 1u << LOG_MAX_MEMCPY, "log_dma_mmo_max_size");
static_assert(LIMIT_MAX_RD_ATOMIC == 1 << LOG_MAX_RD_ATOMIC, "log_max_ra_req_qp");
static_assert(LIMIT_MAX_QP == 1 << LOG_MAX_QP, "log_max_qp");
static_assert(LIMIT_MAX_QP_WR == 1 << LOG_MAX_QP_WR, "log_max_qp_sz");
static_assert(LIMIT_MAX_SRQ == 1 << LOG_MAX_SRQ, "log_max_srq, log_max_rmp");
static_assert(LIMIT_MAX_SRQ_WR == (1 << LOG_MAX_SRQ_WR) - 1, "log_max_srq_sz");
static_assert(LIMIT_MAX_CQ == 1 << LOG_MAX_CQ, "log_max_cq");
static_assert(LIMIT_MAX_CQE == (1 << LOG_MAX_CQE) - 1, "log_max_cq_sz");
static_assert(LIMIT_MAX_MR == 1 << LOG_MAX_MKEY, "log_max_mkey");
static_assert(LIMIT_MAX_PD == 1 << LOG_MAX_PD, "log_max_pd");
static_assert(LIMIT_MAX_TOTAL_MCAST_QP_ATTACH == 1 << LOG_MAX_MCG, "log_max_mcg");
static_assert(LIMIT_GID_TABLE == 8 << GID_TABLE_CODE, "gid_table_size");

/* In the output of QUERY_HCA_CAP. */
enum { CAPABILITY_DWORD = 4 };

#define GROUP(number, name, about) GROUP_##name = (number),
enum capability_group {
#include "devx/capabilities.def"
};

enum offer { OFFER_ALWAYS, OFFER_ENCRYPTION, OFFER_WRAPPED_KEYS, OFFER_LOGINS, OFFER_TWEAK_LE, OFFER_TWEAK_BE };

static const struct {
	uint8_t offer, group;
	struct devx_field field;
	uint32_t value;
} capabilities[] = {
#define CAPABILITY(group, dword, high, low, value, name) CAPABILITY_IF(ALWAYS, group, dword, high, low, value, name)
#define CAPABILITY_IF(offer, group, dword, high, low, value, name)                                                     \
	{OFFER_##offer, GROUP_##group, {(dword) + CAPABILITY_DWORD, high, low}, value},
#include "devx/capabilities.def"
};

static const uint8_t empty_groups[] = {
#define EMPTY_GROUP(number, about) (number),
#include "devx/capabilities.def"
};

static bool is_offered(const struct hca *hca, enum offer offer)
{
	const struct settings *settings = hca_settings(hca);

	switch (offer) {
	case OFFER_ENCRYPTION:
		return settings->crypto != CRYPTO_OFF;
	case OFFER_TWEAK_LE:
		return settings->crypto != CRYPTO_OFF && settings->crypto_tweak == CRYPTO_TWEAK_LE;
	case OFFER_TWEAK_BE:
		return settings->crypto != CRYPTO_OFF && settings->crypto_tweak == CRYPTO_TWEAK_BE;
	case OFFER_WRAPPED_KEYS:
		return settings->crypto == CRYPTO_WRAPPED;
	case OFFER_LOGINS:
		return hca_crypto_operational(hca);
	default:
		return true;
	}
}

/* op_mod contains the group, and a bit for current or maximum values, which are equal here. */
int command_query_hca_cap(struct devx_command *command)
{
	uint32_t group = (uint32_t)command_get(command, ANY_OP_MOD) >> 1;
	bool exists = group <= UINT8_MAX && memchr(empty_groups, (int)group, sizeof(empty_groups));

	for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++) {
		if (capabilities[i].group != group || !is_offered(command->devx->hca, capabilities[i].offer))
			continue;
		command_put(command, capabilities[i].field, capabilities[i].value);
		exists = true;
	}
	return exists ? 0 : command_refuse(command, STATUS_BAD_PARAMETER, RULE_DEVX_CAP_GROUP, FIGURES(group));
}

int command_query_nic_vport(struct devx_command *command)
{
	command_put(command, NIC_VPORT_ROCE_ENABLED, 1);
	return 0;
}

/* All zeros: one port has no link aggregation. */
int command_query_lag(struct devx_command *command)
{
	(void)command;
	return 0;
}
