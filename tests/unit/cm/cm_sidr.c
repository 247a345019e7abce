/* SPDX-License-Identifier: BSD-2-Clause */
/* Resolution of service ids (IBTA 12.11): UD has no connections, but requests a QP. */
#include "test_case.h"

#include "../support/cm_world.h"

static const struct cm_private nothing;

static struct cm_sidr_request a_sidr_request(void)
{
	return (struct cm_sidr_request){
		.path = path_from(A), .service_id = SIDR_SERVICE, .private_data = {"question", 8}};
}

struct resolution {
	struct cm_id *listener, *client, *server;
};

static struct resolution asked(void)
{
	struct resolution r = {.listener = make(B, listener), .client = make(A, client)};
	struct cm_sidr_request request = a_sidr_request();

	assert_int_equal(cm_listen(r.listener, SIDR_SERVICE), 0);
	assert_int_equal(cm_send_sidr_req(r.client, &request), 0);
	assert_int_equal(cm_id_state(r.client), CM_STATE_SIDR_REQ_SENT);
	return r;
}

static struct resolution heard(void)
{
	struct resolution r = asked();

	pass(CM_SIDR_REQ);
	r.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	assert_int_equal(cm_id_state(r.server), CM_STATE_SIDR_REQ_RCVD);
	return r;
}

static void end(struct resolution *r)
{
	struct connection c = {.listener = r->listener, .client = r->client, .server = r->server};

	forget(&c);
}

TEST(sidr_req_has)
{
	struct resolution r = asked();
	const struct cm_sidr_req *sidr_req = &world.sent[0].message.sidr_req;

	assert_int_equal(sidr_req->request_id >> 18, SLOT_A);
	assert_int_equal(sidr_req->pkey, 0xffff);
	assert_int_equal(sidr_req->service_id, SIDR_SERVICE);
	assert_memory_equal(sidr_req->private_data, "question\0", 9);
	take_sent(CM_SIDR_REQ);
	end(&r);
	nothing_sent();
}

TEST(resolved)
{
	struct resolution r = heard();
	struct cm_sidr_reply reply = {.qpn = QPN_B, .qkey = 0x01234567};
	struct cm_parameters known;
	const struct sent *sent = &world.sent[0];
	const struct cm_sidr_rep *sidr_rep = &sent->message.sidr_rep;

	reply.private_data = (struct cm_private){"answer", 6};
	cm_id_query(r.client, &known);
	assert_int_equal(cm_send_sidr_rep(r.server, &reply), 0);
	assert_int_equal(cm_id_state(r.server), CM_STATE_IDLE);
	assert_int_equal(sidr_rep->request_id, known.local_comm_id);
	assert_int_equal(sidr_rep->status, 0);
	assert_int_equal(sidr_rep->qpn, QPN_B);
	assert_int_equal(sidr_rep->qkey, 0x01234567);
	assert_int_equal(sidr_rep->service_id, SIDR_SERVICE);
	/* A SIDR_REQ names no vendor, so its reply does not either. */
	assert_int_equal(sidr_rep->vendor_id_high, 0);
	assert_int_equal(sidr_rep->vendor_id_low, 0);
	assert_int_equal(sent->message.attribute_modifier, 0);
	assert_memory_equal(sidr_rep->private_data, "answer\0", 7);
	pass_twice(CM_SIDR_REP);
	assert_int_equal(take_event(client, CM_EVENT_SIDR_RESPONSE, 0)->message.sidr_rep.qpn, QPN_B);
	nothing_told();
	assert_int_equal(cm_id_state(r.client), CM_STATE_IDLE);
	cm_id_query(r.client, &known);
	assert_int_equal(known.remote_ece_vendor, 0);
	end(&r);
	nothing_sent();
}

TEST(refused)
{
	struct resolution r = heard();
	struct cm_sidr_reply reply = {.status = CM_SIDR_REJECTED, .qpn = QPN_B, .qkey = 1};

	assert_int_equal(cm_send_sidr_rep(r.server, &reply), 0);
	assert_int_equal(world.sent[0].message.sidr_rep.qpn, 0);
	assert_int_equal(world.sent[0].message.sidr_rep.qkey, 0);
	pass(CM_SIDR_REP);
	take_event(client, CM_EVENT_SIDR_RESPONSE, 2);
	end(&r);
	nothing_sent();
}

TEST(no_listener)
{
	struct resolution r = {.client = make(A, client)};
	struct cm_sidr_request request = a_sidr_request();

	assert_int_equal(cm_send_sidr_req(r.client, &request), 0);
	pass(CM_SIDR_REQ);
	pass(CM_SIDR_REP);
	take_event(client, CM_EVENT_SIDR_RESPONSE, 1);
	end(&r);
}

TEST(listener_drops_and_rejects)
{
	struct resolution r = asked();
	struct sent sent = *take_sent(CM_SIDR_REQ);

	world.hosts[B].verdict = CM_DROP;
	world_deliver(&sent);
	take_event(listener, CM_EVENT_REQUEST, 0);
	nothing_sent();
	world.hosts[B].verdict = CM_REJECT;
	world_deliver(&sent);
	take_event(listener, CM_EVENT_REQUEST, 0);
	pass(CM_SIDR_REP);
	take_event(client, CM_EVENT_SIDR_RESPONSE, 2);
	end(&r);
}

TEST(destroyed_unanswered)
{
	struct resolution r = heard();

	cm_id_destroy(r.server);
	r.server = NULL;
	pass(CM_SIDR_REP);
	take_event(client, CM_EVENT_SIDR_RESPONSE, 2);
	end(&r);
	nothing_sent();
}

TEST(asked_twice)
{
	struct resolution r = asked();
	struct sent sent = *take_sent(CM_SIDR_REQ);

	world_deliver(&sent);
	r.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	world_deliver(&sent);
	nothing_told();
	nothing_sent();
	/* The same number from another host is another request. */
	sent.path.source.raw[15] = 99;
	world_deliver(&sent);
	cm_id_destroy(take_event(listener, CM_EVENT_REQUEST, 0)->child);
	take_sent(CM_SIDR_REP);
	/* The same number is also a new request once the first was answered: a SIDR_REP may be lost. */
	assert_int_equal(cm_send_sidr_rep(r.server, &(const struct cm_sidr_reply){.qpn = QPN_B}), 0);
	take_sent(CM_SIDR_REP);
	sent.path.source = world.hosts[A].gid;
	world_deliver(&sent);
	cm_id_destroy(take_event(listener, CM_EVENT_REQUEST, 0)->child);
	pass(CM_SIDR_REP);
	take_event(client, CM_EVENT_SIDR_RESPONSE, 2);
	end(&r);
}

TEST(wrong_states)
{
	struct resolution r = heard();
	struct cm_sidr_request request = a_sidr_request();
	struct cm_sidr_reply reply = {.qpn = QPN_B};

	assert_int_equal(cm_send_sidr_req(r.client, &request), -EINVAL);
	assert_int_equal(cm_send_sidr_rep(r.client, &reply), -EINVAL);
	assert_int_equal(cm_send_rej(r.server, 28, nothing, nothing), -EINVAL);
	reply.private_data.length = 137;
	assert_int_equal(cm_send_sidr_rep(r.server, &reply), -EINVAL);
	assert_int_equal(cm_id_state(r.server), CM_STATE_SIDR_REQ_RCVD);
	nothing_sent();
	end(&r);
}

int main(void)
{
	return run_cases(.setup = world_open, .teardown = world_close);
}
