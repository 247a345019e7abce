/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices, connected QPs and messages for the cases, see bench.h. Uses only the public ABI. */
#include "bench.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

uint8_t *buffer_new(size_t size, uint64_t seed)
{
	uint8_t *buffer = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (buffer == MAP_FAILED)
		die("mmap of %zu bytes: %s", size, strerror(errno));
	for (size_t i = 0; i < size; i += sizeof(seed)) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		memcpy(buffer + i, &seed, sizeof(seed));
	}
	return buffer;
}

static void find_gid(struct device *device)
{
	struct ibv_gid_entry entry;

	for (uint32_t i = 0; i < 64; i++) {
		if (ibv_query_gid_ex(device->context, 1, i, &entry, 0) || entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		device->gid = entry.gid;
		device->gid_index = (uint8_t)i;
		return;
	}
	die("the device has no GID of RoCE v2");
}

struct ibv_mr *device_register(struct device *device, void *buffer, size_t bytes)
{
	struct ibv_mr *mr = ibv_reg_mr(device->pd, buffer, bytes,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
					       IBV_ACCESS_REMOTE_ATOMIC);

	if (!mr)
		die("ibv_reg_mr: %s", strerror(errno));
	return mr;
}

struct device *device_open(int index, size_t size)
{
	struct mlx5dv_context_attr attr = {0};
	struct device *device = allocate(sizeof(*device));
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	if (!list || index >= count)
		die("there is no device %d", index);
	device->context = mlx5dv_open_device(list[index], &attr);
	if (!device->context)
		die("mlx5dv_open_device: %s", strerror(errno));
	ibv_free_device_list(list);
	device->pd = ibv_alloc_pd(device->context);
	if (!device->pd)
		die("ibv_alloc_pd: %s", strerror(errno));
	find_gid(device);
	device->size = size;
	device->source = buffer_new(size, 88172645463325252);
	device->target = buffer_new(size, 1);
	device->source_mr = device_register(device, device->source, size);
	device->target_mr = device_register(device, device->target, size);
	return device;
}

struct ibv_pd *thread_domain(struct device *device)
{
	struct ibv_td_init_attr td_attr = {0};
	struct ibv_parent_domain_init_attr attr = {.pd = device->pd};
	struct ibv_pd *domain;

	attr.td = ibv_alloc_td(device->context, &td_attr);
	if (!attr.td)
		die("ibv_alloc_td: %s", strerror(errno));
	domain = ibv_alloc_parent_domain(device->context, &attr);
	if (!domain)
		die("ibv_alloc_parent_domain: %s", strerror(errno));
	return domain;
}

static void create_cq(struct device *device, const struct pair_attr *attr, struct pair *pair)
{
	struct ibv_cq_init_attr_ex cq = {
		.cqe = 4 * attr->depth,
		.comp_mask = attr->pd ? IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD : 0,
		.flags = attr->pd ? IBV_CREATE_CQ_ATTR_SINGLE_THREADED : 0,
		.parent_domain = attr->pd,
	};
	struct ibv_cq_ex *created = ibv_create_cq_ex(device->context, &cq);

	if (!created)
		die("ibv_create_cq_ex: %s", strerror(errno));
	pair->cq = ibv_cq_ex_to_cq(created);
}

static void create_qp(struct device *device, const struct pair_attr *attr, struct pair *pair, int i)
{
	struct ibv_qp_init_attr_ex qp = {
		.send_cq = pair->cq,
		.recv_cq = pair->cq,
		.cap = {.max_send_wr = attr->depth,
			.max_recv_wr = attr->depth,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = attr->max_inline},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = attr->pd ? attr->pd : device->pd,
	};
	struct mlx5dv_qp_init_attr dv = {0};

	if (attr->builders) {
		qp.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		qp.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND;
		dv.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS;
		dv.send_ops_flags = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE;
	}
	pair->qp[i] = mlx5dv_create_qp(device->context, &qp, &dv);
	if (!pair->qp[i])
		die("mlx5dv_create_qp: %s", strerror(errno));
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int error = ibv_modify_qp(qp, attr, mask);

	if (error)
		die("ibv_modify_qp: %s", strerror(error));
}

static void to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	};

	modify(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static void to_rts(struct device *device, struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = device->gid_index, .hop_limit = 1}},
	};

	attr.ah_attr.grh.dgid = device->gid;
	modify(qp, &attr,
	       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 16};
	modify(qp, &attr,
	       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC);
}

