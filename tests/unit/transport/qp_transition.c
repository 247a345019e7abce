/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of state transitions: required attributes from the tables in NOTES of ibv_modify_qp(3), the others from the
 * tables of IBTA 11.2.5.2, which the kernel enforces on a real adapter; those of DC from the kernel's mlx5 driver.
 */
#include "test_case.h"

#include "process/commands.h"
#include "transport/control/state.h"

enum { TYPES = 5, STATES = IBV_QPS_ERR + 1, LAST_ATTRIBUTE = 20 /* IBV_QP_DEST_QPN */ };

static const enum ibv_qp_type types[TYPES] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV};

/* Required, then optional attributes, for RC, UC, UD, XRC_SEND, XRC_RECV. */
struct row {
	enum ibv_qp_state from, to;
	int required[TYPES], optional[TYPES];
};

/* Short names for the columns. */
enum {
	CUR = IBV_QP_CUR_STATE,
	SQD_EVENT = IBV_QP_EN_SQD_ASYNC_NOTIFY,
	ACCESS = IBV_QP_ACCESS_FLAGS,
	PKEY = IBV_QP_PKEY_INDEX,
	PORT = IBV_QP_PORT,
	QKEY = IBV_QP_QKEY,
	AV = IBV_QP_AV,
	MTU = IBV_QP_PATH_MTU,
	TIMEOUT = IBV_QP_TIMEOUT,
	RETRY = IBV_QP_RETRY_CNT,
	RNR = IBV_QP_RNR_RETRY,
	RQ_PSN = IBV_QP_RQ_PSN,
	SQ_PSN = IBV_QP_SQ_PSN,
	RD = IBV_QP_MAX_QP_RD_ATOMIC,
	DEST_RD = IBV_QP_MAX_DEST_RD_ATOMIC,
	ALT = IBV_QP_ALT_PATH,
	MIN_RNR = IBV_QP_MIN_RNR_TIMER,
	MIG = IBV_QP_PATH_MIG_STATE,
	DEST = IBV_QP_DEST_QPN,
};

static const struct row rows[] = {
	/*
	 * ibv_modify_qp(3): Reset --> Init --> RTR --> RTS; for XRC the table of the kernel: each end requires the
	 * attributes of its half.
	 */
	{IBV_QPS_RESET,
	 IBV_QPS_INIT,
	 {PKEY | PORT | ACCESS, PKEY | PORT | ACCESS, PKEY | PORT | QKEY, PKEY | PORT | ACCESS, PKEY | PORT | ACCESS},
	 {0, 0, 0, 0, 0}},
	{IBV_QPS_INIT,
	 IBV_QPS_RTR,
	 {AV | MTU | DEST | RQ_PSN | DEST_RD | MIN_RNR, AV | MTU | DEST | RQ_PSN, 0, AV | MTU | DEST | RQ_PSN,
	  AV | MTU | DEST | RQ_PSN | DEST_RD | MIN_RNR},
	 {ALT | ACCESS | PKEY, ALT | ACCESS | PKEY, PKEY | QKEY, ALT | ACCESS | PKEY, ALT | ACCESS | PKEY}},
	{IBV_QPS_RTR,
	 IBV_QPS_RTS,
	 {SQ_PSN | RD | RETRY | RNR | TIMEOUT, SQ_PSN, SQ_PSN, SQ_PSN | RD | RETRY | RNR | TIMEOUT, SQ_PSN | TIMEOUT},
	 {CUR | ALT | ACCESS | MIN_RNR | MIG, CUR | ALT | ACCESS | MIG, CUR | QKEY, CUR | ALT | ACCESS | MIG,
	  CUR | ALT | ACCESS | MIN_RNR | MIG}},
	/* IBTA 11.2.5.2: the others require nothing. */
	{IBV_QPS_INIT,
	 IBV_QPS_INIT,
	 {0, 0, 0, 0, 0},
	 {PKEY | PORT | ACCESS, PKEY | PORT | ACCESS, PKEY | PORT | QKEY, PKEY | PORT | ACCESS, PKEY | PORT | ACCESS}},
	{IBV_QPS_RTS,
	 IBV_QPS_RTS,
	 {0, 0, 0, 0, 0},
	 {CUR | ACCESS | ALT | MIG | MIN_RNR, CUR | ACCESS | ALT | MIG, CUR | QKEY, CUR | ACCESS | ALT | MIG,
	  CUR | ACCESS | ALT | MIG | MIN_RNR}},
	{IBV_QPS_RTS, IBV_QPS_SQD, {0, 0, 0, 0, 0}, {SQD_EVENT, SQD_EVENT, SQD_EVENT, SQD_EVENT, SQD_EVENT}},
	{IBV_QPS_SQD,
	 IBV_QPS_RTS,
	 {0, 0, 0, 0, 0},
	 {CUR | ALT | ACCESS | MIN_RNR | MIG, CUR | ALT | ACCESS | MIG, CUR | QKEY, CUR | ALT | ACCESS | MIG,
	  CUR | ALT | ACCESS | MIN_RNR | MIG}},
	{IBV_QPS_SQD,
	 IBV_QPS_SQD,
	 {0, 0, 0, 0, 0},
	 {PORT | AV | TIMEOUT | RETRY | RNR | RD | DEST_RD | ALT | ACCESS | PKEY | MIN_RNR | MIG,
	  AV | ALT | ACCESS | PKEY | MIG, PKEY | QKEY,
	  PORT | AV | TIMEOUT | RETRY | RNR | RD | ALT | ACCESS | PKEY | MIG,
	  PORT | AV | TIMEOUT | DEST_RD | ALT | ACCESS | PKEY | MIN_RNR | MIG}},
};

