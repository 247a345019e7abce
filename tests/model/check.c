/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares the device with the model after a step, see world.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "link.h"
#include "world.h"
#include "test_clock.h"

/* For timers of the device; a link with its own clock needs no waiting. */
enum { PATIENCE_SECONDS = 10 };

static void compare_success(struct world *world, int qp, const struct expectation *due, const struct ibv_wc *wc)
{
	unsigned int flags = (due->has_immediate ? IBV_WC_WITH_IMM : 0) | (due->has_invalidated ? IBV_WC_WITH_INV : 0) |
			     (due->is_datagram ? IBV_WC_GRH : 0);
	bool receive = due->opcode & IBV_WC_RECV;

	if (wc->opcode != due->opcode)
		world_fail(world, "qp %d wr %lu: opcode %u, not %u", qp, wc->wr_id, wc->opcode, due->opcode);
	if (due->has_length && wc->byte_len != due->length)
		world_fail(world, "qp %d wr %lu: %u bytes, not %u", qp, wc->wr_id, wc->byte_len, due->length);
	if (!receive)
		return;
	if (wc->wc_flags != flags)
		world_fail(world, "qp %d wr %lu: wc_flags %#x, not %#x", qp, wc->wr_id, wc->wc_flags, flags);
	if (due->has_immediate && wc->imm_data != due->immediate)
		world_fail(world, "qp %d wr %lu: immediate %#x, not %#x", qp, wc->wr_id, wc->imm_data, due->immediate);
	if (due->has_invalidated && wc->invalidated_rkey != due->invalidated)
		world_fail(world, "qp %d wr %lu: invalidated %#x, not %#x", qp, wc->wr_id, wc->invalidated_rkey,
			   due->invalidated);
	if (due->is_datagram && wc->src_qp != due->source_qp)
		world_fail(world, "qp %d wr %lu: from QP %#x, not %#x", qp, wc->wr_id, wc->src_qp, due->source_qp);
}

static void compare(struct world *world, int qp, const struct expectation *due, const struct ibv_wc *wc)
{
	if (wc->wr_id != due->id)
		world_fail(world, "qp %d: completion of wr %lu with %s, where wr %lu was due", qp, wc->wr_id,
			   ibv_wc_status_str(wc->status), due->id);
	if (!(due->statuses & 1u << wc->status))
		world_fail(world, "qp %d wr %lu: %s (vendor_err %u), where status bits %#x are allowed", qp, wc->wr_id,
			   ibv_wc_status_str(wc->status), wc->vendor_err, due->statuses);
	if (wc->qp_num != world->model.qp[qp].number)
		world_fail(world, "qp %d wr %lu: qp_num %#x, not %#x", qp, wc->wr_id, wc->qp_num,
			   world->model.qp[qp].number);
	if (wc->status == IBV_WC_SUCCESS)
		compare_success(world, qp, due, wc);
}

/* Polls @cq until all due completions have arrived. */
static void compare_queue(struct world *world, int qp, struct ibv_cq *cq, const char *name, struct queue *due,
			  const struct expectation *expectations, uint32_t size)
{
	double end = seconds_now() + (link_pipelines() && !link_in_real_time() ? 0 : PATIENCE_SECONDS);
	struct ibv_wc wc;

	while (queued(due)) {
		int found = ibv_poll_cq(cq, 1, &wc);

		if (found < 0)
			world_fail(world, "qp %d, %s CQ: ibv_poll_cq returns %d", qp, name, found);
		if (found) {
			say(world, "\n    -> qp %d wr %lu: %s", qp, wc.wr_id, ibv_wc_status_str(wc.status));
			if (wc.status == IBV_WC_RETRY_EXC_ERR)
				model_answer_lost(&world->model, qp, wc.wr_id);
			compare(world, qp, &expectations[due->first++ % size], &wc);
		} else if (!link_wait() && seconds_now() > end) {
			world_fail(world, "qp %d, %s CQ: no completion of wr %lu, status bits %#x", qp, name,
				   expectations[due->first % size].id, expectations[due->first % size].statuses);
		}
	}
}

