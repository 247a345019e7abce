/* SPDX-License-Identifier: BSD-2-Clause */
/* See rsocket_peer.h. */
#include "rsocket_peer.h"

#include <endian.h>
#include <string.h>
#include <unistd.h>

uint64_t read_be(const uint8_t *bytes, size_t count)
{
	uint64_t value = 0;

	while (count--)
		value = value << 8 | *bytes++;
	return value;
}

void write_be(uint8_t *bytes, size_t count, uint64_t value)
{
	while (count--) {
		bytes[count] = (uint8_t)value;
		value >>= 8;
	}
}

/* Private data: version 1, flags of a little-endian end with mappings, credits; the list; the first half of the ring. */
static void describe(struct peer *peer)
{
	memset(peer->own, 0, sizeof(peer->own));
	peer->own[0] = 1;
	peer->own[1] = 2;
	write_be(peer->own + 2, 2, PEER_RECEIVES);
	peer->own[7] = 2;
	write_be(peer->own + 8, 8, (uintptr_t)peer->list);
	write_be(peer->own + 16, 4, peer->list_mr->rkey);
	write_be(peer->own + 20, 4, 2);
	write_be(peer->own + 24, 8, (uintptr_t)peer->ring);
	write_be(peer->own + 32, 4, peer->ring_mr->rkey);
	write_be(peer->own + 36, 4, PEER_RING / 2);
}

static struct ibv_mr *register_memory(struct peer *peer, void *memory, size_t size)
{
	struct ibv_mr *mr = ibv_reg_mr(peer->id->pd, memory, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	assert_non_null(mr);
	memset(memory, 0, size);
	return mr;
}

static void post_receive(struct peer *peer)
{
	struct ibv_recv_wr receive = {.wr_id = 1}, *bad;

	assert_int_equal(ibv_post_recv(peer->id->qp, &receive, &bad), 0);
}

void peer_make(struct peer *peer, int listener)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.sq_sig_all = 1,
					.cap = {.max_send_wr = PEER_RECEIVES,
						.max_recv_wr = PEER_RECEIVES,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	int index;

	peer->socket = -1;
	peer->listener = listener;
	peer->channel = new_channel();
	peer->id = new_id(peer->channel, RDMA_PS_TCP);
	resolve(peer->id, rport_of(listener));
	peer->cq = ibv_create_cq(peer->id->verbs, 2 * PEER_RECEIVES, NULL, NULL, 0);
	assert_non_null(peer->cq);
	attr.send_cq = peer->cq;
	attr.recv_cq = peer->cq;
	assert_success(rdma_create_qp(peer->id, NULL, &attr));
	peer->list_mr = register_memory(peer, peer->list, sizeof(peer->list));
	peer->ring_mr = register_memory(peer, peer->ring, sizeof(peer->ring));
	peer->out_mr = register_memory(peer, peer->out, sizeof(peer->out));
	for (index = 0; index < PEER_RECEIVES; index++)
		post_receive(peer);
	describe(peer);
}

void peer_connect(struct peer *peer, int listener)
{
	struct rdma_conn_param param = {.private_data = peer->own,
					.private_data_len = sizeof(peer->own),
					.flow_control = 1,
					.retry_count = 7,
					.rnr_retry_count = 7};
	struct rdma_cm_event *event;

	assert_success(rdma_connect(peer->id, &param));
	peer->socket = raccept(listener, NULL, NULL);
	assert_true(peer->socket >= 0);
	event = next_event(peer->channel, RDMA_CM_EVENT_ESTABLISHED);
	assert_true(event->param.conn.private_data_len >= PEER_DESCRIPTION);
	memcpy(peer->theirs, event->param.conn.private_data, PEER_DESCRIPTION);
	assert_int_equal(event->param.conn.responder_resources, 0);
	assert_int_equal(event->param.conn.initiator_depth, 0);
	assert_success(rdma_ack_cm_event(event));
}

void peer_end(struct peer *peer)
{
	rdma_destroy_qp(peer->id);
	assert_int_equal(ibv_destroy_cq(peer->cq), 0);
	assert_int_equal(ibv_dereg_mr(peer->list_mr), 0);
	assert_int_equal(ibv_dereg_mr(peer->ring_mr), 0);
	assert_int_equal(ibv_dereg_mr(peer->out_mr), 0);
	assert_success(rdma_destroy_id(peer->id));
	rdma_destroy_event_channel(peer->channel);
	if (peer->socket >= 0)
		assert_success(rclose(peer->socket));
	assert_success(rclose(peer->listener));
}

void peer_write(struct peer *peer, uint32_t bytes, uint64_t address, uint32_t key, uint32_t immediate)
{
	struct ibv_sge sge = {.addr = (uintptr_t)peer->out, .length = bytes, .lkey = peer->out_mr->lkey};
	struct ibv_send_wr request = {.sg_list = &sge,
				      .num_sge = bytes ? 1 : 0,
				      .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				      .imm_data = htobe32(immediate),
				      .wr.rdma = {.remote_addr = address, .rkey = key}},
			   *bad;

	assert_int_equal(ibv_post_send(peer->id->qp, &request, &bad), 0);
}

static bool next(struct peer *peer, int milliseconds, struct ibv_wc *wc)
{
	int tries;

	for (tries = 0; tries < milliseconds * 10; tries++) {
		while (ibv_poll_cq(peer->cq, 1, wc) == 1) {
			assert_int_equal(wc->status, IBV_WC_SUCCESS);
			if (wc->wr_id != 1)
				continue;
			assert_true(wc->wc_flags & IBV_WC_WITH_IMM);
			post_receive(peer);
			return true;
		}
		/* The library's end makes progress only in its calls. */
		if (peer->socket >= 0)
			rready(peer->socket, 0, 0);
		usleep(100);
	}
	return false;
}

uint32_t peer_next(struct peer *peer, uint32_t *bytes)
{
	struct ibv_wc wc;

	assert_true(next(peer, LIMIT_MS, &wc));
	*bytes = wc.byte_len;
	return be32toh(wc.imm_data);
}

bool peer_hears_nothing(struct peer *peer)
{
	struct ibv_wc wc;

	return !next(peer, 50, &wc);
}
