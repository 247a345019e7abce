/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that connects to this one over shared memory and may write anything: played by the test itself, which
 * connects to its own slot. Its records arrive as from another process, and packets for QPs of this slot go to it.
 */
#ifndef SOFTHCA_TESTS_SHM_HOSTILE_H
#define SOFTHCA_TESTS_SHM_HOSTILE_H

#include <sched.h>
#include "test_case.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#include "core/epoch.h"
#include "explain/explain.h"
#include "link/host/hello.h"
#include "link/host/table.h"
#include "link/shm/shm.h"
#include "shm_ring_fixture.h"

struct hostile {
	int socket;
	struct shm_ring *rings;
	struct shm_producer out; /* to the device */
	struct shm_consumer in;  /* from it */
};

/* Connects as another process would, to the slot of QP @qpn. */
static inline void hostile_connect(struct hostile *hostile, uint32_t qpn)
{
	struct host_name name = host_slot_name(host_slot_of(qpn));
	int memory = host_memory_create();

	memset(hostile, 0, sizeof(*hostile));
	assert_true(memory >= 0);
	hostile->rings = mmap(NULL, shm_carrier.memory_size(), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	assert_true(hostile->rings != MAP_FAILED);
	hostile->out.ring = &hostile->rings[0];
	hostile->in.ring = &hostile->rings[1];
	hostile->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	/* Keeps the device thread out between the two steps: it would record the connection only at its next arrival. */
	pthread_mutex_lock(&host_table.lock);
	assert_int_equal(connect(hostile->socket, (struct sockaddr *)&name.address, name.length), 0);
	assert_int_equal(host_hello_send(hostile->socket, memory), 0);
	close(memory);
	host_take_connections();
	pthread_mutex_unlock(&host_table.lock);
}

static inline void hostile_leave(struct hostile *hostile)
{
	close(hostile->socket);
	munmap(hostile->rings, shm_carrier.memory_size());
}

/* Wakes the device thread. */
static inline void hostile_wake(struct hostile *hostile)
{
	send(hostile->socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static inline uint64_t test_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Waits for an action of the device thread; 10 s count as never. */
#define WAIT_FOR(condition)                                                                                            \
	do {                                                                                                           \
		uint64_t end_ = test_now_ms() + 10000;                                                                 \
		while (!(condition)) {                                                                                 \
			if (test_now_ms() > end_)                                                                      \
				fail_msg("not within 10 s: %s", #condition);                                           \
			sched_yield();                                                                                 \
		}                                                                                                      \
	} while (0)

/* Returns true if the other side has ended the connection. */
static inline bool hostile_is_cut_off(struct hostile *hostile)
{
	char byte;
	ssize_t length = recv(hostile->socket, &byte, 1, MSG_DONTWAIT);

	return length == 0 || (length < 0 && errno == ECONNRESET);
}

/* Returns a slot with the headers of an RC packet: BTH only. */
static inline struct shm_slot hostile_bth(uint8_t opcode, uint32_t qpn, uint32_t psn, uint32_t length)
{
	struct shm_slot slot = {.headers = ROCE_BTH_BYTES, .length = length};
	const uint8_t bth[ROCE_BTH_BYTES] = {opcode,
					     (uint8_t)(0x40 | roce_pad(length) << 4),
					     0xff,
					     0xff,
					     0,
					     (uint8_t)(qpn >> 16),
					     (uint8_t)(qpn >> 8),
					     (uint8_t)qpn,
					     0x80,
					     (uint8_t)(psn >> 16),
					     (uint8_t)(psn >> 8),
					     (uint8_t)psn};

	memcpy(slot.bytes, bth, sizeof(bth));
	return slot;
}

/* Sends a record unchecked, with @length bytes as its payload. */
static inline void hostile_send(struct hostile *hostile, const struct shm_slot *slot, const void *payload,
				uint32_t length)
{
	struct shm_cursor from = shm_tail(&hostile->out), to = from;
	struct shm_slot copy = *slot;
	uint32_t lines = shm_record_lines(slot);
	uint32_t at = shm_step(&to, lines);
	uint32_t front = shm_path_lines(slot);

	assert_int_equal(shm_reserve(&hostile->out, from, to), 0);
	if (length && shm_payload_lines(slot))
		memcpy(hostile->out.ring->data + (size_t)(at + front) * SHM_LINE, payload, length);
	else if (length && slot->headers + length <= SHM_INLINE_BYTES)
		memcpy(copy.bytes + slot->headers, payload, length);
	shm_publish(hostile->out.ring, from.slot, &copy);
	hostile_wake(hostile);
}

#endif
