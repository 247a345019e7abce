/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port in relation to other processes of the host: the name by which they find the listener, and the right to use the
 * port.
 */
#ifndef SOFTHCA_RDMACM_PORT_NAMES_H
#define SOFTHCA_RDMACM_PORT_NAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * Claims the name of @port in @space for this process; @wild: at all addresses. Returns 0; -EADDRINUSE if another
 * process has it; or -EADDRNOTAVAIL if another process has it and @wild is set or that process is at all addresses
 * (rdma-cm 2.4). Called under the lock of ports.
 */
int port_name_claim(uint16_t space, uint16_t port, bool wild);

/** Returns the process that listens on the port, or 0 if there is none or it is not visible. For explanations. */
pid_t port_name_owner(uint16_t space, uint16_t port);

/** Directs requests for the port to this process. Returns 0 or a negative errno. */
int port_name_listen(uint16_t space, uint16_t port);

/** Releases the name. */
void port_name_release(uint16_t space, uint16_t port);

/** Returns true if the process may bind ports below 1024 (capabilities(7), CAP_NET_BIND_SERVICE). */
bool process_may_bind_privileged(void);

#endif
