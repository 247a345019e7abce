/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_mkey_check(3): the type, values and offset of errors. Values and offsets depend on the profile; every case
 * that checks them runs in both. tests/api/signature_errors.c: when an error is reported, and how long it is kept.
 */
#include "support/signed_key.h"

enum { BLOCKS = 4, RAW = BLOCKS * 512 };

static struct layout layout;
static struct mlx5dv_mkey *mkey;
static uint8_t data[RAW], stream[BLOCKS * 520];

DOMAIN_CRC(crc32, CRC32, 512, 0);
DOMAIN_CRC(crc32c, CRC32C, 512, 0xffffffff);
DOMAIN_CRC(crc64, CRC64_XP10, 512, 0);
DOMAIN_DIF(dif, CRC, 512, 0xffff, 0x5678, 0xf0debc9a, MLX5DV_SIG_T10DIF_FLAG_REF_REMAP);
DOMAIN_DIF(dif_csum, CSUM, 512, 0, 0x5678, 0xfffffffe, MLX5DV_SIG_T10DIF_FLAG_REF_REMAP);

static void open_pair(void)
{
	struct pair_options options = signed_options();

	pair_replace(&pair, &options);
	mkey = side_create_signed_mkey(&server, 3);
	for (int i = 0; i < RAW; i++)
		data[i] = (uint8_t)(i * 5 + i / 512);
}

/* Configures the key to check all of @domain, in its memory or on the wire. */
static void lay(const struct mlx5dv_sig_block_domain *domain, bool in_memory)
{
	struct mlx5dv_sig_block_attr attr = {.check_mask = 0xff};

	*(in_memory ? &attr.mem : &attr.wire) = domain;
	lay_signed(mkey, &layout, domain_stream_bytes(attr.mem, RAW), &attr);
	domain_make_stream(domain, data, RAW, stream);
}

/* Moves `stream` through the checking domain: out of memory by @operation, or in from the wire. */
static void transfer_blocks(const struct mlx5dv_sig_block_domain *domain, enum key_operation operation, uint32_t first,
			    uint32_t count)
{
	uint32_t extended = 512 + domain_field(domain), step = goes_out(operation) ? 512 : extended;

	side_stir(&client);
	side_stir(&server);
	if (goes_out(operation))
		key_store(&layout, 0, stream, BLOCKS * extended);
	else
		plain_store(SIGNED_PLAIN, stream, BLOCKS * extended);
	transfer_signed(operation, mkey->lkey, first * step, SIGNED_PLAIN + first * step, count * step);
	/* Other tests check the received data. */
	memcpy(client.expected, client.memory, client.bytes);
	memcpy(server.expected, server.memory, server.bytes);
}

/* Bytes of a field as a number: the first in memory is the most significant one (mlx5-formats 6, no. 14). */
static uint64_t number_of(const uint8_t *bytes, uint32_t count)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < count; i++)
		value = value << 8 | bytes[i];
	return value;
}

static uint8_t *field_at(const struct mlx5dv_sig_block_domain *domain, uint32_t block)
{
	return stream + block * (512 + domain_field(domain)) + 512;
}

/* ---- types, values, offsets ------------------------------------------------------------------------------------ */

struct part {
	uint32_t first, bytes;
	enum mlx5dv_mkey_err_type type;
};

/* Corrupts byte @byte of @part of the field of each block in turn, and calls mlx5dv_mkey_check(3). */
static void expect_each_block(const struct mlx5dv_sig_block_domain *domain, enum key_operation operation,
			      const struct part *part)
{
	for (uint32_t block = 0; block < BLOCKS; block++) {
		for (uint32_t byte = part->first; byte < part->first + part->bytes; byte++) {
			uint8_t *field = field_at(domain, block);
			uint64_t good, bad;

			note("operation %d, block %u, byte %u of the field", operation, block, byte);
			lay(domain, goes_out(operation));
			good = number_of(field + part->first, part->bytes);
			field[byte] ^= 0x41;
			bad = number_of(field + part->first, part->bytes);
			transfer_blocks(domain, operation, 0, BLOCKS);
			expect_key_bad(mkey, part->type, domain, block,
				       block * (goes_out(operation) ? 512 : 512 + domain_field(domain)), bad, good);
		}
	}
}

