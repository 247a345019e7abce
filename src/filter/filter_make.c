/* SPDX-License-Identifier: BSD-2-Clause */
/* Creation, changes and reports of filters; see filter.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/epoch.h"
#include "hca/grants.h"
#include "filter/capture.h"
#include "filter/filter_parts.h"

static struct filters *filters_new(struct hca *hca)
{
	struct filters *filters = calloc(1, sizeof(*filters));

	if (!filters)
		return NULL;
	filters->front = (struct link_filters){.send = filter_send,
					       .drain = filter_drain,
					       .received = filter_received,
					       .handled = filter_handled,
					       .hides_receives = filter_hides_receives};
	filters->hca = hca;
	pthread_mutex_init(&filters->lock, NULL);
	timer_init(&filters->timer, queue_timer);
	return filters;
}

/*
 * Returns the filters of @hca and makes them if necessary. Revokes grants (hca/grants.h), because a filter must examine
 * all packets; the responder makes none from then on.
 */
static struct filters *want_filters(struct hca *hca)
{
	struct filters *filters;
	bool made = false;

	pthread_mutex_lock(&hca->lock);
	filters = hca->filters;
	if (!filters) {
		filters = filters_new(hca);
		__atomic_store_n(&hca->filters, filters, __ATOMIC_RELEASE);
		if (filters)
			__atomic_store_n(&the_registry.filters, true, __ATOMIC_RELEASE);
		made = filters;
	}
	pthread_mutex_unlock(&hca->lock);
	if (made) {
		/* A thread that is making a grant may not have seen the filters yet. */
		epoch_synchronize();
		grants_revoke_and_drain();
	}
	return filters;
}

/* Replaces the faults; afterwards no frame refers to flows of the old ones. The lock is held. */
static struct faults *exchange_faults(struct filters *filters, struct faults *faults)
{
	struct faults *old = filters->faults;

	for (struct frame *frame = filters->delayed.first; frame; frame = frame->next)
		frame->flow = NULL;
	filters->faults = faults;
	filters->generation++;
	return old;
}

int filters_set_faults(struct hca *hca, const struct fault_script *script)
{
	struct filters *filters = want_filters(hca);
	uint64_t seed = hca->settings.seed ? hca->settings.seed : hca_random(hca) >> 32;
	struct faults *faults = script ? faults_new(script, seed, hca->index) : NULL, *old;

	if (!filters || (script && !faults)) {
		faults_free(faults);
		return -ENOMEM;
	}
	pthread_mutex_lock(&filters->lock);
	old = exchange_faults(filters, faults);
	pthread_mutex_unlock(&filters->lock);
	faults_free(old);
	return 0;
}

void filters_fault_summary(struct hca *hca, void (*put)(void *argument, const char *line), void *argument)
{
	struct filters *filters = filters_of(hca);

	if (!filters)
		return;
	pthread_mutex_lock(&filters->lock);
	if (filters->faults)
		faults_summary(filters->faults, put, argument);
	pthread_mutex_unlock(&filters->lock);
}

uint64_t filters_frames(struct hca *hca)
{
	struct filters *filters = filters_of(hca);
	uint64_t frames;

	if (!filters)
		return 0;
	pthread_mutex_lock(&filters->lock);
	frames = filters->faults ? faults_frames(filters->faults) : 0;
	pthread_mutex_unlock(&filters->lock);
	return frames;
}

static int init_faults(struct hca *hca, char *error, size_t size)
{
	struct fault_script *script = malloc(sizeof(*script));
	struct fault_error where;
	int prefix = snprintf(error, size, "SOFTHCA_FAULTS: ");
	int result =
		script ? fault_script_read(script, hca->settings.faults, &where, error + prefix, size - (size_t)prefix)
		       : -ENOMEM;

	if (!result)
		result = filters_set_faults(hca, script);
	if (result == -ENOMEM)
		snprintf(error, size, "no memory for the faults");
	free(script);
	return result;
}

static int init_capture(struct hca *hca, char *error, size_t size)
{
	struct capture *capture;
	struct filters *filters;
	int result = capture_open(hca, &capture, error, size);

	if (result || !capture)
		return result;
	filters = want_filters(hca);
	if (!filters) {
		capture_close(capture);
		snprintf(error, size, "no memory for the capture");
		return -ENOMEM;
	}
	filters->capture = capture;
	return 0;
}

int filters_init(struct hca *hca, char *error, size_t size)
{
	int result = init_capture(hca, error, size);

	if (!result && strcmp(hca->settings.faults, "off") != 0)
		result = init_faults(hca, error, size);
	return result;
}

/* ---- fork ------------------------------------------------------------------------------------------------------- */

void filters_lock(struct hca *hca)
{
	if (hca->filters)
		pthread_mutex_lock(&hca->filters->lock);
}

void filters_unlock(struct hca *hca)
{
	if (hca->filters)
		pthread_mutex_unlock(&hca->filters->lock);
}

void filters_forget(struct hca *hca)
{
	struct filters *filters = hca->filters;

	if (!filters)
		return;
	exchange_faults(filters, filters->faults);
	frame_list_free(&filters->ready);
	frame_list_free(&filters->delayed);
	frame_list_free(&filters->arrived);
	filters->bytes = 0;
	filters->drainer = NULL;
	link_abandon(&filters->waiting);
	/* Armed timers are in a list that is discarded next. */
	filters->timer_ns = 0;
	/* The parent reports its own frames. */
	if (filters->faults) {
		struct faults *old = filters->faults;

		filters->faults = faults_new(faults_script(old), 0, hca->index);
		faults_free(old);
	}
}
