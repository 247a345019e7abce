/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 237, 309, 314 to 317, 320 to 324, 360 to 372, 386 and 390: domains, windows, device memory, channels. */
#include "rule_cases.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { DEVICE_MEMORY = 128 << 10 }; /* docs/reference/limits.md, MAX_DM_SIZE */

static struct ibv_dm *take_dm(size_t length)
{
	struct ibv_alloc_dm_attr attr = {.length = length};

	return ibv_alloc_dm(client.context, &attr);
}

/* ---- objects of all kinds; each call is in api/objects_alive.c ---------------------------------------------------- */

RULE_CASE(OBJECT_NONE)
{
	struct ibv_mw *mw = ibv_alloc_mw(client.pd, IBV_MW_TYPE_2);
	struct ibv_mw copy = *mw;

	expect_error(ibv_dealloc_mw(&copy), ENOENT);
	expect_refusal(OBJECT_NONE,
		       "ibv_dealloc_mw → ENOENT: there is no MW at 0x%" PRIxPTR ": it was destroyed, or never existed",
		       (uintptr_t)&copy);
	expect_error(ibv_dealloc_mw(mw), 0);
}

RULE_CASE(OBJECT_HANDLE)
{
	uint32_t handle = pair.client.cq->handle;

	pair.client.cq->handle = 77;
	expect_error(ibv_destroy_cq(pair.client.cq), ENOENT);
	expect_refusal(OBJECT_HANDLE,
		       "ibv_destroy_cq → ENOENT: the member handle of the CQ at 0x%" PRIxPTR " was %u and is 77",
		       (uintptr_t)pair.client.cq, handle);
	pair.client.cq->handle = handle;
}

RULE_CASE(OBJECT_CONTEXT)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp = pair.client.qp;

	qp->context = server.context;
	expect_error(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), ENOENT);
	expect_refusal(OBJECT_CONTEXT,
		       "ibv_query_qp → ENOENT: the member context of the QP at 0x%" PRIxPTR " was 0x%" PRIxPTR
		       " and is 0x%" PRIxPTR,
		       (uintptr_t)qp, (uintptr_t)client.context, (uintptr_t)server.context);
	qp->context = client.context;
}

RULE_CASE(OBJECT_FOREIGN)
{
	struct ibv_dm *dm = take_dm(64);

	assert_null(ibv_reg_dm_mr(server.pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED));
	expect_error(errno, ENOENT);
	expect_refusal(OBJECT_FOREIGN,
		       "ibv_reg_dm_mr → ENOENT: the DM at 0x%" PRIxPTR
		       " belongs to another context than the other arguments of the call",
		       (uintptr_t)dm);
	expect_error(ibv_free_dm(dm), 0);
}

RULE_CASE(OBJECT_OF_CLOSED)
{
	struct ibv_context *context = ibv_import_device(dup(client.context->cmd_fd));
	struct ibv_pd *pd = ibv_import_pd(context, client.pd->handle);

	assert_non_null(pd);
	expect_error(ibv_close_device(context), 0);
	assert_null(ibv_reg_mr(pd, client.memory, 64, 0));
	expect_error(errno, ENOENT);
	expect_refusal(OBJECT_OF_CLOSED,
		       "ibv_reg_mr → ENOENT: the context that the PD at 0x%" PRIxPTR " was imported into is closed",
		       (uintptr_t)pd);
	ibv_unimport_pd(pd);
}

/* ---- domains -------------------------------------------------------------------------------------------------- */

