/* SPDX-License-Identifier: BSD-2-Clause */
/* As abi/entry_points.h, for abi/rdmacm.def. Separate, because verbs do not need these. */
#ifndef SOFTHCA_ABI_RDMACM_ENTRY_POINTS_H
#define SOFTHCA_ABI_RDMACM_ENTRY_POINTS_H

#include <poll.h>
#include <stdint.h>
#include <sys/select.h>
#include <sys/types.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>

#include "abi/undeclared_rdmacm.h"
#include "core/visibility.h"

#define ENTRY_IMPLEMENTED(body, type, parameters) SOFTHCA_API type body parameters;
#define ENTRY_LATER(body, type, parameters)

#define SYMBOL(name, version, state, kind, test, type, parameters, arguments)                                          \
	ENTRY_##state(softhca_##name, type, parameters)
#include "abi/rdmacm.def"

#undef ENTRY_IMPLEMENTED
#undef ENTRY_LATER

#endif
