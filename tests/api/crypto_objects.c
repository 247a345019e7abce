/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests DEKs and crypto logins: mlx5dv_dek_create(3), mlx5dv_crypto_login(3), mlx5dv_crypto_login_create(3), and their
 * capabilities, for each value of SOFTHCA_CRYPTO.
 */
#include "support/crypto_keys.h"
#include "support/program.h"

#define MODE "SOFTHCA_CRYPTO"
#define IN_MODE(value) in_setting(MODE, value, "plaintext", __func__)

static struct ibv_context *context;
static struct ibv_pd *pd;

static void open_own(void)
{
	context = open_device();
	pd = ibv_alloc_pd(context);
	assert_non_null(pd);
}

static void close_own(void)
{
	expect_error(ibv_dealloc_pd(pd), 0);
	expect_error(ibv_close_device(context), 0);
}

static struct mlx5dv_crypto_caps caps_of_device(void)
{
	struct mlx5dv_context attr;

	memset(&attr, 0xa5, sizeof(attr));
	attr.comp_mask = MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD;
	assert_int_equal(mlx5dv_query_device(context, &attr), 0);
	assert_int_equal(attr.comp_mask, MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD);
	return attr.crypto_caps;
}

static void expect_caps(uint8_t engines, uint8_t import_method, uint32_t flags)
{
	struct mlx5dv_crypto_caps caps = caps_of_device();

	assert_int_equal(caps.failed_selftests, 0);
	assert_int_equal(caps.crypto_engines, engines);
	assert_int_equal(caps.wrapped_import_method, import_method);
	assert_int_equal(caps.log_max_num_deks > 0, engines != 0);
	assert_int_equal(caps.flags, flags);
}

enum {
	ENGINES = MLX5DV_CRYPTO_ENGINES_CAP_AES_XTS_SINGLE_BLOCK | MLX5DV_CRYPTO_ENGINES_CAP_AES_XTS_MULTI_BLOCK,
};

/* Returns the attributes of a plaintext DEK of @size, valid on a device that accepts plaintext keys. */
static struct mlx5dv_dek_init_attr plaintext_attr(enum mlx5dv_crypto_key_size size, bool tag)
{
	struct mlx5dv_dek_init_attr attr = {
		.key_size = size,
		.has_keytag = tag,
		.key_purpose = MLX5DV_CRYPTO_KEY_PURPOSE_AES_XTS,
		.pd = pd,
		.opaque = "tenant 1",
		.comp_mask = MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN,
	};

	plain_key(attr.key, size == MLX5DV_CRYPTO_KEY_SIZE_256 ? 64 : 32);
	return attr;
}

static struct mlx5dv_dek_init_attr wrapped_attr(enum mlx5dv_crypto_key_size size, bool tag, const char *hex)
{
	struct mlx5dv_dek_init_attr attr = plaintext_attr(size, tag);

	memset(attr.key, 0x5a, sizeof(attr.key));
	bytes_of_hex(attr.key, hex);
	attr.comp_mask = 0;
	return attr;
}

static struct mlx5dv_dek *make_dek(struct mlx5dv_dek_init_attr *attr)
{
	struct mlx5dv_dek *dek = mlx5dv_dek_create(context, attr);

	assert_non_null(dek);
	return dek;
}

static void expect_ready(struct mlx5dv_dek *dek, const struct mlx5dv_dek_init_attr *attr)
{
	struct mlx5dv_dek_attr queried;

	memset(&queried, 0xa5, sizeof(queried));
	queried.comp_mask = 0;
	expect_error(mlx5dv_dek_query(dek, &queried), 0);
	assert_int_equal(queried.state, MLX5DV_DEK_STATE_READY);
	assert_memory_equal(queried.opaque, attr->opaque, sizeof(queried.opaque));
	assert_int_equal(queried.comp_mask, 0);
	queried.comp_mask = 1;
	expect_error(mlx5dv_dek_query(dek, &queried), EINVAL);
}

