/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests errors and recovery as SPDK's accel module handles them: one task among others has a bad key, length or DEK. Tasks before
 * it succeed, the first error is reported although its WQE is unsignalled, later tasks are flushed, and there are no other CQEs.
 * SPDK then destroys the queue pair, creates another one on the same CQ, never stores its consumer index, and continues with
 * the same keys, PSVs and DEKs.
 */
#include "support/accel_model.h"
#include "support/accel_tasks.h"

enum { FROM = 512, TO = 32768, CRC_AT = 60000, BYTES = 1024, TASKS = 12, BAD_TASK = 5, UNKNOWN_KEY = 0x12345600 };

static struct accel_cq cq;
static struct accel_queue queue;
static struct accel_caps caps;
static struct accel_key sign_key, crypto_key, plain_key;
static struct accel_object psv, dek, tagged_dek;
static const uint8_t tag[8] = "tenant 1";
static const uint8_t secret[32] = "two keys of sixteen bytes, which";

static void open_accel(void)
{
	caps = accel_query_caps(client.context);
	accel_cq_open(&cq, client.context, ACCEL_WRS);
	accel_queue_open(&queue, &cq, client.pd);
	sign_key = accel_create_key(client.pd, ACCEL_KEY_SIGNATURE, &caps);
	crypto_key = accel_create_key(client.pd, ACCEL_KEY_CRYPTO, &caps);
	plain_key = accel_create_key(client.pd, ACCEL_KEY_PLAIN, &caps);
	psv = accel_create_psv(client.pd);
	dek = accel_create_dek(client.pd, secret, sizeof(secret), NULL);
	tagged_dek = accel_create_dek(client.pd, secret, sizeof(secret), tag);
}

static void close_accel(void)
{
	accel_queue_idle(&queue);
	accel_queue_close(&queue);
	accel_cq_close(&cq);
	accel_destroy(&tagged_dek);
	accel_destroy(&dek);
	accel_destroy(&psv);
	accel_destroy_key(&plain_key);
	accel_destroy_key(&crypto_key);
	accel_destroy_key(&sign_key);
}

static void recover(void)
{
	assert_int_equal(accel_queue_state(&queue), IBV_QPS_ERR);
	accel_queue_idle(&queue);
	accel_queue_close(&queue);
	accel_queue_open(&queue, &cq, client.pd);
}

static struct ibv_sge source(uint64_t task)
{
	return side_sge(&client, FROM + task * 8, BYTES);
}

static struct ibv_sge target(uint64_t task)
{
	return side_sge(&client, TO + task % TASKS * BYTES, BYTES);
}

static struct accel_cipher cipher(void)
{
	return (struct accel_cipher){.direction = ACCEL_ENCRYPT,
				     .selector = 1,
				     .lba = 55,
				     .dek = dek.number,
				     .big_endian = caps.multi_block_be};
}

static void put_copy(uint64_t task)
{
	struct ibv_sge from = source(task), to = target(task);

	accel_copy(&queue, task, &from, 1, &to, 1);
}

static void expect_copied(uint64_t task)
{
	memcpy(client.expected + TO + task % TASKS * BYTES, client.expected + FROM + task * 8, BYTES);
}

/* Runs one task of each kind and checks its result, to show that the keys are still usable. */
static void expect_all_works(void)
{
	struct ibv_sge from = source(1), to = target(2), crc = side_sge(&client, CRC_AT, 4);
	struct accel_cipher there = cipher();

	put_copy(1);
	accel_expect(&queue, 1);
	expect_copied(1);
	accel_crc(&queue, 2, &sign_key, psv.number, true, &from, 1, &to, 1, crc);
	accel_expect(&queue, 2);
	model_scatter(&client, &to, 1, client.expected + FROM + 8);
	model_expect_crc(&client, CRC_AT, model_crc32c(UINT32_MAX, client.expected + FROM + 8, BYTES));
	accel_crypt(&queue, 3, &crypto_key, &there, (struct accel_list){.sges = &from, .count = 1},
		    (struct accel_list){.sges = &to, .count = 1}, BYTES, BYTES);
	accel_expect(&queue, 3);
	for (uint32_t i = 0; i < BYTES / 512; i++)
		model_xts(true, secret, sizeof(secret), 55 + i, client.expected + TO + 2 * BYTES + i * 512,
			  client.expected + FROM + 8 + i * 512, 512);
	side_compare(&client);
}

/* ---- tasks that fail -------------------------------------------------------------------------------------------- */

static void bad_source(uint64_t task)
{
	struct ibv_sge from = source(task), to = target(task);

	from.lkey = UNKNOWN_KEY;
	accel_copy(&queue, task, &from, 1, &to, 1);
}

