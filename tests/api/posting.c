/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting, from the program to the device and back: each operation by ibv_post_send(3) and by its ibv_wr_* builder,
 * with data pointers and inline, on RC, UC and UD, through every place of a small ring and over the wrap of the
 * 16-bit index; unsignalled accounting, RESET, and a QP that goes while an event of it is not acknowledged.
 */
#include "support/program.h"

#include <endian.h>
#include <pthread.h>

enum {
	BYTES = 4096, /* room for a message */
	IMM = 0x01020304,
	GRH = 40,
	WRS = 5,
	MAX_INLINE = 200,
};

static uint8_t *source, *target; /* the client's memory; where the server is written to or receives */

/* The ring size of WRS WRs is not a power of two. */
static int set_up(enum ibv_qp_type type)
{
	struct pair_options options = pair_defaults(type);
	int error = program_open(NULL);

	options.max_send_wr = WRS;
	options.max_inline_data = MAX_INLINE;
	options.dv_send_ops = 0;
	if (type == IBV_QPT_RC)
		options.send_ops |= IBV_QP_EX_WITH_ATOMIC_WRITE;
	pair_replace(&pair, &options);
	source = client.memory;
	target = server.memory;
	return error;
}

static int set_up_rc(void **state)
{
	(void)state;
	return set_up(IBV_QPT_RC);
}

static int set_up_uc(void **state)
{
	(void)state;
	return set_up(IBV_QPT_UC);
}

static int set_up_ud(void **state)
{
	(void)state;
	return set_up(IBV_QPT_UD);
}

/* ---- one message, in each way ---- */

enum how { POST, POST_INLINE, BUILD_SGE, BUILD_LIST, BUILD_INLINE, BUILD_INLINE_LIST, WAYS };

static bool is_inline(enum how how)
{
	return how == POST_INLINE || how == BUILD_INLINE || how == BUILD_INLINE_LIST;
}

static void build_operation(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
	uint32_t rkey = server.mr->rkey;
	uint64_t remote = (uintptr_t)target;

	switch (opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(ex);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(ex, htobe32(IMM));
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(ex, rkey, remote);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(ex, rkey, remote, htobe32(IMM));
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(ex, rkey, remote);
		break;
	default:
		fail();
	}
}

static void set_address(struct endpoint *endpoint)
{
	if (endpoint->ah)
		ibv_wr_set_ud_addr(endpoint->ex, endpoint->ah, endpoint->peer->qp->qp_num, PAIR_QKEY);
}

static void build(enum ibv_wr_opcode opcode, enum how how, struct ibv_sge *sge, uint32_t length, uint64_t wr_id)
{
	struct ibv_qp_ex *ex = pair.client.ex;
	bool address_first = wr_id % 2;
	struct ibv_data_buf bufs[3];

	for (int i = 0; i < 3; i++)
		bufs[i] = (struct ibv_data_buf){(void *)(uintptr_t)sge[i].addr, sge[i].length};
	batch_start(&pair.client, wr_id, IBV_SEND_SIGNALED);
	build_operation(ex, opcode);
	if (address_first)
		set_address(&pair.client);
	if (how == BUILD_SGE)
		ibv_wr_set_sge(ex, client.mr->lkey, sge[0].addr, length);
	else if (how == BUILD_LIST)
		ibv_wr_set_sge_list(ex, 3, sge);
	else if (how == BUILD_INLINE)
		ibv_wr_set_inline_data(ex, bufs[0].addr, length);
	else
		ibv_wr_set_inline_data_list(ex, 3, bufs);
	if (!address_first)
		set_address(&pair.client);
	expect_error(ibv_wr_complete(ex), 0);
}

/* A request over @count entries that names the target where its operation has one. */
static struct ibv_send_wr request(enum ibv_wr_opcode opcode, unsigned int flags, struct ibv_sge *sge, int count,
				  uint64_t wr_id)
{
	return (struct ibv_send_wr){
		.wr_id = wr_id,
		.sg_list = sge,
		.num_sge = count,
		.opcode = opcode,
		.send_flags = flags,
		.imm_data = htobe32(IMM),
		.wr.rdma = {.remote_addr = (uintptr_t)target, .rkey = server.mr->rkey},
	};
}

