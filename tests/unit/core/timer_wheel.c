/* SPDX-License-Identifier: BSD-2-Clause */
/* core/timer_wheel: random timers and times against a model that checks every timer; the cost of many timers. */
#include "test_case.h"

#include <time.h>

#include "core/timer_wheel.h"

/* Maximum lateness that the header promises. */
#define TICK_NS UINT64_C(1024)
#define TIMERS 300

struct model {
	struct timer_wheel wheel;
	uint64_t now_ns, random;
	struct timer timers[TIMERS];
	bool armed[TIMERS];
};

static uint64_t draw(struct model *model)
{
	model->random ^= model->random << 13;
	model->random ^= model->random >> 7;
	model->random ^= model->random << 17;
	return model->random;
}

/* Returns a time of any order of magnitude, up to @bits. */
static uint64_t draw_ns(struct model *model, unsigned int bits)
{
	return draw(model) >> (63 - draw(model) % bits);
}

static void arm(struct model *model, size_t i, uint64_t deadline_ns)
{
	wheel_remove(&model->timers[i]);
	model->timers[i].deadline_ns = deadline_ns;
	wheel_add(&model->wheel, &model->timers[i]);
	model->armed[i] = true;
}

static void disarm(struct model *model, size_t i)
{
	wheel_remove(&model->timers[i]);
	assert_null(model->timers[i].link);
	model->armed[i] = false;
}

static uint64_t earliest(const struct model *model)
{
	uint64_t deadline = UINT64_MAX;

	for (size_t i = 0; i < TIMERS; i++)
		if (model->armed[i] && model->timers[i].deadline_ns < deadline)
			deadline = model->timers[i].deadline_ns;
	return deadline;
}

/* All due timers fire, once, none early, and the next wake-up time is not too late. */
static void fire(struct model *model)
{
	struct timer *timer;
	uint64_t next;

	while ((timer = wheel_take_due(&model->wheel, model->now_ns))) {
		size_t i = (size_t)(timer - model->timers);

		assert_true(model->armed[i]);
		assert_null(timer->link);
		assert_true(timer->deadline_ns <= model->now_ns);
		model->armed[i] = false;
		/* As a timer function may: removes another timer and arms this one again. */
		if (draw(model) % 4 == 0)
			disarm(model, draw(model) % TIMERS);
		if (draw(model) % 4 == 0)
			arm(model, i, model->now_ns + TICK_NS + draw_ns(model, 40));
	}
	assert_true(earliest(model) > model->now_ns - TICK_NS);
	next = wheel_next_ns(&model->wheel);
	if (earliest(model) == UINT64_MAX)
		assert_int_equal(next, UINT64_MAX);
	else
		assert_true(next > model->now_ns && next < earliest(model) + TICK_NS);
}

static void change(struct model *model)
{
	size_t i = draw(model) % TIMERS;

	switch (draw(model) % 8) {
	case 0:
	case 1:
		disarm(model, i);
		break;
	case 2: /* in the past */
		arm(model, i, model->now_ns - draw(model) % model->now_ns);
		break;
	case 3: /* many with one deadline */
		arm(model, i, (model->now_ns | 0xfffff) + 1);
		break;
	default:
		arm(model, i, model->now_ns + draw_ns(model, 50));
	}
}

TEST(random_timers)
{
	struct model *model = calloc(1, sizeof(*model));

	for (uint64_t seed = 1; seed <= 30; seed++) {
		*model = (struct model){.now_ns = TICK_NS + (seed << (seed % 50)), .random = seed * 0x9e3779b97f4a7c15};
		for (int round = 0; round < 2000; round++) {
			for (uint64_t count = draw(model) % 8; count; count--)
				change(model);
			/* Advances the time by any amount, or to the next deadline, as a sleeping thread would. */
			if (draw(model) % 2)
				model->now_ns += draw_ns(model, 45);
			else if (earliest(model) != UINT64_MAX && earliest(model) > model->now_ns)
				model->now_ns = earliest(model);
			fire(model);
		}
		wheel_clear(&model->wheel);
		for (size_t i = 0; i < TIMERS; i++)
			assert_null(model->timers[i].link);
		assert_int_equal(wheel_next_ns(&model->wheel), UINT64_MAX);
	}
	free(model);
}

/* Without removals the next time is exact: a thread that sleeps until then is not woken needlessly. */
TEST(next_time)
{
	static const uint64_t delays_ns[] = {1, 1023, 1024, 10000, 655360000, UINT64_C(1) << 30, UINT64_C(1) << 45};
	struct timer_wheel *wheel = calloc(1, sizeof(*wheel));
	struct timer timer = {.link = NULL};

	assert_null(wheel_take_due(wheel, 5000000));
	for (size_t i = 0; i < sizeof(delays_ns) / sizeof(delays_ns[0]); i++) {
		timer.deadline_ns = 5000000 + delays_ns[i];
		wheel_add(wheel, &timer);
		assert_null(wheel_take_due(wheel, 5000000));
		assert_true(wheel_next_ns(wheel) >= timer.deadline_ns);
		assert_true(wheel_next_ns(wheel) < timer.deadline_ns + TICK_NS);
		wheel_remove(&timer);
	}
	timer.deadline_ns = UINT64_MAX;
	wheel_add(wheel, &timer);
	assert_null(wheel_take_due(wheel, UINT64_MAX - TICK_NS));
	free(wheel);
}

static double processor_seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* 10^5 queue pairs with one timeout, each armed ten times: a sorted list takes minutes. */
TEST(many_timers)
{
	enum { MANY = 100000 };
	struct timer_wheel *wheel = calloc(1, sizeof(*wheel));
	struct timer *timers = calloc(MANY, sizeof(*timers));
	uint64_t now_ns = 1000000000, fired = 0;
	double start = processor_seconds();

	for (int round = 0; round < 10; round++)
		for (size_t i = 0; i < MANY; i++) {
			now_ns += 300;
			if (wheel_take_due(wheel, now_ns))
				fired++;
			wheel_remove(&timers[i]);
			timers[i].deadline_ns = now_ns + (UINT64_C(4096) << 18);
			wheel_add(wheel, &timers[i]);
		}
	assert_int_equal(fired, 0);
	while (wheel_take_due(wheel, now_ns + (UINT64_C(4096) << 18) + TICK_NS))
		fired++;
	assert_int_equal(fired, MANY);
	assert_true(processor_seconds() - start < 10);
	free(timers);
	free(wheel);
}
