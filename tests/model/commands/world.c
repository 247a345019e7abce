/* SPDX-License-Identifier: BSD-2-Clause */
/* Two contexts with objects of verbs, memory for queues, and the comparison after each step; see world.h. */
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

void difference(const char *what, const char *format, ...)
{
	va_list arguments;

	printf("DIFFERENCE: %s: ", what);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	fflush(stdout);
	abort();
}

#define MUST(world, condition)                                                                                         \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			DIFFERENCE(world, "%s: %s", #condition, strerror(errno));                                      \
	} while (0)

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

/* Maps whole pages, between two inaccessible ones. */
static uint8_t *map_between(size_t bytes)
{
	uint8_t *memory = mmap(NULL, bytes + 2 * (size_t)PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || mprotect(memory + PAGE, bytes, PROT_READ | PROT_WRITE))
		abort();
	return memory + PAGE;
}

static void unmap_between(uint8_t *memory, size_t bytes)
{
	munmap(memory - PAGE, bytes + 2 * (size_t)PAGE);
}

static void umem_open(struct world *world, struct context *context, struct umem *umem)
{
	size_t mapped = (size_t)UMEM_PAGES * PAGE;

	umem->context = context;
	umem->memory = map_between(mapped);
	umem->expected = malloc(mapped);
	MUST(world, umem->expected);
	for (size_t i = 0; i < mapped; i++)
		umem->expected[i] = (uint8_t)choose_bits(&world->choose);
	memcpy(umem->memory, umem->expected, mapped);
	umem->bytes = mapped - choose_below(&world->choose, PAGE / 64) * 64;
	umem->handle = mlx5dv_devx_umem_reg(context->verbs, umem->memory, umem->bytes, IBV_ACCESS_LOCAL_WRITE);
	MUST(world, umem->handle);
}

static void umem_close(struct umem *umem)
{
	unmap_between(umem->memory, (size_t)UMEM_PAGES * PAGE);
	free(umem->expected);
}

bool page_take(struct world *world, struct context *context, struct object *made)
{
	struct umem *umem = umem_some(world, context);
	uint32_t first = (uint32_t)choose_below(&world->choose, UMEM_PAGES - 1);

	if (!umem)
		return false;
	for (uint32_t i = 0; i < UMEM_PAGES - 1; i++) {
		uint32_t page = (first + i) % (UMEM_PAGES - 1);

		if (umem->owner[page])
			continue;
		made->umem[0] = umem;
		made->page = page;
		return true;
	}
	return false;
}

void page_put(const struct object *object, size_t at, uint32_t value)
{
	at += (size_t)object->page * PAGE;
	put(object->umem[0]->expected, at, 31, 0, value);
	value = htobe32(value);
	__atomic_store_n((uint32_t *)(object->umem[0]->memory + at), value, __ATOMIC_RELEASE);
}

static void compare(struct world *world, const struct umem *umem)
{
	size_t bytes = (size_t)UMEM_PAGES * PAGE, at = 0;

	if (!memcmp(umem->memory, umem->expected, bytes))
		return;
	while (umem->memory[at] == umem->expected[at])
		at++;
	DIFFERENCE(world, "byte %zx of umem %u, of %zx bytes, is %x, not %x; its page is of %s", at,
		   umem->handle ? umem->handle->umem_id : 0, (size_t)umem->bytes, umem->memory[at], umem->expected[at],
		   umem->owner[at / PAGE] ? "a queue" : "no owner");
}

/* ---- objects --------------------------------------------------------------------------------------------------------- */

struct object *object_enter(const struct object *made)
{
	struct object *object = malloc(sizeof(*object));

	if (!object)
		abort();
	*object = *made;
	for (size_t i = 0; i < USES; i++)
		if (object->uses[i])
			object->uses[i]->users++;
	if (object->umem[0] && object->kind != MKEY)
		object->umem[0]->owner[object->page] = object;
	for (size_t i = 0; i < 2; i++)
		if (object->umem[i])
			object->umem[i]->users++;
	for (size_t i = 0; i < OBJECTS; i++)
		if (!object->context->objects[i]) {
			object->context->objects[i] = object;
			return object;
		}
	abort();
}

