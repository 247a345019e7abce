/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests SPDK's accel module with many tasks in flight: random tasks of all kinds until the ring is full, with one doorbell per
 * batch; CQEs in task order although the consumer index is never stored; two queues on one CQ; and channels in several threads
 * that share a PD and its region. Each result is compared with the model when its CQE arrives.
 */
#include <pthread.h>
#include <sched.h>

#include "support/accel_model.h"
#include "support/accel_tasks.h"

enum {
	SLOTS = 64,
	SLOT_BYTES = 8192, /* results of a task, then its CRC at SLOT_CRC */
	SLOT_CRC = SLOT_BYTES - 64,
	SOURCE_BYTES = 256 * 1024,
	MEMORY_BYTES = SOURCE_BYTES + 2 * SLOTS * SLOT_BYTES,
	MOST_TASK = 4096,
	THREADS = 2,
};

static const uint8_t secret[32] = "two keys of sixteen bytes, which";

enum kind { COPY, CRC, COPY_CRC, ENCRYPT, DECRYPT, KINDS };

struct task {
	enum kind kind;
	struct ibv_sge from[ACCEL_SGES], to[ACCEL_SGES];
	size_t from_count, to_count;
	bool ones;
	uint64_t lba;
};

/* A channel: the per-thread state of a device in SPDK. The slots of its tasks are a separate part of the memory. */
struct channel {
	struct accel_cq *cq;
	struct accel_queue queue;
	struct accel_key sign[SLOTS], crypto[SLOTS];
	struct accel_object psv[SLOTS];
	struct task tasks[SLOTS];
	uint64_t first, next; /* tasks in flight; the slot of a task is its number modulo SLOTS */
	size_t memory;        /* offset of the slots */
	uint64_t random;
};

static struct accel_caps caps;
static struct accel_object dek;

static uint32_t draw(struct channel *channel, uint32_t below)
{
	channel->random = channel->random * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(channel->random >> 33) % below;
}

static void open_channel(struct channel *channel, struct accel_cq *cq, size_t number)
{
	*channel = (struct channel){.cq = cq,
				    .first = 1,
				    .next = 1,
				    .memory = SOURCE_BYTES + number * SLOTS * SLOT_BYTES,
				    .random = number + 1};
	accel_queue_open(&channel->queue, cq, client.pd);
	for (size_t i = 0; i < SLOTS; i++) {
		channel->sign[i] = accel_create_key(client.pd, ACCEL_KEY_SIGNATURE, &caps);
		channel->crypto[i] = accel_create_key(client.pd, ACCEL_KEY_CRYPTO, &caps);
		channel->psv[i] = accel_create_psv(client.pd);
	}
}

static void close_channel(struct channel *channel)
{
	accel_queue_idle(&channel->queue);
	accel_queue_close(&channel->queue);
	for (size_t i = 0; i < SLOTS; i++) {
		accel_destroy_key(&channel->sign[i]);
		accel_destroy_key(&channel->crypto[i]);
		accel_destroy(&channel->psv[i]);
	}
}

static size_t slot_of(const struct channel *channel, uint64_t number)
{
	return channel->memory + number % SLOTS * SLOT_BYTES;
}

static struct ibv_sge crc_of(const struct channel *channel, uint64_t number)
{
	return side_sge(&client, slot_of(channel, number) + SLOT_CRC, 4);
}

static struct accel_cipher cipher_of(const struct task *task)
{
	return (struct accel_cipher){.direction = task->kind == ENCRYPT ? ACCEL_ENCRYPT : ACCEL_DECRYPT,
				     .selector = 1,
				     .lba = task->lba,
				     .dek = dek.number,
				     .big_endian = caps.multi_block_be};
}

