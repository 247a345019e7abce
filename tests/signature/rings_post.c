/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests, receives, CQEs and signature errors in rings that the test fills: see rings.h. Formats follow mlx5-formats. */
#include "rings_parts.h"

#include <errno.h>

static uint64_t get64(const uint8_t *bytes, size_t at)
{
	return (uint64_t)get32(bytes, at) << 32 | get32(bytes, at + 4);
}

/* ---- requests -------------------------------------------------------------------------------------------------- */

enum { SET_PSV = 0x20, UMR = 0x25, UMR_MASK = 24, MASK_SIG_ERR = 9 };

static uint8_t *block_of(const struct ring *ring, uint16_t index)
{
	return ring->requests + (size_t)(index % ring->blocks) * BLOCK;
}

/*
 * Returns true for a UMR with a key context, in the second block, that does not free the key: a configuration, not an
 * invalidation.
 */
static bool is_configuration(const struct ring *ring, uint8_t opcode)
{
	return opcode == UMR && !(*block_of(ring, (uint16_t)(ring->next + 1)) & 0x40);
}

/* Makes a configuration arm the key after an error: bit 9 of the mask of changed attributes (mlx5-formats 1.6). */
static void arm(uint8_t *wqe)
{
	put32(wqe, UMR_MASK + 4, get32(wqe, UMR_MASK + 4) | 1u << MASK_SIG_ERR);
}

/* Copies the request at the composer's index, and returns its blocks. */
static uint16_t move(struct ring *ring, struct known *known)
{
	const uint8_t *from = ring->composer.sq.buf;
	uint8_t *ctrl = block_of(ring, ring->next);
	const uint8_t *composed = from + (size_t)(ring->composed % ring->composer.sq.wqe_cnt) * BLOCK;
	uint32_t opcode = get32(composed, 0), units = get32(composed, 4) & 0x3f;
	uint16_t blocks = (uint16_t)((units * 16 + BLOCK - 1) / BLOCK);

	for (uint16_t i = 0; i < blocks; i++)
		memcpy(block_of(ring, (uint16_t)(ring->next + i)),
		       from + (size_t)((ring->composed + i) % ring->composer.sq.wqe_cnt) * BLOCK, BLOCK);
	put32(ctrl, 0, (opcode & 0xff0000ff) | (uint32_t)ring->next << 8);
	put32(ctrl, 4, ring->number << 8 | units);
	if (known && known->polled && is_configuration(ring, opcode & 0xff)) {
		arm(ctrl);
		known->polled = false;
	}
	return blocks;
}

void rings_post(struct world *world, int transport, int side, uint64_t id)
{
	struct rings *rings = world->rings;
	struct ring *ring = &rings->ring[transport][side];
	uint16_t end = (uint16_t)be32toh(ring->composer.dbrec[MLX5_SND_DBR]);
	uint64_t doorbell = 0;

	while (ring->composed != end) {
		uint16_t blocks = move(ring, transport == RC ? rings->configures[side] : NULL);

		ring->request_id[ring->next] = id;
		memcpy(&doorbell, block_of(ring, ring->next), sizeof(doorbell));
		ring->composed = (uint16_t)(ring->composed + blocks);
		ring->next = (uint16_t)(ring->next + blocks);
		ring->count++;
	}
	rings->configures[side] = NULL;
	__atomic_store_n(&ring->record[MLX5_SND_DBR], htobe32(ring->next), __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)ring->reg = doorbell;
	if (ring->count >= COMPOSED_MOST)
		rings_begin_composing(world, transport, side);
}

void rings_receive(struct world *world, int transport, int side, const struct ibv_recv_wr *wr)
{
	struct ring *ring = &world->rings->ring[transport][side];
	uint8_t *entry = ring->receives + (size_t)(ring->next_receive % ring->receive_count) * ring->receive_bytes;

	for (int i = 0; i < wr->num_sge; i++, entry += 16) {
		put32(entry, 0, wr->sg_list[i].length);
		put32(entry, 4, wr->sg_list[i].lkey);
		put32(entry, 8, (uint32_t)(wr->sg_list[i].addr >> 32));
		put32(entry, 12, (uint32_t)wr->sg_list[i].addr);
	}
	if (wr->num_sge * 16u < ring->receive_bytes) {
		memset(entry, 0, 16);
		put32(entry, 4, INVALID_KEY);
	}
	ring->receive_id[ring->next_receive++] = wr->wr_id;
	__atomic_store_n(&ring->record[MLX5_RCV_DBR], htobe32(ring->next_receive), __ATOMIC_RELEASE);
}

/* ---- completions ----------------------------------------------------------------------------------------------- */

static enum ibv_wc_status status_of(uint8_t syndrome)
{
	switch (syndrome) {
	case 0x04:
		return IBV_WC_LOC_PROT_ERR;
	case 0x05:
		return IBV_WC_WR_FLUSH_ERR;
	case 0x13:
		return IBV_WC_REM_ACCESS_ERR;
	case 0x14:
		return IBV_WC_REM_OP_ERR;
	default:
		return IBV_WC_GENERAL_ERR;
	}
}

static int opcode_of(uint8_t request)
{
	switch (request) {
	case 0x08:
	case 0x09:
		return IBV_WC_RDMA_WRITE;
	case 0x0a:
	case 0x0b:
		return IBV_WC_SEND;
	case 0x10:
		return IBV_WC_RDMA_READ;
	case UMR:
	case SET_PSV:
		return (int)IBV_WC_DRIVER1;
	default:
		return MLX5DV_WC_MEMCPY;
	}
}

