/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets to a DCT that the test writes itself: from initiators on other hosts, from more of them than it has places
 * for, and with any content.
 */
#include "test_case.h"

#include "../../model/choose.h"
#include "../support/dc_fixture.h"

enum { REMOTE = HALF, RECEIVE = 1024 };

/* ---- places ---------------------------------------------------------------------------------------------------- */

enum { READ_REQUEST = 0xcc, WRITE_ONLY = 0xca, DISCONNECT = 0xdc, STRANGERS = 0x1000, NO_ANSWER = 0xff };

static uint32_t answered_msn;

/* Sends an empty request of an initiator without a QP. Returns the syndrome of the answer of the DCT. */
static uint8_t foreign(uint16_t host, uint32_t qpn, uint64_t connection, uint32_t first_psn, uint32_t psn,
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
		.path.source.raw = {[14] = host >> 8, [15] = host & 0xff},
	};
	struct wire_packet *answer;
	uint8_t syndrome;

	wire_receive(&packet);
	answer = wire_take();
	if (!answer)
		return NO_ANSWER;
	assert_int_equal(answer->destination_qpn, qpn);
	assert_int_equal(answer->path.destination.raw[15], host & 0xff);
	answered_msn = answer->msn;
	syndrome = answer->syndrome;
	free(answer);
	return syndrome;
}

static const struct dct_initiator *initiator_of(uint32_t qpn, const union ibv_gid *gid)
{
	const struct packet_path path = {.source = *gid};
	static struct packet packet;

	packet.source_qpn = qpn;
	packet.path = &path;
	packet.link = device.hca->link;
	return dct_find(dct[0].qp->dct, &packet);
}

static uint8_t foreign_write(uint32_t qpn, uint64_t connection, uint32_t psn, uint8_t opcode)
{
	return foreign(0, qpn, connection, psn, psn, opcode);
}

/* Many hosts have QPs of the same number. */
TEST(of_many_hosts)
{
	enum { HOSTS = 2 * DCT_BUCKETS };
	struct ibv_qp_attr options = dc_options();

	dc_begin(&options, 0, NULL, NULL);
	for (uint16_t host = 0; host < HOSTS; host++)
		assert_int_equal(foreign(host, STRANGERS, HOSTS - host, host, host, WRITE_ONLY), ACKNOWLEDGED);
	for (uint16_t host = 0; host < HOSTS; host++)
		assert_int_equal(foreign(host, STRANGERS, HOSTS - host, host, host + 1, WRITE_ONLY), ACKNOWLEDGED);
	assert_int_equal(dct[0].qp->dct->count, HOSTS);
	dc_end();
}

/*
 * A sender on another link with the number, address, and connection of a known initiator is a separate initiator, and is
 * answered on its link: the connection of the known one is not affected.
 */
TEST(sender_on_another_link)
{
	struct ibv_qp_attr options = dc_options();
	struct link elsewhere;
	struct wire_packet *answer, packet = {
					    .link = &elsewhere,
					    .opcode = WRITE_ONLY,
					    .acknowledge = true,
					    .psn = 101,
					    .source_qpn = STRANGERS,
					    .dc_connection = 7,
					    .dc_first_psn = 100,
				    };

	dc_begin(&options, 0, NULL, NULL);
	elsewhere = *device.hca->link;
	packet.destination_qpn = dct[0].qp->number;
	packet.dc_key = dct[0].key;
	assert_int_equal(foreign(0, STRANGERS, 7, 100, 100, WRITE_ONLY), ACKNOWLEDGED);
	for (uint32_t connection = 7; connection <= 8; connection++) {
		packet.dc_connection = connection;
		wire_receive(&packet);
		answer = wire_take();
		assert_non_null(answer);
		assert_ptr_equal(answer->link, &elsewhere);
		assert_int_equal(answer->syndrome, AETH_NAK | NAK_SEQUENCE);
		free(answer);
	}
	assert_int_equal(dct[0].qp->dct->count, 2);
	assert_int_equal(foreign(0, STRANGERS, 7, 100, 101, WRITE_ONLY), ACKNOWLEDGED);
	dc_end();
}

