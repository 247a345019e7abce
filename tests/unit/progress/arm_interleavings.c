/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arms a CQ with a ring that the program drives itself, in all interleavings of a short run. The device writes CQEs,
 * the watcher looks at the arm word, and the program takes events, consumes CQEs, writes its consumer index and
 * arms. Each step of the device holds the lock of the CQ, so other interleavings are impossible.
 *
 * The rule is that of an adapter (mlx5-formats 3.6): an armed CQ raises one event as soon as it has a CQE at or after the
 * consumer index of the arming that no event has reported. The test tracks this independently and checks two things:
 * - No event is lost: a program that sleeps forever has consumed all CQEs that it armed the CQ for.
 * - No event is empty: the CQ is armed when an event is raised, and the event reports such a CQE.
 */
#include "test_case.h"

#include "../support/device_fixture.h"
#include "queue/cq.h"

enum {
	ENTRIES = 2,
	CQES = 4, /* one less if there are three kinds of CQEs */
	OTHER_WAKES = 1,
	INDEX_MASK = 0xffffff,
	SOLICITED = 1 << 24,
	NO_WORD = 0xc0000000,
};

/* ---- the program -------------------------------------------------------------------------------------------------- */

enum step { TAKE_EVENT, ARM, CONSUME, WRITE_INDEX, SLEEP };

/* A variant of the run. */
struct kind {
	bool in_umem;   /* made by command, with a channel that merges pending events; otherwise made by verbs */
	bool record;    /* the consumer index is written to the record */
	bool arm_first; /* take the event, arm, consume (ibv_get_cq_event(3)); otherwise take, consume, arm (UCX) */
	bool solicited;
	uint32_t first; /* index of the first CQE */
};

static const struct kind *kind;
static struct hca_cq *cq;
static uint64_t events;

static struct {
	uint8_t ring[64 * ENTRIES];
	uint32_t record[2];
} * memory; /* shared by the program and the device */

struct program {
	enum step step;
	uint32_t took; /* events since it last consumed; 0 or 1 */
	uint32_t consumed, sequence;
	uint32_t armed;       /* since the last event; 0 or 1 */
	uint32_t armed_at;    /* value of `consumed` when it first armed since then */
	uint32_t other_wakes; /* events of other CQs that may still come */
};

/* The device side as the test tracks it. */
struct history {
	uint32_t produced, reported; /* number of CQEs; `reported`: number reported by an event */
	uint32_t waiting;            /* number of events */
	uint32_t seen;               /* number that the watcher has seen */
	uint32_t wakes[CQES];        /* whether the CQE raises the event of a solicited-only arming */
};

static struct program program;
static struct history history;

static bool unreported_cqe(uint32_t from)
{
	if (history.reported > from)
		from = history.reported;
	for (; from < history.produced; from++)
		if (!kind->solicited || history.wakes[from - kind->first])
			return true;
	return false;
}

/*
 * Implements event_queue.relay of the CQ. The zero in a new record in a umem counts as an arming, whether or not the
 * program wrote it.
 */
static void raised(struct event_queue *queue, const struct event_source *source)
{
	(void)queue;
	assert_int_equal(source->type, EVENT_COMPLETION);
	if (!kind->in_umem || program.sequence) {
		assert_true(program.armed);
		assert_true(unreported_cqe(program.armed_at));
	}
	history.reported = history.produced;
	history.waiting = kind->in_umem ? 1 : history.waiting + 1;
	events++;
}

static void arm(void)
{
	uint32_t word =
		(program.sequence & 3) << 28 | (kind->solicited ? SOLICITED : 0) | (program.consumed & INDEX_MASK);

	if (!program.armed)
		program.armed_at = program.consumed;
	program.armed = 1;
	memory->record[1] = htobe32(word);
}

static bool program_can_go_on(void)
{
	return program.step != SLEEP || history.waiting || program.other_wakes;
}

