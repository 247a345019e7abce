/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device without its driver: queues with rings and doorbell records that the test writes itself, and a link of the test
 * instead of the local one. Uses the commands of the driver (process/commands.h), and reads structures of the device
 * where a rule is visible nowhere else.
 */
#ifndef SOFTHCA_TESTS_DEVICE_FIXTURE_H
#define SOFTHCA_TESTS_DEVICE_FIXTURE_H

#include "test_case.h"

#include "core/epoch.h"
#include "process/commands.h"
#include "transport/qp/qp.h"
#include "wire/link.h"
#include "mkey/key.h"
#include "transport/qp/transport.h"

enum {
	RQ_ENTRIES = 8,
	RQ_SHIFT = 4,            /* one segment */
	SQ_START_PSN = 0xfffffe, /* wraps around soon */
	ALL_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND,
};

struct device {
	struct hca *hca;
	struct hca_context *context;
	struct event_queue async;
	struct hca_pd *pd;
	struct mkey *region; /* covers memory[], at its address */
	_Alignas(64) uint8_t memory[1 << 16];
};

/* The device of a program that has one. */
static __attribute__((unused)) struct device device;

static inline void device_open(struct device *device)
{
	struct hca_mr_attr attr = {
		.addr = device->memory,
		.start = (uintptr_t)device->memory,
		.length = sizeof(device->memory),
		.access = ALL_ACCESS,
	};

	setenv("SOFTHCA_GIDS", "loopback", 1);
	device->hca = hca_device(0);
	assert_int_equal(event_queue_init(&device->async), 0);
	assert_int_equal(hca_open(device->hca, &device->async, &device->context), 0);
	assert_int_equal(hca_pd_alloc(device->context, &device->pd), 0);
	assert_int_equal(hca_mr_register(device->pd, &attr, &device->region), 0);
}

static inline void device_close(struct device *device)
{
	assert_int_equal(hca_mr_deregister(device->region), 0);
	assert_int_equal(hca_pd_dealloc(device->pd), 0);
	assert_int_equal(hca_close(device->context), 0);
	event_queue_destroy(&device->async);
}

/* Setup and teardown of a group of cases that use `device`. */
static inline int device_group_open(void **state)
{
	(void)state;
	device_open(&device);
	return 0;
}

static inline int device_group_close(void **state)
{
	(void)state;
	device_close(&device);
	return 0;
}

/* ---- completion queues ---------------------------------------------------------------------------------------- */

struct raw_cq {
	struct hca_cq *cq;
	uint8_t *ring;
	uint32_t count, consumer, dbrec[2];
};

static inline void raw_cq_make(struct device *device, struct raw_cq *cq, uint32_t count)
{
	struct hca_cq_attr attr = {.cqe_count = count, .cqe_size = 64, .dbrec = cq->dbrec};

	memset(cq, 0, sizeof(*cq));
	cq->count = count;
	cq->ring = attr.buffer = aligned_alloc(64, count * 64);
	for (uint32_t i = 0; i < count; i++)
		cq->ring[64 * i + 63] = MLX5_CQE_INVALID << 4;
	assert_int_equal(hca_cq_create(device->context, &attr, &cq->cq), 0);
}

static inline void raw_cq_destroy(struct raw_cq *cq)
{
	assert_int_equal(hca_cq_destroy(cq->cq), 0);
	free(cq->ring);
}

/* Returns the next CQE, or NULL. It stays valid until the ring wraps around. */
static inline const struct mlx5_err_cqe *raw_cq_poll(struct raw_cq *cq)
{
	const struct mlx5_err_cqe *cqe =
		(const struct mlx5_err_cqe *)(cq->ring + 64 * (size_t)(cq->consumer & (cq->count - 1)));
	uint8_t op_own = __atomic_load_n(&cqe->op_own, __ATOMIC_ACQUIRE);

	if (op_own >> 4 == MLX5_CQE_INVALID || (op_own & 1) != !!(cq->consumer & cq->count))
		return NULL;
	cq->consumer++;
	__atomic_store_n(&cq->dbrec[0], htobe32(cq->consumer & 0xffffff), __ATOMIC_RELEASE);
	return cqe;
}