/* UC and UD only: a reliable QP has no SQE. */
static const struct row out_of_error = {
	IBV_QPS_SQE, IBV_QPS_RTS, {-1, 0, 0, -1, -1}, {0, CUR | ACCESS, CUR | QKEY, 0, 0}};

static const struct row *find(enum ibv_qp_state from, enum ibv_qp_state to, int type)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].from == from && rows[i].to == to)
			return &rows[i];
	return from == IBV_QPS_SQE && to == IBV_QPS_RTS && out_of_error.required[type] >= 0 ? &out_of_error : NULL;
}

static int check(int type, enum ibv_qp_state from, enum ibv_qp_state to, int mask, struct refusal *why)
{
	return qp_transition_check(type, from, to, mask | IBV_QP_STATE, why);
}

/* Expects every missing or extra attribute to be found and named. */
static void check_lists(int type, enum ibv_qp_state from, enum ibv_qp_state to, int required, int optional)
{
	struct refusal why;

	assert_int_equal(check(type, from, to, required, &why), 0);
	assert_int_equal(check(type, from, to, required | optional, &why), 0);
	for (int bit = 1; bit <= 1 << LAST_ATTRIBUTE; bit <<= 1) {
		if (bit == IBV_QP_STATE || bit == IBV_QP_CAP)
			continue;
		if (required & bit) {
			assert_int_equal(check(type, from, to, (required | optional) & ~bit, &why), -EINVAL);
			assert_int_equal(why.rule, RULE_MODIFY_MISSING);
			assert_int_equal(why.args[3], bit);
		} else if (optional & bit) {
			assert_int_equal(check(type, from, to, required | bit, &why), 0);
		} else {
			if (check(type, from, to, required | bit, &why) != -EINVAL)
				fail_msg("type %d from %d to %d takes attribute %#x", type, from, to, bit);
			assert_int_equal(why.rule, RULE_MODIFY_NOT_ALLOWED);
			assert_int_equal(why.args[3], bit);
		}
	}
}

