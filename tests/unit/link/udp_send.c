/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that the udp link sends: a plain socket has the port and receives them. roce.c tests headers; this file tests
 * how a run is cut, and that every packet has the requested addresses and an ICRC that matches the datagram as
 * received. The test replaces sendmsg(2) to simulate refusals of the kernel.
 */
#include "test_case.h"

#include "progress/pollers.h"
#include "progress/progress.h"
#include "../support/udp_fixture.h"

enum { QPN = 0x4011, PEER = 0x5022, PSN = 0xfffffe, MTU = 256, MOST = 300000 };

static int v4, v6; /* on the RoCE port */
static uint8_t payload[MOST], buffer[65536];

/* ---- sendmsg ----------------------------------------------------------------------------------------------------- */

static int refuse_trains, refuse_labels, refuse_all, refuse_next, calls, trains, labels;

ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
	struct msghdr *control = (struct msghdr *)message;
	bool train = false, label = false;

	for (struct cmsghdr *at = CMSG_FIRSTHDR(control); at; at = CMSG_NXTHDR(control, at)) {
		train |= at->cmsg_level == IPPROTO_UDP && at->cmsg_type == UDP_SEGMENT;
		label |= at->cmsg_level == IPPROTO_IPV6 && at->cmsg_type == IPV6_FLOWINFO;
	}
	calls++;
	trains += train;
	labels += label;
	if (label && refuse_labels) {
		errno = refuse_labels;
		return -1;
	}
	if (refuse_next) {
		errno = refuse_next;
		refuse_next = 0;
		return -1;
	}
	if (refuse_all || (train && refuse_trains)) {
		errno = refuse_all ? refuse_all : refuse_trains;
		return -1;
	}
	return __real_sendmsg(fd, message, flags);
}

/* ---- time ---------------------------------------------------------------------------------------------------------- */

static uint64_t frozen_ns; /* atomic; 0: time passes */
static struct {
	struct timers *timers;
	struct timer *timer;
} kept; /* armed meanwhile */

uint64_t __real_clock_now_ns(void);
uint64_t __wrap_clock_now_ns(void);
uint64_t __wrap_clock_now_ns(void)
{
	uint64_t frozen = __atomic_load_n(&frozen_ns, __ATOMIC_SEQ_CST);

	return frozen ? frozen : __real_clock_now_ns();
}

static bool is_main_thread(void)
{
	return gettid() == getpid();
}

int __real_timer_arm(struct timers *timers, struct timer *timer, uint64_t deadline_ns);
int __wrap_timer_arm(struct timers *timers, struct timer *timer, uint64_t deadline_ns);
int __wrap_timer_arm(struct timers *timers, struct timer *timer, uint64_t deadline_ns)
{
	if (!is_main_thread() || !frozen_ns)
		return __real_timer_arm(timers, timer, deadline_ns);
	kept.timers = timers;
	kept.timer = timer;
	return 0;
}

/* Stops the clock, so that later events are simultaneous even on a busy machine. */
static void freeze(void)
{
	if (!frozen_ns)
		__atomic_store_n(&frozen_ns, __real_clock_now_ns(), __ATOMIC_SEQ_CST);
}

static void thaw(void)
{
	__atomic_store_n(&frozen_ns, 0, __ATOMIC_SEQ_CST);
	if (kept.timer)
		assert_int_equal(__real_timer_arm(kept.timers, kept.timer, __real_clock_now_ns()), 0);
	kept.timer = NULL;
}

/* ---- sending and receiving ----------------------------------------------------------------------------------------- */

static void build_write(struct run *run, const struct packet_path *path, uint32_t psn, uint32_t bytes, uint16_t mtu)
{
	struct packet *packet = run_slot(run);

	memset(packet, 0, offsetof(struct packet, own_path));
	packet->transport = IBV_QPT_RC;
	packet->message = MESSAGE_WRITE;
	packet->place = PLACE_ONLY;
	packet->acknowledge = true;
	packet->destination_qpn = PEER;
	packet->source_qpn = QPN;
	packet->psn = psn;
	packet->mtu = mtu;
	packet->count = bytes ? (bytes + mtu - 1) / mtu : 1;
	packet->remote_address = 0x1122334455667788;
	packet->rkey = 0x99aabbcc;
	packet->dma_length = bytes;
	packet->path = path;
	stream_begin(&packet->payload, NULL, 0);
	stream_add_memory(&packet->payload, payload, bytes);
}

static void send_write(const struct packet_path *path, uint32_t bytes, uint16_t mtu)
{
	struct run run;

	epoch_enter();
	run_begin(&run);
	build_write(&run, path, PSN, bytes, mtu);
	calls = trains = labels = 0;
	assert_int_equal(link_udp()->send(hca_device(0), &run), LINK_SENT);
	epoch_leave();
}

/* Sends WRITE @number as a requester that has more to send. */
static void send_with_more(struct run *run, const struct packet_path *path, uint32_t number, uint32_t bytes)
{
	epoch_enter();
	build_write(run, path, PSN + number, bytes, MTU);
	run->more = true;
	assert_int_equal(link_udp()->send(hca_device(0), run), LINK_SENT);
	epoch_leave();
}

static void flush(struct run *run)
{
	assert_ptr_equal(run->flushes, link_udp());
	link_udp()->flush(run);
	run_begin(run);
}

struct datagram {
	size_t length;
	union ibv_gid source, destination;
	uint16_t source_port;
	int traffic_class, hop_limit;
	uint32_t flow_label;
};

