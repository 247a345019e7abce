/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of cases: a line must describe all of a case, and lines that are not cases must be refused. */
#include "test_case.h"

#include "draw.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct abilities abilities = {.memcpy = true, .datagram_most = 4096, .refusals = true, .unreliable = true};

/* Expects the printed parts to be equal; the rest of the structure is as the line sets it. */
static void expect_same(const struct test_case *test_case)
{
	char line[LINE], again[LINE];
	struct test_case parsed;

	case_print(test_case, line);
	if (!case_parse(line, &parsed))
		fail_msg("not understood: %s", line);
	case_print(&parsed, again);
	assert_string_equal(line, again);
}

TEST(drawn_cases_are_understood)
{
	static struct test_case test_case;

	for (uint64_t i = 0; i < 20000; i++) {
		struct choose choose = choose_for(7, i);

		if (i % 4 == 1)
			draw_two_pairs(&choose, &abilities, i % 3, &test_case);
		else if (i % 4)
			draw_case(&choose, &abilities, i % 3, &test_case);
		else
			draw_flip(&choose, &abilities, i % 3, &test_case);
		expect_same(&test_case);
	}
}

/* Each part of a case, with its word. */
TEST(words_have_their_documented_meaning)
{
	static struct test_case to;
	const char *line =
		"connectx data=7:ones s.key=2 s.mem=t10:520:csum:1:ffff:f0debc9a:remap+app+appref "
		"s.wire=crc32c:4048:0 s.check=c3 s.copy=0f s.rep=3x:256+520/8,9000+8/2 s.under=256+60000 "
		"s.over=2x:0+100/4,p7000+9 t.plain=17 nofields patch=514=ffff,100^04 header=16 late lazy together extended "
		"cs=alsu ct= <2writei:520+1040/512";

	assert_true(case_parse(line, &to));
	assert_true(to.connectx && to.no_fields && to.late && to.lazy && to.together && to.extended);
	assert_int_equal(to.data, 7);
	assert_int_equal(to.pattern, PATTERN_ONES);
	assert_int_equal(to.header, 16);
	assert_true(to.source.is_key && to.source.has_signature && !to.target.is_key);
	assert_int_equal(to.source.key, 2);
	assert_int_equal(to.target.plain, 17);
	assert_int_equal(to.source.signature.check, 0xc3);
	assert_true(to.source.signature.has_copy);
	assert_int_equal(to.source.signature.copy, 0x0f);
	assert_int_equal(to.source.signature.memory.kind, KIND_T10);
	assert_int_equal(to.source.signature.memory.block, 520);
	assert_int_equal(to.source.signature.memory.guard, GUARD_T10_CSUM);
	assert_true(to.source.signature.memory.ones && to.source.signature.memory.remap);
	assert_true(to.source.signature.memory.app_escape && to.source.signature.memory.app_ref_escape);
	assert_int_equal(to.source.signature.memory.app, 0xffff);
	assert_int_equal(to.source.signature.memory.ref, 0xf0debc9a);
	assert_int_equal(to.source.signature.wire.kind, KIND_CRC);
	assert_int_equal(to.source.signature.wire.guard, GUARD_CRC32C);
	assert_int_equal(to.source.signature.wire.block, 4048);
	assert_false(to.source.signature.wire.ones);
	assert_int_equal(to.source.layout.repeat, 3);
	assert_int_equal(to.source.layout.piece[0].skip, 8);
	assert_int_equal(to.source.layout.piece[1].at, 9000);
	assert_int_equal(to.source.under.count, 1);
	assert_true(to.source.over.repeat == 2 && to.source.over.piece[1].plain);
	assert_int_equal(to.patch_count, 2);
	assert_true(!to.patch[0].flips && to.patch[0].count == 2 && to.patch[1].flips && to.patch[1].at == 100);
	assert_int_equal(to.step_count, 3);
	assert_string_equal(to.step[0].letters, "alsu");
	assert_true(to.step[1].configures && to.step[1].of_target && !*to.step[1].letters);
	assert_int_equal(to.step[2].operation, WRITE_IMM);
	assert_true(to.step[2].back && to.step[2].other);
	assert_true(to.step[2].start == 520 && to.step[2].length == 1040 && to.step[2].cut == 512);
	expect_same(&to);
}

TEST(malformed_cases_are_refused)
{
	static const char *const lines[] = {
		"",
		"women data=7:random",
		"man data=7:often",
		"man data=7:random s.key=9",
		"man s.key=0 s.mem=t10:512:crc:2:0:0",
		"man s.key=0 s.mem=crc32:513:0",
		"man s.key=0 s.mem=crc16:512:0",
		"man s.key=0 s.list=2000000+1",
		"man s.key=0 s.list=1048575+2",
		"man s.key=0 s.list=0+600000,0+600000",
		"man s.key=0 s.rep=1000x:0+2000",
		"man s.key=0 s.rep=0x:0+20",
		"man s.key=0 s.list=100+20 s.under=0+110",
		"man s.key=0",
		"man send:700000+700000",
		"man fly:0+1",
		"man 2memcpy:0+1",
		"man send:0+-1",
		"man cs=xyz",
	};
	static struct test_case to;

	for (size_t i = 0; i < COUNT(lines); i++)
		if (case_parse(lines[i], &to))
			fail_msg("taken: %s", lines[i]);
}
