/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports and other processes of the host: a port's name, by which they find the listener, is also the right to use the
 * port.
 */
#ifndef SOFTHCA_RDMACM_PORT_NAMES_H
#define SOFTHCA_RDMACM_PORT_NAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * Claims the name of @port in @space; @wild: at all addresses. Returns 0; -EADDRINUSE if another process has it; or
 * -EADDRNOTAVAIL if it has it and either process is at all addresses (rdma-cm 2.4). Called under the lock of ports.
 */
int port_name_claim(uint16_t space, uint16_t port, bool wild);

/** Returns the process that listens on the port, or 0 if none is visible. For explanations. */
pid_t port_name_owner(uint16_t space, uint16_t port);

/** Directs requests for the port to this process. Returns 0 or a negative errno. */
int port_name_listen(uint16_t space, uint16_t port);

void port_name_release(uint16_t space, uint16_t port);

/** Returns true if the process may bind ports below 1024 (capabilities(7), CAP_NET_BIND_SERVICE). */
bool process_may_bind_privileged(void);

#endif
