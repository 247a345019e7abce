/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every operation of RC, UC and UD with all completion members on both ends, for messages gathered from and scattered
 * to up to four pieces of memory. Every byte of both sides is compared with a model afterwards. Members of a
 * completion: ibv_poll_cq(3); opcodes, flags and lengths: mlx5-formats 3.8.
 */
#include "support/program.h"

#include <endian.h>
#include <sys/mman.h>

enum {
	SEND_WR_ID = 0x5e4d0001,
	RECEIVE_WR_ID = 0x4ecb0002,
	IMMEDIATE = 0x01020304,
	GRH_BYTES = 40,
	GRH_AT = 64, /* where the header of a datagram goes */
	MTU = 1024,  /* of the pair's path; datagrams may use that of the port */
	AREA = 4096, /* pieces begin here */
	SOLICITED = IBV_SEND_SOLICITED,
};

/* An entry of the table of operations. */
struct operation {
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode done;
	bool receives; /* takes a receive of the peer */
	enum ibv_wc_opcode received;
	unsigned int send_flags; /* wc_flags of the sender, including the quirk of its own immediate */
	unsigned int receive_flags;
};

static const struct operation operations[] = {
	{IBV_WR_SEND, IBV_WC_SEND, true, IBV_WC_RECV, 0, 0},
	{IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, true, IBV_WC_RECV, IBV_WC_WITH_IMM, IBV_WC_WITH_IMM},
	{IBV_WR_SEND_WITH_INV, IBV_WC_SEND, true, IBV_WC_RECV, 0, IBV_WC_WITH_INV},
	{IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, false, 0, 0, 0},
	{IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, true, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM,
	 IBV_WC_WITH_IMM},
	{IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, false, 0, 0, 0},
};

enum { SEND, SEND_IMM, SEND_INV, WRITE, WRITE_IMM, READ };

/* A message in memory: pieces in the order of the bytes. */
struct pieces {
	const struct side *side;
	int count;
	struct ibv_sge sge[PAIR_SGES];
};

/*
 * Cuts @length bytes into @count pieces of uneven length, each placed before the previous one with a gap; the second of
 * four is empty. One piece if a request addresses the range directly.
 */
static struct pieces cut(const struct side *side, size_t length, int count)
{
	struct pieces pieces = {.side = side, .count = count};
	size_t left = length, at = AREA + length + 100 * (size_t)count;

	for (int i = 0; i < count; i++) {
		size_t bytes = i == count - 1 ? left : count == 4 && i == 1 ? 0 : left / 3;

		at -= bytes;
		pieces.sge[i] = side_sge(side, at, (uint32_t)bytes);
		left -= bytes;
		at -= 100;
	}
	return pieces;
}

/* Returns the place of byte @i of a message in the side's memory. */
static size_t place_of(const struct pieces *pieces, size_t i)
{
	for (int p = 0; p < pieces->count; p++) {
		if (i < pieces->sge[p].length)
			return (size_t)(pieces->sge[p].addr - side_address(pieces->side, 0)) + i;
		i -= pieces->sge[p].length;
	}
	fail();
	return 0;
}

static void model_move(const struct pieces *from, const struct pieces *to, size_t length)
{
	for (size_t i = 0; i < length; i++)
		to->side->expected[place_of(to, i)] = from->side->expected[place_of(from, i)];
}

/* ---- completions -------------------------------------------------------------------------------------------- */

/* LIDs and path bits, which do not exist on Ethernet. */
static void expect_no_lid(const struct ibv_wc *wc)
{
	assert_int_equal(wc->slid, 0);
	assert_int_equal(wc->dlid_path_bits, 0);
}

static void expect_sent(struct endpoint *endpoint, const struct operation *operation, size_t length)
{
	struct ibv_wc wc = expect_completion(endpoint, SEND_WR_ID, operation->done);

	assert_int_equal(wc.wc_flags, operation->send_flags);
	if (operation->opcode == IBV_WR_RDMA_READ)
		assert_int_equal(wc.byte_len, length);
}

