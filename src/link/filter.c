/* SPDX-License-Identifier: BSD-2-Clause */
/* Filters, see filter.h: the way of a frame through them. */
#include "link/filter.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hca/epoch.h"
#include "hca/qp.h"
#include "link/capture.h"
#include "link/counters.h"
#include "link/frame.h"
#include "link/roce.h"

/* Of bytes that wait. Above it senders are told to wait; below half of it they may go on. */
#define QUEUE_MOST (UINT64_C(64) << 20)
/* A frame that nobody overtakes is not lost. */
#define HOLD_NS UINT64_C(1000000)
/* After a link that had no room. */
#define RETRY_NS UINT64_C(100000)

struct frame_list {
	struct frame *first, *last;
};

struct filters {
	struct hca *hca;
	struct capture *capture; /* or NULL; does not change */
	pthread_mutex_t lock;
	struct faults *faults;     /* or NULL */
	uint32_t generation;       /* of these */
	struct frame_list ready;   /* in the order in which they go */
	struct frame_list delayed; /* by due_ns */
	uint64_t bytes;            /* of both */
	bool full;                 /* somebody was told LINK_BUSY */
	const struct run *drainer; /* that hands out frames now, or NULL */
	struct timer timer;        /* for the next that becomes due */
	uint64_t timer_ns;         /* armed for; 0: not */
};

static struct filters *filters_of(const struct hca *hca)
{
	return __atomic_load_n(&hca->filters, __ATOMIC_ACQUIRE);
}

static uint16_t roce_port(const struct hca *hca)
{
	return (uint16_t)hca->settings.roce_port;
}

/* ---- lists ------------------------------------------------------------------------------------------------------ */

static void insert_behind(struct frame_list *list, struct frame *before, struct frame *frame)
{
	frame->previous = before;
	frame->next = before ? before->next : list->first;
	*(frame->next ? &frame->next->previous : &list->last) = frame;
	*(before ? &before->next : &list->first) = frame;
}

static void take_out(struct frame_list *list, struct frame *frame)
{
	*(frame->next ? &frame->next->previous : &list->last) = frame->previous;
	*(frame->previous ? &frame->previous->next : &list->first) = frame->next;
}

static void insert_due(struct frame_list *list, struct frame *frame)
{
	struct frame *before = list->last;

	while (before && before->due_ns > frame->due_ns)
		before = before->previous;
	insert_behind(list, before, frame);
}

static void forget_held(struct frame *frame)
{
	struct frame **held;

	if (!frame->flow)
		return;
	for (held = &frame->flow->held; *held != frame; held = &(*held)->next_held)
		;
	*held = frame->next_held;
	frame->flow = NULL;
}

static void free_all(struct frame_list *list)
{
	struct frame *frame;

	while ((frame = list->first)) {
		take_out(list, frame);
		free(frame);
	}
}

/* ---- time ------------------------------------------------------------------------------------------------------- */

static void release_due(struct filters *filters, uint64_t now)
{
	struct frame *frame;

	while ((frame = filters->delayed.first) && frame->due_ns <= now) {
		take_out(&filters->delayed, frame);
		forget_held(frame);
		insert_behind(&filters->ready, filters->ready.last, frame);
	}
}

/* The lock is held. Without a thread frames become due when something else is sent. */
static void wake_at(struct filters *filters, uint64_t time_ns)
{
	if (filters->timer_ns && filters->timer_ns <= time_ns)
		return;
	filters->timer_ns = timer_arm(&filters->hca->timers, &filters->timer, time_ns) ? 0 : time_ns;
}

static void timer_fired(struct timer *timer)
{
	struct filters *filters = (struct filters *)((char *)timer - offsetof(struct filters, timer));
	struct run run;

	pthread_mutex_lock(&filters->lock);
	filters->timer_ns = 0;
	pthread_mutex_unlock(&filters->lock);
	epoch_enter();
	run_begin(&run);
	run_drain(&run, NULL);
	run_finish(&run);
	epoch_leave();
}

/* ---- sending ---------------------------------------------------------------------------------------------------- */

static void place(struct filters *filters, struct frame *frame, uint64_t now)
{
	if (frame->due_ns > now)
		insert_due(&filters->delayed, frame);
	else
		insert_behind(&filters->ready, filters->ready.last, frame);
}

