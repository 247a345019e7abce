/* SPDX-License-Identifier: BSD-2-Clause */
/* Posts requests of the model as work requests of the API, see world.h. */
#include <errno.h>
#include <string.h>

#include "world.h"

enum { MOST = 16 };

static unsigned int flags_of(const struct request *request)
{
	return (request->signalled ? IBV_SEND_SIGNALED : 0) | (request->solicited ? IBV_SEND_SOLICITED : 0) |
	       (request->fence ? IBV_SEND_FENCE : 0) |
	       (request->is_inline || request->opcode == OP_CONFIGURE ? IBV_SEND_INLINE : 0);
}

/* Addresses of inline data are in this process: the copy of the model can be used. */
static void fill_sges(struct ibv_sge *sge, const struct request *request)
{
	uint64_t used = 0;

	for (uint32_t i = 0; i < request->count; i++) {
		const struct span *span = &request->span[i];

		sge[i] = (struct ibv_sge){span->address, span->length, span->key};
		if (request->is_inline)
			sge[i].addr = (uintptr_t)request->data + used;
		used += span->length;
	}
}

static struct ibv_mw_bind_info bind_info(const struct world *world, const struct bind *bind)
{
	return (struct ibv_mw_bind_info){
		.mr = bind->region < 0 ? NULL : world->region[bind->region],
		.addr = bind->address,
		.length = bind->length,
		.mw_access_flags = bind->access,
	};
}

/* ---- ibv_post_send --------------------------------------------------------------------------------------------- */

static void fill_wr(struct world *world, int qp, struct ibv_send_wr *wr, struct ibv_sge *sge,
		    const struct request *request)
{
	*wr = (struct ibv_send_wr){
		.wr_id = request->id,
		.sg_list = sge,
		.num_sge = (int)request->count,
		.opcode = (enum ibv_wr_opcode)request->opcode,
		.send_flags = flags_of(request),
	};
	fill_sges(sge, request);
	switch (request->opcode) {
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		wr->invalidate_rkey = request->invalidate;
		break;
	case IBV_WR_BIND_MW:
		wr->bind_mw.mw = world->window[request->bind.slot - FIRST_WINDOW];
		wr->bind_mw.rkey = request->bind.new_number;
		wr->bind_mw.bind_info = bind_info(world, &request->bind);
		break;
	default:
		wr->imm_data = request->immediate;
	}
	switch (request->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wr->wr.atomic.remote_addr = request->remote_address;
		wr->wr.atomic.rkey = request->rkey;
		wr->wr.atomic.compare_add = request->compare_add;
		wr->wr.atomic.swap = request->swap;
		break;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
		wr->wr.rdma.remote_addr = request->remote_address;
		wr->wr.rdma.rkey = request->rkey;
		break;
	default:
		break;
	}
	if (world->model.qp[qp].type == IBV_QPT_UD) {
		wr->wr.ud.ah = world->qp[qp].ah;
		wr->wr.ud.remote_qpn = world->model.qp[world->model.qp[qp].peer].number;
		wr->wr.ud.remote_qkey = request->qkey;
	}
}

static int post_list(struct world *world, int qp, const struct request *requests, uint32_t count, uint32_t *accepted)
{
	struct ibv_send_wr wr[MOST], *bad = NULL;
	struct ibv_sge sge[MOST][SPANS];
	int error;

	for (uint32_t i = 0; i < count; i++) {
		fill_wr(world, qp, &wr[i], sge[i], &requests[i]);
		if (i)
			wr[i - 1].next = &wr[i];
	}
	error = ibv_post_send(world->qp[qp].qp, wr, &bad);
	*accepted = error ? (uint32_t)(bad - wr) : count;
	return error;
}

/* ---- ibv_wr_* -------------------------------------------------------------------------------------------------- */

static void build_configure(struct world *world, int qp, const struct configure *configure)
{
	struct mlx5dv_qp_ex *dv = world->qp[qp].dv;
	struct mlx5dv_mkey *mkey = world->layout[configure->slot - FIRST_LAYOUT];
	struct mlx5dv_mkey_conf_attr attr = {0};
	struct mlx5dv_mr_interleaved interleaved[ENTRIES];
	struct ibv_sge list[ENTRIES];

	for (uint16_t i = 0; i < configure->count; i++) {
		uint64_t address = configure->entries[i].address;
		uint32_t bytes = configure->entries[i].bytes, key = configure->entries[i].key;

		list[i] = (struct ibv_sge){address, bytes, key};
		interleaved[i] = (struct mlx5dv_mr_interleaved){address, bytes, configure->entries[i].skip, key};
	}
	if (configure->by_mr_call && configure->interleaved) {
		mlx5dv_wr_mr_interleaved(dv, mkey, configure->access, configure->repeat, configure->count, interleaved);
		return;
	}
	if (configure->by_mr_call) {
		mlx5dv_wr_mr_list(dv, mkey, configure->access, configure->count, list);
		return;
	}
	mlx5dv_wr_mkey_configure(dv, mkey, (uint8_t)(configure->set_access + configure->set_layout), &attr);
	if (configure->set_access)
		mlx5dv_wr_set_mkey_access_flags(dv, configure->access);
	if (configure->set_layout && configure->interleaved)
		mlx5dv_wr_set_mkey_layout_interleaved(dv, configure->repeat, configure->count, interleaved);
	else if (configure->set_layout)
		mlx5dv_wr_set_mkey_layout_list(dv, configure->count, list);
}

