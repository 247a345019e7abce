/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of the communication manager against bytes computed by hand from IBTA 12.6, 12.11 and 13.4.2; invalid
 * messages; and the recipient of each.
 */
#include "test_case.h"

#include "format/cm_message.h"

enum { HEADER = 24 };

/* Expected bytes of a MAD; all others are 0. */
struct bytes {
	uint32_t at; /* from the beginning of the MAD */
	const char *hex;
};

static void lay(uint8_t *mad, const struct bytes *bytes)
{
	memset(mad, 0, CM_MAD_BYTES);
	for (; bytes->hex; bytes++)
		for (size_t i = 0; bytes->hex[2 * i]; i++) {
			const char digits[3] = {bytes->hex[2 * i], bytes->hex[2 * i + 1]};

			mad[bytes->at + i] = (uint8_t)strtoul(digits, NULL, 16);
		}
}

/* Checks the same message in both directions. */
static void expect(const struct cm_message *message, const struct bytes *bytes)
{
	uint8_t expected[CM_MAD_BYTES], got[CM_MAD_BYTES];
	struct cm_message back;

	lay(expected, bytes);
	memset(got, 0xa5, sizeof(got));
	cm_pack(message, got);
	assert_memory_equal(got, expected, CM_MAD_BYTES);
	memset(&back, 0xa5, sizeof(back));
	assert_int_equal(cm_unpack(expected, &back), CM_WELL_FORMED);
	assert_memory_equal(&back, message, sizeof(back));
	assert_int_equal(cm_mad_kind(expected), message->kind);
}

static void fill(uint8_t *field, size_t size, uint8_t first)
{
	for (size_t i = 0; i < size; i++)
		field[i] = (uint8_t)(first + i);
}

/* Zeros the padding too, since expect() compares all of it. */
static struct cm_message *message(enum cm_message_kind kind)
{
	static struct cm_message message;

	memset(&message, 0, sizeof(message));
	message.kind = kind;
	message.transaction_id = UINT64_C(0x0102030405060708);
	return &message;
}

TEST(req)
{
	struct cm_message *m = message(CM_REQ);

	m->attribute_modifier = 0xe0e1e2e3;
	m->req = (struct cm_req){
		.local_comm_id = 0x11223344,
		.vendor_id = 0xabcdef,
		.service_id = UINT64_C(0x0000000001061c26),
		.local_ca_guid = UINT64_C(0x506b4b0300a1b2c3),
		.local_qkey = 0x81828384,
		.local_qpn = 0x0a0b0c,
		.responder_resources = 0x10,
		.local_eecn = 0x0d0e0f,
		.initiator_depth = 0x11,
		.remote_eecn = 0x212223,
		.remote_response_timeout = 20,
		.transport_service = 3,
		.flow_control = 1,
		.starting_psn = 0x313233,
		.local_response_timeout = 21,
		.retry_count = 6,
		.pkey = 0xffff,
		.path_mtu = 3,
		.rdc_exists = 1,
		.rnr_retry_count = 5,
		.max_cm_retries = 15,
		.extended_transport = 1,
		.primary_local_lid = 0x4142,
		.primary_remote_lid = 0x4344,
		.primary_flow_label = 0x12345,
		.primary_packet_rate = 0x2a,
		.primary_traffic_class = 0x51,
		.primary_hop_limit = 64,
		.primary_service_level = 9,
		.primary_subnet_local = 1,
		.primary_ack_timeout = 18,
		.alternate_local_lid = 0x6162,
		.alternate_remote_lid = 0x6364,
		.alternate_flow_label = 0xfedcb,
		.alternate_packet_rate = 0x15,
		.alternate_traffic_class = 0x71,
		.alternate_hop_limit = 0x72,
		.alternate_service_level = 6,
		.alternate_ack_timeout = 13,
	};
	fill(m->req.primary_local_gid, 16, 0x80);
	fill(m->req.primary_remote_gid, 16, 0x90);
	fill(m->req.alternate_local_gid, 16, 0xa0);
	fill(m->req.alternate_remote_gid, 16, 0xb0);
	m->req.private_data[0] = 0xc1;
	m->req.private_data[91] = 0xc2;
	expect(m, (const struct bytes[]){
			  {0, "01070203"},
			  {8, "0102030405060708"},
			  {16, "0010"},
			  {20, "e0e1e2e3"},
			  {HEADER + 0, "11223344"},
			  {HEADER + 5, "abcdef"},
			  {HEADER + 8, "0000000001061c26"},
			  {HEADER + 16, "506b4b0300a1b2c3"},
			  {HEADER + 28, "81828384"},
			  {HEADER + 32, "0a0b0c10"},
			  {HEADER + 36, "0d0e0f11"},
			  /* 20 = 10100, 3 = 11, 1: 10100111; 21 = 10101, 6 = 110: 10101110 */
			  {HEADER + 40, "212223a7"},
			  {HEADER + 44, "313233ae"},
			  /* 3 = 0011, 1, 5 = 101: 00111101; 15 = 1111, 0, 1 = 001: 11110001 */
			  {HEADER + 48, "ffff3df1"},
			  {HEADER + 52, "41424344"},
			  {HEADER + 56, "808182838485868788898a8b8c8d8e8f"},
			  {HEADER + 72, "909192939495969798999a9b9c9d9e9f"},
			  /* 20 bits, then 6 reserved bits, then 6; 9 = 1001, 1: 10011000; 18 = 10010: 10010000 */
			  {HEADER + 88, "1234502a51409890"},
			  {HEADER + 96, "61626364"},
			  {HEADER + 100, "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf"},
			  {HEADER + 116, "b0b1b2b3b4b5b6b7b8b9babbbcbdbebf"},
			  /* 6 = 0110, 0: 01100000; 13 = 01101: 01101000 */
			  {HEADER + 132, "fedcb01571726068"},
			  {HEADER + 140, "c1"},
			  {HEADER + 231, "c2"},
			  {0, NULL},
		  });
}

