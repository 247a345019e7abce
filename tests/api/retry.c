/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that does not answer: how often and after which time a sender retries, when it fails, and that no message is
 * lost or executed twice if the peer answers later (ibv_modify_qp(3), timeout and retry_cnt; IBTA 9.7.6.1.3: the timer
 * runs for 4.096 us * 2^timeout at least and four times that at most). The device's explanations count the tries: there
 * is one for each packet to a QP that cannot receive.
 */
#include "test_clock.h"
#include "support/event.h"
#include "support/program.h"

#include <endian.h>
#include <softhca.h>

enum { SENDS = 100, RECEIVES = 200, MS_4 = 10, MS_17 = 12, MS_268 = 16, MEASUREMENTS = 4 };

static double timeout_ms(uint8_t timeout)
{
	return 4.096e-3 * (double)(1ull << timeout);
}

/* Not connected yet. */
static void create_pair(uint8_t timeout, uint8_t retry_cnt)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	options.timeout = timeout;
	options.retry_cnt = retry_cnt;
	pair_close(&pair);
	pair_create(&pair, &client, &server, &options);
}

static void ready(struct endpoint *endpoint)
{
	endpoint_to_init(endpoint);
	endpoint_to_rtr(endpoint);
	endpoint_to_rts(endpoint);
}

/* Opens a pair with the client in RTS and the server in RESET. */
static void open_without_peer(uint8_t timeout, uint8_t retry_cnt)
{
	create_pair(timeout, retry_cnt);
	ready(&pair.client);
}

static void post(enum ibv_wr_opcode opcode, uint64_t wr_id, size_t from, uint32_t length, size_t to)
{
	struct ibv_sge sge = side_sge(&client, from, length);
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32((uint32_t)wr_id),
		.wr.rdma = {side_address(&server, to), server.mr->rkey},
	};

	post_send(&pair.client, &wr);
}

static void fetch_add(uint64_t wr_id, size_t from, size_t to, uint64_t value)
{
	struct ibv_sge sge = side_sge(&client, from, 8);
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = {side_address(&server, to), value, 0, server.mr->rkey},
	};

	post_send(&pair.client, &wr);
}

/* Returns the milliseconds until the first of two requests fails; the second is flushed. */
static double time_to_fail(void)
{
	double start = seconds_now(), took;

	post(IBV_WR_SEND, SENDS, 0, 64, 0);
	post(IBV_WR_RDMA_READ, SENDS + 1, 0, 64, 0);
	expect_status(&pair.client, SENDS, IBV_WC_RETRY_EXC_ERR);
	took = (seconds_now() - start) * 1e3;
	expect_status(&pair.client, SENDS + 1, IBV_WC_WR_FLUSH_ERR);
	expect_idle(&pair.client);
	expect_state(&pair.client, IBV_QPS_ERR);
	return took;
}

/* ---- how often, and when ------------------------------------------------------------------------------------ */

/* Times, in milliseconds, at which the first packet of a request reached the server's QP, which could not receive. */
static size_t tries(double *at, size_t most)
{
	static struct softhca_explanation explanations[64];
	size_t count = softhca_explanations(server.context, pair.server.qp->qp_num, explanations, 64), found = 0;

	for (size_t i = count; i-- > 0;) {
		if (strcmp(explanations[i].name, "PACKET_STATE"))
			continue;
		assert_true(found < most);
		at[found++] = (double)explanations[i].time_ns / 1e6;
	}
	return found;
}

TEST(number_of_tries)
{
	double at[16];

	for (uint8_t retries = 0; retries < 8; retries++) {
		note("retry_cnt %u", retries);
		open_without_peer(MS_4, retries);
		post(IBV_WR_SEND, SENDS, 0, 64, 0);
		expect_status(&pair.client, SENDS, IBV_WC_RETRY_EXC_ERR);
		assert_int_equal(tries(at, ARRAY_SIZE(at)), retries + 1);
		for (uint8_t i = 1; i <= retries; i++)
			if (at[i] - at[i - 1] < timeout_ms(MS_4))
				fail_at(HERE, "try %u came after %f ms", i, at[i] - at[i - 1]);
	}
}

