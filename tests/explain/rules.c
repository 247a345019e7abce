/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the cases of all rules, and checks that each rule has one. */
#include "rule_cases.h"

#include <stdio.h>

static const struct rule_cases *const tables[] = {
	&key_cases,
	&umr_cases,
	&block_cases,
	&wqe_cases,
	&traffic_cases,
	&state_cases,
	&query_cases,
	&object_cases,
	&region_cases,
	&queue_cases,
	&qp_cases,
	&post_cases,
	&mlx5dv_cases,
	&crypto_cases,
	&devx_cases,
	&signature_cases,
	&dc_cases,
	&xrc_cases,
	&fault_cases,
	&rdmacm_id_cases,
	&rdmacm_address_cases,
	&rdmacm_qp_cases,
	&rdmacm_connect_cases,
	&rsocket_cases,
	&misuse_cases,
	&misuse_event_cases,
	&misuse_block_cases,
	&misuse_end_cases,
};

static const struct {
	uint32_t rule;
	const char *name;
} rules[] = {
#define RULE(number, name, text, source, advice) {number, #name},
#include "explain/rules.def"
#undef RULE
};

static const uint32_t beyond[] = {
#define BEYOND(rule, reason) RULE_##rule,
#include "beyond.def"
#undef BEYOND
};

static uint32_t expected_rule;
static bool expected_own;

void rule_was_expected(uint32_t rule)
{
	expected_own |= rule == expected_rule;
}

static size_t cases_of(uint32_t rule)
{
	size_t count = 0;

	for (size_t t = 0; t < ARRAY_SIZE(tables); t++)
		for (size_t i = 0; i < tables[t]->count; i++)
			count += tables[t]->cases[i].rule == rule;
	return count;
}

static bool is_beyond(uint32_t rule)
{
	for (size_t i = 0; i < ARRAY_SIZE(beyond); i++)
		if (beyond[i] == rule)
			return true;
	return false;
}

static void every_rule_has_a_case(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		size_t count = cases_of(rules[i].rule);

		if (is_beyond(rules[i].rule) ? count != 0 : count != 1)
			fail_at(HERE, "rule %u %s has %zu cases%s", rules[i].rule, rules[i].name, count,
				is_beyond(rules[i].rule) ? " and is in beyond.def" : "");
	}
}

static void run(void **state)
{
	const struct rule_case *this = *state;

	if (!in_profile(this->profile, this->name))
		return;
	if (this->crypto && !in_setting("SOFTHCA_CRYPTO", this->crypto, "plaintext", this->name))
		return;
	if (this->lint && !in_setting("SOFTHCA_LINT", this->lint, "off", this->name))
		return;
	program_open(state);
	expected_rule = this->rule;
	expected_own = false;
	this->provoke();
	if (!expected_own)
		fail_at(HERE, "the case of rule %u does not expect it", this->rule);
	program_close(state);
}

int main(void)
{
	static struct CMUnitTest tests[1 + ARRAY_SIZE(rules)] = {cmocka_unit_test(every_rule_has_a_case)};
	size_t count = 1;

	for (size_t t = 0; t < ARRAY_SIZE(tables); t++)
		for (size_t i = 0; i < tables[t]->count && count < ARRAY_SIZE(tests); i++)
			tests[count++] = (struct CMUnitTest){tables[t]->cases[i].name, run, NULL, NULL,
							     (void *)&tables[t]->cases[i]};
	setenv("SOFTHCA_MTU", "4096", 1);
	program_choose_case();
	return _cmocka_run_group_tests("explain/rules", tests, count, NULL, NULL);
}
