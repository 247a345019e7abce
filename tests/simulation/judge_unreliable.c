/* SPDX-License-Identifier: BSD-2-Clause */
/* UC and UD, see judge.h. */
#include <string.h>

#include "judge.h"
#include "weather.h"

/* The messages that arrived from one end, in the order of their last packets. */
static struct {
	uint32_t count;
	uint32_t request[MOST_ARRIVALS];
} through;

static uint32_t packets_of_request(const struct plan *plan, const struct request *request)
{
	uint32_t mtu = 128u << plan->attr.path_mtu;

	if (plan->type == IBV_QPT_UD || !request->length)
		return 1;
	return (request->length + mtu - 1) / mtu;
}

/* Finds the request of packet @psn, and its place there. */
static uint32_t find(const struct plan *plan, int from, uint32_t psn, uint32_t *place)
{
	const struct direction *direction = &plan->direction[from];
	uint32_t at = (psn - plan->psn[from]) & 0xffffff;

	for (uint32_t i = 0; i < direction->requests; i++) {
		uint32_t count = packets_of_request(plan, &direction->request[i]);

		*place = at;
		if (at < count)
			return i;
		at -= count;
	}
	wrong("end %d sent packet %#x, which is of no request", from, psn);
}

/* Assembles packets without a gap, from the first to the last; any other packet makes the message lost. */
static void go_through(const struct plan *plan, int from)
{
	uint32_t place, next = 0, current = UINT32_MAX;

	through.count = 0;
	for (uint32_t i = 0; i < weather_log.arrivals; i++) {
		const struct arrival *arrival = &weather_log.arrival[i];
		uint32_t request;

		if (arrival->destination_qpn != ends[!from].qp->number)
			continue;
		request = find(plan, from, arrival->psn, &place);
		if (place && (request != current || place != next)) {
			current = UINT32_MAX;
			continue;
		}
		current = request;
		next = place + 1;
		if (next != packets_of_request(plan, &plan->direction[from].request[request]))
			continue;
		through.request[through.count++] = request;
		current = UINT32_MAX;
	}
}

static uint8_t opcode_of(uint8_t opcode)
{
	if (opcode == MLX5_OPCODE_RDMA_WRITE_IMM)
		return MLX5_CQE_RESP_WR_IMM;
	return opcode == MLX5_OPCODE_SEND_IMM ? MLX5_CQE_RESP_SEND_IMM : MLX5_CQE_RESP_SEND;
}

/* Expects the bytes of @request at the sender at @offset of its peer. */
static void expect_bytes(const struct request *request, uint32_t number, int from, uint32_t offset)
{
	for (uint8_t p = 0; p < request->pieces; p++) {
		const struct range *piece = &request->local[p];

		if (memcmp(ends[from].memory + piece->offset, ends[!from].memory + offset, piece->length))
			wrong("message %u of end %d arrived with other bytes", number, from);
		offset += piece->length;
	}
}

static void expect_receive(const struct plan *plan, int from, uint32_t number, const struct received *got)
{
	const struct request *request = &plan->direction[from].request[number];
	const struct range *buffer = &plan->direction[from].receive[0][got->number].buffer;
	uint32_t header = plan->type == IBV_QPT_UD ? GRH_BYTES : 0;
	bool writes = request->opcode == MLX5_OPCODE_RDMA_WRITE_IMM;

	if (got->opcode != opcode_of(request->opcode) || got->syndrome)
		wrong("message %u of end %d is received with opcode %u and syndrome %#x", number, from, got->opcode,
		      got->syndrome);
	if (got->bytes != request->length + header)
		wrong("message %u of end %d has %u bytes, not %u", number, from, got->bytes, request->length + header);
	if (got->imm != (request->opcode == MLX5_OPCODE_SEND ? 0 : request->imm))
		wrong("message %u of end %d has immediate %#x, not %#x", number, from, got->imm, request->imm);
	expect_bytes(request, number, from, writes ? request->remote : buffer->offset + header);
}

static void expect_received(const struct plan *plan, int from, const struct record *record)
{
	const struct direction *direction = &plan->direction[from];
	uint32_t receives = direction->receives[0], count = 0;

	for (uint32_t i = 0; i < through.count; i++) {
		const struct request *request = &direction->request[through.request[i]];

		if (request->opcode == MLX5_OPCODE_RDMA_WRITE)
			expect_bytes(request, through.request[i], from, request->remote);
		if (!opcode_takes_receive(request->opcode) || count == receives)
			continue;
		if (count == record->received[!from][0])
			wrong("message %u of end %d was not received", through.request[i], from);
		expect_receive(plan, from, through.request[i], &record->receive[!from][0][count++]);
	}
	if (count != record->received[!from][0])
		wrong("of end %d %u messages were received, not %u", from, record->received[!from][0], count);
}

static void expect_all_sent(const struct plan *plan, int from, const struct record *record)
{
	const struct direction *direction = &plan->direction[from];
	uint32_t next = 0;

	for (uint32_t i = 0; i < direction->requests; i++) {
		const struct sent *sent = &record->send[from][next];

		if (!direction->request[i].signalled)
			continue;
		if (next++ == record->sent[from] || sent->request != i || sent->opcode != MLX5_CQE_REQ)
			wrong("end %d: request %u does not complete", from, i);
	}
}

/* Expects memory that no message may have touched to be unchanged. */
static void expect_untouched(const struct plan *plan, int end)
{
	static bool touched[MEMORY];
	const struct direction *direction = &plan->direction[!end];
	const uint8_t *before = plan_memory(end);

	memset(touched, 0, sizeof(touched));
	for (uint32_t i = 0; i < direction->receives[0]; i++)
		memset(touched + direction->receive[0][i].buffer.offset, 1, direction->receive[0][i].buffer.length);
	for (uint32_t i = 0; i < direction->requests; i++)
		if (opcode_is_rdma(direction->request[i].opcode))
			memset(touched + direction->request[i].remote, 1, direction->request[i].length);
	for (uint32_t i = 0; i < AREA + direction->remote_used + SLACK; i++) {
		if (i == plan->direction[end].local_used + SLACK)
			i = AREA;
		if (!touched[i] && ends[end].memory[i] != before[i])
			wrong("end %d: byte %#x was written", end, i);
	}
}

void judge_unreliable(const struct plan *plan, bool fair, const struct record *record)
{
	for (int from = 0; from < ENDS; from++) {
		go_through(plan, from);
		if (fair && through.count != plan->direction[from].requests)
			wrong("of end %d %u messages came through, not %u", from, through.count,
			      plan->direction[from].requests);
		expect_received(plan, from, record);
		expect_all_sent(plan, from, record);
		expect_untouched(plan, from);
		if (ends[from].qp->state != IBV_QPS_RTS)
			wrong("end %d is in state %d", from, ends[from].qp->state);
	}
}
