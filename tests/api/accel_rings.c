/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program as SPDK's accel module with its mlx5 driver is one: a queue pair of mlx5dv_create_qp(3) that commands connect with itself
 * (fl), a CQ whose consumer index nobody writes, keys, PSVs and DEKs by command; and from then on WQEs in the ring alone. A UMR with
 * entries and a BSF, without BSF_EN in its mask, makes a free key live; a READ or WRITE through it does the work: copies, CRC-32C,
 * AES-XTS. Expected bytes are those of a CRC bit by bit and of xts_model.h.
 */
#include "support/devx.h"

#include "../unit/xts_model.h"

enum { UMR = 0x25, SET_PSV = 0x20, WRITE = 0x08, READ = 0x10 };
enum { SILENT = 1 << 2, SIGNALLED = 2 << 2, SMALL_FENCE = 1 << 5, STRONG_ORDER = 3 << 5 }; /* fm_ce_se */
enum { MOST_PIECES = 8, SIG_ERR_CQE = 12 };
enum { CRC_AT = 60000, TO = 32768 };
/* mlx5-formats 1.11: of a transaction signature. */
enum { WIRE_INIT = 1 << 29, WIRE_CHECK_MAKE = 1 << 28, MEMORY_INIT = 1 << 25, MEMORY_CHECK_MAKE = 1 << 24 };
/* 1.12: encrypted on the way out of the key's memory; or in it. */
enum { ENCRYPT = 2, DECRYPT = 3 };

/* A free key without entries. SPDK flips the count of errors when one was told (3.5). */
struct key {
	struct mlx5dv_devx_obj *object;
	uint32_t number;
	bool odd;
};

struct piece {
	uint32_t offset, bytes;
};

static struct {
	struct ibv_qp *qp;
	struct ibv_cq_ex *cq;
	struct mlx5dv_qp ring;
	struct mlx5dv_cq cqes;
	uint32_t producer, consumer;
	struct mlx5dv_devx_obj *psv_object;
	uint32_t psv;
	struct key key[3]; /* of signatures; the last of ciphers */
} accel;

#define CIPHER_KEY (&accel.key[2])

/* ---- objects ------------------------------------------------------------------------------------------------------------ */

static void modify(uint16_t opcode, struct command *command)
{
	put32(command->in, 0, (uint32_t)opcode << 16);
	put32(command->in, 8, accel.qp->qp_num);
	expect_error(mlx5dv_devx_qp_modify(accel.qp, command->in, 272, command->out, 16), 0);
}

/* To itself: no address, and the same PSN both ways. */
static void connect_with_itself(void)
{
	struct command init = {0}, rtr = {0}, rts = {0};

	put32(init.in, 24, 0x1800);
	put32(init.in, 84, 1u << 16);
	put32(init.in, 168, 0xc000);
	modify(0x502, &init);
	put32(rtr.in, 32, 3u << 29 | 30u << 24);
	put32(rtr.in, 44, accel.qp->qp_num);
	put32(rtr.in, 48, 1u << 31);
	put32(rtr.in, 84, 1u << 16);
	put32(rtr.in, 168, 4u << 21);
	put32(rtr.in, 172, 12u << 24 | 0x4242);
	modify(0x503, &rtr);
	put32(rts.in, 56, 14u << 27);
	put32(rts.in, 136, 4u << 21 | 7u << 16 | 7u << 13);
	put32(rts.in, 144, 0x4242);
	modify(0x504, &rts);
}

static struct key create_key(bool encrypts)
{
	struct command command = command_of(0x200);
	struct key key = {0};

	put32(command.in, 16, 1u << 30 | 0xbc00 | 2u << 8);
	put32(command.in, 20, 0xffffffu << 8 | 0x42);
	put32(command.in, 28, 1u << 30 | pd_number(client.pd));
	put32(command.in, 48, 4);
	put32(command.in, 68, 128);
	put32(command.in, 76, encrypts ? 1u << 27 : 0);
	key.object = create(client.context, &command, 272);
	assert_non_null(key.object);
	key.number = created_number(&command) << 8 | 0x42;
	return key;
}

static void create_psv(void)
{
	struct command command = command_of(0x600);

	put32(command.in, 8, 1u << 28 | pd_number(client.pd));
	accel.psv_object = mlx5dv_devx_obj_create(client.context, command.in, 16, command.out, 32);
	assert_non_null(accel.psv_object);
	accel.psv = get32(command.out, 16) & 0xffffff;
}

