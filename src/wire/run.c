/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface of the transport for links, see run.h. */
#include "wire/run.h"

const struct delivery *delivery;
