/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests on the passive side: no listener, listeners that decline, stale connections, repeated REQs, and invalid
 * messages.
 */
#include "test_case.h"

#include "../support/cm_world.h"

static const struct cm_private nothing;

/* Returns the client's REQ again, as from another id and QP. */
static struct sent another(const struct sent *req, uint32_t comm_id, uint32_t qpn)
{
	struct sent other = *req;

	other.message.req.local_comm_id = comm_id;
	other.message.req.local_qpn = qpn;
	cm_pack(&other.message, other.mad);
	return other;
}

static void expect_refused(const struct sent *req, uint16_t reason)
{
	const struct sent *sent;

	world_deliver(req);
	sent = take_sent(CM_REJ);
	assert_int_equal(sent->from, B);
	assert_memory_equal(&sent->path.destination, &req->path.source, 16);
	assert_int_equal(sent->message.transaction_id, req->message.transaction_id);
	assert_int_equal(sent->message.rej.local_comm_id, 0);
	assert_int_equal(sent->message.rej.remote_comm_id, req->message.req.local_comm_id);
	assert_int_equal(sent->message.rej.message_rejected, 0);
	assert_int_equal(sent->message.rej.reason, reason);
	nothing_told();
}

/*
 * ---- no listener
 * --------------------------------------------------------------------------------------------------------
 */

TEST(no_listener)
{
	struct connection c = {.listener = make(B, listener), .client = make(A, client)};
	struct cm_request request = a_request(A);
	struct sent req;

	assert_int_equal(cm_listen(c.listener, SERVICE + 1), 0);
	assert_int_equal(cm_send_req(c.client, &request), 0);
	req = *take_sent(CM_REQ);
	expect_refused(&req, 8);
	forget(&c);
}

static void graceful(struct cm_config *config, void **state)
{
	world_close(state);
	config->grace_ms = 50;
	world_begin(config);
}

TEST(grace_ends)
{
	struct cm_config config = {.grace_ms = 50};
	struct connection c = {.listener = NULL};
	struct cm_request request;

	graceful(&config, state);
	request = a_request(A);
	c.client = make(A, client);
	assert_int_equal(cm_send_req(c.client, &request), 0);
	pass(CM_REQ);
	world_deliver(sent_after_ms(50, CM_REJ));
	take_event(client, CM_EVENT_REJECTED, 8);
	forget(&c);
}

TEST(listener_within_grace)
{
	struct cm_config config = {.grace_ms = 50};
	struct connection c = {.listener = NULL};
	struct cm_request request;

	graceful(&config, state);
	request = a_request(A);
	c.client = make(A, client);
	assert_int_equal(cm_send_req(c.client, &request), 0);
	pass_twice(CM_REQ);
	pass_ms(49);
	nothing_sent();
	c.listener = make_listener();
	/* On the thread of the timers: the listening thread may hold locks that the handler needs. */
	nothing_told();
	pass_ms(0);
	world.now_ns += 2000;
	pass_ms(0);
	c.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	/* The other REQ is a duplicate of the first. */
	take_sent(CM_MRA);
	nothing_told();
	forget(&c);
}

/* docs/reference/limits.md, CM_HELD: 64 wait. */
TEST(grace_is_not_for_all)
{
	struct cm_config config = {.grace_ms = 50};
	struct connection c = {.listener = NULL};
	struct cm_request request;
	struct sent req;

	graceful(&config, state);
	request = a_request(A);
	c.client = make(A, client);
	assert_int_equal(cm_send_req(c.client, &request), 0);
	req = *take_sent(CM_REQ);
	for (uint32_t i = 0; i < 64; i++) {
		struct sent other = another(&req, 1000 + i, 1000 + i);

		world_deliver(&other);
		nothing_sent();
	}
	expect_refused(&req, 8);
	/* Waiting requests are freed with the manager. */
	forget(&c);
}

/* ---- listeners ---------------------------------------------------------------------------------------------------------- */

