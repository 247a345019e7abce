/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads import KEKs and credentials, and unwraps keys. */
#include "block/import_keys.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>

/* mlx5dv_crypto_login_create(3): the device's object has 24 bits. */
#define LARGEST_ID 0xffffffu
#define LINE_SIZE 256

/* NIST's example KEK and a credential, both public, only for tests. */
static const char built_in[] =
	"import_kek 0 000102030405060708090a0b0c0d0e0f\n"
	"credential 0 b5349342f55819b88396a3f5335155484e060617fbc8512b07bad726d2eac9aa4761b095ee08d294\n";

const struct import_kek *import_kek_find(const struct import_keys *keys, uint32_t id)
{
	for (unsigned int i = 0; keys && i < keys->kek_count; i++)
		if (keys->keks[i].id == id)
			return &keys->keks[i];
	return NULL;
}

const struct credential *credential_find(const struct import_keys *keys, uint32_t id)
{
	for (unsigned int i = 0; keys && i < keys->credential_count; i++)
		if (keys->credentials[i].id == id)
			return &keys->credentials[i];
	return NULL;
}

static int digit_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	digit = (char)tolower((unsigned char)digit);
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* Returns the bytes written, or 0 if @hex is not an even number of digits for at most @size bytes. */
static unsigned int parse_hex(const char *hex, uint8_t *out, size_t size)
{
	size_t length = strlen(hex);

	if (length % 2 || length / 2 > size)
		return 0;
	for (size_t i = 0; i < length; i += 2) {
		int high = digit_value(hex[i]), low = digit_value(hex[i + 1]);

		if (high < 0 || low < 0)
			return 0;
		out[i / 2] = (uint8_t)(high << 4 | low);
	}
	return (unsigned int)length / 2;
}

static const char *add_kek(struct import_keys *keys, uint32_t id, const char *hex)
{
	struct import_kek *kek = &keys->keks[keys->kek_count];

	if (keys->kek_count == LIMIT_MAX_IMPORT_KEK)
		return "too many import KEKs";
	if (import_kek_find(keys, id))
		return "duplicate id of an import KEK";
	kek->id = id;
	kek->bytes = parse_hex(hex, kek->value, sizeof(kek->value));
	if (kek->bytes != 16 && kek->bytes != 32)
		return "an import KEK is 32 or 64 hexadecimal digits";
	keys->kek_count++;
	return NULL;
}

static const char *add_credential(struct import_keys *keys, uint32_t id, const char *hex)
{
	struct credential *credential = &keys->credentials[keys->credential_count];

	if (keys->credential_count == LIMIT_MAX_CREDENTIAL)
		return "too many credentials";
	if (credential_find(keys, id))
		return "duplicate id of a credential";
	credential->id = id;
	if (parse_hex(hex, credential->value, CREDENTIAL_BYTES) != CREDENTIAL_BYTES)
		return "a credential is 80 hexadecimal digits";
	keys->credential_count++;
	return NULL;
}

/* Returns false unless @text is a decimal number of 24 bits. */
static bool parse_id(const char *text, uint32_t *id)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long value = strtoul(text, NULL, 10);

	*id = (uint32_t)value;
	return digits && digits <= 8 && !text[digits] && value <= LARGEST_ID;
}

/* Returns a description of the error, or NULL. */
static const char *import_keys_parse_line(struct import_keys *keys, char *line)
{
	char kind[LINE_SIZE], number[LINE_SIZE], hex[LINE_SIZE], rest;
	uint32_t id;

	line[strcspn(line, "#\n")] = '\0';
	if (!line[strspn(line, " \t\r")])
		return NULL;
	if (sscanf(line, " %255s %255s %255s %c", kind, number, hex, &rest) != 3)
		return "expected \"import_kek ID HEX\" or \"credential ID HEX\"";
	if (!parse_id(number, &id))
		return "an id is a decimal number of 24 bits";
	if (strcmp(kind, "import_kek") == 0)
		return add_kek(keys, id, hex);
	if (strcmp(kind, "credential") == 0)
		return add_credential(keys, id, hex);
	return "expected \"import_kek\" or \"credential\"";
}

static const char *import_keys_parse(struct import_keys *keys, FILE *file, unsigned int *number)
{
	const char *wrong = NULL;
	char line[LINE_SIZE];

	for (*number = 1; !wrong && fgets(line, sizeof(line), file); ++*number)
		wrong = strlen(line) == sizeof(line) - 1 ? "the line is too long" : import_keys_parse_line(keys, line);
	OPENSSL_cleanse(line, sizeof(line));
	--*number;
	if (!wrong && ferror(file))
		wrong = "read error";
	if (!wrong && (!keys->kek_count || !keys->credential_count))
		wrong = "the file must have at least one import KEK and one credential";
	return wrong;
}

int import_keys_load(struct import_keys *keys, const char *path, char *error, size_t size)
{
	bool is_file = strcmp(path, IMPORT_KEYS_BUILT_IN) != 0;
	FILE *file = is_file ? fopen(path, "re") : fmemopen((void *)built_in, sizeof(built_in) - 1, "r");
	const char *wrong;
	unsigned int line;

	memset(keys, 0, sizeof(*keys));
	if (!file) {
		int failure = errno;

		snprintf(error, size, "SOFTHCA_CRYPTO_FILE: %s: %s", path, strerror(failure));
		return -failure;
	}
	wrong = import_keys_parse(keys, file, &line);
	fclose(file);
	if (!wrong)
		return 0;
	OPENSSL_cleanse(keys, sizeof(*keys));
	snprintf(error, size, "SOFTHCA_CRYPTO_FILE: %s, line %u: %s", path, line, wrong);
	return -EINVAL;
}

bool import_unwrap(const struct import_kek *kek, void *to, const void *from, size_t bytes)
{
	const EVP_CIPHER *cipher = kek->bytes == 16 ? EVP_aes_128_wrap() : EVP_aes_256_wrap();
	EVP_CIPHER_CTX *context;
	int written = 0;
	bool good;

	/* This thread's error queue belongs to the program, so errors of this call are removed. */
	ERR_set_mark();
	context = EVP_CIPHER_CTX_new();
	if (context)
		EVP_CIPHER_CTX_set_flags(context, EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
	good = context && EVP_DecryptInit_ex(context, cipher, NULL, kek->value, NULL) == 1 &&
	       EVP_DecryptUpdate(context, to, &written, from, (int)bytes) == 1 && written == (int)bytes - 8;
	EVP_CIPHER_CTX_free(context);
	ERR_pop_to_mark();
	return good;
}
