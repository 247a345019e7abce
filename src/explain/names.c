/* SPDX-License-Identifier: BSD-2-Clause */
/* Names for explanations, see names.h. */
#include "explain/names.h"

#include <infiniband/mlx5dv.h>

#include "format/key_kinds.h"
#include "format/qp_types.h"

const struct bit_name access_names[] = {
	{IBV_ACCESS_LOCAL_WRITE, "LOCAL_WRITE"},
	{IBV_ACCESS_REMOTE_WRITE, "REMOTE_WRITE"},
	{IBV_ACCESS_REMOTE_READ, "REMOTE_READ"},
	{IBV_ACCESS_REMOTE_ATOMIC, "REMOTE_ATOMIC"},
	{IBV_ACCESS_MW_BIND, "MW_BIND"},
	{IBV_ACCESS_ZERO_BASED, "ZERO_BASED"},
	{IBV_ACCESS_ON_DEMAND, "ON_DEMAND"},
	{IBV_ACCESS_HUGETLB, "HUGETLB"},
	{IBV_ACCESS_RELAXED_ORDERING, "RELAXED_ORDERING"},
	{0, NULL},
};

const struct bit_name rights_names[] = {
	{RIGHT_LOCAL_READ, "local read"},     {RIGHT_LOCAL_WRITE, "local write"}, {RIGHT_REMOTE_READ, "remote read"},
	{RIGHT_REMOTE_WRITE, "remote write"}, {RIGHT_ATOMIC, "remote atomic"},    {0, NULL},
};

const struct bit_name attr_names[] = {
	{IBV_QP_STATE, "STATE"},
	{IBV_QP_CUR_STATE, "CUR_STATE"},
	{IBV_QP_EN_SQD_ASYNC_NOTIFY, "EN_SQD_ASYNC_NOTIFY"},
	{IBV_QP_ACCESS_FLAGS, "ACCESS_FLAGS"},
	{IBV_QP_PKEY_INDEX, "PKEY_INDEX"},
	{IBV_QP_PORT, "PORT"},
	{IBV_QP_QKEY, "QKEY"},
	{IBV_QP_AV, "AV"},
	{IBV_QP_PATH_MTU, "PATH_MTU"},
	{IBV_QP_TIMEOUT, "TIMEOUT"},
	{IBV_QP_RETRY_CNT, "RETRY_CNT"},
	{IBV_QP_RNR_RETRY, "RNR_RETRY"},
	{IBV_QP_RQ_PSN, "RQ_PSN"},
	{IBV_QP_MAX_QP_RD_ATOMIC, "MAX_QP_RD_ATOMIC"},
	{IBV_QP_ALT_PATH, "ALT_PATH"},
	{IBV_QP_MIN_RNR_TIMER, "MIN_RNR_TIMER"},
	{IBV_QP_SQ_PSN, "SQ_PSN"},
	{IBV_QP_MAX_DEST_RD_ATOMIC, "MAX_DEST_RD_ATOMIC"},
	{IBV_QP_PATH_MIG_STATE, "PATH_MIG_STATE"},
	{IBV_QP_CAP, "CAP"},
	{IBV_QP_DEST_QPN, "DEST_QPN"},
	{IBV_QP_RATE_LIMIT, "RATE_LIMIT"},
	{0, NULL},
};

const char *qp_state_name(unsigned int state)
{
	static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR", "UNKNOWN"};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "no state";
}

const char *qp_type_name(unsigned int type)
{
	switch (type) {
	case IBV_QPT_RC:
		return "RC";
	case IBV_QPT_UC:
		return "UC";
	case IBV_QPT_UD:
		return "UD";
	case IBV_QPT_RAW_PACKET:
		return "RAW_PACKET";
	case IBV_QPT_XRC_SEND:
		return "XRC_SEND";
	case IBV_QPT_XRC_RECV:
		return "XRC_RECV";
	case IBV_QPT_DRIVER:
		return "DRIVER";
	case QP_TYPE_DCI:
		return "DCI";
	case QP_TYPE_DCT:
		return "DCT";
	default:
		return "unknown type";
	}
}

