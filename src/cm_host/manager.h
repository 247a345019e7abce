/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process's communication manager (cm/cm.h). The registry (hca/hca.h) owns it, because the ABI has no object that
 * could.
 */
#ifndef SOFTHCA_CM_HOST_MANAGER_H
#define SOFTHCA_CM_HOST_MANAGER_H

#include "cm/cm.h"

struct hca;
struct management;
struct manager;

struct manager_handlers {
	/* As in struct cm_functions. */
	enum cm_verdict (*request)(void *listener, struct cm_id *child, const struct cm_event *event, void **owner,
				   uint16_t *reason);
	void (*event)(void *owner, const struct cm_event *event);
};

/** Makes the registry's part, with the first device @first. Returns NULL without memory. */
struct manager *manager_new(struct hca *first);

/**
 * Returns the manager, which lives until the process ends. The first call creates it with @handlers, the same for all
 * callers. A device must exist. Returns NULL without memory. Any thread, no lock of the device held.
 */
struct cm *hca_manager(const struct manager_handlers *handlers);

/**
 * Both follow calls of the connection manager that may have sent messages. hca_manager_push() ensures that these leave
 * even if the process ends at once: any thread, no lock held, not from within a call of the device or of the manager.
 * hca_manager_wake() has the device thread send them soon: any thread, under any lock.
 */
void hca_manager_push(void);
void hca_manager_wake(void);

/** Handlers for datagrams that arrive or get lost (wire/mad.h). */
extern const struct management process_management;

/** For process/fork.c. */
void manager_lock(struct manager *manager);
void manager_unlock(struct manager *manager);
/** Replaces the manager in a forked child, when all locks are free: the connections are the parent's. */
void manager_forget(struct manager *manager);

#endif
