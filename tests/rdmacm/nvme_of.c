/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A target and an initiator of NVMe over Fabrics, as in SPDK with its mlx5 provider (lib/nvmf/rdma.c, lib/nvme/nvme_rdma.c,
 * lib/rdma_provider): the calls of both ends in their order. Queue pairs belong to the program: mlx5dv_create_qp(3) without
 * send operations in its attributes, states by rdma_init_qp_attr(3), connection by rdma_accept(3) and rdma_establish(3).
 * Channels and the descriptor of asynchronous events are non-blocking. The target moves data by READ and WRITE.
 */
#include "support.h"

#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <poll.h>
#include <time.h>

enum { SRQ_DEPTH = 4096, DEPTH = 128, CAPSULE = 64, RESPONSE = 16, DATA = 16384, COMMANDS = 200, IN_CAPSULE = 4096 };
enum { ACK_TIMEOUT = 16, TOS = 8, RESPONSE_DELAY_MS = 10000 };
/* Work request ids of the target: receives have their index, others one of these. */
enum { WR_READ = 1 << 20, WR_RESPONSE };

struct node {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	struct ibv_mr *mr;
	uint8_t *memory;
};

static struct node target, initiator;
static struct ibv_srq *srq;
static struct rdma_cm_id *listener;

/* Private data of NVMe over Fabrics: qid, hrqsize, hsqsize, cntlid; and that of a rejection. */
static const uint16_t request_data[16] = {0, 1, DEPTH + 1, DEPTH};
static const uint16_t reject_data[2] = {0, 6};

static void set_nonblocking(int fd)
{
	assert_success(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
}

/* ---- start-up ---------------------------------------------------------------------------------------------------------------- */

/* Opens the objects that each end has of a device. SPDK finds the PD of an id by its context, as returned by
 * rdma_get_devices(3). */
static void open_node(struct node *node, int entries, size_t bytes)
{
	struct ibv_context **contexts = rdma_get_devices(NULL);
	struct ibv_device_attr attr;

	assert_non_null(contexts);
	*node = (struct node){.context = contexts[0]};
	rdma_free_devices(contexts);
	assert_int_equal(ibv_query_device(node->context, &attr), 0);
	assert_true(attr.max_sge >= 16 && attr.max_srq_wr >= SRQ_DEPTH && attr.max_qp_rd_atom > 0);
	assert_true(attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS);
	assert_int_not_equal(node->context->device->transport_type, IBV_TRANSPORT_IWARP);
	set_nonblocking(node->context->async_fd);
	node->channel = rdma_create_event_channel();
	assert_non_null(node->channel);
	set_nonblocking(node->channel->fd);
	node->pd = ibv_alloc_pd(node->context);
	assert_non_null(node->pd);
	node->completions = ibv_create_comp_channel(node->context);
	assert_non_null(node->completions);
	set_nonblocking(node->completions->fd);
	node->cq = ibv_create_cq(node->context, entries, node, node->completions, 0);
	assert_non_null(node->cq);
	assert_int_equal(ibv_req_notify_cq(node->cq, 0), 0);
	assert_int_equal(posix_memalign((void **)&node->memory, 4096, bytes), 0);
	node->mr = ibv_reg_mr(node->pd, node->memory, bytes,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING |
				      (node == &initiator ? IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE : 0));
	assert_non_null(node->mr);
}

static void close_node(struct node *node)
{
	assert_int_equal(ibv_dereg_mr(node->mr), 0);
	free(node->memory);
	assert_int_equal(ibv_destroy_cq(node->cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(node->completions), 0);
	assert_int_equal(ibv_dealloc_pd(node->pd), 0);
	rdma_destroy_event_channel(node->channel);
}

/* SPDK sets SEND_OPS_FLAGS and leaves the flags 0: libmlx5 then enables all builders of the type. */
static void create_qp(struct node *node, struct ibv_srq *shared)
{
	struct ibv_qp_init_attr_ex attr = {.qp_context = node,
					   .send_cq = node->cq,
					   .recv_cq = node->cq,
					   .srq = shared,
					   .cap = {.max_send_wr = 2 * DEPTH,
						   .max_recv_wr = shared ? 0 : DEPTH,
						   .max_send_sge = 16,
						   .max_recv_sge = 2},
					   .qp_type = IBV_QPT_RC,
					   .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					   .pd = node->pd};

	assert_ptr_equal(node->id->verbs, node->context);
	node->qp = mlx5dv_create_qp(node->id->verbs, &attr, NULL);
	assert_non_null(node->qp);
	node->ex = ibv_qp_to_qp_ex(node->qp);
	assert_non_null(node->ex);
	assert_true(attr.cap.max_send_sge >= 16);
}

/* Only the state is initialised in the attributes. */
static void to_rts(struct node *node)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
	struct ibv_qp_attr attr;
	int mask;

	memset(&attr, 0xa5, sizeof(attr));
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		attr.qp_state = states[i];
		assert_success(rdma_init_qp_attr(node->id, &attr, &mask));
		assert_int_equal(ibv_modify_qp(node->qp, &attr, mask), 0);
	}
}