static void expect_session(enum mlx5dv_crypto_login_state expected)
{
	enum mlx5dv_crypto_login_state state = 77;

	expect_error(mlx5dv_crypto_login_query_state(context, &state), 0);
	assert_int_equal(state, expected);
}

static struct mlx5dv_crypto_login_attr session_attr(void)
{
	struct mlx5dv_crypto_login_attr attr = {0};

	assert_int_equal(bytes_of_hex(attr.credential, built_in_credential), sizeof(attr.credential));
	return attr;
}

static struct mlx5dv_crypto_login_attr_ex object_attr(const struct mlx5dv_crypto_login_attr *attr)
{
	return (struct mlx5dv_crypto_login_attr_ex){
		.credential_id = attr->credential_id,
		.import_kek_id = attr->import_kek_id,
		.credential = attr->credential,
		.credential_len = sizeof(attr->credential),
	};
}

/* ---- plaintext ------------------------------------------------------------------------------------------------ */

TEST(plaintext_deks)
{
	if (!IN_MODE("plaintext"))
		return;
	open_own();
	expect_caps(ENGINES, 0, MLX5DV_CRYPTO_CAPS_CRYPTO);
	for (int tag = 0; tag < 2; tag++) {
		for (int size = 0; size < 2; size++) {
			struct mlx5dv_dek_init_attr attr = plaintext_attr(size, tag);
			struct mlx5dv_dek *dek = make_dek(&attr), *second = make_dek(&attr);

			expect_ready(dek, &attr);
			memcpy(attr.opaque, "\0\1\2\3\4\5\6\7", 8);
			expect_error(mlx5dv_dek_destroy(second), 0);
			second = make_dek(&attr);
			expect_ready(second, &attr);
			expect_error(mlx5dv_dek_destroy(dek), 0);
			expect_error(mlx5dv_dek_destroy(second), 0);
		}
	}
	close_own();
}

TEST(dek_keeps_its_domain)
{
	struct mlx5dv_dek_init_attr attr;
	struct mlx5dv_dek *dek;

	if (!IN_MODE("plaintext"))
		return;
	open_own();
	attr = plaintext_attr(MLX5DV_CRYPTO_KEY_SIZE_128, false);
	dek = make_dek(&attr);
	expect_error(ibv_dealloc_pd(pd), EBUSY);
	expect_error(mlx5dv_dek_destroy(dek), 0);
	close_own();
}