/* Requests and answers of one connection do not count in the next. */
TEST(begins_afresh)
{
	struct ibv_qp_attr options = dc_options();

	dc_begin(&options, 0, NULL, NULL);
	/* A gap is reported once, in each of them. */
	assert_int_equal(foreign(0, STRANGERS, 7, 100, 102, WRITE_ONLY), AETH_NAK | NAK_SEQUENCE);
	assert_int_equal(foreign(0, STRANGERS, 7, 100, 103, WRITE_ONLY), NO_ANSWER);
	assert_int_equal(foreign(0, STRANGERS, 8, 200, 201, WRITE_ONLY), AETH_NAK | NAK_SEQUENCE);
	/* A repeated READ is answered again; one of the connection before is not. */
	assert_int_equal(foreign(0, STRANGERS, 9, 300, 300, READ_REQUEST), ACKNOWLEDGED);
	assert_int_equal(foreign(0, STRANGERS, 9, 300, 300, READ_REQUEST), ACKNOWLEDGED);
	assert_int_equal(foreign(0, STRANGERS, 10, 301, 301, WRITE_ONLY), ACKNOWLEDGED);
	assert_int_equal(answered_msn, 1);
	assert_int_equal(foreign(0, STRANGERS, 10, 301, 300, READ_REQUEST), NO_ANSWER);
	dc_end();
}

/* While there is room, departed initiators are remembered, so that late packets of them are recognized. */
TEST(remembers)
{
	struct ibv_qp_attr options = dc_options();

	dc_begin(&options, 0, NULL, NULL);
	assert_int_equal(foreign_write(STRANGERS, 7, 0, WRITE_ONLY), ACKNOWLEDGED);
	assert_int_equal(foreign_write(STRANGERS, 7, 1, DISCONNECT), NO_ANSWER);
	assert_int_equal(foreign_write(STRANGERS + 1, 7, 0, WRITE_ONLY), ACKNOWLEDGED);
	assert_int_equal(foreign_write(STRANGERS, 7, 0, WRITE_ONLY), NO_ANSWER);
	expect_rule(dct[0].qp, RULE_DC_CONNECTION_OVER);
	dc_end();
}

