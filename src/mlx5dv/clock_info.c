/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_get_clock_info(3): how mlx5dv_ts_to_ns(3) turns a CQE's timestamp into wall-clock time. The device
 * counts nanoseconds, so the factor is 1; what varies is the distance to the wall clock, which may be set.
 */
#include <time.h>

#include "abi/entry_points.h"
#include "core/limits.h"
#include "verbs/object/objects.h"

int softhca_mlx5dv_get_clock_info(struct ibv_context *context, struct mlx5dv_clock_info *info)
{
	struct timespec wall;

	info->last_cycles = hca_clock_ns(hca_of_context(context)) & LIMIT_TIMESTAMP_MASK;
	clock_gettime(CLOCK_REALTIME, &wall);
	info->nsec = (uint64_t)wall.tv_sec * 1000000000 + (uint64_t)wall.tv_nsec;
	info->frac = 0;
	info->mult = 1;
	info->shift = 0;
	info->mask = LIMIT_TIMESTAMP_MASK;
	return 0;
}
