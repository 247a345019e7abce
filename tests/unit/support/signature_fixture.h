/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The key of umr_fixture.h with signatures, made by hand; and signature domains by name. Include after umr_fixture.h.
 */
#ifndef SOFTHCA_TESTS_SIGNATURE_FIXTURE_H
#define SOFTHCA_TESTS_SIGNATURE_FIXTURE_H

#include "verbs/memory/signature.h"

enum { TEST_MEMORY_PSV = 0x000a0b, TEST_WIRE_PSV = 0x0c0d0e };

/* Makes a new key with two PSVs, in the table of its context. */
static inline void fixture_sign(struct fixture *f)
{
	static struct key_signature signature;

	memset(&signature, 0, sizeof(signature));
	signature.memory_psv = TEST_MEMORY_PSV;
	signature.wire_psv = TEST_WIRE_PSV;
	signature.index = TEST_LKEY >> 8;
	signature.error_count = 1;
	signature.rearm = true;
	f->mkey.signature = &signature;
	f->mkey.signature_state = BLOCK_INIT;
	f->mkey.create_flags |= MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE;
	f->context.signatures.list[signature.index % 256] = &f->mkey;
}

/* A domain and the structures that it points to. */
struct test_domain {
	bool none;
	enum mlx5dv_sig_type type;
	enum mlx5dv_block_size block;
	struct mlx5dv_sig_crc crc;
	struct mlx5dv_sig_t10dif dif;
};

#define NONE                                                                                                           \
	{                                                                                                              \
		.none = true                                                                                           \
	}
#define CRC(name, bytes, start)                                                                                        \
	{                                                                                                              \
		.type = MLX5DV_SIG_TYPE_CRC, .block = MLX5DV_BLOCK_SIZE_##bytes,                                       \
		.crc = {MLX5DV_SIG_CRC_TYPE_##name, start},                                                            \
	}
#define DIF(guard, bytes, seed, app, ref, set)                                                                         \
	{                                                                                                              \
		.type = MLX5DV_SIG_TYPE_T10DIF, .block = MLX5DV_BLOCK_SIZE_##bytes,                                    \
		.dif = {MLX5DV_SIG_T10DIF_##guard, seed, app, ref, set},                                               \
	}

/* Calls the setter. Overwrites its arguments as soon as it returns. */
static inline void fixture_set_signature(struct fixture *f, const struct test_domain *memory,
					 const struct test_domain *wire, uint32_t flags, uint8_t check_mask,
					 uint8_t copy_mask)
{
	struct test_domain copies[2] = {*memory, *wire};
	struct mlx5dv_sig_block_domain domains[2];
	struct mlx5dv_sig_block_attr attr = {.flags = flags, .check_mask = check_mask, .copy_mask = copy_mask};

	for (int i = 0; i < 2; i++) {
		domains[i] =
			(struct mlx5dv_sig_block_domain){.sig_type = copies[i].type, .block_size = copies[i].block};
		if (copies[i].type == MLX5DV_SIG_TYPE_CRC)
			domains[i].sig.crc = &copies[i].crc;
		else
			domains[i].sig.dif = &copies[i].dif;
	}
	attr.mem = copies[0].none ? NULL : &domains[0];
	attr.wire = copies[1].none ? NULL : &domains[1];
	mlx5dv_wr_set_mkey_sig_block(&f->qp.dv, &attr);
	memset(copies, 0x77, sizeof(copies));
	memset(domains, 0x77, sizeof(domains));
	memset(&attr, 0x77, sizeof(attr));
}

#endif
