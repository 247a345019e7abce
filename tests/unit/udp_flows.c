/* SPDX-License-Identifier: BSD-2-Clause */
/* Which identifications the receiver takes of which sender, as docs/wire.md has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "link/udp/flows.h"

/* As docs/wire.md says. */
enum { STEADY = 64, BEHIND = 64, AHEAD = 191 };

static uint16_t last;
static uint32_t row;

/* Each test has flows of its own. */
static struct udp_arrival new_flow(void)
{
	static uint16_t port;

	return (struct udp_arrival){.wire.source.raw = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1}, .source_port = ++port};
}

static bool continues(const struct udp_arrival *flow, uint32_t identification)
{
	const struct ipv4_unseen unseen = {.identification = (uint16_t)identification, .solved = true};

	return udp_flow_continues(flow, &unseen, &last, &row);
}

/* @packets packets, one identification behind the other; all are taken. Returns the one behind them. */
static uint32_t count_up(const struct udp_arrival *flow, uint32_t from, uint32_t packets)
{
	while (packets--)
		assert_true(continues(flow, from++));
	return from;
}

/* ---- tests ---------------------------------------------------------------------------------------------------- */

static void any_at_first(void **state)
{
	struct udp_arrival flow = new_flow();

	(void)state;
	/* Such as a sender that draws them. */
	for (uint32_t i = 0; i < 1000; i++)
		assert_true(continues(&flow, i * 40503));
}

static void near_ones_when_steady(void **state)
{
	static const int32_t steps[] = {-BEHIND, AHEAD, 1, 0, -1, 100, -BEHIND, -BEHIND, AHEAD};
	struct udp_arrival flow = new_flow();
	uint32_t next = count_up(&flow, 65500, STEADY + 1);

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		next = next - 1 + (uint32_t)steps[i];
		assert_true(continues(&flow, next++));
	}
	assert_false(continues(&flow, next + AHEAD));
	assert_int_equal(last, (uint16_t)(next - 1));
	assert_int_equal(row, STEADY + sizeof(steps) / sizeof(steps[0]));
}

static void far_ones_on_both_sides(void **state)
{
	(void)state;
	for (uint32_t distance = AHEAD + 1; distance < 65536 - BEHIND; distance++) {
		struct udp_arrival flow = new_flow();
		uint32_t next = count_up(&flow, distance, STEADY + 1);

		assert_false(continues(&flow, next - 1 + distance));
	}
}

/* One that leaps loses a packet for it, the next time only after twice as many in a row. */
static void leaps(void **state)
{
	struct udp_arrival flow = new_flow();
	uint32_t next = 0, lost = 0;

	(void)state;
	for (int leap = 0; leap < 2000; leap++) {
		next = next + 20000;
		lost += !continues(&flow, next++);
		next = count_up(&flow, next, 100);
	}
	assert_in_range(lost, 1, 17);
	flow = new_flow();
	lost = 0;
	for (uint32_t length = STEADY; length < 100000; length *= 2) {
		assert_true(continues(&flow, next += 20000));
		next = count_up(&flow, next, length - 1);
		assert_true(continues(&flow, next += 20000));
		next = count_up(&flow, next, length + 1);
		assert_false(continues(&flow, next += 20000));
		assert_int_equal(row, length + 1);
		lost++;
	}
	assert_int_equal(lost, 11);
}

/* "Do not fragment" is a part of what a flow has shown. */
static void the_flag(void **state)
{
	struct udp_arrival flow = new_flow();
	uint32_t next = count_up(&flow, 7000, STEADY + 1);
	struct ipv4_unseen unseen = {.identification = (uint16_t)next, .may_fragment = true, .solved = true};

	(void)state;
	assert_false(udp_flow_continues(&flow, &unseen, &last, &row));
	for (int i = 0; i <= STEADY; i++) {
		unseen.identification++;
		assert_true(udp_flow_continues(&flow, &unseen, &last, &row));
	}
}

/* Those whose packets are as expected are known by what is noted of them. */
static void noted(void **state)
{
	struct udp_arrival flow = new_flow();

	(void)state;
	assert_true(continues(&flow, 20000));
	udp_flow_note(&flow, 3, STEADY);
	assert_true(continues(&flow, 63));
	assert_false(continues(&flow, 20001));
	assert_int_equal(last, 63);
}

/* Others in the table change nothing but what they take the place of. */
static void many_flows(void **state)
{
	struct udp_arrival flow = new_flow(), other = flow;
	uint32_t next = count_up(&flow, 1, STEADY + 1);

	(void)state;
	other.wire.source.raw[15]++;
	assert_true(continues(&other, 40000));
	assert_true(continues(&flow, next));
	other = flow;
	for (int i = 0; i < 100000; i++) {
		other.source_port = (uint16_t)(i % 65535 + 1);
		other.wire.source.raw[14] = (uint8_t)(i / 65535 + 1);
		assert_true(continues(&other, (uint32_t)i * 7919));
	}
	/* Forgotten, and met anew. */
	assert_true(continues(&flow, next + 30000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_at_first), cmocka_unit_test(near_ones_when_steady),
		cmocka_unit_test(leaps),        cmocka_unit_test(far_ones_on_both_sides),
		cmocka_unit_test(the_flag),     cmocka_unit_test(noted),
		cmocka_unit_test(many_flows),
	};

	return cmocka_run_group_tests_name("unit/udp_flows", tests, NULL, NULL);
}
