/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests AES-XTS as SPDK's accel module uses it: a UMR that gives a free key a crypto BSF, and a READ through the key. Covers
 * requests of one and of several blocks, pieces that do not end at a block boundary, in place and not, sequences with a CRC, and
 * a key that another queue pair uses for NVMe-oF data. OpenSSL computes the expected bytes. meson runs this program with both
 * byte orders of the tweak.
 */
#include "support/accel_model.h"
#include "support/accel_tasks.h"
#include "support/completion.h"

enum { FROM = 64, TO = 32768, CRC_AT = 60000, KEYS = 16, SELECTORS = 4, MOST_BYTES = 3 * 4160 + 4096 };

static const uint32_t unit[] = {0, 512, 520, 4096, 4160};
static const uint8_t tag[8] = "tenant 1";

static struct accel_cq cq;
static struct accel_queue queue;
static struct accel_caps caps;
static struct accel_key keys[KEYS], sign_key;
static struct accel_object psv;

/* A DEK and its key bytes. */
struct secret {
	uint8_t bytes[64];
	unsigned int length;
	bool tagged;
	struct accel_object dek;
};

static void open_accel(void)
{
	caps = accel_query_caps(client.context);
	accel_cq_open(&cq, client.context, ACCEL_WRS);
	accel_queue_open(&queue, &cq, client.pd);
	for (size_t i = 0; i < KEYS; i++)
		keys[i] = accel_create_key(client.pd, ACCEL_KEY_CRYPTO, &caps);
	sign_key = accel_create_key(client.pd, ACCEL_KEY_SIGNATURE, &caps);
	psv = accel_create_psv(client.pd);
}

static void close_accel(void)
{
	accel_queue_idle(&queue);
	accel_queue_close(&queue);
	accel_cq_close(&cq);
	accel_destroy(&psv);
	accel_destroy_key(&sign_key);
	for (size_t i = 0; i < KEYS; i++)
		accel_destroy_key(&keys[i]);
}

static struct secret open_secret(unsigned int length, bool tagged, uint8_t seed)
{
	struct secret secret = {.length = length, .tagged = tagged};

	for (unsigned int i = 0; i < length; i++)
		secret.bytes[i] = (uint8_t)(i * 11 + seed);
	secret.dek = accel_create_dek(client.pd, secret.bytes, length, tagged ? tag : NULL);
	return secret;
}

static struct accel_cipher cipher_of(const struct secret *secret, enum accel_direction direction, uint8_t selector,
				     uint64_t lba)
{
	return (struct accel_cipher){
		.direction = direction,
		.selector = selector,
		.lba = lba,
		.dek = secret->dek.number,
		.tag = secret->tagged ? tag : NULL,
		.big_endian = caps.multi_block_be,
	};
}

/* Applies @cipher to the @bytes of @from. */
static void expected_bytes(const struct secret *secret, const struct accel_cipher *cipher, const uint8_t *from,
			   uint8_t *to, uint32_t bytes)
{
	uint32_t size = unit[cipher->selector];

	for (uint32_t i = 0; i < bytes / size; i++)
		model_xts(cipher->direction == ACCEL_ENCRYPT, secret->bytes, secret->length, cipher->lba + i,
			  to + i * size, from + i * size, size);
}

static struct accel_list list_of(const struct ibv_sge *sges, size_t count)
{
	return (struct accel_list){.sges = sges, .count = count};
}

/* Runs a task in requests of @each bytes, and compares the memory with the model. */
static void run(uint64_t task, const struct secret *secret, const struct accel_cipher *cipher,
		const struct ibv_sge *from, size_t from_count, const struct ibv_sge *to, size_t to_count, uint32_t each)
{
	uint8_t before[MOST_BYTES], after[MOST_BYTES];
	uint32_t bytes = (uint32_t)model_gather(&client, from, from_count, before);

	accel_crypt(&queue, task, keys, cipher, list_of(from, from_count), list_of(to, to_count), bytes, each);
	accel_expect(&queue, task);
	expected_bytes(secret, cipher, before, after, bytes);
	model_scatter(&client, to, to_count, after);
	side_compare(&client);
}

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

