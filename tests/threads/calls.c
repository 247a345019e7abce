/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of calls, see calls.h. */
#include "calls.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- helpers of several calls ---------------------------------------------------------------------------------- */

static struct ibv_qp *loop_open(struct calls_world *world, struct ibv_cq *cq)
{
	struct ibv_qp *qp = make_qp(world->pd, IBV_QPT_RC, cq, cq, NULL);

	to_init(qp);
	to_rts(qp, qp->qp_num);
	return qp;
}

/* Returns the place in memory that this thread writes to. */
static uint64_t place(const struct calls_world *world)
{
	static uint32_t threads;
	static __thread uint32_t own;

	if (!own)
		own = 1 + __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED) % 16;
	return (uintptr_t)world->buffer + 2048 + 64 * own;
}

static void post_write(struct calls_world *world, struct ibv_qp *qp, uint64_t wr_id)
{
	struct ibv_sge sge = {(uintptr_t)world->buffer, 64, world->mr->lkey};
	struct ibv_send_wr *bad, wr = rdma_wr(wr_id, IBV_WR_RDMA_WRITE, &sge, place(world), world->mr->rkey);

	CHECK(!ibv_post_send(qp, &wr, &bad));
}

/* These four are cancellation points by design; the table does not test that. */
static int take_completion_event(struct ibv_comp_channel *channel, struct ibv_cq **cq)
{
	void *cookie;
	int before, result;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	result = ibv_get_cq_event(channel, cq, &cookie);
	pthread_setcancelstate(before, NULL);
	return result;
}

static int take_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	int before, result;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	result = ibv_get_async_event(context, event);
	pthread_setcancelstate(before, NULL);
	return result;
}

static ssize_t take_device_event(struct mlx5dv_devx_event_channel *channel, struct mlx5dv_devx_async_event_hdr *event,
				 size_t bytes)
{
	ssize_t result;
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	result = mlx5dv_devx_get_event(channel, event, bytes);
	pthread_setcancelstate(before, NULL);
	return result;
}

static int take_response(struct mlx5dv_devx_cmd_comp *completion, struct mlx5dv_devx_async_cmd_hdr *response,
			 size_t bytes)
{
	int result, before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	result = mlx5dv_devx_get_async_cmd_comp(completion, response, bytes);
	pthread_setcancelstate(before, NULL);
	return result;
}

static union ibv_gid group(void)
{
	return (union ibv_gid){.raw = {0xff, 0x12, [15] = 1}};
}

/* ---- calls ----------------------------------------------------------------------------------------------------- */

static void devices(struct calls_world *world)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	(void)world;
	CHECK(list && list[0] && ibv_get_device_name(list[0]) && ibv_get_device_guid(list[0]));
	CHECK(ibv_get_device_index(list[0]) == -1 && mlx5dv_is_supported(list[0]));
	context = ibv_open_device(list[0]);
	CHECK(context && !ibv_close_device(context));
	context = mlx5dv_open_device(list[0], &(struct mlx5dv_context_attr){0});
	CHECK(context && !ibv_close_device(context));
	ibv_free_device_list(list);
}

static void queries(struct calls_world *world)
{
	struct ibv_context *context = world->context;
	struct mlx5dv_context dv = {0};
	struct mlx5dv_clock_info clock;
	struct mlx5dv_port dv_port;
	struct ibv_device_attr device;
	struct ibv_device_attr_ex extended;
	struct ibv_port_attr port;
	struct ibv_gid_entry entries[64];
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	union ibv_gid gid;
	__be16 pkey;

	CHECK(!ibv_query_device(context, &device) && !ibv_query_port(context, 1, &port));
	CHECK(!ibv_query_device_ex(context, NULL, &extended) && !ibv_query_rt_values_ex(context, &values));
	CHECK(!ibv_query_gid(context, 1, 0, &gid) && !ibv_query_gid_ex(context, 1, 0, &entries[0], 0));
	CHECK(ibv_query_gid_table(context, entries, 64, 0) > 0);
	CHECK(!ibv_query_pkey(context, 1, 0, &pkey) && ibv_get_pkey_index(context, 1, pkey) == 0);
	CHECK(!mlx5dv_query_device(context, &dv) && !mlx5dv_query_port(context, 1, &dv_port));
	mlx5dv_get_clock_info(context, &clock);
}

