/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 233 and 234: fault scripts. */
#include "rule_cases.h"

RULE_CASE(FAULT_SCRIPT)
{
	expect_error(softhca_set_faults(client.context, "drop 1%\nreorder 2% bye 3", NULL, 0), EINVAL);
	expect_refusal(FAULT_SCRIPT, "softhca_set_faults → EINVAL: the fault script is wrong at line 2, column 12");
}

RULE_CASE(FAULT_FILE)
{
	expect_error(softhca_set_faults(client.context, "/", NULL, 0), EISDIR);
	expect_refusal(FAULT_FILE, "softhca_set_faults → EISDIR: the fault script cannot be read: EISDIR");
}
