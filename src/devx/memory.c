/* SPDX-License-Identifier: BSD-2-Clause */
/* Registered memory of queues (umem), and doorbell pages (UAR). */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/limits.h"
#include "devx/context.h"
#include "explain/explain.h"
#include "mkey/pages.h"

enum { PAGE_BYTES = 4096 };

#define UMEM_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* ---- umem ---------------------------------------------------------------------------------------------------- */

int devx_umem_register(struct devx *devx, void *address, size_t size, uint32_t access, uint64_t page_sizes,
		       uint32_t *number)
{
	static const char call[] = "mlx5dv_devx_umem_reg";
	bool write = access & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct devx_umem *umem;
	int error;

	if (access & ~(uint32_t)UMEM_ACCESS || !(page_sizes & ~(uint64_t)(PAGE_BYTES - 1)))
		return -REFUSE(devx->hca, call, EINVAL, RULE_DEVX_UMEM_ATTR, access, page_sizes, 0);
	error = size ? pages_present(address, size, write) : -EINVAL;
	if (error)
		return -REFUSE(devx->hca, call, -error, RULE_DEVX_UMEM_MEMORY, (uintptr_t)address, size, access);
	umem = calloc(1, sizeof(*umem));
	if (!umem)
		return -ENOMEM;
	umem->address = address;
	umem->size = size;
	pthread_mutex_lock(&devx->lock);
	*number = devx_number_new(&devx->umems, umem);
	pthread_mutex_unlock(&devx->lock);
	if (*number)
		return 0;
	free(umem);
	return -ENOMEM;
}

int devx_umem_deregister(struct devx *devx, uint32_t number)
{
	struct devx_umem *umem;
	int error = 0;

	pthread_mutex_lock(&devx->lock);
	umem = devx_number_find(&devx->umems, number);
	if (!umem) {
		error = -EINVAL;
	} else if (umem->references) {
		error = -REFUSE(devx->hca, "mlx5dv_devx_umem_dereg", EBUSY, RULE_DEVX_UMEM_IN_USE, number,
				umem->references);
	} else {
		devx_number_free(&devx->umems, number);
		free(umem);
	}
	pthread_mutex_unlock(&devx->lock);
	return error;
}

void devx_umems_close(struct devx *devx)
{
	for (uint32_t i = 0; i < devx->umems.count; i++)
		free(devx->umems.entry[i]);
	free(devx->umems.entry);
}

/* ---- UAR ------------------------------------------------------------------------------------------------------- */

/*
 * One page is enough: neither a register's address nor its value matters (mlx5-formats 1.16). All uncached registers of
 * a context are UAR 1, as in a kernel; programs distinguish them by their mmap offset.
 */
enum { NC_NUMBER = 1, NC_OFFSET = 3 << 8 };

/* Includes the entry of the uncached registers. The lock is held. */
static int uar_make_page(struct devx *devx)
{
	void *page;

	if (devx->page)
		return 0;
	page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return -ENOMEM;
	if (devx_number_new(&devx->uars, page) != NC_NUMBER) {
		munmap(page, PAGE_BYTES);
		return -ENOMEM;
	}
	devx->page = page;
	hca_watch_page(devx->hca, page);
	return 0;
}

int devx_uar_alloc(struct devx *devx, uint32_t type, struct devx_uar *uar)
{
	uint32_t number = NC_NUMBER;
	int error;

	if (type != DEVX_UAR_BF && type != DEVX_UAR_NC)
		return -REFUSE(devx->hca, "mlx5dv_devx_alloc_uar", EOPNOTSUPP, RULE_DEVX_UAR_TYPE, type);
	pthread_mutex_lock(&devx->lock);
	error = uar_make_page(devx);
	if (!error && type == DEVX_UAR_BF) {
		number = devx_number_new(&devx->uars, devx->page);
		error = number ? 0 : -ENOMEM;
	}
	*uar = (struct devx_uar){
		.page = devx->page,
		.number = number,
		.offset = type == DEVX_UAR_NC ? NC_OFFSET : number & 0xff,
	};
	pthread_mutex_unlock(&devx->lock);
	return error;
}

void devx_uar_free(struct devx *devx, uint32_t number)
{
	pthread_mutex_lock(&devx->lock);
	if (number != NC_NUMBER)
		devx_number_free(&devx->uars, number);
	pthread_mutex_unlock(&devx->lock);
}

void devx_uars_close(struct devx *devx)
{
	if (devx->page) {
		hca_unwatch_page(devx->hca, devx->page);
		munmap(devx->page, PAGE_BYTES);
	}
	free(devx->uars.entry);
}

/* ---- event queues ---------------------------------------------------------------------------------------------- */

int devx_event_queue(struct devx *devx, uint32_t vector, uint32_t *number)
{
	if (vector >= LIMIT_COMP_VECTORS)
		return -REFUSE(devx->hca, "mlx5dv_devx_query_eqn", EINVAL, RULE_DEVX_VECTOR, vector,
			       LIMIT_COMP_VECTORS);
	*number = vector + 1;
	return 0;
}
