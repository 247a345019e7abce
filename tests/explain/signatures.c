/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 450, 670 to 691: block signatures of keys, their errors, signature pipelining. */
#include "rule_cases.h"

#include "support/crypto_keys.h"
#include "support/signed_key.h"

enum { CQE_SIGNATURE_ERROR = 0xc0, CQE_INVALID = 0xf0 };

static const char set_signature[] = "mlx5dv_wr_set_mkey_sig_block", configure[] = "mlx5dv_wr_mkey_configure";

DOMAIN_CRC(crc32, CRC32, 512, 0);
DOMAIN_CRC(crc32c, CRC32C, 512, 0);

static struct mlx5dv_mkey *mkey;

static void begin(uint8_t setters)
{
	struct mlx5dv_mkey_conf_attr attr = {0};

	mkey = side_create_signed_mkey(&client, 4);
	batch_start(&pair.client, 1, IBV_SEND_INLINE);
	mlx5dv_wr_mkey_configure(pair.client.dv, mkey, setters, &attr);
}

static void set(const struct mlx5dv_sig_block_attr *attr)
{
	mlx5dv_wr_set_mkey_sig_block(pair.client.dv, attr);
}

static void end(int error)
{
	expect_error(ibv_wr_complete(pair.client.ex), error);
}

/* Expects the setter to refuse @attr. */
static void refused(const struct mlx5dv_sig_block_attr *attr)
{
	begin(2);
	set(attr);
	end(EINVAL);
}

#define expect_setter(rule, ...) expect_about_qp(rule, pair.client.qp->qp_num, __VA_ARGS__)

/* ---- the setter ------------------------------------------------------------------------------------------------- */

RULE_CASE(SIG_KEY)
{
	struct mlx5dv_sig_block_attr attr = {.mem = &crc32};
	struct mlx5dv_mkey *plain = side_create_mkey(&client, 4, NULL);

	batch_start(&pair.client, 1, IBV_SEND_INLINE);
	mlx5dv_wr_mkey_configure(pair.client.dv, plain, 1, &(struct mlx5dv_mkey_conf_attr){0});
	set(&attr);
	end(EINVAL);
	expect_setter(SIG_KEY,
		      " %s → EINVAL: key 0x%x was created with create_flags 0x1, without "
		      "MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE",
		      set_signature, plain->lkey);
}

RULE_CASE(SIG_TWICE)
{
	struct mlx5dv_sig_block_attr attr = {.mem = &crc32};

	begin(2);
	set(&attr);
	set(&attr);
	end(EINVAL);
	expect_setter(SIG_TWICE, " %s → EINVAL: %s() was already called in this work request", set_signature,
		      set_signature);
}

RULE_CASE(SIG_NO_DOMAIN)
{
	refused(&(struct mlx5dv_sig_block_attr){0});
	expect_setter(SIG_NO_DOMAIN, " %s → EINVAL: mem and wire of struct mlx5dv_sig_block_attr are both NULL",
		      set_signature);
}

RULE_CASE(SIG_FLAGS)
{
	refused(&(struct mlx5dv_sig_block_attr){.mem = &crc32, .flags = 6});
	expect_setter(SIG_FLAGS, " %s → EINVAL: flags of struct mlx5dv_sig_block_attr are 0x6; the known flags are 0x1",
		      set_signature);
}

RULE_CASE(SIG_COMP_MASK)
{
	refused(&(struct mlx5dv_sig_block_attr){.mem = &crc32, .comp_mask = 3});
	expect_setter(SIG_COMP_MASK,
		      " %s → EINVAL: comp_mask of struct mlx5dv_sig_block_attr is 0x3; it is reserved and must be 0",
		      set_signature);
}

RULE_CASE(SIG_BLOCK_SIZE)
{
	struct mlx5dv_sig_block_domain domain = crc32;

	domain.block_size = 512;
	refused(&(struct mlx5dv_sig_block_attr){.mem = &domain});
	expect_setter(SIG_BLOCK_SIZE, " %s → EINVAL: block_size of the memory domain is 512, which is not a block size",
		      set_signature);
}

