/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WQEs as an accelerator library writes them to a queue pair connected to itself: a UMR with a BSF but without BSF_EN in
 * its mask, then a READ through the key. CRC-32C over the data of one key and of several (mlx5-formats 1.11, transaction
 * signature), AES-XTS and then CRC-32C, and DUMP. Expected values: the vectors of mlx5-formats 5.3, a bitwise CRC and
 * the model of xts_model.h.
 */
#include "test_case.h"

#include "block/cipher.h"
#include "mkey/commands.h"
#include "transport/control/commands.h"
#include "../support/device_fixture.h"
#include "../support/xts_model.h"

enum { BLOCKS = 64, KEYS = 3, MOST_KLMS = 4, FROM = 4096, TO = 32768, CRC_AT = 60000, DUMP = 0x23 };

/* mlx5-formats 1.8 and 1.11. */
enum {
	MASK_LEN = 1,
	MASK_SIG_ERR = 1 << 9,
	MASK_LOCAL_WRITE = 1 << 18,
	MASK_REMOTE_READ = 1 << 19,
	MASK_FREE = 1 << 29
};
enum { WIRE_MAKE = 1 << 28, WIRE_INITIAL = 1 << 29, MEMORY_CHECK = 1 << 24, MEMORY_INITIAL = 1 << 25 };
enum { CRC32C_ONES = 64, CRC32C_ZERO = 65 };

struct umr_wqe {
	struct mlx5_wqe_ctrl_seg ctrl;
	struct mlx5_wqe_umr_ctrl_seg umr;
	struct mlx5_wqe_mkey_context_seg context;
	struct mlx5_wqe_data_seg klm[MOST_KLMS];
	uint8_t bsf[64];
};

static struct raw_cq cq;
static struct raw_qp end;
static struct mkey *keys[KEYS];
static uint32_t psv;

static int begin(void **state)
{
	const struct ibv_qp_attr options = {.timeout = 14, .rnr_retry = 7, .retry_cnt = 7, .min_rnr_timer = 1};
	const struct hca_mkey_attr attr = {.max_entries = MOST_KLMS, .bsf_octowords = 4};

	(void)state;
	device_open(&device);
	raw_cq_make(&device, &cq, 256);
	raw_qp_make(&device, &end, IBV_QPT_RC, &cq, BLOCKS);
	raw_qp_connect(&device, &end, end.qp->number, &options);
	for (int i = 0; i < KEYS; i++)
		assert_int_equal(hca_mkey_create(device.pd, &attr, &keys[i]), 0);
	assert_int_equal(hca_psv_create(device.pd, &psv), 0);
	for (size_t i = 0; i < sizeof(device.memory); i++)
		device.memory[i] = (uint8_t)(i * 7 + i / 251);
	return 0;
}

static int finish(void **state)
{
	(void)state;
	raw_qp_destroy(&end);
	raw_cq_destroy(&cq);
	for (int i = 0; i < KEYS; i++)
		assert_int_equal(hca_mkey_destroy(keys[i]), 0);
	assert_int_equal(hca_psv_destroy(device.hca, psv), 0);
	device_close(&device);
	return 0;
}

static void put32(uint8_t *to, uint32_t value)
{
	value = htobe32(value);
	memcpy(to, &value, sizeof(value));
}

/* Computes CRC-32C bit by bit: reflected 0x82f63b78. Returns the register, without the final inversion. */
static uint32_t crc32c(uint32_t crc, const uint8_t *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		crc ^= data[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
	}
	return crc;
}

static uint32_t crc_at(size_t offset)
{
	uint32_t value;

	memcpy(&value, device.memory + offset, sizeof(value));
	return le32toh(value);
}

/*
 * Returns a UMR for a key over @bytes of memory at @from, with length @length, as the library sends it: without BSF_EN
 * in the mask.
 */
static struct umr_wqe umr_over(int key, uint32_t from, uint32_t bytes)
{
	struct umr_wqe wqe = {
		.ctrl = ctrl_segment(&end, MLX5_OPCODE_UMR, sizeof(wqe) / 16),
		.umr = {.flags = MLX5_WQE_UMR_CTRL_FLAG_INLINE,
			.klm_octowords = htobe16(MOST_KLMS),
			.bsf_octowords = htobe16(4),
			.mkey_mask =
				htobe64(MASK_LEN | MASK_SIG_ERR | MASK_LOCAL_WRITE | MASK_REMOTE_READ | MASK_FREE)},
		.context = {.access_flags = 0x1c, .len = htobe64(bytes)},
		.klm = {data_segment(&device, from, bytes)},
	};

	wqe.ctrl.imm = htobe32(mkey_number(keys[key]));
	wqe.ctrl.fm_ce_se = 0;
	return wqe;
}

static void put_umr(const struct umr_wqe *wqe)
{
	put_wqe(&end, wqe, sizeof(*wqe) / 16, 4);
}

/* Adds a BSF of 32 bytes for the transaction signature of one domain. */
static void sign(struct umr_wqe *wqe, bool wire, uint8_t format, uint32_t flags, uint32_t data_bytes)
{
	wqe->bsf[0] = 1 << 6;
	wqe->bsf[1] = 0xff;
	put32(wqe->bsf + 4, data_bytes);
	put32(wqe->bsf + 16, flags);
	put32(wqe->bsf + (wire ? 24 : 28), (uint32_t)format << 24 | psv);
}

