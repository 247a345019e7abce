/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests copies and CRC-32C as SPDK's accel module uses them. A copy is a WRITE. A CRC is a UMR that gives a free key a
 * transaction signature, and a READ through the key that appends the CRC to the data. The UMR does not have BSF_EN in its mask.
 * Expected CRCs come from a bitwise loop and the examples of RFC 3720.
 */
#include "support/accel_model.h"
#include "support/accel_tasks.h"

enum { FROM = 512, TO = 32768, CRC_AT = 60000, KEYS = 4, MOST_PIECES = 64, SIGNATURE_ERROR_CQE = 12 };

static struct accel_cq cq;
static struct accel_queue queue;
static struct accel_key keys[KEYS];
static struct accel_object psv;

static void open_accel(void)
{
	struct accel_caps caps = accel_query_caps(client.context);

	accel_cq_open(&cq, client.context, ACCEL_WRS);
	accel_queue_open(&queue, &cq, client.pd);
	for (size_t i = 0; i < KEYS; i++)
		keys[i] = accel_create_key(client.pd, ACCEL_KEY_SIGNATURE, &caps);
	psv = accel_create_psv(client.pd);
}

static void close_accel(void)
{
	accel_queue_idle(&queue);
	accel_queue_close(&queue);
	accel_cq_close(&cq);
	accel_destroy(&psv);
	for (size_t i = 0; i < KEYS; i++)
		accel_destroy_key(&keys[i]);
}

static struct ibv_sge crc_place(void)
{
	return side_sge(&client, CRC_AT, 4);
}

/*
 * Runs one CRC task over @count pieces and checks its results: with a copy to @to_count pieces at TO, or in place if @to_count is
 * 0.
 */
static void run_crc(uint64_t task, bool ones, const struct ibv_sge *from, size_t count, size_t to_count)
{
	struct ibv_sge to[MOST_PIECES];
	uint8_t bytes[SIDE_BYTES];
	size_t length = model_gather(&client, from, count, bytes);

	accel_cut(&client, TO + task % 64, (uint32_t)length, to_count, to);
	accel_crc(&queue, task, keys, psv.number, ones, from, count, to_count ? to : from, to_count ? to_count : count,
		  crc_place());
	accel_expect(&queue, task);
	model_scatter(&client, to, to_count, bytes);
	model_expect_crc(&client, CRC_AT, model_crc32c(ones ? UINT32_MAX : 0, bytes, length));
	side_compare(&client);
}

/* ---- copies ----------------------------------------------------------------------------------------------------- */

/* Copies up to 16 pieces to up to 5, all WRITEs of a task with one doorbell. */
TEST(copies)
{
	struct ibv_sge from[ACCEL_SGES], to[5];
	uint8_t bytes[SIDE_BYTES];
	uint64_t task = 0;

	open_accel();
	for (size_t from_count = 1; from_count <= ACCEL_SGES; from_count++) {
		for (size_t to_count = 1; to_count <= 5; to_count++) {
			uint32_t length = (uint32_t)(from_count * 613 + to_count);

			note("%zu pieces to %zu", from_count, to_count);
			accel_cut(&client, FROM + task, length, from_count, from);
			accel_cut(&client, TO + task, length, to_count, to);
			model_gather(&client, from, from_count, bytes);
			accel_copy(&queue, ++task, from, from_count, to, to_count);
			accel_expect(&queue, task);
			model_scatter(&client, to, to_count, bytes);
			side_compare(&client);
		}
	}
	close_accel();
}

/* ---- CRC-32C ---------------------------------------------------------------------------------------------------- */

/* Checks the examples of RFC 3720, B.4: data, and the CRC as stored in memory. */
TEST(crc_of_known_data)
{
	static const struct {
		uint8_t data[48];
		uint32_t length;
		uint8_t crc[4];
	} examples[] = {
		{{0}, 32, {0xaa, 0x36, 0x91, 0x8a}},
		{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		  0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		 32,
		 {0x43, 0xab, 0xa8, 0x62}},
		{{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
		  16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31},
		 32,
		 {0x4e, 0x79, 0xdd, 0x46}},
		{{31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16,
		  15, 14, 13, 12, 11, 10, 9,  8,  7,  6,  5,  4,  3,  2,  1,  0},
		 32,
		 {0x5c, 0xdb, 0x3f, 0x11}},
		{{0x01, 0xc0, 0, 0,    0, 0, 0, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 4, 0,
		  0,    0,    0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 2,    0, 0, 0, 0, 0, 0, 0},
		 48,
		 {0x56, 0x3a, 0x96, 0xd9}},
	};

	open_accel();
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		struct ibv_sge from = side_sge(&client, FROM, examples[i].length);

		memcpy(client.memory + FROM, examples[i].data, examples[i].length);
		memcpy(client.expected + FROM, examples[i].data, examples[i].length);
		accel_crc(&queue, i + 1, keys, psv.number, true, &from, 1, &from, 1, crc_place());
		accel_expect(&queue, i + 1);
		memcpy(client.expected + CRC_AT, examples[i].crc, 4);
		side_compare(&client);
	}
	close_accel();
}

