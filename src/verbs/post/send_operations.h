/* SPDX-License-Identifier: BSD-2-Clause */
/* Form of the WQE for each opcode of ibv_post_send(3), by QP type (mlx5-formats 1.4): constant tables. */
#ifndef SOFTHCA_VERBS_POST_SEND_OPERATIONS_H
#define SOFTHCA_VERBS_POST_SEND_OPERATIONS_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>

#include "verbs/object/objects.h"

/* Segments between the control segment and the data. */
enum send_form {
	FORM_INVALID, /* cannot be encoded as a WQE */
	FORM_PLAIN,
	FORM_SEND_INVAL, /* as plain, with a key as immediate */
	FORM_RDMA,
	FORM_ATOMIC,
	FORM_ATOMIC_WRITE,
	FORM_DATAGRAM,
	/* without data */
	FORM_BIND,
	FORM_INVALIDATE,
};

struct send_operation {
	uint8_t header; /* bytes before the data */
	bool is_short;  /* a short WQE if it has one data pointer (struct send_queue) */
	uint8_t form;   /* enum send_form */
	uint8_t wc_opcode;
	uint8_t fence; /* bits that the next WQE inherits */
	/* -1: imm_data of the WR; 0: none, or another member */
	int8_t immediate;
	/* in the byte order of the control segment */
	__be32 opcode;      /* MLX5_OPCODE_* */
	__be32 short_units; /* `ds` of a short WQE */
};

/* Entries of a table, indexed by enum ibv_wr_opcode. */
enum { SEND_OPERATIONS = IBV_WR_ATOMIC_WRITE + 1 };

/**
 * Derives members of qp->sq from the QP's type, number, sizes and attributes, once these are set, and calls
 * sq_update_short(). Also for a QP without a send queue.
 */
void send_queue_derive(struct user_qp *qp);

#endif
