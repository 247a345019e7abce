/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests datagrams: the 40 bytes before each of them for every kind of GID, answers to the sender, Q_Keys, and datagrams that are
 * dropped or fail.
 *
 * The header: ibv_post_recv(3); IBTA 8.3 (GRH of RoCE v1), A17.3.1 (IPv6 and IPv4 of RoCE v2), A17.4.5.1 (IPv4 in the last 20
 * bytes); RFC 791, 8200. The GID table is that of SOFTHCA_GIDS=loopback: 0 and 1 are fe80::200:ff:fe00:0 as RoCE v1 and v2, 2 and
 * 3 ::ffff:127.0.0.1.
 */
#include "support/event.h"
#include "support/program.h"

#include <endian.h>
#include <softhca.h>

enum {
	SENDS = 100,
	RECEIVES = 200,
	GRH = 40,
	V1_IPV6 = 0,
	V2_IPV6 = 1,
	V1_IPV4 = 2,
	V2_IPV4 = 3,
	GIDS = 4,
	NEXT_HEADER_UDP = 17,
	NEXT_HEADER_IBA = 0x1b,
	/* BTH, DETH and ICRC */
	TRANSPORT_BYTES = 12 + 8 + 4,
	IMMEDIATE_BYTES = 4,
	UDP_BYTES = 8,
	PRIVILEGED = 1 << 31,
};

static int open_datagrams(void **state)
{
	struct pair_options options = pair_defaults(IBV_QPT_UD);

	if (program_open(state))
		return -1;
	pair_replace(&pair, &options);
	return 0;
}

static union ibv_gid gid_at(uint8_t index)
{
	union ibv_gid gid;

	assert_int_equal(ibv_query_gid(client.context, 1, index, &gid), 0);
	return gid;
}

/* Creates an address handle of @side to the GID of @index, which both sides have. */
static struct ibv_ah *create_ah(const struct side *side, uint8_t index, uint32_t flow_label, uint8_t traffic_class,
				uint8_t hop_limit)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = gid_at(index),
			.sgid_index = index,
			.flow_label = flow_label,
			.traffic_class = traffic_class,
			.hop_limit = hop_limit},
	};
	struct ibv_ah *ah = ibv_create_ah(side->pd, &attr);

	assert_non_null(ah);
	return ah;
}

/* Returns a request to send @length bytes of the client's memory to @qpn. */
static struct ibv_send_wr datagram(struct ibv_sge *sge, uint32_t length, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	*sge = side_sge(&client, 0, length);
	return (struct ibv_send_wr){
		.wr_id = SENDS,
		.sg_list = sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = {ah, qpn, qkey},
	};
}

static void send_to(struct ibv_ah *ah, uint32_t qpn, uint32_t qkey, uint32_t length)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = datagram(&sge, length, ah, qpn, qkey), *bad;

	expect_error(ibv_post_send(pair.client.qp, &wr, &bad), 0);
	expect_completion(&pair.client, SENDS, IBV_WC_SEND);
}

static void receive(struct endpoint *endpoint, uint64_t wr_id, size_t at, uint32_t length)
{
	struct ibv_sge sge = side_sge(endpoint->side, at, length);

	post_receive(endpoint, wr_id, &sge, 1);
}

/* ---- the header --------------------------------------------------------------------------------------------- */

static uint16_t be16_at(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t be32_at(const uint8_t *at)
{
	return (uint32_t)be16_at(at) << 16 | be16_at(at + 2);
}

static void expect_ipv6(const uint8_t *header, uint8_t index, uint16_t length)
{
	union ibv_gid gid = gid_at(index);

	assert_int_equal(be32_at(header), 6u << 28 | 0xa5u << 20 | 0x54321);
	assert_int_equal(be16_at(header + 4), length);
	assert_int_equal(header[6], index == V2_IPV6 ? NEXT_HEADER_UDP : NEXT_HEADER_IBA);
	assert_int_equal(header[7], 77);
	assert_memory_equal(header + 8, gid.raw, 16);
	assert_memory_equal(header + 24, gid.raw, 16);
}

static void expect_ipv4(const uint8_t *ip, uint16_t length)
{
	static const uint8_t loopback[] = {127, 0, 0, 1};
	uint32_t sum = 0;

	assert_int_equal(ip[0], 0x45);
	assert_int_equal(ip[1], 0xa5);
	assert_int_equal(be16_at(ip + 2), length);
	assert_int_equal(be16_at(ip + 6) & 0x3fff, 0); /* not a fragment */
	assert_int_equal(ip[8], 77);
	assert_int_equal(ip[9], NEXT_HEADER_UDP);
	for (int i = 0; i < 20; i += 2)
		sum += be16_at(ip + i);
	assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff); /* RFC 1071, the checksum included */
	assert_memory_equal(ip + 12, loopback, 4);
	assert_memory_equal(ip + 16, loopback, 4);
}