RULE_CASE(SIG_DOMAIN_COMP_MASK)
{
	struct mlx5dv_sig_block_domain domain = crc32;

	domain.comp_mask = 7;
	refused(&(struct mlx5dv_sig_block_attr){.wire = &domain});
	expect_setter(SIG_DOMAIN_COMP_MASK,
		      " %s → EINVAL: comp_mask of the wire domain is 0x7; it is reserved and must be 0", set_signature);
}

RULE_CASE(SIG_TYPE)
{
	struct mlx5dv_sig_block_domain domain = crc32;

	domain.sig_type = 2;
	refused(&(struct mlx5dv_sig_block_attr){.wire = &domain});
	expect_setter(SIG_TYPE, " %s → EINVAL: sig_type of the wire domain is 2, which is not a type of signature",
		      set_signature);
}

static void t10dif_refused(struct mlx5dv_sig_t10dif dif)
{
	struct mlx5dv_sig_block_domain domain = {.sig_type = MLX5DV_SIG_TYPE_T10DIF, .sig.dif = &dif};

	refused(&(struct mlx5dv_sig_block_attr){.mem = &domain});
}

RULE_CASE(SIG_T10DIF_SEED)
{
	t10dif_refused((struct mlx5dv_sig_t10dif){.bg = 0xfffe});
	expect_setter(SIG_T10DIF_SEED,
		      " %s → EINVAL: bg of the T10-DIF of the memory domain is 0xfffe; the seed of a guard is 0 or "
		      "0xffff",
		      set_signature);
}

RULE_CASE(SIG_T10DIF_GUARD)
{
	t10dif_refused((struct mlx5dv_sig_t10dif){.bg_type = 2});
	expect_setter(SIG_T10DIF_GUARD,
		      " %s → EINVAL: bg_type of the T10-DIF of the memory domain is 2, which is not a type of guard",
		      set_signature);
}

RULE_CASE(SIG_T10DIF_FLAGS)
{
	t10dif_refused((struct mlx5dv_sig_t10dif){.flags = 0x18});
	expect_setter(SIG_T10DIF_FLAGS,
		      " %s → EINVAL: flags of the T10-DIF of the memory domain are 0x18, which has undefined bits",
		      set_signature);
}

static void crc_refused(struct mlx5dv_sig_crc crc)
{
	struct mlx5dv_sig_block_domain domain = {.sig_type = MLX5DV_SIG_TYPE_CRC, .sig.crc = &crc};

	refused(&(struct mlx5dv_sig_block_attr){.wire = &domain});
}

RULE_CASE(SIG_CRC_TYPE)
{
	crc_refused((struct mlx5dv_sig_crc){.type = 3});
	expect_setter(SIG_CRC_TYPE, " %s → EINVAL: type of the CRC of the wire domain is 3, which is not a type of CRC",
		      set_signature);
}

/* In this profile the upper half of the seed of a CRC32 is used. */
RULE_CASE(SIG_CRC_SEED, .profile = "connectx")
{
	crc_refused((struct mlx5dv_sig_crc){.seed = UINT64_MAX});
	expect_setter(
		SIG_CRC_SEED,
		" %s → EINVAL: seed of the CRC of the wire domain is 0xffffffffffffffff; it must be 0 or all ones",
		set_signature);
}

/* ---- closing the work request ----------------------------------------------------------------------------------- */

RULE_CASE(SIG_COPY_MASK)
{
	begin(1);
	set(&(struct mlx5dv_sig_block_attr){
		.mem = &crc32, .wire = &crc32c, .flags = MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK, .copy_mask = 0x30});
	end(EINVAL);
	expect_setter(
		SIG_COPY_MASK,
		" %s → EINVAL: copy_mask 0x30 is set, but memory and wire differ in block size or type of signature: nothing can be copied",
		configure);
}

