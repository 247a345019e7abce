/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC traffic (IBTA annex A14): every operation of RC, by ibv_post_send(3) and ibv_wr_post(3), to SRQs of two contexts
 * through one connection; completions go to the CQ of the addressed SRQ.
 */
#include <poll.h>

#include "test_clock.h"
#include "support/xrc_world.h"

enum {
	SENT = 0x51, /* wr_id of the client */
	RECEIVED = 0xa1,
	LOCAL = 1000, /* offsets in the memories */
	REMOTE = 5000,
	SINK = 20000,
	SECOND_SINK = 40000,
	FIRST_ENTRY = 77, /* bytes; the rest of a message goes to the second entry */
	IMMEDIATE = 0x1a2b3c4d,
	COMPARE = 1,
	ADD = 0x0102030405060708,
};

struct operation {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode sent;
	bool receives;
	enum ibv_wc_opcode received;
};

static const struct operation operations[] = {
	{"SEND", IBV_WR_SEND, IBV_WC_SEND, true, IBV_WC_RECV},
	{"SEND_WITH_IMM", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, true, IBV_WC_RECV},
	{"WRITE", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, false, 0},
	{"WRITE_WITH_IMM", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, true, IBV_WC_RECV_RDMA_WITH_IMM},
	{"READ", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, false, 0},
	{"CMP_AND_SWP", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, false, 0},
	{"FETCH_AND_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, false, 0},
};

static bool is_atomic(const struct operation *operation)
{
	return operation->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || operation->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* ---- the model ------------------------------------------------------------------------------------------------- */

/* Posts a receive of two entries. */
static void post_receive(int target, uint64_t wr_id)
{
	struct side *side = &world.target[target];
	struct ibv_sge sge[] = {side_sge(side, SINK, FIRST_ENTRY), side_sge(side, SECOND_SINK, 10000)};

	xrc_post_receive(&world.srq[target], wr_id, sge, 2);
}

static uint64_t word_at(const uint8_t *memory)
{
	uint64_t word;

	memcpy(&word, memory, sizeof(word));
	return word;
}

static void model_atomic(const struct operation *operation, uint8_t *local, uint8_t *remote, uint64_t compare)
{
	uint64_t before = word_at(remote), after = before;

	if (operation->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		after = before + ADD;
	else if (before == compare)
		after = ADD;
	memcpy(local, &before, sizeof(before));
	memcpy(remote, &after, sizeof(after));
}

/* Updates the copies for @operation on @length bytes. */
static void model(const struct operation *operation, int target, uint32_t length, uint64_t compare)
{
	uint8_t *local = world.client.expected + LOCAL, *there = world.target[target].expected;

	if (is_atomic(operation)) {
		model_atomic(operation, local, there + REMOTE, compare);
	} else if (operation->opcode == IBV_WR_RDMA_READ) {
		memcpy(local, there + REMOTE, length);
	} else if (operation->received == IBV_WC_RECV && operation->receives) {
		for (uint32_t i = 0; i < length; i++)
			there[i < FIRST_ENTRY ? SINK + i : SECOND_SINK + i - FIRST_ENTRY] = local[i];
	} else {
		memcpy(there + REMOTE, local, length);
	}
}

/* Fills the memory so that the compare succeeds. */
static uint64_t stir(int target)
{
	side_stir(&world.client);
	side_stir(&world.target[target]);
	return word_at(world.target[target].memory + REMOTE) + (target ? 0 : COMPARE);
}

static void compare_all(void)
{
	side_compare(&world.client);
	for (int i = 0; i < XRC_TARGETS; i++)
		side_compare(&world.target[i]);
}

static void expect_done(const struct operation *operation, int target, uint32_t length, uint64_t compare)
{
	bool immediate = operation->opcode == IBV_WR_SEND_WITH_IMM || operation->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct ibv_wc wc = xrc_sent(SENT, IBV_WC_SUCCESS);

	assert_int_equal(wc.opcode, operation->sent);
	if (operation->opcode == IBV_WR_RDMA_READ || is_atomic(operation))
		assert_int_equal(wc.byte_len, length);
	if (operation->receives) {
		wc = xrc_received(target, RECEIVED + target, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, operation->received);
		assert_int_equal(wc.byte_len, length);
		assert_int_equal(wc.wc_flags, immediate ? IBV_WC_WITH_IMM : 0);
		if (immediate)
			assert_int_equal(be32toh(wc.imm_data), IMMEDIATE);
	}
	model(operation, target, length, compare);
	compare_all();
	xrc_all_idle();
}

/* ---- by ibv_post_send(3) --------------------------------------------------------------------------------------- */

static void post(const struct operation *operation, int target, struct ibv_sge *sge, uint64_t compare)
{
	struct ibv_send_wr wr = xrc_rdma_wr(SENT, operation->opcode, target, sge, REMOTE);

	if (is_atomic(operation)) {
		wr.wr.atomic.remote_addr = side_address(&world.target[target], REMOTE);
		wr.wr.atomic.rkey = world.target[target].mr->rkey;
		wr.wr.atomic.compare_add = operation->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? ADD : compare;
		wr.wr.atomic.swap = ADD;
	}
	wr.imm_data = htobe32(IMMEDIATE);
	xrc_post(world.send, &wr);
}

/* Of zero bytes, of one packet, of several packets. */
TEST(every_operation)
{
	static const uint32_t lengths[] = {0, 1, FIRST_ENTRY, 1024, 9000};

	for (size_t i = 0; i < ARRAY_SIZE(operations) * XRC_TARGETS * ARRAY_SIZE(lengths); i++) {
		const struct operation *operation = &operations[i % ARRAY_SIZE(operations)];
		int target = i / ARRAY_SIZE(operations) % XRC_TARGETS;
		uint32_t length = is_atomic(operation) ? 8 : lengths[i / (ARRAY_SIZE(operations) * XRC_TARGETS)];
		struct ibv_sge sge = side_sge(&world.client, LOCAL, length);
		uint64_t compare = stir(target);

		note("%s of %u bytes to SRQ %d", operation->name, length, target);
		for (int k = 0; k < XRC_TARGETS && operation->receives; k++)
			post_receive(k, RECEIVED + k);
		post(operation, target, &sge, compare);
		expect_done(operation, target, length, compare);
		if (operation->receives) {
			/* The other SRQ still has its receive. */
			struct ibv_send_wr wr = xrc_wr(SENT, IBV_WR_SEND, !target, NULL, 0);

			xrc_post(world.send, &wr);
			xrc_sent(SENT, IBV_WC_SUCCESS);
			assert_int_equal(xrc_received(!target, RECEIVED + !target, IBV_WC_SUCCESS).byte_len, 0);
		}
	}
}

/* ibv_wr_post(3) has none on XRC QPs. */
TEST(atomic_write)
{
	static const struct operation operation = {"ATOMIC_WRITE", IBV_WR_ATOMIC_WRITE, IBV_WC_ATOMIC_WRITE, false, 0};

	for (int target = 0; target < XRC_TARGETS; target++) {
		struct ibv_sge sge = side_sge(&world.client, LOCAL, sizeof(uint64_t));

		stir(target);
		post(&operation, target, &sge, 0);
		expect_done(&operation, target, sizeof(uint64_t), 0);
	}
}

/* ---- by ibv_wr_post(3) ----------------------------------------------------------------------------------------- */

static void build(struct ibv_qp_ex *qp, const struct operation *operation, int target, uint64_t compare)
{
	uint32_t rkey = world.target[target].mr->rkey;
	uint64_t address = side_address(&world.target[target], REMOTE);

	qp->wr_id = SENT;
	qp->wr_flags = IBV_SEND_SIGNALED;
	switch (operation->opcode) {
	case IBV_WR_SEND:
		return ibv_wr_send(qp);
	case IBV_WR_SEND_WITH_IMM:
		return ibv_wr_send_imm(qp, htobe32(IMMEDIATE));
	case IBV_WR_RDMA_WRITE:
		return ibv_wr_rdma_write(qp, rkey, address);
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return ibv_wr_rdma_write_imm(qp, rkey, address, htobe32(IMMEDIATE));
	case IBV_WR_RDMA_READ:
		return ibv_wr_rdma_read(qp, rkey, address);
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return ibv_wr_atomic_cmp_swp(qp, rkey, address, compare, ADD);
	default:
		return ibv_wr_atomic_fetch_add(qp, rkey, address, ADD);
	}
}

enum data { ONE_ENTRY, TWO_ENTRIES, INLINE, INLINE_LIST, DATA_KINDS };

static void set_data(struct ibv_qp_ex *qp, enum data data, uint32_t length)
{
	uint8_t *memory = world.client.memory + LOCAL;
	struct ibv_sge sge[] = {side_sge(&world.client, LOCAL, length / 3),
				side_sge(&world.client, LOCAL + length / 3, length - length / 3)};
	struct ibv_data_buf buffers[] = {{memory, length / 3}, {memory + length / 3, length - length / 3}};

	switch (data) {
	case ONE_ENTRY:
		return ibv_wr_set_sge(qp, world.client.mr->lkey, side_address(&world.client, LOCAL), length);
	case TWO_ENTRIES:
		return ibv_wr_set_sge_list(qp, 2, sge);
	case INLINE:
		return ibv_wr_set_inline_data(qp, memory, length);
	default:
		return ibv_wr_set_inline_data_list(qp, 2, buffers);
	}
}

static bool takes(const struct operation *operation, enum data data)
{
	return data == ONE_ENTRY ||
	       (!is_atomic(operation) && (data == TWO_ENTRIES || operation->opcode != IBV_WR_RDMA_READ));
}

/* Setters may be called in any order. */
TEST(every_builder)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(world.send);

	for (size_t i = 0; i < ARRAY_SIZE(operations) * DATA_KINDS * 4; i++) {
		const struct operation *operation = &operations[i / 4 % ARRAY_SIZE(operations)];
		enum data data = i / 4 / ARRAY_SIZE(operations);
		int target = i & 1;
		bool data_first = i & 2;
		uint32_t length = is_atomic(operation) ? 8 : 150;
		uint64_t compare;

		if (!takes(operation, data))
			continue;
		note("%s to SRQ %d, data of kind %d %s", operation->name, target, data, data_first ? "first" : "last");
		compare = stir(target);
		if (operation->receives)
			post_receive(target, RECEIVED + target);
		ibv_wr_start(qp);
		build(qp, operation, target, compare);
		if (data_first)
			set_data(qp, data, length);
		ibv_wr_set_xrc_srqn(qp, world.srq[target].number);
		if (!data_first)
			set_data(qp, data, length);
		expect_error(ibv_wr_complete(qp), 0);
		expect_done(operation, target, length, compare);
	}
}

TEST(inline_data)
{
	struct ibv_sge sge = {.addr = (uintptr_t)world.client.memory + LOCAL, .length = 200};
	struct ibv_send_wr wr = xrc_wr(SENT, IBV_WR_SEND, XRC_NEIGHBOUR, &sge, 1);

	stir(XRC_NEIGHBOUR);
	post_receive(XRC_NEIGHBOUR, RECEIVED + XRC_NEIGHBOUR);
	wr.send_flags |= IBV_SEND_INLINE;
	xrc_post(world.send, &wr);
	expect_done(&operations[0], XRC_NEIGHBOUR, 200, 0);
}

/* ---- many ------------------------------------------------------------------------------------------------------ */

/* One list of requests that alternates between the SRQs, some without completion. */
TEST(lists)
{
	enum { COUNT = 31 };
	struct ibv_send_wr wr[COUNT];
	struct ibv_sge sge[COUNT];

	for (int round = 0; round < 20; round++) {
		note("round %d", round);
		stir(XRC_SERVER);
		side_stir(&world.target[XRC_NEIGHBOUR]);
		for (int i = 0; i < COUNT; i++) {
			int target = i * 7 / 3 % 2;
			struct side *side = &world.target[target];
			struct ibv_sge sink = side_sge(side, i * 1500, 1500);

			xrc_post_receive(&world.srq[target], i, &sink, 1);
			sge[i] = side_sge(&world.client, i * 1500 + 3, 1000 + i);
			wr[i] = xrc_wr(i, IBV_WR_SEND, target, &sge[i], 1);
			wr[i].send_flags = i % 4 == 3 || i == COUNT - 1 ? IBV_SEND_SIGNALED : 0;
			wr[i].next = i + 1 < COUNT ? &wr[i + 1] : NULL;
			memcpy(side->expected + i * 1500, world.client.expected + i * 1500 + 3, 1000 + i);
		}
		xrc_post(world.send, wr);
		for (int i = 0; i < COUNT; i++) {
			if (wr[i].send_flags)
				xrc_sent(i, IBV_WC_SUCCESS);
			assert_int_equal(xrc_received(i * 7 / 3 % 2, i, IBV_WC_SUCCESS).byte_len, 1000 + i);
		}
		compare_all();
	}
}

/* A second connection to the same domain, of the neighbour: completions show which QP a message came through. */
TEST(two_connections_to_one_srq)
{
	struct ibv_qp *recv = xrc_create_recv(world.xrcd[XRC_NEIGHBOUR]);
	struct ibv_qp *send = xrc_create_send(&world.client, world.cq);
	struct side *neighbour = &world.target[XRC_NEIGHBOUR];

	assert_non_null(recv);
	assert_non_null(send);
	xrc_connect(recv, neighbour, send->qp_num, &world.client, 7);
	xrc_connect(send, &world.client, recv->qp_num, neighbour, 7);
	for (uint64_t i = 0; i < 20; i++) {
		bool second = i % 3 == 1;
		struct ibv_sge sge = side_sge(&world.client, LOCAL + i, 500);
		struct ibv_send_wr wr = xrc_wr(i, IBV_WR_SEND, XRC_SERVER, &sge, 1);

		stir(XRC_SERVER);
		post_receive(XRC_SERVER, i);
		xrc_post(second ? send : world.send, &wr);
		xrc_completion(world.cq, i, (second ? send : world.send)->qp_num, IBV_WC_SUCCESS);
		xrc_completion(world.srq[XRC_SERVER].cq, i, (second ? recv : world.recv)->qp_num, IBV_WC_SUCCESS);
		memcpy(world.target[XRC_SERVER].expected + SINK, world.client.expected + LOCAL + i, FIRST_ENTRY);
		memcpy(world.target[XRC_SERVER].expected + SECOND_SINK, world.client.expected + LOCAL + i + FIRST_ENTRY,
		       500 - FIRST_ENTRY);
		compare_all();
	}
	expect_error(ibv_destroy_qp(send), 0);
	expect_error(ibv_destroy_qp(recv), 0);
}

/* ---- CQs ------------------------------------------------------------------------------------------------------- */

static struct ibv_srq *srq_on(int target, struct ibv_cq *cq, struct ibv_pd *pd, uint32_t *number)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 7, .max_sge = 1},
		.comp_mask =
			IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = world.xrcd[target],
		.cq = cq,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(world.target[target].context, &attr);

	assert_non_null(srq);
	expect_error(ibv_get_srq_num(srq, number), 0);
	return srq;
}

