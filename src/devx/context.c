/* SPDX-License-Identifier: BSD-2-Clause */
/* Contexts of the command interface, their objects and numbers: see context.h. */
#include "devx/events.h"
#include "devx/responses.h"

#include <errno.h>
#include <stdlib.h>

#include "device/device.h"

uint32_t devx_number_new(struct devx_numbers *numbers, void *object)
{
	uint32_t index = 0, count;
	void **more;

	while (index < numbers->count && numbers->entry[index])
		index++;
	if (index == numbers->count) {
		count = numbers->count ? 2 * numbers->count : 8;
		more = realloc(numbers->entry, count * sizeof(*more));
		if (!more)
			return 0;
		for (uint32_t i = numbers->count; i < count; i++)
			more[i] = NULL;
		numbers->entry = more;
		numbers->count = count;
	}
	numbers->entry[index] = object;
	return index + 1;
}

void *devx_number_find(const struct devx_numbers *numbers, uint32_t number)
{
	return number && number <= numbers->count ? numbers->entry[number - 1] : NULL;
}

void devx_number_free(struct devx_numbers *numbers, uint32_t number)
{
	if (devx_number_find(numbers, number))
		numbers->entry[number - 1] = NULL;
}

const char *devx_kind_name(enum devx_kind kind)
{
	static const char *const names[DEVX_KIND_COUNT] = {
		[DEVX_NONE] = "nothing",
		[DEVX_PD] = "PD",
		[DEVX_TRANSPORT_DOMAIN] = "TD",
		[DEVX_CQ] = "CQ",
		[DEVX_QP] = "QP",
		[DEVX_DCT] = "DCT",
		[DEVX_RMP] = "RMP",
		[DEVX_MKEY] = "key",
		[DEVX_PSV] = "PSV",
		[DEVX_GENERAL_OBJECT] = "object",
		[DEVX_DEK] = "DEK",
		[DEVX_LOGIN] = "login",
	};

	return names[kind];
}

int devx_open(struct hca *hca, struct hca_context *verbs, struct devx **out)
{
	struct devx *devx = calloc(1, sizeof(*devx));
	int error;

	if (!devx)
		return -ENOMEM;
	error = hca_open(hca, &devx->events, &devx->own);
	if (error) {
		free(devx);
		return error;
	}
	devx_events_open(devx);
	pthread_mutex_init(&devx->lock, NULL);
	devx->hca = hca;
	devx->verbs = verbs;
	*out = devx;
	return 0;
}

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

/*
 * What was made later may use what was made before, and not the other way round. What objects of verbs still use lives on, and
 * with it the context, as of any context that is closed too early (verbs/context.c).
 */
static bool destroy_all(struct devx *devx)
{
	struct devx_object *object, *kept = NULL;

	while ((object = devx->objects)) {
		devx->objects = object->next;
		if (!devx_object_destroy(devx, object))
			continue;
		object->next = kept;
		kept = object;
	}
	devx->objects = kept;
	return !kept;
}

void devx_close(struct devx *devx)
{
	bool all = destroy_all(devx);

	devx_channels_close(devx);
	devx_responses_close(devx);
	if (!all || hca_close(devx->own))
		return;
	devx_umems_close(devx);
	devx_uars_close(devx);
	devx_events_close(devx);
	pthread_mutex_destroy(&devx->lock);
	free(devx);
}

void devx_before_fork(struct devx *devx)
{
	pthread_mutex_lock(&devx->lock);
}

void devx_after_fork(struct devx *devx)
{
	pthread_mutex_unlock(&devx->lock);
}