/* Of 128 or 256 bits, with a key tag. */
static struct mlx5dv_devx_obj *create_dek(const uint8_t *key, unsigned int bytes, const uint8_t tag[8],
					  uint32_t *number)
{
	struct command command = command_of(0xa00);
	struct mlx5dv_devx_obj *dek;

	put32(command.in, 4, 0xc);
	put32(command.in, 24, (bytes == 64) << 8 | 0x83);
	put32(command.in, 28, pd_number(client.pd));
	memcpy(command.in + 80, key, bytes);
	memcpy(command.in + 80 + bytes, tag, 8);
	dek = create(client.context, &command, 272);
	assert_non_null(dek);
	*number = get32(command.out, 8);
	return dek;
}

static void open_accel(void)
{
	struct ibv_cq_init_attr_ex cq_attr = {.cqe = 63,
					      .wc_flags = IBV_WC_STANDARD_FLAGS,
					      .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					      .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN};
	struct mlx5dv_cq_init_attr dv_cq_attr = {0};
	struct mlx5dv_qp_init_attr dv_attr = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
					      .send_ops_flags = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE};
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_RC,
					   .pd = client.pd,
					   .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					   .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
							     IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_BIND_MW,
					   .cap = {.max_send_wr = 4, .max_send_sge = 6}};
	struct mlx5dv_obj object;

	memset(&accel, 0, sizeof(accel));
	accel.cq = mlx5dv_create_cq(client.context, &cq_attr, &dv_cq_attr);
	assert_non_null(accel.cq);
	attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(accel.cq);
	accel.qp = mlx5dv_create_qp(client.context, &attr, &dv_attr);
	assert_non_null(accel.qp);
	object = (struct mlx5dv_obj){.qp = {.in = accel.qp, .out = &accel.ring},
				     .cq = {.in = ibv_cq_ex_to_cq(accel.cq), .out = &accel.cqes}};
	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ), 0);
	connect_with_itself();
	for (size_t i = 0; i < 3; i++)
		accel.key[i] = create_key(&accel.key[i] == CIPHER_KEY);
	create_psv();
}

static void close_accel(void)
{
	for (size_t i = 0; i < 3; i++)
		expect_error(mlx5dv_devx_obj_destroy(accel.key[i].object), 0);
	expect_error(mlx5dv_devx_obj_destroy(accel.psv_object), 0);
	expect_error(ibv_destroy_qp(accel.qp), 0);
	expect_error(ibv_destroy_cq(ibv_cq_ex_to_cq(accel.cq)), 0);
}

/* ---- rings -------------------------------------------------------------------------------------------------------------- */

static uint8_t *block_at(uint32_t index)
{
	return (uint8_t *)accel.ring.sq.buf + index % accel.ring.sq.wqe_cnt * 64;
}

/* Puts @wqe, whose control segment gets what it needs, across the end of the ring where it is. Returns its index. */
static uint16_t put(uint8_t *wqe, uint32_t opcode, uint8_t flags, uint32_t immediate, size_t bytes)
{
	uint32_t index = accel.producer;

	put32(wqe, 0, (index & 0xffff) << 8 | opcode);
	put32(wqe, 4, accel.qp->qp_num << 8 | (uint32_t)(bytes / 16));
	put32(wqe, 8, flags);
	put32(wqe, 12, immediate);
	for (size_t at = 0; at < bytes; at += 16)
		memcpy(block_at(index + (uint32_t)(at / 64)) + at % 64, wqe + at, 16);
	accel.producer += (uint32_t)(bytes + 63) / 64;
	return (uint16_t)index;
}

static void ring(uint16_t last)
{
	uint64_t word;

	memcpy(&word, block_at(last), sizeof(word));
	__atomic_store_n(&accel.ring.dbrec[MLX5_SND_DBR], htobe32(accel.producer & 0xffff), __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)accel.ring.bf.reg = word;
}

/* The consumer index stays where it was. */
static struct mlx5_cqe64 next_cqe(void)
{
	const struct mlx5_cqe64 *cqe =
		(const struct mlx5_cqe64 *)((uint8_t *)accel.cqes.buf +
					    accel.consumer % accel.cqes.cqe_cnt * accel.cqes.cqe_size);
	bool owner = accel.consumer & accel.cqes.cqe_cnt;
	double end = seconds_now() + 20;