RULE_CASE(PD_IN_USE)
{
	struct ibv_pd *pd = ibv_alloc_pd(client.context);
	struct ibv_mr *mr = ibv_reg_mr(pd, client.memory, 64, 0), *other = ibv_reg_mr(pd, client.memory, 64, 0);
	struct ibv_parent_domain_init_attr attr = {.pd = pd};
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd, &srq_attr);
	struct ibv_pd *parent = ibv_alloc_parent_domain(client.context, &attr);

	expect_error(ibv_dealloc_pd(pd), EBUSY);
	expect_refusal(PD_IN_USE,
		       "ibv_dealloc_pd → EBUSY: the protection domain still has 2 MRs, 1 SRQ and 1 parent domain");
	expect_error(ibv_dealloc_pd(parent), 0);
	expect_error(ibv_destroy_srq(srq), 0);
	expect_error(ibv_dereg_mr(other), 0);
	expect_error(ibv_dealloc_pd(pd), EBUSY);
	expect_refusal(PD_IN_USE, "ibv_dealloc_pd → EBUSY: the protection domain still has 1 MR");
	expect_error(ibv_dereg_mr(mr), 0);
	expect_error(ibv_dealloc_pd(pd), 0);
}

RULE_CASE(PD_IN_USE_ELSEWHERE)
{
	struct ibv_pd *pd = ibv_alloc_pd(client.context), *again = ibv_import_pd(client.context, pd->handle);
	struct ibv_mr *mr = ibv_reg_mr(again, client.memory, 64, 0);
	struct mlx5dv_pd out = {0};
	struct mlx5dv_obj object = {.pd = {.in = pd, .out = &out}};

	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_PD), 0);
	expect_error(ibv_dealloc_pd(pd), EBUSY);
	expect_refusal(
		PD_IN_USE_ELSEWHERE,
		"ibv_dealloc_pd → EBUSY: domain 0x%x still has keys or queues that were created over another import of it",
		out.pdn);
	expect_error(ibv_dereg_mr(mr), 0);
	ibv_unimport_pd(again);
	expect_error(ibv_dealloc_pd(pd), 0);
}

RULE_CASE(PARENT_DOMAIN_PD)
{
	struct ibv_parent_domain_init_attr attr = {.pd = NULL};

	assert_null(ibv_alloc_parent_domain(client.context, &attr));
	expect_error(errno, EINVAL);
	expect_refusal(PARENT_DOMAIN_PD, "ibv_alloc_parent_domain → EINVAL: the member pd is NULL");
}

RULE_CASE(TD_IN_USE)
{
	struct ibv_td_init_attr attr = {0};
	struct ibv_td *td = ibv_alloc_td(client.context, &attr);
	struct ibv_parent_domain_init_attr domain = {.pd = client.pd, .td = td};
	struct ibv_pd *parent = ibv_alloc_parent_domain(client.context, &domain);

	expect_error(ibv_dealloc_td(td), EBUSY);
	expect_refusal(TD_IN_USE, "ibv_dealloc_td → EBUSY: 1 parent domains use the thread domain");
	expect_error(ibv_dealloc_pd(parent), 0);
	expect_error(ibv_dealloc_td(td), 0);
}

static void *no_memory(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment, uint64_t resource_type)
{
	(void)pd, (void)pd_context, (void)size, (void)alignment, (void)resource_type;
	return NULL;
}

static void no_free(struct ibv_pd *pd, void *pd_context, void *memory, uint64_t resource_type)
{
	(void)pd, (void)pd_context, (void)memory, (void)resource_type;
}

/* A CQ of 63 entries has a ring of 64 * 64 bytes, allocated as QUEUE_MEMORY. */
static void allocator_failed(void)
{
	struct ibv_parent_domain_init_attr domain = {.pd = client.pd,
						     .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
						     .alloc = no_memory,
						     .free = no_free};
	struct ibv_pd *parent = ibv_alloc_parent_domain(client.context, &domain);
	struct ibv_cq_init_attr_ex attr = {.cqe = 63, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = parent};
	struct softhca_explanation both[2];

	assert_non_null(parent);
	assert_null(ibv_create_cq_ex(client.context, &attr));
	expect_error(errno, ENOMEM);
	assert_int_equal(softhca_explanations(client.context, 0, both, 2), 2);
	expect_explanation(
		&both[1], ALLOCATOR_FAILED,
		" ibv_parent_domain_init_attr.alloc → ENOMEM: the allocator of the parent domain returned NULL "
		"for 4096 bytes");
	expect_explanation(
		&both[0], QUEUE_MEMORY,
		" ibv_create_cq_ex → ENOMEM: not enough memory for a ring of 4096 bytes and its doorbell record");
	expect_error(ibv_dealloc_pd(parent), 0);
}

