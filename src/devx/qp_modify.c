/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands that change the state of a QP; the opcode is the transition. Required attributes are always read, optional
 * ones if their bit is set in opt_param_mask. Then the rules of ibv_modify_qp(3) apply.
 */
#include "devx/command.h"
#include "devx/qp_context.h"

#include "format/qp_types.h"

#define ANY_STATE ((enum ibv_qp_state) - 1)

/* What a transition reads from the context, for types that have the attribute. */
enum parts {
	PART_PORT = 1 << 0,    /* port and P_Key index */
	PART_ACCESS = 1 << 1,  /* rights of remote requests */
	PART_Q_KEY = 1 << 2,   /* of UD */
	PART_PEER = 1 << 3,    /* path, peer, first sequence number, responder's attributes */
	PART_SEND = 1 << 4,    /* first sequence number, requester's attributes */
	PART_OPTIONS = 1 << 5, /* attributes selected by the mask */
};

static const struct transition {
	uint16_t opcode;
	enum ibv_qp_state from, to;
	unsigned int parts;
} transitions[] = {
	{0x502, IBV_QPS_RESET, IBV_QPS_INIT, PART_PORT | PART_ACCESS | PART_Q_KEY},
	{0x50e, IBV_QPS_INIT, IBV_QPS_INIT, PART_OPTIONS},
	{0x503, IBV_QPS_INIT, IBV_QPS_RTR, PART_PEER | PART_OPTIONS},
	{0x504, IBV_QPS_RTR, IBV_QPS_RTS, PART_SEND | PART_OPTIONS},
	{0x505, IBV_QPS_RTS, IBV_QPS_RTS, PART_OPTIONS},
	{0x506, IBV_QPS_SQE, IBV_QPS_RTS, PART_OPTIONS},
	{0x507, ANY_STATE, IBV_QPS_ERR, 0},
	{0x50a, ANY_STATE, IBV_QPS_RESET, 0},
};

struct change {
	struct ibv_qp_attr attr;
	int mask;
	uint16_t udp_source_port;
};

static uint32_t command_get_word(const struct devx_command *command, struct devx_field field)
{
	return (uint32_t)command_get(command, field);
}

static bool type_is_connected(enum ibv_qp_type type)
{
	return type != IBV_QPT_UD && type != QP_TYPE_DCI;
}

/* Types whose peer is a responder that acknowledges. */
static bool type_is_reliable(enum ibv_qp_type type)
{
	return type != IBV_QPT_UD && type != IBV_QPT_UC;
}

static void change_read_port(const struct devx_command *command, struct change *change)
{
	/* Some programs omit the port, because the device has only one. */
	change->attr.port_num = command_get_word(command, QPC_PORT) ? (uint8_t)command_get_word(command, QPC_PORT) : 1;
	change->attr.pkey_index = (uint16_t)command_get_word(command, QPC_PKEY_INDEX);
	change->mask |= IBV_QP_PORT | IBV_QP_PKEY_INDEX;
}

static void change_read_q_key(const struct devx_command *command, struct change *change)
{
	change->attr.qkey = command_get_word(command, QPC_Q_KEY);
	change->mask |= IBV_QP_QKEY;
}

static void change_read_access(const struct devx_command *command, struct change *change)
{
	change->attr.qp_access_flags = command_get_rights(command, REMOTE_RIGHTS(QPC));
	change->mask |= IBV_QP_ACCESS_FLAGS;
}

static void change_read_min_rnr_timer(const struct devx_command *command, struct change *change)
{
	change->attr.min_rnr_timer = (uint8_t)command_get_word(command, QPC_MIN_RNR_NAK);
	change->mask |= IBV_QP_MIN_RNR_TIMER;
}

/* Sets the address of this port: a looped-back path needs a QP number, but no address. */
static void path_set_loopback(const struct devx_command *command, struct ibv_ah_attr *address)
{
	const struct hca_gid *gids;
	size_t count;

	gids = hca_gids(command->devx->hca, &count);
	if (address->grh.sgid_index >= count)
		address->grh.sgid_index = 0;
	address->grh.dgid = gids[address->grh.sgid_index].gid;
}

