/* SPDX-License-Identifier: BSD-2-Clause */
/* What the links of this process are to the transport, which knows none of them. Constant data. */
#ifndef SOFTHCA_PROCESS_ROUTE_H
#define SOFTHCA_PROCESS_ROUTE_H

#include "core/id_table.h"
#include "wire/routes.h"

extern const struct routes device_routes;

/** Where the numbers of QPs come from (link/host/host.h). */
extern const struct id_source qp_numbers;

#endif
