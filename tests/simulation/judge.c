/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks a run, see play.h: reliable transports here, the others in judge_unreliable.c. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/support/wire_clock.h"
#include "format/qp_types.h"
#include "judge.h"

void wrong(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	printf("WRONG: ");
	vprintf(format, list);
	printf("\n");
	va_end(list);
	exit(1);
}

/* ---- completions ------------------------------------------------------------------------------------------------- */

static uint32_t bytes_brought(const struct request *request)
{
	return request->opcode == MLX5_OPCODE_RDMA_READ || opcode_is_atomic(request->opcode)
		       ? request_wire_bytes(request)
		       : 0;
}

/* Expects the first @count signalled requests of @end to have succeeded, in order. Returns the number of these requests. */
static uint32_t expect_successes(const struct plan *plan, const struct record *record, int end, uint32_t count)
{
	const struct direction *direction = &plan->direction[end];
	uint32_t next = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct sent *sent = &record->send[end][i];

		while (next < direction->requests && !direction->request[next].signalled)
			next++;
		if (next == direction->requests)
			wrong("end %d completes more requests than it posted", end);
		if (sent->request != next)
			wrong("end %d completes request %u, not %u", end, sent->request, next);
		if (sent->opcode != MLX5_CQE_REQ)
			wrong("end %d: request %u fails with syndrome %#x", end, next, sent->syndrome);
		if (sent->bytes != bytes_brought(&direction->request[next]))
			wrong("end %d: request %u of %u bytes brings %u", end, next,
			      bytes_brought(&direction->request[next]), sent->bytes);
		next++;
	}
	return next;
}

static uint32_t signalled(const struct direction *direction)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < direction->requests; i++)
		count += direction->request[i].signalled;
	return count;
}

static bool same_receive(const struct received *a, const struct received *b)
{
	return a->opcode == b->opcode && a->bytes == b->bytes && a->number == b->number && a->syndrome == b->syndrome;
}

/* Returns the content of the CQE of @expected besides its length. */
static uint32_t immediate_of(const struct plan *plan, int from, int target, uint32_t number)
{
	const struct direction *direction = &plan->direction[from];

	for (uint32_t i = 0; i < direction->requests; i++) {
		const struct request *request = &direction->request[i];

		if (!opcode_takes_receive(request->opcode) || request->target != target || number--)
			continue;
		if (request->opcode == MLX5_OPCODE_SEND_INVAL)
			return mkey_number(ends[!from].invalidated[request->invalidates]);
		return request->opcode == MLX5_OPCODE_SEND ? 0 : request->imm;
	}
	return 0;
}

/* Expects the first @count receives of the messages from @from. */
static void expect_receives(const struct plan *plan, const struct record *record, int from, int target, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct received *got = &record->receive[!from][target][i];
		const struct received *expected = &plan->direction[from].expected[target][i];

		if (i >= plan->direction[from].received[target])
			wrong("receive %u from end %d completes, and nothing was sent for it", i, from);
		if (!same_receive(got, expected))
			wrong("receive %u from end %d: opcode %u, %u bytes, syndrome %#x, instead of opcode %u, %u bytes",
			      i, from, got->opcode, got->bytes, got->syndrome, expected->opcode, expected->bytes);
		if (got->imm != immediate_of(plan, from, target, i))
			wrong("receive %u from end %d: immediate %#x, not %#x", i, from, got->imm,
			      immediate_of(plan, from, target, i));
	}
}

/* ---- memory and keys --------------------------------------------------------------------------------------------- */

static void compare(const struct plan *plan, int end, uint32_t from, uint32_t bytes)
{
	if (!memcmp(ends[end].memory + from, plan->expected[end] + from, bytes))
		return;
	for (uint32_t i = from; i < from + bytes; i++)
		if (ends[end].memory[i] != plan->expected[end][i])
			wrong("end %d: byte %#x is %02x, not %02x (it was %02x)", end, i, ends[end].memory[i],
			      plan->expected[end][i], plan_memory(end)[i]);
}

