/* SPDX-License-Identifier: BSD-2-Clause */
/* Refuses every symbol that has no implementation: EOPNOTSUPP, with an explanation that names the call. */
#include <errno.h>

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "process/commands.h"

/* No object identifies the device, since the arguments are not read: the first one keeps the record. */
static int call_refuse(const char *call, bool expected)
{
	const struct explain_subject subject = {.call = call, .error = EOPNOTSUPP, .expected = expected};

	if (hca_count() > 0)
		EXPLAIN(hca_device(0), &subject, RULE_CALL_NOT_IMPLEMENTED, 0);
	return EOPNOTSUPP;
}

int softhca_not_supported(const char *call)
{
	return call_refuse(call, false);
}

int softhca_not_offered(const char *call)
{
	return call_refuse(call, true);
}
