/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors are also stored in errno, which programs read after some of these calls. */
#include <errno.h>
#include <stdlib.h>

#include "abi/entry_points.h"
#include "verbs/object/devx.h"
#include "verbs/object/ops.h"

int softhca_mlx5dv_devx_general_cmd(struct ibv_context *context, const void *in, size_t inlen, void *out, size_t outlen)
{
	struct devx *devx;

	if (object_refused("mlx5dv_devx_general_cmd", NULL, context))
		return errno;
	devx = user_devx(context);
	return devx ? with_errno(-devx_general(devx, in, inlen, out, outlen)) : errno;
}

struct mlx5dv_devx_obj *softhca_mlx5dv_devx_obj_create(struct ibv_context *context, const void *in, size_t inlen,
						       void *out, size_t outlen)
{
	struct user_devx_object *object;
	struct devx *devx;
	int error;

	if (object_refused("mlx5dv_devx_obj_create", NULL, context))
		return NULL;
	devx = user_devx(context);
	object = devx ? calloc(1, sizeof(*object)) : NULL;
	if (!object)
		return NULL;
	error = -devx_create(devx, in, inlen, out, outlen, &object->device);
	if (error) {
		free(object);
		errno = error;
		return NULL;
	}
	object->context = context;
	object_enter((struct mlx5dv_devx_obj *)object, &object->alive, context);
	devx_handle_enter(context, &object->handle, object, &object->alive);
	return (struct mlx5dv_devx_obj *)object;
}

int softhca_mlx5dv_devx_obj_query(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen, void *out, size_t outlen)
{
	static const char call[] = "mlx5dv_devx_obj_query";
	struct user_devx_object *object = (struct user_devx_object *)obj;

	if (object_refused(call, NULL, obj))
		return errno;
	return with_errno(-devx_query(user_devx(object->context), call, object->device, in, inlen, out, outlen));
}

int softhca_mlx5dv_devx_obj_modify(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen, void *out, size_t outlen)
{
	struct user_devx_object *object = (struct user_devx_object *)obj;

	if (object_refused("mlx5dv_devx_obj_modify", NULL, obj))
		return errno;
	return with_errno(-devx_modify(user_devx(object->context), object->device, in, inlen, out, outlen));
}

int softhca_mlx5dv_devx_obj_destroy(struct mlx5dv_devx_obj *obj)
{
	struct user_devx_object *object = (struct user_devx_object *)obj;
	int error;

	if (object_refused("mlx5dv_devx_obj_destroy", NULL, obj))
		return errno;
	error = -devx_destroy(user_devx(object->context), object->device);
	if (error)
		return with_errno(error);
	devx_handle_leave(object->context, &object->handle);
	free(object);
	return 0;
}

int softhca_mlx5dv_devx_qp_modify(struct ibv_qp *base, const void *in, size_t inlen, void *out, size_t outlen)
{
	struct user_qp *qp = to_user_qp(base);
	enum ibv_qp_state state;
	struct devx *devx;
	int error;

	if (object_refused("mlx5dv_devx_qp_modify", NULL, base))
		return errno;
	devx = user_devx(base->context);
	if (!devx)
		return errno;
	error = -devx_modify_qp(devx, qp->device, in, inlen, out, outlen, &state);
	if (error)
		return with_errno(error);
	user_qp_entered(qp, state);
	return 0;
}

int softhca_mlx5dv_devx_qp_query(struct ibv_qp *base, const void *in, size_t inlen, void *out, size_t outlen)
{
	struct devx *devx;

	if (object_refused("mlx5dv_devx_qp_query", NULL, base))
		return errno;
	devx = user_devx(base->context);
	return devx ? with_errno(-devx_query_qp(devx, to_user_qp(base)->device, in, inlen, out, outlen)) : errno;
}
