/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors at the sender's own end: each cause alone, on RC, UC and UD. The request completes with its error, earlier
 * requests succeed, later ones are flushed; the peer is unaffected, and no byte is transferred. Statuses: IBTA 11.6.2;
 * the QP goes to ERR (RC) or to SQE (UC, UD): IBTA 10.3.1. Operations that a transport lacks: mlx5-formats 3.8.
 */
#include "support/event.h"
#include "support/program.h"

#include <sys/mman.h>

enum { BEFORE = 1, REQUEST = 2, AFTER = 3, LAST = 4, RECEIVE = 11 };

static void open_pair(enum ibv_qp_type type)
{
	struct pair_options options = pair_defaults(type);

	options.max_inline_data = 64;
	pair_replace(&pair, &options);
}

static void address_datagram(struct ibv_send_wr *wr)
{
	wr->wr.ud.ah = pair.client.ah;
	wr->wr.ud.remote_qpn = pair.server.qp->qp_num;
	wr->wr.ud.remote_qkey = PAIR_QKEY;
}

/* Checks that the peer is unaffected: its memory and its receive are unchanged, and it takes the next message. */
static void expect_peer_unharmed(struct place place)
{
	side_compare_(place, &client);
	side_compare_(place, &server);
	expect_idle_(place, &pair.server);
	expect_state_(place, &pair.server, IBV_QPS_RTS);
	expect_no_event_(place, &server);
	expect_no_event_(place, &client);
}

/*
 * Posts a good SEND, @wr, and two more, one of them not signalled, in one list. The first one consumes the only
 * receive.
 */
