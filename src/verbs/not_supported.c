/* SPDX-License-Identifier: BSD-2-Clause */
/* The answer of every symbol that has no body: EOPNOTSUPP, with an explanation that names the call. */
#include <errno.h>

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "hca/hca.h"

int softhca_not_supported(const char *call)
{
	struct hca *hca = hca_count() > 0 ? hca_device(0) : NULL;

	/*
	 * Arguments are not looked at, so no object tells which device was meant: the first one keeps the
	 * record.
	 */
	return hca ? REFUSE(hca, call, EOPNOTSUPP, RULE_CALL_NOT_IMPLEMENTED, 0) : EOPNOTSUPP;
}
