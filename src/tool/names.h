/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the users that hold names of softhca on this host, for `softhca doctor`. */
#ifndef SOFTHCA_TOOL_NAMES_H
#define SOFTHCA_TOOL_NAMES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct name_holder {
	uid_t user;
	uint32_t slots; /* names of slots of queue pair numbers */
	uint32_t ports; /* names of ports of rdma_cm, and of the RoCE port */
};

/**
 * Finds at most @most users that hold names of softhca in this network namespace, the most slots first. Counts bound
 * names, even without a listener. Returns the number of users, or a negative errno.
 */
int names_holders(struct name_holder *holders, size_t most);

#endif
