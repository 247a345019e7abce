/* SPDX-License-Identifier: BSD-2-Clause */
/* The links, as a table for the transport, which does not include them. Constant data. */
#ifndef SOFTHCA_PROCESS_ROUTE_H
#define SOFTHCA_PROCESS_ROUTE_H

#include "core/id_table.h"
#include "wire/routes.h"

extern const struct routes device_routes;

/** Source of QP numbers (link/host/host.h). */
extern const struct id_source qp_numbers;

#endif
