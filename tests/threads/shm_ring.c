/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of the shm link between threads: two producers, one consumer, every byte checked. */
#include <pthread.h>
#include <sched.h>
#include "test_case.h"

#include "../unit/support/shm_ring_fixture.h"

#define PRODUCERS 2
#define RECORDS 20000

static struct shm_producer producer;

/* The number of a record consists of its sender and a count; records of sender 1 have a path, those of sender 0 have none. */
static uint64_t number_of(unsigned int thread, uint64_t count)
{
	return count * PRODUCERS + thread;
}

static struct shm_slot shape_of(uint64_t number)
{
	struct shm_slot slot = record_shape((number + 1) * 0x9e3779b97f4a7c15ULL);

	slot.flags = number % PRODUCERS ? slot.flags | SHM_FLAG_PATH : 0;
	return slot;
}

static void *produce(void *argument)
{
	unsigned int thread = (unsigned int)(uintptr_t)argument;

	for (uint64_t i = 0; i < RECORDS; i++) {
		uint64_t number = number_of(thread, i);
		struct shm_slot shape = shape_of(number);
		int error;

		while ((error = record_send(&producer, &shape, number)) == -ENOBUFS)
			sched_yield();
		if (error)
			return (void *)1;
	}
	return NULL;
}

static void consume(struct shm_consumer *consumer)
{
	uint64_t counts[PRODUCERS] = {0};

	for (uint64_t i = 0; i < PRODUCERS * RECORDS; i++) {
		struct shm_record record;
		uint32_t field, value;
		unsigned int sender;
		uint64_t number;
		struct shm_slot shape;

		while (!shm_ready(consumer))
			sched_yield();
		assert_int_equal(shm_take(consumer, &record, &field, &value), 0);
		sender = record.path ? 1 : 0;
		number = number_of(sender, counts[sender]++);
		shape = shape_of(number);
		assert_int_equal(record.slot.length, shape.length);
		assert_int_equal(record.slot.headers, shape.headers);
		assert_true(record_is(&record, number));
		if (i % 7 == 0 || !shm_ready(consumer))
			shm_release(consumer);
	}
}

TEST(test_two_producers)
{
	struct shm_ring *ring = aligned_alloc(_Alignof(struct shm_ring), sizeof(*ring));
	struct shm_consumer consumer = {.ring = ring};
	pthread_t threads[PRODUCERS];

	assert_non_null(ring);
	memset(ring, 0, sizeof(*ring));
	producer = (struct shm_producer){.ring = ring};
	for (uintptr_t i = 0; i < PRODUCERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, produce, (void *)i), 0);
	consume(&consumer);
	for (unsigned int i = 0; i < PRODUCERS; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	free(ring);
}
