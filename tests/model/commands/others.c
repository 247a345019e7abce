/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps without a particular command: ends, events, queries of the device, opcodes, memory, and random words. */
#include "world.h"

#include <errno.h>

enum { LAST_WQE = 0x13, RQ_LIMIT = 0x14, SUBSCRIPTIONS = 3 };

static struct context *some_context(struct world *world)
{
	return &world->contexts[choose_below(&world->choose, CONTEXTS)];
}

static struct object *some_made(struct world *world, struct context *context)
{
	return context->objects[choose_below(&world->choose, OBJECTS)];
}

static void expect(struct world *world, const char *call, int error, int expected)
{
	if (error != expected)
		DIFFERENCE(world, "%s: %d, not %d", call, error, expected);
}

/* Destroys an object, which fails if it is in use; a second call finds none. */
void step_destroy(struct world *world)
{
	struct object *object = some_made(world, some_context(world));
	struct mlx5dv_devx_obj *handle;

	if (!object)
		return;
	handle = object->handle;
	expect(world, "mlx5dv_devx_obj_destroy", mlx5dv_devx_obj_destroy(handle), object->users ? EREMOTEIO : 0);
	if (object->users)
		return;
	object_forget(object);
	if (chance(&world->choose, 20))
		expect(world, "mlx5dv_devx_obj_destroy again", mlx5dv_devx_obj_destroy(handle), ENOENT);
}

void step_umem(struct world *world)
{
	struct context *context = some_context(world);
	struct umem *umem = &context->umems[choose_below(&world->choose, UMEMS)];
	struct mlx5dv_devx_umem *handle = umem->handle;

	if (!handle) {
		umem->handle = mlx5dv_devx_umem_reg(context->verbs, umem->memory, umem->bytes, IBV_ACCESS_LOCAL_WRITE);
		expect(world, "mlx5dv_devx_umem_reg", umem->handle ? 0 : errno, 0);
		return;
	}
	expect(world, "mlx5dv_devx_umem_dereg", mlx5dv_devx_umem_dereg(handle), umem->users ? EBUSY : 0);
	if (umem->users)
		return;
	umem->handle = NULL;
	expect(world, "mlx5dv_devx_umem_dereg again", mlx5dv_devx_umem_dereg(handle), ENOENT);
}

/* Allocates or frees a UAR. Queues created with it continue. */
void step_uar(struct world *world)
{
	struct context *context = some_context(world);
	struct mlx5dv_devx_uar **uar = &context->uars[choose_below(&world->choose, UARS)];

	if (*uar) {
		mlx5dv_devx_free_uar(*uar);
		*uar = NULL;
		return;
	}
	*uar = mlx5dv_devx_alloc_uar(context->verbs, MLX5DV_UAR_ALLOC_TYPE_BF);
	expect(world, "mlx5dv_devx_alloc_uar", *uar ? 0 : errno, 0);
}

void step_subscribe(struct world *world)
{
	struct context *context = some_context(world);
	struct object *object = some_made(world, context);
	uint16_t types[2] = {LAST_WQE, 0x01};

	if (!object || (object->kind != RMP && object->kind != QP) || object->subscriptions == SUBSCRIPTIONS)
		return;
	if (object->kind == RMP)
		types[0] = RQ_LIMIT;
	/* Several events are subscribed all or none: the device does not have 0x01. */
	expect(world, "mlx5dv_devx_subscribe_devx_event",
	       mlx5dv_devx_subscribe_devx_event(context->channel, object->handle, sizeof(types), types, 1), EINVAL);
	expect(world, "mlx5dv_devx_subscribe_devx_event",
	       mlx5dv_devx_subscribe_devx_event(context->channel, object->handle, sizeof(types[0]), types,
						object->number),
	       0);
	object->subscriptions++;
}

void step_general(struct world *world)
{
	static const uint16_t groups[] = {0, 2, 3, 4, 0xf, 0x14, 0x1a};
	struct context *context = some_context(world);
	struct draft draft;

	switch (choose_below(&world->choose, 4)) {
	case 0:
		draft = draft_of(world, 0x754, 16, 272);
		break;
	case 1:
		draft = draft_of(world, 0x842, 16, 16);
		break;
	default:
		draft = draft_of(world, 0x100, 16, 4112);
		put(draft.in, 4, 15, 1, CHOOSE_OF(&world->choose, groups));
		put(draft.in, 4, 0, 0, choose_bits(&world->choose));
		draft_flaw(&draft, 4, 15, 1, 0x40, 0x7fff);
	}
	draft_spoil(world, context, &draft);
	if (!expect_outcome(world, &draft,
			    mlx5dv_devx_general_cmd(context->verbs, issue_in(world, &draft), draft.in_bytes,
						    issue_out(world, &draft), draft.out_bytes)))
		return;
	/* log_max_msg, without which UCX does not use DEVX. */
	if (get(draft.in, 0, 31, 16) == 0x100 && !get(draft.in, 4, 15, 1) && !draft.unwritable &&
	    draft.out_bytes >= 80 && get(world->out, 16 + 56, 28, 24) != 30)
		DIFFERENCE(world, "log_max_msg is %lu", get(world->out, 16 + 56, 28, 24));
}

