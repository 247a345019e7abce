/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arrivals at the RoCE port: a stranger sends datagrams to a live QP. Valid packets, alone or as trains, change the
 * memory they name, each one once; all others change nothing, end nothing, and are counted.
 */
#include "test_case.h"

#include <sys/wait.h>

#include "link/udp/udp.h"
#include "progress/pollers.h"
#include "progress/progress.h"
#include "../support/udp_stranger.h"

static __thread uint32_t calls; /* of recvmsg(2), by this thread */

ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
	calls++;
	return __real_recvmsg(fd, message, flags);
}

/* ---- tests --------------------------------------------------------------------------------------------------------- */

TEST(a_write_arrives)
{
	uint8_t packet[MOST_PACKET];
	size_t length = write_packet(packet, 0x0a, 0, 0, 101, 101, 0);

	send_bytes(packet, length, 0);
	expect_written(0, 0, 101);
	wait_for(1);
	expect_no_other_change();
}

/* READs that are in the socket together are answered together: one more than permitted is refused (IBTA 9.7.4.1.5). */
TEST(more_reads_than_granted)
{
	const uint32_t granted = qp.qp->attr.max_dest_rd_atomic;
	uint8_t packet[MOST_PACKET];

	assert_true(progress_begin_polling_soon());
	for (uint32_t i = 0; i <= granted; i++)
		send_bytes(packet, write_packet(packet, 0x0c, i, 0, 0, 0, 0), 0);
	progress_poll_all();
	progress_end_polling();
	wait_for(granted);
	assert_int_equal(hca_qp_state(qp.qp), IBV_QPS_ERR);
	expect_no_other_change();
}

/*
 * A poll takes one short datagram, as looking for another costs a system call; if two polls in a row have found one, the
 * next takes what is there.
 */
TEST(many_datagrams)
{
	static const uint64_t arrived[] = {1, 2, 8};
	uint8_t packet[MOST_PACKET];
	uint64_t before;

	assert_true(progress_begin_polling_soon());
	while (progress_poll_all())
		;
	before = counted(COUNTER_UDP_PACKETS_RECEIVED);
	for (uint32_t i = 0; i < 8; i++) {
		send_bytes(packet, write_packet(packet, 0x0a, i, i * 8, 8, 8, 0), 0);
		expect_written(i, i * 8, 8);
	}
	for (size_t i = 0; i < sizeof(arrived) / sizeof(arrived[0]); i++) {
		progress_poll_all();
		assert_int_equal(counted(COUNTER_UDP_PACKETS_RECEIVED) - before, arrived[i]);
	}
	progress_end_polling();
	wait_for(8);
	expect_no_other_change();
}

/*
 * A program that polls for another link does not pay a system call for each poll, though it still finds what arrives: within
 * 3 us, a call is 1.
 */
TEST(quiet_sockets)
{
	const uint64_t polled_ns = 5000000, apart_ns = 3000;
	uint8_t packet[MOST_PACKET];
	uint64_t start_ns, now_ns;
	uint32_t before;

	usleep(20000);
	before = calls;
	start_ns = clock_now_ns();
	do {
		progress_poll();
		now_ns = clock_now_ns();
		/* The device thread may be polling. */
	} while (now_ns - start_ns < polled_ns || (calls == before && now_ns - start_ns < 1000 * polled_ns));
	assert_int_not_equal(calls, before);
	assert_true(calls - before <= 2 + (now_ns - start_ns) / apart_ns);

	send_bytes(packet, write_packet(packet, 0x0a, 0, 0, 8, 8, 0), 0);
	expect_written(0, 0, 8);
	for (start_ns = clock_now_ns(); clock_now_ns() - start_ns < polled_ns;)
		progress_poll();
	wait_for(1);
	expect_no_other_change();
}

/* Sends the whole message as one datagram; FIRST is longer, so it is a datagram of its own. */
static void send_train(uint32_t packets, uint32_t last)
{
	static uint8_t train[64 * MOST_PACKET];
	uint32_t whole = (packets - 1) * MTU + last;
	size_t length;

	length = write_packet(train, 0x06, 0, 0, MTU, whole, 0);
	send_bytes(train, length, 0);
	length = 0;
	for (uint32_t i = 1; i < packets; i++)
		length += write_packet(train + length, i == packets - 1 ? 0x08 : 0x07, i, 0,
				       i == packets - 1 ? last : MTU, 0, (uint16_t)(i - 1));
	send_bytes(train, length, 12 + MTU + 4);
}

