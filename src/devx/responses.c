/* SPDX-License-Identifier: BSD-2-Clause */
/* Behaviour that the manual page does not describe follows the kernel's mlx5 driver. */
#include "devx/responses.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/cancellation.h"
#include "core/limits.h"
#include "progress/program_memory.h"
#include "explain/explain.h"

struct response {
	struct event_source source;
	size_t bytes; /* wr_id and the output */
	uint64_t wr_id;
	uint8_t out[];
};

struct devx_responses {
	struct event_queue events;
	struct devx_responses *next, **link;
	_Atomic size_t waiting; /* bytes of output, including those of queries being executed */
};

int devx_responses_create(struct devx *devx, struct devx_responses **out, int *fd)
{
	struct devx_responses *responses = calloc(1, sizeof(*responses));
	int error;

	if (!responses)
		return -ENOMEM;
	error = event_queue_init(&responses->events);
	if (error) {
		free(responses);
		return -REFUSE(devx->hca, "mlx5dv_devx_create_cmd_comp", -error, RULE_NO_DESCRIPTOR, -error);
	}
	pthread_mutex_lock(&devx->lock);
	responses->next = devx->responses;
	if (responses->next)
		responses->next->link = &responses->next;
	responses->link = &devx->responses;
	devx->responses = responses;
	pthread_mutex_unlock(&devx->lock);
	*out = responses;
	*fd = responses->events.fd;
	return 0;
}

void devx_responses_destroy(struct devx *devx, struct devx_responses *responses)
{
	WITHOUT_CANCELLATION;
	struct event_source *source;

	pthread_mutex_lock(&devx->lock);
	*responses->link = responses->next;
	if (responses->next)
		responses->next->link = responses->link;
	pthread_mutex_unlock(&devx->lock);
	while ((source = responses->events.first)) {
		event_source_purge(&responses->events, source);
		free(source->object);
	}
	event_queue_destroy(&responses->events);
	free(responses);
}

void devx_responses_close(struct devx *devx)
{
	while (devx->responses)
		devx_responses_destroy(devx, devx->responses);
}

static const char call[] = "mlx5dv_devx_obj_query_async";

/* Reserves room before the query is executed. */
static int responses_reserve(struct devx *devx, struct devx_responses *responses, size_t bytes)
{
	size_t waiting = atomic_fetch_add(&responses->waiting, bytes);

	if (bytes <= LIMIT_DEVX_RESPONSE_BYTES && waiting <= LIMIT_DEVX_RESPONSE_BYTES - bytes)
		return 0;
	atomic_fetch_sub(&responses->waiting, bytes);
	return -REFUSE(devx->hca, call, EAGAIN, RULE_DEVX_RESPONSES_FULL, bytes, waiting, LIMIT_DEVX_RESPONSE_BYTES);
}

static struct response *response_new(size_t out_bytes, uint64_t wr_id)
{
	struct response *response = calloc(1, sizeof(*response) + out_bytes);

	if (!response)
		return NULL;
	response->source.object = response;
	response->bytes = sizeof(wr_id) + out_bytes;
	response->wr_id = wr_id;
	return response;
}

int devx_query_async(struct devx *devx, struct devx_object *object, const void *in, size_t in_bytes, size_t out_bytes,
		     uint64_t wr_id, struct devx_responses *responses)
{
	WITHOUT_CANCELLATION;
	int error = responses_reserve(devx, responses, out_bytes);
	struct response *response;

	if (error)
		return error;
	response = response_new(out_bytes, wr_id);
	error = response ? devx_query(devx, call, object, in, in_bytes, response->out, out_bytes) : -ENOMEM;
	/* A refusal by the device is a response. */
	if (error && error != -EREMOTEIO) {
		atomic_fetch_sub(&responses->waiting, out_bytes);
		free(response);
		return error;
	}
	event_queue_raise(&responses->events, &response->source);
	return 0;
}

/* Returns 0 if no response is pending. */
static size_t oldest_bytes(struct devx_responses *responses)
{
	const struct response *oldest;
	size_t bytes;

	queue_lock(&responses->events.lock);
	oldest = responses->events.first ? responses->events.first->object : NULL;
	bytes = oldest ? oldest->bytes : 0;
	queue_unlock(&responses->events.lock);
	return bytes;
}

static int responses_refuse_room(struct devx *devx, size_t bytes, size_t needed)
{
	return -REFUSE(devx->hca, "mlx5dv_devx_get_async_cmd_comp", ENOSPC, RULE_DEVX_RESPONSE_ROOM, needed, bytes);
}

int devx_responses_take(struct devx *devx, struct devx_responses *responses, void *data, size_t bytes)
{
	size_t needed = oldest_bytes(responses);
	struct response *response;
	void *object;
	int type, error;

	if (needed > bytes)
		return responses_refuse_room(devx, bytes, needed);
	error = event_queue_take(&responses->events, &type, &object);
	if (error)
		return error;
	response = object;
	needed = response->bytes;
	if (needed > bytes) {
		/* It arrived while none was pending, or another thread took the examined one: put it back. */
		event_queue_raise(&responses->events, &response->source);
		return responses_refuse_room(devx, bytes, needed);
	}
	error = program_write(data, &response->wr_id, needed);
	atomic_fetch_sub(&responses->waiting, needed - sizeof(response->wr_id));
	free(response);
	return error;
}