static void bad_target(uint64_t task)
{
	struct ibv_sge from = source(task), to = target(task);

	to.lkey = UNKNOWN_KEY;
	accel_copy(&queue, task, &from, 1, &to, 1);
}

/* Posts a task of two WRITEs; the first one, unsignalled, has a bad target. */
static void bad_quiet_target(uint64_t task)
{
	struct ibv_sge from[2] = {source(task), source(task + 1)}, to[2] = {target(task), target(task)};

	to[0].lkey = UNKNOWN_KEY;
	accel_copy(&queue, task, from, 2, to, 2);
}

static void target_too_long(uint64_t task)
{
	struct ibv_sge from = source(task), to = side_sge(&client, SIDE_BYTES - BYTES / 2, BYTES / 2);

	assert_true(accel_put_rdma(&queue, ACCEL_WRITE, 0, task, to.lkey, to.addr, &from, 1));
}

/* Posts a UMR of a key that does not exist. */
static void bad_key_of_umr(uint64_t task)
{
	struct accel_key none = {.kind = ACCEL_KEY_SIGNATURE, .number = UNKNOWN_KEY};
	struct ibv_sge from = source(task);

	accel_crc(&queue, task, &none, psv.number, true, &from, 1, &from, 1, side_sge(&client, CRC_AT, 4));
}

/* Posts a CRC task with a key that has an entry in a missing region: the READ through the key fails at the responder. */
static void bad_entry_of_crc(uint64_t task)
{
	struct ibv_sge from = source(task), to = target(task);

	from.lkey = UNKNOWN_KEY;
	accel_crc(&queue, task, &sign_key, psv.number, true, &from, 1, &to, 1, side_sge(&client, CRC_AT, 4));
}

static void bad_target_of_crc(uint64_t task)
{
	struct ibv_sge from = source(task), to = target(task);

	to.lkey = UNKNOWN_KEY;
	accel_crc(&queue, task, &sign_key, psv.number, true, &from, 1, &to, 1, side_sge(&client, CRC_AT, 4));
}

/* Posts a CRC task with good data and a bad key for the place of the CRC. */
static void bad_place_of_crc(uint64_t task)
{
	struct ibv_sge from = source(task), crc = side_sge(&client, CRC_AT, 4);

	crc.lkey = UNKNOWN_KEY;
	accel_crc(&queue, task, &sign_key, psv.number, true, &from, 1, &from, 1, crc);
}

static void bad_entry_of_cipher(uint64_t task)
{
	struct ibv_sge from = source(task), to = target(task);
	struct accel_cipher there = cipher();

	from.lkey = UNKNOWN_KEY;
	accel_crypt(&queue, task, &crypto_key, &there, (struct accel_list){.sges = &from, .count = 1},
		    (struct accel_list){.sges = &to, .count = 1}, BYTES, BYTES);
}

static void bad_target_of_cipher(uint64_t task)
{
	struct ibv_sge from = source(task), to = target(task);
	struct accel_cipher there = cipher();

	to.lkey = UNKNOWN_KEY;
	accel_crypt(&queue, task, &crypto_key, &there, (struct accel_list){.sges = &from, .count = 1},
		    (struct accel_list){.sges = &to, .count = 1}, BYTES, BYTES);
}

/* Posts a READ of more bytes than the key covers. */
static void key_too_short(uint64_t task)
{
	struct ibv_sge from = source(task), to = target(task);

	from.length -= 1;
	assert_true(accel_put_umr(&queue, 0, &plain_key, &from, 1, NULL));
	assert_true(accel_put_rdma(&queue, ACCEL_READ, ACCEL_SMALL_FENCE, task, plain_key.number, 0, &to, 1));
}

/*
 * Posts a task with a bad cipher: a key tag that the DEK does not have, a block size code that is not offered, or a missing DEK.
 */
static void put_bad_cipher(uint64_t task, const struct accel_cipher *bad)
{
	struct ibv_sge from = source(task), to = target(task);

	assert_true(accel_put_cipher(&queue, 0, &crypto_key, &from, 1, bad));
	assert_true(accel_put_rdma(&queue, ACCEL_READ, ACCEL_SMALL_FENCE, task, crypto_key.number, 0, &to, 1));
}

static void bad_tag(uint64_t task)
{
	static const uint8_t other[8] = {7};
	struct accel_cipher bad = cipher();

	bad.dek = tagged_dek.number;
	bad.tag = other;
	put_bad_cipher(task, &bad);
}

static void bad_block_size(uint64_t task)
{
	struct accel_cipher bad = cipher();

	bad.selector = 5;
	put_bad_cipher(task, &bad);
}

static void bad_dek(uint64_t task)
{
	struct accel_cipher bad = cipher();

	bad.dek += 1000;
	put_bad_cipher(task, &bad);
}

