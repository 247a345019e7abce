/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 850 to 874: connections of librdmacm, and requests that a listener does not accept. */
#include "../rdmacm/support.h"
#include "rule_cases.h"

#include <endian.h>
#include <infiniband/ib.h>
#include <string.h>
#include <unistd.h>

enum { EXPLANATIONS = 64, TRIES = 5000 };

static struct rdma_conn_param few_resources(void)
{
	return (struct rdma_conn_param){
		.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};
}

/* Sends a request that waits for its answer at @ends->server. */
static void ask(struct ends *ends)
{
	struct rdma_conn_param param = few_resources();
	struct rdma_cm_event *event;

	begin(ends, RDMA_PS_TCP);
	assert_success(rdma_connect(ends->client, &param));
	event = next_event(ends->server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ends->server = event->id;
	assert_success(rdma_ack_cm_event(event));
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

RULE_CASE(RDMACM_NO_QP_NUMBER)
{
	struct ends ends;

	begin(&ends, RDMA_PS_TCP);
	rdma_destroy_qp(ends.client);
	assert_errno(rdma_connect(ends.client, NULL), EINVAL);
	expect_refusal(RDMACM_NO_QP_NUMBER, "rdma_connect → EINVAL: the id has no QP, and no parameter names one");
	end(&ends);
}

/* 92 bytes of a REQ minus 36 of the hello header (IBTA annex A11). */
RULE_CASE(RDMACM_PRIVATE_DATA)
{
	struct rdma_conn_param param = few_resources();
	uint8_t bytes[57] = {0};
	struct ends ends;

	begin(&ends, RDMA_PS_TCP);
	param.private_data = bytes;
	param.private_data_len = sizeof(bytes);
	assert_errno(rdma_connect(ends.client, &param), EINVAL);
	expect_refusal(RDMACM_PRIVATE_DATA,
		       "rdma_connect → EINVAL: private data has 57 bytes, but the message carries at most 56");
	end(&ends);
}

RULE_CASE(RDMACM_RESOURCES)
{
	struct rdma_conn_param param = few_resources();
	struct ibv_device_attr attr;
	struct ends ends;

	begin(&ends, RDMA_PS_TCP);
	assert_int_equal(ibv_query_device(ends.client->verbs, &attr), 0);
	param.responder_resources = 254;
	assert_errno(rdma_connect(ends.client, &param), EINVAL);
	expect_refusal(
		RDMACM_RESOURCES,
		"rdma_connect → EINVAL: responder_resources is 254 and initiator_depth 1, but the device has %d and %d",
		attr.max_qp_rd_atom, attr.max_qp_init_rd_atom);
	end(&ends);
}

RULE_CASE(RDMACM_NO_REQUEST)
{
	struct rdma_conn_param param = few_resources();
	struct ends ends;

	begin(&ends, RDMA_PS_TCP);
	establish(&ends);
	assert_errno(rdma_accept(ends.server, &param), EINVAL);
	expect_refusal(RDMACM_NO_REQUEST,
		       "rdma_accept → EINVAL: no request waits for an answer: the connection is in state ESTABLISHED");
	end(&ends);
}

RULE_CASE(RDMACM_NOT_ANSWERED)
{
	struct ends ends;

	ask(&ends);
	assert_errno(rdma_disconnect(ends.server), EINVAL);
	expect_refusal(RDMACM_NOT_ANSWERED, "rdma_disconnect → EINVAL: the request has not been accepted");
	end(&ends);
}

RULE_CASE(RDMACM_DISCONNECTED)
{
	struct ends ends;
	uint32_t number;

	begin(&ends, RDMA_PS_TCP);
	establish(&ends);
	number = ends.server->qp->qp_num;
	assert_success(rdma_disconnect(ends.server));
	expect_about_qp(RDMACM_DISCONNECTED, number, ": the connection has ended, and its queue pair is in ERR");
	end(&ends);
}

RULE_CASE(RDMACM_NOTIFY)
{
	struct ends ends;

	begin(&ends, RDMA_PS_TCP);
	establish(&ends);
	assert_errno(rdma_notify(ends.client, IBV_EVENT_PATH_MIG), EINVAL);
	expect_refusal(RDMACM_NOTIFY, "rdma_notify → EINVAL: asynchronous event %u has no meaning for a connection",
		       IBV_EVENT_PATH_MIG);
	end(&ends);
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

/* Waits for the newest explanation by @rule, made by another thread. */
static struct softhca_explanation explanation_of(uint32_t rule)
{
	struct softhca_explanation all[EXPLANATIONS];

	for (int i = 0; i < TRIES; i++) {
		size_t count = softhca_explanations(client.context, 0, all, EXPLANATIONS);

		for (size_t place = 0; place < count; place++)
			if (all[place].rule == rule)
				return all[place];
		usleep(1000);
	}
	fail_msg("rule %u was not explained", rule);
	return all[0];
}

/* The QP of the client is created after a request that named another vendor. */
RULE_CASE(RDMACM_ECE_REPLY)
{
	struct ibv_ece ece = {.vendor_id = 0xabcdef};
	struct rdma_conn_param param = few_resources();
	struct softhca_explanation found;
	struct rdma_cm_event *event;
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
	/* The explanation about the QP in ERR comes later. */
	found = explanation_of(RULE_RDMACM_ECE_REPLY);
	expect_explanation(
		&found, RDMACM_ECE_REPLY,
		" rdma_get_cm_event → EINVAL: the reply names vendor 0xabcdef for enhanced connection establishment, but the queue pair of the active side has vendor 0x15b3");
	end(&ends);
}

static struct rdma_cm_id *client_of(struct rdma_event_channel *channel, uint16_t port)
{
	struct rdma_conn_param param = few_resources();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);

	resolve(id, port);
	new_qp(id);
	assert_success(rdma_connect(id, &param));
	return id;
}

static void destroy_client(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	assert_success(rdma_destroy_id(id));
}

RULE_CASE(RDMACM_BACKLOG)
{
	struct rdma_event_channel *servers = new_channel(), *clients = new_channel();
	struct rdma_cm_id *listener = new_id(servers, RDMA_PS_TCP), *id[2];
	struct softhca_explanation found;

	assert_success(rdma_bind_addr(listener, loopback(0)));
	assert_success(rdma_listen(listener, 1));
	for (int i = 0; i < 2; i++)
		id[i] = client_of(clients, port_of(listener));
	found = explanation_of(RULE_RDMACM_BACKLOG);
	expect_explanation(
		&found, RDMACM_BACKLOG,
		" rdma_listen: 1 requests for port %u are waiting, as many as the backlog: another one was dropped, and its sender repeats it",
		port_of(listener));
	for (int i = 0; i < 2; i++)
		destroy_client(id[i]);
	assert_success(rdma_destroy_id(listener));
	rdma_destroy_event_channel(clients);
	rdma_destroy_event_channel(servers);
}

RULE_CASE(RDMACM_REQUEST_TYPE)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_UC},
			     *info;
	struct rdma_event_channel *clients = new_channel();
	struct softhca_explanation found;
	struct rdma_cm_id *listener, *id;

	assert_success(rdma_getaddrinfo("127.0.0.1", "7499", &hints, &info));
	assert_success(rdma_create_ep(&listener, info, NULL, NULL));
	rdma_freeaddrinfo(info);
	assert_success(rdma_listen(listener, 1));
	id = client_of(clients, 7499);
	found = explanation_of(RULE_RDMACM_REQUEST_TYPE);
	expect_explanation(
		&found, RDMACM_REQUEST_TYPE,
		" rdma_listen: a request for type RC came to port 7499, where an id of type UC listens: rejected");
	destroy_client(id);
	rdma_destroy_ep(listener);
	rdma_destroy_event_channel(clients);
}

