/* SPDX-License-Identifier: BSD-2-Clause */
#include <sched.h>

#include "support/accel.h"

enum { QP_PSN = 0x4242, QP_DEPTH_LOG = 4, MTU_4096 = 5, MOST_LOG_MESSAGE = 30 };
enum { SIGNATURE_ERROR_CQE = 12, FREE_MASK = 1 << 29, LENGTH_MASK = 1, SIGNATURE_ERROR_MASK = 1 << 9 };

/* ---- queries and objects --------------------------------------------------------------------------------------------------- */

/* @group as the op_mod of QUERY_HCA_CAP has it, so with the bit of the current values or without. */
static void query_group(struct ibv_context *context, uint16_t op_mod, uint8_t out[4112])
{
	struct command command = command_of(0x100);

	put32(command.in, 4, op_mod);
	memset(out, 0, 4112);
	expect_error(mlx5dv_devx_general_cmd(context, command.in, 16, out, 4112), 0);
}

static bool capability(const uint8_t *out, size_t dword, unsigned int bit)
{
	return get32(out, 16 + 4 * dword) >> bit & 1;
}

struct accel_caps accel_query_caps(struct ibv_context *context)
{
	struct accel_caps caps = {0};
	uint8_t out[4112];

	query_group(context, 0x0 << 1 | 1, out);
	caps.crc32c = capability(out, 16, 8) && capability(out, 10, 23);
	caps.crypto = capability(out, 35, 22);
	caps.single_block_le = capability(out, 31, 14);
	caps.multi_block_be = capability(out, 31, 13);
	caps.multi_block_le = capability(out, 35, 23);
	if (caps.crypto) {
		query_group(context, 0x1a << 1 | 1, out);
		caps.wrapped_only = capability(out, 0, 2);
	}
	/* The maximum values, at the offsets that the fields have in the general group. */
	query_group(context, 0x20 << 1, out);
	caps.relaxed_write = capability(out, 7, 23);
	caps.relaxed_read = capability(out, 7, 22);
	return caps;
}

struct accel_key accel_create_key(struct ibv_pd *pd, enum accel_key_kind kind, const struct accel_caps *caps)
{
	struct command command = command_of(0x200);
	struct accel_key key = {.kind = kind};
	bool bsf = kind != ACCEL_KEY_PLAIN;

	/* free, umr_en, all rights but atomics, KLM */
	put32(command.in, 16, 1u << 30 | (caps->relaxed_write ? 1u << 18 : 0) | 0xbc00 | 2u << 8);
	put32(command.in, 20, 0xffffffu << 8 | 0x42);
	put32(command.in, 28, (bsf ? 1u << 30 : 0) | pd_number(pd));
	put32(command.in, 48, bsf ? 4 : 0);
	put32(command.in, 68, 128);
	put32(command.in, 72, caps->relaxed_read ? 1u << 6 : 0);
	put32(command.in, 76, kind == ACCEL_KEY_CRYPTO ? 1u << 27 : 0);
	key.object = create(pd->context, &command, 272);
	assert_non_null(key.object);
	key.number = created_number(&command) << 8 | 0x42;
	return key;
}

void accel_destroy_key(struct accel_key *key)
{
	expect_error(mlx5dv_devx_obj_destroy(key->object), 0);
	*key = (struct accel_key){0};
}

struct accel_object accel_create_psv(struct ibv_pd *pd)
{
	struct command command = command_of(0x600);
	struct accel_object psv;

	put32(command.in, 8, 1u << 28 | pd_number(pd));
	psv.object = mlx5dv_devx_obj_create(pd->context, command.in, 16, command.out, 32);
	assert_non_null(psv.object);
	psv.number = get32(command.out, 16) & 0xffffff;
	return psv;
}

struct accel_object accel_create_dek(struct ibv_pd *pd, const uint8_t *key, unsigned int bytes, const uint8_t *tag)
{
	struct command make = command_of(0xa00), query = command_of(0xa02);
	static const uint8_t no_opaque[8];
	struct accel_object dek;

	put32(make.in, 4, 0xc);
	put32(make.in, 24, (bytes == 64) << 8 | (tag ? 0x80 : 0) | 3);
	put32(make.in, 28, pd_number(pd));
	memcpy(make.in + 80, key, bytes);
	if (tag)
		memcpy(make.in + 80 + bytes, tag, 8);
	dek.object = create(pd->context, &make, 272);
	assert_non_null(dek.object);
	dek.number = get32(make.out, 8);
	put32(query.in, 4, 0xc);
	put32(query.in, 8, dek.number);
	expect_error(mlx5dv_devx_obj_query(dek.object, query.in, 16, query.out, 272), 0);
	assert_int_equal(query.out[24], 0); /* ready */
	assert_memory_equal(query.out + 64, no_opaque, sizeof(no_opaque));
	return dek;
}