/* Expects a duration from @retries + 1 times the timeout to four times as long. */
static void expect_duration(uint8_t timeout, uint8_t retries)
{
	double least = (retries + 1) * timeout_ms(timeout), took = 0;

	for (int i = 0; i < MEASUREMENTS; i++) {
		open_without_peer(timeout, retries);
		took = time_to_fail();
		if (took < least)
			fail_at(HERE, "timeout %u, retry_cnt %u: failed after %f ms", timeout, retries, took);
		if (took < 4 * least + 60)
			return;
	}
	fail_at(HERE, "timeout %u, retry_cnt %u: %d times late, the last time after %f ms", timeout, retries,
		MEASUREMENTS, took);
}

TEST(timeouts)
{
	for (uint8_t timeout = 1; timeout <= 16; timeout++)
		expect_duration(timeout, 1);
	expect_duration(13, 7);
}

/* timeout 0: the request waits forever, until the program ends it. */
TEST(without_timeout)
{
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};

	open_without_peer(0, 0);
	post(IBV_WR_SEND, SENDS, 0, 64, 0);
	post(IBV_WR_SEND, SENDS + 1, 0, 64, 0);
	sleep_ms(400);
	expect_idle(&pair.client);
	expect_state(&pair.client, IBV_QPS_RTS);
	expect_error(ibv_modify_qp(pair.client.qp, &error, IBV_QP_STATE), 0);
	expect_status(&pair.client, SENDS, IBV_WC_WR_FLUSH_ERR);
	expect_status(&pair.client, SENDS + 1, IBV_WC_WR_FLUSH_ERR);
}

/* ---- peers that do not answer ------------------------------------------------------------------------------- */

static void expect_gives_up(const char *why)
{
	note("%s", why);
	assert_true(time_to_fail() >= 2 * timeout_ms(MS_4));
	expect_no_event(&client);
	expect_no_event(&server);
	side_compare(&client);
	side_compare(&server);
	note_clear();
}

TEST(peers_that_are_not_there)
{
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};

	open_without_peer(MS_4, 1);
	expect_gives_up("in RESET");
	open_without_peer(MS_4, 1);
	endpoint_to_init(&pair.server);
	post_receive(&pair.server, RECEIVES, NULL, 0);
	expect_gives_up("in INIT");
	expect_idle(&pair.server);
	create_pair(MS_4, 1);
	pair_connect(&pair);
	expect_error(ibv_modify_qp(pair.server.qp, &error, IBV_QP_STATE), 0);
	expect_gives_up("in ERR");
	create_pair(MS_4, 1);
	pair_connect(&pair);
	endpoint_destroy_qp(&pair.server);
	expect_gives_up("destroyed");
}

/* A request waits for a receive of the peer, which is then destroyed. */
TEST(a_peer_that_dies)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	options.timeout = MS_4;
	options.retry_cnt = 2;
	options.min_rnr_timer = 20; /* 10 ms */
	pair_replace(&pair, &options);
	post(IBV_WR_SEND, SENDS, 0, 64, 0);
	sleep_ms(15);
	expect_idle(&pair.client);
	endpoint_destroy_qp(&pair.server);
	expect_status(&pair.client, SENDS, IBV_WC_RETRY_EXC_ERR);
}

static int to_rtr(const struct ibv_qp_attr *attr)
{
	struct ibv_qp_attr copy = *attr;

	return ibv_modify_qp(pair.client.qp, &copy,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

/* Returns true if no address handle for @attr can be created either. */
static bool leads_nowhere(struct ibv_ah_attr *attr)
{
	struct ibv_ah *ah = ibv_create_ah(client.pd, attr);

	if (!ah)
		return true;
	expect_error(ibv_destroy_ah(ah), 0);
	return false;
}

/* Moves the client's QP to RTS with other attributes than the pair's. */
static void connect_client(const struct ibv_qp_attr *rtr, uint32_t sq_psn)
{
	struct ibv_qp_attr attr;

	endpoint_to_init(&pair.client);
	expect_error(to_rtr(rtr), 0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = sq_psn, .timeout = MS_4, .retry_cnt = 1};
	expect_error(ibv_modify_qp(pair.client.qp, &attr,
				   IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					   IBV_QP_MAX_QP_RD_ATOMIC),
		     0);
}

/* The PSN that the server's endpoint_to_rtr() expects, so that tests change one attribute only. */
enum { PEER_RQ_PSN = 0xfffff0 };

static struct ibv_qp_attr right_way(void)
{
	return (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = pair.server.qp->qp_num,
		.rq_psn = PEER_RQ_PSN,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = server.gid, .sgid_index = client.gid_index, .hop_limit = 1}},
	};
}

