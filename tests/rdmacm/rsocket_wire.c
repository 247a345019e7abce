/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that a stream sends and accepts, against a peer built by hand (rsocket_peer.h); every figure is from rdma-cm 5. Also
 * protocol violations by the peer: they end its connection and nothing else.
 */
#include "rsocket_peer.h"
#include "test_clock.h"

#include <endian.h>
#include <pthread.h>
#include <time.h>

/* Immediates: three bits of operation. */
#define DATA(bytes) ((uint32_t)(bytes))
#define CREDIT(limit) (4u << 29 | (limit))
#define CONTROL(what) (7u << 29 | (what))
#define DISCONNECT 0
#define SHUTDOWN 2

static struct peer *begin_peer(int iomap)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	int listener = new_rlistener(1), size = 16384, entries = 32;

	assert_non_null(peer);
	assert_success(rsetsockopt(listener, SOL_RDMA, RDMA_RQSIZE, &entries, sizeof(entries)));
	/* Doubled: a ring of 32768. */
	assert_success(rsetsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)));
	assert_success(rsetsockopt(listener, SOL_RDMA, RDMA_IOMAPSIZE, &iomap, sizeof(iomap)));
	peer_make(peer, listener);
	peer_connect(peer, listener);
	return peer;
}

static void end_peer(struct peer *peer)
{
	peer_end(peer);
	free(peer);
}

/* Takes the first message of every stream, which announces the second half of its ring in slot 1. */
static void take_second_half(struct peer *peer)
{
	uint32_t bytes;

	assert_int_equal(peer_next(peer, &bytes), CREDIT(32));
	assert_int_equal(bytes, 16);
}

static uint64_t their_list(const struct peer *peer)
{
	return read_be(peer->theirs + 8, 8);
}

static uint32_t their_list_key(const struct peer *peer)
{
	return (uint32_t)read_be(peer->theirs + 16, 4);
}

static uint64_t their_ring(const struct peer *peer)
{
	return read_be(peer->theirs + 24, 8);
}

static uint32_t their_ring_key(const struct peer *peer)
{
	return (uint32_t)read_be(peer->theirs + 32, 4);
}

TEST(test_description)
{
	struct peer *peer = begin_peer(300);
	static const uint8_t none[3];
	uint64_t address;
	uint32_t key, length;

	assert_int_equal(peer->theirs[0], 1);
	/* Little-endian, with mappings. */
	assert_int_equal(peer->theirs[1], 2);
	assert_int_equal(read_be(peer->theirs + 2, 2), 32);
	assert_memory_equal(peer->theirs + 4, none, 3);
	/* 300 in eight bits: one for the scale, 300 >> 8. */
	assert_int_equal(peer->theirs[7], 0x81);
	assert_int_equal(read_be(peer->theirs + 20, 4), 2);
	assert_int_equal(read_be(peer->theirs + 36, 4), 16384);
	/* The second half of its ring comes in slot 1, in the byte order of the host. */
	take_second_half(peer);
	memcpy(&address, peer->list + 16, 8);
	memcpy(&key, peer->list + 24, 4);
	memcpy(&length, peer->list + 28, 4);
	assert_int_equal(address, their_ring(peer) + 16384);
	assert_int_equal(key, their_ring_key(peer));
	assert_int_equal(length, 16384);
	end_peer(peer);
}

TEST(test_data)
{
	struct peer *peer = begin_peer(0);
	char memory[64];
	uint32_t bytes;

	take_second_half(peer);
	/* From the peer to the library. */
	memcpy(peer->out, "by hand", 7);
	peer_write(peer, 7, their_ring(peer), their_ring_key(peer), DATA(7));
	assert_int_equal(rrecv(peer->socket, memory, sizeof(memory), 0), 7);
	assert_memory_equal(memory, "by hand", 7);
	memcpy(peer->out, "more", 4);
	peer_write(peer, 4, their_ring(peer) + 7, their_ring_key(peer), DATA(4));
	assert_int_equal(rrecv(peer->socket, memory, sizeof(memory), 0), 4);
	assert_memory_equal(memory, "more", 4);
	/* From the library, one after the other. */
	assert_int_equal(rsend(peer->socket, "first", 5, 0), 5);
	assert_int_equal(rsend(peer->socket, "second", 6, 0), 6);
	assert_int_equal(peer_next(peer, &bytes), DATA(5));
	assert_int_equal(bytes, 5);
	assert_int_equal(peer_next(peer, &bytes), DATA(6));
	assert_memory_equal(peer->ring, "firstsecond", 11);
	end_peer(peer);
}