void object_forget(struct object *object)
{
	for (size_t i = 0; i < USES; i++)
		if (object->uses[i])
			object->uses[i]->users--;
	if (object->umem[0] && object->kind != MKEY)
		object->umem[0]->owner[object->page] = NULL;
	for (size_t i = 0; i < 2; i++)
		if (object->umem[i])
			object->umem[i]->users--;
	for (size_t i = 0; i < OBJECTS; i++)
		if (object->context->objects[i] == object)
			object->context->objects[i] = NULL;
	free(object);
}

struct object *object_some(struct world *world, struct context *context, enum kind kind)
{
	struct object *found[OBJECTS + 4];
	size_t count = 0;

	for (size_t i = 0; i < 4; i++)
		if (context->of_verbs[i].kind == kind)
			found[count++] = &context->of_verbs[i];
	for (size_t i = 0; i < OBJECTS; i++)
		if (context->objects[i] && context->objects[i]->kind == kind)
			found[count++] = context->objects[i];
	return count ? found[choose_below(&world->choose, count)] : NULL;
}

struct object *object_find(struct context *context, enum kind kind, uint32_t number)
{
	for (size_t i = 0; i < 4; i++)
		if (context->of_verbs[i].kind == kind && context->of_verbs[i].number == number)
			return &context->of_verbs[i];
	for (size_t i = 0; i < OBJECTS; i++)
		if (context->objects[i] && context->objects[i]->kind == kind && context->objects[i]->number == number)
			return context->objects[i];
	return NULL;
}

struct umem *umem_some(struct world *world, struct context *context)
{
	struct umem *umem = &context->umems[choose_below(&world->choose, UMEMS)];

	return umem->handle ? umem : NULL;
}

/* ---- contexts -------------------------------------------------------------------------------------------------------- */

static void open_verbs(struct world *world, struct context *context)
{
	struct ibv_srq_init_attr shared = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct mlx5dv_pd pd = {0};
	struct mlx5dv_srq srq = {.comp_mask = MLX5DV_SRQ_MASK_SRQN};
	struct mlx5dv_cq cq = {0};
	struct mlx5dv_obj object;
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {2, 2, 1, 1, 0}};
	struct ibv_qp *qp;

	context->pd = ibv_alloc_pd(context->verbs);
	context->cq = ibv_create_cq(context->verbs, 8, NULL, NULL, 0);
	MUST(world, context->pd && context->cq);
	context->srq = ibv_create_srq(context->pd, &shared);
	attr.send_cq = attr.recv_cq = context->cq;
	qp = ibv_create_qp(context->pd, &attr);
	MUST(world, context->srq && qp);
	object = (struct mlx5dv_obj){.pd = {context->pd, &pd}, .cq = {context->cq, &cq}, .srq = {context->srq, &srq}};
	MUST(world, !mlx5dv_init_obj(&object, MLX5DV_OBJ_PD | MLX5DV_OBJ_CQ | MLX5DV_OBJ_SRQ));
	context->of_verbs[0] = (struct object){.kind = PD, .context = context, .number = pd.pdn};
	context->of_verbs[1] =
		(struct object){.kind = CQ, .context = context, .number = cq.cqn, .cq.size = cq.cqe_size};
	context->of_verbs[2] = (struct object){.kind = RMP, .context = context, .number = srq.srqn};
	context->of_verbs[3] = (struct object){.kind = QP, .context = context, .number = qp->qp_num, .verbs = qp};
}

static void context_open(struct world *world, struct context *context, struct ibv_device *device)
{
	*context = (struct context){.verbs = ibv_open_device(device)};
	MUST(world, context->verbs);
	open_verbs(world, context);
	context->channel = mlx5dv_devx_create_event_channel(context->verbs, 0);
	MUST(world, context->channel && !fcntl(context->channel->fd, F_SETFL, O_NONBLOCK));
	context->uars[0] = mlx5dv_devx_alloc_uar(context->verbs, MLX5DV_UAR_ALLOC_TYPE_BF);
	MUST(world, context->uars[0]);
	for (size_t i = 0; i < UMEMS; i++)
		umem_open(world, context, &context->umems[i]);
}

