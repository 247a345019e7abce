/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_bind_addr(3), rdma_resolve_addr(3), rdma_resolve_route(3), rdma_listen(3): addresses, ports and their collisions, and
 * the fields that are filled in. Expected values: rdma-cm 2.4. Cases that need the address of an interface are skipped if only
 * loopback exists.
 */
#include "support.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <infiniband/ib.h>
#include <net/if.h>

static struct sockaddr_in own; /* an address of an interface; AF_UNSPEC: none exists */

static struct sockaddr *at(struct sockaddr_in *address, uint16_t port)
{
	address->sin_port = htons(port);
	return (struct sockaddr *)address;
}

static void find_own(void)
{
	struct ifaddrs *list, *entry;

	if (getifaddrs(&list))
		return;
	for (entry = list; entry; entry = entry->ifa_next)
		if (entry->ifa_addr && entry->ifa_addr->sa_family == AF_INET && entry->ifa_flags & IFF_UP &&
		    !(entry->ifa_flags & IFF_LOOPBACK) && own.sin_family == AF_UNSPEC)
			memcpy(&own, entry->ifa_addr, sizeof(own));
	freeifaddrs(list);
}

static void need_interface(void)
{
	if (own.sin_family == AF_UNSPEC)
		skip();
}

TEST(test_refused_addresses)
{
	struct sockaddr_in elsewhere = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xcb007105)}; /* RFC 5737 */
	struct sockaddr_in6 link_local = {.sin6_family = AF_INET6};
	struct sockaddr nonsense = {.sa_family = AF_UNIX};
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP), *infiniband = new_id(channel, RDMA_PS_IPOIB);

	inet_pton(AF_INET6, "fe80::1", &link_local.sin6_addr);
	assert_errno(rdma_bind_addr(id, &nonsense), EINVAL);
	assert_errno(rdma_bind_addr(id, (struct sockaddr *)&elsewhere), EADDRNOTAVAIL);
	assert_errno(rdma_bind_addr(id, (struct sockaddr *)&link_local), EINVAL);
	assert_errno(rdma_bind_addr(infiniband, any_address(0)), EINVAL);
	assert_errno(rdma_resolve_addr(id, (struct sockaddr *)&link_local, loopback(1), TIMEOUT_MS), EINVAL);
	assert_errno(rdma_resolve_addr(id, NULL, &nonsense, TIMEOUT_MS), EINVAL);
	/* The failed calls did not change the id. */
	assert_success(rdma_bind_addr(id, loopback(0)));
	assert_success(rdma_destroy_id(id));
	assert_success(rdma_destroy_id(infiniband));
	rdma_destroy_event_channel(channel);
}

