/* SPDX-License-Identifier: BSD-2-Clause */
/* Path of a frame through the filters, see filter.h. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "observe/counters.h"
#include "filter/filter_parts.h"

/* ---- sending ---------------------------------------------------------------------------------------------------- */

static void verdict_count(const struct hca *hca, const struct fault_verdict *verdict)
{
	counter_add(hca, COUNTER_FAULT_FRAMES, 1);
	counter_add(hca, COUNTER_FAULT_DROPPED, verdict->drop);
	counter_add(hca, COUNTER_FAULT_DUPLICATED, verdict->copies);
	counter_add(hca, COUNTER_FAULT_REORDERED, verdict->overtake != 0);
	counter_add(hca, COUNTER_FAULT_DELAYED, verdict->delay_ns != 0);
	counter_add(hca, COUNTER_FAULT_CORRUPTED, verdict->corrupt_payload || verdict->corrupt_frame);
}

static struct fault_verdict filter_decide(struct filters *filters, const struct packet *packet, uint32_t payload,
					  uint32_t *generation)
{
	struct fault_verdict verdict = {.drop = false};
	struct fault_subject subject;

	pthread_mutex_lock(&filters->lock);
	*generation = filters->generation;
	if (filters->faults) {
		subject = frame_subject(packet, payload);
		faults_decide(filters->faults, &subject, &verdict);
	}
	pthread_mutex_unlock(&filters->lock);
	verdict_count(filters->hca, &verdict);
	if (verdict.kill)
		kill(getpid(), SIGKILL);
	return verdict;
}

static void frame_queue_copies(struct filters *filters, struct frame *frame, const struct fault_verdict *verdict)
{
	const struct fault_verdict plain = {.flow = verdict->flow};
	uint64_t now = clock_now_ns();

	queue_add(filters, frame, verdict, now);
	for (uint32_t i = 0; i < verdict->copies; i++) {
		struct frame *copy = frame_copy(frame);

		if (copy)
			queue_add(filters, copy, &plain, now);
	}
}

/*
 * Sends packet @number of the run. Returns false if the rest of the run is lost. Reads the payload without the lock,
 * because this may take other locks.
 */
static bool frame_send(struct filters *filters, struct packet *packet, uint32_t number, uint32_t payload)
{
	uint32_t generation;
	struct fault_verdict verdict = filter_decide(filters, packet, payload, &generation);
	struct frame *frame = frame_cut(packet, number, payload, filters_port(filters->hca), &verdict);

	if (!frame)
		return false;
	frame->capture = filters->capture;
	if (verdict.drop) {
		free(frame);
		return true;
	}
	pthread_mutex_lock(&filters->lock);
	if (generation != filters->generation)
		verdict.flow = NULL;
	frame_queue_copies(filters, frame, &verdict);
	pthread_mutex_unlock(&filters->lock);
	return true;
}

/*
 * Returns true if the filters have nothing to do and no frame would be overtaken. Immediate links are excluded because
 * they keep the run by reference, which callers do not expect with filters (link_is_immediate()).
 */
static bool filters_are_idle(const struct filters *filters, const struct link *link)
{
	return !link->immediate && !filters->capture && !filters->faults && !filters->bytes && !filters->drainer;
}

enum link_result filter_send(struct hca *hca, struct run *run)
{
	struct filters *filters = filters_of(hca);
	struct packet *packet = run_slot(run);
	uint64_t left = packet->payload.length;
	bool idle, full;

	pthread_mutex_lock(&filters->lock);
	idle = filters_are_idle(filters, packet->link);
	full = filters->bytes > FILTER_MOST_BYTES;
	filters->full |= full;
	pthread_mutex_unlock(&filters->lock);
	if (idle)
		return packet->link->send(hca, run);
	if (full) {
		run->full = &filters->waiting;
		return LINK_BUSY;
	}
	for (uint32_t i = 0; i < frames_of(packet); i++) {
		uint32_t payload = frame_payload(packet, left);

		if (!frame_send(filters, packet, i, payload))
			break;
		left -= payload < left ? payload : left;
	}
	return LINK_SENT;
}

bool filter_hides_receives(struct hca *hca, uint32_t qpn, const struct packet *packet)
{
	struct filters *filters = filters_of(hca);
	struct fault_subject subject = frame_subject(packet, 0);
	bool hide;

	/* The answering side. */
	subject.sender = qpn;
	subject.destination = packet->source_qpn;
	pthread_mutex_lock(&filters->lock);
	hide = filters->faults && faults_refuse(filters->faults, &subject);
	pthread_mutex_unlock(&filters->lock);
	counter_add(hca, COUNTER_FAULT_REFUSED, hide);
	return hide;
}

/* ---- draining --------------------------------------------------------------------------------------------------- */

/* *@resume: senders waiting for room may continue. */
static struct frame *filters_take(struct filters *filters, const struct run *run, bool *resume)
{
	struct frame *frame = NULL;

	pthread_mutex_lock(&filters->lock);
	if (!filters->drainer || filters->drainer == run) {
		frame = queue_take(filters, clock_now_ns());
		filters->drainer = frame ? run : NULL;
	}
	*resume = filters->full && filters->bytes < FILTER_MOST_BYTES / 2;
	if (*resume)
		filters->full = false;
	pthread_mutex_unlock(&filters->lock);
	return frame;
}

/* Puts a frame back because its link had no room. */
static void filters_put_back(struct filters *filters, struct frame *frame)
{
	pthread_mutex_lock(&filters->lock);
	queue_put_back(filters, frame, clock_now_ns());
	filters->drainer = NULL;
	pthread_mutex_unlock(&filters->lock);
}

static enum link_result frame_hand_on(struct hca *hca, struct frame *frame, struct run *run)
{
	if (frame->link->send_frame)
		return frame->link->send_frame(hca, &frame->path, frame->bytes, frame->length);
	if (!frame_parse(hca, frame, filters_port(hca), run_slot(run)))
		return LINK_SENT;
	return frame->link->send(hca, run);
}

bool filter_drain(struct hca *hca, struct run *run)
{
	struct filters *filters = filters_of(hca);
	struct frame *frame;
	bool resume;

	/* The frame's packet has been handled. */
	filter_capture_done(run->frame);
	run->frame = NULL;
	if (!filters)
		return false;
	while ((frame = filters_take(filters, run, &resume))) {
		if (resume)
			link_resume(&filters->waiting, UINT32_MAX, run);
		filter_capture_leaving(frame);
		if (frame_hand_on(hca, frame, run) == LINK_BUSY) {
			filters_put_back(filters, frame);
			return false;
		}
		if (run->first != run->last) {
			run->frame = frame;
			return true;
		}
		filter_capture_done(frame);
	}
	if (resume)
		link_resume(&filters->waiting, UINT32_MAX, run);
	return false;
}