/*
 * Sends a request with @header in place of the addresses of both ends (IBTA annex A11). The id has native addresses, so it has
 * no such header and sends these bytes as private data.
 */
static struct softhca_explanation explanation_of_header(const uint8_t *header, uint32_t rule, uint16_t *port)
{
	struct rdma_event_channel *servers = new_channel(), *clients = new_channel();
	struct rdma_cm_id *listener = new_id(servers, RDMA_PS_TCP), *id = new_id(clients, RDMA_PS_TCP);
	struct rdma_conn_param param = few_resources();
	struct sockaddr_in6 any = {.sin6_family = AF_INET6};
	struct sockaddr_ib to = {.sib_family = AF_IB, .sib_sid_mask = UINT64_MAX};
	struct softhca_explanation found;
	int own_family = 1;

	/* Prevents it from listening at IPv4 addresses. */
	assert_success(
		rdma_set_option(listener, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &own_family, sizeof(own_family)));
	assert_success(rdma_bind_addr(listener, (struct sockaddr *)&any));
	assert_success(rdma_listen(listener, 1));
	*port = port_of(listener);
	to.sib_sid = htobe64((uint64_t)RDMA_PS_TCP << 16 | *port);
	assert_success(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, TIMEOUT_MS));
	expect_event(clients, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_success(rdma_resolve_route(id, TIMEOUT_MS));
	expect_event(clients, RDMA_CM_EVENT_ROUTE_RESOLVED);
	new_qp(id);
	param.private_data = header;
	param.private_data_len = 36;
	assert_success(rdma_connect(id, &param));
	found = explanation_of(rule);
	destroy_client(id);
	assert_success(rdma_destroy_id(listener));
	rdma_destroy_event_channel(clients);
	rdma_destroy_event_channel(servers);
	return found;
}