RULE_CASE(MW_TYPE)
{
	assert_null(ibv_alloc_mw(client.pd, 3));
	expect_error(errno, EINVAL);
	expect_refusal(MW_TYPE, "ibv_alloc_mw → EINVAL: type 3 is neither 1 nor 2");
}

RULE_CASE(DM_LENGTH)
{
	assert_null(take_dm(DEVICE_MEMORY + 1));
	expect_error(errno, EINVAL);
	expect_refusal(DM_LENGTH, "ibv_alloc_dm → EINVAL: 131073 bytes are requested, but the device has 131072");
}

RULE_CASE(DM_LOG_ALIGN)
{
	struct ibv_alloc_dm_attr attr = {.length = 64, .log_align_req = 40};

	assert_null(ibv_alloc_dm(client.context, &attr));
	expect_error(errno, EINVAL);
	expect_refusal(DM_LOG_ALIGN, "ibv_alloc_dm → EINVAL: an alignment of 2^40 exceeds the device's 131072 bytes");
}

RULE_CASE(DM_FULL)
{
	struct ibv_dm *dm = take_dm(DEVICE_MEMORY);

	assert_non_null(dm);
	assert_null(take_dm(64));
	expect_error(errno, ENOMEM);
	expect_refusal(DM_FULL, "ibv_alloc_dm → ENOMEM: the device's 131072 bytes have no 64 contiguous free bytes");
	expect_error(ibv_free_dm(dm), 0);
}

RULE_CASE(DM_IN_USE)
{
	struct ibv_dm *dm = take_dm(64);
	struct ibv_mr *mr = ibv_reg_dm_mr(client.pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED);

	assert_non_null(mr);
	expect_error(ibv_free_dm(dm), EBUSY);
	expect_refusal(DM_IN_USE, "ibv_free_dm → EBUSY: 1 regions use the device memory");
	expect_error(ibv_dereg_mr(mr), 0);
	expect_error(ibv_free_dm(dm), 0);
}

RULE_CASE(DM_RANGE)
{
	struct ibv_dm *dm = take_dm(64);
	uint8_t bytes[64] = {0};

	expect_error(ibv_memcpy_to_dm(dm, 60, bytes, 8), EFAULT);
	expect_refusal(DM_RANGE, "ibv_memcpy_to_dm → EFAULT: [60, +8) is outside of the 64 bytes of device memory");
	expect_error(ibv_free_dm(dm), 0);
}

RULE_CASE(DM_ALIGNMENT)
{
	struct ibv_dm *dm = take_dm(64);
	uint8_t bytes[64];

	expect_error(ibv_memcpy_from_dm(bytes, dm, 4, 7), EINVAL);
	expect_refusal(DM_ALIGNMENT, "ibv_memcpy_from_dm → EINVAL: offset 4 and length 7 must be multiples of 4");
	expect_error(ibv_free_dm(dm), 0);
}

RULE_CASE(DM_MR_ACCESS)
{
	struct ibv_dm *dm = take_dm(64);

	assert_null(ibv_reg_dm_mr(client.pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_MW_BIND));
	expect_error(errno, EINVAL);
	expect_refusal(
		DM_MR_ACCESS,
		"ibv_reg_dm_mr → EINVAL: access is MW_BIND|ZERO_BASED, but device memory allows LOCAL_WRITE|REMOTE_WRITE|REMOTE_READ|REMOTE_ATOMIC|ZERO_BASED|RELAXED_ORDERING|0x%x",
		IBV_ACCESS_OPTIONAL_RANGE & ~IBV_ACCESS_RELAXED_ORDERING);
	expect_error(ibv_free_dm(dm), 0);
}

