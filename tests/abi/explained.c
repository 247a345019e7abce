/* SPDX-License-Identifier: BSD-2-Clause */
/* A call that is not implemented is explained: the explanation has its name and refers to documentation. */
#include "test_case.h"

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "process/commands.h"

TEST(test_not_supported)
{
	struct explain_record record;
	struct hca *hca;
	char text[1000];

	assert_true(hca_count() > 0);
	hca = hca_device(0);
	assert_int_equal(softhca_not_supported("mlx5dv_dr_domain_create"), EOPNOTSUPP);
	assert_int_equal(explain_previous(hca, 0, 0, &record), 1);
	assert_int_equal(record.rule, RULE_CALL_NOT_IMPLEMENTED);
	assert_int_equal(record.subject.error, EOPNOTSUPP);
	explain_render(hca_name(hca), &record, text, sizeof(text));
	assert_non_null(strstr(text, "mlx5dv_dr_domain_create"));
	assert_non_null(strstr(text, "docs/reference/api.md"));
}
