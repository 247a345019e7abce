/* SPDX-License-Identifier: BSD-2-Clause */
/* main() of programs that do not have one. */
#include "test_case.h"

int main(void)
{
	return run_cases();
}