static void read_control(struct datagram *datagram, struct msghdr *message)
{
	struct in_pktinfo info4;
	struct in6_pktinfo info6;

	for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at)) {
		if (at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_PKTINFO) {
			memcpy(&info4, CMSG_DATA(at), sizeof(info4));
			memcpy(datagram->destination.raw + 12, &info4.ipi_addr, 4);
		} else if (at->cmsg_level == IPPROTO_IPV6 && at->cmsg_type == IPV6_PKTINFO) {
			memcpy(&info6, CMSG_DATA(at), sizeof(info6));
			memcpy(datagram->destination.raw, &info6.ipi6_addr, 16);
		} else if (at->cmsg_level == IPPROTO_IPV6 && at->cmsg_type == IPV6_FLOWINFO) {
			memcpy(&datagram->flow_label, CMSG_DATA(at), sizeof(uint32_t));
			datagram->flow_label = ntohl(datagram->flow_label) & 0xfffff;
		} else if (at->cmsg_type == IP_TOS && at->cmsg_level == IPPROTO_IP) {
			datagram->traffic_class = *CMSG_DATA(at);
		} else {
			memcpy(at->cmsg_type == IPV6_TCLASS ? &datagram->traffic_class : &datagram->hop_limit,
			       CMSG_DATA(at), sizeof(int));
		}
	}
}

static struct datagram receive(int fd)
{
	struct datagram datagram = {.source = gid_from("0.0.0.0"), .destination = gid_from("0.0.0.0")};
	_Alignas(struct cmsghdr) uint8_t control[256];
	struct iovec vector = {buffer, sizeof(buffer)};
	struct sockaddr_in6 from;
	struct msghdr message = {&from, sizeof(from), &vector, 1, control, sizeof(control), 0};
	ssize_t length;

	assert_true(stranger_waits(fd, 5000));
	length = recvmsg(fd, &message, 0);
	assert_true(length > 0);
	datagram.length = (size_t)length;
	datagram.source_port = ntohs(from.sin6_port);
	if (from.sin6_family == AF_INET)
		memcpy(datagram.source.raw + 12, &((struct sockaddr_in *)&from)->sin_addr, 4);
	else
		memcpy(datagram.source.raw, &from.sin6_addr, 16);
	read_control(&datagram, &message);
	return datagram;
}

