/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams of rsocket(7): each arrives whole, with the address of its sender, first through UDP and then through UD. A plain
 * UDP socket compares the headers with rdma-cm 5. Other expected values: udp(7), recv(2).
 */
#include "rsocket_support.h"

#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

static int new_datagrams(void)
{
	int socket = rsocket(AF_INET, SOCK_DGRAM, 0);

	assert_true(socket >= 0);
	assert_success(rbind(socket, loopback(0), sizeof(struct sockaddr_in)));
	return socket;
}

static ssize_t receive(int socket, char *memory, size_t size, uint16_t *port)
{
	struct sockaddr_in from = {0};
	socklen_t length = sizeof(from);
	ssize_t got;

	assert_int_equal(rready(socket, POLLIN, LIMIT_MS), POLLIN);
	got = rrecvfrom(socket, memory, size, 0, (struct sockaddr *)&from, &length);
	assert_int_equal(length, sizeof(from));
	assert_int_equal(from.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	*port = ntohs(from.sin_port);
	return got;
}

TEST(test_there_and_back)
{
	int a = new_datagrams(), b = new_datagrams(), round;
	char memory[100];
	uint16_t port;

	for (round = 0; round < 20; round++) {
		memset(memory, round, sizeof(memory));
		assert_int_equal(rsendto(a, memory, (size_t)(10 + round), 0, loopback(rport_of(b)),
					 sizeof(struct sockaddr_in)),
				 10 + round);
		memset(memory, 0xee, sizeof(memory));
		assert_int_equal(receive(b, memory, sizeof(memory), &port), 10 + round);
		assert_int_equal(port, rport_of(a));
		assert_int_equal(memory[0], round);
		assert_int_equal(memory[9 + round], round);
		assert_int_equal((uint8_t)memory[10 + round], 0xee);
		assert_int_equal(rsendto(b, "back", 4, 0, loopback(port), sizeof(struct sockaddr_in)), 4);
		assert_int_equal(receive(a, memory, sizeof(memory), &port), 4);
		assert_int_equal(port, rport_of(b));
	}
	assert_bytes_errno(rrecv(a, memory, 1, MSG_DONTWAIT), EAGAIN);
	assert_success(rclose(a));
	assert_success(rclose(b));
}

/* An IPv6 socket that is not IPv6-only has IPv4 peers with mapped addresses, through UDP and UD (ipv6(7)). */
TEST(test_both_families)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6}, from;
	int a = new_datagrams(), b = rsocket(AF_INET6, SOCK_DGRAM, 0), round;
	socklen_t length = sizeof(any);
	char memory[8];
	uint16_t port;

	assert_success(rbind(b, (struct sockaddr *)&any, sizeof(any)));
	assert_success(rgetsockname(b, (struct sockaddr *)&any, &length));
	assert_int_equal(length, sizeof(any));
	for (round = 0; round < 5; round++) {
		assert_int_equal(rsendto(a, "to b", 4, 0, loopback(ntohs(any.sin6_port)), sizeof(struct sockaddr_in)),
				 4);
		assert_int_equal(rready(b, POLLIN, LIMIT_MS), POLLIN);
		length = sizeof(from);
		assert_int_equal(rrecvfrom(b, memory, sizeof(memory), 0, (struct sockaddr *)&from, &length), 4);
		assert_int_equal(length, sizeof(from));
		assert_int_equal(from.sin6_family, AF_INET6);
		assert_true(IN6_IS_ADDR_V4MAPPED(&from.sin6_addr));
		assert_int_equal(ntohs(from.sin6_port), rport_of(a));
		assert_int_equal(rsendto(b, "to a", 4, 0, (struct sockaddr *)&from, length), 4);
		assert_int_equal(receive(a, memory, sizeof(memory), &port), 4);
		assert_int_equal(port, ntohs(any.sin6_port));
	}
	/* Plain IPv4 addresses are accepted; an IPv4 socket refuses IPv6 addresses, mapped or not. */
	assert_int_equal(rsendto(b, "to a", 4, 0, loopback(rport_of(a)), sizeof(struct sockaddr_in)), 4);
	assert_int_equal(receive(a, memory, sizeof(memory), &port), 4);
	assert_bytes_errno(rsendto(a, "to b", 4, 0, (struct sockaddr *)&from, sizeof(from)), EAFNOSUPPORT);
	any.sin6_addr = in6addr_loopback;
	assert_bytes_errno(rsendto(a, "to b", 4, 0, (struct sockaddr *)&any, sizeof(any)), EAFNOSUPPORT);
	assert_success(rclose(a));
	assert_success(rclose(b));
}

