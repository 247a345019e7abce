/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues with rings that the test fills, and their states: see rings.h. Bytes and bits are those of the mlx5_ifc
 * structures.
 */
#include "rings_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "../model/link.h"

static const enum ibv_qp_type types[TRANSPORTS] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RC};

bool rings_wanted(void)
{
	return getenv("SIGNATURE_RINGS");
}

static void must(const char *what, bool done)
{
	if (!done)
		world_fail("%s: %s", what, strerror(errno));
}

/* ---- objects --------------------------------------------------------------------------------------------------- */

static uint32_t take_memory(struct rings *rings, uint32_t bytes)
{
	uint32_t at = rings->used;

	rings->used += bytes;
	return at;
}

static struct mlx5dv_devx_obj *create(struct world *world, uint8_t *in, uint32_t *number)
{
	uint8_t out[16];
	struct mlx5dv_devx_obj *object = mlx5dv_devx_obj_create(world->context, in, 272, out, sizeof(out));

	must("CREATE", object);
	*number = get32(out, 8) & 0xffffff;
	return object;
}

static void open_own_cq(struct world *world, struct own_cq *cq)
{
	struct rings *rings = world->rings;
	uint32_t cqes = take_memory(rings, CQ_BYTES), record = take_memory(rings, RECORD_BYTES);
	uint8_t in[272] = {0};

	cq->cqes = rings->memory + cqes;
	cq->record = (__be32 *)(rings->memory + record);
	cq->count = 1u << LOG_CQES;
	cq->bytes = BLOCK;
	memset(cq->cqes, 0xff, CQ_BYTES);
	put32(in, 0, 0x400u << 16);
	put32(in, 20, rings->registered->umem_id);
	put32(in, 28, LOG_CQES << 24 | rings->uar->page_id);
	put32(in, 36, rings->eqn);
	put32(in, 76, record);
	put32(in, 84, cqes);
	put32(in, 88, rings->registered->umem_id);
	cq->own = create(world, in, &cq->number);
}

static void open_verbs_cq(struct world *world, struct own_cq *cq)
{
	struct mlx5dv_cq dv = {0};
	struct mlx5dv_obj object = {.cq = {.out = &dv}};

	cq->cq = ibv_create_cq(world->context, 1 << LOG_CQES, NULL, NULL, 0);
	must("ibv_create_cq", cq->cq);
	object.cq.in = cq->cq;
	must("mlx5dv_init_obj", !mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ));
	cq->cqes = dv.buf;
	cq->record = dv.dbrec;
	cq->count = dv.cqe_cnt;
	cq->bytes = dv.cqe_size;
}

static struct own_cq *cq_of(struct rings *rings, int transport, int side, bool receives)
{
	int first = transport == OTHER_RC ? OTHER_PAIR : 0;

	return &rings->cq[first + (side == SOURCE ? SOURCE_SEND : TARGET_SEND) + (receives ? 1 : 0)];
}

static void open_own_qp(struct world *world, int transport, int side)
{
	static const uint8_t services[TRANSPORTS] = {0, 1, 2, 0};
	struct rings *rings = world->rings;
	struct ring *ring = &rings->ring[transport][side];
	uint32_t queues = take_memory(rings, QP_BYTES), record = take_memory(rings, RECORD_BYTES);
	uint8_t in[272] = {0};

	ring->receives = rings->memory + queues;
	ring->requests = ring->receives + RECEIVE_AREA;
	ring->record = (__be32 *)(rings->memory + record);
	ring->blocks = 1u << LOG_BLOCKS;
	ring->receive_count = 1u << LOG_RECEIVES;
	ring->receive_bytes = RECEIVE_BYTES;
	ring->reg = rings->uar->reg_addr;
	put32(in, 0, 0x500u << 16);
	put32(in, 24, (uint32_t)services[transport] << 16 | 0x1800);
	put32(in, 28, rings->pdn);
	put32(in, 32, LOG_RECEIVES << 19 | 3 << 16 | LOG_BLOCKS << 11); /* stride: 16 << 3 */
	put32(in, 36, rings->uar->page_id);
	put32(in, 148, cq_of(rings, transport, side, false)->number);
	put32(in, 180, cq_of(rings, transport, side, true)->number);
	put32(in, 188, record);
	put32(in, 252, rings->registered->umem_id);
	put32(in, 260, queues);
	put32(in, 264, rings->registered->umem_id);
	ring->own = create(world, in, &ring->number);
}