/* Checks the header. Its length fields count the bytes that follow, padded to a multiple of four. */
static void expect_header(const uint8_t *header, uint8_t index, uint32_t payload, bool immediate)
{
	uint16_t length = (uint16_t)((payload + 3) / 4 * 4 + TRANSPORT_BYTES + (immediate ? IMMEDIATE_BYTES : 0));

	note("GID %u, %u bytes%s", index, payload, immediate ? " and an immediate" : "");
	switch (index) {
	case V1_IPV6:
	case V1_IPV4:
		expect_ipv6(header, index, length);
		break;
	case V2_IPV6:
		expect_ipv6(header, index, length + UDP_BYTES);
		break;
	default:
		expect_ipv4(header + 20, length + UDP_BYTES + 20);
	}
	note_clear();
}

TEST(header_of_every_kind)
{
	static const uint32_t lengths[] = {0, 1, 2, 3, 4, 5, 100, 1023, 1024};

	for (uint8_t index = 0; index < GIDS; index++) {
		struct ibv_ah *ah = create_ah(&client, index, 0x54321, 0xa5, 77);

		for (size_t l = 0; l < ARRAY_SIZE(lengths); l++)
			for (int immediate = 0; immediate < 2; immediate++) {
				struct ibv_sge sge;
				struct ibv_send_wr wr =
					datagram(&sge, lengths[l], ah, pair.server.qp->qp_num, PAIR_QKEY);
				struct ibv_send_wr *bad;
				struct ibv_wc wc;

				side_stir(&server);
				if (immediate) {
					wr.opcode = IBV_WR_SEND_WITH_IMM;
					wr.imm_data = htobe32(0x12345678);
				}
				receive(&pair.server, RECEIVES, 100, GRH + 1024);
				expect_error(ibv_post_send(pair.client.qp, &wr, &bad), 0);
				expect_completion(&pair.client, SENDS, IBV_WC_SEND);
				wc = expect_completion(&pair.server, RECEIVES, IBV_WC_RECV);
				assert_int_equal(wc.byte_len, GRH + lengths[l]);
				assert_int_equal(wc.src_qp, pair.client.qp->qp_num);
				assert_int_equal(wc.wc_flags, IBV_WC_GRH | (immediate ? IBV_WC_WITH_IMM : 0));
				expect_header(server.memory + 100, index, lengths[l], immediate);
				memcpy(server.expected + 100, server.memory + 100, GRH);
				memcpy(server.expected + 100 + GRH, client.expected, lengths[l]);
				side_compare(&server);
			}
		assert_int_equal(ibv_destroy_ah(ah), 0);
	}
}

