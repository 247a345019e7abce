/* SPDX-License-Identifier: BSD-2-Clause */
/* See program_memory.h. */
#include "progress/program_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Translates the result of a copy, which may be partial up to an unmapped page. */
static int copy_result(ssize_t done, size_t size)
{
	if (done == (ssize_t)size)
		return 0;
	return done >= 0 || errno == EFAULT || errno == ENOMEM ? -EFAULT : -ENOSYS;
}

int program_read(void *to, const void *from, size_t size)
{
	struct iovec here = {to, size}, there = {(void *)from, size};
	int error = copy_result(process_vm_readv(getpid(), &here, 1, &there, 1, 0), size);

	if (error == -ENOSYS)
		memcpy(to, from, size);
	return error == -ENOSYS ? 0 : error;
}

size_t program_read_each(const struct iovec *to, const struct iovec *from, size_t count)
{
	ssize_t done = process_vm_readv(getpid(), to, count, from, count, 0);
	size_t pieces = 0;

	if (done < 0 && copy_result(done, 0) == -ENOSYS) {
		for (size_t i = 0; i < count; i++)
			memcpy(to[i].iov_base, from[i].iov_base, from[i].iov_len);
		return count;
	}
	for (; pieces < count && done >= (ssize_t)from[pieces].iov_len; pieces++)
		done -= (ssize_t)from[pieces].iov_len;
	return pieces;
}

int program_write(void *to, const void *from, size_t size)
{
	struct iovec here = {(void *)from, size}, there = {to, size};
	int error = copy_result(process_vm_writev(getpid(), &here, 1, &there, 1, 0), size);

	if (error == -ENOSYS)
		memcpy(to, from, size);
	return error == -ENOSYS ? 0 : error;
}