/*
 * Encrypts three blocks of each size into other memory, by requests of one block or of all, and decrypts them in place. DEKs have
 * both sizes, with and without a tag. The tweak carries into its upper half.
 */
TEST(blocks_of_each_size)
{
	uint64_t task = 0;

	open_accel();
	for (uint8_t selector = 1; selector <= SELECTORS; selector++) {
		for (unsigned int kind = 0; kind < 4; kind++) {
			struct secret secret = open_secret(kind & 1 ? 64 : 32, kind & 2, selector);
			uint32_t bytes = 3 * unit[selector], each = kind & 1 ? bytes : unit[selector];
			uint64_t lba = 0xfffffffe + (uint64_t)kind;
			struct accel_cipher there = cipher_of(&secret, ACCEL_ENCRYPT, selector, lba);
			struct accel_cipher back = cipher_of(&secret, ACCEL_DECRYPT, selector, lba);
			struct ibv_sge from[2] = {side_sge(&client, FROM, unit[selector] + 100),
						  side_sge(&client, 20000, 2 * unit[selector] - 100)};
			struct ibv_sge to = side_sge(&client, TO, bytes);

			note("block size %u, kind %u", unit[selector], kind);
			run(++task, &secret, &there, from, 2, &to, 1, each);
			run(++task, &secret, &back, &to, 1, &to, 1, bytes - each + unit[selector]);
			accel_destroy(&secret.dek);
		}
	}
	close_accel();
}

/* Copies sixteen pieces to sixteen pieces of other sizes, in requests of eight blocks; the last request is shorter. */
TEST(pieces_across_blocks)
{
	struct ibv_sge from[ACCEL_SGES], to[ACCEL_SGES];
	struct secret secret;

	open_accel();
	secret = open_secret(32, false, 1);
	for (uint64_t task = 1; task <= 60; task++) {
		size_t from_count = task % ACCEL_SGES + 1, to_count = task * 7 % ACCEL_SGES + 1;
		uint32_t bytes = (uint32_t)(task % 24 + 1) * 512;
		struct accel_cipher cipher =
			cipher_of(&secret, task & 1 ? ACCEL_ENCRYPT : ACCEL_DECRYPT, 1, UINT32_MAX - 10 + task);

		note("task %u", (unsigned int)task);
		accel_cut(&client, FROM + task, bytes, from_count, from);
		accel_cut(&client, TO + task * 3, bytes, to_count, to);
		run(task, &secret, &cipher, from, from_count, to, to_count, task & 2 ? 8 * 512 : 2 * 512);
	}
	assert_true(queue.producer > queue.ring.sq.wqe_cnt / 2);
	accel_destroy(&secret.dek);
	close_accel();
}

/* ---- sequences -------------------------------------------------------------------------------------------------- */

/*
 * Encrypts, then computes the CRC of the ciphertext, with one doorbell: the second UMR describes memory that the first READ
 * writes.
 */
TEST(encrypt_then_crc)
{
	struct ibv_sge to = side_sge(&client, TO, 4096), crc = side_sge(&client, CRC_AT, 4);
	struct secret secret;

	open_accel();
	secret = open_secret(32, false, 2);
	for (uint64_t task = 1; task <= 100; task++) {
		struct ibv_sge from = side_sge(&client, FROM + task * 50, 4096);
		struct accel_cipher cipher = cipher_of(&secret, ACCEL_ENCRYPT, 3, task);
		struct accel_list source = list_of(&from, 1), target = list_of(&to, 1);

		accel_crypt(&queue, task, keys, &cipher, source, target, 4096, 4096);
		accel_crc(&queue, task + 1000, &sign_key, psv.number, true, &to, 1, &to, 1, crc);
		accel_expect(&queue, task);
		accel_expect(&queue, task + 1000);
		expected_bytes(&secret, &cipher, client.expected + FROM + task * 50, client.expected + TO, 4096);
		model_expect_crc(&client, CRC_AT, model_crc32c(UINT32_MAX, client.expected + TO, 4096));
		side_compare(&client);
	}
	accel_destroy(&secret.dek);
	close_accel();
}

