/* SPDX-License-Identifier: BSD-2-Clause */
/* Rings by hand, see rings.h. */
#include "support/rings.h"

#include <endian.h>

#include "test_clock.h"

struct rings rings_open(struct endpoint *endpoint)
{
	struct rings rings = {.endpoint = endpoint};
	struct mlx5dv_obj object = {
		.qp = {.in = endpoint->qp, .out = &rings.qp},
		.cq = {.in = endpoint->cq, .out = &rings.cq},
	};

	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ), 0);
	return rings;
}

static uint8_t *block_at(const struct rings *rings, uint32_t index)
{
	return (uint8_t *)rings->qp.sq.buf + index % rings->qp.sq.wqe_cnt * RING_BLOCK;
}

uint8_t *rings_next_wqe(const struct rings *rings)
{
	return block_at(rings, rings->producer);
}

void rings_put_control(const struct rings *rings, uint8_t *wqe, uint8_t opcode, uint8_t units)
{
	mlx5dv_set_ctrl_seg((struct mlx5_wqe_ctrl_seg *)wqe, (uint16_t)rings->producer, opcode, 0,
			    rings->endpoint->qp->qp_num, MLX5_WQE_CTRL_CQ_UPDATE, units, 0, 0);
}

void rings_put(const struct rings *rings, const void *wqe, uint32_t units)
{
	for (uint32_t i = 0; i < units; i++)
		memcpy(block_at(rings, rings->producer + i / 4) + i % 4 * RING_UNIT,
		       (const uint8_t *)wqe + i * RING_UNIT, RING_UNIT);
}

void rings_ring(struct rings *rings, uint32_t blocks, enum ring_style style)
{
	uint32_t first = rings->producer;
	uint64_t *reg = rings->qp.bf.reg;

	rings->producer += blocks;
	__atomic_store_n(&rings->qp.dbrec[MLX5_SND_DBR], htobe32(rings->producer & 0xffff), __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < (style == RING_BLUEFLAME ? blocks * RING_BLOCK / sizeof(*reg) : 1); i++) {
		uint64_t word;

		memcpy(&word, block_at(rings, first + i / 8) + i % 8 * sizeof(word), sizeof(word));
		__atomic_store_n(reg + i, word, __ATOMIC_RELEASE);
	}
}

void rings_receive(struct rings *rings, uint64_t address, uint32_t length, uint32_t lkey)
{
	uint8_t *entry = (uint8_t *)rings->qp.rq.buf + rings->receives % rings->qp.rq.wqe_cnt * rings->qp.rq.stride;

	mlx5dv_set_data_seg((struct mlx5_wqe_data_seg *)entry, length, lkey, address);
	if (rings->qp.rq.stride > RING_UNIT)
		mlx5dv_set_data_seg((struct mlx5_wqe_data_seg *)(entry + RING_UNIT), 0, MLX5_INVALID_LKEY, 0);
	rings->receives++;
	__atomic_store_n(&rings->qp.dbrec[MLX5_RCV_DBR], htobe32(rings->receives & 0xffff), __ATOMIC_RELEASE);
}

static struct mlx5_cqe64 *cqe_at(const struct rings *rings)
{
	uint32_t slot = rings->consumer % rings->cq.cqe_cnt;

	return (struct mlx5_cqe64 *)((uint8_t *)rings->cq.buf + (slot + 1) * rings->cq.cqe_size -
				     sizeof(struct mlx5_cqe64));
}

bool rings_has_cqe(const struct rings *rings)
{
	uint8_t op_own = __atomic_load_n(&cqe_at(rings)->op_own, __ATOMIC_ACQUIRE);

	return op_own >> 4 != MLX5_CQE_INVALID && (op_own & 1) == !!(rings->consumer & rings->cq.cqe_cnt);
}

struct mlx5_cqe64 rings_next_cqe_(struct place place, struct rings *rings)
{
	double end = seconds_now() + DEADLINE_SECONDS;
	struct mlx5_cqe64 copy;

	while (!rings_has_cqe(rings))
		if (seconds_now() > end)
			fail_at(place, "no CQE");
	copy = *cqe_at(rings);
	rings->consumer++;
	__atomic_store_n(&rings->cq.dbrec[0], htobe32(rings->consumer & 0xffffff), __ATOMIC_RELEASE);
	return copy;
}

void rings_expect_(struct place place, struct rings *rings, uint32_t index, uint8_t opcode)
{
	struct mlx5_cqe64 cqe = rings_next_cqe_(place, rings);
	uint32_t expected = (uint32_t)opcode << 24 | rings->endpoint->qp->qp_num;

	if (cqe.op_own >> 4 != MLX5_CQE_REQ)
		fail_at(place, "CQE with opcode %u, syndrome %#x, vendor syndrome %u", cqe.op_own >> 4,
			((struct mlx5_err_cqe *)&cqe)->syndrome, ((struct mlx5_err_cqe *)&cqe)->vendor_err_synd);
	if (be32toh(cqe.sop_drop_qpn) != expected || be16toh(cqe.wqe_counter) != (index & 0xffff))
		fail_at(place, "CQE of %#x, WQE %u instead of %#x, %u", be32toh(cqe.sop_drop_qpn),
			be16toh(cqe.wqe_counter), expected, index & 0xffff);
}
