/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that a responder rejects: each cause alone, with the status of both ends, the states of both QPs, the
 * asynchronous event, and unchanged memory. Statuses: IBTA 11.6.2 (completion return status), mlx5-formats 2.1 and 6,
 * points 38 and 51. Events: IBTA 11.6.3 and ibv_get_async_event(3): errors that no completion of the responder reports
 * raise an event.
 */
#include "support/event.h"
#include "support/program.h"

enum { REQUEST = 1, NEXT = 2, RECEIVE = 11, NEXT_RECEIVE = 12, NO_EVENT = -1, ANY_EVENT = -2 };

/* Result of the request. */
struct outcome {
	enum ibv_wc_status sender;   /* of the request */
	enum ibv_wc_status receiver; /* of the receive that it would have consumed */
	int event;                   /* enum ibv_event_type of the responder */
};

static const struct outcome access_error = {IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_ACCESS_ERR};
static const struct outcome invalid_request = {IBV_WC_REM_INV_REQ_ERR, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR};
/* The receive reports the error: whether there is an event as well is unspecified. */
static const struct outcome immediate_error = {IBV_WC_REM_ACCESS_ERR, IBV_WC_LOC_ACCESS_ERR, ANY_EVENT};
static const struct outcome too_short = {IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR, NO_EVENT};
static const struct outcome bad_receive = {IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR, NO_EVENT};

static void expect_no_more_events(int event)
{
	while (event == ANY_EVENT && event_waits(&server))
		assert_int_equal(next_event(&server).event_type, IBV_EVENT_QP_ACCESS_ERR);
	expect_no_event(&server);
	expect_no_event(&client);
}

/*
 * Posts @wr and another request after it; the server has two receives, the first into @receive. Checks that all end as
 * @outcome says and the rest is flushed, and makes a new pair.
 */
static void expect_refused_(struct place place, struct ibv_send_wr *wr, struct ibv_sge *receive, int receive_count,
			    const struct outcome *outcome)
{
	struct ibv_send_wr next = {.wr_id = NEXT, .opcode = IBV_WR_SEND}, *bad;
	struct ibv_wc wc;

	wr->wr_id = REQUEST;
	wr->send_flags |= IBV_SEND_SIGNALED;
	wr->next = &next;
	post_receive_(place, &pair.server, RECEIVE, receive, receive_count);
	post_receive_(place, &pair.server, NEXT_RECEIVE, NULL, 0);
	expect_error_(place, "ibv_post_send()", ibv_post_send(pair.client.qp, wr, &bad), 0);
	wc = expect_status_(place, &pair.client, REQUEST, outcome->sender);
	if (!wc.vendor_err)
		fail_at(place, "vendor_err says nothing");
	expect_status_(place, &pair.client, NEXT, IBV_WC_WR_FLUSH_ERR);
	expect_status_(place, &pair.server, RECEIVE, outcome->receiver);
	expect_status_(place, &pair.server, NEXT_RECEIVE, IBV_WC_WR_FLUSH_ERR);
	expect_idle_(place, &pair.client);
	expect_idle_(place, &pair.server);
	expect_state_(place, &pair.client, IBV_QPS_ERR);
	expect_state_(place, &pair.server, IBV_QPS_ERR);
	if (outcome->event >= 0)
		expect_event_(place, &server, (enum ibv_event_type)outcome->event, pair.server.qp);
	expect_no_more_events(outcome->event);
	side_compare_(place, &client);
	side_compare_(place, &server);
	pair_renew(&pair);
	wr->next = NULL;
	note_clear();
}

#define expect_refused(wr, receive, count, outcome) expect_refused_(HERE, wr, receive, count, outcome)

static struct ibv_sge word;

/* Builds a request of 8 bytes (the client's first) on [@offset, +8) of the server's memory by @rkey. */
static struct ibv_send_wr request(enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t address)
{
	struct ibv_send_wr wr = {.sg_list = &word, .num_sge = 1, .opcode = opcode};

	word = side_sge(&client, 0, 8);
	switch (opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wr.wr.atomic.remote_addr = address;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
		break;
	default:
		wr.wr.rdma.remote_addr = address;
		wr.wr.rdma.rkey = rkey;
	}
	return wr;
}

static const struct {
	enum ibv_wr_opcode opcode;
	unsigned int right;
} remote_operations[] = {
	{IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE},
	{IBV_WR_RDMA_WRITE_WITH_IMM, IBV_ACCESS_REMOTE_WRITE},
	{IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ},
	{IBV_WR_ATOMIC_CMP_AND_SWP, IBV_ACCESS_REMOTE_ATOMIC},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC},
};

