/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a DCT makes of its initiators (transport/dct.h): keys that are wrong, ghosts of connections that are over, messages
 * that are given up, refusals whose answer is lost, more initiators than it has places for, and packets of any content.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../model/choose.h"
#include "dc_fixture.h"

enum { LOCAL = 0, REMOTE = HALF, RECEIVE = 1024 };

static void start(const struct ibv_qp_attr *options, wire_filter *filter, void *argument)
{
	dc_begin(options, 0, filter, argument);
}

/* Takes packets off the wire until one of @message comes, which it returns; delivers those before it. */
static struct wire_packet *take(uint8_t message)
{
	struct wire_packet *packet;

	while ((packet = wire_take())) {
		if (packet_opcodes[packet->opcode].message == message)
			return packet;
		wire_receive(packet);
		free(packet);
	}
	fail_msg("no packet of message %u", message);
	return NULL;
}

static void lose(uint8_t message)
{
	free(take(message));
}

static void write_to(int from, struct target *target, uint32_t length)
{
	const struct dc_request request = dc_to(target, MLX5_OPCODE_RDMA_WRITE, LOCAL, REMOTE, length);

	dc_put(&dci[from], &request);
	ring(&dci[from]);
}

static void send_to(int from, struct target *target, uint32_t length)
{
	const struct dc_request request = dc_to(target, MLX5_OPCODE_SEND, LOCAL, 0, length);

	dc_put(&dci[from], &request);
	ring(&dci[from]);
}

/* ---- keys ------------------------------------------------------------------------------------------------------ */

/*
 * mlx5-formats 6 no. 52. Of many packets the first alone is answered: the refusal of a later one would say that those
 * before it had arrived.
 */
