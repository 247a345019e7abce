/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_modify_qp(3) and ibv_query_qp(3): the tables of required attributes of the page, the transitions of IBTA 10.3.1,
 * values out of range, and "if any of the modify attributes or the modify mask are invalid, none of the attributes will
 * be modified".
 */
#include <fcntl.h>

#include "support/dc.h"
#include "support/program.h"
#include "support/xrc.h"

/* From the man page; each mask also includes the state itself. */
#define INIT_CONNECTED (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define INIT_UD (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define RTR_UC (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RTR_RC (RTR_UC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_RC (IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT)

enum { STEPS = 3, ATTRIBUTES = 25 /* bits up to IBV_QP_DEST_QPN and the rate limit */ };

static const struct {
	enum ibv_qp_type type;
	int required[STEPS];
} types[] = {
	{IBV_QPT_RC, {INIT_CONNECTED, RTR_RC, RTS_RC}},
	{IBV_QPT_UC, {INIT_CONNECTED, RTR_UC, IBV_QP_SQ_PSN}},
	{IBV_QPT_UD, {INIT_UD, 0, IBV_QP_SQ_PSN}},
};

static const enum ibv_qp_state step_state[STEPS] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};

/* Returns valid values for every attribute; zero only where it is the only valid value. */
static struct ibv_qp_attr attributes(enum ibv_qp_state state)
{
	return (struct ibv_qp_attr){
		.qp_state = state,
		.cur_qp_state = state,
		.path_mtu = IBV_MTU_2048,
		.path_mig_state = IBV_MIG_MIGRATED,
		.qkey = 0x1234567,
		.rq_psn = 0xabcdef,
		.sq_psn = 0x123456,
		.dest_qp_num = pair.server.qp->qp_num,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | 0x300, /* and flush, of newer headers */
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .sl = 3,
			    .grh = {.dgid = server.gid,
				    .sgid_index = client.gid_index,
				    .hop_limit = 17,
				    .traffic_class = 5,
				    .flow_label = 0x54321}},
		.max_rd_atomic = 7,
		.max_dest_rd_atomic = 9,
		.min_rnr_timer = 11,
		.port_num = 1,
		.timeout = 13,
		.retry_cnt = 5,
		.rnr_retry = 6,
	};
}

static int modify(struct ibv_qp_attr attr, int mask)
{
	return ibv_modify_qp(pair.client.qp, &attr, mask);
}

static void to_state(enum ibv_qp_state state)
{
	expect_error(modify((struct ibv_qp_attr){.qp_state = state}, IBV_QP_STATE), 0);
}

static struct ibv_qp_attr query(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	memset(&attr, 0, sizeof(attr));
	expect_error(ibv_query_qp(pair.client.qp, &attr, (1 << ATTRIBUTES) - 1, &init), 0);
	return attr;
}

/* Checks that the call fails and changes nothing. */
static void refuse(struct ibv_qp_attr attr, int mask)
{
	enum ibv_qp_state known = pair.client.qp->state;
	struct ibv_qp_attr before = query(), after;

	pair.client.qp->state = known;
	expect_error(modify(attr, mask), EINVAL);
	assert_int_equal(pair.client.qp->state, known);
	after = query();
	assert_memory_equal(&before, &after, sizeof(before));
}

/* Creates a QP of the type in RESET; the steps then modify it. */
static void open_type(size_t t)
{
	struct pair_options options = pair_defaults(types[t].type);

	pair_replace(&pair, &options);
	to_state(IBV_QPS_RESET);
}

static void take_step(size_t t, int step)
{
	expect_error(modify(attributes(step_state[step]), IBV_QP_STATE | types[t].required[step]), 0);
	assert_int_equal(pair.client.qp->state, step_state[step]);
}

/* ---- tables ------------------------------------------------------------------------------------------------- */

TEST(required_attributes)
{
	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		open_type(t);
		for (int step = 0; step < STEPS; step++) {
			for (int bit = 0; bit < ATTRIBUTES; bit++) {
				if (!(types[t].required[step] & 1 << bit))
					continue;
				note("type %d, step %d without attribute 0x%x", types[t].type, step, 1 << bit);
				refuse(attributes(step_state[step]),
				       IBV_QP_STATE | (types[t].required[step] & ~(1 << bit)));
			}
			note("type %d, step %d", types[t].type, step);
			take_step(t, step);
		}
	}
}

