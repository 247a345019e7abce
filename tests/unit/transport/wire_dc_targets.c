/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a DCT handles its initiators (transport/responder/dct.h): wrong keys, ghosts of old connections, aborted messages,
 * refusals with a lost answer. And how a DCI addresses it.
 */
#include "test_case.h"

#include "../support/dc_fixture.h"

/* The table of GIDs has each twice, for both versions of RoCE. */
enum { LOCAL = 0, REMOTE = HALF, RECEIVE = 1024, OTHER_GID = 2 };

static void start(const struct ibv_qp_attr *options, wire_filter *filter, void *argument)
{
	dc_begin(options, 0, filter, argument);
}

/* Takes packets off the wire until one of type @message, which it returns; delivers those before it. */
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

static void send_to(int from, struct target *target, uint32_t length)
{
	const struct dc_request request = dc_to(target, MLX5_OPCODE_SEND, LOCAL, 0, length);

	dc_put(&dci[from], &request);
	ring(&dci[from]);
}

/* ---- keys ------------------------------------------------------------------------------------------------------ */

/*
 * mlx5-formats 6 no. 52. Only the first of many packets is answered: the refusal of a later one would acknowledge those
 * before it.
 */
TEST(wrong_key)
{
	static const uint8_t opcodes[] = {MLX5_OPCODE_SEND, MLX5_OPCODE_RDMA_WRITE_IMM, MLX5_OPCODE_RDMA_READ,
					  MLX5_OPCODE_ATOMIC_FA};
	struct ibv_qp_attr options = dc_options();

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
		/* A link passes only the refusal to the requester. */
		expect_rule(dci[0].qp, RULE_NAK_REMOTE_ACCESS);
		/* No state is kept for it, no receive was used, and others are served. */
		assert_int_equal(dct[0].qp->dct->count, 0);
		send_to(1, &dct[0], 10);
		dc_settle();
		expect_cqe(&dci_cq[1], 0, 0);
		expect_received(&dct[0], 0, 10);
		assert_int_equal(hca_qp_state(dct[0].qp), IBV_QPS_RTR);
		dc_end();
	}
}

/* ibv_modify_qp(3), retry_cnt: a DCT that does not exist, or is not in RTR, does not answer. */
TEST(no_target)
{
	struct ibv_qp_attr options = dc_options();
	struct explain_record record;
	uint32_t numbers[2];

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
		assert_true(explain_previous(device.hca, dci[0].qp->number, 0, &record));
		assert_int_equal(record.args[0], numbers[i]);
		dc_end();
	}
}

/* ---- addresses ------------------------------------------------------------------------------------------------- */

static void write_by(const struct mlx5_wqe_av *av, uint32_t segments, uint8_t syndrome, enum explain_rule rule)
{
	struct ibv_qp_attr options = dc_options();
	struct dc_request request;
	struct mlx5_wqe_av filled = *av;

	start(&options, NULL, NULL);
	request = dc_to(&dct[0], MLX5_OPCODE_RDMA_WRITE, LOCAL, REMOTE, 8);
	filled.key.dc_key = htobe64(request.key);
	filled.dqp_dct |= htobe32(request.target);
	dc_put_with(&dci[0], &request, &filled, segments);
	ring(&dci[0]);
	dc_settle();
	expect_cqe(&dci_cq[0], 0, syndrome);
	assert_int_equal(!memcmp(device.memory + LOCAL, device.memory + REMOTE, 8), !syndrome);
	if (syndrome)
		expect_rule(dci[0].qp, rule);
	dc_end();
}

/* mlx5-formats 1.6: without the bit for the long form an address vector has 16 bytes. */
TEST(short_addresses)
{
	const struct mlx5_wqe_av loopback = {.fl_mlid = 0x80}, none = {.fl_mlid = 0};

	write_by(&loopback, 1, 0, RULE_NONE);
	write_by(&none, 1, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, RULE_DC_COMPACT_ADDRESS);
}

/* A source GID that is not in the table. */
TEST(no_source)
{
	const struct mlx5_wqe_av av = {.dqp_dct = htobe32(MLX5_EXTENDED_UD_AV), .grh_gid_fl = htobe32(200 << 20)};

	write_by(&av, 3, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, RULE_DATAGRAM_ADDRESS);
}

/* ---- connections ----------------------------------------------------------------------------------------------- */