/*
 * Runs tasks of one request with a key that is configured anew each time, several times around the ring: both seeds,
 * in place and to other pieces.
 */
TEST(crc_of_one_request)
{
	struct ibv_sge from[ACCEL_SGES];

	open_accel();
	for (uint64_t task = 1; task <= 400; task++) {
		size_t count = task % (ACCEL_SGES - 1) + 1;

		note("task %u, %zu pieces", (unsigned int)task, count);
		accel_cut(&client, FROM + task, (uint32_t)(task * 37 + count), count, from);
		run_crc(task, task & 1, from, count, task % 3 ? task * 7 % ACCEL_SGES : 0);
	}
	assert_true(queue.producer > queue.ring.sq.wqe_cnt);
	close_accel();
}

/*
 * Runs tasks of more pieces than a WQE holds: one PSV continues over several keys. With a multiple of 16 pieces a separate READ
 * fetches the CRC.
 */
TEST(crc_of_several_requests)
{
	static const size_t counts[] = {16, 17, 20, 31, 32, 33, 48, 64};
	struct ibv_sge from[MOST_PIECES];
	uint64_t task = 0;

	open_accel();
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		for (int way = 0; way < 4; way++) {
			note("%zu pieces, way %d", counts[i], way);
			accel_cut(&client, FROM, 20000 + (uint32_t)i, counts[i], from);
			run_crc(++task, way & 1, from, counts[i], way & 2 ? counts[i] : 0);
		}
	}
	close_accel();
}

/*
 * SPDK resets a PSV after a signature error. The signature continues from the value of SET_PSV unless the request begins a
 * signature.
 */
TEST(crc_from_a_value)
{
	struct accel_signature signature = {.psv = psv.number, .ends = true, .ones = true};
	struct ibv_sge from = side_sge(&client, FROM, 5000), pieces[2] = {from, crc_place()};

	open_accel();
	for (uint64_t task = 1; task <= 2; task++) {
		signature.psv = psv.number;
		signature.begins = task == 2;
		assert_true(accel_put_signature(&queue, &keys[0], &from, 1, &signature));
		assert_true(accel_put_set_psv(&queue, psv.number, 0x12345678));
		assert_true(accel_put_rdma(&queue, ACCEL_READ, ACCEL_STRONG_ORDER, task, keys[0].number, 0, pieces, 2));
		accel_expect(&queue, task);
		model_expect_crc(&client, CRC_AT,
				 model_crc32c(task == 2 ? UINT32_MAX : 0x12345678, client.expected + FROM, 5000));
		side_compare(&client);
	}
	close_accel();
}

/* The CRC follows the data in memory and is checked: a CQE reports a wrong CRC, and the READ completes. */
TEST(crc_is_checked)
{
	struct ibv_sge with_crc[2], to = side_sge(&client, TO, 3000);
	struct accel_signature signature = {.field = 4, .begins = true, .ends = true, .ones = true, .memory = true};
	struct accel_key *key = &keys[0];

	open_accel();
	signature.psv = psv.number;
	with_crc[0] = side_sge(&client, 1000, 3000);
	with_crc[1] = crc_place();
	for (uint64_t task = 1; task <= 4; task++) {
		const bool wrong = task & 1;
		struct accel_completion completion;
		const uint8_t *bytes = (const uint8_t *)&completion.cqe;
		uint8_t right[4];

		model_expect_crc(&client, CRC_AT, model_crc32c(UINT32_MAX, client.expected + 1000, 3000));
		memcpy(right, client.expected + CRC_AT, 4);
		client.expected[CRC_AT + 3] ^= wrong ? 0x10 : 0;
		memcpy(client.memory + CRC_AT, client.expected + CRC_AT, 4);
		assert_true(accel_put_signature(&queue, key, with_crc, 2, &signature));
		assert_true(accel_put_rdma(&queue, ACCEL_READ, ACCEL_STRONG_ORDER, task, key->number, 0, &to, 1));
		accel_ring(&queue);
		if (wrong) {
			/*
			 * mlx5-formats 3.5: a guard error of a transaction signature in memory; the offset is that of the last
			 * byte of the field.
			 */
			completion = accel_next(&cq);
			assert_int_equal(completion.opcode, SIGNATURE_ERROR_CQE);
			assert_memory_equal(bytes + 16, right, 4);
			assert_memory_equal(bytes + 20, client.expected + CRC_AT, 4);
			assert_int_equal(bytes[32] << 8 | bytes[33], 0x2000);
			assert_int_equal(bytes[34], 1);
			assert_int_equal(bytes[35], 1);
			assert_int_equal(get32(bytes, 36) >> 8, key->number >> 8);
			assert_int_equal(get32(bytes, 44), 3003);
			assert_int_equal(get32(bytes, 56) & 0xffffff, queue.verbs->qp_num);
			key->odd = !key->odd;
		}
		accel_expect(&queue, task);
		memcpy(client.expected + TO, client.expected + 1000, 3000);
		side_compare(&client);
	}
	close_accel();
}
