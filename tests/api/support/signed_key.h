/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys with block signatures: configuring them, the streams of their two domains, and transfers through them between
 * the server, which owns the key, and plain memory of the client, which holds the bytes of the wire unchanged.
 * tests/signature/guard.c computes the fields, bit by bit.
 */
#ifndef SOFTHCA_TESTS_API_SUPPORT_SIGNED_KEY_H
#define SOFTHCA_TESTS_API_SUPPORT_SIGNED_KEY_H

#include "support/program.h"

enum {
	SIGNED_PLAIN = 3001,    /* offset of the client's plain memory; odd */
	SIGNED_LARGEST = 32768, /* bytes of a stream */
};

/* Definitions of domains: DOMAIN_CRC(name, CRC32C, 4096, 0), DOMAIN_DIF(name, CSUM, 512, seed, app, ref, flags). */
#define DOMAIN_CRC(name, crc_name, bytes, start)                                                                       \
	static const struct mlx5dv_sig_crc name##_crc = {MLX5DV_SIG_CRC_TYPE_##crc_name, start};                       \
	static const struct mlx5dv_sig_block_domain name = {                                                           \
		.sig_type = MLX5DV_SIG_TYPE_CRC, .sig.crc = &name##_crc, .block_size = MLX5DV_BLOCK_SIZE_##bytes}
#define DOMAIN_DIF(name, guard, bytes, start, app, ref, set)                                                           \
	static const struct mlx5dv_sig_t10dif name##_dif = {MLX5DV_SIG_T10DIF_##guard, start, app, ref, set};          \
	static const struct mlx5dv_sig_block_domain name = {                                                           \
		.sig_type = MLX5DV_SIG_TYPE_T10DIF, .sig.dif = &name##_dif, .block_size = MLX5DV_BLOCK_SIZE_##bytes}

/** Returns options of pairs with QPs that fit an interleaved layout and a signature in one work request. */
struct pair_options signed_options(void);

/** Creates a key for @entries that may have signatures. */
struct mlx5dv_mkey *side_create_signed_mkey(struct side *side, uint16_t entries);

/* ---- domains ---------------------------------------------------------------------------------------------------- */

/** Returns the bytes of data in a block of @domain. */
uint32_t domain_block(const struct mlx5dv_sig_block_domain *domain);
/** Returns the bytes of a field; 0 for NULL. */
uint32_t domain_field(const struct mlx5dv_sig_block_domain *domain);
/** Makes the field that follows the @data of block @number. Returns its bytes. */
uint32_t domain_make_field(const struct mlx5dv_sig_block_domain *domain, const uint8_t *data, uint32_t number,
			   uint8_t field[8]);
/** Returns the bytes of the stream of @raw bytes of data: a field after each whole block; none if @domain is NULL. */
size_t domain_stream_bytes(const struct mlx5dv_sig_block_domain *domain, size_t raw);
/** Writes the stream of domain_stream_bytes(). Returns its bytes. */
size_t domain_make_stream(const struct mlx5dv_sig_block_domain *domain, const uint8_t *data, size_t raw,
			  uint8_t *stream);

/* ---- keys ------------------------------------------------------------------------------------------------------- */

/** Divides @bytes of the server's memory into three pieces that split blocks and fields. @layout gets the model. */
void cut_layout(struct layout *layout, struct ibv_sge pieces[3], size_t bytes);

/**
 * Configures the server's @mkey by one signalled work request of CONFIGURE_WR_ID: all rights, the list, the signature.
 * Returns the result of ibv_wr_complete(3).
 */
int configure_signed(struct mlx5dv_mkey *mkey, uint16_t count, const struct ibv_sge *sge,
		     const struct mlx5dv_sig_block_attr *attr);

/** As configure_signed(), over a cut_layout() of @bytes; must succeed, with one completion. */
#define lay_signed(mkey, layout, bytes, attr) lay_signed_(HERE, mkey, layout, bytes, attr)
void lay_signed_(struct place place, struct mlx5dv_mkey *mkey, struct layout *layout, size_t bytes,
		 const struct mlx5dv_sig_block_attr *attr);

/** Sets @count bytes of a key's memory from @offset on, as a program does; the expected memory changes too. */
void key_store(const struct layout *layout, size_t offset, const uint8_t *bytes, size_t count);
/** Sets only the expected memory after a transfer. */
void key_expect(const struct layout *layout, size_t offset, const uint8_t *bytes, size_t count);
/** As key_store(), for the client's memory. */
void plain_store(size_t offset, const uint8_t *bytes, size_t count);
void plain_expect(size_t offset, const uint8_t *bytes, size_t count);

/* ---- transfers -------------------------------------------------------------------------------------------------- */

/* Operations that move data between key and wire; OUT_…: the key is the source. */
enum key_operation {
	OUT_SEND,
	OUT_SEND_IMM,
	OUT_WRITE,
	OUT_WRITE_IMM,
	OUT_REMOTE_READ,
	IN_RECV,
	IN_RECV_IMM,
	IN_READ,
	IN_REMOTE_WRITE,
	IN_REMOTE_WRITE_IMM,
	KEY_OPERATIONS,
};

static inline bool goes_out(enum key_operation operation)
{
	return operation < IN_RECV;
}

/**
 * Moves @bytes of the wire's stream between @offset of the key and @plain of the client's memory, and polls all
 * completions, which must be successful. Compares nothing.
 */
#define transfer_signed(operation, key, offset, plain, bytes)                                                          \
	transfer_signed_(HERE, operation, key, offset, plain, bytes)
void transfer_signed_(struct place place, enum key_operation operation, uint32_t key, uint64_t offset, size_t plain,
		      uint32_t bytes);

/**
 * Transfers @raw bytes of data through @mkey over the memory @layout: new contents everywhere, the right stream in the
 * source, the right stream and nothing else in the sink, no error.
 */
#define expect_signed_transfer(operation, mkey, layout, mem, wire, raw)                                                \
	expect_signed_transfer_(HERE, operation, mkey, layout, mem, wire, raw)
void expect_signed_transfer_(struct place place, enum key_operation operation, struct mlx5dv_mkey *mkey,
			     const struct layout *layout, const struct mlx5dv_sig_block_domain *mem,
			     const struct mlx5dv_sig_block_domain *wire, size_t raw);

/* ---- errors ----------------------------------------------------------------------------------------------------- */

/** Returns true if the profile of this process (SOFTHCA_PROFILE) is connectx. */
bool profile_is_connectx(void);

/** Expects mlx5dv_mkey_check(3) to find no error. */
#define expect_key_good(mkey) expect_key_good_(HERE, mkey)
void expect_key_good_(struct place place, struct mlx5dv_mkey *mkey);

/**
 * Expects mlx5dv_mkey_check(3) to report @type once, in block @number of @domain, with the field @found instead of
 * @computed, in the terms of the profile. @offset: start of the block in the transfer, which profile man reports; the
 * other profile reports the end of block and field in @domain of the key.
 */
#define expect_key_bad(mkey, type, domain, number, offset, found, computed)                                            \
	expect_key_bad_(HERE, mkey, type, domain, number, offset, found, computed)
void expect_key_bad_(struct place place, struct mlx5dv_mkey *mkey, enum mlx5dv_mkey_err_type type,
		     const struct mlx5dv_sig_block_domain *domain, uint64_t number, uint64_t offset, uint64_t found,
		     uint64_t computed);

#endif
