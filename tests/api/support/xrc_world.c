/* SPDX-License-Identifier: BSD-2-Clause */
/* See xrc_world.h. */
#include "support/xrc_world.h"

#include <fcntl.h>
#include <unistd.h>

enum { CQES = 255, SRQ_WRS = 31 };

struct xrc_world world;

void xrc_world_connect(void)
{
	xrc_connect(world.recv, &world.target[XRC_SERVER], world.send->qp_num, &world.client, 7);
	xrc_connect(world.send, &world.client, world.recv->qp_num, &world.target[XRC_SERVER], world.rnr_retry);
}

int xrc_world_open(void **state)
{
	(void)state;
	note_clear();
	world.rnr_retry = 7;
	side_open(&world.client, "client", SIDE_BYTES, 0x80);
	side_open(&world.target[XRC_SERVER], "server", SIDE_BYTES, 0);
	side_open(&world.target[XRC_NEIGHBOUR], "neighbour", SIDE_BYTES, 0);
	world.fd[XRC_SERVER] = xrc_file();
	world.fd[XRC_NEIGHBOUR] = xrc_same_file(world.fd[XRC_SERVER]);
	for (int i = 0; i < XRC_TARGETS; i++) {
		world.xrcd[i] = expect_xrcd(world.target[i].context, world.fd[i], O_CREAT);
		world.srq[i] = xrc_srq_open(&world.target[i], world.xrcd[i], SRQ_WRS);
	}
	world.cq = ibv_create_cq(world.client.context, CQES, NULL, NULL, 0);
	assert_non_null(world.cq);
	world.send = xrc_create_send(&world.client, world.cq);
	world.recv = xrc_create_recv(world.xrcd[XRC_SERVER]);
	assert_non_null(world.send);
	assert_non_null(world.recv);
	xrc_world_connect();
	return 0;
}

int xrc_world_close(void **state)
{
	(void)state;
	xrc_all_idle();
	expect_error(ibv_destroy_qp(world.send), 0);
	expect_error(ibv_destroy_cq(world.cq), 0);
	expect_error(ibv_destroy_qp(world.recv), 0);
	for (int i = 0; i < XRC_TARGETS; i++) {
		xrc_srq_close(&world.srq[i]);
		expect_error(ibv_close_xrcd(world.xrcd[i]), 0);
		close(world.fd[i]);
		side_close(&world.target[i]);
	}
	side_close(&world.client);
	return 0;
}

struct ibv_send_wr xrc_wr(uint64_t wr_id, enum ibv_wr_opcode opcode, int target, struct ibv_sge *sge, int count)
{
	return (struct ibv_send_wr){
		.wr_id = wr_id,
		.sg_list = sge,
		.num_sge = count,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.qp_type.xrc.remote_srqn = world.srq[target].number,
	};
}

struct ibv_send_wr xrc_rdma_wr(uint64_t wr_id, enum ibv_wr_opcode opcode, int target, struct ibv_sge *sge,
			       size_t offset)
{
	struct ibv_send_wr wr = xrc_wr(wr_id, opcode, target, sge, 1);

	wr.wr.rdma.remote_addr = side_address(&world.target[target], offset);
	wr.wr.rdma.rkey = world.target[target].mr->rkey;
	return wr;
}

void xrc_post_(struct place place, struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;

	expect_error_(place, "ibv_post_send()", ibv_post_send(qp, wr, &bad), 0);
}

void xrc_all_idle_(struct place place)
{
	xrc_idle_(place, world.cq);
	for (int i = 0; i < XRC_TARGETS; i++)
		xrc_idle_(place, world.srq[i].cq);
}

void xrc_expect_state_(struct place place, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	expect_error_(place, "ibv_query_qp()", ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	if (attr.qp_state != state)
		fail_at(place, "QP %#x is in state %d, not %d", qp->qp_num, attr.qp_state, state);
}