/* A target is used up before the next one, writes are 2 KiB at first, and nothing is sent without a target. */
TEST(test_targets)
{
	struct peer *peer = begin_peer(0);
	uint32_t bytes, key = peer->ring_mr->rkey, length = 1000;
	uint64_t address = (uintptr_t)peer->ring + 5000;
	char memory[8000];

	take_second_half(peer);
	fill_stream(memory, sizeof(memory), 0);
	set_nonblocking(peer->socket, true);
	assert_int_equal(rsend(peer->socket, memory, sizeof(memory), 0), 4096);
	assert_int_equal(peer_next(peer, &bytes), DATA(2048));
	assert_int_equal(peer_next(peer, &bytes), DATA(2048));
	assert_true(is_of_stream(peer->ring, 4096, 0));
	assert_bytes_errno(rsend(peer->socket, memory, 1, 0), EAGAIN);
	assert_int_equal(rready(peer->socket, POLLOUT, 0), 0);
	/* Slot 1 follows the slot that the private data describes. */
	memcpy(peer->out, &address, 8);
	memcpy(peer->out + 8, &key, 4);
	memcpy(peer->out + 12, &length, 4);
	peer_write(peer, 16, their_list(peer) + 16, their_list_key(peer), CREDIT(PEER_RECEIVES + 2));
	assert_int_equal(rready(peer->socket, POLLOUT, LIMIT_MS), POLLOUT);
	assert_int_equal(rsend(peer->socket, memory, sizeof(memory), 0), 1000);
	assert_int_equal(peer_next(peer, &bytes), DATA(1000));
	assert_true(is_of_stream(peer->ring + 5000, 1000, 0));
	assert_int_equal(peer->ring[6000], 0);
	end_peer(peer);
}

/* Sends no more messages than the peer has receives, until the peer grants credits by an empty write. */
TEST(test_credits)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	int listener = new_rlistener(1), sent;
	uint32_t bytes;

	peer_make(peer, listener);
	write_be(peer->own + 2, 2, 3);
	peer_connect(peer, listener);
	assert_int_equal(peer_next(peer, &bytes), CREDIT(384));
	set_nonblocking(peer->socket, true);
	for (sent = 0; rsend(peer->socket, "x", 1, 0) == 1; sent++)
		;
	assert_int_equal(sent, 3);
	for (; sent; sent--)
		assert_int_equal(peer_next(peer, &bytes), DATA(1));
	assert_true(peer_hears_nothing(peer));
	/* Sixteen bits; higher bits are ignored. */
	peer_write(peer, 0, 0, 0, CREDIT(0xabcu << 16 | 5));
	assert_int_equal(rready(peer->socket, POLLOUT, LIMIT_MS), POLLOUT);
	for (sent = 0; rsend(peer->socket, "x", 1, 0) == 1; sent++)
		;
	assert_int_equal(sent, 2);
	end_peer(peer);
}

/* It renews credits when half of them are used, and returns half of the ring after it was read. */
TEST(test_returns)
{
	struct peer *peer = begin_peer(0);
	char memory[4096];
	uint32_t bytes, message;
	uint64_t address;
	int part;

	take_second_half(peer);
	for (message = 0; message < 16; message++) {
		peer_write(peer, 1, their_ring(peer) + message, their_ring_key(peer), DATA(1));
		assert_int_equal(rrecv(peer->socket, memory, 1, 0), 1);
		assert_true(message == 15 || peer_hears_nothing(peer) || message > 1);
	}
	assert_int_equal(peer_next(peer, &bytes), CREDIT(16 + 32));
	assert_int_equal(bytes, 0);
	for (part = 0; part < 4; part++) {
		uint32_t size = part ? 4096 : 4096 - 16;

		peer_write(peer, size, their_ring(peer) + (uint32_t)part * 4096 + (part ? 0 : 16), their_ring_key(peer),
			   DATA(size));
		assert_int_equal(rrecv(peer->socket, memory, sizeof(memory), MSG_DONTWAIT | 0) > 0 ||
					 rrecv(peer->socket, memory, size, MSG_WAITALL) > 0,
				 1);
	}
	assert_int_equal(peer_next(peer, &bytes), CREDIT(20 + 32));
	assert_int_equal(bytes, 16);
	/* The first half, in slot 0. */
	memcpy(&address, peer->list, 8);
	assert_int_equal(address, their_ring(peer));
	end_peer(peer);
}