/* The header is scattered over the pieces like the payload. */
TEST(header_over_several_pieces)
{
	struct ibv_ah *ah = create_ah(&client, V2_IPV4, 0x54321, 0xa5, 77);
	uint8_t whole[GRH + 100];

	for (uint32_t first = 1; first < GRH + 3; first++) {
		struct ibv_sge list[] = {side_sge(&server, 1000, first), side_sge(&server, 500, 20),
					 side_sge(&server, 2000, GRH + 100 - 20 - first)};

		note("first piece %u bytes", first);
		side_stir(&server);
		post_receive(&pair.server, RECEIVES, list, 3);
		send_to(ah, pair.server.qp->qp_num, PAIR_QKEY, 100);
		expect_completion(&pair.server, RECEIVES, IBV_WC_RECV);
		memcpy(whole, server.memory + 1000, first);
		memcpy(whole + first, server.memory + 500, 20);
		memcpy(whole + first + 20, server.memory + 2000, GRH + 100 - 20 - first);
		expect_header(whole, V2_IPV4, 100, false);
		assert_memory_equal(whole + GRH, client.memory, 100);
		memcpy(server.expected + 1000, whole, first);
		memcpy(server.expected + 500, whole + first, 20);
		memcpy(server.expected + 2000, whole + first + 20, GRH + 100 - 20 - first);
		side_compare(&server);
	}
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* ---- answers to the sender ---------------------------------------------------------------------------------- */

/* An address handle from the completion and the header reaches the sender, over the same kind of GID. */
TEST(answer_to_the_sender)
{
	for (uint8_t index = 0; index < GIDS; index++) {
		struct ibv_ah *ah = create_ah(&client, index, 0x54321, 0xa5, 77), *back;
		struct ibv_sge sge = side_sge(&server, 5000, 64);
		struct ibv_send_wr wr = send_wr(SENDS, IBV_WR_SEND, &sge), *bad;
		struct ibv_wc wc;

		note("GID %u", index);
		side_stir(&client);
		side_stir(&server);
		receive(&pair.server, RECEIVES, 0, GRH + 64);
		send_to(ah, pair.server.qp->qp_num, PAIR_QKEY, 64);
		wc = expect_completion(&pair.server, RECEIVES, IBV_WC_RECV);
		back = ibv_create_ah_from_wc(server.pd, &wc, (struct ibv_grh *)(void *)server.memory, 1);
		assert_non_null(back);
		wr.wr.ud.ah = back;
		wr.wr.ud.remote_qpn = wc.src_qp;
		wr.wr.ud.remote_qkey = PAIR_QKEY;
		receive(&pair.client, RECEIVES, 1000, GRH + 64);
		expect_error(ibv_post_send(pair.server.qp, &wr, &bad), 0);
		expect_completion(&pair.server, SENDS, IBV_WC_SEND);
		wc = expect_completion(&pair.client, RECEIVES, IBV_WC_RECV);
		assert_int_equal(wc.src_qp, pair.server.qp->qp_num);
		memcpy(server.expected, server.memory, GRH);
		memcpy(server.expected + GRH, client.expected, 64);
		memcpy(client.expected + 1000, client.memory + 1000, GRH);
		memcpy(client.expected + 1000 + GRH, server.expected + 5000, 64);
		side_compare(&client);
		side_compare(&server);
		/* The answer has the same kind of header, and takes the same path. */
		if (index == V2_IPV4)
			assert_int_equal(client.memory[1000 + 20], 0x45);
		else
			assert_int_equal(client.memory[1000 + 6], server.memory[6]);
		assert_int_equal(ibv_destroy_ah(back), 0);
		assert_int_equal(ibv_destroy_ah(ah), 0);
	}
}

/* The completions of one receiver identify each sender; a QP may send to itself. */
TEST(several_senders)
{
	struct pair_options options = pair_defaults(IBV_QPT_UD);
	struct ibv_ah *ah = create_ah(&client, V2_IPV6, 0, 0, 1);
	struct ibv_send_wr *bad, wr = {.wr_id = SENDS,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED,
				       .wr.ud = {ah, pair.client.qp->qp_num, PAIR_QKEY}};
	struct pair other;
	struct endpoint *senders[] = {&pair.client, &pair.server, &other.client, &other.server};

	pair_open(&other, &client, &server, &options);
	for (size_t i = 0; i < ARRAY_SIZE(senders); i++) {
		receive(&pair.client, RECEIVES, 0, GRH);
		expect_error(ibv_post_send(senders[i]->qp, &wr, &bad), 0);
		if (senders[i] != &pair.client) {
			expect_completion(senders[i], SENDS, IBV_WC_SEND);
			assert_int_equal(expect_completion(&pair.client, RECEIVES, IBV_WC_RECV).src_qp,
					 senders[i]->qp->qp_num);
			continue;
		}
		/* Both completions are in one CQ, in either order. */
		for (int k = 0; k < 2; k++) {
			struct ibv_wc wc = next_completion(&pair.client);

			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			if (wc.wr_id == RECEIVES)
				assert_int_equal(wc.src_qp, pair.client.qp->qp_num);
			else
				assert_int_equal(wc.wr_id, SENDS);
		}
		expect_idle(&pair.client);
	}
	memcpy(client.expected, client.memory, GRH);
	pair_close(&other);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* ---- Q_Keys ------------------------------------------------------------------------------------------------- */

static void set_qkey(struct endpoint *endpoint, uint32_t qkey)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .qkey = qkey};

	expect_error(ibv_modify_qp(endpoint->qp, &attr, IBV_QP_STATE | IBV_QP_QKEY), 0);
}

