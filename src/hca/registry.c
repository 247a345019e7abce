/* SPDX-License-Identifier: BSD-2-Clause */
/* The devices of the process (hca.h), and the functions that revoke grants of their memory (grants.h). */
#include "hca/hca.h"
#include "hca/grants.h"

struct registry the_registry;
const struct grants *grants;
