/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_event_str(3), with events of later versions (abi/undeclared_rdmacm.h). */
#include <stddef.h>

#include "abi/rdmacm_entry_points.h"

#define NAME(event) [event] = #event
#define LATER_NAME(event) [event##_] = #event

static const char *const names[] = {
	NAME(RDMA_CM_EVENT_ADDR_RESOLVED),
	NAME(RDMA_CM_EVENT_ADDR_ERROR),
	NAME(RDMA_CM_EVENT_ROUTE_RESOLVED),
	NAME(RDMA_CM_EVENT_ROUTE_ERROR),
	NAME(RDMA_CM_EVENT_CONNECT_REQUEST),
	NAME(RDMA_CM_EVENT_CONNECT_RESPONSE),
	NAME(RDMA_CM_EVENT_CONNECT_ERROR),
	NAME(RDMA_CM_EVENT_UNREACHABLE),
	NAME(RDMA_CM_EVENT_REJECTED),
	NAME(RDMA_CM_EVENT_ESTABLISHED),
	NAME(RDMA_CM_EVENT_DISCONNECTED),
	NAME(RDMA_CM_EVENT_DEVICE_REMOVAL),
	NAME(RDMA_CM_EVENT_MULTICAST_JOIN),
	NAME(RDMA_CM_EVENT_MULTICAST_ERROR),
	NAME(RDMA_CM_EVENT_ADDR_CHANGE),
	NAME(RDMA_CM_EVENT_TIMEWAIT_EXIT),
	LATER_NAME(RDMA_CM_EVENT_ADDRINFO_RESOLVED),
	LATER_NAME(RDMA_CM_EVENT_ADDRINFO_ERROR),
	LATER_NAME(RDMA_CM_EVENT_USER),
	LATER_NAME(RDMA_CM_EVENT_INTERNAL),
};

const char *softhca_rdma_event_str(enum rdma_cm_event_type event)
{
	return (size_t)event < sizeof(names) / sizeof(names[0]) ? names[event] : "UNKNOWN EVENT";
}
