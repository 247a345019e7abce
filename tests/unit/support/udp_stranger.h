/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stranger that sends datagrams to the RoCE port, and a live QP as their destination: WRITEs to memory with contents that
 * are compared with a copy.
 */
#ifndef SOFTHCA_TESTS_UNIT_UDP_STRANGER_H
#define SOFTHCA_TESTS_UNIT_UDP_STRANGER_H

#include "test_case.h"

#include "device_fixture.h"
#include "udp_fixture.h"

enum { MTU = 256, TARGET = 4096, MOST_PACKET = 28 + MTU + 4 };

static struct raw_cq cq;
static struct raw_qp qp;
static uint8_t expected[sizeof(device.memory)];
static int stranger;
static uint32_t psn;
static bool may_fragment; /* of the stranger's datagrams; their ICRCs cover it */
static union ibv_gid loopback;

static inline uint64_t counted(enum counter counter)
{
	return counter_read(device.hca, counter);
}

/* ---- packets ----------------------------------------------------------------------------------------------------- */

static inline void put32(uint8_t *to, uint32_t value)
{
	value = htonl(value);
	memcpy(to, &value, sizeof(value));
}

/* Computes the ICRC as if sent from the GID @from to the GID @to. */
static inline void put_icrc_of(const union ibv_gid *from, const union ibv_gid *to, uint8_t *packet, size_t length,
			       uint16_t identification)
{
	uint32_t icrc = model_icrc(from, to, stranger_port(stranger), UDP_TEST_PORT, identification, may_fragment,
				   packet, length - 4);

	memcpy(packet + length - 4, &icrc, 4);
}

static inline void put_icrc(uint8_t *packet, size_t length, uint16_t identification)
{
	put_icrc_of(&loopback, &loopback, packet, length, identification);
}

/* Builds a packet of a WRITE of @bytes bytes 'a' + n to TARGET + @offset. Returns its length. */
static inline size_t write_packet(uint8_t *packet, uint8_t opcode, uint32_t number, uint32_t offset, uint32_t bytes,
				  uint32_t of_message, uint16_t identification)
{
	/* WRITE FIRST and WRITE ONLY of RC and UC, and READ. */
	bool first = (opcode & 0x1f) == 0x06 || (opcode & 0x1f) == 0x0a || opcode == 0x0c;
	uint64_t address = htobe64((uintptr_t)device.memory + TARGET + offset);
	size_t length = 12;

	put32(packet, (uint32_t)opcode << 24 | 0x400000 | (-bytes & 3) << 20 | 0xffff);
	put32(packet + 4, qp.qp->number);
	put32(packet + 8, (psn + number) & 0xffffff);
	if (first) {
		memcpy(packet + 12, &address, 8);
		put32(packet + 20, mkey_number(device.region));
		put32(packet + 24, of_message);
		length += 16;
	}
	memset(packet + length, 'a' + (int)number, bytes);
	length += bytes;
	memset(packet + length, 0, -bytes & 3);
	length += (-bytes & 3) + 4;
	put_icrc(packet, length, identification);
	return length;
}

static inline void expect_written(uint32_t number, uint32_t offset, uint32_t bytes)
{
	memset(expected + TARGET + offset, 'a' + (int)number, bytes);
}

/* @segment: 0 for one packet. */
static inline void send_bytes(const uint8_t *bytes, size_t length, uint16_t segment)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(UDP_TEST_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int size = segment;

	assert_int_equal(setsockopt(stranger, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size)), 0);
	assert_int_equal(sendto(stranger, bytes, length, 0, (const struct sockaddr *)&to, sizeof(to)), length);
}

/* ---- the device ---------------------------------------------------------------------------------------------------- */

static inline uint32_t expected_psn(void)
{
	uint32_t result;

	queue_lock(&qp.qp->lock);
	result = qp.qp->responder.expected_psn;
	queue_unlock(&qp.qp->lock);
	return result;
}

/*
 * Waits for @packets packets. They arrive in order: when the QP has received the newest, all earlier ones have been
 * handled.
 */
static inline void wait_for(uint32_t packets)
{
	for (int i = 0; i < 5000 && expected_psn() != ((psn + packets) & 0xffffff); i++)
		usleep(1000);
	assert_int_equal(expected_psn(), (psn + packets) & 0xffffff);
}

static inline int open_receiver_of(enum ibv_qp_type type)
{
	struct ibv_qp_attr options = {.min_rnr_timer = 1};

	raw_cq_make(&device, &cq, 64);
	raw_qp_make(&device, &qp, type, &cq, 16);
	/* Its peer is a QP that does not exist, at the address of the stranger, so replies end there. */
	raw_qp_connect(&device, &qp, 0x77, &options);
	queue_lock(&qp.qp->lock);
	qp.qp->path = (struct packet_path){.source = loopback, .destination = loopback, .type = IBV_GID_TYPE_ROCE_V2};
	queue_unlock(&qp.qp->lock);
	psn = SQ_START_PSN;
	memcpy(expected, device.memory, sizeof(expected));
	return 0;
}

static inline int open_receiver(void **state)
{
	(void)state;
	return open_receiver_of(IBV_QPT_RC);
}

static inline int open_receiver_uc(void **state)
{
	(void)state;
	return open_receiver_of(IBV_QPT_UC);
}

static inline int close_receiver(void **state)
{
	(void)state;
	raw_qp_destroy(&qp);
	raw_cq_destroy(&cq);
	return 0;
}

/* Expects all of the memory to have its expected contents. */
static inline void expect_no_other_change(void)
{
	assert_memory_equal(device.memory, expected, sizeof(expected));
}

/* Runs the cases with a receiver each, on a device in the test's own network namespace. */
static inline int run_stranger(void)
{
	int result;

	udp_enter_namespace();
	loopback = gid_from("127.0.0.1");
	stranger = stranger_open(AF_INET, 0);
	device_open(&device);
	result = run_cases(.setup = open_receiver, .teardown = close_receiver);
	device_close(&device);
	return result;
}

#endif
