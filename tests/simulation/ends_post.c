/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes requests and receives of a plan as WQEs (mlx5-formats 1), and reads CQEs; see ends.h. */
#include <string.h>

#include "ends.h"

#include "transport/control/commands.h"

enum { SEGMENT = 16, BLOCK_BYTES = 64, QKEY = 0x11111111, DC_KEY = 0x5eed };

/* A WQE being written: its segments, each of 16 bytes. */
struct writer {
	uint8_t bytes[16 * SEGMENT];
	uint32_t segments;
};

static void append(struct writer *writer, const void *segments, uint32_t bytes)
{
	memcpy(writer->bytes + writer->segments * SEGMENT, segments, bytes);
	writer->segments += bytes / SEGMENT;
}

static void put_big_endian(uint8_t *to, uint64_t value, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

static void append_address(struct writer *writer, const struct plan *plan, int end, const struct request *request)
{
	bool ud = plan->type == IBV_QPT_UD;
	struct mlx5_wqe_av av = {
		.dqp_dct = htobe32(MLX5_EXTENDED_UD_AV | end_responder(!end, request->target)->number),
		.hop_limit = 1,
	};
	size_t gids;

	if (ud)
		av.key.qkey.qkey = htobe32(QKEY);
	else
		av.key.dc_key = htobe64(DC_KEY + (uint64_t)request->target);
	memcpy(av.rgid, &hca_gids(ends_hca, &gids)[0].gid, 16);
	append(writer, &av, sizeof(av));
}

/* Returns the offset in the staged memory as addressed through the key, on the wire. */
static uint64_t staged_address(uint32_t offset, uint8_t keys, bool remote)
{
	uint32_t at = offset - area_of(remote) - STAGED - (keys - 1u) * STAGED_BYTES;

	return keys == KEYS_SIGNATURE ? at / BLOCK * (BLOCK + FIELD) : at;
}

static uint32_t key_of(const struct end *end, uint8_t keys, bool remote)
{
	return mkey_number(keys ? end->staged[remote][keys] : end->region);
}

static uint64_t address_of(const struct end *end, uint32_t offset, uint8_t keys, bool remote)
{
	return keys ? staged_address(offset, keys, remote) : (uintptr_t)end->memory + offset;
}

static void append_remote(struct writer *writer, const struct end *peer, const struct request *request)
{
	struct mlx5_wqe_raddr_seg remote = {
		.raddr = htobe64(address_of(peer, request->remote, request->keys, true)),
		.rkey = htobe32(key_of(peer, request->keys, true)),
	};

	if (request->passing) {
		remote.raddr = htobe64(request->remote);
		remote.rkey = htobe32(mkey_number(peer->passing[request->passing - 1]));
	}
	append(writer, &remote, sizeof(remote));
}

/* mlx5-formats 1.5: four operands; two for the extended forms of a fetch-and-add. */
static void append_operands(struct writer *writer, const struct request *request)
{
	bool adds = request->opcode == MLX5_OPCODE_ATOMIC_MASKED_FA;
	uint32_t size = request->operand_bytes;
	uint8_t bytes[2 * SEGMENT] = {0};

	put_big_endian(bytes, request->swap_add, size);
	if (!opcode_is_masked(request->opcode)) {
		put_big_endian(bytes + 8, request->compare, 8);
		append(writer, bytes, SEGMENT);
	} else if (adds && request->opmod) {
		put_big_endian(bytes + size, request->swap_mask, size);
		append(writer, bytes, SEGMENT);
	} else {
		put_big_endian(bytes + size, request->compare, size);
		put_big_endian(bytes + 2 * size, request->swap_mask, size);
		put_big_endian(bytes + 3 * size, request->compare_mask, size);
		append(writer, bytes, 4 * size);
	}
}

static void append_data(struct writer *writer, const struct end *end, const struct request *request)
{
	for (uint8_t i = 0; i < request->pieces; i++) {
		const struct range *piece = &request->local[i];
		const struct mlx5_wqe_data_seg data = {
			.byte_count = htobe32(request->keys ? request_wire_bytes(request) : piece->length),
			.lkey = htobe32(key_of(end, request->keys, false)),
			.addr = htobe64(address_of(end, piece->offset, request->keys, false)),
		};

		append(writer, &data, sizeof(data));
	}
}

static __be32 immediate_of(const struct request *request, const struct end *peer)
{
	if (request->opcode == MLX5_OPCODE_SEND_INVAL)
		return htobe32(mkey_number(peer->invalidated[request->invalidates]));
	return htobe32(request->imm);
}

static void write_request(struct writer *writer, int number, const struct plan *plan, const struct request *request)
{
	const struct end *end = &ends[number], *peer = &ends[!number];
	struct mlx5_wqe_ctrl_seg ctrl = {
		.opmod_idx_opcode =
			htobe32((uint32_t)request->opmod << 24 | (uint32_t)end->posted << 8 | request->opcode),
		.fm_ce_se = request->fence,
		.imm = immediate_of(request, peer),
	};

	ctrl.fm_ce_se |=
		(request->signalled ? MLX5_WQE_CTRL_CQ_UPDATE : 0) | (request->solicited ? MLX5_WQE_CTRL_SOLICITED : 0);
	append(writer, &ctrl, sizeof(ctrl));
	if (plan->type == IBV_QPT_UD || plan->type == QP_TYPE_DCI)
		append_address(writer, plan, number, request);
	if (plan->type == IBV_QPT_XRC_SEND) {
		const __be32 srq[4] = {htobe32(hca_srq_number(peer->queue[request->target].srq))};

		append(writer, srq, sizeof(srq));
	}
	if (opcode_is_rdma(request->opcode) || opcode_is_atomic(request->opcode))
		append_remote(writer, peer, request);
	if (opcode_is_atomic(request->opcode))
		append_operands(writer, request);
	append_data(writer, end, request);
	ctrl.qpn_ds = htobe32(end->qp->number << 8 | writer->segments);
	memcpy(writer->bytes, &ctrl, sizeof(ctrl));
}

bool end_post(int number, const struct plan *plan, uint32_t request, uint32_t free)
{
	struct end *end = &ends[number];
	struct writer writer = {.segments = 0};
	uint32_t blocks, at = end->posted % SQ_BLOCKS * BLOCK_BYTES;

	write_request(&writer, number, plan, &plan->direction[number].request[request]);
	blocks = (writer.segments + 3) / 4;
	if (blocks > free)
		return false;
	for (uint32_t i = 0; i < blocks * BLOCK_BYTES; i++)
		end->sq[(at + i) % (SQ_BLOCKS * BLOCK_BYTES)] = writer.bytes[i];
	end->index_of[request] = end->posted;
	end->blocks_of[request] = (uint8_t)blocks;
	end->posted = (uint16_t)(end->posted + blocks);
	return true;
}

void end_ring(int number)
{
	struct end *end = &ends[number];

	__atomic_store_n(&end->dbrec[MLX5_SND_DBR], htobe32(end->posted), __ATOMIC_RELEASE);
	hca_qp_send_doorbell(end->qp);
}

void end_receive(int number, const struct plan *plan, int target, uint32_t receive)
{
	const struct receive *what = &plan->direction[!number].receive[target][receive];
	struct end *end = &ends[number];
	struct queue *queue = &end->queue[target];
	uint32_t bytes = what->buffer.length;
	struct mlx5_wqe_data_seg data;

	if (what->keys == KEYS_SIGNATURE)
		bytes = bytes / BLOCK * (BLOCK + FIELD);
	data = (struct mlx5_wqe_data_seg){
		.byte_count = htobe32(bytes),
		.lkey = htobe32(bytes ? key_of(end, what->keys, true) : 0x100),
		.addr = htobe64(address_of(end, what->buffer.offset, what->keys, true)),
	};
	if (queue->srq) {
		memcpy(queue->ring + ((queue->posted % RQ_ENTRIES) << SRQ_SHIFT) + SEGMENT, &data, sizeof(data));
		queue->posted++;
		__atomic_store_n(&queue->srq_dbrec, htobe32(queue->posted), __ATOMIC_RELEASE);
		return;
	}
	memcpy(queue->ring + ((queue->posted % RQ_ENTRIES) << RQ_SHIFT), &data, sizeof(data));
	queue->posted++;
	__atomic_store_n(&end->dbrec[MLX5_RCV_DBR], htobe32(queue->posted), __ATOMIC_RELEASE);
	hca_qp_recv_doorbell(end->qp);
}

const struct mlx5_cqe64 *ring_poll(struct ring_cq *cq)
{
	const struct mlx5_cqe64 *cqe = (const struct mlx5_cqe64 *)(cq->ring + 64 * (size_t)(cq->consumer % CQES));
	uint8_t op_own = __atomic_load_n(&cqe->op_own, __ATOMIC_ACQUIRE);

	if (op_own >> 4 == MLX5_CQE_INVALID || (op_own & 1) != !!(cq->consumer & CQES))
		return NULL;
	cq->consumer++;
	__atomic_store_n(&cq->dbrec[0], htobe32(cq->consumer & 0xffffff), __ATOMIC_RELEASE);
	return cqe;
}