static void open_verbs_qp(struct world *world, int transport, int side)
{
	struct rings *rings = world->rings;
	struct ring *ring = &rings->ring[transport][side];
	struct ibv_qp_init_attr init = {
		.send_cq = cq_of(rings, transport, side, false)->cq,
		.recv_cq = cq_of(rings, transport, side, true)->cq,
		.cap = {.max_send_wr = 128,
			.max_recv_wr = 1 << LOG_RECEIVES,
			.max_send_sge = 4,
			.max_recv_sge = 5,
			.max_inline_data = transport == RC ? 512 : 0},
		.qp_type = types[transport],
	};
	struct mlx5dv_qp dv = {0};
	struct mlx5dv_obj object = {.qp = {.out = &dv}};

	ring->qp = ibv_create_qp(world->pd, &init);
	must("ibv_create_qp", ring->qp);
	object.qp.in = ring->qp;
	must("mlx5dv_init_obj", !mlx5dv_init_obj(&object, MLX5DV_OBJ_QP));
	ring->number = ring->qp->qp_num;
	ring->requests = dv.sq.buf;
	ring->receives = dv.rq.buf;
	ring->blocks = dv.sq.wqe_cnt;
	ring->receive_count = dv.rq.wqe_cnt;
	ring->receive_bytes = dv.rq.stride;
	ring->record = dv.dbrec;
	ring->reg = dv.bf.reg;
}

