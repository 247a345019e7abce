/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access to memory that a program registered for its queues (mlx5dv_devx_umem_reg(3)) and may have unmapped since: an
 * adapter pins such pages, while this device shares the program's mappings. A load or store that would end the program
 * returns EFAULT instead, in one of three ways:
 *
 *   - Rings and doorbell records are accessed by loads and stores whose fault is caught (core/guarded_copy.h). The
 *     handler is installed while there are such rings, and before the first access of each clock tick the thread
 *     checks that a fault would reach it. A program that installs a handler afterwards loses nothing, but then must
 *     not unmap the memory in that tick.
 *   - The kernel copies, for all other memory, and if the program has replaced the handler, or the thread blocks the
 *     signals.
 *   - If the kernel refuses that as well (system call filter of a container), plain loads and stores are used.
 *
 * Any thread may call. No lock is taken, except by program_rings_begin() and program_rings_end().
 */
#ifndef SOFTHCA_PROGRESS_PROGRAM_MEMORY_H
#define SOFTHCA_PROGRESS_PROGRAM_MEMORY_H

#include <stddef.h>
#include <sys/uio.h>

/** Begin and end the existence of a ring in such memory, to which its owner makes the accesses below. */
void program_rings_begin(void);
void program_rings_end(void);

/**
 * Copies @size bytes of a ring or record, @from in the program's memory, to @to. Returns 0, or -EFAULT with @to
 * undefined.
 */
int program_ring_read(void *to, const void *from, size_t size);

/**
 * Copies @count pieces, at most 1024, of rings or records: @from[i], in the program's memory, to @to[i], of the same
 * size, in this order. Returns the number of leading pieces that were copied completely: the next one is unmapped or
 * was not tried.
 */
size_t program_ring_read_each(const struct iovec *to, const struct iovec *from, size_t count);

/**
 * Copies @size bytes from @from to @to, a ring in the program's memory. Returns 0, or -EFAULT if @to may be partly
 * written.
 */
int program_ring_write(void *to, const void *from, size_t size);

/** Copies @size bytes from @from, anywhere in the program's memory, to @to, as program_ring_read() does. */
int program_read(void *to, const void *from, size_t size);

/** Copies @size bytes from @from to @to, anywhere in the program's memory, as program_ring_write() does. */
int program_write(void *to, const void *from, size_t size);

#endif
