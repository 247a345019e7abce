/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process's communication manager (cm/cm.h) on its devices: what it needs of clock, random numbers, timers and the
 * carriage of its datagrams. The driver brings the handlers of requests and events.
 */
#ifndef SOFTHCA_CM_HOST_MANAGER_H
#define SOFTHCA_CM_HOST_MANAGER_H

#include <stdbool.h>

#include "cm/cm.h"

struct management;

struct manager_handlers {
	/* As in struct cm_functions. */
	enum cm_verdict (*request)(void *listener, struct cm_id *child, const struct cm_event *event, void **owner,
				   uint16_t *reason);
	void (*event)(void *owner, const struct cm_event *event);
};

/**
 * The manager, made by the first call, with @handlers, which all callers pass the same. It lives until the process
 * ends. There is a device. NULL: no memory. Any thread, no lock of the device.
 */
struct cm *hca_manager(const struct manager_handlers *handlers);

/** What was sent is on its way when this returns, also if the process ends at once. Any thread, no lock held. */
void hca_manager_push(void);

/** What comes for it, and what does not arrive (wire/mad.h). */
extern const struct management process_management;

/** Around fork(). */
void manager_before_fork(void);
void manager_after_fork(bool child);
/** In the child, when all locks are free: the connections are the parent's. */
void manager_forget(void);

#endif
