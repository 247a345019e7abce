/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 820 to 833 and 864: addresses, ports and routes of librdmacm. */
#include "../rdmacm/support.h"
#include "rule_cases.h"

#include <arpa/inet.h>
#include <endian.h>
#include <infiniband/ib.h>
#include <string.h>
#include <unistd.h>

#include "abi/undeclared_rdmacm.h"

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;

static void open_id(enum rdma_port_space space)
{
	channel = new_channel();
	id = new_id(channel, space);
}

static void close_id(void)
{
	assert_success(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

static struct sockaddr *address_of(int family, const char *text)
{
	static struct sockaddr_in v4;
	static struct sockaddr_in6 v6;

	v4 = (struct sockaddr_in){.sin_family = AF_INET};
	v6 = (struct sockaddr_in6){.sin6_family = AF_INET6};
	assert_int_equal(inet_pton(family, text, family == AF_INET ? (void *)&v4.sin_addr : (void *)&v6.sin6_addr), 1);
	return family == AF_INET ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
}

RULE_CASE(RDMACM_FAMILY)
{
	struct sockaddr address = {.sa_family = AF_UNIX};

	open_id(RDMA_PS_TCP);
	assert_errno(rdma_bind_addr(id, &address), EINVAL);
	expect_refusal(RDMACM_FAMILY, "rdma_bind_addr → EINVAL: address family 1 is not AF_INET, AF_INET6 or AF_IB");
	close_id();
}

RULE_CASE(RDMACM_IPOIB)
{
	open_id(RDMA_PS_IPOIB);
	assert_errno(rdma_bind_addr(id, loopback(0)), EINVAL);
	expect_refusal(
		RDMACM_IPOIB,
		"rdma_bind_addr → EINVAL: port space RDMA_PS_IPOIB is for InfiniBand, but this device is on Ethernet");
	close_id();
}

RULE_CASE(RDMACM_NO_SCOPE)
{
	open_id(RDMA_PS_TCP);
	assert_errno(rdma_bind_addr(id, address_of(AF_INET6, "fe80::5")), EINVAL);
	expect_refusal(RDMACM_NO_SCOPE,
		       "rdma_bind_addr → EINVAL: address 0xfe80000000000000:0x5 is link-local, but has no scope");
	close_id();
}

/* An adapter on Ethernet has no address of that family. */
RULE_CASE(RDMACM_NO_DEVICE)
{
	struct sockaddr_ib address = {.sib_family = AF_IB};

	address.sib_addr.sib_addr32[3] = htobe32(5);
	open_id(RDMA_PS_IB);
	assert_errno(rdma_bind_addr(id, (struct sockaddr *)&address), ENODEV);
	expect_refusal(RDMACM_NO_DEVICE,
		       "rdma_bind_addr → ENODEV: address 0x0:0x5 of this host is not in the GID table of a device");
	close_id();
}

RULE_CASE(RDMACM_NOT_OF_HOST)
{
	open_id(RDMA_PS_TCP);
	assert_errno(rdma_bind_addr(id, address_of(AF_INET, "198.51.100.7")), EADDRNOTAVAIL);
	expect_refusal(RDMACM_NOT_OF_HOST,
		       "rdma_bind_addr → EADDRNOTAVAIL: address 0x0:0xffffc6336407 is not an address of this host");
	close_id();
}

/* The effective user is "nobody" meanwhile and has no capabilities. */
RULE_CASE(RDMACM_PORT_PRIVILEGED)
{
	uid_t user = geteuid();

	open_id(RDMA_PS_TCP);
	if (!user)
		assert_int_equal(seteuid(65534), 0);
	assert_errno(rdma_bind_addr(id, loopback(80)), EACCES);
	if (!user)
		assert_int_equal(seteuid(user), 0);
	expect_refusal(
		RDMACM_PORT_PRIVILEGED,
		"rdma_bind_addr → EACCES: port 80 is below 1024, and the process does not have the capability CAP_NET_BIND_SERVICE");
	close_id();
}

RULE_CASE(RDMACM_PORT_IN_USE)
{
	struct rdma_event_channel *other_channel = new_channel();
	struct rdma_cm_id *other = new_listener(other_channel, RDMA_PS_TCP);
	uint16_t port = port_of(other);

	open_id(RDMA_PS_TCP);
	assert_errno(rdma_bind_addr(id, any_address(port)), EADDRNOTAVAIL);
	expect_refusal(
		RDMACM_PORT_IN_USE,
		"rdma_bind_addr → EADDRNOTAVAIL: process %d is bound to port %u of port space 0x106 at the same address "
		"(EADDRINUSE), or one of the two addresses is the wildcard address (EADDRNOTAVAIL)",
		getpid(), port);
	close_id();
	assert_success(rdma_destroy_id(other));
	rdma_destroy_event_channel(other_channel);
}

RULE_CASE(RDMACM_FAMILIES_DIFFER)
{
	open_id(RDMA_PS_TCP);
	assert_success(rdma_bind_addr(id, any_address(0)));
	assert_errno(rdma_resolve_addr(id, NULL, address_of(AF_INET6, "::1"), TIMEOUT_MS), EINVAL);
	expect_refusal(RDMACM_FAMILIES_DIFFER,
		       "rdma_resolve_addr → EINVAL: the source is of family 2, the destination of family 10");
	close_id();
}

/* Sockets may not send to the broadcast address without SO_BROADCAST. */
RULE_CASE(RDMACM_NO_ROUTE)
{
	open_id(RDMA_PS_TCP);
	assert_int_equal(rdma_resolve_addr(id, NULL, address_of(AF_INET, "255.255.255.255"), TIMEOUT_MS), -1);
	expect_refusal(RDMACM_NO_ROUTE,
		       "rdma_resolve_addr → %s: the host has no route to address 0x0:0xffffffffffff: %s",
		       strerrorname_np(errno), strerrorname_np(errno));
	close_id();
}

RULE_CASE(RDMACM_NO_TIMEOUT)
{
	open_id(RDMA_PS_TCP);
	resolve_address(id, 7471);
	assert_errno(rdma_resolve_route(id, 0), EINVAL);
	expect_refusal(RDMACM_NO_TIMEOUT, "rdma_resolve_route → EINVAL: the timeout is 0");
	close_id();
}

RULE_CASE(RDMACM_LOOPBACK, .profile = "connectx")
{
	open_id(RDMA_PS_TCP);
	resolve_address(id, 7471);
	assert_errno(rdma_resolve_route(id, TIMEOUT_MS), ENODEV);
	expect_refusal(
		RDMACM_LOOPBACK,
		"rdma_resolve_route → ENODEV: the destination is a loopback or unspecified address, which no interface of an adapter has");
	close_id();
	/* No address also means this host (rdma-cm 2.4). */
	open_id(RDMA_PS_TCP);
	assert_success(rdma_resolve_addr(id, NULL, any_address(7471), TIMEOUT_MS));
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_errno(rdma_resolve_route(id, TIMEOUT_MS), ENODEV);
	close_id();
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

RULE_CASE(RDMACM_NOTHING_ASKED)
{
	struct rdma_addrinfo *found;

	assert_errno(rdma_getaddrinfo(NULL, NULL, NULL, &found), EINVAL);
	expect_refusal(RDMACM_NOTHING_ASKED, "rdma_getaddrinfo → EINVAL: node, service and hints are all NULL");
}

RULE_CASE(RDMACM_ADDRINFO_PENDING)
{
	open_id(RDMA_PS_TCP);
	assert_success(rdma_resolve_addrinfo(id, "127.0.0.1", "7471", NULL));
	assert_errno(rdma_resolve_addrinfo(id, "127.0.0.1", "7471", NULL), EBUSY);
	expect_refusal(RDMACM_ADDRINFO_PENDING,
		       "rdma_resolve_addrinfo → EBUSY: the previous result has not been fetched");
	close_id();
}

RULE_CASE(RDMACM_RAI_SA)
{
	struct rdma_addrinfo hints = {.ai_flags = 0x10};

	open_id(RDMA_PS_TCP);
	assert_errno(rdma_resolve_addrinfo(id, "127.0.0.1", "7471", &hints), ENOENT);
	expect_refusal(
		RDMACM_RAI_SA,
		"rdma_resolve_addrinfo → ENOENT: flags 0x10 request addresses from the subnet administration, which Ethernet does not have, or, with RAI_DNS, from two sources at once");
	hints.ai_flags = 0x30;
	assert_errno(rdma_resolve_addrinfo(id, "127.0.0.1", "7471", &hints), EINVAL);
	close_id();
}

RULE_CASE(RDMACM_NO_ADDRINFO)
{
	struct rdma_addrinfo *found;

	open_id(RDMA_PS_TCP);
	assert_errno(rdma_query_addrinfo(id, &found), ENOENT);
	expect_refusal(RDMACM_NO_ADDRINFO, "rdma_query_addrinfo → ENOENT: no result is available");
	close_id();
}
