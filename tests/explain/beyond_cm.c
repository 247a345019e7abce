/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of the communication manager (cm/cm.h), with two managers in simulated time (cm_world.h). */
#include "test_case.h"

#include "../unit/support/cm_world.h"
#include "beyond_cases.h"
#include "explain/explain.h"
#include "process/commands.h"

#define GID_A "0x0:0xffffc0000201"
#define GID_B "0x0:0xffffc0000202"

static const struct cm_private nothing;

static void begin(void)
{
	world_begin(&(const struct cm_config){.hca = hca_device(0)});
}

static void end(struct connection *c, void **state)
{
	forget(c);
	world.told_count = 0;
	world_close(state);
}

/* Expects the newest explanation by @rule to be @format, after the name of the device. */
static void __attribute__((format(printf, 2, 3))) expect(enum explain_rule rule, const char *format, ...)
{
	char expected[600], line[1200] = "nothing was explained";
	struct explain_record record;
	uint64_t before = 0;
	va_list args;

	va_start(args, format);
	vsnprintf(expected, sizeof(expected), format, args);
	va_end(args);
	while (explain_previous(hca_device(0), 0, before, &record) && record.rule != rule)
		before = record.serial;
	explain_render("mlx5_0", &record, line, sizeof(line));
	if (record.rule != rule || !strstr(line, expected))
		fail_msg("%s\nis not: %s", line, expected);
}

static struct cm_parameters known(struct cm_id *id)
{
	struct cm_parameters parameters;

	cm_id_query(id, &parameters);
	return parameters;
}

BEYOND_CASE(CM_MALFORMED)
{
	uint8_t mad[CM_MAD_BYTES] = {1, 7, 2, 3, [17] = 0x19};
	struct packet_path path;

	begin();
	path = path_from(A);
	cm_receive(world.hosts[B].cm, &path, mad, false);
	expect(RULE_CM_MALFORMED,
	       "a MAD from " GID_A " is not a message of the connection manager (base version 1, class 0x7, class "
	       "version 2, method 0x3, attribute 0x19): dropped. [710 CM_MALFORMED; ");
	world_close(state);
}

BEYOND_CASE(CM_UNKNOWN_ID)
{
	begin();
	inject(A, &(const struct cm_message){.kind = CM_RTU});
	expect(RULE_CM_UNKNOWN_ID,
	       "RTU from " GID_A " names communication ids that are not connected to each other here: dropped. [711 ");
	world_close(state);
}

BEYOND_CASE(CM_SOURCE)
{
	struct connection c;
	struct sent sent;

	begin();
	c = requested();
	pass(CM_REQ);
	c.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	assert_int_equal(cm_send_rej(c.server, 28, nothing, nothing), 0);
	sent = *take_sent(CM_REJ);
	sent.path.source.raw[15] = 99;
	world_deliver(&sent);
	expect(RULE_CM_SOURCE,
	       "REJ for communication id 0x%x came from 0x0:0xffffc0000263, but its peer is at " GID_B
	       ": dropped. [712 ",
	       known(c.client).local_comm_id);
	end(&c, state);
}

BEYOND_CASE(CM_DREQ_QPN)
{
	struct connection c;
	struct sent sent;

	begin();
	c = established();
	assert_int_equal(cm_send_dreq(c.client, nothing), 0);
	sent = *take_sent(CM_DREQ);
	sent.message.dreq.remote_qpn = 0x77;
	cm_pack(&sent.message, sent.mad);
	world_deliver(&sent);
	expect(RULE_CM_DREQ_QPN,
	       "DREQ for communication id 0x%x names queue pair 0x77, but the id has 0x1a1b1c: dropped. [713 ",
	       known(c.server).local_comm_id);
	end(&c, state);
}

BEYOND_CASE(CM_NO_LISTENER)
{
	struct connection c;

	begin();
	c = requested();
	cm_id_destroy(c.listener);
	c.listener = NULL;
	pass(CM_REQ);
	expect(RULE_CM_NO_LISTENER,
	       "REQ from " GID_A
	       " is for service id 0x1061c06, port 7174, on which no program listens: rejected. [720 ");
	end(&c, state);
}

BEYOND_CASE(CM_NOT_FOR_LISTENER)
{
	struct connection c;

	begin();
	c = requested();
	world.hosts[B].not_mine = listener;
	pass(CM_REQ);
	expect(RULE_CM_NOT_FOR_LISTENER, "REQ from " GID_A " is for service id 0x1061c06, port 7174, on which programs "
					 "listen, but not at the address that it names: rejected. [721 ");
	end(&c, state);
}

BEYOND_CASE(CM_STALE)
{
	struct connection c;
	struct sent sent;

	begin();
	c = requested();
	sent = *take_sent(CM_REQ);
	world_deliver(&sent);
	c.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	sent.message.req.local_comm_id++;
	cm_pack(&sent.message, sent.mad);
	world_deliver(&sent);
	expect(RULE_CM_STALE,
	       "REQ from " GID_A " names queue pair 0xa0b0c there, with which communication id 0x%x already has a "
	       "connection, in state MRA_REQ_SENT: rejected as stale. [722 ",
	       known(c.server).local_comm_id);
	end(&c, state);
}