static void take_event(void)
{
	if (history.waiting) {
		history.waiting--;
		program.sequence++;
		program.armed = 0;
		program.took = 1;
		return;
	}
	program.step = program.took && !kind->arm_first ? CONSUME : ARM;
	program.took = 0;
}

static bool cqe_is_there(void)
{
	uint8_t op_own = memory->ring[64 * (size_t)(program.consumed % ENTRIES) + 63];

	return op_own >> 4 != MLX5_CQE_INVALID && (op_own & 1) == !!(program.consumed & ENTRIES);
}

static void program_goes_on(void)
{
	switch (program.step) {
	case TAKE_EVENT:
		take_event();
		break;
	case ARM:
		arm();
		program.step = kind->arm_first ? CONSUME : SLEEP;
		break;
	case CONSUME:
		if (!cqe_is_there()) {
			program.step = kind->arm_first ? SLEEP : TAKE_EVENT;
			break;
		}
		program.consumed++;
		program.step = kind->record ? WRITE_INDEX : CONSUME;
		break;
	case WRITE_INDEX:
		memory->record[0] = htobe32(program.consumed & INDEX_MASK);
		program.step = CONSUME;
		break;
	case SLEEP:
		if (!history.waiting)
			program.other_wakes--;
		program.step = kind->arm_first ? TAKE_EVENT : CONSUME;
		break;
	}
}

/* ---- the device --------------------------------------------------------------------------------------------------- */

static bool device_can_write(void)
{
	return history.produced < kind->first + CQES - kind->solicited && history.produced - program.consumed < ENTRIES;
}

static void device_writes(bool solicited, bool event)
{
	history.wakes[history.produced - kind->first] = solicited || event;
	history.produced++;
	assert_true(
		hca_cq_write(cq, &(struct completion){.opcode = MLX5_CQE_REQ, .solicited = solicited, .event = event}));
}

static void device_writes_unsolicited(void)
{
	device_writes(false, false);
}

static void device_writes_solicited(void)
{
	device_writes(true, false);
}

/* The request asks for both CQE and event (CE 3, mlx5-formats 6 point 45). */
static void device_writes_with_event(void)
{
	device_writes(false, true);
}

static void watcher_looks(void)
{
	history.seen = be32toh(memory->record[1]);
	cq_rung(cq, history.seen);
}

/* ---- all interleavings -------------------------------------------------------------------------------------------- */

/* All state that a step depends on. */
struct state {
	struct program program;
	struct history history;
	uint32_t record[2];
	uint8_t ring[64 * ENTRIES], device_ring[64 * ENTRIES];
	struct hca_cq cq;
};

enum { SET_BITS = 17 };

static uint64_t *states; /* hash set of the states reached, 1 << SET_BITS places */
static uint64_t states_reached;

static void save(struct state *state)
{
	memset(state, 0, sizeof(*state));
	state->program = program;
	state->history = history;
	memcpy(state->record, memory->record, sizeof(state->record));
	memcpy(state->ring, memory->ring, sizeof(state->ring));
	memcpy(state->device_ring, cq->buffer, sizeof(state->device_ring));
	memcpy(&state->cq, cq, sizeof(state->cq));
}

static void restore(const struct state *state)
{
	program = state->program;
	history = state->history;
	memcpy(memory->record, state->record, sizeof(state->record));
	memcpy(memory->ring, state->ring, sizeof(state->ring));
	memcpy(cq->buffer, state->device_ring, sizeof(state->device_ring));
	memcpy(cq, &state->cq, sizeof(state->cq));
}

/* Adds @state to the set. Returns false if it was already there. */
static bool enter(const struct state *state)
{
	const uint8_t *bytes = (const uint8_t *)state;
	uint64_t hash = 14695981039346656037u, place;

	for (size_t i = 0; i < sizeof(*state); i++)
		hash = (hash ^ bytes[i]) * 1099511628211u;
	hash |= !hash;
	for (place = hash >> (64 - SET_BITS); states[place]; place = (place + 1) & ((1u << SET_BITS) - 1))
		if (states[place] == hash)
			return false;
	states[place] = hash;
	states_reached++;
	assert_true(states_reached < (1u << SET_BITS) / 2);
	return true;
}

