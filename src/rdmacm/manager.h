/* SPDX-License-Identifier: BSD-2-Clause */
/* The process's communication manager (cm/cm.h), with the handlers of its requests and events. */
#ifndef SOFTHCA_RDMACM_MANAGER_H
#define SOFTHCA_RDMACM_MANAGER_H

#include "cm/cm.h"

/**
 * Returns the process's manager (cm/cm.h), created at first use, or NULL without memory. The devices must be open. Any
 * thread.
 */
struct cm *rdmacm_manager(void);

/* Callbacks of struct cm_functions. (rdmacm/handlers.c) */
enum cm_verdict handle_request(void *listener, struct cm_id *child, const struct cm_event *event, void **owner,
			       uint16_t *reason);
void handle_event(void *owner, const struct cm_event *event);

#endif
