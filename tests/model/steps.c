/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps that post requests, see steps.h. */
#include "steps.h"

#include <errno.h>
#include <string.h>

#include "draw.h"
#include "link.h"

enum { MOST_REQUESTS = 6, MOST_RECEIVES = 4, LONGEST_SILENCE = 20 };

static int draw_qp(struct world *world, bool with_mkeys)
{
	int qp;

	do
		qp = (int)choose_below(&world->choose, QPS);
	while (with_mkeys && world->model.qp[qp].type != IBV_QPT_RC);
	return qp;
}

/* ---- receives -------------------------------------------------------------------------------------------------- */

/* Draws two keys and returns the larger: short receives end connections. */
static int draw_large(struct world *world, int domain, bool careful)
{
	int one = draw_key(world, domain, LOCAL_WRITE, careful), other = draw_key(world, domain, LOCAL_WRITE, careful);
	const struct key *key = world->model.keys.key;

	return one < 0 || key[other < 0 ? one : other].length > key[one].length ? other : one;
}

/* Draws a receive longer than 32 bits can count: zeros of any length. */
static bool draw_endless(struct world *world, int domain, struct receive *receive)
{
	static const uint32_t lengths[MAX_SGE] = {0, 0x7fffffff, 0x7fffffff, 2};
	const struct key *null = NULL;

	for (int i = 0; i < REGIONS; i++)
		if (world->model.keys.key[i].kind == MODEL_NULL && world->model.keys.key[i].domain == domain)
			null = &world->model.keys.key[i];
	if (!null || !chance(&world->choose, 20))
		return false;
	receive->count = MAX_SGE;
	for (uint32_t i = 0; i < MAX_SGE; i++)
		receive->span[i] = (struct span){null->number, choose_bits(&world->choose) >> 8, lengths[i]};
	return true;
}

/* Draws one large buffer, or a list of anything. */
static void draw_receive(struct world *world, int qp, struct receive *receive)
{
	int domain = world->model.qp[qp].domain;
	bool careful = chance(&world->choose, 93);
	int slot = draw_large(world, domain, careful);
	const struct key *key = &world->model.keys.key[slot < 0 ? 0 : slot];
	uint64_t most;

	*receive = (struct receive){.id = world->next_id++};
	if (draw_endless(world, domain, receive))
		return;
	if (slot < 0 || chance(&world->choose, 20)) {
		receive->count = draw_spans(world, receive->span, domain, LOCAL_WRITE, careful);
		if (receive->count > MAX_SGE)
			receive->count = MAX_SGE;
		return;
	}
	most = key->length < BLOCK_BYTES ? key->length : BLOCK_BYTES;
	receive->count = 1;
	receive->span[0] = (struct span){key->number, key->start + choose_below(&world->choose, key->length - most + 1),
					 (uint32_t)most};
}

static void post_receives(struct world *world, int qp, uint32_t count)
{
	struct receive receive[MOST_RECEIVES];
	int error;

	if (queued(&world->model.qp[qp].receives) + count > OUTSTANDING / 2)
		return;
	say(world, "\n  post %u receives on qp %d:", count, qp);
	for (uint32_t i = 0; i < count; i++) {
		draw_receive(world, qp, &receive[i]);
		say(world, "\n    wr %lu", receive[i].id);
		for (uint32_t s = 0; s < receive[i].count; s++)
			say(world, " %#x:%#lx+%u", receive[i].span[s].key, receive[i].span[s].address,
			    receive[i].span[s].length);
	}
	error = world_post_receive(world, qp, receive, count);
	if (error)
		world_fail(world, "ibv_post_recv: %s", strerror(error));
	for (uint32_t i = 0; i < count; i++)
		model_post_receive(&world->model, qp, &receive[i]);
}

static void step_receives(struct world *world)
{
	post_receives(world, draw_qp(world, false), 1 + (uint32_t)choose_below(&world->choose, MOST_RECEIVES));
}