TEST(a_train_arrives)
{
	uint64_t trains = counted(COUNTER_UDP_TRAINS_RECEIVED);

	send_train(40, 77);
	for (uint32_t i = 0; i < 40; i++)
		expect_written(i, i * MTU, i == 39 ? 77 : MTU);
	wait_for(40);
	expect_no_other_change();
	assert_int_equal(counted(COUNTER_UDP_TRAINS_RECEIVED) - trains, 1);
}

static uint8_t next_opcode(void)
{
	const struct mlx5_err_cqe *cqe = NULL;

	for (int i = 0; i < 5000 && !(cqe = raw_cq_poll(&cq)); i++)
		usleep(1000);
	assert_non_null(cqe);
	return cqe->op_own >> 4;
}

/*
 * A program's reply is followed by the acknowledgement of the message that it answers; the acknowledgement must be
 * handled first.
 */
TEST(an_answer_with_its_acknowledgement)
{
	uint8_t train[2 * MOST_PACKET];
	size_t request = 12 + 8 + 4, length = request;

	put_send(&device, &qp, 0, 8);
	ring(&qp);
	post_receive(&device, &qp, TARGET, 8);
	write_packet(train, 0x04, 0, 0, 8, 0, 0); /* SEND only */
	expect_written(0, 0, 8);
	put32(train + length, 0x11u << 24 | 0x400000 | 0xffff);
	put32(train + length + 4, qp.qp->number);
	put32(train + length + 8, SQ_START_PSN);
	put32(train + length + 12, 0x1f000001);
	put_icrc(train + length, 20, 1);
	send_bytes(train, length + 20, (uint16_t)request);
	assert_int_equal(next_opcode(), MLX5_CQE_REQ);
	assert_int_equal(next_opcode(), MLX5_CQE_RESP_SEND);
	expect_no_other_change();
}

/* Requests of a stream wait for others, but not beyond the end of the connection: the next one may have the same numbers. */
TEST(a_stream_at_the_end)
{
	assert_true(progress_begin_polling_soon());
	for (int i = 0; i < 6; i++) {
		put_send(&device, &qp, 0, 8);
		ring(&qp);
	}
	assert_int_not_equal(udp_holding(), 0);
	assert_int_equal(hca_qp_modify(qp.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE), 0);
	assert_int_equal(udp_holding(), 0);
	progress_end_polling();
}

/* One packet of a train may be invalid: those before it count, those after it are dropped until they are sent again. */
TEST(a_bad_packet_in_a_train)
{
	static uint8_t train[8 * MOST_PACKET];
	uint64_t bad = counted(COUNTER_UDP_BAD_ICRC);
	size_t length, segment = 12 + MTU + 4;

	send_bytes(train, write_packet(train, 0x06, 0, 0, MTU, 8 * MTU, 0), 0);
	length = 0;
	for (uint32_t i = 1; i < 8; i++)
		length += write_packet(train + length, i == 7 ? 0x08 : 0x07, i, 0, MTU, 0, (uint16_t)(i - 1));
	train[4 * segment + 100] ^= 1; /* in packet 5 */
	send_bytes(train, length, (uint16_t)segment);
	for (uint32_t i = 0; i < 5; i++)
		expect_written(i, i * MTU, MTU);
	wait_for(5);
	expect_no_other_change();
	assert_int_equal(counted(COUNTER_UDP_BAD_ICRC) - bad, 1);
	train[4 * segment + 100] ^= 1;
	send_bytes(train + 4 * segment, length - 4 * segment, (uint16_t)segment);
	for (uint32_t i = 5; i < 8; i++)
		expect_written(i, i * MTU, MTU);
	wait_for(8);
	expect_no_other_change();
}

/*
 * Packets of a train may differ in more than their sequence number: one is a repetition, which changes nothing, others have
 * bits that the responder uses or ignores. Each counts for itself, and those after it as well.
 */
TEST(headers_that_differ_in_a_train)
{
	static const uint32_t numbers[] = {1, 2, 2, 3, 4, 5, 6, 7};
	static uint8_t train[8 * MOST_PACKET];
	uint64_t repeated = counted(COUNTER_DUPLICATE_REQUESTS);
	size_t length = 0, segment = 12 + MTU + 4;

	send_bytes(train, write_packet(train, 0x06, 0, 0, MTU, 8 * MTU, 0), 0);
	expect_written(0, 0, MTU);
	for (uint16_t i = 0; i < 8; i++) {
		uint8_t *packet = train + length;

		length += write_packet(packet, i == 7 ? 0x08 : 0x07, numbers[i], 0, MTU, 0, i);
		expect_written(numbers[i], numbers[i] * MTU, MTU);
		if (i == 2)
			memset(packet + 12, 'x', MTU);
		else if (i == 3)
			packet[8] |= 0x80; /* AckReq */
		else if (i == 4)
			packet[4] = 0xff; /* FECN, BECN, reserved */
		else if (i == 5)
			packet[1] |= 0x80; /* solicited event */
		put_icrc(packet, segment, i);
	}
	send_bytes(train, length, (uint16_t)segment);
	wait_for(8);
	expect_no_other_change();
	assert_int_equal(counted(COUNTER_DUPLICATE_REQUESTS) - repeated, 1);
}

