/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * block/guard: the values, against the vectors of mlx5-formats 5.3 (made by a bitwise script, some of them seen on
 * hardware), for every kernel that this CPU supports; and the selection of the kernel.
 */
#include "test_case.h"
#ifdef __aarch64__
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "block/guard_kernels.h"

enum { LONGEST = 4160, TYPES = GUARD_TYPE_COUNT - 1 };

static const enum guard_type types[TYPES] = {GUARD_T10_CRC, GUARD_IP_CHECKSUM, GUARD_CRC32, GUARD_CRC32C,
					     GUARD_CRC64_XP10};

enum pattern { TEXT, REPEATED, FIRST_5A, COUNTING };

/* A vector: the data, and for each of types[] the bytes in memory for either seed, read as one number. */
struct vector {
	size_t bytes;
	enum pattern pattern;
	uint8_t value;
	uint64_t guards[TYPES][2];
};

/* clang-format off */
static const struct vector vectors[] = {
	{9, TEXT, 0,
	 {{0xd0db, 0x8e3c}, {0xf62a, 0xf62a}, {0x765e7680, 0xfc891918}, {0xdf051ca7, 0x839206e3},
	  {0x7bc8572b9b3fff87, 0x8898790a86148bae}}},
	{512, REPEATED, 0x00,
	 {{0x0000, 0x72bb}, {0xffff, 0x0000}, {0xffffffff, 0x1eae554d}, {0xffffffff, 0xc0edfc30},
	  {0xffffffffffffffff, 0xe982a768280ee61d}}},
	{512, REPEATED, 0xff,
	 {{0xe6a1, 0x941a}, {0x0000, 0x0000}, {0x1892740f, 0xf9c3debd}, {0xa880da94, 0x9792d95b},
	  {0xa039b34dfa996eb0, 0xb644ebda2d687752}}},
	{512, REPEATED, 0xa5,
	 {{0x9ec6, 0xec7d}, {0x5a5a, 0x5a5a}, {0x699aca21, 0x88cb6093}, {0x4207e6b4, 0x7d15e57b},
	  {0x8c8adb450cce85aa, 0x9af783d2db3f9c48}}},
	{512, FIRST_5A, 0xa5,
	 {{0xebad, 0x9916}, {0xa55a, 0xa55a}, {0xe33cb35a, 0x026d19e8}, {0xe0179418, 0xdf0597d7},
	  {0x3aef9a2fcb75892b, 0x2c92c2b81c8490c9}}},
	{512, REPEATED, 0x01,
	 {{0x0688, 0x7433}, {0xfefe, 0xfefe}, {0x15d286f7, 0xf4832c45}, {0x8aa33830, 0xb5b13bff},
	  {0xd2b8c1674fb645dd, 0xc4c599f098475c3f}}},
	{512, COUNTING, 0,
	 {{0x4f10, 0x3dab}, {0x7f80, 0x7f80}, {0xce232f94, 0x2f728526}, {0x65fc1361, 0x5aee10ae},
	  {0x1166129ee577ed87, 0x071b4a093286f465}}},
	{520, REPEATED, 0x00,
	 {{0x0000, 0x3ca5}, {0xffff, 0x0000}, {0xffffffff, 0x3cc3e26e}, {0xffffffff, 0xc740e882},
	  {0xffffffffffffffff, 0x0ca540ec03b353ba}}},
	{4048, REPEATED, 0x00,
	 {{0x0000, 0xfcf8}, {0xffff, 0x0000}, {0xffffffff, 0x7b310fbc}, {0xffffffff, 0x4787ad62},
	  {0xffffffffffffffff, 0xb257cbca5399bc73}}},
	{4096, REPEATED, 0x00,
	 {{0x0000, 0xe7e2}, {0xffff, 0x0000}, {0xffffffff, 0x880038e3}, {0xffffffff, 0x8941f998},
	  {0xffffffffffffffff, 0x4eb622eb67d38264}}},
	{4096, REPEATED, 0x61,
	 {{0xb204, 0x55e6}, {0xf4f4, 0xf4f4}, {0xc0d07eb3, 0xb72fb9af}, {0xd4f2c141, 0xa24cc726},
	  {0xa3d4124b0e75c169, 0x129dcf5f9659bcf2}}},
	{4160, REPEATED, 0x00,
	 {{0x0000, 0x2541}, {0xffff, 0x0000}, {0xffffffff, 0xbde10b0a}, {0xffffffff, 0x052a2922},
	  {0xffffffffffffffff, 0x0e27b83ae07e765b}}},
};
/* clang-format on */