static void configure_crc(int key, uint32_t from, uint32_t bytes, uint8_t format, uint32_t flags)
{
	struct umr_wqe wqe = umr_over(key, from, bytes);

	sign(&wqe, true, format, flags, bytes);
	put_umr(&wqe);
}

/* Posts a READ of [@offset, @offset + @length) of the key to TO, and of @crc_bytes after it to CRC_AT; two blocks. */
static void put_read(int key, uint32_t offset, uint32_t length, uint32_t to, uint32_t crc_bytes)
{
	struct {
		struct mlx5_wqe_ctrl_seg ctrl;
		struct mlx5_wqe_raddr_seg remote;
		struct mlx5_wqe_data_seg data[2];
	} wqe = {
		.ctrl = ctrl_segment(&end, MLX5_OPCODE_RDMA_READ, 2 + !!length + !!crc_bytes),
		.remote = {.raddr = htobe64(offset), .rkey = htobe32(mkey_number(keys[key]))},
	};
	int count = 0;

	if (length)
		wqe.data[count++] = data_segment(&device, to, length);
	if (crc_bytes)
		wqe.data[count++] = data_segment(&device, CRC_AT, crc_bytes);
	put_wqe(&end, &wqe, (uint32_t)(2 + count), 1);
}

static void expect_success(void)
{
	uint16_t index = (uint16_t)(end.posted - 1);

	ring(&end);
	expect_cqe(&cq, index, 0);
	assert_null(raw_cq_poll(&cq));
}

TEST(one_key)
{
	/* mlx5-formats 5.3: 512 x A5, bytes in memory 7D 15 E5 7B and 42 07 E6 B4. */
	memset(device.memory + FROM, 0xa5, 512);
	configure_crc(0, FROM, 512, CRC32C_ONES, WIRE_MAKE | WIRE_INITIAL);
	put_read(0, 0, 512, TO, 4);
	expect_success();
	assert_memory_equal(device.memory + CRC_AT, ((uint8_t[]){0x7d, 0x15, 0xe5, 0x7b}), 4);
	assert_memory_equal(device.memory + TO, device.memory + FROM, 512);
	configure_crc(0, FROM, 512, CRC32C_ZERO, WIRE_MAKE | WIRE_INITIAL);
	put_read(0, 0, 512, TO, 4);
	expect_success();
	assert_memory_equal(device.memory + CRC_AT, ((uint8_t[]){0x42, 0x07, 0xe6, 0xb4}), 4);
}

/* Larger than any block, and of odd length; in place, which leaves the data unchanged. */
TEST(odd_lengths)
{
	static const uint32_t lengths[] = {1, 3, 255, 256, 257, 4159, 4160, 4161, 9001, 20001};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint32_t expected = ~crc32c(UINT32_MAX, device.memory + FROM, lengths[i]);

		configure_crc(0, FROM, lengths[i], CRC32C_ONES, WIRE_MAKE | WIRE_INITIAL);
		put_read(0, 0, lengths[i], i & 1 ? FROM : TO, 4);
		expect_success();
		assert_int_equal(crc_at(CRC_AT), expected);
		assert_int_equal(~crc32c(UINT32_MAX, device.memory + (i & 1 ? FROM : TO), lengths[i]), expected);
	}
}

/* The first key begins with the seed, the last gives the CRC of all; or a separate READ does, after the last. */
TEST(several_keys)
{
	static const uint32_t length[KEYS] = {5000, 777, 4096};
	uint32_t all = 5000 + 777 + 4096, at;

	for (int alone = 0; alone < 2; alone++) {
		uint32_t expected = ~crc32c(UINT32_MAX, device.memory + FROM, all);

		memset(device.memory + CRC_AT, 0, 4);
		at = 0;
		for (int i = 0; i < KEYS; at += length[i++])
			configure_crc(i, FROM + at, length[i], CRC32C_ONES,
				      (i ? 0 : WIRE_INITIAL) | (i + 1 == KEYS ? WIRE_MAKE : 0));
		at = 0;
		for (int i = 0; i < KEYS; at += length[i++]) {
			put_read(i, 0, length[i], TO + at, i + 1 == KEYS && !alone ? 4 : 0);
			expect_success();
		}
		/* Data that is read again does not change the CRC. */
		put_read(KEYS - 1, 0, length[KEYS - 1], TO, 0);
		expect_success();
		if (alone) {
			put_read(KEYS - 1, length[KEYS - 1], 0, 0, 4);
			expect_success();
		}
		assert_int_equal(crc_at(CRC_AT), expected);
	}
}

