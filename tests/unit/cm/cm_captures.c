/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of other managers, byte by byte as captured: librdmacm of rdma-core 44 over rdma_rxe of Linux 6.1 (Debian
 * 12), librdmacm of rdma-core 56 over Linux 7.3 (Debian 13). rping connects to 10.9.0.1 or from it. Only the
 * communication ids of this side, and the transaction ids of its messages, are replaced.
 */
#include "test_case.h"

#include "../support/cm_world.h"

/* MADs without trailing zeros. */
#define REQ_6_1                                                                                                          \
	"01070203000000000000000208ea55cd0010000000000000cd55ea08000000000000000001061d2f505400fffe09000200000000000000" \
	"0000008f8000000080000000a07a067aa7ffff37f0ffffffff00000000000000000000ffff0a09000200000000000000000000ffff0a09" \
	"0001873b300000400098000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000" \
	"40c8fc0000000000000000000000000a0900020000000000000000000000000a090001"
#define REJ_6_1 "01070203000000000000000208ea55cd0012000000000000cd55ea084f6f09864000001c"
#define REQ_7_3                                                                                                          \
	"010702030000000000000002318969c40010000000000000c4698931000000000000000001061d2f505400fffe09000300000000000000" \
	"000000218000000080000000a013eef2a7ffff57f0ffffffff00000000000000000000ffff0a09000300000000000000000000ffff0a09" \
	"0001b45c800000400088000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000" \
	"40e0470000000000000000000000000a0900030000000000000000000000000a090001"
#define RTU_7_3 "010702030000000000000002318969c40014000000000000c4698931da95855d"
#define DREP_7_3 "01070203000000005b6a78c5d1a40a4e0016000000000000c4698931da95855d"
/* The reply to a REQ that named vendor 0x15b3, which is not the vendor of rxe. */
#define REP_7_3                                                                                                          \
	"0107020300000000f1b51f28179e03c30013000000000000c8698931b591c6910000000000002e0000000015299ce7b3101078e0505400" \
	"fffe090003"

enum { HEADER = 24, LOCAL_ID = HEADER, REMOTE_ID = HEADER + 4, TRANSACTION = 8 };

#define RPING UINT64_C(0x01061d2f) /* RDMA_PS_TCP, port 7471 */

static int nibble(char digit)
{
	return digit <= '9' ? digit - '0' : digit - 'a' + 10;
}

/* Sets the addresses: this side is 10.9.0.1, the captured one 10.9.0.@last. */
static void be_in_the_capture(int own, uint8_t last)
{
	for (int i = 0; i < HOSTS; i++) {
		memcpy(world.hosts[i].gid.raw + 12, "\12\11\0", 3);
		world.hosts[i].gid.raw[15] = i == own ? 1 : last;
	}
}

static void put(uint8_t *at, uint64_t number, int bytes)
{
	while (bytes--) {
		at[bytes] = (uint8_t)number;
		number >>= 8;
	}
}

/* Delivers the captured message @hex to @to. @own_id: communication id of this side; 0: the message contains none. */
static void replay(int to, const char *hex, uint32_t own_id, uint64_t transaction)
{
	struct sent sent = {.from = !to, .path = path_from(!to)};

	for (size_t i = 0; hex[2 * i]; i++)
		sent.mad[i] = (uint8_t)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
	if (own_id)
		put(sent.mad + REMOTE_ID, own_id, 4);
	if (transaction)
		put(sent.mad + TRANSACTION, transaction, 8);
	world_deliver(&sent);
}

static uint32_t vendor(const struct cm_rep *rep)
{
	return (uint32_t)rep->vendor_id_high << 16 | (uint32_t)rep->vendor_id_middle << 8 | rep->vendor_id_low;
}

/* Answers REQ_6_1 or REQ_7_3, with the options of mlx5, and returns the REP. */
static const struct sent *answer(struct connection *c, const char *request)
{
	struct cm_reply reply = a_reply(B);

	*c = (struct connection){.listener = make(B, listener)};
	assert_int_equal(cm_listen(c->listener, RPING), 0);
	replay(B, request, 0, 0);
	c->server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	reply.ece_options = 0x10000001;
	assert_int_equal(cm_send_rep(c->server, &reply), 0);
	return take_sent(CM_REP);
}