void accel_destroy(struct accel_object *object)
{
	expect_error(mlx5dv_devx_obj_destroy(object->object), 0);
	*object = (struct accel_object){0};
}

/* ---- CQs and queue pairs --------------------------------------------------------------------------------------------------- */

void accel_cq_open(struct accel_cq *cq, struct ibv_context *context, uint32_t entries)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = entries,
					   .wc_flags = IBV_WC_STANDARD_FLAGS,
					   .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					   .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN};
	struct mlx5dv_cq_init_attr dv_attr = {.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE, .cqe_size = 64};
	struct mlx5dv_obj object;

	*cq = (struct accel_cq){.verbs = mlx5dv_create_cq(context, &attr, &dv_attr)};
	assert_non_null(cq->verbs);
	object = (struct mlx5dv_obj){.cq = {.in = ibv_cq_ex_to_cq(cq->verbs), .out = &cq->ring}};
	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ), 0);
	assert_int_equal(cq->ring.cqe_size, 64);
	assert_true(cq->ring.cqe_cnt >= entries);
}

void accel_cq_close(struct accel_cq *cq)
{
	expect_error(ibv_destroy_cq(ibv_cq_ex_to_cq(cq->verbs)), 0);
}

static void modify(const struct accel_queue *queue, struct command *command)
{
	put32(command->in, 8, queue->verbs->qp_num);
	expect_error(mlx5dv_devx_qp_modify(queue->verbs, command->in, 272, command->out, 16), 0);
}

/* INIT, RTR and RTS with a forced loopback: no address; the port and the P_Key index are set in INIT only. */
static void connect_with_itself(const struct accel_queue *queue, uint8_t port, uint16_t pkey_index)
{
	struct command init = command_of(0x502), rtr = command_of(0x503), rts = command_of(0x504);

	put32(init.in, 24, 3u << 11);
	put32(init.in, 48, pkey_index);
	put32(init.in, 84, (uint32_t)port << 16);
	put32(init.in, 168, 0xc000);
	modify(queue, &init);
	put32(rtr.in, 32, (uint32_t)MTU_4096 << 29 | MOST_LOG_MESSAGE << 24);
	put32(rtr.in, 44, queue->verbs->qp_num);
	put32(rtr.in, 48, 1u << 31);
	put32(rtr.in, 168, QP_DEPTH_LOG << 21);
	put32(rtr.in, 172, 12u << 24 | QP_PSN);
	modify(queue, &rtr);
	put32(rts.in, 56, 14u << 27);
	put32(rts.in, 136, QP_DEPTH_LOG << 21 | 7u << 16 | 7u << 13);
	put32(rts.in, 144, QP_PSN);
	modify(queue, &rts);
}

/* The queries that come before a connection: port and P_Key index of a fresh QP, capabilities, the port. */
static void connect_as_the_module(const struct accel_queue *queue)
{
	struct ibv_qp_attr attr = {0};
	struct ibv_qp_init_attr init = {0};
	struct ibv_port_attr port = {0};
	uint8_t out[4112];

	expect_error(ibv_query_qp(queue->verbs, &attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT, &init), 0);
	query_group(queue->verbs->context, 0x0 << 1, out);
	if (capability(out, 16, 2)) /* roce */
		query_group(queue->verbs->context, 0x4 << 1, out);
	expect_error(ibv_query_port(queue->verbs->context, attr.port_num, &port), 0);
	assert_int_equal(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	connect_with_itself(queue, attr.port_num, attr.pkey_index);
}

void accel_queue_open(struct accel_queue *queue, struct accel_cq *cq, struct ibv_pd *pd)
{
	struct mlx5dv_qp_init_attr dv_attr = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
					      .send_ops_flags = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE};
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_RC,
					   .pd = pd,
					   .send_cq = ibv_cq_ex_to_cq(cq->verbs),
					   .recv_cq = ibv_cq_ex_to_cq(cq->verbs),
					   .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					   .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND |
							     IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_BIND_MW,
					   .cap = {.max_send_wr = ACCEL_WRS,
						   .max_send_sge = ACCEL_SGES,
						   .max_inline_data = ACCEL_SGES * sizeof(struct ibv_sge)}};
	struct mlx5dv_obj object;
	size_t place = 0;

	memset(queue, 0, sizeof(*queue));
	queue->cq = cq;
	queue->pd = pd;
	queue->verbs = mlx5dv_create_qp(pd->context, &attr, &dv_attr);
	assert_non_null(queue->verbs);
	object = (struct mlx5dv_obj){.qp = {.in = queue->verbs, .out = &queue->ring}};
	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_QP), 0);
	assert_int_equal(queue->ring.sq.stride, 64);
	assert_true(queue->ring.sq.wqe_cnt <= ACCEL_MOST_BLOCKS);
	queue->available = queue->ring.sq.wqe_cnt;
	connect_as_the_module(queue);
	while (cq->queues[place])
		assert_true(++place < ACCEL_MOST_QUEUES);
	cq->queues[place] = queue;
}