/* Computes the CRC of the ciphertext with a copy. Decrypts the copy in place after that has completed. */
TEST(crc_then_decrypt)
{
	struct ibv_sge from = side_sge(&client, FROM, 4096), to = side_sge(&client, TO, 4096);
	struct accel_cipher cipher;
	struct secret secret;

	open_accel();
	secret = open_secret(64, true, 3);
	cipher = cipher_of(&secret, ACCEL_DECRYPT, 1, 77);
	accel_crc(&queue, 1, &sign_key, psv.number, false, &from, 1, &to, 1, side_sge(&client, CRC_AT, 4));
	accel_expect(&queue, 1);
	memcpy(client.expected + TO, client.expected + FROM, 4096);
	model_expect_crc(&client, CRC_AT, model_crc32c(0, client.expected + FROM, 4096));
	run(2, &secret, &cipher, &to, 1, &to, 1, 8 * 512);
	accel_destroy(&secret.dek);
	close_accel();
}

/* ---- keys for another queue pair -------------------------------------------------------------------------------- */

/* Performs the peer's RDMA as an NVMe-oF target does: the key begins at address 0. */
static void peer_rdma(enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t address, size_t offset, uint32_t bytes)
{
	struct ibv_sge sge = side_sge(&server, offset, bytes);
	struct ibv_send_wr wr = rdma_wr(9, opcode, &sge, address, rkey);

	post_send(&pair.server, &wr);
	expect_completion(&pair.server, 9, opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE);
}

/*
 * The initiator encrypts the data that it writes and decrypts the data that it reads. Its accel queue configures a key and waits
 * for the UMR; then the target, connected to another queue pair, reads from the key or writes to it.
 */
TEST(key_for_nvme_over_fabrics)
{
	struct ibv_sge sges[3];
	struct secret secret;
	uint8_t plain[4096], wire[4096];

	open_accel();
	secret = open_secret(32, false, 4);
	accel_cut(&client, FROM, sizeof(plain), 3, sges);
	for (uint64_t task = 1; task <= 10; task++) {
		struct accel_cipher cipher = cipher_of(&secret, ACCEL_ENCRYPT, 1, 1000 * task);

		assert_true(accel_put_cipher(&queue, task, &keys[task % KEYS], sges, 3, &cipher));
		accel_expect(&queue, task);
		peer_rdma(IBV_WR_RDMA_READ, keys[task % KEYS].number, 0, TO, sizeof(plain));
		model_gather(&client, sges, 3, plain);
		expected_bytes(&secret, &cipher, plain, wire, sizeof(plain));
		memcpy(server.expected + TO, wire, sizeof(wire));
		side_compare(&server);
		/* The target writes ciphertext through a key configured in the same way. */
		cipher = cipher_of(&secret, ACCEL_ENCRYPT, 1, 1000 * task);
		assert_true(accel_put_cipher(&queue, task, &keys[0], sges, 3, &cipher));
		accel_expect(&queue, task);
		memset(server.memory + TO, (int)task, sizeof(plain));
		memset(server.expected + TO, (int)task, sizeof(plain));
		peer_rdma(IBV_WR_RDMA_WRITE, keys[0].number, 0, TO, sizeof(plain));
		cipher.direction = ACCEL_DECRYPT;
		expected_bytes(&secret, &cipher, server.expected + TO, plain, sizeof(plain));
		model_scatter(&client, sges, 3, plain);
		side_compare(&client);
	}
	accel_destroy(&secret.dek);
	close_accel();
}