/* ---- events ------------------------------------------------------------------------------------------------------------------ */

/* Polls without blocking. */
static struct rdma_cm_event *poll_event(struct node *node, enum rdma_cm_event_type type)
{
	struct pollfd fd = {.fd = node->channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;

	while (rdma_get_cm_event(node->channel, &event)) {
		assert_int_equal(errno, EAGAIN);
		assert_int_equal(poll(&fd, 1, RESPONSE_DELAY_MS), 1);
	}
	assert_int_equal(event->event, type);
	return event;
}

static void take_event(struct node *node, enum rdma_cm_event_type type)
{
	assert_success(rdma_ack_cm_event(poll_event(node, type)));
}

/* Returns the next completion, in interrupt mode: takes and acknowledges the event, arms the CQ again, then polls it. */
static struct ibv_wc next_completion(struct node *node)
{
	struct pollfd fd = {.fd = node->completions->fd, .events = POLLIN};
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;
	int count;

	while (!(count = ibv_poll_cq(node->cq, 1, &wc))) {
		if (ibv_get_cq_event(node->completions, &cq, &context)) {
			assert_int_equal(errno, EAGAIN);
			assert_int_equal(poll(&fd, 1, RESPONSE_DELAY_MS), 1);
			continue;
		}
		assert_ptr_equal(cq, node->cq);
		assert_ptr_equal(context, node);
		ibv_ack_cq_events(cq, 1);
		assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	}
	assert_int_equal(count, 1);
	return wc;
}

/* ---- connection -------------------------------------------------------------------------------------------------------------- */

static void post_srq(uint64_t first, uint64_t count)
{
	static struct ibv_recv_wr list[SRQ_DEPTH];
	static struct ibv_sge sges[SRQ_DEPTH][2];
	struct ibv_recv_wr *bad;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t slot = first + i, at = (uintptr_t)target.memory + DATA + slot * (CAPSULE + IN_CAPSULE);

		sges[i][0] = (struct ibv_sge){.addr = at, .length = CAPSULE, .lkey = target.mr->lkey};
		sges[i][1] = (struct ibv_sge){.addr = at + CAPSULE, .length = IN_CAPSULE, .lkey = target.mr->lkey};
		list[i] = (struct ibv_recv_wr){
			.wr_id = slot, .next = i + 1 < count ? &list[i + 1] : NULL, .sg_list = sges[i], .num_sge = 2};
	}
	assert_int_equal(ibv_post_srq_recv(srq, list, &bad), 0);
}

static void open_target(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = SRQ_DEPTH, .max_sge = 2}};

	open_node(&target, 3 * SRQ_DEPTH, DATA + (size_t)SRQ_DEPTH * (CAPSULE + IN_CAPSULE));
	srq = ibv_create_srq(target.pd, &attr);
	assert_non_null(srq);
	post_srq(0, SRQ_DEPTH);
	assert_success(rdma_create_id(target.channel, &listener, &target, RDMA_PS_TCP));
	assert_success(rdma_bind_addr(listener, loopback(0)));
	assert_ptr_equal(listener->verbs, target.context);
	assert_success(rdma_listen(listener, 100));
	assert_int_not_equal(rdma_get_src_port(listener), 0);
}

