/* SPDX-License-Identifier: BSD-2-Clause */
/* Returns the offset in its umem of the page of @object. */
#include "world.h"

#include <errno.h>

/* Returns the place of a CQ in the CQE page: as many CQs of either size as fit. */
static uint32_t at_of(const struct object *object)
{
	return object->page * PAGE;
}

/* Draws bits that a kernel sets, whatever the program wrote. */
static void valid_or_not(struct world *world, struct draft *draft, size_t byte, int bit)
{
	put(draft->in, byte, bit, bit, choose_bits(&world->choose));
}

/* Writes an offset in two parts, the second in units of 64 bytes. */
static void split_offset(struct world *world, struct draft *draft, size_t offset_byte, size_t units_byte)
{
	uint64_t offset = get(draft->in, offset_byte + 4, 31, 0), units = choose_below(&world->choose, 64);

	if (offset < units * 64)
		return;
	put(draft->in, offset_byte + 4, 31, 0, offset - units * 64);
	put(draft->in, units_byte, 11, 6, units);
}

/* ---- objects without memory ---------------------------------------------------------------------------------------------- */

static bool draft_pd(struct world *world, struct draft *draft)
{
	*draft = draft_of(world, 0x800, 16, 16);
	return true;
}

static bool draft_td(struct world *world, struct draft *draft)
{
	*draft = draft_of(world, 0x816, 16, 16);
	return true;
}

static bool draft_psv(struct world *world, struct context *context, struct draft *draft)
{
	struct object *pd = object_some(world, context, PD);

	*draft = draft_of(world, 0x600, 16, 32);
	put(draft->in, 8, 31, 28, 1);
	draft_number(draft, 8, 23, 0, PD, pd);
	draft_flaw(draft, 8, 31, 28, 2, 15);
	draft->flaws[draft->flaw_count - 1].status = BY_HOST;
	draft_flaw(draft, 8, 31, 28, 0, 0);
	draft->flaws[draft->flaw_count - 1].status = BY_HOST;
	draft->made.uses[0] = pd;
	return true;
}

static bool draft_dek(struct world *world, struct context *context, struct draft *draft)
{
	struct object *pd = object_some(world, context, PD);
	bool wide = chance(&world->choose, 50), keytag = chance(&world->choose, 50);

	*draft = draft_of(world, 0xa00, 80 + (wide ? 64 : 32) + (keytag ? 8 : 0), 16);
	put(draft->in, 4, 15, 0, 0xc);
	put(draft->in, 24, 11, 8, wide);
	put(draft->in, 24, 7, 7, keytag);
	put(draft->in, 24, 3, 0, 3);
	draft->made.dek.opaque = choose_bits(&world->choose);
	put(draft->in, 64, 31, 0, draft->made.dek.opaque >> 32);
	put(draft->in, 68, 31, 0, draft->made.dek.opaque);
	for (size_t at = 80; at < 80 + 64; at += 4)
		put(draft->in, at, 31, 0, choose_bits(&world->choose));
	draft_number(draft, 28, 23, 0, PD, pd);
	draft_flaw(draft, 4, 15, 0, 0x20, 0xffff);
	draft_flaw(draft, 24, 11, 8, 2, 15);
	draft_flaw(draft, 24, 3, 0, 4, 15);
	draft_flaw(draft, 12, 28, 24, 1, 31);
	draft->made.uses[0] = pd;
	draft->made.dek.wide = wide;
	draft->made.dek.has_keytag = keytag;
	return true;
}

/* ---- keys ---------------------------------------------------------------------------------------------------------------- */

static void draft_umem_key(struct world *world, struct context *context, struct draft *draft)
{
	uint64_t offset = choose_below(&world->choose, 4 * PAGE), length = 1 + choose_below(&world->choose, 4 * PAGE);

	put(draft->in, 16, 9, 8, 1);
	put(draft->in, 36, 31, 0, offset % PAGE); /* start: the umem begins with a page */
	put(draft->in, 44, 31, 0, length);
	draft->made.umem[0] = &context->umems[0];
	draft_memory(draft, 100, 104, offset, length);
	draft_flaw(draft, 16, 15, 15, 1, 1);
	draft_flaw(draft, 28, 30, 30, 1, 1);
}