/* ---- requests -------------------------------------------------------------------------------------------------- */

static bool is_local(const struct request *request)
{
	return request->opcode == OP_CONFIGURE || request->opcode == IBV_WR_BIND_MW ||
	       request->opcode == IBV_WR_LOCAL_INV;
}

static bool is_answered(const struct request *request)
{
	return request->opcode == IBV_WR_RDMA_READ || request->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       request->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* Draws an object, usually of the QP's domain. */
static int draw_own(struct world *world, int qp, int first, int count)
{
	int slot = draw_existing(world, first, count);

	for (int tries = 0; tries < 5 && slot >= 0; tries++) {
		if (world->model.keys.key[slot].domain == world->model.qp[qp].domain)
			return slot;
		slot = draw_existing(world, first, count);
	}
	return slot;
}

static void draw_local_invalidate(struct world *world, int qp, struct request *request)
{
	int slot = draw_own(world, qp, chance(&world->choose, 95) ? FIRST_LAYOUT : 0, LAYOUTS + WINDOWS);

	request->opcode = IBV_WR_LOCAL_INV;
	request->invalidate = slot < 0 ? 0x77777700 : world->model.keys.key[slot].number;
	if (chance(&world->choose, 5))
		request->invalidate ^= 1u << choose_below(&world->choose, 9);
}

/* Draws a request on a key; returns false if there is no suitable object. */
static bool draw_local(struct world *world, int qp, struct request *request)
{
	enum ibv_qp_type type = world->model.qp[qp].type;
	unsigned int style = (unsigned int)choose_below(&world->choose, 100);
	int slot;

	if (type == IBV_QPT_UD)
		return false;
	if (type == IBV_QPT_RC && style < 60) {
		slot = draw_own(world, qp, FIRST_LAYOUT, LAYOUTS);
		if (slot < 0)
			return false;
		request->opcode = OP_CONFIGURE;
		draw_configure(world, qp, slot, &request->configure);
		return true;
	}
	if (style < 85) {
		slot = draw_own(world, qp, FIRST_WINDOW, WINDOWS);
		if (slot < 0)
			return false;
		request->opcode = IBV_WR_BIND_MW;
		draw_bind(world, qp, slot, &request->bind);
		return true;
	}
	draw_local_invalidate(world, qp, request);
	return true;
}

/* Returns true if requests are in flight together: on a link that takes time, or without an answer of the peer. */
static bool in_flight_together(const struct world *world, int qp)
{
	enum ibv_qp_state peer = world->model.qp[world->model.qp[qp].peer].state;

	return link_pipelines() || (peer != IBV_QPS_RTS && peer != IBV_QPS_SQE);
}

/*
 * Returns true if @request may follow the list. A window is bound once: the API takes its number from the window, which
 * the program sets after a bind. Where requests are in flight together, keys are changed first, and a request that needs
 * the answer of a READ or an atomic waits for it (IBV_SEND_FENCE).
 */
static bool fits(const struct world *world, int qp, const struct request *list, uint32_t count, struct request *request,
		 enum ibv_mw_type type, bool builder)
{
	bool together = in_flight_together(world, qp);

	/* When resent, it may find its own source invalidated. */
	if (request->opcode == IBV_WR_SEND_WITH_INV && link_pipelines() && world->model.qp[qp].peer == qp)
		return false;
	if (request->opcode == IBV_WR_BIND_MW && type == IBV_MW_TYPE_1 && builder)
		return false;
	/* For a refused message of several packets, the number of packets that travelled together is unknown. */
	if (link_in_real_time() && spans_length(request->span, request->count) > link_packet_bytes())
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (list[i].opcode == IBV_WR_BIND_MW && request->opcode == IBV_WR_BIND_MW)
			return false;
		/* It may end its responder: messages to it wait forever, and local requests are executed meanwhile. */
		if (list[i].opcode == IBV_WR_SEND_WITH_INV && is_local(request))
			return false;
		if (!together)
			continue;
		if (request->opcode == IBV_WR_SEND_WITH_INV || (is_local(request) && !is_local(&list[i])))
			return false;
		if (is_answered(&list[i]))
			request->fence = true;
	}
	return true;
}