static void domains(struct calls_world *world)
{
	struct ibv_pd *pd = ibv_alloc_pd(world->context), *parent;
	struct ibv_td_init_attr td_attr = {0};
	struct ibv_td *td = ibv_alloc_td(world->context, &td_attr);
	struct ibv_parent_domain_init_attr attr = {.pd = pd, .td = td};

	CHECK(pd && td);
	parent = ibv_alloc_parent_domain(world->context, &attr);
	CHECK(parent && !ibv_dealloc_pd(parent) && !ibv_dealloc_td(td) && !ibv_dealloc_pd(pd));
}

static void imports(struct calls_world *world)
{
	struct ibv_context *context = ibv_import_device(fcntl(world->context->cmd_fd, F_DUPFD_CLOEXEC, 0));
	struct ibv_dm *dm = ibv_alloc_dm(world->context, &(struct ibv_alloc_dm_attr){.length = 64}), *same;
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	CHECK(context && dm);
	pd = ibv_import_pd(context, world->pd->handle);
	mr = ibv_import_mr(world->pd, world->mr->handle);
	same = ibv_import_dm(context, dm->handle);
	CHECK(pd && mr && same);
	ibv_unimport_dm(same);
	ibv_unimport_mr(mr);
	ibv_unimport_pd(pd);
	CHECK(!ibv_close_device(context) && !ibv_free_dm(dm));
}

static void regions(struct calls_world *world)
{
	struct ibv_mr *mr = ibv_reg_mr(world->pd, world->buffer, CALLS_BUFFER, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *other = ibv_reg_mr_iova2(world->pd, world->buffer, CALLS_BUFFER, 4096, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *null = ibv_alloc_null_mr(world->pd);
	struct ibv_sge sge = {(uintptr_t)world->buffer, 64, world->mr->lkey};

	CHECK(mr && other && null);
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ));
	ibv_advise_mr(world->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1);
	CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(other) && !ibv_dereg_mr(null));
}

static void device_memory(struct calls_world *world)
{
	struct ibv_alloc_dm_attr attr = {.length = 64};
	struct mlx5dv_alloc_dm_attr dv = {.type = MLX5DV_DM_TYPE_MEMIC};
	struct ibv_dm *dm = mlx5dv_alloc_dm(world->context, &attr, &dv);
	struct ibv_mr *mr;

	CHECK(dm);
	mr = ibv_reg_dm_mr(world->pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr && !ibv_memcpy_to_dm(dm, 0, world->buffer, 64) && !ibv_dereg_mr(mr) && !ibv_free_dm(dm));
}

static void completion_queues(struct calls_world *world)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 4};
	struct ibv_cq_ex *extended = ibv_create_cq_ex(world->context, &attr);
	struct ibv_cq *cq = ibv_create_cq(world->context, 4, NULL, NULL, 0);
	struct ibv_poll_cq_attr poll_attr = {0};
	struct ibv_modify_cq_attr modify = {.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {1, 1}};
	struct ibv_wc wc;

	CHECK(cq && extended && !ibv_resize_cq(cq, 9) && !ibv_poll_cq(cq, 1, &wc));
	CHECK(ibv_start_poll(extended, &poll_attr) == ENOENT && !ibv_modify_cq(cq, &modify));
	CHECK(!ibv_destroy_cq(cq) && !ibv_destroy_cq(ibv_cq_ex_to_cq(extended)));
}

/* The event is pending before the call, so it does not block. */
static void completion_events(struct calls_world *world)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(world->context);
	struct ibv_cq *cq, *from;
	struct ibv_qp *qp;

	CHECK(channel);
	cq = ibv_create_cq(world->context, 4, NULL, channel, 0);
	CHECK(cq && !ibv_req_notify_cq(cq, 0));
	qp = loop_open(world, cq);
	post_write(world, qp, 1);
	CHECK(!take_completion_event(channel, &from) && from == cq);
	ibv_ack_cq_events(cq, 1);
	CHECK(wait_completion(cq).status == IBV_WC_SUCCESS);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_destroy_comp_channel(channel));
}

