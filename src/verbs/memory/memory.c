/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings and doorbell records, from the allocators of a parent domain (ibv_alloc_parent_domain(3)) or from the driver's.
 * An allocator may decline a request (IBV_ALLOCATOR_USE_DEFAULT), so the driver records its blocks: only those are
 * passed to its free function.
 */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "explain/explain.h"
#include "verbs/object/objects.h"

#define DBREC_SIZE 64
#define HUGE_PAGE_SIZE (2u << 20)

/* ---- memory of the program ------------------------------------------------------------------------------------ */

static int by_address(const void *left, const void *right)
{
	return (uintptr_t)left < (uintptr_t)right ? -1 : (uintptr_t)left > (uintptr_t)right;
}

static bool custom_block_remember(struct user_pd *pd, void *memory)
{
	void *node;

	queue_lock(&pd->lock);
	node = tsearch(memory, &pd->custom_blocks, by_address);
	queue_unlock(&pd->lock);
	return node;
}

/* Returns false if @memory did not come from the program's allocator. */
static bool custom_block_forget(struct user_pd *pd, void *memory)
{
	bool known;

	queue_lock(&pd->lock);
	known = tdelete(memory, &pd->custom_blocks, by_address);
	queue_unlock(&pd->lock);
	return known;
}

/* Returns NULL if the allocator failed, IBV_ALLOCATOR_USE_DEFAULT if it declined or @pd has none. */
static void *custom_alloc(struct user_pd *pd, size_t size, size_t alignment, uint64_t resource_type)
{
	void *memory;

	if (!pd || !pd->alloc)
		return IBV_ALLOCATOR_USE_DEFAULT;
	memory = pd->alloc(&pd->base, pd->pd_context, size, alignment, resource_type);
	if (!memory) {
		errno = REFUSE(hca_pd_device(pd->device), "ibv_parent_domain_init_attr.alloc", ENOMEM,
			       RULE_ALLOCATOR_FAILED, size);
		return NULL;
	}
	if (memory != IBV_ALLOCATOR_USE_DEFAULT && !custom_block_remember(pd, memory)) {
		if (pd->free)
			pd->free(&pd->base, pd->pd_context, memory, resource_type);
		errno = ENOMEM;
		return NULL;
	}
	return memory;
}

/* Returns false if the driver must free @memory. */
static bool custom_free(struct user_pd *pd, void *memory, uint64_t resource_type)
{
	if (!pd || !pd->alloc || !custom_block_forget(pd, memory))
		return false;
	if (pd->free)
		pd->free(&pd->base, pd->pd_context, memory, resource_type);
	return true;
}

/* ---- memory of the driver ------------------------------------------------------------------------------------- */

/* Returns MLX_QP_ALLOC_TYPE or its counterpart, read at each creation. NULL if unset. */
static const char *alloc_type(uint64_t resource_type)
{
	switch (resource_type) {
	case MLX5DV_RES_TYPE_QP:
		return variable_get(VARIABLE_MLX_QP_ALLOC_TYPE);
	case MLX5DV_RES_TYPE_CQ:
		return variable_get(VARIABLE_MLX_CQ_ALLOC_TYPE);
	case MLX5DV_RES_TYPE_SRQ:
		return variable_get(VARIABLE_MLX_SRQ_ALLOC_TYPE);
	default:
		return NULL;
	}
}

static size_t size_round_up(size_t size, size_t unit)
{
	return (size + unit - 1) & ~(unit - 1);
}

static void *pages_map(size_t size, int flags)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* All memory counts as contiguous, since no physical addresses are used. */
static void *pages_alloc(size_t size, const char *type)
{
	void *memory = NULL;

	if (type && (strcmp(type, "HUGE") == 0 || strcmp(type, "PREFER_HUGE") == 0 || strcmp(type, "ALL") == 0))
		memory = pages_map(size_round_up(size, HUGE_PAGE_SIZE), MAP_HUGETLB);
	if (!memory && !(type && strcmp(type, "HUGE") == 0))
		memory = pages_map(size, 0);
	return memory;
}

/* A mapping of huge pages must be unmapped whole: munmap(2) refuses anything else without effect. */
static void pages_free(void *memory, size_t size)
{
	if (munmap(memory, size) && errno == EINVAL)
		munmap(memory, size_round_up(size, HUGE_PAGE_SIZE));
}

/* ---- interface for queues ------------------------------------------------------------------------------------- */

void *ring_alloc(struct user_pd *pd, size_t size, uint64_t resource_type)
{
	void *memory = custom_alloc(pd, size, (size_t)sysconf(_SC_PAGESIZE), resource_type);

	if (memory == IBV_ALLOCATOR_USE_DEFAULT)
		memory = pages_alloc(size, alloc_type(resource_type));
	if (memory)
		user_pd_get(pd);
	return memory;
}

void ring_free(struct user_pd *pd, void *memory, size_t size, uint64_t resource_type)
{
	if (!memory)
		return;
	if (!custom_free(pd, memory, resource_type))
		pages_free(memory, size);
	user_pd_put(pd);
}

uint32_t *dbrec_alloc(struct user_pd *pd)
{
	void *memory = custom_alloc(pd, DBREC_SIZE, DBREC_SIZE, MLX5DV_RES_TYPE_DBR);

	if (memory == IBV_ALLOCATOR_USE_DEFAULT)
		memory = aligned_alloc(DBREC_SIZE, DBREC_SIZE);
	if (!memory)
		return NULL;
	memset(memory, 0, DBREC_SIZE);
	user_pd_get(pd);
	return memory;
}

void dbrec_free(struct user_pd *pd, uint32_t *dbrec)
{
	if (!dbrec)
		return;
	if (!custom_free(pd, dbrec, MLX5DV_RES_TYPE_DBR))
		free(dbrec);
	user_pd_put(pd);
}

bool queue_single_threaded(const struct user_pd *pd)
{
	const char *single = variable_get(VARIABLE_MLX5_SINGLE_THREADED);

	return (pd && pd->td) || (single && strcmp(single, "1") == 0);
}
