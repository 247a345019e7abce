/* SPDX-License-Identifier: BSD-2-Clause */
/* libibverbs.so.1: functions and stubs, generated from the table. */
#include "abi/front_end.h"
#include "abi/verbs.def"