/* Expects the next CQE to complete the WQE (or receive) at @index with @syndrome; 0: success. */
static inline void expect_cqe(struct raw_cq *cq, uint16_t index, uint8_t syndrome)
{
	const struct mlx5_err_cqe *cqe = raw_cq_poll(cq);
	uint8_t opcode;

	assert_non_null(cqe);
	opcode = cqe->op_own >> 4;
	assert_int_equal(opcode == MLX5_CQE_REQ_ERR || opcode == MLX5_CQE_RESP_ERR ? cqe->syndrome : 0, syndrome);
	assert_int_equal(be16toh(cqe->wqe_counter), index);
}

/* ---- queue pairs ---------------------------------------------------------------------------------------------- */

struct raw_qp {
	struct hca_qp *qp;
	uint8_t *sq, *rq;
	uint32_t blocks, dbrec[2];
	struct raw_cq *cq;
	uint16_t posted, receives; /* producer indices */
};

/* Makes a QP with both queues completing to @cq. @blocks: a power of two. */
static inline void raw_qp_make(struct device *device, struct raw_qp *end, enum ibv_qp_type type, struct raw_cq *cq,
			       uint32_t blocks)
{
	struct hca_qp_attr attr = {
		.type = type,
		.pd = device->pd,
		.send_cq = cq->cq,
		.recv_cq = cq->cq,
		.sq_wqebb_count = blocks,
		.rq_count = RQ_ENTRIES,
		.rq_shift = RQ_SHIFT,
		.dbrec = end->dbrec,
	};

	memset(end, 0, sizeof(*end));
	end->cq = cq;
	end->blocks = blocks;
	end->sq = attr.sq_buffer = aligned_alloc(64, blocks * 64);
	end->rq = attr.rq_buffer = aligned_alloc(64, RQ_ENTRIES << RQ_SHIFT);
	memset(end->sq, 0, blocks * 64);
	memset(end->rq, 0, RQ_ENTRIES << RQ_SHIFT);
	assert_int_equal(hca_qp_create(device->context, &attr, &end->qp), 0);
}

static inline void raw_qp_destroy(struct raw_qp *end)
{
	assert_int_equal(hca_qp_destroy(end->qp), 0);
	free(end->sq);
	free(end->rq);
}

/*
 * Moves the QP from RESET to RTS, connected to @peer (a QP number). @attr: timeout, retry_cnt, rnr_retry,
 * min_rnr_timer; the other fields are set here.
 */