	for (;;) {
		uint8_t op_own = __atomic_load_n(&cqe->op_own, __ATOMIC_ACQUIRE);

		if (op_own >> 4 != MLX5_CQE_INVALID && (op_own & 1) == owner)
			break;
		assert_true(seconds_now() < end);
	}
	accel.consumer++;
	return *cqe;
}

/* Rings, and the next CQE is that of the last WQE, which is signalled. */
static void expect_done(uint16_t last)
{
	struct mlx5_cqe64 cqe;

	ring(last);
	cqe = next_cqe();
	assert_int_equal(cqe.op_own >> 4, MLX5_CQE_REQ);
	assert_int_equal(be16toh(cqe.wqe_counter), last);
}

/* READ from @offset of a key into @pieces, or WRITE of them; CRC_AT behind them, if @crc. */
static uint16_t put_rdma(uint32_t opcode, uint8_t flags, uint32_t rkey, uint64_t remote, const struct piece *pieces,
			 size_t count, bool crc)
{
	uint8_t wqe[32 + (MOST_PIECES + 1) * 16] = {0};
	size_t at = 32;

	put64(wqe, 16, remote);
	put32(wqe, 24, rkey);
	for (size_t i = 0; i < count; i++, at += 16)
		put_data(wqe, at, pieces[i].bytes, client.mr->lkey, side_address(&client, pieces[i].offset));
	if (crc) {
		put_data(wqe, at, 4, client.mr->lkey, side_address(&client, CRC_AT));
		at += 16;
	}
	return put(wqe, opcode, flags, 0, at);
}

static uint32_t total(const struct piece *pieces, size_t count)
{
	uint32_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += pieces[i].bytes;
	return bytes;
}

/* A key over @pieces, with a BSF of 64 bytes; the mask has no BSF_EN. */
static uint16_t put_umr(const struct key *key, const struct piece *pieces, size_t count, bool signature,
			const uint8_t bsf[64])
{
	size_t octowords = (count + 3) / 4 * 4;
	uint8_t wqe[128 + MOST_PIECES * 16 + 64] = {0};

	wqe[16] = 0x80; /* inline */
	wqe[21] = (uint8_t)octowords;
	wqe[23] = 4;
	put64(wqe, 24, 1 | 1 << 29 | (signature ? 1 << 9 : 0)); /* LEN, FREE, SIG_ERR */
	put32(wqe, 64 + 12, key->odd ? 1u << 26 : 0);
	put64(wqe, 64 + 24, total(pieces, count));
	for (size_t i = 0; i < count; i++)
		put_data(wqe, 128 + i * 16, pieces[i].bytes, client.mr->lkey, side_address(&client, pieces[i].offset));
	memcpy(wqe + 128 + octowords * 16, bsf, 64);
	return put(wqe, UMR, SILENT, key->number, 128 + octowords * 16 + 64);
}

/* A transaction signature by the PSV over @pieces but for @field bytes at their end; of the wire unless @flags speak of memory. */
static void put_signature(const struct key *key, const struct piece *pieces, size_t count, uint32_t field,
			  uint32_t flags, bool ones)
{
	bool memory = flags & (MEMORY_INIT | MEMORY_CHECK_MAKE);
	uint8_t bsf[64] = {1 << 6, 0xff};

	put32(bsf, 4, total(pieces, count) - field);
	put32(bsf, 16, flags);
	put32(bsf, memory ? 28 : 24, (ones ? 64u : 65u) << 24 | accel.psv);
	put_umr(key, pieces, count, true, bsf);
}

static void put_cipher(const struct piece *pieces, size_t count, uint8_t order, uint8_t selector, uint64_t block,
		       uint32_t dek, const uint8_t tag[8])
{
	uint8_t bsf[64] = {2 << 6 | 1, order};
	uint64_t tweak = htole64(block);

	put32(bsf, 4, total(pieces, count));
	bsf[8] = selector;
	memcpy(bsf + 16, &tweak, sizeof(tweak));
	put32(bsf, 32, dek);
	memcpy(bsf + 40, tag, 8);
	put_umr(CIPHER_KEY, pieces, count, false, bsf);
}

