/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens, connects and closes the real side, see world.h. */
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link.h"

void say(struct world *world, const char *format, ...)
{
	va_list arguments;
	int used;

	va_start(arguments, format);
	used = vsnprintf(world->text + world->text_used, TEXT_BYTES - world->text_used, format, arguments);
	va_end(arguments);
	world->text_used += (size_t)used;
	if (world->text_used >= TEXT_BYTES)
		world->text_used = TEXT_BYTES - 1;
}

void world_fail(struct world *world, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	printf("%s\nDIFFERENCE: ", world->text);
	vprintf(format, arguments);
	printf("\n");
	va_end(arguments);
	fflush(stdout);
	_exit(1);
}

/* ---- opening --------------------------------------------------------------------------------------------------- */

static void open_context(struct world *world, int i)
{
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
	struct ibv_device **list = ibv_get_device_list(NULL);
	int fd;

	if (!list || !list[0])
		world_fail(world, "no device");
	world->context[i] = mlx5dv_open_device(list[0], &attr);
	ibv_free_device_list(list);
	if (!world->context[i])
		world_fail(world, "mlx5dv_open_device: %s", strerror(errno));
	fd = world->context[i]->async_fd;
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static void find_gid(struct world *world)
{
	struct ibv_gid_entry entry;

	for (uint32_t i = 0; i < 64; i++) {
		if (ibv_query_gid_ex(world->context[0], 1, i, &entry, 0) || entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		world->gid = entry.gid;
		world->gid_index = (uint8_t)i;
		return;
	}
	world_fail(world, "no GID of RoCE v2");
}

/* The queue pairs: two RC pairs, one RC QP that is its own peer, a UC and a UD pair. */
static const struct {
	enum ibv_qp_type type;
	int domain, peer;
	bool sig_all, waits_for_receives;
	uint32_t max_inline;
} plan[QPS] = {
	{IBV_QPT_RC, 0, 1, false, true, MAX_INLINE}, {IBV_QPT_RC, 1, 0, false, true, 0},
	{IBV_QPT_RC, 0, 3, true, false, 0},          {IBV_QPT_RC, 2, 2, false, false, 64},
	{IBV_QPT_RC, 1, 4, false, true, 0},          {IBV_QPT_UC, 0, 6, false, false, 64},
	{IBV_QPT_UC, 2, 5, false, false, 0},         {IBV_QPT_UD, 0, 8, false, false, 64},
	{IBV_QPT_UD, 1, 7, true, false, 0},
};

static uint64_t operations_of(enum ibv_qp_type type)
{
	uint64_t datagram = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	uint64_t unreliable = datagram | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE |
			      IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;

	if (type == IBV_QPT_UD)
		return datagram;
	if (type == IBV_QPT_UC)
		return unreliable;
	return unreliable | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
	       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
}

static void open_qp(struct world *world, int i)
{
	struct real_qp *real = &world->qp[i];
	struct ibv_context *context = world->context[context_of(plan[i].domain)];
	struct ibv_qp_init_attr_ex attr = {
		.cap = {.max_send_wr = OUTSTANDING,
			.max_recv_wr = OUTSTANDING,
			.max_send_sge = MAX_SGE,
			.max_recv_sge = MAX_SGE,
			.max_inline_data = plan[i].max_inline},
		.qp_type = plan[i].type,
		.sq_sig_all = plan[i].sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = world->domain[plan[i].domain],
		.send_ops_flags = operations_of(plan[i].type),
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.send_ops_flags =
			MLX5DV_QP_EX_WITH_MKEY_CONFIGURE | MLX5DV_QP_EX_WITH_MR_LIST | MLX5DV_QP_EX_WITH_MR_INTERLEAVED,
	};

	real->send_cq = attr.send_cq = ibv_create_cq(context, 4 * OUTSTANDING, NULL, NULL, 0);
	real->receive_cq = attr.recv_cq = ibv_create_cq(context, 4 * OUTSTANDING, NULL, NULL, 0);
	if (!attr.send_cq || !attr.recv_cq)
		world_fail(world, "ibv_create_cq: %s", strerror(errno));
	real->qp =
		plan[i].type == IBV_QPT_RC ? mlx5dv_create_qp(context, &attr, &dv) : ibv_create_qp_ex(context, &attr);
	if (!real->qp)
		world_fail(world, "QP %d was not created: %s", i, strerror(errno));
	real->ex = ibv_qp_to_qp_ex(real->qp);
	if (plan[i].type == IBV_QPT_RC)
		real->dv = mlx5dv_qp_ex_from_ibv_qp_ex(real->ex);
	real->max_inline = attr.cap.max_inline_data;
	world->model.qp[i] = (struct model_qp){
		.type = plan[i].type,
		.domain = plan[i].domain,
		.peer = plan[i].peer == i ? i : plan[i].peer,
		.number = real->qp->qp_num,
		.sig_all = plan[i].sig_all,
		.waits_for_receives = plan[i].waits_for_receives,
		.qkey = 0x11110000 + (uint32_t)i,
	};
}

static void open_address(struct world *world, int i)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = world->gid, .sgid_index = world->gid_index, .hop_limit = 1},
	};

	if (plan[i].type != IBV_QPT_UD)
		return;
	world->qp[i].ah = ibv_create_ah(world->domain[plan[i].domain], &attr);
	if (!world->qp[i].ah)
		world_fail(world, "ibv_create_ah: %s", strerror(errno));
}

