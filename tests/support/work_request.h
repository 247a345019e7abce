/* SPDX-License-Identifier: BSD-2-Clause */
/* Signalled work requests of one SGE or none, as initializers: struct ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &sge). */
#ifndef SOFTHCA_TESTS_WORK_REQUEST_H
#define SOFTHCA_TESTS_WORK_REQUEST_H

#include <infiniband/verbs.h>

/* @sge: NULL for a request without data; must stay valid until the request is posted. */
static inline struct ibv_send_wr send_wr(uint64_t wr_id, enum ibv_wr_opcode opcode, struct ibv_sge *sge)
{
	return (struct ibv_send_wr){
		.wr_id = wr_id,
		.sg_list = sge,
		.num_sge = sge != NULL,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};
}

/* As send_wr(), for a WRITE or READ of remote memory. */
static inline struct ibv_send_wr rdma_wr(uint64_t wr_id, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
					 uint64_t remote_address, uint32_t rkey)
{
	struct ibv_send_wr wr = send_wr(wr_id, opcode, sge);

	wr.wr.rdma.remote_addr = remote_address;
	wr.wr.rdma.rkey = rkey;
	return wr;
}

#endif
