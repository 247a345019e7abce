/* SPDX-License-Identifier: BSD-2-Clause */
/* librdmacm.so.1: functions and stubs, generated from the table. */
#include "abi/rdmacm_entry_points.h"

/* After the prototypes, because it defines the expansion of a table line. */
#include "abi/front_end.h"
#include "abi/rdmacm.def"
