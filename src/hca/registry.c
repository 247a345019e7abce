/* SPDX-License-Identifier: BSD-2-Clause */
/* The devices of the process. */
#include "hca/hca.h"
#include "hca/grants.h"

struct registry the_registry;
const struct grants *grants;
