/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process's communication manager (cm/cm.h) on its devices: supplies clock, random numbers, timers and transport of
 * datagrams. The driver supplies the handlers of requests and events. The registry (hca/hca.h) has one, like the ports
 * and communication ids of a process: the ABI has no object that could own it.
 */
#ifndef SOFTHCA_CM_HOST_MANAGER_H
#define SOFTHCA_CM_HOST_MANAGER_H

#include "cm/cm.h"

struct hca;
struct management;
struct manager;

struct manager_handlers {
	/* Handlers as in struct cm_functions. */
	enum cm_verdict (*request)(void *listener, struct cm_id *child, const struct cm_event *event, void **owner,
				   uint16_t *reason);
	void (*event)(void *owner, const struct cm_event *event);
};

/** Makes the part of the registry with the first device @first. Returns NULL without memory. */
struct manager *manager_new(struct hca *first);

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

/** For process/fork.c. */
void manager_lock(struct manager *manager);
void manager_unlock(struct manager *manager);
/** Replaces the manager in a forked child, when all locks are free: the connections are the parent's. */
void manager_forget(struct manager *manager);

#endif