static void post_empty(struct ibv_srq *srq, uint64_t wr_id)
{
	struct ibv_recv_wr wr = {.wr_id = wr_id}, *bad;

	expect_error(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

static void send_empty(uint32_t number, enum ibv_wr_opcode opcode, unsigned int flags)
{
	struct ibv_send_wr wr = xrc_rdma_wr(SENT, opcode, XRC_SERVER, NULL, REMOTE);

	wr.num_sge = 0;
	wr.qp_type.xrc.remote_srqn = number;
	wr.send_flags |= flags;
	wr.imm_data = htobe32(IMMEDIATE);
	xrc_post(world.send, &wr);
	xrc_sent(SENT, IBV_WC_SUCCESS);
}

/* ibv_create_cq_ex(3): extended polling of a receive matches ibv_poll_cq(3). */
TEST(extended_cq)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 15,
		.wc_flags =
			IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_SRC_QP,
	};
	struct side *server = &world.target[XRC_SERVER];
	struct ibv_cq_ex *cq = ibv_create_cq_ex(server->context, &attr);
	struct ibv_poll_cq_attr poll_attr = {0};
	double end = seconds_now() + 10;
	struct ibv_srq *srq;
	uint32_t number;

	assert_non_null(cq);
	srq = srq_on(XRC_SERVER, ibv_cq_ex_to_cq(cq), server->pd, &number);
	for (int i = 0; i < 10; i++) {
		post_empty(srq, 0x100 + i);
		send_empty(number, i & 1 ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND, 0);
		while (ibv_start_poll(cq, &poll_attr) == ENOENT && seconds_now() < end)
			;
		assert_int_equal(cq->status, IBV_WC_SUCCESS);
		assert_int_equal(cq->wr_id, 0x100 + i);
		assert_int_equal(ibv_wc_read_opcode(cq), i & 1 ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
		assert_int_equal(ibv_wc_read_qp_num(cq), world.recv->qp_num);
		assert_int_equal(ibv_wc_read_byte_len(cq), 0);
		if (i & 1)
			assert_int_equal(be32toh(ibv_wc_read_imm_data(cq)), IMMEDIATE);
		ibv_end_poll(cq);
	}
	expect_error(ibv_destroy_srq(srq), 0);
	expect_error(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/* Two SRQs share one CQ; its channel gets events, only for solicited completions if armed so. */
TEST(shared_cq_with_channel)
{
	struct side *server = &world.target[XRC_SERVER];
	struct ibv_comp_channel *channel = ibv_create_comp_channel(server->context);
	struct ibv_cq *cq = ibv_create_cq(server->context, 15, server, channel, 0), *event_cq;
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
	struct ibv_srq *srq[2];
	uint32_t number[2];
	void *cq_context;

	for (int i = 0; i < 2; i++)
		srq[i] = srq_on(XRC_SERVER, cq, server->pd, &number[i]);
	for (int i = 0; i < 8; i++) {
		int which = i / 2 % 2;

		expect_error(ibv_req_notify_cq(cq, true), 0);
		for (int k = 0; k < 2; k++)
			post_empty(srq[which], 0x200 + 2 * i + k);
		send_empty(number[which], IBV_WR_SEND, 0);
		assert_int_equal(poll(&fd, 1, 0), 0);
		send_empty(number[which], IBV_WR_SEND, IBV_SEND_SOLICITED);
		assert_int_equal(poll(&fd, 1, 10000), 1);
		expect_error(ibv_get_cq_event(channel, &event_cq, &cq_context), 0);
		assert_ptr_equal(event_cq, cq);
		assert_ptr_equal(cq_context, server);
		ibv_ack_cq_events(cq, 1);
		for (int k = 0; k < 2; k++)
			xrc_completion(cq, 0x200 + 2 * i + k, world.recv->qp_num, IBV_WC_SUCCESS);
	}
	for (int i = 0; i < 2; i++)
		expect_error(ibv_destroy_srq(srq[i]), 0);
	expect_error(ibv_destroy_cq(cq), 0);
	expect_error(ibv_destroy_comp_channel(channel), 0);
}

/* Destroying an SRQ removes its completions from the CQ: their wr_ids would be stale. */
TEST(srq_goes_with_its_completions)
{
	struct side *server = &world.target[XRC_SERVER];
	struct ibv_cq *cq = ibv_create_cq(server->context, 15, NULL, NULL, 0);
	struct ibv_srq *srq[2];
	uint32_t number[2];

	for (int i = 0; i < 2; i++)
		srq[i] = srq_on(XRC_SERVER, cq, server->pd, &number[i]);
	for (int i = 0; i < 6; i++) {
		post_empty(srq[i % 2], i);
		send_empty(number[i % 2], IBV_WR_SEND, 0);
	}
	expect_error(ibv_destroy_srq(srq[0]), 0);
	for (int i = 1; i < 6; i += 2)
		xrc_completion(cq, i, world.recv->qp_num, IBV_WC_SUCCESS);
	xrc_idle(cq);
	/* A new SRQ, possibly with the same number, starts empty. */
	srq[0] = srq_on(XRC_SERVER, cq, server->pd, &number[0]);
	post_empty(srq[0], 99);
	send_empty(number[0], IBV_WR_SEND, 0);
	xrc_completion(cq, 99, world.recv->qp_num, IBV_WC_SUCCESS);
	for (int i = 0; i < 2; i++)
		expect_error(ibv_destroy_srq(srq[i]), 0);
	expect_error(ibv_destroy_cq(cq), 0);
}

/* ---- resources ------------------------------------------------------------------------------------------------- */

/* ibv_alloc_parent_domain(3): in a thread domain queues take no lock. */
TEST(srq_in_a_thread_domain)
{
	struct side *server = &world.target[XRC_SERVER];
	struct ibv_td_init_attr td_attr = {0};
	struct ibv_td *td = ibv_alloc_td(server->context, &td_attr);
	struct ibv_parent_domain_init_attr attr = {.pd = server->pd, .td = td};
	struct ibv_pd *parent = ibv_alloc_parent_domain(server->context, &attr);
	struct ibv_srq *srq;
	uint32_t number;

	assert_non_null(parent);
	srq = srq_on(XRC_SERVER, world.srq[XRC_SERVER].cq, parent, &number);
	for (uint64_t i = 0; i < 20; i++) {
		post_empty(srq, i);
		send_empty(number, IBV_WR_SEND, 0);
		xrc_received(XRC_SERVER, i, IBV_WC_SUCCESS);
	}
	expect_error(ibv_destroy_srq(srq), 0);
	expect_error(ibv_dealloc_pd(parent), 0);
	expect_error(ibv_dealloc_td(td), 0);
}

/* ibv_modify_srq(3): the list grows and shrinks between messages. */
TEST(srq_changes_size)
{
	static const uint32_t sizes[] = {100, 1, 500, 31};
	struct xrc_srq *srq = &world.srq[XRC_NEIGHBOUR];
	uint64_t posted = 0, polled = 0;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct ibv_srq_attr attr = {.max_wr = sizes[i]};

		post_empty(srq->srq, posted++);
		expect_error(ibv_modify_srq(srq->srq, &attr, IBV_SRQ_MAX_WR), 0);
		send_empty(srq->number, IBV_WR_SEND, 0);
		xrc_received(XRC_NEIGHBOUR, polled++, IBV_WC_SUCCESS);
	}
}

int main(void)
{
	return run_cases(.setup = xrc_world_open, .teardown = xrc_world_close);
}
