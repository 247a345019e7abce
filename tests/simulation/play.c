/* SPDX-License-Identifier: BSD-2-Clause */
/* Plays a plan, see play.h: a loop over the next event: a packet arrives, a timer fires, the program posts. */
#include "play.h"

#include <string.h>

#include "../unit/support/wire_clock.h"
#include "transport/qp/transport.h"
#include "weather.h"

enum { MOST_EVENTS = 2000000 };

static struct {
	const struct plan *plan;
	struct record *record;
	bool fair;
	uint64_t start_ns;
	/* For each end: requests posted, blocks of the ring that may be overwritten; receives posted. */
	uint32_t posted[ENDS], receives[ENDS][TARGETS];
	uint16_t done[ENDS];
} stage;

/* ---- completions ------------------------------------------------------------------------------------------------ */

static uint32_t request_at(int end, uint16_t index)
{
	for (uint32_t i = stage.posted[end]; i; i--)
		if (ends[end].index_of[i - 1] == index)
			return i - 1;
	wrong("end %d completes a request at block %u: there is none", end, index);
}

static bool is_error(const struct mlx5_cqe64 *cqe)
{
	return cqe->op_own >> 4 == MLX5_CQE_REQ_ERR || cqe->op_own >> 4 == MLX5_CQE_RESP_ERR;
}

static uint8_t syndrome_of(const struct mlx5_cqe64 *cqe)
{
	return is_error(cqe) ? ((const struct mlx5_err_cqe *)cqe)->syndrome : 0;
}

static void take_sent(int end, const struct mlx5_cqe64 *cqe)
{
	struct record *record = stage.record;
	uint32_t request = request_at(end, be16toh(cqe->wqe_counter));
	uint8_t opcode = stage.plan->direction[end].request[request].opcode;
	bool brings = opcode == MLX5_OPCODE_RDMA_READ || opcode_is_atomic(opcode);

	if ((be32toh(cqe->sop_drop_qpn) & 0xffffff) != ends[end].qp->number)
		wrong("end %d has a completion of QP %#x", end, be32toh(cqe->sop_drop_qpn));
	if (record->sent[end] == MOST_REQUESTS)
		wrong("end %d has more completions than requests", end);
	record->send[end][record->sent[end]++] = (struct sent){
		.request = request,
		.opcode = cqe->op_own >> 4,
		.syndrome = syndrome_of(cqe),
		.bytes = brings && !is_error(cqe) ? be32toh(cqe->byte_cnt) : 0,
	};
	stage.done[end] = (uint16_t)(ends[end].index_of[request] + ends[end].blocks_of[request]);
	if (!is_error(cqe))
		end_pass(end, &stage.plan->direction[end].request[request]);
}

static void take_received(int end, int target, const struct mlx5_cqe64 *cqe)
{
	struct record *record = stage.record;
	uint32_t number = record->received[end][target]++;
	uint8_t opcode = cqe->op_own >> 4;

	if (number >= stage.receives[end][target])
		wrong("end %d has more completions than receives", end);
	if (be16toh(cqe->wqe_counter) % RQ_ENTRIES != number % RQ_ENTRIES)
		wrong("end %d completes receive %u instead of %u", end, be16toh(cqe->wqe_counter), number);
	record->receive[end][target][number] = (struct received){
		.opcode = opcode,
		.syndrome = syndrome_of(cqe),
		.bytes = is_error(cqe) ? 0 : be32toh(cqe->byte_cnt),
		.imm = opcode == MLX5_CQE_RESP_SEND || is_error(cqe) ? 0 : be32toh(cqe->imm_inval_pkey),
		.number = number,
	};
}

/* Polls all CQs. A QP has its receives in one CQ, an XRC or DC target in its own. */
static bool poll_all(void)
{
	const struct mlx5_cqe64 *cqe;
	bool found = false;

	for (int end = 0; end < ENDS; end++) {
		for (; (cqe = ring_poll(&ends[end].send_cq)); found = true)
			take_sent(end, cqe);
		for (int target = 0; target < TARGETS; target++)
			for (; (cqe = ring_poll(&ends[end].queue[target].cq)); found = true)
				take_received(end, target, cqe);
	}
	return found;
}

/* ---- the program ------------------------------------------------------------------------------------------------ */

static uint64_t elapsed(void)
{
	return clock_now_ns() - stage.start_ns;
}

