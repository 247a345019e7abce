/* SPDX-License-Identifier: BSD-2-Clause */
/* librdmacm.so.1: forwards and stubs, made from the table. */
#include "abi/rdmacm_entry_points.h"

/* Behind the prototypes: it defines what a line of the table becomes. */
#include "abi/front_end.h"
#include "abi/rdmacm.def"