/*
 * Returns true for a request that would fail locally: with others in flight, some of them may have been executed by the
 * peer and some not.
 */
static bool would_fail_at_home(const struct world *world, int qp, const struct request *request)
{
	const struct model_qp *own = &world->model.qp[qp];
	struct accessor accessor = {own->domain, qp};

	for (uint32_t i = 0; i < request->count; i++)
		if (!keys_allow(&world->model.keys, request->span[i].key, request->span[i].address,
				request->span[i].length, LOCAL_WRITE, accessor))
			return true;
	return false;
}

static uint32_t draw_list(struct world *world, int qp, struct request *list, enum way *way)
{
	uint32_t wanted = 1 + (uint32_t)choose_below(&world->choose, chance(&world->choose, 60) ? 1 : MOST_REQUESTS);
	uint32_t count = 0;

	/* A QP that is its own peer flushes requests that succeeded, if their acknowledgements are still in flight. */
	if (link_pipelines() && world->model.qp[qp].peer == qp)
		wanted = 1;
	while (count < wanted) {
		struct request *request = &list[count];
		enum ibv_mw_type type = IBV_MW_TYPE_2;

		*request = (struct request){.id = world->next_id++};
		if (!chance(&world->choose, 25) || !draw_local(world, qp, request))
			draw_transfer(world, qp, request);
		if (request->opcode == IBV_WR_BIND_MW)
			type = world->window[request->bind.slot - FIRST_WINDOW]->type;
		if (request->opcode == OP_CONFIGURE && *way == BY_POST_SEND) {
			if (count)
				break;
			*way = BY_BUILDER;
		}
		request->signalled = chance(&world->choose, 50);
		request->fence = chance(&world->choose, 10);
		request->solicited = !is_local(request) && chance(&world->choose, 10);
		if (!fits(world, qp, list, count, request, type, *way == BY_BUILDER))
			break;
		count++;
		if (link_pipelines() && is_answered(request) && would_fail_at_home(world, qp, request))
			break;
	}
	return count;
}

