/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parses BSFs into setups (mkey/bsf.h): the destination of each field of mlx5-formats 1.11 and 1.12, fields without
 * effect, and every refusal, which leaves setup and references unchanged. BSFs are written here byte by byte.
 */
#include "test_case.h"

#include "mkey/bsf.h"
#include "block/dek.h"
#include "../support/device_fixture.h"

enum {
	KEY = 0x1234500,
	BSF = 64,
	/* mlx5-formats 1.11, byte 0 */
	BASIC = 0x00,
	EXTENDED = 0x40,
	WITH_SECTIONS = 0x80,
	WITH_CIPHER = 0xc0,
	SAME = 0x10,
	/* 1.12, byte 0 */
	CIPHER_ALONE = 0x81,
	CIPHER_BEHIND = 0xc1,
	/* places */
	CHECKED = 1,
	COPIED = 2,
	WIRE_BLOCK = 2,
	MEMORY_BLOCK = 3,
	WIRE = 8,
	MEMORY = 12,
	WIRE_SECTION = 32,
	MEMORY_SECTION = 48,
};

static struct hca_pd *other_pd;
static uint32_t psv[2], other_psv, dek, tagged_dek, other_dek;
static const uint8_t keytag[8] = {1, 2, 3, 4, 5, 6, 7, 8};

static void make_dek(struct hca_pd *pd, bool has_keytag, uint32_t *id)
{
	struct dek_attr attr = {.pd = hca_pd_number(pd), .key_bytes = 32, .key = {1}, .has_keytag = has_keytag};

	memcpy(attr.keytag, keytag, sizeof(keytag));
	assert_int_equal(dek_create(device.hca, &attr, id), 0);
}

static int set_up(void **state)
{
	(void)state;
	device_open(&device);
	assert_int_equal(hca_pd_alloc(device.context, &other_pd), 0);
	assert_int_equal(hca_psv_create(device.pd, &psv[0]), 0);
	assert_int_equal(hca_psv_create(device.pd, &psv[1]), 0);
	assert_int_equal(hca_psv_create(other_pd, &other_psv), 0);
	make_dek(device.pd, false, &dek);
	make_dek(device.pd, true, &tagged_dek);
	make_dek(other_pd, false, &other_dek);
	return 0;
}

static int tear_down(void **state)
{
	const uint32_t deks[] = {dek, tagged_dek, other_dek};

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(dek_destroy(device.hca, deks[i]), 0);
	assert_int_equal(hca_psv_destroy(device.hca, psv[0]), 0);
	assert_int_equal(hca_psv_destroy(device.hca, psv[1]), 0);
	assert_int_equal(hca_psv_destroy(device.hca, other_psv), 0);
	assert_int_equal(hca_pd_dealloc(other_pd), 0);
	device_close(&device);
	return 0;
}

/* Returns the references of a DEK, including its own. */
static uint32_t references(uint32_t id)
{
	struct dek *found = dek_get(device.hca, id);
	uint32_t count = found->references - 1;

	dek_put(found);
	return count;
}

/* ---- writing -------------------------------------------------------------------------------------------------- */

