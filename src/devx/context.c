/* SPDX-License-Identifier: BSD-2-Clause */
/* Contexts of the command interface: open, close, fork. See context.h. */
#include "devx/events.h"
#include "devx/responses.h"

#include <errno.h>
#include <stdlib.h>

#include "hca/hca.h"

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

/*
 * Destroys the objects, newest first, because later objects may use earlier ones. Objects that verbs still use remain,
 * and with them the context, as in any context that is closed too early (verbs/context/context.c). Returns false if any
 * remain.
 */
static bool objects_destroy(struct devx *devx)
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
	bool all = objects_destroy(devx);

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
