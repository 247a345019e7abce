/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of calls, see alive_calls.h. */
#include "alive_calls.h"

#include <errno.h>

static char memory[4096];

/* Declared by newer releases of the header (abi/undeclared.h). */
struct ibv_buf;
struct ibv_mr_init_attr;
void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf);
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length, int access);
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *mr_init_attr);

/* Returns the errno value of a call that reports failure by NULL or a negative value. */
static int error_of(bool success)
{
	return success ? 0 : errno;
}

#define CALL(function) static int function(const struct alive_world *world, void *object)
#define OPS(world) (&(world)->context->ops)
#define TABLE(world) verbs_get_ctx((world)->context)

/* ---- contexts, domains, regions, windows, device memory --------------------------------------------------------- */

CALL(close_device)
{
	(void)world;
	return error_of(!ibv_close_device(object));
}

CALL(dealloc_pd)
{
	(void)world;
	return ibv_dealloc_pd(object);
}

static int parent_domain(const struct alive_world *world, struct ibv_pd *pd, struct ibv_td *td)
{
	struct ibv_parent_domain_init_attr attr = {.pd = pd, .td = td};

	return error_of(TABLE(world)->alloc_parent_domain(world->context, &attr));
}

CALL(parent_domain_of_pd)
{
	return parent_domain(world, object, NULL);
}

CALL(parent_domain_of_td)
{
	return parent_domain(world, world->pd, object);
}

CALL(dealloc_td)
{
	return TABLE(world)->dealloc_td(object);
}

CALL(unimport_pd)
{
	(void)world;
	errno = 0;
	ibv_unimport_pd(object);
	return errno;
}

CALL(import_mr)
{
	return error_of(ibv_import_mr(object, world->mr->handle));
}

CALL(unimport_mr)
{
	(void)world;
	errno = 0;
	ibv_unimport_mr(object);
	return errno;
}

CALL(unimport_dm)
{
	(void)world;
	errno = 0;
	ibv_unimport_dm(object);
	return errno;
}

CALL(reg_mr)
{
	(void)world;
	return error_of((ibv_reg_mr)(object, memory, 64, 0));
}

CALL(reg_mr_iova)
{
	(void)world;
	return error_of((ibv_reg_mr_iova)(object, memory, 64, 4096, 0));
}

CALL(reg_mr_iova2)
{
	(void)world;
	return error_of(ibv_reg_mr_iova2(object, memory, 64, 4096, 0));
}

CALL(alloc_null_mr)
{
	return error_of(TABLE(world)->alloc_null_mr(object));
}

CALL(advise_mr)
{
	struct ibv_sge sge = {(uintptr_t)memory, 64, world->mr->lkey};

	return TABLE(world)->advise_mr(object, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1);
}

CALL(reg_mr_ex)
{
	uint64_t attr[9] = {64};

	(void)world;
	return error_of(ibv_reg_mr_ex(object, (struct ibv_mr_init_attr *)attr));
}

CALL(alloc_buf)
{
	struct ibv_buf *buf;

	(void)world;
	return error_of(ibv_alloc_buf(object, 64, &buf));
}

CALL(reg_buf_mr)
{
	(void)world;
	return error_of(ibv_reg_buf_mr(object, (struct ibv_buf *)memory, memory, 64, 0));
}

CALL(rereg_mr)
{
	(void)world;
	return error_of(!ibv_rereg_mr(object, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0));
}

CALL(rereg_mr_to_pd)
{
	return error_of(!ibv_rereg_mr(world->mr, IBV_REREG_MR_CHANGE_PD, object, NULL, 0, 0));
}

CALL(dereg_mr)
{
	(void)world;
	return ibv_dereg_mr(object);
}

CALL(reg_dm_mr_of_pd)
{
	return error_of(TABLE(world)->reg_dm_mr(object, world->dm, 0, 64, IBV_ACCESS_ZERO_BASED));
}

CALL(reg_dm_mr_of_dm)
{
	return error_of(TABLE(world)->reg_dm_mr(world->pd, object, 0, 64, IBV_ACCESS_ZERO_BASED));
}

CALL(free_dm)
{
	return TABLE(world)->free_dm(object);
}

CALL(alloc_mw)
{
	return error_of(OPS(world)->alloc_mw(object, IBV_MW_TYPE_1));
}

