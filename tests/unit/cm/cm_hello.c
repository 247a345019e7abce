/* SPDX-License-Identifier: BSD-2-Clause */
/* The hello header of the RDMA IP CM service against bytes computed by hand from IBTA annex A11. */
#include "test_case.h"

#include <arpa/inet.h>

#include "cm/hello.h"

static const uint8_t ipv4[CM_HELLO_BYTES] = {
	0x00, 0x40, 0x80, 0x01, /* version, IP version, source port 32769 */
	0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 2,
};

static const uint8_t ipv6[CM_HELLO_BYTES] = {
	0x00, 0x60, 0x80, 0x01, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0,    1,    0x20, 0x01, 0x0d, 0xb8, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
};

enum { SOURCE_PORT = 32769, PORT = 7174 };
/* rdma_create_id(3), RDMA_PS_TCP. */
#define SERVICE_ID UINT64_C(0x01061c06)

static struct sockaddr_in in4(const char *text, uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};

	inet_pton(AF_INET, text, &address.sin_addr);
	return address;
}

static struct sockaddr_in6 in6(const char *text, uint16_t port)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	inet_pton(AF_INET6, text, &address.sin6_addr);
	return address;
}

TEST(of_ipv4)
{
	struct sockaddr_in source = in4("192.0.2.1", SOURCE_PORT), destination = in4("192.0.2.2", PORT);
	struct cm_hello_addresses addresses;
	uint8_t hello[CM_HELLO_BYTES];

	assert_int_equal(cm_hello_pack((struct sockaddr *)&source, (struct sockaddr *)&destination, hello), 0);
	assert_memory_equal(hello, ipv4, sizeof(ipv4));
	assert_int_equal(cm_hello_unpack(ipv4, SERVICE_ID, &addresses), CM_HELLO_IPV4);
	assert_memory_equal(&addresses.source, &source, sizeof(source));
	assert_memory_equal(&addresses.destination, &destination, sizeof(destination));
}

TEST(of_ipv6)
{
	struct sockaddr_in6 source = in6("2001:db8::1", SOURCE_PORT), destination = in6("2001:db8::2", PORT);
	struct cm_hello_addresses addresses;
	uint8_t hello[CM_HELLO_BYTES];

	assert_int_equal(cm_hello_pack((struct sockaddr *)&source, (struct sockaddr *)&destination, hello), 0);
	assert_memory_equal(hello, ipv6, sizeof(ipv6));
	assert_int_equal(cm_hello_unpack(ipv6, SERVICE_ID, &addresses), CM_HELLO_IPV6);
	assert_memory_equal(&addresses.source, &source, sizeof(source));
	assert_memory_equal(&addresses.destination, &destination, sizeof(destination));
}

TEST(of_neither)
{
	struct sockaddr_in v4 = in4("192.0.2.1", SOURCE_PORT);
	struct sockaddr_in6 v6 = in6("2001:db8::2", PORT);
	struct sockaddr_storage other = {.ss_family = AF_UNIX};
	struct cm_hello_addresses addresses;
	uint8_t hello[CM_HELLO_BYTES] = {0};

	assert_int_equal(cm_hello_pack((struct sockaddr *)&v4, (struct sockaddr *)&v6, hello), -EINVAL);
	assert_int_equal(cm_hello_pack((struct sockaddr *)&other, (struct sockaddr *)&other, hello), -EINVAL);
	memset(hello, 0, sizeof(hello));
	assert_int_equal(cm_hello_unpack(hello, SERVICE_ID, &addresses), CM_HELLO_NONE);
	hello[1] = 0x50;
	assert_int_equal(cm_hello_unpack(hello, SERVICE_ID, &addresses), CM_HELLO_NONE);
	/* The rest of that byte is reserved. */
	hello[1] = 0x4f;
	assert_int_equal(cm_hello_unpack(hello, SERVICE_ID, &addresses), CM_HELLO_IPV4);
	hello[0] = 0x01;
	assert_int_equal(cm_hello_unpack(hello, SERVICE_ID, &addresses), CM_HELLO_VERSION);
	hello[0] = 0x10;
	assert_int_equal(cm_hello_unpack(hello, SERVICE_ID, &addresses), CM_HELLO_VERSION);
}

TEST(service_ids)
{
	uint16_t port_space, port;

	assert_int_equal(cm_service_id(0x0106, PORT), SERVICE_ID);
	assert_true(cm_service_port(SERVICE_ID, &port_space, &port));
	assert_int_equal(port_space, 0x0106);
	assert_int_equal(port, PORT);
	assert_true(cm_service_port(UINT64_C(0x01111c06), &port_space, &port));
	assert_int_equal(port_space, 0x0111);
	assert_false(cm_service_port(UINT64_C(0x02061c06), &port_space, &port));
	assert_false(cm_service_port(UINT64_C(0x100000001061c06), &port_space, &port));
}