TEST(test_wildcard)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);

	assert_success(rdma_bind_addr(id, any_address(0)));
	assert_null(id->verbs);
	assert_in_range(port_of(id), 1024, 65535);
	assert_int_equal(rdma_get_local_addr(id)->sa_family, AF_INET);
	assert_success(rdma_listen(id, 5));
	assert_null(id->verbs);
	assert_success(rdma_destroy_id(id));
	/* An id that was never bound listens at any address and port. */
	id = new_id(channel, RDMA_PS_TCP);
	assert_success(rdma_listen(id, 5));
	assert_in_range(port_of(id), 1024, 65535);
	assert_success(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

TEST(test_device_of_address)
{
	need_interface();
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
	struct ibv_context **list;
	uint8_t gid[16] = {[10] = 0xff, [11] = 0xff};
	int count;

	assert_success(rdma_bind_addr(id, at(&own, 0)));
	list = rdma_get_devices(&count);
	assert_in_range(count, 1, 16);
	assert_null(list[count]);
	assert_ptr_equal(id->verbs, list[0]);
	rdma_free_devices(list);
	assert_int_equal(id->port_num, 1);
	assert_non_null(id->pd);
	assert_ptr_equal(id->pd->context, id->verbs);
	memcpy(gid + 12, &own.sin_addr, 4);
	assert_memory_equal(id->route.addr.addr.ibaddr.sgid.raw, gid, 16);
	assert_success(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

static void set_reuse(struct rdma_cm_id *id)
{
	int on = 1;

	assert_success(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)));
}

TEST(test_collisions)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *a = new_id(channel, RDMA_PS_TCP), *b = new_id(channel, RDMA_PS_TCP);
	struct rdma_cm_id *udp = new_id(channel, RDMA_PS_UDP), *six = new_id(channel, RDMA_PS_TCP);
	struct sockaddr_in6 any6 = {.sin6_family = AF_INET6};
	uint16_t port;
	int on = 1;

	assert_success(rdma_bind_addr(a, any_address(0)));
	port = port_of(a);
	/* Loopback addresses count as any address; if one of two is any address, the error is EADDRNOTAVAIL. */
	assert_errno(rdma_bind_addr(b, any_address(port)), EADDRNOTAVAIL);
	assert_errno(rdma_bind_addr(b, loopback(port)), EADDRNOTAVAIL);
	/* Each port space has its own ports. */
	assert_success(rdma_bind_addr(udp, any_address(port)));
	/* IPv6 only, next to an id that is IPv4 only. */
	any6.sin6_port = htons(port);
	assert_success(rdma_set_option(six, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)));
	assert_success(rdma_bind_addr(six, (struct sockaddr *)&any6));
	assert_success(rdma_destroy_id(six));
	/* The port is free after its owner is destroyed. */
	assert_success(rdma_destroy_id(a));
	assert_success(rdma_bind_addr(b, any_address(port)));
	assert_success(rdma_destroy_id(b));

	/* Two ids share the port until one listens. */
	a = new_id(channel, RDMA_PS_TCP);
	b = new_id(channel, RDMA_PS_TCP);
	set_reuse(a);
	set_reuse(b);
	assert_success(rdma_bind_addr(a, any_address(0)));
	assert_success(rdma_bind_addr(b, any_address(port_of(a))));
	assert_errno(rdma_listen(a, 1), EADDRNOTAVAIL);
	assert_success(rdma_destroy_id(b));
	assert_success(rdma_listen(a, 1));
	b = new_id(channel, RDMA_PS_TCP);
	set_reuse(b);
	assert_errno(rdma_bind_addr(b, any_address(port_of(a))), EADDRNOTAVAIL);
	assert_success(rdma_destroy_id(a));
	assert_success(rdma_destroy_id(b));
	assert_success(rdma_destroy_id(udp));
	rdma_destroy_event_channel(channel);
}

TEST(test_same_address)
{
	need_interface();
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *a = new_id(channel, RDMA_PS_TCP), *b = new_id(channel, RDMA_PS_TCP);

	assert_success(rdma_bind_addr(a, at(&own, 0)));
	assert_errno(rdma_bind_addr(b, at(&own, port_of(a))), EADDRINUSE);
	assert_errno(rdma_bind_addr(b, any_address(port_of(a))), EADDRNOTAVAIL);
	assert_success(rdma_destroy_id(a));
	assert_success(rdma_destroy_id(b));
	rdma_destroy_event_channel(channel);
}

