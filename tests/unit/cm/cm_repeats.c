/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Repeats, and requests for more time (MRA): intervals and counts of Linux with response timeout 20, packet lifetime 16
 * and 15 retries, that is 2^12 ms, 2^8 ms; a code t stands for 2^(t - 8) ms.
 */
#include "test_case.h"

#include "../support/cm_world.h"

static const struct cm_private nothing;

/* Expects the same message @count more times, each @ms after the one before. */
static void expect_repeats(const struct sent *first, uint32_t count, uint64_t ms)
{
	struct sent copy = *first;

	for (uint32_t i = 0; i < count; i++) {
		const struct sent *again = sent_after_ms(ms, copy.message.kind);

		assert_memory_equal(again->mad, copy.mad, CM_MAD_BYTES);
		assert_memory_equal(&again->path, &copy.path, sizeof(copy.path));
	}
}

/* Expects no more repeats, but the event @kind. */
static void expect_end(void *owner, enum cm_event_kind kind, uint64_t ms)
{
	pass_ms(ms - 1);
	nothing_told();
	pass_ms(2);
	assert_false(take_event(owner, kind, -ETIMEDOUT)->has_message);
	nothing_sent();
}

/* 2 * 256 + 4096. */
TEST(req_is_given_up)
{
	struct connection c = requested();

	expect_repeats(take_sent(CM_REQ), 15, 4608);
	expect_end(client, CM_EVENT_UNREACHABLE, 4608);
	assert_int_equal(cm_id_state(c.client), CM_STATE_IDLE);
	pass_ms(100000);
	forget(&c);
}

TEST(rep_is_given_up)
{
	struct connection c = replied();
	struct sent rep = *take_sent(CM_REP);

	/* The client is destroyed without any event. */
	cm_id_destroy(c.client);
	c.client = NULL;
	take_sent(CM_REJ);
	expect_repeats(&rep, 15, 4096);
	expect_end(server, CM_EVENT_UNREACHABLE, 4096);
	assert_int_equal(cm_id_state(c.server), CM_STATE_IDLE);
	forget(&c);
}

TEST(dreq_of_the_active_side_is_given_up)
{
	struct connection c = established();

	assert_int_equal(cm_send_dreq(c.client, nothing), 0);
	expect_repeats(take_sent(CM_DREQ), 15, 4608);
	expect_end(client, CM_EVENT_DISCONNECTED, 4608);
	assert_int_equal(cm_id_state(c.client), CM_STATE_TIMEWAIT);
	pass_ms(1022);
	nothing_told();
	pass_ms(2);
	take_event(client, CM_EVENT_TIMEWAIT_EXIT, 0);
	forget(&c);
}

TEST(dreq_of_the_passive_side_is_given_up)
{
	struct connection c = established();

	assert_int_equal(cm_send_dreq(c.server, nothing), 0);
	expect_repeats(take_sent(CM_DREQ), 15, 4096);
	expect_end(server, CM_EVENT_DISCONNECTED, 4096);
	forget(&c);
}

TEST(sidr_req_is_given_up)
{
	struct connection c = {.client = make(A, client)};

	assert_int_equal(cm_send_sidr_req(c.client, &(const struct cm_sidr_request){.path = path_from(A)}), 0);
	expect_repeats(take_sent(CM_SIDR_REQ), 15, 4096);
	expect_end(client, CM_EVENT_UNREACHABLE, 4096);
	assert_int_equal(cm_id_state(c.client), CM_STATE_IDLE);
	forget(&c);
}

/* 2 * 2^0 + 2^2 ms, with two repeats. */
TEST(settings_count)
{
	struct connection c;

	world_close(state);
	world_begin(&(const struct cm_config){.response_timeout = 10, .packet_lifetime = 3, .retries = 2});
	c = requested();
	assert_int_equal(world.sent[0].message.req.max_cm_retries, 2);
	assert_int_equal(world.sent[0].message.req.local_response_timeout, 10);
	assert_int_equal(world.sent[0].message.req.remote_response_timeout, 10);
	expect_repeats(take_sent(CM_REQ), 2, 6);
	expect_end(client, CM_EVENT_UNREACHABLE, 6);
	forget(&c);
}

TEST(passive_side_goes_by_the_req)
{
	struct connection c = requested();
	struct sent req = *take_sent(CM_REQ);
	struct cm_reply reply = a_reply(B);

	req.message.req.local_response_timeout = 12;
	req.message.req.max_cm_retries = 3;
	cm_pack(&req.message, req.mad);
	world_deliver(&req);
	c.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	assert_int_equal(cm_send_rep(c.server, &reply), 0);
	expect_repeats(take_sent(CM_REP), 3, 16);
	expect_end(server, CM_EVENT_UNREACHABLE, 16);
	forget(&c);
}

/* With the option ACK_TIMEOUT, the lifetime of a path is one less than its value. */
TEST(lifetime_of_the_id_counts)
{
	struct connection c = {.client = make(A, client)};
	struct cm_request request = a_request(A);

	request.packet_lifetime = 13;
	assert_int_equal(cm_send_req(c.client, &request), 0);
	expect_repeats(take_sent(CM_REQ), 1, 2 * 32 + 4096);
	forget(&c);
}

/* ---- MRA --------------------------------------------------------------------------------------------------------------- */

/*
 * A slow server: the client receives an MRA when it repeats the request, and then waits 2^16 ms plus the packet
 * lifetime.
 */
