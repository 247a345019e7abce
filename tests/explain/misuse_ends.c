/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules 900 to 949, continued: mismatched ends of a connection, and requests with an order or retries that an adapter would not
 * tolerate; also rule 73, which explains mismatched sequence numbers at the responder.
 */
#include "rule_cases.h"

enum { FIRST_PSN = 0xfffff0, SHORT_TIMEOUT = 8 };

/* Index of the RoCE v1 GID with the same address as the GID that @side uses. */
static uint8_t v1_index(const struct side *side)
{
	struct ibv_gid_entry table[128];
	ssize_t count = ibv_query_gid_table(side->context, table, ARRAY_SIZE(table), 0);

	for (ssize_t i = 0; i < count; i++)
		if (table[i].gid_type == IBV_GID_TYPE_ROCE_V1 && !memcmp(&table[i].gid, &side->gid, sizeof(side->gid)))
			return (uint8_t)table[i].gid_index;
	fail_at(HERE, "there is no such GID");
}

static void to_rtr(struct endpoint *endpoint, uint8_t sgid_index, uint32_t rq_psn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = endpoint->peer->qp->qp_num,
		.rq_psn = rq_psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = endpoint->peer->side->gid, .sgid_index = sgid_index, .hop_limit = 1}},
	};

	endpoint_to_init(endpoint);
	expect_error(ibv_modify_qp(endpoint->qp, &attr,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
		     0);
}

/* Makes a second pair over the same sides, with a server that expects @rq_psn. Its queue pairs are in RTR. */
static struct pair *other_pair(uint8_t client_gid, uint32_t rq_psn)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	static struct pair other;

	options.timeout = SHORT_TIMEOUT;
	options.retry_cnt = 2;
	pair_create(&other, &client, &server, &options);
	to_rtr(&other.client, client_gid, FIRST_PSN);
	to_rtr(&other.server, server.gid_index, rq_psn);
	return &other;
}

/* Posts a WRITE by the client of @other. */
static void write_by(struct pair *other)
{
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, BYTES);

	endpoint_to_rts(&other->client);
	wr.wr.rdma.rkey = server.mr->rkey;
	wr.wr.rdma.remote_addr = side_address(&server, 0);
	post_send(&other->client, &wr);
}

RULE_CASE(GID_TYPES_DIFFER, .lint = "on")
{
	uint8_t index = v1_index(&client);
	struct pair *other = other_pair(client.gid_index, FIRST_PSN);

	write_by(other);
	expect_completion(&other->client, WR_ID, IBV_WC_RDMA_WRITE);
	pair_close(other);
	expect_no_misuse(GID_TYPES_DIFFER);

	other = other_pair(index, FIRST_PSN);
	write_by(other);
	expect_completion(&other->client, WR_ID, IBV_WC_RDMA_WRITE);
	expect_misuse(
		GID_TYPES_DIFFER,
		"qp 0x%x ibv_post_send: the queue pair uses GID index %u, RoCE v1, and its peer, queue pair 0x%x, uses GID "
		"index %u, RoCE v2",
		other->client.qp->qp_num, index, other->server.qp->qp_num, server.gid_index);
	pair_close(other);
	side_accept(&server);
}

RULE_CASE(PSN_DIFFERS, .lint = "on")
{
	struct pair *other = other_pair(client.gid_index, FIRST_PSN);

	write_by(other);
	expect_completion(&other->client, WR_ID, IBV_WC_RDMA_WRITE);
	pair_close(other);
	expect_no_misuse(PSN_DIFFERS);

	other = other_pair(client.gid_index, FIRST_PSN + 5);
	write_by(other);
	expect_misuse(
		PSN_DIFFERS,
		"qp 0x%x ibv_post_send: sq_psn of the queue pair is 0x%x, and rq_psn of its peer, queue pair 0x%x, is 0x%x",
		other->client.qp->qp_num, FIRST_PSN, other->server.qp->qp_num, FIRST_PSN + 5);
	expect_status(&other->client, WR_ID, IBV_WC_RETRY_EXC_ERR);
	pair_close(other);
	side_accept(&server);
}

