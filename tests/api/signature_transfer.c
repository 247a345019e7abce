/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data flow through a key with block signatures: mlx5dv_wr_set_mkey_sig_block(3), DESCRIPTION and the arguments of
 * domains. The server owns the key; the client's plain memory shows the wire. Errors are in signature_check.c, masks
 * and escapes in signature_masks.c.
 */
#include "support/signed_key.h"

static struct layout layout;

static void open_pair(void)
{
	struct pair_options options = signed_options();

	pair_replace(&pair, &options);
}

DOMAIN_CRC(crc32, CRC32, 512, 0xffffffff);
DOMAIN_CRC(crc32_long, CRC32, 4096, 0xffffffff);
DOMAIN_CRC(crc32c, CRC32C, 4096, 0);
DOMAIN_CRC(crc64, CRC64_XP10, 4160, 0xffffffffffffffff);
DOMAIN_DIF(dif_crc, CRC, 520, 0, 0x1234, 0xfffffffe, MLX5DV_SIG_T10DIF_FLAG_REF_REMAP);
DOMAIN_DIF(dif_other_tags, CSUM, 520, 0xffff, 0x4321, 7, 0);
DOMAIN_DIF(dif_csum, CSUM, 4048, 0, 0xabcd, 1, MLX5DV_SIG_T10DIF_FLAG_REF_REMAP);

static const struct mlx5dv_sig_block_domain *const domains[] = {NULL,   &crc32,   &crc32_long,     &crc32c,
								&crc64, &dif_crc, &dif_other_tags, &dif_csum};

static uint32_t block_of(const struct mlx5dv_sig_block_domain *domain)
{
	return domain ? domain_block(domain) : 0;
}

/*
 * Generate, check and strip, pass on, re-block; each with every operation that moves data. Tails are the bytes after
 * the last whole block.
 */
TEST(every_pair_of_domains)
{
	struct mlx5dv_mkey *mkey;

	open_pair();
	mkey = side_create_signed_mkey(&server, 3);
	for (size_t m = 0; m < ARRAY_SIZE(domains); m++) {
		for (size_t w = 0; w < ARRAY_SIZE(domains); w++) {
			const struct mlx5dv_sig_block_domain *mem = domains[m], *wire = domains[w];
			struct mlx5dv_sig_block_attr attr = {.mem = mem, .wire = wire, .check_mask = 0xff};
			size_t raw = 2 * (block_of(mem) > block_of(wire) ? block_of(mem) : block_of(wire));

			if (!mem && !wire)
				continue;
			lay_signed(mkey, &layout, domain_stream_bytes(mem, raw), &attr);
			for (enum key_operation o = 0; o < KEY_OPERATIONS; o++) {
				note("memory %zu, wire %zu, operation %d", m, w, o);
				expect_signed_transfer(o, mkey, &layout, mem, wire, raw);
			}
		}
	}
}

/* Each kind of field after each size of block, with both seeds; every step of the message from 1 to 3 blocks. */
TEST(every_type_block_and_seed)
{
	enum { KINDS = 5 };
	struct mlx5dv_mkey *mkey;

	open_pair();
	mkey = side_create_signed_mkey(&server, 3);
	for (int kind = 0; kind < KINDS; kind++) {
		for (int variant = 0; variant < 2 * 5; variant++) {
			bool ones = variant % 2;
			enum mlx5dv_block_size size = variant / 2;
			struct mlx5dv_sig_crc crc = {kind, ones ? kind == 2 ? UINT64_MAX : UINT32_MAX : 0};
			struct mlx5dv_sig_t10dif dif = {kind - 3, ones ? UINT16_MAX : 0, 0x8001, 0xdeadbeef,
							ones ? MLX5DV_SIG_T10DIF_FLAG_REF_REMAP : 0};
			struct mlx5dv_sig_block_domain domain = {.block_size = size};
			struct mlx5dv_sig_block_attr attr = {.check_mask = 0xff};

			domain.sig_type = kind < 3 ? MLX5DV_SIG_TYPE_CRC : MLX5DV_SIG_TYPE_T10DIF;
			if (kind < 3)
				domain.sig.crc = &crc;
			else
				domain.sig.dif = &dif;
			for (int in_memory = 0; in_memory < 2; in_memory++) {
				const struct mlx5dv_sig_block_domain *mem = in_memory ? &domain : NULL;
				const struct mlx5dv_sig_block_domain *wire = in_memory ? NULL : &domain;

				attr.mem = mem;
				attr.wire = wire;
				lay_signed(mkey, &layout, domain_stream_bytes(mem, 3 * domain_block(&domain)), &attr);
				for (uint32_t blocks = 1; blocks <= 3; blocks++) {
					note("kind %d, size %d, seed %d, memory %d", kind, size, ones, in_memory);
					expect_signed_transfer(OUT_SEND, mkey, &layout, mem, wire,
							       blocks * domain_block(&domain));
					expect_signed_transfer(IN_RECV, mkey, &layout, mem, wire,
							       blocks * domain_block(&domain));
				}
			}
		}
	}
}