static void make_data(const struct vector *vector, uint8_t *data)
{
	memset(data, vector->value, vector->bytes);
	for (size_t i = 0; vector->pattern == COUNTING && i < vector->bytes; i++)
		data[i] = (uint8_t)i;
	if (vector->pattern == TEXT)
		memcpy(data, "123456789", vector->bytes);
	if (vector->pattern == FIRST_5A)
		data[0] = 0x5a;
}

/* Checks the vector with each function of the module. */
static void check_vector(const struct vector *vector, unsigned int index, bool ones)
{
	enum guard_type type = types[index];
	uint64_t expected = vector->guards[index][ones], guards[3];
	uint8_t data[3 * LONGEST], to[3 * LONGEST];
	struct guard_blocks blocks = {data, to, vector->bytes, vector->bytes, vector->bytes, false};
	uint64_t begin = guard_begin(type, ones);

	for (size_t i = 0; i < 3; i++)
		make_data(vector, data + i * vector->bytes);
	assert_int_equal(guard_finish(type, guard_update(type, begin, data, vector->bytes)), expected);
	assert_int_equal(guard_finish(type, guard_copy(type, begin, to, data, vector->bytes)), expected);
	guard_copy_blocks(type, ones, &blocks, 3, guards);
	assert_memory_equal(to, data, 3 * vector->bytes);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(guards[i], expected);
	blocks.to = NULL;
	memset(guards, 0, sizeof(guards));
	guard_copy_blocks(type, ones, &blocks, 3, guards);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(guards[i], expected);
}

static void check_vectors(unsigned int index)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		check_vector(&vectors[i], index, false);
		check_vector(&vectors[i], index, true);
	}
}

TEST(vectors_by_choice)
{
	guard_force(NULL);
	for (unsigned int index = 0; index < TYPES; index++)
		check_vectors(index);
}

TEST(vectors_by_each_kernel)
{
	unsigned int tried = 0;

	for (unsigned int k = 0; guard_kernels[k]; k++) {
		if (!cpu_has(guard_kernels[k]->needs))
			continue;
		guard_force(guard_kernels[k]);
		for (unsigned int index = 0; index < TYPES; index++) {
			if (!(guard_kernels[k]->types & 1u << types[index]))
				continue;
			assert_string_equal(guard_kernel_name(types[index]), guard_kernels[k]->name);
			check_vectors(index);
			tried |= 1u << types[index];
		}
	}
	guard_force(&guard_kernel_bitwise);
	for (unsigned int index = 0; index < TYPES; index++) {
		assert_string_equal(guard_kernel_name(types[index]), "bitwise");
		check_vectors(index);
		assert_true(tried & 1u << types[index]);
	}
	guard_force(NULL);
}

/* zlib's CRC-32 differs from all of these (mlx5-formats 5.3). */
TEST(crc32_is_not_that_of_zlib)
{
	uint64_t crc =
		guard_finish(GUARD_CRC32, guard_update(GUARD_CRC32, guard_begin(GUARD_CRC32, true), "123456789", 9));

	assert_int_not_equal(crc, 0xcbf43926);
	assert_int_not_equal(crc, 0x2639f4cb);
}

TEST(sizes)
{
	assert_int_equal(guard_size(GUARD_NONE), 0);
	assert_int_equal(guard_size(GUARD_T10_CRC), 2);
	assert_int_equal(guard_size(GUARD_IP_CHECKSUM), 2);
	assert_int_equal(guard_size(GUARD_CRC32), 4);
	assert_int_equal(guard_size(GUARD_CRC32C), 4);
	assert_int_equal(guard_size(GUARD_CRC64_XP10), 8);
}

TEST(no_guard_is_a_plain_copy)
{
	uint8_t data[1024], to[1040];
	struct guard_blocks blocks = {data, to, 512, 520, 512, false};
	uint64_t guards[2] = {1, 2};

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	memset(to, 0xee, sizeof(to));
	guard_copy_blocks(GUARD_NONE, true, &blocks, 2, guards);
	assert_memory_equal(to, data, 512);
	assert_memory_equal(to + 520, data + 512, 512);
	for (size_t i = 512; i < 520; i++)
		assert_int_equal(to[i], 0xee);
	assert_int_equal(guards[0], 0);
	assert_int_equal(guards[1], 0);
	assert_int_equal(guard_begin(GUARD_NONE, true), 0);
	guard_copy(GUARD_NONE, 0, to, data + 1, 100);
	assert_memory_equal(to, data + 1, 100);
	assert_string_equal(guard_kernel_name(GUARD_NONE), "none");
}

