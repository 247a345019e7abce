/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests destinations of address handles and connected queue pairs, in a network namespace of the test: route, neighbour, hop
 * limit. Expected values are those of Linux: ib_resolve_unicast_gid_dmac() for connected types and address handles, fib_rules and
 * `ip route` for errors, 1000 ms and ETIMEDOUT of rdma_addr_find_l2_eth_by_grh(). The time to live is read from the frames at the
 * other end of a veth pair.
 */
#include <sched.h>

#include "kernel_has.h"
#include "support/objects.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

enum { TTL_IPV4 = 8, PROTOCOL_IPV4 = 9, HOPS_IPV6 = 7, UDP = 17, MANY = 40 };

static struct ibv_cq *cq;
static struct ibv_xrcd *xrcd;

/* v1 has no address, so v0 has only the neighbours that are entered here. */
static const char network[] =
	"exec 2>/dev/null; set -e; ip link set lo up; ip link add v0 type veth peer name v1;"
	"ip addr add 10.99.0.1/24 dev v0; ip addr add fd99::1/64 dev v0 nodad; ip link set v0 up; ip link set v1 up;"
	"ip neigh add 10.99.0.5 lladdr 02:00:00:00:00:05 dev v0 nud permanent;"
	"ip neigh add fd99::5 lladdr 02:00:00:00:00:05 dev v0 nud permanent;"
	"ip route add 198.51.100.0/24 via 10.99.0.5; ip route add 198.51.101.0/24 via 10.99.0.5 hoplimit 21;"
	"ip route add 198.51.102.0/24 via 10.99.0.78;"
	"ip route add unreachable 203.0.113.0/25; ip route add prohibit 203.0.113.128/25";

static void shell(const char *command)
{
	assert_int_equal(system(command), 0);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Returns the index of the RoCE v2 GID with @address. */
static uint8_t index_of(const char *address)
{
	union ibv_gid wanted;
	struct ibv_gid_entry entry;

	assert_int_equal(inet_pton(AF_INET6, address, wanted.raw), 1);
	for (uint8_t i = 0; !ibv_query_gid_ex(context, 1, i, &entry, 0); i++)
		if (entry.gid_type == IBV_GID_TYPE_ROCE_V2 && !memcmp(&entry.gid, &wanted, sizeof(wanted)))
			return i;
	fail_msg("no GID %s", address);
	return 0;
}

static struct ibv_ah_attr address_to(const char *gid, uint8_t hop_limit)
{
	bool ipv4 = !strncmp(gid, "::ffff:", 7) || !strcmp(gid, "::");
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = hop_limit}};

	attr.grh.sgid_index = index_of(ipv4 ? "::ffff:10.99.0.1" : "fd99::1");
	assert_int_equal(inet_pton(AF_INET6, gid, attr.grh.dgid.raw), 1);
	return attr;
}

static struct ibv_qp *new_qp(enum ibv_qp_type type)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1};
	struct ibv_qp_init_attr_ex init = {.qp_type = type, .send_cq = cq, .recv_cq = cq, .pd = pd};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	struct ibv_qp *qp;

	init.comp_mask = IBV_QP_INIT_ATTR_PD;
	init.cap = (struct ibv_qp_cap){.max_send_wr = 4, .max_send_sge = 1};
	if (type == IBV_QPT_XRC_RECV) {
		init = (struct ibv_qp_init_attr_ex){.qp_type = type, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
	}
	qp = ibv_create_qp_ex(context, &init);
	assert_non_null(qp);
	mask |= type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
	return qp;
}

static int to_rtr(struct ibv_qp *qp, const char *gid)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = 0x4321};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	attr.ah_attr = address_to(gid, 1);
	return ibv_modify_qp(qp, &attr, mask);
}

