/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ports that the IDs of this process have bound, by port space, with the kernel's rules for sharing one
 * (rdma_bind_addr(3); rdma-cm 2.4). One lock, a leaf.
 */
#ifndef SOFTHCA_RDMACM_PORTS_H
#define SOFTHCA_RDMACM_PORTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

struct user_cm_id;

/* The port of an ID, embedded in it. */
struct bound_port {
	struct bound_port *next, **link; /* NULL: not bound; under the lock of ports */
	uint16_t space;                  /* enum rdma_port_space */
	uint16_t number;
	struct sockaddr_storage source, destination; /* destination: AF_UNSPEC if unknown */
	bool reuse_address, own_family_only, listening;
	bool named; /* the process has the name of the port on its host */
};

/**
 * Binds @port in @space to @source and its port. If that is 0, chooses a free port and stores it in *@source.
 * @destination: the address to which the ID will connect, or NULL. Returns 0, -EADDRINUSE if the port is taken at that
 * address, -EADDRNOTAVAIL if it is taken and either address is wild, or -EACCES for a privileged port.
 */
int port_bind(struct bound_port *port, uint16_t space, struct sockaddr *source, const struct sockaddr *destination);

/** Sets whether @port may be shared from now on (rdma_set_option(3)). */
void port_set_sharing(struct bound_port *port, bool reuse_address, bool own_family_only);

/** Checks again as if sharing were not allowed, and prevents it from now on. */
int port_listen(struct bound_port *port);

/**
 * Returns the process of the IDs with the same port, for explanations: this one, or another one that listens. Returns 0
 * if it is not known.
 */
pid_t port_owner(const struct bound_port *port);

/** Releases the port, if one is bound. */
void port_release(struct bound_port *port);

#endif