static uint32_t be32_at(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/*
 * Receives packet @number of a WRITE; checks its contents, and its ICRC with @identification. Returns its addresses and
 * length.
 */
static struct datagram expect_packet(int fd, uint32_t number, uint8_t opcode, const uint8_t *bytes, uint32_t length,
				     uint16_t identification)
{
	bool first = opcode == 0x06 || opcode == 0x0a, last = opcode == 0x08 || opcode == 0x0a;
	struct datagram datagram = receive(fd);
	uint32_t headers = first ? 28 : 12, pad = -length & 3, icrc, expected;

	assert_int_equal(datagram.length, headers + length + pad + 4);
	assert_int_equal(buffer[0], opcode);
	assert_int_equal(buffer[1] >> 4 & 3, pad);
	assert_int_equal(be32_at(buffer + 4), PEER);
	assert_int_equal(be32_at(buffer + 8), (last ? 0x80000000 : 0) | ((PSN + number) & 0xffffff));
	assert_memory_equal(buffer + headers, bytes, length);
	memcpy(&icrc, buffer + datagram.length - 4, 4);
	expected = model_icrc(&datagram.source, &datagram.destination, datagram.source_port, UDP_TEST_PORT,
			      identification, false, buffer, datagram.length - 4);
	assert_int_equal(icrc, expected);
	return datagram;
}

static struct packet_path path_between(const char *source, const char *destination)
{
	return (struct packet_path){
		.source = gid_from(source), .destination = gid_from(destination), .type = IBV_GID_TYPE_ROCE_V2};
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

TEST(a_run_is_cut)
{
	struct packet_path path = path_between("127.0.0.1", "127.0.0.1");

	send_write(&path, 3 * MTU + 91, MTU);
	/* The first packet is longer than the second, which ends its train: the last packet of a train may be shorter. */
	assert_int_equal(calls, 2);
	assert_int_equal(trains, 2);
	expect_packet(v4, 0, 0x06, payload, MTU, 0);
	expect_packet(v4, 1, 0x07, payload + MTU, MTU, 1);
	expect_packet(v4, 2, 0x07, payload + 2 * MTU, MTU, 0);
	expect_packet(v4, 3, 0x08, payload + 3 * MTU, 91, 1);
	send_write(&path, 0, MTU);
	expect_packet(v4, 0, 0x0a, payload, 0, 0);
	assert_int_equal(calls, 1);
	assert_int_equal(trains, 0);
	assert_false(stranger_waits(v4, 20));
}

/*
 * After the first two, trains end at 64 packets and at 65000 bytes; identifications restart after each. A train is a unit
 * of work, which tells the device thread that the program is busy with its queues.
 */
TEST(long_runs)
{
	static const struct {
		uint16_t mtu;
		uint32_t packets, train;
	} cases[] = {{256, 150, 64}, {1024, 130, 62}, {4096, 30, 15}};
	struct packet_path path = path_between("127.0.0.1", "127.0.0.1");

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t mtu = cases[i].mtu, packets = cases[i].packets, full = packets - 1;
		uint32_t works = epoch_this_thread ? epoch_this_thread->works : 0;

		send_write(&path, packets * mtu - 1, (uint16_t)mtu);
		assert_int_equal(trains, 1 + (packets - 2 + cases[i].train - 1) / cases[i].train);
		assert_int_equal(epoch_this_thread->works - works, trains);
		for (uint32_t k = 0; k < packets; k++)
			expect_packet(v4, k,
				      k == 0      ? 0x06
				      : k == full ? 0x08
						  : 0x07,
				      payload + k * mtu, k == full ? mtu - 1 : mtu,
				      (uint16_t)(k < 2 ? k : (k - 2) % cases[i].train));
	}
	assert_false(stranger_waits(v4, 20));
}

TEST(addresses_are_those_of_the_path)
{
	struct packet_path path = path_between("127.0.0.9", "127.1.2.3");
	struct datagram datagram;

	path.traffic_class = 0xb9; /* with ECN bits */
	path.hop_limit = 7;
	path.udp_source_port = 0xc123;
	send_write(&path, 100, MTU);
	datagram = expect_packet(v4, 0, 0x0a, payload, 100, 0);
	assert_memory_equal(&datagram.source, &path.source, 16);
	assert_memory_equal(&datagram.destination, &path.destination, 16);
	assert_int_equal(datagram.traffic_class, 0xb9);
	assert_int_equal(datagram.hop_limit, 7);
	assert_int_equal(datagram.source_port, 0xc123);
	/* Fields that the path leaves unset. */
	path = path_between("127.0.0.9", "127.1.2.3");
	path.flow_label = 0x12345;
	send_write(&path, 100, MTU);
	datagram = expect_packet(v4, 0, 0x0a, payload, 100, 0);
	assert_int_equal(datagram.hop_limit, 64);
	assert_int_equal(datagram.traffic_class, 0);
	/* As the kernel's rdma_flow_label_to_udp_sport(). */
	assert_int_equal(datagram.source_port, 0xc000 | ((0x12345 & 0x3fff) ^ (0x12345 >> 14)));
}

TEST(over_ipv6)
{
	struct packet_path path = path_between("::1", "::1");
	struct datagram datagram;

	if (v6 < 0)
		skip();
	path.traffic_class = 0xb9;
	path.hop_limit = 7;
	send_write(&path, 2 * MTU + 91, MTU);
	assert_int_equal(trains, 1);
	expect_packet(v6, 0, 0x06, payload, MTU, 0);
	expect_packet(v6, 1, 0x07, payload + MTU, MTU, 0);
	datagram = expect_packet(v6, 2, 0x08, payload + 2 * MTU, 91, 0);
	assert_memory_equal(&datagram.source, &path.source, 16);
	assert_int_equal(datagram.traffic_class, 0xb9);
	assert_int_equal(datagram.hop_limit, 7);
}

/*
 * IPv6 packets have the flow label of the path, also in a train; if the kernel refuses it, the packets are sent
 * without.
 */
TEST(flow_labels)
{
	struct packet_path path = path_between("::1", "::1");

	if (v6 < 0)
		skip();
	path.flow_label = 0x54321;
	path.traffic_class = 0xb9;
	for (int refused = 0; refused < 2; refused++) {
		refuse_labels = refused ? EINVAL : 0;
		send_write(&path, 2 * MTU, MTU);
		for (uint32_t i = 0; i < 2; i++) {
			struct datagram datagram = expect_packet(v6, i, i ? 0x08 : 0x06, payload + i * MTU, MTU, 0);

			assert_int_equal(datagram.flow_label == 0x54321, !refused);
			assert_int_equal(datagram.traffic_class, 0xb9);
			assert_int_equal(datagram.source_port, 0xc000 | ((0x54321 & 0x3fff) ^ (0x54321 >> 14)));
		}
	}
	/* Not requested a second time. */
	assert_int_equal(labels, 1);
	send_write(&path, 2 * MTU, MTU);
	assert_int_equal(labels, 0);
	expect_packet(v6, 0, 0x06, payload, MTU, 0);
	expect_packet(v6, 1, 0x08, payload + MTU, MTU, 0);
	refuse_labels = 0;
	/* Without a label there is nothing to refuse. */
	path.flow_label = 0;
	send_write(&path, 8, MTU);
	assert_int_equal(labels, 0);
	expect_packet(v6, 0, 0x0a, payload, 8, 0);
}

/* GIDs that no interface has use 127.83.0.0/16, with the number of the entry. */
TEST(gids_that_are_no_addresses)
{
	size_t count;
	const struct hca_gid *gids = hca_gids(hca_device(0), &count);
	struct packet_path path = {.source = gids[0].gid, .destination = gids[0].gid, .type = IBV_GID_TYPE_ROCE_V1};
	union ibv_gid inner = gid_from("127.83.0.1");
	struct datagram datagram;

	assert_int_equal(gids[0].gid.raw[0], 0xfe);
	send_write(&path, 100, MTU);
	datagram = expect_packet(v4, 0, 0x0a, payload, 100, 0);
	assert_memory_equal(&datagram.source, &inner, 16);
	assert_memory_equal(&datagram.destination, &inner, 16);
}

TEST(frames_go_as_they_are)
{
	struct packet_path path = path_between("127.0.0.1", "127.0.0.1");
	uint8_t frame[16] = {0x04, 0x40, 0xff, 0xff, 0, 0, 0x50, 0x22, 0, 0, 0, 1};
	struct datagram datagram;
	uint32_t icrc;

	path.udp_source_port = 0xc007;
	icrc = model_icrc(&path.source, &path.destination, 0xc007, UDP_TEST_PORT, 0, false, frame, 12);
	for (uint32_t fault = 0; fault < 2; fault++) {
		icrc ^= fault;
		memcpy(frame + 12, &icrc, 4);
		epoch_enter();
		assert_int_equal(link_udp()->send_frame(hca_device(0), &path, frame, sizeof(frame)), LINK_SENT);
		epoch_leave();
		datagram = receive(v4);
		assert_int_equal(datagram.length, sizeof(frame));
		assert_memory_equal(buffer, frame, sizeof(frame));
		assert_int_equal(datagram.source_port, 0xc007);
	}
}

/* Single packets have identification 0, so the ICRCs of a refused train are recomputed. */
TEST(trains_that_are_refused)
{
	struct packet_path path = path_between("127.0.0.1", "127.0.0.1");
	struct explain_record record;

	path.udp_source_port = 0xc555;
	refuse_trains = EIO;
	for (int again = 0; again < 2; again++) {
		send_write(&path, 5 * MTU - 7, MTU);
		assert_int_equal(trains, again ? 0 : 1);
		for (uint32_t k = 0; k < 5; k++)
			expect_packet(v4, k,
				      k == 0   ? 0x06
				      : k == 4 ? 0x08
					       : 0x07,
				      payload + k * MTU, k == 4 ? MTU - 7 : MTU, 0);
	}
	refuse_trains = 0;
	assert_true(udp_explained(RULE_UDP_NO_TRAINS, &record));
	assert_int_equal(record.args[0], EIO);
	/* Another socket tries trains again. */
	path.udp_source_port = 0xc556;
	send_write(&path, 5 * MTU, MTU);
	assert_int_equal(trains, 2);
	for (uint32_t k = 0; k < 5; k++)
		receive(v4);
}

TEST(unsendable_packets_are_lost)
{
	static const struct {
		const char *source, *destination;
		int error;
		enum explain_rule rule;
		uint64_t figure[2]; /* which figure, and its value */
	} cases[] = {
		{"127.0.0.1", "10.11.12.13", 0, RULE_UDP_NOT_SENT, {3, ENETUNREACH}},
		{"127.0.0.1", "::1", 0, RULE_UDP_FAMILIES, {1, 1}},
		{"127.0.0.1", "127.0.0.1", EAGAIN, RULE_UDP_NO_ROOM, {0, PEER}},
		{"127.0.0.1", "127.0.0.1", EMSGSIZE, RULE_UDP_TOO_LONG, {1, 28 + 200 + 4}},
	};
	struct explain_record record;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct packet_path path = path_between(cases[i].source, cases[i].destination);

		refuse_all = cases[i].error;
		send_write(&path, 200, MTU);
		refuse_all = 0;
		assert_true(udp_explained(cases[i].rule, &record));
		assert_int_equal(record.args[cases[i].figure[0]], cases[i].figure[1]);
	}
	assert_false(stranger_waits(v4, 20));
}