/* A local key finds errors in data that it sends or receives; a remote key in data for its peer. */
static const enum key_operation ways[] = {OUT_SEND, OUT_WRITE, OUT_REMOTE_READ, IN_RECV, IN_READ, IN_REMOTE_WRITE};

static void expect_part(const struct mlx5dv_sig_block_domain *domain, struct part part)
{
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		expect_each_block(domain, ways[i], &part);
}

static void expect_guards(void)
{
	open_pair();
	expect_part(&dif, (struct part){0, 2, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD});
	expect_part(&dif_csum, (struct part){0, 2, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD});
	expect_part(&crc32, (struct part){0, 4, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD});
	expect_part(&crc32c, (struct part){0, 4, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD});
	expect_part(&crc64, (struct part){0, 8, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD});
}

TEST(bad_guard_man)
{
	if (in_profile("man", __func__))
		expect_guards();
}

TEST(bad_guard_connectx)
{
	if (in_profile("connectx", __func__))
		expect_guards();
}

static void expect_tags(void)
{
	open_pair();
	expect_part(&dif, (struct part){2, 2, MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG});
	expect_part(&dif_csum, (struct part){2, 2, MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG});
	expect_part(&dif, (struct part){4, 4, MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG});
	expect_part(&dif_csum, (struct part){4, 4, MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG});
}

TEST(bad_tags_man)
{
	if (in_profile("man", __func__))
		expect_tags();
}

TEST(bad_tags_connectx)
{
	if (in_profile("connectx", __func__))
		expect_tags();
}

/* Results measured on adapters, mlx5-formats 4.6: 512 bytes of A5 with the first one changed; fields changed. */
static void expect_measured(bool connectx)
{
	DOMAIN_DIF(measured, CRC, 512, 0xffff, 0x5678, 0xf0debc9a, 0);
	static const struct {
		const struct mlx5dv_sig_block_domain *domain;
		uint32_t at;
		uint8_t change;
		enum mlx5dv_mkey_err_type type;
		uint64_t found, computed, last;
	} row[] = {
		{&measured, 0, 0xff, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD, 0xec7d, 0x9916, 519},
		{&crc32, 512, 0xff, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD, 0x969aca21, 0x699aca21, 515},
		{&measured, 514, 0xff, MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG, 0xa978, 0x5678, 519},
		{&measured, 516, 0xff, MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG, 0x0fdebc9a, 0xf0debc9a, 519},
	};
	struct mlx5dv_mkey_err err;

	open_pair();
	memset(data, 0xa5, sizeof(data));
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		note("row %zu", i);
		lay(row[i].domain, false);
		stream[row[i].at] ^= row[i].change;
		transfer_blocks(row[i].domain, IN_RECV, 0, 1);
		expect_error(mlx5dv_mkey_check(mkey, &err), 0);
		assert_int_equal(err.err_type, row[i].type);
		assert_int_equal(err.err.sig.actual_value, connectx ? row[i].found : row[i].computed);
		assert_int_equal(err.err.sig.expected_value, connectx ? row[i].computed : row[i].found);
		assert_int_equal(err.err.sig.offset, connectx ? row[i].last : 0);
	}
}

TEST(measured_values_man)
{
	if (in_profile("man", __func__))
		expect_measured(false);
}

TEST(measured_values_connectx)
{
	if (in_profile("connectx", __func__))
		expect_measured(true);
}

/* The guard detects a change of any bit of the data. */
TEST(a_bit_of_the_data)
{
	static const struct mlx5dv_sig_block_domain *const domains[] = {&crc32, &crc32c, &crc64, &dif, &dif_csum};
	uint8_t computed[8];

	open_pair();
	for (size_t d = 0; d < ARRAY_SIZE(domains); d++) {
		uint32_t extended = 512 + domain_field(domains[d]);
		uint32_t bytes = domains[d]->sig_type == MLX5DV_SIG_TYPE_T10DIF ? 2 : domain_field(domains[d]);

		for (uint32_t bit = d; bit < 8 * 512; bit += 509) {
			uint32_t block = bit % BLOCKS;
			uint8_t *broken = stream + block * extended;

			note("domain %zu, bit %u", d, bit);
			lay(domains[d], true);
			broken[bit / 8] ^= (uint8_t)(1 << bit % 8);
			domain_make_field(domains[d], broken, block, computed);
			transfer_blocks(domains[d], OUT_SEND, 0, BLOCKS);
			expect_key_bad(mkey, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD, domains[d], block, block * 512,
				       number_of(broken + 512, bytes), number_of(computed, bytes));
		}
	}
}