RULE_CASE(DM_MR_ZERO_BASED)
{
	struct ibv_dm *dm = take_dm(64);

	assert_null(ibv_reg_dm_mr(client.pd, dm, 0, 64, IBV_ACCESS_LOCAL_WRITE));
	expect_error(errno, EINVAL);
	expect_refusal(DM_MR_ZERO_BASED,
		       "ibv_reg_dm_mr → EINVAL: access is LOCAL_WRITE: a region of device memory is zero-based");
	expect_error(ibv_free_dm(dm), 0);
}

RULE_CASE(NO_DESCRIPTOR)
{
	struct rlimit before, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){0, before.rlim_max};
	setrlimit(RLIMIT_NOFILE, &none);
	assert_null(ibv_open_device(client.context->device));
	expect_error(errno, EMFILE);
	expect_refusal(NO_DESCRIPTOR,
		       "ibv_open_device → EMFILE: the call needs a descriptor, which could not be created: EMFILE");
	assert_null(ibv_create_comp_channel(client.context));
	expect_error(errno, EMFILE);
	setrlimit(RLIMIT_NOFILE, &before);
	expect_refusal(
		NO_DESCRIPTOR,
		"ibv_create_comp_channel → EMFILE: the call needs a descriptor, which could not be created: EMFILE");
}

RULE_CASE(CHANNEL_IN_USE)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(client.context);
	struct ibv_cq *cq = ibv_create_cq(client.context, 4, NULL, channel, 0);

	expect_error(ibv_destroy_comp_channel(channel), EBUSY);
	expect_refusal(CHANNEL_IN_USE, "ibv_destroy_comp_channel → EBUSY: 1 completion queues use the channel");
	expect_error(ibv_destroy_cq(cq), 0);
	expect_error(ibv_destroy_comp_channel(channel), 0);
}

static struct ibv_qp *ud_qp(void)
{
	struct ibv_qp_init_attr attr = {.send_cq = pair.client.cq, .recv_cq = pair.client.cq, .qp_type = IBV_QPT_UD};
	struct ibv_qp *qp = ibv_create_qp(client.pd, &attr);

	assert_non_null(qp);
	return qp;
}

RULE_CASE(MCAST_GID)
{
	const union ibv_gid gid = {.raw = {0xfe, 0x80, [15] = 9}};

	expect_error(ibv_attach_mcast(pair.client.qp, &gid, 0), EINVAL);
	expect_refusal(MCAST_GID, "ibv_attach_mcast → EINVAL: GID 0xfe80000000000000:0x9 is not a multicast GID");
}

RULE_CASE(MCAST_QP)
{
	const union ibv_gid gid = {.raw = {0xff, 0x0e, [15] = 9}};

	expect_error(ibv_detach_mcast(pair.client.qp, &gid, 0), EINVAL);
	expect_refusal(MCAST_QP,
		       "ibv_detach_mcast → EINVAL: queue pair 0x%x is of type RC, but only UD queue pairs join groups",
		       pair.client.qp->qp_num);
}

RULE_CASE(MCAST_FULL)
{
	union ibv_gid gid = {.raw = {0xff, 0x0e}};
	struct ibv_device_attr device;
	struct ibv_qp *qp = ud_qp();
	int groups;

	expect_error(ibv_query_device(client.context, &device), 0);
	for (groups = 0; groups < device.max_total_mcast_qp_attach; groups++) {
		memcpy(gid.raw + 4, &groups, sizeof(groups));
		expect_error(ibv_attach_mcast(qp, &gid, 0), 0);
	}
	gid.raw[15] = 1;
	expect_error(ibv_attach_mcast(qp, &gid, 0), ENOMEM);
	expect_refusal(
		MCAST_FULL,
		"ibv_attach_mcast → ENOMEM: the group has %d queue pairs, or all groups together have %d: no more are possible",
		device.max_mcast_qp_attach, device.max_total_mcast_qp_attach);
	gid.raw[15] = 0;
	while (groups--) {
		memcpy(gid.raw + 4, &groups, sizeof(groups));
		expect_error(ibv_detach_mcast(qp, &gid, 0), 0);
	}
	expect_error(ibv_destroy_qp(qp), 0);
}

