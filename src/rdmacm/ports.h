/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports: which ids of this process have bound which, by port space, with the kernel's rules on sharing one
 * (rdma_bind_addr(3); rdma-cm 2.4). One lock, a leaf.
 */
#ifndef SOFTHCA_RDMACM_PORTS_H
#define SOFTHCA_RDMACM_PORTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

struct user_cm_id;

/* The port of an id, which embeds it. */
struct bound_port {
	struct bound_port *next, **link; /* NULL: not bound; under the lock of ports */
	uint16_t space;                  /* enum rdma_port_space */
	uint16_t number;
	struct sockaddr_storage source, destination; /* destination: AF_UNSPEC if there is none */
	bool reuse_address, own_family_only, listening;
	bool named; /* the process has the name of the port on its host */
};

/**
 * Binds @port in @space to @source, with its port; 0: to some free one, which *@source gets. @destination: where it is
 * to connect to, or NULL. Returns 0; -EADDRINUSE (somebody has it at that address), -EADDRNOTAVAIL (somebody has it,
 * and either address is wild), -EACCES (a privileged port).
 */
int port_bind(struct bound_port *port, uint16_t space, struct sockaddr *source, const struct sockaddr *destination);

/** From now on @port may be shared, or not, as @reuse_address and @own_family_only say (rdma_set_option(3)). */
void port_set_sharing(struct bound_port *port, bool reuse_address, bool own_family_only);

/** Checks again as if nobody might share the port, and keeps others from sharing it from now on. */
int port_listen(struct bound_port *port);

/**
 * The process whose ids have the port of @port, for explanations: this one or another that listens; 0: it cannot be
 * told.
 */
pid_t port_owner(const struct bound_port *port);

/** Gives the port back, if there is one. */
void port_release(struct bound_port *port);

#endif