void world_open(struct world *world)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	world->what = "opening";
	MUST(world, list && list[0]);
	for (size_t i = 0; i < CONTEXTS; i++)
		context_open(world, &world->contexts[i], list[0]);
	ibv_free_device_list(list);
	world->in_end = map_between(PAGE) + PAGE;
	world->out_end = map_between(2 * (size_t)PAGE) + 2 * (size_t)PAGE;
}

/* Destroys all objects. Newer objects use older ones: unused ones are destroyed until none is left. */
static void destroy_all(struct world *world, struct context *context)
{
	bool some = true;

	while (some) {
		some = false;
		for (size_t i = 0; i < OBJECTS; i++) {
			struct object *object = context->objects[i];

			if (!object)
				continue;
			some = true;
			if (object->users)
				continue;
			MUST(world, !mlx5dv_devx_obj_destroy(object->handle));
			object_forget(object);
		}
	}
	for (size_t i = 0; i < UMEMS; i++)
		if (context->umems[i].handle) {
			if (context->umems[i].users)
				DIFFERENCE(world, "umem %zu has users left in the model", i);
			MUST(world, !mlx5dv_devx_umem_dereg(context->umems[i].handle));
		}
	for (size_t i = 0; i < UARS; i++)
		if (context->uars[i])
			mlx5dv_devx_free_uar(context->uars[i]);
}

static bool holds_verbs(const struct context *context)
{
	for (size_t i = 0; i < 3; i++)
		if (context->of_verbs[i].users)
			return true;
	return false;
}

/* Objects left by commands keep objects of verbs: the latter are destroyed first only if they are unused. */
static void context_close(struct world *world, struct context *context)
{
	bool leaves = !holds_verbs(context) && chance(&world->choose, 50);

	if (!leaves) {
		destroy_all(world, context);
		if (context->channel)
			mlx5dv_devx_destroy_event_channel(context->channel);
	}
	MUST(world, !ibv_destroy_qp(context->of_verbs[3].verbs));
	MUST(world, !ibv_destroy_srq(context->srq));
	MUST(world, !ibv_destroy_cq(context->cq));
	MUST(world, !ibv_dealloc_pd(context->pd));
	MUST(world, !ibv_close_device(context->verbs));
	for (size_t i = 0; i < OBJECTS; i++)
		free(context->objects[i]);
	for (size_t i = 0; i < UMEMS; i++)
		umem_close(&context->umems[i]);
}

void world_close(struct world *world)
{
	world->what = "closing";
	world_check(world);
	for (size_t i = 0; i < CONTEXTS; i++)
		context_close(world, &world->contexts[i]);
	unmap_between(world->in_end - PAGE, PAGE);
	unmap_between(world->out_end - 2 * (size_t)PAGE, 2 * (size_t)PAGE);
}

/* ---- comparison ------------------------------------------------------------------------------------------------------ */

static void take_events(struct world *world, struct context *context)
{
	union {
		struct mlx5dv_devx_async_event_hdr header;
		uint8_t bytes[72];
	} event;

	for (uint32_t i = 0; i < context->waiting; i++) {
		ssize_t bytes = mlx5dv_devx_get_event(context->channel, &event.header, sizeof(event));

		if (bytes != sizeof(event) || event.header.cookie != context->cookies[i])
			DIFFERENCE(world, "event %u of %u: %zd bytes, cookie %lx, not %lx", i, context->waiting, bytes,
				   bytes > 0 ? (unsigned long)event.header.cookie : 0,
				   (unsigned long)context->cookies[i]);
	}
	context->waiting = 0;
	errno = 0;
	if (mlx5dv_devx_get_event(context->channel, &event.header, sizeof(event)) != -1 || errno != EAGAIN)
		DIFFERENCE(world, "an event of cookie %lx that was not raised", (unsigned long)event.header.cookie);
}

void world_check(struct world *world)
{
	for (size_t i = 0; i < CONTEXTS; i++) {
		struct pollfd verbs = {.fd = world->contexts[i].verbs->async_fd, .events = POLLIN};

		for (size_t j = 0; j < UMEMS; j++)
			compare(world, &world->contexts[i].umems[j]);
		take_events(world, &world->contexts[i]);
		if (poll(&verbs, 1, 0) != 0)
			DIFFERENCE(world, "ibv_get_async_event() has an event");
	}
}