/* One more of @flow passes: those that it was the last to overtake follow. */
static void overtake(struct filters *filters, struct fault_flow *flow, uint64_t now)
{
	struct frame **held = &flow->held, *frame;

	while ((frame = *held)) {
		if (--frame->overtake) {
			held = &frame->next_held;
			continue;
		}
		*held = frame->next_held;
		frame->flow = NULL;
		take_out(&filters->delayed, frame);
		frame->due_ns = flow->last_due_ns;
		place(filters, frame, now);
	}
}

static void hold(struct filters *filters, struct frame *frame, struct fault_flow *flow, uint32_t others, uint64_t now)
{
	frame->flow = flow;
	frame->overtake = others;
	frame->next_held = flow->held;
	flow->held = frame;
	frame->due_ns = now + HOLD_NS;
	insert_due(&filters->delayed, frame);
}

/* The lock is held. @frame is the filters' from here on. */
static void queue(struct filters *filters, struct frame *frame, const struct fault_verdict *verdict, uint64_t now)
{
	struct fault_flow *flow = verdict->flow;

	release_due(filters, now);
	filters->bytes += frame->length;
	if (flow && verdict->delay_ns) {
		uint64_t due = now + verdict->delay_ns;

		flow->last_due_ns = due > flow->last_due_ns ? due : flow->last_due_ns;
	}
	if (flow && verdict->overtake) {
		hold(filters, frame, flow, verdict->overtake, now);
	} else {
		frame->due_ns = flow ? flow->last_due_ns : 0;
		place(filters, frame, now);
		if (flow)
			overtake(filters, flow, now);
	}
	if (filters->delayed.first)
		wake_at(filters, filters->delayed.first->due_ns);
}

static void count(const struct hca *hca, const struct fault_verdict *verdict)
{
	counter_add(hca, COUNTER_FAULT_FRAMES, 1);
	counter_add(hca, COUNTER_FAULT_DROPPED, verdict->drop);
	counter_add(hca, COUNTER_FAULT_DUPLICATED, verdict->copies);
	counter_add(hca, COUNTER_FAULT_REORDERED, verdict->overtake != 0);
	counter_add(hca, COUNTER_FAULT_DELAYED, verdict->delay_ns != 0);
	counter_add(hca, COUNTER_FAULT_CORRUPTED, verdict->corrupt_payload || verdict->corrupt_frame);
}

static struct fault_verdict decide(struct filters *filters, const struct packet *packet, uint32_t payload,
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
	count(filters->hca, &verdict);
	if (verdict.kill)
		kill(getpid(), SIGKILL);
	return verdict;
}

static void queue_all(struct filters *filters, struct frame *frame, const struct fault_verdict *verdict)
{
	const struct fault_verdict plain = {.flow = verdict->flow};
	uint64_t now = clock_now_ns();

	queue(filters, frame, verdict, now);
	for (uint32_t i = 0; i < verdict->copies; i++) {
		struct frame *copy = frame_copy(frame);

		if (copy)
			queue(filters, copy, &plain, now);
	}
}

/*
 * Packet @number of the run. Returns false if the rest of it is lost. The payload is read without the lock, as that may take
 * others.
 */
static bool send_one(struct filters *filters, const struct packet *packet, uint32_t number, uint32_t payload)
{
	uint32_t generation;
	struct fault_verdict verdict = decide(filters, packet, payload, &generation);
	struct frame *frame = frame_cut(packet, number, payload, roce_port(filters->hca), &verdict);

	if (!frame)
		return false;
	if (verdict.drop) {
		free(frame);
		return true;
	}
	pthread_mutex_lock(&filters->lock);
	if (generation != filters->generation)
		verdict.flow = NULL;
	queue_all(filters, frame, &verdict);
	pthread_mutex_unlock(&filters->lock);
	return true;
}

/* Nothing to do, and nothing that it could overtake. */
static bool is_idle(const struct filters *filters)
{
	return !filters->capture && !filters->faults && !filters->bytes && !filters->drainer;
}

enum link_result filter_send(struct hca *hca, struct run *run)
{
	struct filters *filters = filters_of(hca);
	struct packet *packet = run_slot(run);
	uint64_t left = packet->payload.length;
	bool idle, full;

	pthread_mutex_lock(&filters->lock);
	idle = is_idle(filters);
	full = filters->bytes > QUEUE_MOST;
	filters->full |= full;
	pthread_mutex_unlock(&filters->lock);
	if (idle)
		return packet->link->send(hca, run);
	if (full)
		return LINK_BUSY;
	for (uint32_t i = 0; i < frames_of(packet); i++) {
		uint32_t payload = frame_payload(packet, left);

		if (!send_one(filters, packet, i, payload))
			break;
		left -= payload < left ? payload : left;
	}
	return LINK_SENT;
}