/* Fields of known blocks, generated on the way out: mlx5-formats 5.3, in part confirmed on adapters. */
TEST(known_fields)
{
	static const struct mlx5dv_sig_crc crc32_0 = {MLX5DV_SIG_CRC_TYPE_CRC32, 0},
					   crc32_1 = {MLX5DV_SIG_CRC_TYPE_CRC32, UINT32_MAX},
					   crc32c_0 = {MLX5DV_SIG_CRC_TYPE_CRC32C, 0},
					   crc32c_1 = {MLX5DV_SIG_CRC_TYPE_CRC32C, UINT32_MAX},
					   crc64_0 = {MLX5DV_SIG_CRC_TYPE_CRC64_XP10, 0},
					   crc64_1 = {MLX5DV_SIG_CRC_TYPE_CRC64_XP10, UINT64_MAX};
	static const struct mlx5dv_sig_t10dif t10_0 = {MLX5DV_SIG_T10DIF_CRC, 0, 0x5678, 0xf0debc9a, 0},
					      t10_1 = {MLX5DV_SIG_T10DIF_CRC, UINT16_MAX, 0x5678, 0xf0debc9a, 0},
					      ip_0 = {MLX5DV_SIG_T10DIF_CSUM, 0, 0x5678, 0xf0debc9a, 0},
					      ip_1 = {MLX5DV_SIG_T10DIF_CSUM, UINT16_MAX, 0x5678, 0xf0debc9a, 0};
	/* 512 bytes of A5; 00 to FF twice; 512 zeros. */
	static const struct {
		const struct mlx5dv_sig_crc *crc;
		const struct mlx5dv_sig_t10dif *dif;
		const char *a5, *counting, *zeros;
	} row[] = {
		{&crc32_0, NULL, "\x69\x9a\xca\x21", "\xce\x23\x2f\x94", "\xff\xff\xff\xff"},
		{&crc32_1, NULL, "\x88\xcb\x60\x93", "\x2f\x72\x85\x26", "\x1e\xae\x55\x4d"},
		{&crc32c_0, NULL, "\x42\x07\xe6\xb4", "\x65\xfc\x13\x61", "\xff\xff\xff\xff"},
		{&crc32c_1, NULL, "\x7d\x15\xe5\x7b", "\x5a\xee\x10\xae", "\xc0\xed\xfc\x30"},
		{&crc64_0, NULL, "\x8c\x8a\xdb\x45\x0c\xce\x85\xaa", "\x11\x66\x12\x9e\xe5\x77\xed\x87",
		 "\xff\xff\xff\xff\xff\xff\xff\xff"},
		{&crc64_1, NULL, "\x9a\xf7\x83\xd2\xdb\x3f\x9c\x48", "\x07\x1b\x4a\x09\x32\x86\xf4\x65",
		 "\xe9\x82\xa7\x68\x28\x0e\xe6\x1d"},
		{NULL, &t10_0, "\x9e\xc6\x56\x78\xf0\xde\xbc\x9a", "\x4f\x10\x56\x78\xf0\xde\xbc\x9a",
		 "\x00\x00\x56\x78\xf0\xde\xbc\x9a"},
		{NULL, &t10_1, "\xec\x7d\x56\x78\xf0\xde\xbc\x9a", "\x3d\xab\x56\x78\xf0\xde\xbc\x9a",
		 "\x72\xbb\x56\x78\xf0\xde\xbc\x9a"},
		{NULL, &ip_0, "\x5a\x5a\x56\x78\xf0\xde\xbc\x9a", "\x7f\x80\x56\x78\xf0\xde\xbc\x9a",
		 "\xff\xff\x56\x78\xf0\xde\xbc\x9a"},
		{NULL, &ip_1, "\x5a\x5a\x56\x78\xf0\xde\xbc\x9a", "\x7f\x80\x56\x78\xf0\xde\xbc\x9a",
		 "\x00\x00\x56\x78\xf0\xde\xbc\x9a"},
	};
	struct mlx5dv_mkey *mkey;

	open_pair();
	mkey = side_create_signed_mkey(&server, 3);
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct mlx5dv_sig_block_domain domain = {.sig_type = row[i].crc ? MLX5DV_SIG_TYPE_CRC
										: MLX5DV_SIG_TYPE_T10DIF};
		struct mlx5dv_sig_block_attr attr = {.wire = &domain};
		uint8_t blocks[3 * 512];
		size_t field;

		if (row[i].crc)
			domain.sig.crc = row[i].crc;
		else
			domain.sig.dif = row[i].dif;
		field = domain_field(&domain);
		note("row %zu", i);
		lay_signed(mkey, &layout, sizeof(blocks), &attr);
		for (int b = 0; b < 512; b++) {
			blocks[b] = 0xa5;
			blocks[512 + b] = (uint8_t)b;
			blocks[1024 + b] = 0;
		}
		side_stir(&client);
		side_stir(&server);
		key_store(&layout, 0, blocks, sizeof(blocks));
		transfer_signed(OUT_SEND, mkey->lkey, 0, SIGNED_PLAIN, (uint32_t)(3 * (512 + field)));
		for (size_t b = 0; b < 3; b++) {
			const char *expected[] = {row[i].a5, row[i].counting, row[i].zeros};

			plain_expect(SIGNED_PLAIN + b * (512 + field), blocks + 512 * b, 512);
			plain_expect(SIGNED_PLAIN + b * (512 + field) + 512, (const uint8_t *)expected[b], field);
		}
		side_compare(&client);
		side_compare(&server);
	}
}

