/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two QPs of the device, connected by a wire (wire_link.h), with a clock that the test advances (wire_clock.h). The
 * client has the lower half of the device's memory, the server the upper half.
 */
#ifndef SOFTHCA_TESTS_WIRE_FIXTURE_H
#define SOFTHCA_TESTS_WIRE_FIXTURE_H

#include "test_case.h"

#include "device_fixture.h"
#include "wire_clock.h"
#include "wire_link.h"
#include "wire_rest.h"

#include "transport/control/commands.h"

enum { HALF = 1 << 15, BLOCKS = 64, CQES = 256 };

static struct raw_cq client_cq, server_cq;
static struct raw_qp client, server;
static uint32_t wire_mtu; /* bytes */

static inline int wire_open(void **state)
{
	(void)state;
	device_open(&device);
	wire_attach(device.hca, NULL, NULL);
	raw_cq_make(&device, &client_cq, CQES);
	raw_cq_make(&device, &server_cq, CQES);
	raw_qp_make(&device, &client, IBV_QPT_RC, &client_cq, BLOCKS);
	raw_qp_make(&device, &server, IBV_QPT_RC, &server_cq, BLOCKS);
	return 0;
}

static inline int wire_close(void **state)
{
	(void)state;
	raw_qp_destroy(&client);
	raw_qp_destroy(&server);
	raw_cq_destroy(&client_cq);
	raw_cq_destroy(&server_cq);
	wire_detach(device.hca);
	device_close(&device);
	return 0;
}

/* Makes both QPs anew, with another type. */
static inline void wire_change_type(enum ibv_qp_type type)
{
	raw_qp_destroy(&client);
	raw_qp_destroy(&server);
	raw_qp_make(&device, &client, type, &client_cq, BLOCKS);
	raw_qp_make(&device, &server, type, &server_cq, BLOCKS);
}

/* Returns the attributes of a connection with long timeouts. */
static inline struct ibv_qp_attr wire_options(void)
{
	return (struct ibv_qp_attr){
		.path_mtu = IBV_MTU_256,
		.timeout = 10,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
	};
}

static inline void wire_modify(struct raw_qp *end, enum ibv_qp_state state, struct ibv_qp_attr attr, int mask)
{
	attr.qp_state = state;
	assert_int_equal(hca_qp_modify(end->qp, &attr, mask | IBV_QP_STATE), 0);
}