TEST(test_resolved)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
	const struct ibv_sa_path_rec *path;
	struct ibv_port_attr port;
	uint8_t tos = 0x68, timeout = 14;

	assert_success(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1));
	assert_success(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
	assert_success(rdma_resolve_addr(id, NULL, loopback(7471), TIMEOUT_MS));
	/* Nothing changes before the event is taken. */
	assert_null(id->verbs);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_non_null(id->verbs);
	assert_non_null(id->pd);
	assert_int_equal(id->port_num, 1);
	assert_int_equal(id->route.num_paths, 0);
	assert_int_not_equal(port_of(id), 0);
	assert_int_equal(rdma_get_dst_port(id), htons(7471));
	assert_int_equal(rdma_get_peer_addr(id)->sa_family, AF_INET);
	assert_errno(rdma_resolve_route(id, 0), EINVAL);
	assert_success(rdma_resolve_route(id, TIMEOUT_MS));
	assert_int_equal(id->route.num_paths, 0);
	expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(id->route.num_paths, 1);
	path = id->route.path_rec;
	assert_int_equal(ibv_query_port(id->verbs, 1, &port), 0);
	assert_int_equal(path->mtu, port.active_mtu);
	assert_int_equal(path->mtu_selector, 2);
	assert_int_equal(path->hop_limit, 64);
	assert_int_equal(path->traffic_class, tos);
	assert_int_equal(path->pkey, 0xffff);
	assert_int_equal(path->packet_life_time, timeout - 1);
	assert_int_equal(path->reversible, 1);
	assert_int_equal(be32toh(path->flow_label), (port_of(id) * 31u + 7471u) % (1u << 20));
	assert_memory_equal(path->sgid.raw, id->route.addr.addr.ibaddr.sgid.raw, 16);
	assert_memory_equal(path->dgid.raw, id->route.addr.addr.ibaddr.dgid.raw, 16);
	assert_success(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

TEST(test_resolved_interface)
{
	need_interface();
	struct sockaddr_in group = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xef010101)};
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);

	assert_success(rdma_resolve_addr(id, NULL, at(&own, 7471), TIMEOUT_MS));
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_memory_equal(&((struct sockaddr_in *)rdma_get_local_addr(id))->sin_addr, &own.sin_addr, 4);
	assert_success(rdma_destroy_id(id));
	/* A group resolves as well, and a bound source stays. */
	id = new_id(channel, RDMA_PS_UDP);
	assert_success(rdma_bind_addr(id, at(&own, 0)));
	assert_success(rdma_resolve_addr(id, NULL, (struct sockaddr *)&group, TIMEOUT_MS));
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_memory_equal(&((struct sockaddr_in *)rdma_get_local_addr(id))->sin_addr, &own.sin_addr, 4);
	assert_success(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/* The status of the event reports the error of the address; the id can be resolved again. */
TEST(test_unresolved)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_IB);
	struct sockaddr_ib to = {.sib_family = AF_IB};
	struct rdma_cm_event *event;

	assert_int_equal(rdma_get_src_port(id), 0);
	assert_int_equal(rdma_get_dst_port(id), 0);
	assert_int_equal(rdma_get_local_addr(id)->sa_family, 0);
	assert_int_equal(rdma_get_peer_addr(id)->sa_family, 0);
	/* Devices on Ethernet have no native addresses. */
	to.sib_addr.sib_addr32[3] = htonl(5);
	assert_success(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, TIMEOUT_MS));
	event = next_event(channel, RDMA_CM_EVENT_ADDR_ERROR);
	assert_int_equal(event->status, -ENODEV);
	assert_ptr_equal(event->id, id);
	assert_success(rdma_ack_cm_event(event));
	assert_null(id->verbs);
	assert_errno(rdma_resolve_route(id, TIMEOUT_MS), EINVAL);
	to.sib_addr.sib_addr32[3] = 0;
	assert_success(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, TIMEOUT_MS));
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_non_null(id->verbs);
	assert_success(rdma_destroy_id(id));
	/* A synchronous id returns the error. */
	id = new_id(NULL, RDMA_PS_IB);
	to.sib_addr.sib_addr32[3] = htonl(5);
	assert_errno(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, TIMEOUT_MS), ENODEV);
	assert_success(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/* A source passed to the call is bound as by rdma_bind_addr(3). */
TEST(test_source)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP), *other = new_id(channel, RDMA_PS_TCP);
	struct rdma_cm_id *third = new_id(channel, RDMA_PS_TCP);
	uint16_t port;

	/* Any free port. */
	assert_success(rdma_bind_addr(other, loopback(0)));
	port = port_of(other);
	assert_success(rdma_destroy_id(other));
	assert_success(rdma_resolve_addr(id, loopback(port), loopback(7471), TIMEOUT_MS));
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(port_of(id), port);
	assert_errno(rdma_resolve_addr(third, loopback(port), loopback(7471), TIMEOUT_MS), EADDRNOTAVAIL);
	/* The source is ignored if the id is already bound. */
	assert_success(rdma_bind_addr(third, loopback(0)));
	port = port_of(third);
	assert_success(rdma_resolve_addr(third, loopback(port_of(id)), loopback(7471), TIMEOUT_MS));
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(port_of(third), port);
	assert_success(rdma_destroy_id(id));
	assert_success(rdma_destroy_id(third));
	if (own.sin_family == AF_INET) {
		id = new_id(channel, RDMA_PS_TCP);
		assert_success(rdma_resolve_addr(id, at(&own, 0), loopback(7471), TIMEOUT_MS));
		assert_non_null(id->verbs);
		expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
		assert_memory_equal(&((struct sockaddr_in *)rdma_get_local_addr(id))->sin_addr, &own.sin_addr, 4);
		assert_success(rdma_destroy_id(id));
	}
	rdma_destroy_event_channel(channel);
}