/* "it should be the value of the first block to be transmitted": block n of the key has ref_tag + n, modulo 2^32. */
TEST(reference_tags_count_blocks)
{
	static const uint8_t zeros[512];
	static const uint32_t starts[] = {0, 0xfffffffe, 0x80000000};
	struct mlx5dv_mkey *mkey;

	open_pair();
	mkey = side_create_signed_mkey(&server, 3);
	for (int remap = 0; remap < 2; remap++) {
		for (size_t s = 0; s < ARRAY_SIZE(starts); s++) {
			struct mlx5dv_sig_t10dif dif = {MLX5DV_SIG_T10DIF_CRC, 0, 0x1234, starts[s],
							remap ? MLX5DV_SIG_T10DIF_FLAG_REF_REMAP : 0};
			struct mlx5dv_sig_block_domain domain = {.sig_type = MLX5DV_SIG_TYPE_T10DIF, .sig.dif = &dif};
			struct mlx5dv_sig_block_attr attr = {.wire = &domain};

			lay_signed(mkey, &layout, 4 * 512, &attr);
			side_stir(&client);
			side_stir(&server);
			for (int block = 0; block < 4; block++)
				key_store(&layout, 512 * (size_t)block, zeros, 512);
			/* All at once, and starting from each block of the key. */
			for (uint32_t first = 0; first < 4; first++) {
				uint32_t bytes = (4 - first) * 520;

				transfer_signed(OUT_SEND, mkey->lkey, first * 520, SIGNED_PLAIN, bytes);
				for (uint32_t block = first; block < 4; block++) {
					uint32_t ref = starts[s] + (remap ? block : 0);
					uint8_t tuple[8] = {0,         0,         0x12,     0x34,
							    ref >> 24, ref >> 16, ref >> 8, (uint8_t)ref};
					size_t at = SIGNED_PLAIN + (block - first) * 520;

					plain_expect(at, zeros, 512);
					plain_expect(at + 512, tuple, 8);
				}
				side_compare(&client);
				/* They are also expected on input. */
				transfer_signed(IN_READ, mkey->lkey, first * 520, SIGNED_PLAIN, bytes);
				side_compare(&server);
				expect_key_good(mkey);
			}
		}
	}
}

/* mlx5-formats 4.7: data of an incomplete block passes; it has no field, and none is expected. */
TEST(incomplete_blocks)
{
	static const size_t raws[] = {1, 511, 513, 1023, 1025, 1500};
	struct mlx5dv_mkey *mkey;

	open_pair();
	mkey = side_create_signed_mkey(&server, 3);
	for (int in_memory = 0; in_memory < 2; in_memory++) {
		const struct mlx5dv_sig_block_domain *mem = in_memory ? &crc32 : NULL,
						     *wire = in_memory ? NULL : &crc32;
		struct mlx5dv_sig_block_attr attr = {.mem = mem, .wire = wire, .check_mask = 0xff};

		lay_signed(mkey, &layout, 3 * 516, &attr);
		for (size_t i = 0; i < ARRAY_SIZE(raws); i++) {
			note("memory %d, %zu bytes", in_memory, raws[i]);
			for (enum key_operation o = 0; o < KEY_OPERATIONS; o++)
				expect_signed_transfer(o, mkey, &layout, mem, wire, raws[i]);
		}
	}
}