static void open_pair(enum ibv_qp_type type, unsigned int access, uint8_t max_dest_rd_atomic)
{
	struct pair_options options = pair_defaults(type);

	options.access = access;
	options.max_dest_rd_atomic = max_dest_rd_atomic;
	pair_replace(&pair, &options);
}

/* ---- RC: the QP --------------------------------------------------------------------------------------------- */

/*
 * ibv_modify_qp(3), qp_access_flags: "mask of enabled remote access operations"; another one "is not supported by this
 * receive queue", which is an invalid request (IBTA 11.6.2, Remote Invalid Request Error).
 */
TEST(operation_not_enabled)
{
	for (size_t i = 0; i < ARRAY_SIZE(remote_operations); i++) {
		struct ibv_send_wr wr =
			request(remote_operations[i].opcode, server.mr->rkey, side_address(&server, 64));

		note("opcode %d", remote_operations[i].opcode);
		open_pair(IBV_QPT_RC, SIDE_REMOTE & ~remote_operations[i].right, 16);
		expect_refused(&wr, NULL, 0, &invalid_request);
	}
}

/*
 * max_dest_rd_atomic: "number of responder resources"; none: "insufficient buffering to receive a new RDMA or Atomic
 * Operation request" is an invalid request (IBTA 11.6.2, Remote Invalid Request Error).
 */
TEST(no_responder_resources)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
						     IBV_WR_ATOMIC_FETCH_AND_ADD};

	open_pair(IBV_QPT_RC, SIDE_REMOTE, 0);
	for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct ibv_send_wr wr = request(opcodes[i], server.mr->rkey, side_address(&server, 64));

		note("opcode %d", opcodes[i]);
		expect_refused(&wr, NULL, 0, &invalid_request);
	}
	expect_write(&pair, view_memory(&client, 0, 100), view_memory(&server, 0, 100), IBV_WC_SUCCESS);
}

/* A responder that is in RTR, or draining, rejects them as well. */
TEST(in_every_state_that_receives)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, 0xdeadbeef, side_address(&server, 0));

	expect_error(ibv_modify_qp(pair.server.qp, &attr, IBV_QP_STATE), 0);
	expect_refused(&wr, NULL, 0, &access_error);

	pair_close(&pair);
	pair_create(&pair, &client, &server, &pair.options);
	endpoint_to_init(&pair.client);
	endpoint_to_rtr(&pair.client);
	endpoint_to_rts(&pair.client);
	endpoint_to_init(&pair.server);
	endpoint_to_rtr(&pair.server);
	post_receive(&pair.server, RECEIVE, NULL, 0);
	post_send(&pair.client, &wr);
	expect_status(&pair.client, REQUEST, IBV_WC_REM_ACCESS_ERR);
	expect_status(&pair.server, RECEIVE, IBV_WC_WR_FLUSH_ERR);
	expect_state(&pair.server, IBV_QPS_ERR);
	/* The first packet establishes communication even if it is rejected. */
	expect_event(&server, IBV_EVENT_COMM_EST, pair.server.qp);
	expect_event(&server, IBV_EVENT_QP_ACCESS_ERR, pair.server.qp);
}

/* ---- RC: the key -------------------------------------------------------------------------------------------- */

static const struct outcome *outcome_of(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? &immediate_error : &access_error;
}

/* Checks all operations that need one of @rights, on @address by @rkey. */
static void all_refused(const char *what, unsigned int rights, uint32_t rkey, uint64_t address)
{
	for (size_t i = 0; i < ARRAY_SIZE(remote_operations); i++) {
		enum ibv_wr_opcode opcode = remote_operations[i].opcode;
		struct ibv_send_wr wr = request(opcode, rkey, address);

		note("%s, opcode %d", what, opcode);
		if (remote_operations[i].right & rights)
			expect_refused(&wr, NULL, 0, outcome_of(opcode));
	}
}

TEST(region_without_the_right)
{
	static const unsigned int rights[] = {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ,
					      IBV_ACCESS_REMOTE_ATOMIC};

	for (size_t i = 0; i < ARRAY_SIZE(rights); i++) {
		struct ibv_mr *mr = side_register(&server, 0, 4096, SIDE_ACCESS & ~rights[i]);

		all_refused("right missing", rights[i], mr->rkey, side_address(&server, 64));
	}
}

