/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hca/gid: the table built from given interfaces. Expected GIDs are written by hand (RFC 4291, IBTA annex A17).
 */
#include <arpa/inet.h>
#include "test_case.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netpacket/packet.h>

#include "hca/gid.h"

#define RUNNING (IFF_UP | IFF_RUNNING)

/* A list as getifaddrs(3) returns it, filled by the three functions below. */
struct list {
	struct ifaddrs entry[300];
	struct sockaddr_storage address[300];
	size_t count;
};

static void *add(struct list *list, const char *name, unsigned int flags, sa_family_t family)
{
	struct ifaddrs *entry = &list->entry[list->count];

	memset(entry, 0, sizeof(*entry));
	entry->ifa_name = (char *)name;
	entry->ifa_flags = flags;
	entry->ifa_addr = (struct sockaddr *)&list->address[list->count];
	memset(entry->ifa_addr, 0, sizeof(list->address[0]));
	entry->ifa_addr->sa_family = family;
	if (list->count)
		list->entry[list->count - 1].ifa_next = entry;
	list->count++;
	return entry->ifa_addr;
}

static void add_link(struct list *list, const char *name, unsigned int flags, int ifindex, const char *mac)
{
	struct sockaddr_ll *address = add(list, name, flags, AF_PACKET);

	address->sll_ifindex = ifindex;
	address->sll_halen = mac ? 6 : 0;
	if (mac)
		memcpy(address->sll_addr, mac, 6);
}

static void add_ipv4(struct list *list, const char *name, const char *ip)
{
	struct sockaddr_in *address = add(list, name, RUNNING, AF_INET);

	assert_int_equal(inet_pton(AF_INET, ip, &address->sin_addr), 1);
}

static void add_ipv6(struct list *list, const char *name, const char *ip)
{
	struct sockaddr_in6 *address = add(list, name, RUNNING, AF_INET6);

	assert_int_equal(inet_pton(AF_INET6, ip, &address->sin6_addr), 1);
}

static struct hca_gid table[HCA_GID_TABLE_SIZE];

/* Checks that entries @index and @index + 1 are @gid as RoCE v1 and v2. */
static void expect_pair(size_t index, const char *gid, const char *netdev, uint32_t ifindex)
{
	union ibv_gid expected;

	assert_int_equal(inet_pton(AF_INET6, gid, expected.raw), 1);
	for (size_t i = 0; i < 2; i++) {
		assert_memory_equal(&table[index + i].gid, &expected, sizeof(expected));
		assert_int_equal(table[index + i].type, i ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1);
		assert_string_equal(table[index + i].netdev, netdev);
		assert_int_equal(table[index + i].ifindex, ifindex);
	}
}

static size_t fill(const struct list *list)
{
	memset(table, 0xa5, sizeof(table));
	return gid_table_fill(list->count ? list->entry : NULL, table, HCA_GID_TABLE_SIZE);
}

TEST(one_interface)
{
	struct list list = {0};

	add_link(&list, "lo", RUNNING | IFF_LOOPBACK, 1, "\0\0\0\0\0\0");
	add_link(&list, "eth0", RUNNING, 2, "\x02\x42\xac\x11\x00\x02");
	add_ipv4(&list, "lo", "127.0.0.1");
	add_ipv4(&list, "eth0", "172.17.0.2");
	add_ipv6(&list, "lo", "::1");
	add_ipv6(&list, "eth0", "fe80::42:acff:fe11:2"); /* the kernel's, derived from the MAC: not another GID */
	add_ipv6(&list, "eth0", "2001:db8::7");
	assert_int_equal(fill(&list), 6);
	expect_pair(0, "fe80::42:acff:fe11:2", "eth0", 2);
	expect_pair(2, "::ffff:172.17.0.2", "eth0", 2);
	expect_pair(4, "2001:db8::7", "eth0", 2);
	assert_memory_equal(table[3].mac, "\x02\x42\xac\x11\x00\x02", 6);
}

/*
 * Sorted by interface index, not by the order of the list; IPv4 before IPv6; labelled addresses belong to their
 * interface.
 */
