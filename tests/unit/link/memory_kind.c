/* SPDX-License-Identifier: BSD-2-Clause */
/* device/memory_kind: memory with anonymous or in-memory pages, and memory with pages of a file system. */
#include "test_case.h"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "link/shm/memory_kind.h"

enum { PAGE = 4096, PAGES = 4, BYTES = PAGES * PAGE };

static uint8_t *map(int fd, int flags)
{
	void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags, fd, 0);

	assert_true(memory != MAP_FAILED);
	if (fd >= 0)
		close(fd);
	return memory;
}

static bool is_local(const void *memory, uint64_t length, bool written)
{
	return memory_kind_is_local((uintptr_t)memory, length, written);
}

static void expect_local(uint8_t *memory)
{
	assert_true(is_local(memory, BYTES, false));
	assert_true(is_local(memory + PAGE + 1, 1, false));
	munmap(memory, BYTES);
	assert_false(is_local(memory, BYTES, true));
}

/* Returns an unnamed file in the working directory, or -1 if that directory is in memory. */
static int file_on_disk(void)
{
	char name[] = "memory_kind.XXXXXX";
	int fd = mkstemp(name);
	struct statfs system;

	assert_true(fd >= 0);
	unlink(name);
	assert_int_equal(ftruncate(fd, BYTES), 0);
	assert_int_equal(fstatfs(fd, &system), 0);
	if (system.f_type != TMPFS_MAGIC && system.f_type != RAMFS_MAGIC)
		return fd;
	close(fd);
	return -1;
}

TEST(test_memory)
{
	int fd = memfd_create("memory_kind", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, BYTES), 0);
	expect_local(map(-1, MAP_PRIVATE | MAP_ANONYMOUS));
	expect_local(map(-1, MAP_SHARED | MAP_ANONYMOUS));
	expect_local(map(fd, MAP_SHARED));
}

TEST(test_file_system_in_memory)
{
	char name[] = "/dev/shm/memory_kind.XXXXXX";
	struct statfs system;
	int fd;

	if (statfs("/dev/shm", &system) || system.f_type != TMPFS_MAGIC)
		skip();
	fd = mkstemp(name);
	assert_true(fd >= 0);
	unlink(name);
	assert_int_equal(ftruncate(fd, BYTES), 0);
	expect_local(map(fd, MAP_SHARED));
}

TEST(test_file_on_disk)
{
	int fd = file_on_disk();
	uint8_t *memory;

	if (fd < 0)
		skip();
	memory = map(dup(fd), MAP_SHARED);
	assert_false(is_local(memory, BYTES, false));
	assert_false(is_local(memory, 1, true));
	munmap(memory, BYTES);
	/* Private pages that were faulted in for writing belong to the process. */
	memory = map(fd, MAP_PRIVATE);
	assert_false(is_local(memory, BYTES, false));
	assert_true(is_local(memory, BYTES, true));
	munmap(memory, BYTES);
}

/* One page of a file, or an unmapped one, among others. */
TEST(test_mixture)
{
	uint8_t *memory = map(-1, MAP_PRIVATE | MAP_ANONYMOUS);
	int fd = file_on_disk();

	if (fd >= 0) {
		assert_true(mmap(memory + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
			    MAP_FAILED);
		close(fd);
		assert_false(is_local(memory, BYTES, true));
		assert_false(is_local(memory + PAGE, PAGE + 1, true));
		assert_true(is_local(memory, 2 * PAGE, true));
		assert_true(is_local(memory + 3 * PAGE, PAGE, true));
	}
	munmap(memory + 2 * PAGE, PAGE);
	assert_false(is_local(memory, BYTES, true));
	assert_true(is_local(memory, 2 * PAGE, true));
	munmap(memory, BYTES);
}
