/* SPDX-License-Identifier: BSD-2-Clause */
/* The hello header of the RDMA IP CM service, see hello.h. */
#include "cm/hello.h"

#include <errno.h>
#include <string.h>

/* Offsets in the header (IBTA A11.3.1). */
enum { VERSION = 0, IP_VERSION = 1, SOURCE_PORT = 2, SOURCE = 4, DESTINATION = 20, ADDRESS_BYTES = 16, IPV4_AT = 12 };

static void pack_address(const struct sockaddr *address, uint8_t *out)
{
	if (address->sa_family == AF_INET)
		memcpy(out + IPV4_AT, &((const struct sockaddr_in *)address)->sin_addr, 4);
	else
		memcpy(out, &((const struct sockaddr_in6 *)address)->sin6_addr, ADDRESS_BYTES);
}

static in_port_t hello_port(const struct sockaddr *address)
{
	return address->sa_family == AF_INET ? ((const struct sockaddr_in *)address)->sin_port
					     : ((const struct sockaddr_in6 *)address)->sin6_port;
}

int cm_hello_pack(const struct sockaddr *source, const struct sockaddr *destination, uint8_t hello[CM_HELLO_BYTES])
{
	in_port_t port;

	if (source->sa_family != destination->sa_family ||
	    (source->sa_family != AF_INET && source->sa_family != AF_INET6))
		return -EINVAL;
	memset(hello, 0, CM_HELLO_BYTES);
	hello[IP_VERSION] = source->sa_family == AF_INET ? 4 << 4 : 6 << 4;
	port = hello_port(source);
	memcpy(hello + SOURCE_PORT, &port, sizeof(port));
	pack_address(source, hello + SOURCE);
	pack_address(destination, hello + DESTINATION);
	return 0;
}

static void unpack_address(const uint8_t *in, bool ipv4, in_port_t port, struct sockaddr_storage *address)
{
	if (ipv4) {
		struct sockaddr_in *sin = (struct sockaddr_in *)address;

		sin->sin_family = AF_INET;
		sin->sin_port = port;
		memcpy(&sin->sin_addr, in + IPV4_AT, 4);
	} else {
		struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)address;

		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = port;
		memcpy(&sin6->sin6_addr, in, ADDRESS_BYTES);
	}
}

enum cm_hello cm_hello_unpack(const uint8_t *private_data, uint64_t service_id, struct cm_hello_addresses *addresses)
{
	in_port_t source_port;
	uint8_t ip_version = private_data[IP_VERSION] >> 4;
	bool ipv4 = ip_version == 4;

	memset(addresses, 0, sizeof(*addresses));
	if (private_data[VERSION])
		return CM_HELLO_VERSION;
	if (!ipv4 && ip_version != 6)
		return CM_HELLO_NONE;
	memcpy(&source_port, private_data + SOURCE_PORT, sizeof(source_port));
	unpack_address(private_data + SOURCE, ipv4, source_port, &addresses->source);
	unpack_address(private_data + DESTINATION, ipv4, htons((uint16_t)service_id), &addresses->destination);
	return ipv4 ? CM_HELLO_IPV4 : CM_HELLO_IPV6;
}
