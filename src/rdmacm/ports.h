/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bound ports of this process's IDs, with the kernel's rules for sharing one (rdma_bind_addr(3); rdma-cm 2.4). One
 * lock, a leaf.
 */
#ifndef SOFTHCA_RDMACM_PORTS_H
#define SOFTHCA_RDMACM_PORTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

struct user_cm_id;

/* Embedded in an ID. */
struct bound_port {
	struct bound_port *next, **link; /* NULL: not bound; under the lock of ports */
	uint16_t space;                  /* enum rdma_port_space */
	uint16_t number;
	struct sockaddr_storage source, destination; /* destination: AF_UNSPEC if unknown */
	bool reuse_address, own_family_only, listening;
	bool named; /* the process has the port's name */
};

/**
 * Binds @port in @space to @source. If its port is 0, chooses a free one and stores it there. @destination: where the
 * ID will connect, or NULL. Returns 0, -EADDRINUSE if the port is taken at that address, -EADDRNOTAVAIL if it is taken
 * and either address is wild, or -EACCES for a privileged port.
 */
int port_bind(struct bound_port *port, uint16_t space, struct sockaddr *source, const struct sockaddr *destination);

/** Applies from now on (rdma_set_option(3)). */
void port_set_sharing(struct bound_port *port, bool reuse_address, bool own_family_only);

/** Checks again without sharing, and prevents it from now on. */
int port_listen(struct bound_port *port);

/** Returns the process with the same port, for explanations: this one, or another that listens; 0 if not known. */
pid_t port_owner(const struct bound_port *port);

void port_release(struct bound_port *port);

#endif