/* ---- the model ------------------------------------------------------------------------------------------------------------ */

/* CRC-32C bit by bit: reflected 0x82f63b78. The register, without the final inversion, which is what SPDK calls the CRC. */
static uint32_t crc32c(uint32_t crc, const struct piece *pieces, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (uint32_t at = 0; at < pieces[i].bytes; at++) {
			crc ^= client.expected[pieces[i].offset + at];
			for (int bit = 0; bit < 8; bit++)
				crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
		}
	return crc;
}

/* The adapter inverts it at the end, and it lies little-endian in memory. */
static void expect_crc(uint32_t crc)
{
	crc = htole32(~crc);
	memcpy(client.expected + CRC_AT, &crc, sizeof(crc));
}

/* The bytes of @from, one after the other, into @to. */
static void expect_copied(const struct piece *from, size_t count, const struct piece *to)
{
	uint32_t at = 0;

	for (size_t i = 0; i < count; at = at + from[i++].bytes)
		memmove(client.expected + to->offset + at, client.expected + from[i].offset, from[i].bytes);
}

static const struct piece scattered[] = {{100, 1}, {5000, 4095}, {9500, 700}, {300, 64}, {20000, 5000}};

/* ---- cases ---------------------------------------------------------------------------------------------------------------- */

/* Pieces to one place: a WRITE of them to itself. */
static void copies(void **state)
{
	struct piece to = {TO, 0};

	(void)state;
	open_accel();
	for (size_t count = 1; count <= 5; count++) {
		uint16_t last =
			put_rdma(WRITE, SIGNALLED, client.mr->rkey, side_address(&client, TO), scattered, count, false);

		expect_done(last);
		expect_copied(scattered, count, &to);
		side_compare(&client);
	}
	close_accel();
}

/* The same key anew each time, far around the ring; a copy with its CRC, and the CRC alone. */
static void crc_of_a_copy(void **state)
{
	(void)state;
	open_accel();
	for (size_t round = 0; round < 40; round++) {
		const size_t count = round % 5 + 1;
		const struct piece to = {TO + (uint32_t)round, total(scattered, count)};
		const bool ones = round & 1, in_place = round % 3 == 2;
		uint16_t last;

		put_signature(&accel.key[round & 1], scattered, count, 0, WIRE_INIT | WIRE_CHECK_MAKE, ones);
		last = put_rdma(READ, SIGNALLED | STRONG_ORDER, accel.key[round & 1].number, 0,
				in_place ? scattered : &to, in_place ? count : 1, true);
		expect_done(last);
		expect_crc(crc32c(ones ? UINT32_MAX : 0, scattered, count));
		if (!in_place)
			expect_copied(scattered, count, &to);
		side_compare(&client);
	}
	assert_true(accel.producer > 3 * accel.ring.sq.wqe_cnt);
	close_accel();
}

/* Over two keys: the first begins, the last makes it; or goes on with what SET_PSV says. */
static void crc_of_several_keys(void **state)
{
	const struct piece to[] = {{TO, total(scattered, 2)}, {TO + total(scattered, 2), total(scattered + 2, 3)}};
	uint8_t set[32] = {0};
	uint16_t last;

	(void)state;
	open_accel();
	put_signature(&accel.key[0], scattered, 2, 0, WIRE_INIT, true);
	put_signature(&accel.key[1], scattered + 2, 3, 0, WIRE_CHECK_MAKE, true);
	put_rdma(READ, SILENT | STRONG_ORDER, accel.key[0].number, 0, &to[0], 1, false);
	last = put_rdma(READ, SIGNALLED | STRONG_ORDER, accel.key[1].number, 0, &to[1], 1, true);
	expect_done(last);
	expect_crc(crc32c(UINT32_MAX, scattered, 5));
	expect_copied(scattered, 2, &to[0]);
	expect_copied(scattered + 2, 3, &to[1]);
	side_compare(&client);
	put32(set, 16, accel.psv);
	put32(set, 24, 0x12345678);
	put(set, SET_PSV, SILENT, 0, sizeof(set));
	put_signature(&accel.key[0], scattered, 2, 0, WIRE_CHECK_MAKE, true);
	last = put_rdma(READ, SIGNALLED | STRONG_ORDER, accel.key[0].number, 0, &to[0], 1, true);
	expect_done(last);
	expect_crc(crc32c(0x12345678, scattered, 2));
	/* The field alone, which is behind the data. */
	memset(client.memory + CRC_AT, 0, 4);
	last = put_rdma(READ, SIGNALLED, accel.key[0].number, total(scattered, 2), NULL, 0, true);
	expect_done(last);
	side_compare(&client);
	close_accel();
}

