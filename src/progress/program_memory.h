/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access to memory that a program registered for its queues (mlx5dv_devx_umem_reg(3)) and may have unmapped since: an
 * adapter pins such pages, while this device shares the program's mappings. Access goes through the kernel, which
 * returns EFAULT where a load or store would end the program. If the kernel refuses these system calls (filter of a
 * container), plain loads and stores are used.
 *
 * Any thread may call; a system call that takes no lock.
 */
#ifndef SOFTHCA_PROGRESS_PROGRAM_MEMORY_H
#define SOFTHCA_PROGRESS_PROGRAM_MEMORY_H

#include <stddef.h>
#include <sys/uio.h>

/** Copies @size bytes from @from, in the program's memory, to @to. Returns 0, or -EFAULT with @to undefined. */
int program_read(void *to, const void *from, size_t size);

/**
 * Copies @count pieces, at most 1024, by one system call: @from[i], in the program's memory, to @to[i], of the same
 * size. Returns the number of leading pieces that were copied completely: the next one is unmapped or was not tried.
 */
size_t program_read_each(const struct iovec *to, const struct iovec *from, size_t count);

/**
 * Copies @size bytes from @from to @to, in the program's memory. Returns 0, or -EFAULT if @to may be partly written.
 */
int program_write(void *to, const void *from, size_t size);

#endif