/* A datagram is taken as a whole; bytes that do not fit are lost. */
TEST(test_sizes)
{
	int a = new_datagrams(), b = new_datagrams();
	static char memory[70000];
	uint16_t port;

	assert_success(rconnect(a, loopback(rport_of(b)), sizeof(struct sockaddr_in)));
	assert_int_equal(rsend(a, "0123456789", 10, 0), 10);
	assert_int_equal(rsend(a, "next", 4, 0), 4);
	assert_int_equal(receive(b, memory, 3, &port), 3);
	assert_memory_equal(memory, "012", 3);
	assert_int_equal(receive(b, memory, sizeof(memory), &port), 4);
	assert_bytes_errno(rsend(a, memory, sizeof(memory), 0), EMSGSIZE);
	assert_bytes_errno(rsend(b, "x", 1, 0), EDESTADDRREQ);
	assert_success(rclose(a));
	assert_success(rclose(b));
}

/* A connected rsocket receives only datagrams of its peer. */
TEST(test_connected)
{
	int a = new_datagrams(), b = new_datagrams(), stranger = new_datagrams();
	char memory[10];
	uint16_t port;

	assert_success(rconnect(a, loopback(rport_of(b)), sizeof(struct sockaddr_in)));
	assert_int_equal(rsendto(stranger, "no", 2, 0, loopback(rport_of(a)), sizeof(struct sockaddr_in)), 2);
	assert_int_equal(rsendto(b, "yes", 3, 0, loopback(rport_of(a)), sizeof(struct sockaddr_in)), 3);
	assert_int_equal(receive(a, memory, sizeof(memory), &port), 3);
	assert_int_equal(port, rport_of(b));
	assert_int_equal(rready(a, POLLIN, 20), 0);
	assert_success(rclose(a));
	assert_success(rclose(b));
	assert_success(rclose(stranger));
}

TEST(test_headers)
{
	int a = new_datagrams(), plain = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in own;
	socklen_t length = sizeof(own);
	static const uint8_t bad[][16] = {
		{0x55, 0x55, 0x55, 0x54, 4, 0, 16}, {0x55, 0x55, 0x55, 0x55, 4, 0, 28},
		{0x55, 0x55, 0x55, 0x55, 5, 0, 16}, {0x55, 0x55, 0x55, 0x55, 4, 3, 16},
		{0x55, 0x55, 0x55, 0x55, 6, 0, 28},
	};
	static const uint8_t begin[8] = {0x55, 0x55, 0x55, 0x55, 4, 0, 16, 0}, to[4] = {127, 0, 0, 1};
	uint8_t bytes[64];
	size_t index;

	assert_int_equal(bind(plain, loopback(0), sizeof(struct sockaddr_in)), 0);
	assert_int_equal(getsockname(plain, (struct sockaddr *)&own, &length), 0);
	assert_int_equal(rsendto(a, "data", 4, 0, (struct sockaddr *)&own, sizeof(own)), 4);
	assert_int_equal(recv(plain, bytes, sizeof(bytes), 0), 20);
	assert_memory_equal(bytes, begin, sizeof(begin));
	/* A QP number has 24 bits. */
	assert_int_equal(bytes[8], 0);
	assert_true(bytes[9] || bytes[10] || bytes[11]);
	assert_memory_equal(bytes + 12, to, 4);
	assert_memory_equal(bytes + 16, "data", 4);
	/* Unknown datagrams are dropped. */
	for (index = 0; index < sizeof(bad) / sizeof(bad[0]); index++)
		assert_int_equal(sendto(plain, bad[index], 16, 0, loopback(rport_of(a)), sizeof(own)), 16);
	assert_int_equal(sendto(plain, begin, 5, 0, loopback(rport_of(a)), sizeof(own)), 5);
	assert_int_equal(rready(a, POLLIN, 50), 0);
	/* Data, which the rsocket answers. */
	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, begin, sizeof(begin));
	memcpy(bytes + 12, to, 4);
	memcpy(bytes + 16, "plain", 5);
	assert_int_equal(sendto(plain, bytes, 21, 0, loopback(rport_of(a)), sizeof(own)), 21);
	assert_int_equal(rready(a, POLLIN, LIMIT_MS), POLLIN);
	assert_int_equal(rrecv(a, bytes, sizeof(bytes), 0), 5);
	assert_memory_equal(bytes, "plain", 5);
	assert_int_equal(recv(plain, bytes, sizeof(bytes), 0), 16);
	assert_int_equal(bytes[5], 7);
	assert_int_equal(bytes[6], 16);
	close(plain);
	assert_success(rclose(a));
}