void pair_create(struct device *device, const struct pair_attr *attr, struct pair *pair)
{
	pair->owns_cq = !attr->cq;
	if (attr->cq)
		pair->cq = attr->cq;
	else
		create_cq(device, attr, pair);
	for (int i = 0; i < 2; i++) {
		create_qp(device, attr, pair, i);
		to_init(pair->qp[i]);
	}
	for (int i = 0; i < 2; i++)
		to_rts(device, pair->qp[i], pair->qp[1 - i]->qp_num);
}

void pair_destroy(struct pair *pair)
{
	if (ibv_destroy_qp(pair->qp[0]) || ibv_destroy_qp(pair->qp[1]) || (pair->owns_cq && ibv_destroy_cq(pair->cq)))
		die("a QP or CQ cannot be destroyed");
}

void await(struct pair *pair, uint32_t count)
{
	struct ibv_wc wc[LIST_LENGTH];

	while (count) {
		int found = ibv_poll_cq(pair->cq, count < LIST_LENGTH ? (int)count : LIST_LENGTH, wc);

		if (found < 0)
			die("ibv_poll_cq returns %d", found);
		for (int i = 0; i < found; i++)
			if (wc[i].status != IBV_WC_SUCCESS)
				die("%s", ibv_wc_status_str(wc[i].status));
		count -= (uint32_t)found;
	}
}

struct message *message_new(struct device *device, struct pair *pair, enum ibv_wr_opcode opcode, uint32_t bytes)
{
	struct message *message = allocate(sizeof(*message));
	bool from_remote = opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct ibv_mr *local = from_remote ? device->target_mr : device->source_mr;
	struct ibv_mr *remote = from_remote ? device->source_mr : device->target_mr;

	message->pair = pair;
	message->sge = (struct ibv_sge){.addr = (uintptr_t)local->addr, .length = bytes, .lkey = local->lkey};
	message->wr = (struct ibv_send_wr){
		.sg_list = &message->sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		message->wr.wr.atomic.remote_addr = (uintptr_t)remote->addr;
		message->wr.wr.atomic.rkey = remote->rkey;
	} else {
		message->wr.wr.rdma.remote_addr = (uintptr_t)remote->addr;
		message->wr.wr.rdma.rkey = remote->rkey;
	}
	message->receive_sge = (struct ibv_sge){.addr = (uintptr_t)remote->addr, .length = bytes, .lkey = remote->lkey};
	message->receive = (struct ibv_recv_wr){.sg_list = &message->receive_sge, .num_sge = 1};
	for (uint32_t i = 0; i < LIST_LENGTH; i++) {
		message->list[i] = message->wr;
		message->receive_list[i] = message->receive;
		if (i + 1 < LIST_LENGTH) {
			message->list[i].next = &message->list[i + 1];
			message->receive_list[i].next = &message->receive_list[i + 1];
		}
	}
	return message;
}

static void post(struct message *message, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int error = ibv_post_send(message->pair->qp[0], wr, &bad);

	if (error)
		die("ibv_post_send: %s", strerror(error));
}

static void post_receive(struct message *message, struct ibv_recv_wr *wr)
{
	struct ibv_recv_wr *bad;
	int error = ibv_post_recv(message->pair->qp[1], wr, &bad);

	if (error)
		die("ibv_post_recv: %s", strerror(error));
}

void post_and_poll(void *subject, uint64_t count)
{
	struct message *message = subject;

	while (count--) {
		post(message, &message->wr);
		await(message->pair, 1);
	}
}

void send_and_poll(void *subject, uint64_t count)
{
	struct message *message = subject;

	while (count--) {
		post_receive(message, &message->receive);
		post(message, &message->wr);
		await(message->pair, 2);
	}
}

static uint32_t signalled(const struct message *message)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < LIST_LENGTH; i++)
		count += (message->list[i].send_flags & IBV_SEND_SIGNALED) != 0;
	return count;
}

void post_list_and_poll(void *subject, uint64_t count)
{
	struct message *message = subject;
	uint32_t completions = signalled(message);

	while (count--) {
		post(message, message->list);
		await(message->pair, completions);
	}
}

void send_list_and_poll(void *subject, uint64_t count)
{
	struct message *message = subject;
	uint32_t completions = signalled(message) + LIST_LENGTH;

	while (count--) {
		post_receive(message, message->receive_list);
		post(message, message->list);
		await(message->pair, completions);
	}
}