static void open_umem(struct world *world)
{
	struct rings *rings = world->rings;
	struct mlx5dv_pd pd = {0};
	struct mlx5dv_obj object = {.pd = {.in = world->pd, .out = &pd}};

	rings->memory = mmap(NULL, UMEM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must("mmap", rings->memory != MAP_FAILED);
	rings->registered = mlx5dv_devx_umem_reg(world->context, rings->memory, UMEM_BYTES, IBV_ACCESS_LOCAL_WRITE);
	must("mlx5dv_devx_umem_reg", rings->registered);
	rings->uar = mlx5dv_devx_alloc_uar(world->context, MLX5DV_UAR_ALLOC_TYPE_BF);
	must("mlx5dv_devx_alloc_uar", rings->uar);
	must("mlx5dv_devx_query_eqn", !mlx5dv_devx_query_eqn(world->context, 0, &rings->eqn));
	must("mlx5dv_init_obj", !mlx5dv_init_obj(&object, MLX5DV_OBJ_PD));
	rings->pdn = pd.pdn;
}

void rings_open(struct world *world)
{
	struct rings *rings = calloc(1, sizeof(*rings));

	must("calloc", rings);
	world->rings = rings;
	rings->umem = !strcmp(getenv("SIGNATURE_RINGS"), "umem");
	if (rings->umem)
		open_umem(world);
	for (int i = 0; i < QUEUES; i++)
		rings->umem ? open_own_cq(world, &rings->cq[i]) : open_verbs_cq(world, &rings->cq[i]);
	for (int transport = 0; transport < TRANSPORTS; transport++)
		for (int side = 0; side < SIDES; side++) {
			struct mlx5dv_obj object = {.qp = {.in = world->qp[transport][side].qp,
							   .out = &rings->ring[transport][side].composer}};

			rings->umem ? open_own_qp(world, transport, side) : open_verbs_qp(world, transport, side);
			must("mlx5dv_init_obj", !mlx5dv_init_obj(&object, MLX5DV_OBJ_QP));
		}
}

void rings_close(struct world *world)
{
	struct rings *rings = world->rings;

	for (int i = 0; i < PAIRS; i++) {
		struct ring *ring = &rings->ring[i / SIDES][i % SIDES];

		must("destroying a QP", !(ring->own ? mlx5dv_devx_obj_destroy(ring->own) : ibv_destroy_qp(ring->qp)));
	}
	for (int i = 0; i < QUEUES; i++) {
		struct own_cq *cq = &rings->cq[i];

		must("destroying a CQ", !(cq->own ? mlx5dv_devx_obj_destroy(cq->own) : ibv_destroy_cq(cq->cq)));
	}
	if (rings->umem) {
		must("mlx5dv_devx_umem_dereg", !mlx5dv_devx_umem_dereg(rings->registered));
		mlx5dv_devx_free_uar(rings->uar);
		munmap(rings->memory, UMEM_BYTES);
	}
	free(rings);
}

uint32_t rings_number(const struct world *world, int transport, int side)
{
	return world->rings->ring[transport][side].number;
}

/* ---- states ---------------------------------------------------------------------------------------------------- */

static void modify(struct ring *ring, uint16_t opcode, uint8_t in[272])
{
	uint8_t out[16];

	put32(in, 0, (uint32_t)opcode << 16);
	put32(in, 8, ring->number);
	if (mlx5dv_devx_obj_modify(ring->own, in, 272, out, sizeof(out)))
		world_fail("command %x: status %x, rule %u", opcode, out[0], get32(out, 4));
}

static void connect_own(struct world *world, int transport, int side)
{
	struct rings *rings = world->rings;
	struct ring *ring = &rings->ring[transport][side];
	uint8_t reset[272] = {0}, init[272] = {0}, rtr[272] = {0}, rts[272] = {0};

	modify(ring, 0x50a, reset);
	put32(init, 84, 1 << 16);
	put32(init, 168, 0xc000); /* rre, rwe */
	put32(init, 192, QKEY);
	modify(ring, 0x502, init);
	put32(rtr, 32, (uint32_t)link_mtu() << 29 | 30 << 24);
	put32(rtr, 44, rings->ring[transport][!side].number);
	put32(rtr, 56, (uint32_t)world->gid_index << 16 | 1);
	memcpy(rtr + 64, world->gid.raw, sizeof(world->gid.raw));
	put32(rtr, 84, 1 << 16);
	put32(rtr, 168, 3 << 21);
	put32(rtr, 172, 1 << 24);
	modify(ring, 0x503, rtr);
	put32(rts, 56, 8u << 27);
	put32(rts, 136, 3 << 21 | 7 << 16 | 7 << 13);
	modify(ring, 0x504, rts);
}

/* @number: number of the peer. */
static void connect_verbs(struct world *world, struct ibv_qp *qp, int transport, uint32_t number)
{
	int access = transport == UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	int path = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	int answers = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	int waits = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	bool reliable = types[transport] == IBV_QPT_RC;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RESET,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
		.qkey = QKEY,
		.path_mtu = link_mtu(),
		.dest_qp_num = number,
		.max_dest_rd_atomic = 8,
		.min_rnr_timer = 1,
		.timeout = 8,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 8,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = world->gid, .sgid_index = world->gid_index, .hop_limit = 1}},
	};

	must("RESET", !ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_INIT;
	must("INIT", !ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | access));
	attr.qp_state = IBV_QPS_RTR;
	must("RTR", !ibv_modify_qp(qp, &attr, IBV_QP_STATE | (transport == UD ? 0 : path) | (reliable ? answers : 0)));
	attr.qp_state = IBV_QPS_RTS;
	must("RTS", !ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | (reliable ? waits : 0)));
}

/* In SQD a queue pair accepts requests and executes none. */
void rings_begin_composing(struct world *world, int transport, int side)
{
	struct ring *ring = &world->rings->ring[transport][side];
	struct ibv_qp *qp = world->qp[transport][side].qp;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};

	connect_verbs(world, qp, transport, qp->qp_num);
	must("SQD", !ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	ring->composed = 0;
	ring->count = 0;
}

void rings_reconnect(struct world *world, int transport)
{
	struct rings *rings = world->rings;

	for (int side = 0; side < SIDES; side++) {
		struct ring *ring = &rings->ring[transport][side];

		rings_begin_composing(world, transport, side);
		if (ring->own) {
			connect_own(world, transport, side);
			ring->record[0] = ring->record[1] = 0;
		} else {
			connect_verbs(world, ring->qp, transport, rings->ring[transport][!side].number);
		}
		ring->next = ring->next_receive = 0;
	}
	world_drain(world);
}