/* The error of an earlier datagram, which ICMP has reported, does not lose the next one (udp(7)). */
TEST(late_errors_lose_nothing)
{
	static const int late[] = {ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, EHOSTDOWN, ENOPROTOOPT, EPROTO};
	struct packet_path path = path_between("127.0.0.1", "127.0.0.1");

	for (size_t i = 0; i < sizeof(late) / sizeof(late[0]); i++) {
		refuse_next = late[i];
		send_write(&path, 200, MTU);
		expect_packet(v4, 0, 0x0a, payload, 200, 0);
		assert_int_equal(refuse_next, 0);
	}
	refuse_next = EPERM;
	send_write(&path, 200, MTU);
	assert_false(stranger_waits(v4, 20));
}

static uint32_t times_explained(enum explain_rule rule)
{
	struct explain_record record;
	uint32_t count = 0;

	for (uint64_t before = 0; explain_previous(hca_device(0), 0, before, &record); before = record.serial)
		count += record.rule == rule;
	return count;
}

/*
 * A packet that is too long for the interface, according to the kernel, is sent in fragments: over IPv4 and IPv6, alone
 * and in trains.
 */
TEST(longer_than_the_interface_takes)
{
	static const char *const address[2] = {"127.0.0.1", "::1"};
	uint64_t before = counter_read(hca_device(0), COUNTER_UDP_FRAGMENTED);
	uint64_t errors = counter_read(hca_device(0), COUNTER_UDP_SEND_ERRORS);
	struct packet_path again = path_between("127.0.0.1", "127.0.0.1");

	udp_set_mtu(1500);
	for (int i = 0; i < 2; i++) {
		struct packet_path path = path_between(address[i], address[i]);

		send_write(&path, 2 * 4096 + 904, 4096);
		/* The first two are too long, the last one is not. */
		expect_packet(i ? v6 : v4, 0, 0x06, payload, 4096, 0);
		expect_packet(i ? v6 : v4, 1, 0x07, payload + 4096, 4096, 0);
		expect_packet(i ? v6 : v4, 2, 0x08, payload + 8192, 904, 0);
		send_write(&path, 2000, 2048);
		expect_packet(i ? v6 : v4, 0, 0x0a, payload, 2000, 0);
	}
	udp_set_mtu(65536);
	assert_int_equal(counter_read(hca_device(0), COUNTER_UDP_FRAGMENTED) - before, 6);
	assert_int_equal(counter_read(hca_device(0), COUNTER_UDP_SEND_ERRORS), errors);
	assert_int_equal(times_explained(RULE_UDP_TOO_LONG), 1);
	/* Once it fits, nothing is fragmented any more. */
	before = counter_read(hca_device(0), COUNTER_UDP_FRAGMENTED);
	send_write(&again, 2000, 2048);
	expect_packet(v4, 0, 0x0a, payload, 2000, 0);
	assert_int_equal(counter_read(hca_device(0), COUNTER_UDP_FRAGMENTED), before);
}