/* IBTA table 91: optional attributes. All others are rejected. */
TEST(optional_attributes)
{
	static const int optional[ARRAY_SIZE(types)][STEPS] = {
		{0, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
		 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
		{0, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
		 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE},
		{0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY, IBV_QP_CUR_STATE | IBV_QP_QKEY},
	};

	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		open_type(t);
		for (int step = 0; step < STEPS; step++) {
			struct ibv_qp_attr attr = attributes(step_state[step]);
			int mask = IBV_QP_STATE | types[t].required[step];

			attr.cur_qp_state = pair.client.qp->state;
			for (int bit = 0; bit < ATTRIBUTES; bit++) {
				note("type %d, step %d with attribute 0x%x", types[t].type, step, 1 << bit);
				if (!((mask | optional[t][step]) & 1 << bit))
					refuse(attr, mask | 1 << bit);
			}
			expect_error(modify(attr, mask | optional[t][step]), 0);
		}
	}
}

TEST(transitions)
{
	/* Rows: from RESET, INIT, RTR, RTS, SQD, ERR. Bits: to enum ibv_qp_state. Required attributes are given. */
	enum {
		R = 1 << IBV_QPS_RESET,
		I = 1 << IBV_QPS_INIT,
		T = 1 << IBV_QPS_RTR,
		S = 1 << IBV_QPS_RTS,
		D = 1 << IBV_QPS_SQD,
		E = 1 << IBV_QPS_ERR
	};
	static const struct {
		enum ibv_qp_state from;
		int to;
	} allowed[] = {
		{IBV_QPS_RESET, R | I | E},   {IBV_QPS_INIT, R | I | T | E}, {IBV_QPS_RTR, R | S | E},
		{IBV_QPS_RTS, R | S | D | E}, {IBV_QPS_SQD, R | S | D | E},  {IBV_QPS_ERR, R | E},
	};

	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		for (size_t i = 0; i < ARRAY_SIZE(allowed); i++) {
			for (int to = IBV_QPS_RESET; to <= IBV_QPS_UNKNOWN + 1; to++) {
				enum ibv_qp_state from = allowed[i].from;
				int mask = IBV_QP_STATE;

				open_type(t);
				for (int step = 0; step < STEPS && from >= step_state[step] && from != IBV_QPS_ERR;
				     step++)
					take_step(t, step);
				if (from == IBV_QPS_SQD || from == IBV_QPS_ERR)
					to_state(from);
				note("type %d from %d to %d", types[t].type, from, to);
				for (int step = 0; step < STEPS; step++)
					if (to == (int)step_state[step] && (int)from + 1 == to)
						mask |= types[t].required[step];
				if (to > IBV_QPS_ERR || !(allowed[i].to & 1 << to))
					refuse(attributes((enum ibv_qp_state)to), mask);
				else
					expect_error(modify(attributes((enum ibv_qp_state)to), mask), 0);
			}
		}
	}
}

/* ---- values ------------------------------------------------------------------------------------------------- */

