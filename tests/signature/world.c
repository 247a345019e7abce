/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens, connects and closes the device under test; see world.h. */
#include "world.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../model/link.h"
#include "rings.h"

enum {
	SEND_WRS = 128,
	RECEIVE_WRS = 64,
	SGES = 4,
	CQ_ENTRIES = 1024,
	ENTRIES = 2 * PIECES,            /* of keys */
	INLINE = 16 * (PIECES + 4) + 64, /* an interleaved layout and its signature in one WQE */
	REMOTE = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
	SIGNED = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE,
};

static const enum ibv_qp_type types[TRANSPORTS] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RC};

void world_fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	printf("DIFFERENCE: ");
	vprintf(format, arguments);
	printf("\n");
	va_end(arguments);
	fflush(stdout);
	_exit(1);
}

static void *must(const char *call, void *object)
{
	if (!object)
		world_fail("%s: %s", call, strerror(errno));
	return object;
}

#define MUST(call) must(#call, call)

/* ---- opening --------------------------------------------------------------------------------------------------- */

static void open_context(struct world *world)
{
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;

	if (!list || !list[0])
		world_fail("no device");
	world->context = MUST(mlx5dv_open_device(list[0], &attr));
	ibv_free_device_list(list);
	if (ibv_query_port(world->context, 1, &port))
		world_fail("ibv_query_port");
	world->datagram_most = 128u << port.active_mtu;
	for (uint32_t i = 0; i < 64; i++) {
		if (ibv_query_gid_ex(world->context, 1, i, &entry, 0) || entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		world->gid = entry.gid;
		world->gid_index = (uint8_t)i;
		return;
	}
	world_fail("no GID of RoCE v2");
}

static struct mlx5dv_mkey *create_key(struct world *world, uint32_t flags)
{
	struct mlx5dv_mkey_init_attr attr = {.pd = world->pd, .create_flags = flags, .max_entries = ENTRIES};

	return MUST(mlx5dv_create_mkey(&attr));
}

static void open_memory(struct world *world)
{
	for (int side = 0; side < SIDES; side++) {
		world->memory[side] = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (world->memory[side] == MAP_FAILED)
			world_fail("mmap: %s", strerror(errno));
		world->mr[side] =
			MUST(ibv_reg_mr(world->pd, world->memory[side], REGION, IBV_ACCESS_LOCAL_WRITE | REMOTE));
		for (int i = 0; i < KEYS; i++)
			world->key[side][i] = create_key(world, SIGNED);
		world->under[side] = create_key(world, MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT);
		world->over[side] = create_key(world, MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT);
	}
	world->grh = MUST(calloc(1, GRH_BYTES));
	world->grh_mr = MUST(ibv_reg_mr(world->pd, world->grh, GRH_BYTES, IBV_ACCESS_LOCAL_WRITE));
}

static struct ibv_qp *create_rc(struct world *world, struct ibv_qp_init_attr_ex *attr)
{
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.send_ops_flags = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE | MLX5DV_QP_EX_WITH_MEMCPY,
	};
	struct mlx5dv_context query = {.comp_mask = MLX5DV_CONTEXT_MASK_WR_MEMCPY_LENGTH};

	world->has_memcpy = !mlx5dv_query_device(world->context, &query) &&
			    query.comp_mask & MLX5DV_CONTEXT_MASK_WR_MEMCPY_LENGTH && query.max_wr_memcpy_length;
	if (!world->has_memcpy)
		dv.send_ops_flags = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE;
	return mlx5dv_create_qp(world->context, attr, &dv);
}

static void create_qp(struct world *world, int transport, int side)
{
	struct real_qp *real = &world->qp[transport][side];
	int first = transport == OTHER_RC ? OTHER_PAIR : 0;
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = ibv_cq_ex_to_cq(world->cq[first + (side == SOURCE ? SOURCE_SEND : TARGET_SEND)]),
		.recv_cq = ibv_cq_ex_to_cq(world->cq[first + (side == SOURCE ? SOURCE_RECEIVE : TARGET_RECEIVE)]),
		.cap = {.max_send_wr = SEND_WRS,
			.max_recv_wr = RECEIVE_WRS,
			.max_send_sge = SGES,
			.max_recv_sge = SGES,
			.max_inline_data = transport == RC ? INLINE : 0},
		.qp_type = types[transport],
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = world->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | (transport == RC ? IBV_QP_EX_WITH_LOCAL_INV : 0),
	};
	struct ibv_ah_attr path = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = world->gid, .sgid_index = world->gid_index, .hop_limit = 1},
	};

	real->qp = must("creating a QP",
			transport == RC ? create_rc(world, &attr) : ibv_create_qp_ex(world->context, &attr));
	real->ex = MUST(ibv_qp_to_qp_ex(real->qp));
	if (transport == RC)
		real->dv = MUST(mlx5dv_qp_ex_from_ibv_qp_ex(real->ex));
	if (transport == UD)
		real->ah = MUST(ibv_create_ah(world->pd, &path));
}

