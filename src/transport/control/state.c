/* SPDX-License-Identifier: BSD-2-Clause */
/* The transitions of states.def as a table. */
#include "transport/control/state.h"

#include <errno.h>
#include <stddef.h>

#include "format/qp_types.h"

#define RC (1u << IBV_QPT_RC)
#define UC (1u << IBV_QPT_UC)
#define UD (1u << IBV_QPT_UD)
#define XRC_SEND (1u << IBV_QPT_XRC_SEND)
#define XRC_RECV (1u << IBV_QPT_XRC_RECV)
#define DCI (1u << QP_TYPE_DCI)
#define DCT (1u << QP_TYPE_DCT)

struct transition {
	enum ibv_qp_state from, to;
	uint32_t types;
	int required, optional;
};

enum {
	CUR_STATE = IBV_QP_CUR_STATE,
	EN_SQD_ASYNC_NOTIFY = IBV_QP_EN_SQD_ASYNC_NOTIFY,
	ACCESS_FLAGS = IBV_QP_ACCESS_FLAGS,
	PKEY_INDEX = IBV_QP_PKEY_INDEX,
	PORT = IBV_QP_PORT,
	QKEY = IBV_QP_QKEY,
	AV = IBV_QP_AV,
	PATH_MTU = IBV_QP_PATH_MTU,
	TIMEOUT = IBV_QP_TIMEOUT,
	RETRY_CNT = IBV_QP_RETRY_CNT,
	RNR_RETRY = IBV_QP_RNR_RETRY,
	RQ_PSN = IBV_QP_RQ_PSN,
	MAX_QP_RD_ATOMIC = IBV_QP_MAX_QP_RD_ATOMIC,
	ALT_PATH = IBV_QP_ALT_PATH,
	MIN_RNR_TIMER = IBV_QP_MIN_RNR_TIMER,
	SQ_PSN = IBV_QP_SQ_PSN,
	MAX_DEST_RD_ATOMIC = IBV_QP_MAX_DEST_RD_ATOMIC,
	PATH_MIG_STATE = IBV_QP_PATH_MIG_STATE,
	DEST_QPN = IBV_QP_DEST_QPN,
};

static const struct transition transitions[] = {
#define QP_TRANSITION(from, to, types, required, optional) {IBV_QPS_##from, IBV_QPS_##to, types, required, optional},
#include "transport/control/states.def"
#undef QP_TRANSITION
};

static const struct transition *transition_find(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to)
{
	static const struct transition away = {.required = 0, .optional = IBV_QP_CUR_STATE};

	if (type != QP_TYPE_DCT && (to == IBV_QPS_RESET || to == IBV_QPS_ERR))
		return &away;
	for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++)
		if (transitions[i].from == from && transitions[i].to == to && transitions[i].types & 1u << type)
			return &transitions[i];
	return NULL;
}

int qp_transition_check(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask,
			struct refusal *why)
{
	const struct transition *transition = transition_find(type, from, to);

	if (!transition)
		return REFUSAL(why, EINVAL, RULE_MODIFY_TRANSITION, type, from, to);
	if ((mask & transition->required) != transition->required)
		return REFUSAL(why, EINVAL, RULE_MODIFY_MISSING, type, from, to,
			       (uint64_t)(transition->required & ~mask));
	if (mask & ~(transition->required | transition->optional | IBV_QP_STATE))
		return REFUSAL(why, EINVAL, RULE_MODIFY_NOT_ALLOWED, type, from, to,
			       (uint64_t)(uint32_t)(mask &
						    ~(transition->required | transition->optional | IBV_QP_STATE)));
	return 0;
}