TEST(addresses_that_lead_elsewhere)
{
	struct ibv_qp_attr attr;

	/* First the right attributes, which work. */
	create_pair(MS_4, 1);
	attr = right_way();
	connect_client(&attr, PEER_RQ_PSN);
	ready(&pair.server);
	post_receive(&pair.server, RECEIVES, NULL, 0);
	post(IBV_WR_SEND, SENDS, 0, 0, 0);
	expect_completion(&pair.client, SENDS, IBV_WC_SEND);
	expect_completion(&pair.server, RECEIVES, IBV_WC_RECV);

	create_pair(MS_4, 1);
	attr = right_way();
	attr.dest_qp_num = 0xfffffe;
	connect_client(&attr, PEER_RQ_PSN);
	ready(&pair.server);
	post_receive(&pair.server, RECEIVES, NULL, 0);
	expect_gives_up("no such QP");
	expect_idle(&pair.server);

	create_pair(MS_4, 1);
	attr = right_way();
	attr.ah_attr.grh.dgid.raw[15] ^= 0x55;
	/* If the address is on a link, no neighbour answers for it (ib_resolve_eth_dmac() of the kernel). */
	if (leads_nowhere(&attr.ah_attr)) {
		endpoint_to_init(&pair.client);
		expect_error(to_rtr(&attr), ETIMEDOUT);
		return;
	}
	connect_client(&attr, PEER_RQ_PSN);
	ready(&pair.server);
	post_receive(&pair.server, RECEIVES, NULL, 0);
	expect_gives_up("no such GID");
	expect_idle(&pair.server);
}

TEST(a_peer_of_another_type)
{
	struct pair_options options = pair_defaults(IBV_QPT_UC);
	struct pair uc;
	struct ibv_qp_attr attr;

	pair_open(&uc, &client, &server, &options);
	create_pair(MS_4, 1);
	attr = right_way();
	attr.dest_qp_num = uc.server.qp->qp_num;
	connect_client(&attr, PEER_RQ_PSN);
	post_receive(&uc.server, RECEIVES, NULL, 0);
	expect_gives_up("UC");
	expect_idle(&uc.server);
	pair_close(&uc);
}

/*
 * Sequence numbers that do not match: no message is delivered, and no request succeeds. (PSNs lower by up to the number
 * of packets sent would look like retransmissions.)
 */
TEST(sequence_numbers_that_do_not_match)
{
	static const uint32_t wrong[] = {PEER_RQ_PSN + 1, PEER_RQ_PSN + 1000, PEER_RQ_PSN - 10, PEER_RQ_PSN - 1000, 0};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct ibv_qp_attr attr;

		create_pair(MS_4, 1);
		attr = right_way();
		connect_client(&attr, wrong[i] & 0xffffff);
		ready(&pair.server);
		post_receive(&pair.server, RECEIVES, NULL, 0);
		note("sq_psn %#x", wrong[i]);
		expect_gives_up("sequence number");
		expect_idle(&pair.server);
		expect_state(&pair.server, IBV_QPS_RTS);
	}
}

/* ---- late answers and lost answers -------------------------------------------------------------------------- */

