/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_fork_init(3), ibv_is_fork_initialized(3). An adapter continues to write to physical pages that the kernel may
 * have given to the child. This device writes to the memory of its process like any other code, so no preparation is
 * needed, before or after memory is registered.
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
