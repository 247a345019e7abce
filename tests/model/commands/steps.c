/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps of a random program on its objects: modify, query, destroy, ring doorbells, subscribe to events, and send
 * invalid commands.
 */
#include "world.h"
#include "test_clock.h"

#include <errno.h>
#include <time.h>

static struct context *some_context(struct world *world)
{
	return &world->contexts[choose_below(&world->choose, CONTEXTS)];
}

/* ---- calls on an object --------------------------------------------------------------------------------------------------- */

static int modify(struct world *world, struct object *object, const struct draft *draft)
{
	void *in = issue_in(world, draft), *out = issue_out(world, draft);

	return object->verbs ? mlx5dv_devx_qp_modify(object->verbs, in, draft->in_bytes, out, draft->out_bytes)
			     : mlx5dv_devx_obj_modify(object->handle, in, draft->in_bytes, out, draft->out_bytes);
}

static int query(struct world *world, struct object *object, const struct draft *draft)
{
	void *in = issue_in(world, draft), *out = issue_out(world, draft);

	return object->verbs ? mlx5dv_devx_qp_query(object->verbs, in, draft->in_bytes, out, draft->out_bytes)
			     : mlx5dv_devx_obj_query(object->handle, in, draft->in_bytes, out, draft->out_bytes);
}

/* Writes the number of the object, or of another one, which the host refuses. */
static void name(struct world *world, struct draft *draft, const struct object *object, int high)
{
	uint32_t number = object->number;

	if (chance(&world->choose, 5)) {
		number = (uint32_t)choose_bits(&world->choose) & 0xffffff;
		draft->refused_by_host |= number != object->number;
	}
	put(draft->in, 8, high, 0, number);
}

/* Expects an event for each subscriber, once per subscription. */
static void must_wait(const struct object *object)
{
	struct context *context = object->context;

	for (uint32_t i = 0; i < object->subscriptions; i++)
		context->cookies[context->waiting++] = object->number;
}

/* ---- queue pairs ---------------------------------------------------------------------------------------------------------- */

static const struct transition {
	uint16_t opcode;
	bool from_any;
	enum state from, to;
} transitions[] = {{0x502, false, RESET, INIT}, {0x50e, false, INIT, INIT}, {0x503, false, INIT, RTR},
		   {0x504, false, RTR, RTS},    {0x505, false, RTS, RTS},   {0x506, false, SQER, RTS},
		   {0x507, true, RESET, ERROR}, {0x50a, true, RESET, RESET}};

/* Returns a random transition, usually a possible one. */
static const struct transition *some_transition(struct world *world, enum state state)
{
	const struct transition *transition = &CHOOSE_OF(&world->choose, transitions);

	for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++)
		if (!transitions[i].from_any && transitions[i].from == state && transitions[i].to != state &&
		    chance(&world->choose, 60))
			return &transitions[i];
	return transition;
}

/* Drafts a change to RTR. The remote QP number is random: commands do not check it. */
static void draft_to_rtr(struct world *world, struct draft *draft, struct queue_pair *qp)
{
	qp->mtu = 1 + (uint32_t)choose_below(&world->choose, 5);
	put(draft->in, 32, 31, 29, qp->mtu);
	put(draft->in, 32, 28, 24, 30);
	if (qp->service != UD) {
		draft_flaw(draft, 32, 31, 29, 6, 7);
		draft_flaw(draft, 32, 31, 29, 0, 0);
	}
	if (qp->service != RC && qp->service != UC)
		return;
	qp->remote = (uint32_t)choose_bits(&world->choose) & 0xffffff;
	put(draft->in, 44, 23, 0, qp->remote);
	put(draft->in, 48, 31, 31, 1);
	put(draft->in, 84, 23, 16, 1);
	draft_flaw(draft, 84, 23, 16, 2, 255);
	put(draft->in, 172, 23, 0, choose_bits(&world->choose));
	if (qp->service == UC)
		return;
	put(draft->in, 168, 23, 21, choose_below(&world->choose, 5));
	draft_flaw(draft, 168, 23, 21, 5, 7);
	put(draft->in, 172, 28, 24, choose_bits(&world->choose));
}