static void close_target(void)
{
	assert_success(rdma_destroy_id(listener));
	assert_int_equal(ibv_destroy_srq(srq), 0);
	close_node(&target);
}

/* Takes the initiator's id to ROUTED, with the options that SPDK sets. */
static void resolve_initiator(void)
{
	uint8_t timeout = ACK_TIMEOUT, tos = TOS;
	int reuse = 1;

	assert_success(rdma_create_id(initiator.channel, &initiator.id, &initiator, RDMA_PS_TCP));
	assert_success(rdma_set_option(initiator.id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &reuse, sizeof(reuse)));
	assert_success(rdma_resolve_addr(initiator.id, NULL, loopback(ntohs(rdma_get_src_port(listener))), TIMEOUT_MS));
	take_event(&initiator, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_success(
		rdma_set_option(initiator.id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout)));
	assert_success(rdma_set_option(initiator.id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)));
	assert_success(rdma_resolve_route(initiator.id, TIMEOUT_MS));
	take_event(&initiator, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static void request_connection(const void *data, uint8_t length)
{
	struct ibv_device_attr attr;
	struct rdma_conn_param param = {.private_data = data,
					.private_data_len = length,
					.retry_count = 4,
					.rnr_retry_count = 7,
					.qp_num = initiator.qp->qp_num};

	assert_int_equal(ibv_query_device(initiator.context, &attr), 0);
	param.responder_resources = (uint8_t)attr.max_qp_rd_atom;
	assert_success(rdma_connect(initiator.id, &param));
}

/* Accepts a request on the target. */
static void accept_connection(void)
{
	static const uint16_t accept_data[2] = {0, DEPTH};
	struct rdma_cm_event *event = poll_event(&target, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_conn_param param = {
		.private_data = accept_data, .private_data_len = sizeof(accept_data), .rnr_retry_count = 7, .srq = 1};

	assert_ptr_equal(event->listen_id, listener);
	assert_memory_equal(event->param.conn.private_data, request_data, sizeof(request_data));
	assert_int_equal(event->param.conn.responder_resources, 0);
	assert_true(event->param.conn.initiator_depth > 0);
	param.initiator_depth = event->param.conn.initiator_depth;
	target.id = event->id;
	assert_int_equal(rdma_get_local_addr(target.id)->sa_family, AF_INET);
	assert_int_equal(rdma_get_peer_addr(target.id)->sa_family, AF_INET);
	assert_int_equal(rdma_get_src_port(target.id), rdma_get_src_port(listener));
	assert_int_equal(rdma_get_dst_port(target.id), rdma_get_src_port(initiator.id));
	assert_success(rdma_ack_cm_event(event));
	create_qp(&target, srq);
	param.qp_num = target.qp->qp_num;
	to_rts(&target);
	assert_success(rdma_accept(target.id, &param));
}

static void connect_both(void)
{
	struct rdma_cm_event *event;

	resolve_initiator();
	create_qp(&initiator, NULL);
	request_connection(request_data, sizeof(request_data));
	accept_connection();
	event = poll_event(&initiator, RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(event->param.conn.qp_num, target.qp->qp_num);
	assert_int_equal(event->param.conn.srq, 1);
	to_rts(&initiator);
	assert_success(rdma_establish(initiator.id));
	assert_success(rdma_ack_cm_event(event));
	take_event(&target, RDMA_CM_EVENT_ESTABLISHED);
}

/* Sets ERR first, then disconnects, as spdk_rdma_provider_qp_disconnect() does. */
static void disconnect(struct node *node)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	assert_int_equal(ibv_modify_qp(node->qp, &attr, IBV_QP_STATE), 0);
	assert_success(rdma_disconnect(node->id));
}

/* The target waits for this event before it destroys a queue pair with an SRQ. */
static void expect_last_wqe(void)
{
	struct pollfd fd = {.fd = target.context->async_fd, .events = POLLIN};
	struct ibv_async_event event;

	while (ibv_get_async_event(target.context, &event)) {
		assert_int_equal(errno, EAGAIN);
		assert_int_equal(poll(&fd, 1, RESPONSE_DELAY_MS), 1);
	}
	if (event.event_type == IBV_EVENT_COMM_EST) {
		ibv_ack_async_event(&event);
		expect_last_wqe();
		return;
	}
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(event.element.qp, target.qp);
	ibv_ack_async_event(&event);
}

static void destroy_both(void)
{
	assert_int_equal(ibv_destroy_qp(initiator.qp), 0);
	assert_success(rdma_destroy_id(initiator.id));
	assert_int_equal(ibv_destroy_qp(target.qp), 0);
	assert_success(rdma_destroy_id(target.id));
}

static void disconnect_both(void)
{
	struct ibv_wc wc;

	disconnect(&initiator);
	take_event(&target, RDMA_CM_EVENT_DISCONNECTED);
	disconnect(&target);
	expect_last_wqe();
	take_event(&initiator, RDMA_CM_EVENT_DISCONNECTED);
	/* The initiator's receives are flushed; those of the SRQ remain. */
	while (ibv_poll_cq(initiator.cq, 1, &wc))
		assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_poll_cq(target.cq, 1, &wc), 0);
	destroy_both();
}

/* ---- commands ---------------------------------------------------------------------------------------------------------------- */

static void expect_wc(struct node *node, uint64_t wr_id, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc = next_completion(node);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, opcode);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.qp_num, node->qp->qp_num);
}

