/* SPDX-License-Identifier: BSD-2-Clause */
/* QP types without a name in verbs.h. */
#ifndef SOFTHCA_FORMAT_QP_TYPES_H
#define SOFTHCA_FORMAT_QP_TYPES_H

#include <infiniband/verbs.h>

/* IBV_QPT_DRIVER is one value for all types of all vendors, so each type has its own here. */
#define QP_TYPE_DCI ((enum ibv_qp_type)30)
#define QP_TYPE_DCT ((enum ibv_qp_type)31)

#endif