TEST(full)
{
	struct ibv_qp_attr options = dc_options();
	const struct dct *table;

	dc_begin(&options, 0, NULL, NULL);
	table = dct[0].qp->dct;
	for (uint32_t i = 0; i < LIMIT_DCT_INITIATORS; i++)
		assert_int_equal(foreign_write(STRANGERS + i, 7, 0, WRITE_ONLY), ACKNOWLEDGED);
	assert_int_equal(table->count, LIMIT_DCT_INITIATORS);
	/* One more gets an RNR NAK, and waits. */
	assert_int_equal(foreign_write(STRANGERS - 1, 7, 0, WRITE_ONLY), AETH_RNR_NAK | options.min_rnr_timer);
	expect_rule(dct[0].qp, RULE_DCT_FULL);
	options.rnr_retry = 2;
	dci_start(&dci[0], &options);
	dc_write(0, &dct[0], 8);
	dc_settle();
	expect_cqe(&dci_cq[0], 0, MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
	/* Initiators with a place are served. */
	assert_int_equal(foreign_write(STRANGERS + 5, 7, 1, WRITE_ONLY), ACKNOWLEDGED);

	/* The place of a departed initiator can be reused at once. */
	assert_int_equal(foreign_write(STRANGERS + 9, 7, 1, DISCONNECT), NO_ANSWER);
	dci_start(&dci[0], &options);
	while (raw_cq_poll(&dci_cq[0]))
		;
	dc_write(0, &dct[0], 8);
	dc_settle();
	expect_cqe(&dci_cq[0], 0, 0);
	assert_int_equal(foreign_write(STRANGERS - 1, 7, 0, WRITE_ONLY), AETH_RNR_NAK | options.min_rnr_timer);

	/* So can that of a long silent one; other places cannot. */
	wire_clock_pass(LIMIT_DCT_INITIATOR_SECONDS * UINT64_C(1000000000));
	assert_int_equal(foreign_write(STRANGERS - 1, 7, 0, WRITE_ONLY), AETH_RNR_NAK | options.min_rnr_timer);
	for (uint32_t i = 0; i < LIMIT_DCT_INITIATORS; i++)
		if (i != 9 && i != 77)
			assert_int_equal(foreign_write(STRANGERS + i, 7, 2, WRITE_ONLY) & AETH_KIND_MASK,
					 i == 5 ? AETH_ACK : AETH_NAK);
	wire_clock_pass(LIMIT_DCT_INITIATOR_SECONDS * UINT64_C(1000000000));
	dc_write(0, &dct[0], 8);
	dc_settle();
	expect_cqe(&dci_cq[0], 2, 0);
	assert_int_equal(foreign_write(STRANGERS - 1, 7, 0, WRITE_ONLY), ACKNOWLEDGED);
	assert_int_equal(foreign_write(STRANGERS - 2, 7, 0, WRITE_ONLY), AETH_RNR_NAK | options.min_rnr_timer);
	assert_null(initiator_of(STRANGERS + 77, &(union ibv_gid){{0}}));
	assert_int_equal(table->count, LIMIT_DCT_INITIATORS);
	dc_end();
}

/* A READ is repeated after its key has ended: the connection of its initiator continues. */
TEST(repetition_after_the_key)
{
	struct ibv_qp_attr options = dc_options();
	struct hca_mr_attr attr = {.addr = device.memory,
				   .start = (uintptr_t)device.memory,
				   .length = sizeof(device.memory),
				   .access = ALL_ACCESS};
	struct wire_packet read = {.opcode = READ_REQUEST,
				   .acknowledge = true,
				   .psn = 100,
				   .source_qpn = STRANGERS,
				   .dc_connection = 7,
				   .dc_first_psn = 100,
				   .remote_address = (uintptr_t)device.memory,
				   .dma_length = 8};
	struct wire_packet *answer;
	struct mkey *key;

	dc_begin(&options, 0, NULL, NULL);
	assert_int_equal(hca_mr_register(device.pd, &attr, &key), 0);
	read.destination_qpn = dct[0].qp->number;
	read.dc_key = dct[0].key;
	read.rkey = mkey_number(key);
	wire_receive(&read);
	answer = wire_take();
	assert_non_null(answer);
	assert_memory_equal(answer->payload, device.memory, 8);
	free(answer);
	assert_int_equal(hca_mr_deregister(key), 0);
	wire_receive(&read);
	assert_null(wire_take());
	assert_int_equal(foreign(0, STRANGERS, 7, 100, 101, WRITE_ONLY), ACKNOWLEDGED);
	dc_end();
}

/* ---- random packets -------------------------------------------------------------------------------------------- */

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
	const struct dct_initiator *initiator = initiator_of(source, &packet.path.source);
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
	/* No such opcode: a link would drop it. */
	if (!packet_opcodes[packet.opcode].name)
		return;
	memset(packet.payload, 0x5a, packet.length);
	wire_receive(&packet);
}

/*
 * Packets of an attacker who has the key: memory changes only where receives are, each receive completes once at most,
 * and the DCT serves a true initiator afterwards.
 */
TEST(anything)
{
	struct hca_mr_attr attr = {.length = 1000, .access = IBV_ACCESS_REMOTE_READ};
	static uint8_t before[sizeof(device.memory)];
	struct ibv_qp_attr options = dc_options();
	struct mkey *readable;

	attr.addr = device.memory + READABLE;
	attr.start = (uintptr_t)attr.addr;
	assert_int_equal(hca_mr_register(device.pd, &attr, &readable), 0);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		uint32_t completed = 0;

		c = choose_for(round, 0);
		dc_begin(&options, 0, NULL, NULL);
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
		dc_write(1, &dct[0], 300);
		dc_settle();
		expect_cqe(&dci_cq[1], 0, 0);
		dc_end();
	}
	assert_int_equal(hca_mr_deregister(readable), 0);
}

int main(void)
{
	return run_cases(.group_setup = device_group_open, .group_teardown = device_group_close);
}
