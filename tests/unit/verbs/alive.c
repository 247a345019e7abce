/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares the table of live objects (verbs/object/alive.h) with a list of them; with and without memory to grow. */
#include "test_case.h"

#include "verbs/object/objects.h"

enum { OBJECTS = 6000, STEPS = 60000, LOOK_EVERY = 5000 };

static struct user_td *objects[OBJECTS];
static bool lives[OBJECTS];
static bool no_memory;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
	return no_memory ? NULL : __real_calloc(count, size);
}

static uint32_t draw(void)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return state >> 33;
}

static int make_objects(void **state)
{
	(void)state;
	alive_prepare();
	for (size_t i = 0; i < OBJECTS; i++) {
		/* Adjacent and far apart, like small and large objects. */
		objects[i] = malloc(sizeof(*objects[i]) + (i % 2 ? 2048 : 0));
		assert_non_null(objects[i]);
		*objects[i] = (struct user_td){0};
	}
	return 0;
}

static int free_objects(void **state)
{
	(void)state;
	for (size_t i = 0; i < OBJECTS; i++) {
		if (lives[i])
			object_leave(&objects[i]->alive);
		lives[i] = false;
		free(objects[i]);
	}
	no_memory = false;
	return 0;
}

static void look_at_all(void)
{
	for (size_t i = 0; i < OBJECTS; i++) {
		struct ibv_td *object = &objects[i]->base;

		assert_int_equal(object_alive(object), lives[i]);
		/* The object is found only with its own type and address. */
		assert_false(object_alive((struct ibv_xrcd *)object));
		for (int offset = -8; offset <= 8; offset += 4)
			assert_int_equal(object_alive((struct ibv_td *)((uintptr_t)object + offset)),
					 lives[i] && !offset);
	}
}

/* Adds and removes objects in any order, more of them than before. */
TEST(come_and_go)
{
	for (size_t step = 0; step < STEPS; step++) {
		size_t i = draw() % (OBJECTS * (step + 1) / STEPS + 1) % OBJECTS;

		if (lives[i])
			object_leave(&objects[i]->alive);
		else
			object_enter(&objects[i]->base, &objects[i]->alive, NULL);
		lives[i] = !lives[i];
		if (step % LOOK_EVERY == 0)
			look_at_all();
	}
	look_at_all();
}

/* No object is lost for lack of memory. */
TEST(without_memory)
{
	no_memory = true;
	come_and_go(state);
}

/* Memory runs out and becomes available again, with objects in both places. */
TEST(now_and_then)
{
	for (size_t i = 0; i < OBJECTS; i++) {
		no_memory = i / 500 % 2;
		object_enter(&objects[i]->base, &objects[i]->alive, NULL);
		lives[i] = true;
	}
	look_at_all();
	for (size_t i = 0; i < OBJECTS; i += 3) {
		object_leave(&objects[i]->alive);
		lives[i] = false;
	}
	look_at_all();
}

/* Removing an object twice is allowed: an import is removed on unimport and by its last user. */
TEST(leaves_twice)
{
	object_enter(&objects[0]->base, &objects[0]->alive, NULL);
	object_leave(&objects[0]->alive);
	object_leave(&objects[0]->alive);
	look_at_all();
}

int main(void)
{
	/* This test is first, since a table that has grown has room. */

	return run_cases(.setup = make_objects, .teardown = free_objects);
}