/* Posts an 8-byte WRITE that is not checked. */
static void write_something(unsigned int flags, uint64_t wr_id)
{
	struct ibv_sge sge = side_sge(&client, 0, 8);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, flags, &sge, 1, wr_id);

	post_send(&pair.client, &wr);
	memcpy(server.expected, client.expected, 8);
}

static bool consumes_receive(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static enum ibv_wc_opcode completion_of(enum ibv_wr_opcode opcode)
{
	if (opcode == IBV_WR_RDMA_READ)
		return IBV_WC_RDMA_READ;
	return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RDMA_WRITE : IBV_WC_SEND;
}

static void expect_received(enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t length)
{
	bool write = opcode == IBV_WR_RDMA_WRITE_WITH_IMM, imm = opcode != IBV_WR_SEND;
	struct ibv_wc wc = expect_completion(&pair.server, wr_id, write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);

	assert_int_equal(wc.byte_len, length + (pair.server.ah ? GRH : 0));
	assert_int_equal(!!(wc.wc_flags & IBV_WC_WITH_IMM), imm);
	if (imm)
		assert_int_equal(be32toh(wc.imm_data), IMM);
}

/* Fills the beginning of @side, the source or target of the message, with new contents. */
static void fill(struct side *side, uint64_t seed, size_t length)
{
	for (size_t i = 0; i < length; i++)
		side->expected[i] = side->memory[i] = (uint8_t)(seed * 31 + i * 7);
}

/* Sends @length bytes in three pieces, the middle one empty; the pieces are adjacent in memory. */
static void message(enum ibv_wr_opcode opcode, enum how how, uint32_t length, uint64_t wr_id)
{
	struct side *from = opcode == IBV_WR_RDMA_READ ? &server : &client, *to = from == &server ? &client : &server;
	size_t header = pair.client.ah ? GRH : 0;
	struct ibv_sge sink = side_sge(&server, 0, BYTES), sge[3] = {
								   side_sge(&client, 0, length / 3),
								   side_sge(&client, length / 3, 0),
								   side_sge(&client, length / 3, length - length / 3),
							   };

	note("wr_id %lu: opcode %d, way %d, %u bytes", wr_id, opcode, how, length);
	fill(from, wr_id, length);
	fill(to, ~wr_id, header + length);
	if (consumes_receive(opcode))
		post_receive(&pair.server, ~wr_id, &sink, 1);
	if (how == POST || how == POST_INLINE) {
		struct ibv_send_wr wr =
			request(opcode, IBV_SEND_SIGNALED | (how == POST_INLINE ? IBV_SEND_INLINE : 0), sge, 3, wr_id);

		post_send(&pair.client, &wr);
	} else {
		build(opcode, how, sge, length, wr_id);
	}
	expect_completion(&pair.client, wr_id, completion_of(opcode));
	if (consumes_receive(opcode))
		expect_received(opcode, ~wr_id, length);
	memcpy(to->expected, to->memory, header); /* checked in transport_ops.c */
	memcpy(to->expected + header, from->expected, length);
	side_compare(&client);
	side_compare(&server);
}

/* Lengths around segment boundaries, in all ways, while the ring wraps many times. */
static void all_ways(const enum ibv_wr_opcode *opcodes, size_t count)
{
	static const uint32_t lengths[] = {0, 1, 8, 11, 12, 13, 27, 28, 60, 123, 124, 200, 1000};
	uint64_t wr_id = 0;

	for (int round = 0; round < 8; round++)
		for (size_t o = 0; o < count; o++)
			for (size_t l = 0; l < ARRAY_SIZE(lengths); l++)
				for (enum how how = 0; how < WAYS; how++)
					if (!is_inline(how) ||
					    (lengths[l] <= MAX_INLINE && opcodes[o] != IBV_WR_RDMA_READ))
						message(opcodes[o], how, lengths[l], wr_id++);
}

TEST(rc)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
						     IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ};

	all_ways(opcodes, 5);
}

