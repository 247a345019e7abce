/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What ibv_post_send(3) makes of each opcode, by the type of the queue pair (mlx5-formats 1.4): constant tables, one of which
 * send_queue.operations leads to.
 */
#ifndef SOFTHCA_VERBS_POST_SEND_OPERATIONS_H
#define SOFTHCA_VERBS_POST_SEND_OPERATIONS_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>

#include "verbs/object/objects.h"

/* What stands between the control segment and the data. */
enum send_form {
	FORM_INVALID, /* no WQE can say it */
	FORM_PLAIN,
	FORM_SEND_INVAL, /* plain, and its immediate is a key */
	FORM_RDMA,
	FORM_ATOMIC,
	FORM_ATOMIC_WRITE,
	FORM_DATAGRAM,
	/* from here on without data */
	FORM_BIND,
	FORM_INVALIDATE,
};

struct send_operation {
	uint8_t header; /* bytes up to the data */
	bool is_short;  /* with one data pointer it is a short WQE (struct send_queue) */
	uint8_t form;   /* enum send_form */
	uint8_t wc_opcode;
	uint8_t fence;    /* what the next WQE inherits */
	int8_t immediate; /* -1: imm_data of the WR is `imm` of the control segment; 0: none is, or it is another member */
	/* Of the control segment, as it goes there. */
	__be32 opcode;      /* MLX5_OPCODE_* */
	__be32 short_units; /* `ds` of a short WQE */
};

/* Entries of a table, which enum ibv_wr_opcode indexes. */
enum { SEND_OPERATIONS = IBV_WR_ATOMIC_WRITE + 1 };

/**
 * Enters into qp->sq what follows from the queue pair's type, number, sizes and attributes, once all of these are there, and what
 * sq_update_short() enters. Of a queue pair without send queue too.
 */
void send_queue_derive(struct user_qp *qp);

#endif
