/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that return an errno value also store it in errno, since programs read it. */
#include <errno.h>
#include <stdlib.h>

#include "abi/entry_points.h"
#include "verbs/object/devx.h"

static struct user_responses *to_user_responses(struct mlx5dv_devx_cmd_comp *base)
{
	return user_container_of(base, struct user_responses, base);
}

struct mlx5dv_devx_cmd_comp *softhca_mlx5dv_devx_create_cmd_comp(struct ibv_context *context)
{
	struct user_responses *responses;
	struct devx *devx;
	int error;

	if (object_refused("mlx5dv_devx_create_cmd_comp", NULL, context))
		return NULL;
	devx = user_devx(context);
	responses = devx ? calloc(1, sizeof(*responses)) : NULL;
	if (!responses)
		return NULL;
	error = -devx_responses_create(devx, &responses->device, &responses->base.fd);
	if (error) {
		free(responses);
		errno = error;
		return NULL;
	}
	responses->context = context;
	object_enter(&responses->base, &responses->alive, context);
	devx_handle_enter(context, &responses->handle, responses, &responses->alive);
	return &responses->base;
}

void softhca_mlx5dv_devx_destroy_cmd_comp(struct mlx5dv_devx_cmd_comp *base)
{
	struct user_responses *responses = to_user_responses(base);

	if (object_refused("mlx5dv_devx_destroy_cmd_comp", NULL, base))
		return;
	devx_responses_destroy(user_devx(responses->context), responses->device);
	devx_handle_leave(responses->context, &responses->handle);
	free(responses);
}

int softhca_mlx5dv_devx_obj_query_async(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen, size_t outlen,
					uint64_t wr_id, struct mlx5dv_devx_cmd_comp *base)
{
	static const char call[] = "mlx5dv_devx_obj_query_async";
	struct user_devx_object *object = (struct user_devx_object *)obj;

	if (object_refused(call, NULL, obj) || object_refused(call, object->context, base))
		return errno;
	return with_errno(-devx_query_async(user_devx(object->context), object->device, in, inlen, outlen, wr_id,
					    to_user_responses(base)->device));
}

int softhca_mlx5dv_devx_get_async_cmd_comp(struct mlx5dv_devx_cmd_comp *base,
					   struct mlx5dv_devx_async_cmd_hdr *cmd_resp, size_t cmd_resp_len)
{
	struct user_responses *responses = to_user_responses(base);

	if (object_refused("mlx5dv_devx_get_async_cmd_comp", NULL, base))
		return errno;
	return with_errno(
		-devx_responses_take(user_devx(responses->context), responses->device, cmd_resp, cmd_resp_len));
}
