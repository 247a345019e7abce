/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_connect(3), rdma_accept(3), rdma_reject(3), rdma_establish(3), rdma_disconnect(3) with both ends in one process: events,
 * their contents, and the flow of data. Expected values: rdma-cm 2.5 and 2.6.
 */
#include "support.h"

/* All attributes that ibv_query_qp(3) accepts. */
#define EVERYTHING (IBV_QP_STATE | IBV_QP_DEST_QPN | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)

static const char hello[] = "from the client", answer[] = "from the server";

static struct rdma_conn_param param_with(const char *data, size_t length)
{
	return (struct rdma_conn_param){.private_data = data,
					.private_data_len = (uint8_t)length,
					.responder_resources = 3,
					.initiator_depth = 2,
					.flow_control = 1,
					.retry_count = 5,
					.rnr_retry_count = 6};
}

static bool is_zero(const void *data, size_t length)
{
	const uint8_t *bytes = data;

	while (length--)
		if (*bytes++)
			return false;
	return true;
}

/* Private data has the length of the field and is padded with zeros. */
static void assert_data(const struct rdma_conn_param *param, const char *sent, size_t length, size_t field)
{
	assert_int_equal(param->private_data_len, field);
	assert_memory_equal(param->private_data, sent, length);
	assert_true(is_zero((const uint8_t *)param->private_data + length, field - length));
}