static void expect_memory(const struct plan *plan)
{
	for (int end = 0; end < ENDS; end++) {
		compare(plan, end, 0, plan->direction[end].local_used + SLACK);
		compare(plan, end, AREA, plan->direction[!end].remote_used + SLACK);
	}
}

static void expect_keys(const struct plan *plan)
{
	for (int end = 0; end < ENDS; end++)
		for (int i = 0; i < INVALIDATED; i++)
			if (mkey_mapping(ends[end].invalidated[i])->free != plan->invalidated[end][i])
				wrong("end %d: key %d is %s", end, i,
				      plan->invalidated[end][i] ? "not invalidated" : "invalidated");
}

/* ---- queues ------------------------------------------------------------------------------------------------------ */

void judge_queues(void)
{
	for (int end = 0; end < ENDS; end++) {
		const struct hca_qp *qp = ends[end].qp;

		if (!qp)
			continue;
		if (qp->requester.first != qp->requester.last)
			wrong("end %d still has requests under way, and waits for nothing", end);
		if (qp->requester.responses_due)
			wrong("end %d still expects %u responses", end, qp->requester.responses_due);
		if (qp->requester.running || qp->scheduled || link_waits(&qp->requester.waiter))
			wrong("end %d still means to do something", end);
	}
}

static void expect_alive(const struct plan *plan)
{
	for (int end = 0; end < ENDS; end++) {
		if (ends[end].qp && ends[end].qp->state != IBV_QPS_RTS)
			wrong("end %d is in state %d", end, ends[end].qp->state);
		for (int i = 0; i < TARGETS; i++)
			if (ends[end].responder[i] &&
			    ends[end].responder[i]->state != (plan->type == QP_TYPE_DCI ? IBV_QPS_RTR : IBV_QPS_RTS))
				wrong("end %d: target %d is in state %d", end, i, ends[end].responder[i]->state);
	}
}

static void judge_success(const struct plan *plan, const struct record *record)
{
	for (int end = 0; end < ENDS; end++) {
		uint32_t count = signalled(&plan->direction[end]);

		expect_successes(plan, record, end, record->sent[end] < count ? record->sent[end] : count);
		if (record->sent[end] != count)
			wrong("end %d has %u completions, not %u", end, record->sent[end], count);
		for (int target = 0; target < TARGETS; target++) {
			uint32_t received = record->received[!end][target];

			expect_receives(plan, record, end, target, received);
			if (received != plan->direction[end].received[target])
				wrong("of end %d %u messages were received, not %u", end, received,
				      plan->direction[end].received[target]);
		}
	}
	expect_alive(plan);
	expect_memory(plan);
	expect_keys(plan);
}

/* ---- a failed connection ----------------------------------------------------------------------------------------- */

static bool is_prefix_of_success(const struct record *record, int end, uint32_t *successes)
{
	*successes = 0;
	while (*successes < record->sent[end] && record->send[end][*successes].opcode == MLX5_CQE_REQ)
		++*successes;
	return *successes == record->sent[end];
}

/* Expects one error after the successes, then a flush of all later requests, signalled or not. */
static void expect_failure(const struct plan *plan, const struct record *record, int end, uint32_t successes)
{
	const struct sent *failed = &record->send[end][successes];
	uint32_t next = failed->request + 1;
	/* Refused by its peer, or flushed since it refused a request of the peer. */
	bool refused = plan->attr.max_rd_atomic > plan->attr.max_dest_rd_atomic &&
		       (failed->syndrome == MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR ||
			failed->syndrome == MLX5_CQE_SYNDROME_WR_FLUSH_ERR);

	if (!refused && failed->syndrome != MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR &&
	    failed->syndrome != MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR)
		wrong("end %d: request %u fails with syndrome %#x", end, failed->request, failed->syndrome);
	for (uint32_t i = successes + 1; i < record->sent[end]; i++, next++)
		if (record->send[end][i].request != next ||
		    record->send[end][i].syndrome != MLX5_CQE_SYNDROME_WR_FLUSH_ERR)
			wrong("end %d: request %u ends with syndrome %#x, when %u was to be flushed", end,
			      record->send[end][i].request, record->send[end][i].syndrome, next);
	if (next != plan->direction[end].requests)
		wrong("end %d: request %u has no completion", end, next);
	if (ends[end].qp->state != IBV_QPS_ERR)
		wrong("end %d is in state %d", end, ends[end].qp->state);
}

