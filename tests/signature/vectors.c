/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the arithmetic of the model: the vectors of mlx5-formats 5.3, and the results of real adapters in 4.6 and 5.2. */
#include "test_case.h"

#include "signature.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct data {
	const char *name;
	size_t length;
	uint8_t first, rest; /* the whole content; or */
	const char *text;
	bool counts; /* 0 … 255, repeated */
};

static const struct data datas[] = {
	{"123456789", .length = 9, .text = "123456789"},
	{"512x00", 512, 0, 0, NULL, false},
	{"512xFF", 512, 0xff, 0xff, NULL, false},
	{"512xA5", 512, 0xa5, 0xa5, NULL, false},
	{"5A+511xA5", 512, 0x5a, 0xa5, NULL, false},
	{"512x01", 512, 1, 1, NULL, false},
	{"00..FF x2", .length = 512, .counts = true},
	{"520x00", 520, 0, 0, NULL, false},
	{"4048x00", 4048, 0, 0, NULL, false},
	{"4096x00", 4096, 0, 0, NULL, false},
	{"4096x61", 4096, 0x61, 0x61, NULL, false},
	{"4160x00", 4160, 0, 0, NULL, false},
};

static void fill(const struct data *data, uint8_t *bytes)
{
	if (data->text) {
		memcpy(bytes, data->text, data->length);
		return;
	}
	for (size_t i = 0; i < data->length; i++)
		bytes[i] = data->counts ? (uint8_t)i : i ? data->rest : data->first;
}

/* Bytes in memory order, read from the left. Rows as in datas[]. */
static const struct {
	uint64_t t10[2], csum[2], crc32[2], crc32c[2], crc64[2]; /* seed 0, all ones */
} expected[] = {
	{{0xd0db, 0x8e3c},
	 {0xf62a, 0xf62a},
	 {0x765e7680, 0xfc891918},
	 {0xdf051ca7, 0x839206e3},
	 {0x7bc8572b9b3fff87, 0x8898790a86148bae}},
	{{0x0000, 0x72bb},
	 {0xffff, 0x0000},
	 {0xffffffff, 0x1eae554d},
	 {0xffffffff, 0xc0edfc30},
	 {0xffffffffffffffff, 0xe982a768280ee61d}},
	{{0xe6a1, 0x941a},
	 {0x0000, 0x0000},
	 {0x1892740f, 0xf9c3debd},
	 {0xa880da94, 0x9792d95b},
	 {0xa039b34dfa996eb0, 0xb644ebda2d687752}},
	{{0x9ec6, 0xec7d},
	 {0x5a5a, 0x5a5a},
	 {0x699aca21, 0x88cb6093},
	 {0x4207e6b4, 0x7d15e57b},
	 {0x8c8adb450cce85aa, 0x9af783d2db3f9c48}},
	{{0xebad, 0x9916},
	 {0xa55a, 0xa55a},
	 {0xe33cb35a, 0x026d19e8},
	 {0xe0179418, 0xdf0597d7},
	 {0x3aef9a2fcb75892b, 0x2c92c2b81c8490c9}},
	{{0x0688, 0x7433},
	 {0xfefe, 0xfefe},
	 {0x15d286f7, 0xf4832c45},
	 {0x8aa33830, 0xb5b13bff},
	 {0xd2b8c1674fb645dd, 0xc4c599f098475c3f}},
	{{0x4f10, 0x3dab},
	 {0x7f80, 0x7f80},
	 {0xce232f94, 0x2f728526},
	 {0x65fc1361, 0x5aee10ae},
	 {0x1166129ee577ed87, 0x071b4a093286f465}},
	{{0x0000, 0x3ca5},
	 {0xffff, 0x0000},
	 {0xffffffff, 0x3cc3e26e},
	 {0xffffffff, 0xc740e882},
	 {0xffffffffffffffff, 0x0ca540ec03b353ba}},
	{{0x0000, 0xfcf8},
	 {0xffff, 0x0000},
	 {0xffffffff, 0x7b310fbc},
	 {0xffffffff, 0x4787ad62},
	 {0xffffffffffffffff, 0xb257cbca5399bc73}},
	{{0x0000, 0xe7e2},
	 {0xffff, 0x0000},
	 {0xffffffff, 0x880038e3},
	 {0xffffffff, 0x8941f998},
	 {0xffffffffffffffff, 0x4eb622eb67d38264}},
	{{0xb204, 0x55e6},
	 {0xf4f4, 0xf4f4},
	 {0xc0d07eb3, 0xb72fb9af},
	 {0xd4f2c141, 0xa24cc726},
	 {0xa3d4124b0e75c169, 0x129dcf5f9659bcf2}},
	{{0x0000, 0x2541},
	 {0xffff, 0x0000},
	 {0xffffffff, 0xbde10b0a},
	 {0xffffffff, 0x052a2922},
	 {0xffffffffffffffff, 0x0e27b83ae07e765b}},
};

static void expect_guard(enum guard guard, bool ones, const struct data *data, uint64_t value)
{
	uint8_t bytes[4160], field[GUARD_MOST];

	fill(data, bytes);
	guard_compute(guard, ones, bytes, data->length, field);
	if (big_endian(field, guard_bytes(guard)) != value)
		fail_msg("guard %d of %s, seed %d: %016lx, not %016lx", guard, data->name, ones,
			 big_endian(field, guard_bytes(guard)), value);
}

