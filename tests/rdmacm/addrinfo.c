/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_getaddrinfo(3), rdma_freeaddrinfo(3), and rdma_resolve_addrinfo(), rdma_query_addrinfo() of later versions. Expected
 * values: rdma-cm 1.1 and 2.4.
 */
#include "support.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <infiniband/ib.h>

#include "abi/undeclared_rdmacm.h"

static struct rdma_addrinfo *find(const char *node, const char *service, const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *found = NULL;

	assert_success(rdma_getaddrinfo(node, service, hints, &found));
	assert_non_null(found);
	assert_null(found->ai_next);
	assert_int_equal(found->ai_route_len, 0);
	assert_int_equal(found->ai_connect_len, 0);
	return found;
}

TEST(test_active)
{
	struct rdma_addrinfo *found = find("127.0.0.1", "7471", NULL);
	const struct sockaddr_in *address = (struct sockaddr_in *)found->ai_dst_addr;

	assert_int_equal(found->ai_flags, 0);
	assert_int_equal(found->ai_family, AF_INET);
	assert_int_equal(found->ai_qp_type, IBV_QPT_RC);
	assert_int_equal(found->ai_port_space, RDMA_PS_TCP);
	assert_int_equal(found->ai_dst_len, sizeof(*address));
	assert_int_equal(found->ai_src_len, 0);
	assert_int_equal(address->sin_port, htons(7471));
	assert_int_equal(address->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	rdma_freeaddrinfo(found);
}

TEST(test_passive)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_UDP, .ai_family = AF_INET};
	struct rdma_addrinfo *found = find(NULL, "7471", &hints);
	const struct sockaddr_in *address = (struct sockaddr_in *)found->ai_src_addr;

	assert_int_equal(found->ai_flags, RAI_PASSIVE);
	assert_int_equal(found->ai_qp_type, IBV_QPT_UD);
	assert_int_equal(found->ai_port_space, RDMA_PS_UDP);
	assert_int_equal(address->sin_addr.s_addr, 0);
	assert_int_equal(found->ai_dst_len, 0);
	rdma_freeaddrinfo(found);
}

TEST(test_hints)
{
	struct sockaddr_in source = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_addrinfo hints = {.ai_qp_type = IBV_QPT_UC,
				      .ai_port_space = RDMA_PS_IB,
				      .ai_src_addr = (struct sockaddr *)&source,
				      .ai_src_len = sizeof(source)};
	struct rdma_addrinfo *found = find("127.0.0.1", "1", &hints);

	assert_int_equal(found->ai_qp_type, IBV_QPT_UC);
	assert_int_equal(found->ai_port_space, RDMA_PS_IB);
	assert_int_equal(found->ai_src_len, sizeof(source));
	assert_memory_equal(found->ai_src_addr, &source, sizeof(source));
	rdma_freeaddrinfo(found);
	/* Without node and service, the hints themselves are returned. */
	found = find(NULL, NULL, &hints);
	assert_int_equal(found->ai_port_space, RDMA_PS_IB);
	assert_int_equal(found->ai_src_len, sizeof(source));
	assert_int_equal(found->ai_dst_len, 0);
	rdma_freeaddrinfo(found);
}

TEST(test_gid)
{
	struct rdma_addrinfo hints = {
		.ai_flags = RAI_FAMILY | RAI_NUMERICHOST, .ai_family = AF_IB, .ai_port_space = RDMA_PS_IB};
	struct rdma_addrinfo *found = find("2001:db8::7", "18515", &hints);
	const struct sockaddr_ib *address = (struct sockaddr_ib *)found->ai_dst_addr;
	struct in6_addr expected;

	inet_pton(AF_INET6, "2001:db8::7", &expected);
	assert_int_equal(found->ai_family, AF_IB);
	assert_int_equal(found->ai_dst_len, sizeof(*address));
	assert_int_equal(address->sib_family, AF_IB);
	assert_int_equal(address->sib_pkey, 0xffff);
	assert_memory_equal(&address->sib_addr, &expected, 16);
	assert_int_equal(be64toh(address->sib_sid), ((uint64_t)RDMA_PS_IB << 16) + 18515);
	rdma_freeaddrinfo(found);
}

/* Two of the three parts alone mean the same as for getaddrinfo(3), and so does the text of an IPv4 address. */
TEST(test_no_gid)
{
	const struct {
		int flags, family;
		const char *node;
		int expected;
	} cases[] = {
		{RAI_FAMILY, AF_IB, "2001:db8::7", AF_INET6},
		{RAI_NUMERICHOST, AF_IB, "2001:db8::7", AF_INET6},
		{RAI_FAMILY | RAI_NUMERICHOST, AF_INET6, "2001:db8::7", AF_INET6},
		{RAI_FAMILY | RAI_NUMERICHOST, AF_IB, "192.0.2.1", AF_INET},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rdma_addrinfo hints = {
			.ai_flags = cases[i].flags, .ai_family = cases[i].family, .ai_port_space = RDMA_PS_IB};
		struct rdma_addrinfo *found = find(cases[i].node, "18515", &hints);

		assert_int_equal(found->ai_family, cases[i].expected);
		assert_int_equal(found->ai_dst_addr->sa_family, cases[i].expected);
		rdma_freeaddrinfo(found);
	}
}

TEST(test_errors)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST}, *found;

	assert_errno(rdma_getaddrinfo(NULL, NULL, NULL, &found), EINVAL);
	assert_int_equal(rdma_getaddrinfo("no number", NULL, &hints, &found), EAI_NONAME);
	rdma_freeaddrinfo(NULL);
}

/* The EAI_QPTYPE of the manual page is not declared in any header: errors are those of getaddrinfo(3) for the socket types
 * that these stand for. */
TEST(test_inconsistent)
{
	static const struct {
		int qp_type, port_space;
	} cases[] = {{IBV_QPT_UD, RDMA_PS_TCP}, {IBV_QPT_RC, RDMA_PS_UDP}};
	size_t index;

	for (index = 0; index < sizeof(cases) / sizeof(cases[0]); index++) {
		struct rdma_addrinfo hints = {.ai_qp_type = cases[index].qp_type,
					      .ai_port_space = cases[index].port_space},
				     *found;

		assert_int_equal(rdma_getaddrinfo("127.0.0.1", "7471", &hints, &found), EAI_SOCKTYPE);
	}
}

TEST(test_of_id)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
	struct rdma_addrinfo *found;

	assert_errno(rdma_query_addrinfo(id, &found), ENOENT);
	assert_success(rdma_resolve_addrinfo(id, "127.0.0.1", "7471", NULL));
	assert_errno(rdma_resolve_addrinfo(id, "127.0.0.1", "7471", NULL), EBUSY);
	expect_event(channel, (enum rdma_cm_event_type)RDMA_CM_EVENT_ADDRINFO_RESOLVED_);
	assert_success(rdma_query_addrinfo(id, &found));
	assert_int_equal(found->ai_family, AF_INET);
	rdma_freeaddrinfo(found);
	assert_errno(rdma_query_addrinfo(id, &found), ENOENT);
	assert_errno(rdma_resolve_addrinfo(id, NULL, NULL, NULL), EINVAL);
	/* Unqueried results are freed with the id. */
	assert_success(rdma_resolve_addrinfo(id, "127.0.0.1", "7471", NULL));
	assert_success(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}