static bool post_requests(int end)
{
	const struct direction *direction = &stage.plan->direction[end];
	uint32_t before = stage.posted[end];

	while (stage.posted[end] < direction->requests && direction->request[stage.posted[end]].at_ns <= elapsed()) {
		uint32_t used = (uint16_t)(ends[end].posted - stage.done[end]);

		if (!end_post(end, stage.plan, stage.posted[end], SQ_BLOCKS - used))
			break;
		stage.posted[end]++;
	}
	if (stage.posted[end] != before)
		end_ring(end);
	return stage.posted[end] != before;
}

/* Posts the receives of @end for messages from the other end. */
static bool post_receives(int end, int target)
{
	const struct direction *direction = &stage.plan->direction[!end];
	uint32_t *posted = &stage.receives[end][target], before = *posted;

	for (; *posted < direction->receives[target] && direction->receive[target][*posted].at_ns <= elapsed();
	     ++*posted)
		end_receive(end, stage.plan, target, *posted);
	return *posted != before;
}

static void act(void)
{
	bool acted;

	do {
		acted = false;
		for (int end = 0; end < ENDS; end++)
			for (int target = 0; target < TARGETS; target++)
				acted |= post_receives(end, target);
		for (int end = 0; end < ENDS; end++)
			acted |= post_requests(end);
		acted |= poll_all();
	} while (acted);
}

static uint64_t next_action_ns(void)
{
	uint64_t next = UINT64_MAX;

	for (int end = 0; end < ENDS; end++) {
		const struct direction *own = &stage.plan->direction[end], *other = &stage.plan->direction[!end];
		uint32_t request = stage.posted[end];

		/* Requests that are already due wait for room in the ring. */
		if (request < own->requests && own->request[request].at_ns > elapsed() &&
		    own->request[request].at_ns < next)
			next = own->request[request].at_ns;
		for (int target = 0; target < TARGETS; target++) {
			uint32_t receive = stage.receives[end][target];

			if (receive < other->receives[target] && other->receive[target][receive].at_ns < next)
				next = other->receive[target][receive].at_ns;
		}
	}
	return next == UINT64_MAX ? next : stage.start_ns + next;
}

/* ---- the run ---------------------------------------------------------------------------------------------------- */

/* Returns true if the weather must become fair, before retries run out, until a packet has arrived. */
static bool has_mercy(void)
{
	if (stage.plan->mortal)
		return false;
	for (int end = 0; end < ENDS; end++) {
		const struct hca_qp *qp = ends[end].qp;

		if (qp && qp->transport->reliable && qp->requester.first != qp->requester.last &&
		    qp->requester.retries_left <= 3)
			return true;
	}
	return false;
}

static void note_retries(void)
{
	for (int end = 0; end < ENDS; end++) {
		const struct hca_qp *qp = ends[end].qp;

		if (qp && qp->transport->reliable && qp->requester.retries_left < stage.plan->attr.retry_cnt)
			stage.record->retried = true;
	}
}

/* Performs the next event; returns false if there is none any more. */
static bool happen(void)
{
	uint64_t packet_ns, action_ns, next, timer_left;

	weather_collect(has_mercy());
	packet_ns = weather_next_ns();
	action_ns = next_action_ns();
	next = packet_ns < action_ns ? packet_ns : action_ns;
	timer_left = wire_clock_left();
	if (next == UINT64_MAX && timer_left == UINT64_MAX)
		return false;
	if (timer_left != UINT64_MAX && (next == UINT64_MAX || clock_now_ns() + timer_left < next)) {
		wire_clock_next();
		return true;
	}
	if (next > clock_now_ns())
		wire_clock_pass(next - clock_now_ns());
	if (packet_ns <= clock_now_ns())
		weather_happen();
	return true;
}

void play(const struct plan *plan, bool fair, struct record *record)
{
	memset(&stage, 0, sizeof(stage));
	memset(record, 0, sizeof(*record));
	stage.plan = plan;
	stage.record = record;
	stage.fair = fair;
	weather_begin(ends_hca, plan, fair);
	ends_begin(plan);
	stage.start_ns = clock_now_ns();
	do {
		act();
		note_retries();
		if (++record->events > MOST_EVENTS)
			wrong("it never ends");
	} while (happen());
	record->time_ns = elapsed();
}
