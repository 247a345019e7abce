/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parameters of rdma_connect(3), rdma_accept(3), rdma_reject(3) and rdma_establish(3): limits, defaults, and options of an id
 * that are applied to its QP. Expected values: the manual pages; rdma-cm 2.4 to 2.6.
 */
#include "support.h"

#include <endian.h>
#include <infiniband/ib.h>

static struct rdma_conn_param few(void)
{
	return (struct rdma_conn_param){
		.responder_resources = 3, .initiator_depth = 2, .retry_count = 5, .rnr_retry_count = 6};
}

/* Sends a request of the client; its child, without a QP, becomes ends->server. */
static void ask(struct ends *ends, struct rdma_conn_param param)
{
	struct rdma_cm_event *event;

	assert_success(rdma_connect(ends->client, &param));
	event = next_event(ends->server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ends->server = event->id;
	assert_success(rdma_ack_cm_event(event));
}

static struct ibv_qp_attr attributes_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(qp, &attr,
				      IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RNR_RETRY | IBV_QP_RETRY_CNT |
					      IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC |
					      IBV_QP_MIN_RNR_TIMER,
				      &init),
			 0);
	return attr;
}

/* rdma_accept(3) uses the values of the request, and the maximum for RNR NAKs. */
TEST(test_accept_without_parameter)
{
	struct rdma_cm_event *event;
	struct ibv_qp_attr attr;
	struct ends ends;

	begin(&ends, RDMA_PS_TCP);
	ask(&ends, few());
	new_qp(ends.server);
	assert_success(rdma_accept(ends.server, NULL));
	event = next_event(ends.client_channel, RDMA_CM_EVENT_ESTABLISHED);
	/* The server accepts as many READs as the client may send, and sends as many as the client accepts. */
	assert_int_equal(event->param.conn.initiator_depth, 2);
	assert_int_equal(event->param.conn.responder_resources, 3);
	assert_int_equal(event->param.conn.rnr_retry_count, 7);
	assert_success(rdma_ack_cm_event(event));
	expect_event(ends.server_channel, RDMA_CM_EVENT_ESTABLISHED);
	attr = attributes_of(ends.server->qp);
	assert_int_equal(attr.max_dest_rd_atomic, 2);
	assert_int_equal(attr.max_rd_atomic, 3);
	assert_int_equal(attr.rnr_retry, 6);
	assert_int_equal(attr.retry_cnt, 5);
	/* 655 ms. */
	assert_int_equal(attr.min_rnr_timer, 0);
	attr = attributes_of(ends.client->qp);
	assert_int_equal(attr.rnr_retry, 7);
	assert_int_equal(attr.max_rd_atomic, 2);
	assert_int_equal(attr.max_dest_rd_atomic, 3);
	assert_int_equal(attr.min_rnr_timer, 0);
	end(&ends);
}