static void draft_to_rts(struct world *world, struct draft *draft, const struct queue_pair *qp)
{
	put(draft->in, 144, 23, 0, choose_bits(&world->choose));
	put(draft->in, 56, 31, 27, choose_bits(&world->choose));
	put(draft->in, 136, 18, 13, choose_bits(&world->choose));
	put(draft->in, 136, 23, 21, choose_below(&world->choose, 5));
	if (qp->service == RC || qp->service == DCI)
		draft_flaw(draft, 136, 23, 21, 5, 7);
}

/* Bits 1 to 3 of the mask: rights for reads, atomics, writes; rights without their mask bit are ignored. */
static void draft_rights(struct world *world, struct draft *draft, const struct transition *transition,
			 struct queue_pair *qp)
{
	uint32_t rights = (uint32_t)choose_below(&world->choose, 8); /* rre, rwe, rae */
	uint32_t mask = (uint32_t)choose_below(&world->choose, 8), named = 0;

	put(draft->in, 168, 15, 13, rights);
	if (transition->opcode != 0x502) {
		put(draft->in, 16, 3, 1, mask);
		named = (mask & 1 ? 4 : 0) | (mask & 4 ? 2 : 0) | (mask & 2 ? 1 : 0);
	} else {
		named = 7;
	}
	if (qp->service == RC || qp->service == UC)
		qp->rights = (qp->rights & ~named) | (rights & named);
}

static void draft_transition(struct world *world, struct draft *draft, const struct transition *transition,
			     struct queue_pair *qp)
{
	if (transition->opcode == 0x502) {
		put(draft->in, 84, 23, 16, choose_below(&world->choose, 2)); /* the port; some omit it */
		draft_flaw(draft, 84, 23, 16, 2, 255);
		draft_flaw(draft, 48, 15, 0, 0x8000, 0xffff); /* P_Key index */
		put(draft->in, 192, 31, 0, choose_bits(&world->choose));
		qp->q_key = (uint32_t)get(draft->in, 192, 31, 0);
	}
	if (!transition->from_any)
		draft_rights(world, draft, transition, qp);
	if (transition->to == RTR)
		draft_to_rtr(world, draft, qp);
	if (transition->opcode == 0x504)
		draft_to_rts(world, draft, qp);
	qp->state = transition->to;
}

/* Resets the state of a QP that has been in RESET, as its program does with its record. */
static void has_changed(struct object *object, const struct queue_pair *to)
{
	if (to->state == ERROR && object->qp.state != ERROR && object->qp.shares)
		must_wait(object);
	object->qp = *to;
	if (to->state != RESET)
		return;
	object->qp.posted = 0;
	if (object->handle) {
		page_put(object, RECORD, 0);
		page_put(object, RECORD + 4, 0);
	}
}

void step_on_qp(struct world *world)
{
	struct context *context = some_context(world);
	struct object *object = object_some(world, context, QP);
	const struct transition *transition = some_transition(world, object->qp.state);
	struct queue_pair to = object->qp;
	struct draft draft = draft_of(world, transition->opcode, transition->from_any ? 16 : 272, 16);

	draft_transition(world, &draft, transition, &to);
	if (!transition->from_any && transition->from != object->qp.state)
		draft.outcomes = OUTCOME(0x10);
	name(world, &draft, object, 23);
	draft_spoil(world, context, &draft);
	if (expect_outcome(world, &draft, modify(world, object, &draft)))
		has_changed(object, &to);
}

/* A field of a context, in the CREATE and in the QUERY command of an object. */
struct field {
	uint16_t byte;
	uint8_t high, low;
};