TEST(guards_are_those_of_the_sheet)
{
	_Static_assert(COUNT(datas) == COUNT(expected), "a row per data");
	for (size_t i = 0; i < COUNT(datas); i++) {
		for (int ones = 0; ones < 2; ones++) {
			expect_guard(GUARD_T10_CRC, ones, &datas[i], expected[i].t10[ones]);
			expect_guard(GUARD_T10_CSUM, ones, &datas[i], expected[i].csum[ones]);
			expect_guard(GUARD_CRC32, ones, &datas[i], expected[i].crc32[ones]);
			expect_guard(GUARD_CRC32C, ones, &datas[i], expected[i].crc32c[ones]);
			expect_guard(GUARD_CRC64, ones, &datas[i], expected[i].crc64[ones]);
		}
	}
}

/* Rows of the table of tuples: three blocks each. */
static void expect_tuples(const struct domain *domain, int data, const uint64_t tuples[3])
{
	uint8_t block[4096], field[GUARD_MOST];

	for (int number = 0; number < 3; number++) {
		for (size_t i = 0; i < domain->block; i++)
			block[i] = data < 0 ? (uint8_t)(i + (size_t)number) : (uint8_t)data;
		field_make(domain, block, (uint64_t)number, field);
		assert_int_equal(big_endian(field, 8), tuples[number]);
	}
}

TEST(tuples_are_those_of_the_sheet)
{
	struct domain domain = {KIND_T10, 512, GUARD_T10_CRC, false, 0x1234, 1, true, false, false};

	expect_tuples(&domain, 0, (uint64_t[]){0x0000123400000001, 0x0000123400000002, 0x0000123400000003});
	domain.app = 0x5678;
	domain.ref = 0xf0debc9a;
	expect_tuples(&domain, -1, (uint64_t[]){0x4f105678f0debc9a, 0x82555678f0debc9b, 0x533c5678f0debc9c});
	domain.guard = GUARD_T10_CSUM;
	expect_tuples(&domain, -1, (uint64_t[]){0x7f805678f0debc9a, 0x807f5678f0debc9b, 0x7f805678f0debc9c});
	domain.guard = GUARD_T10_CRC;
	domain.ones = true;
	expect_tuples(&domain, 0xa5, (uint64_t[]){0xec7d5678f0debc9a, 0xec7d5678f0debc9b, 0xec7d5678f0debc9c});
	domain.ones = false;
	expect_tuples(&domain, 0xa5, (uint64_t[]){0x9ec65678f0debc9a, 0x9ec65678f0debc9b, 0x9ec65678f0debc9c});
	domain.block = 4096;
	domain.app = 0xabcd;
	domain.ref = 0xffffffff;
	expect_tuples(&domain, 0, (uint64_t[]){0x0000abcdffffffff, 0x0000abcd00000000, 0x0000abcd00000001});
	domain.guard = GUARD_T10_CSUM;
	expect_tuples(&domain, 0, (uint64_t[]){0xffffabcdffffffff, 0xffffabcd00000000, 0xffffabcd00000001});
	domain.remap = false;
	expect_tuples(&domain, 0, (uint64_t[]){0xffffabcdffffffff, 0xffffabcdffffffff, 0xffffabcdffffffff});
}

static void expect_found(const struct domain *domain, uint8_t mask, size_t damaged, uint8_t damage,
			 struct finding hardware)
{
	uint8_t block[512 + GUARD_MOST];
	struct finding found;

	memset(block, 0xa5, 512);
	field_make(domain, block, 0, block + 512);
	block[damaged] = damage;
	found = field_check(domain, mask, true, block, 0, block + 512);
	assert_int_equal(found.fault, hardware.fault);
	assert_int_equal(found.actual, hardware.actual);
	assert_int_equal(found.expected, hardware.expected);
	assert_int_equal(found.offset, hardware.offset);
	/* The manual page lists them in the opposite order, and the offset in a transfer (ends.c). */
	found = field_check(domain, mask, false, block, 0, block + 512);
	assert_int_equal(found.fault, hardware.fault);
	assert_int_equal(found.actual, hardware.expected);
	assert_int_equal(found.expected, hardware.actual);
}

/* The table of mlx5-formats 4.6. */
TEST(findings_are_those_of_hardware)
{
	struct domain t10 = {KIND_T10, 512, GUARD_T10_CRC, true, 0x5678, 0xf0debc9a, true, false, false};
	struct domain crc32 = {.kind = KIND_CRC, .block = 512, .guard = GUARD_CRC32};

	expect_found(&t10, 0xff, 0, 0x5a, (struct finding){FAULT_GUARD, false, 0xec7d, 0x9916, 519, 0});
	expect_found(&crc32, 0xff, 512, 0x96, (struct finding){FAULT_GUARD, false, 0x969aca21, 0x699aca21, 515, 0});
	expect_found(&t10, 0xff, 514, 0xa9, (struct finding){FAULT_APP, false, 0xa978, 0x5678, 519, 0});
	expect_found(&t10, 0xff, 516, 0x0f, (struct finding){FAULT_REF, false, 0x0fdebc9a, 0xf0debc9a, 519, 0});
	/* Corrupting byte 512 + 2 is ignored with only bit 4 set. */
	expect_found(&t10, 0x10, 514, 0xa9, (struct finding){FAULT_NONE, false, 0, 0, 519, 0});
}