TEST(keys_that_lead_nowhere)
{
	struct ibv_pd *domain = ibv_alloc_pd(server.context);
	struct ibv_mr *foreign = ibv_reg_mr(domain, server.memory, 4096, SIDE_ACCESS);
	struct ibv_mr *gone = side_register(&server, 0, 4096, SIDE_ACCESS);
	uint32_t old = gone->rkey;
	uint64_t address = side_address(&server, 64);

	side_deregister(&server, gone);
	assert_non_null(foreign);
	all_refused("rkey 0", SIDE_REMOTE, 0, address);
	all_refused("no such rkey", SIDE_REMOTE, 0xdeadbeef, address);
	all_refused("another tag", SIDE_REMOTE, server.mr->rkey ^ 1, address);
	all_refused("deregistered", SIDE_REMOTE, old, address);
	all_refused("other domain", SIDE_REMOTE, foreign->rkey, address);
	assert_int_equal(ibv_dereg_mr(foreign), 0);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
}

TEST(outside_of_the_region)
{
	struct ibv_mr *mr = side_register(&server, 4096, 4096, SIDE_ACCESS);

	all_refused("before the start", SIDE_REMOTE, mr->rkey, side_address(&server, 4096 - 8));
	all_refused("at the end", SIDE_REMOTE, mr->rkey, side_address(&server, 8192));
	all_refused("across the end", SIDE_REMOTE & ~IBV_ACCESS_REMOTE_ATOMIC, mr->rkey,
		    side_address(&server, 8192 - 7));
	all_refused("across the start", SIDE_REMOTE & ~IBV_ACCESS_REMOTE_ATOMIC, mr->rkey,
		    side_address(&server, 4096 - 1));
	all_refused("address 0", SIDE_REMOTE, mr->rkey, 0);
	all_refused("near 2^64", SIDE_REMOTE, mr->rkey, UINT64_MAX - 7);
	all_refused("past 2^64", SIDE_REMOTE & ~IBV_ACCESS_REMOTE_ATOMIC, mr->rkey, UINT64_MAX - 3);
}

/*
 * A message of many packets of which only the last byte is outside the region: none of it is written, and it consumes
 * no receive (IBTA C9-82).
 */
TEST(last_byte_of_a_long_message)
{
	struct ibv_mr *mr = side_register(&server, 0, 20000, SIDE_ACCESS);
	struct ibv_sge all = side_sge(&client, 0, 20001);
	struct ibv_send_wr wr;

	for (int i = 0; i < 3; i++) {
		wr = request(remote_operations[i].opcode, mr->rkey, side_address(&server, 0));
		wr.sg_list = &all;
		expect_refused(&wr, NULL, 0, &access_error);
	}
}

/* IBTA C9-94: an atomic works on an aligned address. */
TEST(unaligned_atomics)
{
	for (uint64_t off = 1; off < 8; off++)
		for (int i = 3; i < 5; i++) {
			struct ibv_send_wr wr =
				request(remote_operations[i].opcode, server.mr->rkey, side_address(&server, 64 + off));

			note("opcode %d, %lu bytes off", wr.opcode, off);
			expect_refused(&wr, NULL, 0, &invalid_request);
		}
}

/* ---- RC: the receive ---------------------------------------------------------------------------------------- */

static const enum ibv_wr_opcode sends[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM};

static void send_refused(const char *what, uint32_t length, struct ibv_sge *receive, int count,
			 const struct outcome *outcome)
{
	for (size_t i = 0; i < ARRAY_SIZE(sends); i++) {
		struct ibv_sge source = side_sge(&client, 0, length);
		struct ibv_send_wr wr = {.sg_list = &source, .num_sge = 1, .opcode = sends[i]};

		note("%s, opcode %d", what, sends[i]);
		expect_refused(&wr, receive, count, outcome);
	}
}

TEST(receive_too_short)
{
	struct ibv_sge list[] = {side_sge(&server, 0, 100), side_sge(&server, 300, 0), side_sge(&server, 500, 27)};
	struct ibv_sge page = side_sge(&server, 0, 4096);

	send_refused("one byte", 128, list, 3, &too_short);
	send_refused("one byte of many packets", 4097, &page, 1, &too_short);
	send_refused("no room at all", 1, NULL, 0, &too_short);
}

