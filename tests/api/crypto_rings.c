/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests ciphers through rings that the program fills itself: queue pairs and CQs made by command in a umem, and verbs objects
 * whose rings mlx5dv_init_obj(3) returns. Keys and DEKs are made by command, and UMRs in the ring configure them. Covers both key
 * sizes, all data units, ciphertext on the wire or in memory, and every operation through the key at either end. Expected bytes
 * come from the AES-XTS of tests/unit/support/xts_model.h.
 */

#include "support/devx.h"
#include "support/rings.h"

#include "../unit/support/xts_model.h"

enum { UMR = 0x25, WRITE = 0x08, SEND = 0x0a, READ = 0x10, SIGNALLED = 8 };
enum { WIRE_ENCRYPTED = 2, MEMORY_ENCRYPTED = 3 };
enum { UNITS = 3, LAST = 33, PLAIN_AT = 1024, KEY_AT = 20000 };
/* Offsets in the UMR of configure() and in its BSF (mlx5-formats 1.7, 1.12). */
enum { UMR_BYTES = 256, BSF_AT = 192, ORDER_AT = 1, RAW_SIZE_AT = 4, SELECTOR_AT = 8, TWEAK_AT = 16, DEK_AT = 32 };

static const struct {
	uint8_t selector;
	uint16_t bytes;
} units[] = {{1, 512}, {2, 520}, {6, 4048}, {3, 4096}, {4, 4160}};

/* Operations that send data from the key ("out") or into it. The server has the key; the peer has plain memory. */
static const struct {
	uint8_t opcode;
	bool out, of_server;
} operations[] = {{WRITE, true, true},   {SEND, true, true},   {READ, true, false},
		  {WRITE, false, false}, {SEND, false, false}, {READ, false, true}};

/* A queue pair and its CQ; `own` or `rings`. */
struct line {
	struct own *own;
	struct rings *rings;
};

static struct {
	struct line client, server;
	uint8_t key[64], tweak[16];
	uint32_t key_bytes, dek_number, number, qpn;
	struct mlx5dv_devx_obj *dek, *object;
} test;

/* ---- rings ------------------------------------------------------------------------------------------------------ */

static void post(struct line *line, uint8_t opcode, uint8_t *wqe, uint32_t bytes)
{
	put32(wqe, 8, SIGNALLED);
	if (line->own) {
		own_post(line->own, opcode, wqe, bytes);
		return;
	}
	put32(wqe, 0, (line->rings->producer & 0xffff) << 8 | opcode);
	put32(wqe, 4, line->rings->endpoint->qp->qp_num << 8 | bytes / 16);
	rings_put(line->rings, wqe, bytes / 16);
	rings_ring(line->rings, (bytes + 63) / 64, RING_DOORBELL);
}

static void receive(struct line *line, uint64_t address, uint32_t length, uint32_t lkey)
{
	if (line->own) {
		own_receive(line->own, address, length);
		/* The lkey of the side's own memory, unless the key receives. */
		put32(line->own->memory + OWN_QUEUES + (line->own->receives - 1) % OWN_RECEIVES * 16, 4, lkey);
		return;
	}
	rings_receive(line->rings, address, length, lkey);
}

static void expect_cqe(struct line *line, uint8_t opcode)
{
	struct mlx5_cqe64 cqe = line->own ? own_next_cqe(line->own) : rings_next_cqe(line->rings);

	if (cqe.op_own >> 4 != opcode)
		fail_msg("CQE with opcode %u, syndrome %#x, rule %u, not opcode %u", cqe.op_own >> 4,
			 ((struct mlx5_err_cqe *)&cqe)->syndrome, ((struct mlx5_err_cqe *)&cqe)->vendor_err_synd,
			 opcode);
}

/* ---- keys ------------------------------------------------------------------------------------------------------- */

static void make_dek(uint32_t key_bytes)
{
	struct command command = command_of(0xa00);

	test.key_bytes = key_bytes;
	for (size_t i = 0; i < sizeof(test.key); i++)
		test.key[i] = (uint8_t)(0x31 + 7 * i);
	/* The tweak carries from unit to unit. */
	memcpy(test.tweak, "\xfe\xff\xff\xff\xff\xff\xff\xff\x12\x34", 10);
	put32(command.in, 4, 0xc);
	put32(command.in, 24, (key_bytes == 64) << 8 | 3);
	put32(command.in, 28, pd_number(server.pd));
	memcpy(command.in + 80, test.key, key_bytes);
	test.dek = create(server.context, &command, 272);
	assert_non_null(test.dek);
	test.dek_number = get32(command.out, 8);
}

/* Creates a free key for four entries and one BSF. */
static void make_key(void)
{
	struct command command = command_of(0x200);

	put32(command.in, 16, 1u << 30 | 0xbc00 | 2u << 8);
	put32(command.in, 20, 0xffffffu << 8 | 0x42);
	put32(command.in, 28, 1u << 30 | pd_number(server.pd));
	put32(command.in, 48, 4);
	put32(command.in, 68, 4);
	put32(command.in, 76, 1u << 27);
	test.object = create(server.context, &command, 272);
	assert_non_null(test.object);
	test.number = created_number(&command) << 8 | 0x42;
}

