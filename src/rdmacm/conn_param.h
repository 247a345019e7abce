/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks and defaults of struct rdma_conn_param. The caller holds the lock of the ID. */
#ifndef SOFTHCA_RDMACM_CONN_PARAM_H
#define SOFTHCA_RDMACM_CONN_PARAM_H

#include "rdmacm/objects.h"

/* The field has three bits. */
enum { CONN_MOST_RETRIES = 7 };

/* Bytes of private data in each message, including the hello header of requests (rdma-cm 3.2). */
enum {
	REQ_PRIVATE_DATA = 92,
	SIDR_REQ_PRIVATE_DATA = 216,
	REP_PRIVATE_DATA = 196,
	SIDR_REP_PRIVATE_DATA = 136,
	REJ_PRIVATE_DATA = 148,
};

/* Used if the program passes no parameters. */
extern const struct rdma_conn_param conn_most;

static inline uint8_t conn_smaller(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static inline bool id_is_datagram(const struct user_cm_id *id)
{
	return id->base.qp_type == IBV_QPT_UD;
}

/**
 * Return 0, or -EINVAL with an explanation if the private data exceeds @room, or the requested resources exceed those
 * of the device.
 */
int conn_check_private_data(const struct user_cm_id *id, const char *call, const struct rdma_conn_param *param,
			    uint8_t room);
int conn_check_resources(const struct user_cm_id *id, const char *call, const struct rdma_conn_param *param);

/** Returns 0, or -EINVAL with an explanation if the program has destroyed id->qp (queue_pair.h). */
int conn_check_qp(const struct user_cm_id *id, const char *call);

/** The result may be empty. */
struct cm_private conn_private(const struct rdma_conn_param *param);

/**
 * Return the number of the QP, and whether it has an SRQ; without a QP, the values in @param. Call conn_check_qp()
 * first.
 */
uint32_t conn_qpn(const struct user_cm_id *id, const struct rdma_conn_param *param);
uint8_t conn_srq(const struct user_cm_id *id, const struct rdma_conn_param *param);

#endif