TEST(test_ends)
{
	struct peer *peer = begin_peer(0);
	uint32_t bytes;
	char byte;

	take_second_half(peer);
	assert_success(rshutdown(peer->socket, SHUT_WR));
	assert_int_equal(peer_next(peer, &bytes), CONTROL(SHUTDOWN));
	assert_int_equal(bytes, 0);
	peer_write(peer, 0, 0, 0, CONTROL(1)); /* keepalive: needs no action */
	peer_write(peer, 0, 0, 0, CONTROL(DISCONNECT));
	assert_int_equal(rrecv(peer->socket, &byte, 1, 0), 0);
	assert_true(rready(peer->socket, POLLIN, 0) & POLLHUP);
	end_peer(peer);
	peer = begin_peer(0);
	take_second_half(peer);
	peer_write(peer, 0, 0, 0, CONTROL(SHUTDOWN));
	assert_int_equal(rrecv(peer->socket, &byte, 1, 0), 0);
	assert_int_equal(rsend(peer->socket, "x", 1, 0), 1);
	assert_int_equal(peer_next(peer, &bytes), DATA(1));
	/* Both directions are closed after its own end. */
	assert_success(rshutdown(peer->socket, SHUT_WR));
	assert_int_equal(peer_next(peer, &bytes), CONTROL(DISCONNECT));
	end_peer(peer);
}

static void *shut_down_and_close(void *argument)
{
	const int *socket = argument;

	return rshutdown(*socket, SHUT_WR) || rclose(*socket) ? argument : NULL;
}

/* Both ends shut down at the same time: sent data still arrives before the close. */
TEST(test_both_shut_down)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	int listener = new_rlistener(1), message, socket;
	const int more = 6;
	pthread_t closer;
	uint32_t bytes;
	void *failed;

	peer_make(peer, listener);
	/* Credit for more messages than it has receives: the excess is retransmitted until receives are posted (RNR). */
	write_be(peer->own + 2, 2, PEER_RECEIVES + more);
	peer_connect(peer, listener);
	assert_int_equal(peer_next(peer, &bytes), CREDIT(384));
	for (message = 0; message < PEER_RECEIVES + more; message++)
		assert_int_equal(rsend(peer->socket, "x", 1, 0), 1);
	socket = peer->socket;
	peer->socket = -1;
	assert_int_equal(pthread_create(&closer, NULL, shut_down_and_close, &socket), 0);
	usleep(50000);
	peer_write(peer, 0, 0, 0, CONTROL(SHUTDOWN));
	usleep(50000);
	for (message = 0; message < PEER_RECEIVES + more; message++)
		assert_int_equal(peer_next(peer, &bytes), DATA(1));
	assert_int_equal(peer_next(peer, &bytes), CONTROL(SHUTDOWN));
	assert_int_equal(pthread_join(closer, &failed), 0);
	assert_null(failed);
	end_peer(peer);
}

/* An end that detects the peer's shutdown only in its own shutdown still sends its own. */
TEST(test_shut_down_after_peer)
{
	struct peer *peer = begin_peer(0);
	uint32_t bytes, said;

	take_second_half(peer);
	peer_write(peer, 0, 0, 0, CONTROL(SHUTDOWN));
	assert_success(rshutdown(peer->socket, SHUT_WR));
	said = peer_next(peer, &bytes);
	assert_true(said == CONTROL(SHUTDOWN) || said == CONTROL(DISCONNECT));
	assert_true(rready(peer->socket, POLLIN, 0) & POLLHUP);
	end_peer(peer);
}