/* Datagrams of many unknown senders do not prevent sending to others. */
TEST(test_strangers)
{
	static const uint8_t datagram[17] = {0x55, 0x55, 0x55, 0x55, 4, 0, 16, 0, 0, 0, 0, 1, 127, 0, 0, 1, 'x'};
	int a = new_datagrams(), plain = socket(AF_INET, SOCK_DGRAM, 0), number;
	struct sockaddr_in own, from = {.sin_family = AF_INET};
	socklen_t length = sizeof(own);
	uint8_t bytes[64];

	assert_int_equal(bind(plain, loopback(0), sizeof(struct sockaddr_in)), 0);
	assert_int_equal(getsockname(plain, (struct sockaddr *)&own, &length), 0);
	/* Senders in 127.1.0.0/16, each with its own address. */
	for (number = 0; number < 4200; number++) {
		int stranger = socket(AF_INET, SOCK_DGRAM, 0);

		from.sin_addr.s_addr = htonl(0x7f010001u + (uint32_t)number);
		assert_int_equal(bind(stranger, (struct sockaddr *)&from, sizeof(from)), 0);
		assert_int_equal(sendto(stranger, datagram, sizeof(datagram), 0, loopback(rport_of(a)), sizeof(own)),
				 sizeof(datagram));
		assert_int_equal(rrecv(a, bytes, sizeof(bytes), 0), 1);
		close(stranger);
	}
	assert_int_equal(rsendto(a, "data", 4, 0, (struct sockaddr *)&own, sizeof(own)), 4);
	assert_int_equal(recv(plain, bytes, sizeof(bytes), 0), 20);
	close(plain);
	assert_success(rclose(a));
}

/* Up to the maximum number of pieces of sendmsg(2), through UDP and through UD. */
TEST(test_pieces)
{
	int a = new_datagrams(), b = new_datagrams(), round;
	static struct iovec pieces[IOV_MAX + 1];
	char bytes[IOV_MAX + 1], memory[IOV_MAX + 1];
	struct msghdr message = {.msg_iov = pieces, .msg_iovlen = IOV_MAX};
	uint16_t port;
	size_t index;

	for (index = 0; index <= IOV_MAX; index++) {
		bytes[index] = (char)(index * 7 + index / 256);
		pieces[index] = (struct iovec){.iov_base = &bytes[index], .iov_len = 1};
	}
	assert_success(rconnect(a, loopback(rport_of(b)), sizeof(struct sockaddr_in)));
	for (round = 0; round < 3; round++) {
		assert_int_equal(rsendmsg(a, &message, 0), IOV_MAX);
		assert_int_equal(receive(b, memory, sizeof(memory), &port), IOV_MAX);
		assert_memory_equal(memory, bytes, IOV_MAX);
	}
	message.msg_iovlen++;
	assert_bytes_errno(rsendmsg(a, &message, 0), EMSGSIZE);
	assert_bytes_errno(rrecvmsg(b, &message, MSG_DONTWAIT), EMSGSIZE);
	assert_success(rclose(a));
	assert_success(rclose(b));
}