/* @quiet: the failing WQE is unsignalled, so the task's own CQE is a flush. */
static const struct failure {
	const char *name;
	void (*put)(uint64_t task);
	uint8_t syndrome;
	bool quiet;
} failures[] = {
	{"source of a copy", bad_source, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, false},
	{"target of a copy", bad_target, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, false},
	{"target of a quiet WRITE", bad_quiet_target, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, true},
	{"target too long", target_too_long, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, false},
	{"key of a UMR", bad_key_of_umr, MLX5_CQE_SYNDROME_MW_BIND_ERR, true},
	{"entry of a CRC", bad_entry_of_crc, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, false},
	{"target of a CRC", bad_target_of_crc, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, false},
	{"place of a CRC", bad_place_of_crc, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, false},
	{"entry of a cipher", bad_entry_of_cipher, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, false},
	{"target of a cipher", bad_target_of_cipher, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, false},
	{"key too short", key_too_short, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, false},
	{"tag of a DEK", bad_tag, MLX5_CQE_SYNDROME_MW_BIND_ERR, true},
	{"block size", bad_block_size, MLX5_CQE_SYNDROME_MW_BIND_ERR, true},
	{"number of a DEK", bad_dek, MLX5_CQE_SYNDROME_MW_BIND_ERR, true},
};

/* Posts tasks 1 to TASKS, BAD_TASK of which is @failure, and checks their CQEs. */
static void expect_failure(const struct failure *failure)
{
	struct accel_completion completion;

	for (uint64_t task = 1; task < BAD_TASK; task++) {
		completion = accel_next(&cq);
		assert_int_equal(completion.task, task);
		assert_int_equal(completion.opcode, MLX5_CQE_REQ);
		expect_copied(task);
	}
	completion = accel_next(&cq);
	assert_int_equal(completion.opcode, MLX5_CQE_REQ_ERR);
	assert_int_equal(completion.syndrome, failure->syndrome);
	assert_int_not_equal(((struct mlx5_err_cqe *)&completion.cqe)->vendor_err_synd, 0);
	assert_int_equal(completion.task, failure->quiet ? 0 : BAD_TASK);
	for (uint64_t task = failure->quiet ? BAD_TASK : BAD_TASK + 1; task <= TASKS; task++) {
		completion = accel_next(&cq);
		assert_int_equal(completion.task, task);
		assert_int_equal(completion.opcode, MLX5_CQE_REQ_ERR);
		assert_int_equal(completion.syndrome, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	}
}

/*
 * Checks the targets after a failure. That of the failed task is undefined and accepted as it is. A flushed task did all or
 * nothing: its WRITE may have been sent before the response of an earlier READ failed.
 */
static void take_uncertain_targets(void)
{
	size_t bad = TO + BAD_TASK * BYTES;

	memcpy(client.expected + bad, client.memory + bad, BYTES);
	memcpy(client.expected + CRC_AT, client.memory + CRC_AT, 4);
	for (uint64_t task = BAD_TASK + 1; task <= TASKS; task++) {
		size_t at = TO + task % TASKS * BYTES;

		if (memcmp(client.memory + at, client.expected + at, BYTES))
			expect_copied(task);
	}
	side_compare(&client);
}

/* Runs each failure four times on the same CQ, which wraps meanwhile. */
TEST(bad_tasks_are_recovered_from)
{
	open_accel();
	for (unsigned int round = 0; round < 4; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(failures); i++) {
			note("round %u, %s", round, failures[i].name);
			for (uint64_t task = 1; task <= TASKS; task++) {
				if (task == BAD_TASK)
					failures[i].put(task);
				else
					put_copy(task);
			}
			accel_ring(&queue);
			expect_failure(&failures[i]);
			take_uncertain_targets();
			recover();
			expect_all_works();
		}
	}
	assert_true(cq.consumer > cq.ring.cqe_cnt);
	close_accel();
}

