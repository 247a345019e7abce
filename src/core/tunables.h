/* SPDX-License-Identifier: BSD-2-Clause */
/* TUNABLE_POLL_LOOK_NS, …: the values of tunables.def. */
#ifndef SOFTHCA_CORE_TUNABLES_H
#define SOFTHCA_CORE_TUNABLES_H

enum {
#define TUNABLE(NAME, value, ...) TUNABLE_##NAME = (value),
#include "core/tunables.def"
};

#endif