static void expect_fails_(struct place place, struct ibv_send_wr *wr, enum ibv_wc_status status)
{
	enum ibv_qp_type type = pair.options.type;
	struct ibv_send_wr last = {.wr_id = LAST, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr after = {.wr_id = AFTER, .next = &last, .opcode = IBV_WR_SEND};
	struct ibv_send_wr before = {.wr_id = BEFORE, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_sge header = side_sge(&server, 0, 40);
	struct ibv_wc wc;

	side_stir(&client);
	side_stir(&server);
	wr->wr_id = REQUEST;
	wr->next = &after;
	before.next = wr;
	if (type == IBV_QPT_UD) {
		address_datagram(&before);
		address_datagram(&after);
		address_datagram(&last);
	}
	post_receive_(place, &pair.server, RECEIVE, &header, 1);
	expect_error_(place, "ibv_post_send()", ibv_post_send(pair.client.qp, &before, &bad), 0);
	expect_completion_(place, &pair.client, BEFORE, IBV_WC_SEND);
	wc = expect_status_(place, &pair.client, REQUEST, status);
	if (!wc.vendor_err)
		fail_at(place, "vendor_err says nothing");
	expect_status_(place, &pair.client, AFTER, IBV_WC_WR_FLUSH_ERR);
	expect_status_(place, &pair.client, LAST, IBV_WC_WR_FLUSH_ERR);
	expect_idle_(place, &pair.client);
	expect_completion_(place, &pair.server, RECEIVE, IBV_WC_RECV);
	if (type == IBV_QPT_UD)
		memcpy(server.expected, server.memory, 40);
	expect_state_(place, &pair.client, type == IBV_QPT_RC ? IBV_QPS_ERR : IBV_QPS_SQE);
	expect_peer_unharmed(place);
	wr->next = NULL;
	pair_renew(&pair);
	note_clear();
}

#define expect_fails(wr, status) expect_fails_(HERE, wr, status)

/* An operation on the server's memory, or a datagram, with @count pieces of local memory. */
static struct ibv_send_wr request(enum ibv_wr_opcode opcode, struct ibv_sge *list, int count)
{
	struct ibv_send_wr wr = {.sg_list = list, .num_sge = count, .opcode = opcode};

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = side_address(&server, 4096);
		wr.wr.atomic.rkey = server.mr->rkey;
	} else {
		wr.wr.rdma.remote_addr = side_address(&server, 4096);
		wr.wr.rdma.rkey = server.mr->rkey;
	}
	if (pair.options.type == IBV_QPT_UD)
		address_datagram(&wr);
	return wr;
}

/* ---- local keys --------------------------------------------------------------------------------------------- */

static const enum ibv_wr_opcode rc_opcodes[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
						IBV_WR_RDMA_WRITE_WITH_IMM};

/* Tests @bad as the only piece and in the middle of a list, for each operation of @type that reads local memory. */
static void source_fails(enum ibv_qp_type type, const char *what, struct ibv_sge bad)
{
	struct ibv_sge good = side_sge(&client, 0, 50), list[] = {good, bad, good};

	for (size_t i = 0; i < (type == IBV_QPT_UD ? 2 : ARRAY_SIZE(rc_opcodes)); i++) {
		struct ibv_send_wr one, many;

		note("%s, opcode %d, type %d", what, rc_opcodes[i], type);
		one = request(rc_opcodes[i], &list[1], 1);
		expect_fails(&one, IBV_WC_LOC_PROT_ERR);
		many = request(rc_opcodes[i], list, 3);
		expect_fails(&many, IBV_WC_LOC_PROT_ERR);
	}
}

static void sources_that_cannot_be_read(enum ibv_qp_type type)
{
	struct ibv_pd *domain = ibv_alloc_pd(client.context);
	struct ibv_mr *foreign = ibv_reg_mr(domain, client.memory, 4096, 0);
	struct ibv_mr *gone = side_register(&client, 0, 4096, 0);
	uint32_t old = gone->lkey;
	uint64_t start = side_address(&client, 0);
	uint32_t lkey = client.mr->lkey;

	side_deregister(&client, gone);
	open_pair(type);
	source_fails(type, "lkey 0", (struct ibv_sge){start, 8, 0});
	source_fails(type, "no such lkey", (struct ibv_sge){start, 8, 0xdeadbeef});
	source_fails(type, "another tag", (struct ibv_sge){start, 8, lkey ^ 1});
	source_fails(type, "deregistered", (struct ibv_sge){start, 8, old});
	source_fails(type, "other domain", (struct ibv_sge){start, 8, foreign->lkey});
	source_fails(type, "across the start", (struct ibv_sge){start - 1, 8, lkey});
	source_fails(type, "across the end", (struct ibv_sge){start + client.bytes - 7, 8, lkey});
	source_fails(type, "past 2^64", (struct ibv_sge){UINT64_MAX - 3, 8, lkey});
	assert_int_equal(ibv_dereg_mr(foreign), 0);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
}

TEST(rc_sources)
{
	sources_that_cannot_be_read(IBV_QPT_RC);
}

TEST(uc_sources)
{
	sources_that_cannot_be_read(IBV_QPT_UC);
}

TEST(ud_sources)
{
	sources_that_cannot_be_read(IBV_QPT_UD);
}

/* The sink of a READ needs local write access. */
TEST(sinks_that_cannot_be_written)
{
	struct ibv_mr *read_only = side_register(&client, 0, 4096, IBV_ACCESS_REMOTE_READ);
	struct ibv_sge good = side_sge(&client, 5000, 50);
	struct ibv_sge bad[] = {
		{side_address(&client, 0), 64, read_only->lkey},
		{side_address(&client, 0), 64, 0xdeadbeef},
		{side_address(&client, client.bytes - 63), 64, client.mr->lkey},
	};
	struct ibv_send_wr wr;

	open_pair(IBV_QPT_RC);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct ibv_sge list[] = {good, bad[i], good};

		note("sink %zu", i);
		wr = request(IBV_WR_RDMA_READ, &bad[i], 1);
		expect_fails(&wr, IBV_WC_LOC_PROT_ERR);
		/* The piece before it is not written either. */
		wr = request(IBV_WR_RDMA_READ, list, 3);
		expect_fails(&wr, IBV_WC_LOC_PROT_ERR);
	}
}

/* The inline flag applies to sent data; the WQE of a READ cannot hold the response. */
TEST(inline_sink)
{
	struct ibv_sge sge = side_sge(&client, 0, 32);
	struct ibv_send_wr wr;

	open_pair(IBV_QPT_RC);
	wr = request(IBV_WR_RDMA_READ, &sge, 1);
	wr.send_flags = IBV_SEND_INLINE;
	expect_fails(&wr, IBV_WC_LOC_QP_OP_ERR);
}

/* ---- lengths ------------------------------------------------------------------------------------------------ */

enum { PIECES = 30, REGION = 150 << 20 };

/* Cuts @total bytes into pieces of @piece bytes, all over the same memory. Returns the number of pieces. */
static int cut(struct ibv_sge *list, const struct ibv_mr *mr, uint64_t total, uint32_t piece)
{
	int count = 0;

	for (; total; count++) {
		uint32_t bytes = total < piece ? (uint32_t)total : piece;

		assert_true(count < PIECES);
		list[count] = (struct ibv_sge){(uintptr_t)mr->addr, bytes, mr->lkey};
		total -= bytes;
	}
	return count;
}