/* Sends an empty datagram and checks whether it consumes the server's receive, which has exactly GRH bytes. */
static void expect_arrives(uint32_t qkey, bool arrives)
{
	note("Q_Key %#x", qkey);
	send_to(pair.client.ah, pair.server.qp->qp_num, qkey, 0);
	if (!arrives) {
		expect_idle(&pair.server);
		side_compare(&server);
		expect_no_event(&server);
		expect_state(&pair.server, IBV_QPS_RTS);
		return;
	}
	expect_completion(&pair.server, RECEIVES, IBV_WC_RECV);
	memcpy(server.expected, server.memory, GRH);
	side_stir(&server);
	receive(&pair.server, RECEIVES, 0, GRH);
}

TEST(qkeys)
{
	receive(&pair.server, RECEIVES, 0, GRH);
	expect_arrives(PAIR_QKEY, true);
	expect_arrives(PAIR_QKEY + 1, false);
	expect_arrives(0, false);
	expect_arrives(PAIR_QKEY, true);
	set_qkey(&pair.server, 0);
	expect_arrives(PAIR_QKEY, false);
	expect_arrives(0, true);
	set_qkey(&pair.server, INT32_MAX);
	expect_arrives(INT32_MAX, true);
}

/* IBTA 10.2.5: a Q_Key with its top bit set in a work request selects that of the sending QP. */
TEST(privileged_qkeys)
{
	receive(&pair.server, RECEIVES, 0, GRH);
	expect_arrives((uint32_t)PRIVILEGED, true);
	expect_arrives((uint32_t)PRIVILEGED | (PAIR_QKEY + 1), true);
	expect_arrives(UINT32_MAX, true);
	set_qkey(&pair.client, 5);
	expect_arrives((uint32_t)PRIVILEGED, false);
	expect_arrives((uint32_t)PRIVILEGED | PAIR_QKEY, false);
	expect_arrives(PAIR_QKEY, true);
	/* Naming a privileged Q_Key in a request does not select it. */
	set_qkey(&pair.server, (uint32_t)PRIVILEGED | 7);
	expect_arrives((uint32_t)PRIVILEGED | 7, false);
	set_qkey(&pair.client, (uint32_t)PRIVILEGED | 7);
	expect_arrives((uint32_t)PRIVILEGED | 7, true);
	expect_arrives((uint32_t)PRIVILEGED, true);
}

/* ---- datagrams that do not arrive --------------------------------------------------------------------------- */

static void expect_lost(const char *why, struct ibv_ah *ah, uint32_t qpn)
{
	note("%s", why);
	send_to(ah, qpn, PAIR_QKEY, 8);
	expect_idle(&pair.server);
	expect_no_event(&client);
	expect_no_event(&server);
	expect_state(&pair.client, IBV_QPS_RTS);
	expect_state(&pair.server, IBV_QPS_RTS);
	side_compare(&server);
	note_clear();
}

TEST(datagrams_that_are_lost)
{
	struct ibv_ah_attr nowhere = {
		.is_global = 1, .port_num = 1, .grh = {.dgid = client.gid, .sgid_index = V2_IPV6, .hop_limit = 1}};
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	uint64_t dropped = softhca_counter(server.context, "dropped_unreliable");
	struct ibv_ah *ah;
	struct pair rc;

	expect_lost("no receive", pair.client.ah, pair.server.qp->qp_num);
	/* If it came later, it would take the receive. */
	while (softhca_counter(server.context, "dropped_unreliable") == dropped)
		expect_idle(&pair.server);
	receive(&pair.server, RECEIVES, 0, GRH + 8);
	expect_lost("no such QP", pair.client.ah, 0xfffffe);
	expect_lost("QP 0", pair.client.ah, 0);
	pair_open(&rc, &client, &server, &options);
	post_receive(&rc.server, RECEIVES, NULL, 0);
	expect_lost("a connected QP", pair.client.ah, rc.server.qp->qp_num);
	expect_idle(&rc.server);
	pair_close(&rc);
	nowhere.grh.dgid.raw[15] ^= 0x55;
	ah = ibv_create_ah(client.pd, &nowhere);
	assert_non_null(ah);
	expect_lost("no such GID", ah, pair.server.qp->qp_num);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	/* The receive is still posted. */
	send_to(pair.client.ah, pair.server.qp->qp_num, PAIR_QKEY, 8);
	expect_completion(&pair.server, RECEIVES, IBV_WC_RECV);
	memcpy(server.expected, server.memory, GRH);
	memcpy(server.expected + GRH, client.expected, 8);
}