static void async_events(struct calls_world *world)
{
	struct ibv_context *context = ibv_open_device(world->context->device);
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct ibv_async_event event;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;

	CHECK(context);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	srq = pd ? ibv_create_srq(pd, &attr) : NULL;
	CHECK(cq && srq);
	qp = make_qp(pd, IBV_QPT_RC, cq, cq, srq);
	to_init(qp);
	to_rts(qp, qp->qp_num);
	CHECK(!ibv_modify_qp(qp, &error, IBV_QP_STATE));
	CHECK(!take_async_event(context, &event) && event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED);
	ibv_ack_async_event(&event);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_srq(srq) && !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd));
	CHECK(!ibv_close_device(context));
}

static void shared_receive_queues(struct calls_world *world)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq_attr limit = {.srq_limit = 1}, queried;
	struct ibv_srq *srq = ibv_create_srq(world->pd, &attr);
	struct ibv_recv_wr *bad, wr = {.wr_id = 1};

	CHECK(srq && !ibv_post_srq_recv(srq, &wr, &bad) && !ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
	CHECK(!ibv_query_srq(srq, &queried) && !ibv_destroy_srq(srq));
}

/* The QP uses the world's CQ and SRQ, so their locks are taken; its number comes from a slot. */
static void queue_pairs(struct calls_world *world)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_ece ece;
	struct ibv_qp *qp = make_qp(world->pd, IBV_QPT_RC, world->cq, world->cq, world->srq);

	to_init(qp);
	CHECK(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) && ibv_qp_to_qp_ex(qp));
	CHECK(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0) >= 0);
	ibv_query_ece(qp, &ece);
	ibv_set_ece(qp, &ece);
	to_rts(qp, qp->qp_num);
	mlx5dv_modify_qp_udp_sport(qp, 0xc001);
	CHECK(mlx5dv_qp_ex_from_ibv_qp_ex(ibv_qp_to_qp_ex(qp)) && !ibv_destroy_qp(qp));
}

static void traffic(struct calls_world *world)
{
	struct ibv_cq *cq = ibv_create_cq(world->context, 16, NULL, NULL, 0);
	struct ibv_qp *qp;
	struct ibv_recv_wr *bad, receive = {.wr_id = 1};

	CHECK(cq);
	qp = loop_open(world, cq);
	CHECK(!ibv_post_recv(qp, &receive, &bad));
	for (int i = 0; i < 8; i++) {
		post_write(world, qp, 7);
		CHECK(wait_completion(cq).status == IBV_WC_SUCCESS);
	}
	ibv_wr_start(ibv_qp_to_qp_ex(qp));
	ibv_wr_abort(ibv_qp_to_qp_ex(qp));
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

static void windows(struct calls_world *world)
{
	struct ibv_mw *mw = ibv_alloc_mw(world->pd, IBV_MW_TYPE_1);
	struct ibv_mr *mr = ibv_reg_mr(world->pd, world->buffer, CALLS_BUFFER, ACCESS | IBV_ACCESS_MW_BIND);
	struct ibv_cq *cq = ibv_create_cq(world->context, 16, NULL, NULL, 0);
	struct ibv_qp *qp;
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {mr, (uintptr_t)world->buffer, 64, IBV_ACCESS_REMOTE_READ},
	};

	CHECK(mw && mr && cq);
	qp = loop_open(world, cq);
	CHECK(!ibv_bind_mw(qp, mw, &bind) && wait_completion(cq).status == IBV_WC_SUCCESS);
	CHECK(!ibv_dealloc_mw(mw) && !ibv_destroy_qp(qp) && !ibv_dereg_mr(mr) && !ibv_destroy_cq(cq));
}