/* Records the error of a SIG_ERR CQE (mlx5-formats 3.5). */
static void note_error(struct world *world, const uint8_t *cqe)
{
	struct known *known = NULL;

	for (int side = 0; side < SIDES; side++)
		for (int i = 0; i < KEYS; i++)
			if (world->key[side][i]->lkey >> 8 == get32(cqe, 36) >> 8)
				known = &world->rings->known[side][i];
	if (!known)
		world_fail("a signature error of key %x, which does not exist", get32(cqe, 36));
	known->has_error = known->polled = true;
	known->syndrome = (uint16_t)(get32(cqe, 32) >> 16);
	known->memory = cqe[35] & 7;
	known->expected = (uint64_t)get32(cqe, 16) << 32 | get32(cqe, 24);
	known->actual = (uint64_t)get32(cqe, 20) << 32 | get32(cqe, 28);
	known->offset = get64(cqe, 40);
}

static struct ring *ring_of(struct rings *rings, uint32_t number)
{
	for (int i = 0; i < PAIRS; i++)
		if (rings->ring[i / SIDES][i % SIDES].number == number)
			return &rings->ring[i / SIDES][i % SIDES];
	world_fail("a CQE of queue pair %x, which does not exist", number);
}

static void describe(struct rings *rings, const uint8_t *cqe, struct ibv_wc *wc)
{
	struct ring *ring = ring_of(rings, get32(cqe, 56) & 0xffffff);
	uint16_t index = (uint16_t)(get32(cqe, 60) >> 16);
	uint8_t opcode = cqe[63] >> 4;
	bool receives =
		opcode == MLX5_CQE_RESP_ERR || (opcode >= MLX5_CQE_RESP_WR_IMM && opcode <= MLX5_CQE_RESP_SEND_INV);

	*wc = (struct ibv_wc){.wr_id = receives ? ring->receive_id[index] : ring->request_id[index]};
	if (opcode == MLX5_CQE_REQ_ERR || opcode == MLX5_CQE_RESP_ERR) {
		wc->status = status_of(cqe[55]);
		return;
	}
	wc->byte_len = get32(cqe, 44);
	if (!receives)
		wc->opcode = (enum ibv_wc_opcode)opcode_of(cqe[56]);
	else
		wc->opcode = opcode == MLX5_CQE_RESP_WR_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
}

int rings_poll(struct world *world, int queue, struct ibv_wc *wc)
{
	struct own_cq *cq = &world->rings->cq[queue];
	const uint8_t *cqe = cq->cqes + (size_t)(cq->consumer % cq->count) * cq->bytes + cq->bytes - BLOCK;
	uint8_t op_own = __atomic_load_n(&cqe[63], __ATOMIC_ACQUIRE);
	bool error = op_own >> 4 == MLX5_CQE_SIG_ERR;

	if (op_own >> 4 == MLX5_CQE_INVALID || (op_own & 1) != !!(cq->consumer & cq->count))
		return 0;
	if (error)
		note_error(world, cqe);
	else
		describe(world->rings, cqe, wc);
	cq->consumer++;
	__atomic_store_n(&cq->record[0], htobe32(cq->consumer & 0xffffff), __ATOMIC_RELEASE);
	return !error;
}

/* ---- keys ------------------------------------------------------------------------------------------------------ */

void rings_configure(struct world *world, int side, const struct end *end, const char *letters)
{
	struct known *known = &world->rings->known[side][end->key];

	world->rings->configures[side] = known;
	if (strchr(letters, 'r'))
		known->signs = false;
	if (!strpbrk(letters, "sj"))
		return;
	known->signs = true;
	known->signature = strchr(letters, 's') ? end->signature : other_signature;
}

/* Returns those of 64 bits that a field of the block has. */
static uint64_t part(const struct domain *domain, uint16_t syndrome, uint64_t value)
{
	if (domain->kind == KIND_CRC)
		return domain->guard == GUARD_CRC64 ? value : value >> 32;
	if (syndrome & 0x2000)
		return value >> 48;
	return syndrome & 0x1000 ? value >> 32 & 0xffff : value & 0xffffffff;
}

int rings_check(struct world *world, int side, const struct end *end, struct mlx5dv_mkey_err *error)
{
	struct known *known = &world->rings->known[side][end->key];
	const struct domain *domain = known->memory ? &known->signature.memory : &known->signature.wire;

	/* In profile man the device is queried, no matter where the CQEs are read. */
	if (!world->connectx)
		return mlx5dv_mkey_check(world->key[side][end->key], error);
	*error = (struct mlx5dv_mkey_err){.err_type = MLX5DV_MKEY_NO_ERR};
	if (!known->has_error)
		return 0;
	if (!known->signs || domain->kind == KIND_NONE)
		return EINVAL;
	known->has_error = false;
	error->err_type = known->syndrome & 0x2000   ? MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD
			  : known->syndrome & 0x1000 ? MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG
						     : MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG;
	error->err.sig.actual_value = part(domain, known->syndrome, known->actual);
	error->err.sig.expected_value = part(domain, known->syndrome, known->expected);
	error->err.sig.offset = known->offset;
	return 0;
}
