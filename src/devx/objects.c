/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects made by commands: see context.h. */
#include "devx/events.h"

#include <stdlib.h>

#include "hca/hca.h"

void devx_object_enter(struct devx *devx, struct devx_object *object)
{
	object->next = devx->objects;
	object->link = &devx->objects;
	if (object->next)
		object->next->link = &object->next;
	devx->objects = object;
}

int devx_object_destroy(struct devx *devx, struct devx_object *object)
{
	int error = 0;

	switch (object->kind) {
	case DEVX_PD:
		error = hca_pd_dealloc(object->pd);
		break;
	case DEVX_CQ:
		error = hca_cq_destroy(object->cq);
		break;
	case DEVX_QP:
	case DEVX_DCT:
		error = hca_qp_destroy(object->qp);
		break;
	case DEVX_RMP:
		error = hca_srq_destroy(object->srq);
		break;
	case DEVX_MKEY:
		error = hca_mkey_destroy(object->mkey);
		break;
	case DEVX_PSV:
		error = hca_psv_destroy(devx->hca, object->number);
		break;
	case DEVX_DEK:
		hca_dek_destroy(devx->hca, object->number);
		reference_put(&object->dek.pd->references);
		break;
	case DEVX_LOGIN:
		hca_login_destroy(object->login.login);
		break;
	default:
		break;
	}
	if (error)
		return error;
	devx_unsubscribe_all(devx, object);
	for (size_t i = 0; i < sizeof(object->umem) / sizeof(object->umem[0]); i++)
		if (object->umem[i])
			object->umem[i]->references--;
	free(object);
	return 0;
}