static void expect_nothing_lost(void)
{
	history.reported = 0;
	if (unreported_cqe(program.consumed))
		fail_msg("lost: %s, consumer index %s, %s, %s, first CQE %#x: %u CQEs written, %u consumed",
			 kind->in_umem ? "umem" : "verbs", kind->record ? "written" : "left",
			 kind->arm_first ? "arms first" : "arms last", kind->solicited ? "solicited" : "any",
			 kind->first, history.produced - kind->first, program.consumed - kind->first);
}

static void explore(void)
{
	void (*steps[5])(void);
	struct state here;
	uint32_t count = 0;

	save(&here);
	if (!enter(&here))
		return;
	if (program_can_go_on())
		steps[count++] = program_goes_on;
	if (device_can_write())
		steps[count++] = device_writes_unsolicited;
	if (device_can_write() && kind->solicited) {
		steps[count++] = device_writes_solicited;
		steps[count++] = device_writes_with_event;
	}
	if (be32toh(memory->record[1]) != history.seen)
		steps[count++] = watcher_looks;
	/* No step is possible: the program sleeps forever. */
	if (!count)
		expect_nothing_lost();
	while (count) {
		restore(&here);
		steps[--count]();
		explore();
	}
}

static void explore_kind(struct event_queue *relay)
{
	const struct hca_cq_attr attr = {
		.cqe_count = ENTRIES,
		.cqe_size = 64,
		.dbrec = memory->record,
		.buffer = memory->ring,
		.in_umem = kind->in_umem,
		.ignore_overrun = true,
		.channel = relay,
	};

	memset(states, 0, sizeof(*states) << SET_BITS);
	states_reached = events = 0;
	memset(memory->ring, MLX5_CQE_INVALID << 4, sizeof(memory->ring));
	memory->record[0] = htobe32(kind->record ? kind->first & INDEX_MASK : 0);
	memory->record[1] = htobe32(kind->in_umem ? 0 : NO_WORD);
	program = (struct program){.step = ARM, .consumed = kind->first, .other_wakes = OTHER_WAKES};
	history = (struct history){.produced = kind->first, .seen = NO_WORD};
	assert_int_equal(hca_cq_create(device.context, &attr, &cq), 0);
	cq->producer_index = kind->first;
	explore();
	assert_true(events >= CQES);
	print_message("          %s, consumer index %s, %s, %s, from %#x: %llu states, %llu events\n",
		      kind->in_umem ? "umem" : "verbs", kind->record ? "written" : "left",
		      kind->arm_first ? "arms first" : "arms last", kind->solicited ? "solicited" : "any", kind->first,
		      (unsigned long long)states_reached, (unsigned long long)events);
	assert_int_equal(hca_cq_destroy(cq), 0);
}

TEST(no_event_is_lost_or_empty)
{
	static const uint32_t first[] = {0, 1, 0xffffff};
	struct event_queue relay;

	device_open(&device);
	event_queue_init_relay(&relay, raised);
	memory = aligned_alloc(64, (sizeof(*memory) + 63) / 64 * 64);
	states = malloc(sizeof(*states) << SET_BITS);
	assert_non_null(states);
	for (uint32_t i = 0; i < 16 * sizeof(first) / sizeof(first[0]); i++) {
		const struct kind this_kind = {i & 1, i >> 1 & 1, i >> 2 & 1, i >> 3 & 1, first[i / 16]};

		kind = &this_kind;
		explore_kind(&relay);
	}
	free(states);
	free(memory);
	event_queue_destroy(&relay);
	device_close(&device);
}
