/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process's communication manager (cm/cm.h) on its devices: supplies clock, random numbers, timers and transport of
 * datagrams. The driver supplies the handlers of requests and events.
 */
#ifndef SOFTHCA_CM_HOST_MANAGER_H
#define SOFTHCA_CM_HOST_MANAGER_H

#include <stdbool.h>

#include "cm/cm.h"

struct management;

struct manager_handlers {
	/* Handlers as in struct cm_functions. */
	enum cm_verdict (*request)(void *listener, struct cm_id *child, const struct cm_event *event, void **owner,
				   uint16_t *reason);
	void (*event)(void *owner, const struct cm_event *event);
};

/**
 * Returns the manager. The first call creates it with @handlers, which are the same for all callers; it lives until the
 * process ends. A device must exist. Returns NULL without memory. Any thread may call, with no lock of the device held.
 */
struct cm *hca_manager(const struct manager_handlers *handlers);

/**
 * Ensures that all sent messages leave even if the process ends immediately afterwards. Any thread may call, no lock
 * held.
 */
void hca_manager_push(void);

/** Handlers for datagrams that arrive for the manager or get lost (wire/mad.h). */
extern const struct management process_management;

/** Around fork(). */
void manager_before_fork(void);
void manager_after_fork(bool child);
/** Replaces the manager in a forked child, when all locks are free: the connections are the parent's. */
void manager_forget(void);

#endif