/* All requests were sent before the peer was ready. It gets all of them, in order, once. */
TEST(a_peer_that_comes_late)
{
	struct ibv_sge receive;
	uint64_t before;

	for (int round = 0; round < 5; round++) {
		note("round %d", round);
		side_stir(&client);
		side_stir(&server);
		memcpy(&before, server.expected + 8000, sizeof(before));
		open_without_peer(MS_17, 7);
		endpoint_to_init(&pair.server);
		receive = side_sge(&server, 0, 4000);
		for (uint64_t i = 0; i < 2; i++)
			post_receive(&pair.server, RECEIVES + i, &receive, 1);
		post(IBV_WR_RDMA_WRITE, SENDS, 0, 3000, 4000);
		post(IBV_WR_RDMA_READ, SENDS + 1, 10000, 5000, 20000);
		post(IBV_WR_SEND, SENDS + 2, 0, 4000, 0);
		fetch_add(SENDS + 3, 30000, 8000, 7);
		fetch_add(SENDS + 4, 30008, 8000, 9);
		post(IBV_WR_RDMA_READ, SENDS + 5, 16000, 10, 4000);
		post(IBV_WR_RDMA_WRITE_WITH_IMM, SENDS + 6, 0, 2000, 9000);
		sleep_ms(round * 9);
		expect_idle(&pair.client);
		endpoint_to_rtr(&pair.server);
		expect_completion(&pair.client, SENDS, IBV_WC_RDMA_WRITE);
		expect_completion(&pair.client, SENDS + 1, IBV_WC_RDMA_READ);
		expect_completion(&pair.client, SENDS + 2, IBV_WC_SEND);
		expect_completion(&pair.client, SENDS + 3, IBV_WC_FETCH_ADD);
		expect_completion(&pair.client, SENDS + 4, IBV_WC_FETCH_ADD);
		expect_completion(&pair.client, SENDS + 5, IBV_WC_RDMA_READ);
		expect_completion(&pair.client, SENDS + 6, IBV_WC_RDMA_WRITE);
		expect_completion(&pair.server, RECEIVES, IBV_WC_RECV);
		expect_completion(&pair.server, RECEIVES + 1, IBV_WC_RECV_RDMA_WITH_IMM);
		expect_idle(&pair.client);
		expect_idle(&pair.server);
		expect_event(&server, IBV_EVENT_COMM_EST, pair.server.qp);
		memcpy(server.expected + 4000, client.expected, 3000);
		memcpy(client.expected + 10000, server.expected + 20000, 5000);
		memcpy(server.expected, client.expected, 4000);
		memcpy(client.expected + 30000, &before, 8);
		before += 7;
		memcpy(client.expected + 30008, &before, 8);
		before += 9;
		memcpy(server.expected + 8000, &before, 8);
		memcpy(client.expected + 16000, server.expected + 4000, 10);
		memcpy(server.expected + 9000, client.expected, 2000);
		side_compare(&client);
		side_compare(&server);
	}
}

/* At most max_rd_atomic READs are in flight: the third one is requested when the first response has arrived. */
TEST(limit_of_reads_under_way)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	double at[16];

	options.timeout = MS_268;
	options.max_rd_atomic = 2;
	pair_close(&pair);
	pair_create(&pair, &client, &server, &options);
	ready(&pair.client);
	for (uint64_t i = 0; i < 5; i++)
		post(IBV_WR_RDMA_READ, SENDS + i, 100 * i, 100, 1000 * i);
	assert_int_equal(tries(at, ARRAY_SIZE(at)), 2);
	ready(&pair.server);
	for (uint64_t i = 0; i < 5; i++) {
		expect_completion(&pair.client, SENDS + i, IBV_WC_RDMA_READ);
		memcpy(client.expected + 100 * i, server.expected + 1000 * i, 100);
	}
	side_compare(&client);
}

/*
 * The server executes every request, but its responses go to a QP that does not exist. Retransmitted requests are not
 * executed again: one receive is consumed, an atomic is executed once.
 */
TEST(answers_that_are_lost)
{
	struct ibv_qp_attr attr;
	uint64_t value;

	for (int atomic = 0; atomic < 2; atomic++) {
		note(atomic ? "atomic" : "SEND");
		create_pair(MS_4, 7);
		endpoint_to_init(&pair.server);
		attr = right_way();
		attr.dest_qp_num = 0xfffffe;
		attr.ah_attr.grh.dgid = client.gid;
		attr.ah_attr.grh.sgid_index = server.gid_index;
		expect_error(ibv_modify_qp(pair.server.qp, &attr,
					   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
						   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
			     0);
		for (uint64_t i = 0; i < 5; i++)
			post_receive(&pair.server, RECEIVES + i, NULL, 0);
		ready(&pair.client);
		if (atomic)
			fetch_add(SENDS, 0, 512, 1);
		else
			post(IBV_WR_SEND, SENDS, 0, 0, 0);
		expect_status(&pair.client, SENDS, IBV_WC_RETRY_EXC_ERR);
		if (atomic) {
			memcpy(&value, server.expected + 512, sizeof(value));
			value++;
			memcpy(server.expected + 512, &value, sizeof(value));
		} else {
			expect_completion(&pair.server, RECEIVES, IBV_WC_RECV);
		}
		expect_idle(&pair.server);
		side_compare(&client);
		side_compare(&server);
		expect_event(&server, IBV_EVENT_COMM_EST, pair.server.qp);
	}
}