/* A peer that never confirms does not delay rclose() beyond SO_LINGER. */
TEST(test_unconfirmed)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	int listener = new_rlistener(1);
	struct rdma_conn_param param = {.private_data = peer->own, .private_data_len = PEER_DESCRIPTION};
	const struct linger linger = {.l_onoff = 1, .l_linger = 1};
	double began;
	int socket;

	peer_make(peer, listener);
	assert_success(rdma_connect(peer->id, &param));
	/* It would confirm in rdma_get_cm_event(3). */
	socket = raccept(listener, NULL, NULL);
	assert_true(socket >= 0);
	assert_success(rsetsockopt(socket, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	began = seconds_now();
	assert_success(rclose(socket));
	assert_true(seconds_now() - began >= 0.9);
	assert_true(seconds_now() - began < 5);
	end_peer(peer);
}

TEST(test_mapping)
{
	struct peer *peer = begin_peer(2);
	static char memory[256];
	uint64_t offset, address;
	uint32_t bytes, length;

	take_second_half(peer);
	assert_int_equal(riomap(peer->socket, memory, sizeof(memory), PROT_WRITE, 0, 0x1000), 0x1000);
	assert_int_equal(rsend(peer->socket, "x", 1, 0), 1);
	/* Entry 0, after the targets: offset, address, key, length. */
	assert_int_equal(peer_next(peer, &bytes), 6u << 29 | 0);
	assert_int_equal(bytes, 24);
	memcpy(&offset, peer->list + 32, 8);
	memcpy(&address, peer->list + 40, 8);
	memcpy(&length, peer->list + 52, 4);
	assert_int_equal(offset, 0x1000);
	assert_ptr_equal((void *)(uintptr_t)address, memory);
	assert_int_equal(length, sizeof(memory));
	assert_int_equal(peer_next(peer, &bytes), DATA(1));
	/* An entry of the peer: a write without immediate. */
	memcpy(peer->out, &(uint64_t){77}, 8);
	memcpy(peer->out + 8, &(uint64_t){(uintptr_t)peer->ring + 6000}, 8);
	memcpy(peer->out + 16, &peer->ring_mr->rkey, 4);
	memcpy(peer->out + 20, &(uint32_t){10}, 4);
	peer_write(peer, 24, their_list(peer) + 32 + 24, their_list_key(peer), 6u << 29 | 1);
	peer_write(peer, 0, 0, 0, CREDIT(60));
	assert_int_equal(rready(peer->socket, POLLOUT, LIMIT_MS), POLLOUT);
	/* It may arrive later than the first call. */
	while (riowrite(peer->socket, "mapped", 6, 80, MSG_DONTWAIT) == (size_t)-1)
		assert_int_equal(errno, EINVAL);
	assert_int_equal(rsend(peer->socket, "y", 1, 0), 1);
	assert_int_equal(peer_next(peer, &bytes), DATA(1));
	assert_memory_equal(peer->ring + 6003, "mapped", 6);
	/* Writes end at its ten bytes. */
	assert_int_equal(riowrite(peer->socket, "0123456789", 10, 80, 0), 7);
	assert_bytes_errno((ssize_t)riowrite(peer->socket, "x", 1, 87, 0), EINVAL);
	end_peer(peer);
}

static void *send_byte(void *argument)
{
	return (void *)(intptr_t)rsend(*(int *)argument, "x", 1, 0);
}

/* A mapping that is removed while a call waits for credits to announce it is never announced. */
TEST(test_unmapped_meanwhile)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	static char memory[256];
	int listener = new_rlistener(1);
	pthread_t sender;
	uint32_t bytes;
	void *sent;

	peer_make(peer, listener);
	write_be(peer->own + 2, 2, 0);
	peer_connect(peer, listener);
	assert_int_equal(peer_next(peer, &bytes), CREDIT(384));
	assert_int_equal(riomap(peer->socket, memory, sizeof(memory), PROT_WRITE, 0, 0), 0);
	assert_int_equal(pthread_create(&sender, NULL, send_byte, &peer->socket), 0);
	usleep(50000);
	assert_success(riounmap(peer->socket, memory, sizeof(memory)));
	peer_write(peer, 0, 0, 0, CREDIT(5));
	assert_int_equal(pthread_join(sender, &sent), 0);
	assert_int_equal((intptr_t)sent, 1);
	assert_int_equal(peer_next(peer, &bytes), DATA(1));
	end_peer(peer);
}

/* ---- violations by the peer ----------------------------------------------------------------------------------------- */

static void expect_broken(struct peer *peer, uint32_t bytes, uint64_t address, uint32_t key, uint32_t immediate)
{
	char byte;

	take_second_half(peer);
	peer_write(peer, bytes, address, key, immediate);
	assert_bytes_errno(rrecv(peer->socket, &byte, 1, 0), EPROTO);
	assert_int_equal(rrecv(peer->socket, &byte, 1, 0), 0);
	assert_bytes_errno(rsend(peer->socket, "x", 1, 0), ECONNRESET);
	assert_true(rready(peer->socket, POLLIN, 0) & POLLERR);
	end_peer(peer);
}