static void check_absent(int type, enum ibv_qp_state from, enum ibv_qp_state to)
{
	struct refusal why;

	if (check(type, from, to, 0, &why) != -EINVAL)
		fail_msg("type %d goes from %d to %d", type, from, to);
	assert_int_equal(why.rule, RULE_MODIFY_TRANSITION);
}

TEST(transitions)
{
	for (int type = 0; type < TYPES; type++) {
		for (int from = IBV_QPS_RESET; from < STATES; from++) {
			for (int to = IBV_QPS_RESET; to < STATES; to++) {
				const struct row *row = find(from, to, type);

				if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
					continue;
				if (row)
					check_lists(types[type], from, to, row->required[type], row->optional[type]);
				else
					check_absent(types[type], from, to);
			}
		}
	}
}

static void check_reset_and_error(int type)
{
	struct refusal why;

	for (int from = IBV_QPS_RESET; from < STATES; from++) {
		assert_int_equal(check(type, from, IBV_QPS_RESET, 0, &why), 0);
		if (from != IBV_QPS_RESET)
			assert_int_equal(check(type, from, IBV_QPS_ERR, 0, &why), 0);
		for (int bit = 1; bit <= 1 << LAST_ATTRIBUTE; bit <<= 1) {
			if (bit == IBV_QP_STATE || bit == IBV_QP_CUR_STATE)
				continue;
			assert_int_equal(check(type, from, IBV_QPS_RESET, bit, &why), -EINVAL);
			assert_int_equal(check(type, from, IBV_QPS_ERR, bit, &why), -EINVAL);
		}
	}
}

/* IBTA 10.3.1: RESET from any state, ERR from any state except RESET; neither takes attributes. */
TEST(reset_and_error)
{
	for (int type = 0; type < TYPES; type++)
		check_reset_and_error(types[type]);
	check_reset_and_error(QP_TYPE_DCI);
}

static const struct dc_row {
	int type;
	enum ibv_qp_state from, to;
	int required, optional;
} dc_rows[] = {
	{QP_TYPE_DCI, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT, 0},
	{QP_TYPE_DCI, IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT},
	{QP_TYPE_DCI, IBV_QPS_INIT, IBV_QPS_RTR, MTU, PKEY | AV},
	{QP_TYPE_DCI, IBV_QPS_RTR, IBV_QPS_RTS, TIMEOUT | RETRY | RNR | RD | SQ_PSN, MIN_RNR},
	{QP_TYPE_DCI, IBV_QPS_RTS, IBV_QPS_RTS, 0, MIN_RNR},
	/* The kernel differs; see states.def. */
	{QP_TYPE_DCI, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | MIN_RNR},
	/* A DCT has no other transition: it is created, and serves until it is destroyed. */
	{QP_TYPE_DCT, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | ACCESS, 0},
	{QP_TYPE_DCT, IBV_QPS_INIT, IBV_QPS_RTR, AV | MTU | MIN_RNR, 0},
};

static const struct dc_row *find_dc(int type, enum ibv_qp_state from, enum ibv_qp_state to)
{
	for (size_t i = 0; i < sizeof(dc_rows) / sizeof(dc_rows[0]); i++)
		if (dc_rows[i].type == type && dc_rows[i].from == from && dc_rows[i].to == to)
			return &dc_rows[i];
	return NULL;
}

TEST(transitions_of_dc)
{
	for (int type = QP_TYPE_DCI; type <= (int)QP_TYPE_DCT; type++) {
		for (int from = IBV_QPS_RESET; from < STATES; from++) {
			for (int to = IBV_QPS_RESET; to < STATES; to++) {
				const struct dc_row *row = find_dc(type, from, to);

				if (type == QP_TYPE_DCI && (to == IBV_QPS_RESET || to == IBV_QPS_ERR))
					continue;
				if (row)
					check_lists(type, from, to, row->required, row->optional);
				else
					check_absent(type, from, to);
			}
		}
	}
}