TEST_WITH(uc, set_up_uc, program_close)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
						     IBV_WR_RDMA_WRITE_WITH_IMM};

	all_ways(opcodes, 4);
}

TEST_WITH(ud, set_up_ud, program_close)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM};

	all_ways(opcodes, 2);
}

/* Posts more WQEs than fit in a 16-bit index. */
TEST(index_wrap)
{
	for (uint64_t i = 0; i < 40000; i++)
		message(IBV_WR_RDMA_WRITE, i % 2 ? BUILD_INLINE : POST, MAX_INLINE, i);
}

/* Checks the first words of both sides. */
static void expect_words(uint64_t here, uint64_t there)
{
	memcpy(client.expected, &here, sizeof(here));
	memcpy(server.expected, &there, sizeof(there));
	side_compare(&client);
	side_compare(&server);
}

static void put_words(uint64_t here, uint64_t there)
{
	memcpy(source, &here, sizeof(here));
	memcpy(target, &there, sizeof(there));
	expect_words(here, there);
}

TEST(atomics_posted)
{
	struct ibv_sge sge = side_sge(&client, 0, 8);
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = {.remote_addr = (uintptr_t)target, .compare_add = 5, .rkey = server.mr->rkey},
	};

	put_words(55, 100);
	post_send(&pair.client, &wr);
	expect_completion(&pair.client, 0, IBV_WC_FETCH_ADD);
	expect_words(100, 105);
	/* ibv_post_send ignores the length of the SGE. */
	sge.length = 64;
	wr.wr.atomic.compare_add = 1;
	post_send(&pair.client, &wr);
	expect_completion(&pair.client, 0, IBV_WC_FETCH_ADD);
	expect_words(105, 106);

	put_words(55, 106);
	sge.length = 8;
	wr = request(IBV_WR_ATOMIC_WRITE, IBV_SEND_SIGNALED, &sge, 1, 0);
	post_send(&pair.client, &wr);
	expect_completion(&pair.client, 0, IBV_WC_ATOMIC_WRITE);
	expect_words(55, 55);
}

TEST(atomics_built)
{
	struct ibv_qp_ex *ex = pair.client.ex;
	uint32_t rkey = server.mr->rkey;
	uint64_t letters;

	put_words(55, 105);
	/* First with a wrong compare value, then with the right one. */
	for (uint64_t compare = 104; compare <= 105; compare++) {
		batch_start(&pair.client, compare, IBV_SEND_SIGNALED);
		ibv_wr_atomic_cmp_swp(ex, rkey, (uintptr_t)target, compare, 7);
		ibv_wr_set_sge(ex, client.mr->lkey, (uintptr_t)source, 8);
		expect_error(ibv_wr_complete(ex), 0);
		expect_completion(&pair.client, compare, IBV_WC_COMP_SWAP);
		expect_words(105, compare == 105 ? 7 : 105);
	}
	batch_start(&pair.client, 8, IBV_SEND_SIGNALED);
	ibv_wr_atomic_fetch_add(ex, rkey, (uintptr_t)target, UINT64_MAX);
	ibv_wr_set_sge(ex, client.mr->lkey, (uintptr_t)source, 8);
	expect_error(ibv_wr_complete(ex), 0);
	expect_completion(&pair.client, 8, IBV_WC_FETCH_ADD);
	expect_words(7, 6);

	batch_start(&pair.client, 9, IBV_SEND_SIGNALED);
	ibv_wr_atomic_write(ex, rkey, (uintptr_t)target, "ABCDEFGH");
	expect_error(ibv_wr_complete(ex), 0);
	expect_completion(&pair.client, 9, IBV_WC_ATOMIC_WRITE);
	memcpy(&letters, "ABCDEFGH", sizeof(letters));
	expect_words(7, letters);
}

