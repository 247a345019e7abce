/* SPDX-License-Identifier: BSD-2-Clause */
/* Access to memory that the program may have unmapped. */
#include "progress/program_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "core/fault_signal.h"
#include "core/guarded_copy.h"
#include "observe/page_guard.h"

/* @done: bytes copied, which may end at an unmapped page. */
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

static size_t read_each_by_kernel(const struct iovec *to, const struct iovec *from, size_t count)
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

/* ---- rings ------------------------------------------------------------------------------------------------------ */

/* A handler installed now would displace that of pages closed to the program, which then stops closing pages. */
static bool faults_can_be_caught(void)
{
	return guarded_copy_works() && !page_guard_is_on();
}

void program_rings_begin(void)
{
	if (faults_can_be_caught())
		fault_signal_hold();
}

void program_rings_end(void)
{
	if (faults_can_be_caught())
		fault_signal_release();
}

/* Returns true if this thread may call guarded_copy(): checked once per tick of the kernel's clock, 1 to 10 ms. */
static bool faults_are_caught(void)
{
	static __thread struct timespec checked __attribute__((tls_model("initial-exec")));
	static __thread bool caught __attribute__((tls_model("initial-exec")));
	struct timespec now;

	if (!fault_signal_is_held())
		return false;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if (now.tv_nsec != checked.tv_nsec || now.tv_sec != checked.tv_sec) {
		checked = now;
		caught = fault_signal_reaches_thread();
	}
	return caught;
}

int program_ring_read(void *to, const void *from, size_t size)
{
	if (faults_are_caught())
		return guarded_copy(to, from, size) ? 0 : -EFAULT;
	return program_read(to, from, size);
}

size_t program_ring_read_each(const struct iovec *to, const struct iovec *from, size_t count)
{
	size_t pieces = 0;

	if (!faults_are_caught())
		return read_each_by_kernel(to, from, count);
	while (pieces < count && guarded_copy(to[pieces].iov_base, from[pieces].iov_base, from[pieces].iov_len))
		pieces++;
	return pieces;
}

int program_ring_write(void *to, const void *from, size_t size)
{
	if (faults_are_caught())
		return guarded_copy(to, from, size) ? 0 : -EFAULT;
	return program_write(to, from, size);
}