bool filter_hides_receives_from(struct hca *hca, uint32_t qpn, const struct packet *packet)
{
	struct filters *filters = filters_of(hca);
	struct fault_subject subject = frame_subject(packet, 0);
	bool hide;

	/* Who will answer. */
	subject.sender = qpn;
	subject.destination = packet->source_qpn;
	pthread_mutex_lock(&filters->lock);
	hide = filters->faults && faults_refuse(filters->faults, &subject);
	pthread_mutex_unlock(&filters->lock);
	counter_add(hca, COUNTER_FAULT_REFUSED, hide);
	return hide;
}

/* ---- draining --------------------------------------------------------------------------------------------------- */

/* The frame that goes next, for @run to hand out. *@resume: those that wait for room may go on. */
static struct frame *take_next(struct filters *filters, const struct run *run, bool *resume)
{
	struct frame *frame = NULL;

	pthread_mutex_lock(&filters->lock);
	if (!filters->drainer || filters->drainer == run) {
		release_due(filters, clock_now_ns());
		frame = filters->ready.first;
		filters->drainer = frame ? run : NULL;
	}
	if (frame) {
		take_out(&filters->ready, frame);
		filters->bytes -= frame->length;
	} else if (filters->delayed.first) {
		wake_at(filters, filters->delayed.first->due_ns);
	}
	*resume = filters->full && filters->bytes < QUEUE_MOST / 2;
	if (*resume)
		filters->full = false;
	pthread_mutex_unlock(&filters->lock);
	return frame;
}

/* As it leaves; of what was lost before nobody could take a capture. */
static void capture_it(struct hca *hca, struct capture *capture, struct frame *frame)
{
	char comment[CAPTURE_COMMENT + 1];

	if (!capture || frame->captured)
		return;
	frame->captured = true;
	capture_frame(capture, CAPTURE_OUTBOUND, &frame->path, frame->path.udp_source_port, frame->bytes, frame->length,
		      frame->source_qpn,
		      capture_explanation(hca, frame->source_qpn, &frame->why, comment, sizeof(comment)));
}

/* The link had no room: again in a while. */
static void put_back(struct filters *filters, struct frame *frame)
{
	pthread_mutex_lock(&filters->lock);
	insert_behind(&filters->ready, NULL, frame);
	filters->bytes += frame->length;
	filters->drainer = NULL;
	wake_at(filters, clock_now_ns() + RETRY_NS);
	pthread_mutex_unlock(&filters->lock);
}

static enum link_result hand_on(struct hca *hca, struct frame *frame, struct run *run)
{
	if (frame->link->send_frame)
		return frame->link->send_frame(hca, &frame->path, frame->bytes, frame->length);
	if (!frame_parse(hca, frame, roce_port(hca), run_slot(run)))
		return LINK_SENT;
	return frame->link->send(hca, run);
}

bool filter_drain(struct hca *hca, struct run *run)
{
	struct filters *filters = filters_of(hca);
	struct frame *frame;
	bool resume;

	/* The packet that it was has been handled. */
	free(run->frame);
	run->frame = NULL;
	if (!filters)
		return false;
	while ((frame = take_next(filters, run, &resume))) {
		if (resume)
			link_resume(run);
		capture_it(hca, filters->capture, frame);
		if (hand_on(hca, frame, run) == LINK_BUSY) {
			put_back(filters, frame);
			return false;
		}
		if (run->first != run->last) {
			run->frame = frame;
			return true;
		}
		free(frame);
	}
	if (resume)
		link_resume(run);
	return false;
}

/* ---- making and changing ---------------------------------------------------------------------------------------- */

static struct filters *filters_new(struct hca *hca)
{
	struct filters *filters = calloc(1, sizeof(*filters));

	if (!filters)
		return NULL;
	filters->hca = hca;
	pthread_mutex_init(&filters->lock, NULL);
	timer_init(&filters->timer, timer_fired);
	return filters;
}

/* The filters of @hca, made if there are none. */
static struct filters *want_filters(struct hca *hca)
{
	struct filters *filters;

	pthread_mutex_lock(&hca->lock);
	filters = hca->filters;
	if (!filters) {
		filters = filters_new(hca);
		__atomic_store_n(&hca->filters, filters, __ATOMIC_RELEASE);
		if (filters)
			__atomic_store_n(&the_registry.filters, true, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&hca->lock);
	return filters;
}

/* Nothing refers to the flows of the old faults any more. The lock is held. */
static struct faults *exchange_faults(struct filters *filters, struct faults *faults)
{
	struct faults *old = filters->faults;

