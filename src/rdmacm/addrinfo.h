/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_getaddrinfo(3) for callers within the library. */
#ifndef SOFTHCA_RDMACM_ADDRINFO_H
#define SOFTHCA_RDMACM_ADDRINFO_H

#include <rdma/rdma_cma.h>

/** Keeps two kinds of negative error codes apart. */
struct addrinfo_error {
	int resolver; /* EAI_*, or 0 */
	int error;    /* negative errno, or 0 */
};
struct addrinfo_error addrinfo_find(const char *node, const char *service, const struct rdma_addrinfo *hints,
				    struct rdma_addrinfo **found);

#endif