static void draft_list_key(struct world *world, struct draft *draft)
{
	uint64_t octowords = 4 * choose_below(&world->choose, 9);
	bool fixed = chance(&world->choose, 50);

	put(draft->in, 16, 9, 8, fixed ? 3 : 2);
	put(draft->in, 16, 15, 15, 1);
	put(draft->in, 16, 30, 30, choose_bits(&world->choose));
	put(draft->in, 44, 31, 0, 4096);
	put(draft->in, 68, 31, 0, octowords);
	put(draft->in, 72, 4, 0, fixed ? 12 : 0);
	draft_flaw(draft, 68, 31, 0, (1 << 15) + 1, UINT32_MAX);
	draft_flaw(draft, 96, 31, 0, octowords + 1, UINT32_MAX);
	if (chance(&world->choose, 50)) {
		put(draft->in, 28, 30, 30, 1);
		put(draft->in, 48, 31, 0, 4);
		draft_flaw(draft, 48, 31, 0, 9, UINT32_MAX);
	}
	if (fixed)
		draft_flaw(draft, 72, 4, 0, 0, 0);
}

static bool draft_mkey(struct world *world, struct context *context, struct draft *draft)
{
	struct object *pd = object_some(world, context, PD);

	*draft = draft_of(world, 0x200, 272, 16);
	if (chance(&world->choose, 40) && context->umems[0].handle)
		draft_umem_key(world, context, draft);
	else
		draft_list_key(world, draft);
	put(draft->in, 16, 14, 10, choose_bits(&world->choose));
	put(draft->in, 20, 31, 8, 0xffffff);
	put(draft->in, 20, 7, 0, choose_bits(&world->choose));
	draft_number(draft, 28, 23, 0, PD, pd);
	draft_flaw(draft, 16, 28, 26, 1, 7);
	draft_flaw(draft, 16, 9, 8, 0, 0);
	draft_flaw(draft, 28, 31, 31, 1, 1);
	valid_or_not(world, draft, 12, 30);
	draft->made.uses[0] = pd;
	return true;
}

/* ---- queues -------------------------------------------------------------------------------------------------------------- */

static bool draft_cq(struct world *world, struct context *context, struct draft *draft)
{
	bool wide = chance(&world->choose, 30);
	uint32_t log = (uint32_t)choose_below(&world->choose, wide ? 5 : 6), eqn = 0;
	struct object *made = &draft->made;

	*draft = draft_of(world, 0x400, 272, 16);
	if (!page_take(world, context, made) || !draft_uar(world, context, draft, 28))
		return false;
	made->cq.count = 1u << log;
	made->cq.size = wide ? 128 : 64;
	made->cq.collapsed = chance(&world->choose, 20);
	made->cq.ignores_overrun = made->cq.collapsed || chance(&world->choose, 20);
	made->cq.modulo = made->cq.count > 1 && chance(&world->choose, 30);
	if (mlx5dv_devx_query_eqn(context->verbs,
				  (uint32_t)choose_below(&world->choose, (uint64_t)context->verbs->num_comp_vectors),
				  &eqn))
		DIFFERENCE(world, "mlx5dv_devx_query_eqn(): %s", strerror(errno));
	put(draft->in, 16, 23, 21, wide);
	put(draft->in, 16, 20, 20, made->cq.collapsed);
	put(draft->in, 16, 17, 17, made->cq.ignores_overrun);
	put(draft->in, 28, 28, 24, log);
	put(draft->in, 36, 7, 0, eqn);
	draft_memory(draft, 88, 80, at_of(made), (uint64_t)made->cq.count * made->cq.size);
	split_offset(world, draft, 80, 24);
	draft_memory(draft, 20, 72, at_of(made) + RECORD, 8);
	draft_flaw(draft, 16, 23, 21, 2, 7);
	draft_flaw(draft, 16, 14, 14, 1, 1);
	draft_flaw(draft, 28, 28, 24, 23, 31);
	/* No event queue. */
	draft_flaw(draft, 36, 7, 0, 0x80, 0xff);
	draft->flaws[draft->flaw_count - 1].status = 5;
	valid_or_not(world, draft, 92, 31);
	valid_or_not(world, draft, 16, 25);
	made->umem[1] = made->umem[0];
	return true;
}