/* Several consecutive requests walk a key, split at blocks and inside of them. */
TEST(several_requests_walk_a_key)
{
	enum { BLOCKS = 4, RAW = BLOCKS * 520 };
	static const uint32_t steps[] = {520 + 8, 2 * (520 + 8), 100, 519, 522, 1};
	static uint8_t data[RAW], stream[BLOCKS * 528];
	struct mlx5dv_sig_block_attr attr = {.wire = &dif_crc, .check_mask = 0xff};
	struct mlx5dv_mkey *mkey;

	open_pair();
	mkey = side_create_signed_mkey(&server, 3);
	lay_signed(mkey, &layout, RAW, &attr);
	for (size_t s = 0; s < ARRAY_SIZE(steps); s++) {
		for (int out = 0; out < 2; out++) {
			side_stir(&client);
			side_stir(&server);
			for (size_t i = 0; i < RAW; i++)
				data[i] = (uint8_t)(i * 13 + s);
			domain_make_stream(&dif_crc, data, RAW, stream);
			if (out)
				key_store(&layout, 0, data, RAW);
			else
				plain_store(SIGNED_PLAIN, stream, sizeof(stream));
			note("steps of %u, out %d", steps[s], out);
			for (uint32_t at = 0; at < sizeof(stream); at += steps[s]) {
				uint32_t left = sizeof(stream) - at, piece = steps[s] < left ? steps[s] : left;

				transfer_signed(out ? OUT_WRITE : IN_REMOTE_WRITE, mkey->lkey, at, SIGNED_PLAIN + at,
						piece);
			}
			if (out)
				plain_expect(SIGNED_PLAIN, stream, sizeof(stream));
			else
				key_expect(&layout, 0, data, RAW);
			side_compare(&client);
			side_compare(&server);
			expect_key_good(mkey);
		}
	}
}

/* Configures the same fields in memory and on the wire, over three blocks. */
static struct mlx5dv_mkey *lay_three_blocks(uint8_t *stream)
{
	struct mlx5dv_sig_block_attr attr = {.mem = &dif_crc, .wire = &dif_crc, .check_mask = 0xff};
	struct mlx5dv_mkey *mkey = side_create_signed_mkey(&server, 3);
	uint8_t data[3 * 520];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 11 + i / 520);
	lay_signed(mkey, &layout, 3 * 528, &attr);
	domain_make_stream(&dif_crc, data, sizeof(data), stream);
	return mkey;
}

/*
 * A block of memory is checked when the last byte of its field has passed on the wire, in whichever transfer that is.
 */
TEST(checked_with_the_field_on_the_wire)
{
	static const enum key_operation ways[] = {OUT_SEND, OUT_WRITE, OUT_REMOTE_READ};
	enum { DATA = 528 + 520 };
	uint8_t stream[3 * 528];
	struct mlx5dv_mkey *mkey;

	open_pair();
	mkey = lay_three_blocks(stream);
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		for (uint32_t passed = 0; passed < 8; passed++) {
			note("operation %d, %u bytes of the field", ways[i], passed);
			side_stir(&client);
			side_stir(&server);
			stream[DATA + 3] ^= 0x40;
			key_store(&layout, 0, stream, sizeof(stream));
			transfer_signed(ways[i], mkey->lkey, 0, SIGNED_PLAIN, DATA + passed);
			expect_key_good(mkey);
			transfer_signed(ways[i], mkey->lkey, DATA + passed, SIGNED_PLAIN + DATA + passed, 8 - passed);
			plain_expect(SIGNED_PLAIN, stream, DATA + 8);
			side_compare(&client);
			stream[DATA + 3] ^= 0x40;
			expect_key_bad(mkey, MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG, &dif_crc, 1, 0, 0x1274, 0x1234);
		}
}

/*
 * Data received from the middle of a field on is not a field: the one in memory is unchanged, and the next block is
 * complete. A transfer that continues where the previous one ended completes the field.
 */