/* The CRC lies behind the data, in memory, and is checked on the way: a CQE tells of one that is wrong, and the READ completes. */
static void crc_is_checked(void)
{
	struct piece with_crc[2] = {{1000, 3000}, {CRC_AT, 4}}, to = {TO, 3000};
	struct key *key = &accel.key[0];

	open_accel();
	for (int round = 0; round < 4; round++) {
		const bool wrong = round & 1;
		struct mlx5_cqe64 cqe;
		uint8_t right[4], *bytes = (uint8_t *)&cqe;
		uint16_t last;

		expect_crc(crc32c(UINT32_MAX, with_crc, 1));
		memcpy(right, client.expected + CRC_AT, 4);
		client.expected[CRC_AT + 3] ^= wrong ? 0x10 : 0;
		memcpy(client.memory + CRC_AT, client.expected + CRC_AT, 4);
		put_signature(key, with_crc, 2, 4, MEMORY_INIT | MEMORY_CHECK_MAKE, true);
		last = put_rdma(READ, SIGNALLED | STRONG_ORDER, key->number, 0, &to, 1, false);
		ring(last);
		cqe = next_cqe();
		if (wrong) {
			/* mlx5-formats 3.5: a guard, of a transaction, in memory; up to the last byte of the field. */
			assert_int_equal(cqe.op_own >> 4, SIG_ERR_CQE);
			assert_memory_equal(bytes + 16, right, 4);
			assert_memory_equal(bytes + 20, client.expected + CRC_AT, 4);
			assert_int_equal(bytes[32] << 8 | bytes[33], 0x2000);
			assert_int_equal(bytes[34], 1);
			assert_int_equal(bytes[35], 1);
			assert_int_equal(get32(bytes, 36) >> 8, key->number >> 8);
			assert_int_equal(get32(bytes, 44), 3003);
			assert_int_equal(get32(bytes, 56) & 0xffffff, accel.qp->qp_num);
			key->odd = !key->odd;
			cqe = next_cqe();
		}
		assert_int_equal(cqe.op_own >> 4, MLX5_CQE_REQ);
		assert_int_equal(be16toh(cqe.wqe_counter), last);
		expect_copied(with_crc, 1, &to);
		side_compare(&client);
	}
	close_accel();
}

static void crc_is_checked_man(void **state)
{
	(void)state;
	if (in_profile("man", __func__))
		crc_is_checked();
}

static void crc_is_checked_connectx(void **state)
{
	(void)state;
	if (in_profile("connectx", __func__))
		crc_is_checked();
}

/* Blocks of each size, by keys of both sizes; there and back, the second time in place; the tweak is the number of the block. */
static void blocks_are_encrypted(void **state)
{
	static const uint32_t unit[] = {0, 512, 520, 4096, 4160};
	static const uint8_t tag[8] = "tenant 1";
	uint8_t key[64];

	(void)state;
	open_accel();
	for (uint8_t selector = 1; selector <= 4; selector++) {
		const unsigned int key_bytes = selector & 1 ? 32 : 64;
		/* Three blocks, of which none ends with a piece. */
		const struct piece from[] = {{16, unit[selector] + 100}, {20000, 2 * unit[selector] - 100}};
		const struct piece to = {TO, 3 * unit[selector]};
		uint64_t block = 0xfffffffe + (uint64_t)selector;
		struct mlx5dv_devx_obj *dek;
		uint8_t plain[3 * 4160];
		uint32_t number;

		for (unsigned int i = 0; i < key_bytes; i++)
			key[i] = (uint8_t)(i * 11 + selector);
		dek = create_dek(key, key_bytes, tag, &number);
		put_cipher(from, 2, ENCRYPT, selector, block, number, tag);
		expect_done(put_rdma(READ, SIGNALLED | SMALL_FENCE, CIPHER_KEY->number, 0, &to, 1, false));
		memcpy(plain, client.expected + from[0].offset, from[0].bytes);
		memcpy(plain + from[0].bytes, client.expected + from[1].offset, from[1].bytes);
		for (size_t i = 0; i < 3; i++) {
			uint64_t tweak[2] = {htole64(block + i)};

			model_unit(key, key_bytes, true, (const uint8_t *)tweak,
				   client.expected + TO + i * unit[selector], plain + i * unit[selector],
				   unit[selector]);
		}
		side_compare(&client);
		/* Of one block at a time, by the number that it has. */
		for (uint32_t i = 0; i < 3; i++) {
			const struct piece one = {TO + i * unit[selector], unit[selector]};

			put_cipher(&one, 1, DECRYPT, selector, block + i, number, tag);
			expect_done(put_rdma(READ, SIGNALLED | SMALL_FENCE, CIPHER_KEY->number, 0, &one, 1, false));
		}
		memcpy(client.expected + TO, plain, 3 * (size_t)unit[selector]);
		side_compare(&client);
		expect_error(mlx5dv_devx_obj_destroy(dek), 0);
	}
	close_accel();
}