TEST(mra)
{
	struct cm_message *m = message(CM_MRA);

	m->mra.local_comm_id = 0x11121314;
	m->mra.remote_comm_id = 0x21222324;
	m->mra.message_acknowledged = 1;
	m->mra.service_timeout = 24;
	fill(m->mra.private_data, 1, 0xc1);
	/* 1 = 01: 01000000; 24 = 11000: 11000000 */
	expect(m, (const struct bytes[]){{0, "01070203"},
					 {8, "0102030405060708"},
					 {16, "0011"},
					 {HEADER, "111213142122232440c0c1"},
					 {0, NULL}});
}

TEST(rej)
{
	struct cm_message *m = message(CM_REJ);

	m->rej.local_comm_id = 0x11121314;
	m->rej.remote_comm_id = 0x21222324;
	m->rej.message_rejected = 2;
	m->rej.info_length = 72;
	m->rej.reason = 0x011c;
	fill(m->rej.info, 8, 0x31);
	m->rej.info[71] = 0x3f;
	m->rej.private_data[0] = 0xc1;
	m->rej.private_data[147] = 0xc2;
	/* 2 = 10: 10000000; 72 = 1001000: 10010000 */
	expect(m, (const struct bytes[]){{0, "01070203"},
					 {8, "0102030405060708"},
					 {16, "0012"},
					 {HEADER, "11121314212223248090011c3132333435363738"},
					 {HEADER + 83, "3fc1"},
					 {HEADER + 231, "c2"},
					 {0, NULL}});
}

TEST(rep)
{
	struct cm_message *m = message(CM_REP);

	m->attribute_modifier = 0x10000000;
	m->rep = (struct cm_rep){
		.local_comm_id = 0x11121314,
		.remote_comm_id = 0x21222324,
		.local_qkey = 0x80010203,
		.local_qpn = 0x0a0b0c,
		.vendor_id_high = 0xab,
		.local_eecn = 0x0d0e0f,
		.vendor_id_middle = 0xcd,
		.starting_psn = 0x313233,
		.vendor_id_low = 0xef,
		.responder_resources = 0x41,
		.initiator_depth = 0x42,
		.target_ack_delay = 16,
		.failover_accepted = 2,
		.flow_control = 1,
		.rnr_retry_count = 5,
		.srq = 1,
		.local_ca_guid = UINT64_C(0x506b4b0300a1b2c3),
	};
	m->rep.private_data[0] = 0xc1;
	m->rep.private_data[195] = 0xc2;
	/* 16 = 10000, 2 = 10, 1: 10000101; 5 = 101, 1: 10110000 */
	expect(m, (const struct bytes[]){{0, "01070203"},
					 {8, "0102030405060708"},
					 {16, "0013"},
					 {20, "10000000"},
					 {HEADER, "111213142122232480010203"},
					 {HEADER + 12, "0a0b0cab0d0e0fcd313233ef"},
					 {HEADER + 24, "414285b0506b4b0300a1b2c3c1"},
					 {HEADER + 231, "c2"},
					 {0, NULL}});
}

