/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends of connections: DREQ and DREP, including simultaneous ones, TIMEWAIT, REJ, destruction in every state, processes
 * that end. Messages and their times are those of Linux.
 */
#include "test_case.h"

#include "../support/cm_world.h"

static const struct cm_private nothing;

static enum cm_peer_fate its_server(void *argument, const struct cm_peer *peer)
{
	(void)argument;
	/* The slot of the peer's process, if it is known; otherwise the service that the id requested. */
	return (peer->comm_id ? peer->comm_id >> 18 == SLOT_B : peer->service_id == SERVICE) ? CM_PEER_ENDED
											     : CM_PEER_LIVES;
}

static enum cm_peer_fate its_client(void *argument, const struct cm_peer *peer)
{
	(void)argument;
	assert_int_equal(peer->service_id, 0);
	assert_memory_equal(&peer->path->destination, &world.hosts[A].gid, 16);
	return peer->comm_id >> 18 == SLOT_A ? CM_PEER_ENDED : CM_PEER_LIVES;
}

static enum cm_peer_fate every_peer_lives(void *argument, const struct cm_peer *peer)
{
	(void)argument, (void)peer;
	return CM_PEER_LIVES;
}

static void expect_rej(uint16_t reason, uint8_t rejected, uint32_t local, uint32_t remote)
{
	const struct cm_rej *rej = &world.sent[0].message.rej;

	assert_int_equal(world.sent_count, 1);
	assert_int_equal(rej->reason, reason);
	assert_int_equal(rej->message_rejected, rejected);
	assert_int_equal(rej->local_comm_id, local);
	assert_int_equal(rej->remote_comm_id, remote);
}

static struct cm_parameters known(struct cm_id *id)
{
	struct cm_parameters parameters;

	cm_id_query(id, &parameters);
	return parameters;
}

/* ---- DREQ and DREP ----------------------------------------------------------------------------------------------------- */

TEST(release)
{
	struct connection c = established();
	struct cm_parameters a = known(c.client), b = known(c.server);
	const struct cm_dreq *dreq = &world.sent[0].message.dreq;
	const struct cm_drep *drep = &world.sent[0].message.drep;

	assert_int_equal(cm_send_dreq(c.client, (struct cm_private){"bye", 3}), 0);
	assert_int_equal(dreq->local_comm_id, a.local_comm_id);
	assert_int_equal(dreq->remote_comm_id, b.local_comm_id);
	assert_int_equal(dreq->remote_qpn, QPN_B);
	assert_memory_equal(dreq->private_data, "bye\0", 4);
	pass(CM_DREQ);
	assert_int_equal(take_event(server, CM_EVENT_DISCONNECTED, 0)->message.kind, CM_DREQ);
	assert_int_equal(cm_id_state(c.server), CM_STATE_DREQ_RCVD);
	nothing_sent();
	/* The program is not asked for permission, but the DREP is delayed until it answers. */
	assert_int_equal(cm_send_drep(c.server, (struct cm_private){"good", 4}), 0);
	assert_int_equal(drep->local_comm_id, b.local_comm_id);
	assert_int_equal(drep->remote_comm_id, a.local_comm_id);
	assert_memory_equal(drep->private_data, "good\0", 5);
	assert_int_equal(cm_id_state(c.server), CM_STATE_TIMEWAIT);
	pass(CM_DREP);
	assert_int_equal(take_event(client, CM_EVENT_DISCONNECTED, 0)->message.kind, CM_DREP);
	assert_int_equal(cm_id_state(c.client), CM_STATE_TIMEWAIT);
	/* Code 18: 2^10 ms. */
	pass_ms(1023);
	nothing_told();
	pass_ms(2);
	assert_int_equal(world.told_count, 2);
	assert_int_equal(world.told[0].kind, CM_EVENT_TIMEWAIT_EXIT);
	assert_int_equal(world.told[1].kind, CM_EVENT_TIMEWAIT_EXIT);
	world.told_count = 0;
	assert_int_equal(cm_id_state(c.client), CM_STATE_IDLE);
	assert_int_equal(cm_id_state(c.server), CM_STATE_IDLE);
	forget(&c);
	nothing_sent();
}