static void check_fields(struct world *world, const struct object *object, const struct field *fields, size_t count)
{
	if (!object->handle)
		return;
	for (size_t i = 0; i < count; i++) {
		const struct field *field = &fields[i];
		uint64_t now = get(world->out, field->byte, field->high, field->low);
		uint64_t then = get(object->created, field->byte, field->high, field->low);

		if (now != then)
			DIFFERENCE(world, "object %x of kind %d: byte %u, bits %u to %u are %lx, created with %lx",
				   object->number, object->kind, field->byte, field->high, field->low, now, then);
	}
}

#define CHECK_FIELDS(world, object, fields) check_fields(world, object, fields, sizeof(fields) / sizeof((fields)[0]))

static void check_qp(struct world *world, const struct object *object)
{
	static const struct field fields[] = {{24, 23, 16}, {24, 12, 11}, {28, 23, 0},  {32, 14, 11},
					      {36, 23, 0},  {40, 23, 0},  {148, 23, 0}, {168, 11, 6},
					      {184, 31, 0}, {188, 31, 0}, {252, 31, 0}};
	const struct queue_pair *qp = &object->qp;
	bool connected = qp->service == RC || qp->service == UC;

	CHECK_FIELDS(world, object, fields);
	if (get(world->out, 24, 31, 28) != qp->state || get(world->out, 24, 23, 16) != qp->service)
		DIFFERENCE(world, "QP %x: state %lu of service %lu, not %d of %d", object->number,
			   get(world->out, 24, 31, 28), get(world->out, 24, 23, 16), qp->state, qp->service);
	if (qp->state == RESET || qp->state == ERROR)
		return;
	if (connected && get(world->out, 168, 15, 13) != qp->rights)
		DIFFERENCE(world, "QP %x: rights %lx, not %x", object->number, get(world->out, 168, 15, 13),
			   qp->rights);
	if (qp->service == UD && get(world->out, 192, 31, 0) != qp->q_key)
		DIFFERENCE(world, "QP %x: Q_Key %lx, not %x", object->number, get(world->out, 192, 31, 0), qp->q_key);
	if (connected && qp->state >= RTR &&
	    (get(world->out, 44, 23, 0) != qp->remote || get(world->out, 32, 31, 29) != qp->mtu))
		DIFFERENCE(world, "QP %x: peer %lx, MTU %lu, not %x, %u", object->number, get(world->out, 44, 23, 0),
			   get(world->out, 32, 31, 29), qp->remote, qp->mtu);
}

static void check_cq(struct world *world, const struct object *object)
{
	static const struct field fields[] = {{16, 23, 20}, {16, 17, 17}, {20, 31, 0}, {24, 11, 6}, {28, 28, 24},
					      {28, 23, 0},  {36, 7, 0},   {72, 31, 0}, {76, 31, 0}};
	uint64_t read = object->cq.modulo ? object->cq.read % object->cq.count : object->cq.read;

	CHECK_FIELDS(world, object, fields);
	if (get(world->out, 60, 23, 0) != object->cq.written || get(world->out, 56, 23, 0) != read)
		DIFFERENCE(world, "CQ %x: %lu written, %lu read, not %u, %lu", object->number,
			   get(world->out, 60, 23, 0), get(world->out, 56, 23, 0), object->cq.written, read);
}

static void check_rmp(struct world *world, const struct object *object)
{
	static const struct field fields[] = {{32, 23, 20}, {36, 31, 31}, {80, 31, 28},  {88, 23, 0},
					      {96, 31, 0},  {100, 31, 0}, {112, 19, 16}, {112, 4, 0},
					      {120, 31, 0}, {124, 31, 0}, {128, 31, 0},  {132, 31, 0}};

	CHECK_FIELDS(world, object, fields);
}

static void check_dct(struct world *world, const struct object *object)
{
	static const struct field fields[] = {{24, 23, 0}, {28, 19, 17}, {32, 12, 8}, {36, 23, 0},  {40, 23, 0},
					      {48, 31, 0}, {52, 31, 0},  {56, 26, 0}, {60, 23, 16}, {60, 7, 0}};

	CHECK_FIELDS(world, object, fields);
}