static void change_read_path(const struct devx_command *command, struct change *change)
{
	struct ibv_ah_attr *address = &change->attr.ah_attr;
	uint32_t traffic_class = command_get_word(command, QPC_TCLASS);
	__be64 words[2] = {htobe64(command_get(command, QPC_RGID_HIGH)), htobe64(command_get(command, QPC_RGID_LOW))};

	*address = (struct ibv_ah_attr){
		.is_global = 1,
		.sl = (uint8_t)command_get_word(command, QPC_ETH_PRIO),
		.port_num = command_get_word(command, QPC_PORT) ? (uint8_t)command_get_word(command, QPC_PORT) : 1,
		.grh =
			{
				.sgid_index = (uint8_t)command_get_word(command, QPC_SRC_ADDR_INDEX),
				.hop_limit = (uint8_t)command_get_word(command, QPC_HOP_LIMIT),
				/* DSCP repeats its upper six bits. */
				.traffic_class = (uint8_t)(traffic_class ? traffic_class
									 : command_get_word(command, QPC_DSCP) << 2),
				.flow_label = command_get_word(command, QPC_FLOW_LABEL),
			},
	};
	memcpy(&address->grh.dgid, words, sizeof(words));
	if (command_get_word(command, QPC_FORCE_LOOPBACK))
		path_set_loopback(command, address);
	change->udp_source_port = (uint16_t)command_get_word(command, QPC_UDP_SPORT);
	change->mask |= IBV_QP_AV;
}

static void change_read_peer(const struct devx_command *command, enum ibv_qp_type type, struct change *change)
{
	if (type == IBV_QPT_UD)
		return;
	change->attr.path_mtu = (enum ibv_mtu)command_get_word(command, QPC_MTU);
	change->mask |= IBV_QP_PATH_MTU;
	/* Each request of a DCI contains its address. */
	if (type == QP_TYPE_DCI)
		return;
	change_read_path(command, change);
	change->attr.dest_qp_num = command_get_word(command, QPC_REMOTE_QPN);
	change->attr.rq_psn = command_get_word(command, QPC_NEXT_RCV_PSN);
	change->mask |= IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (!type_is_reliable(type))
		return;
	change->attr.max_dest_rd_atomic = (uint8_t)(1u << command_get_word(command, QPC_LOG_RRA_MAX));
	change->mask |= IBV_QP_MAX_DEST_RD_ATOMIC;
	change_read_min_rnr_timer(command, change);
}

static void change_read_send(const struct devx_command *command, enum ibv_qp_type type, struct change *change)
{
	change->attr.sq_psn = command_get_word(command, QPC_NEXT_SEND_PSN);
	change->mask |= IBV_QP_SQ_PSN;
	if (!type_is_reliable(type))
		return;
	change->attr.timeout = (uint8_t)command_get_word(command, QPC_ACK_TIMEOUT);
	change->attr.retry_cnt = (uint8_t)command_get_word(command, QPC_RETRY_COUNT);
	change->attr.rnr_retry = (uint8_t)command_get_word(command, QPC_RNR_RETRY);
	change->attr.max_rd_atomic = (uint8_t)(1u << command_get_word(command, QPC_LOG_SRA_MAX));
	change->mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
}

/* Each right has its own bit in the mask; others do not change. */
static void change_read_some_access(const struct devx_command *command, uint32_t optional, struct change *change)
{
	unsigned int named = (optional & OPTIONAL_RRE ? IBV_ACCESS_REMOTE_READ : 0) |
			     (optional & OPTIONAL_RWE ? IBV_ACCESS_REMOTE_WRITE : 0) |
			     (optional & OPTIONAL_RAE ? IBV_ACCESS_REMOTE_ATOMIC : 0);
	struct ibv_qp_attr now;

	hca_qp_query(command->qp, &now);
	change->attr.qp_access_flags =
		(now.qp_access_flags & ~named) | (command_get_rights(command, REMOTE_RIGHTS(QPC)) & named);
	change->mask |= IBV_QP_ACCESS_FLAGS;
}

