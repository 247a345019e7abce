/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbols of librdmacm.so.1 that the headers of Debian 12 do not declare. Their bodies obey the contracts given here.
 */
#ifndef SOFTHCA_ABI_UNDECLARED_RDMACM_H
#define SOFTHCA_ABI_UNDECLARED_RDMACM_H

#include <stdint.h>
#include <rdma/rdma_cma.h>

/* Events of librdmacm from version 60 on. */
enum {
	RDMA_CM_EVENT_ADDRINFO_RESOLVED_ = 16,
	RDMA_CM_EVENT_ADDRINFO_ERROR_ = 17,
	RDMA_CM_EVENT_USER_ = 18,
	RDMA_CM_EVENT_INTERNAL_ = 19,
};

/* rdma_getaddrinfo(3) for @id: its list is handed over by rdma_query_addrinfo(), once the event has come. */
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
			  const struct rdma_addrinfo *hints);
/* Hands over what rdma_resolve_addrinfo() found, once: -1 and ENOENT before and after. */
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
/* Queues @event, which must be RDMA_CM_EVENT_USER, with @status and @arg on the channel of @id. */
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status, uint64_t arg);

#endif
