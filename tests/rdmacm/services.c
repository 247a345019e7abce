/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port space IB supports every service of InfiniBand: UD, UC, RC and XRC (rdma_create_id(3), RDMA_PS_IB;
 * rdma_create_ep(3)). Expected events and attributes: rdma-cm 2.5 to 2.7.
 */
#include "support.h"

static struct rdma_cm_id *new_end(struct rdma_event_channel *channel, enum ibv_qp_type type, int flags, uint16_t port)
{
	struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_IB, .ai_qp_type = type}, *found;
	struct rdma_cm_id *id;
	char service[8];

	snprintf(service, sizeof(service), "%u", port);
	assert_success(rdma_getaddrinfo("127.0.0.1", service, &hints, &found));
	assert_int_equal(found->ai_port_space, RDMA_PS_IB);
	assert_success(rdma_create_ep(&id, found, NULL, NULL));
	rdma_freeaddrinfo(found);
	assert_int_equal(id->qp_type, type);
	assert_success(rdma_migrate_id(id, channel));
	return id;
}

/* Each end of XRC has only one direction. */
static void new_qp_of_type(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {.qp_type = id->qp_type, .cap = {.max_send_sge = 1, .max_recv_sge = 1}};

	if (id->qp_type != IBV_QPT_XRC_RECV)
		attr.cap.max_send_wr = 4;
	if (id->qp_type != IBV_QPT_XRC_RECV && id->qp_type != IBV_QPT_XRC_SEND)
		attr.cap.max_recv_wr = 4;
	assert_success(rdma_create_qp(id, NULL, &attr));
	assert_int_equal(id->qp->qp_type, id->qp_type);
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

static void connect_types(enum ibv_qp_type of_client, enum ibv_qp_type of_server)
{
	struct ends ends = {.client_channel = new_channel(), .server_channel = new_channel()};
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1, .retry_count = 7};
	struct rdma_cm_event *event;

	ends.listener = new_end(ends.server_channel, of_server, RAI_PASSIVE, 0);
	assert_success(rdma_listen(ends.listener, 1));
	ends.client = new_end(ends.client_channel, of_client, 0, port_of(ends.listener));
	new_qp_of_type(ends.client);
	assert_success(rdma_connect(ends.client, &param));
	event = next_event(ends.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ends.server = event->id;
	assert_success(rdma_ack_cm_event(event));
	assert_int_equal(ends.server->qp_type, of_server);
	new_qp_of_type(ends.server);
	assert_success(rdma_accept(ends.server, &param));
	expect_event(ends.client_channel, RDMA_CM_EVENT_ESTABLISHED);
	if (of_client != IBV_QPT_UD)
		expect_event(ends.server_channel, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(state_of(ends.client->qp), IBV_QPS_RTS);
	assert_int_equal(state_of(ends.server->qp), IBV_QPS_RTS);
	end(&ends);
}

TEST(test_types)
{
	connect_types(IBV_QPT_RC, IBV_QPT_RC);
	connect_types(IBV_QPT_UC, IBV_QPT_UC);
	connect_types(IBV_QPT_UD, IBV_QPT_UD);
	connect_types(IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV);
}
