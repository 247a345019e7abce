/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DCIs and DCTs of the device, connected by a wire (wire_link.h), with a clock that the test advances (wire_clock.h).
 * Each DCI has a CQ, each DCT a CQ and an SRQ. The DCIs share the lower half of the device's memory, the DCTs the upper
 * half.
 */
#ifndef SOFTHCA_TESTS_DC_FIXTURE_H
#define SOFTHCA_TESTS_DC_FIXTURE_H

#include "test_case.h"

#include "device_fixture.h"
#include "transport/control/commands.h"
#include "transport/qp/dci.h"
#include "transport/responder/dct.h"
#include "wire_clock.h"
#include "wire_link.h"
#include "wire_rest.h"

enum {
	HALF = 1 << 15,
	BLOCKS = 64,
	CQES = 256,
	DCIS = 3,
	DCTS = 2,
	SRQ_ENTRIES = 64,
	SRQ_SHIFT = 5, /* the link, and one segment */
	KEY = 0x5eed,  /* of the first DCT; each DCT has another key */
};

struct target {
	struct hca_qp *qp;
	struct raw_cq cq;
	struct hca_srq *srq;
	uint8_t ring[SRQ_ENTRIES << SRQ_SHIFT];
	uint32_t dbrec, qp_dbrec[2];
	uint16_t posted;
	uint64_t key;
};

static struct raw_cq dci_cq[DCIS];
static struct raw_qp dci[DCIS];
static struct target dct[DCTS];

/* ---- creation -------------------------------------------------------------------------------------------------- */

static inline void dci_make(struct raw_qp *end, struct raw_cq *cq, uint32_t errored_streams)
{
	struct hca_qp_attr attr = {
		.type = QP_TYPE_DCI,
		.pd = device.pd,
		.send_cq = cq->cq,
		.recv_cq = cq->cq,
		.sq_wqebb_count = BLOCKS,
		.dbrec = end->dbrec,
		.dci_errored_streams = errored_streams,
	};

	memset(end, 0, sizeof(*end));
	end->cq = cq;
	end->blocks = BLOCKS;
	end->sq = attr.sq_buffer = aligned_alloc(64, BLOCKS * 64);
	memset(end->sq, 0, BLOCKS * 64);
	assert_int_equal(hca_qp_create(device.context, &attr, &end->qp), 0);
}

static inline void dc_modify(struct hca_qp *qp, enum ibv_qp_state state, struct ibv_qp_attr attr, int mask)
{
	attr.qp_state = state;
	attr.port_num = 1;
	assert_int_equal(hca_qp_modify(qp, &attr, mask | IBV_QP_STATE), 0);
}

/* Returns the attributes of an initiator with long timeouts. */
static inline struct ibv_qp_attr dc_options(void)
{
	return (struct ibv_qp_attr){
		.path_mtu = IBV_MTU_256,
		.timeout = 10,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
		.max_rd_atomic = 4,
		.sq_psn = SQ_START_PSN,
	};
}

/* Moves a DCI from any state to RTS. */
static inline void dci_start(struct raw_qp *end, const struct ibv_qp_attr *options)
{
	dc_modify(end->qp, IBV_QPS_RESET, *options, 0);
	end->posted = 0;
	end->dbrec[0] = end->dbrec[1] = 0;
	dc_modify(end->qp, IBV_QPS_INIT, *options, IBV_QP_PKEY_INDEX | IBV_QP_PORT);
	dc_modify(end->qp, IBV_QPS_RTR, *options, IBV_QP_PATH_MTU);
	dc_modify(end->qp, IBV_QPS_RTS, *options,
		  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_SQ_PSN);
}