RULE_CASE(RDMACM_HELLO_VERSION)
{
	const uint8_t header[36] = {0x10, 0x40};
	struct softhca_explanation found;
	uint16_t port;

	found = explanation_of_header(header, RULE_RDMACM_HELLO_VERSION, &port);
	expect_explanation(&found, RDMACM_HELLO_VERSION,
			   " rdma_listen: a request for port %u does not have header version 0.0: rejected", port);
}

RULE_CASE(RDMACM_REQUEST_NO_HEADER)
{
	const uint8_t header[36] = {0, 0x50};
	struct softhca_explanation found;
	uint16_t port;

	found = explanation_of_header(header, RULE_RDMACM_REQUEST_NO_HEADER, &port);
	expect_explanation(&found, RDMACM_REQUEST_NO_HEADER,
			   " rdma_listen: a request for port %u has no header with IP addresses: rejected", port);
}

RULE_CASE(RDMACM_REQUEST_SOURCE)
{
	const uint8_t header[36] = {0, 0x40, [16] = 239, [19] = 1, [32] = 192, 0, 2, 1};
	struct softhca_explanation found;
	uint16_t port;

	found = explanation_of_header(header, RULE_RDMACM_REQUEST_SOURCE, &port);
	expect_explanation(
		&found, RDMACM_REQUEST_SOURCE,
		" rdma_listen: a request for port %u claims to come from an address that no host has: rejected", port);
}

RULE_CASE(RDMACM_REQUEST_ADDRESS)
{
	const uint8_t header[36] = {0, 0x40, [16] = 192, 0, 2, 9, [32] = 192, 0, 2, 1};
	struct softhca_explanation found;
	uint16_t port;

	found = explanation_of_header(header, RULE_RDMACM_REQUEST_ADDRESS, &port);
	expect_explanation(
		&found, RDMACM_REQUEST_ADDRESS,
		" rdma_listen: a request for port %u is for address 0x0:0xffffc0000201, at which this id does not listen",
		port);
}