static bool draft_rmp(struct world *world, struct context *context, struct draft *draft)
{
	struct object *pd = object_some(world, context, PD), *made = &draft->made;
	bool cyclic = chance(&world->choose, 50), basic = cyclic && chance(&world->choose, 50);
	uint64_t stride = (basic ? 4 : 5) + choose_below(&world->choose, 2), log = choose_below(&world->choose, 5);

	*draft = draft_of(world, 0x90c, 272, 16);
	if (!page_take(world, context, made))
		return false;
	put(draft->in, 32, 23, 20, 1);
	put(draft->in, 36, 31, 31, basic);
	put(draft->in, 80, 31, 28, cyclic);
	put(draft->in, 112, 19, 16, stride);
	put(draft->in, 112, 4, 0, log);
	draft_number(draft, 88, 23, 0, PD, pd);
	draft_memory(draft, 124, 128, at_of(made), UINT64_C(1) << log << stride);
	draft_flaw(draft, 84, 20, 16, 1, 31);
	draft_memory(draft, 120, 96, at_of(made) + RECORD, 4);
	draft_flaw(draft, 80, 31, 28, 2, 15);
	draft_flaw(draft, 112, 4, 0, 16, 31);
	draft_flaw(draft, 112, 19, 16, 10, 15);
	draft_flaw(draft, 112, 19, 16, 0, basic ? 3 : 4);
	valid_or_not(world, draft, 116, 31);
	made->uses[0] = pd;
	made->umem[1] = made->umem[0];
	made->rmp.count = 1u << log;
	return true;
}

static void draft_receives(struct world *world, struct context *context, struct draft *draft)
{
	struct object *shared = object_some(world, context, RMP), *made = &draft->made;

	if (chance(&world->choose, 40)) {
		made->qp.shares = true;
		put(draft->in, 196, 26, 24, 1);
		draft_number(draft, 196, 23, 0, RMP, shared);
		made->uses[3] = shared;
	} else if (chance(&world->choose, 50)) {
		put(draft->in, 196, 26, 24, 3);
	} else {
		put(draft->in, 32, 22, 19, choose_below(&world->choose, 5));
		put(draft->in, 32, 18, 16, choose_below(&world->choose, 3));
		draft_flaw(draft, 32, 18, 16, 6, 7);
	}
	draft_flaw(draft, 196, 26, 24, 4, 7);
}

/* Returns the bytes of receives, which come first in the ring. */
static uint32_t receive_bytes(const struct draft *draft)
{
	bool has = draft->made.qp.service != DCI && get(draft->in, 196, 26, 24) == 0;

	return has ? 16u << get(draft->in, 32, 18, 16) << get(draft->in, 32, 22, 19) : 0;
}

static bool draft_qp(struct world *world, struct context *context, struct draft *draft)
{
	static const enum service services[] = {RC, RC, RC, UC, UD, DCI};
	struct object *pd = object_some(world, context, PD), *made = &draft->made;
	struct object *send = object_some(world, context, CQ), *receive = object_some(world, context, CQ);
	uint32_t log = (uint32_t)choose_below(&world->choose, 5);

	*draft = draft_of(world, 0x500, 272, 16);
	if (!page_take(world, context, made) || !draft_uar(world, context, draft, 36))
		return false;
	made->qp.service = CHOOSE_OF(&world->choose, services);
	made->qp.blocks = 1u << log;
	made->qp.can_post = send->handle;
	put(draft->in, 24, 23, 16, made->qp.service);
	put(draft->in, 24, 12, 11, 3);
	put(draft->in, 32, 14, 11, log);
	put(draft->in, 40, 23, 0, choose_bits(&world->choose));
	draft_number(draft, 28, 23, 0, PD, pd);
	draft_number(draft, 148, 23, 0, CQ, send);
	put(draft->in, 180, 23, 0, receive->number);
	if (made->qp.service != DCI) {
		draft_receives(world, context, draft);
		/* Without receives it may be omitted. */
		if (get(draft->in, 196, 26, 24) != 3)
			draft_number(draft, 180, 23, 0, CQ, receive);
	}
	made->qp.send_at = receive_bytes(draft);
	draft_memory(draft, 264, 256, at_of(made), made->qp.send_at + made->qp.blocks * 64);
	split_offset(world, draft, 256, 168);
	draft_memory(draft, 252, 184, at_of(made) + RECORD, 8);
	draft_flaw(draft, 24, 23, 16, 7, 255);
	draft_flaw(draft, 24, 23, 16, 3, 4);
	draft_flaw(draft, 24, 7, 4, 1, 15);
	draft_flaw(draft, 40, 31, 30, 1, 3);
	valid_or_not(world, draft, 232, 28);
	valid_or_not(world, draft, 268, 31);
	made->uses[0] = pd;
	made->uses[1] = send;
	made->uses[2] = receive;
	made->umem[1] = made->umem[0];
	return true;
}