void world_open(struct world *world)
{
	struct ibv_alloc_dm_attr dm = {.length = BLOCK_BYTES, .log_align_req = 3};
	struct ibv_port_attr port;

	for (int i = 0; i < CONTEXTS; i++)
		open_context(world, i);
	for (int i = 0; i < DOMAINS; i++) {
		world->domain[i] = ibv_alloc_pd(world->context[context_of(i)]);
		if (!world->domain[i])
			world_fail(world, "ibv_alloc_pd: %s", strerror(errno));
	}
	find_gid(world);
	memory_open(&world->model.memory, &world->choose);
	world->model.memory.device_memory = ibv_alloc_dm(world->context[0], &dm);
	if (!world->model.memory.device_memory)
		world_fail(world, "ibv_alloc_dm: %s", strerror(errno));
	memory_scribble(&world->model.memory, &world->choose, DEVICE_BLOCK, 0, BLOCK_BYTES);
	world->model.packet_bytes = link_packet_bytes();
	if (ibv_query_port(world->context[0], 1, &port))
		world_fail(world, "ibv_query_port");
	for (int i = 0; i < QPS; i++) {
		open_qp(world, i);
		open_address(world, i);
		world->model.qp[i].mtu = 128u << port.active_mtu;
	}
	for (int i = 0; i < QPS; i++)
		if (world->model.qp[i].peer >= i)
			world_connect(world, i);
}

/* ---- closing --------------------------------------------------------------------------------------------------- */

static void closed(struct world *world, const char *call, int error)
{
	if (error)
		world_fail(world, "%s: %s", call, strerror(error));
}

static void close_keys(struct world *world)
{
	for (int i = 0; i < WINDOWS; i++)
		if (world->window[i])
			closed(world, "ibv_dealloc_mw", ibv_dealloc_mw(world->window[i]));
	for (int i = 0; i < LAYOUTS; i++)
		if (world->layout[i])
			closed(world, "mlx5dv_destroy_mkey", mlx5dv_destroy_mkey(world->layout[i]));
	for (int i = 0; i < REGIONS; i++)
		if (world->region[i])
			closed(world, "ibv_dereg_mr", ibv_dereg_mr(world->region[i]));
}

void world_close(struct world *world)
{
	for (int i = 0; i < QPS; i++) {
		closed(world, "ibv_destroy_qp", ibv_destroy_qp(world->qp[i].qp));
		closed(world, "ibv_destroy_cq", ibv_destroy_cq(world->qp[i].send_cq));
		closed(world, "ibv_destroy_cq", ibv_destroy_cq(world->qp[i].receive_cq));
		if (world->qp[i].ah)
			closed(world, "ibv_destroy_ah", ibv_destroy_ah(world->qp[i].ah));
	}
	close_keys(world);
	closed(world, "ibv_free_dm", ibv_free_dm(world->model.memory.device_memory));
	for (int i = 0; i < DOMAINS; i++)
		closed(world, "ibv_dealloc_pd", ibv_dealloc_pd(world->domain[i]));
	for (int i = 0; i < CONTEXTS; i++)
		closed(world, "ibv_close_device", ibv_close_device(world->context[i]) ? errno : 0);
	memory_close(&world->model.memory);
}

