/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fault scripts distinguish messages of the connection manager (docs/use/faults.md): the first of each kind is lost, and the
 * exchange succeeds by a retransmission (IBTA 12.9.8). Timeouts are short here, see meson.build.
 */
#include "support.h"

#include "softhca.h"

static void lose_first(struct rdma_cm_id *id, const char *message)
{
	char script[64], error[256];

	snprintf(script, sizeof(script), "of cm %s at packet 1 drop", message);
	if (softhca_set_faults(id->verbs, script, error, sizeof(error)))
		fail_msg("%s: %s", script, error);
}

/* Checks that exactly one message was lost, of this kind. */
static void assert_lost(struct rdma_cm_id *id, const char *message)
{
	char expected[128], summary[1024];

	softhca_fault_summary(id->verbs, summary, sizeof(summary));
	snprintf(expected, sizeof(expected), "of cm %s at packet 1 drop: 1 of 1", message);
	if (!strstr(summary, expected))
		fail_msg("no \"%s\" in:\n%s", expected, summary);
	assert_int_equal(softhca_set_faults(id->verbs, NULL, NULL, 0), 0);
}

static void release(struct ends *ends)
{
	assert_success(rdma_disconnect(ends->client));
	expect_event(ends->server_channel, RDMA_CM_EVENT_DISCONNECTED);
	/* This call answers the DREQ. */
	assert_success(rdma_disconnect(ends->server));
	expect_event(ends->client_channel, RDMA_CM_EVENT_DISCONNECTED);
}

TEST(test_connections)
{
	static const char *const messages[] = {"req", "rep", "rtu", "dreq", "drep"};

	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		struct ends ends;

		begin(&ends, RDMA_PS_TCP);
		lose_first(ends.client, messages[i]);
		establish(&ends);
		release(&ends);
		assert_lost(ends.client, messages[i]);
		end(&ends);
	}
}

TEST(test_datagram_request)
{
	struct ends ends;

	begin(&ends, RDMA_PS_UDP);
	lose_first(ends.client, "sidr req");
	establish(&ends);
	assert_lost(ends.client, "sidr req");
	end(&ends);
}

/* The answer ends the request: a retransmitted one is a new request to the program (rdma-cm 2.6). */
TEST(test_datagram_answer)
{
	struct rdma_conn_param param = {.qp_num = 0};
	struct rdma_cm_event *request;
	struct rdma_cm_id *lost;
	struct ends ends;

	begin(&ends, RDMA_PS_UDP);
	lose_first(ends.client, "sidr rep");
	assert_success(rdma_connect(ends.client, &param));
	request = next_event(ends.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	lost = request->id;
	new_qp(lost);
	assert_success(rdma_accept(lost, &param));
	assert_success(rdma_ack_cm_event(request));
	request = next_event(ends.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ends.server = request->id;
	new_qp(ends.server);
	assert_success(rdma_accept(ends.server, &param));
	assert_success(rdma_ack_cm_event(request));
	expect_event(ends.client_channel, RDMA_CM_EVENT_ESTABLISHED);
	assert_lost(ends.client, "sidr rep");
	rdma_destroy_qp(lost);
	assert_success(rdma_destroy_id(lost));
	end(&ends);
}

TEST(test_rejection)
{
	struct rdma_conn_param param = {.retry_count = 7};
	struct rdma_cm_event *request, *rejected;
	struct rdma_cm_id *again;
	struct ends ends;

	begin(&ends, RDMA_PS_TCP);
	lose_first(ends.client, "rej");
	assert_success(rdma_connect(ends.client, &param));
	request = next_event(ends.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_success(rdma_reject(request->id, "no", 3));
	ends.server = request->id;
	assert_success(rdma_ack_cm_event(request));
	/* A rejection ends it as well. */
	request = next_event(ends.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_success(rdma_reject(request->id, "no", 3));
	again = request->id;
	assert_success(rdma_ack_cm_event(request));
	assert_success(rdma_destroy_id(again));
	rejected = next_event(ends.client_channel, RDMA_CM_EVENT_REJECTED);
	assert_success(rdma_ack_cm_event(rejected));
	assert_lost(ends.client, "rej");
	end(&ends);
}

/* All answers are lost: rdma_connect(3) never gets one. */
TEST(test_silence)
{
	struct rdma_conn_param param = {.retry_count = 7};
	struct rdma_cm_event *event;
	struct ends ends;

	begin(&ends, RDMA_PS_TCP);
	assert_int_equal(softhca_set_faults(ends.client->verbs, "of cm drop", NULL, 0), 0);
	assert_success(rdma_connect(ends.client, &param));
	event = next_event(ends.client_channel, RDMA_CM_EVENT_UNREACHABLE);
	assert_int_equal(event->status, -ETIMEDOUT);
	assert_success(rdma_ack_cm_event(event));
	assert_false(has_event(ends.server_channel, 0));
	assert_int_equal(softhca_set_faults(ends.client->verbs, NULL, NULL, 0), 0);
	end(&ends);
}