/* Returns an id that has requested a connection to @to. */
static struct rdma_cm_id *begin_connection(struct rdma_event_channel *channel, struct sockaddr *to)
{
	struct rdma_conn_param param = {.retry_count = 7};
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);

	assert_success(rdma_resolve_addr(id, NULL, to, TIMEOUT_MS));
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_success(rdma_resolve_route(id, TIMEOUT_MS));
	expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	new_qp(id);
	assert_success(rdma_connect(id, &param));
	return id;
}

static int status_of_connection(struct rdma_event_channel *channel, struct sockaddr *to)
{
	struct rdma_cm_id *id = begin_connection(channel, to);
	struct rdma_cm_event *event = next_event(channel, RDMA_CM_EVENT_REJECTED);
	int status;

	status = event->status;
	assert_success(rdma_ack_cm_event(event));
	rdma_destroy_qp(id);
	assert_success(rdma_destroy_id(id));
	return status;
}

/* A listener at one address refuses requests for another one of the host, with reason 28 (rdma-cm 3.3). */
TEST(test_listener_at_one_address)
{
	need_interface();
	struct rdma_event_channel *clients = new_channel(), *servers = new_channel();
	struct rdma_cm_id *listener = new_id(servers, RDMA_PS_TCP), *id;
	struct rdma_cm_event *event;
	uint16_t port;

	assert_success(rdma_bind_addr(listener, at(&own, 0)));
	assert_success(rdma_listen(listener, 1));
	port = port_of(listener);
	assert_int_equal(status_of_connection(clients, loopback(port)), 28);
	assert_false(has_event(servers, 0));
	/* A request for its own address arrives. */
	id = begin_connection(clients, at(&own, port));
	event = next_event(servers, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_success(rdma_destroy_id(event->id));
	assert_success(rdma_ack_cm_event(event));
	rdma_destroy_qp(id);
	assert_success(rdma_destroy_id(id));
	assert_success(rdma_destroy_id(listener));
	rdma_destroy_event_channel(clients);
	rdma_destroy_event_channel(servers);
}

/* A listener with only a port accepts requests for any address of the host; the child has the device of that address. */
TEST(test_listener_at_all_addresses)
{
	need_interface();
	struct rdma_event_channel *clients = new_channel(), *servers = new_channel();
	struct rdma_cm_id *listener = new_id(servers, RDMA_PS_TCP), *id;
	struct rdma_cm_event *event;
	struct sockaddr_in asked;
	int round;

	assert_success(rdma_bind_addr(listener, any_address(0)));
	assert_success(rdma_listen(listener, 2));
	assert_null(listener->verbs);
	for (round = 0; round < 2; round++) {
		asked = *(struct sockaddr_in *)(round ? at(&own, port_of(listener)) : loopback(port_of(listener)));
		id = begin_connection(clients, (struct sockaddr *)&asked);
		event = next_event(servers, RDMA_CM_EVENT_CONNECT_REQUEST);
		assert_ptr_equal(event->listen_id, listener);
		assert_ptr_equal(event->id->verbs, id->verbs);
		assert_int_equal(((struct sockaddr_in *)rdma_get_local_addr(event->id))->sin_addr.s_addr,
				 asked.sin_addr.s_addr);
		assert_success(rdma_destroy_id(event->id));
		assert_success(rdma_ack_cm_event(event));
		expect_event(clients, RDMA_CM_EVENT_REJECTED);
		rdma_destroy_qp(id);
		assert_success(rdma_destroy_id(id));
	}
	assert_null(listener->verbs);
	assert_success(rdma_destroy_id(listener));
	rdma_destroy_event_channel(clients);
	rdma_destroy_event_channel(servers);
}

int main(void)
{
	find_own();
	return run_cases();
}