/* A middle packet that is not full is refused, also between full ones. */
TEST(a_short_packet_in_a_train)
{
	static const uint32_t lengths[] = {MTU - 4, MTU / 2};
	static uint8_t train[8 * MOST_PACKET];

	for (size_t k = 0; k < 2; k++) {
		size_t length = 0;

		if (k) {
			close_receiver(state);
			open_receiver(state);
		}
		send_bytes(train, write_packet(train, 0x06, 0, 0, MTU, 8 * MTU, 0), 0);
		for (uint32_t i = 1; i < 5; i++)
			length += write_packet(train + length, i == 4 ? 0x08 : 0x07, i, 0, lengths[k], 0,
					       (uint16_t)(i - 1));
		send_bytes(train, length, (uint16_t)(12 + lengths[k] + 4));
		expect_written(0, 0, MTU);
		for (int i = 0; i < 5000 && __atomic_load_n(&qp.qp->state, __ATOMIC_ACQUIRE) != IBV_QPS_ERR; i++)
			usleep(1000);
		assert_int_equal(qp.qp->state, IBV_QPS_ERR);
		expect_no_other_change();
	}
}

/* A packet marked by a router causes a notification, later ones do so only after a while; the WRITEs are executed. */
TEST(marked_by_a_router)
{
	uint64_t marks = counted(COUNTER_UDP_CONGESTION_MARKS), sent = counted(COUNTER_UDP_CNPS_SENT);
	const int congestion_experienced = 3, nothing = 0;
	uint8_t packet[MOST_PACKET];

	assert_int_equal(setsockopt(stranger, IPPROTO_IP, IP_TOS, &congestion_experienced, sizeof(int)), 0);
	for (uint32_t i = 0; i < 40; i++) {
		send_bytes(packet, write_packet(packet, 0x0a, i, 8 * i, 8, 8, 0), 0);
		expect_written(i, 8 * i, 8);
	}
	wait_for(40);
	expect_no_other_change();
	assert_int_equal(counted(COUNTER_UDP_CONGESTION_MARKS) - marks, 40);
	assert_in_range(counted(COUNTER_UDP_CNPS_SENT) - sent, 1, 40);
	assert_int_equal(setsockopt(stranger, IPPROTO_IP, IP_TOS, &nothing, sizeof(int)), 0);
}

/* A notification is counted, and has no other effect. */
TEST(a_notification)
{
	uint64_t received = counted(COUNTER_UDP_CNPS_RECEIVED), malformed = counted(COUNTER_UDP_MALFORMED);
	uint8_t packet[32] = {0x81, 0x00, 0xff, 0xff, 0x40};

	put32(packet + 4, 0x40000000 | qp.qp->number);
	put_icrc(packet, sizeof(packet), 0);
	send_bytes(packet, sizeof(packet), 0);
	a_write_arrives(state);
	assert_int_equal(counted(COUNTER_UDP_CNPS_RECEIVED), received + 1);
	assert_int_equal(counted(COUNTER_UDP_MALFORMED), malformed);
}

TEST(a_bad_icrc_is_dropped)
{
	uint64_t bad = counted(COUNTER_UDP_BAD_ICRC);
	struct explain_record record;
	uint8_t packet[MOST_PACKET];
	size_t length;

	for (uint32_t bit = 0; bit < 8 * (28 + 20 + 4); bit += 7) {
		/* FECN, BECN and the reserved bits next to them are not covered by the ICRC, and need not be. */
		if (bit / 8 == 4)
			continue;
		length = write_packet(packet, 0x0a, 0, 0, 20, 20, 0);
		packet[bit / 8] ^= (uint8_t)(1 << bit % 8);
		send_bytes(packet, length, 0);
		bad++;
	}
	a_write_arrives(state);
	assert_int_equal(counted(COUNTER_UDP_BAD_ICRC), bad);
	assert_true(udp_explained(RULE_FRAME_ICRC, &record));
}

