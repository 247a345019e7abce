/* SPDX-License-Identifier: BSD-2-Clause */
/* Symbols of librdmacm.so.1 that the headers of Debian 12 do not declare, with their contracts. */
#ifndef SOFTHCA_ABI_UNDECLARED_RDMACM_H
#define SOFTHCA_ABI_UNDECLARED_RDMACM_H

#include <stdint.h>
#include <rdma/rdma_cma.h>

/* Events of librdmacm 60 and later. */
enum {
	RDMA_CM_EVENT_ADDRINFO_RESOLVED_ = 16,
	RDMA_CM_EVENT_ADDRINFO_ERROR_ = 17,
	RDMA_CM_EVENT_USER_ = 18,
	RDMA_CM_EVENT_INTERNAL_ = 19,
};

/*
 * Resolves as rdma_getaddrinfo(3), asynchronously for @id. rdma_query_addrinfo() returns the list after the event.
 * Returns 0, or -1 with errno set.
 */
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
			  const struct rdma_addrinfo *hints);
/* Returns the result of rdma_resolve_addrinfo(), once; -1 with ENOENT before and after. */
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
/*
 * Queues @event, which must be RDMA_CM_EVENT_USER, with @status and @arg on the channel of @id. Returns 0, or -1 with
 * errno set.
 */
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status, uint64_t arg);

#endif