/* Posts the initiator's receive, then sends the capsule, followed by @data bytes. */
static void send_command(uint32_t data)
{
	uint64_t base = (uintptr_t)initiator.memory + DATA;
	struct ibv_sge response = {.addr = base + CAPSULE, .length = RESPONSE, .lkey = initiator.mr->lkey};
	struct ibv_sge sges[2] = {{.addr = base, .length = CAPSULE, .lkey = initiator.mr->lkey},
				  {.addr = (uintptr_t)initiator.memory, .length = data, .lkey = initiator.mr->lkey}};
	struct ibv_recv_wr recv = {.wr_id = 1, .sg_list = &response, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(initiator.qp, &recv, &bad), 0);
	ibv_wr_start(initiator.ex);
	initiator.ex->wr_id = 2;
	initiator.ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(initiator.ex);
	ibv_wr_set_sge_list(initiator.ex, data ? 2 : 1, sges);
	assert_int_equal(ibv_wr_complete(initiator.ex), 0);
}

/* The target takes the command from its SRQ; returns the address of the capsule. */
static const uint8_t *take_command(uint32_t bytes)
{
	struct ibv_wc wc = next_completion(&target);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, bytes);
	assert_int_equal(wc.qp_num, target.qp->qp_num);
	post_srq(wc.wr_id, 1);
	return target.memory + DATA + wc.wr_id * (CAPSULE + IN_CAPSULE);
}

static void begin_wr(uint64_t wr_id, unsigned int flags)
{
	target.ex->wr_id = wr_id;
	target.ex->wr_flags = flags;
}

/* Describes all of the data in sixteen pieces. */
static void set_data(void)
{
	struct ibv_sge sges[16];

	for (size_t i = 0; i < 16; i++)
		sges[i] = (struct ibv_sge){.addr = (uintptr_t)target.memory + i * (DATA / 16),
					   .length = DATA / 16,
					   .lkey = target.mr->lkey};
	ibv_wr_set_sge_list(target.ex, 16, sges);
}

static void put_response(void)
{
	struct ibv_sge sge = {.addr = (uintptr_t)target.memory + DATA, .length = RESPONSE, .lkey = target.mr->lkey};

	begin_wr(WR_RESPONSE, IBV_SEND_SIGNALED);
	ibv_wr_send(target.ex);
	ibv_wr_set_sge_list(target.ex, 1, &sge);
}

static void expect_response(void)
{
	struct ibv_wc first = next_completion(&initiator), second = next_completion(&initiator);

	/* The two may come in either order: SPDK waits for both. */
	assert_int_equal(first.status, IBV_WC_SUCCESS);
	assert_int_equal(second.status, IBV_WC_SUCCESS);
	assert_int_equal(first.wr_id + second.wr_id, 3);
}