/* ---- offsets ---------------------------------------------------------------------------------------------------- */

/* Configures the wire of `dif` like its memory, or without fields. */
static void lay_both(void)
{
	struct mlx5dv_sig_block_attr attr = {.mem = &dif, .wire = &dif, .check_mask = 0xff};

	lay_signed(mkey, &layout, sizeof(stream), &attr);
	domain_make_stream(&dif, data, RAW, stream);
}

/* One profile counts from the beginning of the transfer, the other from that of the key. */
static void expect_offsets(void)
{
	open_pair();
	for (uint32_t first = 0; first < BLOCKS; first++) {
		for (uint32_t bad = first; bad < BLOCKS; bad++) {
			uint8_t *field = field_at(&dif, bad);

			for (int out = 0; out < 2; out++) {
				lay(&dif, out);
				field[3] ^= 0xf0;
				transfer_blocks(&dif, out ? OUT_WRITE : IN_REMOTE_WRITE, first, BLOCKS - first);
				expect_key_bad(mkey, MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG, &dif, bad,
					       (bad - first) * (out ? 512 : 520), 0x5688, 0x5678);
			}
		}
	}
}

TEST(offsets_man)
{
	if (in_profile("man", __func__))
		expect_offsets();
}

TEST(offsets_connectx)
{
	if (in_profile("connectx", __func__))
		expect_offsets();
}

/*
 * "The offset within the transfer … guaranteed to be a block boundary": for a transfer that begins inside a block, the
 * start of the next block; 0 for the block it begins in, which is checked on its way out.
 */
TEST(offsets_of_a_transfer_inside_a_block)
{
	enum { INSIDE = 100 };

	open_pair();
	for (uint32_t bad = 1; bad < BLOCKS; bad++) {
		for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
			uint32_t bytes = BLOCKS * 520 - 520 - INSIDE;
			bool out = goes_out(ways[i]);

			/* In from the wire, the block in which a transfer begins is not checked. */
			if (!out && bad == 1)
				continue;
			note("operation %d, block %u", ways[i], bad);
			lay_both();
			field_at(&dif, bad)[3] ^= 0xf0;
			side_stir(&client);
			side_stir(&server);
			if (out)
				key_store(&layout, 0, stream, sizeof(stream));
			else
				plain_store(SIGNED_PLAIN, stream + 520 + INSIDE, bytes);
			transfer_signed(ways[i], mkey->lkey, 520 + INSIDE, SIGNED_PLAIN, bytes);
			memcpy(client.expected, client.memory, client.bytes);
			memcpy(server.expected, server.memory, server.bytes);
			expect_key_bad(mkey, MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG, &dif, bad,
				       bad == 1 ? 0 : (bad - 1) * 520 - INSIDE, 0x5688, 0x5678);
		}
	}
}

/* Posts @wr of the server with @list over the server's memory, and takes the completions. */
static void transfer_list(enum ibv_wr_opcode opcode, struct ibv_sge *list, int count, uint32_t bytes)
{
	struct ibv_sge plain = side_sge(&client, SIGNED_PLAIN, bytes);
	struct ibv_send_wr wr = {
		.wr_id = 5, .sg_list = list, .num_sge = count, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};

	wr.wr.rdma.remote_addr = plain.addr;
	wr.wr.rdma.rkey = plain.lkey;
	post_send(&pair.server, &wr);
	expect_completion(&pair.server, 5, opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE);
	memcpy(client.expected, client.memory, client.bytes);
	memcpy(server.expected, server.memory, server.bytes);
}

