/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes pages present. */
#include "mkey/pages.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "observe/page_guard.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

/*
 * Reads a byte of each page, for kernels before 5.14, which lack MADV_POPULATE. The system call reports EFAULT instead
 * of a signal. Missing write permission is not detected.
 */
static int touch_pages(uintptr_t first, uintptr_t end, uintptr_t page)
{
	for (uintptr_t at = first; at < end; at += page) {
		char byte;
		struct iovec here = {&byte, 1}, there = {(void *)at, 1};

		if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != 1)
			return errno == EFAULT ? -EFAULT : 0;
	}
	return 0;
}

int pages_present(const void *address, uint64_t length, bool write)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = (uintptr_t)address & ~(page - 1), end;

	if (!length)
		return 0;
	if (__builtin_add_overflow((uintptr_t)address, length - 1, &end))
		return -EFAULT;
	end = (end | (page - 1)) + 1;
	if (page_guard_is_on())
		page_guard_device_access(address, length, false);
	if (!madvise((void *)first, end - first, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		return 0;
	if (errno == EINVAL || errno == ENOSYS || errno == EPERM) {
		/* The kernel is old, or a sandbox refuses the call, or the memory is not writable. */
		if (write && !madvise((void *)first, end - first, MADV_POPULATE_READ))
			return -EFAULT;
		return touch_pages(first, end, page);
	}
	return errno == EAGAIN ? -ENOMEM : -EFAULT;
}