void world_open(struct world *world)
{
	struct ibv_cq_init_attr_ex cq = {.cqe = CQ_ENTRIES, .wc_flags = IBV_WC_STANDARD_FLAGS};

	*world = (struct world){.next_id = 1};
	open_context(world);
	world->pd = MUST(ibv_alloc_pd(world->context));
	for (int i = 0; i < QUEUES; i++)
		world->cq[i] = MUST(ibv_create_cq_ex(world->context, &cq));
	open_memory(world);
	for (int transport = 0; transport < TRANSPORTS; transport++) {
		create_qp(world, transport, SOURCE);
		create_qp(world, transport, TARGET);
	}
	if (rings_wanted())
		rings_open(world);
	for (int transport = 0; transport < TRANSPORTS; transport++)
		world_reconnect(world, transport);
}

/* ---- closing --------------------------------------------------------------------------------------------------- */

static void closed(const char *call, int error)
{
	if (error)
		world_fail("%s: %s", call, strerror(error));
}

void world_close(struct world *world)
{
	if (world->rings)
		rings_close(world);
	for (int transport = 0; transport < TRANSPORTS; transport++) {
		for (int side = 0; side < SIDES; side++) {
			closed("ibv_destroy_qp", ibv_destroy_qp(world->qp[transport][side].qp));
			if (world->qp[transport][side].ah)
				closed("ibv_destroy_ah", ibv_destroy_ah(world->qp[transport][side].ah));
		}
	}
	for (int i = 0; i < QUEUES; i++)
		closed("ibv_destroy_cq", ibv_destroy_cq(ibv_cq_ex_to_cq(world->cq[i])));
	for (int side = 0; side < SIDES; side++) {
		closed("mlx5dv_destroy_mkey", mlx5dv_destroy_mkey(world->over[side]));
		for (int i = 0; i < KEYS; i++)
			closed("mlx5dv_destroy_mkey", mlx5dv_destroy_mkey(world->key[side][i]));
		closed("mlx5dv_destroy_mkey", mlx5dv_destroy_mkey(world->under[side]));
		closed("ibv_dereg_mr", ibv_dereg_mr(world->mr[side]));
		munmap(world->memory[side], REGION);
	}
	closed("ibv_dereg_mr", ibv_dereg_mr(world->grh_mr));
	free(world->grh);
	closed("ibv_dealloc_pd", ibv_dealloc_pd(world->pd));
	closed("ibv_close_device", ibv_close_device(world->context) ? errno : 0);
}

/* ---- states ---------------------------------------------------------------------------------------------------- */

static void modify(struct world *world, int transport, int side, struct ibv_qp_attr *attr, int mask)
{
	int error = ibv_modify_qp(world->qp[transport][side].qp, attr, mask | IBV_QP_STATE);

	if (error)
		world_fail("QP to state %d: %s", attr->qp_state, strerror(error));
}

static void to_init(struct world *world, int transport, int side)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	modify(world, transport, side, &attr, 0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = REMOTE, .qkey = QKEY};
	modify(world, transport, side, &attr,
	       IBV_QP_PKEY_INDEX | IBV_QP_PORT | (transport == UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static void to_rtr(struct world *world, int transport, int side)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = link_mtu(),
		.dest_qp_num = world->qp[transport][!side].qp->qp_num,
		.max_dest_rd_atomic = 8,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = world->gid, .sgid_index = world->gid_index, .hop_limit = 1}},
	};
	int connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	int reliable = connected | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;

	modify(world, transport, side, &attr,
	       types[transport] == IBV_QPT_RC   ? reliable
	       : types[transport] == IBV_QPT_UC ? connected
						: 0);
}

static void to_rts(struct world *world, int transport, int side)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 8, /* 1 ms */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 8,
	};
	int reliable = IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;

	modify(world, transport, side, &attr, types[transport] == IBV_QPT_RC ? reliable : IBV_QP_SQ_PSN);
}

void world_reconnect(struct world *world, int transport)
{
	if (world->rings) {
		rings_reconnect(world, transport);
		return;
	}
	to_init(world, transport, SOURCE);
	to_init(world, transport, TARGET);
	world_drain(world);
	to_rtr(world, transport, SOURCE);
	to_rtr(world, transport, TARGET);
	to_rts(world, transport, SOURCE);
	to_rts(world, transport, TARGET);
}