static void change_read_options(const struct devx_command *command, enum ibv_qp_type type,
				const struct transition *transition, struct change *change)
{
	uint32_t optional = command_get_word(command, QPC_OPT_PARAM_MASK);

	if (optional & (OPTIONAL_RRE | OPTIONAL_RWE | OPTIONAL_RAE) && type_is_connected(type))
		change_read_some_access(command, optional, change);
	if (optional & OPTIONAL_Q_KEY && type == IBV_QPT_UD)
		change_read_q_key(command, change);
	if (optional & OPTIONAL_RNR_TIMEOUT && type_is_reliable(type) && transition->from != IBV_QPS_INIT)
		change_read_min_rnr_timer(command, change);
	/* Later transitions do not accept P_Key and port. */
	if (optional & OPTIONAL_PKEY_INDEX && transition->from == IBV_QPS_INIT) {
		change->attr.pkey_index = (uint16_t)command_get_word(command, QPC_PKEY_INDEX);
		change->mask |= IBV_QP_PKEY_INDEX;
	}
	if (optional & OPTIONAL_PORT && transition->to == IBV_QPS_INIT) {
		change->attr.port_num = (uint8_t)command_get_word(command, QPC_PORT);
		change->mask |= IBV_QP_PORT;
	}
}

static void change_read(const struct devx_command *command, enum ibv_qp_type type, const struct transition *transition,
			struct change *change)
{
	*change = (struct change){.attr.qp_state = transition->to, .mask = IBV_QP_STATE};
	if (transition->parts & PART_PORT)
		change_read_port(command, change);
	if (transition->parts & PART_ACCESS && type_is_connected(type))
		change_read_access(command, change);
	if (transition->parts & PART_Q_KEY && type == IBV_QPT_UD)
		change_read_q_key(command, change);
	if (transition->parts & PART_PEER)
		change_read_peer(command, type, change);
	if (transition->parts & PART_SEND)
		change_read_send(command, type, change);
	if (transition->parts & PART_OPTIONS)
		change_read_options(command, type, transition, change);
}

static const struct transition *transition_find(uint16_t opcode)
{
	const struct transition *transition = transitions;

	while (transition->opcode != opcode)
		transition++;
	return transition;
}

/* Only queries use these fields; the QP keeps the others. */
static void keep_context(struct devx_command *command, enum ibv_qp_type type, const struct transition *transition)
{
	if (transition->parts & PART_PEER && type_is_connected(type)) {
		created_change(command, QPC_FORCE_LOOPBACK);
		created_change(command, QPC_DSCP);
		created_change(command, QPC_UDP_SPORT);
		created_change(command, QPC_RMAC_HIGH);
		created_change(command, QPC_RMAC_LOW);
	}
	if (transition->parts & PART_SEND)
		created_change(command, QPC_ACK_REQ_FREQ);
}

int command_modify_qp(struct devx_command *command)
{
	const struct transition *transition = transition_find(command->opcode);
	enum ibv_qp_type type = hca_qp_type(command->qp);
	enum ibv_qp_state state = hca_qp_state(command->qp);
	struct change change;

	if (transition->from != ANY_STATE && transition->from != state)
		return command_refuse(command, STATUS_BAD_QP_STATE, RULE_MODIFY_TRANSITION,
				      FIGURES(type, state, transition->to));
	change_read(command, type, transition, &change);
	if (hca_qp_try_modify(command->qp, &change.attr, change.mask, &command->why)) {
		command->status = STATUS_BAD_PARAMETER;
		return -EREMOTEIO;
	}
	if (change.udp_source_port)
		hca_qp_set_udp_source_port(command->qp, change.udp_source_port);
	keep_context(command, type, transition);
	command->state = transition->to;
	return 0;
}