BEYOND_CASE(CM_REQ_OVER)
{
	struct connection c;
	struct sent sent;

	begin();
	c = requested();
	sent = *take_sent(CM_REQ);
	world_deliver(&sent);
	c.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	assert_int_equal(cm_send_rep(c.server, &(const struct cm_reply){.qpn = QPN_B}), 0);
	assert_int_equal(cm_send_rej(c.server, 28, nothing, nothing), 0);
	world_deliver(&sent);
	expect(RULE_CM_REQ_OVER,
	       "a REQ from " GID_A " with communication id 0x%x belongs to connection 0x%x, which has ended: rejected. "
	       "[723 ",
	       known(c.client).local_comm_id, known(c.server).local_comm_id);
	end(&c, state);
}

/* Delivers a REQ that the peer would not send. */
static void deliver_changed(void (*change)(struct cm_req *req), void **state)
{
	struct connection c;
	struct sent sent;

	begin();
	c = requested();
	sent = *take_sent(CM_REQ);
	change(&sent.message.req);
	cm_pack(&sent.message, sent.mad);
	world_deliver(&sent);
	end(&c, state);
}

static void other_gid(struct cm_req *req)
{
	req->primary_local_gid[15] = 99;
}

static void other_transport(struct cm_req *req)
{
	req->transport_service = 2;
}

static void other_mtu(struct cm_req *req)
{
	req->path_mtu = 6;
}

BEYOND_CASE(CM_REQUEST_GID)
{
	deliver_changed(other_gid, state);
	expect(RULE_CM_REQUEST_GID,
	       "a REQ from " GID_A " to " GID_B " names other GIDs as its primary path: rejected. [724 ");
}

BEYOND_CASE(CM_REQUEST_TRANSPORT)
{
	deliver_changed(other_transport, state);
	expect(RULE_CM_REQUEST_TRANSPORT,
	       "a REQ from " GID_A " requests transport service 2 (extended: 0): rejected. [725 ");
}

BEYOND_CASE(CM_REQUEST_MTU)
{
	deliver_changed(other_mtu, state);
	expect(RULE_CM_REQUEST_MTU,
	       "a REQ from " GID_A " requests path MTU 6; 1 (256 bytes) to 5 (4096) exist: rejected. [726 ");
}

BEYOND_CASE(CM_REQUEST_MEMORY)
{
	struct connection c;

	begin();
	c = requested();
	world.no_slot = true;
	pass(CM_REQ);
	nothing_told();
	nothing_sent();
	expect(RULE_CM_REQUEST_MEMORY,
	       "REQ from " GID_A ": there is not enough memory, or no free number, for another communication id: "
	       "dropped. [727 ");
	end(&c, state);
}

BEYOND_CASE(CM_REJECTED)
{
	struct connection c;

	begin();
	c = received();
	assert_int_equal(cm_send_rej(c.server, 28, nothing, nothing), 0);
	pass(CM_REJ);
	expect(RULE_CM_REJECTED,
	       "communication id 0x%x in state REQ_SENT was rejected by " GID_B
	       " with reason 28: the program at the other end rejects it. [730 ",
	       known(c.client).local_comm_id);
	end(&c, state);
}

BEYOND_CASE(CM_GIVEN_UP)
{
	struct connection c;

	begin();
	c = requested();
	pass_ms(100000);
	expect(RULE_CM_GIVEN_UP,
	       "the REQ of communication id 0x%x was sent 16 times to " GID_B
	       ", 4608 ms apart, without an answer: abandoned. [731 ",
	       known(c.client).local_comm_id);
	end(&c, state);
}

BEYOND_CASE(CM_SIDR_REFUSED)
{
	struct connection c = {.listener = NULL};

	begin();
	c.client = make(A, client);
	assert_int_equal(cm_send_sidr_req(c.client, &(const struct cm_sidr_request){.path = path_from(A),
										    .service_id = SIDR_SERVICE}),
			 0);
	pass(CM_SIDR_REQ);
	pass(CM_SIDR_REP);
	expect(RULE_CM_SIDR_REFUSED, "the request for service id 0x1111c06 was refused by " GID_B
				     " with status 1: no process listens on the service id. [732 ");
	end(&c, state);
}

BEYOND_CASE(CM_STATE)
{
	struct connection c;

	begin();
	c = received();
	assert_int_equal(cm_send_rep(c.client, &(const struct cm_reply){.qpn = 1}), -EINVAL);
	expect(RULE_CM_STATE,
	       "rdma_accept → EINVAL: the communication id is in state REQ_SENT, in which this call is not possible (id 0x%x). [740 ",
	       known(c.client).local_comm_id);
	end(&c, state);
}
