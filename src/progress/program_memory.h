/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access to memory that a program registered for its queues (mlx5dv_devx_umem_reg(3)) and may have unmapped since:
 * returns EFAULT instead of ending the program. DESIGN.md has the means and their limits. If a system call filter
 * refuses those, plain loads and stores are used.
 *
 * Any thread may call. No lock is taken, except by program_rings_begin() and program_rings_end().
 */
#ifndef SOFTHCA_PROGRESS_PROGRAM_MEMORY_H
#define SOFTHCA_PROGRESS_PROGRAM_MEMORY_H

#include <stddef.h>
#include <sys/uio.h>

/** Begin and end the existence of a ring in such memory. */
void program_rings_begin(void);
void program_rings_end(void);

/** Copies @size bytes of a ring or record to @to. Returns 0, or -EFAULT with @to undefined. */
int program_ring_read(void *to, const void *from, size_t size);

/**
 * Copies @count pieces, at most 1024, of rings or records: @from[i] to @to[i], of the same size, in this order. Returns
 * the number of leading pieces that were copied.
 */
size_t program_ring_read_each(const struct iovec *to, const struct iovec *from, size_t count);

/** Copies @size bytes to @to, in a ring. Returns 0, or -EFAULT if @to may be partly written. */
int program_ring_write(void *to, const void *from, size_t size);

/** As program_ring_read(), from anywhere in the program's memory. */
int program_read(void *to, const void *from, size_t size);

/** As program_ring_write(), to anywhere in the program's memory. */
int program_write(void *to, const void *from, size_t size);

#endif
