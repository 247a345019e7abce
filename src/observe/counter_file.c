/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of counters. */
#include "observe/counter_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/descriptor.h"
#include "core/file_size.h"
#include "observe/counters.h"

#define PAGE 4096u
#define LINE 128u /* two cache lines, so that rows of two threads share none */

struct counter_file {
	uint8_t *memory;
	size_t bytes, row_bytes, devices;
	uint32_t rows; /* atomic; number of requested rows */
	int fd;        /* not read in this process; kept open for /proc */
};

static size_t head_bytes(void)
{
	size_t bytes = sizeof(struct counter_file_head) + (size_t)COUNTER_COUNT * COUNTER_FILE_NAME_BYTES;

	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static void counter_file_write_head(const struct counter_file *file)
{
	struct counter_file_head *head = (struct counter_file_head *)file->memory;

	memcpy(head->magic, COUNTER_FILE_MAGIC, sizeof(head->magic));
	head->counters = COUNTER_COUNT;
	head->devices = (uint32_t)file->devices;
	head->row_bytes = (uint32_t)file->row_bytes;
	head->first_row = (uint32_t)head_bytes();
	for (int i = 0; i < COUNTER_COUNT; i++)
		strncpy(head->names[i], counter_info(i)->name, COUNTER_FILE_NAME_BYTES - 1);
	__atomic_store_n(&head->rows, file->rows < COUNTER_FILE_ROWS ? file->rows : COUNTER_FILE_ROWS,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&head->version, COUNTER_FILE_VERSION, __ATOMIC_RELEASE);
}

/*
 * Seals size and content (memfd_create(2), File sealing): shrinking the file would cause a SIGBUS in every thread that
 * counts. Without such a seal, only the user's own processes can open the file.
 */
static void counter_file_seal(int fd)
{
	const int size = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

	/* Linux before 5.1 has no F_SEAL_FUTURE_WRITE. */
	if (fcntl(fd, F_ADD_SEALS, size | F_SEAL_FUTURE_WRITE))
		fcntl(fd, F_ADD_SEALS, size);
}

/* Maps a new file, at @file->memory if that is not NULL. Returns false, with nothing changed, on failure. */
static bool counter_file_map(struct counter_file *file)
{
	WITHOUT_SIZE_SIGNAL;
	int fd = descriptor_keep(memfd_create(COUNTER_FILE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING)),
	    fixed = file->memory ? MAP_FIXED : 0;
	void *memory;

	if (fd < 0)
		return false;
	if (ftruncate(fd, (off_t)file->bytes))
		goto fail;
	memory = mmap(file->memory, file->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | fixed, fd, 0);
	if (memory == MAP_FAILED)
		goto fail;
	counter_file_seal(fd);
	file->memory = memory;
	file->fd = fd;
	counter_file_write_head(file);
	return true;
fail:
	descriptor_close(fd);
	return false;
}

struct counter_file *counter_file_make(size_t devices)
{
	struct counter_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->devices = devices;
	file->row_bytes = (devices * COUNTER_COUNT * sizeof(uint64_t) + LINE - 1) / LINE * LINE;
	file->bytes = head_bytes() + COUNTER_FILE_ROWS * file->row_bytes;
	if (counter_file_map(file))
		return file;
	free(file);
	return NULL;
}

uint64_t *counter_file_row(struct counter_file *file)
{
	uint32_t row = file ? __atomic_fetch_add(&file->rows, 1, __ATOMIC_RELAXED) : COUNTER_FILE_ROWS;

	if (row >= COUNTER_FILE_ROWS) {
		/* The count must not wrap to 0. */
		if (file)
			__atomic_store_n(&file->rows, COUNTER_FILE_ROWS, __ATOMIC_RELAXED);
		return NULL;
	}
	/* May include rows that faster threads have reserved and not used yet: those are 0. */
	__atomic_add_fetch(&((struct counter_file_head *)file->memory)->rows, 1, __ATOMIC_RELEASE);
	return (uint64_t *)(file->memory + head_bytes() + row * file->row_bytes);
}

void counter_file_after_fork(struct counter_file *file)
{
	if (!file)
		return;
	/* First, because no other descriptor may be available. */
	descriptor_close(file->fd);
	file->fd = -1;
	/* Without a file the child counts in private memory; without memory, in the parent's. */
	if (!counter_file_map(file))
		mmap(file->memory, file->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}
