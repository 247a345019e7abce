/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests ibv_create_ah(3), ibv_create_ah_from_wc(3), and the address vector that mlx5dv_init_obj(3) returns, read byte by byte at
 * the offsets of mlx5-formats 1.6. The GID table is that of SOFTHCA_GIDS=loopback: 0 and 1 are fe80::200:ff:fe00:0, 2 and 3
 * ::ffff:127.0.0.1, each as RoCE v1 and v2.
 */
#include "support/objects.h"

#include <arpa/inet.h>
#include <endian.h>

static struct ibv_ah_attr attributes_to(const char *gid, uint8_t sgid_index)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = sgid_index, .hop_limit = 64}};

	assert_int_equal(inet_pton(AF_INET6, gid, attr.grh.dgid.raw), 1);
	return attr;
}

/* Creates an address handle from @attr and copies its address vector. */
static void vector_of(struct ibv_ah_attr *attr, uint8_t out[48])
{
	struct mlx5dv_obj object = {0};
	struct mlx5dv_ah ah = {0};

	object.ah.in = ibv_create_ah(pd, attr);
	assert_non_null(object.ah.in);
	assert_ptr_equal(object.ah.in->pd, pd);
	assert_ptr_equal(object.ah.in->context, context);
	object.ah.out = &ah;
	assert_int_equal(mlx5dv_init_obj(&object, MLX5DV_OBJ_AH), 0);
	memcpy(out, ah.av, 48);
	assert_int_equal(ibv_destroy_ah(object.ah.in), 0);
}

static uint16_t be16_at(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t be32_at(const uint8_t *at)
{
	return (uint32_t)be16_at(at) << 16 | be16_at(at + 2);
}

TEST(address_vector)
{
	struct ibv_ah_attr attr = attributes_to("::ffff:127.0.0.1", 3);
	uint8_t av[48];

	attr.sl = 5;
	attr.static_rate = IBV_RATE_100_GBPS;
	attr.grh.flow_label = 0x12345;
	attr.grh.traffic_class = 0x68;
	attr.grh.hop_limit = 33;
	vector_of(&attr, av);
	for (int i = 0; i < 12; i++)
		assert_int_equal(av[i], 0);         /* qkey and QP number are those of the request */
	assert_int_equal(av[12], 15 << 4 | 5 << 1); /* mlx5-formats 1.6; 15: 120 Gbit/s */
	assert_int_equal(av[13], 0);
	/* ibv_flow_label_to_udp_sport(): 0x12345 is 4:0x2345 in 14-bit digits, 4 ^ 0x2345 = 0x2341 */
	assert_int_equal(be16_at(av + 14), 0xc000 | 0x2341);
	for (int i = 16; i < 26; i++)
		assert_int_equal(av[i], 0); /* reserved; the loopback interface has MAC address 0 */
	assert_int_equal(av[26], 0x68);
	assert_int_equal(av[27], 33);
	assert_int_equal(be32_at(av + 28), 3 << 20 | 0x12345); /* no GRH bit on Ethernet */
	assert_memory_equal(av + 32, attr.grh.dgid.raw, 16);
}

/* Rates have the codes of libmlx5. A rate without a code gets that of the next higher rate, or no limit. */
TEST(static_rates)
{
	static const struct {
		enum ibv_rate rate;
		uint8_t code;
	} rows[] = {
		{IBV_RATE_MAX, 0},       {1, 0},
		{IBV_RATE_2_5_GBPS, 7},  {IBV_RATE_10_GBPS, 8},
		{IBV_RATE_30_GBPS, 9},   {IBV_RATE_5_GBPS, 10},
		{IBV_RATE_20_GBPS, 11},  {IBV_RATE_40_GBPS, 12},
		{IBV_RATE_60_GBPS, 13},  {IBV_RATE_80_GBPS, 14},
		{IBV_RATE_120_GBPS, 15}, {IBV_RATE_14_GBPS, 11},
		{IBV_RATE_56_GBPS, 13},  {IBV_RATE_112_GBPS, 15},
		{IBV_RATE_168_GBPS, 0},  {IBV_RATE_25_GBPS, 9},
		{IBV_RATE_100_GBPS, 15}, {IBV_RATE_200_GBPS, 0},
		{IBV_RATE_300_GBPS, 0},  {IBV_RATE_28_GBPS, 9},
		{IBV_RATE_50_GBPS, 13},  {IBV_RATE_400_GBPS, 0},
		{IBV_RATE_600_GBPS, 0},  {255, 0},
	};
	uint8_t av[48];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibv_ah_attr attr = attributes_to("::ffff:127.0.0.1", 3);

		note("rate %u", rows[i].rate);
		attr.static_rate = (uint8_t)rows[i].rate;
		vector_of(&attr, av);
		assert_int_equal(av[12], rows[i].code << 4);
	}
}