static void put(uint8_t *bsf, int at, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		bsf[at + i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

/* Fills in the 32 bytes of a transaction BSF: wire domain, PSV 0, 512 bytes. */
static void transaction(uint8_t *bsf, uint8_t format)
{
	memset(bsf, 0, 32);
	bsf[0] = 1 << 6;
	put(bsf, 4, 512, 4);
	put(bsf, 16, 3 << 28, 4);
	put(bsf, 24, (uint32_t)format << 24 | psv[0], 4);
}

/* Writes a valid BSF: CRC32 of 512 bytes in memory, CRC64 of 4096 on the wire. */
static void put_crcs(uint8_t *bsf)
{
	memset(bsf, 0, 2 * BSF);
	bsf[0] = BASIC;
	bsf[CHECKED] = 0xff;
	bsf[WIRE_BLOCK] = 3;
	bsf[MEMORY_BLOCK] = 1;
	put(bsf, 4, 0xffffffff, 4);
	put(bsf, WIRE, 0x52000000 | psv[1], 4);
	put(bsf, MEMORY, 0x22000000 | psv[0], 4);
}

static void put_section(uint8_t *section)
{
	put(section, 0, 0xc000, 2);
	put(section, 2, 0x1234, 2);
	put(section, 4, 0x56789abc, 4);
	section[8] = 1;
	section[9] = 0x80;
	put(section, 14, 0xffff, 2);
}

/* Writes T10-DIF of 512 bytes in both domains, with the same structure. */
static void put_difs(uint8_t *bsf)
{
	put_crcs(bsf);
	bsf[0] = WITH_SECTIONS | SAME;
	bsf[COPIED] = 0;
	put(bsf, WIRE, psv[1], 4);
	put(bsf, MEMORY, psv[0], 4);
	put_section(bsf + WIRE_SECTION);
	put_section(bsf + MEMORY_SECTION);
}

static void put_cipher(uint8_t *bsf, uint8_t first)
{
	memset(bsf, 0, BSF);
	bsf[0] = first;
	put(bsf, 4, 0xffffffff, 4);
	bsf[8] = 1;
	put(bsf, 32, dek, 4);
}

/* Parses the first @octowords, with no memory after them: AddressSanitizer would report an overrun. */
static int parse(const uint8_t *bsf, uint32_t octowords, struct block_setup *setup, struct refusal *why)
{
	const struct walk_access access = {.hca = device.hca, .pd = hca_pd_number(device.pd)};
	uint8_t *exact = malloc(octowords * 16);
	int error;

	memcpy(exact, bsf, octowords * 16);
	epoch_enter();
	error = bsf_parse(&access, KEY, exact, octowords, setup, why);
	epoch_leave();
	free(exact);
	return error;
}

/* Returns the setup of a valid BSF; the caller calls block_setup_clear(). */
static struct block_setup good(const uint8_t *bsf, uint32_t octowords)
{
	struct block_setup setup = {0};
	struct refusal why = {RULE_NONE, {0}};
	int error = parse(bsf, octowords, &setup, &why);

	if (error)
		fail_msg("refused by rule %d", why.rule);
	return setup;
}

static struct signature_setup good_signature(const uint8_t *bsf, uint32_t octowords)
{
	return good(bsf, octowords).signature;
}

/* ---- fields of a signature ------------------------------------------------------------------------------------ */

static void expect_domain(const struct signature_domain *domain, uint8_t guard, uint8_t field, bool ones,
			  uint32_t block, uint32_t number)
{
	assert_int_equal(domain->guard, guard);
	assert_int_equal(domain->field, field);
	assert_int_equal(domain->ones, ones);
	assert_int_equal(domain->block, block);
	assert_int_equal(domain->psv, number);
}

TEST(crcs)
{
	struct signature_setup signature;
	struct block_setup setup;
	uint8_t bsf[2 * BSF];

	put_crcs(bsf);
	setup = good(bsf, 1);
	signature = setup.signature;
	assert_true(signature.enabled);
	assert_false(signature.same);
	assert_false(signature.escape_all);
	assert_int_equal(signature.checked, UINT64_MAX);
	assert_int_equal(signature.copied, 0);
	assert_int_equal(signature.limit, UINT64_MAX);
	expect_domain(&signature.memory, GUARD_CRC32, 4, true, 512, psv[0]);
	expect_domain(&signature.wire, GUARD_CRC64_XP10, 8, true, 4096, psv[1]);
	assert_false(signature.memory.tags);
	assert_false(signature.wire.tags);
	assert_false(setup.cipher.enabled);
	assert_null(setup.cipher.dek);
}

/* "1 512, 2 520, 3 4096, 4 4160, 6 4048"; 0: no signature, and the block size is that of the other domain. */
TEST(block_sizes)
{
	static const struct {
		uint8_t selector;
		uint32_t bytes;
	} sizes[] = {{1, 512}, {2, 520}, {3, 4096}, {4, 4160}, {6, 4048}};
	struct signature_setup signature;
	uint8_t bsf[2 * BSF];

	for (int m = 0; m < 5; m++)
		for (int w = 0; w < 5; w++) {
			put_crcs(bsf);
			bsf[MEMORY_BLOCK] = sizes[m].selector;
			bsf[WIRE_BLOCK] = sizes[w].selector;
			signature = good_signature(bsf, 1);
			assert_int_equal(signature.memory.block, sizes[m].bytes);
			assert_int_equal(signature.wire.block, sizes[w].bytes);
			bsf[MEMORY_BLOCK] = 0;
			signature = good_signature(bsf, 1);
			assert_true(signature.enabled);
			expect_domain(&signature.memory, GUARD_NONE, 0, false, sizes[w].bytes, 0);
			assert_int_equal(signature.wire.block, sizes[w].bytes);
			bsf[MEMORY_BLOCK] = sizes[m].selector;
			bsf[WIRE_BLOCK] = 0;
			signature = good_signature(bsf, 1);
			assert_true(signature.enabled);
			expect_domain(&signature.wire, GUARD_NONE, 0, false, sizes[m].bytes, 0);
		}
	/* As the driver writes "no signature". */
	bsf[MEMORY_BLOCK] = 0;
	assert_false(good_signature(bsf, 1).enabled);
}

/* "CRC32 0x20, CRC32C 0x40, CRC64_XP10 0x50, + 0x02 repeat (always) + 0x01 when seed is ZERO" */
TEST(formats)
{
	static const struct {
		uint8_t format, guard, field;
		bool ones;
	} expected[] = {
		{0x22, GUARD_CRC32, 4, true},   {0x23, GUARD_CRC32, 4, false},     {0x42, GUARD_CRC32C, 4, true},
		{0x43, GUARD_CRC32C, 4, false}, {0x52, GUARD_CRC64_XP10, 8, true}, {0x53, GUARD_CRC64_XP10, 8, false},
	};
	struct signature_setup signature;
	uint8_t bsf[2 * BSF];

	for (int i = 0; i < 6; i++) {
		put_crcs(bsf);
		bsf[MEMORY] = expected[i].format;
		bsf[WIRE] = expected[5 - i].format;
		signature = good_signature(bsf, 1);
		expect_domain(&signature.memory, expected[i].guard, expected[i].field, expected[i].ones, 512, psv[0]);
		expect_domain(&signature.wire, expected[5 - i].guard, expected[5 - i].field, expected[5 - i].ones, 4096,
			      psv[1]);
	}
}

/* mlx5dv_wr_set_mkey_sig_block(3): bit 7 of a mask is the first byte of the signature. */
TEST(masks)
{
	uint8_t bsf[2 * BSF];

	for (int bit = 0; bit < 8; bit++) {
		struct signature_setup signature;
		uint64_t byte = UINT64_C(0xff00000000000000) >> 8 * bit;

		put_difs(bsf);
		bsf[CHECKED] = (uint8_t)(0x80 >> bit);
		bsf[COPIED] = (uint8_t)(0xff ^ 0x80 >> bit);
		signature = good_signature(bsf, 4);
		assert_true(signature.same);
		assert_int_equal(signature.checked, byte);
		assert_int_equal(signature.copied, ~byte);
	}
	/* Different structures: nothing can be copied, and the same byte holds the size of a block. */
	put_crcs(bsf);
	assert_int_equal(good_signature(bsf, 1).copied, 0);
}

TEST(raw_data_size)
{
	uint8_t bsf[2 * BSF];

	put_crcs(bsf);
	put(bsf, 4, 0x01020304, 4);
	assert_int_equal(good_signature(bsf, 1).limit, 0x01020304);
	put(bsf, 4, 0, 4);
	assert_int_equal(good_signature(bsf, 1).limit, 0);
	put(bsf, 4, 0xfffffffe, 4);
	assert_int_equal(good_signature(bsf, 1).limit, 0xfffffffe);
}

static void expect_tags(const struct signature_domain *domain, uint16_t app, uint32_t ref, bool increments,
			bool escape_app, bool escape_both)
{
	assert_true(domain->tags);
	assert_int_equal(domain->app_tag, app);
	assert_int_equal(domain->ref_tag, ref);
	assert_int_equal(domain->increments, increments);
	assert_int_equal(domain->escape_app, escape_app);
	assert_int_equal(domain->escape_both, escape_both);
}

/* Each section belongs to its own domain, also where the other domain has no signature or a CRC. */
TEST(sections)
{
	struct signature_setup signature;
	uint8_t bsf[2 * BSF];

	put_difs(bsf);
	signature = good_signature(bsf, 4);
	expect_domain(&signature.memory, GUARD_T10_CRC, 8, false, 512, psv[0]);
	expect_domain(&signature.wire, GUARD_T10_CRC, 8, false, 512, psv[1]);
	expect_tags(&signature.memory, 0x1234, 0x56789abc, false, false, false);
	expect_tags(&signature.wire, 0x1234, 0x56789abc, false, false, false);
	put(bsf, WIRE_SECTION + 2, 0xfedc, 2);
	put(bsf, WIRE_SECTION + 4, 0x13579bdf, 4);
	bsf[WIRE_SECTION + 8] = 2;
	bsf[WIRE_SECTION + 9] = 0x88;
	bsf[WIRE_SECTION + 13] = 0x40;
	signature = good_signature(bsf, 4);
	expect_domain(&signature.wire, GUARD_IP_CHECKSUM, 8, true, 512, psv[1]);
	expect_tags(&signature.wire, 0xfedc, 0x13579bdf, true, false, false);
	expect_tags(&signature.memory, 0x1234, 0x56789abc, false, false, false);
	expect_domain(&signature.memory, GUARD_T10_CRC, 8, false, 512, psv[0]);
	bsf[MEMORY_SECTION + 13] = 0x01;
	bsf[WIRE_SECTION + 13] = 0x02;
	signature = good_signature(bsf, 4);
	expect_tags(&signature.memory, 0x1234, 0x56789abc, false, true, false);
	expect_tags(&signature.wire, 0xfedc, 0x13579bdf, false, false, true);
	/* A CRC in memory: its section has no meaning. */
	put(bsf, MEMORY, 0x42000000 | psv[0], 4);
	bsf[0] = WITH_SECTIONS;
	bsf[WIRE_BLOCK] = 4;
	memset(bsf + MEMORY_SECTION, 0xa5, 16);
	signature = good_signature(bsf, 4);
	expect_domain(&signature.memory, GUARD_CRC32C, 4, true, 512, psv[0]);
	assert_false(signature.memory.tags);
	expect_domain(&signature.wire, GUARD_IP_CHECKSUM, 8, true, 4160, psv[1]);
}

/* Bits without a meaning, or that select the default. */
TEST(meaningless_bits)
{
	static const struct {
		uint8_t place, bits;
	} ignored[] = {{WIRE_SECTION, 0x7f},
		       {WIRE_SECTION + 1, 0xff},
		       {WIRE_SECTION + 9, 0xf7},
		       {WIRE_SECTION + 10, 0xff},
		       {WIRE_SECTION + 11, 0xff},
		       {WIRE_SECTION + 12, 0xff},
		       {WIRE_SECTION + 13, 0xbc},
		       {WIRE_SECTION + 14, 0xff},
		       {WIRE_SECTION + 15, 0xff},
		       {20, 0xff},
		       {24, 0xff},
		       {28, 0xff}};
	uint8_t bsf[2 * BSF];

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++) {
		struct block_setup before, after;

		put_difs(bsf);
		before = good(bsf, 4);
		bsf[ignored[i].place] ^= ignored[i].bits;
		after = good(bsf, 4);
		assert_memory_equal(&before.signature.wire, &after.signature.wire, sizeof(before.signature.wire));
		assert_memory_equal(&before.signature.memory, &after.signature.memory, sizeof(before.signature.memory));
	}
	/* More octowords than the size code states. */
	put_crcs(bsf);
	memset(bsf + 16, 0xa5, sizeof(bsf) - 16);
	assert_true(good_signature(bsf, 8).enabled);
}

TEST(escapes_by_profile)
{
	uint8_t bsf[2 * BSF];

	put_difs(bsf);
	device.hca->settings.profile = PROFILE_CONNECTX;
	assert_true(good_signature(bsf, 4).escape_all);
	device.hca->settings.profile = PROFILE_MAN;
	assert_false(good_signature(bsf, 4).escape_all);
}

/* ---- fields of a cipher --------------------------------------------------------------------------------------- */

/*
 * "0 encrypted on wire, signature computed before encryption (TX+BEFORE); 1 encrypted in memory with signature (!tx+AFTER);
 * 2 raw wire (TX+AFTER); 3 raw memory (!tx+BEFORE)". mlx5dv_wr_set_mkey_crypto(3): BEFORE has the cipher next to the wire.
 */
TEST(orders)
{
	static const struct {
		bool encrypts_on_tx, on_wire;
	} expected[] = {{true, true}, {false, false}, {true, false}, {false, true}};
	uint8_t bsf[2 * BSF];

	for (uint8_t order = 0; order < 4; order++) {
		struct block_setup setup;

		put_crcs(bsf);
		bsf[0] = WITH_CIPHER;
		put_cipher(bsf + BSF, CIPHER_BEHIND);
		bsf[BSF + 1] = order;
		setup = good(bsf, 8);
		assert_true(setup.signature.enabled);
		assert_true(setup.cipher.enabled);
		assert_int_equal(setup.cipher.encrypts_on_tx, expected[order].encrypts_on_tx);
		assert_int_equal(setup.cipher.on_wire, expected[order].on_wire);
		block_setup_clear(&setup);
		/* "Relevant only if signature is configured." */
		put_cipher(bsf, CIPHER_ALONE);
		bsf[1] = order;
		setup = good(bsf, 4);
		assert_false(setup.signature.enabled);
		assert_int_equal(setup.cipher.encrypts_on_tx, expected[order].encrypts_on_tx);
		assert_true(setup.cipher.on_wire);
		block_setup_clear(&setup);
	}
}

TEST(units_and_tweak)
{
	static const uint32_t units[] = {0, 512, 520, 4096, 4160, 0, 4048};
	uint8_t bsf[2 * BSF];

	for (uint8_t selector = 1; selector <= 6; selector++) {
		struct block_setup setup;

		if (selector == 5)
			continue;
		put_cipher(bsf, CIPHER_ALONE);
		bsf[8] = selector;
		for (uint8_t i = 0; i < 16; i++)
			bsf[16 + i] = (uint8_t)(0x10 + i);
		setup = good(bsf, 4);
		assert_int_equal(setup.cipher.unit, units[selector]);
		/* mlx5-formats 1.12: "copied otherwise" */
		for (uint8_t i = 0; i < 16; i++)
			assert_int_equal(setup.cipher.tweak[i], 0x10 + i);
		block_setup_clear(&setup);
	}
}

TEST(deks)
{
	struct block_setup setup = {0};
	struct refusal why;
	uint8_t bsf[2 * BSF];

	put_cipher(bsf, CIPHER_ALONE);
	bsf[32] = 0xa5; /* not part of the number */
	assert_int_equal(parse(bsf, 4, &setup, &why), 0);
	assert_int_equal(setup.cipher.dek->id, dek);
	assert_int_equal(references(dek), 2);
	/* A DEK with a tag requires that tag; one without accepts any. */
	put(bsf, 32, tagged_dek, 4);
	memcpy(bsf + 40, keytag, sizeof(keytag));
	assert_int_equal(parse(bsf, 4, &setup, &why), 0);
	assert_int_equal(setup.cipher.dek->id, tagged_dek);
	assert_int_equal(references(dek), 1);
	assert_int_equal(references(tagged_dek), 2);
	put(bsf, 32, dek, 4);
	assert_int_equal(parse(bsf, 4, &setup, &why), 0);
	assert_int_equal(references(tagged_dek), 1);
	assert_int_equal(references(dek), 2);
	/* Features that a BSF does not mention are switched off. */
	put_crcs(bsf);
	assert_int_equal(parse(bsf, 1, &setup, &why), 0);
	assert_false(setup.cipher.enabled);
	assert_null(setup.cipher.dek);
	assert_int_equal(references(dek), 1);
	put_cipher(bsf, CIPHER_ALONE);
	assert_int_equal(parse(bsf, 4, &setup, &why), 0);
	assert_false(setup.signature.enabled);
	block_setup_clear(&setup);
	assert_false(setup.cipher.enabled);
	assert_int_equal(references(dek), 1);
}

/* ---- refusals ------------------------------------------------------------------------------------------------- */

/* Expects a refusal in place of a valid setup with both halves. */
static void expect_refused(const uint8_t *bsf, uint32_t octowords, enum explain_rule rule, int line)
{
	static struct block_setup setup, before;
	struct refusal why = {RULE_NONE, {0}};
	uint8_t first[2 * BSF];

	put_difs(first);
	first[0] = WITH_CIPHER | SAME;
	put_cipher(first + BSF, CIPHER_BEHIND);
	assert_int_equal(parse(first, 8, &setup, &why), 0);
	memcpy(&before, &setup, sizeof(before));
	if (parse(bsf, octowords, &setup, &why) != -EACCES || why.rule != rule)
		fail_msg("line %d: rule %d, not %d", line, why.rule, rule);
	if (why.args[0] != KEY)
		fail_msg("line %d: explained with key %#llx", line, (unsigned long long)why.args[0]);
	if (memcmp(&before, &setup, sizeof(before)))
		fail_msg("line %d: the setup was changed", line);
	if (references(dek) != 2 || references(tagged_dek) != 1 || references(other_dek) != 1)
		fail_msg("line %d: a reference was taken or lost", line);
	block_setup_clear(&setup);
}

/* Applies @change to a valid BSF and expects a refusal by @rule. */
#define REFUSED_CRCS(rule, change)                                                                                     \
	do {                                                                                                           \
		put_crcs(bsf);                                                                                         \
		change;                                                                                                \
		expect_refused(bsf, 4, RULE_##rule, __LINE__);                                                         \
	} while (0)
#define REFUSED_DIFS(rule, change)                                                                                     \
	do {                                                                                                           \
		put_difs(bsf);                                                                                         \
		change;                                                                                                \
		expect_refused(bsf, 4, RULE_##rule, __LINE__);                                                         \
	} while (0)
#define REFUSED_CIPHER(rule, change)                                                                                   \
	do {                                                                                                           \
		put_cipher(bsf, CIPHER_ALONE);                                                                         \
		change;                                                                                                \
		expect_refused(bsf, 4, RULE_##rule, __LINE__);                                                         \
		put_crcs(bsf);                                                                                         \
		bsf[0] = WITH_CIPHER;                                                                                  \
		bsf += BSF;                                                                                            \
		put_cipher(bsf, CIPHER_BEHIND);                                                                        \
		change;                                                                                                \
		bsf -= BSF;                                                                                            \
		expect_refused(bsf, 8, RULE_##rule, __LINE__);                                                         \
	} while (0)

TEST(refused_sizes)
{
	static const struct {
		uint8_t first;
		uint32_t octowords; /* one less than required */
	} sizes[] = {{EXTENDED, 1}, {WITH_SECTIONS, 3}, {WITH_CIPHER, 7}, {CIPHER_ALONE, 3}};
	uint8_t bsf[2 * BSF];

	for (int i = 0; i < 4; i++) {
		put_difs(bsf);
		bsf[0] = sizes[i].first;
		expect_refused(bsf, sizes[i].octowords, RULE_BSF_SIZE, __LINE__);
	}
	/* A cipher BSF has one size only. */
	for (int code = 0; code < 4; code++) {
		put_cipher(bsf, (uint8_t)(code << 6 | 1));
		if (code != 2)
			expect_refused(bsf, 8, RULE_BSF_SIZE, __LINE__);
	}
}

TEST(refused_signatures)
{
	uint8_t bsf[2 * BSF];

	for (uint32_t selector = 5; selector < 256; selector += selector == 5 ? 2 : 1) {
		REFUSED_CRCS(BSF_BLOCK, bsf[MEMORY_BLOCK] = (uint8_t)selector);
		REFUSED_CRCS(BSF_BLOCK, bsf[WIRE_BLOCK] = (uint8_t)selector);
	}
	for (uint32_t format = 1; format < 256; format++) {
		bool known = format == 0x22 || format == 0x23 || format == 0x42 || format == 0x43 || format == 0x52 ||
			     format == 0x53;

		if (known)
			continue;
		REFUSED_CRCS(BSF_FORMAT, bsf[MEMORY] = (uint8_t)format);
		REFUSED_CRCS(BSF_FORMAT, bsf[WIRE] = (uint8_t)format);
	}
	for (int at = WIRE; at <= MEMORY; at += MEMORY - WIRE) {
		REFUSED_CRCS(BSF_PSV, put(bsf, at + 1, 0, 3));
		REFUSED_CRCS(BSF_PSV, put(bsf, at + 1, 0xffffff, 3));
		REFUSED_CRCS(BSF_PSV, put(bsf, at + 1, other_psv, 3));
		REFUSED_CRCS(BSF_PSV, put(bsf, at + 1, 0x010000 | psv[0], 3));
	}
	REFUSED_DIFS(BSF_TRANSACTION, put(bsf, 16, 1, 4));
	REFUSED_DIFS(BSF_TRANSACTION, put(bsf, 16, 0x80000000, 4));
	REFUSED_DIFS(BSF_TRANSACTION, (bsf[0] = EXTENDED, put(bsf, 16, 1, 4)));
	/* With block signatures; over zero or too many bytes; of another format; with a PSV that does not exist. */
	REFUSED_DIFS(BSF_TRANSACTION, (bsf[0] = EXTENDED, put(bsf, 4, 512, 4), put(bsf, 16, 1 << 28, 4),
				       put(bsf, 24, 0x40 << 24 | psv[0], 4)));
	REFUSED_DIFS(BSF_TRANSACTION, (transaction(bsf, 0x40), put(bsf, 4, 0, 4)));
	REFUSED_DIFS(BSF_TRANSACTION, (transaction(bsf, 0x40), put(bsf, 4, 0x80000001, 4)));
	REFUSED_DIFS(BSF_TRANSACTION, transaction(bsf, 0x20));
	REFUSED_DIFS(BSF_TRANSACTION, transaction(bsf, 0x50));
	REFUSED_DIFS(BSF_PSV, (transaction(bsf, 0x40), put(bsf, 25, 0xffffff, 3)));
}

TEST(refused_sections)
{
	uint8_t bsf[2 * BSF];

	for (int at = WIRE_SECTION; at <= MEMORY_SECTION; at += MEMORY_SECTION - WIRE_SECTION) {
		REFUSED_DIFS(BSF_INLINE, bsf[at] = 0x40);
		REFUSED_DIFS(BSF_INLINE, bsf[at + 8] = 0);
		for (int guard = 3; guard < 256; guard++)
			REFUSED_DIFS(BSF_INLINE, bsf[at + 8] = (uint8_t)guard);
	}
	/* Without block signatures there is no T10-DIF. */
	REFUSED_DIFS(BSF_INLINE, bsf[0] = BASIC | SAME);
	REFUSED_DIFS(BSF_INLINE, bsf[0] = EXTENDED | SAME);
}

/* Bytes are copied only between fields with the same meaning. */
TEST(refused_structures)
{
	uint8_t bsf[2 * BSF];

	REFUSED_DIFS(BSF_SAME, bsf[WIRE] = 0x52);
	REFUSED_DIFS(BSF_SAME, bsf[MEMORY] = 0x52);
	REFUSED_CRCS(BSF_SAME, bsf[0] |= SAME);
	REFUSED_CRCS(BSF_SAME, (bsf[0] |= SAME, bsf[WIRE] = 0x42));
	/* These are accepted: different seeds, different guards of T10-DIF. */
	put_crcs(bsf);
	bsf[0] |= SAME;
	bsf[WIRE] = 0x23;
	assert_true(good_signature(bsf, 1).same);
	put_difs(bsf);
	bsf[WIRE_SECTION + 8] = 2;
	assert_true(good_signature(bsf, 4).same);
}

TEST(refused_ciphers)
{
	uint8_t both[2 * BSF], *bsf = both;

	REFUSED_CIPHER(BSF_CIPHER, bsf[3] = 1);
	REFUSED_CIPHER(BSF_CIPHER, bsf[1] = 4);
	REFUSED_CIPHER(BSF_CIPHER, bsf[1] = 0x80);
	REFUSED_CIPHER(BSF_CIPHER, bsf[8] = 0);
	REFUSED_CIPHER(BSF_CIPHER, bsf[8] = 5);
	REFUSED_CIPHER(BSF_CIPHER, bsf[8] = 7);
	REFUSED_CIPHER(BSF_DEK, put(bsf, 32, 0, 4));
	REFUSED_CIPHER(BSF_DEK, put(bsf, 32, 0xffffff, 4));
	REFUSED_CIPHER(BSF_DEK_DOMAIN, put(bsf, 32, other_dek, 4));
	REFUSED_CIPHER(BSF_KEYTAG, put(bsf, 32, tagged_dek, 4));
	REFUSED_CIPHER(BSF_KEYTAG, (put(bsf, 32, tagged_dek, 4), memcpy(bsf + 40, keytag, 7)));
}

int main(void)
{
	return run_cases(.group_setup = set_up, .group_teardown = tear_down);
}