/* Reads the flags of the first CPU, with a space before and after each; the kernel lists only those that it supports. */
static bool read_flags(char *flags, size_t size)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	bool found = false;

	while (file && !found && fgets(flags, (int)size, file))
		found = !strncmp(flags, "flags", 5);
	if (file)
		fclose(file);
	if (found)
		flags[strcspn(flags, "\n")] = ' ';
	return found;
}

/* @needed: flags, a space before and after each. */
static bool has(const char *flags, const char *needed)
{
	char one[64];

	for (const char *at = needed; at[1]; at += strlen(one) - 1) {
		size_t length = strcspn(at + 1, " ");

		snprintf(one, sizeof(one), " %.*s ", (int)length, at + 1);
		if (!strstr(flags, one))
			return false;
	}
	return true;
}

TEST(kernel_fits_the_cpu)
{
	static const char wide[] = " avx512f avx512bw avx512vl avx512dq avx512vbmi vpclmulqdq pclmulqdq sse4_1 ";
	const char *crc = "table", *crc32c, *checksum = "words";
	static char flags[8192];

#ifdef __aarch64__
	guard_force(NULL);
	assert_string_equal(guard_kernel_name(GUARD_T10_CRC), "isa-l");
	assert_string_equal(guard_kernel_name(GUARD_CRC64_XP10), getauxval(AT_HWCAP) & HWCAP_PMULL ? "pmull" : "table");
	assert_string_equal(guard_kernel_name(GUARD_IP_CHECKSUM), "words");
	return;
#endif
	if (!read_flags(flags, sizeof(flags)))
		skip();
	if (has(flags, " pclmulqdq sse4_1 "))
		crc = "pclmulqdq";
	if (has(flags, wide))
		crc = "vpclmulqdq";
	crc32c = has(flags, " pclmulqdq sse4_2 ") && !has(flags, wide) ? "isa-l" : crc;
	if (has(flags, " avx2 "))
		checksum = "avx2";
	if (has(flags, " avx512f avx512bw avx512dq "))
		checksum = "avx512";
	guard_force(NULL);
	assert_string_equal(guard_kernel_name(GUARD_CRC64_XP10), crc);
	if (has(flags, wide) && has(flags, " gfni "))
		crc = crc32c = "gfni";
	assert_string_equal(guard_kernel_name(GUARD_T10_CRC), crc);
	assert_string_equal(guard_kernel_name(GUARD_CRC32), crc);
	assert_string_equal(guard_kernel_name(GUARD_CRC32C), crc32c);
	assert_string_equal(guard_kernel_name(GUARD_IP_CHECKSUM), checksum);
}

/* CPUs by their features: the oldest one, and those that brought features that kernels need. */
static const struct cpu {
	const char *name;
	uint32_t features;
} cpus[] = {
	{"the least of the architecture", CPU_ANY},
#if defined(__x86_64__)
#define WESTMERE (CPU_SSE4_1 | CPU_SSE4_2 | CPU_PCLMUL | CPU_AES)
#define HASWELL (WESTMERE | CPU_AVX2)
#define SKYLAKE (HASWELL | CPU_AVX512F | CPU_AVX512BW | CPU_AVX512VL | CPU_AVX512DQ)
	{"Westmere", WESTMERE},
	{"Haswell, Zen", HASWELL},
	{"Skylake-SP", SKYLAKE},
	{"Ice Lake, Zen 4", SKYLAKE | CPU_AVX512VBMI | CPU_VPCLMULQDQ | CPU_GFNI | CPU_VAES},
#elif defined(__aarch64__)
	{"Cortex-A57, Neoverse N1", CPU_PMULL},
#endif
};

static bool is_chosen(const struct guard_kernel *kernel)
{
	for (size_t i = 0; i < sizeof(cpus) / sizeof(cpus[0]); i++)
		for (unsigned int index = 0; index < TYPES; index++)
			if (guard_choose(cpus[i].features, types[index]) == kernel)
				return true;
	return false;
}

/* A kernel that no CPU uses would only be code to maintain. */
TEST(each_kernel_is_chosen_somewhere)
{
	for (unsigned int i = 0; guard_kernels[i]; i++)
		if (!is_chosen(guard_kernels[i]))
			fail_msg("no CPU uses the kernel %s", guard_kernels[i]->name);
	for (size_t i = 0; i < sizeof(cpus) / sizeof(cpus[0]); i++)
		for (unsigned int index = 0; index < TYPES; index++)
			assert_non_null(guard_choose(cpus[i].features, types[index]));
}

TEST(choice_for_this_cpu_follows_its_features)
{
	guard_force(NULL);
	for (unsigned int index = 0; index < TYPES; index++)
		assert_string_equal(guard_kernel_name(types[index]), guard_choose(cpu_features(), types[index])->name);
}
