/* SPDX-License-Identifier: BSD-2-Clause */
/* rsetsockopt(), rgetsockopt(), rfcntl(): the options that rsocket(7) lists, and errno values of setsockopt(2) for the rest. */
#include "rsocket_support.h"

#include <netinet/tcp.h>

static int get(int socket, int level, int name)
{
	int value = -1;
	socklen_t length = sizeof(value);

	assert_success(rgetsockopt(socket, level, name, &value, &length));
	assert_int_equal(length, sizeof(value));
	return value;
}

static void set(int socket, int level, int name, int value)
{
	assert_success(rsetsockopt(socket, level, name, &value, sizeof(value)));
}

TEST(test_values)
{
	static const struct {
		int level, name, set, get;
	} options[] = {
		{SOL_SOCKET, SO_REUSEADDR, 1, 1},      {SOL_SOCKET, SO_KEEPALIVE, 1, 1},
		{SOL_SOCKET, SO_OOBINLINE, 1, 1},      {IPPROTO_TCP, TCP_NODELAY, 1, 1},
		{SOL_SOCKET, SO_RCVBUF, 30000, 60000}, {SOL_SOCKET, SO_SNDBUF, 20000, 40000},
		{SOL_RDMA, RDMA_SQSIZE, 100, 100},     {SOL_RDMA, RDMA_RQSIZE, 200, 200},
		{SOL_RDMA, RDMA_INLINE, 32, 32},       {SOL_RDMA, RDMA_IOMAPSIZE, 128, 128},
		{SOL_RDMA, RDMA_IOMAPSIZE, 700, 512},  {SOL_RDMA, RDMA_SQSIZE, 1, 16},
	};
	int socket = rsocket(AF_INET, SOCK_STREAM, 0), value = 1;
	struct linger linger = {.l_onoff = 1, .l_linger = 3}, got;
	socklen_t length = sizeof(got);
	size_t index;

	for (index = 0; index < sizeof(options) / sizeof(options[0]); index++) {
		set(socket, options[index].level, options[index].name, options[index].set);
		assert_int_equal(get(socket, options[index].level, options[index].name), options[index].get);
	}
	assert_success(rsetsockopt(socket, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	assert_success(rgetsockopt(socket, SOL_SOCKET, SO_LINGER, &got, &length));
	assert_memory_equal(&got, &linger, sizeof(got));
	assert_int_equal(get(socket, SOL_SOCKET, SO_ERROR), 0);
	assert_true(get(socket, IPPROTO_TCP, TCP_MAXSEG) >= 256);
	assert_errno(rsetsockopt(socket, SOL_SOCKET, SO_BROADCAST, &value, sizeof(value)), ENOTSUP);
	assert_errno(rsetsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &value, 2), EINVAL);
	assert_errno(rsetsockopt(socket, SOL_RDMA, RDMA_ROUTE, &value, sizeof(value)), EINVAL);
	assert_errno(rfcntl(socket, F_GETOWN), ENOTSUP);
	assert_int_equal(rfcntl(socket, F_GETFD), FD_CLOEXEC);
	assert_success(rclose(socket));
}

/* A child inherits the options of its listener; connecting does not change them. */
TEST(test_inherited)
{
	int listener = new_rlistener(1), value = 50, before;
	struct ibv_path_data path;
	socklen_t length = sizeof(path);
	struct rpair pair;

	set(listener, SOL_RDMA, RDMA_RQSIZE, 64);
	rbegin(&pair, listener);
	assert_int_equal(get(pair.server, SOL_RDMA, RDMA_RQSIZE), 64);
	assert_errno(rsetsockopt(pair.server, SOL_RDMA, RDMA_RQSIZE, &value, sizeof(value)), EINVAL);
	/* No error, as for kernel sockets (setsockopt(2)); the buffers already exist. */
	before = get(pair.client, SOL_SOCKET, SO_SNDBUF);
	set(pair.client, SOL_SOCKET, SO_SNDBUF, 2 * before);
	set(pair.client, SOL_SOCKET, SO_RCVBUF, 1);
	assert_int_equal(get(pair.client, SOL_SOCKET, SO_SNDBUF), before);
	assert_success(rgetsockopt(pair.client, SOL_RDMA, RDMA_ROUTE, &path, &length));
	assert_int_equal(length, sizeof(path));
	assert_int_equal(ntohs(path.path.pkey), 0xffff);
	rend(&pair);
	assert_success(rclose(listener));
}

/* Without inline data and with the smallest queues and rings, everything still arrives. */
TEST(test_smallest)
{
	int listener = new_rlistener(1);
	struct rpair pair;
	char memory[9000], got[9000];
	size_t place, index;
	ssize_t sent;

	set(listener, SOL_RDMA, RDMA_SQSIZE, 16);
	set(listener, SOL_RDMA, RDMA_RQSIZE, 16);
	set(listener, SOL_RDMA, RDMA_INLINE, 0);
	set(listener, SOL_SOCKET, SO_RCVBUF, 1);
	set(listener, SOL_SOCKET, SO_SNDBUF, 1);
	rbegin(&pair, listener);
	fill_stream(memory, sizeof(memory), 0);
	for (index = 0; index < 100; index++)
		for (place = 0; place < sizeof(memory); place += (size_t)sent) {
			int from = index % 2 ? pair.server : pair.client, to = index % 2 ? pair.client : pair.server;

			sent = rsend(from, memory + place, sizeof(memory) - place, MSG_DONTWAIT);
			if (sent < 0) {
				assert_int_equal(errno, EAGAIN);
				sent = 0;
				rready(to, 0, 0);
				continue;
			}
			assert_int_equal(rrecv(to, got + place, (size_t)sent, MSG_WAITALL), sent);
			assert_true(is_of_stream(got + place, (size_t)sent, place));
		}
	rend(&pair);
	assert_success(rclose(listener));
}

/* Buffers of one end that the other writes to. */
TEST(test_iomap)
{
	int listener = new_rlistener(1);
	static char memory[20000], bytes[20000];
	struct rpair pair;
	char byte;

	set(listener, SOL_RDMA, RDMA_IOMAPSIZE, 2);
	rbegin(&pair, listener);
	fill_stream(bytes, sizeof(bytes), 0);
	/* The server holds mappings of the client's buffers. */
	assert_int_equal(riomap(pair.client, memory, sizeof(memory), PROT_WRITE, 0, 500), 500);
	assert_int_equal(rsend(pair.client, "x", 1, 0), 1);
	assert_int_equal(rrecv(pair.server, &byte, 1, 0), 1);
	assert_int_equal(riowrite(pair.server, bytes, sizeof(bytes), 500, 0), sizeof(bytes));
	/* Data sent after it arrives after it. */
	assert_int_equal(rsend(pair.server, "y", 1, 0), 1);
	assert_int_equal(rrecv(pair.client, &byte, 1, 0), 1);
	assert_true(is_of_stream(memory, sizeof(memory), 0));
	assert_bytes_errno((ssize_t)riowrite(pair.server, bytes, 1, 499, 0), EINVAL);
	assert_int_equal(riomap(pair.client, bytes, 10, PROT_WRITE, 0, -1), (off_t)(uintptr_t)bytes);
	assert_errno((int)riomap(pair.client, bytes, 10, PROT_WRITE, 0, -1), ENOMEM);
	assert_errno((int)riomap(pair.client, bytes, 10, PROT_NONE, 0, -2), EINVAL);
	assert_success(riounmap(pair.client, bytes, 10));
	assert_errno(riounmap(pair.client, bytes, 10), EINVAL);
	assert_success(riounmap(pair.client, memory, sizeof(memory)));
	rend(&pair);
	assert_success(rclose(listener));
}