/* mlx5-formats 3.4. */
static const struct {
	uint8_t syndrome;
	enum ibv_wc_status status;
	const char *name;
} syndromes[] = {
	{MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR, IBV_WC_LOC_LEN_ERR, "LOC_LEN_ERR"},
	{MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, IBV_WC_LOC_QP_OP_ERR, "LOC_QP_OP_ERR"},
	{MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, IBV_WC_LOC_PROT_ERR, "LOC_PROT_ERR"},
	{MLX5_CQE_SYNDROME_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR, "WR_FLUSH_ERR"},
	{MLX5_CQE_SYNDROME_MW_BIND_ERR, IBV_WC_MW_BIND_ERR, "MW_BIND_ERR"},
	{MLX5_CQE_SYNDROME_BAD_RESP_ERR, IBV_WC_BAD_RESP_ERR, "BAD_RESP_ERR"},
	{MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR, IBV_WC_LOC_ACCESS_ERR, "LOC_ACCESS_ERR"},
	{MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, IBV_WC_REM_INV_REQ_ERR, "REM_INV_REQ_ERR"},
	{MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR, "REM_ACCESS_ERR"},
	{MLX5_CQE_SYNDROME_REMOTE_OP_ERR, IBV_WC_REM_OP_ERR, "REM_OP_ERR"},
	{MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR, IBV_WC_RETRY_EXC_ERR, "RETRY_EXC_ERR"},
	{MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR, "RNR_RETRY_EXC_ERR"},
	{MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR, IBV_WC_REM_ABORT_ERR, "REM_ABORT_ERR"},
};

#define SYNDROMES (sizeof(syndromes) / sizeof(syndromes[0]))

const char *syndrome_name(uint8_t syndrome)
{
	for (size_t i = 0; i < SYNDROMES; i++)
		if (syndromes[i].syndrome == syndrome)
			return syndromes[i].name;
	return "GENERAL_ERR";
}

enum ibv_wc_status syndrome_status(uint8_t syndrome)
{
	for (size_t i = 0; i < SYNDROMES; i++)
		if (syndromes[i].syndrome == syndrome)
			return syndromes[i].status;
	return syndrome ? IBV_WC_GENERAL_ERR : IBV_WC_SUCCESS;
}

uint8_t syndrome_of_status(uint32_t status)
{
	for (size_t i = 0; i < SYNDROMES; i++)
		if (syndromes[i].status == status)
			return syndromes[i].syndrome;
	return 0;
}

const char *key_kind_name(unsigned int kind)
{
	static const char *const names[KEY_KIND_COUNT] = {
		[KEY_MEMORY] = "memory region",
		[KEY_ON_DEMAND] = "memory region on demand",
		[KEY_IMPLICIT] = "memory region on demand of all addresses",
		[KEY_DEVICE_MEMORY] = "device memory region",
		[KEY_NULL] = "null memory region",
		[KEY_INDIRECT] = "layout key",
		[KEY_WINDOW_1] = "type 1 window",
		[KEY_WINDOW_2] = "type 2 window",
	};

	return kind < KEY_KIND_COUNT ? names[kind] : "key";
}

const char *guard_name(unsigned int type)
{
	static const char *const names[GUARD_TYPE_COUNT] = {
		[GUARD_NONE] = "none",
		[GUARD_T10_CRC] = "T10-DIF with CRC",
		[GUARD_IP_CHECKSUM] = "T10-DIF with IP checksum",
		[GUARD_CRC32] = "CRC32",
		[GUARD_CRC32C] = "CRC32C",
		[GUARD_CRC64_XP10] = "CRC64",
	};

	return type < GUARD_TYPE_COUNT ? names[type] : "unknown";
}