/* A delay of 15, that of rxe: code 17, 2^9 ms. */
TEST(timewait_goes_by_the_peers_delay)
{
	struct connection c;

	world_close(state);
	world_begin(&(const struct cm_config){.ack_delay = 15});
	c = established();
	assert_int_equal(cm_send_dreq(c.client, nothing), 0);
	pass(CM_DREQ);
	take_event(server, CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(cm_send_drep(c.server, nothing), 0);
	take_sent(CM_DREP);
	pass_ms(511);
	nothing_told();
	pass_ms(2);
	take_event(server, CM_EVENT_TIMEWAIT_EXIT, 0);
	forget(&c);
}

TEST(dreq_twice)
{
	struct connection c = established();

	assert_int_equal(cm_send_dreq(c.client, nothing), 0);
	pass_twice(CM_DREQ);
	take_event(server, CM_EVENT_DISCONNECTED, 0);
	nothing_told();
	nothing_sent();
	forget(&c);
}

TEST(drep_is_lost)
{
	struct connection c = established();
	struct sent dreq, drep;

	assert_int_equal(cm_send_dreq(c.client, nothing), 0);
	dreq = *take_sent(CM_DREQ);
	world_deliver(&dreq);
	take_event(server, CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(cm_send_drep(c.server, (struct cm_private){"good", 4}), 0);
	drep = *take_sent(CM_DREP);
	world_deliver(&dreq);
	assert_memory_equal(take_sent(CM_DREP)->mad, drep.mad, CM_MAD_BYTES);
	/* TIMEWAIT has ended: from then on the DREP belongs to no connection. */
	pass_ms(1025);
	take_event(server, CM_EVENT_TIMEWAIT_EXIT, 0);
	world_deliver(&dreq);
	assert_int_equal(world.sent[0].message.drep.private_data[0], 0);
	pass(CM_DREP);
	take_event(client, CM_EVENT_DISCONNECTED, 0);
	forget(&c);
}

TEST(dreq_for_an_unknown_id)
{
	struct cm_message dreq = {.kind = CM_DREQ, .transaction_id = 99};
	const struct sent *sent;

	dreq.dreq.local_comm_id = 0x11121314;
	dreq.dreq.remote_comm_id = 0x21222324;
	inject(A, &dreq);
	sent = take_sent(CM_DREP);
	assert_int_equal(sent->from, B);
	assert_memory_equal(&sent->path.destination, &world.hosts[A].gid, 16);
	assert_int_equal(sent->message.transaction_id, 99);
	assert_int_equal(sent->message.drep.local_comm_id, 0x21222324);
	assert_int_equal(sent->message.drep.remote_comm_id, 0x11121314);
}

TEST(dreq_about_another_qp)
{
	struct connection c = established();
	struct sent dreq;

	assert_int_equal(cm_send_dreq(c.client, nothing), 0);
	dreq = *take_sent(CM_DREQ);
	dreq.message.dreq.remote_qpn++;
	cm_pack(&dreq.message, dreq.mad);
	world_deliver(&dreq);
	assert_int_equal(cm_id_state(c.server), CM_STATE_ESTABLISHED);
	nothing_told();
	nothing_sent();
	forget(&c);
}

/* The RTU was lost, and the client has finished. */
TEST(dreq_instead_of_rtu)
{
	struct connection c = answered();

	assert_int_equal(cm_send_rtu(c.client, nothing), 0);
	take_sent(CM_RTU);
	assert_int_equal(cm_send_dreq(c.client, nothing), 0);
	pass(CM_DREQ);
	take_event(server, CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(cm_send_drep(c.server, nothing), 0);
	pass(CM_DREP);
	take_event(client, CM_EVENT_DISCONNECTED, 0);
	forget(&c);
}

/* Each side's own DREQ counts as answered. */
TEST(dreqs_cross)
{
	struct connection c = established();

	assert_int_equal(cm_send_dreq(c.client, nothing), 0);
	assert_int_equal(cm_send_dreq(c.server, nothing), 0);
	pass(CM_DREQ);
	pass(CM_DREQ);
	take_event(server, CM_EVENT_DISCONNECTED, 0);
	take_event(client, CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(cm_id_state(c.client), CM_STATE_DREQ_RCVD);
	assert_int_equal(cm_id_state(c.server), CM_STATE_DREQ_RCVD);
	/* Neither side repeats a message. */
	pass_ms(100000);
	nothing_sent();
	cm_id_destroy(c.client);
	c.client = NULL;
	pass(CM_DREP);
	nothing_told();
	assert_int_equal(cm_id_state(c.server), CM_STATE_TIMEWAIT);
	pass_ms(1025);
	take_event(server, CM_EVENT_TIMEWAIT_EXIT, 0);
	forget(&c);
	nothing_sent();
}

/* A QP may be connected again as soon as TIMEWAIT has begun, and is not considered stale. */
TEST(qp_is_free_in_timewait)
{
	struct connection c = established();
	struct cm_request request = a_request(A);
	struct cm_id *again = make(A, client);

	assert_int_equal(cm_send_dreq(c.client, nothing), 0);
	pass(CM_DREQ);
	take_event(server, CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(cm_send_drep(c.server, nothing), 0);
	pass(CM_DREP);
	take_event(client, CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(cm_send_req(again, &request), 0);
	pass(CM_REQ);
	cm_id_destroy(take_event(listener, CM_EVENT_REQUEST, 0)->child);
	take_sent(CM_REJ);
	cm_id_destroy(again);
	forget(&c);
}

/* ---- REJ ------------------------------------------------------------------------------------------------------------------ */

TEST(server_rejects)
{
	struct connection c = received();
	const struct told *told;

	assert_int_equal(cm_send_rej(c.server, 28, (struct cm_private){"info", 4}, (struct cm_private){"no", 2}), 0);
	expect_rej(28, 0, known(c.server).local_comm_id, known(c.client).local_comm_id);
	assert_int_equal(world.sent[0].message.rej.info_length, 4);
	assert_int_equal(cm_id_state(c.server), CM_STATE_IDLE);
	pass(CM_REJ);
	told = take_event(client, CM_EVENT_REJECTED, 28);
	assert_memory_equal(told->message.rej.private_data, "no\0", 3);
	assert_memory_equal(told->message.rej.info, "info\0", 5);
	assert_int_equal(cm_id_state(c.client), CM_STATE_IDLE);
	forget(&c);
	nothing_sent();
}

TEST(client_rejects)
{
	struct connection c = answered();

	assert_int_equal(cm_send_rej(c.client, 28, nothing, nothing), 0);
	expect_rej(28, 1, known(c.client).local_comm_id, known(c.server).local_comm_id);
	assert_int_equal(cm_id_state(c.client), CM_STATE_IDLE);
	pass(CM_REJ);
	take_event(server, CM_EVENT_REJECTED, 28);
	assert_int_equal(cm_id_state(c.server), CM_STATE_IDLE);
	forget(&c);
	nothing_sent();
}

TEST(server_rejects_after_its_rep)
{
	struct connection c = answered();

	assert_int_equal(cm_send_rej(c.server, 28, nothing, nothing), 0);
	expect_rej(28, 2, known(c.server).local_comm_id, known(c.client).local_comm_id);
	assert_int_equal(cm_id_state(c.server), CM_STATE_TIMEWAIT);
	pass(CM_REJ);
	take_event(client, CM_EVENT_REJECTED, 28);
	assert_int_equal(cm_id_state(c.client), CM_STATE_TIMEWAIT);
	pass_ms(1025);
	assert_int_equal(world.told_count, 2);
	world.told_count = 0;
	forget(&c);
}

/* The REP was lost, so the client does not know the id of the side that rejects. */
TEST(rej_overtakes_rep)
{
	struct connection c = replied();

	take_sent(CM_REP);
	cm_id_destroy(c.server);
	c.server = NULL;
	pass(CM_REJ);
	take_event(client, CM_EVENT_REJECTED, 28);
	forget(&c);
	nothing_sent();
}

TEST(rej_of_an_established_connection)
{
	struct connection c = answered();

	assert_int_equal(cm_send_rtu(c.client, nothing), 0);
	take_sent(CM_RTU);
	cm_id_destroy(c.server);
	c.server = NULL;
	pass(CM_REJ);
	take_event(client, CM_EVENT_REJECTED, 28);
	assert_int_equal(cm_id_state(c.client), CM_STATE_TIMEWAIT);
	pass_ms(1025);
	take_event(client, CM_EVENT_TIMEWAIT_EXIT, 0);
	forget(&c);
}

/* ---- destruction ------------------------------------------------------------------------------------------------------------ */

static void expect_rej_4(struct connection *c)
{
	static const uint8_t guid[] = {0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7};
	uint32_t local = known(c->client).local_comm_id;

	cm_id_destroy(c->client);
	c->client = NULL;
	expect_rej(4, 2, local, 0);
	assert_int_equal(world.sent[0].message.rej.info_length, 8);
	assert_memory_equal(world.sent[0].message.rej.info, guid, 8);
}

TEST(destroyed_in_req_sent)
{
	struct connection c = received();

	expect_rej_4(&c);
	pass(CM_REJ);
	/* The program has not accepted, and the call will fail when it does. */
	nothing_told();
	assert_int_equal(cm_id_state(c.server), CM_STATE_IDLE);
	assert_int_equal(cm_send_rep(c.server, &(const struct cm_reply){.qpn = QPN_B}), -EINVAL);
	forget(&c);
	nothing_sent();
}

TEST(destroyed_in_mra_req_rcvd)
{
	struct connection c = requested();
	struct cm_reply reply = a_reply(B);

	pass_twice(CM_REQ);
	c.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	pass(CM_MRA);
	assert_int_equal(cm_send_rep(c.server, &reply), 0);
	take_sent(CM_REP);
	expect_rej_4(&c);
	pass(CM_REJ);
	take_event(server, CM_EVENT_REJECTED, 4);
	forget(&c);
	nothing_sent();
}

TEST(destroyed_in_mra_req_sent)
{
	struct connection c = received();
	uint32_t local = known(c.server).local_comm_id;

	cm_id_destroy(c.server);
	c.server = NULL;
	expect_rej(28, 0, local, known(c.client).local_comm_id);
	pass(CM_REJ);
	take_event(client, CM_EVENT_REJECTED, 28);
	forget(&c);
	nothing_sent();
}

TEST(destroyed_in_rep_sent)
{
	struct connection c = answered();
	uint32_t local = known(c.server).local_comm_id;

	cm_id_destroy(c.server);
	c.server = NULL;
	expect_rej(28, 2, local, known(c.client).local_comm_id);
	pass(CM_REJ);
	take_event(client, CM_EVENT_REJECTED, 28);
	forget(&c);
}

TEST(destroyed_in_mra_rep_sent)
{
	struct connection c = answered();
	uint32_t local = known(c.client).local_comm_id;

	cm_id_destroy(c.client);
	c.client = NULL;
	expect_rej(28, 1, local, known(c.server).local_comm_id);
	pass(CM_REJ);
	take_event(server, CM_EVENT_REJECTED, 28);
	forget(&c);
	nothing_sent();
}

TEST(destroyed_when_established)
{
	struct connection c = established();

	cm_id_destroy(c.client);
	c.client = NULL;
	pass(CM_DREQ);
	take_event(server, CM_EVENT_DISCONNECTED, 0);
	/* The reply is not awaited. */
	pass_ms(100000);
	nothing_sent();
	cm_id_destroy(c.server);
	c.server = NULL;
	pass(CM_DREP);
	forget(&c);
	nothing_sent();
}

TEST(destroyed_in_dreq_sent)
{
	struct connection c = established();
	struct sent dreq;

	assert_int_equal(cm_send_dreq(c.client, nothing), 0);
	dreq = *take_sent(CM_DREQ);
	cm_id_destroy(c.client);
	c.client = NULL;
	pass_ms(100000);
	nothing_sent();
	world_deliver(&dreq);
	take_event(server, CM_EVENT_DISCONNECTED, 0);
	forget(&c);
}

TEST(destroyed_in_timewait)
{
	struct connection c = established();
	struct sent dreq;

	assert_int_equal(cm_send_dreq(c.client, nothing), 0);
	dreq = *take_sent(CM_DREQ);
	world_deliver(&dreq);
	take_event(server, CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(cm_send_drep(c.server, nothing), 0);
	take_sent(CM_DREP);
	cm_id_destroy(c.server);
	c.server = NULL;
	pass_ms(2000);
	nothing_told();
	nothing_sent();
	world_deliver(&dreq);
	pass(CM_DREP);
	take_event(client, CM_EVENT_DISCONNECTED, 0);
	forget(&c);
}

TEST(destroyed_listener)
{
	struct connection c = requested();

	cm_id_destroy(c.listener);
	c.listener = NULL;
	pass(CM_REQ);
	pass(CM_REJ);
	take_event(client, CM_EVENT_REJECTED, 8);
	forget(&c);
}

/* ---- processes that end ------------------------------------------------------------------------------------------------------- */

TEST(peer_ends_when_established)
{
	struct connection c = established();

	cm_peer_ended(world.hosts[A].cm, every_peer_lives, NULL);
	assert_int_equal(cm_id_state(c.client), CM_STATE_ESTABLISHED);
	cm_peer_ended(world.hosts[A].cm, its_server, NULL);
	assert_false(take_event(client, CM_EVENT_DISCONNECTED, 0)->has_message);
	assert_int_equal(cm_id_state(c.client), CM_STATE_TIMEWAIT);
	cm_peer_ended(world.hosts[B].cm, its_client, NULL);
	take_event(server, CM_EVENT_DISCONNECTED, 0);
	nothing_sent();
	pass_ms(1025);
	assert_int_equal(world.told_count, 2);
	world.told_count = 0;
	cm_peer_ended(world.hosts[A].cm, its_server, NULL);
	nothing_told();
	forget(&c);
}

TEST(peer_ends_before)
{
	struct connection c = requested();

	take_sent(CM_REQ);
	cm_peer_ended(world.hosts[A].cm, its_server, NULL);
	take_event(client, CM_EVENT_REJECTED, 28);
	assert_int_equal(cm_id_state(c.client), CM_STATE_IDLE);
	forget(&c);
	world_close(state);
	world_open(state);
	c = received();
	cm_peer_ended(world.hosts[B].cm, its_client, NULL);
	nothing_told();
	assert_int_equal(cm_id_state(c.server), CM_STATE_IDLE);
	assert_int_equal(cm_id_state(c.listener), CM_STATE_LISTEN);
	forget(&c);
	world_close(state);
	world_open(state);
	c = answered();
	cm_peer_ended(world.hosts[B].cm, its_client, NULL);
	take_event(server, CM_EVENT_REJECTED, 28);
	cm_peer_ended(world.hosts[A].cm, its_server, NULL);
	assert_true(take_event(client, CM_EVENT_REJECTED, 28)->has_message);
	pass_ms(1025);
	take_event(client, CM_EVENT_TIMEWAIT_EXIT, 0);
	forget(&c);
}

static enum cm_peer_fate all_replaced(void *argument, const struct cm_peer *peer)
{
	(void)argument, (void)peer;
	return CM_PEER_REPLACED;
}

/*
 * Another process has the port now: the request is sent to it, even if it has the request already; an answered request
 * is not sent again.
 */
TEST(peer_is_replaced)
{
	struct connection c = requested();

	take_sent(CM_REQ);
	cm_peer_ended(world.hosts[A].cm, all_replaced, NULL);
	pass(CM_REQ);
	c.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	cm_peer_ended(world.hosts[A].cm, all_replaced, NULL);
	pass(CM_REQ);
	pass(CM_MRA);
	nothing_told();
	assert_int_equal(cm_id_state(c.client), CM_STATE_MRA_REQ_RCVD);
	forget(&c);
	world_close(state);
	world_open(state);
	c = answered();
	cm_peer_ended(world.hosts[A].cm, all_replaced, NULL);
	nothing_sent();
	nothing_told();
	forget(&c);
}

TEST(peer_ends_during_release)
{
	struct connection c = established();

	assert_int_equal(cm_send_dreq(c.client, nothing), 0);
	pass(CM_DREQ);
	take_event(server, CM_EVENT_DISCONNECTED, 0);
	cm_peer_ended(world.hosts[B].cm, its_client, NULL);
	assert_int_equal(cm_id_state(c.server), CM_STATE_TIMEWAIT);
	nothing_told();
	cm_peer_ended(world.hosts[A].cm, its_server, NULL);
	take_event(client, CM_EVENT_DISCONNECTED, 0);
	forget(&c);
}

TEST(host_refuses)
{
	struct connection c = requested();
	struct cm_id *sidr = make(A, client), *b = make(B, server);
	struct cm_request request = a_request(B);

	take_sent(CM_REQ);
	assert_int_equal(cm_send_req(b, &request), 0);
	assert_int_equal(cm_send_sidr_req(sidr, &(const struct cm_sidr_request){.path = path_from(A)}), 0);
	world.sent_count = 0;
	cm_host_refuses(world.hosts[A].cm, &world.hosts[A].gid);
	nothing_told();
	cm_host_refuses(world.hosts[A].cm, &world.hosts[B].gid);
	assert_int_equal(world.told_count, 2);
	take_event(client, CM_EVENT_SIDR_RESPONSE, 1);
	take_event(client, CM_EVENT_REJECTED, 8);
	assert_int_equal(cm_id_state(b), CM_STATE_REQ_SENT);
	cm_id_destroy(sidr);
	cm_id_destroy(b);
	forget(&c);
}

/* During the grace period a process that accepts requests may start: each refusal is followed by another attempt. */
TEST_WITH(host_refuses_for_a_moment, NULL, world_close)
{
	struct connection c;
	int tries = 0;

	world_begin(&(const struct cm_config){.grace_ms = 50});
	c = requested();
	take_sent(CM_REQ);
	for (; !world.told_count && tries < 100; tries++) {
		cm_host_refuses(world.hosts[A].cm, &world.hosts[B].gid);
		if (world.told_count)
			break;
		pass_ms(9);
		nothing_sent();
		pass_ms(2);
		take_sent(CM_REQ);
	}
	assert_int_equal(tries, 5);
	take_event(client, CM_EVENT_REJECTED, 8);
	forget(&c);
}

TEST(leaves)
{
	struct connection c = established();
	struct cm_id *asking = make(A, client);
	struct cm_request request = a_request(A);

	request.qpn++;
	assert_int_equal(cm_send_req(asking, &request), 0);
	take_sent(CM_REQ);
	while (cm_leave_next(world.hosts[A].cm))
		;
	take_sent(CM_REJ);
	pass(CM_DREQ);
	take_event(server, CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(cm_id_state(c.client), CM_STATE_IDLE);
	assert_int_equal(cm_send_req(asking, &request), -EINVAL);
	assert_int_equal(cm_listen(asking, SERVICE), -EINVAL);
	pass_ms(100000);
	nothing_sent();
	cm_id_destroy(asking);
	forget(&c);
}

TEST(forks)
{
	struct connection c = established();
	struct cm_request request = a_request(A);

	cm_after_fork(world.hosts[A].cm);
	nothing_sent();
	assert_int_equal(cm_id_state(c.client), CM_STATE_IDLE);
	assert_int_equal(cm_send_req(c.client, &request), -EINVAL);
	cm_id_destroy(c.client);
	c.client = NULL;
	nothing_sent();
	forget(&c);
}

int main(void)
{
	return run_cases(.setup = world_open, .teardown = world_close);
}