static void datagrams(struct calls_world *world)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 1}};
	struct ibv_ah_attr answer;
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH, .src_qp = 5};
	struct ibv_grh grh = {.version_tclass_flow = htobe32(6u << 28), .hop_limit = 1};
	struct ibv_qp *qp = make_qp(world->pd, IBV_QPT_UD, world->cq, world->cq, NULL);
	uint8_t mac[6];
	uint16_t vlan;
	union ibv_gid to = group();
	struct ibv_ah *ah;

	to_init(qp);
	CHECK(!ibv_query_gid(world->context, 1, 0, &attr.grh.dgid));
	grh.sgid = grh.dgid = attr.grh.dgid;
	ah = ibv_create_ah(world->pd, &attr);
	CHECK(ah && !mlx5dv_map_ah_to_qp(ah, qp->qp_num) && !ibv_destroy_ah(ah));
	ibv_init_ah_from_wc(world->context, 1, &wc, &grh, &answer);
	ah = ibv_create_ah_from_wc(world->pd, &wc, &grh, 1);
	CHECK(!ah || !ibv_destroy_ah(ah));
	ibv_resolve_eth_l2_from_gid(world->context, &attr, mac, &vlan);
	CHECK(!ibv_attach_mcast(qp, &to, 0) && !ibv_detach_mcast(qp, &to, 0));
	to_rts(qp, 0);
	CHECK(!ibv_destroy_qp(qp));
}

static void xrc(struct calls_world *world)
{
	struct ibv_xrcd_init_attr domain = {.comp_mask = 3, .fd = -1, .oflags = O_CREAT};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(world->context, &domain);
	struct ibv_srq_init_attr_ex srq_attr = {
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask =
			IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_XRCD,
		.srq_type = IBV_SRQT_XRC,
		.pd = world->pd,
		.xrcd = xrcd,
		.cq = world->cq,
	};
	struct ibv_qp_init_attr_ex qp_attr = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
	struct ibv_qp_open_attr open_attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
							  IBV_QP_OPEN_ATTR_TYPE,
					     .xrcd = xrcd,
					     .qp_type = IBV_QPT_XRC_RECV};
	struct ibv_srq *srq;
	struct ibv_qp *qp, *same;
	uint32_t number;

	CHECK(xrcd);
	srq = ibv_create_srq_ex(world->context, &srq_attr);
	qp = ibv_create_qp_ex(world->context, &qp_attr);
	CHECK(srq && qp && !ibv_get_srq_num(srq, &number));
	open_attr.qp_num = qp->qp_num;
	same = ibv_open_qp(world->context, &open_attr);
	CHECK(same && !ibv_destroy_qp(same) && !ibv_destroy_qp(qp) && !ibv_destroy_srq(srq) && !ibv_close_xrcd(xrcd));
}

static void dynamic_connections(struct calls_world *world)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_DRIVER,
		.send_cq = world->cq,
		.recv_cq = world->cq,
		.cap = {.max_send_wr = 4, .max_send_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = world->pd,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC | MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS,
		.dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCI,
				 .dci_streams = {.log_num_concurent = 1, .log_num_errored = 1}},
	};
	struct ibv_qp *qp;

	dv.comp_mask &= ~MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;
	qp = mlx5dv_create_qp(world->context, &attr, &dv);
	CHECK(qp);
	mlx5dv_dci_stream_id_reset(qp, 0);
	CHECK(!ibv_destroy_qp(qp));
}

static void mkeys(struct calls_world *world)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = world->pd,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE,
		.max_entries = 4,
	};
	struct mlx5dv_mkey *mkey = mlx5dv_create_mkey(&attr);
	struct mlx5dv_mkey_err error;

	CHECK(mkey && !mlx5dv_mkey_check(mkey, &error) && !mlx5dv_destroy_mkey(mkey));
}

static void signature_pipelines(struct calls_world *world)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = world->cq,
		.recv_cq = world->cq,
		.cap = {.max_send_wr = 4, .max_send_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
		.pd = world->pd,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
		.create_flags = MLX5DV_QP_CREATE_SIG_PIPELINING,
	};
	struct ibv_qp *qp = mlx5dv_create_qp(world->context, &attr, &dv);

	CHECK(qp);
	mlx5dv_qp_cancel_posted_send_wrs(mlx5dv_qp_ex_from_ibv_qp_ex(ibv_qp_to_qp_ex(qp)), 1);
	CHECK(!ibv_destroy_qp(qp));
}