/* Draws a task and writes its WQEs. */
static void submit(struct channel *channel)
{
	uint64_t number = channel->next++;
	struct task *task = &channel->tasks[number % SLOTS];
	uint32_t bytes = 512 * (1 + draw(channel, MOST_TASK / 512));
	size_t slot = number % SLOTS;

	task->kind = draw(channel, KINDS);
	task->ones = draw(channel, 2);
	task->lba = number;
	if (task->kind < ENCRYPT)
		bytes -= draw(channel, 500);
	task->from_count = 1 + draw(channel, ACCEL_SGES - 1);
	task->to_count = 1 + draw(channel, task->kind == COPY ? 3 : ACCEL_SGES - 1);
	accel_cut(&client, draw(channel, SOURCE_BYTES - MOST_TASK), bytes, task->from_count, task->from);
	accel_cut(&client, slot_of(channel, number) + draw(channel, 64), bytes, task->to_count, task->to);
	if (task->kind == COPY) {
		accel_copy(&channel->queue, number, task->from, task->from_count, task->to, task->to_count);
	} else if (task->kind < ENCRYPT) {
		bool copies = task->kind == COPY_CRC;

		accel_crc(&channel->queue, number, &channel->sign[slot], channel->psv[slot].number, task->ones,
			  task->from, task->from_count, copies ? task->to : task->from,
			  copies ? task->to_count : task->from_count, crc_of(channel, number));
	} else {
		struct accel_list from = {.sges = task->from, .count = task->from_count};
		struct accel_list to = {.sges = task->to, .count = task->to_count};
		struct accel_cipher cipher = cipher_of(task);

		accel_crypt(&channel->queue, number, &channel->crypto[slot], &cipher, from, to, bytes, bytes);
	}
}

/* Compares the bytes at @sges with @expected, and copies @expected into the model of the memory. */
static void take_result(const struct ibv_sge *sges, size_t count, const uint8_t *expected)
{
	model_scatter(&client, sges, count, expected);
	for (size_t i = 0; i < count; i++)
		assert_memory_equal((void *)(uintptr_t)sges[i].addr,
				    client.expected + (sges[i].addr - side_address(&client, 0)), sges[i].length);
}

static void finish(struct channel *channel, uint64_t number)
{
	struct task *task = &channel->tasks[number % SLOTS];
	uint8_t before[MOST_TASK], after[MOST_TASK];
	size_t bytes = model_gather(&client, task->from, task->from_count, before);

	assert_int_equal(number, channel->first);
	channel->first++;
	if (task->kind == CRC || task->kind == COPY_CRC) {
		struct ibv_sge place = crc_of(channel, number);
		uint32_t crc = htole32(~model_crc32c(task->ones ? UINT32_MAX : 0, before, bytes));

		take_result(&place, 1, (const uint8_t *)&crc);
	}
	if (task->kind == CRC)
		return;
	memcpy(after, before, bytes);
	for (size_t at = 0; task->kind >= ENCRYPT && at < bytes; at += 512)
		model_xts(task->kind == ENCRYPT, secret, sizeof(secret), task->lba + at / 512, after + at, before + at,
			  512);
	take_result(task->to, task->to_count, after);
}

/* Returns true if the ring has room for a UMR and a READ of the largest size. Any task fits in that. */
static bool has_room(const struct channel *channel)
{
	return channel->next - channel->first < SLOTS && channel->queue.available >= 2 * 7 + 5;
}

/* Runs @tasks tasks as SPDK's poller does: polls up to 64 CQEs, submits as many tasks as fit, rings one doorbell. */
static void run(struct channel *channel, uint64_t tasks)
{
	double end = seconds_now() + 20;
	uint64_t last = channel->next + tasks;

	while (channel->first < last) {
		struct accel_completion completion;

		for (int i = 0; i < 64 && accel_poll(channel->cq, &completion); i++) {
			assert_int_equal(completion.opcode, MLX5_CQE_REQ);
			finish(channel, completion.task);
			end = seconds_now() + 20;
		}
		for (uint32_t i = draw(channel, 40); i && channel->next < last && has_room(channel); i--)
			submit(channel);
		accel_ring(&channel->queue);
		sched_yield();
		assert_true(seconds_now() < end);
	}
}

static void open_program(void)
{
	caps = accel_query_caps(client.context);
	dek = accel_create_dek(client.pd, secret, sizeof(secret), NULL);
}

/* ---- cases ------------------------------------------------------------------------------------------------------ */

TEST(random_tasks)
{
	static struct channel channel;
	struct accel_cq cq;

	open_program();
	accel_cq_open(&cq, client.context, ACCEL_WRS);
	open_channel(&channel, &cq, 0);
	run(&channel, 2000);
	assert_true(channel.queue.producer > channel.queue.ring.sq.wqe_cnt && cq.consumer > cq.ring.cqe_cnt);
	side_compare(&client);
	close_channel(&channel);
	accel_cq_close(&cq);
	accel_destroy(&dek);
}