/* ---- several messages -------------------------------------------------------------------------------------------- */

TEST(messages_leave_together)
{
	struct packet_path path = path_between("127.0.0.1", "127.0.0.1");
	struct run run;

	run_begin(&run);
	calls = trains = 0;
	for (uint32_t i = 0; i < 5; i++)
		send_with_more(&run, &path, i, 8);
	assert_false(stranger_waits(v4, 20));
	flush(&run);
	assert_int_equal(calls, 1);
	assert_int_equal(trains, 1);
	for (uint32_t i = 0; i < 5; i++)
		expect_packet(v4, i, 0x0a, payload, 8, (uint16_t)i);
	/* At most 64 packets, as within a message. */
	for (uint32_t i = 0; i < 66; i++)
		send_with_more(&run, &path, i, 8);
	for (uint32_t i = 0; i < 64; i++)
		expect_packet(v4, i, 0x0a, payload, 8, (uint16_t)i);
	assert_false(stranger_waits(v4, 20));
	flush(&run);
	for (uint32_t i = 64; i < 66; i++)
		expect_packet(v4, i, 0x0a, payload, 8, (uint16_t)(i - 64));
	/* The last one. */
	send_with_more(&run, &path, 0, 8);
	send_write(&path, 8, MTU);
	assert_int_equal(calls, 1);
	expect_packet(v4, 0, 0x0a, payload, 8, 0);
	expect_packet(v4, 0, 0x0a, payload, 8, 1);
	/* Then nothing is left to flush. */
	flush(&run);
	assert_false(stranger_waits(v4, 20));
}

/* Only the last packet of a train may be shorter, and none longer. */
TEST(messages_of_other_lengths)
{
	struct packet_path path = path_between("127.0.0.1", "127.0.0.1");
	struct run run;

	run_begin(&run);
	send_with_more(&run, &path, 0, 80);
	send_with_more(&run, &path, 1, 8);
	expect_packet(v4, 0, 0x0a, payload, 80, 0);
	expect_packet(v4, 1, 0x0a, payload, 8, 1);
	send_with_more(&run, &path, 2, 8);
	send_with_more(&run, &path, 3, 80);
	expect_packet(v4, 2, 0x0a, payload, 8, 0);
	assert_false(stranger_waits(v4, 20));
	flush(&run);
	expect_packet(v4, 3, 0x0a, payload, 80, 0);
	/* A message of several packets: its last ones are shorter than its first one, which has a longer header. */
	send_with_more(&run, &path, 0, 8);
	send_with_more(&run, &path, 0, 3 * MTU);
	expect_packet(v4, 0, 0x0a, payload, 8, 0);
	expect_packet(v4, 0, 0x06, payload, MTU, 0);
	expect_packet(v4, 1, 0x07, payload + MTU, MTU, 1);
	assert_false(stranger_waits(v4, 20));
	flush(&run);
	expect_packet(v4, 2, 0x08, payload + 2 * MTU, MTU, 0);
	assert_false(stranger_waits(v4, 20));
}

/* Whatever leaves by the same socket takes the packets kept there along, or leaves after them. */
TEST(nothing_overtakes_a_message)
{
	struct packet_path path = path_between("127.0.0.1", "127.0.0.1"),
			   other = path_between("127.0.0.1", "127.0.0.2");
	uint8_t frame[16] = {0x04, 0x40, 0xff, 0xff, 0, 0, 0x50, 0x22, 0, 0, 0, 1};
	struct run run;

	path.udp_source_port = other.udp_source_port = 0xc5a1;
	run_begin(&run);
	send_with_more(&run, &path, 0, 8);
	send_write(&other, 8, MTU);
	assert_int_equal(calls, 2);
	expect_packet(v4, 0, 0x0a, payload, 8, 0);
	expect_packet(v4, 0, 0x0a, payload, 8, 0);
	flush(&run);
	send_with_more(&run, &path, 7, 8);
	epoch_enter();
	link_udp()->send_frame(hca_device(0), &path, frame, sizeof(frame));
	epoch_leave();
	expect_packet(v4, 7, 0x0a, payload, 8, 0);
	assert_int_equal(receive(v4).length, sizeof(frame));
	flush(&run);
	/* A kernel that refuses trains gets packet after packet. */
	refuse_trains = EIO;
	for (uint32_t i = 0; i < 3; i++)
		send_with_more(&run, &path, i, 8);
	flush(&run);
	for (uint32_t i = 0; i < 3; i++)
		expect_packet(v4, i, 0x0a, payload, 8, 0);
	refuse_trains = 0;
	send_with_more(&run, &path, 3, 8);
	expect_packet(v4, 3, 0x0a, payload, 8, 0);
	assert_null(run.flushes);
}

/* ---- messages that wait for others ------------------------------------------------------------------------------- */

/* Sends WRITE @number of a requester that has nothing else to send now, but whose messages are in flight. */
static void send_in_stream(const struct packet_path *path, uint32_t number, uint32_t bytes)
{
	struct run run;

	run_begin(&run);
	run.streams = true;
	send_with_more(&run, path, number, bytes);
	if (run.flushes)
		link_udp()->flush(&run);
}

static void expect_stream(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		expect_packet(v4, i, 0x0a, payload, 8, (uint16_t)i);
	assert_false(stranger_waits(v4, 20));
	assert_int_equal(udp_holding(), 0);
}