/* SET_PSV: the unfinished CRC, in the upper half of the transient signature (mlx5-formats 1.13). */
TEST(begins_with_the_given_value)
{
	struct {
		struct mlx5_wqe_ctrl_seg ctrl;
		uint8_t segment[16];
	} wqe = {.ctrl = ctrl_segment(&end, MLX5_OPCODE_SET_PSV, 2)};

	put32(wqe.segment, psv);
	put32(wqe.segment + 8, 0x12345678);
	wqe.ctrl.fm_ce_se = 0;
	put_wqe(&end, &wqe, 2, 1);
	configure_crc(0, FROM, 1000, CRC32C_ONES, WIRE_MAKE);
	put_read(0, 0, 1000, TO, 4);
	expect_success();
	assert_int_equal(crc_at(CRC_AT), ~crc32c(0x12345678, device.memory + FROM, 1000));
}

/* The CRC follows the data in memory, and is checked and stripped. */
TEST(checked_in_memory)
{
	for (int wrong = 0; wrong < 2; wrong++) {
		struct umr_wqe wqe = umr_over(0, FROM, 1004);
		uint32_t crc = htole32(~crc32c(UINT32_MAX, device.memory + FROM, 1000) ^ (uint32_t)wrong);
		struct mlx5dv_mkey_err error;

		memcpy(device.memory + FROM + 1000, &crc, sizeof(crc));
		sign(&wqe, false, CRC32C_ONES, MEMORY_CHECK | MEMORY_INITIAL, 1000);
		put_umr(&wqe);
		put_read(0, 0, 1000, TO, 0);
		expect_success();
		hca_mkey_take_error(keys[0], &error);
		assert_int_equal(error.err_type, wrong ? MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD : MLX5DV_MKEY_NO_ERR);
		assert_memory_equal(device.memory + TO, device.memory + FROM, 1000);
	}
}

/* Encrypted from memory to the wire (order 2), then signed: the CRC is that of the ciphertext. */
TEST(encrypt_then_sign)
{
	enum { UNIT = 512, UNITS = 4, BYTES = UNIT * UNITS, CIPHERTEXT = 48000 };
	struct dek_attr attr = {.pd = hca_pd_number(device.pd), .key_bytes = 32};
	uint8_t expected[BYTES];
	struct umr_wqe wqe;
	uint32_t dek;

	for (int i = 0; i < 32; i++)
		attr.key[i] = (uint8_t)(i * 11 + 3);
	assert_int_equal(dek_create(device.hca, &attr, &dek), 0);
	for (int i = 0; i < UNITS; i++) {
		const uint8_t tweak[BLOCK] = {(uint8_t)(9 + i)};

		model_unit(attr.key, 32, true, tweak, expected + i * UNIT, device.memory + FROM + i * UNIT, UNIT);
	}
	wqe = umr_over(0, FROM, BYTES);
	wqe.bsf[0] = 2 << 6 | 1;
	wqe.bsf[1] = 2;
	put32(wqe.bsf + 4, BYTES);
	wqe.bsf[8] = 1;
	/* The number of the first block, little-endian. */
	wqe.bsf[16] = 9;
	put32(wqe.bsf + 32, dek);
	put_umr(&wqe);
	put_read(0, 0, BYTES, CIPHERTEXT, 0);
	expect_success();
	assert_memory_equal(device.memory + CIPHERTEXT, expected, BYTES);
	configure_crc(1, CIPHERTEXT, BYTES, CRC32C_ONES, WIRE_MAKE | WIRE_INITIAL);
	put_read(1, 0, BYTES, TO, 4);
	expect_success();
	assert_memory_equal(device.memory + TO, expected, BYTES);
	assert_int_equal(crc_at(CRC_AT), ~crc32c(UINT32_MAX, expected, BYTES));
	assert_int_equal(dek_destroy(device.hca, dek), 0);
}

/* The responder refuses it; the QP is its own peer, so its own request fails too. */
TEST(beyond_the_field)
{
	configure_crc(0, FROM, 512, CRC32C_ONES, WIRE_MAKE | WIRE_INITIAL);
	put_read(0, 0, 512, TO, 5);
	ring(&end);
	expect_cqe(&cq, (uint16_t)(end.posted - 1), MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
}

/* ---- DUMP --------------------------------------------------------------------------------------------------------- */

static void put_dump(uint32_t lkey, uint32_t bytes)
{
	struct {
		struct mlx5_wqe_ctrl_seg ctrl;
		struct mlx5_wqe_data_seg data;
	} wqe = {ctrl_segment(&end, DUMP, 2), data_segment(&device, FROM, bytes)};

	if (lkey)
		wqe.data.lkey = htobe32(lkey);
	put_wqe(&end, &wqe, 2, 1);
}

TEST(dump_reads)
{
	static uint8_t before[sizeof(device.memory)];

	memcpy(before, device.memory, sizeof(before));
	put_dump(0, 10000);
	expect_success();
	put_dump(0, 0);
	expect_success();
	assert_memory_equal(device.memory, before, sizeof(before));
	put_dump(0xdead00, 1);
	ring(&end);
	expect_cqe(&cq, (uint16_t)(end.posted - 1), MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
}

TEST(dump_beyond_a_region)
{
	put_dump(0, (uint32_t)sizeof(device.memory));
	ring(&end);
	expect_cqe(&cq, (uint16_t)(end.posted - 1), MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
}

int main(void)
{
	return run_cases(.setup = begin, .teardown = finish);
}
