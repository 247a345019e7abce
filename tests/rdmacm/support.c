/* SPDX-License-Identifier: BSD-2-Clause */
/* See support.h. */
#include "support.h"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>

void assert_result(const char *call, int result, int expected)
{
	if (!expected && result)
		fail_msg("%s: %d, errno %d (%s)", call, result, errno, strerror(errno));
	if (expected && (result != -1 || errno != expected))
		fail_msg("%s: %d, errno %d (%s), and not -1 with errno %d", call, result, errno, strerror(errno),
			 expected);
}

static struct sockaddr *address(uint32_t host, uint16_t port)
{
	static struct sockaddr_in several[8];
	static unsigned int next;
	struct sockaddr_in *address = &several[next++ % 8];

	*address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(host)};
	return (struct sockaddr *)address;
}

struct sockaddr *loopback(uint16_t port)
{
	return address(INADDR_LOOPBACK, port);
}

struct sockaddr *any_address(uint16_t port)
{
	return address(INADDR_ANY, port);
}

struct rdma_event_channel *new_channel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	assert_non_null(channel);
	return channel;
}

struct rdma_cm_id *new_id(struct rdma_event_channel *channel, enum rdma_port_space space)
{
	struct rdma_cm_id *id;

	assert_success(rdma_create_id(channel, &id, channel, space));
	return id;
}

bool has_event(struct rdma_event_channel *channel, int milliseconds)
{
	struct pollfd readable = {.fd = channel->fd, .events = POLLIN};

	return poll(&readable, 1, milliseconds) == 1 && readable.revents & POLLIN;
}

struct rdma_cm_event *next_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	if (!has_event(channel, 10000))
		fail_msg("%s did not come", rdma_event_str(type));
	assert_success(rdma_get_cm_event(channel, &event));
	if (event->event != type)
		fail_msg("%s (status %d), and not %s", rdma_event_str(event->event), event->status,
			 rdma_event_str(type));
	return event;
}

void expect_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	assert_success(rdma_ack_cm_event(next_event(channel, type)));
}

void resolve_address(struct rdma_cm_id *id, uint16_t port)
{
	assert_success(rdma_resolve_addr(id, NULL, loopback(port), TIMEOUT_MS));
	expect_event(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED);
}

void resolve(struct rdma_cm_id *id, uint16_t port)
{
	resolve_address(id, port);
	assert_success(rdma_resolve_route(id, TIMEOUT_MS));
	expect_event(id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

uint16_t port_of(struct rdma_cm_id *id)
{
	return ntohs(rdma_get_src_port(id));
}

struct rdma_cm_id *new_listener(struct rdma_event_channel *channel, enum rdma_port_space space)
{
	struct rdma_cm_id *id = new_id(channel, space);

	assert_success(rdma_bind_addr(id, loopback(0)));
	assert_success(rdma_listen(id, 0));
	assert_int_not_equal(port_of(id), 0);
	return id;
}

void new_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = id->qp_type,
		.sq_sig_all = 1,
	};

	assert_success(rdma_create_qp(id, NULL, &attr));
}

void begin(struct ends *ends, enum rdma_port_space space)
{
	*ends = (struct ends){.client_channel = new_channel(), .server_channel = new_channel()};
	ends->listener = new_listener(ends->server_channel, space);
	ends->client = new_id(ends->client_channel, space);
	resolve(ends->client, port_of(ends->listener));
	new_qp(ends->client);
}

void establish(struct ends *ends)
{
	struct rdma_conn_param param = {
		.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};
	struct rdma_cm_event *request;

	assert_success(rdma_connect(ends->client, &param));
	request = next_event(ends->server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ends->server = request->id;
	new_qp(ends->server);
	assert_success(rdma_accept(ends->server, &param));
	assert_success(rdma_ack_cm_event(request));
	expect_event(ends->client_channel, RDMA_CM_EVENT_ESTABLISHED);
	if (ends->client->qp_type != IBV_QPT_UD)
		expect_event(ends->server_channel, RDMA_CM_EVENT_ESTABLISHED);
}

static void destroy(struct rdma_cm_id *id)
{
	if (!id)
		return;
	rdma_destroy_qp(id);
	assert_success(rdma_destroy_id(id));
}

void end(struct ends *ends)
{
	destroy(ends->client);
	destroy(ends->server);
	destroy(ends->listener);
	rdma_destroy_event_channel(ends->client_channel);
	rdma_destroy_event_channel(ends->server_channel);
}