/* Checks the result of ibv_modify_qp(3) of each connected type and of ibv_create_ah(3) for @gid. */
static void expect_destination(const char *gid, int error)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV};
	struct ibv_ah_attr attr = address_to(gid, 1);
	struct ibv_ah *ah;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct ibv_qp *qp = new_qp(types[i]);

		assert_int_equal(to_rtr(qp, gid), error);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
	errno = 0;
	ah = ibv_create_ah(pd, &attr);
	assert_int_equal(ah ? 0 : errno, error);
	if (ah)
		assert_int_equal(ibv_destroy_ah(ah), 0);
}

TEST(routes_decide)
{
	expect_destination("::", EINVAL);
	expect_destination("::ffff:192.0.2.1", ENETUNREACH);
	expect_destination("2001:db8::1", ENETUNREACH);
	expect_destination("::ffff:203.0.113.1", EHOSTUNREACH);
	expect_destination("::ffff:203.0.113.129", EACCES);
	/* Addresses of this host, of a neighbour, and beyond a router. */
	expect_destination("::ffff:10.99.0.1", 0);
	expect_destination("fd99::1", 0);
	expect_destination("::ffff:10.99.0.5", 0);
	expect_destination("fd99::5", 0);
	expect_destination("::ffff:198.51.100.1", 0);
}