/* A packet delayed in the network: from a connection before the present one, or from one that has ended. */
TEST(ghosts)
{
	struct ibv_qp_attr options = dc_options();
	struct wire_packet *first, *middle, copy;

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

	/* The DCI leaves and returns: the connection is a new one. */
	dc_write(0, &dct[1], 8);
	dc_settle();
	wire_receive(&copy);
	expect_rule(dct[0].qp, RULE_DC_CONNECTION_OVER);
	dc_write(0, &dct[0], 8);
	dc_settle();
	wire_receive(&copy);
	expect_rule(dct[0].qp, RULE_DC_CONNECTION_OVER);
	assert_false(wire_deliver());
	expect_cqe(&dci_cq[0], 1 * 2, 0);
	expect_cqe(&dci_cq[0], 2 * 2, 0);

	/* In the present connection it is a duplicate: answered, not received again. */
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

/* The first packet of a connection arrives second: it is requested. */
TEST(begins_in_the_middle)
{
	struct ibv_qp_attr options = dc_options();
	struct wire_packet *packet;

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

/* IBTA 11.6.2, Remote Aborted Error. @begins_anew: the DCI returns without having left. */
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

TEST(given_up)
{
	give_up(false);
	give_up(true);
}

/* The target is notified once when a DCI is destroyed, and not of one that had left before. */
TEST(leaves_for_good)
{
	struct ibv_qp_attr options = dc_options();
	struct wire_packet *packet;

	start(&options, NULL, NULL);
	dc_write(0, &dct[0], 8);
	dc_settle();
	expect_cqe(&dci_cq[0], 0, 0);
	assert_int_equal(hca_qp_destroy(dci[0].qp), 0);
	free(dci[0].sq);
	packet = wire_take();
	assert_int_equal(packet_opcodes[packet->opcode].message, MESSAGE_DISCONNECT);
	assert_int_equal(packet->destination_qpn, dct[0].qp->number);
	free(packet);
	assert_null(wire_take());
	dci_make(&dci[0], &dci_cq[0], 0);
	raw_qp_destroy(&dci[0]);
	assert_null(wire_take());
	dci_make(&dci[0], &dci_cq[0], 0);
	dc_end();
}

/* A receive used by an unfinished message is returned to the program with the DCT. */
TEST(destroyed_in_the_middle)
{
	struct ibv_qp_attr options = dc_options();
	struct wire_packet *packet;

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

/* A repeated request gets the same refusal, and uses no second receive. */
TEST(lost_refusal)
{
	struct ibv_qp_attr options = dc_options();

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
	/* The others continue, and so does it, with another connection. */
	send_to(1, &dct[0], 200);
	dc_settle();
	expect_cqe(&dci_cq[1], 0, 0);
	expect_received(&dct[0], 1, 200);
	dci_start(&dci[0], &options);
	dc_write(0, &dct[0], 300);
	dc_settle();
	while (raw_cq_poll(&dci_cq[0]))
		;
	assert_int_equal(hca_qp_state(dci[0].qp), IBV_QPS_RTS);
	assert_memory_equal(device.memory + REMOTE, device.memory + LOCAL, 300);
	dc_end();
}

/* A DCI that waits for a receive does not block the receives of others. */
TEST(one_waits)
{
	struct ibv_qp_attr options = dc_options();

	start(&options, NULL, NULL);
	send_to(0, &dct[0], 600);
	dc_deliver_all();
	dc_write(1, &dct[0], 500);
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

/* A QP number is valid on one host only. */
TEST(by_another_address)
{
	struct ibv_qp_attr options = dc_options();
	struct dc_request request;
	struct wire_packet *first, *second;
	size_t gids;

	start(&options, NULL, NULL);
	hca_gids(device.hca, &gids);
	assert_true(gids > OTHER_GID);
	request = dc_to(&dct[0], MLX5_OPCODE_RDMA_WRITE, LOCAL, REMOTE, 8);
	dc_put(&dci[0], &request);
	request.gid_index = OTHER_GID;
	dc_put(&dci[0], &request);
	ring(&dci[0]);
	first = take(MESSAGE_WRITE);
	wire_receive(first);
	second = take(MESSAGE_WRITE);
	assert_true(second->dc_connection > first->dc_connection);
	assert_int_equal(second->dc_first_psn, second->psn);
	assert_memory_equal(&second->path.destination, &hca_gids(device.hca, &gids)[OTHER_GID].gid, 16);
	wire_receive(second);
	free(first);
	free(second);
	dc_settle();
	expect_cqe(&dci_cq[0], 0, 0);
	expect_cqe(&dci_cq[0], 2, 0);
	expect_quiet();
	dc_end();
}

int main(void)
{
	return run_cases(.group_setup = device_group_open, .group_teardown = device_group_close);
}