TEST(torn_fields_are_not_written)
{
	static const enum key_operation ways[] = {IN_RECV, IN_READ, IN_REMOTE_WRITE};
	enum { DATA = 528 + 520 };
	uint8_t stream[3 * 528];
	struct mlx5dv_mkey *mkey;

	open_pair();
	mkey = lay_three_blocks(stream);
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		for (uint32_t missing = 1; missing < 8; missing++) {
			uint32_t from = DATA + missing;

			note("operation %d without %u bytes of the field", ways[i], missing);
			side_stir(&client);
			side_stir(&server);
			plain_store(SIGNED_PLAIN, stream, sizeof(stream));
			transfer_signed(ways[i], mkey->lkey, from, SIGNED_PLAIN + from, sizeof(stream) - from);
			key_expect(&layout, 2 * 528, stream + 2 * 528, 528);
			side_compare(&server);
			transfer_signed(ways[i], mkey->lkey, 0, SIGNED_PLAIN, from);
			key_expect(&layout, 0, stream, DATA);
			side_compare(&server);
			transfer_signed(ways[i], mkey->lkey, from, SIGNED_PLAIN + from, 8 - missing);
			key_expect(&layout, DATA, stream + DATA, 8);
			side_compare(&server);
			expect_key_good(mkey);
		}
}

/* Repeats one transfer: reference tags and errors start anew each time. */
TEST(the_same_range_again)
{
	struct mlx5dv_sig_block_attr attr = {.mem = &dif_crc, .wire = &dif_crc, .check_mask = 0xff};
	struct mlx5dv_mkey *mkey;

	open_pair();
	mkey = side_create_signed_mkey(&server, 3);
	lay_signed(mkey, &layout, 3 * 528, &attr);
	for (int i = 0; i < 10; i++)
		expect_signed_transfer(i % KEY_OPERATIONS, mkey, &layout, &dif_crc, &dif_crc, 3 * 520);
}

/* Lengths and addresses are those of the wire; access after the last byte of the layout fails. */
TEST(ends_of_the_key)
{
	static const struct {
		const struct mlx5dv_sig_block_domain *mem, *wire;
		uint32_t layout, wire_bytes;
	} row[] = {
		{&crc32, NULL, 3 * 516, 3 * 512}, {NULL, &crc32, 3 * 512, 3 * 516}, {&crc32, &crc32, 3 * 516, 3 * 516}};
	struct ibv_sge plain = side_sge(&client, 0, 4);
	struct mlx5dv_mkey *mkey;

	open_pair();
	mkey = side_create_signed_mkey(&server, 3);
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct mlx5dv_sig_block_attr attr = {.mem = row[i].mem, .wire = row[i].wire};
		struct ibv_sge sge = {.addr = row[i].wire_bytes - 3, .length = 4, .lkey = mkey->lkey};
		struct ibv_send_wr send = {.wr_id = 1,
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_SEND,
					   .send_flags = IBV_SEND_SIGNALED};
		struct ibv_send_wr write = {.wr_id = 2,
					    .sg_list = &plain,
					    .num_sge = 1,
					    .opcode = IBV_WR_RDMA_WRITE,
					    .send_flags = IBV_SEND_SIGNALED,
					    .wr.rdma = {.remote_addr = row[i].wire_bytes - 3, .rkey = mkey->rkey}};

		note("row %zu", i);
		lay_signed(mkey, &layout, row[i].layout, &attr);
		side_stir(&client);
		side_stir(&server);
		post_send(&pair.client, &write);
		expect_status(&pair.client, 2, IBV_WC_REM_ACCESS_ERR);
		pair_renew(&pair);
		post_receive(&pair.client, 3, &plain, 1);
		post_send(&pair.server, &send);
		expect_status(&pair.server, 1, IBV_WC_LOC_PROT_ERR);
		side_compare(&client);
		side_compare(&server);
		pair_renew(&pair);
		expect_signed_transfer(OUT_WRITE, mkey, &layout, row[i].mem, row[i].wire, 3 * 512);
	}
}

/* The rights of the key apply as usual. */
TEST(rights_of_the_key)
{
	struct mlx5dv_sig_block_attr attr = {.mem = &crc32};
	struct ibv_sge plain = side_sge(&client, 0, 512);
	struct ibv_send_wr read = {.wr_id = 2,
				   .sg_list = &plain,
				   .num_sge = 1,
				   .opcode = IBV_WR_RDMA_READ,
				   .send_flags = IBV_SEND_SIGNALED};
	struct mlx5dv_mkey *mkey;

	open_pair();
	mkey = side_create_signed_mkey(&server, 3);
	lay_signed(mkey, &layout, 2 * 516, &attr);
	configure_start(&pair.server, mkey, 1);
	mlx5dv_wr_set_mkey_access_flags(pair.server.dv, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE);
	configure_complete(&pair.server);
	expect_signed_transfer(IN_REMOTE_WRITE, mkey, &layout, &crc32, NULL, 1024);
	read.wr.rdma.rkey = mkey->rkey;
	post_send(&pair.client, &read);
	expect_status(&pair.client, 2, IBV_WC_REM_ACCESS_ERR);
	side_compare(&client);
	side_compare(&server);
	pair_renew(&pair);
}
