/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts allocations and lets them fail on demand: definitions of the malloc family, mmap, eventfd, socket and memfd_create that
 * override the C library's for the whole process. Include in one program, once, as its only source file.
 *
 * Allocations of all threads are counted; only those of the thread that sets `watched` fail.
 */
#ifndef SOFTHCA_TESTS_API_FAILING_ALLOCATIONS_H
#define SOFTHCA_TESTS_API_FAILING_ALLOCATIONS_H

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* Also called before a sanitizer's run-time is ready. */
#define EARLY __attribute__((no_sanitize("address", "undefined")))
#define EXPORT EARLY __attribute__((visibility("default")))

static struct {
	bool armed; /* the allocation that `left` counts down to fails */
	unsigned int left;
	int fired;     /* errno value of the failure that happened, or 0 */
	long blocks;   /* live blocks of the malloc family */
	long mappings; /* live mappings of mmap, without those over an existing one */
} books;

static __thread bool watched; /* this thread's allocations can fail; others are only counted */

EARLY static bool fails(int error)
{
	if (!watched || !books.armed || --books.left)
		return false;
	books.armed = false;
	books.fired = error;
	errno = error;
	return true;
}

/* Storage for allocations of dlsym() while it looks up the next function of that name after this program; never freed. */
static _Alignas(64) uint8_t store[4096];
static size_t store_used;
static volatile bool looking_up; /* volatile: dlsym() is declared to call nothing here, but does */

EARLY static void *from_store(size_t size)
{
	void *memory = store + store_used;

	store_used += (size + 63) & ~(size_t)63;
	if (store_used > sizeof(store))
		abort();
	return memory;
}

EARLY static bool is_of_store(const void *memory)
{
	return (const uint8_t *)memory >= store && (const uint8_t *)memory < store + sizeof(store);
}

EARLY static void *next(const char *name, void **cache)
{
	if (!*cache) {
		looking_up = true;
		*cache = dlsym(RTLD_NEXT, name);
		looking_up = false;
		if (!*cache)
			abort();
	}
	return *cache;
}

#define NEXT(name)                                                                                                     \
	({                                                                                                             \
		static void *cache_;                                                                                   \
		(__typeof__(&name))next(#name, &cache_);                                                               \
	})

EARLY static void *counted(void *memory)
{
	if (memory)
		__atomic_add_fetch(&books.blocks, 1, __ATOMIC_RELAXED);
	return memory;
}

EXPORT void *malloc(size_t size)
{
	if (looking_up)
		return from_store(size);
	return fails(ENOMEM) ? NULL : counted(NEXT(malloc)(size));
}

EXPORT void *calloc(size_t count, size_t size)
{
	if (looking_up)
		return from_store(count * size);
	return fails(ENOMEM) ? NULL : counted(NEXT(calloc)(count, size));
}

EXPORT void *realloc(void *memory, size_t size)
{
	void *moved;

	if (fails(ENOMEM))
		return NULL;
	moved = NEXT(realloc)(memory, size);
	return memory ? moved : counted(moved);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	return fails(ENOMEM) ? NULL : counted(NEXT(aligned_alloc)(alignment, size));
}

EXPORT int posix_memalign(void **memory, size_t alignment, size_t size)
{
	int error = fails(ENOMEM) ? ENOMEM : NEXT(posix_memalign)(memory, alignment, size);

	if (!error)
		counted(*memory);
	return error;
}

EXPORT void free(void *memory)
{
	/* dlsym() frees only an old error text during a lookup. */
	if (!memory || looking_up || is_of_store(memory))
		return;
	__atomic_sub_fetch(&books.blocks, 1, __ATOMIC_RELAXED);
	NEXT(free)(memory);
}

EXPORT void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	void *memory = fails(ENOMEM) ? MAP_FAILED : NEXT(mmap)(address, length, protection, flags, fd, offset);

	if (memory != MAP_FAILED && !(flags & MAP_FIXED))
		__atomic_add_fetch(&books.mappings, 1, __ATOMIC_RELAXED);
	return memory;
}

EXPORT int munmap(void *address, size_t length)
{
	int result = NEXT(munmap)(address, length);

	if (!result)
		__atomic_sub_fetch(&books.mappings, 1, __ATOMIC_RELAXED);
	return result;
}

EXPORT int eventfd(unsigned int value, int flags)
{
	return fails(EMFILE) ? -1 : NEXT(eventfd)(value, flags);
}

EXPORT int socket(int domain, int type, int protocol)
{
	return fails(EMFILE) ? -1 : NEXT(socket)(domain, type, protocol);
}

EXPORT int memfd_create(const char *name, unsigned int flags)
{
	return fails(EMFILE) ? -1 : NEXT(memfd_create)(name, flags);
}

#endif
