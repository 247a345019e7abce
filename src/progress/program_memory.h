/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that a program registered for its queues (mlx5dv_devx_umem_reg(3)) and may have unmapped since: an adapter has such
 * pages pinned, this device shares the program's mappings. It is read and written through the kernel, which says EFAULT where a
 * load or store would end the program. Where the kernel refuses that (a container's filter of system calls), by loads and stores.
 *
 * Any thread; a system call, which takes no lock.
 */
#ifndef SOFTHCA_PROGRESS_PROGRAM_MEMORY_H
#define SOFTHCA_PROGRESS_PROGRAM_MEMORY_H

#include <stddef.h>
#include <sys/uio.h>

/** Copies @size bytes from @from, the program's, to @to. Returns 0, or -EFAULT: then @to has any content. */
int program_read(void *to, const void *from, size_t size);

/**
 * Copies @count pieces, at most 1024, by one system call: @from[i] of the program's to @to[i], of the same size. Returns how many
 * of them were copied whole, from the first on: what follows them is not mapped, or was not looked at.
 */
size_t program_read_each(const struct iovec *to, const struct iovec *from, size_t count);

/** Copies @size bytes from @from to @to, the program's. Returns 0, or -EFAULT: then a part of it may be written. */
int program_write(void *to, const void *from, size_t size);

#endif