/* Returns the byte order of the tweak in a BSF, which the program selects by the capabilities of the device. */
static bool big_endian(void)
{
	const char *order = getenv("SOFTHCA_CRYPTO_TWEAK");

	return order && !strcmp(order, "be");
}

static void configure(uint8_t order, uint8_t selector, uint32_t bytes)
{
	uint8_t wqe[UMR_BYTES] = {0}, *bsf = wqe + BSF_AT;

	put32(wqe, 12, test.number);
	wqe[16] = 0x80; /* inline */
	wqe[21] = 4;
	wqe[23] = 4;
	put64(wqe, 24, 1 | 1 << 29); /* LEN, FREE */
	put64(wqe, 64 + 24, bytes);
	put_data(wqe, 128, bytes / 2, server.mr->lkey, side_address(&server, KEY_AT));
	put_data(wqe, 144, bytes - bytes / 2, server.mr->lkey, side_address(&server, KEY_AT + bytes / 2));
	bsf[0] = 2 << 6 | 1;
	bsf[ORDER_AT] = order;
	put32(bsf, RAW_SIZE_AT, UINT32_MAX);
	bsf[SELECTOR_AT] = selector;
	for (size_t i = 0; i < sizeof(test.tweak); i++)
		bsf[TWEAK_AT + (big_endian() ? 15 - i : i)] = test.tweak[i];
	put32(bsf, DEK_AT, test.dek_number);
	post(&test.server, UMR, wqe, sizeof(wqe));
	expect_cqe(&test.server, MLX5_CQE_REQ);
}

/* ---- transfers -------------------------------------------------------------------------------------------------- */

static void cipher(bool encrypt, uint8_t *to, const uint8_t *from, uint32_t unit, uint32_t bytes)
{
	uint8_t tweak[16];

	memcpy(tweak, test.tweak, sizeof(tweak));
	for (uint32_t at = 0; at < bytes; at += unit, model_increment(tweak))
		model_unit(test.key, test.key_bytes, encrypt, tweak, to + at, from + at,
			   bytes - at < unit ? bytes - at : unit);
}

static void transfer(size_t operation, uint32_t bytes)
{
	bool of_server = operations[operation].of_server, sends = operations[operation].opcode == SEND;
	struct line *poster = of_server ? &test.server : &test.client, *peer = of_server ? &test.client : &test.server;
	uint64_t plain = side_address(&client, PLAIN_AT);
	uint8_t wqe[64] = {0};
	size_t at = 16;

	if (sends)
		receive(peer, of_server ? plain : 0, bytes, of_server ? client.mr->lkey : test.number);
	if (!sends) {
		put64(wqe, 16, of_server ? plain : 0);
		put32(wqe, 24, of_server ? client.mr->rkey : test.number);
		at = 32;
	}
	put_data(wqe, at, bytes, of_server ? test.number : client.mr->lkey, of_server ? 0 : plain);
	post(poster, operations[operation].opcode, wqe, (uint32_t)at + 16);
	expect_cqe(poster, MLX5_CQE_REQ);
	if (sends)
		expect_cqe(peer, MLX5_CQE_RESP_SEND);
}

static void check(uint8_t order, uint32_t unit, uint32_t bytes)
{
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		/*
		 * With WIRE_ENCRYPTED, data are encrypted on the way out of the key and decrypted on the way in; otherwise vice
		 * versa.
		 */
		bool out = operations[i].out, encrypt = (order == WIRE_ENCRYPTED) == out;
		const uint8_t *from = out ? server.expected + KEY_AT : client.expected + PLAIN_AT;
		uint8_t *to = out ? client.expected + PLAIN_AT : server.expected + KEY_AT;

		side_stir(&client);
		side_stir(&server);
		note("order %u, unit %u, %u bytes, operation %zu", order, unit, bytes, i);
		cipher(encrypt, to, from, unit, bytes);
		transfer(i, bytes);
		side_compare(&client);
		side_compare(&server);
	}
}

static void every_cipher(void)
{
	for (uint32_t key_bytes = 32; key_bytes <= 64; key_bytes += 32) {
		make_dek(key_bytes);
		for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
			for (uint8_t order = WIRE_ENCRYPTED; order <= MEMORY_ENCRYPTED; order++) {
				/* The last unit is shorter, and ends within a cipher block. */
				uint32_t bytes = units[i].bytes * UNITS + LAST;

				make_key();
				configure(order, units[i].selector, bytes);
				check(order, units[i].bytes, bytes);
				assert_int_equal(mlx5dv_devx_obj_destroy(test.object), 0);
			}
		assert_int_equal(mlx5dv_devx_obj_destroy(test.dek), 0);
	}
}

TEST(in_umems)
{
	struct own one, other;

	own_open(&one, &client, 0);
	own_open(&other, &server, 0);
	own_connect(&one, &other);
	own_connect(&other, &one);
	test.client = (struct line){.own = &one};
	test.server = (struct line){.own = &other};
	every_cipher();
	own_close(&other);
	own_close(&one);
}

TEST(by_init_obj)
{
	struct rings one = rings_open(&pair.client), other = rings_open(&pair.server);

	test.client = (struct line){.rings = &one};
	test.server = (struct line){.rings = &other};
	every_cipher();
}