TEST(rtu)
{
	struct cm_message *m = message(CM_RTU);

	m->rtu.local_comm_id = 0x11121314;
	m->rtu.remote_comm_id = 0x21222324;
	m->rtu.private_data[0] = 0xc1;
	m->rtu.private_data[223] = 0xc2;
	expect(m, (const struct bytes[]){{0, "01070203"},
					 {8, "0102030405060708"},
					 {16, "0014"},
					 {HEADER, "1112131421222324c1"},
					 {HEADER + 231, "c2"},
					 {0, NULL}});
}

TEST(dreq)
{
	struct cm_message *m = message(CM_DREQ);

	m->dreq.local_comm_id = 0x11121314;
	m->dreq.remote_comm_id = 0x21222324;
	m->dreq.remote_qpn = 0x0a0b0c;
	m->dreq.private_data[0] = 0xc1;
	m->dreq.private_data[219] = 0xc2;
	expect(m, (const struct bytes[]){{0, "01070203"},
					 {8, "0102030405060708"},
					 {16, "0015"},
					 {HEADER, "11121314212223240a0b0c00c1"},
					 {HEADER + 231, "c2"},
					 {0, NULL}});
}

TEST(drep)
{
	struct cm_message *m = message(CM_DREP);

	m->drep.local_comm_id = 0x11121314;
	m->drep.remote_comm_id = 0x21222324;
	m->drep.private_data[223] = 0xc2;
	expect(m, (const struct bytes[]){{0, "01070203"},
					 {8, "0102030405060708"},
					 {16, "0016"},
					 {HEADER, "1112131421222324"},
					 {HEADER + 231, "c2"},
					 {0, NULL}});
}

TEST(sidr_req)
{
	struct cm_message *m = message(CM_SIDR_REQ);

	m->sidr_req.request_id = 0x11121314;
	m->sidr_req.pkey = 0xffff;
	m->sidr_req.service_id = UINT64_C(0x0000000001111c26);
	m->sidr_req.private_data[0] = 0xc1;
	m->sidr_req.private_data[215] = 0xc2;
	expect(m, (const struct bytes[]){{0, "01070203"},
					 {8, "0102030405060708"},
					 {16, "0017"},
					 {HEADER, "11121314ffff00000000000001111c26c1"},
					 {HEADER + 231, "c2"},
					 {0, NULL}});
}

TEST(sidr_rep)
{
	struct cm_message *m = message(CM_SIDR_REP);

	m->attribute_modifier = 0x10000000;
	m->sidr_rep = (struct cm_sidr_rep){.request_id = 0x11121314,
					   .status = 5,
					   .info_length = 6,
					   .vendor_id_high = 0xabcd,
					   .qpn = 0x0a0b0c,
					   .vendor_id_low = 0xef,
					   .service_id = UINT64_C(0x0000000001111c26),
					   .qkey = 0x01234567};
	m->sidr_rep.info[0] = 0x31;
	m->sidr_rep.info[71] = 0x32;
	m->sidr_rep.private_data[0] = 0xc1;
	m->sidr_rep.private_data[135] = 0xc2;
	expect(m, (const struct bytes[]){{0, "01070203"},
					 {8, "0102030405060708"},
					 {16, "0018"},
					 {20, "10000000"},
					 {HEADER, "111213140506abcd0a0b0cef0000000001111c260123456731"},
					 {HEADER + 95, "32c1"},
					 {HEADER + 231, "c2"},
					 {0, NULL}});
}

/* A value of a program may be wider than its field; it must not spill into the next. */
TEST(numbers_are_cut)
{
	struct cm_message *m = message(CM_REQ), back;
	uint8_t mad[CM_MAD_BYTES];

	m->req.local_qpn = 0xff0a0b0c;
	m->req.retry_count = 0xff;
	m->req.path_mtu = 0x13;
	cm_pack(m, mad);
	cm_unpack(mad, &back);
	assert_int_equal(back.req.local_qpn, 0x0a0b0c);
	assert_int_equal(back.req.responder_resources, 0);
	assert_int_equal(back.req.retry_count, 7);
	assert_int_equal(back.req.local_response_timeout, 0);
	assert_int_equal(back.req.path_mtu, 3);
}