TEST(a_peer_that_does_not_receive)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	expect_error(ibv_modify_qp(pair.server.qp, &attr, IBV_QP_STATE), 0);
	send_to(pair.client.ah, pair.server.qp->qp_num, PAIR_QKEY, 8);
	endpoint_to_init(&pair.server);
	receive(&pair.server, RECEIVES, 0, GRH + 8);
	send_to(pair.client.ah, pair.server.qp->qp_num, PAIR_QKEY, 8);
	expect_idle(&pair.server);
	side_compare(&server);
	endpoint_to_rtr(&pair.server); /* from here on it receives */
	send_to(pair.client.ah, pair.server.qp->qp_num, PAIR_QKEY, 8);
	expect_completion(&pair.server, RECEIVES, IBV_WC_RECV);
	memcpy(server.expected, server.memory, GRH);
	memcpy(server.expected + GRH, client.expected, 8);
}

/*
 * IBTA 9.9.3, class D: a datagram too long for its receive is dropped. It writes nothing and consumes no receive; the QP keeps
 * working, and the next datagram gets the receive.
 */
TEST(datagrams_too_long)
{
	static const struct {
		const char *what;
		uint32_t room, payload;
	} bad[] = {
		{"one byte short", GRH + 63, 64},
		{"room for the payload only", 64, 64},
		{"header one byte short", GRH - 1, 0},
		{"many", GRH + 8, 1024},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		note("%s", bad[i].what);
		receive(&pair.server, RECEIVES, 0, bad[i].room);
		receive(&pair.server, RECEIVES + 1, 0, GRH + 8);
		for (int n = 0; n < 100; n++)
			send_to(pair.client.ah, pair.server.qp->qp_num, PAIR_QKEY, bad[i].payload);
		expect_idle(&pair.server);
		expect_state(&pair.server, IBV_QPS_RTS);
		side_compare(&server);
		if (bad[i].room >= GRH + 8) {
			/* Both receives complete, in order. */
			for (int n = 0; n < 2; n++) {
				send_to(pair.client.ah, pair.server.qp->qp_num, PAIR_QKEY, 8);
				expect_completion(&pair.server, RECEIVES + (uint64_t)n, IBV_WC_RECV);
			}
			memcpy(server.expected, server.memory, GRH);
			memcpy(server.expected + GRH, client.expected, 8);
		}
		pair_renew(&pair);
	}
}

/* Class E: a datagram too long for a receive of an SRQ completes it with an error; the QP keeps working. */
TEST(datagrams_too_long_for_an_srq)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 7, .max_sge = 2}};
	struct ibv_srq *srq = ibv_create_srq(server.pd, &attr);
	struct pair_options options = pair_defaults(IBV_QPT_UD);
	struct ibv_sge sges[] = {side_sge(&server, 0, GRH + 7), side_sge(&server, 0, GRH + 8)};
	struct ibv_recv_wr *bad;

	assert_non_null(srq);
	options.srq = srq;
	pair_replace(&pair, &options);
	for (uint64_t i = 0; i < 2; i++) {
		struct ibv_recv_wr wr = {.wr_id = RECEIVES + i, .sg_list = &sges[i], .num_sge = 1};

		expect_error(ibv_post_srq_recv(srq, &wr, &bad), 0);
	}
	send_to(pair.client.ah, pair.server.qp->qp_num, PAIR_QKEY, 8);
	expect_status(&pair.server, RECEIVES, IBV_WC_LOC_LEN_ERR);
	expect_state(&pair.server, IBV_QPS_RTS);
	side_compare(&server);
	send_to(pair.client.ah, pair.server.qp->qp_num, PAIR_QKEY, 8);
	expect_completion(&pair.server, RECEIVES + 1, IBV_WC_RECV);
	memcpy(server.expected, server.memory, GRH);
	memcpy(server.expected + GRH, client.expected, 8);
	pair_close(&pair);
	expect_error(ibv_destroy_srq(srq), 0);
	options.srq = NULL;
	pair_open(&pair, &client, &server, &options);
}

