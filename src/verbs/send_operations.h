/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What ibv_post_send(3) makes of each opcode, by the type of the queue pair (mlx5-formats 1.4): constant tables, one of which
 * send_queue.operations leads to.
 */
#ifndef SOFTHCA_VERBS_SEND_OPERATIONS_H
#define SOFTHCA_VERBS_SEND_OPERATIONS_H

#include <endian.h>
#include <stdint.h>

#include "verbs/objects.h"

/* What stands between the control segment and the data. */
enum send_form {
	FORM_INVALID, /* no WQE can say it */
	FORM_PLAIN,
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
	/* What the header leaves of the block of a short WQE, for send_queue.short_room; 0 of an operation that has none. */
	uint8_t short_room;
	uint8_t form; /* enum send_form */
	uint8_t wc_opcode;
	/* Of the control segment, as it goes there. */
	__be32 opcode;      /* MLX5_OPCODE_* */
	__be32 short_units; /* `ds` of a short WQE */
	uint32_t immediate; /* all ones: imm_data of the WR is its `imm`; else none is, or it is another member */
};

/* A send_queue.short_room that no operation has. */
#define SHORT_NEVER UINT8_MAX

/* Entries of a table, which enum ibv_wr_opcode indexes. */
enum { SEND_OPERATIONS = IBV_WR_ATOMIC_WRITE + 1 };

static inline uint8_t send_operation_opcode(const struct send_operation *operation)
{
	return be32toh(operation->opcode);
}

/**
 * Enters into qp->sq what follows from the queue pair's type, number, sizes and attributes, once all of these are there, and what
 * sq_find_short() enters. Of a queue pair without send queue too.
 */
void send_queue_settle(struct user_qp *qp);

#endif