TEST(test_connection)
{
	struct rdma_conn_param param = param_with(hello, sizeof(hello)), reply = param_with(answer, sizeof(answer));
	struct rdma_cm_event *event;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ends ends;
	char *memory;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	begin(&ends, RDMA_PS_TCP);
	assert_success(rdma_connect(ends.client, &param));
	event = next_event(ends.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ends.server = event->id;
	assert_int_equal(event->status, 0);
	assert_ptr_equal(event->listen_id, ends.listener);
	assert_ptr_equal(ends.server->context, ends.listener->context);
	assert_ptr_equal(ends.server->channel, ends.server_channel);
	assert_ptr_equal(ends.server->verbs, ends.client->verbs);
	assert_data(&event->param.conn, hello, sizeof(hello), 56);
	/* The peer may use the resources that this side offers. */
	assert_int_equal(event->param.conn.responder_resources, 2);
	assert_int_equal(event->param.conn.initiator_depth, 3);
	assert_int_equal(event->param.conn.flow_control, 1);
	assert_int_equal(event->param.conn.retry_count, 5);
	assert_int_equal(event->param.conn.rnr_retry_count, 6);
	assert_int_equal(event->param.conn.srq, 0);
	assert_int_equal(event->param.conn.qp_num, ends.client->qp->qp_num);
	assert_int_equal(port_of(ends.server), port_of(ends.listener));
	assert_int_equal(rdma_get_dst_port(ends.server), rdma_get_src_port(ends.client));
	assert_non_null(ends.server->route.path_rec);

	new_qp(ends.server);
	reply.rnr_retry_count = 4;
	assert_success(rdma_accept(ends.server, &reply));
	assert_success(rdma_ack_cm_event(event));
	event = next_event(ends.client_channel, RDMA_CM_EVENT_ESTABLISHED);
	assert_data(&event->param.conn, answer, sizeof(answer), 196);
	assert_int_equal(event->param.conn.qp_num, ends.server->qp->qp_num);
	assert_success(rdma_ack_cm_event(event));
	event = next_event(ends.server_channel, RDMA_CM_EVENT_ESTABLISHED);
	assert_null(event->param.conn.private_data);
	assert_int_equal(event->param.conn.private_data_len, 0);
	assert_success(rdma_ack_cm_event(event));

	assert_int_equal(ibv_query_qp(ends.client->qp, &attr, EVERYTHING, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.dest_qp_num, ends.server->qp->qp_num);
	assert_int_equal(attr.retry_cnt, 5);
	/* The value that the server passed to rdma_accept(). */
	assert_int_equal(attr.rnr_retry, 4);
	assert_int_equal(attr.max_rd_atomic, 3);
	assert_int_equal(attr.max_dest_rd_atomic, 2);
	assert_int_equal(attr.timeout, 18);
	assert_int_equal(ibv_query_qp(ends.server->qp, &attr, EVERYTHING, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.dest_qp_num, ends.client->qp->qp_num);
	assert_int_equal(attr.retry_cnt, 5);
	assert_int_equal(attr.rnr_retry, 6);
	assert_int_equal(attr.max_rd_atomic, 2);
	assert_int_equal(attr.max_dest_rd_atomic, 3);

	/* A message, sent by the calls of rdma_verbs.h. */
	memory = calloc(2, 64);
	strcpy(memory, "a message");
	mr = rdma_reg_msgs(ends.client, memory, 128);
	assert_non_null(mr);
	assert_success(rdma_post_recv(ends.server, NULL, memory + 64, 64, mr));
	assert_success(rdma_post_send(ends.client, NULL, memory, 64, mr, 0));
	assert_int_equal(rdma_get_recv_comp(ends.server, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(rdma_get_send_comp(ends.client, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_string_equal(memory + 64, "a message");
	assert_success(rdma_dereg_mr(mr));
	free(memory);

	/* The side that disconnects first also gets an event when the other has disconnected. */
	assert_success(rdma_disconnect(ends.client));
	assert_int_equal(ibv_query_qp(ends.client->qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	event = next_event(ends.server_channel, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(event->status, 0);
	assert_ptr_equal(event->id, ends.server);
	assert_success(rdma_ack_cm_event(event));
	assert_false(has_event(ends.client_channel, 100));
	assert_success(rdma_disconnect(ends.server));
	expect_event(ends.client_channel, RDMA_CM_EVENT_DISCONNECTED);
	/* 4.096 us * 2^18 in TIMEWAIT. */
	assert_false(has_event(ends.client_channel, 500));
	expect_event(ends.client_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	expect_event(ends.server_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	/* Later calls succeed. */
	assert_success(rdma_disconnect(ends.client));
	end(&ends);
}

TEST(test_reject)
{
	struct rdma_conn_param param = param_with(NULL, 0);
	struct rdma_cm_event *event;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ends ends;

	begin(&ends, RDMA_PS_TCP);
	assert_success(rdma_connect(ends.client, &param));
	event = next_event(ends.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ends.server = event->id;
	/* Nothing was sent, so the field holds zeros. */
	assert_int_equal(event->param.conn.private_data_len, 56);
	assert_true(is_zero(event->param.conn.private_data, 56));
	assert_success(rdma_ack_cm_event(event));
	assert_errno(rdma_reject(ends.server, hello, 149), EINVAL);
	assert_success(rdma_reject(ends.server, answer, sizeof(answer)));
	event = next_event(ends.client_channel, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(event->status, 28);
	assert_data(&event->param.conn, answer, sizeof(answer), 148);
	assert_success(rdma_ack_cm_event(event));
	assert_int_equal(ibv_query_qp(ends.client->qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	assert_errno(rdma_connect(ends.client, &param), EINVAL);
	assert_errno(rdma_reject(ends.server, NULL, 0), EINVAL);
	end(&ends);
}

TEST(test_no_listener)
{
	struct rdma_conn_param param = param_with(NULL, 0);
	struct rdma_cm_event *event;
	struct ends ends;

	begin(&ends, RDMA_PS_TCP);
	assert_success(rdma_destroy_id(ends.listener));
	ends.listener = NULL;
	assert_success(rdma_connect(ends.client, &param));
	event = next_event(ends.client_channel, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(event->status, 8);
	assert_non_null(event->param.conn.private_data);
	assert_int_equal(event->param.conn.private_data_len, 148);
	assert_success(rdma_ack_cm_event(event));
	end(&ends);
}

/* A request with an id that is destroyed unanswered, one queued at a listener that is destroyed, and one whose sender is
 * destroyed: the peer gets an event. */
TEST(test_destroyed_ends)
{
	struct rdma_conn_param param = param_with(NULL, 0);
	struct rdma_cm_event *event;
	struct ends ends;

	begin(&ends, RDMA_PS_TCP);
	assert_success(rdma_connect(ends.client, &param));
	event = next_event(ends.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	/* Destroyed before its request is acknowledged, because the event belongs to the listener. */
	assert_success(rdma_destroy_id(event->id));
	assert_success(rdma_ack_cm_event(event));
	event = next_event(ends.client_channel, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(event->status, 28);
	assert_success(rdma_ack_cm_event(event));
	end(&ends);

	begin(&ends, RDMA_PS_TCP);
	assert_success(rdma_connect(ends.client, &param));
	assert_true(has_event(ends.server_channel, 10000));
	assert_success(rdma_destroy_id(ends.listener));
	ends.listener = NULL;
	event = next_event(ends.client_channel, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(event->status, 28);
	assert_success(rdma_ack_cm_event(event));
	assert_false(has_event(ends.server_channel, 0));
	end(&ends);

	begin(&ends, RDMA_PS_TCP);
	assert_success(rdma_connect(ends.client, &param));
	event = next_event(ends.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ends.server = event->id;
	rdma_destroy_qp(ends.client);
	assert_success(rdma_destroy_id(ends.client));
	ends.client = NULL;
	assert_false(has_event(ends.server_channel, 100));
	assert_success(rdma_ack_cm_event(event));
	new_qp(ends.server);
	assert_errno(rdma_accept(ends.server, &param), EINVAL);
	end(&ends);

	begin(&ends, RDMA_PS_TCP);
	establish(&ends);
	rdma_destroy_qp(ends.client);
	assert_success(rdma_destroy_id(ends.client));
	ends.client = NULL;
	expect_event(ends.server_channel, RDMA_CM_EVENT_DISCONNECTED);
	end(&ends);
}

/* A QP of the program: CONNECT_RESPONSE, then rdma_establish() when the QP is ready. */
TEST(test_own_qp)
{
	struct rdma_conn_param param = param_with(hello, sizeof(hello));
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	struct rdma_cm_event *event;
	struct ends ends;
	int mask;

	begin(&ends, RDMA_PS_TCP);
	rdma_destroy_qp(ends.client);
	assert_errno(rdma_connect(ends.client, NULL), EINVAL);
	param.qp_num = 0x1234;
	param.srq = 1;
	assert_success(rdma_connect(ends.client, &param));
	event = next_event(ends.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ends.server = event->id;
	assert_int_equal(event->param.conn.qp_num, 0x1234);
	assert_int_equal(event->param.conn.srq, 1);
	assert_success(rdma_ack_cm_event(event));
	assert_success(rdma_init_qp_attr(ends.server, &attr, &mask));
	assert_int_equal(mask, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	assert_int_equal(attr.dest_qp_num, 0x1234);
	assert_int_equal(attr.ah_attr.is_global, 1);
	assert_int_equal(attr.ah_attr.port_num, 1);
	param = param_with(answer, sizeof(answer));
	param.qp_num = 0x5678;
	assert_success(rdma_accept(ends.server, &param));
	event = next_event(ends.client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(event->param.conn.qp_num, 0x5678);
	assert_data(&event->param.conn, answer, sizeof(answer), 196);
	assert_success(rdma_ack_cm_event(event));
	attr.qp_state = IBV_QPS_RTS;
	assert_success(rdma_init_qp_attr(ends.client, &attr, &mask));
	assert_int_equal(mask, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_MAX_QP_RD_ATOMIC);
	assert_false(has_event(ends.server_channel, 50));
	assert_success(rdma_establish(ends.client));
	expect_event(ends.server_channel, RDMA_CM_EVENT_ESTABLISHED);
	assert_errno(rdma_establish(ends.client), EINVAL);
	end(&ends);
}

TEST(test_limits)
{
	struct rdma_conn_param param = param_with(hello, 57);
	char data[200] = {0};
	struct rdma_cm_event *event;
	struct ends ends;

	begin(&ends, RDMA_PS_TCP);
	assert_errno(rdma_connect(ends.client, &param), EINVAL);
	param = param_with(NULL, 0);
	param.responder_resources = 200;
	assert_errno(rdma_connect(ends.client, &param), EINVAL);
	/* The maximum is 16, as ibv_query_device(3) reports. Retries are limited to the range of the field. */
	param.responder_resources = RDMA_MAX_RESP_RES;
	param.initiator_depth = RDMA_MAX_INIT_DEPTH;
	param.retry_count = 10;
	assert_success(rdma_connect(ends.client, &param));
	event = next_event(ends.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ends.server = event->id;
	assert_int_equal(event->param.conn.retry_count, 7);
	assert_int_equal(event->param.conn.initiator_depth, 16);
	assert_int_equal(event->param.conn.responder_resources, 16);
	assert_success(rdma_ack_cm_event(event));
	param.private_data = data;
	param.private_data_len = 197;
	new_qp(ends.server);
	assert_errno(rdma_accept(ends.server, &param), EINVAL);
	param.private_data_len = 196;
	assert_errno(rdma_disconnect(ends.server), EINVAL);
	assert_success(rdma_accept(ends.server, &param));
	assert_errno(rdma_accept(ends.server, &param), EINVAL);
	expect_event(ends.client_channel, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(ends.server_channel, RDMA_CM_EVENT_ESTABLISHED);
	assert_errno(rdma_notify(ends.server, IBV_EVENT_COMM_EST), EISCONN);
	assert_errno(rdma_notify(ends.server, IBV_EVENT_QP_FATAL), EINVAL);
	end(&ends);
}

/* Both disconnect at once: each gets one event. */
TEST(test_crossing_disconnects)
{
	struct ends ends;

	begin(&ends, RDMA_PS_TCP);
	establish(&ends);
	assert_success(rdma_disconnect(ends.client));
	assert_success(rdma_disconnect(ends.server));
	expect_event(ends.client_channel, RDMA_CM_EVENT_DISCONNECTED);
	expect_event(ends.server_channel, RDMA_CM_EVENT_DISCONNECTED);
	end(&ends);
}

TEST(test_datagrams)
{
	struct rdma_conn_param param = param_with(hello, sizeof(hello));
	struct rdma_cm_event *event;
	struct ibv_ah *ah;
	struct ends ends;

	begin(&ends, RDMA_PS_UDP);
	assert_success(rdma_connect(ends.client, &param));
	event = next_event(ends.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ends.server = event->id;
	assert_int_equal(event->param.ud.private_data_len, 180);
	assert_memory_equal(event->param.ud.private_data, hello, sizeof(hello));
	assert_success(rdma_ack_cm_event(event));
	new_qp(ends.server);
	param = param_with(answer, sizeof(answer));
	assert_success(rdma_accept(ends.server, &param));
	event = next_event(ends.client_channel, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(event->param.ud.private_data_len, 136);
	assert_memory_equal(event->param.ud.private_data, answer, sizeof(answer));
	assert_int_equal(event->param.ud.qp_num, ends.server->qp->qp_num);
	assert_int_equal(event->param.ud.qkey, RDMA_UDP_QKEY);
	ah = ibv_create_ah(ends.client->pd, &event->param.ud.ah_attr);
	assert_non_null(ah);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_success(rdma_ack_cm_event(event));
	/* The passive side gets no further event. */
	assert_false(has_event(ends.server_channel, 50));
	end(&ends);

	begin(&ends, RDMA_PS_UDP);
	assert_success(rdma_connect(ends.client, &param));
	event = next_event(ends.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ends.server = event->id;
	assert_success(rdma_ack_cm_event(event));
	assert_success(rdma_reject(ends.server, answer, sizeof(answer)));
	event = next_event(ends.client_channel, RDMA_CM_EVENT_UNREACHABLE);
	assert_int_equal(event->status, 2);
	assert_success(rdma_ack_cm_event(event));
	end(&ends);
}

TEST(test_ece)
{
	struct ibv_ece ece = {.vendor_id = 0x15b3, .options = 7}, peer = {0};
	struct rdma_conn_param param = param_with(NULL, 0);
	struct rdma_cm_event *event;
	struct ends ends;

	begin(&ends, RDMA_PS_TCP);
	assert_errno(rdma_set_local_ece(ends.client, &ece), EINVAL);
	rdma_destroy_qp(ends.client);
	ece.vendor_id = 0;
	assert_errno(rdma_set_local_ece(ends.client, &ece), EINVAL);
	ece.vendor_id = 0x15b3;
	assert_success(rdma_set_local_ece(ends.client, &ece));
	assert_success(rdma_connect(ends.client, &param));
	event = next_event(ends.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ends.server = event->id;
	assert_success(rdma_ack_cm_event(event));
	assert_success(rdma_get_remote_ece(ends.server, &peer));
	assert_int_equal(peer.vendor_id, 0x15b3);
	assert_int_equal(peer.options, 7);
	assert_success(rdma_reject_ece(ends.server, NULL, 0));
	event = next_event(ends.client_channel, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(event->status, 35);
	assert_success(rdma_ack_cm_event(event));
	end(&ends);
}

/*
 * Sends a request of vendor and options @asked, answers it by a server with a QP, and checks the values that the client gets.
 * The server's QP is of vendor 0x15b3, with option 0.
 */
static void expect_ece(struct ibv_ece asked)
{
	struct rdma_conn_param param = param_with(NULL, 0);
	struct ibv_ece got = {.vendor_id = 1, .options = 1, .comp_mask = 1};
	struct rdma_cm_event *event;
	struct ends ends;

	begin(&ends, RDMA_PS_TCP);
	/* An id that never had a QP sends no vendor. */
	rdma_destroy_qp(ends.client);
	assert_success(rdma_destroy_id(ends.client));
	ends.client = new_id(ends.client_channel, RDMA_PS_TCP);
	resolve(ends.client, port_of(ends.listener));
	if (asked.vendor_id)
		assert_success(rdma_set_local_ece(ends.client, &asked));
	param.qp_num = 0x1234;
	assert_success(rdma_connect(ends.client, &param));
	event = next_event(ends.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ends.server = event->id;
	assert_success(rdma_ack_cm_event(event));
	new_qp(ends.server);
	assert_success(rdma_accept(ends.server, &param));
	expect_event(ends.client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_success(rdma_get_remote_ece(ends.client, &got));
	assert_int_equal(got.vendor_id, asked.vendor_id);
	assert_int_equal(got.options, 0);
	assert_int_equal(got.comp_mask, 0);
	end(&ends);
}

/* As in rdma-core, rdma_accept() returns the vendor of the request, with its own options. */
TEST(test_ece_of_the_answer)
{
	expect_ece((struct ibv_ece){0});
	expect_ece((struct ibv_ece){.vendor_id = 0x15b3, .options = 7});
	expect_ece((struct ibv_ece){.vendor_id = 0xabcdef, .options = 7});
}

/* librdmacm fails a connection if the answer names a vendor other than that of its QP: QP in ERR, CONNECT_ERROR. */
TEST(test_ece_of_another_vendor)
{
	struct ibv_ece ece = {.vendor_id = 0xabcdef, .options = 7};
	struct rdma_conn_param param = param_with(NULL, 0);
	struct ibv_qp_init_attr init;
	struct rdma_cm_event *event;
	struct ibv_qp_attr attr;
	struct ends ends;

	begin(&ends, RDMA_PS_TCP);
	rdma_destroy_qp(ends.client);
	assert_success(rdma_set_local_ece(ends.client, &ece));
	param.qp_num = 0x1234;
	assert_success(rdma_connect(ends.client, &param));
	event = next_event(ends.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ends.server = event->id;
	assert_success(rdma_ack_cm_event(event));
	new_qp(ends.client);
	new_qp(ends.server);
	assert_success(rdma_accept(ends.server, &param));
	expect_event(ends.client_channel, RDMA_CM_EVENT_CONNECT_ERROR);
	assert_int_equal(ibv_query_qp(ends.client->qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	event = next_event(ends.server_channel, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(event->status, 28);
	assert_success(rdma_ack_cm_event(event));
	end(&ends);
}