TEST(listener_drops)
{
	struct connection c = requested();
	struct sent req = *take_sent(CM_REQ);

	world.hosts[B].verdict = CM_DROP;
	world_deliver(&req);
	take_event(listener, CM_EVENT_REQUEST, 0);
	nothing_sent();
	/* There is room when it arrives again. */
	world.hosts[B].verdict = CM_TAKE;
	world_deliver(&req);
	c.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	nothing_sent();
	forget(&c);
}

TEST(listener_rejects)
{
	struct connection c = requested();
	struct sent req = *take_sent(CM_REQ);

	world.hosts[B].verdict = CM_REJECT;
	world_deliver(&req);
	take_event(listener, CM_EVENT_REQUEST, 0);
	assert_int_equal(world.sent[0].message.rej.reason, 28);
	assert_int_equal(world.sent[0].message.rej.local_comm_id, 0);
	assert_int_equal(world.sent[0].message.rej.message_rejected, 0);
	take_sent(CM_REJ);
	world.hosts[B].reason = 9;
	world_deliver(&req);
	take_event(listener, CM_EVENT_REQUEST, 0);
	pass(CM_REJ);
	take_event(client, CM_EVENT_REJECTED, 9);
	forget(&c);
}

TEST(listeners_are_asked_in_turn)
{
	struct connection c = requested();
	struct cm_id *other = make(B, server), *third = make(B, client);

	world.hosts[B].not_mine = listener;
	assert_int_equal(cm_listen(other, SERVICE), 0);
	assert_int_equal(cm_listen(third, SERVICE), 0);
	pass(CM_REQ);
	c.server = take_event(server, CM_EVENT_REQUEST, 0)->child;
	nothing_told();
	forget(&c);
	cm_id_destroy(other);
	cm_id_destroy(third);
}

/* There is a listener on the port, but at another address. */
TEST(listener_declines)
{
	struct connection c = requested();

	world.hosts[B].not_mine = listener;
	pass(CM_REQ);
	nothing_told();
	pass(CM_REJ);
	take_event(client, CM_EVENT_REJECTED, 28);
	forget(&c);
}

/* ---- stale connections ---------------------------------------------------------------------------------------------------- */

/* The client's process was killed and its QP number reused; the server did not notice. */
TEST(stale_by_req)
{
	struct connection c = requested();
	struct sent req = *take_sent(CM_REQ), again = another(&req, 1000, QPN_A);
	struct cm_reply reply = a_reply(B);

	world_deliver(&req);
	c.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	/* Not established yet: nothing to release. */
	expect_refused(&again, 10);
	assert_int_equal(cm_send_rep(c.server, &reply), 0);
	take_sent(CM_REP);
	expect_refused(&again, 10);
	assert_int_equal(cm_establish(c.server), 0);
	take_event(server, CM_EVENT_ESTABLISHED, 0);
	expect_refused(&again, 10);
	assert_int_equal(cm_id_state(c.server), CM_STATE_DREQ_SENT);
	/* The new process does not know that connection, and rejects it. */
	cm_id_destroy(c.client);
	c.client = NULL;
	world_deliver(&world.sent[0]);
	assert_int_equal(world.sent[2].message.kind, CM_DREP);
	world_deliver(&world.sent[2]);
	take_event(server, CM_EVENT_DISCONNECTED, 0);
	world.sent_count = 0;
	/* The next attempt succeeds. */
	world_deliver(&again);
	cm_id_destroy(take_event(listener, CM_EVENT_REQUEST, 0)->child);
	forget(&c);
}

TEST(other_guid_is_not_stale)
{
	struct connection c = requested();
	struct sent req = *take_sent(CM_REQ), other = another(&req, 1000, QPN_A);

	world_deliver(&req);
	c.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	other.message.req.local_ca_guid++;
	cm_pack(&other.message, other.mad);
	world_deliver(&other);
	cm_id_destroy(take_event(listener, CM_EVENT_REQUEST, 0)->child);
	forget(&c);
}

