/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections without disturbances: the contents of each message (as Linux fills it in on RoCE v2), the events of the
 * handlers, the QP attributes of a connection (rdma_init_qp_attr(3), values of Linux), and which calls are allowed in
 * which state.
 */
#include "test_case.h"

#include "../support/cm_world.h"

static const struct cm_private nothing;

#define PSN 0xffffffu

/* ---- messages -------------------------------------------------------------------------------------------------------- */

TEST(req_has)
{
	struct connection c = {.client = make(A, client)};
	struct cm_request request = a_request(A);
	const struct cm_req *req;

	request.path.flow_label = 0x12345;
	request.path.traffic_class = 0x51;
	request.path.service_level = 3;
	request.flow_control = 1;
	request.srq = 1;
	request.retry_count = 10; /* as in fio */
	request.ece_vendor = 0x15b3;
	request.ece_options = 0x10000001;
	request.private_data = (struct cm_private){"hello", 5};
	assert_int_equal(cm_send_req(c.client, &request), 0);
	assert_int_equal(cm_id_state(c.client), CM_STATE_REQ_SENT);
	assert_memory_equal(&world.sent[0].path, &request.path, sizeof(request.path));
	assert_int_equal(world.sent[0].message.attribute_modifier, 0x10000001);
	req = &take_sent(CM_REQ)->message.req;
	assert_int_equal(req->local_comm_id >> 18, SLOT_A);
	assert_int_equal(req->vendor_id, 0x15b3);
	assert_int_equal(req->service_id, SERVICE);
	assert_int_equal(req->local_ca_guid, GUID_A);
	assert_int_equal(req->local_qkey, 0);
	assert_int_equal(req->local_qpn, QPN_A);
	assert_int_equal(req->responder_resources, 4);
	assert_int_equal(req->initiator_depth, 5);
	assert_int_equal(req->remote_response_timeout, 20);
	assert_int_equal(req->local_response_timeout, 20);
	assert_int_equal(req->transport_service, 0);
	assert_int_equal(req->flow_control, 1);
	assert_int_equal(req->retry_count, 7);
	assert_int_equal(req->pkey, 0xffff);
	assert_int_equal(req->path_mtu, 3);
	assert_int_equal(req->rdc_exists, 0);
	assert_int_equal(req->rnr_retry_count, 6);
	assert_int_equal(req->max_cm_retries, 15);
	assert_int_equal(req->srq, 1);
	assert_int_equal(req->primary_local_lid, 0xffff);
	assert_int_equal(req->primary_remote_lid, 0xffff);
	assert_memory_equal(req->primary_local_gid, world.hosts[A].gid.raw, 16);
	assert_memory_equal(req->primary_remote_gid, world.hosts[B].gid.raw, 16);
	assert_int_equal(req->primary_flow_label, 0x12345);
	assert_int_equal(req->primary_traffic_class, 0x51);
	assert_int_equal(req->primary_hop_limit, 64);
	assert_int_equal(req->primary_service_level, 3);
	assert_int_equal(req->primary_subnet_local, 0);
	/* Lifetime 16, delay 16: 17 + 1. */
	assert_int_equal(req->primary_ack_timeout, 18);
	assert_int_equal(req->alternate_local_lid, 0);
	assert_memory_equal(req->private_data, "hello\0", 6);
	forget(&c);
}

TEST(req_on_the_own_link)
{
	struct connection c = {.client = make(A, client)};
	struct cm_request request = a_request(A);
	const struct cm_req *req;

	request.path.hop_limit = 1;
	assert_int_equal(cm_send_req(c.client, &request), 0);
	req = &take_sent(CM_REQ)->message.req;
	assert_int_equal(req->primary_local_lid, 0);
	assert_int_equal(req->primary_remote_lid, 0);
	assert_int_equal(req->primary_subnet_local, 1);
	forget(&c);
}

/* Codes of the QP's timeout for packet lifetimes 16 and 18, and the delays of mlx5 and rxe; option ACK_TIMEOUT 10. */
TEST(ack_timeouts)
{
	static const struct {
		uint8_t lifetime, own, delay, code;
	} cases[] = {{16, 0, 16, 18}, {16, 0, 15, 17}, {18, 0, 16, 19},
		     {16, 9, 16, 16}, {16, 9, 1, 10},  {30, 0, 31, 31}};

	world_close(state);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct connection c = {.listener = NULL};
		struct cm_request request;

		world_begin(
			&(const struct cm_config){.packet_lifetime = cases[i].lifetime, .ack_delay = cases[i].delay});
		c.client = make(A, client);
		request = a_request(A);
		request.packet_lifetime = cases[i].own;
		assert_int_equal(cm_send_req(c.client, &request), 0);
		assert_int_equal(take_sent(CM_REQ)->message.req.primary_ack_timeout, cases[i].code);
		forget(&c);
		world_close(state);
	}
	world_open(state);
}