TEST(udp_source_port)
{
	struct ibv_ah_attr attr = attributes_to("::ffff:127.0.0.1", 2);
	uint8_t av[48], again[48];

	attr.grh.flow_label = 1;
	vector_of(&attr, av);
	assert_int_equal(be16_at(av + 14), 0); /* RoCE v1 has no UDP port */
	attr.grh.sgid_index = 3;
	attr.grh.flow_label = 0;
	vector_of(&attr, av);
	assert_true(be16_at(av + 14) >= 0xc000);
	vector_of(&attr, again);
	assert_memory_equal(av, again, 48);
	/* Bits above the 20 of a flow label are ignored. */
	attr.grh.flow_label = 0xfff00000;
	vector_of(&attr, again);
	assert_memory_equal(av, again, 48);
}

TEST(mac_addresses)
{
	static const struct {
		const char *gid;
		uint8_t sgid_index;
		uint8_t mac[6];
	} cases[] = {
		{"fe80::211:22ff:fe33:4455", 1, {0x00, 0x11, 0x22, 0x33, 0x44, 0x55}}, /* RFC 4291, appendix A */
		{"fe80::a8bb:ccff:fedd:eeff", 1, {0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}},
		{"ff0e::ffff:239.129.2.3", 3, {0x01, 0x00, 0x5e, 0x01, 0x02, 0x03}}, /* RFC 1112 */
		{"ff02::1:ff00:1234", 3, {0x33, 0x33, 0xff, 0x00, 0x12, 0x34}},      /* RFC 2464 */
		{"::ffff:127.0.0.1", 3, {0}},
		{"::ffff:203.0.113.77", 3, {0}}, /* unknown */
		{"2001:db8::1", 1, {0}},
	};
	uint8_t av[48];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_ah_attr attr = attributes_to(cases[i].gid, cases[i].sgid_index);

		vector_of(&attr, av);
		assert_memory_equal(av + 20, cases[i].mac, 6);
	}
}

TEST(layer_2_address_of_a_gid)
{
	struct ibv_ah_attr attr = attributes_to("fe80::211:22ff:fe33:4455", 1);
	static const uint8_t expected[6] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55};
	uint16_t vlan = 1;
	uint8_t mac[6];

	assert_int_equal(ibv_resolve_eth_l2_from_gid(context, &attr, mac, &vlan), 0);
	assert_memory_equal(mac, expected, 6);
	assert_int_equal(vlan, 0xffff);
	assert_int_equal(ibv_resolve_eth_l2_from_gid(context, &attr, mac, NULL), 0);
	attr = attributes_to("::ffff:203.0.113.77", 3);
	assert_int_equal(ibv_resolve_eth_l2_from_gid(context, &attr, mac, NULL), -EHOSTUNREACH);
	attr.grh.sgid_index = 4;
	assert_int_equal(ibv_resolve_eth_l2_from_gid(context, &attr, mac, NULL), -EINVAL);
}