void accel_queue_close(struct accel_queue *queue)
{
	for (size_t i = 0; i < ACCEL_MOST_QUEUES; i++)
		if (queue->cq->queues[i] == queue)
			queue->cq->queues[i] = NULL;
	expect_error(ibv_destroy_qp(queue->verbs), 0);
	queue->verbs = NULL;
}

void accel_queue_idle(const struct accel_queue *queue)
{
	struct accel_completion completion;

	assert_false(accel_poll(queue->cq, &completion));
	assert_int_equal(queue->available, queue->ring.sq.wqe_cnt);
}

enum ibv_qp_state accel_queue_state(const struct accel_queue *queue)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	expect_error(ibv_query_qp(queue->verbs, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

/* ---- WQEs -------------------------------------------------------------------------------------------------------------------- */

enum { MOST_WQE_BYTES = 128 + ACCEL_SGES * 16 + 64 };

static uint8_t *block_at(const struct accel_queue *queue, uint32_t index)
{
	return (uint8_t *)queue->ring.sq.buf + index % queue->ring.sq.wqe_cnt * 64;
}

/* Puts @wqe into the ring, across its end where needed. */
static bool put(struct accel_queue *queue, uint8_t *wqe, uint32_t opcode, unsigned int flags, uint64_t task,
		uint32_t immediate, size_t bytes)
{
	uint32_t index = queue->producer, blocks = (uint32_t)(bytes + 63) / 64;
	struct accel_slot *slot = &queue->slots[index % queue->ring.sq.wqe_cnt];

	if (blocks > queue->available)
		return false;
	flags |= task ? ACCEL_SIGNALLED : ACCEL_QUIET;
	put32(wqe, 0, (index & 0xffff) << 8 | opcode);
	put32(wqe, 4, queue->verbs->qp_num << 8 | (uint32_t)(bytes / 16));
	put32(wqe, 8, flags);
	put32(wqe, 12, immediate);
	for (size_t at = 0; at < bytes; at += 16)
		memcpy(block_at(queue, index + (uint32_t)(at / 64)) + at % 64, wqe + at, 16);
	queue->quiet += blocks;
	*slot = (struct accel_slot){.task = task, .blocks = task ? queue->quiet : 0};
	if (task)
		queue->quiet = 0;
	queue->producer += blocks;
	queue->available -= blocks;
	queue->last = index;
	queue->pending = true;
	return true;
}

bool accel_put_rdma(struct accel_queue *queue, enum accel_opcode opcode, unsigned int flags, uint64_t task,
		    uint32_t rkey, uint64_t remote, const struct ibv_sge *sges, size_t count)
{
	uint8_t wqe[MOST_WQE_BYTES] = {0};

	assert_true(count <= ACCEL_SGES);
	put64(wqe, 16, remote);
	put32(wqe, 24, rkey);
	for (size_t i = 0; i < count; i++)
		put_data(wqe, 32 + i * 16, sges[i].length, sges[i].lkey, sges[i].addr);
	return put(queue, wqe, opcode, flags, task, 0, 32 + count * 16);
}

static uint32_t total(const struct ibv_sge *sges, size_t count)
{
	uint32_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += sges[i].length;
	return bytes;
}

bool accel_put_umr(struct accel_queue *queue, uint64_t task, const struct accel_key *key, const struct ibv_sge *sges,
		   size_t count, const uint8_t *bsf)
{
	size_t entries = (count + 3) / 4 * 4, bytes = 128 + entries * 16;
	bool signature = key->kind == ACCEL_KEY_SIGNATURE;
	uint8_t wqe[MOST_WQE_BYTES] = {0};

	assert_true(count <= ACCEL_SGES);
	wqe[16] = 0x80; /* inline */
	wqe[21] = (uint8_t)entries;
	wqe[23] = bsf ? 4 : 0;
	put64(wqe, 24, LENGTH_MASK | FREE_MASK | (signature ? SIGNATURE_ERROR_MASK : 0)); /* no BSF_EN */
	put32(wqe, 64 + 12, key->odd ? 1u << 26 : 0);
	put64(wqe, 64 + 24, total(sges, count));
	for (size_t i = 0; i < count; i++)
		put_data(wqe, 128 + i * 16, sges[i].length, sges[i].lkey, sges[i].addr);
	if (bsf)
		memcpy(wqe + bytes, bsf, 64);
	return put(queue, wqe, ACCEL_UMR, 0, task, key->number, bytes + (bsf ? 64 : 0));
}

bool accel_put_set_psv(struct accel_queue *queue, uint32_t psv, uint32_t value)
{
	uint8_t wqe[32] = {0};

	put32(wqe, 16, psv);
	put32(wqe, 24, value);
	return put(queue, wqe, ACCEL_SET_PSV, 0, 0, 0, sizeof(wqe));
}

bool accel_put_signature(struct accel_queue *queue, const struct accel_key *key, const struct ibv_sge *sges,
			 size_t count, const struct accel_signature *signature)
{
	unsigned int domain = signature->memory ? 24 : 28; /* its check-and-generate bit; its init bit is the next */
	uint8_t bsf[64] = {1 << 6, 0xff};

	put32(bsf, 4, total(sges, count) - signature->field);
	put32(bsf, 16, (uint32_t)signature->begins << (domain + 1) | (uint32_t)signature->ends << domain);
	put32(bsf, signature->memory ? 28 : 24, (signature->ones ? 64u : 65u) << 24 | signature->psv);
	return accel_put_umr(queue, 0, key, sges, count, bsf);
}

bool accel_put_cipher(struct accel_queue *queue, uint64_t task, const struct accel_key *key, const struct ibv_sge *sges,
		      size_t count, const struct accel_cipher *cipher)
{
	uint8_t bsf[64] = {2 << 6 | 1, (uint8_t)cipher->direction};
	uint64_t little = htole64(cipher->lba);

	put32(bsf, 4, total(sges, count));
	bsf[8] = cipher->selector;
	if (cipher->big_endian)
		put64(bsf, 24, cipher->lba);
	else
		memcpy(bsf + 16, &little, sizeof(little));
	put32(bsf, 32, cipher->dek);
	if (cipher->tag)
		memcpy(bsf + 40, cipher->tag, 8);
	return accel_put_umr(queue, task, key, sges, count, bsf);
}

/* ---- doorbells and CQEs ------------------------------------------------------------------------------------------------------ */

void accel_ring(struct accel_queue *queue)
{
	uint64_t word;

	if (!queue->pending)
		return;
	queue->pending = false;
	memcpy(&word, block_at(queue, queue->last), sizeof(word));
	__atomic_store_n(&queue->ring.dbrec[MLX5_SND_DBR], htobe32(queue->producer & 0xffff), __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)queue->ring.bf.reg = word;
}

static struct accel_queue *queue_by_number(const struct accel_cq *cq, uint32_t number)
{
	for (size_t i = 0; i < ACCEL_MOST_QUEUES; i++)
		if (cq->queues[i] && cq->queues[i]->verbs->qp_num == number)
			return cq->queues[i];
	fail_msg("a CQE of queue pair %#x", number);
	return NULL;
}

bool accel_poll(struct accel_cq *cq, struct accel_completion *completion)
{
	const uint8_t *entry = (uint8_t *)cq->ring.buf + cq->consumer % cq->ring.cqe_cnt * 64;
	bool owner = cq->consumer & cq->ring.cqe_cnt;
	uint8_t op_own = __atomic_load_n(entry + 63, __ATOMIC_ACQUIRE);
	struct accel_slot *slot;

	if (op_own >> 4 == MLX5_CQE_INVALID || (op_own & 1) != owner)
		return false;
	*completion = (struct accel_completion){.opcode = op_own >> 4};
	memcpy(&completion->cqe, entry, sizeof(completion->cqe));
	cq->consumer++;
	if (completion->opcode == SIGNATURE_ERROR_CQE)
		return true;
	completion->queue = queue_by_number(cq, be32toh(completion->cqe.sop_drop_qpn) & 0xffffff);
	completion->index = be16toh(completion->cqe.wqe_counter);
	if (completion->opcode != MLX5_CQE_REQ)
		completion->syndrome = ((struct mlx5_err_cqe *)&completion->cqe)->syndrome;
	slot = &completion->queue->slots[completion->index % completion->queue->ring.sq.wqe_cnt];
	completion->task = slot->task;
	completion->queue->available += slot->blocks;
	slot->blocks = 0;
	return true;
}

struct accel_completion accel_next(struct accel_cq *cq)
{
	double end = seconds_now() + 20;
	struct accel_completion completion;

	while (!accel_poll(cq, &completion)) {
		sched_yield();
		assert_true(seconds_now() < end);
	}
	return completion;
}

void accel_expect_(struct place place, struct accel_queue *queue, uint64_t task)
{
	struct accel_completion completion;

	accel_ring(queue);
	completion = accel_next(queue->cq);
	if (completion.task != task || completion.opcode != MLX5_CQE_REQ)
		fail_at(place, "a CQE with opcode %u, syndrome %#x, of task %llu and not %llu", completion.opcode,
			completion.syndrome, (unsigned long long)completion.task, (unsigned long long)task);
}
