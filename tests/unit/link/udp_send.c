/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that the udp link sends: how a run is cut, that every packet has the requested addresses and an ICRC that matches
 * the datagram as received, and which sockets send them. roce.c tests headers.
 */
#include "test_case.h"

#include "../support/udp_sender.h"
#include "kernel_has.h"

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

	if (v6 < 0 || !kernel_has_flow_labels())
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
	char name[8] = "";
	FILE *comm = fopen("/proc/self/comm", "re"); /* an emulator has its own name there */

	assert_non_null(comm);
	assert_int_equal(fread(name, 1, sizeof(name), comm), sizeof(name));
	fclose(comm);
	assert_true(udp_explained(RULE_UDP_PORT_TAKEN, &record));
	assert_int_equal(record.args[0], UDP_TEST_PORT);
	assert_int_equal(record.args[1], getpid());
	assert_memory_equal(&record.args[2], name, sizeof(name));
}

int main(void)
{
	udp_sender_open();
	return run_cases();
}