TEST(attributes_that_are_refused)
{
	struct ibv_ah_attr good = attributes_to("::ffff:127.0.0.1", 3), attr;

	attr = good;
	attr.is_global = 0;
	expect_null(ibv_create_ah(pd, &attr), EINVAL);
	attr = good;
	attr.grh.sgid_index = 4; /* empty */
	expect_null(ibv_create_ah(pd, &attr), EINVAL);
	attr.grh.sgid_index = 255;
	expect_null(ibv_create_ah(pd, &attr), EINVAL);
	attr = good;
	attr.port_num = 0;
	expect_null(ibv_create_ah(pd, &attr), EINVAL);
	attr.port_num = 2;
	expect_null(ibv_create_ah(pd, &attr), EINVAL);
	/* The kernel's rdma_resolve_ip() refuses a source and a destination of different families. */
	attr = attributes_to("::", 3);
	expect_null(ibv_create_ah(pd, &attr), EINVAL);
	attr = attributes_to("::", 1);
	expect_null(ibv_create_ah(pd, &attr), EINVAL);
	attr = attributes_to("2001:db8::1", 3);
	expect_null(ibv_create_ah(pd, &attr), EINVAL);
	attr = attributes_to("::ffff:203.0.113.77", 1);
	expect_null(ibv_create_ah(pd, &attr), EINVAL);
}

TEST(an_address_handle_keeps_its_pd)
{
	struct ibv_ah_attr attr = attributes_to("::ffff:127.0.0.1", 3);
	struct ibv_pd *domain = ibv_alloc_pd(context);
	struct ibv_ah *ah = ibv_create_ah(domain, &attr);

	assert_non_null(ah);
	assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
}

/* ---- from a completion --------------------------------------------------------------------------------- */

/* Header of 40 bytes before a datagram, at an odd address as in a program's buffer. */
static uint8_t buffer[48];
static uint8_t *const header = buffer + 1;

/* Stores an IPv4 header in the last 20 bytes and arbitrary bytes in the first 20 (IBTA annex A17). */
static void put_ipv4(const char *from, const char *to)
{
	uint8_t *ip = header + 20;
	uint32_t sum = 0;

	memset(header, 0xa5, 20);
	memset(ip, 0, 20);
	ip[0] = 0x45;
	ip[1] = 0x1c;
	ip[3] = 100;
	ip[8] = 61;
	ip[9] = 17;
	assert_int_equal(inet_pton(AF_INET, from, ip + 12), 1);
	assert_int_equal(inet_pton(AF_INET, to, ip + 16), 1);
	for (int i = 0; i < 20; i += 2)
		sum += be16_at(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
}

static void put_ipv6(const char *from, const char *to, uint8_t next_header)
{
	static const uint8_t first[8] = {0x6b, 0xca, 0xbc, 0xde, 0, 100}; /* version 6, class 0xbc, flow 0xabcde */

	memcpy(header, first, 8);
	header[6] = next_header;
	header[7] = 62;
	assert_int_equal(inet_pton(AF_INET6, from, header + 8), 1);
	assert_int_equal(inet_pton(AF_INET6, to, header + 24), 1);
}

static int init_from(struct ibv_ah_attr *attr)
{
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH, .sl = 3, .slid = 0x1234, .dlid_path_bits = 5};

	memset(attr, 0xa5, sizeof(*attr));
	errno = 0;
	return ibv_init_ah_from_wc(context, 1, &wc, (struct ibv_grh *)(void *)header, attr);
}

static void expect_answer_to(const struct ibv_ah_attr *attr, const char *gid, uint8_t sgid_index)
{
	union ibv_gid expected;

	assert_int_equal(inet_pton(AF_INET6, gid, expected.raw), 1);
	assert_memory_equal(&attr->grh.dgid, &expected, 16);
	assert_int_equal(attr->grh.sgid_index, sgid_index);
	assert_int_equal(attr->is_global, 1);
	assert_int_equal(attr->port_num, 1);
	assert_int_equal(attr->sl, 3);
	assert_int_equal(attr->dlid, 0x1234);
	assert_int_equal(attr->src_path_bits, 5);
}