/* Sends the valid packet @packet from one address of this host to another. */
static void send_between(const char *from, const char *to, uint8_t *packet, size_t length)
{
	const union ibv_gid source = gid_from(from), destination = gid_from(to);
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(UDP_TEST_PORT)};
	struct in_pktinfo info = {.ipi_ifindex = 0};
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(info))] = {0};
	struct iovec vector = {packet, length};
	struct msghdr message = {
		.msg_name = &name,
		.msg_namelen = sizeof(name),
		.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int single = 0;

	put_icrc_of(&source, &destination, packet, length, 0);
	inet_pton(AF_INET, from, &info.ipi_spec_dst);
	inet_pton(AF_INET, to, &name.sin_addr);
	header->cmsg_level = IPPROTO_IP;
	header->cmsg_type = IP_PKTINFO;
	header->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(header), &info, sizeof(info));
	assert_int_equal(setsockopt(stranger, IPPROTO_UDP, UDP_SEGMENT, &single, sizeof(single)), 0);
	assert_int_equal(sendmsg(stranger, &message, 0), length);
}

/*
 * IBTA 9.6: a connected QP accepts packets only from the address of its peer to its own: no request or reply from any
 * other address, even with the right QP number, key and sequence number.
 */
TEST(strangers_are_not_heard)
{
	static const uint8_t opcodes[] = {0x0a, 0x04, 0x0c, 0x11, 0x10, 0x12};
	static const struct {
		const char *from, *to;
		enum explain_rule rule;
	} ways[] = {{"127.0.0.2", "127.0.0.1", RULE_PACKET_SOURCE}, {"127.0.0.1", "127.0.0.3", RULE_PACKET_TARGET}};
	uint64_t strangers = counted(COUNTER_DROPPED_STRANGER);
	struct explain_record record;
	uint8_t packet[MOST_PACKET];

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		for (size_t k = 0; k < sizeof(opcodes); k++) {
			size_t length = write_packet(packet, opcodes[k], 0, 0, 8, 8, 0);

			/* For a READ only the headers; for replies bytes that resemble an AETH. */
			if (opcodes[k] == 0x0c) {
				length = write_packet(packet, 0x0a, 0, 0, 8, 8, 0) - 8;
				packet[0] = 0x0c;
			} else if (opcodes[k] >= 0x10) {
				length = 12 + 4 + 4 + 8 * (opcodes[k] == 0x12);
				memset(packet + 12, 0, 8);
			}
			send_between(ways[i].from, ways[i].to, packet, length);
			strangers++;
		}
		assert_true(udp_explained(ways[i].rule, &record));
		assert_int_equal(record.subject.qpn, qp.qp->number);
	}
	a_write_arrives(state);
	assert_int_equal(counted(COUNTER_DROPPED_STRANGER), strangers);
	assert_int_equal(qp.qp->state, IBV_QPS_RTS);
	assert_null(raw_cq_poll(&cq));
}

/* Truncated at every byte, with a matching ICRC: nothing that the QP accepts. */
TEST(cut_at_every_byte)
{
	uint8_t packet[MOST_PACKET];

	for (size_t length = 1; length < 28 + 20 + 4; length++) {
		write_packet(packet, 0x0a, 0, 0, 20, 20, 0);
		if (length >= 16)
			put_icrc(packet, length, 0);
		/*
		 * A multiple of four: a WRITE with a payload shorter than its length field, which the responder
		 * refuses.
		 */
		if (length >= 32 && length % 4 == 0)
			continue;
		send_bytes(packet, length, 0);
	}
	a_write_arrives(state);
}

/* Random datagrams of every length, alone and as trains of any segment length. */
TEST(noise)
{
	static uint8_t bytes[8000];
	uint64_t seed = 1;

	for (int i = 0; i < 400; i++) {
		size_t length, segment;

		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)((seed = seed * 6364136223846793005 + 1) >> 56);
		length = 1 + (seed >> 33) % (i % 2 ? 2000 : 60);
		segment = 1 + (seed >> 40) % length;
		/* Addressed to the QP. */
		put32(bytes + 4, qp.qp->number);
		if (length / segment >= 60)
			segment = length;
		send_bytes(bytes, length, (uint16_t)(segment == length ? 0 : segment));
		usleep(200);
	}
	a_write_arrives(state);
}

/* A child inherits none of it, and its end releases nothing. */
TEST(a_forked_child)
{
	pid_t child = fork();
	int status = 0;

	if (!child) {
		/* Descriptors that stay open in the child would outlive its parent. */
		for (int fd = 3; fd < 64; fd++) {
			struct sockaddr_in6 name;
			socklen_t length = sizeof(name);

			if (fd != stranger && !getsockname(fd, (struct sockaddr *)&name, &length))
				_exit(1);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	a_write_arrives(state);
}

int main(void)
{
	return run_stranger();
}
