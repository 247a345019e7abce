/* SPDX-License-Identifier: BSD-2-Clause */
/* explain/explain, explain/limit: which records a device keeps, and how far strangers can influence them. */
#include "test_case.h"

#include "explain/limit.h"
#include "hca/hca.h"
#include "process/commands.h"

/* Limits that softhca.h promises. */
enum { KEPT = 1024, KEPT_OF_OTHERS = 256 };
enum { QPN = 0x4242, FLOOD = 10000 };

static const struct explain_subject subject = {.qpn = QPN};

static uint64_t explain_own(void)
{
	return EXPLAIN(hca_device(0), &subject, RULE_KEY_RANGE, 7);
}

static uint64_t explain_strangers(uint32_t most)
{
	return EXPLAIN_LIMITED(hca_device(0), &subject, most, RULE_FRAME_ICRC, 8);
}

/* A program finds the cause of its failed request, no matter what strangers send to its queue pairs meanwhile. */
TEST(strangers_push_out_nothing)
{
	struct explain_record record = {.serial = 0};
	uint64_t own = explain_own(), last = 0, count = 0;

	for (int i = 0; i < FLOOD; i++)
		last = explain_strangers(UINT32_MAX);
	assert_int_equal(last, own + FLOOD);
	/* Newest first, both kinds. */
	while (explain_previous(hca_device(0), QPN, record.serial, &record) && record.rule == RULE_FRAME_ICRC)
		assert_int_equal(record.serial, last - count++);
	assert_int_equal(count, KEPT_OF_OTHERS);
	assert_int_equal(record.serial, own);
	assert_int_equal(record.rule, RULE_KEY_RANGE);
	assert_int_equal(record.args[0], 7);
}

/* Nor can own records displace those of strangers; both kinds are returned in the order in which they were made. */
TEST(order_of_both)
{
	struct explain_record record = {.serial = 0};
	uint64_t strangers = explain_strangers(UINT32_MAX), first = explain_own(), between, last, count = 0;

	for (int i = 2; i < KEPT; i++)
		explain_own();
	between = explain_strangers(UINT32_MAX);
	last = explain_own();
	for (uint64_t serial = last; serial >= strangers; serial--, count++) {
		assert_true(explain_previous(hca_device(0), 0, record.serial, &record));
		assert_int_equal(record.serial, serial);
		assert_int_equal(record.rule,
				 serial == strangers || serial == between ? RULE_FRAME_ICRC : RULE_KEY_RANGE);
	}
	assert_int_equal(count, KEPT + 2);
	/* One more record displaces the first of its kind. */
	explain_own();
	assert_true(explain_previous(hca_device(0), 0, first + 1, &record));
	assert_int_equal(record.serial, strangers);
	assert_false(explain_previous(hca_device(0), QPN ^ 1, 0, &record));
}
