/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 622 and 651 to 669: data encryption keys, crypto logins, the crypto setter. */
#include "rule_cases.h"

#include "support/crypto_keys.h"

/* ---- data encryption keys --------------------------------------------------------------------------------------- */

static const char dek_create[] = "mlx5dv_dek_create";

static struct mlx5dv_dek_init_attr dek_attr(void)
{
	struct mlx5dv_dek_init_attr attr = {.pd = client.pd, .comp_mask = MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN};

	plain_key(attr.key, 32);
	return attr;
}

static struct mlx5dv_dek_init_attr wrapped_dek_attr(void)
{
	struct mlx5dv_dek_init_attr attr = {.pd = client.pd};

	bytes_of_hex(attr.key, wrapped_128);
	return attr;
}

static void dek_refused(struct mlx5dv_dek_init_attr attr, int error)
{
	expect_null(mlx5dv_dek_create(client.context, &attr), error);
}

RULE_CASE(CRYPTO_NOT_OFFERED, .crypto = "off")
{
	dek_refused(dek_attr(), EOPNOTSUPP);
	expect_refusal(CRYPTO_NOT_OFFERED, "%s → EOPNOTSUPP: the device does not encrypt (SOFTHCA_CRYPTO is off)",
		       dek_create);
}

RULE_CASE(DEK_ATTR)
{
	struct mlx5dv_dek_init_attr attr = dek_attr();

	attr.key_size = 5;
	attr.comp_mask = 9;
	dek_refused(attr, EINVAL);
	expect_refusal(DEK_ATTR,
		       "%s → EINVAL: struct mlx5dv_dek_init_attr has key_purpose 0, key_size 5 and comp_mask 0x9",
		       dek_create);
}

RULE_CASE(DEK_PLAINTEXT_DEVICE)
{
	dek_refused(wrapped_dek_attr(), EINVAL);
	expect_refusal(DEK_PLAINTEXT_DEVICE, "%s → EINVAL: the DEK is wrapped, but the device takes plaintext DEKs",
		       dek_create);
}

RULE_CASE(DEK_WRAPPED_DEVICE, .crypto = "wrapped")
{
	dek_refused(dek_attr(), EINVAL);
	expect_refusal(DEK_WRAPPED_DEVICE, "%s → EINVAL: the DEK is plaintext, but the device takes wrapped DEKs",
		       dek_create);
}

RULE_CASE(DEK_NO_LOGIN, .crypto = "wrapped")
{
	dek_refused(wrapped_dek_attr(), EINVAL);
	expect_refusal(DEK_NO_LOGIN, "%s → EINVAL: the DEK is wrapped, but its context has no crypto login",
		       dek_create);
}

static struct mlx5dv_crypto_login_attr login_attr(void)
{
	struct mlx5dv_crypto_login_attr attr = {0};

	bytes_of_hex(attr.credential, built_in_credential);
	return attr;
}

static void login(void)
{
	struct mlx5dv_crypto_login_attr attr = login_attr();

	expect_error(mlx5dv_crypto_login(client.context, &attr), 0);
}

RULE_CASE(DEK_UNWRAP, .crypto = "wrapped")
{
	struct mlx5dv_dek_init_attr attr = wrapped_dek_attr();

	login();
	attr.has_keytag = true;
	dek_refused(attr, EINVAL);
	expect_refusal(DEK_UNWRAP, "%s → EINVAL: import KEK 0 did not wrap the first 48 bytes of key", dek_create);
}

/* ---- logins ----------------------------------------------------------------------------------------------------- */

RULE_CASE(CRYPTO_COMP_MASK)
{
	struct mlx5dv_crypto_login_attr attr = login_attr();

	attr.comp_mask = 0x30;
	expect_error(mlx5dv_crypto_login(client.context, &attr), EINVAL);
	expect_refusal(CRYPTO_COMP_MASK,
		       "mlx5dv_crypto_login → EINVAL: comp_mask is 0x30; it is reserved and must be 0");
}

RULE_CASE(LOGIN_EXISTS, .crypto = "wrapped")
{
	struct mlx5dv_crypto_login_attr attr = login_attr();

	login();
	expect_error(mlx5dv_crypto_login(client.context, &attr), EEXIST);
	expect_refusal(LOGIN_EXISTS, "mlx5dv_crypto_login → EEXIST: the context is already logged in");
}

RULE_CASE(LOGIN_NOT_OPERATIONAL)
{
	struct mlx5dv_crypto_login_attr attr = login_attr();

	expect_error(mlx5dv_crypto_login(client.context, &attr), EOPNOTSUPP);
	expect_refusal(
		LOGIN_NOT_OPERATIONAL,
		"mlx5dv_crypto_login → EOPNOTSUPP: this device has no crypto login: it takes plaintext DEKs, or has no import KEKs");
}

RULE_CASE(LOGIN_ID, .crypto = "wrapped")
{
	struct mlx5dv_crypto_login_attr attr = login_attr();

	attr.credential_id = 0x12;
	expect_error(mlx5dv_crypto_login(client.context, &attr), EINVAL);
	expect_refusal(
		LOGIN_ID,
		"mlx5dv_crypto_login → EINVAL: credential_id is 0x12 and import_kek_id 0x0, but the device does not have both");
}