/* A sequence of two: what the first READ brings is the data of the second key. One doorbell for all. */
static void encrypt_then_sign(void **state)
{
	static const uint8_t tag[8] = {0}, key[32] = {1, 2, 3};
	const struct piece to = {TO, 4096};
	struct mlx5dv_devx_obj *dek;
	uint32_t number;
	uint16_t last;

	(void)state;
	open_accel();
	dek = create_dek(key, sizeof(key), tag, &number);
	for (uint64_t block = 0; block < 20; block++) {
		const struct piece from = {(uint32_t)block * 100, 4096};
		uint64_t tweak[2] = {htole64(block)};

		put_cipher(&from, 1, ENCRYPT, 3, block, number, tag);
		put_rdma(READ, SILENT | SMALL_FENCE, CIPHER_KEY->number, 0, &to, 1, false);
		put_signature(&accel.key[0], &to, 1, 0, WIRE_INIT | WIRE_CHECK_MAKE, true);
		last = put_rdma(READ, SIGNALLED | STRONG_ORDER, accel.key[0].number, 0, &to, 1, true);
		expect_done(last);
		model_unit(key, sizeof(key), true, (const uint8_t *)tweak, client.expected + TO,
			   client.expected + from.offset, 4096);
		expect_crc(crc32c(UINT32_MAX, &to, 1));
		side_compare(&client);
	}
	expect_error(mlx5dv_devx_obj_destroy(dek), 0);
	close_accel();
}

/* Another key tag than that of the DEK; a block size that is not offered (5): the UMR fails, and what is behind it is flushed. */
static void refused(void **state)
{
	static const uint8_t tag[8] = {0}, other_tag[8] = {7}, key[32] = {1, 2, 3};
	const struct piece to = {TO, 512};

	(void)state;
	for (int which = 0; which < 2; which++) {
		struct mlx5dv_devx_obj *dek;
		struct mlx5_cqe64 cqe;
		uint32_t number;
		uint16_t umr;

		open_accel();
		dek = create_dek(key, sizeof(key), tag, &number);
		umr = (uint16_t)accel.producer;
		put_cipher(&to, 1, ENCRYPT, which ? 5 : 1, 0, number, which ? tag : other_tag);
		ring(put_rdma(READ, SIGNALLED | SMALL_FENCE, CIPHER_KEY->number, 0, &to, 1, false));
		cqe = next_cqe();
		assert_int_equal(cqe.op_own >> 4, MLX5_CQE_REQ_ERR);
		assert_int_equal(be16toh(cqe.wqe_counter), umr);
		assert_int_equal(((struct mlx5_err_cqe *)&cqe)->syndrome, MLX5_CQE_SYNDROME_MW_BIND_ERR);
		cqe = next_cqe();
		assert_int_equal(((struct mlx5_err_cqe *)&cqe)->syndrome, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
		expect_error(mlx5dv_devx_obj_destroy(dek), 0);
		close_accel();
	}
	side_compare(&client);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		API_CASE(copies),
		API_CASE(crc_of_a_copy),
		API_CASE(crc_of_several_keys),
		API_CASE(crc_is_checked_man),
		API_CASE(crc_is_checked_connectx),
		API_CASE(blocks_are_encrypted),
		API_CASE(encrypt_then_sign),
		API_CASE(refused),
	};

	return run_cases("accel_rings", cases);
}