static void expect_received(struct endpoint *endpoint, const struct operation *operation, size_t length,
			    uint32_t invalidated)
{
	bool datagram = endpoint->ah;
	struct ibv_wc wc = expect_completion(endpoint, RECEIVE_WR_ID, operation->received);

	assert_int_equal(wc.byte_len, length + (datagram ? GRH_BYTES : 0));
	assert_int_equal(wc.wc_flags, operation->receive_flags | (datagram ? IBV_WC_GRH : 0));
	if (operation->receive_flags & IBV_WC_WITH_IMM)
		assert_int_equal(wc.imm_data, htobe32(IMMEDIATE));
	if (operation->receive_flags & IBV_WC_WITH_INV)
		assert_int_equal(wc.invalidated_rkey, invalidated);
	if (datagram)
		assert_int_equal(wc.src_qp, endpoint->peer->qp->qp_num);
	expect_no_lid(&wc);
}

/* ---- one message -------------------------------------------------------------------------------------------- */

/* The header of a datagram precedes it, in a piece of its own; another program tests its contents. */
static void post_pieces(struct endpoint *endpoint, const struct pieces *pieces)
{
	struct ibv_sge list[PAIR_SGES + 1];
	int header = endpoint->ah ? 1 : 0;

	list[0] = side_sge(endpoint->side, GRH_AT, GRH_BYTES);
	memcpy(list + header, pieces->sge, (size_t)pieces->count * sizeof(*list));
	post_receive(endpoint, RECEIVE_WR_ID, list, pieces->count + header);
}

static void forget_header(struct endpoint *endpoint)
{
	if (endpoint->ah)
		memcpy(endpoint->side->expected + GRH_AT, endpoint->side->memory + GRH_AT, GRH_BYTES);
}

static void inline_forgets(struct pieces *source)
{
	/* ibv_post_send(3): the L_Key is not checked, and the buffer may be reused at once. */
	for (int i = 0; i < source->count; i++)
		source->sge[i].lkey = 0xdeadbeef;
}

/*
 * One message from the client to the server (READ: the other way), in @from pieces at its source and @to at its end. A
 * WRITE or READ has one range at the server.
 */