/* Opcodes that a kernel passes but this device does not support, that belong to another call, or that do not exist. */
void step_opcode(struct world *world)
{
	static const uint16_t lacking[][4] = {{0x101, 0x10a, 0x760, 0xb0c},
					      {0x700, 0x705, 0x717, 0x912},
					      {0x403, 0x403, 0x403, 0xa01},
					      {0x702, 0x707, 0x90b, 0x903}};
	static const uint16_t of_others[][4] = {{0x400, 0x502, 0x50b, 0xa00},
						{0x100, 0x502, 0x50b, 0x90d},
						{0x100, 0x500, 0x50b, 0x402},
						{0x100, 0x500, 0x502, 0x90d}};
	struct context *context = some_context(world);
	uint64_t call = choose_below(&world->choose, 4), column = choose_below(&world->choose, 4);
	uint64_t what = choose_below(&world->choose, 3);
	uint16_t opcode = what == 0   ? lacking[call][column]
			  : what == 1 ? of_others[call][column]
				      : (uint16_t)(0x1000 + choose_below(&world->choose, 0xe000));
	struct draft draft = draft_of(world, opcode, 272, 16);
	struct object *object = object_some(world, context, QP);
	struct mlx5dv_devx_obj *made = NULL;
	void *in, *out;
	int error = 0;

	put(draft.in, 8, 23, 0, object->number);
	draft.outcomes = OUTCOME(2);
	/* For objects that the device cannot make, no number is valid: the kernel refuses each change and query. */
	draft.refused_by_host = what != 0 || call >= 2;
	/* For general objects the number has 32 bits, and the command contains the type. */
	in = issue_in(world, &draft);
	out = issue_out(world, &draft);
	errno = 0;
	switch (call) {
	case 0:
		error = mlx5dv_devx_general_cmd(context->verbs, in, 272, out, 16);
		break;
	case 1:
		made = mlx5dv_devx_obj_create(context->verbs, in, 272, out, 16);
		error = made ? 0 : errno;
		break;
	case 2:
		error = object->verbs ? mlx5dv_devx_qp_modify(object->verbs, in, 272, out, 16)
				      : mlx5dv_devx_obj_modify(object->handle, in, 272, out, 16);
		break;
	default:
		error = object->verbs ? mlx5dv_devx_qp_query(object->verbs, in, 272, out, 16)
				      : mlx5dv_devx_obj_query(object->handle, in, 272, out, 16);
	}
	expect_outcome(world, &draft, error);
}

/* Sends random words in a command that creates an object: the object is destroyed again, and nothing is left. */
void step_nonsense(struct world *world)
{
	static const uint16_t opcodes[] = {0x200, 0x400, 0x500, 0x600, 0x710, 0x800, 0x816, 0x90c, 0xa00};
	struct context *context = some_context(world);
	struct draft draft =
		draft_of(world, CHOOSE_OF(&world->choose, opcodes), 272 + 4 * choose_below(&world->choose, 49), 32);
	struct umem *umem = &context->umems[0];
	struct mlx5dv_devx_obj *made;

	for (uint64_t words = choose_below(&world->choose, 100); words; words--)
		put(draft.in, 4 + 4 * choose_below(&world->choose, COMMAND / 4 - 1), 31, 0,
		    choose_bits(&world->choose) >> choose_below(&world->choose, 64));
	/* A created object must not overlap others: only one page may be used, the last, which is incomplete. */
	if (umem->handle)
		for (uint64_t at = 0; at < COMMAND; at += 4)
			if (get(draft.in, at, 31, 0) == umem->handle->umem_id)
				put(draft.in, at, 31, 0, 0xffffff);
	errno = 0;
	made = mlx5dv_devx_obj_create(context->verbs, issue_in(world, &draft), draft.in_bytes, issue_out(world, &draft),
				      32);
	if (!made && errno != EREMOTEIO && errno != EINVAL)
		DIFFERENCE(world, "command %lx with words at random: error %d", get(draft.in, 0, 31, 16), errno);
	if (made)
		expect(world, "mlx5dv_devx_obj_destroy", mlx5dv_devx_obj_destroy(made), 0);
}

void step(struct world *world)
{
	static const struct {
		const char *name;
		unsigned int weight;
		void (*take)(struct world *world);
	} steps[] = {
		{"create", 35, step_create},
		{"modify a QP", 35, step_on_qp},
		{"query", 10, step_query},
		{"arm a limit", 6, step_limit},
		{"post", 25, step_post},
		{"destroy", 16, step_destroy},
		{"subscribe", 8, step_subscribe},
		{"general", 4, step_general},
		{"opcode", 3, step_opcode},
		{"umem", 2, step_umem},
		{"UAR", 2, step_uar},
		{"nonsense", 4, step_nonsense},
	};
	unsigned int all = 0, which = 0;
	uint64_t drawn;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		all += steps[i].weight;
	drawn = choose_below(&world->choose, all);
	while (drawn >= steps[which].weight)
		drawn -= steps[which++].weight;
	world->what = steps[which].name;
	steps[which].take(world);
	world_check(world);
}