static void message_of_length(enum ibv_qp_type type, enum ibv_wr_opcode opcode, const struct ibv_mr *mr,
			      uint64_t length)
{
	struct pair_options options = pair_defaults(type);
	struct ibv_sge list[PIECES];
	struct ibv_send_wr wr;

	note("type %d, opcode %d, %#lx bytes", type, opcode, length);
	options.max_send_sge = PIECES;
	pair_replace(&pair, &options);
	wr = request(opcode, list, cut(list, mr, length, length > UINT32_MAX ? REGION : 40 << 20));
	expect_fails(&wr, IBV_WC_LOC_LEN_ERR);
}

/* ibv_query_port(3), max_msg_sz: longer messages fail, even if the sum of the pieces exceeds 32 bits. */
TEST(longer_than_a_message)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
	void *memory = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(client.pd, memory, REGION, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	struct ibv_port_attr port;

	assert_non_null(mr);
	assert_int_equal(ibv_query_port(client.context, 1, &port), 0);
	for (size_t o = 0; o < ARRAY_SIZE(opcodes); o++)
		message_of_length(IBV_QPT_RC, opcodes[o], mr, (uint64_t)port.max_msg_sz + 1);
	message_of_length(IBV_QPT_UC, IBV_WR_SEND, mr, (uint64_t)port.max_msg_sz + 1);
	message_of_length(IBV_QPT_RC, IBV_WR_SEND, mr, (UINT64_C(1) << 32) + 8);
	message_of_length(IBV_QPT_RC, IBV_WR_RDMA_READ, mr, (UINT64_C(1) << 32) + 8);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(memory, REGION);
}

/* A datagram is one packet of the port's MTU (IBTA C9-92). */
TEST(longer_than_a_datagram)
{
	struct ibv_port_attr port;
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	assert_int_equal(ibv_query_port(client.context, 1, &port), 0);
	open_pair(IBV_QPT_UD);
	for (int i = 0; i < 2; i++) {
		sge = side_sge(&client, 0, i ? 40000 : (128u << port.active_mtu) + 1);
		wr = request(IBV_WR_SEND, &sge, 1);
		expect_fails(&wr, IBV_WC_LOC_LEN_ERR);
	}
}

/* ---- operations that a transport does not have ------------------------------------------------------------- */

static void foreign_operations(enum ibv_qp_type type, const enum ibv_wr_opcode *opcodes, size_t count)
{
	struct ibv_sge sge = side_sge(&client, 0, 8);

	open_pair(type);
	for (size_t i = 0; i < count; i++) {
		struct ibv_send_wr wr = request(opcodes[i], &sge, 1);

		note("type %d, opcode %d", type, opcodes[i]);
		expect_fails(&wr, IBV_WC_LOC_QP_OP_ERR);
	}
}

/* The table of ibv_post_send(3). */
TEST(operations_of_other_transports)
{
	static const enum ibv_wr_opcode not_uc[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
						    IBV_WR_ATOMIC_FETCH_AND_ADD};
	static const enum ibv_wr_opcode not_ud[] = {IBV_WR_RDMA_WRITE,   IBV_WR_RDMA_WRITE_WITH_IMM,
						    IBV_WR_RDMA_READ,    IBV_WR_ATOMIC_CMP_AND_SWP,
						    IBV_WR_LOCAL_INV,    IBV_WR_ATOMIC_FETCH_AND_ADD,
						    IBV_WR_SEND_WITH_INV};

	foreign_operations(IBV_QPT_UC, not_uc, ARRAY_SIZE(not_uc));
	foreign_operations(IBV_QPT_UD, not_ud, ARRAY_SIZE(not_ud));
}

/* A local operation that fails: invalidating a region (mlx5-formats 6, point 37). */
TEST(local_invalidate_of_a_region)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV};

	for (int type = 0; type < 2; type++) {
		open_pair(type ? IBV_QPT_UC : IBV_QPT_RC);
		wr.invalidate_rkey = client.mr->rkey;
		expect_fails(&wr, IBV_WC_MW_BIND_ERR);
		expect_write(&pair, view_memory(&client, 0, 8), view_memory(&server, 0, 8), IBV_WC_SUCCESS);
	}
}
