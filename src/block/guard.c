/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses kernels and finishes running values. */
#include "block/guard_kernels.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

const struct guard_kernel *const guard_kernels[] = {
#ifdef __x86_64__
	&guard_kernel_gfni,       /* Intel from Ice Lake, AMD from Zen 4 */
	&guard_kernel_vpclmulqdq, /* the same CPUs, for the other types */
	&guard_kernel_avx512,
#endif
	&guard_kernel_isal,
#ifdef __x86_64__
	&guard_kernel_pclmulqdq,
	&guard_kernel_avx2,
#endif
#ifdef __aarch64__
	&guard_kernel_pmull, /* CRC64, which ISA-L 2.30 lacks */
#endif
	&guard_kernel_table, /* CRCs everywhere */
	&guard_kernel_words, /* checksum everywhere */
	NULL,
};

struct choice {
	const struct guard_kernel *of[GUARD_TYPE_COUNT];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct choice best, forced;
static _Atomic(const struct choice *) current;

const struct guard_kernel *guard_choose(uint32_t features, enum guard_type type)
{
	for (unsigned int i = 0; guard_kernels[i]; i++)
		if (guard_kernels[i]->types & 1u << type && !(guard_kernels[i]->needs & ~features))
			return guard_kernels[i];
	return NULL;
}

static void choose_kernels(void)
{
	for (unsigned int i = 0; guard_kernels[i]; i++)
		if (guard_kernels[i]->prepare && cpu_has(guard_kernels[i]->needs))
			guard_kernels[i]->prepare();
	for (unsigned int type = 0; type < GUARD_TYPE_COUNT; type++)
		best.of[type] = guard_choose(cpu_features(), type);
	atomic_store_explicit(&current, &best, memory_order_release);
}

static const struct guard_kernel *kernel_of(enum guard_type type)
{
	const struct choice *choice = atomic_load_explicit(&current, memory_order_acquire);

	if (!choice) {
		pthread_once(&once, choose_kernels);
		choice = atomic_load_explicit(&current, memory_order_acquire);
	}
	return choice->of[type];
}

void guard_force(const struct guard_kernel *kernel)
{
	pthread_once(&once, choose_kernels);
	forced = best;
	for (unsigned int type = 0; kernel && type < GUARD_TYPE_COUNT; type++)
		if (kernel->types & 1u << type)
			forced.of[type] = kernel;
	atomic_store_explicit(&current, &forced, memory_order_release);
}

const char *guard_kernel_name(enum guard_type type)
{
	return type == GUARD_NONE ? "none" : kernel_of(type)->name;
}

unsigned int guard_size(enum guard_type type)
{
	return type == GUARD_IP_CHECKSUM ? 2 : guard_crcs[type].width / 8;
}

uint64_t guard_begin(enum guard_type type, bool ones)
{
	if (!ones)
		return 0;
	return type == GUARD_IP_CHECKSUM ? 0xffff : guard_crcs[type].ones;
}

uint64_t guard_update(enum guard_type type, uint64_t running, const void *data, size_t bytes)
{
	if (type == GUARD_NONE)
		return running;
	return kernel_of(type)->copy(type, running, NULL, data, bytes);
}

uint64_t guard_copy(enum guard_type type, uint64_t running, void *to, const void *data, size_t bytes)
{
	if (type == GUARD_NONE) {
		memcpy(to, data, bytes);
		return running;
	}
	return kernel_of(type)->copy(type, running, to, data, bytes);
}

uint64_t guard_finish(enum guard_type type, uint64_t running)
{
	switch (type) {
	case GUARD_T10_CRC:
		return running >> 48;
	case GUARD_IP_CHECKSUM:
		return ~running & 0xffff;
	case GUARD_CRC32:
		return ~running >> 32;
	case GUARD_CRC32C:
		return __builtin_bswap32(~(uint32_t)running);
	case GUARD_CRC64_XP10:
		return __builtin_bswap64(~running);
	default:
		return 0;
	}
}

static void kernel_copy_each(const struct guard_kernel *kernel, enum guard_type type, uint64_t begin,
			     const struct guard_blocks *blocks, size_t count, uint64_t *guards)
{
	const uint8_t *from = blocks->from;
	uint8_t *to = blocks->to;

	for (size_t i = 0; i < count; i++) {
		guards[i] = guard_finish(type, kernel->copy(type, begin, to, from, blocks->block));
		from += blocks->from_stride;
		if (to)
			to += blocks->to_stride;
	}
}

static void copy_without_guard(const struct guard_blocks *blocks, size_t count)
{
	for (size_t i = 0; blocks->to && i < count; i++)
		memcpy(blocks->to + i * blocks->to_stride, blocks->from + i * blocks->from_stride, blocks->block);
}

void guard_copy_blocks(enum guard_type type, bool ones, const struct guard_blocks *blocks, size_t count,
		       uint64_t *guards)
{
	const struct guard_kernel *kernel;

	if (type == GUARD_NONE) {
		copy_without_guard(blocks, count);
		memset(guards, 0, count * sizeof(*guards));
		return;
	}
	kernel = kernel_of(type);
	if (kernel->takes && kernel->takes(blocks->block))
		kernel->copy_blocks(type, guard_begin(type, ones), blocks, count, guards);
	else
		kernel_copy_each(kernel, type, guard_begin(type, ones), blocks, count, guards);
}