/* The client's first PSN is after, then before the one that the server expects. */
RULE_CASE(PSN_START)
{
	static const uint32_t expected[] = {FIRST_PSN - 5, FIRST_PSN + 5, (FIRST_PSN + 0x700000) & 0xffffff};

	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		struct pair *other = other_pair(client.gid_index, expected[i]);

		write_by(other);
		expect_status(&other->client, WR_ID, IBV_WC_RETRY_EXC_ERR);
		expect_about_qp(
			PSN_START, other->server.qp->qp_num,
			": the first RDMA WRITE for queue pair 0x%x has sequence number 0x%x, and the queue pair "
			"expects 0x%x: nothing that the peer sends is accepted",
			other->server.qp->qp_num, FIRST_PSN, expected[i]);
		pair_close(other);
	}
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

static void post_to(enum ibv_wr_opcode opcode, uint64_t wr_id, uint64_t address, unsigned int flags)
{
	struct ibv_send_wr wr = request(opcode, BYTES);

	wr.wr_id = wr_id;
	wr.wr.rdma.rkey = server.mr->rkey;
	wr.wr.rdma.remote_addr = address;
	wr.send_flags |= flags;
	post_send(&pair.client, &wr);
}

static void read_and_write(uint64_t write_offset, unsigned int flags)
{
	post_to(IBV_WR_RDMA_READ, 1, side_address(&server, 0), 0);
	post_to(IBV_WR_RDMA_WRITE, 2, side_address(&server, write_offset), flags);
	expect_completion(&pair.client, 1, IBV_WC_RDMA_READ);
	expect_completion(&pair.client, 2, IBV_WC_RDMA_WRITE);
}

RULE_CASE(READ_OVERTAKEN, .lint = "on")
{
	read_and_write(BYTES, 0);
	read_and_write(BYTES - 1, IBV_SEND_FENCE);
	post_to(IBV_WR_RDMA_READ, 1, side_address(&server, 0), 0);
	expect_completion(&pair.client, 1, IBV_WC_RDMA_READ);
	post_to(IBV_WR_RDMA_WRITE, 2, side_address(&server, 0), 0);
	expect_completion(&pair.client, 2, IBV_WC_RDMA_WRITE);
	expect_no_misuse(READ_OVERTAKEN);

	read_and_write(BYTES - 1, 0);
	expect_misuse(
		READ_OVERTAKEN,
		"qp 0x%x ibv_post_send wr_id 2: RDMA_WRITE to [0x%" PRIx64
		", +%d) of rkey 0x%x follows the READ of that memory with wr_id 1, which has not completed, without a "
		"fence",
		pair.client.qp->qp_num, side_address(&server, BYTES - 1), BYTES, server.mr->rkey);
	side_accept(&client);
	side_accept(&server);
}

RULE_CASE(RNR_RETRY_ZERO, .lint = "on")
{
	struct ibv_mr *mr = side_register(&server, 0, BYTES, SIDE_ACCESS | IBV_ACCESS_ON_DEMAND);
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	uint32_t rkey = mr->rkey;

	write_to(rkey, side_address(&server, 0));
	expect_completion(&pair.client, WR_ID, IBV_WC_RDMA_WRITE);
	options.rnr_retry = 0;
	pair_replace(&pair, &options);
	write_to(server.mr->rkey, side_address(&server, 0));
	expect_completion(&pair.client, WR_ID, IBV_WC_RDMA_WRITE);
	expect_no_misuse(RNR_RETRY_ZERO);

	write_to(rkey, side_address(&server, 0));
	expect_completion(&pair.client, WR_ID, IBV_WC_RDMA_WRITE);
	expect_misuse(
		RNR_RETRY_ZERO,
		"qp 0x%x ibv_post_send: the request reaches on-demand memory by key 0x%x, and rnr_retry of the queue "
		"pair is 0",
		pair.client.qp->qp_num, rkey);
	side_deregister(&server, mr);
	side_accept(&server);
}
