/* SPDX-License-Identifier: BSD-2-Clause */
/* QP types for which verbs.h has no name. */
#ifndef SOFTHCA_FORMAT_QP_TYPES_H
#define SOFTHCA_FORMAT_QP_TYPES_H

#include <infiniband/verbs.h>

/* IBV_QPT_DRIVER is one value for all types of all vendors. Inside the device each type has its own value. */
#define QP_TYPE_DCI ((enum ibv_qp_type)30)
#define QP_TYPE_DCT ((enum ibv_qp_type)31)

#endif