/* Tasks rung after the queue pair has entered the error state are flushed; the signalled ones have a CQE. */
TEST(tasks_in_the_error_state)
{
	struct accel_completion completion;

	open_accel();
	bad_source(1);
	accel_ring(&queue);
	completion = accel_next(&cq);
	assert_int_equal(completion.syndrome, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
	assert_int_equal(accel_queue_state(&queue), IBV_QPS_ERR);
	for (uint64_t task = 2; task <= 40; task++) {
		struct ibv_sge from[2] = {source(task), source(task)}, to[2] = {target(task), target(task)};

		accel_copy(&queue, task, from, 2, to, 2);
		accel_ring(&queue);
		completion = accel_next(&cq);
		assert_int_equal(completion.task, task);
		assert_int_equal(completion.syndrome, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	}
	side_compare(&client);
	recover();
	expect_all_works();
	close_accel();
}

/* ---- errors in flight ------------------------------------------------------------------------------------------- */

/*
 * Polls the CQEs of tasks @first to @last: successes, then one error unless all succeeded, then flushes. Returns the number of
 * successes. The error of an unsignalled WQE of a task may precede the flush of that task.
 */
static uint64_t expect_success_then_flush(uint64_t first, uint64_t last, bool error)
{
	uint64_t task = first, succeeded = 0;
	bool failed = false;

	while (task <= last) {
		struct accel_completion completion = accel_next(&cq);

		if (completion.opcode == MLX5_CQE_REQ) {
			assert_false(failed);
			succeeded++;
		} else if (completion.syndrome != MLX5_CQE_SYNDROME_WR_FLUSH_ERR) {
			assert_true(error && !failed);
			failed = true;
		} else {
			assert_true(failed || !error);
			failed = true;
		}
		if (!completion.task)
			continue;
		assert_int_equal(completion.task, task);
		task++;
	}
	return succeeded;
}

/* Tests recovery as SPDK's own test does: spdk_mlx5_qp_set_error_state() while tasks are in flight. */
TEST(error_state_under_way)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	open_accel();
	for (unsigned int round = 0; round < 20; round++) {
		uint64_t done;

		for (uint64_t task = 1; task <= TASKS; task++)
			put_copy(task);
		accel_ring(&queue);
		expect_error(ibv_modify_qp(queue.verbs, &attr, IBV_QP_STATE), 0);
		done = expect_success_then_flush(1, TASKS, false);
		for (uint64_t task = 1; task <= done; task++) {
			struct ibv_sge to = target(task);

			assert_memory_equal((void *)(uintptr_t)to.addr, client.expected + FROM + task * 8, BYTES);
		}
		memcpy(client.expected + TO, client.memory + TO, (size_t)TASKS * BYTES);
		recover();
		expect_all_works();
	}
	close_accel();
}

/*
 * The application frees memory that tasks use: its region is deregistered after the doorbell. Every task completes, tasks not yet
 * begun with an error, and no byte of a source is lost.
 */
TEST(region_ends_under_way)
{
	open_accel();
	for (unsigned int round = 0; round < 40; round++) {
		struct ibv_mr *mr = side_register(&client, FROM, 2 * BYTES, SIDE_ACCESS);
		struct accel_cipher there = cipher();
		uint64_t done;

		note("round %u", round);
		for (uint64_t task = 1; task <= 2 * TASKS; task++) {
			struct ibv_sge from = source(task), to = target(task);
			struct accel_list from_list = {.sges = &from, .count = 1}, to_list = {.sges = &to, .count = 1};

			from.lkey = mr->lkey;
			if (task % 3 == 0)
				accel_copy(&queue, task, &from, 1, &to, 1);
			else if (task % 3 == 1)
				accel_crc(&queue, task, &sign_key, psv.number, true, &from, 1, &to, 1,
					  side_sge(&client, CRC_AT, 4));
			else
				accel_crypt(&queue, task, &crypto_key, &there, from_list, to_list, BYTES, BYTES);
			if (task % 4 == round % 4)
				accel_ring(&queue);
		}
		accel_ring(&queue);
		side_deregister(&client, mr);
		done = expect_success_then_flush(1, 2 * TASKS, true);
		memcpy(client.expected + TO, client.memory + TO, (size_t)TASKS * BYTES);
		memcpy(client.expected + CRC_AT, client.memory + CRC_AT, 4);
		if (done < 2 * TASKS)
			recover();
		expect_all_works();
		/* The destroyed key is refused like any other key that does not exist. */
		bad_source(1);
		accel_ring(&queue);
		assert_int_equal(accel_next(&cq).syndrome, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
		recover();
	}
	close_accel();
}

/* A key of the pool is destroyed while READs through it are in flight. */
TEST(key_ends_under_way)
{
	open_accel();
	for (unsigned int round = 0; round < 20; round++) {
		struct accel_key key = accel_create_key(client.pd, ACCEL_KEY_SIGNATURE, &caps);
		uint64_t done;

		note("round %u", round);
		for (uint64_t task = 1; task <= TASKS; task++) {
			struct ibv_sge from = source(task), to = target(task);

			accel_crc(&queue, task, &key, psv.number, true, &from, 1, &to, 1, side_sge(&client, CRC_AT, 4));
		}
		accel_ring(&queue);
		accel_destroy_key(&key);
		done = expect_success_then_flush(1, TASKS, true);
		memcpy(client.expected + TO, client.memory + TO, (size_t)TASKS * BYTES);
		memcpy(client.expected + CRC_AT, client.memory + CRC_AT, 4);
		if (done < TASKS)
			recover();
		expect_all_works();
	}
	close_accel();
}
