/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hello header of the RDMA IP CM service (IBTA annex A11): source and destination IP addresses and ports of a REQ
 * or SIDR_REQ. It precedes the program's private data. Pure functions; any thread may call.
 */
#ifndef SOFTHCA_CM_HELLO_H
#define SOFTHCA_CM_HELLO_H

#include <stdbool.h>
#include <stdint.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum { CM_HELLO_BYTES = 36 };

enum cm_hello {
	CM_HELLO_IPV4,
	CM_HELLO_IPV6,
	CM_HELLO_NONE,    /* native InfiniBand addressing; all data is the program's */
	CM_HELLO_VERSION, /* a version other than 0.0: reject */
};

/* The destination port is from the service id; enum cm_hello gives the address family. */
struct cm_hello_addresses {
	struct sockaddr_storage source, destination;
};

/** Writes the header. Both addresses are AF_INET or both AF_INET6; @source includes the port. Returns 0 or -EINVAL. */
int cm_hello_pack(const struct sockaddr *source, const struct sockaddr *destination, uint8_t hello[CM_HELLO_BYTES]);

/** Parses the header in @private_data of a request for @service_id; fills in @addresses for IPv4 and IPv6. */
enum cm_hello cm_hello_unpack(const uint8_t *private_data, uint64_t service_id, struct cm_hello_addresses *addresses);

/** Returns the service id of @port in @port_space (RDMA_PS_TCP, …), all in host order. */
static inline uint64_t cm_service_id(uint16_t port_space, uint16_t port)
{
	return (uint64_t)port_space << 16 | port;
}

/** Splits @service_id into port space and port. Returns false if it is not of the IP CM service. */
static inline bool cm_service_port(uint64_t service_id, uint16_t *port_space, uint16_t *port)
{
	*port_space = (uint16_t)(service_id >> 16);
	*port = (uint16_t)service_id;
	return service_id >> 24 == 1;
}

#endif