/*
 * A CA GUID is not a secret: another host that uses the client's GUID does not match its connections, and does not
 * disturb them.
 */
TEST(stranger_is_not_stale)
{
	struct connection c = requested();
	struct sent req = *take_sent(CM_REQ), other;
	struct cm_reply reply = a_reply(B);

	world_deliver(&req);
	c.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	assert_int_equal(cm_send_rep(c.server, &reply), 0);
	pass(CM_REP);
	take_event(client, CM_EVENT_RESPONSE, 0);
	assert_int_equal(cm_send_rtu(c.client, nothing), 0);
	pass(CM_RTU);
	take_event(server, CM_EVENT_ESTABLISHED, 0);
	for (uint32_t comm_id = 0; comm_id < 2; comm_id++) {
		/* The same id, as if the REQ were repeated; another one, as if its QP were reused. */
		other = another(&req, req.message.req.local_comm_id + comm_id, QPN_A);
		other.path.source.raw[15] = 77;
		memcpy(other.message.req.primary_local_gid, &other.path.source, sizeof(other.path.source));
		cm_pack(&other.message, other.mad);
		world_deliver(&other);
		cm_id_destroy(take_event(listener, CM_EVENT_REQUEST, 0)->child);
		take_sent(CM_REJ);
	}
	assert_int_equal(cm_id_state(c.server), CM_STATE_ESTABLISHED);
	forget(&c);
}

/* The server names a QP with which the client already has a connection. */
TEST(stale_by_rep)
{
	struct connection c = established();
	struct cm_id *second = make(A, client), *child;
	struct cm_request request = a_request(A);
	struct cm_reply reply = a_reply(B);
	const struct cm_rej *rej = &world.sent[0].message.rej;

	request.qpn++;
	assert_int_equal(cm_send_req(second, &request), 0);
	pass(CM_REQ);
	child = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	assert_int_equal(cm_send_rep(child, &reply), 0);
	pass(CM_REP);
	assert_int_equal(rej->reason, 10);
	assert_int_equal(rej->message_rejected, 1);
	pass(CM_REJ);
	take_event(server, CM_EVENT_REJECTED, 10);
	assert_int_equal(cm_id_state(child), CM_STATE_TIMEWAIT);
	assert_int_equal(cm_id_state(c.client), CM_STATE_DREQ_SENT);
	pass(CM_DREQ);
	take_event(server, CM_EVENT_DISCONNECTED, 0);
	cm_id_destroy(child);
	cm_id_destroy(second);
	forget(&c);
}

TEST(client_is_stale)
{
	struct connection c = requested();
	struct sent req = *take_sent(CM_REQ), before = another(&req, 1000, QPN_A);
	struct cm_id *old;

	world_deliver(&before);
	old = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	world_deliver(&req);
	pass(CM_REJ);
	take_event(client, CM_EVENT_REJECTED, 10);
	/* Its QP is in TIMEWAIT. Lifetime 16: code 17, 2^9 ms. */
	assert_int_equal(cm_id_state(c.client), CM_STATE_TIMEWAIT);
	pass_ms(511);
	nothing_told();
	pass_ms(2);
	take_event(client, CM_EVENT_TIMEWAIT_EXIT, 0);
	cm_id_destroy(old);
	forget(&c);
}

/* The network delayed a REQ until its connection had ended. */
TEST(req_in_timewait)
{
	struct connection c = requested();
	struct sent req = *take_sent(CM_REQ);
	struct cm_reply reply = a_reply(B);

	world_deliver(&req);
	c.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	assert_int_equal(cm_send_rep(c.server, &reply), 0);
	take_sent(CM_REP);
	assert_int_equal(cm_send_rej(c.server, 28, nothing, nothing), 0);
	take_sent(CM_REJ);
	assert_int_equal(cm_id_state(c.server), CM_STATE_TIMEWAIT);
	expect_refused(&req, 10);
	forget(&c);
}