/* The device has no wrapped keys: logins fail, on the same code paths. */
static void encryption(struct calls_world *world)
{
	struct mlx5dv_dek_init_attr attr = {
		.pd = world->pd, .comp_mask = MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN, .key = {1}};
	struct mlx5dv_crypto_login_attr login = {0};
	struct mlx5dv_crypto_login_attr_ex login_ex = {0};
	enum mlx5dv_crypto_login_state state;
	struct mlx5dv_dek *dek = mlx5dv_dek_create(world->context, &attr);
	struct mlx5dv_dek_attr queried = {0};
	struct mlx5dv_crypto_login_obj *object;

	CHECK(dek && !mlx5dv_dek_query(dek, &queried) && !mlx5dv_dek_destroy(dek));
	CHECK(mlx5dv_crypto_login(world->context, &login));
	mlx5dv_crypto_login_query_state(world->context, &state);
	mlx5dv_crypto_logout(world->context);
	object = mlx5dv_crypto_login_create(world->context, &login_ex);
	CHECK(!object);
}

/* A thread polls rings that mlx5dv_init_obj(3) exported. */
static void own_rings(struct calls_world *world)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 4};
	struct mlx5dv_cq_init_attr dv = {0};
	struct ibv_cq_ex *cq = mlx5dv_create_cq(world->context, &attr, &dv);
	struct ibv_qp *qp;
	struct mlx5dv_qp dv_qp = {0};
	struct mlx5dv_cq dv_cq = {0};
	struct mlx5dv_obj object = {.cq = {ibv_cq_ex_to_cq(cq), &dv_cq}};

	CHECK(cq);
	qp = make_qp(world->pd, IBV_QPT_RC, ibv_cq_ex_to_cq(cq), ibv_cq_ex_to_cq(cq), NULL);
	object.qp.in = qp;
	object.qp.out = &dv_qp;
	CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ | MLX5DV_OBJ_QP));
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

static void reserved_numbers(struct calls_world *world)
{
	uint32_t qpn;

	CHECK(!mlx5dv_reserved_qpn_alloc(world->context, &qpn) && !mlx5dv_reserved_qpn_dealloc(world->context, qpn));
}

/* Words of a command and of its output. */
struct command {
	__be32 in[68], out[68];
};

enum { COMMAND_UMEM = 8192, CQ_RECORD = 4096, QP_RECORD = CQ_RECORD + 64, QP_RING = 6144 };

static struct mlx5dv_devx_obj *create_by_command(struct calls_world *world, struct command *command, uint32_t opcode)
{
	struct mlx5dv_devx_obj *object;

	command->in[0] = htobe32(opcode << 16);
	object = mlx5dv_devx_obj_create(world->context, command->in, sizeof(command->in), command->out,
					sizeof(command->out));
	CHECK(object);
	return object;
}