TEST(slow_server)
{
	struct connection c = requested();
	struct sent req = *take_sent(CM_REQ);
	const struct cm_mra *mra;
	struct cm_parameters known;
	struct cm_reply reply = a_reply(B);

	world_deliver(&req);
	c.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	assert_int_equal(cm_id_state(c.server), CM_STATE_MRA_REQ_SENT);
	nothing_sent();
	world_deliver(sent_after_ms(4608, CM_REQ));
	cm_id_query(c.server, &known);
	mra = &world.sent[0].message.mra;
	assert_int_equal(mra->local_comm_id, known.local_comm_id);
	assert_int_equal(mra->remote_comm_id, req.message.req.local_comm_id);
	assert_int_equal(mra->message_acknowledged, 0);
	assert_int_equal(mra->service_timeout, 24);
	assert_int_equal(world.sent[0].message.transaction_id, req.message.transaction_id);
	pass(CM_MRA);
	nothing_told();
	assert_int_equal(cm_id_state(c.client), CM_STATE_MRA_REQ_RCVD);
	expect_repeats(&req, 2, 65536 + 512);
	assert_int_equal(cm_send_rep(c.server, &reply), 0);
	pass(CM_REP);
	take_event(client, CM_EVENT_RESPONSE, 0);
	assert_int_equal(cm_id_state(c.client), CM_STATE_MRA_REP_SENT);
	forget(&c);
}

TEST(mra_does_not_add_retries)
{
	struct connection c = requested();
	struct sent req = *take_sent(CM_REQ);

	world_deliver(&req);
	c.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	world_deliver(sent_after_ms(4608, CM_REQ));
	pass(CM_MRA);
	expect_repeats(&req, 14, 65536 + 512);
	expect_end(client, CM_EVENT_UNREACHABLE, 65536 + 512);
	forget(&c);
}

/* A slow client. The server's timeout is that of the REQ, 18: 2^10 ms. */
TEST(slow_client)
{
	struct connection c = replied();
	struct sent rep = *take_sent(CM_REP);

	world_deliver(&rep);
	take_event(client, CM_EVENT_RESPONSE, 0);
	nothing_sent();
	world_deliver(sent_after_ms(4096, CM_REP));
	assert_int_equal(world.sent[0].message.mra.message_acknowledged, 1);
	pass(CM_MRA);
	assert_int_equal(cm_id_state(c.server), CM_STATE_MRA_REP_RCVD);
	expect_repeats(&rep, 2, 65536 + 1024);
	assert_int_equal(cm_send_rtu(c.client, nothing), 0);
	pass(CM_RTU);
	take_event(server, CM_EVENT_ESTABLISHED, 0);
	forget(&c);
}

TEST(mra_of_another_message)
{
	struct connection c = received();
	struct cm_message mra = {.kind = CM_MRA};
	struct cm_parameters known;

	cm_id_query(c.client, &known);
	mra.mra.remote_comm_id = known.local_comm_id;
	mra.mra.service_timeout = 24;
	for (uint8_t named = 1; named < 4; named++) {
		mra.mra.message_acknowledged = named;
		inject(B, &mra);
		assert_int_equal(cm_id_state(c.client), CM_STATE_REQ_SENT);
	}
	forget(&c);
}

/*
 * ---- duplicates
 * ---------------------------------------------------------------------------------------------------------
 */

TEST(req_twice)
{
	struct connection c = requested();

	pass_twice(CM_REQ);
	c.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	nothing_told();
	pass(CM_MRA);
	forget(&c);
}

/* The REP repeats itself. */
TEST(req_after_rep)
{
	struct connection c = requested();
	struct sent req = *take_sent(CM_REQ);
	struct cm_reply reply = a_reply(B);

	world_deliver(&req);
	c.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	assert_int_equal(cm_send_rep(c.server, &reply), 0);
	take_sent(CM_REP);
	world_deliver(&req);
	nothing_sent();
	nothing_told();
	/* Nothing is sent until the REP is repeated. */
	world_deliver(sent_after_ms(4096, CM_REP));
	take_event(client, CM_EVENT_RESPONSE, 0);
	assert_int_equal(cm_send_rtu(c.client, nothing), 0);
	pass(CM_RTU);
	take_event(server, CM_EVENT_ESTABLISHED, 0);
	world_deliver(&req);
	nothing_sent();
	forget(&c);
}

TEST(rep_twice)
{
	struct connection c = replied();

	pass_twice(CM_REP);
	take_event(client, CM_EVENT_RESPONSE, 0);
	nothing_told();
	pass(CM_MRA);
	forget(&c);
}

TEST(rtu_is_lost)
{
	struct connection c = answered();
	struct sent rtu;

	assert_int_equal(cm_send_rtu(c.client, (struct cm_private){"ready", 5}), 0);
	rtu = *take_sent(CM_RTU);
	world_deliver(sent_after_ms(4096, CM_REP));
	assert_memory_equal(world.sent[0].mad, rtu.mad, CM_MAD_BYTES);
	pass_twice(CM_RTU);
	take_event(server, CM_EVENT_ESTABLISHED, 0);
	nothing_told();
	forget(&c);
}

TEST(nothing_is_due)
{
	struct connection c = established();

	pass_ms(1000000);
	nothing_sent();
	forget(&c);
}

int main(void)
{
	return run_cases(.setup = world_open, .teardown = world_close);
}
