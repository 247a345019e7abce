/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations and their model, see transfer.h. */
#include "support/transfer.h"

#include <endian.h>

enum {
	WR_ID = 0x7a5f,
	RECEIVE_WR_ID = 0x4ecf,
	IMMEDIATE = 0x0badcafe,
	GRH_BYTES = 40,
};

/* ---- views -------------------------------------------------------------------------------------------------- */

struct view view_with_key(struct side *side, uint32_t key, size_t start, size_t length)
{
	return (struct view){
		.side = side,
		.key = key,
		.address = side_address(side, start),
		.start = start,
		.length = length,
	};
}

struct view view_memory(struct side *side, size_t start, size_t length)
{
	return view_with_key(side, side->mr->lkey, start, length);
}

struct view view_part(struct view view, int64_t offset, size_t length)
{
	view.outside = offset < 0 || (size_t)offset > view.length || length > view.length - (size_t)offset;
	view.address += (uint64_t)offset;
	view.start += (size_t)offset;
	view.length = length;
	return view;
}

static size_t byte_at(const struct view *view, size_t i)
{
	return view->map ? view->map[view->start + i] : view->start + i;
}

static struct ibv_sge sge_of(const struct view *view)
{
	return (struct ibv_sge){.addr = view->address, .length = (uint32_t)view->length, .lkey = view->key};
}

void model_copy(const struct view *source, const struct view *target)
{
	for (size_t i = 0; i < source->length; i++)
		target->side->expected[byte_at(target, i)] = source->side->expected[byte_at(source, i)];
}

static uint64_t model_load(const struct view *view)
{
	uint8_t bytes[sizeof(uint64_t)];
	uint64_t value;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = view->side->expected[byte_at(view, i)];
	memcpy(&value, bytes, sizeof(value));
	return value;
}

