/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the cases of all rules, and checks that each rule has one. */
#include "rule_cases.h"

static struct rule_case *first; /* in order of their numbers */

void rule_case_register(struct rule_case *new)
{
	struct rule_case **place = &first;

	while (*place && (*place)->rule < new->rule)
		place = &(*place)->next;
	new->next = *place;
	*place = new;
}

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

	for (const struct rule_case *this = first; this; this = this->next)
		count += this->rule == rule;
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

	if (!in_profile(this->profile ? this->profile : "man", this->name))
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
	const char *only = getenv("SOFTHCA_TEST_CASE");
	size_t count = 1;

	for (struct rule_case *this = first; this && count < ARRAY_SIZE(tests); this = this->next)
		tests[count++] = (struct CMUnitTest){this->name, run, NULL, NULL, this};
	setenv("SOFTHCA_MTU", "4096", 1);
	if (only)
		cmocka_set_test_filter(only);
	return _cmocka_run_group_tests("explain/rules", tests, count, NULL, NULL);
}
