/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every entry must read as invalid before the device writes it, which would touch each page of the ring: 256 MiB for a
 * CQ of max_cqe entries. A large ring is therefore a private mapping of one short file, repeated: its pages are shared
 * until they are written.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/cancellation.h"
#include "core/file_size.h"
#include "verbs/queue/cq.h"

enum {
	TEMPLATE_BYTES = 1 << 20,
	LARGE_RING_BYTES = 4 << 20, /* smaller rings are written in less than a millisecond */
};

/* In 128-byte entries, the contents of the first half do not matter. */
static void entries_invalidate(char *entries, size_t bytes)
{
	/*
	 * All fields: a program's allocator may return memory with any contents, and the device does not write fields
	 * that RoCE lacks.
	 */
	for (size_t offset = 0; offset < bytes; offset += sizeof(struct mlx5_cqe64))
		*(struct mlx5_cqe64 *)(entries + offset) = (struct mlx5_cqe64){.op_own = MLX5_CQE_INVALID << 4};
}

/*
 * A process that opens the file through /proc could otherwise change unwritten entries, or truncate the file, and
 * polling would raise SIGBUS. Best effort, because sandboxes may not support seals.
 */
static void template_seal(int fd)
{
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
}

/* Returns a descriptor of a file of invalid entries, or -1 with errno set. */
static int template_open(void)
{
	WITHOUT_SIZE_SIGNAL;
	int fd = memfd_create("softhca-cq", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char *entries;

	if (fd < 0)
		return -1;
	if (ftruncate(fd, TEMPLATE_BYTES))
		goto fail;
	entries = mmap(NULL, TEMPLATE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (entries == MAP_FAILED)
		goto fail;
	entries_invalidate(entries, TEMPLATE_BYTES);
	munmap(entries, TEMPLATE_BYTES);
	template_seal(fd);
	return fd;
fail:
	close(fd);
	return -1;
}

/*
 * Replaces the pages of a large ring. After a failure some may be missing, and the ring may only be passed to
 * ring_free().
 */
static int cover_with_template(char *ring, size_t bytes)
{
	int fd = template_open();
	int result = 0;

	if (fd < 0)
		return -1;
	for (size_t offset = 0; offset < bytes && !result; offset += TEMPLATE_BYTES)
		if (mmap(ring + offset, TEMPLATE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
			 fd, 0) == MAP_FAILED)
			result = -1;
	close(fd);
	return result;
}

void *cq_ring_alloc(struct user_pd *pd, uint32_t count, uint32_t size)
{
	WITHOUT_CANCELLATION;
	size_t bytes = (size_t)count * size;
	/* neither from the program's allocator nor of a kind that it selected, such as huge pages */
	bool plain = (!pd || !pd->alloc) && !variable_get(VARIABLE_MLX_CQ_ALLOC_TYPE);
	char *ring = ring_alloc(pd, bytes, MLX5DV_RES_TYPE_CQ);

	if (!ring)
		return NULL;
	if (!plain || bytes < LARGE_RING_BYTES) {
		entries_invalidate(ring, bytes);
		return ring;
	}
	if (cover_with_template(ring, bytes)) {
		int error = errno;

		ring_free(pd, ring, bytes, MLX5DV_RES_TYPE_CQ);
		errno = error;
		return NULL;
	}
	return ring;
}

void cq_ring_free(struct user_pd *pd, void *ring, uint32_t count, uint32_t size)
{
	ring_free(pd, ring, (size_t)count * size, MLX5DV_RES_TYPE_CQ);
}
