/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists listening sockets with abstract names, from /proc/net/unix. No locks; any thread. */
#ifndef SOFTHCA_LINK_HOST_LISTING_H
#define SOFTHCA_LINK_HOST_LISTING_H

#include <stdbool.h>
#include <stdint.h>

struct host_listed {
	uint64_t inode;
	char name[108]; /* without the leading NUL */
};
/**
 * Calls @visit with each listening socket of this network namespace that has a name with @prefix, until it returns
 * false. Other users may forge names. Returns 0 or a negative errno.
 */
int host_names_list(const char *prefix, bool (*visit)(void *argument, const struct host_listed *listed),
		    void *argument);

#endif
