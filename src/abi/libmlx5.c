/* SPDX-License-Identifier: BSD-2-Clause */
/* libmlx5.so.1: functions and stubs, generated from the table. */
#include "abi/front_end.h"
#include "abi/mlx5dv.def"