/* Offsets count from the first byte of the message, whatever SGE or layout contains the key. */
TEST(offsets_after_other_bytes)
{
	enum { HEAD = 37 };
	struct mlx5dv_mkey *outer;
	struct ibv_sge list[3];

	open_pair();
	outer = side_create_mkey(&server, 4, NULL);
	list[0] = side_sge(&server, 100, HEAD);
	list[1] = (struct ibv_sge){.addr = 520, .length = 3 * 520, .lkey = mkey->lkey};
	expect_error(configure_list(&pair.server, BY_CONFIGURE, outer, KEY_ACCESS, 2, list), 0);
	expect_completion(&pair.server, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
	for (int shape = 0; shape < 6; shape++) {
		int read = shape % 2, bytes = HEAD + 3 * 520, count = 2;

		note("shape %d", shape);
		lay_both();
		list[0] = side_sge(&server, 100, HEAD);
		list[1] = (struct ibv_sge){.addr = 520, .length = 3 * 520, .lkey = mkey->lkey};
		if (shape / 2 == 1) {
			/* The second SGE continues in the middle of the bad block. */
			list[2] = (struct ibv_sge){.addr = 1300, .length = 4 * 520 - 1300, .lkey = mkey->lkey};
			list[1].length = 1300 - 520;
			count = 3;
		} else if (shape / 2 == 2) {
			list[0] = (struct ibv_sge){.addr = 0, .length = HEAD + 3 * 520, .lkey = outer->lkey};
			count = 1;
		}
		field_at(&dif, 2)[3] ^= 0xf0;
		key_store(&layout, 0, stream, sizeof(stream));
		plain_store(SIGNED_PLAIN + HEAD, stream + 520, 3 * 520);
		transfer_list(read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, list, count, bytes);
		expect_key_bad(mkey, MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG, &dif, 2, HEAD + 520, 0x5688, 0x5678);
	}
}

/*
 * The bad block began before the message enters the key, after bytes of other SGEs: the error is reported where the
 * message enters the key. A key that continues in the next SGE is entered once.
 */
TEST(offsets_of_a_key_entered_inside_a_block)
{
	enum { HEAD = 890, INSIDE = 100, ENTRY = 520 + INSIDE, BYTES = 3 * 520 - INSIDE };
	struct mlx5dv_mkey *outer, *outermost;
	struct ibv_sge rest, shapes[5][4];
	const int counts[] = {2, 3, 4, 1, 1};

	open_pair();
	outer = side_create_mkey(&server, 4, NULL);
	outermost = side_create_mkey(&server, 4, NULL);
	rest = (struct ibv_sge){.addr = ENTRY, .length = BYTES, .lkey = mkey->lkey};
	/*
	 * One SGE; two adjacent ones of the key, the second starting inside the bad block; one after another part of
	 * the key.
	 */
	shapes[0][0] = shapes[1][0] = shapes[2][0] = side_sge(&server, 100, HEAD);
	shapes[0][1] = rest;
	shapes[1][1] = (struct ibv_sge){.addr = ENTRY, .length = 50, .lkey = mkey->lkey};
	shapes[1][2] = (struct ibv_sge){.addr = ENTRY + 50, .length = BYTES - 50, .lkey = mkey->lkey};
	shapes[2][0].length = HEAD - 520 - 1;
	shapes[2][1] = (struct ibv_sge){.addr = 0, .length = 520, .lkey = mkey->lkey};
	shapes[2][2] = side_sge(&server, 100, 1);
	shapes[2][3] = rest;
	/* The first as a layout, and the second in a layout of a layout. */
	expect_error(configure_list(&pair.server, BY_CONFIGURE, outer, KEY_ACCESS, 2, shapes[0]), 0);
	expect_completion(&pair.server, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
	shapes[3][0] = (struct ibv_sge){.addr = 0, .length = HEAD + BYTES, .lkey = outer->lkey};
	shapes[4][0] = (struct ibv_sge){.addr = 0, .length = HEAD + 50, .lkey = outer->lkey};
	shapes[4][1] = (struct ibv_sge){.addr = HEAD + 50, .length = BYTES - 50, .lkey = outer->lkey};
	expect_error(configure_list(&pair.server, BY_CONFIGURE, outermost, KEY_ACCESS, 2, shapes[4]), 0);
	expect_completion(&pair.server, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
	shapes[4][0] = (struct ibv_sge){.addr = 0, .length = HEAD + BYTES, .lkey = outermost->lkey};
	for (int shape = 0; shape < 5; shape++) {
		for (uint32_t bad = 1; bad < BLOCKS; bad++) {
			note("shape %d, block %u", shape, bad);
			lay_both();
			field_at(&dif, bad)[3] ^= 0xf0;
			key_store(&layout, 0, stream, sizeof(stream));
			transfer_list(IBV_WR_RDMA_WRITE, shapes[shape], counts[shape], HEAD + BYTES);
			expect_key_bad(mkey, MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG, &dif, bad,
				       bad == 1 ? HEAD : HEAD - INSIDE + (bad - 1) * 520, 0x5688, 0x5678);
		}
	}
}

/*
 * "If several errors are found, only a single error is reported in this priority". This applies within a block; of two
 * blocks, the first is reported.
 */
TEST(priority)
{
	open_pair();
	for (int parts = 1; parts < 8; parts++) {
		uint8_t *field = field_at(&dif, 1);
		uint64_t good[3];

		note("parts %d", parts);
		lay(&dif, true);
		good[0] = number_of(field, 2);
		good[1] = number_of(field + 2, 2);
		good[2] = number_of(field + 4, 4);
		field[0] ^= parts & 1 ? 1 : 0;
		field[2] ^= parts & 2 ? 1 : 0;
		field[4] ^= parts & 4 ? 1 : 0;
		/* The next block has a worse one. */
		field_at(&dif, 2)[0] ^= 0x80;
		transfer_blocks(&dif, OUT_SEND, 0, BLOCKS);
		if (parts & 1)
			expect_key_bad(mkey, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD, &dif, 1, 512, good[0] ^ 0x100, good[0]);
		else if (parts & 2)
			expect_key_bad(mkey, MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG, &dif, 1, 512, good[1] ^ 0x100, good[1]);
		else
			expect_key_bad(mkey, MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG, &dif, 1, 512, good[2] ^ 0x1000000,
				       good[2]);
	}
}

TEST(no_error)
{
	open_pair();
	expect_key_good(mkey);
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		lay(&dif, goes_out(ways[i]));
		expect_key_good(mkey);
		transfer_blocks(&dif, ways[i], 0, BLOCKS);
		expect_key_good(mkey);
	}
}

/* "The transfer operation itself may be completed successfully": data and, if passed on, fields arrive. */
TEST(transfers_succeed_in_spite)
{
	struct mlx5dv_sig_block_attr attr = {.mem = &dif, .wire = &dif, .check_mask = 0xff};

	open_pair();
	for (enum key_operation o = 0; o < KEY_OPERATIONS; o++) {
		note("operation %d", o);
		lay_signed(mkey, &layout, sizeof(stream), &attr);
		domain_make_stream(&dif, data, RAW, stream);
		field_at(&dif, 2)[2] ^= 0xff;
		side_stir(&client);
		side_stir(&server);
		if (goes_out(o))
			key_store(&layout, 0, stream, sizeof(stream));
		else
			plain_store(SIGNED_PLAIN, stream, sizeof(stream));
		transfer_signed(o, mkey->lkey, 0, SIGNED_PLAIN, sizeof(stream));
		plain_expect(SIGNED_PLAIN, stream, sizeof(stream));
		key_expect(&layout, 0, stream, sizeof(stream));
		side_compare(&client);
		side_compare(&server);
		expect_key_bad(mkey, MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG, &dif, 2, 2 * 520, 0xa978, 0x5678);
	}
}

/* ---- refused ---------------------------------------------------------------------------------------------------- */

TEST(keys_without_signatures)
{
	struct mlx5dv_mkey *plain;
	struct mlx5dv_mkey_err err, untouched;

	open_pair();
	plain = side_create_mkey(&server, 4, NULL);
	memset(&err, 0x5a, sizeof(err));
	memset(&untouched, 0x5a, sizeof(untouched));
	expect_error(mlx5dv_mkey_check(plain, &err), EINVAL);
	assert_memory_equal(&err, &untouched, sizeof(err));
	expect_key_good(mkey); /* may carry them, was never configured */
}

/* ---- several keys ----------------------------------------------------------------------------------------------- */

TEST(each_key_has_its_own)
{
	enum { KEYS = 8 };
	struct mlx5dv_mkey *keys[KEYS];

	open_pair();
	for (int i = 0; i < KEYS; i++)
		keys[i] = side_create_signed_mkey(&server, 3);
	for (int broken = 0; broken < KEYS; broken++) {
		mkey = keys[broken];
		lay(&dif, true);
		field_at(&dif, 0)[3] ^= (uint8_t)(1 + broken);
		transfer_blocks(&dif, OUT_SEND, 0, 1);
	}
	for (int i = 0; i < KEYS; i++)
		expect_key_bad(keys[i], MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG, &dif, 0, 0, 0x5678 ^ (uint64_t)(1 + i),
			       0x5678);
}