/* A CQ and a QP created by command, their rings and records in one umem, and a QP created by verbs. */
static void device_commands(struct calls_world *world)
{
	void *memory = aligned_alloc(4096, COMMAND_UMEM);
	struct mlx5dv_devx_umem_in umem_in = {.addr = memory, .size = COMMAND_UMEM, .pgsz_bitmap = 4096};
	struct mlx5dv_devx_umem *umem = mlx5dv_devx_umem_reg(world->context, memory, COMMAND_UMEM, 1);
	struct mlx5dv_devx_umem *same = mlx5dv_devx_umem_reg_ex(world->context, &umem_in);
	struct mlx5dv_devx_uar *uar = mlx5dv_devx_alloc_uar(world->context, 0);
	struct command pd = {0}, cq = {0}, qp = {0}, other = {0};
	struct mlx5dv_devx_obj *pd_object, *cq_object, *qp_object;
	struct ibv_qp *of_verbs = make_qp(world->pd, IBV_QPT_RC, world->cq, world->cq, NULL);
	struct mlx5dv_devx_cmd_comp *completion;
	uint64_t response[1 + 272 / 8];
	uint32_t eqn;

	CHECK(memory && umem && same && uar && !mlx5dv_devx_query_eqn(world->context, 0, &eqn));
	other.in[0] = htobe32(0x754u << 16);
	CHECK(!mlx5dv_devx_general_cmd(world->context, other.in, 16, other.out, sizeof(other.out)));
	pd_object = create_by_command(world, &pd, 0x800);
	cq.in[5] = cq.in[22] = htobe32(umem->umem_id);
	cq.in[7] = htobe32(3u << 24 | uar->page_id);
	cq.in[9] = htobe32(eqn);
	cq.in[19] = htobe32(CQ_RECORD);
	cq_object = create_by_command(world, &cq, 0x400);
	qp.in[6] = htobe32(0x1800);
	qp.in[7] = pd.out[2];
	qp.in[8] = htobe32(3u << 19 | 3u << 11);
	qp.in[9] = htobe32(uar->page_id);
	qp.in[37] = qp.in[45] = cq.out[2];
	qp.in[47] = htobe32(QP_RECORD);
	qp.in[63] = qp.in[66] = htobe32(umem->umem_id);
	qp.in[65] = htobe32(QP_RING);
	qp_object = create_by_command(world, &qp, 0x500);
	other = (struct command){.in = {htobe32(0x502u << 16), 0, qp.out[2]}};
	CHECK(!mlx5dv_devx_obj_modify(qp_object, other.in, sizeof(other.in), other.out, sizeof(other.out)));
	other = (struct command){.in = {htobe32(0x50bu << 16), 0, qp.out[2]}};
	CHECK(!mlx5dv_devx_obj_query(qp_object, other.in, 16, other.out, sizeof(other.out)));
	to_init(of_verbs);
	completion = mlx5dv_devx_create_cmd_comp(world->context);
	CHECK(completion && !mlx5dv_devx_obj_query_async(qp_object, other.in, 16, 272, 1, completion));
	CHECK(!take_response(completion, (struct mlx5dv_devx_async_cmd_hdr *)response, sizeof(response)));
	mlx5dv_devx_destroy_cmd_comp(completion);
	other = (struct command){.in = {htobe32(0x50bu << 16), 0, htobe32(of_verbs->qp_num)}};
	CHECK(!mlx5dv_devx_qp_query(of_verbs, other.in, 16, other.out, sizeof(other.out)));
	other.in[0] = htobe32(0x507u << 16);
	CHECK(!mlx5dv_devx_qp_modify(of_verbs, other.in, 16, other.out, sizeof(other.out)));
	CHECK(!ibv_destroy_qp(of_verbs));
	CHECK(!mlx5dv_devx_obj_destroy(qp_object) && !mlx5dv_devx_obj_destroy(cq_object));
	CHECK(!mlx5dv_devx_obj_destroy(pd_object));
	mlx5dv_devx_free_uar(uar);
	CHECK(!mlx5dv_devx_umem_dereg(umem) && !mlx5dv_devx_umem_dereg(same));
	free(memory);
}

/* Subscribes to objects that raise no event, so none is pending when the call asks for one. */
static void device_events(struct calls_world *world)
{
	struct mlx5dv_devx_event_channel *channel = mlx5dv_devx_create_event_channel(world->context, 0);
	struct mlx5dv_devx_obj *domain;
	struct command command = {0};
	uint16_t type = 4;
	uint64_t event[9];
	/* Never closed, because close(2) is a cancellation point. */
	static int fd = -1;

	if (fd < 0)
		fd = eventfd(0, EFD_CLOEXEC);
	CHECK(channel && fd >= 0 && !fcntl(channel->fd, F_SETFL, O_NONBLOCK));
	domain = create_by_command(world, &command, 0x800);
	CHECK(!mlx5dv_devx_subscribe_devx_event(channel, domain, sizeof(type), &type, 1));
	CHECK(!mlx5dv_devx_subscribe_devx_event_fd(channel, fd, domain, type));
	CHECK(take_device_event(channel, (struct mlx5dv_devx_async_event_hdr *)event, sizeof(event)) == -1 &&
	      errno == EAGAIN);
	CHECK(!mlx5dv_devx_obj_destroy(domain));
	mlx5dv_devx_destroy_event_channel(channel);
}