static bool takes_receive(const struct request *request)
{
	return request->opcode == IBV_WR_SEND || request->opcode == IBV_WR_SEND_WITH_IMM ||
	       request->opcode == IBV_WR_SEND_WITH_INV || request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/*
 * Chooses the signalled requests. Send queue entries are freed by the completion of a later request: one is never long
 * without. If the list may stop in the middle for lack of a receive, all of them are signalled: a timer of the device
 * continues the list, and only completions show which were executed. Where requests are in flight together, the last
 * request before a pause is signalled, too.
 */
static void choose_signals(struct world *world, int qp, struct request *list, uint32_t count)
{
	struct real_qp *real = &world->qp[qp];
	uint32_t receives = queued(&world->model.qp[world->model.qp[qp].peer].receives), taken = 0;

	for (uint32_t i = 0; i < count; i++)
		taken += takes_receive(&list[i]);
	for (uint32_t i = 0; i < count; i++)
		list[i].signalled |= taken > receives ||
				     (link_pipelines() && i + 1 < count && request_error(world, qp, &list[i + 1]));
	if (count && (link_pipelines() || real->unsignalled > LONGEST_SILENCE || chance(&world->choose, 80)))
		list[count - 1].signalled = true;
	for (uint32_t i = 0; i < count; i++)
		real->unsignalled = list[i].signalled || world->model.qp[qp].sig_all ? 0 : real->unsignalled + 1;
}

/* Updates the window, as a program must: mw->rkey is the number of the last executed bind. */
static void update_window(struct world *world, const struct request *request, uint32_t before)
{
	struct ibv_mw *mw = world->window[request->bind.slot - FIRST_WINDOW];
	const struct key *key = &world->model.keys.key[request->bind.slot];

	mw->rkey = (key->number & 0xff) == (request->bind.new_number & 0xff) ? key->number : before;
}

/* Handles a peer without a receive while the sender retries: posts one, or fails the QP. */
static void resolve_stall(struct world *world, int qp)
{
	struct model_qp *own = &world->model.qp[qp];

	for (int tries = 0; own->stalled && tries < 20; tries++) {
		world_check_completions(world);
		if (!link_pipelines())
			world_check_memory(world);
		/* Messages in flight may have arrived in part: memory is known only when all have arrived. */
		if (chance(&world->choose, 20) && !link_pipelines()) {
			say(world, "\n ");
			world_fail_qp(world, qp);
		} else {
			post_receives(world, own->peer, 1);
		}
	}
	if (own->stalled) {
		say(world, "\n ");
		world_fail_qp(world, qp);
	}
}

static void post(struct world *world, int qp, struct request *list, uint32_t count, enum way way)
{
	uint32_t accepted, due = count;
	int error, expected = 0;

	say(world, "\n  post on qp %d by %s:", qp, way == BY_BUILDER ? "ibv_wr_*" : "ibv_post_send");
	for (uint32_t i = 0; i < count; i++) {
		say_request(world, &list[i]);
		if (expected)
			continue;
		expected = request_error(world, qp, &list[i]);
		if (expected)
			due = way == BY_BUILDER ? 0 : i;
	}
	error = world_post_send(world, qp, list, count, way, &accepted);
	if (error != expected || accepted != due)
		world_fail(world, "returns %d after %u requests, not %d after %u", error, accepted, expected, due);
	if (due)
		world->model.qp[qp].first_posted = list[0].id;
	for (uint32_t i = 0; i < due; i++)
		model_post_send(&world->model, qp, &list[i]);
	resolve_stall(world, qp);
	for (uint32_t i = 0; i < due; i++)
		if (list[i].opcode == IBV_WR_BIND_MW)
			update_window(world, &list[i], world->window[list[i].bind.slot - FIRST_WINDOW]->rkey);
}

static void step_requests(struct world *world)
{
	enum way way = chance(&world->choose, 50) ? BY_POST_SEND : BY_BUILDER;
	struct request list[MOST_REQUESTS];
	int qp = draw_qp(world, false), peer = world->model.qp[qp].peer;
	uint32_t count;

	if (chance(&world->choose, 85) && queued(&world->model.qp[peer].receives) < MOST_REQUESTS)
		post_receives(world, peer, MOST_RECEIVES);
	count = draw_list(world, qp, list, &way);
	choose_signals(world, qp, list, count);
	if (count)
		post(world, qp, list, count, way);
}

/* Configures a key separately: otherwise, few keys would be usable. */
static void step_configure(struct world *world)
{
	int qp = draw_qp(world, true), slot = draw_own(world, qp, FIRST_LAYOUT, LAYOUTS);
	struct request request = {.id = world->next_id++, .opcode = OP_CONFIGURE};

	if (slot < 0)
		return;
	draw_configure(world, qp, slot, &request.configure);
	choose_signals(world, qp, &request, 1);
	post(world, qp, &request, 1, BY_BUILDER);
}

/* ibv_bind_mw(3): refusals of libibverbs and libmlx5 (mlx5-formats 4.12). */
static int bind_error(const struct world *world, const struct bind *bind)
{
	const struct key *region = &world->model.keys.key[bind->region < 0 ? 0 : bind->region];

	if (world->window[bind->slot - FIRST_WINDOW]->type != IBV_MW_TYPE_1)
		return EINVAL;
	if (bind->region >= 0 && region->domain != world->model.keys.key[bind->slot].domain)
		return EPERM;
	if (world->model.connectx && bind->access & IBV_ACCESS_ZERO_BASED)
		return EINVAL;
	if (bind->region >= 0 && region->kind == MODEL_NULL)
		return ENOTSUP;
	if (bind->region >= 0 && region->zero_based)
		return EINVAL;
	return bind->length > UINT64_C(1) << 31 ? EOPNOTSUPP : 0;
}

static void step_bind(struct world *world)
{
	int qp = draw_qp(world, false), slot = draw_own(world, qp, FIRST_WINDOW, WINDOWS), error, expected;
	struct request request = {.id = world->next_id++, .opcode = IBV_WR_BIND_MW};
	struct ibv_mw *mw;
	uint32_t before;

	if (slot < 0 || world->model.qp[qp].type == IBV_QPT_UD)
		return;
	draw_bind(world, qp, slot, &request.bind);
	choose_signals(world, qp, &request, 1);
	mw = world->window[slot - FIRST_WINDOW];
	if (mw->type == IBV_MW_TYPE_2 && chance(&world->choose, 95)) {
		post(world, qp, &request, 1, chance(&world->choose, 50) ? BY_POST_SEND : BY_BUILDER);
		return;
	}
	before = mw->rkey;
	say(world, " ibv_bind_mw on qp %d:", qp);
	say_request(world, &request);
	expected = bind_error(world, &request.bind);
	error = world_bind(world, qp, &request);
	if (error != expected)
		world_fail(world, "ibv_bind_mw returns %d, not %d", error, expected);
	/* ibv_bind_mw(3): "the R_key of the memory window after the bind is returned" */
	if (mw->rkey != (error ? before : request.bind.new_number))
		world_fail(world, "mw->rkey is %#x, was %#x", mw->rkey, before);
	if (error)
		return;
	model_post_send(&world->model, qp, &request);
	update_window(world, &request, before);
}

/* ---- other steps ----------------------------------------------------------------------------------------------- */

static void step_scribble(struct world *world)
{
	int block = (int)choose_below(&world->choose, BLOCKS);
	uint64_t length = 8 * (1 + choose_below(&world->choose, BLOCK_BYTES / 8));
	uint64_t offset = choose_below(&world->choose, BLOCK_BYTES - length + 1) / 8 * 8;

	say(world, " new contents for block %d [%lu, +%lu)", block, offset, length);
	memory_scribble(&world->model.memory, &world->choose, block, offset, length);
}

static void step_fail(struct world *world)
{
	world_fail_qp(world, draw_qp(world, false));
}

/* Restores QPs. They stay in error for a while, so that requests posted to them are flushed. */
static void recover(struct world *world)
{
	for (int i = 0; i < QPS; i++) {
		enum ibv_qp_state state = world->model.qp[i].state;

		if (state == IBV_QPS_RTS || !chance(&world->choose, 40))
			continue;
		if (state == IBV_QPS_SQE && chance(&world->choose, 50))
			world_resume_qp(world, i);
		else
			world_connect(world, i);
	}
}

void step(struct world *world)
{
	static const struct {
		void (*function)(struct world *world);
		unsigned int weight;
	} steps[] = {
		{step_requests, 45}, {step_receives, 8},   {step_configure, 14}, {step_bind, 10},
		{step_register, 9},  {step_deregister, 4}, {step_reregister, 2}, {step_mkey, 4},
		{step_window, 4},    {step_scribble, 4},   {step_fail, 1},
	};
	unsigned int total = 0, drawn;

	world->model.pipelined = world->model.loses = link_pipelines();
	memset(world->model.memory.fresh, 0, sizeof(world->model.memory.fresh));
	recover(world);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		total += steps[i].weight;
	drawn = (unsigned int)choose_below(&world->choose, total);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (drawn < steps[i].weight) {
			steps[i].function(world);
			break;
		}
		drawn -= steps[i].weight;
	}
	world_check_completions(world);
	world_check_memory(world);
}
