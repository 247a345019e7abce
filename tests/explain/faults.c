/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 233 and 234: fault scripts. */
#include "rule_cases.h"

static void fault_script(void)
{
	expect_error(softhca_set_faults(client.context, "drop 1%\nreorder 2% bye 3", NULL, 0), EINVAL);
	expect_refusal(FAULT_SCRIPT, "softhca_set_faults → EINVAL: the fault script is wrong at line 2, column 12");
}

static void fault_file(void)
{
	expect_error(softhca_set_faults(client.context, "/", NULL, 0), EISDIR);
	expect_refusal(FAULT_FILE, "softhca_set_faults → EISDIR: the fault script cannot be read: EISDIR");
}

static const struct rule_case cases[] = {
	CASE(FAULT_SCRIPT, fault_script),
	CASE(FAULT_FILE, fault_file),
};

RULE_CASES(fault_cases, cases);
