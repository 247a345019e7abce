/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The udp link as a sender: a plain socket has the RoCE port, receives its packets, and checks addresses and ICRC of each. The
 * test stands before sendmsg(2) (--wrap), to count calls and to be the kernel that refuses.
 */
#ifndef SOFTHCA_TESTS_UNIT_UDP_SENDER_H
#define SOFTHCA_TESTS_UNIT_UDP_SENDER_H

#include "test_case.h"

#include "udp_fixture.h"

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

/* ---- sending and receiving ----------------------------------------------------------------------------------------- */

static inline void build_write(struct run *run, const struct packet_path *path, uint32_t psn, uint32_t bytes,
			       uint16_t mtu)
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

static inline void send_write(const struct packet_path *path, uint32_t bytes, uint16_t mtu)
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
static inline void send_with_more(struct run *run, const struct packet_path *path, uint32_t number, uint32_t bytes)
{
	epoch_enter();
	build_write(run, path, PSN + number, bytes, MTU);
	run->more = true;
	assert_int_equal(link_udp()->send(hca_device(0), run), LINK_SENT);
	epoch_leave();
}

static inline void flush(struct run *run)
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

static inline void read_control(struct datagram *datagram, struct msghdr *message)
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

static inline struct datagram receive(int fd)
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

static inline uint32_t be32_at(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/*
 * Receives packet @number of a WRITE; checks its contents, and its ICRC with @identification. Returns its addresses and
 * length.
 */
static inline struct datagram expect_packet(int fd, uint32_t number, uint8_t opcode, const uint8_t *bytes,
					    uint32_t length, uint16_t identification)
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

static inline struct packet_path path_between(const char *source, const char *destination)
{
	return (struct packet_path){
		.source = gid_from(source), .destination = gid_from(destination), .type = IBV_GID_TYPE_ROCE_V2};
}

/* Opens the sockets that receive. */
static inline void udp_sender_open(void)
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
}

#endif