/* Sends @bytes by UD, with the Q_Key of rsockets, to QP @number of this host, from its loopback address. */
static void send_by_ud(uint32_t number, const uint8_t *bytes, uint32_t count)
{
	struct ibv_context **devices = rdma_get_devices(NULL);
	struct ibv_pd *pd = ibv_alloc_pd(devices[0]);
	struct ibv_cq *cq = ibv_create_cq(devices[0], 1, NULL, NULL, 0);
	struct ibv_qp_init_attr make = {.send_cq = cq,
					.recv_cq = cq,
					.qp_type = IBV_QPT_UD,
					.cap = {.max_send_wr = 1, .max_send_sge = 1, .max_inline_data = 64}};
	struct ibv_qp *qp = ibv_create_qp(pd, &make);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = RDMA_UDP_QKEY};
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}}, own;
	struct ibv_ah_attr way = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 64}};
	struct ibv_sge sge = {.addr = (uintptr_t)bytes, .length = count};
	struct ibv_send_wr request = {.sg_list = &sge,
				      .num_sge = 1,
				      .opcode = IBV_WR_SEND,
				      .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
				      .wr.ud = {.remote_qpn = number, .remote_qkey = RDMA_UDP_QKEY}},
			   *bad;
	struct ibv_wc wc;

	while (ibv_query_gid(devices[0], 1, way.grh.sgid_index, &own) || memcmp(&own, &gid, sizeof(gid)))
		assert_true(way.grh.sgid_index++ < 100);
	assert_success(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	assert_success(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	assert_success(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
	request.wr.ud.ah = ibv_create_ah(pd, &way);
	assert_non_null(request.wr.ud.ah);
	assert_success(ibv_post_send(qp, &request, &bad));
	while (!ibv_poll_cq(cq, 1, &wc))
		;
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_success(ibv_destroy_ah(request.wr.ud.ah));
	assert_success(ibv_destroy_qp(qp));
	assert_success(ibv_destroy_cq(cq));
	assert_success(ibv_dealloc_pd(pd));
	rdma_free_devices(devices);
}

/* A UD header names the sender, and is trusted only if the datagram comes from that address. */
TEST(test_forged_sender)
{
	static const uint8_t forged[] = {4, 8, 0x30, 0x39, 192, 0, 2, 77, 'n'},
			     /* An IPv6 address after an IPv4 GRH. */
		forged_v6[] = {6, 24, 0x30, 0x39, 0, 0, 0, 0, 0x20, 1, 0xd, 0xb8, [23] = 77, 'n'},
			     true_one[] = {4, 8, 0x30, 0x39, 127, 0, 0, 1, 'y'};
	int a = new_datagrams(), plain = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in own;
	socklen_t length = sizeof(own);
	uint8_t bytes[64];
	uint32_t number;
	uint16_t port;

	assert_int_equal(bind(plain, loopback(0), sizeof(struct sockaddr_in)), 0);
	assert_int_equal(getsockname(plain, (struct sockaddr *)&own, &length), 0);
	assert_int_equal(rsendto(a, "data", 4, 0, (struct sockaddr *)&own, sizeof(own)), 4);
	assert_int_equal(recv(plain, bytes, sizeof(bytes), 0), 20);
	number = (uint32_t)bytes[9] << 16 | (uint32_t)bytes[10] << 8 | bytes[11];
	send_by_ud(number, forged, sizeof(forged));
	send_by_ud(number, forged_v6, sizeof(forged_v6));
	send_by_ud(number, true_one, sizeof(true_one));
	assert_int_equal(receive(a, (char *)bytes, sizeof(bytes), &port), 1);
	assert_int_equal(bytes[0], 'y');
	assert_int_equal(port, 12345);
	assert_int_equal(rready(a, POLLIN, 20), 0);
	close(plain);
	assert_success(rclose(a));
}

enum { ROUNDS = 1000 };

struct receiver {
	int socket;
	sem_t received;
};

static void *receive_all(void *argument)
{
	struct receiver *receiver = argument;
	int round;
	char byte;

	for (round = 0; round < ROUNDS; round++) {
		if (rrecv(receiver->socket, &byte, 1, 0) != 1 || byte != (char)round)
			return argument;
		sem_post(&receiver->received);
	}
	return NULL;
}

/* A datagram found in the socket by a sending call is for a sleeping thread, which the call wakes. */
TEST(test_found_by_sender)
{
	uint8_t datagram[17] = {0x55, 0x55, 0x55, 0x55, 4, 0, 16, 0, 0, 0, 0, 0, 127, 0, 0, 1, 0};
	struct receiver receiver = {.socket = new_datagrams()};
	int plain = socket(AF_INET, SOCK_DGRAM, 0), round;
	struct timespec limit;
	struct sockaddr_in own, to = *(struct sockaddr_in *)loopback(rport_of(receiver.socket));
	socklen_t length = sizeof(own);
	pthread_t thread;
	void *failed;

	assert_int_equal(bind(plain, loopback(0), sizeof(struct sockaddr_in)), 0);
	assert_int_equal(getsockname(plain, (struct sockaddr *)&own, &length), 0);
	assert_int_equal(sem_init(&receiver.received, 0, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, receive_all, &receiver), 0);
	for (round = 0; round < ROUNDS; round++) {
		/* Time for the thread to sleep. */
		usleep(200);
		datagram[16] = (uint8_t)round;
		assert_int_equal(sendto(plain, datagram, sizeof(datagram), 0, (struct sockaddr *)&to, sizeof(to)),
				 sizeof(datagram));
		assert_int_equal(rsendto(receiver.socket, "x", 1, 0, (struct sockaddr *)&own, sizeof(own)), 1);
		assert_int_equal(clock_gettime(CLOCK_REALTIME, &limit), 0);
		limit.tv_sec += 5;
		assert_int_equal(sem_timedwait(&receiver.received, &limit), 0);
	}
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	sem_destroy(&receiver.received);
	close(plain);
	assert_success(rclose(receiver.socket));
}