TEST(several_interfaces)
{
	struct list list = {0};

	add_ipv6(&list, "b", "2001:db8::b");
	add_link(&list, "b", RUNNING, 7, "\x00\x11\x22\x33\x44\x55");
	add_ipv4(&list, "b", "10.0.0.7");
	add_link(&list, "a", RUNNING, 3, "\x0a\x0b\x0c\x0d\x0e\x0f");
	add_ipv4(&list, "a", "10.0.0.3");
	add_ipv4(&list, "a:1", "10.0.0.4");
	add_ipv4(&list, "ab", "10.0.0.5"); /* no interface of that name is up */
	assert_int_equal(fill(&list), 12);
	expect_pair(0, "fe80::80b:cff:fe0d:e0f", "a", 3);
	expect_pair(2, "::ffff:10.0.0.3", "a", 3);
	expect_pair(4, "::ffff:10.0.0.4", "a", 3);
	expect_pair(6, "fe80::211:22ff:fe33:4455", "b", 7);
	expect_pair(8, "::ffff:10.0.0.7", "b", 7);
	expect_pair(10, "2001:db8::b", "b", 7);
}

TEST(interfaces_that_do_not_count)
{
	struct list list = {0};

	add_link(&list, "down", IFF_RUNNING, 2, "\x02\0\0\0\0\x02");
	add_ipv4(&list, "down", "10.0.0.2");
	add_link(&list, "unplugged", IFF_UP, 3, "\x02\0\0\0\0\x03");
	add_ipv4(&list, "unplugged", "10.0.0.3");
	add_link(&list, "slave", RUNNING, 4, "\x02\0\0\0\0\x04");
	add_link(&list, "tunnel", RUNNING, 5, NULL);
	add_ipv4(&list, "tunnel", "10.0.0.5");
	assert_int_equal(fill(&list), 4);
	expect_pair(0, "fe80::ff:fe00:5", "tunnel", 5); /* derived from an artificial MAC, 02:00:00:00:00:05 */
	expect_pair(2, "::ffff:10.0.0.5", "tunnel", 5);
}

TEST(loopback_when_there_is_nothing_else)
{
	struct list list = {0};

	assert_int_equal(fill(&list), 4);
	expect_pair(0, "fe80::200:ff:fe00:0", "lo", 1);
	expect_pair(2, "::ffff:127.0.0.1", "lo", 1);
	add_link(&list, "lo", RUNNING | IFF_LOOPBACK, 1, "\0\0\0\0\0\0");
	add_ipv4(&list, "lo", "127.0.0.1");
	assert_int_equal(fill(&list), 4);
	expect_pair(2, "::ffff:127.0.0.1", "lo", 1);
	add_ipv4(&list, "lo:1", "10.88.0.1");
	add_ipv6(&list, "lo", "::1");
	assert_int_equal(fill(&list), 8);
	expect_pair(2, "::ffff:127.0.0.1", "lo", 1);
	expect_pair(4, "::ffff:10.88.0.1", "lo", 1);
	expect_pair(6, "::1", "lo", 1);
	assert_int_equal(gid_discover(GIDS_LOOPBACK, table), 4);
	expect_pair(2, "::ffff:127.0.0.1", "lo", 1);
}

TEST(a_full_table_refuses_more)
{
	struct list list = {0};

	add_link(&list, "a", RUNNING, 2, "\x02\0\0\0\0\x02");
	for (int i = 0; i < 100; i++)
		add_ipv4(&list, "a", "10.0.0.1");
	assert_int_equal(gid_table_fill(list.entry, table, 5), 5);
	assert_int_equal(fill(&list), HCA_GID_TABLE_SIZE);
}

TEST(look_up_is_by_gid_and_type)
{
	struct list list = {0};
	union ibv_gid gid;
	size_t count;

	add_link(&list, "a", RUNNING, 2, "\x02\0\0\0\0\x02");
	add_ipv4(&list, "a", "10.0.0.1");
	count = fill(&list);
	inet_pton(AF_INET6, "::ffff:10.0.0.1", gid.raw);
	assert_int_equal(gid_find(table, count, &gid, IBV_GID_TYPE_ROCE_V1), 2);
	assert_int_equal(gid_find(table, count, &gid, IBV_GID_TYPE_ROCE_V2), 3);
	assert_int_equal(gid_find(table, count, &gid, IBV_GID_TYPE_IB), -ENOENT);
	assert_int_equal(gid_find(table, 3, &gid, IBV_GID_TYPE_ROCE_V2), -ENOENT);
	assert_true(gid_is_ipv4(&gid));
	assert_false(gid_is_ipv4(&table[0].gid));
}