static inline void raw_qp_connect(struct device *device, struct raw_qp *end, uint32_t peer,
				  const struct ibv_qp_attr *options)
{
	struct ibv_qp_attr attr = *options;
	bool rc = end->qp->type == IBV_QPT_RC, ud = end->qp->type == IBV_QPT_UD;
	size_t gids;

	attr.port_num = 1;
	attr.qp_access_flags = ALL_ACCESS & ~IBV_ACCESS_MW_BIND;
	attr.qkey = 0x11111111;
	attr.path_mtu = IBV_MTU_256;
	attr.dest_qp_num = peer;
	attr.rq_psn = attr.sq_psn = SQ_START_PSN;
	attr.max_rd_atomic = attr.max_dest_rd_atomic = 4;
	attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
	attr.ah_attr.grh.dgid = hca_gids(device->hca, &gids)[0].gid;
	attr.qp_state = IBV_QPS_RESET;
	assert_int_equal(hca_qp_modify(end->qp, &attr, IBV_QP_STATE), 0);
	end->posted = end->receives = 0;
	end->dbrec[0] = end->dbrec[1] = 0;
	attr.qp_state = IBV_QPS_INIT;
	assert_int_equal(hca_qp_modify(end->qp, &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					       (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)),
			 0);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(
		hca_qp_modify(end->qp, &attr,
			      IBV_QP_STATE | (ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
				      (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)),
		0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(hca_qp_modify(end->qp, &attr,
				       IBV_QP_STATE | IBV_QP_SQ_PSN |
					       (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
								IBV_QP_MAX_QP_RD_ATOMIC
						   : 0)),
			 0);
}

/* ---- WQEs ----------------------------------------------------------------------------------------------------- */

/* Writes segments (16 bytes each) at the producer index, and advances it by @blocks, without a doorbell. */
static inline void put_wqe(struct raw_qp *end, const void *segments, uint32_t count, uint32_t blocks)
{
	for (uint32_t i = 0; i < count; i++)
		memcpy(end->sq + (end->posted * 64 + i * 16) % (end->blocks * 64), (const uint8_t *)segments + i * 16,
		       16);
	end->posted = (uint16_t)(end->posted + blocks);
}

static inline void ring(struct raw_qp *end)
{
	__atomic_store_n(&end->dbrec[MLX5_SND_DBR], htobe32(end->posted), __ATOMIC_RELEASE);
	hca_qp_send_doorbell(end->qp);
}

static inline struct mlx5_wqe_ctrl_seg ctrl_segment(const struct raw_qp *end, uint8_t opcode, uint32_t ds)
{
	return (struct mlx5_wqe_ctrl_seg){
		.opmod_idx_opcode = htobe32((uint32_t)end->posted << 8 | opcode),
		.qpn_ds = htobe32(end->qp->number << 8 | ds),
		.fm_ce_se = MLX5_WQE_CTRL_CQ_UPDATE,
	};
}

static inline void put_nop(struct raw_qp *end)
{
	const struct mlx5_wqe_ctrl_seg ctrl = ctrl_segment(end, MLX5_OPCODE_NOP, 1);

	put_wqe(end, &ctrl, 1, 1);
}

static inline struct mlx5_wqe_data_seg data_segment(struct device *device, uint32_t offset, uint32_t length)
{
	return (struct mlx5_wqe_data_seg){
		.byte_count = htobe32(length),
		.lkey = htobe32(mkey_number(device->region)),
		.addr = htobe64((uintptr_t)device->memory + offset),
	};
}

/* Puts an RDMA WRITE or READ between @local and @remote, offsets in the device's memory. One block. */
static inline void put_rdma(struct device *device, struct raw_qp *end, uint8_t opcode, uint32_t local, uint32_t remote,
			    uint32_t length)
{
	const struct {
		struct mlx5_wqe_ctrl_seg ctrl;
		struct mlx5_wqe_raddr_seg remote;
		struct mlx5_wqe_data_seg data;
	} wqe = {
		.ctrl = ctrl_segment(end, opcode, 3),
		.remote = {.raddr = htobe64((uintptr_t)device->memory + remote),
			   .rkey = htobe32(mkey_number(device->region))},
		.data = data_segment(device, local, length),
	};

	put_wqe(end, &wqe, 3, 1);
}

static inline void put_send(struct device *device, struct raw_qp *end, uint32_t local, uint32_t length)
{
	const struct {
		struct mlx5_wqe_ctrl_seg ctrl;
		struct mlx5_wqe_data_seg data;
	} wqe = {ctrl_segment(end, MLX5_OPCODE_SEND, 2), data_segment(device, local, length)};

	put_wqe(end, &wqe, 2, 1);
}

static inline void post_receive(struct device *device, struct raw_qp *end, uint32_t offset, uint32_t length)
{
	const struct mlx5_wqe_data_seg data = data_segment(device, offset, length);

	memcpy(end->rq + ((end->receives % RQ_ENTRIES) << RQ_SHIFT), &data, sizeof(data));
	end->receives++;
	__atomic_store_n(&end->dbrec[MLX5_RCV_DBR], htobe32(end->receives), __ATOMIC_RELEASE);
	hca_qp_recv_doorbell(end->qp);
}

#endif