TEST(is_no_message)
{
	static const struct {
		uint32_t byte;
		uint8_t value;
		enum cm_malformed wrong;
	} cases[] = {
		{0, 2, CM_FOREIGN_VERSION},     {1, 0x03, CM_FOREIGN_CLASS},    {1, 0x87, CM_FOREIGN_CLASS},
		{2, 1, CM_FOREIGN_CLASS},       {3, 0x01, CM_FOREIGN_METHOD},   {3, 0x83, CM_FOREIGN_METHOD},
		{16, 1, CM_FOREIGN_MESSAGE},    {17, 0x0f, CM_FOREIGN_MESSAGE}, {17, 0x19, CM_FOREIGN_MESSAGE},
		{17, 0x1a, CM_FOREIGN_MESSAGE}, {17, 0x00, CM_FOREIGN_MESSAGE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t mad[CM_MAD_BYTES], answer[CM_MAD_BYTES];
		struct cm_message back;
		uint64_t key;

		cm_pack(message(CM_DREQ), mad);
		mad[cases[i].byte] = cases[i].value;
		assert_int_equal(cm_unpack(mad, &back), cases[i].wrong);
		assert_int_equal(back.kind, CM_NO_MESSAGE);
		assert_int_equal(cm_mad_kind(mad), CM_NO_MESSAGE);
		assert_int_equal(cm_mad_addressee(mad, &key), CM_TO_NONE);
		assert_false(cm_answer_unclaimed(mad, answer));
	}
}

static void expect_addressee(const struct cm_message *m, enum cm_addressee addressee, uint64_t key)
{
	uint8_t mad[CM_MAD_BYTES];
	uint64_t got = 0;

	cm_pack(m, mad);
	assert_int_equal(cm_mad_addressee(mad, &got), addressee);
	assert_int_equal(got, key);
}

TEST(addressees)
{
	struct cm_message *m = message(CM_REQ);

	m->req.local_comm_id = 1;
	m->req.service_id = UINT64_C(0x1061c26);
	expect_addressee(m, CM_TO_SERVICE, UINT64_C(0x1061c26));
	m = message(CM_SIDR_REQ);
	m->sidr_req.request_id = 1;
	m->sidr_req.service_id = UINT64_C(0x1111c26);
	expect_addressee(m, CM_TO_SERVICE, UINT64_C(0x1111c26));
	m = message(CM_SIDR_REP);
	m->sidr_rep.request_id = 2;
	expect_addressee(m, CM_TO_COMM_ID, 2);
	for (enum cm_message_kind kind = CM_MRA; kind <= CM_DREP; kind++) {
		uint8_t mad[CM_MAD_BYTES];
		uint64_t key;

		cm_pack(message(kind), mad);
		/* In all of these the recipient's id is the second one. */
		memcpy(mad + HEADER, "\1\1\1\1\2\2\2\2", 8);
		assert_int_equal(cm_mad_addressee(mad, &key), CM_TO_COMM_ID);
		assert_int_equal(key, 0x02020202);
	}
	m = message(CM_REJ);
	m->rej.reason = 4;
	expect_addressee(m, CM_TO_ALL, 0);
}

TEST(answers_for_unknown_ids)
{
	uint8_t mad[CM_MAD_BYTES], answer[CM_MAD_BYTES];
	struct cm_message *m = message(CM_REQ), back;

	m->req.local_comm_id = 0x11121314;
	cm_pack(m, mad);
	assert_true(cm_answer_unclaimed(mad, answer));
	assert_int_equal(cm_unpack(answer, &back), CM_WELL_FORMED);
	assert_int_equal(back.kind, CM_REJ);
	assert_int_equal(back.transaction_id, UINT64_C(0x0102030405060708));
	assert_int_equal(back.rej.local_comm_id, 0);
	assert_int_equal(back.rej.remote_comm_id, 0x11121314);
	assert_int_equal(back.rej.message_rejected, 0);
	assert_int_equal(back.rej.reason, 8);

	m = message(CM_SIDR_REQ);
	m->sidr_req.request_id = 0x11121314;
	m->sidr_req.service_id = 0x1111c26;
	cm_pack(m, mad);
	assert_true(cm_answer_unclaimed(mad, answer));
	cm_unpack(answer, &back);
	assert_int_equal(back.kind, CM_SIDR_REP);
	assert_int_equal(back.sidr_rep.request_id, 0x11121314);
	assert_int_equal(back.sidr_rep.service_id, 0x1111c26);
	assert_int_equal(back.sidr_rep.status, 1);

	m = message(CM_DREQ);
	m->dreq.local_comm_id = 0x11121314;
	m->dreq.remote_comm_id = 0x21222324;
	cm_pack(m, mad);
	assert_true(cm_answer_unclaimed(mad, answer));
	cm_unpack(answer, &back);
	assert_int_equal(back.kind, CM_DREP);
	assert_int_equal(back.drep.local_comm_id, 0x21222324);
	assert_int_equal(back.drep.remote_comm_id, 0x11121314);

	cm_pack(message(CM_REP), mad);
	assert_false(cm_answer_unclaimed(mad, answer));
}
