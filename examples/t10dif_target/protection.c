/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys that add, check and strip T10-DIF, see protection.h. */
#include "protection.h"

#include <stdio.h>
#include <string.h>

struct mlx5dv_mkey *protection_key(struct end *end)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = end->pd,
		/* A key without its own memory that can have block signatures. */
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE,
		.max_entries = 1,
	};
	struct mlx5dv_mkey *key = mlx5dv_create_mkey(&attr);

	if (!key)
		die_errno("mlx5dv_create_mkey");
	return key;
}

/* See mlx5dv_wr_set_mkey_sig_block(3). */
static void set_signature(struct mlx5dv_qp_ex *builder, const struct range *range)
{
	const struct mlx5dv_sig_t10dif tuple = {
		.bg_type = MLX5DV_SIG_T10DIF_CRC,
		.bg = 0, /* initial value of the CRC */
		.app_tag = APPLICATION_TAG,
		.ref_tag = range->lba,
		.flags = MLX5DV_SIG_T10DIF_FLAG_REF_REMAP, /* one more with each block */
	};
	const struct mlx5dv_sig_block_domain domain = {
		.sig_type = MLX5DV_SIG_TYPE_T10DIF,
		.sig.dif = &tuple,
		.block_size = MLX5DV_BLOCK_SIZE_4096,
	};
	const struct mlx5dv_sig_block_attr attr = {
		/* Fields that both sides have are checked and copied; those of one side only are generated or removed. */
		.mem = range->tuples_in_memory ? &domain : NULL,
		.wire = &domain,
		/* Checks the whole tuple wherever tuples come in. */
		.check_mask =
			MLX5DV_SIG_MASK_T10DIF_GUARD | MLX5DV_SIG_MASK_T10DIF_APPTAG | MLX5DV_SIG_MASK_T10DIF_REFTAG,
	};

	mlx5dv_wr_set_mkey_sig_block(builder, &attr);
}

void add_configuration(struct end *end, uint64_t wr_id, struct mlx5dv_mkey *key, const struct range *range)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(end->qp);
	struct mlx5dv_qp_ex *builder = mlx5dv_qp_ex_from_ibv_qp_ex(qp);
	/* A key keeps its signature until it is reset. */
	struct mlx5dv_mkey_conf_attr attr = {.conf_flags = range->tuples ? 0 : MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR};

	qp->wr_id = wr_id;
	/* The layout is inside the request, hence INLINE. No wait is needed: requests posted after it use the configured
	 * key. */
	qp->wr_flags = IBV_SEND_INLINE;
	mlx5dv_wr_mkey_configure(builder, key, range->tuples ? 3 : 2, &attr);
	mlx5dv_wr_set_mkey_access_flags(builder, range->access);
	mlx5dv_wr_set_mkey_layout_list(builder, 1, &range->memory);
	if (range->tuples)
		set_signature(builder, range);
}

int protection_error(struct mlx5dv_mkey *key, struct mlx5dv_mkey_err *error)
{
	/* The transfer itself succeeded: wrong data is not a transport error. */
	int failure = mlx5dv_mkey_check(key, error);

	if (failure)
		die("mlx5dv_mkey_check: %s", strerror(failure));
	return error->err_type != MLX5DV_MKEY_NO_ERR;
}

/* Computes the guard as in the T10 standard: CRC-16 of polynomial 0x8bb7. Adapters do not compute it bit by bit. */
static uint16_t guard(const uint8_t *block)
{
	uint32_t crc = 0;

	for (int i = 0; i < BLOCK; i++) {
		crc ^= (uint32_t)block[i] << 8;
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 0x8000 ? crc << 1 ^ 0x8bb7 : crc << 1;
	}
	return (uint16_t)crc;
}

/* The field in question, and the correct value for @block at @lba. */
struct field {
	const char *name, *enumerator;
	int digits;
	uint64_t right;
	const char *right_text, *meaning;
};

static struct field field_of(enum mlx5dv_mkey_err_type type, const uint8_t *block, uint32_t lba)
{
	switch (type) {
	case MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD:
		return (struct field){"guard",
				      "MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD",
				      4,
				      guard(block),
				      "the CRC of the 4096 bytes",
				      "Data or guard have changed since the tuple was made."};
	case MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG:
		return (struct field){
			"application tag",
			"MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG",
			4,
			APPLICATION_TAG,
			"what the owner of these blocks writes",
			"The data fits its guard; the block is another owner's, or its tuple has changed."};
	case MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG:
		return (struct field){
			"reference tag",
			"MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG",
			8,
			lba,
			"the address of the block",
			"The data fits its guard; it is another block than was asked for, or its tuple has changed."};
	default:
		die("error %d of a key: unknown type", type);
	}
}

void protection_explain(const char *finder, const struct mlx5dv_mkey_err *error, const uint8_t *blocks, size_t stride,
			uint32_t lba)
{
	/* The man page gives the offset of the block, adapters that of its last byte: both are inside it. */
	uint32_t block = (uint32_t)(error->err.sig.offset / SECTOR);
	uint64_t actual = error->err.sig.actual_value, expected = error->err.sig.expected_value;
	struct field field = field_of(error->err_type, blocks + block * stride, lba + block);

	/*
	 * According to the man page `actual` was computed from the data and `expected` found in the tuple; adapters
	 * swap them. The known correct value tells the two apart.
	 */
	if ((actual == field.right) == (expected == field.right))
		die("%s: %s 0x%lx or 0x%lx, where 0x%lx is right", finder, field.name, (unsigned long)actual,
		    (unsigned long)expected, (unsigned long)field.right);
	printf("%s finds %s\n", finder, field.enumerator);
	printf("  field     the %s of block %u of the request (offset %lu), LBA %u\n", field.name, block,
	       (unsigned long)error->err.sig.offset, lba + block);
	printf("  actual    0x%0*lx  %s\n", field.digits, (unsigned long)actual,
	       actual == field.right ? field.right_text : "what the tuple says");
	printf("  expected  0x%0*lx  %s\n", field.digits, (unsigned long)expected,
	       expected == field.right ? field.right_text : "what the tuple says");
	printf("  %s\n", field.meaning);
}
