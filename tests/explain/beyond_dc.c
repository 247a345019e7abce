/* SPDX-License-Identifier: BSD-2-Clause */
/* DC initiators and XRC requests doing what those of one process cannot do. */
#include "test_case.h"

#include "abi/entry_points.h"
#include "verbs/object/objects.h"
#include "verbs/object/ops.h"
#include "beyond.h"

/* ---- DC --------------------------------------------------------------------------------------------------------- */

/* Numbers of DCIs of other hosts; none exists here. */
enum { INITIATOR = 0x800000, DC_KEY = 0xdc };

static struct ibv_srq *srq;

/* Puts a DCT with one receive in the server's place. */
static void become_dct(void)
{
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCT, .dct_access_key = DC_KEY},
	};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .ah_attr = {.port_num = 1}};
	struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = 2 * MTU, .lkey = mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = WR_ID, .sg_list = &sge, .num_sge = 1}, *bad;

	rtr.ah_attr.is_global = 1;
	attr.srq = srq = softhca_ibv_create_srq(pd, &srq_attr);
	assert_non_null(srq);
	assert_int_equal(srq->context->ops.post_srq_recv(srq, &wr, &bad), 0);
	assert_int_equal(softhca_ibv_destroy_qp(qp[SERVER]), 0);
	qp[SERVER] = softhca_mlx5dv_create_qp(context, &attr, &dv);
	assert_non_null(qp[SERVER]);
	modify(SERVER, (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1},
	       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	modify(SERVER, rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER);
}

/* Restores an ordinary QP for the end of the test. */
static void end_dct(void)
{
	struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};

	assert_int_equal(softhca_ibv_destroy_qp(qp[SERVER]), 0);
	assert_int_equal(softhca_ibv_destroy_srq(srq), 0);
	qp[SERVER] = softhca_ibv_create_qp(pd, &attr);
	assert_non_null(qp[SERVER]);
}

/* Delivers the first or a later packet of a connection, as a link does. */
static void deliver_dc(uint32_t initiator, uint64_t connection, struct packet packet)
{
	const struct packet_path path = {.hop_limit = 1};

	packet.transport = QP_TYPE_DCI;
	packet.source_qpn = initiator;
	packet.destination_qpn = qp[SERVER]->qp_num;
	packet.dc_key = DC_KEY;
	packet.dc_connection = connection;
	packet.dc_first_psn = FIRST_PSN;
	packet.path = &path;
	deliver_packet(&packet);
}

static const struct packet read_request = {.message = MESSAGE_READ_REQUEST, .place = PLACE_ONLY, .psn = FIRST_PSN};

BEYOND_CASE(DCT_FULL)
{
	become_dct();
	for (uint32_t i = 0; i <= LIMIT_DCT_INITIATORS; i++)
		deliver_dc(INITIATOR + i, 1, read_request);
	expect_line(
		qp[SERVER], RULE_DCT_FULL,
		"mlx5_0 qp 0x%x: RDMA READ request of queue pair 0x%x has to wait: DCT 0x%x serves %u initiators, and none of them has disconnected. [132 DCT_FULL; ",
		qp[SERVER]->qp_num, INITIATOR + LIMIT_DCT_INITIATORS, qp[SERVER]->qp_num, LIMIT_DCT_INITIATORS);
	end_dct();
}

BEYOND_CASE(DC_ABORTED)
{
	struct packet first = {.message = MESSAGE_SEND, .place = PLACE_FIRST, .psn = FIRST_PSN};

	become_dct();
	stream_begin(&first.payload, NULL, 0);
	stream_add_memory(&first.payload, memory + 2 * MTU, MTU);
	deliver_dc(INITIATOR, 1, first);
	deliver_dc(INITIATOR, 1, (struct packet){.message = MESSAGE_DISCONNECT, .psn = FIRST_PSN + 1});
	expect_completion(IBV_WC_REM_ABORT_ERR, RULE_DC_ABORTED);
	expect_line(
		qp[SERVER], RULE_DC_ABORTED,
		"mlx5_0 qp 0x%x receive → REM_ABORT_ERR: queue pair 0x%x abandoned its message to DCT 0x%x after 1024 bytes. [153 DC_ABORTED; ",
		qp[SERVER]->qp_num, INITIATOR, qp[SERVER]->qp_num);
	end_dct();
}

BEYOND_CASE(DC_CONNECTION_OVER)
{
	become_dct();
	deliver_dc(INITIATOR, 2, read_request);
	deliver_dc(INITIATOR, 1, read_request);
	expect_line(
		qp[SERVER], RULE_DC_CONNECTION_OVER,
		"mlx5_0 qp 0x%x: RDMA READ request 0x100 of queue pair 0x%x for DCT 0x%x belongs to a connection that has ended: dropped. [135 DC_CONNECTION_OVER; ",
		qp[SERVER]->qp_num, INITIATOR, qp[SERVER]->qp_num);
	end_dct();
}

/* ---- XRC -------------------------------------------------------------------------------------------------------- */

/* Puts an XRC_RECV QP in the server's place. */
BEYOND_CASE(XRC_SRQ_CHANGED)
{
	struct ibv_xrcd_init_attr own = {.comp_mask = 3, .fd = -1};
	struct ibv_xrcd *xrcd = softhca_ibv_open_xrcd(context, &own);
	struct ibv_srq_init_attr_ex srq_attr = {
		.attr = {.max_wr = 1, .max_sge = 1},
		.comp_mask = 0xf,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = xrcd,
		.cq = cq,
	};
	struct ibv_srq *xrc_srq = softhca_ibv_create_srq_ex(context, &srq_attr);
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = 2, .xrcd = xrcd};
	struct ibv_qp *replaced = qp[SERVER];
	struct packet packet = {
		.transport = IBV_QPT_XRC_SEND, .message = MESSAGE_WRITE, .place = PLACE_FIRST, .psn = FIRST_PSN};
	uint32_t number;

	assert_int_equal(softhca_ibv_get_srq_num(xrc_srq, &number), 0);
	qp[SERVER] = softhca_ibv_create_qp_ex(context, &attr);
	assert_non_null(qp[SERVER]);
	modify(SERVER,
	       (struct ibv_qp_attr){
		       .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE},
	       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	to_rts(SERVER);
	packet.source_qpn = qp[CLIENT]->qp_num;
	packet.destination_qpn = qp[SERVER]->qp_num;
	packet.xrc_srqn = number;
	packet.rkey = mr->rkey;
	packet.remote_address = (uintptr_t)memory;
	packet.dma_length = MTU + BYTES;
	stream_begin(&packet.payload, NULL, 0);
	stream_add_memory(&packet.payload, memory + 2 * MTU, MTU);
	deliver_packet(&packet);
	packet.place = PLACE_LAST;
	packet.psn++;
	packet.xrc_srqn++;
	deliver_packet(&packet);
	expect_line(
		qp[SERVER], RULE_XRC_SRQ_CHANGED,
		"mlx5_0 qp 0x%x: RDMA WRITE with sequence number 0x101 names the XRC SRQ 0x%x; its message began with "
		"0x%x. [142 XRC_SRQ_CHANGED; ",
		qp[SERVER]->qp_num, number + 1, number);
	assert_int_equal(softhca_ibv_destroy_qp(qp[SERVER]), 0);
	assert_int_equal(softhca_ibv_destroy_srq(xrc_srq), 0);
	assert_int_equal(softhca_ibv_close_xrcd(xrcd), 0);
	qp[SERVER] = replaced;
}