TEST(test_resources_of_accept)
{
	struct rdma_conn_param param = few();
	struct ibv_device_attr device;
	struct ends ends;

	begin(&ends, RDMA_PS_TCP);
	ask(&ends, param);
	new_qp(ends.server);
	assert_int_equal(ibv_query_device(ends.server->verbs, &device), 0);
	param.responder_resources = (uint8_t)(device.max_qp_rd_atom + 1);
	assert_errno(rdma_accept(ends.server, &param), EINVAL);
	param.responder_resources = 1;
	param.initiator_depth = (uint8_t)(device.max_qp_init_rd_atom + 1);
	assert_errno(rdma_accept(ends.server, &param), EINVAL);
	/* The request is still pending. */
	param.initiator_depth = 1;
	assert_success(rdma_accept(ends.server, &param));
	expect_event(ends.client_channel, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(ends.server_channel, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(attributes_of(ends.server->qp).max_rd_atomic, 1);
	assert_int_equal(attributes_of(ends.server->qp).max_dest_rd_atomic, 1);
	end(&ends);
}

TEST(test_private_data_of_datagrams)
{
	uint8_t data[217];
	struct rdma_conn_param param = {.private_data = data};
	struct rdma_cm_event *event;
	struct ends ends;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i + 1);
	begin(&ends, RDMA_PS_UDP);
	param.private_data_len = 181;
	assert_errno(rdma_connect(ends.client, &param), EINVAL);
	param.private_data_len = 180;
	assert_success(rdma_connect(ends.client, &param));
	event = next_event(ends.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ends.server = event->id;
	assert_int_equal(event->param.ud.private_data_len, 180);
	assert_memory_equal(event->param.ud.private_data, data, 180);
	assert_success(rdma_ack_cm_event(event));
	new_qp(ends.server);
	param.private_data_len = 137;
	assert_errno(rdma_accept(ends.server, &param), EINVAL);
	param.private_data_len = 136;
	assert_success(rdma_accept(ends.server, &param));
	event = next_event(ends.client_channel, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(event->param.ud.private_data_len, 136);
	assert_memory_equal(event->param.ud.private_data, data, 136);
	assert_success(rdma_ack_cm_event(event));
	end(&ends);
}

/* Resolves address and route to the host by a native address. */
static void resolve_native(struct rdma_cm_id *id, uint16_t port)
{
	struct sockaddr_ib to = {.sib_family = AF_IB, .sib_sid_mask = UINT64_MAX};

	to.sib_sid = htobe64((uint64_t)id->ps << 16 | port);
	assert_success(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, TIMEOUT_MS));
	expect_event(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_success(rdma_resolve_route(id, TIMEOUT_MS));
	expect_event(id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

/* Requests of AF_IB have no header before the program's data, which can use the whole field (rdma-cm 2.6). */
TEST(test_native_addresses)
{
	uint8_t data[93] = {0};
	struct rdma_conn_param param = few();
	struct rdma_cm_event *event;
	struct ends ends = {.client_channel = new_channel(), .server_channel = new_channel()};

	/* Data that begins with anything else would be mistaken for a header. */
	for (size_t i = 2; i < sizeof(data); i++)
		data[i] = (uint8_t)i;
	ends.listener = new_listener(ends.server_channel, RDMA_PS_IB);
	ends.client = new_id(ends.client_channel, RDMA_PS_IB);
	resolve_native(ends.client, port_of(ends.listener));
	new_qp(ends.client);
	param.private_data = data;
	param.private_data_len = 93;
	assert_errno(rdma_connect(ends.client, &param), EINVAL);
	param.private_data_len = 92;
	assert_success(rdma_connect(ends.client, &param));
	event = next_event(ends.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ends.server = event->id;
	assert_int_equal(event->param.conn.private_data_len, 92);
	assert_memory_equal(event->param.conn.private_data, data, 92);
	assert_success(rdma_ack_cm_event(event));
	new_qp(ends.server);
	assert_success(rdma_accept(ends.server, NULL));
	expect_event(ends.client_channel, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(ends.server_channel, RDMA_CM_EVENT_ESTABLISHED);
	end(&ends);
}

/* 4.096 us * 2^14; the other end uses the request: the timeout of the option, 13 + 1 (rdma-cm 2.4, 3.4). */
TEST(test_ack_timeout)
{
	uint8_t timeout = 14, none = 0;
	struct ends ends;

	begin(&ends, RDMA_PS_TCP);
	assert_success(rdma_set_option(ends.client, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
	ask(&ends, few());
	/* No timer at all. */
	assert_success(rdma_set_option(ends.server, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &none, 1));
	new_qp(ends.server);
	assert_success(rdma_accept(ends.server, NULL));
	expect_event(ends.client_channel, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(attributes_of(ends.client->qp).timeout, 14);
	assert_int_equal(attributes_of(ends.server->qp).timeout, 0);
	end(&ends);
}

/* Both QPs get the traffic class of the path; the service level is 0, which RoCE uses for every priority. */
TEST(test_type_of_service)
{
	struct ibv_ah_attr client, server;
	uint8_t tos = 0x60;
	struct ends ends = {.client_channel = new_channel(), .server_channel = new_channel()};

	ends.listener = new_listener(ends.server_channel, RDMA_PS_TCP);
	ends.client = new_id(ends.client_channel, RDMA_PS_TCP);
	assert_success(rdma_set_option(ends.client, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1));
	resolve(ends.client, port_of(ends.listener));
	assert_int_equal(ends.client->route.path_rec->traffic_class, tos);
	assert_int_equal(ends.client->route.path_rec->sl, 0);
	new_qp(ends.client);
	establish(&ends);
	client = attributes_of(ends.client->qp).ah_attr;
	server = attributes_of(ends.server->qp).ah_attr;
	assert_int_equal(client.grh.traffic_class, tos);
	assert_int_equal(server.grh.traffic_class, tos);
	assert_int_equal(client.sl, 0);
	assert_int_equal(server.sl, 0);
	assert_int_equal(client.grh.flow_label, be32toh(ends.client->route.path_rec->flow_label));
	end(&ends);
}

/* rdma_reject(3) is for the listening side: the own pending request continues. */
TEST(test_nothing_to_reject)
{
	struct ends ends;

	begin(&ends, RDMA_PS_TCP);
	ask(&ends, few());
	assert_errno(rdma_reject(ends.client, NULL, 0), EINVAL);
	assert_errno(rdma_reject_ece(ends.client, NULL, 0), EINVAL);
	new_qp(ends.server);
	assert_success(rdma_accept(ends.server, NULL));
	/* The request was answered. */
	assert_errno(rdma_reject(ends.server, NULL, 0), EINVAL);
	expect_event(ends.client_channel, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(ends.server_channel, RDMA_CM_EVENT_ESTABLISHED);
	assert_errno(rdma_reject(ends.client, NULL, 0), EINVAL);
	end(&ends);
	/* A pending lookup cannot be rejected either. */
	begin(&ends, RDMA_PS_UDP);
	ask(&ends, (struct rdma_conn_param){.qp_num = 0});
	assert_errno(rdma_reject(ends.client, NULL, 0), EINVAL);
	assert_success(rdma_reject(ends.server, NULL, 0));
	expect_event(ends.client_channel, RDMA_CM_EVENT_UNREACHABLE);
	end(&ends);
}

/* The requesting side may reject the answer (IBTA 12.6.7, message rejected: REP). */
TEST(test_rejected_response)
{
	struct rdma_conn_param param = few();
	struct rdma_cm_event *event;
	struct ends ends;

	begin(&ends, RDMA_PS_TCP);
	rdma_destroy_qp(ends.client);
	param.qp_num = 0x1234;
	ask(&ends, param);
	new_qp(ends.server);
	assert_success(rdma_accept(ends.server, NULL));
	expect_event(ends.client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_success(rdma_reject(ends.client, "no", 3));
	event = next_event(ends.server_channel, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(event->status, 28);
	assert_memory_equal(event->param.conn.private_data, "no", 3);
	assert_success(rdma_ack_cm_event(event));
	end(&ends);
}

/* rdma_establish(3) is for QPs created by the program. */
TEST(test_establish_of_an_id_with_a_qp)
{
	struct ends ends;

	begin(&ends, RDMA_PS_TCP);
	ask(&ends, few());
	new_qp(ends.server);
	assert_success(rdma_accept(ends.server, NULL));
	assert_true(has_event(ends.client_channel, 10000));
	assert_errno(rdma_establish(ends.client), EINVAL);
	/* The library establishes it. */
	expect_event(ends.client_channel, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(ends.server_channel, RDMA_CM_EVENT_ESTABLISHED);
	end(&ends);
}
