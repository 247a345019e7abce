/* SPDX-License-Identifier: BSD-2-Clause */
/* block/import_keys: key unwrapping against the vectors of RFC 3394, and the credential file of a crypto officer. */
#include "test_case.h"

#include <openssl/err.h>

#include "block/import_keys.h"

#define KEK_A "000102030405060708090a0b0c0d0e0f"
#define KEK_B "000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F"
#define CREDENTIAL "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f2021222324252627"
#define ENOUGH "import_kek 0 " KEK_A "\ncredential 0 " CREDENTIAL "\n"

static size_t from_hex(uint8_t *out, const char *hex)
{
	size_t bytes = strlen(hex) / 2;

	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(sscanf(hex + 2 * i, "%2hhx", &out[i]), 1);
	return bytes;
}

/* RFC 3394 section 4: the vectors with KEKs of 128 and of 256 bits. */
static const struct wrap_vector {
	const char *section, *kek, *data, *wrapped;
} vectors[] = {
	{"4.1", KEK_A, "00112233445566778899AABBCCDDEEFF", "1FA68B0A8112B447AEF34BD8FB5A7B829D3E862371D2CFE5"},
	{"4.3", KEK_B, "00112233445566778899AABBCCDDEEFF", "64E8C3F9CE0F5BA263E9777905818A2A93C8191E7D6E8AE7"},
	{"4.5", KEK_B, "00112233445566778899AABBCCDDEEFF0001020304050607",
	 "A8F9BC1612C68B3FF6E6F4FBE30E71E4769C8B80A32CB8958CD5D17D6B254DA1"},
	{"4.6", KEK_B, "00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F",
	 "28C9F404C4B810F4CBCCB35CFB87F8263F5786E2D80ED326CBC7F0E71A99F43BFB988B9B7A02DD21"},
};

TEST(vectors_of_rfc_3394)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		uint8_t data[32], wrapped[40], out[48];
		size_t bytes = from_hex(wrapped, vectors[i].wrapped);
		struct import_kek kek = {0};

		kek.bytes = (unsigned int)from_hex(kek.value, vectors[i].kek);
		assert_int_equal(from_hex(data, vectors[i].data), bytes - 8);
		assert_true(import_unwrap(&kek, out, wrapped, bytes));
		assert_memory_equal(out, data, bytes - 8);
		for (size_t byte = 0; byte < bytes; byte++) {
			wrapped[byte] ^= 0x10;
			assert_false(import_unwrap(&kek, out, wrapped, bytes));
			wrapped[byte] ^= 0x10;
		}
		assert_false(import_unwrap(&kek, out, wrapped, bytes - 8));
		kek.value[15] ^= 1;
		assert_false(import_unwrap(&kek, out, wrapped, bytes));
		/* Failures leave no entry in the program's error queue. */
		assert_int_equal(ERR_peek_error(), 0);
	}
}

static int load(struct import_keys *keys, const char *text, char *error, size_t size)
{
	char path[] = "/tmp/softhca-keys-XXXXXX";
	int file = mkstemp(path), result;

	assert_true(file >= 0);
	assert_int_equal(write(file, text, strlen(text)), strlen(text));
	close(file);
	result = import_keys_load(keys, path, error, size);
	unlink(path);
	return result;
}

static void expect_loaded(const char *text, unsigned int keks, unsigned int credentials)
{
	struct import_keys keys;
	char error[5000];

	assert_int_equal(load(&keys, text, error, sizeof(error)), 0);
	assert_int_equal(keys.kek_count, keks);
	assert_int_equal(keys.credential_count, credentials);
}

static void expect_wrong(const char *text, int line, const char *why)
{
	struct import_keys keys;
	char error[5000], expected[200];

	assert_int_equal(load(&keys, text, error, sizeof(error)), -EINVAL);
	snprintf(expected, sizeof(expected), ", line %d: %s", line, why);
	if (!strstr(error, expected))
		fail_msg("%s, expected: %s", error, expected);
	assert_int_equal(strncmp(error, "SOFTHCA_CRYPTO_FILE: /tmp/", 26), 0);
	assert_int_equal(keys.kek_count, 0);
	assert_int_equal(keys.credential_count, 0);
}

TEST(files_that_load)
{
	char many[16 * 64 + 200] = "credential 0 " CREDENTIAL "\n";

	expect_loaded(ENOUGH, 1, 1);
	expect_loaded("# a comment\n\n \t\n  credential\t16777215   " CREDENTIAL "   # after\r\n"
		      "import_kek 1 " KEK_B,
		      1, 1);
	for (int i = 0; i < 16; i++)
		sprintf(many + strlen(many), "import_kek %d " KEK_A "\n", i);
	expect_loaded(many, 16, 1);
}