static void check_mkey(struct world *world, const struct object *object)
{
	static const struct field fields[] = {{16, 30, 30}, {16, 15, 8}, {20, 31, 0}, {28, 30, 30},
					      {28, 24, 0},  {32, 31, 0}, {36, 31, 0}, {40, 31, 0},
					      {44, 31, 0},  {48, 31, 0}, {68, 31, 0}, {72, 4, 0}};

	CHECK_FIELDS(world, object, fields);
}

static void check_dek(struct world *world, const struct object *object)
{
	uint64_t opaque = get(world->out, 64, 31, 0) << 32 | get(world->out, 68, 31, 0);

	if (get(world->out, 24, 31, 24) || get(world->out, 24, 11, 8) != object->dek.wide ||
	    get(world->out, 24, 7, 7) != object->dek.has_keytag || get(world->out, 24, 3, 0) != 3 ||
	    get(world->out, 28, 23, 0) != object->uses[0]->number || opaque != object->dek.opaque)
		DIFFERENCE(world, "DEK %x is not as it was made", object->number);
	/* Its key belongs to the device. */
	for (size_t at = 80; at < 272; at += 4)
		if (get(world->out, at, 31, 0))
			DIFFERENCE(world, "DEK %x tells of its key", object->number);
}

void step_query(struct world *world)
{
	static const struct {
		enum kind kind;
		uint16_t opcode;
		void (*check)(struct world *world, const struct object *object);
		uint16_t bytes;
	} queries[] = {{QP, 0x50b, check_qp, 272},   {CQ, 0x402, check_cq, 272},   {DEK, 0xa02, check_dek, 272},
		       {RMP, 0x90f, check_rmp, 272}, {DCT, 0x713, check_dct, 128}, {MKEY, 0x201, check_mkey, 304}};
	struct context *context = some_context(world);
	uint64_t which = choose_below(&world->choose, sizeof(queries) / sizeof(queries[0]));
	struct object *object = object_some(world, context, queries[which].kind);
	struct draft draft = draft_of(world, queries[which].opcode, 16, queries[which].bytes);

	if (!object || (!object->handle && !object->verbs))
		return;
	if (queries[which].kind == DEK)
		put(draft.in, 4, 15, 0, 0xc);
	name(world, &draft, object, queries[which].kind == DEK ? 31 : 23);
	draft_spoil(world, context, &draft);
	if (expect_outcome(world, &draft, query(world, object, &draft)) && !draft.unwritable &&
	    draft.out_bytes >= draft.says)
		queries[which].check(world, object);
}

/* ---- shared receives ------------------------------------------------------------------------------------------------------ */

static struct object *some_rmp(struct world *world, struct context *context)
{
	struct object *object = object_some(world, context, RMP);

	return object && object->handle ? object : NULL;
}

void step_limit(struct world *world)
{
	struct context *context = some_context(world);
	struct object *object = some_rmp(world, context);
	struct draft draft = draft_of(world, 0x90d, 272, 16);
	uint64_t limit;

	if (!object)
		return;
	if (chance(&world->choose, 30)) {
		/* Posts receives, which are never used here. */
		object->rmp.posted +=
			(uint32_t)choose_below(&world->choose, object->rmp.count - object->rmp.posted + 1);
		page_put(object, RECORD, object->rmp.posted);
	}
	limit = choose_below(&world->choose, object->rmp.count + 1);
	name(world, &draft, object, 23);
	put(draft.in, 8, 31, 28, 1);
	put(draft.in, 20, 0, 0, 1);
	put(draft.in, 32, 23, 20, 1);
	put(draft.in, 84, 15, 0, limit);
	draft_flaw(&draft, 8, 31, 28, 2, 15);
	draft.flaws[0].status = 9;
	draft_flaw(&draft, 20, 31, 1, 1, 0x7fffffff);
	draft_flaw(&draft, 32, 23, 20, 2, 15);
	draft_flaw(&draft, 84, 15, 0, object->rmp.count + 1, 0xffff);
	draft_spoil(world, context, &draft);
	if (expect_outcome(world, &draft, modify(world, object, &draft)) && object->rmp.posted < limit)
		must_wait(object);
}