TEST(rep_has)
{
	struct connection c = received();
	struct cm_reply reply = a_reply(B);
	struct cm_parameters known;
	const struct cm_message *message;
	const struct cm_rep *rep;

	reply.flow_control = 1;
	reply.srq = 1;
	reply.rnr_retry_count = 9;
	reply.ece_options = 7;
	reply.private_data = (struct cm_private){"hello", 5};
	assert_int_equal(cm_send_rep(c.server, &reply), 0);
	cm_id_query(c.client, &known);
	message = &take_sent(CM_REP)->message;
	rep = &message->rep;
	assert_int_equal(message->attribute_modifier, 7);
	assert_int_equal(rep->local_comm_id >> 18, SLOT_B);
	assert_int_equal(rep->remote_comm_id, known.local_comm_id);
	assert_int_equal(rep->local_qkey, 0);
	assert_int_equal(rep->local_qpn, QPN_B);
	assert_int_equal(rep->local_eecn, 0);
	assert_int_equal(rep->vendor_id_high, 0);
	assert_int_equal(rep->vendor_id_middle, 0);
	assert_int_equal(rep->vendor_id_low, 0);
	assert_int_equal(rep->responder_resources, 3);
	assert_int_equal(rep->initiator_depth, 2);
	assert_int_equal(rep->target_ack_delay, 16);
	assert_int_equal(rep->failover_accepted, 0);
	assert_int_equal(rep->flow_control, 1);
	assert_int_equal(rep->rnr_retry_count, 7);
	assert_int_equal(rep->srq, 1);
	assert_int_equal(rep->local_ca_guid, GUID_B);
	assert_memory_equal(rep->private_data, "hello\0", 6);
	forget(&c);
}