static void model_store(const struct view *view, uint64_t value)
{
	uint8_t bytes[sizeof(uint64_t)];

	memcpy(bytes, &value, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		view->side->expected[byte_at(view, i)] = bytes[i];
}

/* ---- operations --------------------------------------------------------------------------------------------- */

/* @status is the expected status of a request on @one and @other: success needs a model. */
static void begin(struct place place, const struct view *one, const struct view *other, enum ibv_wc_status status)
{
	if (status == IBV_WC_SUCCESS && (one->outside || other->outside))
		fail_at(place, "the test wants success beyond the end of a view");
	side_compare_(place, one->side);
	side_compare_(place, other->side);
	side_stir(one->side);
	side_stir(other->side);
}

static void end(struct place place, struct pair *pair, enum ibv_wc_status status)
{
	side_compare_(place, pair->client.side);
	side_compare_(place, pair->server.side);
	if (status != IBV_WC_SUCCESS) {
		pair_renew(pair);
		return;
	}
	expect_idle_(place, &pair->client);
	expect_idle_(place, &pair->server);
}

/* Polls the completion of the request. Its length is set for responses only (ibv_poll_cq(3)). */
static void complete(struct place place, struct endpoint *endpoint, enum ibv_wc_opcode opcode,
		     enum ibv_wc_status status, size_t read)
{
	struct ibv_wc wc;

	if (status != IBV_WC_SUCCESS) {
		expect_status_(place, endpoint, WR_ID, status);
		return;
	}
	wc = expect_completion_(place, endpoint, WR_ID, opcode);
	if (read && wc.byte_len != read)
		fail_at(place, "%u bytes came back, not %zu", wc.byte_len, read);
}

static void complete_receive(struct place place, struct endpoint *endpoint, enum ibv_wc_opcode opcode, size_t bytes,
			     bool immediate)
{
	struct ibv_wc wc = expect_completion_(place, endpoint, RECEIVE_WR_ID, opcode);

	if (wc.byte_len != bytes)
		fail_at(place, "received %u bytes, not %zu", wc.byte_len, bytes);
	if (immediate != !!(wc.wc_flags & IBV_WC_WITH_IMM) || (immediate && wc.imm_data != htobe32(IMMEDIATE)))
		fail_at(place, "wc_flags %#x, immediate %#x", wc.wc_flags, be32toh(wc.imm_data));
}

void expect_write_(struct place place, struct pair *pair, enum ibv_wr_opcode opcode, struct view source,
		   struct view target, enum ibv_wc_status status)
{
	struct endpoint *endpoint = pair_at(pair, source.side);
	bool immediate = opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct ibv_sge sge = sge_of(&source);
	struct ibv_send_wr wr = {
		.wr_id = WR_ID,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32(IMMEDIATE),
		.wr.rdma = {.remote_addr = target.address, .rkey = target.key},
	};

	begin(place, &source, &target, status);
	if (immediate)
		post_receive_(place, endpoint->peer, RECEIVE_WR_ID, NULL, 0);
	post_send_(place, endpoint, &wr);
	complete(place, endpoint, IBV_WC_RDMA_WRITE, status, 0);
	if (status == IBV_WC_SUCCESS) {
		if (immediate)
			complete_receive(place, endpoint->peer, IBV_WC_RECV_RDMA_WITH_IMM, source.length, true);
		model_copy(&source, &target);
	}
	end(place, pair, status);
}

void expect_read_(struct place place, struct pair *pair, struct view sink, struct view source,
		  enum ibv_wc_status status)
{
	struct endpoint *endpoint = pair_at(pair, sink.side);
	struct ibv_sge sge = sge_of(&sink);
	struct ibv_send_wr wr = rdma_wr(WR_ID, IBV_WR_RDMA_READ, &sge, source.address, source.key);

	begin(place, &source, &sink, status);
	post_send_(place, endpoint, &wr);
	complete(place, endpoint, IBV_WC_RDMA_READ, status, sink.length);
	if (status == IBV_WC_SUCCESS)
		model_copy(&source, &sink);
	end(place, pair, status);
}

static bool seen_by_peer(enum ibv_wc_status status)
{
	return status == IBV_WC_SUCCESS || status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_OP_ERR ||
	       status == IBV_WC_REM_INV_REQ_ERR;
}

void expect_send_(struct place place, struct pair *pair, enum ibv_wr_opcode opcode, struct view source,
		  struct view sink, enum ibv_wc_status status, enum ibv_wc_status receive_status)
{
	struct endpoint *endpoint = pair_at(pair, source.side);
	bool immediate = opcode == IBV_WR_SEND_WITH_IMM, datagram = endpoint->ah;
	uint8_t header[GRH_BYTES]; /* of a datagram; its contents are not checked */
	struct ibv_mr *header_mr = ibv_reg_mr(sink.side->pd, header, sizeof(header), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = sge_of(&source);
	struct ibv_sge receive[2] = {{.addr = (uintptr_t)header, .length = sizeof(header), .lkey = header_mr->lkey},
				     sge_of(&sink)};
	struct ibv_send_wr wr = {
		.wr_id = WR_ID,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32(IMMEDIATE),
	};

	begin(place, &source, &sink, status);
	post_receive_(place, endpoint->peer, RECEIVE_WR_ID, &receive[!datagram], datagram ? 2 : 1);
	post_send_(place, endpoint, &wr);
	complete(place, endpoint, IBV_WC_SEND, status, 0);
	if (receive_status == IBV_WC_SUCCESS && status == IBV_WC_SUCCESS) {
		complete_receive(place, endpoint->peer, IBV_WC_RECV, source.length + (datagram ? GRH_BYTES : 0),
				 immediate);
		model_copy(&source, &sink);
	} else if (seen_by_peer(status)) {
		expect_status_(place, endpoint->peer, RECEIVE_WR_ID, receive_status);
	}
	expect_error_(place, "ibv_dereg_mr()", ibv_dereg_mr(header_mr), 0);
	end(place, pair, status);
}

void expect_atomic_(struct place place, struct pair *pair, enum ibv_wr_opcode opcode, bool equal, struct view result,
		    struct view target, enum ibv_wc_status status)
{
	const uint64_t operand = UINT64_C(0xfedcba9876543210);
	bool add = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct endpoint *endpoint = pair_at(pair, result.side);
	struct ibv_sge sge = sge_of(&result);
	struct ibv_send_wr wr = {
		.wr_id = WR_ID,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = {.remote_addr = target.address, .rkey = target.key, .swap = operand},
	};
	uint64_t before;

	begin(place, &result, &target, status);
	before = target.outside ? 0 : model_load(&target);
	wr.wr.atomic.compare_add = add ? operand : equal ? before : ~before;
	post_send_(place, endpoint, &wr);
	complete(place, endpoint, add ? IBV_WC_FETCH_ADD : IBV_WC_COMP_SWAP, status, sizeof(uint64_t));
	if (status == IBV_WC_SUCCESS) {
		model_store(&result, before);
		if (add || equal)
			model_store(&target, add ? before + operand : operand);
	}
	end(place, pair, status);
}