TEST(test_too_much_data)
{
	struct peer *peer = begin_peer(0);

	expect_broken(peer, 0, 0, 0, DATA(32769));
	peer = begin_peer(0);
	expect_broken(peer, 0, 0, 0, DATA(0x1fffffff));
}

/* More messages than it was given credit for, of one byte each. */
TEST(test_too_many_messages)
{
	struct peer *peer = begin_peer(0);
	int message;
	char byte;

	take_second_half(peer);
	for (message = 0; message < 60; message++)
		peer_write(peer, 0, 0, 0, DATA(1));
	/* A message without a receive is repeated after 655 ms. */
	for (message = 0; message < LIMIT_MS && !(rready(peer->socket, POLLIN, 0) & POLLERR); message++)
		usleep(1000);
	assert_true(rready(peer->socket, POLLIN, 0) & POLLERR);
	/* The messages covered by credits arrived. */
	for (message = 0; rrecv(peer->socket, &byte, 1, 0) == 1; message++)
		;
	assert_int_equal(errno, EPROTO);
	assert_int_equal(rrecv(peer->socket, &byte, 1, 0), 0);
	end_peer(peer);
}

/* An empty message is not the end of the stream. */
TEST(test_empty_message)
{
	struct peer *peer = begin_peer(0);
	char byte;

	take_second_half(peer);
	peer_write(peer, 0, 0, 0, DATA(0));
	peer_write(peer, 1, their_ring(peer), their_ring_key(peer), DATA(1));
	assert_int_equal(rrecv(peer->socket, &byte, 1, MSG_PEEK), 1);
	assert_int_equal(rrecv(peer->socket, &byte, 1, 0), 1);
	end_peer(peer);
}

TEST(test_operations)
{
	static const uint32_t reserved[] = {1, 2, 3, 5};
	size_t index;

	for (index = 0; index < 4; index++)
		expect_broken(begin_peer(0), 0, 0, 0, reserved[index] << 29);
}

TEST(test_slots)
{
	struct peer *peer = begin_peer(0);
	int count;
	char byte;

	/* An announcement with a size other than that of a slot. */
	expect_broken(peer, 8, their_list(peer), their_list_key(peer), CREDIT(9));
	/* Three announcements for two slots, none of which was used. */
	peer = begin_peer(0);
	take_second_half(peer);
	for (count = 0; count < 3; count++)
		peer_write(peer, 16, their_list(peer), their_list_key(peer), CREDIT(9));
	assert_bytes_errno(rrecv(peer->socket, &byte, 1, 0), EPROTO);
	end_peer(peer);
}

/* A target outside the peer's memory: the connection breaks, and the program gets the error. */
TEST(test_target_elsewhere)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	int listener = new_rlistener(1), tries;
	ssize_t sent = 0;

	peer_make(peer, listener);
	write_be(peer->own + 24, 8, 0xdead0000);
	peer_connect(peer, listener);
	for (tries = 0; tries < 1000 && sent >= 0; tries++) {
		rready(peer->socket, 0, 1);
		sent = rsend(peer->socket, "x", 1, MSG_DONTWAIT);
		if (sent < 0 && errno == EAGAIN)
			sent = 0;
	}
	assert_int_equal(sent, -1);
	assert_true(errno == EIO || errno == ECONNRESET);
	end_peer(peer);
}

/* A request that does not describe a stream is rejected, and the listener continues. */
TEST(test_descriptions)
{
	static const struct {
		size_t place, count;
		uint64_t value;
	} wrong[] = {{0, 1, 2}, {0, 1, 0}, {20, 4, 0}};
	size_t index;

	for (index = 0; index < sizeof(wrong) / sizeof(wrong[0]); index++) {
		struct peer *peer = calloc(1, sizeof(*peer));
		int listener = new_rlistener(2);
		struct rdma_conn_param param = {.private_data = peer->own, .private_data_len = PEER_DESCRIPTION};

		peer_make(peer, listener);
		write_be(peer->own + wrong[index].place, wrong[index].count, wrong[index].value);
		assert_success(rdma_connect(peer->id, &param));
		assert_int_equal(rready(listener, POLLIN, LIMIT_MS), POLLIN);
		set_nonblocking(listener, true);
		assert_errno(raccept(listener, NULL, NULL), EAGAIN);
		expect_event(peer->channel, RDMA_CM_EVENT_REJECTED);
		end_peer(peer);
	}
}