/* The REQ names no vendor. librdmacm goes to CONNECT_ERROR if the REP names one. */
TEST(linux_connects)
{
	struct cm_parameters known;
	const struct sent *sent;
	struct connection c;
	uint32_t own_id;

	be_in_the_capture(B, 3);
	sent = answer(&c, REQ_7_3);
	assert_int_equal(vendor(&sent->message.rep), 0);
	assert_int_equal(sent->message.attribute_modifier, 0x10000001);
	assert_int_equal(sent->message.transaction_id, 0x2318969c4);
	assert_int_equal(sent->message.rep.remote_comm_id, 0xc4698931);
	assert_int_equal(sent->message.rep.failover_accepted, 0);
	assert_int_equal(sent->path.hop_limit, 64);
	own_id = sent->message.rep.local_comm_id;
	cm_id_query(c.server, &known);
	assert_int_equal(known.remote_qpn, 0x21);
	assert_int_equal(known.remote_ca_guid, UINT64_C(0x505400fffe090003));
	assert_int_equal(known.sq_psn, 0x13eef2);
	assert_int_equal(known.path_mtu, IBV_MTU_4096);
	assert_int_equal(known.retry_count, 7);
	assert_int_equal(known.rnr_retry_count, 7);
	assert_int_equal(known.ack_timeout, 17);
	assert_int_equal(known.path.flow_label, 0xb45c8);
	replay(B, RTU_7_3, own_id, 0);
	take_event(server, CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(cm_send_dreq(c.server, (struct cm_private){0}), 0);
	sent = take_sent(CM_DREQ);
	assert_int_equal(sent->message.dreq.remote_qpn, 0x21);
	replay(B, DREP_7_3, own_id, sent->message.transaction_id);
	take_event(server, CM_EVENT_DISCONNECTED, 0);
	forget(&c);
}

/* The rejection of a REP that named vendor 0x15b3. */
TEST(linux_rejects)
{
	const struct sent *sent;
	struct connection c;

	be_in_the_capture(B, 2);
	sent = answer(&c, REQ_6_1);
	assert_int_equal(vendor(&sent->message.rep), 0);
	assert_int_equal(sent->message.rep.remote_comm_id, 0xcd55ea08);
	replay(B, REJ_6_1, sent->message.rep.local_comm_id, 0);
	assert_int_equal(take_event(server, CM_EVENT_REJECTED, 28)->message.rej.message_rejected, CM_NAMED_REP);
	forget(&c);
}

/* rxe returns a vendor that it does not know, as the REQ named it. */
TEST(linux_answers)
{
	struct connection c = {.client = make(A, client)};
	struct cm_request request;
	struct cm_parameters known;
	const struct cm_message *rtu;
	const struct sent *sent;

	be_in_the_capture(A, 3);
	request = a_request(A);
	request.service_id = RPING;
	request.ece_vendor = 0x15b3;
	assert_int_equal(cm_send_req(c.client, &request), 0);
	sent = take_sent(CM_REQ);
	replay(A, REP_7_3, sent->message.req.local_comm_id, sent->message.transaction_id);
	assert_int_equal(vendor(&take_event(client, CM_EVENT_RESPONSE, 0)->message.rep), request.ece_vendor);
	cm_id_query(c.client, &known);
	assert_int_equal(known.remote_qpn, 0x2e);
	assert_int_equal(known.sq_psn, 0x299ce7);
	assert_int_equal(known.initiator_depth, 16);
	assert_int_equal(known.responder_resources, 16);
	assert_int_equal(known.rnr_retry_count, 7);
	/* Lifetime 16, and delay 15, that of rxe (rdma-cm 3.4). */
	assert_int_equal(known.ack_timeout, 17);
	assert_int_equal(cm_send_rtu(c.client, (struct cm_private){0}), 0);
	rtu = &take_sent(CM_RTU)->message;
	assert_int_equal(rtu->rtu.remote_comm_id, 0xc8698931);
	forget(&c);
}

int main(void)
{
	return run_cases(.setup = world_open, .teardown = world_close);
}