const struct call calls[] = {
	{"ibv_get_device_list ibv_free_device_list ibv_get_device_name ibv_get_device_index ibv_get_device_guid "
	 "ibv_open_device ibv_close_device mlx5dv_open_device mlx5dv_is_supported",
	 devices},
	{"ibv_query_device ibv_query_port ibv_query_gid _ibv_query_gid_ex _ibv_query_gid_table "
	 "ibv_query_pkey ibv_get_pkey_index mlx5dv_query_device _mlx5dv_query_port mlx5dv_get_clock_info",
	 queries},
	{"ibv_alloc_pd ibv_dealloc_pd", domains},
	{"ibv_import_device ibv_import_pd ibv_unimport_pd ibv_import_mr ibv_unimport_mr ibv_import_dm ibv_unimport_dm",
	 imports},
	{"ibv_reg_mr ibv_reg_mr_iova ibv_reg_mr_iova2 ibv_rereg_mr ibv_dereg_mr", regions},
	{"mlx5dv_alloc_dm", device_memory},
	{"ibv_create_cq ibv_resize_cq ibv_destroy_cq", completion_queues},
	{"ibv_create_comp_channel ibv_destroy_comp_channel ibv_get_cq_event ibv_ack_cq_events", completion_events},
	{"ibv_get_async_event ibv_ack_async_event", async_events},
	{"ibv_create_srq ibv_modify_srq ibv_query_srq ibv_destroy_srq", shared_receive_queues},
	{"ibv_create_qp ibv_modify_qp ibv_query_qp ibv_destroy_qp ibv_qp_to_qp_ex ibv_query_qp_data_in_order ibv_query_ece "
	 "ibv_set_ece mlx5dv_create_qp mlx5dv_qp_ex_from_ibv_qp_ex mlx5dv_modify_qp_udp_sport",
	 queue_pairs},
	{"", traffic},
	{"", windows},
	{"ibv_create_ah ibv_create_ah_from_wc ibv_init_ah_from_wc ibv_destroy_ah ibv_resolve_eth_l2_from_gid "
	 "ibv_attach_mcast ibv_detach_mcast mlx5dv_map_ah_to_qp",
	 datagrams},
	{"", xrc},
	{"mlx5dv_dci_stream_id_reset", dynamic_connections},
	{"mlx5dv_create_mkey mlx5dv_destroy_mkey _mlx5dv_mkey_check", mkeys},
	{"mlx5dv_qp_cancel_posted_send_wrs", signature_pipelines},
	{"mlx5dv_dek_create mlx5dv_dek_query mlx5dv_dek_destroy mlx5dv_crypto_login mlx5dv_crypto_login_query_state "
	 "mlx5dv_crypto_logout mlx5dv_crypto_login_create",
	 encryption},
	{"mlx5dv_create_cq mlx5dv_init_obj", own_rings},
	{"mlx5dv_reserved_qpn_alloc mlx5dv_reserved_qpn_dealloc", reserved_numbers},
	{"mlx5dv_devx_alloc_uar mlx5dv_devx_free_uar mlx5dv_devx_general_cmd mlx5dv_devx_obj_create mlx5dv_devx_obj_destroy "
	 "mlx5dv_devx_obj_modify mlx5dv_devx_obj_query mlx5dv_devx_query_eqn mlx5dv_devx_umem_reg mlx5dv_devx_umem_reg_ex "
	 "mlx5dv_devx_umem_dereg mlx5dv_devx_qp_modify mlx5dv_devx_qp_query mlx5dv_devx_create_cmd_comp "
	 "mlx5dv_devx_destroy_cmd_comp mlx5dv_devx_obj_query_async mlx5dv_devx_get_async_cmd_comp",
	 device_commands},
	{"mlx5dv_devx_create_event_channel mlx5dv_devx_destroy_event_channel mlx5dv_devx_get_event "
	 "mlx5dv_devx_subscribe_devx_event mlx5dv_devx_subscribe_devx_event_fd",
	 device_events},
};

const size_t calls_count = sizeof(calls) / sizeof(calls[0]);

/* ---- calls that take no lock ----------------------------------------------------------------------------------- */