static inline void wire_connect_end(struct raw_qp *end, const struct raw_qp *peer, const struct ibv_qp_attr *options)
{
	struct ibv_qp_attr attr = *options;
	enum ibv_qp_type type = end->qp->type;
	int connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	size_t gids;

	attr.port_num = 1;
	attr.qkey = 0x11111111;
	attr.qp_access_flags = ALL_ACCESS & ~IBV_ACCESS_MW_BIND;
	attr.dest_qp_num = peer->qp->number;
	attr.rq_psn = attr.sq_psn = SQ_START_PSN;
	attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
	attr.ah_attr.grh.dgid = hca_gids(device.hca, &gids)[0].gid;
	wire_modify(end, IBV_QPS_RESET, attr, 0);
	end->posted = end->receives = 0;
	end->dbrec[0] = end->dbrec[1] = 0;
	wire_modify(end, IBV_QPS_INIT, attr,
		    IBV_QP_PKEY_INDEX | IBV_QP_PORT | (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
	if (type == IBV_QPT_RC)
		connected |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	wire_modify(end, IBV_QPS_RTR, attr, type == IBV_QPT_UD ? 0 : connected);
	wire_modify(end, IBV_QPS_RTS, attr,
		    IBV_QP_SQ_PSN | (type == IBV_QPT_RC ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
								  IBV_QP_MAX_QP_RD_ATOMIC
							: 0));
}

/* Makes a new connection, with an empty wire, no completions, and known contents of memory. @filter: see wire_attach(). */
static inline void wire_connect(const struct ibv_qp_attr *options, wire_filter *filter, void *argument)
{
	struct wire_packet *packet;

	wire_connect_end(&client, &server, options);
	wire_connect_end(&server, &client, options);
	while ((packet = wire_take()))
		free(packet);
	while (raw_cq_poll(&client_cq) || raw_cq_poll(&server_cq))
		;
	wire_detach(device.hca);
	wire_attach(device.hca, filter, argument);
	wire_mtu = 128u << options->path_mtu;
	for (size_t i = 0; i < sizeof(device.memory); i++)
		device.memory[i] = (uint8_t)(i * 7 + i / 251 + (i >= HALF));
}

/* Runs until no packet is in flight and no timer will send one. */
static inline void wire_settle(void)
{
	while (wire_deliver() || wire_clock_next())
		;
}

static inline void wire_deliver_all(void)
{
	while (wire_deliver())
		;
}

/* ---- requests of one data segment ------------------------------------------------------------------------------ */

/*
 * Puts a request with any opcode that moves data between [@local, +@length) here and @remote there, offsets in the
 * device's memory. One or two blocks.
 */
static inline void put_request(struct raw_qp *end, uint8_t opcode, uint32_t local, uint32_t remote, uint32_t length,
			       uint32_t imm, uint8_t fence)
{
	struct {
		struct mlx5_wqe_ctrl_seg ctrl;
		uint8_t rest[3 * 16];
	} wqe = {.ctrl = ctrl_segment(end, opcode, 0)};
	struct mlx5_wqe_raddr_seg raddr = {.raddr = htobe64((uintptr_t)device.memory + remote),
					   .rkey = htobe32(mkey_number(device.region))};
	struct mlx5_wqe_atomic_seg atomic = {.swap_add = htobe64(UINT64_C(0x0102030405060708)), .compare = 0};
	struct mlx5_wqe_data_seg data = data_segment(&device, local, length);
	bool is_atomic = opcode == MLX5_OPCODE_ATOMIC_CS || opcode == MLX5_OPCODE_ATOMIC_FA;
	uint32_t segments = 1;

	if (is_atomic || opcode == MLX5_OPCODE_RDMA_WRITE || opcode == MLX5_OPCODE_RDMA_WRITE_IMM ||
	    opcode == MLX5_OPCODE_RDMA_READ || opcode == WQE_OPCODE_ATOMIC_WRITE)
		memcpy(wqe.rest + 16 * (segments++ - 1), &raddr, 16);
	if (is_atomic)
		memcpy(wqe.rest + 16 * (segments++ - 1), &atomic, 16);
	if (length)
		memcpy(wqe.rest + 16 * (segments++ - 1), &data, 16);
	wqe.ctrl.qpn_ds = htobe32(end->qp->number << 8 | segments);
	wqe.ctrl.imm = htobe32(imm);
	wqe.ctrl.fm_ce_se |= fence;
	put_wqe(end, &wqe, segments, 1);
}

/* Expects the next completion of the server to be a successful one of receive @index, with @bytes. Returns its opcode. */
static inline uint8_t expect_receive(uint16_t index, uint32_t bytes)
{
	const struct mlx5_cqe64 *cqe = (const struct mlx5_cqe64 *)raw_cq_poll(&server_cq);

	assert_non_null(cqe);
	assert_int_not_equal(cqe->op_own >> 4, MLX5_CQE_RESP_ERR);
	assert_int_equal(be16toh(cqe->wqe_counter), index);
	assert_int_equal(be32toh(cqe->byte_cnt), bytes);
	return cqe->op_own >> 4;
}

static inline void expect_no_more(void)
{
	assert_null(raw_cq_poll(&client_cq));
	assert_null(raw_cq_poll(&server_cq));
	assert_int_equal(hca_qp_state(client.qp), IBV_QPS_RTS);
	assert_int_equal(hca_qp_state(server.qp), IBV_QPS_RTS);
}

#endif