TEST(answer_over_ipv4)
{
	struct ibv_ah_attr attr;

	put_ipv4("10.1.2.3", "127.0.0.1");
	assert_int_equal(init_from(&attr), 0);
	expect_answer_to(&attr, "::ffff:10.1.2.3", 3);
	assert_int_equal(attr.grh.hop_limit, 61);
	assert_int_equal(attr.grh.traffic_class, 0x1c);
	assert_int_equal(attr.grh.flow_label, 0);
	/* The first 20 bytes happen to look like IPv6: the checksum decides. */
	header[0] = 0x60;
	assert_int_equal(init_from(&attr), 0);
	expect_answer_to(&attr, "::ffff:10.1.2.3", 3);
	header[20 + 10] ^= 1;
	assert_int_equal(init_from(&attr), -1);
}

TEST(answer_over_ipv6_and_roce_v1)
{
	struct ibv_ah_attr attr;

	put_ipv6("fe80::211:22ff:fe33:4455", "fe80::200:ff:fe00:0", 17);
	assert_int_equal(init_from(&attr), 0);
	expect_answer_to(&attr, "fe80::211:22ff:fe33:4455", 1);
	assert_int_equal(attr.grh.hop_limit, 62);
	assert_int_equal(attr.grh.traffic_class, 0xbc);
	assert_int_equal(attr.grh.flow_label, 0xabcde);
	put_ipv6("fe80::211:22ff:fe33:4455", "fe80::200:ff:fe00:0", 0x1b);
	assert_int_equal(init_from(&attr), 0);
	expect_answer_to(&attr, "fe80::211:22ff:fe33:4455", 0);
	put_ipv6("::ffff:10.1.2.3", "::ffff:127.0.0.1", 0x1b);
	assert_int_equal(init_from(&attr), 0);
	expect_answer_to(&attr, "::ffff:10.1.2.3", 2);
}

TEST(headers_that_lead_nowhere)
{
	struct ibv_ah_attr attr;

	put_ipv6("fe80::1", "fe80::200:ff:fe00:0", 6);
	assert_int_equal(init_from(&attr), -1);
	assert_int_equal(errno, EPROTONOSUPPORT);
	put_ipv6("fe80::1", "ff02::1", 17);
	assert_int_equal(init_from(&attr), -1);
	assert_int_equal(errno, EINVAL);
	put_ipv6("fe80::1", "fe80::2", 17);
	assert_int_equal(init_from(&attr), -1);
	assert_int_equal(errno, EINVAL);
	put_ipv4("10.1.2.3", "239.1.2.3");
	assert_int_equal(init_from(&attr), -1);
	assert_int_equal(errno, EINVAL);
	put_ipv4("10.1.2.3", "10.9.9.9");
	assert_int_equal(init_from(&attr), -1);
	assert_int_equal(errno, EINVAL);
	memset(header, 0, 40);
	assert_int_equal(init_from(&attr), -1);
	assert_int_equal(errno, EPROTONOSUPPORT);
}

/* ibv_init_ah_from_wc(3): the GRH is ignored unless the completion has its flag. */
TEST(completion_without_grh)
{
	struct ibv_wc wc = {.sl = 3, .slid = 7};
	struct ibv_ah_attr attr;

	assert_int_equal(ibv_init_ah_from_wc(context, 1, &wc, NULL, &attr), 0);
	assert_int_equal(attr.is_global, 0);
	assert_int_equal(attr.dlid, 7);
	expect_null(ibv_create_ah_from_wc(pd, &wc, NULL, 1), EINVAL);
}

TEST(address_handle_of_the_sender)
{
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	struct ibv_ah *ah;

	put_ipv4("10.1.2.3", "127.0.0.1");
	ah = ibv_create_ah_from_wc(pd, &wc, (struct ibv_grh *)(void *)header, 1);
	assert_non_null(ah);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	expect_null(ibv_create_ah_from_wc(pd, &wc, (struct ibv_grh *)(void *)header, 2), EINVAL);
}

int main(void)
{
	setenv("SOFTHCA_GIDS", "loopback", 1);
	/* Routes and neighbours of the machine do not matter here: destinations.c tests them. */
	setenv("SOFTHCA_LINK", "local", 1);
	return run_cases(.group_setup = objects_open, .group_teardown = objects_close);
}