/* SPDK allows 256 WRs. Posts that many with one doorbell, and fills the ring, until the 16-bit WQE index has wrapped. */
TEST(one_doorbell_for_all)
{
	static struct channel channel;
	struct accel_cq cq;

	open_program();
	accel_cq_open(&cq, client.context, ACCEL_WRS);
	open_channel(&channel, &cq, 0);
	for (unsigned int round = 0; round < 64; round++) {
		struct ibv_sge from = side_sge(&client, round, 64);
		uint64_t wqes = round % 2 ? ACCEL_WRS : channel.queue.ring.sq.wqe_cnt, signalled = 0;

		/* Every eighth WQE and the last one have a CQE. */
		for (uint64_t i = 1; i <= wqes; i++) {
			struct ibv_sge to = side_sge(&client, slot_of(&channel, i % SLOTS) + i / SLOTS * 64, 64);
			bool has_cqe = i % 8 == 0 || i == wqes;

			assert_true(accel_put_rdma(&channel.queue, ACCEL_WRITE, 0, has_cqe ? i : 0, to.lkey, to.addr,
						   &from, 1));
			signalled += has_cqe;
			model_scatter(&client, &to, 1, client.expected + round);
		}
		assert_int_equal(accel_put_rdma(&channel.queue, ACCEL_WRITE, 0, 1, from.lkey, from.addr, &from, 1),
				 wqes != channel.queue.ring.sq.wqe_cnt);
		signalled += wqes != channel.queue.ring.sq.wqe_cnt;
		accel_ring(&channel.queue);
		while (signalled--)
			assert_int_equal(accel_next(&cq).opcode, MLX5_CQE_REQ);
		side_compare(&client);
	}
	assert_true(channel.queue.producer > UINT16_MAX);
	close_channel(&channel);
	accel_cq_close(&cq);
	accel_destroy(&dek);
}

/* A CQE names its queue pair. */
TEST(two_queues_on_one_cq)
{
	static struct accel_queue queues[2];
	struct accel_cq cq;

	accel_cq_open(&cq, client.context, ACCEL_WRS);
	for (size_t q = 0; q < 2; q++)
		accel_queue_open(&queues[q], &cq, client.pd);
	for (uint64_t round = 0; round < 60; round++) {
		uint64_t expected[2] = {1, 1};

		for (uint64_t task = 1; task <= 8; task++) {
			for (size_t q = 0; q < 2; q++) {
				struct ibv_sge from = side_sge(&client, round * 8 + q * 100, 100);
				struct ibv_sge to = side_sge(&client, SOURCE_BYTES + (q * 8 + task) * 100, 100);

				accel_copy(&queues[q], task, &from, 1, &to, 1);
				model_scatter(&client, &to, 1, client.expected + round * 8 + q * 100);
			}
		}
		accel_ring(&queues[round & 1]);
		accel_ring(&queues[!(round & 1)]);
		for (int i = 0; i < 16; i++) {
			struct accel_completion completion = accel_next(&cq);

			assert_int_equal(completion.opcode, MLX5_CQE_REQ);
			assert_int_equal(completion.task, expected[completion.queue == &queues[1]]++);
		}
		side_compare(&client);
	}
	for (size_t q = 0; q < 2; q++) {
		accel_queue_idle(&queues[q]);
		accel_queue_close(&queues[q]);
	}
	accel_cq_close(&cq);
}

static void *run_thread(void *argument)
{
	run(argument, 500);
	return NULL;
}

/*
 * Each thread has its own CQ and queue pair; PD, region and DEK are shared. A cmocka assertion that fails in another thread ends
 * the program.
 */
TEST(a_channel_per_thread)
{
	static struct channel channels[THREADS];
	struct accel_cq cqs[THREADS];
	pthread_t threads[THREADS];

	open_program();
	for (size_t i = 0; i < THREADS; i++) {
		accel_cq_open(&cqs[i], client.context, ACCEL_WRS);
		open_channel(&channels[i], &cqs[i], i);
	}
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run_thread, &channels[i]), 0);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	side_compare(&client);
	for (size_t i = 0; i < THREADS; i++) {
		close_channel(&channels[i]);
		accel_cq_close(&cqs[i]);
	}
	accel_destroy(&dek);
}

int main(void)
{
	program_memory(MEMORY_BYTES);
	return run_program();
}
