/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct rdma_conn_param, as programs pass it to rdma_connect(3), rdma_accept(3) and rdma_reject(3): what of it is
 * allowed, and what is sent in its place. The caller holds the lock of the id.
 */
#ifndef SOFTHCA_RDMACM_CONN_PARAM_H
#define SOFTHCA_RDMACM_CONN_PARAM_H

#include "rdmacm/objects.h"

/* A field of three bits. */
enum { CONN_MOST_RETRIES = 7 };

/* Bytes of private data that each message carries, behind the hello header where there is one (rdma-cm 3.2). */
enum {
	REQ_PRIVATE_DATA = 92,
	SIDR_REQ_PRIVATE_DATA = 216,
	REP_PRIVATE_DATA = 196,
	SIDR_REP_PRIVATE_DATA = 136,
	REJ_PRIVATE_DATA = 148,
};

/* What is sent instead of a parameter that the program leaves out: the most. */
extern const struct rdma_conn_param conn_most;

static inline uint8_t conn_smaller(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static inline bool id_is_datagram(const struct user_cm_id *id)
{
	return id->base.qp_type == IBV_QPT_UD;
}

/** 0, or -EINVAL with an explanation: the program has more private data than @room; asks for more than the device has. */
int conn_check_private_data(const struct user_cm_id *id, const char *call, const struct rdma_conn_param *param,
			    uint8_t room);
int conn_check_resources(const struct user_cm_id *id, const char *call, const struct rdma_conn_param *param);

/** 0, or -EINVAL with an explanation: id->qp points to a QP that the program has destroyed (queue_pair.h). */
int conn_check_qp(const struct user_cm_id *id, const char *call);

/** The private data of @param, which need not be there. */
struct cm_private conn_private(const struct rdma_conn_param *param);

/** Number of the QP and whether it has an SRQ; of an id without a QP what the program says. conn_check_qp() was 0. */
uint32_t conn_qpn(const struct user_cm_id *id, const struct rdma_conn_param *param);
uint8_t conn_srq(const struct user_cm_id *id, const struct rdma_conn_param *param);

#endif