TEST(receive_with_a_bad_key)
{
	struct ibv_pd *domain = ibv_alloc_pd(server.context);
	struct ibv_mr *foreign = ibv_reg_mr(domain, server.memory, 4096, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *read_only = side_register(&server, 0, 4096, IBV_ACCESS_REMOTE_READ);
	struct ibv_sge good = side_sge(&server, 8192, 100);
	const struct {
		const char *what;
		uint64_t address;
		uint32_t lkey;
	} bad[] = {
		{"no such lkey", side_address(&server, 0), 0xdeadbeef},
		{"other domain", side_address(&server, 0), foreign->lkey},
		{"no local write", side_address(&server, 0), read_only->lkey},
		{"across the end", side_address(&server, server.bytes - 99), server.mr->lkey},
		{"across the start", side_address(&server, 0) - 1, server.mr->lkey},
		{"past 2^64", UINT64_MAX - 50, server.mr->lkey},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct ibv_sge list[] = {good, {bad[i].address, 100, bad[i].lkey}, good};

		send_refused(bad[i].what, 100, &list[1], 1, &bad_receive);
		/* In the middle of a list: the pieces before it are not written either. */
		send_refused(bad[i].what, 300, list, 3, &bad_receive);
	}
	assert_int_equal(ibv_dereg_mr(foreign), 0);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
}

/* ---- RC: SEND with invalidate ------------------------------------------------------------------------------- */

/*
 * IBTA 9.9.6.3, class J: the message has arrived, the receive completes in error, and the responder enters ERR; its
 * sender is not notified.
 */
static void invalidate_refused(const char *what, uint32_t rkey)
{
	struct ibv_sge source = side_sge(&client, 0, 64), receive = side_sge(&server, 0, 64);
	struct ibv_send_wr wr = {.wr_id = REQUEST,
				 .sg_list = &source,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND_WITH_INV,
				 .send_flags = IBV_SEND_SIGNALED,
				 .invalidate_rkey = rkey};

	note("%s", what);
	post_receive(&pair.server, RECEIVE, &receive, 1);
	post_receive(&pair.server, NEXT_RECEIVE, NULL, 0);
	post_send(&pair.client, &wr);
	expect_completion(&pair.client, REQUEST, IBV_WC_SEND);
	if (!expect_status(&pair.server, RECEIVE, IBV_WC_LOC_ACCESS_ERR).vendor_err)
		fail_at(HERE, "vendor_err says nothing");
	expect_status(&pair.server, NEXT_RECEIVE, IBV_WC_WR_FLUSH_ERR);
	expect_state(&pair.server, IBV_QPS_ERR);
	expect_state(&pair.client, IBV_QPS_RTS);
	expect_no_more_events(NO_EVENT);
	memcpy(server.expected, client.expected, 64);
	side_compare(&server);
	pair_renew(&pair);
}

TEST(invalidate_of_a_key_that_does_not_allow_it)
{
	struct ibv_mr *other = side_register(&server, 0, 4096, SIDE_ACCESS);
	struct ibv_mw *type_1 = side_alloc_mw(&server, IBV_MW_TYPE_1), *type_2 = side_alloc_mw(&server, IBV_MW_TYPE_2);
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED,
				   .bind_info = {.mr = server.mr,
						 .addr = side_address(&server, 0),
						 .length = 4096,
						 .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}};
	static struct layout layout;
	struct ibv_sge list[] = {side_sge(&server, 0, 100)};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	invalidate_refused("no such key", 0xdeadbeef);
	invalidate_refused("memory region", other->rkey);
	invalidate_refused("unbound window", type_2->rkey);
	expect_error(ibv_bind_mw(pair.server.qp, type_1, &bind), 0);
	expect_completion(&pair.server, 0, IBV_WC_BIND_MW);
	invalidate_refused("type 1 window", type_1->rkey);
	lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 1, list);
	invalidate_refused("mkey made without the flag", mkey->rkey);
	/* The rejected keys are unaffected. */
	expect_write(&pair, view_memory(&client, 0, 8), view_with_key(&server, other->rkey, 8, 8), IBV_WC_SUCCESS);
	expect_write(&pair, view_memory(&client, 0, 8), view_with_key(&server, type_1->rkey, 8, 8), IBV_WC_SUCCESS);
	expect_write(&pair, view_memory(&client, 0, 100), view_key(&server, mkey, &layout), IBV_WC_SUCCESS);
}

/* ---- UC ----------------------------------------------------------------------------------------------------- */

/*
 * Checks that an invalid message is dropped (IBTA 9.8.2.2): the sender succeeds, the responder continues, and the
 * receive waits for the next message.
 */
static void expect_dropped(struct ibv_send_wr *wr)
{
	struct ibv_send_wr next = {.wr_id = NEXT, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};

	wr->wr_id = REQUEST;
	wr->send_flags = IBV_SEND_SIGNALED;
	post_receive(&pair.server, RECEIVE, NULL, 0);
	post_send(&pair.client, wr);
	expect_completion(&pair.client, REQUEST, IBV_WC_RDMA_WRITE);
	expect_idle(&pair.server);
	post_send(&pair.client, &next);
	expect_completion(&pair.client, NEXT, IBV_WC_SEND);
	expect_completion(&pair.server, RECEIVE, IBV_WC_RECV);
	expect_state(&pair.server, IBV_QPS_RTS);
	expect_no_event(&server);
	side_compare(&server);
	note_clear();
}