/* ---- states ---------------------------------------------------------------------------------------------------- */

static void modify(struct world *world, int i, struct ibv_qp_attr *attr, int mask)
{
	int error = ibv_modify_qp(world->qp[i].qp, attr, mask | IBV_QP_STATE);

	if (error)
		world_fail(world, "qp %d to state %d: %s", i, attr->qp_state, strerror(error));
}

static void to_init(struct world *world, int i)
{
	struct model_qp *qp = &world->model.qp[i];
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	modify(world, i, &attr, 0);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = qp->access, .qkey = qp->qkey};
	modify(world, i, &attr,
	       IBV_QP_PKEY_INDEX | IBV_QP_PORT | (qp->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static void to_rtr(struct world *world, int i, uint32_t psn)
{
	struct model_qp *qp = &world->model.qp[i];
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = link_mtu(),
		.dest_qp_num = world->model.qp[qp->peer].number,
		.rq_psn = psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1, /* 10 us */
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = world->gid, .sgid_index = world->gid_index, .hop_limit = 1}},
	};
	int connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	int reliable = connected | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;

	modify(world, i, &attr, qp->type == IBV_QPT_RC ? reliable : qp->type == IBV_QPT_UC ? connected : 0);
}

static void to_rts(struct world *world, int i, uint32_t psn)
{
	struct model_qp *qp = &world->model.qp[i];
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = psn,
		/* 1 ms; in real time 67 ms, as other processes use the CPU, too. */
		.timeout = link_in_real_time() ? 14 : 8,
		.retry_cnt = link_in_real_time() ? 3
			     : link_pipelines()  ? 7
						 : 1,
		.rnr_retry = qp->waits_for_receives ? 7 : 1,
		.max_rd_atomic = (uint8_t)(1 + choose_below(&world->choose, 4)),
	};
	int reliable = IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;

	modify(world, i, &attr, qp->type == IBV_QPT_RC ? reliable : IBV_QP_SQ_PSN);
}

/* Draws a sequence number, often one that wraps soon. */
static uint32_t draw_psn(struct world *world)
{
	uint32_t psn = (uint32_t)choose_bits(&world->choose) & 0xffffff;

	return chance(&world->choose, 50) ? 0xffffff - psn % 8 : psn;
}

static unsigned int draw_access(struct world *world)
{
	unsigned int all = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

	return chance(&world->choose, 85) ? all : (unsigned int)choose_bits(&world->choose) & all;
}

void world_connect(struct world *world, int i)
{
	int ends[2] = {i, world->model.qp[i].peer}, count = ends[0] == ends[1] ? 1 : 2;
	uint32_t psn[2] = {draw_psn(world), draw_psn(world)};

	say(world, " connect qp %d with %d", ends[0], ends[1]);
	for (int e = 0; e < count; e++) {
		world->model.qp[ends[e]].access = draw_access(world);
		to_init(world, ends[e]);
	}
	for (int e = 0; e < count; e++)
		to_rtr(world, ends[e], psn[count - 1 - e]);
	for (int e = 0; e < count; e++) {
		to_rts(world, ends[e], psn[e]);
		model_reset(&world->model, ends[e]);
		world->qp[ends[e]].unsignalled = 0;
	}
}

void world_fail_qp(struct world *world, int i)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	say(world, " move qp %d to ERR;", i);
	model_fail(&world->model, i);
	modify(world, i, &attr, 0);
}

void world_resume_qp(struct world *world, int i)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

	say(world, " move qp %d from SQE to RTS;", i);
	model_resume(&world->model, i);
	modify(world, i, &attr, 0);
}