CALL(dealloc_mw)
{
	return OPS(world)->dealloc_mw(object);
}

static int bind_mw(const struct alive_world *world, struct ibv_qp *qp, struct ibv_mw *mw)
{
	struct ibv_mw_bind bind = {.bind_info = {.mr = world->mr, .addr = (uintptr_t)memory, .length = 64}};

	return OPS(world)->bind_mw(qp, mw, &bind);
}

CALL(bind_mw_on_qp)
{
	return bind_mw(world, object, world->mw);
}

CALL(bind_mw_of_mw)
{
	return bind_mw(world, world->qp, object);
}

/* ---- completion queues ------------------------------------------------------------------------------------------ */

CALL(destroy_comp_channel)
{
	(void)world;
	return ibv_destroy_comp_channel(object);
}

CALL(create_cq)
{
	return error_of(ibv_create_cq(world->context, 4, NULL, object, 0));
}

CALL(create_cq_ex_of_channel)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 4, .channel = object};

	return error_of(TABLE(world)->create_cq_ex(world->context, &attr));
}

CALL(create_cq_ex_of_pd)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = object};

	return error_of(TABLE(world)->create_cq_ex(world->context, &attr));
}

CALL(dv_create_cq_of_channel)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 4, .channel = object};
	struct mlx5dv_cq_init_attr dv = {0};

	return error_of(mlx5dv_create_cq(world->context, &attr, &dv));
}

CALL(dv_create_cq_of_pd)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = object};
	struct mlx5dv_cq_init_attr dv = {0};

	return error_of(mlx5dv_create_cq(world->context, &attr, &dv));
}

CALL(modify_cq)
{
	struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {1, 1}};

	return TABLE(world)->modify_cq(object, &attr);
}

CALL(resize_cq)
{
	(void)world;
	return ibv_resize_cq(object, 9);
}

CALL(destroy_cq)
{
	(void)world;
	return ibv_destroy_cq(object);
}

/* ---- shared receive queues, XRC --------------------------------------------------------------------------------- */

CALL(create_srq)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};

	(void)world;
	return error_of(ibv_create_srq(object, &attr));
}

static int create_srq_ex(const struct alive_world *world, struct ibv_pd *pd, struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask =
			IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = xrcd,
		.cq = cq,
	};

	return error_of(TABLE(world)->create_srq_ex(world->context, &attr));
}

CALL(create_srq_ex_of_pd)
{
	return create_srq_ex(world, object, world->xrcd, world->cq);
}

CALL(create_srq_ex_of_xrcd)
{
	return create_srq_ex(world, world->pd, object, world->cq);
}

CALL(create_srq_ex_of_cq)
{
	return create_srq_ex(world, world->pd, world->xrcd, object);
}

CALL(modify_srq)
{
	struct ibv_srq_attr attr = {.srq_limit = 1};

	(void)world;
	return ibv_modify_srq(object, &attr, IBV_SRQ_LIMIT);
}

CALL(query_srq)
{
	struct ibv_srq_attr attr;

	(void)world;
	return ibv_query_srq(object, &attr);
}

CALL(get_srq_num)
{
	uint32_t number;

	return TABLE(world)->get_srq_num(object, &number);
}

CALL(destroy_srq)
{
	(void)world;
	return ibv_destroy_srq(object);
}

CALL(close_xrcd)
{
	return TABLE(world)->close_xrcd(object);
}

CALL(open_qp)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = 5,
		.xrcd = object,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	return error_of(TABLE(world)->open_qp(world->context, &attr));
}

/* ---- queue pairs ------------------------------------------------------------------------------------------------ */

static struct ibv_qp_init_attr_ex good_qp(const struct alive_world *world)
{
	return (struct ibv_qp_init_attr_ex){
		.send_cq = world->cq,
		.recv_cq = world->cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = world->pd,
	};
}

static int create_qp(const struct alive_world *world, struct ibv_pd *pd, struct ibv_qp_init_attr_ex ex)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = ex.send_cq, .recv_cq = ex.recv_cq, .srq = ex.srq, .cap = ex.cap, .qp_type = ex.qp_type};

	(void)world;
	return error_of(ibv_create_qp(pd, &attr));
}