static void wrong_key(void **state)
{
	static const uint8_t opcodes[] = {MLX5_OPCODE_SEND, MLX5_OPCODE_RDMA_WRITE_IMM, MLX5_OPCODE_RDMA_READ,
					  MLX5_OPCODE_ATOMIC_FA};
	struct ibv_qp_attr options = dc_options();

	(void)state;
	for (size_t i = 0; i < sizeof(opcodes); i++) {
		struct dc_request request;
		uint8_t before[1000];

		start(&options, NULL, NULL);
		memcpy(before, device.memory + REMOTE, sizeof(before));
		request = dc_to(&dct[0], opcodes[i], LOCAL, REMOTE, opcode_is_atomic(opcodes[i]) ? 8 : 1000);
		request.key ^= 1;
		dct_post(&dct[0], REMOTE, RECEIVE);
		dc_put(&dci[0], &request);
		ring(&dci[0]);
		dc_settle();
		expect_cqe(&dci_cq[0], 0, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
		assert_int_equal(hca_qp_state(dci[0].qp), IBV_QPS_ERR);
		assert_memory_equal(device.memory + REMOTE, before, sizeof(before));
		expect_rule(dct[0].qp, RULE_DC_KEY);
		/* A link tells the requester no more than the refusal. */
		expect_rule(dci[0].qp, RULE_NAK_REMOTE_ACCESS);
		/* Nothing is kept of it, no receive was taken, and others are served. */
		assert_int_equal(dct[0].qp->dct->count, 0);
		send_to(1, &dct[0], 10);
		dc_settle();
		expect_cqe(&dci_cq[1], 0, 0);
		expect_received(&dct[0], 0, 10);
		assert_int_equal(hca_qp_state(dct[0].qp), IBV_QPS_RTR);
		dc_end();
	}
}

/* ibv_modify_qp(3), retry_cnt: nobody answers for a DCT that does not exist, or is not in RTR. */
static void no_target(void **state)
{
	struct ibv_qp_attr options = dc_options();
	uint32_t numbers[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct dc_request request;

		start(&options, NULL, NULL);
		request = dc_to(&dct[0], MLX5_OPCODE_SEND, LOCAL, 0, 10);
		numbers[0] = 0xabcdef;
		numbers[1] = dci[1].qp->number;
		request.target = numbers[i];
		dc_put(&dci[0], &request);
		ring(&dci[0]);
		dc_settle();
		expect_cqe(&dci_cq[0], 0, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
		expect_rule(dci[0].qp, RULE_RETRY_EXHAUSTED);
		dc_end();
	}
}

/* ---- connections ----------------------------------------------------------------------------------------------- */

/* A packet that a network kept for long: of a connection before the present one, or of one that was ended. */
static void ghosts(void **state)
{
	struct ibv_qp_attr options = dc_options();
	struct wire_packet *first, *middle, copy;

	(void)state;
	start(&options, NULL, NULL);
	dct_post(&dct[0], REMOTE, RECEIVE);
	dct_post(&dct[0], REMOTE + RECEIVE, RECEIVE);
	send_to(0, &dct[0], 600);
	first = take(MESSAGE_SEND);
	middle = take(MESSAGE_SEND);
	copy = *first;
	wire_receive(first);
	wire_receive(middle);
	dc_settle();
	expect_cqe(&dci_cq[0], 0, 0);
	expect_received(&dct[0], 0, 600);

	/* Away, and again here: the connection is another one. */
	write_to(0, &dct[1], 8);
	dc_settle();
	wire_receive(&copy);
	expect_rule(dct[0].qp, RULE_DC_CONNECTION_OVER);
	write_to(0, &dct[0], 8);
	dc_settle();
	wire_receive(&copy);
	expect_rule(dct[0].qp, RULE_DC_CONNECTION_OVER);
	assert_false(wire_deliver());
	expect_cqe(&dci_cq[0], 1 * 2, 0);
	expect_cqe(&dci_cq[0], 2 * 2, 0);

	/* Of the present one it is a duplicate: answered, not received again. */
	send_to(0, &dct[0], 600);
	free(first);
	first = take(MESSAGE_SEND);
	copy = *first;
	wire_receive(first);
	dc_settle();
	expect_cqe(&dci_cq[0], 3 * 2, 0);
	expect_received(&dct[0], 1, 600);
	wire_receive(&copy);
	assert_true(wire_deliver());
	expect_quiet();
	free(first);
	free(middle);
	dc_end();
}

/* The first packet of a connection comes second: it is asked for. */
static void begins_in_the_middle(void **state)
{
	struct ibv_qp_attr options = dc_options();
	struct wire_packet *packet;

	(void)state;
	start(&options, NULL, NULL);
	send_to(0, &dct[0], 600);
	dct_post(&dct[0], REMOTE, RECEIVE);
	lose(MESSAGE_SEND);
	packet = take(MESSAGE_SEND);
	wire_receive(packet);
	free(packet);
	packet = take(MESSAGE_ACKNOWLEDGE);
	assert_int_equal(packet->syndrome, AETH_NAK | NAK_SEQUENCE);
	assert_int_equal(packet->psn, SQ_START_PSN);
	wire_receive(packet);
	free(packet);
	dc_settle();
	expect_cqe(&dci_cq[0], 0, 0);
	expect_received(&dct[0], 0, 600);
	expect_quiet();
	dc_end();
}

/* IBTA 11.6.2, Remote Aborted Error: @begins_anew: the DCI comes back without having said that it left. */
static void give_up(bool begins_anew)
{
	struct ibv_qp_attr options = dc_options();
	struct wire_packet *packet;

	start(&options, NULL, NULL);
	dct_post(&dct[0], REMOTE, RECEIVE);
	dct_post(&dct[0], REMOTE + RECEIVE, RECEIVE);
	send_to(0, &dct[0], 600);
	packet = take(MESSAGE_SEND);
	wire_receive(packet);
	free(packet);
	while ((packet = wire_take()))
		free(packet);
	dci_start(&dci[0], &options);
	while (raw_cq_poll(&dci_cq[0]))
		;
	if (begins_anew)
		lose(MESSAGE_DISCONNECT);
	else
		dc_deliver_all();
	assert_null(begins_anew ? raw_cq_poll(&dct[0].cq) : NULL);
	if (!begins_anew) {
		expect_cqe(&dct[0].cq, 0, MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR);
		expect_rule(dct[0].qp, RULE_DC_ABORTED);
	}
	send_to(0, &dct[0], 20);
	dc_settle();
	if (begins_anew)
		expect_cqe(&dct[0].cq, 0, MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR);
	expect_received(&dct[0], 1, 20);
	expect_cqe(&dci_cq[0], 0, 0);
	expect_quiet();
	dc_end();
}

static void given_up(void **state)
{
	(void)state;
	give_up(false);
	give_up(true);
}

/* A receive that a message in the middle has taken goes back to the program with the DCT. */
static void destroyed_in_the_middle(void **state)
{
	struct ibv_qp_attr options = dc_options();
	struct wire_packet *packet;

	(void)state;
	start(&options, NULL, NULL);
	dct_post(&dct[0], REMOTE, RECEIVE);
	send_to(0, &dct[0], 600);
	packet = take(MESSAGE_SEND);
	wire_receive(packet);
	free(packet);
	assert_int_equal(hca_qp_destroy(dct[0].qp), 0);
	dct[0].qp = NULL;
	expect_cqe(&dct[0].cq, 0, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	dc_end();
}

/* A refusal is the same when it is asked for again, and costs no second receive. */
static void lost_refusal(void **state)
{
	struct ibv_qp_attr options = dc_options();

	(void)state;
	start(&options, NULL, NULL);
	dct_post(&dct[0], REMOTE, 100);
	dct_post(&dct[0], REMOTE + RECEIVE, RECEIVE);
	send_to(0, &dct[0], 200);
	wire_deliver();
	lose(MESSAGE_ACKNOWLEDGE);
	expect_cqe(&dct[0].cq, 0, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
	dc_settle();
	expect_cqe(&dci_cq[0], 0, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
	assert_null(raw_cq_poll(&dct[0].cq));
	assert_int_equal(hca_qp_state(dct[0].qp), IBV_QPS_RTR);
	/* The others go on, and so does it, with another connection. */
	send_to(1, &dct[0], 200);
	dc_settle();
	expect_cqe(&dci_cq[1], 0, 0);
	expect_received(&dct[0], 1, 200);
	dci_start(&dci[0], &options);
	write_to(0, &dct[0], 300);
	dc_settle();
	while (raw_cq_poll(&dci_cq[0]))
		;
	assert_int_equal(hca_qp_state(dci[0].qp), IBV_QPS_RTS);
	assert_memory_equal(device.memory + REMOTE, device.memory + LOCAL, 300);
	dc_end();
}

/* A DCI that waits for a receive does not keep the others from theirs. */
static void one_waits(void **state)
{
	struct ibv_qp_attr options = dc_options();

	(void)state;
	start(&options, NULL, NULL);
	send_to(0, &dct[0], 600);
	dc_deliver_all();
	write_to(1, &dct[0], 500);
	dc_deliver_all();
	expect_cqe(&dci_cq[1], 0, 0);
	assert_null(raw_cq_poll(&dci_cq[0]));
	dct_post(&dct[0], REMOTE, RECEIVE);
	dc_settle();
	expect_cqe(&dci_cq[0], 0, 0);
	expect_received(&dct[0], 0, 600);
	expect_quiet();
	dc_end();
}

/* ---- places ---------------------------------------------------------------------------------------------------- */

enum { READ_REQUEST = 0xcc, WRITE_ONLY = 0xca, DISCONNECT = 0xdc, STRANGERS = 0x1000, NO_ANSWER = 0xff };

/* An empty request of an initiator that no QP is. Returns the syndrome of what the DCT answers to it. */
static uint8_t foreign(uint8_t host, uint32_t qpn, uint64_t connection, uint32_t first_psn, uint32_t psn,
		       uint8_t opcode)
{
	struct wire_packet packet = {
		.opcode = opcode,
		.acknowledge = true,
		.destination_qpn = dct[0].qp->number,
		.psn = psn,
		.source_qpn = qpn,
		.dc_key = dct[0].key,
		.dc_connection = connection,
		.dc_first_psn = first_psn,
		.path.source.raw[15] = host,
	};
	struct wire_packet *answer;
	uint8_t syndrome;

	wire_receive(&packet);
	answer = wire_take();
	if (!answer)
		return NO_ANSWER;
	assert_int_equal(answer->destination_qpn, qpn);
	assert_int_equal(answer->path.destination.raw[15], host);
	syndrome = answer->syndrome;
	free(answer);
	return syndrome;
}

static uint8_t foreign_write(uint32_t qpn, uint64_t connection, uint32_t psn, uint8_t opcode)
{
	return foreign(0, qpn, connection, psn, psn, opcode);
}

/* Two hosts have QPs of the same number. */
static void of_two_hosts(void **state)
{
	struct ibv_qp_attr options = dc_options();

	(void)state;
	start(&options, NULL, NULL);
	assert_int_equal(foreign(1, STRANGERS, 700, 0, 0, WRITE_ONLY), AETH_ACK);
	assert_int_equal(foreign(2, STRANGERS, 7, 50, 50, WRITE_ONLY), AETH_ACK);
	assert_int_equal(foreign(1, STRANGERS, 700, 0, 1, WRITE_ONLY), AETH_ACK);
	assert_int_equal(foreign(2, STRANGERS, 7, 50, 51, WRITE_ONLY), AETH_ACK);
	assert_int_equal(dct[0].qp->dct->count, 2);
	dc_end();
}

/* A number is that of a QP on one host. */
static void by_another_address(void **state)
{
	struct ibv_qp_attr options = dc_options();
	struct dc_request request;
	struct wire_packet *first, *second;
	size_t gids;

	(void)state;
	start(&options, NULL, NULL);
	hca_gids(device.hca, &gids);
	assert_true(gids > 1);
	request = dc_to(&dct[0], MLX5_OPCODE_RDMA_WRITE, LOCAL, REMOTE, 8);
	dc_put(&dci[0], &request);
	request.gid_index = 1;
	dc_put(&dci[0], &request);
	ring(&dci[0]);
	first = take(MESSAGE_WRITE);
	wire_receive(first);
	second = take(MESSAGE_WRITE);
	assert_true(second->dc_connection > first->dc_connection);
	assert_int_equal(second->dc_first_psn, second->psn);
	assert_memory_equal(&second->path.destination, &hca_gids(device.hca, &gids)[1].gid, 16);
	wire_receive(second);
	free(first);
	free(second);
	dc_settle();
	expect_cqe(&dci_cq[0], 0, 0);
	expect_cqe(&dci_cq[0], 2, 0);
	expect_quiet();
	dc_end();
}

/* What was asked for, and answered, in a connection is of no account in the next. */
static void begins_afresh(void **state)
{
	struct ibv_qp_attr options = dc_options();

	(void)state;
	start(&options, NULL, NULL);
	/* A gap is told of once, in each of them. */
	assert_int_equal(foreign(0, STRANGERS, 7, 100, 102, WRITE_ONLY), AETH_NAK | NAK_SEQUENCE);
	assert_int_equal(foreign(0, STRANGERS, 7, 100, 103, WRITE_ONLY), NO_ANSWER);
	assert_int_equal(foreign(0, STRANGERS, 8, 200, 201, WRITE_ONLY), AETH_NAK | NAK_SEQUENCE);
	/* A READ asked for again is answered again; that of the connection before is not. */
	assert_int_equal(foreign(0, STRANGERS, 9, 300, 300, READ_REQUEST), AETH_ACK);
	assert_int_equal(foreign(0, STRANGERS, 9, 300, 300, READ_REQUEST), AETH_ACK);
	assert_int_equal(foreign(0, STRANGERS, 10, 301, 301, WRITE_ONLY), AETH_ACK);
	assert_int_equal(foreign(0, STRANGERS, 10, 301, 300, READ_REQUEST), NO_ANSWER);
	dc_end();
}

/* As long as there is room, whoever left is remembered, and with it what a network may still bring. */
static void remembers(void **state)
{
	struct ibv_qp_attr options = dc_options();

	(void)state;
	start(&options, NULL, NULL);
	assert_int_equal(foreign_write(STRANGERS, 7, 0, WRITE_ONLY), AETH_ACK);
	assert_int_equal(foreign_write(STRANGERS, 7, 1, DISCONNECT), NO_ANSWER);
	assert_int_equal(foreign_write(STRANGERS + 1, 7, 0, WRITE_ONLY), AETH_ACK);
	assert_int_equal(foreign_write(STRANGERS, 7, 0, WRITE_ONLY), NO_ANSWER);
	expect_rule(dct[0].qp, RULE_DC_CONNECTION_OVER);
	dc_end();
}

static void full(void **state)
{
	struct ibv_qp_attr options = dc_options();
	const struct dct *table;

	(void)state;
	start(&options, NULL, NULL);
	table = dct[0].qp->dct;
	for (uint32_t i = 0; i < LIMIT_DCT_INITIATORS; i++)
		assert_int_equal(foreign_write(STRANGERS + i, 7, 0, WRITE_ONLY), AETH_ACK);
	assert_int_equal(table->count, LIMIT_DCT_INITIATORS);
	/* One more is told to come later, and waits. */
	assert_int_equal(foreign_write(STRANGERS - 1, 7, 0, WRITE_ONLY), AETH_RNR_NAK | options.min_rnr_timer);
	expect_rule(dct[0].qp, RULE_DCT_FULL);
	options.rnr_retry = 2;
	dci_start(&dci[0], &options);
	write_to(0, &dct[0], 8);
	dc_settle();
	expect_cqe(&dci_cq[0], 0, MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
	/* Those who have a place are served. */
	assert_int_equal(foreign_write(STRANGERS + 5, 7, 1, WRITE_ONLY), AETH_ACK);

	/* A place of one who left can be had at once. */
	assert_int_equal(foreign_write(STRANGERS + 9, 7, 1, DISCONNECT), NO_ANSWER);
	dci_start(&dci[0], &options);
	while (raw_cq_poll(&dci_cq[0]))
		;
	write_to(0, &dct[0], 8);
	dc_settle();
	expect_cqe(&dci_cq[0], 0, 0);
	assert_int_equal(foreign_write(STRANGERS - 1, 7, 0, WRITE_ONLY), AETH_RNR_NAK | options.min_rnr_timer);

	/* So can one of those who were silent for long; not of others. */
	wire_clock_pass(LIMIT_DCT_INITIATOR_SECONDS * UINT64_C(1000000000));
	assert_int_equal(foreign_write(STRANGERS - 1, 7, 0, WRITE_ONLY), AETH_RNR_NAK | options.min_rnr_timer);
	for (uint32_t i = 0; i < LIMIT_DCT_INITIATORS; i++)
		if (i != 9 && i != 77)
			assert_int_equal(foreign_write(STRANGERS + i, 7, 2, WRITE_ONLY) & AETH_KIND_MASK,
					 i == 5 ? AETH_ACK : AETH_NAK);
	wire_clock_pass(LIMIT_DCT_INITIATOR_SECONDS * UINT64_C(1000000000));
	write_to(0, &dct[0], 8);
	dc_settle();
	expect_cqe(&dci_cq[0], 2, 0);
	assert_int_equal(foreign_write(STRANGERS - 1, 7, 0, WRITE_ONLY), AETH_ACK);
	assert_int_equal(foreign_write(STRANGERS - 2, 7, 0, WRITE_ONLY), AETH_RNR_NAK | options.min_rnr_timer);
	assert_null(dct_find(table, &(union ibv_gid){{0}}, STRANGERS + 77));
	assert_int_equal(table->count, LIMIT_DCT_INITIATORS);
	dc_end();
}

/* ---- anything -------------------------------------------------------------------------------------------------- */

enum { ROUNDS = 150, PACKETS = 80, READABLE = HALF + 16384 };

static struct choose c;

static uint32_t some(const uint32_t *values, size_t count)
{
	return values[choose_below(&c, count)];
}

static void attack(struct mkey *readable)
{
	static const uint32_t lengths[] = {0, 1, 8, 100, 256, 256, 256, 257, 1000, 4096};
	static struct wire_packet packet;
	uint32_t source = 0x2000 + (uint32_t)choose_below(&c, 3);
	const struct dct_initiator *initiator = dct_find(dct[0].qp->dct, &packet.path.source, source);
	uint32_t psn = initiator ? initiator->responder.expected_psn : 0;

	packet = (struct wire_packet){
		.opcode = 0xc0 + (uint8_t)choose_below(&c, 0x20),
		.solicited = chance(&c, 50),
		.acknowledge = chance(&c, 50),
		.destination_qpn = chance(&c, 90) ? dct[0].qp->number : dci[0].qp->number,
		.psn = chance(&c, 70) ? psn : psn_add(psn, (uint32_t)choose_below(&c, 6) + PSN_MASK - 2),
		.source_qpn = source,
		.dc_key = chance(&c, 95) ? dct[0].key : choose_bits(&c),
		.dc_connection = (chance(&c, 90) && initiator ? initiator->connection : 100) +
				 (chance(&c, 10) ? choose_below(&c, 3) - 1 : 0),
		.dc_first_psn = chance(&c, 80) ? 0 : (uint32_t)choose_bits(&c) & PSN_MASK,
		.remote_address =
			chance(&c, 70) ? (uintptr_t)device.memory + READABLE + choose_below(&c, 1000) : choose_bits(&c),
		.rkey = chance(&c, 80) ? mkey_number(readable) : (uint32_t)choose_bits(&c),
		.dma_length = chance(&c, 80) ? (uint32_t)choose_below(&c, 1500) : (uint32_t)choose_bits(&c),
		.syndrome = (uint8_t)choose_bits(&c),
		.invalidate_rkey = (uint32_t)choose_bits(&c),
		.length = some(lengths, sizeof(lengths) / sizeof(lengths[0])),
	};
	/* No such opcode: no link would hand it on. */
	if (!packet_opcodes[packet.opcode].name)
		return;
	memset(packet.payload, 0x5a, packet.length);
	wire_receive(&packet);
}

/*
 * Packets as an attacker who has the key would send them: memory changes only where receives are, each receive completes
 * once at most, and the DCT serves a true initiator afterwards.
 */
static void anything(void **state)
{
	struct hca_mr_attr attr = {.length = 1000, .access = IBV_ACCESS_REMOTE_READ};
	static uint8_t before[sizeof(device.memory)];
	struct ibv_qp_attr options = dc_options();
	struct mkey *readable;

	(void)state;
	attr.addr = device.memory + READABLE;
	attr.start = (uintptr_t)attr.addr;
	assert_int_equal(hca_mr_register(device.pd, &attr, &readable), 0);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		uint32_t completed = 0;

		c = choose_for(round, 0);
		start(&options, NULL, NULL);
		for (uint32_t i = 0; i < 8; i++)
			dct_post(&dct[0], REMOTE + i * RECEIVE, 512);
		memcpy(before, device.memory, sizeof(before));
		for (int i = 0; i < PACKETS; i++) {
			struct wire_packet *answer;

			attack(readable);
			while ((answer = wire_take()))
				free(answer);
		}
		for (uint32_t i = 0; i < sizeof(before); i++)
			if (device.memory[i] != before[i] &&
			    (i < REMOTE || i >= REMOTE + 8 * RECEIVE || i % RECEIVE >= 512))
				fail_msg("round %lu: byte %#x was written", round, i);
		assert_true(dct[0].qp->dct->count <= 3);
		while (raw_cq_poll(&dct[0].cq))
			completed++;
		assert_true(completed <= 8);
		assert_int_equal(hca_qp_state(dct[0].qp), IBV_QPS_RTR);
		write_to(1, &dct[0], 300);
		dc_settle();
		expect_cqe(&dci_cq[1], 0, 0);
		dc_end();
	}
	assert_int_equal(hca_mr_deregister(readable), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_key),     cmocka_unit_test(no_target),
		cmocka_unit_test(ghosts),        cmocka_unit_test(begins_in_the_middle),
		cmocka_unit_test(given_up),      cmocka_unit_test(destroyed_in_the_middle),
		cmocka_unit_test(lost_refusal),  cmocka_unit_test(one_waits),
		cmocka_unit_test(of_two_hosts),  cmocka_unit_test(by_another_address),
		cmocka_unit_test(begins_afresh), cmocka_unit_test(remembers),
		cmocka_unit_test(full),          cmocka_unit_test(anything),
	};

	return cmocka_run_group_tests(tests, dc_open, dc_close);
}