/* Expects ETIMEDOUT after 1000 ms; further calls for the same neighbour do not each wait that long. */
static void expect_silence(const char *gid)
{
	struct ibv_qp *qp = new_qp(IBV_QPT_RC);
	uint64_t before = now_ms();

	assert_int_equal(to_rtr(qp, gid), ETIMEDOUT);
	assert_true(now_ms() - before >= 1000);
	before = now_ms();
	for (int i = 0; i < MANY; i++)
		assert_int_equal(to_rtr(qp, gid), ETIMEDOUT);
	assert_true(now_ms() - before < MANY * 1000 / 4);
	/* A refused call leaves the QP unchanged. */
	assert_int_equal(to_rtr(qp, "::ffff:10.99.0.5"), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

TEST(silent_neighbours)
{
	if (!kernel_has_neighbour_requests())
		skip();
	expect_silence("::ffff:10.99.0.77");
	expect_silence("fd99::77");
	/* The router to the destination does not respond. */
	expect_silence("::ffff:198.51.102.1");
	expect_destination("::ffff:10.99.0.77", ETIMEDOUT);
}

TEST(a_neighbour_that_comes_late)
{
	struct ibv_qp *qp;
	pid_t child;
	int status;

	if (!kernel_has_neighbour_requests())
		skip();
	qp = new_qp(IBV_QPT_RC);
	assert_int_equal(to_rtr(qp, "::ffff:10.99.0.79"), ETIMEDOUT);
	shell("ip neigh replace 10.99.0.79 lladdr 02:00:00:00:00:05 dev v0 nud permanent");
	assert_int_equal(to_rtr(qp, "::ffff:10.99.0.79"), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);

	/* The neighbour is entered during the call. */
	child = fork();
	if (!child) {
		usleep(100000);
		_exit(system("ip neigh replace 10.99.0.80 lladdr 02:00:00:00:00:05 dev v0 nud permanent"));
	}
	qp = new_qp(IBV_QPT_RC);
	assert_int_equal(to_rtr(qp, "::ffff:10.99.0.80"), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void expect_hop_limit(const char *gid, uint8_t expected)
{
	struct ibv_qp *qp = new_qp(IBV_QPT_RC);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(to_rtr(qp, gid), 0);
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_AV, &init), 0);
	assert_int_equal(attr.ah_attr.grh.hop_limit, expected);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* The attribute says 1, as ibv_rc_pingpong(1) does. */
TEST(hop_limit_of_the_route)
{
	expect_hop_limit("::ffff:10.99.0.5", 64);
	expect_hop_limit("fd99::5", 64);
	expect_hop_limit("::ffff:198.51.101.1", 21);
	shell("echo 77 >/proc/sys/net/ipv4/ip_default_ttl; echo 78 >/proc/sys/net/ipv6/conf/v0/hop_limit");
	expect_hop_limit("::ffff:10.99.0.5", 77);
	expect_hop_limit("fd99::5", 78);
	expect_hop_limit("::ffff:198.51.101.1", 21);
	shell("echo 64 >/proc/sys/net/ipv4/ip_default_ttl; echo 64 >/proc/sys/net/ipv6/conf/v0/hop_limit");
}

/* ---- on the wire ------------------------------------------------------------------------------------------------- */

static int open_tap(void)
{
	struct sockaddr_ll name = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL));

	assert_true(fd >= 0);
	name.sll_ifindex = (int)if_nametoindex("v1");
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	return fd;
}

/* Returns true and sets *@ttl if @bytes are a datagram over IPv4 or IPv6. */
static bool is_datagram(const uint8_t *bytes, ssize_t length, uint8_t *ttl)
{
	if (length < 44)
		return false;
	*ttl = bytes[0] >> 4 == 4 ? bytes[TTL_IPV4] : bytes[HOPS_IPV6];
	return bytes[0] >> 4 == 4 ? bytes[PROTOCOL_IPV4] == UDP : bytes[6] == UDP;
}

static uint8_t ttl_at(int tap)
{
	struct pollfd ready = {.fd = tap, .events = POLLIN};
	uint8_t bytes[2048], ttl = 0;

	while (poll(&ready, 1, 10000) == 1)
		if (is_datagram(bytes, recv(tap, bytes, sizeof(bytes), 0), &ttl))
			return ttl;
	fail_msg("no packet left");
	return 0;
}

static void post(struct ibv_qp *qp, struct ibv_ah *ah)
{
	struct ibv_send_wr wr = send_wr(0, IBV_WR_SEND, NULL), *bad;

	if (ah) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = 0x4321;
		wr.wr.ud.remote_qkey = 1;
	}
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

static void expect_ttl_of_connection(enum ibv_qp_type type, const char *gid, uint8_t expected)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .timeout = 20, .retry_cnt = 1, .max_rd_atomic = 1};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN, tap;
	struct ibv_qp *qp = new_qp(type);

	if (type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	assert_int_equal(to_rtr(qp, gid), 0);
	assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
	tap = open_tap();
	post(qp, NULL);
	assert_int_equal(ttl_at(tap), expected);
	close(tap);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* UD uses the value of its address handle, as libmlx5 writes it into the address vector. */
static void expect_ttl_of_datagram(const char *gid, uint8_t hop_limit, uint8_t expected)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	struct ibv_ah_attr address = address_to(gid, hop_limit);
	struct ibv_qp *qp = new_qp(IBV_QPT_UD);
	struct ibv_ah *ah = ibv_create_ah(pd, &address);
	int tap;

	assert_non_null(ah);
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	tap = open_tap();
	post(qp, ah);
	assert_int_equal(ttl_at(tap), expected);
	close(tap);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

TEST(time_to_live)
{
	expect_ttl_of_connection(IBV_QPT_RC, "::ffff:10.99.0.5", 64);
	expect_ttl_of_connection(IBV_QPT_RC, "fd99::5", 64);
	expect_ttl_of_connection(IBV_QPT_UC, "::ffff:10.99.0.5", 64);
	expect_ttl_of_connection(IBV_QPT_UC, "::ffff:198.51.101.1", 21);
	expect_ttl_of_datagram("::ffff:10.99.0.5", 1, 1);
	expect_ttl_of_datagram("::ffff:10.99.0.5", 9, 9);
	expect_ttl_of_datagram("fd99::5", 9, 9);
}

static int open_all(void **state)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};

	if (objects_open(state))
		return -1;
	cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	xrcd = ibv_open_xrcd(context, &attr);
	return cq && xrcd ? 0 : -1;
}

static int close_all(void **state)
{
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	return objects_close(state);
}

int main(void)
{
	if ((unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) || system(network)) {
		puts("1..0 # SKIP no network of its own");
		return 77;
	}
	return run_cases(.group_setup = open_all, .group_teardown = close_all);
}