static int create_qp_ex(const struct alive_world *world, struct ibv_qp_init_attr_ex attr)
{
	return error_of(TABLE(world)->create_qp_ex(world->context, &attr));
}

static int dv_create_qp(const struct alive_world *world, struct ibv_qp_init_attr_ex attr)
{
	struct mlx5dv_qp_init_attr dv = {0};

	return error_of(mlx5dv_create_qp(world->context, &attr, &dv));
}

/* Defines the three creating calls, with @member of the attributes bad. */
#define CREATE_CALLS(member)                                                                                           \
	CALL(create_qp_of_##member)                                                                                    \
	{                                                                                                              \
		struct ibv_qp_init_attr_ex attr = good_qp(world);                                                      \
                                                                                                                       \
		attr.member = object;                                                                                  \
		return create_qp(world, attr.pd, attr);                                                                \
	}                                                                                                              \
	CALL(create_qp_ex_of_##member)                                                                                 \
	{                                                                                                              \
		struct ibv_qp_init_attr_ex attr = good_qp(world);                                                      \
                                                                                                                       \
		attr.member = object;                                                                                  \
		return create_qp_ex(world, attr);                                                                      \
	}                                                                                                              \
	CALL(dv_create_qp_of_##member)                                                                                 \
	{                                                                                                              \
		struct ibv_qp_init_attr_ex attr = good_qp(world);                                                      \
                                                                                                                       \
		attr.member = object;                                                                                  \
		return dv_create_qp(world, attr);                                                                      \
	}
CREATE_CALLS(pd)
CREATE_CALLS(send_cq)
CREATE_CALLS(recv_cq)
CREATE_CALLS(srq)

static struct ibv_qp_init_attr_ex xrc_qp(struct ibv_xrcd *xrcd)
{
	return (struct ibv_qp_init_attr_ex){
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
}

CALL(create_qp_ex_of_xrcd)
{
	return create_qp_ex(world, xrc_qp(object));
}

CALL(dv_create_qp_of_xrcd)
{
	return dv_create_qp(world, xrc_qp(object));
}

CALL(modify_qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	(void)world;
	return ibv_modify_qp(object, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

CALL(modify_qp_rate_limit)
{
	struct ibv_qp_rate_limit_attr attr = {.rate_limit = 1};

	return TABLE(world)->modify_qp_rate_limit(object, &attr);
}

CALL(query_qp)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	(void)world;
	return ibv_query_qp(object, &attr, IBV_QP_STATE, &init);
}

CALL(query_ece)
{
	struct ibv_ece ece;

	(void)world;
	return ibv_query_ece(object, &ece);
}

CALL(set_ece)
{
	struct ibv_ece ece = {.vendor_id = 0x15b3};

	(void)world;
	return ibv_set_ece(object, &ece);
}

CALL(attach_mcast)
{
	union ibv_gid group = {.raw = {0xff, 0x12, [15] = 1}};

	(void)world;
	return ibv_attach_mcast(object, &group, 0);
}

CALL(detach_mcast)
{
	union ibv_gid group = {.raw = {0xff, 0x12, [15] = 1}};

	(void)world;
	return ibv_detach_mcast(object, &group, 0);
}

CALL(modify_qp_udp_sport)
{
	(void)world;
	return mlx5dv_modify_qp_udp_sport(object, 0xc001);
}

CALL(dci_stream_id_reset)
{
	(void)world;
	return mlx5dv_dci_stream_id_reset(object, 0);
}

/*
 * Passes the pointer within the QP, or the same offset of a bad object: this test runs with the libraries that it was built with.
 */
CALL(cancel_posted)
{
	struct mlx5dv_qp_ex *good = mlx5dv_qp_ex_from_ibv_qp_ex(ibv_qp_to_qp_ex(world->qp));
	ptrdiff_t offset = (char *)good - (char *)world->qp;

	return -mlx5dv_qp_cancel_posted_send_wrs((struct mlx5dv_qp_ex *)(void *)((char *)object + offset), 1);
}

CALL(destroy_qp)
{
	(void)world;
	return ibv_destroy_qp(object);
}

/* ---- address handles -------------------------------------------------------------------------------------------- */

CALL(create_ah)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 1}};

	(void)world;
	return error_of(ibv_create_ah(object, &attr));
}

CALL(create_ah_from_wc)
{
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	struct ibv_grh grh = {.version_tclass_flow = htobe32(6u << 28)};

	(void)world;
	return error_of(ibv_create_ah_from_wc(object, &wc, &grh, 1));
}

CALL(map_ah_to_qp)
{
	return mlx5dv_map_ah_to_qp(object, world->qp->qp_num);
}

CALL(destroy_ah)
{
	(void)world;
	return ibv_destroy_ah(object);
}

/* ---- calls of mlx5dv.h ------------------------------------------------------------------------------------------ */

#define INIT_CALL(member, kind)                                                                                        \
	CALL(init_obj_##member)                                                                                        \
	{                                                                                                              \
		struct mlx5dv_##member out = {0};                                                                      \
		struct mlx5dv_obj both = {.member = {object, &out}};                                                   \
                                                                                                                       \
		(void)world;                                                                                           \
		return mlx5dv_init_obj(&both, kind);                                                                   \
	}
INIT_CALL(qp, MLX5DV_OBJ_QP)
INIT_CALL(cq, MLX5DV_OBJ_CQ)
INIT_CALL(srq, MLX5DV_OBJ_SRQ)
INIT_CALL(dm, MLX5DV_OBJ_DM)
INIT_CALL(ah, MLX5DV_OBJ_AH)
INIT_CALL(pd, MLX5DV_OBJ_PD)

CALL(create_mkey)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = object, .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, .max_entries = 4};

	(void)world;
	return error_of(mlx5dv_create_mkey(&attr));
}

CALL(mkey_check)
{
	struct mlx5dv_mkey_err error;

	(void)world;
	return mlx5dv_mkey_check(object, &error);
}

CALL(destroy_mkey)
{
	(void)world;
	return mlx5dv_destroy_mkey(object);
}

CALL(dek_create)
{
	struct mlx5dv_dek_init_attr attr = {
		.pd = object, .comp_mask = MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN, .key = {1, 2, 3, [16] = 4, 5, 6}};

	return error_of(mlx5dv_dek_create(world->context, &attr));
}

CALL(dek_query)
{
	struct mlx5dv_dek_attr attr = {0};

	(void)world;
	return mlx5dv_dek_query(object, &attr);
}

CALL(dek_destroy)
{
	(void)world;
	return mlx5dv_dek_destroy(object);
}

CALL(login_query)
{
	struct mlx5dv_crypto_login_query_attr attr = {0};

	(void)world;
	return mlx5dv_crypto_login_query(object, &attr);
}

CALL(login_destroy)
{
	(void)world;
	return mlx5dv_crypto_login_destroy(object);
}

/* ---- commands ----------------------------------------------------------------------------------------------------- */

/* Returns the result of a command with an invalid object number: EINVAL means that the object passed the check. */
static int command_result(int error)
{
	return error == EINVAL ? 0 : error;
}

CALL(devx_qp_modify)
{
	uint8_t in[16] = {0x05, 0x0a}, out[16];

	(void)world;
	return command_result(mlx5dv_devx_qp_modify(object, in, sizeof(in), out, sizeof(out)));
}

CALL(devx_qp_query)
{
	uint8_t in[16] = {0x05, 0x0b}, out[272];

	(void)world;
	return command_result(mlx5dv_devx_qp_query(object, in, sizeof(in), out, sizeof(out)));
}

CALL(devx_obj_modify)
{
	uint8_t in[16] = {0x05, 0x0a}, out[16];

	(void)world;
	return command_result(mlx5dv_devx_obj_modify(object, in, sizeof(in), out, sizeof(out)));
}

CALL(devx_obj_query)
{
	uint8_t in[16] = {0x05, 0x0b}, out[272];

	(void)world;
	return command_result(mlx5dv_devx_obj_query(object, in, sizeof(in), out, sizeof(out)));
}

CALL(devx_obj_destroy)
{
	(void)world;
	return mlx5dv_devx_obj_destroy(object);
}

CALL(devx_umem_dereg)
{
	(void)world;
	return mlx5dv_devx_umem_dereg(object);
}

CALL(devx_free_uar)
{
	(void)world;
	errno = 0;
	mlx5dv_devx_free_uar(object);
	return errno;
}

CALL(devx_subscribe)
{
	uint16_t type = 4;

	(void)world;
	return mlx5dv_devx_subscribe_devx_event(object, NULL, sizeof(type), &type, 0);
}

/* Checks the object; the channel is valid. */
CALL(devx_subscribe_to)
{
	struct mlx5dv_devx_event_channel *channel = mlx5dv_devx_create_event_channel(world->context, 0);
	uint16_t type = 4;
	int error = mlx5dv_devx_subscribe_devx_event(channel, object, sizeof(type), &type, 0);

	mlx5dv_devx_destroy_event_channel(channel);
	return error;
}

CALL(devx_subscribe_fd)
{
	(void)world;
	return mlx5dv_devx_subscribe_devx_event_fd(object, 0, NULL, 9);
}

CALL(devx_subscribe_fd_to)
{
	struct mlx5dv_devx_event_channel *channel = mlx5dv_devx_create_event_channel(world->context, 0);
	int error = mlx5dv_devx_subscribe_devx_event_fd(channel, 0, object, 4);

	mlx5dv_devx_destroy_event_channel(channel);
	return error;
}

CALL(devx_get_event)
{
	uint64_t event[9];

	(void)world;
	errno = 0;
	mlx5dv_devx_get_event(object, (struct mlx5dv_devx_async_event_hdr *)event, sizeof(event));
	return errno;
}

CALL(devx_destroy_event_channel)
{
	(void)world;
	errno = 0;
	mlx5dv_devx_destroy_event_channel(object);
	return errno;
}

CALL(devx_query_async)
{
	struct mlx5dv_devx_cmd_comp *completion = mlx5dv_devx_create_cmd_comp(world->context);
	uint32_t in[4] = {0};
	int error = mlx5dv_devx_obj_query_async(object, in, sizeof(in), 16, 1, completion);

	mlx5dv_devx_destroy_cmd_comp(completion);
	return error;
}

/* Checks the completion; the object is valid. */
CALL(devx_query_async_by)
{
	uint32_t in[4] = {htobe32(0x800u << 16)}, out[4];
	struct mlx5dv_devx_obj *domain = mlx5dv_devx_obj_create(world->context, in, sizeof(in), out, sizeof(out));
	int error = mlx5dv_devx_obj_query_async(domain, in, sizeof(in), 16, 1, object);

	mlx5dv_devx_obj_destroy(domain);
	return error;
}

CALL(devx_get_response)
{
	uint64_t response[9];

	(void)world;
	return mlx5dv_devx_get_async_cmd_comp(object, (struct mlx5dv_devx_async_cmd_hdr *)response, sizeof(response));
}

CALL(devx_destroy_responses)
{
	(void)world;
	errno = 0;
	mlx5dv_devx_destroy_cmd_comp(object);
	return errno;
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

#define ROW(symbol, kind, call, beside)                                                                                \
	{                                                                                                              \
#symbol, #symbol, ALIVE_##kind, call, beside                                                           \
	}

const struct alive_call alive_calls[] = {
	ROW(ibv_close_device, CONTEXT, close_device, false),
	ROW(ibv_dealloc_pd, PD, dealloc_pd, false),
	ROW(ibv_alloc_parent_domain, PD, parent_domain_of_pd, true),
	ROW(ibv_alloc_parent_domain, TD, parent_domain_of_td, true),
	ROW(ibv_dealloc_td, TD, dealloc_td, false),
	ROW(ibv_unimport_pd, PD, unimport_pd, false),
	ROW(ibv_import_mr, PD, import_mr, false),
	ROW(ibv_unimport_mr, MR, unimport_mr, false),
	ROW(ibv_unimport_dm, DM, unimport_dm, false),
	ROW(ibv_reg_mr, PD, reg_mr, false),
	ROW(ibv_reg_mr_iova, PD, reg_mr_iova, false),
	{"ibv_reg_mr_iova2", "ibv_reg_mr_iova", ALIVE_PD, reg_mr_iova2, false},
	ROW(ibv_reg_mr_ex, PD, reg_mr_ex, false),
	ROW(ibv_alloc_buf, PD, alloc_buf, false),
	ROW(ibv_reg_buf_mr, PD, reg_buf_mr, false),
	ROW(ibv_alloc_null_mr, PD, alloc_null_mr, false),
	ROW(ibv_advise_mr, PD, advise_mr, false),
	ROW(ibv_rereg_mr, MR, rereg_mr, false),
	ROW(ibv_rereg_mr, PD, rereg_mr_to_pd, true),
	ROW(ibv_dereg_mr, MR, dereg_mr, false),
	ROW(ibv_reg_dm_mr, PD, reg_dm_mr_of_pd, true),
	ROW(ibv_reg_dm_mr, DM, reg_dm_mr_of_dm, true),
	ROW(ibv_free_dm, DM, free_dm, false),
	ROW(ibv_alloc_mw, PD, alloc_mw, false),
	ROW(ibv_dealloc_mw, MW, dealloc_mw, false),
	/* Posts a request that names the window by its key: the device checks for a window of another context. */
	ROW(ibv_bind_mw, QP, bind_mw_on_qp, false),
	ROW(ibv_bind_mw, MW, bind_mw_of_mw, false),
	ROW(ibv_destroy_comp_channel, CHANNEL, destroy_comp_channel, false),
	ROW(ibv_create_cq, CHANNEL, create_cq, true),
	ROW(ibv_create_cq_ex, CHANNEL, create_cq_ex_of_channel, true),
	ROW(ibv_create_cq_ex, PD, create_cq_ex_of_pd, true),
	ROW(mlx5dv_create_cq, CHANNEL, dv_create_cq_of_channel, true),
	ROW(mlx5dv_create_cq, PD, dv_create_cq_of_pd, true),
	ROW(ibv_modify_cq, CQ, modify_cq, false),
	ROW(ibv_resize_cq, CQ, resize_cq, false),
	ROW(ibv_destroy_cq, CQ, destroy_cq, false),
	ROW(ibv_create_srq, PD, create_srq, false),
	ROW(ibv_create_srq_ex, PD, create_srq_ex_of_pd, true),
	ROW(ibv_create_srq_ex, XRCD, create_srq_ex_of_xrcd, true),
	ROW(ibv_create_srq_ex, CQ, create_srq_ex_of_cq, true),
	ROW(ibv_modify_srq, SRQ, modify_srq, false),
	ROW(ibv_query_srq, SRQ, query_srq, false),
	ROW(ibv_get_srq_num, SRQ, get_srq_num, false),
	ROW(ibv_destroy_srq, SRQ, destroy_srq, false),
	ROW(ibv_close_xrcd, XRCD, close_xrcd, false),
	ROW(ibv_open_qp, XRCD, open_qp, true),
	ROW(ibv_create_qp, PD, create_qp_of_pd, true),
	ROW(ibv_create_qp, CQ, create_qp_of_send_cq, true),
	ROW(ibv_create_qp, CQ, create_qp_of_recv_cq, true),
	ROW(ibv_create_qp, SRQ, create_qp_of_srq, true),
	ROW(ibv_create_qp_ex, PD, create_qp_ex_of_pd, true),
	ROW(ibv_create_qp_ex, CQ, create_qp_ex_of_send_cq, true),
	ROW(ibv_create_qp_ex, CQ, create_qp_ex_of_recv_cq, true),
	ROW(ibv_create_qp_ex, SRQ, create_qp_ex_of_srq, true),
	ROW(ibv_create_qp_ex, XRCD, create_qp_ex_of_xrcd, true),
	ROW(mlx5dv_create_qp, PD, dv_create_qp_of_pd, true),
	ROW(mlx5dv_create_qp, CQ, dv_create_qp_of_send_cq, true),
	ROW(mlx5dv_create_qp, CQ, dv_create_qp_of_recv_cq, true),
	ROW(mlx5dv_create_qp, SRQ, dv_create_qp_of_srq, true),
	ROW(mlx5dv_create_qp, XRCD, dv_create_qp_of_xrcd, true),
	ROW(ibv_modify_qp, QP, modify_qp, false),
	ROW(ibv_modify_qp_rate_limit, QP, modify_qp_rate_limit, false),
	ROW(ibv_query_qp, QP, query_qp, false),
	ROW(ibv_query_ece, QP, query_ece, false),
	ROW(ibv_set_ece, QP, set_ece, false),
	ROW(ibv_attach_mcast, QP, attach_mcast, false),
	ROW(ibv_detach_mcast, QP, detach_mcast, false),
	ROW(mlx5dv_modify_qp_udp_sport, QP, modify_qp_udp_sport, false),
	ROW(mlx5dv_dci_stream_id_reset, QP, dci_stream_id_reset, false),
	ROW(mlx5dv_qp_cancel_posted_send_wrs, QP, cancel_posted, false),
	ROW(ibv_destroy_qp, QP, destroy_qp, false),
	ROW(ibv_create_ah, PD, create_ah, false),
	ROW(ibv_create_ah_from_wc, PD, create_ah_from_wc, false),
	ROW(mlx5dv_map_ah_to_qp, AH, map_ah_to_qp, false),
	ROW(ibv_destroy_ah, AH, destroy_ah, false),
	ROW(mlx5dv_init_obj, QP, init_obj_qp, false),
	ROW(mlx5dv_init_obj, CQ, init_obj_cq, false),
	ROW(mlx5dv_init_obj, SRQ, init_obj_srq, false),
	ROW(mlx5dv_init_obj, DM, init_obj_dm, false),
	ROW(mlx5dv_init_obj, AH, init_obj_ah, false),
	ROW(mlx5dv_init_obj, PD, init_obj_pd, false),
	ROW(mlx5dv_create_mkey, PD, create_mkey, false),
	{"_mlx5dv_mkey_check", "mlx5dv_mkey_check", ALIVE_MKEY, mkey_check, false},
	ROW(mlx5dv_destroy_mkey, MKEY, destroy_mkey, false),
	ROW(mlx5dv_dek_create, PD, dek_create, true),
	ROW(mlx5dv_dek_query, DEK, dek_query, false),
	ROW(mlx5dv_dek_destroy, DEK, dek_destroy, false),
	ROW(mlx5dv_crypto_login_query, LOGIN, login_query, false),
	ROW(mlx5dv_crypto_login_destroy, LOGIN, login_destroy, false),
	ROW(mlx5dv_devx_qp_modify, QP, devx_qp_modify, false),
	ROW(mlx5dv_devx_qp_query, QP, devx_qp_query, false),
	ROW(mlx5dv_devx_obj_modify, DEVX, devx_obj_modify, false),
	ROW(mlx5dv_devx_obj_query, DEVX, devx_obj_query, false),
	ROW(mlx5dv_devx_obj_destroy, DEVX, devx_obj_destroy, false),
	ROW(mlx5dv_devx_umem_dereg, UMEM, devx_umem_dereg, false),
	ROW(mlx5dv_devx_free_uar, UAR, devx_free_uar, false),
	ROW(mlx5dv_devx_subscribe_devx_event, EVENTS, devx_subscribe, false),
	ROW(mlx5dv_devx_subscribe_devx_event, DEVX, devx_subscribe_to, true),
	ROW(mlx5dv_devx_subscribe_devx_event_fd, EVENTS, devx_subscribe_fd, false),
	ROW(mlx5dv_devx_subscribe_devx_event_fd, DEVX, devx_subscribe_fd_to, true),
	ROW(mlx5dv_devx_get_event, EVENTS, devx_get_event, false),
	ROW(mlx5dv_devx_destroy_event_channel, EVENTS, devx_destroy_event_channel, false),
	ROW(mlx5dv_devx_obj_query_async, DEVX, devx_query_async, false),
	ROW(mlx5dv_devx_obj_query_async, RESPONSES, devx_query_async_by, true),
	ROW(mlx5dv_devx_get_async_cmd_comp, RESPONSES, devx_get_response, false),
	ROW(mlx5dv_devx_destroy_cmd_comp, RESPONSES, devx_destroy_responses, false),
};

const size_t alive_calls_count = sizeof(alive_calls) / sizeof(alive_calls[0]);

const struct alive_exception alive_exceptions[] = {
	{"ibv_poll_cq", "data path"},
	{"ibv_req_notify_cq", "data path"},
	{"ibv_post_send", "data path"},
	{"ibv_post_recv", "data path"},
	{"ibv_post_srq_recv", "data path"},
	{"ibv_get_cq_event", "data path"},
	{"ibv_ack_cq_events", "data path"},
	{"ibv_qp_to_qp_ex", "programs call it for each request"},
	{"ibv_query_qp_data_in_order", "answers the same for any pointer"},
};

const size_t alive_exceptions_count = sizeof(alive_exceptions) / sizeof(alive_exceptions[0]);