TEST(values_of_a_file)
{
	uint8_t kek[32], credential[CREDENTIAL_BYTES];
	struct import_keys keys;
	char error[5000];

	assert_int_equal(load(&keys, ENOUGH "import_kek 9 " KEK_B "\n", error, sizeof(error)), 0);
	from_hex(kek, KEK_B);
	from_hex(credential, CREDENTIAL);
	assert_int_equal(import_kek_find(&keys, 0)->bytes, 16);
	assert_memory_equal(import_kek_find(&keys, 0)->value, kek, 16);
	assert_int_equal(import_kek_find(&keys, 9)->bytes, 32);
	assert_memory_equal(import_kek_find(&keys, 9)->value, kek, 32);
	assert_memory_equal(credential_find(&keys, 0)->value, credential, sizeof(credential));
	assert_null(import_kek_find(&keys, 1));
	assert_null(credential_find(&keys, 9));
	assert_int_equal(import_keys_load(&keys, "built-in", error, sizeof(error)), 0);
	assert_memory_equal(import_kek_find(&keys, 0)->value, kek, 16);
}

TEST(files_that_are_wrong)
{
	char many[17 * 64 + 200] = ENOUGH, long_line[600] = ENOUGH "import_kek 1 ";

	expect_wrong("", 0, "the file must have at least one import KEK and one credential");
	expect_wrong("import_kek 0 " KEK_A "\n", 1, "the file must have at least one import KEK and one credential");
	expect_wrong("credential 0 " CREDENTIAL "\n\n", 2,
		     "the file must have at least one import KEK and one credential");
	expect_wrong(ENOUGH "kek 1 " KEK_A, 3, "expected \"import_kek\" or \"credential\"");
	expect_wrong(ENOUGH "import_kek " KEK_A, 3, "expected \"import_kek ID HEX\"");
	expect_wrong(ENOUGH "\nimport_kek 1 " KEK_A " more", 4, "expected \"import_kek ID HEX\"");
	expect_wrong(ENOUGH "import_kek x " KEK_A, 3, "an id is a decimal number of 24 bits");
	expect_wrong(ENOUGH "import_kek 16777216 " KEK_A, 3, "an id is a decimal number of 24 bits");
	expect_wrong(ENOUGH "import_kek -1 " KEK_A, 3, "an id is a decimal number of 24 bits");
	expect_wrong(ENOUGH "import_kek 0 " KEK_A, 3, "duplicate id of an import KEK");
	expect_wrong(ENOUGH "credential 0 " CREDENTIAL, 3, "duplicate id of a credential");
	expect_wrong(ENOUGH "import_kek 1 " KEK_A "0", 3, "an import KEK is 32 or 64 hexadecimal digits");
	expect_wrong(ENOUGH "import_kek 1 " KEK_A "0011223344556677", 3, "an import KEK is 32 or 64");
	expect_wrong(ENOUGH "import_kek 1 " KEK_B "00", 3, "an import KEK is 32 or 64 hexadecimal digits");
	expect_wrong(ENOUGH "import_kek 1 0g0102030405060708090a0b0c0d0e0f", 3, "an import KEK is 32 or 64");
	expect_wrong(ENOUGH "credential 1 " CREDENTIAL "00", 3, "a credential is 80 hexadecimal digits");
	expect_wrong(ENOUGH "credential 1 " KEK_B, 3, "a credential is 80 hexadecimal digits");
	for (int i = 1; i < 17; i++)
		sprintf(many + strlen(many), "import_kek %d " KEK_A "\n", i);
	expect_wrong(many, 18, "too many import KEKs");
	memset(long_line + strlen(long_line), '0', 300);
	expect_wrong(long_line, 3, "the line is too long");
}

TEST(files_that_are_not_there)
{
	struct import_keys keys;
	char error[100];

	assert_int_equal(import_keys_load(&keys, "/nowhere/keys", error, sizeof(error)), -ENOENT);
	assert_string_equal(error, "SOFTHCA_CRYPTO_FILE: /nowhere/keys: No such file or directory");
	assert_int_not_equal(import_keys_load(&keys, "/tmp", error, sizeof(error)), 0);
	assert_int_equal(keys.kek_count, 0);
}