/* IBTA 10.2.3: a receive of an SRQ uses the SRQ's domain, not that of the queue pair. */
TEST(srq_of_another_domain)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 7, .max_sge = 2}};
	struct ibv_pd *domain = ibv_alloc_pd(server.context);
	struct ibv_mr *mr = ibv_reg_mr(domain, server.memory, 4096, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_srq *srq = ibv_create_srq(domain, &attr);
	struct pair_options options;

	assert_non_null(mr);
	assert_non_null(srq);
	for (int i = 0; i < 4; i++) {
		bool reliable = i & 1, own = i & 2;
		struct ibv_sge sge = {side_address(&server, 0), 200, own ? mr->lkey : server.mr->lkey};
		struct ibv_recv_wr *bad, wr = {.wr_id = RECEIVES, .sg_list = &sge, .num_sge = 1};
		struct ibv_sge source = side_sge(&client, 0, 8);
		struct ibv_send_wr send = {.wr_id = SENDS, .sg_list = &source, .num_sge = 1, .opcode = IBV_WR_SEND};

		note("reliable %d, a region of the SRQ's domain %d", reliable, own);
		options = pair_defaults(reliable ? IBV_QPT_RC : IBV_QPT_UD);
		options.srq = srq;
		pair_replace(&pair, &options);
		expect_error(ibv_post_srq_recv(srq, &wr, &bad), 0);
		if (reliable)
			post_send(&pair.client, &send);
		else
			send_to(pair.client.ah, pair.server.qp->qp_num, PAIR_QKEY, 8);
		if (own) {
			expect_completion(&pair.server, RECEIVES, IBV_WC_RECV);
			memcpy(server.expected, server.memory, GRH);
			memcpy(server.expected + (reliable ? 0 : GRH), client.expected, 8);
		} else {
			expect_status(&pair.server, RECEIVES, IBV_WC_LOC_PROT_ERR);
		}
		side_compare(&server);
		if (reliable && !own)
			expect_status(&pair.client, SENDS, IBV_WC_REM_OP_ERR);
	}
	options.srq = NULL;
	pair_replace(&pair, &options);
	expect_error(ibv_destroy_srq(srq), 0);
	expect_error(ibv_dereg_mr(mr), 0);
	expect_error(ibv_dealloc_pd(domain), 0);
}

/* A receive without access to its memory completes with an error and puts the QP into error; nothing is written. */
TEST(receive_with_a_bad_key)
{
	struct ibv_sge sge = {side_address(&server, 0), GRH + 64, 0xdeadbeef};

	post_receive(&pair.server, RECEIVES, &sge, 1);
	receive(&pair.server, RECEIVES + 1, 0, 100);
	send_to(pair.client.ah, pair.server.qp->qp_num, PAIR_QKEY, 64);
	expect_status(&pair.server, RECEIVES, IBV_WC_LOC_PROT_ERR);
	expect_status(&pair.server, RECEIVES + 1, IBV_WC_WR_FLUSH_ERR);
	expect_state(&pair.server, IBV_QPS_ERR);
	expect_state(&pair.client, IBV_QPS_RTS);
	side_compare(&server);
	pair_renew(&pair);
}

TEST(receives_of_an_srq)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 7, .max_sge = 2}};
	struct ibv_srq *srq = ibv_create_srq(server.pd, &attr);
	struct pair_options options = pair_defaults(IBV_QPT_UD);
	struct ibv_sge list[] = {side_sge(&server, 0, GRH), side_sge(&server, 1000, 64)};
	struct ibv_recv_wr wr = {.wr_id = RECEIVES, .sg_list = list, .num_sge = 2}, *bad;

	assert_non_null(srq);
	options.srq = srq;
	pair_replace(&pair, &options);
	for (int i = 0; i < 30; i++) {
		send_to(pair.client.ah, pair.server.qp->qp_num, PAIR_QKEY, 64); /* lost */
		expect_error(ibv_post_srq_recv(srq, &wr, &bad), 0);
		send_to(pair.client.ah, pair.server.qp->qp_num, PAIR_QKEY, 64);
		assert_int_equal(expect_completion(&pair.server, RECEIVES, IBV_WC_RECV).byte_len, GRH + 64);
		expect_idle(&pair.server);
	}
	memcpy(server.expected, server.memory, GRH);
	memcpy(server.expected + 1000, client.expected, 64);
	options.srq = NULL;
	pair_replace(&pair, &options);
	expect_error(ibv_destroy_srq(srq), 0);
}

int main(void)
{
	setenv("SOFTHCA_GIDS", "loopback", 1);
	return run_cases(.setup = open_datagrams, .teardown = program_close);
}