TEST(bad_attributes)
{
	struct mlx5dv_dek_init_attr good, attr;
	struct ibv_context *other;
	struct ibv_pd *foreign;

	if (!IN_MODE("plaintext"))
		return;
	open_own();
	good = plaintext_attr(MLX5DV_CRYPTO_KEY_SIZE_128, false);
#define BAD(member, value)                                                                                             \
	do {                                                                                                           \
		attr = good;                                                                                           \
		attr.member = value;                                                                                   \
		note(#member);                                                                                         \
		expect_null(mlx5dv_dek_create(context, &attr), EINVAL);                                                \
	} while (0)
	BAD(key_purpose, 1);
	BAD(key_size, 2);
	BAD(key_size, (enum mlx5dv_crypto_key_size) - 1);
	BAD(comp_mask, MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN | 2);
	BAD(comp_mask, MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN | UINT64_C(1) << 63);
	/* Wrapped keys, for the session or for a login object, on a device that takes plaintext keys. */
	BAD(comp_mask, 0);
	BAD(crypto_login, (void *)&good);
#undef BAD
	/* Adapters accept a DEK with two equal keys, at each size. */
	for (int size = 0; size < 2; size++) {
		struct mlx5dv_dek *dek;

		attr = plaintext_attr(size, false);
		memcpy(attr.key + 16 * (size + 1), attr.key, 16 * (size + 1));
		dek = mlx5dv_dek_create(context, &attr);
		assert_non_null(dek);
		expect_error(mlx5dv_dek_destroy(dek), 0);
	}
	/* A PD of another context. */
	other = open_device();
	foreign = ibv_alloc_pd(other);
	attr = good;
	attr.pd = foreign;
	expect_null(mlx5dv_dek_create(context, &attr), ENOENT);
	expect_error(ibv_dealloc_pd(foreign), 0);
	expect_error(ibv_close_device(other), 0);
	expect_error(mlx5dv_dek_destroy(make_dek(&good)), 0);
	close_own();
}

/* Checks that the device refuses every login. */
static void expect_no_login(void)
{
	struct mlx5dv_crypto_login_attr session = session_attr();
	struct mlx5dv_crypto_login_attr_ex object = object_attr(&session);

	expect_session(MLX5DV_CRYPTO_LOGIN_STATE_NO_LOGIN);
	expect_error(mlx5dv_crypto_login(context, &session), EOPNOTSUPP);
	expect_null(mlx5dv_crypto_login_create(context, &object), EOPNOTSUPP);
	expect_error(mlx5dv_crypto_logout(context), ENOENT);
	expect_session(MLX5DV_CRYPTO_LOGIN_STATE_NO_LOGIN);
}

TEST(plaintext_has_no_login)
{
	if (!IN_MODE("plaintext"))
		return;
	open_own();
	expect_no_login();
	close_own();
}

/* ---- off ------------------------------------------------------------------------------------------------------ */

TEST(off_has_nothing)
{
	struct mlx5dv_mkey_init_attr mkey = {.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO, .max_entries = 4};
	struct mlx5dv_dek_init_attr attr;

	if (!IN_MODE("off"))
		return;
	open_own();
	expect_caps(0, 0, 0);
	attr = plaintext_attr(MLX5DV_CRYPTO_KEY_SIZE_128, false);
	expect_null(mlx5dv_dek_create(context, &attr), EOPNOTSUPP);
	attr.comp_mask = 0;
	expect_null(mlx5dv_dek_create(context, &attr), EOPNOTSUPP);
	mkey.pd = pd;
	expect_null(mlx5dv_create_mkey(&mkey), EOPNOTSUPP);
	expect_no_login();
	close_own();
}

/* ---- wrapped -------------------------------------------------------------------------------------------------- */

static const struct wrapped_key {
	enum mlx5dv_crypto_key_size size;
	bool tag;
	const char *hex;
} wrapped_keys[] = {
	{MLX5DV_CRYPTO_KEY_SIZE_128, false, wrapped_128},
	{MLX5DV_CRYPTO_KEY_SIZE_128, true, wrapped_128_tag},
	{MLX5DV_CRYPTO_KEY_SIZE_256, false, wrapped_256},
	{MLX5DV_CRYPTO_KEY_SIZE_256, true, wrapped_256_tag},
};

TEST(wrapped_capabilities)
{
	if (!IN_MODE("wrapped"))
		return;
	open_own();
	expect_caps(ENGINES, MLX5DV_CRYPTO_WRAPPED_IMPORT_METHOD_CAP_AES_XTS,
		    MLX5DV_CRYPTO_CAPS_CRYPTO | MLX5DV_CRYPTO_CAPS_WRAPPED_CRYPTO_OPERATIONAL);
	close_own();
}

TEST(session_from_login_to_logout)
{
	struct mlx5dv_crypto_login_attr session = session_attr();
	struct mlx5dv_dek *deks[ARRAY_SIZE(wrapped_keys)];
	struct mlx5dv_dek_attr queried = {0};

	if (!IN_MODE("wrapped"))
		return;
	open_own();
	for (int round = 0; round < 2; round++) {
		struct mlx5dv_dek_init_attr attr = wrapped_attr(MLX5DV_CRYPTO_KEY_SIZE_128, false, wrapped_128);

		expect_session(MLX5DV_CRYPTO_LOGIN_STATE_NO_LOGIN);
		expect_null(mlx5dv_dek_create(context, &attr), EINVAL);
		expect_error(mlx5dv_crypto_login(context, &session), 0);
		expect_session(MLX5DV_CRYPTO_LOGIN_STATE_VALID);
		expect_error(mlx5dv_crypto_login(context, &session), EEXIST);
		expect_session(MLX5DV_CRYPTO_LOGIN_STATE_VALID);
		for (size_t i = 0; i < ARRAY_SIZE(wrapped_keys); i++) {
			attr = wrapped_attr(wrapped_keys[i].size, wrapped_keys[i].tag, wrapped_keys[i].hex);
			deks[i] = make_dek(&attr);
			expect_ready(deks[i], &attr);
		}
		/* Using the DEKs needs no login any more, but a query does. */
		expect_error(mlx5dv_crypto_logout(context), 0);
		expect_session(MLX5DV_CRYPTO_LOGIN_STATE_NO_LOGIN);
		expect_error(mlx5dv_crypto_logout(context), ENOENT);
		for (size_t i = 0; i < ARRAY_SIZE(deks); i++) {
			expect_error(mlx5dv_dek_query(deks[i], &queried), EINVAL);
			expect_error(mlx5dv_dek_destroy(deks[i]), 0);
		}
	}
	close_own();
}

TEST(login_object)
{
	struct mlx5dv_crypto_login_attr session = session_attr();
	struct mlx5dv_crypto_login_attr_ex object = object_attr(&session);
	struct mlx5dv_crypto_login_query_attr queried = {.state = 77};
	struct mlx5dv_crypto_login_obj *login;
	struct mlx5dv_dek_init_attr attr;
	struct mlx5dv_dek *dek;

	if (!IN_MODE("wrapped"))
		return;
	open_own();
	login = mlx5dv_crypto_login_create(context, &object);
	assert_non_null(login);
	expect_error(mlx5dv_crypto_login_query(login, &queried), 0);
	assert_int_equal(queried.state, MLX5DV_CRYPTO_LOGIN_STATE_VALID);
	queried.comp_mask = 1;
	expect_error(mlx5dv_crypto_login_query(login, &queried), EINVAL);
	/* A context has one login, whether a session or an object; the object does not serve as the session. */
	expect_null(mlx5dv_crypto_login_create(context, &object), EEXIST);
	expect_error(mlx5dv_crypto_login(context, &session), EEXIST);
	expect_session(MLX5DV_CRYPTO_LOGIN_STATE_NO_LOGIN);
	for (size_t i = 0; i < ARRAY_SIZE(wrapped_keys); i++) {
		attr = wrapped_attr(wrapped_keys[i].size, wrapped_keys[i].tag, wrapped_keys[i].hex);
		/* The key refers to the session, which does not exist. */
		expect_null(mlx5dv_dek_create(context, &attr), EINVAL);
		attr.crypto_login = login;
		expect_null(mlx5dv_dek_create(context, &attr), EINVAL);
		attr.comp_mask = MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN;
		dek = make_dek(&attr);
		expect_ready(dek, &attr);
		expect_error(mlx5dv_dek_destroy(dek), 0);
	}
	expect_error(mlx5dv_crypto_login_destroy(login), 0);
	/* A login is possible again, of either kind. */
	expect_error(mlx5dv_crypto_login(context, &session), 0);
	expect_null(mlx5dv_crypto_login_create(context, &object), EEXIST);
	expect_error(mlx5dv_crypto_logout(context), 0);
	login = mlx5dv_crypto_login_create(context, &object);
	assert_non_null(login);
	expect_error(mlx5dv_crypto_login_destroy(login), 0);
	close_own();
}

TEST(logins_belong_to_contexts)
{
	struct mlx5dv_dek_init_attr attr;
	struct mlx5dv_crypto_login_attr session = session_attr();
	struct mlx5dv_crypto_login_attr_ex object = object_attr(&session);
	struct ibv_context *other;
	struct mlx5dv_crypto_login_obj *login;

	if (!IN_MODE("wrapped"))
		return;
	open_own();
	other = open_device();
	login = mlx5dv_crypto_login_create(other, &object);
	assert_non_null(login);
	expect_session(MLX5DV_CRYPTO_LOGIN_STATE_NO_LOGIN);
	attr = wrapped_attr(MLX5DV_CRYPTO_KEY_SIZE_128, false, wrapped_128);
	expect_null(mlx5dv_dek_create(context, &attr), EINVAL);
	attr.comp_mask = MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN;
	attr.crypto_login = login;
	expect_null(mlx5dv_dek_create(context, &attr), ENOENT);
	expect_error(mlx5dv_crypto_login(context, &session), 0);
	expect_null(mlx5dv_dek_create(context, &attr), ENOENT);
	attr.comp_mask = 0;
	expect_error(mlx5dv_dek_destroy(make_dek(&attr)), 0);
	expect_error(mlx5dv_crypto_login_destroy(login), 0);
	expect_session(MLX5DV_CRYPTO_LOGIN_STATE_VALID);
	expect_error(ibv_close_device(other), 0);
	/* Closing a context ends its session. */
	close_own();
	open_own();
	expect_session(MLX5DV_CRYPTO_LOGIN_STATE_NO_LOGIN);
	close_own();
}

TEST(wrong_credentials)
{
	struct mlx5dv_crypto_login_attr good = session_attr(), session;
	struct mlx5dv_crypto_login_attr_ex object;

	if (!IN_MODE("wrapped"))
		return;
	open_own();
#define BAD(change)                                                                                                    \
	do {                                                                                                           \
		session = good;                                                                                        \
		session.change;                                                                                        \
		object = object_attr(&session);                                                                        \
		object.comp_mask = session.comp_mask;                                                                  \
		note(#change);                                                                                         \
		expect_error(mlx5dv_crypto_login(context, &session), EINVAL);                                          \
		expect_null(mlx5dv_crypto_login_create(context, &object), EINVAL);                                     \
	} while (0)
	BAD(comp_mask = 1);
	BAD(comp_mask = UINT64_C(1) << 40);
	BAD(credential_id = 1);
	BAD(import_kek_id = 1);
	BAD(credential_id = 0x1000000);
	BAD(import_kek_id = 0x1000000);
	for (size_t i = 0; i < sizeof(good.credential); i++)
		BAD(credential[i] ^= 1);
	/* The plain 40 bytes of the credential, not wrapped. */
	BAD(credential[0] = 0);
#undef BAD
	object = object_attr(&good);
	for (object.credential_len = 0; object.credential_len <= 64; object.credential_len++)
		if (object.credential_len != sizeof(good.credential))
			expect_null(mlx5dv_crypto_login_create(context, &object), EINVAL);
	object = object_attr(&good);
	object.credential = NULL;
	expect_null(mlx5dv_crypto_login_create(context, &object), EINVAL);
	expect_session(MLX5DV_CRYPTO_LOGIN_STATE_NO_LOGIN);
	expect_error(mlx5dv_crypto_login(context, &good), 0);
	close_own();
}

TEST(keys_that_do_not_unwrap)
{
	struct mlx5dv_crypto_login_attr session = session_attr();
	struct mlx5dv_dek_init_attr attr;
	struct mlx5dv_dek *equal;

	if (!IN_MODE("wrapped"))
		return;
	open_own();
	expect_error(mlx5dv_crypto_login(context, &session), 0);
	for (size_t i = 0; i < ARRAY_SIZE(wrapped_keys); i++) {
		for (size_t byte = 0; byte < strlen(wrapped_keys[i].hex) / 2; byte++) {
			attr = wrapped_attr(wrapped_keys[i].size, wrapped_keys[i].tag, wrapped_keys[i].hex);
			attr.key[byte] ^= 0x40;
			expect_null(mlx5dv_dek_create(context, &attr), EINVAL);
		}
		/* A size or tag that differs from the wrapped one. */
		for (size_t other = 0; other < ARRAY_SIZE(wrapped_keys); other++) {
			attr = wrapped_attr(wrapped_keys[other].size, wrapped_keys[other].tag, wrapped_keys[i].hex);
			if (other != i)
				expect_null(mlx5dv_dek_create(context, &attr), EINVAL);
		}
	}
	attr = wrapped_attr(MLX5DV_CRYPTO_KEY_SIZE_128, false, wrapped_equal_halves);
	equal = mlx5dv_dek_create(context, &attr);
	assert_non_null(equal);
	expect_error(mlx5dv_dek_destroy(equal), 0);
	/* Wrapped by the KEK of another device. */
	attr = wrapped_attr(MLX5DV_CRYPTO_KEY_SIZE_128, false, file_wrapped_128);
	expect_null(mlx5dv_dek_create(context, &attr), EINVAL);
	/* Not wrapped. */
	attr = plaintext_attr(MLX5DV_CRYPTO_KEY_SIZE_128, false);
	expect_null(mlx5dv_dek_create(context, &attr), EINVAL);
	attr.comp_mask = 0;
	expect_null(mlx5dv_dek_create(context, &attr), EINVAL);
	close_own();
}

/* ---- SOFTHCA_CRYPTO_FILE -------------------------------------------------------------------------------------- */

/*
 * Runs @test_case as in_setting() does, with SOFTHCA_CRYPTO_FILE naming a file of @text. Returns true in the process that has it.
 */
static bool with_file(const char *text, const char *test_case)
{
	char path[] = "/tmp/softhca-crypto-XXXXXX";
	int file;

	if (getenv("SOFTHCA_CRYPTO_FILE"))
		return true;
	file = mkstemp(path);
	assert_true(file >= 0);
	assert_int_equal(write(file, text, strlen(text)), strlen(text));
	close(file);
	assert_false(in_setting("SOFTHCA_CRYPTO_FILE", path, "built-in", test_case));
	unlink(path);
	return false;
}

TEST(keys_of_a_file)
{
	struct mlx5dv_crypto_login_attr session = {.credential_id = FILE_CREDENTIAL_ID, .import_kek_id = FILE_KEK_ID};
	struct mlx5dv_crypto_login_attr built_in = session_attr();
	struct mlx5dv_dek_init_attr attr;

	if (!IN_MODE("wrapped") || !with_file(FILE_TEXT, __func__))
		return;
	open_own();
	expect_error(mlx5dv_crypto_login(context, &built_in), EINVAL);
	bytes_of_hex(session.credential, file_credential);
	session.credential_id = 0;
	expect_error(mlx5dv_crypto_login(context, &session), EINVAL);
	session.credential_id = FILE_CREDENTIAL_ID;
	session.import_kek_id = 1;
	expect_error(mlx5dv_crypto_login(context, &session), EINVAL);
	session.import_kek_id = FILE_KEK_ID;
	expect_error(mlx5dv_crypto_login(context, &session), 0);
	attr = wrapped_attr(MLX5DV_CRYPTO_KEY_SIZE_128, false, file_wrapped_128);
	expect_error(mlx5dv_dek_destroy(make_dek(&attr)), 0);
	attr = wrapped_attr(MLX5DV_CRYPTO_KEY_SIZE_128, false, wrapped_128);
	expect_null(mlx5dv_dek_create(context, &attr), EINVAL);
	close_own();
}

/* Expects a device that no crypto officer has initialized: its import method is wrapped keys, and logins fail. */
static void expect_not_operational(void)
{
	struct mlx5dv_dek_init_attr attr;

	open_own();
	expect_caps(ENGINES, MLX5DV_CRYPTO_WRAPPED_IMPORT_METHOD_CAP_AES_XTS, MLX5DV_CRYPTO_CAPS_CRYPTO);
	expect_no_login();
	attr = wrapped_attr(MLX5DV_CRYPTO_KEY_SIZE_128, false, wrapped_128);
	expect_null(mlx5dv_dek_create(context, &attr), EINVAL);
	attr = plaintext_attr(MLX5DV_CRYPTO_KEY_SIZE_128, false);
	expect_null(mlx5dv_dek_create(context, &attr), EINVAL);
	close_own();
}

TEST(file_that_is_wrong)
{
	if (IN_MODE("wrapped") && with_file(FILE_TEXT "import_kek 2 abc\n", __func__))
		expect_not_operational();
}

TEST(file_that_is_not_there)
{
	if (IN_MODE("wrapped") && in_setting("SOFTHCA_CRYPTO_FILE", "/nowhere/keys", "built-in", __func__))
		expect_not_operational();
}

int main(void)
{
	return run_cases();
}