/* They wait until the program polls without finding anything, or sleeps, or the process ends, or for a millisecond. */
TEST(a_stream_waits)
{
	static const enum { POLLS, SLEEPS, ENDS, PAUSES, ALL } cases[] = {POLLS, SLEEPS, ENDS, PAUSES};
	struct packet_path path = path_between("127.0.0.1", "127.0.0.1");

	for (uint32_t i = 0; i < ALL; i++) {
		freeze();
		/* Otherwise the device thread may poll first. */
		assert_true(progress_begin_polling_soon());
		path.udp_source_port = (uint16_t)(0xc700 + i);
		calls = 0;
		for (uint32_t k = 0; k < 5; k++)
			send_in_stream(&path, k, 8);
		assert_false(stranger_waits(v4, 20));
		assert_int_not_equal(udp_holding(), 0);
		if (cases[i] == PAUSES)
			thaw();
		else if (cases[i] == ENDS)
			udp_let_go();
		if (cases[i] >= ENDS)
			expect_stream(5);
		progress_end_polling();
		if (cases[i] == POLLS)
			assert_false(progress_poll());
		else if (cases[i] == SLEEPS)
			progress_before_sleep();
		if (cases[i] < ENDS)
			expect_stream(5);
		thaw();
		assert_int_equal(calls, 1);
	}
}

/* A program that spins on memory does not poll: after a stream has waited in vain, fewer and fewer do. */
TEST(a_stream_in_vain)
{
	struct packet_path path = path_between("127.0.0.1", "127.0.0.1");

	path.udp_source_port = 0xc708;
	for (uint32_t skip = 0; skip <= 8; skip = skip ? 2 * skip : 2) {
		freeze();
		assert_true(progress_begin_polling_soon());
		for (uint32_t i = 0; i < skip; i++) {
			send_in_stream(&path, 0, 8);
			expect_packet(v4, 0, 0x0a, payload, 8, 0);
		}
		send_in_stream(&path, 0, 8);
		assert_false(stranger_waits(v4, 20));
		/* The timer expires. */
		thaw();
		expect_stream(1);
		progress_end_polling();
	}
}

TEST(a_stream_leaves)
{
	struct packet_path path = path_between("127.0.0.1", "127.0.0.1"), other;
	struct datagram datagram;
	struct run run;

	freeze();
	assert_true(progress_begin_polling_soon());
	path.udp_source_port = 0xc711;
	/* A full train. */
	for (uint32_t i = 0; i < 64; i++)
		send_in_stream(&path, i, 8);
	expect_stream(64);
	/* A shorter message ends it, a longer one begins another. */
	send_in_stream(&path, 0, 80);
	send_in_stream(&path, 1, 8);
	expect_packet(v4, 0, 0x0a, payload, 80, 0);
	expect_packet(v4, 1, 0x0a, payload, 8, 1);
	assert_int_equal(udp_holding(), 0);
	send_in_stream(&path, 0, 8);
	send_in_stream(&path, 1, 80);
	expect_packet(v4, 0, 0x0a, payload, 8, 0);
	assert_false(stranger_waits(v4, 20));
	/* One that does not wait takes the others along. */
	send_write(&path, 80, MTU);
	expect_packet(v4, 1, 0x0a, payload, 80, 0);
	expect_packet(v4, 0, 0x0a, payload, 80, 1);
	assert_int_equal(udp_holding(), 0);
	/* Nor if its requester cannot go on before they are answered. */
	send_in_stream(&path, 0, 8);
	run_begin(&run);
	run.streams = true;
	send_with_more(&run, &path, 1, 8);
	assert_int_not_equal(udp_holding(), 0);
	run.streams = false;
	link_udp()->flush(&run);
	expect_stream(2);
	/* Messages of another flow, of which some wait then. */
	other = path;
	other.udp_source_port = 0xc712;
	for (uint32_t i = 0; i < 4; i++) {
		send_in_stream(i % 2 ? &other : &path, i, 8);
		if (!i)
			continue;
		datagram = expect_packet(v4, i - 1, 0x0a, payload, 8, 0);
		assert_int_equal(datagram.source_port, i % 2 ? 0xc711 : 0xc712);
	}
	assert_false(stranger_waits(v4, 20));
	/* Another address. */
	other = path_between("127.0.0.1", "127.0.0.2");
	other.udp_source_port = 0xc712;
	send_in_stream(&other, 5, 8);
	expect_packet(v4, 3, 0x0a, payload, 8, 0);
	udp_let_go();
	expect_packet(v4, 5, 0x0a, payload, 8, 0);
	progress_end_polling();
	thaw();
	assert_false(stranger_waits(v4, 20));
}

/* ---- acknowledgements -------------------------------------------------------------------------------------------- */

static void send_acknowledgement(const struct packet_path *path, uint32_t psn, uint8_t syndrome)
{
	struct run run;
	struct packet *packet;

	epoch_enter();
	run_begin(&run);
	packet = run_slot(&run);
	memset(packet, 0, offsetof(struct packet, own_path));
	packet->transport = IBV_QPT_RC;
	packet->message = MESSAGE_ACKNOWLEDGE;
	packet->place = PLACE_ONLY;
	packet->destination_qpn = PEER;
	packet->source_qpn = QPN;
	packet->psn = psn;
	packet->mtu = MTU;
	packet->count = 1;
	packet->syndrome = syndrome;
	packet->path = path;
	packet->payload.length = 0;
	assert_int_equal(link_udp()->send(hca_device(0), &run), LINK_SENT);
	epoch_leave();
}

