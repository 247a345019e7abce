/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory and doorbells of queues created by commands: mlx5dv_devx_umem_reg(3), mlx5dv_devx_umem_reg_ex(3),
 * mlx5dv_devx_alloc_uar(3), mlx5dv_devx_query_eqn(3).
 */
#include <errno.h>
#include <stdlib.h>

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "verbs/object/devx.h"
#include "verbs/context/doorbell_page.h"

static struct mlx5dv_devx_umem *umem_register(struct ibv_context *context, void *address, size_t size, uint32_t access,
					      uint64_t page_sizes)
{
	struct user_umem *umem;
	struct devx *devx;
	int error;

	if (object_refused("mlx5dv_devx_umem_reg", NULL, context))
		return NULL;
	devx = user_devx(context);
	umem = devx ? calloc(1, sizeof(*umem)) : NULL;
	if (!umem)
		return NULL;
	error = -devx_umem_register(devx, address, size, access, page_sizes, &umem->base.umem_id);
	if (error) {
		free(umem);
		errno = error;
		return NULL;
	}
	umem->context = context;
	object_enter(&umem->base, &umem->alive, context);
	devx_handle_enter(context, &umem->handle, umem, &umem->alive);
	return &umem->base;
}

struct mlx5dv_devx_umem *softhca_mlx5dv_devx_umem_reg(struct ibv_context *context, void *addr, size_t size,
						      uint32_t access)
{
	return umem_register(context, addr, size, access, UINT64_MAX);
}

struct mlx5dv_devx_umem *softhca_mlx5dv_devx_umem_reg_ex(struct ibv_context *context, struct mlx5dv_devx_umem_in *in)
{
	static const char call[] = "mlx5dv_devx_umem_reg_ex";

	if (object_refused(call, NULL, context))
		return NULL;
	if (in->comp_mask & ~(uint64_t)MLX5DV_UMEM_MASK_DMABUF) {
		errno = REFUSE(hca_of_context(context), call, EOPNOTSUPP, RULE_DEVX_UMEM_ATTR, in->access,
			       in->pgsz_bitmap, in->comp_mask);
		return NULL;
	}
	if (in->comp_mask & MLX5DV_UMEM_MASK_DMABUF) {
		errno = REFUSE(hca_of_context(context), call, in->dmabuf_fd == -1 ? EBADF : EOPNOTSUPP,
			       RULE_DEVX_UMEM_DMABUF, (uint64_t)(int64_t)in->dmabuf_fd);
		return NULL;
	}
	return umem_register(context, in->addr, in->size, in->access, in->pgsz_bitmap);
}

int softhca_mlx5dv_devx_umem_dereg(struct mlx5dv_devx_umem *base)
{
	struct user_umem *umem = user_container_of(base, struct user_umem, base);
	int error;

	if (object_refused("mlx5dv_devx_umem_dereg", NULL, base))
		return errno;
	error = -devx_umem_deregister(user_devx(umem->context), umem->base.umem_id);
	if (error) {
		errno = error;
		return error;
	}
	devx_handle_leave(umem->context, &umem->handle);
	free(umem);
	return 0;
}

struct mlx5dv_devx_uar *softhca_mlx5dv_devx_alloc_uar(struct ibv_context *context, uint32_t flags)
{
	struct devx_uar made;
	struct user_uar *uar;
	struct devx *devx;
	int error;

	if (object_refused("mlx5dv_devx_alloc_uar", NULL, context))
		return NULL;
	devx = user_devx(context);
	uar = devx ? calloc(1, sizeof(*uar)) : NULL;
	if (!uar)
		return NULL;
	error = -devx_uar_alloc(devx, flags, &made);
	if (error) {
		free(uar);
		errno = error;
		return NULL;
	}
	uar->base.base_addr = made.page;
	uar->base.reg_addr = made.page + DOORBELL_SEND_OFFSET;
	uar->base.page_id = made.number;
	uar->base.mmap_off = (off_t)made.offset * DOORBELL_PAGE_SIZE;
	uar->context = context;
	object_enter(&uar->base, &uar->alive, context);
	devx_handle_enter(context, &uar->handle, uar, &uar->alive);
	return &uar->base;
}

void softhca_mlx5dv_devx_free_uar(struct mlx5dv_devx_uar *base)
{
	struct user_uar *uar = user_container_of(base, struct user_uar, base);

	if (object_refused("mlx5dv_devx_free_uar", NULL, base))
		return;
	devx_uar_free(user_devx(uar->context), uar->base.page_id);
	devx_handle_leave(uar->context, &uar->handle);
	free(uar);
}

int softhca_mlx5dv_devx_query_eqn(struct ibv_context *context, uint32_t vector, uint32_t *eqn)
{
	struct devx *devx;
	int error;

	if (object_refused("mlx5dv_devx_query_eqn", NULL, context))
		return errno;
	devx = user_devx(context);
	error = devx ? -devx_event_queue(devx, vector, eqn) : errno;
	if (error)
		errno = error;
	return error;
}