	for (struct frame *frame = filters->delayed.first; frame; frame = frame->next)
		frame->flow = NULL;
	filters->faults = faults;
	filters->generation++;
	return old;
}

int filters_set_faults(struct hca *hca, const struct fault_script *script)
{
	struct filters *filters = want_filters(hca);
	uint64_t seed = hca->settings.seed ? hca->settings.seed : hca_random(hca) >> 32;
	struct faults *faults = script ? faults_new(script, seed, hca->index) : NULL, *old;

	if (!filters || (script && !faults)) {
		faults_free(faults);
		return -ENOMEM;
	}
	pthread_mutex_lock(&filters->lock);
	old = exchange_faults(filters, faults);
	pthread_mutex_unlock(&filters->lock);
	faults_free(old);
	return 0;
}

void filters_fault_summary(struct hca *hca, void (*put)(void *argument, const char *line), void *argument)
{
	struct filters *filters = filters_of(hca);

	if (!filters)
		return;
	pthread_mutex_lock(&filters->lock);
	if (filters->faults)
		faults_summary(filters->faults, put, argument);
	pthread_mutex_unlock(&filters->lock);
}

uint64_t filters_frames(struct hca *hca)
{
	struct filters *filters = filters_of(hca);
	uint64_t frames;

	if (!filters)
		return 0;
	pthread_mutex_lock(&filters->lock);
	frames = filters->faults ? faults_frames(filters->faults) : 0;
	pthread_mutex_unlock(&filters->lock);
	return frames;
}

static int init_faults(struct hca *hca, char *error, size_t size)
{
	struct fault_script *script = malloc(sizeof(*script));
	struct fault_error where;
	int result = script ? fault_script_read(script, hca->settings.faults, &where, error, size) : -ENOMEM;

	if (!result)
		result = filters_set_faults(hca, script);
	if (result == -ENOMEM)
		snprintf(error, size, "no memory for the faults");
	free(script);
	return result;
}

/* Devices are being made: nobody uses them yet. */
static int init_capture(struct hca *hca, char *error, size_t size)
{
	struct capture *capture;
	struct filters *filters;
	int result = capture_open(hca, &capture, error, size);

	if (result || !capture)
		return result;
	filters = want_filters(hca);
	if (!filters) {
		capture_close(capture);
		snprintf(error, size, "no memory for the capture");
		return -ENOMEM;
	}
	filters->capture = capture;
	return 0;
}

int filters_init(struct hca *hca, char *error, size_t size)
{
	int result = init_capture(hca, error, size);

	if (!result && strcmp(hca->settings.faults, "off"))
		result = init_faults(hca, error, size);
	return result;
}

void filter_received(struct hca *hca, const struct packet *packet)
{
	struct filters *filters = filters_of(hca);
	const struct fault_verdict as_it_is = {.drop = false};
	uint64_t left = packet->payload.length;
	/* Reading the payload takes it away. */
	struct packet copy = *packet;

	if (!filters || !filters->capture)
		return;
	for (uint32_t i = 0; i < frames_of(&copy) || !i; i++) {
		uint32_t payload = frame_payload(&copy, left);
		struct frame *frame = frame_cut(&copy, i, payload, roce_port(hca), &as_it_is);

		if (!frame)
			return;
		capture_frame(filters->capture, CAPTURE_INBOUND, &frame->path, frame->path.udp_source_port,
			      frame->bytes, frame->length, packet->destination_qpn, NULL);
		left -= payload < left ? payload : left;
		free(frame);
	}
}

/* ---- fork ------------------------------------------------------------------------------------------------------- */

void filters_lock(struct hca *hca)
{
	if (hca->filters)
		pthread_mutex_lock(&hca->filters->lock);
}

void filters_unlock(struct hca *hca)
{
	if (hca->filters)
		pthread_mutex_unlock(&hca->filters->lock);
}

void filters_after_fork(struct hca *hca)
{
	struct filters *filters = hca->filters;

	if (!filters)
		return;
	exchange_faults(filters, filters->faults);
	free_all(&filters->ready);
	free_all(&filters->delayed);
	filters->bytes = 0;
	filters->drainer = NULL;
	/* It is in a list of timers that is forgotten next. */
	filters->timer_ns = 0;
	/* What happened to the parent's frames is the parent's to tell. */
	if (filters->faults) {
		struct faults *old = filters->faults;

		filters->faults = faults_new(faults_script(old), 0, hca->index);
		faults_free(old);
	}
}