/* An operation that the transport lacks fails as a completion, and the send queue with it (mlx5-formats 3.8). */
TEST_WITH(foreign_operation, set_up_uc, program_close)
{
	bool datagram = pair.client.ah;
	struct ibv_sge sge = side_sge(&client, 0, 8);
	struct ibv_send_wr wr = request(datagram ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, &sge, 1, 4);

	post_send(&pair.client, &wr);
	expect_status(&pair.client, 4, IBV_WC_LOC_QP_OP_ERR);
	expect_state(&pair.client, IBV_QPS_SQE);
}

TEST_WITH(foreign_operation_of_ud, set_up_ud, program_close)
{
	foreign_operation(state);
}

/* Unsignalled WRs occupy the queue until a later completion is polled. */
TEST(unsignalled)
{
	struct ibv_sge sge = side_sge(&client, 0, 8);
	struct ibv_send_wr *bad, wr = request(IBV_WR_RDMA_WRITE, 0, &sge, 1, 3);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	expect_error(ibv_query_qp(pair.client.qp, &attr, IBV_QP_CAP, &init), 0);
	assert_memory_equal(&init.cap, &pair.client.cap, sizeof(init.cap));
	for (int round = 0; round < 50; round++) {
		for (uint32_t i = 1; i < init.cap.max_send_wr; i++)
			write_something(0, 1);
		write_something(IBV_SEND_SIGNALED, 2);
		expect_error(ibv_post_send(pair.client.qp, &wr, &bad), ENOMEM);
		assert_ptr_equal(bad, &wr);
		expect_completion(&pair.client, 2, IBV_WC_RDMA_WRITE);
		expect_idle(&pair.client);
	}
}

static void modify(struct endpoint *endpoint, struct ibv_qp_attr attr, int mask)
{
	expect_error(ibv_modify_qp(endpoint->qp, &attr, mask), 0);
	assert_int_equal(endpoint->qp->state, attr.qp_state);
}

/* RESET discards completions that were not polled; the QP then works from the start. */
TEST(reset)
{
	struct ibv_sge sink = side_sge(&server, 0, BYTES);

	for (int round = 0; round < 3; round++) {
		post_receive(&pair.server, 1, &sink, 1);
		write_something(IBV_SEND_SIGNALED, 2);
		/* Flushes the receive. */
		modify(&pair.server, (struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE);
		modify(&pair.client, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE);
		modify(&pair.server, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE);
		expect_idle(&pair.client);
		expect_idle(&pair.server);
		/*
		 * Packets from before the reset may still be in flight on a link; they must not be taken for new ones.
		 */
		pair.options.later_psn += 0x1000;
		pair_connect(&pair);
		message(IBV_WR_SEND, POST, 100, 3);
		message(IBV_WR_SEND, BUILD_LIST, 100, 4);
	}
}

static void *destroy_first(void *done)
{
	if (ibv_destroy_qp(pair.client.qp))
		abort();
	__atomic_store_n((int *)done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* ibv_destroy_qp(3) returns once the events of the QP are acknowledged (ibv_get_async_event(3)). */
TEST(event_before_destroy)
{
	struct ibv_async_event event;
	pthread_t thread;
	int done = 0;

	modify(&pair.client, (struct ibv_qp_attr){.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1},
	       IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
	expect_error(ibv_get_async_event(client.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_SQ_DRAINED);
	assert_ptr_equal(event.element.qp, pair.client.qp);
	assert_int_equal(pthread_create(&thread, NULL, destroy_first, &done), 0);
	usleep(50000);
	assert_int_equal(__atomic_load_n(&done, __ATOMIC_ACQUIRE), 0);
	ibv_ack_async_event(&event);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(done, 1);
	pair.client.qp = NULL; /* pair_close() has nothing to destroy */
}

int main(void)
{
	program_memory(2 * BYTES);
	return run_cases(.setup = set_up_rc, .teardown = program_close);
}