static void message(const struct operation *operation, size_t length, int from, int to, unsigned int flags,
		    uint32_t rkey)
{
	bool read = operation->opcode == IBV_WR_RDMA_READ;
	bool ranged = read || operation->done == IBV_WC_RDMA_WRITE;
	struct pieces local = cut(&client, length, from), remote = cut(&server, length, ranged ? 1 : to);
	struct ibv_send_wr wr = {
		.wr_id = SEND_WR_ID,
		.sg_list = local.sge,
		.num_sge = local.count,
		.opcode = operation->opcode,
		.send_flags = IBV_SEND_SIGNALED | flags,
	};

	note("opcode %d, %zu bytes, %d to %d pieces, flags %#x", operation->opcode, length, from, to, flags);
	side_stir(&client);
	side_stir(&server);
	if (flags & IBV_SEND_INLINE)
		inline_forgets(&local);
	if (operation->opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = rkey;
	else
		wr.imm_data = htobe32(IMMEDIATE);
	if (ranged) {
		wr.wr.rdma.remote_addr = remote.sge[0].addr;
		wr.wr.rdma.rkey = server.mr->rkey;
	}
	if (operation->receives && ranged)
		post_receive(&pair.server, RECEIVE_WR_ID, NULL, 0);
	else if (operation->receives)
		post_pieces(&pair.server, &remote);
	post_send(&pair.client, &wr);
	expect_sent(&pair.client, operation, length);
	if (operation->receives)
		expect_received(&pair.server, operation, length, rkey);
	expect_idle(&pair.client);
	expect_idle(&pair.server);
	forget_header(&pair.server);
	model_move(read ? &remote : &local, read ? &local : &remote, length);
	side_compare(&client);
	side_compare(&server);
}

/* Lengths around packets, in one to four pieces at each end, inline where it fits. */
static void all_lengths(const struct operation *operation, size_t most)
{
	static const size_t lengths[] = {0, 1, 8, 59, 60, MTU - 1, MTU, MTU + 1, 4096, 3 * MTU + 5, 40000};
	int pieces = pair.client.ah ? PAIR_SGES - 1 : PAIR_SGES;

	for (size_t l = 0; l < ARRAY_SIZE(lengths) && lengths[l] <= most; l++)
		for (int from = 1; from <= PAIR_SGES; from++)
			for (int to = 1; to <= pieces; to++) {
				message(operation, lengths[l], from, to, 0, 0);
				message(operation, lengths[l], from, to, SOLICITED, 0);
				if (operation->opcode != IBV_WR_RDMA_READ &&
				    lengths[l] <= pair.client.cap.max_inline_data)
					message(operation, lengths[l], from, to, IBV_SEND_INLINE, 0);
			}
}

static void open_pair(enum ibv_qp_type type)
{
	struct pair_options options = pair_defaults(type);

	options.max_inline_data = 200;
	pair_replace(&pair, &options);
}

TEST(rc)
{
	static const int all[] = {SEND, SEND_IMM, WRITE, WRITE_IMM, READ};

	open_pair(IBV_QPT_RC);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		all_lengths(&operations[all[i]], SIZE_MAX);
}

TEST(uc)
{
	static const int all[] = {SEND, SEND_IMM, WRITE, WRITE_IMM};

	open_pair(IBV_QPT_UC);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		all_lengths(&operations[all[i]], SIZE_MAX);
}

TEST(ud)
{
	static const int all[] = {SEND, SEND_IMM};
	struct ibv_port_attr port;

	open_pair(IBV_QPT_UD);
	assert_int_equal(ibv_query_port(client.context, 1, &port), 0);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		all_lengths(&operations[all[i]], 128u << port.active_mtu);
}

/* ---- operations with a history ------------------------------------------------------------------------------ */

/* Binds a type 2 window of the server's QP to all of its memory. Returns its rkey. */
static uint32_t bind_window(struct ibv_mw *mw)
{
	struct ibv_send_wr wr = {
		.wr_id = SEND_WR_ID,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {.mw = mw,
			    .rkey = ibv_inc_rkey(mw->rkey),
			    .bind_info = {.mr = server.mr,
					  .addr = side_address(&server, 0),
					  .length = server.bytes,
					  .mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ}},
	};

	post_send(&pair.server, &wr);
	expect_completion(&pair.server, SEND_WR_ID, IBV_WC_BIND_MW);
	mw->rkey = wr.bind_mw.rkey;
	return mw->rkey;
}

static void send_with_invalidate(enum ibv_qp_type type)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);

	open_pair(type);
	for (size_t length = 0; length < 5000; length = 3 * length + 1)
		message(&operations[SEND_INV], length, 3, 2, length % 2 ? SOLICITED : 0, bind_window(mw));
	message(&operations[SEND_INV], 100, 2, 2, IBV_SEND_INLINE, bind_window(mw));
}

TEST(rc_send_with_invalidate)
{
	send_with_invalidate(IBV_QPT_RC);
}

TEST(uc_send_with_invalidate)
{
	send_with_invalidate(IBV_QPT_UC);
}

static uint64_t load(const struct side *side, size_t offset)
{
	uint64_t value;

	memcpy(&value, side->expected + offset, sizeof(value));
	return value;
}

static void store(const struct side *side, size_t offset, uint64_t value)
{
	memcpy(side->expected + offset, &value, sizeof(value));
}

