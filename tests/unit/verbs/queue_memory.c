/* SPDX-License-Identifier: BSD-2-Clause */
/* verbs/memory: memory of rings and doorbell records; queues that take no locks. */
#include "test_case.h"

#include "kernel_has.h"
#include "verbs/object/objects.h"

TEST(rings_are_pages_of_zeros)
{
	static const size_t sizes[] = {1, 64, 4096, 4097, 100000, 3 << 20};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char *ring = ring_alloc(NULL, sizes[i], MLX5DV_RES_TYPE_QP);

		assert_non_null(ring);
		assert_int_equal((uintptr_t)ring % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
		for (size_t k = 0; k < sizes[i]; k++)
			assert_int_equal(ring[k], 0);
		memset(ring, 0xff, sizes[i]);
		ring_free(NULL, ring, sizes[i], MLX5DV_RES_TYPE_QP);
	}
	ring_free(NULL, NULL, 4096, MLX5DV_RES_TYPE_QP);
	dbrec_free(NULL, NULL);
}

TEST(doorbell_records_share_no_cache_line)
{
	uint32_t *dbrec[10];

	for (int i = 0; i < 10; i++) {
		dbrec[i] = dbrec_alloc(NULL);
		assert_non_null(dbrec[i]);
		assert_int_equal((uintptr_t)dbrec[i] % 64, 0);
		assert_int_equal(dbrec[i][0] | dbrec[i][1], 0);
		dbrec[i][0] = dbrec[i][1] = UINT32_MAX;
	}
	for (int i = 0; i < 10; i++)
		dbrec_free(NULL, dbrec[i]);
}

static unsigned long free_huge_pages(void)
{
	FILE *file = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "re");
	unsigned long count = 0;

	if (file && fscanf(file, "%lu", &count) != 1)
		count = 0;
	if (file)
		fclose(file);
	return count;
}

/* Each kind of queue has its own variable, read at each creation; destruction frees the memory. */
TEST(huge_pages_as_the_variables_say)
{
	unsigned long before = free_huge_pages();
	void *ring;

	setenv("MLX_SRQ_ALLOC_TYPE", "HUGE", 1);
	ring = ring_alloc(NULL, 5000, MLX5DV_RES_TYPE_CQ);
	assert_non_null(ring);
	ring_free(NULL, ring, 5000, MLX5DV_RES_TYPE_CQ);
	errno = 0;
	ring = ring_alloc(NULL, 5000, MLX5DV_RES_TYPE_SRQ);
	if (before == 0) {
		assert_null(ring);
		assert_int_equal(errno, kernel_huge_page_error());
	} else {
		assert_non_null(ring);
		assert_int_equal((uintptr_t)ring % (2u << 20), 0);
		memset(ring, 1, 5000);
		assert_int_equal(free_huge_pages(), before - 1);
		ring_free(NULL, ring, 5000, MLX5DV_RES_TYPE_SRQ);
	}
	assert_int_equal(free_huge_pages(), before);
	setenv("MLX_SRQ_ALLOC_TYPE", "PREFER_HUGE", 1);
	ring = ring_alloc(NULL, 5000, MLX5DV_RES_TYPE_SRQ);
	assert_non_null(ring);
	memset(ring, 1, 5000);
	ring_free(NULL, ring, 5000, MLX5DV_RES_TYPE_SRQ);
	assert_int_equal(free_huge_pages(), before);
	unsetenv("MLX_SRQ_ALLOC_TYPE");
}

TEST(single_threaded_queues)
{
	struct user_td td = {0};
	struct user_pd plain = {0}, with_td = {.parent = &plain, .td = &td};

	assert_false(queue_single_threaded(NULL));
	assert_false(queue_single_threaded(&plain));
	assert_true(queue_single_threaded(&with_td));
	setenv("MLX5_SINGLE_THREADED", "1", 1);
	assert_true(queue_single_threaded(NULL));
	assert_true(queue_single_threaded(&plain));
	setenv("MLX5_SINGLE_THREADED", "0", 1);
	assert_false(queue_single_threaded(NULL));
	unsetenv("MLX5_SINGLE_THREADED");
}
