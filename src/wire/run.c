/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface of the transport for links. */
#include "wire/run.h"

const struct delivery *delivery;
