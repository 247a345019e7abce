/* SPDX-License-Identifier: BSD-2-Clause */
/* The devices of the process (device.h), and the functions that revoke grants of their memory (grants.h). */
#include "device/device.h"
#include "device/grants.h"

struct registry the_registry;
const struct grants *grants;