static void atomic(enum ibv_wr_opcode opcode, uint64_t compare_add, uint64_t swap)
{
	bool add = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct ibv_sge sge = side_sge(&client, 331, 8); /* the result may go anywhere */
	struct ibv_send_wr wr = {
		.wr_id = SEND_WR_ID,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = {side_address(&server, 512), compare_add, swap, server.mr->rkey},
	};
	uint64_t before = load(&server, 512);
	struct ibv_wc wc;

	post_send(&pair.client, &wr);
	wc = expect_completion(&pair.client, SEND_WR_ID, add ? IBV_WC_FETCH_ADD : IBV_WC_COMP_SWAP);
	assert_int_equal(wc.byte_len, 8);
	assert_int_equal(wc.wc_flags, 0);
	store(&client, 331, before);
	if (add)
		store(&server, 512, before + compare_add);
	else if (before == compare_add)
		store(&server, 512, swap);
	side_compare(&client);
	side_compare(&server);
}

TEST(atomics)
{
	static const uint64_t values[] = {0, 1, UINT64_MAX, UINT64_C(0x8000000000000000), 0x100000000, 0xff};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		note("value %#lx", values[i]);
		atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, values[i], 0);
		atomic(IBV_WR_ATOMIC_CMP_AND_SWP, load(&server, 512), values[i]);
		assert_true(load(&server, 512) == values[i]);
		atomic(IBV_WR_ATOMIC_CMP_AND_SWP, ~values[i], 77);
		assert_true(load(&server, 512) == values[i]);
	}
	expect_idle(&pair.server);
}

/* IBTA C9-88: a request of zero bytes accesses no memory; its key and address are not checked. */
TEST(nothing_needs_no_key)
{
	static const int all[] = {WRITE, WRITE_IMM, READ};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		const struct operation *operation = &operations[all[i]];
		struct ibv_send_wr wr = {
			.wr_id = SEND_WR_ID,
			.opcode = operation->opcode,
			.send_flags = IBV_SEND_SIGNALED,
			.imm_data = htobe32(IMMEDIATE),
			.wr.rdma = {UINT64_MAX, 0xdeadbeef},
		};

		if (operation->receives)
			post_receive(&pair.server, RECEIVE_WR_ID, NULL, 0);
		post_send(&pair.client, &wr);
		expect_sent(&pair.client, operation, 0);
		if (operation->receives)
			expect_received(&pair.server, operation, 0, 0);
	}
}

/* A WRITE with immediate consumes a receive but does not touch its memory. */
TEST(immediate_leaves_the_receive_alone)
{
	struct ibv_sge receive = side_sge(&server, 100, 5000), source = side_sge(&client, 0, 64);
	struct ibv_send_wr wr = {
		.wr_id = SEND_WR_ID,
		.sg_list = &source,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32(IMMEDIATE),
		.wr.rdma = {side_address(&server, 9000), server.mr->rkey},
	};

	post_receive(&pair.server, RECEIVE_WR_ID, &receive, 1);
	post_send(&pair.client, &wr);
	expect_sent(&pair.client, &operations[WRITE_IMM], 64);
	expect_received(&pair.server, &operations[WRITE_IMM], 64, 0);
	memcpy(server.expected + 9000, client.expected, 64);
}

/* SGE sums beyond 32 bits: four pieces of 2^31 - 1 bytes are room for any message. */
TEST(room_beyond_32_bits)
{
	const size_t bytes = INT32_MAX;
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct ibv_mr *mr;
	struct ibv_sge list[PAIR_SGES], source = side_sge(&client, 0, 5000);
	struct ibv_send_wr wr = send_wr(SEND_WR_ID, IBV_WR_SEND, &source);

	assert_ptr_not_equal(memory, MAP_FAILED);
	mr = ibv_reg_mr(server.pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	assert_non_null(mr);
	for (int i = 0; i < PAIR_SGES; i++)
		list[i] = (struct ibv_sge){(uintptr_t)memory, (uint32_t)bytes, mr->lkey};
	post_receive(&pair.server, RECEIVE_WR_ID, list, PAIR_SGES);
	post_send(&pair.client, &wr);
	expect_sent(&pair.client, &operations[SEND], 5000);
	expect_received(&pair.server, &operations[SEND], 5000, 0);
	assert_memory_equal(memory, client.memory, 5000);
	assert_int_equal(((uint8_t *)memory)[5000], 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(memory, bytes);
}