TEST(uc_drops_writes)
{
	struct ibv_mr *no_write = side_register(&server, 0, 4096, SIDE_ACCESS & ~IBV_ACCESS_REMOTE_WRITE);
	const uint32_t rkeys[] = {0xdeadbeef, no_write->rkey, server.mr->rkey ^ 1};
	struct ibv_send_wr wr;

	for (int i = 0; i < 2; i++) {
		open_pair(IBV_QPT_UC, SIDE_REMOTE, 0);
		for (size_t k = 0; k < ARRAY_SIZE(rkeys); k++) {
			note("opcode %d, rkey %#x", remote_operations[i].opcode, rkeys[k]);
			wr = request(remote_operations[i].opcode, rkeys[k], side_address(&server, 0));
			expect_dropped(&wr);
		}
		note("opcode %d, not enabled", remote_operations[i].opcode);
		open_pair(IBV_QPT_UC, 0, 0);
		wr = request(remote_operations[i].opcode, server.mr->rkey, side_address(&server, 0));
		expect_dropped(&wr);
	}
}

/* A SEND without a receive is lost; the next one is not. */
TEST(uc_drops_sends_without_receive)
{
	struct ibv_sge first = side_sge(&client, 0, 64), second = side_sge(&client, 64, 64),
		       receive = side_sge(&server, 0, 64);
	struct ibv_send_wr wr = send_wr(0, IBV_WR_SEND, &first);

	open_pair(IBV_QPT_UC, 0, 0);
	post_send(&pair.client, &wr);
	expect_completion(&pair.client, 0, IBV_WC_SEND);
	post_receive(&pair.server, RECEIVE, &receive, 1);
	expect_idle(&pair.server);
	wr.sg_list = &second;
	post_send(&pair.client, &wr);
	expect_completion(&pair.client, 0, IBV_WC_SEND);
	expect_completion(&pair.server, RECEIVE, IBV_WC_RECV);
	memcpy(server.expected, client.expected + 64, 64);
	expect_no_event(&server);
}

/* IBTA 9.9.3, class D: a message too long for its receive is dropped, and the receive takes the next one. */
TEST(uc_message_too_long)
{
	struct ibv_sge source = side_sge(&client, 0, 5000), receive = side_sge(&server, 0, 64);
	struct ibv_send_wr fits = {.sg_list = &source, .num_sge = 1, .opcode = IBV_WR_SEND};

	open_pair(IBV_QPT_UC, 0, 0);
	post_receive(&pair.server, RECEIVE, &receive, 1);
	for (uint32_t length = 5000; length > 64; length /= 2) {
		struct ibv_send_wr wr = send_wr(0, IBV_WR_SEND, &source);

		source.length = length;
		post_send(&pair.client, &wr);
		expect_completion(&pair.client, 0, IBV_WC_SEND);
		expect_idle(&pair.server);
		expect_state(&pair.server, IBV_QPS_RTS);
	}
	source.length = 64;
	post_send(&pair.client, &fits);
	expect_completion(&pair.server, RECEIVE, IBV_WC_RECV);
	memcpy(server.expected, client.expected, 64);
	side_compare(&server);
}

/* A receive with memory that cannot be written completes in error, and the QP enters ERR; the sender is not notified. */
TEST(uc_bad_receive)
{
	struct ibv_sge source = side_sge(&client, 0, 64), receive = {side_address(&server, 0), 64, 0xdeadbeef};
	struct ibv_send_wr wr = send_wr(0, IBV_WR_SEND, &source);

	open_pair(IBV_QPT_UC, 0, 0);
	post_receive(&pair.server, RECEIVE, &receive, 1);
	post_receive(&pair.server, NEXT_RECEIVE, NULL, 0);
	post_send(&pair.client, &wr);
	expect_completion(&pair.client, 0, IBV_WC_SEND);
	expect_state(&pair.client, IBV_QPS_RTS);
	expect_status(&pair.server, RECEIVE, IBV_WC_LOC_PROT_ERR);
	expect_status(&pair.server, NEXT_RECEIVE, IBV_WC_WR_FLUSH_ERR);
	expect_state(&pair.server, IBV_QPS_ERR);
	side_compare(&server);
}