#define REFUSE_VALUE(field, value)                                                                                     \
	do {                                                                                                           \
		struct ibv_qp_attr attr_ = attributes(step_state[step]);                                               \
		note(#field " = " #value);                                                                             \
		attr_.field = (value);                                                                                 \
		refuse(attr_, IBV_QP_STATE | types[0].required[step]);                                                 \
	} while (0)

TEST(values_out_of_range)
{
	int step = 0;

	open_type(0);
	REFUSE_VALUE(port_num, 0);
	REFUSE_VALUE(port_num, 2);
	REFUSE_VALUE(pkey_index, 1);
	take_step(0, step++);
	REFUSE_VALUE(path_mtu, 0);
	REFUSE_VALUE(path_mtu, IBV_MTU_4096 + 1);
	REFUSE_VALUE(dest_qp_num, 1 << 24);
	REFUSE_VALUE(max_dest_rd_atomic, 17);
	REFUSE_VALUE(min_rnr_timer, 32);
	REFUSE_VALUE(ah_attr.port_num, 0);
	REFUSE_VALUE(ah_attr.port_num, 2);
	REFUSE_VALUE(ah_attr.is_global, 0);
	REFUSE_VALUE(ah_attr.grh.sgid_index, 255);
	take_step(0, step++);
	REFUSE_VALUE(timeout, 32);
	REFUSE_VALUE(retry_cnt, 8);
	REFUSE_VALUE(rnr_retry, 8);
	REFUSE_VALUE(max_rd_atomic, 17);
	take_step(0, step);
}

/* "Not all devices support alternate paths": this device does not have IBV_DEVICE_AUTO_PATH_MIG. */
TEST(no_alternate_path)
{
	struct ibv_qp_attr attr = attributes(IBV_QPS_RTR);
	struct ibv_device_attr device;

	expect_error(ibv_query_device(client.context, &device), 0);
	assert_false(device.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG);
	open_type(0);
	take_step(0, 0);
	attr.alt_ah_attr = attr.ah_attr;
	attr.alt_port_num = 1;
	attr.alt_timeout = 14;
	refuse(attr, IBV_QP_STATE | RTR_RC | IBV_QP_ALT_PATH);
}

/* Bits that are not in the man page, and bits that belong to another call. */
TEST(unknown_masks)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = attributes(IBV_QPS_INIT);

	open_type(0);
	expect_error(ibv_modify_qp(pair.client.qp, &attr, IBV_QP_STATE | INIT_CONNECTED | 1 << 26), EOPNOTSUPP);
	refuse(attr, IBV_QP_STATE | INIT_CONNECTED | IBV_QP_CAP);
	refuse(attr, IBV_QP_STATE | INIT_CONNECTED | IBV_QP_RATE_LIMIT);
	expect_error(ibv_query_qp(pair.client.qp, &attr, IBV_QP_RATE_LIMIT, &init), EOPNOTSUPP);
	assert_int_equal(pair.client.qp->state, IBV_QPS_RESET);
}

/* ---- queries return what was set ---------------------------------------------------------------------------- */

TEST(query_returns_the_set_values)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr set, got;

	open_type(0);
	set = attributes(IBV_QPS_RTS);
	for (int step = 0; step < STEPS; step++)
		take_step(0, step);
	memset(&got, 0xa5, sizeof(got));
	memset(&init, 0xa5, sizeof(init));
	expect_error(ibv_query_qp(pair.client.qp, &got, IBV_QP_STATE, &init), 0);
	assert_int_equal(got.qp_state, IBV_QPS_RTS);
	assert_int_equal(got.path_mtu, set.path_mtu);
	assert_int_equal(got.rq_psn, set.rq_psn);
	assert_int_equal(got.sq_psn, set.sq_psn);
	assert_int_equal(got.dest_qp_num, set.dest_qp_num);
	assert_int_equal(got.qp_access_flags, set.qp_access_flags);
	assert_int_equal(got.pkey_index, set.pkey_index);
	assert_int_equal(got.port_num, set.port_num);
	assert_int_equal(got.max_rd_atomic, set.max_rd_atomic);
	assert_int_equal(got.max_dest_rd_atomic, set.max_dest_rd_atomic);
	assert_int_equal(got.min_rnr_timer, set.min_rnr_timer);
	assert_int_equal(got.timeout, set.timeout);
	assert_int_equal(got.retry_cnt, set.retry_cnt);
	assert_int_equal(got.rnr_retry, set.rnr_retry);
	assert_int_equal(got.sq_draining, 0);
	assert_memory_equal(&got.ah_attr.grh.dgid, &set.ah_attr.grh.dgid, sizeof(union ibv_gid));
	assert_int_equal(got.ah_attr.grh.sgid_index, set.ah_attr.grh.sgid_index);
	/* The kernel sets the hop limit of the route (ib_resolve_unicast_gid_dmac()). */
	assert_int_equal(got.ah_attr.grh.hop_limit, 64);
	assert_int_equal(got.ah_attr.grh.traffic_class, set.ah_attr.grh.traffic_class);
	assert_int_equal(got.ah_attr.grh.flow_label, set.ah_attr.grh.flow_label);
	assert_int_equal(got.ah_attr.is_global, 1);
	assert_int_equal(got.ah_attr.port_num, 1);
	assert_int_equal(got.ah_attr.sl, set.ah_attr.sl);
	assert_memory_equal(&got.cap, &pair.client.cap, sizeof(got.cap));

	assert_ptr_equal(init.send_cq, pair.client.cq);
	assert_ptr_equal(init.recv_cq, pair.client.cq);
	assert_null(init.srq);
	assert_int_equal(init.qp_type, IBV_QPT_RC);
	assert_int_equal(init.sq_sig_all, 0);
	assert_memory_equal(&init.cap, &pair.client.cap, sizeof(init.cap));

	/* UD keeps its Q_Key. */
	open_type(2);
	take_step(2, 0);
	assert_int_equal(query().qkey, set.qkey);
}