/* A target with small buffers moves the data of one key in parts, in any order: each block keeps its tweak. */
TEST(parts_of_a_key)
{
	enum { PARTS = 4, PART = 2 * 512 };
	static const size_t orders[][PARTS] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}};
	struct ibv_sge sges[5];
	struct accel_cipher cipher;
	struct secret secret;
	uint8_t plain[PARTS * PART], wire[PARTS * PART];

	open_accel();
	secret = open_secret(64, false, 5);
	accel_cut(&client, FROM, sizeof(plain), 5, sges);
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		size_t back = 8192 + i * 100;

		note("order %zu", i);
		cipher = cipher_of(&secret, ACCEL_ENCRYPT, 1, 300);
		assert_true(accel_put_cipher(&queue, 1, &keys[0], sges, 5, &cipher));
		accel_expect(&queue, 1);
		for (size_t part = 0; part < PARTS; part++)
			peer_rdma(IBV_WR_RDMA_READ, keys[0].number, orders[i][part] * PART, TO + orders[i][part] * PART,
				  PART);
		model_gather(&client, sges, 5, plain);
		expected_bytes(&secret, &cipher, plain, wire, sizeof(wire));
		memcpy(server.expected + TO, wire, sizeof(wire));
		side_compare(&server);
		for (size_t part = 0; part < PARTS; part++)
			peer_rdma(IBV_WR_RDMA_WRITE, keys[0].number, orders[i][part] * PART,
				  back + orders[i][part] * PART, PART);
		cipher.direction = ACCEL_DECRYPT;
		expected_bytes(&secret, &cipher, server.expected + back, plain, sizeof(plain));
		model_scatter(&client, sges, 5, plain);
		side_compare(&client);
	}
	accel_destroy(&secret.dek);
	close_accel();
}

/* Tests data within a capsule: the second piece of a SEND is the key. */
TEST(key_in_a_capsule)
{
	struct ibv_sge pieces[3], capsule[2] = {side_sge(&client, 40000, 64), {.length = 4096}};
	struct ibv_sge receive = side_sge(&server, TO, 64 + 4096);
	struct ibv_send_wr wr = {
		.wr_id = 9, .sg_list = capsule, .num_sge = 2, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct secret secret;

	open_accel();
	secret = open_secret(32, false, 6);
	accel_cut(&client, FROM, 4096, 3, pieces);
	for (uint64_t task = 1; task <= 10; task++) {
		struct accel_cipher cipher = cipher_of(&secret, ACCEL_ENCRYPT, task & 1 ? 1 : 3, 7 * task);
		uint8_t plain[4096];

		assert_true(accel_put_cipher(&queue, task, &keys[task], pieces, 3, &cipher));
		accel_expect(&queue, task);
		capsule[1].lkey = keys[task].number;
		post_receive(&pair.server, task, &receive, 1);
		post_send(&pair.client, &wr);
		expect_completion(&pair.client, 9, IBV_WC_SEND);
		expect_completion(&pair.server, task, IBV_WC_RECV);
		model_gather(&client, pieces, 3, plain);
		memcpy(server.expected + TO, client.expected + 40000, 64);
		expected_bytes(&secret, &cipher, plain, server.expected + TO + 64, 4096);
		side_compare(&server);
	}
	accel_destroy(&secret.dek);
	close_accel();
}

/* Tests unencrypted data: one key over several pieces, from a separate pool. */
TEST(plain_key_for_nvme_over_fabrics)
{
	struct ibv_sge sges[ACCEL_SGES];
	struct accel_key key;
	uint8_t bytes[4096];

	open_accel();
	key = accel_create_key(client.pd, ACCEL_KEY_PLAIN, &caps);
	for (size_t count = 1; count <= ACCEL_SGES; count++) {
		accel_cut(&client, FROM + count, sizeof(bytes), count, sges);
		assert_true(accel_put_umr(&queue, count, &key, sges, count, NULL));
		accel_expect(&queue, count);
		peer_rdma(IBV_WR_RDMA_READ, key.number, 0, TO, sizeof(bytes));
		model_gather(&client, sges, count, bytes);
		memcpy(server.expected + TO, bytes, sizeof(bytes));
		side_compare(&server);
		peer_rdma(IBV_WR_RDMA_WRITE, key.number, 0, FROM + count * 5000 % 16384, sizeof(bytes));
		model_scatter(&client, sges, count, server.expected + FROM + count * 5000 % 16384);
		side_compare(&client);
	}
	accel_destroy_key(&key);
	close_accel();
}