RULE_CASE(MKEY_BSF_ROOM)
{
	struct ibv_sge sge = side_sge(&client, 0, 516);

	begin(2);
	mlx5dv_wr_set_mkey_layout_list(pair.client.dv, 1, &sge);
	set(&(struct mlx5dv_sig_block_attr){.mem = &crc32});
	end(ENOMEM);
	expect_setter(MKEY_BSF_ROOM,
		      " %s → ENOMEM: 64 bytes of layout and 64 of block attributes do not fit; a work request of this "
		      "QP holds 64 (max_inline_data is 60)",
		      configure);
}

RULE_CASE(MKEY_BSF_LENGTH)
{
	struct ibv_sge sges[2] = {{.length = UINT32_MAX}, {.length = 1}};
	struct pair_options options = signed_options();

	pair_replace(&pair, &options);
	begin(2);
	mlx5dv_wr_set_mkey_layout_list(pair.client.dv, 2, sges);
	set(&(struct mlx5dv_sig_block_attr){.mem = &crc32});
	end(EINVAL);
	expect_setter(MKEY_BSF_LENGTH,
		      " %s → EINVAL: the layout of the key has 4294967296 bytes; with signature or encryption at most "
		      "4294967295 are possible",
		      configure);
}

/* Two signatures cannot cover ciphertext. */
RULE_CASE(MKEY_CRYPTO_TWO_SIGNATURES)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = client.pd,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE | MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO,
		.max_entries = 4,
	};
	struct mlx5dv_dek_init_attr dek_attr = {.pd = client.pd, .comp_mask = MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN};
	struct mlx5dv_crypto_attr crypto = {
		.encrypt_on_tx = true,
		.signature_crypto_order = MLX5DV_SIGNATURE_CRYPTO_ORDER_SIGNATURE_AFTER_CRYPTO_ON_TX,
	};
	struct pair_options options = signed_options();

	pair_replace(&pair, &options);
	plain_key(dek_attr.key, 32);
	crypto.dek = mlx5dv_dek_create(client.context, &dek_attr);
	assert_non_null(crypto.dek);
	mkey = mlx5dv_create_mkey(&attr);
	assert_non_null(mkey);
	batch_start(&pair.client, 1, IBV_SEND_INLINE);
	mlx5dv_wr_mkey_configure(pair.client.dv, mkey, 2, &(struct mlx5dv_mkey_conf_attr){0});
	mlx5dv_wr_set_mkey_crypto(pair.client.dv, &crypto);
	set(&(struct mlx5dv_sig_block_attr){.mem = &crc32, .wire = &crc32c});
	end(EINVAL);
	expect_setter(
		MKEY_CRYPTO_TWO_SIGNATURES,
		" %s → EINVAL: encryption on TX is yes and signature_crypto_order is %d, which does not work with signatures in both domains",
		configure, MLX5DV_SIGNATURE_CRYPTO_ORDER_SIGNATURE_AFTER_CRYPTO_ON_TX);
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
	expect_error(mlx5dv_dek_destroy(crypto.dek), 0);
}

/* ---- errors ----------------------------------------------------------------------------------------------------- */

/*
 * Writes a signature error of key @index into the ring of a separate CQ (mlx5-formats 3.5) and returns the result of polling.
 * For profile connectx; in the other profile the device keeps the errors, and polling skips such a CQE.
 */
static int poll_error(uint32_t index, uint16_t syndrome)
{
	struct ibv_cq *cq = ibv_create_cq(client.context, 3, NULL, NULL, 0);
	struct mlx5dv_cq out = {0};
	struct mlx5dv_obj object = {.cq = {.in = cq, .out = &out}};
	struct ibv_wc wc;
	uint8_t *cqe;
	int result;

	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ), 0);
	cqe = out.buf;
	assert_int_equal(cqe[63], CQE_INVALID);
	cqe[32] = syndrome >> 8;
	cqe[33] = syndrome & 0xff;
	cqe[35] = 1;
	cqe[36] = index >> 16;
	cqe[37] = index >> 8;
	cqe[38] = (uint8_t)index;
	cqe[57] = 0x12;
	cqe[63] = CQE_SIGNATURE_ERROR;
	result = ibv_poll_cq(cq, 1, &wc);
	expect_error(ibv_destroy_cq(cq), 0);
	return result;
}