/*
 * Checks the initial attributes of a QP. @has_path: the QP has an address vector and a path MTU. ibv_modify_qp(3)
 * accepts that MTU, because SPDK 24.01 passes the attributes of a new QP back to it.
 */
#define expect_fresh(qp, has_path) expect_fresh_(HERE, qp, has_path)
static void expect_fresh_(struct place place, struct ibv_qp *qp, bool has_path)
{
	struct ibv_qp_attr got = {.port_num = 77};
	struct ibv_qp_init_attr init;
	struct ibv_port_attr port;

	expect_error_(place, "ibv_query_qp()", ibv_query_qp(qp, &got, IBV_QP_PKEY_INDEX | IBV_QP_PORT, &init), 0);
	if (got.port_num != 1 || got.pkey_index || got.max_rd_atomic != 1 || got.max_dest_rd_atomic != 1)
		fail_at(place, "port %d, pkey_index %d, max_rd_atomic %d, max_dest_rd_atomic %d", got.port_num,
			got.pkey_index, got.max_rd_atomic, got.max_dest_rd_atomic);
	if (got.ah_attr.port_num != has_path || got.ah_attr.is_global != has_path)
		fail_at(place, "path: port %d, is_global %d", got.ah_attr.port_num, got.ah_attr.is_global);
	if (has_path && (got.path_mtu < IBV_MTU_256 || got.path_mtu > IBV_MTU_4096))
		fail_at(place, "path_mtu %d", got.path_mtu);
	expect_error_(place, "ibv_query_port()", ibv_query_port(qp->context, got.port_num, &port), 0);
}

/* mlx5-formats 4.1, "A fresh QP": in RESET, in INIT, and in RESET again. */
TEST(query_of_a_fresh_qp)
{
	struct ibv_xrcd *xrcd = expect_xrcd(client.context, -1, O_CREAT);
	struct ibv_qp *send, *receive = xrc_create_recv(xrcd);
	struct dci_options options = dci_defaults();
	struct dci dci;

	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		bool has_path = types[t].type != IBV_QPT_UD;

		note("type %d", types[t].type);
		open_type(t);
		expect_fresh(pair.client.qp, has_path);
		take_step(t, 0);
		expect_fresh(pair.client.qp, has_path);
		for (int step = 1; step < STEPS; step++)
			take_step(t, step);
		to_state(IBV_QPS_RESET);
		expect_fresh(pair.client.qp, has_path);
	}
	send = xrc_create_send(&client, pair.client.cq);
	expect_fresh(send, true);
	expect_fresh(receive, true);
	expect_error(ibv_destroy_qp(send), 0);
	expect_error(ibv_destroy_qp(receive), 0);
	expect_error(ibv_close_xrcd(xrcd), 0);
	dci_create(&dci, &client, &server, &options);
	expect_fresh(dci.end.qp, false);
	dci_close(&dci);
}

/* Programs compiled before rate_limit was added have a shorter structure, followed by other data. */
TEST(query_of_old_programs_writes_no_more_than_they_have)
{
	struct {
		struct ibv_qp_attr attr;
		uint8_t rest[64];
	} buffer;
	struct ibv_qp_init_attr init;
	uint8_t *bytes = (uint8_t *)&buffer;

	memset(&buffer, 0xa5, sizeof(buffer));
	expect_error(ibv_query_qp(pair.client.qp, &buffer.attr, IBV_QP_STATE, &init), 0);
	for (size_t i = offsetof(struct ibv_qp_attr, rate_limit); i < sizeof(buffer); i++)
		assert_int_equal(bytes[i], 0xa5);
}