static void fill(uint8_t *bytes, uint32_t seed)
{
	for (size_t i = 0; i < DATA; i++)
		bytes[i] = (uint8_t)((seed += 0x9e3779b9u) >> 24);
}

/* Runs a read command: the target WRITEs the data without a completion and SENDs the response, with one doorbell. */
static void run_read(uint32_t seed)
{
	send_command(0);
	take_command(CAPSULE);
	fill(target.memory, seed);
	ibv_wr_start(target.ex);
	begin_wr(0, 0);
	ibv_wr_rdma_write(target.ex, initiator.mr->rkey, (uintptr_t)initiator.memory);
	set_data();
	put_response();
	assert_int_equal(ibv_wr_complete(target.ex), 0);
	expect_wc(&target, WR_RESPONSE, IBV_WC_SEND);
	expect_response();
	assert_memory_equal(initiator.memory, target.memory, DATA);
}

/* Runs a write command: the target READs the data, then responds. */
static void run_write(uint32_t seed)
{
	fill(initiator.memory, seed);
	send_command(0);
	take_command(CAPSULE);
	ibv_wr_start(target.ex);
	begin_wr(WR_READ, IBV_SEND_SIGNALED);
	ibv_wr_rdma_read(target.ex, initiator.mr->rkey, (uintptr_t)initiator.memory);
	set_data();
	assert_int_equal(ibv_wr_complete(target.ex), 0);
	expect_wc(&target, WR_READ, IBV_WC_RDMA_READ);
	assert_memory_equal(initiator.memory, target.memory, DATA);
	ibv_wr_start(target.ex);
	put_response();
	assert_int_equal(ibv_wr_complete(target.ex), 0);
	expect_wc(&target, WR_RESPONSE, IBV_WC_SEND);
	expect_response();
}

/* Runs a write command with its data in the capsule. */
static void run_in_capsule(uint32_t seed)
{
	const uint8_t *capsule;

	fill(initiator.memory, seed);
	send_command(IN_CAPSULE);
	capsule = take_command(CAPSULE + IN_CAPSULE);
	assert_memory_equal(capsule + CAPSULE, initiator.memory, IN_CAPSULE);
	ibv_wr_start(target.ex);
	put_response();
	assert_int_equal(ibv_wr_complete(target.ex), 0);
	expect_wc(&target, WR_RESPONSE, IBV_WC_SEND);
	expect_response();
}

/* ---- cases ------------------------------------------------------------------------------------------------------------------- */

/* Three connections one after the other, with the same SRQ and CQs. */
TEST(test_commands)
{
	open_target();
	open_node(&initiator, 2 * DEPTH, DATA + CAPSULE + RESPONSE);
	for (uint32_t connection = 0; connection < 3; connection++) {
		connect_both();
		for (uint32_t i = 0; i < COMMANDS; i++) {
			if (i % 3 == 0)
				run_read(i);
			else if (i % 3 == 1)
				run_write(i);
			else
				run_in_capsule(i);
		}
		disconnect_both();
	}
	close_node(&initiator);
	close_target();
}

/* A request without the private data of NVMe is rejected with SPDK's reason. */
TEST(test_rejected)
{
	struct rdma_cm_event *event;

	open_target();
	open_node(&initiator, 2 * DEPTH, DATA + CAPSULE + RESPONSE);
	resolve_initiator();
	create_qp(&initiator, NULL);
	request_connection(NULL, 0);
	event = poll_event(&target, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_success(rdma_reject(event->id, reject_data, sizeof(reject_data)));
	target.id = event->id;
	assert_success(rdma_ack_cm_event(event));
	assert_success(rdma_destroy_id(target.id));
	event = poll_event(&initiator, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(event->status, 28); /* consumer reject (IBTA 12.6.7.2) */
	assert_memory_equal(event->param.conn.private_data, reject_data, sizeof(reject_data));
	assert_success(rdma_ack_cm_event(event));
	assert_int_equal(ibv_destroy_qp(initiator.qp), 0);
	assert_success(rdma_destroy_id(initiator.id));
	close_node(&initiator);
	close_target();
}
