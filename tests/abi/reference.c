/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls with results that rdma-core chooses freely (strings, rates, conversions, sysfs) return the same as in the
 * distribution's library. Argument: the directory of the front-ends.
 */
#include "test_case.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "abi/undeclared.h"
#include "distribution.h"

static const char *directory;

static void *ours(void)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/libibverbs.so.1", directory);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *find(void *library, const char *name)
{
	void *address;

	if (!library)
		fail_msg("%s", dlerror());
	address = dlsym(library, name);
	if (!address)
		fail_msg("%s", dlerror());
	return address;
}

static void *theirs(void)
{
	void *library = distribution_libibverbs();

	if (!library)
		skip();
	return library;
}

/* The same function of both libraries: pair.ours(…), pair.theirs(…). */
#define PAIR(function)                                                                                                 \
	const struct {                                                                                                 \
		__typeof__(&function) ours, theirs;                                                                    \
	} pair = {(__typeof__(&function))find(ours(), #function), (__typeof__(&function))find(theirs(), #function)};   \
	assert_ptr_not_equal(pair.ours, pair.theirs)

#define TEST_WORDS(function, type)                                                                                     \
	TEST(test_##function)                                                                                          \
	{                                                                                                              \
		static const int far[] = {INT_MIN, INT_MIN + 1, INT_MAX - 1, INT_MAX};                                 \
		PAIR(function);                                                                                        \
		for (int i = -300; i <= 300; i++)                                                                      \
			assert_string_equal(pair.ours((type)i), pair.theirs((type)i));                                 \
		for (int i = 0; i < 4; i++)                                                                            \
			assert_string_equal(pair.ours((type)far[i]), pair.theirs((type)far[i]));                       \
	}
TEST_WORDS(ibv_node_type_str, enum ibv_node_type)
TEST_WORDS(ibv_port_state_str, enum ibv_port_state)
TEST_WORDS(ibv_event_type_str, enum ibv_event_type)
TEST_WORDS(ibv_wc_status_str, enum ibv_wc_status)

#define TEST_NUMBERS(function, type, first, last)                                                                      \
	TEST(test_##function)                                                                                          \
	{                                                                                                              \
		PAIR(function);                                                                                        \
		for (int i = first; i <= last; i++)                                                                    \
			if (pair.ours((type)i) != pair.theirs((type)i))                                                \
				fail_msg("%d: %d, not %d", i, pair.ours((type)i), pair.theirs((type)i));               \
		assert_int_equal(pair.ours((type)INT_MIN), pair.theirs((type)INT_MIN));                                \
		assert_int_equal(pair.ours((type)INT_MAX), pair.theirs((type)INT_MAX));                                \
	}
TEST_NUMBERS(ibv_rate_to_mult, enum ibv_rate, -300, 300)
TEST_NUMBERS(ibv_rate_to_mbps, enum ibv_rate, -300, 300)
TEST_NUMBERS(mult_to_ibv_rate, int, -10, 10000)
TEST_NUMBERS(mbps_to_ibv_rate, int, -10, 2000000)

static void fill(void *memory, size_t size, unsigned int seed)
{
	for (size_t i = 0; i < size; i++)
		((unsigned char *)memory)[i] = (seed = seed * 1103515245u + 12345u) >> 16;
}

/* Sources of random bytes; the targets are equal at first, so a field that only one library writes is detected. */
#define TEST_COPY(function, target, source)                                                                            \
	TEST(test_##function)                                                                                          \
	{                                                                                                              \
		PAIR(function);                                                                                        \
		for (unsigned int seed = 1; seed <= 200; seed++) {                                                     \
			source from, copy;                                                                             \
			target mine, their;                                                                            \
			fill(&from, sizeof(from), seed);                                                               \
			memcpy(&copy, &from, sizeof(from));                                                            \
			fill(&mine, sizeof(mine), seed + 1000);                                                        \
			memcpy(&their, &mine, sizeof(mine));                                                           \
			pair.ours(&mine, &from);                                                                       \
			pair.theirs(&their, &from);                                                                    \
			assert_memory_equal(&mine, &their, sizeof(mine));                                              \
			assert_memory_equal(&copy, &from, sizeof(from));                                               \
		}                                                                                                      \
	}
TEST_COPY(ibv_copy_ah_attr_from_kern, struct ibv_ah_attr, struct ib_uverbs_ah_attr)
TEST_COPY(ibv_copy_qp_attr_from_kern, struct ibv_qp_attr, struct ib_uverbs_qp_attr)
TEST_COPY(ibv_copy_path_rec_from_kern, struct ibv_sa_path_rec, struct ib_user_path_rec)
TEST_COPY(ibv_copy_path_rec_to_kern, struct ib_user_path_rec, struct ibv_sa_path_rec)

static void write_file(const char *folder, const char *name, const char *content)
{
	char path[300];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fputs(content, file) < 0, 0);
	assert_int_equal(fclose(file), 0);
}

TEST(test_ibv_read_sysfs_file)
{
	static const char *const contents[] = {"",        "\n",        "a",          "a\n",      "a\n\n",
					       "seven77", "seven77\n", "eight888\n", "eight888", "far too long for it"};
	char folder[] = "/tmp/softhca-sysfs-XXXXXX", path[300];
	PAIR(ibv_read_sysfs_file);

	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
		write_file(folder, "board_id", contents[i]);
		for (size_t size = 0; size <= 10; size++) {
			char mine[10], their[10];

			memset(mine, '#', sizeof(mine));
			memset(their, '#', sizeof(their));
			assert_int_equal(pair.ours(folder, "board_id", mine, size),
					 pair.theirs(folder, "board_id", their, size));
			assert_memory_equal(mine, their, sizeof(mine));
		}
	}
	snprintf(path, sizeof(path), "%s/board_id", folder);
	unlink(path);
	errno = 0;
	assert_int_equal(pair.ours(folder, "board_id", path, sizeof(path)), -1);
	assert_int_equal(errno, ENOENT);
	/* A directory can be opened but not read. */
	assert_int_equal(pair.ours(folder, ".", path, sizeof(path)), -1);
	assert_int_equal(errno, EISDIR);
	rmdir(folder);
}

/* The first call caches the answer, so each value is queried in its own process. */
static int ask_sysfs_path(const char *value)
{
	PAIR(ibv_get_sysfs_path);

	if (value)
		setenv("SYSFS_PATH", value, 1);
	else
		unsetenv("SYSFS_PATH");
	if (strcmp(pair.ours(), pair.theirs()) != 0) {
		print_error("SYSFS_PATH=%s: %s, not %s\n", value ? value : "", pair.ours(), pair.theirs());
		return 1;
	}
	if (!value && strcmp(pair.ours(), "/sys") != 0)
		return 2;
	setenv("SYSFS_PATH", "/changed", 1);
	return strcmp(pair.ours(), pair.theirs()) == 0 ? 0 : 3;
}

TEST(test_ibv_get_sysfs_path)
{
	char long_path[600];
	const char *values[] = {NULL, "/tmp/tree", "/tmp/tree/", "/tmp/tree///", "/", "", "relative/", long_path};

	if (!distribution_libibverbs())
		skip();
	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	long_path[255] = '/';
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		pid_t pid = fork();
		int status;

		assert_true(pid >= 0);
		if (pid == 0)
			_exit(ask_sysfs_path(values[i]));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	directory = argv[1];
	return run_cases();
}
