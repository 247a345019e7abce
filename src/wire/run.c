/* SPDX-License-Identifier: BSD-2-Clause */
/* Where packets are handed over, see run.h. */
#include "wire/run.h"

const struct delivery *delivery;