static inline void dct_make(struct target *target, uint64_t key, const struct ibv_qp_attr *options)
{
	struct hca_srq_attr srq = {
		.buffer = target->ring,
		.entry_count = SRQ_ENTRIES,
		.entry_shift = SRQ_SHIFT,
		.dbrec = &target->dbrec,
	};
	struct hca_qp_attr attr = {.type = QP_TYPE_DCT, .pd = device.pd, .dbrec = target->qp_dbrec};
	struct ibv_qp_attr state = *options;

	memset(target, 0, sizeof(*target));
	for (uint16_t i = 0; i < SRQ_ENTRIES; i++) {
		const struct mlx5_wqe_srq_next_seg link = {.next_wqe_index = htobe16((i + 1) % SRQ_ENTRIES)};

		memcpy(target->ring + (i << SRQ_SHIFT), &link, sizeof(link));
	}
	raw_cq_make(&device, &target->cq, CQES);
	assert_int_equal(hca_srq_create(device.pd, &srq, &target->srq), 0);
	target->key = attr.dc_access_key = key;
	attr.send_cq = attr.recv_cq = target->cq.cq;
	attr.srq = target->srq;
	assert_int_equal(hca_qp_create(device.context, &attr, &target->qp), 0);
	state.qp_access_flags = ALL_ACCESS & ~IBV_ACCESS_MW_BIND;
	/* Without a destination, as in UCX. */
	state.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1, .grh = {.hop_limit = 3}};
	dc_modify(target->qp, IBV_QPS_INIT, state, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	dc_modify(target->qp, IBV_QPS_RTR, state, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER);
}

static inline void dct_destroy(struct target *target)
{
	if (target->qp)
		assert_int_equal(hca_qp_destroy(target->qp), 0);
	assert_int_equal(hca_srq_destroy(target->srq), 0);
	raw_cq_destroy(&target->cq);
}

/* Makes all objects anew, with known contents of memory. @errored_streams: of each DCI, as in hca_qp_attr. */
static inline void dc_begin(const struct ibv_qp_attr *options, uint32_t errored_streams, wire_filter *filter,
			    void *argument)
{
	wire_attach(device.hca, filter, argument);
	for (int i = 0; i < DCIS; i++) {
		raw_cq_make(&device, &dci_cq[i], CQES);
		dci_make(&dci[i], &dci_cq[i], errored_streams);
		dci_start(&dci[i], options);
	}
	for (int i = 0; i < DCTS; i++)
		dct_make(&dct[i], KEY + (uint64_t)i, options);
	for (size_t i = 0; i < sizeof(device.memory); i++)
		device.memory[i] = (uint8_t)(i * 7 + i / 251 + (i >= HALF));
}

static inline void dc_end(void)
{
	for (int i = 0; i < DCIS; i++) {
		raw_qp_destroy(&dci[i]);
		raw_cq_destroy(&dci_cq[i]);
	}
	for (int i = 0; i < DCTS; i++)
		dct_destroy(&dct[i]);
	wire_detach(device.hca);
}

/* Runs until no packet is in flight and no timer will send one. */
static inline void dc_settle(void)
{
	while (wire_deliver() || wire_clock_next())
		;
}

static inline void dc_deliver_all(void)
{
	while (wire_deliver())
		;
}

/* ---- requests -------------------------------------------------------------------------------------------------- */

static inline void dct_post(struct target *target, uint32_t offset, uint32_t bytes)
{
	const struct mlx5_wqe_data_seg data = data_segment(&device, offset, bytes);

	memcpy(target->ring + ((target->posted % SRQ_ENTRIES) << SRQ_SHIFT) + 16, &data, sizeof(data));
	target->posted++;
	__atomic_store_n(&target->dbrec, htobe32(target->posted), __ATOMIC_RELEASE);
}

struct dc_request {
	uint8_t opcode;
	uint32_t target; /* number of the DCT */
	uint64_t key;    /* DC access key */
	uint16_t stream;
	uint32_t local, remote, length, imm; /* offsets in the device's memory */
	uint8_t fence;
	uint32_t lkey;     /* 0: the key of the device's memory */
	uint8_t gid_index; /* of the destination, in the GID table of the device */
};

static inline struct dc_request dc_to(const struct target *target, uint8_t opcode, uint32_t local, uint32_t remote,
				      uint32_t length)
{
	return (struct dc_request){
		.opcode = opcode,
		.target = target->qp->number,
		.key = target->key,
		.local = local,
		.remote = remote,
		.length = length,
	};
}

static inline bool opcode_is_atomic(uint8_t opcode)
{
	return opcode == MLX5_OPCODE_ATOMIC_CS || opcode == MLX5_OPCODE_ATOMIC_FA;
}

static inline bool opcode_takes_receive(uint8_t opcode)
{
	return opcode == MLX5_OPCODE_SEND || opcode == MLX5_OPCODE_SEND_IMM || opcode == MLX5_OPCODE_RDMA_WRITE_IMM;
}

enum { ATOMIC_OPERAND = 0x01020304 };

