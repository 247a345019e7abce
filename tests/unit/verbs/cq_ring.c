/* SPDX-License-Identifier: BSD-2-Clause */
/* A new ring reads as invalid everywhere (mlx5-formats 3.1), at a cost independent of its size. */
#include <fcntl.h>
#include <sys/mman.h>

#include "core/limits.h"
#include "../support/cq_fixture.h"

/* Returns the resident bytes of this process, private or of files: second figure of statm. */
static size_t resident(void)
{
	unsigned long size, pages;
	FILE *statm = fopen("/proc/self/statm", "r");

	assert_non_null(statm);
	assert_int_equal(fscanf(statm, "%lu %lu", &size, &pages), 2);
	fclose(statm);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

TEST(every_entry_is_invalid)
{
	for (uint32_t size = 64; size <= 128; size += 64)
		for (uint32_t count = 2; count <= 1 << 17; count *= 2) {
			const uint8_t *ring = cq_ring_alloc(NULL, count, size);

			assert_non_null(ring);
			for (uint32_t i = 0; i < count; i++)
				if (ring[(size_t)i * size + size - 1] != 0xf0)
					fail_msg("entry %u of %u bytes", i, size);
			cq_ring_free(NULL, (void *)ring, count, size);
		}
}

/* Entries of a large ring share pages until they are written. */
TEST(entries_are_independent)
{
	uint32_t count = 1 << 17;
	uint8_t *ring = cq_ring_alloc(NULL, count, 128);

	assert_non_null(ring);
	for (uint32_t i = 0; i < count; i += 977)
		ring[(size_t)i * 128 + 127] = i % 251;
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(ring[(size_t)i * 128 + 127], i % 977 ? 0xf0 : i % 251);
	cq_ring_free(NULL, ring, count, 128);
}

/* Opens the file that backs a large ring through /proc, as another process would; returns -1 if that is refused. */
static int open_file_of_ring(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], path[128];
	unsigned long start, end;
	int fd = -1;

	assert_non_null(maps);
	while (fd < 0 && fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "/memfd:softhca-cq") || sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", start, end);
		fd = open(path, O_RDWR);
		break;
	}
	fclose(maps);
	return fd;
}

/* Another process cannot remove or change pages that a program reads. */
TEST(no_other_process_changes_a_ring)
{
	uint32_t count = 1 << 17;
	uint8_t *ring = cq_ring_alloc(NULL, count, 128);
	int fd = open_file_of_ring();

	assert_non_null(ring);
	if (fd < 0)
		skip();
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(pwrite(fd, "", 1, 127), -1);
	assert_int_equal(ring[127], 0xf0);
	close(fd);
	cq_ring_free(NULL, ring, count, 128);
}

/* Returns true if pages count before they are used: an emulator has tables of its own for them. */
static bool untouched_pages_count(void)
{
	size_t before = resident(), bytes = (size_t)4 << 30;
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	bool result = resident() - before > (size_t)1 << 20;

	assert_ptr_not_equal(memory, MAP_FAILED);
	munmap(memory, bytes);
	return result;
}

TEST(the_largest_ring_is_cheap)
{
	uint32_t count = LIMIT_MAX_CQE + 1;
	size_t before;
	void *rings[8];

	if (untouched_pages_count())
		skip();
	before = resident();
	for (int i = 0; i < 8; i++) {
		rings[i] = cq_ring_alloc(NULL, count, 128);
		assert_non_null(rings[i]);
	}
	/* 4 GiB of rings; their templates count 1 MiB each at most. */
	assert_true(resident() - before < (size_t)16 << 20);
	for (int i = 0; i < 8; i++)
		cq_ring_free(NULL, rings[i], count, 128);
}

static void *dirty_alloc(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment, uint64_t type)
{
	void *memory = aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);

	(void)pd;
	(void)pd_context;
	(void)type;
	memset(memory, 0xa5, size);
	return memory;
}

static void dirty_free(struct ibv_pd *pd, void *pd_context, void *memory, uint64_t type)
{
	(void)pd;
	(void)pd_context;
	(void)type;
	free(memory);
}

/* The device writes only the fields that it has; the other fields of ibv_wc are cleared here. */
TEST(memory_of_the_program_is_cleared)
{
	struct user_pd pd = {.alloc = dirty_alloc, .free = dirty_free, .references = 1};

	queue_lock_init(&pd.lock, LOCK_LEVEL_PD, false);
	for (uint32_t size = 64; size <= 128; size += 64) {
		uint8_t *ring = cq_ring_alloc(&pd, 4, size);

		assert_non_null(ring);
		for (uint32_t i = 0; i < 4 * size; i++)
			assert_int_equal(ring[i], i % 64 == 63 ? 0xf0 : 0);
		cq_ring_free(&pd, ring, 4, size);
	}
	queue_lock_destroy(&pd.lock);
}

TEST(sizes_round_up)
{
	assert_int_equal(queue_entries(0), 1);
	assert_int_equal(queue_entries(1), 1);
	assert_int_equal(queue_entries(2), 2);
	assert_int_equal(queue_entries(3), 4);
	assert_int_equal(queue_entries(4), 4);
	assert_int_equal(queue_entries(5), 8);
	assert_int_equal(queue_entries((1 << 22) - 1), 1 << 22);
	assert_int_equal(queue_entries((1 << 22) + 1), 1 << 23);
}