static void build_data(struct world *world, int qp, const struct request *request)
{
	struct ibv_qp_ex *ex = world->qp[qp].ex;
	struct ibv_sge sge[SPANS];
	struct ibv_data_buf buffer[SPANS];

	if (world->model.qp[qp].type == IBV_QPT_UD)
		ibv_wr_set_ud_addr(ex, world->qp[qp].ah, world->model.qp[world->model.qp[qp].peer].number,
				   request->qkey);
	fill_sges(sge, request);
	for (uint32_t i = 0; i < request->count; i++)
		buffer[i] = (struct ibv_data_buf){(void *)(uintptr_t)sge[i].addr, sge[i].length};
	if (request->is_inline && request->count == 1)
		ibv_wr_set_inline_data(ex, buffer[0].addr, buffer[0].length);
	else if (request->is_inline)
		ibv_wr_set_inline_data_list(ex, request->count, buffer);
	else if (request->count == 1)
		ibv_wr_set_sge(ex, sge[0].lkey, sge[0].addr, sge[0].length);
	else
		ibv_wr_set_sge_list(ex, request->count, sge);
}

static void build(struct world *world, int qp, const struct request *request)
{
	struct ibv_qp_ex *ex = world->qp[qp].ex;
	struct ibv_mw_bind_info info;

	ex->wr_id = request->id;
	ex->wr_flags = flags_of(request);
	switch (request->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(ex);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(ex, request->immediate);
		break;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(ex, request->invalidate);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(ex, request->rkey, request->remote_address);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(ex, request->rkey, request->remote_address, request->immediate);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(ex, request->rkey, request->remote_address);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(ex, request->rkey, request->remote_address, request->compare_add, request->swap);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(ex, request->rkey, request->remote_address, request->compare_add);
		break;
	case IBV_WR_LOCAL_INV:
		ibv_wr_local_inv(ex, request->invalidate);
		return;
	case IBV_WR_BIND_MW:
		info = bind_info(world, &request->bind);
		ibv_wr_bind_mw(ex, world->window[request->bind.slot - FIRST_WINDOW], request->bind.new_number, &info);
		return;
	case OP_CONFIGURE:
		build_configure(world, qp, &request->configure);
		return;
	default:
		world_fail(world, "opcode %u cannot be built", request->opcode);
	}
	build_data(world, qp, request);
}

int world_post_send(struct world *world, int qp, const struct request *requests, uint32_t count, enum way way,
		    uint32_t *accepted)
{
	struct ibv_qp_ex *ex = world->qp[qp].ex;
	int error;

	if (way == BY_POST_SEND)
		return post_list(world, qp, requests, count, accepted);
	ibv_wr_start(ex);
	for (uint32_t i = 0; i < count; i++)
		build(world, qp, &requests[i]);
	error = ibv_wr_complete(ex);
	*accepted = error ? 0 : count;
	return error;
}

int world_bind(struct world *world, int qp, const struct request *request)
{
	struct ibv_mw_bind bind = {
		.wr_id = request->id,
		.send_flags = flags_of(request),
		.bind_info = bind_info(world, &request->bind),
	};

	return ibv_bind_mw(world->qp[qp].qp, world->window[request->bind.slot - FIRST_WINDOW], &bind);
}

int world_post_receive(struct world *world, int qp, const struct receive *receives, uint32_t count)
{
	struct ibv_recv_wr wr[MOST], *bad;
	struct ibv_sge sge[MOST][SPANS];

	for (uint32_t i = 0; i < count; i++) {
		wr[i] = (struct ibv_recv_wr){
			.wr_id = receives[i].id, .sg_list = sge[i], .num_sge = (int)receives[i].count};
		for (uint32_t s = 0; s < receives[i].count; s++)
			sge[i][s] = (struct ibv_sge){receives[i].span[s].address, receives[i].span[s].length,
						     receives[i].span[s].key};
		if (i)
			wr[i - 1].next = &wr[i];
	}
	return ibv_post_recv(world->qp[qp].qp, wr, &bad);
}