TEST(rep_of_a_known_id)
{
	struct connection c = established();
	struct cm_id *second = make(A, client);
	struct cm_request request = a_request(A);
	struct cm_message rep = {.kind = CM_REP};
	struct cm_parameters known;

	request.qpn++;
	assert_int_equal(cm_send_req(second, &request), 0);
	take_sent(CM_REQ);
	cm_id_query(c.server, &known);
	rep.rep.local_comm_id = known.local_comm_id;
	rep.rep.local_ca_guid = GUID_B;
	rep.rep.local_qpn = 77;
	cm_id_query(second, &known);
	rep.rep.remote_comm_id = known.local_comm_id;
	inject(B, &rep);
	nothing_told();
	nothing_sent();
	cm_id_destroy(second);
	forget(&c);
}

/*
 * ---- invalid messages
 * ---------------------------------------------------------------------------------------------------
 */

TEST(other_addresses)
{
	struct connection c = requested();
	struct sent req = *take_sent(CM_REQ), other = req;

	other.message.req.primary_local_gid[15] ^= 1;
	cm_pack(&other.message, other.mad);
	expect_refused(&other, 12);
	other = req;
	other.message.req.primary_remote_gid[15] ^= 1;
	cm_pack(&other.message, other.mad);
	expect_refused(&other, 12);
	forget(&c);
}

TEST(other_transports)
{
	struct connection c = requested();
	struct sent req = *take_sent(CM_REQ), other = req;

	other.message.req.transport_service = 2;
	cm_pack(&other.message, other.mad);
	expect_refused(&other, 9);
	other.message.req.transport_service = 3;
	other.message.req.extended_transport = 2;
	cm_pack(&other.message, other.mad);
	expect_refused(&other, 9);
	forget(&c);
}

TEST(other_mtus)
{
	static const uint8_t mtus[] = {0, 6, 15};
	struct connection c = requested();
	struct sent req = *take_sent(CM_REQ);

	for (size_t i = 0; i < sizeof(mtus); i++) {
		req.message.req.path_mtu = mtus[i];
		cm_pack(&req.message, req.mad);
		expect_refused(&req, 26);
	}
	forget(&c);
}

/* A sender at another address that guesses the ids of a connection has no effect. */
TEST(others_interfere)
{
	static const enum cm_message_kind kinds[] = {CM_REJ, CM_DREQ, CM_DREP};
	struct connection c = established();
	struct cm_parameters a, b;

	cm_id_query(c.client, &a);
	cm_id_query(c.server, &b);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct cm_message message = {.kind = kinds[i]};
		struct sent sent = {.path = path_from(A)};

		message.dreq.local_comm_id = a.local_comm_id;
		message.dreq.remote_comm_id = b.local_comm_id;
		if (kinds[i] == CM_DREQ)
			message.dreq.remote_qpn = QPN_B;
		sent.path.source.raw[15] = 99;
		cm_pack(&message, sent.mad);
		world_deliver(&sent);
		nothing_sent();
		nothing_told();
		assert_int_equal(cm_id_state(c.server), CM_STATE_ESTABLISHED);
	}
	forget(&c);
}

TEST(is_dropped)
{
	struct connection c = requested();
	struct sent sent = *take_sent(CM_REQ);

	sent.mad[1] = 3;
	world_deliver(&sent);
	nothing_sent();
	nothing_told();
	for (enum cm_message_kind kind = CM_MRA; kind < CM_MESSAGE_KINDS; kind++) {
		if (kind == CM_DREQ || kind == CM_SIDR_REQ)
			continue;
		inject(A, &(const struct cm_message){.kind = kind});
		nothing_sent();
		nothing_told();
	}
	forget(&c);
}

int main(void)
{
	return run_cases(.setup = world_open, .teardown = world_close);
}
