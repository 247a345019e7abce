/* SPDX-License-Identifier: BSD-2-Clause */
/* A table by number, in blocks that are allocated on first use. */
#include "core/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/cancellation.h"

/* Values chosen for speed. */
enum {
	/* lowest number of a descriptor that the program does not get; the kernel's table then takes 32 KiB */
	DESCRIPTOR_LOWEST = 4096,
};

enum {
	BLOCK_BITS = 8,
	BLOCK_SIZE = 1 << BLOCK_BITS,
	BLOCKS = 4096, /* for numbers up to fs.nr_open, 2^20 by default */
	/*
	 * F_SETSIG marks the library's files that share one inode, such as those of eventfd(2) and epoll(7): the signal
	 * belongs to the open file and has no effect without O_ASYNC. MARK is the last realtime signal of Linux.
	 */
	MARK = 64,
};

/* Members are atomic: the kernel may give a number that one thread closes to another thread at once. */
struct record {
	dev_t device;
	ino_t inode; /* 0: not of the library */
	bool marked;
	bool reported;
};

static struct record *blocks[BLOCKS]; /* atomic */
static void (*report_loss)(int fd);

static struct record *record_of(int fd)
{
	struct record *block;

	if (fd < 0 || fd >> BLOCK_BITS >= BLOCKS)
		return NULL;
	block = __atomic_load_n(&blocks[fd >> BLOCK_BITS], __ATOMIC_ACQUIRE);
	return block ? &block[fd & (BLOCK_SIZE - 1)] : NULL;
}

/* As record_of(), but allocates the block. NULL without memory. */
static struct record *make_record(int fd)
{
	struct record *block, *none = NULL;

	if (fd >> BLOCK_BITS >= BLOCKS || record_of(fd))
		return record_of(fd);
	block = calloc(BLOCK_SIZE, sizeof(*block));
	if (block && !__atomic_compare_exchange_n(&blocks[fd >> BLOCK_BITS], &none, block, false, __ATOMIC_ACQ_REL,
						  __ATOMIC_ACQUIRE))
		free(block);
	return record_of(fd);
}

static bool descriptor_is_recorded(int fd)
{
	const struct record *record = record_of(fd);

	return record && __atomic_load_n(&record->inode, __ATOMIC_ACQUIRE);
}

/* Returns true for a file without a type, which shares its inode with others. */
static bool file_is_anonymous(const struct stat *status)
{
	return !(status->st_mode & S_IFMT);
}

static bool record_fill(int fd, bool shared)
{
	struct record *record = make_record(fd);
	struct stat status;

	if (!record || fstat(fd, &status))
		return false;
	__atomic_store_n(&record->device, status.st_dev, __ATOMIC_RELAXED);
	__atomic_store_n(&record->marked, !shared && file_is_anonymous(&status) && !fcntl(fd, F_SETSIG, MARK),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&record->reported, false, __ATOMIC_RELAXED);
	__atomic_store_n(&record->inode, status.st_ino, __ATOMIC_RELEASE);
	return true;
}

/*
 * Returns the lowest number of a kept descriptor: if possible beyond the range of select(2) and of programs that close
 * 3 to 1023.
 */
static int lowest_kept(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > 2 * DESCRIPTOR_LOWEST)
		return DESCRIPTOR_LOWEST;
	return (int)(limit.rlim_cur / 2);
}

/*
 * Duplicates @fd to a number of at least @lowest without a record. A free number with a record is that of a descriptor
 * that the program closed, whose owner must not mistake another file of the library for its own. Returns -1 with errno.
 */
static int descriptor_duplicate(int fd, int lowest)
{
	int copy;

	while ((copy = fcntl(fd, F_DUPFD_CLOEXEC, lowest)) >= 0 && descriptor_is_recorded(copy)) {
		lowest = copy + 1;
		close(copy);
	}
	return copy;
}

/* Moves @fd to a number of at least @lowest, if possible. Returns the new number. */
static int descriptor_move(int fd, int lowest)
{
	int moved = descriptor_duplicate(fd, lowest);

	/* The limit does not allow numbers that high. */
	if (moved < 0)
		moved = descriptor_is_recorded(fd) ? descriptor_duplicate(fd, 0) : fd;
	if (moved != fd)
		close(fd);
	return moved;
}

static int record_or_close(int fd, bool shared)
{
	if (fd < 0 || record_fill(fd, shared))
		return fd;
	close(fd);
	errno = ENOMEM;
	return -1;
}

int descriptor_keep(int fd)
{
	WITHOUT_CANCELLATION;

	return fd < 0 ? fd : record_or_close(descriptor_move(fd, lowest_kept()), false);
}

/* Duplicates @fd in a sandbox that refuses fcntl(2). Returns -1 with errno. */
static int descriptor_duplicate_without_fcntl(int fd)
{
	int copy = dup(fd);

	if (copy >= 0)
		ioctl(copy, FIOCLEX);
	return copy;
}

int descriptor_keep_duplicate(int fd)
{
	WITHOUT_CANCELLATION;
	int copy;

	if (fd < 0)
		return fd;
	copy = descriptor_duplicate(fd, lowest_kept());
	if (copy < 0 && errno != EBADF)
		copy = descriptor_duplicate(fd, 0);
	if (copy < 0 && errno != EBADF && errno != EMFILE)
		copy = descriptor_duplicate_without_fcntl(fd);
	return record_or_close(copy, true);
}

int descriptor_show(int fd)
{
	WITHOUT_CANCELLATION;
	int flags;

	if (fd >= 0 && descriptor_is_recorded(fd)) {
		flags = fcntl(fd, F_GETFD);
		fd = descriptor_move(fd, 0);
		if (fd >= 0 && flags >= 0)
			fcntl(fd, F_SETFD, flags);
	}
	return record_or_close(fd, true);
}

void descriptor_adopt(int fd)
{
	record_fill(fd, true);
}

bool descriptor_is_ours(int fd)
{
	const struct record *record = record_of(fd);
	ino_t inode = record ? __atomic_load_n(&record->inode, __ATOMIC_ACQUIRE) : 0;
	struct stat status;

	return inode && !fstat(fd, &status) && status.st_ino == inode &&
	       status.st_dev == __atomic_load_n(&record->device, __ATOMIC_RELAXED) &&
	       (!__atomic_load_n(&record->marked, __ATOMIC_RELAXED) || fcntl(fd, F_GETSIG) == MARK);
}

/* Spares reading the inode: anonymous files share it, and no file of a program has the mark. */
static bool descriptor_has_mark(int fd)
{
	const struct record *record = record_of(fd);

	return record && __atomic_load_n(&record->inode, __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&record->marked, __ATOMIC_RELAXED) && fcntl(fd, F_GETSIG) == MARK;
}

bool descriptor_check(int fd)
{
	struct record *record;
	int error = errno;

	if (descriptor_has_mark(fd) || descriptor_is_ours(fd))
		return true;
	record = record_of(fd);
	if (record && report_loss && !__atomic_exchange_n(&record->reported, true, __ATOMIC_RELAXED))
		report_loss(fd);
	errno = error;
	return false;
}

void descriptor_close(int fd)
{
	WITHOUT_CANCELLATION;
	struct record *record = record_of(fd);
	int error = errno;
	bool ours = descriptor_is_ours(fd);

	/* First, because another thread may get the number as soon as it is closed. */
	if (record)
		__atomic_store_n(&record->inode, 0, __ATOMIC_RELEASE);
	if (ours)
		close(fd);
	errno = error;
}

void descriptor_set_report(void (*report)(int fd))
{
	report_loss = report;
}
