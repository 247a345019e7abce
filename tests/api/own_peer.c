/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue pair connected to itself rejects its own request: the request completes with the status of a peer's NAK (IBTA
 * 9.7.5.2.5), the receive it consumed with a status of its own, and everything else is flushed.
 */
#include "support/completion.h"
#include "verbs_connect.h"
#include "support/program.h"

enum { BYTES = 256, FROM = 0, TO = 4096, UNKNOWN_KEY = 0x12345600 };
/* wr_id of the receives, of the request that fails, and of those before and after it. */
enum { RECEIVE = 1, SECOND_RECEIVE, GOOD, BAD, LATER, LAST };

static struct endpoint end;

static void open_queue(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = pair.client.cq, .recv_cq = pair.client.cq, .cap = {16, 16, 1, 1, 0}};

	end = (struct endpoint){.side = &client, .cq = pair.client.cq, .qp = ibv_create_qp(client.pd, &init)};
	assert_non_null(end.qp);
	expect_error(verbs_connect(end.qp, end.qp->qp_num, .qp_access_flags = SIDE_REMOTE,
				   .ah_attr.grh = {.dgid = client.gid, .sgid_index = client.gid_index},
				   .max_dest_rd_atomic = 4, .min_rnr_timer = 12, .timeout = 14, .max_rd_atomic = 4),
		     0);
}

/* A request that its responder rejects. @receive: status of the receive it consumes, SUCCESS if none. */
static const struct refused {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t rkey; /* 0: that of the region */
	uint64_t beyond;
	uint32_t length;
	uint32_t receive_length, receive_key; /* 0: BYTES, and the key of the region */
	enum ibv_wc_status status, receive;
} table[] = {
	{"WRITE, key", IBV_WR_RDMA_WRITE, UNKNOWN_KEY, 0, BYTES, 0, 0, IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS},
	{"READ, key", IBV_WR_RDMA_READ, UNKNOWN_KEY, 0, BYTES, 0, 0, IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS},
	{"READ, range", IBV_WR_RDMA_READ, 0, SIDE_BYTES, BYTES, 0, 0, IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS},
	{"atomic, alignment", IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 4, 8, 0, 0, IBV_WC_REM_INV_REQ_ERR, IBV_WC_SUCCESS},
	{"SEND, length", IBV_WR_SEND, 0, 0, BYTES, BYTES / 2, 0, IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR},
	{"SEND, key", IBV_WR_SEND, 0, 0, BYTES, 0, UNKNOWN_KEY, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR},
};

static void post_request(uint64_t wr_id, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t address, uint32_t length)
{
	struct ibv_sge sge = side_sge(&client, FROM, length);
	struct ibv_send_wr wr = send_wr(wr_id, opcode, &sge);

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = address;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = address;
		wr.wr.rdma.rkey = rkey;
	}
	post_send(&end, &wr);
}

/* Checks the statuses of all requests by wr_id: two receives, and four of the send queue. */
static void expect_statuses(const struct refused *refused)
{
	const enum ibv_wc_status expected[] = {
		[RECEIVE] = refused->receive == IBV_WC_SUCCESS ? IBV_WC_WR_FLUSH_ERR : refused->receive,
		[SECOND_RECEIVE] = IBV_WC_WR_FLUSH_ERR,
		[GOOD] = IBV_WC_SUCCESS,
		[BAD] = refused->status,
		[LATER] = IBV_WC_WR_FLUSH_ERR,
	};

	for (int i = RECEIVE; i < LAST; i++) {
		struct ibv_wc wc = next_completion(&end);

		assert_true(wc.wr_id >= RECEIVE && wc.wr_id < LAST);
		if (wc.status != expected[wc.wr_id])
			fail_msg("%s: request %d has %s, and not %s", refused->name, (int)wc.wr_id,
				 ibv_wc_status_str(wc.status), ibv_wc_status_str(expected[wc.wr_id]));
		if (wc.status != IBV_WC_SUCCESS)
			assert_int_not_equal(wc.vendor_err, 0);
	}
	expect_idle(&end);
}

TEST(own_requests_are_refused)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const struct refused *refused = &table[i];
		struct ibv_sge receive = side_sge(&client, TO, BYTES), second = receive;

		note("%s", refused->name);
		open_queue();
		if (refused->receive_length)
			receive.length = refused->receive_length;
		if (refused->receive_key)
			receive.lkey = refused->receive_key;
		post_receive(&end, RECEIVE, &receive, 1);
		post_receive(&end, SECOND_RECEIVE, &second, 1);
		post_request(GOOD, IBV_WR_RDMA_WRITE, client.mr->rkey, side_address(&client, 2 * TO), BYTES);
		post_request(BAD, refused->opcode, refused->rkey ? refused->rkey : client.mr->rkey,
			     side_address(&client, TO) + refused->beyond, refused->length);
		post_request(LATER, IBV_WR_RDMA_READ, client.mr->rkey, side_address(&client, TO), BYTES);
		memcpy(client.expected + 2 * TO, client.expected + FROM, BYTES);
		expect_statuses(refused);
		expect_state(&end, IBV_QPS_ERR);
		side_compare(&client);
		expect_error(ibv_destroy_qp(end.qp), 0);
	}
}