RULE_CASE(MCAST_NOT_ATTACHED)
{
	const union ibv_gid gid = {.raw = {0xff, 0x0e, [15] = 9}};
	struct ibv_qp *qp = ud_qp();

	expect_error(ibv_detach_mcast(qp, &gid, 0), EINVAL);
	expect_refusal(MCAST_NOT_ATTACHED, "ibv_detach_mcast → EINVAL: queue pair 0x%x is not attached to the group",
		       qp->qp_num);
	expect_error(ibv_destroy_qp(qp), 0);
}

RULE_CASE(QP_IN_GROUP)
{
	const union ibv_gid gid = {.raw = {0xff, 0x0e, [15] = 9}};
	struct ibv_qp *qp = ud_qp();

	expect_error(ibv_attach_mcast(qp, &gid, 0), 0);
	expect_error(ibv_destroy_qp(qp), EBUSY);
	expect_refusal(QP_IN_GROUP, "ibv_destroy_qp → EBUSY: queue pair 0x%x is attached to multicast groups",
		       qp->qp_num);
	expect_error(ibv_detach_mcast(qp, &gid, 0), 0);
	expect_error(ibv_destroy_qp(qp), 0);
}

enum { NUMBERS = 8192 };

/* Records which descriptors are open. */
static void note_open(bool open[NUMBERS])
{
	for (int fd = 0; fd < NUMBERS; fd++)
		open[fd] = fcntl(fd, F_GETFD) >= 0;
}

/* A completion channel has two descriptors: the program's, and one that events are written to. The program closes the
 * latter. */
RULE_CASE(DESCRIPTOR_LOST)
{
	static bool before[NUMBERS], after[NUMBERS];
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1}, error = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp_init_attr attr = {.cap = {.max_recv_wr = 1}, .qp_type = IBV_QPT_RC};
	struct ibv_recv_wr *bad, wr = {.num_sge = 0};
	struct softhca_explanation newest;
	struct ibv_comp_channel *channel;
	struct ibv_qp *qp;
	int own = 0;

	note_open(before);
	channel = ibv_create_comp_channel(client.context);
	assert_non_null(channel);
	note_open(after);
	for (int fd = 0; fd < NUMBERS; fd++)
		if (after[fd] && !before[fd] && fd != channel->fd)
			own = fd;
	assert_int_equal(close(own), 0);
	attr.send_cq = attr.recv_cq = ibv_create_cq(client.context, 1, NULL, channel, 0);
	qp = ibv_create_qp(client.pd, &attr);
	assert_non_null(qp);
	expect_error(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
	expect_error(ibv_post_recv(qp, &wr, &bad), 0);
	expect_error(ibv_req_notify_cq(attr.recv_cq, 0), 0);
	expect_error(ibv_modify_qp(qp, &error, IBV_QP_STATE), 0);
	assert_int_equal(softhca_explanations(client.context, 0, &newest, 1), 1);
	expect_explanation(
		&newest, DESCRIPTOR_LOST,
		": descriptor %d, which softhca opened, was closed by the program: nothing is written to it, and the features that need it stop",
		own);
	expect_error(ibv_destroy_qp(qp), 0);
	expect_error(ibv_destroy_cq(attr.recv_cq), 0);
	expect_error(ibv_destroy_comp_channel(channel), 0);
}

RULE_CASE(QUEUE_MEMORY)
{
	allocator_failed();
}

RULE_CASE(ALLOCATOR_FAILED)
{
	allocator_failed();
}