/* REP, MRA, REJ, RTU have the transaction of the REQ; a DREQ has its own, which its DREP repeats. */
TEST(transactions)
{
	struct connection c = requested();
	struct cm_reply reply;
	uint64_t first, second;

	first = world.sent[0].message.transaction_id;
	pass(CM_REQ);
	c.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	reply = a_reply(B);
	assert_int_equal(cm_send_rep(c.server, &reply), 0);
	assert_int_equal(world.sent[0].message.transaction_id, first);
	pass(CM_REP);
	take_event(client, CM_EVENT_RESPONSE, 0);
	assert_int_equal(cm_send_rtu(c.client, nothing), 0);
	assert_int_equal(world.sent[0].message.transaction_id, first);
	pass(CM_RTU);
	take_event(server, CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(cm_send_dreq(c.client, nothing), 0);
	second = world.sent[0].message.transaction_id;
	assert_int_not_equal(second, first);
	pass(CM_DREQ);
	take_event(server, CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(cm_send_drep(c.server, nothing), 0);
	assert_int_equal(world.sent[0].message.transaction_id, second);
	pass(CM_DREP);
	take_event(client, CM_EVENT_DISCONNECTED, 0);
	forget(&c);
}

TEST(rtu_has)
{
	struct connection c = answered();
	struct cm_parameters known;
	const struct cm_rtu *rtu;

	assert_int_equal(cm_send_rtu(c.client, (struct cm_private){"hello", 5}), 0);
	cm_id_query(c.client, &known);
	rtu = &take_sent(CM_RTU)->message.rtu;
	assert_int_equal(rtu->local_comm_id, known.local_comm_id);
	assert_int_equal(rtu->remote_comm_id, known.remote_comm_id);
	assert_memory_equal(rtu->private_data, "hello\0", 6);
	forget(&c);
}

/* ---- events ---------------------------------------------------------------------------------------------------------- */

TEST(events_bring_messages)
{
	struct connection c = {.listener = make_listener(), .client = make(A, client)};
	struct cm_request request = a_request(A);
	struct cm_reply reply = a_reply(B);
	const struct told *told;

	request.private_data = (struct cm_private){"question", 8};
	assert_int_equal(cm_send_req(c.client, &request), 0);
	pass(CM_REQ);
	told = take_event(listener, CM_EVENT_REQUEST, 0);
	c.server = told->child;
	assert_int_equal(told->message.kind, CM_REQ);
	assert_memory_equal(told->message.req.private_data, "question\0", 9);
	reply.private_data = (struct cm_private){"answer", 6};
	assert_int_equal(cm_send_rep(c.server, &reply), 0);
	pass(CM_REP);
	told = take_event(client, CM_EVENT_RESPONSE, 0);
	assert_int_equal(told->message.kind, CM_REP);
	assert_memory_equal(told->message.rep.private_data, "answer\0", 7);
	assert_int_equal(cm_send_rtu(c.client, (struct cm_private){"ready", 5}), 0);
	pass(CM_RTU);
	told = take_event(server, CM_EVENT_ESTABLISHED, 0);
	assert_memory_equal(told->message.rtu.private_data, "ready\0", 6);
	forget(&c);
}

TEST(owners_change)
{
	struct connection c = replied();

	cm_id_set_owner(c.client, server);
	pass(CM_REP);
	take_event(server, CM_EVENT_RESPONSE, 0);
	forget(&c);
}

/*
 * ---- QP attributes
 * ---------------------------------------------------------------------------------------------------
 */

TEST(parameters_of_both)
{
	struct connection c = established();
	struct cm_parameters a, b;

	cm_id_query(c.client, &a);
	cm_id_query(c.server, &b);
	assert_int_equal(a.state, CM_STATE_ESTABLISHED);
	assert_int_equal(a.service_id, SERVICE);
	assert_int_equal(b.service_id, SERVICE);
	assert_int_equal(a.remote_ca_guid, GUID_B);
	assert_int_equal(b.remote_ca_guid, GUID_A);
	assert_int_equal(a.local_comm_id, b.remote_comm_id);
	assert_int_equal(b.local_comm_id, a.remote_comm_id);
	assert_memory_equal(&a.path.source, &b.path.destination, 16);
	assert_memory_equal(&b.path.source, &a.path.destination, 16);
	assert_int_equal(a.qp_type, IBV_QPT_RC);
	assert_int_equal(b.qp_type, IBV_QPT_RC);
	assert_int_equal(a.local_qpn, QPN_A);
	assert_int_equal(a.remote_qpn, QPN_B);
	assert_int_equal(b.local_qpn, QPN_B);
	assert_int_equal(b.remote_qpn, QPN_A);
	/* Each end receives from the PSN that it sent. */
	assert_int_equal(a.rq_psn, b.sq_psn);
	assert_int_equal(b.rq_psn, a.sq_psn);
	assert_int_equal(a.rq_psn & ~PSN, 0);
	assert_int_not_equal(a.rq_psn, b.rq_psn);
	assert_int_equal(a.path_mtu, IBV_MTU_1024);
	assert_int_equal(b.path_mtu, IBV_MTU_1024);
	/* The server's arguments of accept: 3 resources, depth 2, which are swapped for the client. */
	assert_int_equal(b.responder_resources, 3);
	assert_int_equal(b.initiator_depth, 2);
	assert_int_equal(a.responder_resources, 2);
	assert_int_equal(a.initiator_depth, 3);
	assert_int_equal(a.retry_count, 7);
	assert_int_equal(b.retry_count, 7);
	/* Each side uses the RNR retry count that its peer sent. */
	assert_int_equal(a.rnr_retry_count, 1);
	assert_int_equal(b.rnr_retry_count, 6);
	assert_int_equal(a.ack_timeout, 18);
	assert_int_equal(b.ack_timeout, 18);
	forget(&c);
}

TEST(parameters_at_the_request)
{
	struct connection c = received();
	struct cm_parameters b;

	cm_id_query(c.server, &b);
	assert_int_equal(b.state, CM_STATE_MRA_REQ_SENT);
	assert_int_equal(b.remote_qpn, QPN_A);
	assert_int_equal(b.responder_resources, 5);
	assert_int_equal(b.initiator_depth, 4);
	assert_int_equal(b.path.hop_limit, 64);
	/* The QP goes to RTR with this PSN before the REP that names it. */
	assert_int_equal(cm_send_rep(c.server, &(const struct cm_reply){.qpn = QPN_B}), 0);
	assert_int_equal(take_sent(CM_REP)->message.rep.starting_psn, b.rq_psn);
	forget(&c);
}

/*
 * librdmacm of the passive side returns the vendor of the REQ, even an unknown one, with its own options. Otherwise
 * librdmacm of the active side fails the connection.
 */
static void ece_of_both(uint32_t vendor)
{
	struct connection c = {.listener = make_listener(), .client = make(A, client)};
	struct cm_request request = a_request(A);
	struct cm_reply reply = a_reply(B);
	struct cm_parameters known;

	request.ece_vendor = vendor;
	request.ece_options = 0x10000001;
	assert_int_equal(cm_send_req(c.client, &request), 0);
	pass(CM_REQ);
	c.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	cm_id_query(c.server, &known);
	assert_int_equal(known.remote_ece_vendor, vendor);
	assert_int_equal(known.remote_ece_options, 0x10000001);
	reply.ece_options = 3;
	assert_int_equal(cm_send_rep(c.server, &reply), 0);
	pass(CM_REP);
	take_event(client, CM_EVENT_RESPONSE, 0);
	cm_id_query(c.client, &known);
	assert_int_equal(known.remote_ece_vendor, vendor);
	assert_int_equal(known.remote_ece_options, 3);
	forget(&c);
}

TEST(ece)
{
	ece_of_both(0x15b3);
	ece_of_both(0xabcdef);
	ece_of_both(0);
}

/* Delivers the REQ of an ordinary client after @change, and returns the child. */
static struct connection received_with(void (*change)(struct cm_req *req))
{
	struct connection c = requested();
	struct cm_message message = take_sent(CM_REQ)->message;

	change(&message.req);
	inject(A, &message);
	c.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	return c;
}

static void one_hop(struct cm_req *req)
{
	req->primary_hop_limit = 1;
}

/* Linux fills in the path to the peer with the hop limit of its own route, rather than that of the REQ. */
TEST(hop_limit_of_the_way_back)
{
	struct connection c = received_with(one_hop);
	struct cm_reply reply = a_reply(B);
	struct cm_parameters known;

	cm_id_query(c.server, &known);
	assert_int_equal(known.path.hop_limit, 64);
	assert_int_equal(cm_send_rep(c.server, &reply), 0);
	assert_int_equal(take_sent(CM_REP)->path.hop_limit, 64);
	forget(&c);
}

static void no_ack_timeout(struct cm_req *req)
{
	req->primary_ack_timeout = 0;
}

/* Linux subtracts 1 from a code above 0 and adds 1 to it again, so 0 becomes 1. */
TEST(shortest_ack_timeout)
{
	struct connection c = received_with(no_ack_timeout);
	struct cm_parameters known;

	cm_id_query(c.server, &known);
	assert_int_equal(known.ack_timeout, 1);
	forget(&c);
}

static void alternate_path(struct cm_req *req)
{
	memset(req->alternate_local_gid, 0x11, sizeof(req->alternate_local_gid));
	memset(req->alternate_remote_gid, 0x22, sizeof(req->alternate_remote_gid));
}

/* IBTA 12.7.30: 1, failover is not supported. */
TEST(alternate_path_is_declined)
{
	struct connection c = received_with(alternate_path);
	struct cm_reply reply = a_reply(B);

	assert_int_equal(cm_send_rep(c.server, &reply), 0);
	assert_int_equal(take_sent(CM_REP)->message.rep.failover_accepted, 1);
	forget(&c);
}

/* ---- other transports --------------------------------------------------------------------------------------------------- */

TEST(unreliable)
{
	struct connection c = {.listener = make_listener(), .client = make(A, client)};
	struct cm_request request = a_request(A);
	struct cm_parameters known;

	request.qp_type = IBV_QPT_UC;
	assert_int_equal(cm_send_req(c.client, &request), 0);
	assert_int_equal(world.sent[0].message.req.transport_service, 1);
	pass(CM_REQ);
	c.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	cm_id_query(c.server, &known);
	assert_int_equal(known.qp_type, IBV_QPT_UC);
	forget(&c);
}

TEST(xrc)
{
	struct connection c = {.listener = make_listener(), .client = make(A, client)};
	struct cm_request request = a_request(A);
	struct cm_reply reply = a_reply(B);
	struct cm_parameters known;
	const struct cm_req *req = &world.sent[0].message.req;
	const struct cm_rep *rep = &world.sent[0].message.rep;

	request.qp_type = IBV_QPT_XRC_SEND;
	request.srq = 1;
	assert_int_equal(cm_send_req(c.client, &request), 0);
	assert_int_equal(req->transport_service, 3);
	assert_int_equal(req->extended_transport, 1);
	assert_int_equal(req->responder_resources, 0);
	assert_int_equal(req->initiator_depth, 5);
	assert_int_equal(req->retry_count, 0);
	assert_int_equal(req->rnr_retry_count, 0);
	assert_int_equal(req->srq, 0);
	pass(CM_REQ);
	c.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	cm_id_query(c.server, &known);
	assert_int_equal(known.qp_type, IBV_QPT_XRC_RECV);
	reply.flow_control = 1;
	assert_int_equal(cm_send_rep(c.server, &reply), 0);
	assert_int_equal(rep->local_qpn, 0);
	assert_int_equal(rep->local_eecn, QPN_B);
	assert_int_equal(rep->srq, 1);
	assert_int_equal(rep->flow_control, 0);
	assert_int_equal(rep->initiator_depth, 0);
	assert_int_equal(rep->responder_resources, 3);
	pass(CM_REP);
	take_event(client, CM_EVENT_RESPONSE, 0);
	cm_id_query(c.client, &known);
	assert_int_equal(known.remote_qpn, QPN_B);
	forget(&c);
}

/* ---- names --------------------------------------------------------------------------------------------------------------- */

TEST(comm_ids_differ)
{
	enum { IDS = 20 };
	struct cm_id *ids[IDS];
	uint32_t before = 0;

	for (int i = 0; i < IDS; i++) {
		struct cm_request request = a_request(A);
		uint32_t number;

		ids[i] = make(A, client);
		request.qpn = (uint32_t)(100 + i);
		assert_int_equal(cm_send_req(ids[i], &request), 0);
		number = take_sent(CM_REQ)->message.req.local_comm_id;
		assert_int_equal(number >> 18, SLOT_A);
		assert_int_not_equal(number, before);
		before = number;
	}
	assert_int_equal(world.slots_claimed, 1);
	for (int i = 0; i < IDS; i++) {
		cm_id_destroy(ids[i]);
		take_sent(CM_REJ);
	}
}

/*
 * ---- calls allowed in each state
 * --------------------------------------------------------------------------------------
 */

static void expect_only(struct cm_id *id, bool idle, bool request, bool response)
{
	struct cm_request req = a_request(A);
	struct cm_reply reply = a_reply(A);

	req.private_data = reply.private_data = (struct cm_private){"", 255};
	/*
	 * Private data that is too long is EINVAL too, and has no effect. So all calls can be tried, and the state
	 * distinguishes the two causes.
	 */
	assert_int_equal(cm_send_req(id, &req), -EINVAL);
	assert_int_equal(cm_send_rep(id, &reply), -EINVAL);
	assert_int_equal(cm_send_rtu(id, req.private_data), -EINVAL);
	assert_int_equal(cm_send_dreq(id, req.private_data), -EINVAL);
	assert_int_equal(cm_send_drep(id, req.private_data), -EINVAL);
	assert_int_equal(cm_send_rej(id, 28, nothing, req.private_data), -EINVAL);
	req.private_data = reply.private_data = nothing;
	if (!idle) {
		assert_int_equal(cm_send_req(id, &req), -EINVAL);
		assert_int_equal(cm_listen(id, SERVICE), -EINVAL);
	}
	if (!request)
		assert_int_equal(cm_send_rep(id, &reply), -EINVAL);
	if (!response)
		assert_int_equal(cm_send_rtu(id, nothing), -EINVAL);
	nothing_sent();
}

TEST(wrong_states)
{
	struct connection c = requested();
	struct sent req = *take_sent(CM_REQ);
	struct cm_id *idle = make(A, client);

	expect_only(idle, true, false, false);
	assert_int_equal(cm_send_rej(idle, 28, nothing, nothing), -EINVAL);
	assert_int_equal(cm_establish(idle), -EINVAL);
	cm_id_destroy(idle);
	expect_only(c.listener, false, false, false);
	expect_only(c.client, false, false, false);
	assert_int_equal(cm_id_state(c.client), CM_STATE_REQ_SENT);
	world_deliver(&req);
	c.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	expect_only(c.server, false, true, false);
	assert_int_equal(cm_establish(c.server), -EINVAL);
	assert_int_equal(cm_send_dreq(c.server, nothing), -EINVAL);
	forget(&c);
}

TEST(wrong_states_when_established)
{
	struct connection c = established();

	expect_only(c.client, false, false, false);
	expect_only(c.server, false, false, false);
	assert_int_equal(cm_send_rej(c.client, 28, nothing, nothing), -EINVAL);
	assert_int_equal(cm_send_drep(c.client, nothing), -EINVAL);
	assert_int_equal(cm_establish(c.server), -EISCONN);
	forget(&c);
}

TEST(established_by_notification)
{
	struct connection c = answered();

	assert_int_equal(cm_establish(c.server), 0);
	assert_false(take_event(server, CM_EVENT_ESTABLISHED, 0)->has_message);
	assert_int_equal(cm_id_state(c.server), CM_STATE_ESTABLISHED);
	/* The RTU arrives later and has no effect. */
	assert_int_equal(cm_send_rtu(c.client, nothing), 0);
	pass(CM_RTU);
	nothing_told();
	forget(&c);
}

int main(void)
{
	return run_cases(.setup = world_open, .teardown = world_close);
}
