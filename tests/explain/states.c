/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 110 to 119: ibv_modify_qp(3). */
#include "rule_cases.h"

static void refused(struct endpoint *endpoint, struct ibv_qp_attr attr, int mask)
{
	expect_error(ibv_modify_qp(endpoint->qp, &attr, mask), EINVAL);
}

/* Makes new QPs, in RESET. */
static void anew(enum ibv_qp_type type)
{
	struct pair_options options = pair_defaults(type);

	pair_close(&pair);
	pair_create(&pair, &client, &server, &options);
}

/* Returns the attributes that take a client from INIT to RTR. */
static struct ibv_qp_attr to_rtr(void)
{
	return (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = pair.server.qp->qp_num,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = server.gid, .sgid_index = client.gid_index}},
	};
}

enum {
	RTR_MASK = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
};

RULE_CASE(MODIFY_TRANSITION)
{
	anew(IBV_QPT_UC);
	refused(&pair.client, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS}, IBV_QP_STATE);
	expect_about_qp(MODIFY_TRANSITION, pair.client.qp->qp_num,
			" ibv_modify_qp → EINVAL: a queue pair of type UC does not go from RESET to RTS");
}

RULE_CASE(MODIFY_MISSING)
{
	anew(IBV_QPT_RC);
	refused(&pair.client, (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT}, IBV_QP_STATE | IBV_QP_PORT);
	expect_about_qp(MODIFY_MISSING, pair.client.qp->qp_num,
			" ibv_modify_qp → EINVAL: RC from RESET to INIT needs ACCESS_FLAGS|PKEY_INDEX as well");
}

RULE_CASE(MODIFY_NOT_ALLOWED)
{
	refused(&pair.client, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS},
		IBV_QP_STATE | IBV_QP_QKEY | IBV_QP_DEST_QPN);
	expect_about_qp(MODIFY_NOT_ALLOWED, pair.client.qp->qp_num,
			" ibv_modify_qp → EINVAL: RC from RTS to RTS does not take QKEY|DEST_QPN");
}

RULE_CASE(MODIFY_VALUE)
{
	struct ibv_qp_attr attr;

	anew(IBV_QPT_RC);
	endpoint_to_init(&pair.client);
	attr = to_rtr();
	attr.min_rnr_timer = 32;
	refused(&pair.client, attr, RTR_MASK);
	expect_about_qp(
		MODIFY_VALUE, pair.client.qp->qp_num,
		" ibv_modify_qp → EINVAL: MIN_RNR_TIMER is 32; the largest value is 31 (and a port number is at least 1)");
}

RULE_CASE(MODIFY_CUR_STATE)
{
	refused(&pair.client, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQD},
		IBV_QP_STATE | IBV_QP_CUR_STATE);
	expect_about_qp(MODIFY_CUR_STATE, pair.client.qp->qp_num,
			" ibv_modify_qp → EINVAL: cur_qp_state says SQD; the queue pair is in RTS");
}

RULE_CASE(MODIFY_MTU)
{
	struct ibv_qp_attr attr;

	anew(IBV_QPT_RC);
	endpoint_to_init(&pair.client);
	attr = to_rtr();
	attr.path_mtu = 6;
	refused(&pair.client, attr, RTR_MASK);
	expect_about_qp(
		MODIFY_MTU, pair.client.qp->qp_num,
		" ibv_modify_qp → EINVAL: path_mtu is 6 of enum ibv_mtu; it must be 1 to 5, and at most the 4096 bytes to which the port is set");
}

RULE_CASE(MODIFY_NO_GRH)
{
	struct ibv_qp_attr attr;

	anew(IBV_QPT_RC);
	endpoint_to_init(&pair.client);
	attr = to_rtr();
	attr.ah_attr = (struct ibv_ah_attr){.dlid = 7, .port_num = 1};
	refused(&pair.client, attr, RTR_MASK);
	expect_about_qp(
		MODIFY_NO_GRH, pair.client.qp->qp_num,
		" ibv_modify_qp → EINVAL: ah_attr has is_global 0 (dlid 7), but addresses on Ethernet are GIDs");
}

RULE_CASE(MODIFY_SGID)
{
	struct ibv_gid_entry entries[64];
	struct ibv_qp_attr attr;

	anew(IBV_QPT_RC);
	endpoint_to_init(&pair.client);
	attr = to_rtr();
	attr.ah_attr.grh.sgid_index = 63;
	refused(&pair.client, attr, RTR_MASK);
	expect_about_qp(MODIFY_SGID, pair.client.qp->qp_num,
			" ibv_modify_qp → EINVAL: grh.sgid_index is 63; the GID table has %zd entries",
			ibv_query_gid_table(client.context, entries, ARRAY_SIZE(entries), 0));
}

RULE_CASE(MODIFY_ALT_PATH)
{
	struct ibv_qp_attr attr;

	anew(IBV_QPT_RC);
	endpoint_to_init(&pair.client);
	attr = to_rtr();
	attr.alt_ah_attr = attr.ah_attr;
	attr.alt_port_num = 1;
	refused(&pair.client, attr, RTR_MASK | IBV_QP_ALT_PATH);
	expect_about_qp(
		MODIFY_ALT_PATH, pair.client.qp->qp_num,
		" ibv_modify_qp → EINVAL: an alternate path on port 1 was set, but this device does not migrate paths");
}

RULE_CASE(MODIFIED_TO_ERROR)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	expect_error(ibv_modify_qp(pair.client.qp, &attr, IBV_QP_STATE), 0);
	expect_about_qp(MODIFIED_TO_ERROR, pair.client.qp->qp_num,
			": the program moved the queue pair from RTS to ERR");
}
