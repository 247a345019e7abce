/* SPDX-License-Identifier: BSD-2-Clause */
/* main() of programs that do not have one. */
#include "support/program.h"

int main(void)
{
	return run_program();
}
