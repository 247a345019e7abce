/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port as other processes of the host see it: the name under which they find the listener, and the right to have it.
 */
#ifndef SOFTHCA_RDMACM_PORT_NAMES_H
#define SOFTHCA_RDMACM_PORT_NAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * This process has the name of @port in @space from now on; @wild: at all addresses. Returns 0;
 * -EADDRINUSE or, if @wild or the owner is at all addresses, -EADDRNOTAVAIL: another process has it (rdma-cm 2.4).
 * Called under the lock of ports.
 */
int port_name_claim(uint16_t space, uint16_t port, bool wild);

/** The process that listens on the port; 0: none, or it cannot be seen. For explanations. */
pid_t port_name_owner(uint16_t space, uint16_t port);

/** From now on requests for the port come to this process. Returns 0 or a negative errno. */
int port_name_listen(uint16_t space, uint16_t port);

/** Gives it back. */
void port_name_release(uint16_t space, uint16_t port);

/** True if the process may bind ports below 1024 (capabilities(7), CAP_NET_BIND_SERVICE). */
bool process_may_bind_privileged(void);

#endif