RULE_CASE(SIGNATURE_ERROR_OF_NO_KEY, .profile = "connectx")
{
	struct mlx5dv_mkey *plain = side_create_mkey(&client, 4, NULL);

	assert_int_equal(poll_error(plain->lkey >> 8, 0x2000), -2);
	expect_about_qp(
		SIGNATURE_ERROR_OF_NO_KEY, 0x120000,
		" ibv_poll_cq: a CQE has a signature error of key index 0x%x, but this context has no key with signatures there",
		plain->lkey >> 8);
}

RULE_CASE(MKEY_CHECK_NO_SIGNATURE)
{
	struct mlx5dv_mkey *plain = side_create_mkey(&client, 4, NULL);
	struct mlx5dv_mkey_err err;

	expect_error(mlx5dv_mkey_check(plain, &err), EINVAL);
	expect_refusal(MKEY_CHECK_NO_SIGNATURE,
		       "mlx5dv_mkey_check → EINVAL: key 0x%x was created without "
		       "MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE: it has no errors to report",
		       plain->lkey);
}

RULE_CASE(MKEY_CHECK_UNKNOWN_ERROR, .profile = "connectx")
{
	struct mlx5dv_mkey_err err;

	mkey = side_create_signed_mkey(&client, 4);
	assert_int_equal(poll_error(mkey->lkey >> 8, 0x4000), 0);
	expect_error(mlx5dv_mkey_check(mkey, &err), EINVAL);
	expect_refusal(
		MKEY_CHECK_UNKNOWN_ERROR,
		"mlx5dv_mkey_check → EINVAL: the error recorded for key 0x%x has syndrome 0x4000, type 0, domain 1, which is not an error of block signatures",
		mkey->lkey);
}

RULE_CASE(MKEY_CHECK_NO_DOMAIN, .profile = "connectx")
{
	struct mlx5dv_mkey_err err;

	mkey = side_create_signed_mkey(&client, 4);
	assert_int_equal(poll_error(mkey->lkey >> 8, 0x2000), 0);
	expect_error(mlx5dv_mkey_check(mkey, &err), EINVAL);
	expect_refusal(
		MKEY_CHECK_NO_DOMAIN,
		"mlx5dv_mkey_check → EINVAL: the error recorded for key 0x%x was found in its memory domain, which does not have a signature any more",
		mkey->lkey);
}

/* ---- pipelining ------------------------------------------------------------------------------------------------- */

RULE_CASE(CANCEL_NOT_DRAINED)
{
	assert_int_equal(mlx5dv_qp_cancel_posted_send_wrs(pair.client.dv, 1), -EINVAL);
	expect_setter(
		CANCEL_NOT_DRAINED,
		" mlx5dv_qp_cancel_posted_send_wrs → EINVAL: the send queue is in state RTS and may still execute requests: it must be drained (SQD)");
}

RULE_CASE(CANCEL_OPCODE)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};
	struct ibv_send_wr wr = request(IBV_WR_SEND, 0);

	expect_error(ibv_modify_qp(pair.client.qp, &attr, IBV_QP_STATE), 0);
	post_send(&pair.client, &wr);
	assert_int_equal(mlx5dv_qp_cancel_posted_send_wrs(pair.client.dv, WR_ID), 1);
	assert_int_equal(mlx5dv_qp_cancel_posted_send_wrs(pair.client.dv, WR_ID), -EINVAL);
	expect_setter(CANCEL_OPCODE,
		      " mlx5dv_qp_cancel_posted_send_wrs → EINVAL: the request with this wr_id has opcode "
		      "NOP (0x0), which cannot be cancelled");
}