static void expect_no_more(struct world *world, int qp, struct ibv_cq *cq, const char *name)
{
	struct ibv_wc wc;
	int found = ibv_poll_cq(cq, 1, &wc);

	if (found)
		world_fail(world, "qp %d, %s CQ: ibv_poll_cq returns %d, wr %lu with %s, where nothing was due", qp,
			   name, found, wc.wr_id, ibv_wc_status_str(wc.status));
}

static void compare_state(struct world *world, int qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int error = ibv_query_qp(world->qp[qp].qp, &attr, IBV_QP_STATE, &init);

	if (error)
		world_fail(world, "ibv_query_qp: %s", strerror(error));
	if (attr.qp_state != world->model.qp[qp].state)
		world_fail(world, "qp %d is in state %d, not %d", qp, attr.qp_state, world->model.qp[qp].state);
}

/* Compares asynchronous events, which are raised at the responder that refuses a request: all expected ones, no others. */
static void compare_events(struct world *world)
{
	for (int c = 0; c < CONTEXTS; c++) {
		struct ibv_async_event event;

		while (!ibv_get_async_event(world->context[c], &event)) {
			int qp = 0;

			while (qp < QPS && world->qp[qp].qp != event.element.qp)
				qp++;
			ibv_ack_async_event(&event);
			if (qp == QPS)
				world_fail(world, "%s of no QP", ibv_event_type_str(event.event_type));
			/* IBTA 11.6.3.2 names the error of a request; it leaves open which of two. */
			if (event.event_type != IBV_EVENT_QP_REQ_ERR && event.event_type != IBV_EVENT_QP_ACCESS_ERR)
				world_fail(world, "qp %d: %s", qp, ibv_event_type_str(event.event_type));
			if (world->model.qp[qp].state != IBV_QPS_ERR)
				world_fail(world, "qp %d: %s, without an error", qp,
					   ibv_event_type_str(event.event_type));
			world->model.qp[qp].events &= ~(1u << event.event_type);
		}
	}
	for (int qp = 0; qp < QPS; qp++) {
		if (world->model.qp[qp].events)
			world_fail(world, "qp %d: no asynchronous event, of types %#x", qp, world->model.qp[qp].events);
	}
}

/* Polls CQs while messages without a completion arrive, such as datagrams for which there is no receive. */
static void let_arrive(struct world *world)
{
	const struct timespec moment = {.tv_nsec = 50000};

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < QPS; i++) {
			expect_no_more(world, i, world->qp[i].send_cq, "send");
			expect_no_more(world, i, world->qp[i].receive_cq, "receive");
		}
		nanosleep(&moment, NULL);
	}
}

void world_check_completions(struct world *world)
{
	for (int i = 0; i < QPS; i++) {
		struct model_qp *qp = &world->model.qp[i];

		compare_queue(world, i, world->qp[i].send_cq, "send", &qp->send_completions, qp->send_completion,
			      OUTSTANDING);
		compare_queue(world, i, world->qp[i].receive_cq, "receive", &qp->receive_completions,
			      qp->receive_completion, 2 * OUTSTANDING);
	}
	while (link_progress())
		;
	if (link_in_real_time())
		let_arrive(world);
	for (int i = 0; i < QPS; i++) {
		expect_no_more(world, i, world->qp[i].send_cq, "send");
		expect_no_more(world, i, world->qp[i].receive_cq, "receive");
		compare_state(world, i);
	}
	compare_events(world);
}

void world_check_memory(struct world *world)
{
	double end = seconds_now() + PATIENCE_SECONDS;
	uint64_t offset;
	uint8_t is, should;
	int block;

	/* A WRITE of UC has no completion at the target. */
	while (link_in_real_time() && !memory_compare(&world->model.memory, &block, &offset, &is, &should) &&
	       seconds_now() < end)
		let_arrive(world);
	if (!memory_compare(&world->model.memory, &block, &offset, &is, &should))
		world_fail(world, "block %d byte %#lx is %02x, not %02x", block, offset, is, should);
}