static const struct {
	const char *symbols, *why;
} without_lock[] = {
	{"ibv_copy_path_rec_from_kern ibv_copy_path_rec_to_kern ibv_copy_qp_attr_from_kern ibv_copy_ah_attr_from_kern",
	 "copy a structure into another"},
	{"ibv_rate_to_mult mult_to_ibv_rate ibv_rate_to_mbps mbps_to_ibv_rate", "look a number up"},
	{"ibv_event_type_str ibv_node_type_str ibv_port_state_str ibv_wc_status_str ibv_wr_opcode_str",
	 "look a name up"},
	{"__verbs_log", "writes to a file"},
	{"ibv_query_gid_type", "looks into the table of GIDs; no header declares it"},
	{"ibv_query_port_speed _mlx5dv_get_export_sizes", "give constants; not every release declares them"},
	{"ibv_get_sysfs_path ibv_read_sysfs_file", "read a file"},
	{"ibv_alloc_buf ibv_free_buf ibv_export_buf_dmabuf_fd", "allocate and free memory; no header declares them"},
	{"ibv_reg_buf_mr ibv_reg_mr_ex", "are ibv_reg_mr after a check; no header declares them"},
	{"ibv_fork_init ibv_is_fork_initialized ibv_dontfork_range ibv_dofork_range", "do nothing"},
	{"__ioctl_final_num_attrs verbs_register_driver_34 verbs_register_driver_57 verbs_register_driver_59 "
	 "verbs_register_driver_64 verbs_register_driver_65",
	 "are for providers, and do nothing"},
	{"mlx5dv_crypto_login_destroy mlx5dv_crypto_login_query",
	 "need an object that this device does not give, but by ways of mlx5dv_crypto_login"},
};

static bool names(const char *symbols, const char *symbol)
{
	size_t length = strlen(symbol);

	for (const char *at = strstr(symbols, symbol); at; at = strstr(at + 1, symbol))
		if ((at == symbols || at[-1] == ' ') && (at[length] == '\0' || at[length] == ' '))
			return true;
	return false;
}

static int known(const char *symbol)
{
	for (size_t i = 0; i < calls_count; i++)
		if (names(calls[i].symbols, symbol))
			return 1;
	for (size_t i = 0; i < sizeof(without_lock) / sizeof(without_lock[0]); i++)
		if (names(without_lock[i].symbols, symbol))
			return 1;
	fprintf(stderr, "%s: neither a call of the table nor one that takes no lock\n", symbol);
	return 0;
}

#define KNOWN_IMPLEMENTED(symbol) known(symbol)
#define KNOWN_LATER(symbol) 1
#define KNOWN_UNSUPPORTED(symbol) 1
#define KNOWN_PROBED(symbol) 1
#define SYMBOL(name, version, state, ...) all &= KNOWN_##state(#name);

void calls_complete(void)
{
	int all = 1;

#include "abi/verbs.def"
#define SYMBOL(name, version, state, ...) all &= KNOWN_##state(#name);
#include "abi/mlx5dv.def"
	CHECK(all);
}

/* ---- the world ------------------------------------------------------------------------------------------------- */

void calls_open(struct calls_world *world)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 64, .max_sge = 1}};

	world->context = open_first_device();
	world->pd = ibv_alloc_pd(world->context);
	world->cq = ibv_create_cq(world->context, 64, NULL, NULL, 0);
	world->srq = ibv_create_srq(world->pd, &attr);
	world->buffer = aligned_alloc(CALLS_BUFFER, CALLS_BUFFER);
	CHECK(world->cq && world->srq && world->buffer);
	memset(world->buffer, 1, CALLS_BUFFER);
	world->mr = ibv_reg_mr(world->pd, world->buffer, CALLS_BUFFER, ACCESS);
	CHECK(world->mr);
}

void calls_close(struct calls_world *world)
{
	CHECK(!ibv_dereg_mr(world->mr) && !ibv_destroy_srq(world->srq) && !ibv_destroy_cq(world->cq));
	CHECK(!ibv_dealloc_pd(world->pd) && !ibv_close_device(world->context));
	free(world->buffer);
}
