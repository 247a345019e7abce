/* SPDX-License-Identifier: BSD-2-Clause */
/* Fields in the context of a QP. */
#ifndef SOFTHCA_DEVX_QP_CONTEXT_H
#define SOFTHCA_DEVX_QP_CONTEXT_H

/* st: service */
enum { SERVICE_RC = 0, SERVICE_UC = 1, SERVICE_UD = 2, SERVICE_XRC = 3, SERVICE_DCI = 5, SERVICE_DCT = 6 };

/* rq_type */
enum { RECEIVE_QUEUE = 0, RECEIVE_SHARED = 1, RECEIVE_NONE = 3 };

/* cs_req: up to half of a CQE may contain the response of a READ or atomic. */
enum { SCATTER_TO_64 = 0x11, SCATTER_TO_128 = 0x22 };

/* atomic_mode: operands of up to 8 bytes. */
enum { ATOMIC_UP_TO_8 = 3 };

/* opt_param_mask: optional attributes in a modification. */
enum {
	OPTIONAL_RRE = 1u << 1,
	OPTIONAL_RAE = 1u << 2,
	OPTIONAL_RWE = 1u << 3,
	OPTIONAL_PKEY_INDEX = 1u << 4,
	OPTIONAL_Q_KEY = 1u << 5,
	OPTIONAL_RNR_TIMEOUT = 1u << 6,
	OPTIONAL_PORT = 1u << 16,
};

/* Remote rights of a QP or DCT, in enum ibv_access_flags; for command_get_rights(). */
#define REMOTE_RIGHTS(layout)                                                                                          \
	((const struct devx_right[]){{layout##_RRE, IBV_ACCESS_REMOTE_READ},                                           \
				     {layout##_RWE, IBV_ACCESS_REMOTE_WRITE},                                          \
				     {layout##_RAE, IBV_ACCESS_REMOTE_ATOMIC},                                         \
				     {.bit = 0}})

#endif