/* Returns the index of the WQE. @segments: number of 16-byte segments of the address vector: 3, or 1 for the short one. */
static inline uint16_t dc_put_with(struct raw_qp *end, const struct dc_request *request, const struct mlx5_wqe_av *av,
				   uint32_t segments)
{
	struct {
		struct mlx5_wqe_ctrl_seg ctrl;
		uint8_t rest[7 * 16];
	} wqe = {.ctrl = ctrl_segment(end, request->opcode, 0)};
	struct mlx5_wqe_raddr_seg raddr = {.raddr = htobe64((uintptr_t)device.memory + request->remote),
					   .rkey = htobe32(mkey_number(device.region))};
	struct mlx5_wqe_atomic_seg atomic = {.swap_add = htobe64(ATOMIC_OPERAND)};
	struct mlx5_wqe_data_seg data = data_segment(&device, request->local, request->length);
	uint16_t index = end->posted;
	uint32_t at = segments;
	bool is_atomic = opcode_is_atomic(request->opcode);

	if (request->lkey)
		data.lkey = htobe32(request->lkey);
	memcpy(wqe.rest, av, 16 * segments);
	if (is_atomic || request->opcode == MLX5_OPCODE_RDMA_WRITE || request->opcode == MLX5_OPCODE_RDMA_WRITE_IMM ||
	    request->opcode == MLX5_OPCODE_RDMA_READ)
		memcpy(wqe.rest + 16 * at++, &raddr, 16);
	if (is_atomic)
		memcpy(wqe.rest + 16 * at++, &atomic, 16);
	if (request->length)
		memcpy(wqe.rest + 16 * at++, &data, 16);
	wqe.ctrl.qpn_ds = htobe32(end->qp->number << 8 | (at + 1));
	wqe.ctrl.imm = htobe32(request->imm);
	wqe.ctrl.fm_ce_se |= request->fence;
	wqe.ctrl.dci_stream_channel_id = htobe16(request->stream);
	put_wqe(end, &wqe, at + 1, (at + 4) / 4);
	return index;
}

static inline uint16_t dc_put(struct raw_qp *end, const struct dc_request *request)
{
	struct mlx5_wqe_av av = {
		.key.dc_key = htobe64(request->key),
		.dqp_dct = htobe32(MLX5_EXTENDED_UD_AV | request->target),
		.hop_limit = 1,
	};
	size_t gids;

	memcpy(av.rgid, &hca_gids(device.hca, &gids)[request->gid_index].gid, 16);
	return dc_put_with(end, request, &av, 3);
}

/* Writes @length bytes from DCI @from, from the beginning of its half of the memory to that of the DCTs' half. */
static inline void dc_write(int from, const struct target *target, uint32_t length)
{
	const struct dc_request request = dc_to(target, MLX5_OPCODE_RDMA_WRITE, 0, HALF, length);

	dc_put(&dci[from], &request);
	ring(&dci[from]);
}

/* ---- expectations ---------------------------------------------------------------------------------------------- */

/*
 * Expects the next completion of @target to be a successful one of entry @index of its SRQ, with @bytes. Returns its
 * opcode.
 */
static inline uint8_t expect_received(struct target *target, uint16_t index, uint32_t bytes)
{
	const struct mlx5_cqe64 *cqe = (const struct mlx5_cqe64 *)raw_cq_poll(&target->cq);

	assert_non_null(cqe);
	assert_int_not_equal(cqe->op_own >> 4, MLX5_CQE_RESP_ERR);
	assert_int_equal(be16toh(cqe->wqe_counter), index % SRQ_ENTRIES);
	assert_int_equal(be32toh(cqe->byte_cnt), bytes);
	return cqe->op_own >> 4;
}

/* Expects no further completion, and no QP in error. */
static inline void expect_quiet(void)
{
	for (int i = 0; i < DCIS; i++) {
		assert_null(raw_cq_poll(&dci_cq[i]));
		assert_int_equal(hca_qp_state(dci[i].qp), IBV_QPS_RTS);
	}
	for (int i = 0; i < DCTS; i++) {
		assert_null(raw_cq_poll(&dct[i].cq));
		assert_int_equal(hca_qp_state(dct[i].qp), IBV_QPS_RTR);
	}
}

/* Expects the newest explanation about @qp to be of @rule. */
static inline void expect_rule(const struct hca_qp *qp, enum explain_rule rule)
{
	struct explain_record record;

	assert_true(explain_previous(device.hca, qp->number, 0, &record));
	assert_int_equal(record.rule, rule);
}

#endif