static void expect_acknowledgement(uint32_t psn, uint16_t identification)
{
	struct datagram datagram = receive(v4);
	uint32_t icrc, expected = model_icrc(&datagram.source, &datagram.destination, datagram.source_port,
					     UDP_TEST_PORT, identification, false, buffer, 16);

	assert_int_equal(datagram.length, 20);
	assert_int_equal(buffer[0], 0x11);
	assert_int_equal(be32_at(buffer + 8), psn);
	memcpy(&icrc, buffer + 16, 4);
	assert_int_equal(icrc, expected);
}

/* As a program that answers each message at once. */
static struct packet_path answer_often(uint16_t port)
{
	struct packet_path path = path_between("127.0.0.1", "127.0.0.1");

	freeze();
	path.udp_source_port = port;
	for (uint32_t i = 0; i < 4; i++) {
		send_acknowledgement(&path, i, AETH_NO_CREDITS);
		send_write(&path, 8, MTU);
		expect_acknowledgement(i, 0);
		expect_packet(v4, 0, 0x0a, payload, 8, 0);
	}
	return path;
}

TEST(an_answer_carries_the_acknowledgement)
{
	struct packet_path path = answer_often(0xc601);

	for (uint32_t i = 10; i < 20; i++) {
		send_acknowledgement(&path, i, AETH_NO_CREDITS);
		assert_int_not_equal(udp_holding(), 0);
		assert_false(stranger_waits(v4, 0));
		send_write(&path, 8, MTU);
		assert_int_equal(calls, 1);
		expect_packet(v4, 0, 0x0a, payload, 8, 0);
		expect_acknowledgement(i, 1);
	}
	/* A run of several trains: the acknowledgement is near its beginning. */
	send_acknowledgement(&path, 20, AETH_NO_CREDITS);
	send_write(&path, 64 * MTU, MTU);
	for (uint32_t i = 0; i < 65; i++) {
		receive(v4);
		if (buffer[0] == 0x11)
			assert_in_range(i, 0, 2);
	}
	thaw();
}

/* It never waits for long, nor for a program that no longer answers. */
TEST(an_acknowledgement_without_an_answer)
{
	struct packet_path path = answer_often(0xc602);

	send_acknowledgement(&path, 10, AETH_NO_CREDITS);
	assert_false(stranger_waits(v4, 0));
	thaw();
	expect_acknowledgement(10, 0);
	freeze();
	send_acknowledgement(&path, 11, AETH_NO_CREDITS);
	assert_int_equal(udp_holding(), 0);
	expect_acknowledgement(11, 0);
	thaw();
}

/* All later packets are sent after it, and NAKs do not wait. */
TEST(nothing_overtakes_an_acknowledgement)
{
	struct packet_path path = answer_often(0xc603), other = path;

	other.udp_source_port = 0xc604;
	send_acknowledgement(&path, 10, AETH_NO_CREDITS);
	send_write(&other, 8, MTU);
	expect_acknowledgement(10, 0);
	expect_packet(v4, 0, 0x0a, payload, 8, 0);
	/* From the same socket to another address. */
	path = answer_often(0xc605);
	other = path_between("127.0.0.1", "127.0.0.2");
	other.udp_source_port = 0xc605;
	send_acknowledgement(&path, 11, AETH_NO_CREDITS);
	send_write(&other, 8, MTU);
	expect_acknowledgement(11, 0);
	expect_packet(v4, 0, 0x0a, payload, 8, 0);
	/* A train that ends with a shorter packet. */
	path = answer_often(0xc606);
	send_acknowledgement(&path, 12, AETH_NO_CREDITS);
	send_write(&path, 2 * MTU - 8, MTU);
	expect_acknowledgement(12, 0);
	expect_packet(v4, 0, 0x06, payload, MTU, 0);
	expect_packet(v4, 1, 0x08, payload + MTU, MTU - 8, 1);
	path = answer_often(0xc607);
	send_acknowledgement(&path, 13, AETH_NAK);
	assert_int_equal(udp_holding(), 0);
	expect_acknowledgement(13, 0);
	/* A process that ends; a packet of another link. */
	path = answer_often(0xc608);
	send_acknowledgement(&path, 14, AETH_NO_CREDITS);
	assert_int_not_equal(udp_holding(), 0);
	udp_let_go();
	assert_int_equal(udp_holding(), 0);
	expect_acknowledgement(14, 0);
	/* Packets that are kept: the acknowledgement ends their train. */
	struct run run;

	path = answer_often(0xc60a);
	run_begin(&run);
	for (uint32_t i = 0; i < 3; i++)
		send_with_more(&run, &path, i, 8);
	send_acknowledgement(&path, 21, AETH_NO_CREDITS);
	assert_int_equal(udp_holding(), 0);
	for (uint32_t i = 0; i < 3; i++)
		expect_packet(v4, i, 0x0a, payload, 8, (uint16_t)i);
	expect_acknowledgement(21, 3);
	flush(&run);
	/* Messages of a stream: they do not wait with it. */
	path = answer_often(0xc60b);
	send_acknowledgement(&path, 22, AETH_NO_CREDITS);
	assert_int_not_equal(udp_holding(), 0);
	send_in_stream(&path, 0, 8);
	assert_int_equal(udp_holding(), 0);
	expect_packet(v4, 0, 0x0a, payload, 8, 0);
	expect_acknowledgement(22, 1);
	path = answer_often(0xc60c);
	assert_true(progress_begin_polling_soon());
	send_in_stream(&path, 0, 8);
	send_acknowledgement(&path, 23, AETH_NO_CREDITS);
	expect_packet(v4, 0, 0x0a, payload, 8, 0);
	expect_acknowledgement(23, 1);
	assert_int_equal(udp_holding(), 0);
	progress_end_polling();
	/* A kernel that refuses trains. */
	path = answer_often(0xc609);
	refuse_trains = EIO;
	for (uint32_t i = 15; i < 17; i++) {
		send_acknowledgement(&path, i, AETH_NO_CREDITS);
		assert_int_equal(udp_holding() != 0, i == 15);
		send_write(&path, 8, MTU);
		expect_acknowledgement(i, 0);
		expect_packet(v4, 0, 0x0a, payload, 8, 0);
	}
	refuse_trains = 0;
	thaw();
}