static bool draft_dct(struct world *world, struct context *context, struct draft *draft)
{
	struct object *pd = object_some(world, context, PD), *cq = object_some(world, context, CQ);
	struct object *shared = object_some(world, context, RMP), *made = &draft->made;

	*draft = draft_of(world, 0x710, 128, 16);
	draft_number(draft, 24, 23, 0, CQ, cq);
	put(draft->in, 28, 19, 17, choose_bits(&world->choose));
	put(draft->in, 32, 12, 8, choose_bits(&world->choose));
	draft_number(draft, 36, 23, 0, RMP, shared);
	draft_number(draft, 40, 23, 0, PD, pd);
	put(draft->in, 48, 31, 0, choose_bits(&world->choose));
	put(draft->in, 56, 26, 24, 1 + choose_below(&world->choose, 5));
	put(draft->in, 56, 23, 16, 1);
	put(draft->in, 60, 7, 0, 64);
	draft_flaw(draft, 56, 26, 24, 6, 7);
	draft_flaw(draft, 56, 23, 16, 2, 255);
	draft_flaw(draft, 60, 23, 16, 255, 255);
	made->uses[0] = pd;
	made->uses[1] = cq;
	made->uses[3] = shared;
	return true;
}

/* ---- all of them --------------------------------------------------------------------------------------------------------- */

static bool draft_kind(struct world *world, struct context *context, enum kind kind, struct draft *draft)
{
	*draft = (struct draft){0};
	switch (kind) {
	case PD:
		return draft_pd(world, draft);
	case TD:
		return draft_td(world, draft);
	case CQ:
		return draft_cq(world, context, draft);
	case QP:
		return draft_qp(world, context, draft);
	case DCT:
		return draft_dct(world, context, draft);
	case RMP:
		return draft_rmp(world, context, draft);
	case MKEY:
		return draft_mkey(world, context, draft);
	case PSV:
		return draft_psv(world, context, draft);
	default:
		return draft_dek(world, context, draft);
	}
}

static bool has_room(const struct context *context)
{
	size_t count = 0;

	for (size_t i = 0; i < OBJECTS; i++)
		count += context->objects[i] != NULL;
	return count < OBJECTS;
}

/* Prepares the memory of an object, as a program does. */
static void prepare(const struct object *object)
{
	size_t at = (size_t)object->page * PAGE;

	if (object->kind == CQ || object->kind == QP || object->kind == RMP) {
		memset(object->umem[0]->memory + at, 0xff, RING_BYTES);
		memset(object->umem[0]->expected + at, 0xff, RING_BYTES);
		page_put(object, RECORD, 0);
		page_put(object, RECORD + 4, 0);
	}
}

void step_create(struct world *world)
{
	struct context *context = &world->contexts[choose_below(&world->choose, CONTEXTS)];
	static const enum kind kinds[] = {PD, TD, CQ, CQ, CQ, QP, QP, QP, QP, DCT, RMP, RMP, MKEY, MKEY, PSV, DEK};
	enum kind kind = CHOOSE_OF(&world->choose, kinds);
	struct mlx5dv_devx_obj *handle;
	struct draft draft;
	bool done;

	if (!has_room(context) || !draft_kind(world, context, kind, &draft))
		return;
	draft.made.kind = kind;
	draft.made.context = context;
	draft_spoil(world, context, &draft);
	if (draft.made.umem[0])
		prepare(&draft.made);
	errno = 0;
	handle = mlx5dv_devx_obj_create(context->verbs, issue_in(world, &draft), draft.in_bytes,
					issue_out(world, &draft), draft.out_bytes);
	done = expect_outcome(world, &draft, handle ? 0 : errno);
	if (!done || !handle)
		return;
	draft.made.handle = handle;
	memcpy(draft.made.created, draft.in, sizeof(draft.made.created));
	draft.made.number = (uint32_t)get(world->out, kind == PSV ? 16 : 8, kind == DEK ? 31 : 23, 0);
	if (object_find(context, kind, draft.made.number))
		DIFFERENCE(world, "number %x of kind %d is given twice", draft.made.number, kind);
	object_enter(&draft.made);
}