/* Expects each byte to have its old or its new value; counters may have any. */
static void expect_mixture(const struct plan *plan, int end, uint32_t from, uint32_t bytes)
{
	for (uint32_t i = from; i < from + bytes; i++) {
		uint8_t got = ends[end].memory[i];

		if (got != plan->expected[end][i] && got != plan_memory(end)[i] && i - from >= COUNTERS * 8)
			wrong("end %d: byte %#x is %02x, neither %02x nor %02x", end, i, got, plan_memory(end)[i],
			      plan->expected[end][i]);
	}
}

/* Expects the effects of the first @count requests. */
static void expect_carried_out(const struct plan *plan, int end, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct request *request = &plan->direction[end].request[i];
		bool reads = request->opcode == MLX5_OPCODE_RDMA_READ;

		for (uint8_t p = 0; p < request->pieces && (reads || opcode_is_atomic(request->opcode)); p++)
			compare(plan, end, request->local[p].offset, request->local[p].length);
		if (!reads && !opcode_is_atomic(request->opcode))
			compare(plan, !end, request->remote, request->length);
	}
}

static void judge_mortal(const struct plan *plan, const struct record *record)
{
	for (int end = 0; end < ENDS; end++) {
		uint32_t successes, done;
		bool alive = is_prefix_of_success(record, end, &successes);

		done = expect_successes(plan, record, end, successes);
		if (!alive)
			expect_failure(plan, record, end, successes);
		else if (successes != signalled(&plan->direction[end]) && ends[end].qp->state == IBV_QPS_RTS)
			wrong("end %d has %u completions, not %u", end, successes, signalled(&plan->direction[end]));
		expect_carried_out(plan, end, done);
		expect_mixture(plan, end, 0, plan->direction[end].local_used + SLACK);
		expect_mixture(plan, end, AREA, plan->direction[!end].remote_used + SLACK);
		for (int target = 0; target < TARGETS; target++) {
			uint32_t received = record->received[!end][target];

			/* Receives that were flushed with their QP. */
			while (received &&
			       record->receive[!end][target][received - 1].syndrome == MLX5_CQE_SYNDROME_WR_FLUSH_ERR)
				received--;
			expect_receives(plan, record, end, target, received);
		}
	}
}

void judge(const struct plan *plan, bool fair, const struct record *record)
{
	judge_queues();
	if (!plan_is_reliable(plan))
		judge_unreliable(plan, fair, record);
	else if (plan->mortal)
		judge_mortal(plan, record);
	else
		judge_success(plan, record);
}

void judge_alike(const struct plan *plan, const struct record *fair, const struct record *record)
{
	if (!plan_is_reliable(plan) || plan->mortal)
		return;
	for (int end = 0; end < ENDS; end++) {
		if (memcmp(fair->send[end], record->send[end], sizeof(fair->send[end])))
			wrong("end %d: its completions are not those of a run without losses", end);
		for (int target = 0; target < TARGETS; target++)
			for (uint32_t i = 0; i < record->received[end][target]; i++)
				if (!same_receive(&fair->receive[end][target][i], &record->receive[end][target][i]))
					wrong("end %d: receive %u is not that of a run without losses", end, i);
	}
}