RULE_CASE(LOGIN_CREDENTIAL, .crypto = "wrapped")
{
	struct mlx5dv_crypto_login_attr attr = login_attr();

	attr.credential[9] ^= 1;
	expect_error(mlx5dv_crypto_login(client.context, &attr), EINVAL);
	expect_refusal(
		LOGIN_CREDENTIAL,
		"mlx5dv_crypto_login → EINVAL: the credential was not wrapped with import KEK 0, or is not credential 0 of the device");
}

RULE_CASE(LOGIN_CREDENTIAL_LENGTH, .crypto = "wrapped")
{
	struct mlx5dv_crypto_login_attr attr = login_attr();
	struct mlx5dv_crypto_login_attr_ex extended = {.credential = attr.credential, .credential_len = 40};

	expect_null(mlx5dv_crypto_login_create(client.context, &extended), EINVAL);
	expect_refusal(LOGIN_CREDENTIAL_LENGTH, "mlx5dv_crypto_login_create → EINVAL: credential_len is 40; a wrapped "
						"credential has 48 bytes");
}

RULE_CASE(LOGIN_NONE)
{
	expect_error(mlx5dv_crypto_logout(client.context), ENOENT);
	expect_refusal(LOGIN_NONE, "mlx5dv_crypto_logout → ENOENT: the context is not logged in");
}

/* ---- keys that encrypt ------------------------------------------------------------------------------------------ */

#define CRYPTO_KEY (MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO)

RULE_CASE(MKEY_NO_CRYPTO, .crypto = "off")
{
	struct mlx5dv_mkey_init_attr attr = {.pd = client.pd, .create_flags = CRYPTO_KEY, .max_entries = 4};

	expect_null(mlx5dv_create_mkey(&attr), EOPNOTSUPP);
	expect_refusal(
		MKEY_NO_CRYPTO,
		"mlx5dv_create_mkey → EOPNOTSUPP: create_flags 0x5 request encryption, which the device does not have");
}

/* Calls the setter @times on a key of @create_flags; the last call fails. */
static void setter_refused(uint32_t create_flags, int times, const struct mlx5dv_crypto_attr *crypto)
{
	struct mlx5dv_mkey_init_attr attr = {.pd = client.pd, .create_flags = create_flags, .max_entries = 4};
	struct mlx5dv_mkey *mkey = mlx5dv_create_mkey(&attr);
	struct mlx5dv_mkey_conf_attr none = {0};

	assert_non_null(mkey);
	batch_start(&pair.client, 1, IBV_SEND_INLINE);
	mlx5dv_wr_mkey_configure(pair.client.dv, mkey, 3, &none);
	for (int i = 0; i < times; i++)
		mlx5dv_wr_set_mkey_crypto(pair.client.dv, crypto);
	expect_error(ibv_wr_complete(pair.client.ex), EINVAL);
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
}

#define EXPECT_SETTER_REFUSED(rule, text)                                                                              \
	expect_about_qp(rule, pair.client.qp->qp_num, " mlx5dv_wr_set_mkey_crypto → EINVAL: " text)

RULE_CASE(MKEY_CRYPTO_FLAG)
{
	setter_refused(MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, 1, &(struct mlx5dv_crypto_attr){0});
	EXPECT_SETTER_REFUSED(MKEY_CRYPTO_FLAG, "the key was created with create_flags 0x1, without "
						"MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO");
}

RULE_CASE(MKEY_CRYPTO_TWICE)
{
	struct mlx5dv_dek_init_attr attr = dek_attr();
	struct mlx5dv_crypto_attr crypto = {.dek = mlx5dv_dek_create(client.context, &attr)};

	assert_non_null(crypto.dek);
	setter_refused(CRYPTO_KEY, 2, &crypto);
	expect_error(mlx5dv_dek_destroy(crypto.dek), 0);
	EXPECT_SETTER_REFUSED(MKEY_CRYPTO_TWICE, "mlx5dv_wr_set_mkey_crypto() was already called in this work request");
}

RULE_CASE(MKEY_CRYPTO_ATTR)
{
	setter_refused(
		CRYPTO_KEY, 1,
		&(struct mlx5dv_crypto_attr){.comp_mask = 0x40, .signature_crypto_order = 2, .data_unit_size = 9});
	EXPECT_SETTER_REFUSED(MKEY_CRYPTO_ATTR, "struct mlx5dv_crypto_attr has comp_mask 0x40, crypto_standard 0, "
						"signature_crypto_order 2 and data_unit_size 9");
}

RULE_CASE(MKEY_CRYPTO_DEK)
{
	setter_refused(CRYPTO_KEY, 1, &(struct mlx5dv_crypto_attr){0});
	EXPECT_SETTER_REFUSED(MKEY_CRYPTO_DEK, "dek of struct mlx5dv_crypto_attr is NULL");
}