/* ---- sockets ----------------------------------------------------------------------------------------------------- */

TEST(a_port_that_a_program_has)
{
	struct packet_path path = path_between("127.0.0.1", "127.0.0.1");
	int program = stranger_open(AF_INET, 0xd111);
	struct datagram datagram;

	path.udp_source_port = 0xd111;
	send_write(&path, 100, MTU);
	/* The ICRC covers the port that is used instead. */
	datagram = expect_packet(v4, 0, 0x0a, payload, 100, 0);
	assert_int_not_equal(datagram.source_port, 0xd111);
	close(program);
}

static void socket_release(struct udp_socket *socket)
{
	pthread_mutex_unlock(&socket->lock);
	udp_socket_forget(socket, 1);
}

static int count_sockets(void)
{
	struct sockaddr_in6 name;
	socklen_t length;
	int count = 0;

	for (int fd = 0; fd < 8192; fd++) {
		length = sizeof(name);
		if (!getsockname(fd, (struct sockaddr *)&name, &length) && name.sin6_family == AF_INET)
			count += ntohs(name.sin6_port) >= 0xc000;
	}
	return count;
}

TEST(sockets_are_few)
{
	struct packet_path path = path_between("127.0.0.1", "127.0.0.1");
	struct datagram datagram;

	for (uint16_t i = 0; i < 200; i++) {
		path.udp_source_port = (uint16_t)(0xe000 + i);
		send_write(&path, 8, MTU);
		datagram = expect_packet(v4, 0, 0x0a, payload, 8, 0);
		assert_int_equal(datagram.source_port, 0xe000 + i);
	}
	assert_in_range(count_sockets(), 2, 64);
	/* All are busy: the 65th request fails until one of them is released. */
	struct udp_sockets *sockets = the_registry.udp_sockets;
	struct udp_socket *busy[64];

	for (uint16_t i = 0; i < 64; i++)
		assert_non_null(busy[i] = udp_socket_get(sockets, false, (uint16_t)(0xf000 + i), true));
	assert_null(udp_socket_get(sockets, false, 0xf100, true));
	assert_int_equal(errno, EMFILE);
	socket_release(busy[63]);
	assert_non_null(busy[63] = udp_socket_get(sockets, false, 0xf100, true));
	for (int i = 0; i < 64; i++)
		socket_release(busy[i]);
}

/* Flows that do not request a specific port share the existing sockets, and each keeps the one it got. */
TEST(many_flows)
{
	struct packet_path path = path_between("127.0.0.1", "127.0.0.1");
	uint16_t first[200];

	for (int round = 0; round < 3; round++)
		for (uint16_t i = 0; i < 200; i++) {
			struct datagram datagram;

			path.flow_label = i;
			send_write(&path, 8, MTU);
			datagram = expect_packet(v4, 0, 0x0a, payload, 8, 0);
			if (round)
				assert_int_equal(datagram.source_port, first[i]);
			first[i] = datagram.source_port;
		}
	assert_in_range(count_sockets(), 2, 64);
	/* Flows that do are still served. */
	path.udp_source_port = 0xe123;
	send_write(&path, 8, MTU);
	assert_int_equal(expect_packet(v4, 0, 0x0a, payload, 8, 0).source_port, 0xe123);
}

/* The test has the port: the device finds out which process has it, and reports it. */
TEST(the_port_is_taken)
{
	struct explain_record record;

	assert_true(udp_explained(RULE_UDP_PORT_TAKEN, &record));
	assert_int_equal(record.args[0], UDP_TEST_PORT);
	assert_int_equal(record.args[1], getpid());
	assert_memory_equal(&record.args[2], "unit-udp", 8);
}

int main(void)
{
	int on = 1, bytes = 4 << 20;

	udp_enter_namespace();
	v4 = stranger_open(AF_INET, UDP_TEST_PORT);
	if (setsockopt(v4, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(v4, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	setsockopt(v4, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
	setsockopt(v4, IPPROTO_IP, IP_RECVTOS, &on, sizeof(on));
	setsockopt(v4, IPPROTO_IP, IP_RECVTTL, &on, sizeof(on));
	v6 = socket(AF_INET6, SOCK_DGRAM, 0);
	if (v6 >= 0) {
		const struct sockaddr_in6 name = {.sin6_family = AF_INET6, .sin6_port = htons(UDP_TEST_PORT)};

		setsockopt(v6, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
		setsockopt(v6, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));
		setsockopt(v6, IPPROTO_IPV6, IPV6_RECVTCLASS, &on, sizeof(on));
		setsockopt(v6, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, &on, sizeof(on));
		setsockopt(v6, IPPROTO_IPV6, IPV6_FLOWINFO, &on, sizeof(on));
		if (bind(v6, (const struct sockaddr *)&name, sizeof(name)))
			v6 = -1;
	}
	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 7 + i / 251);
	return run_cases();
}