/* ---- traffic -------------------------------------------------------------------------------------------------------------- */

/* Returns the offset of the next CQE in the page of @cq. */
static size_t next_cqe(const struct object *cq)
{
	uint32_t slot = cq->cq.collapsed ? 0 : cq->cq.written % cq->cq.count;

	return (size_t)(slot + 1) * cq->cq.size - 64;
}

/* Expects the due CQE at its place and nowhere else; the program has cleared the entry of the lap before. */
static void expect_cqe(struct world *world, struct object *cq, const struct object *qp, uint32_t index)
{
	size_t at = (size_t)cq->page * PAGE + next_cqe(cq);
	const struct mlx5_cqe64 *cqe = (const struct mlx5_cqe64 *)(cq->umem[0]->memory + at);
	double deadline = seconds_now() + 20;
	uint8_t owner = !!(cq->cq.written & cq->cq.count);

	while (__atomic_load_n(&cqe->op_own, __ATOMIC_ACQUIRE) != owner)
		if (seconds_now() > deadline)
			DIFFERENCE(world, "QP %x: no CQE for request %u at %zx of CQ %x, op_own %x", qp->number, index,
				   at % PAGE, cq->number, cqe->op_own);
	if ((be32toh(cqe->sop_drop_qpn) & 0xffffff) != qp->number || be16toh(cqe->wqe_counter) != (uint16_t)index)
		DIFFERENCE(world, "CQ %x: a CQE of QP %x, request %u, not %x, %u", cq->number,
			   be32toh(cqe->sop_drop_qpn) & 0xffffff, be16toh(cqe->wqe_counter), qp->number, index);
	memcpy(cq->umem[0]->expected + at, cqe, sizeof(*cqe));
	cq->cq.written++;
}

static void read_cqes(struct object *cq, uint32_t count)
{
	cq->cq.read += count;
	page_put(cq, RECORD, cq->cq.modulo ? cq->cq.read % cq->cq.count : cq->cq.read & 0xffffff);
}

/* Returns a QP with CQEs that the program reads itself. */
static struct object *some_sender(struct world *world, struct context *context)
{
	uint64_t first = choose_below(&world->choose, OBJECTS);

	for (uint64_t i = 0; i < OBJECTS; i++) {
		struct object *object = context->objects[(first + i) % OBJECTS];

		if (object && object->kind == QP && object->qp.can_post && object->qp.state == RTS)
			return object;
	}
	return NULL;
}

/* Posts a no-op request to a QP that may send; its CQE has room. */
void step_post(struct world *world)
{
	struct context *context = some_context(world);
	struct object *qp = some_sender(world, context), *cq;
	uint32_t waiting, slot, uar = 0;
	size_t at;

	/* They share a page; its registers ring for all. */
	while (uar < UARS && !context->uars[uar])
		uar++;
	if (!qp || uar == UARS)
		return;
	cq = qp->uses[1];
	waiting = cq->cq.written - cq->cq.read;
	if (!cq->cq.ignores_overrun && waiting == cq->cq.count)
		return;
	slot = qp->qp.posted % qp->qp.blocks;
	at = qp->qp.send_at + (size_t)slot * 64;
	page_put(qp, at, (qp->qp.posted & 0xffff) << 8);
	page_put(qp, at + 4, qp->number << 8 | 1);
	page_put(qp, at + 8, 8);
	page_put(qp, at + 12, 0);
	page_put(cq, next_cqe(cq) + 60, UINT32_MAX);
	page_put(qp, RECORD + 4, (qp->qp.posted + 1) & 0xffff);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)context->uars[uar]->reg_addr = 1;
	expect_cqe(world, cq, qp, qp->qp.posted++);
	/* A program that counts modulo the ring never leaves it full. */
	waiting = cq->cq.written - cq->cq.read;
	if (waiting == cq->cq.count || chance(&world->choose, 50))
		read_cqes(cq, waiting == 1 ? 1 : 1 + (uint32_t)choose_below(&world->choose, waiting - 1));
}
