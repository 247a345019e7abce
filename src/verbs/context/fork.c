/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adapters need preparations because they continue to write to physical pages that the kernel may have given to the
 * child. This device writes to the memory of its process like any other code.
 */
#include "abi/entry_points.h"
#include "verbs/object/lint.h"

int softhca_ibv_fork_init(void)
{
	lint_fork_prepared();
	return 0;
}

enum ibv_fork_status softhca_ibv_is_fork_initialized(void)
{
	lint_fork_prepared();
	return IBV_FORK_UNNEEDED;
}

int softhca_ibv_dontfork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}

int softhca_ibv_dofork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}
