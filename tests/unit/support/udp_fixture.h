/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The udp link (src/link/udp), in the test's own network namespace if permitted, and strangers: plain sockets of the
 * test. ICRCs are computed bit by bit, as IBTA 7.8.1 describes.
 */
#ifndef SOFTHCA_TESTS_UNIT_UDP_FIXTURE_H
#define SOFTHCA_TESTS_UNIT_UDP_FIXTURE_H

#include <arpa/inet.h>
#include "own_network.h"
#include "test_case.h"

#include <net/if.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <time.h>

#include "core/epoch.h"
#include "hca/hca.h"
#include "observe/counters.h"
#include "process/commands.h"
#include "wire/roce.h"
#include "link/udp/parts.h"

enum { UDP_TEST_PORT = 4791 };

static inline void udp_set_mtu(int mtu)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_mtu = mtu};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	assert_int_equal(ioctl(fd, SIOCSIFMTU, &lo), 0);
	close(fd);
}

/* Enters a namespace with only lo and no ports in use. Skips the test if that is not permitted. */
static inline void udp_enter_namespace(void)
{
	if (!own_network()) {
		printf("1..0 # SKIP no network of its own: %s\n", strerror(errno));
		exit(77);
	}
	setenv("SOFTHCA_GIDS", "loopback", 1);
	setenv("SOFTHCA_LINK", "udp", 1);
}

/* ---- strangers ------------------------------------------------------------------------------------------------- */

/* Opens an unconnected socket of @family, bound to @port (0: any), that does not fragment. */
static inline int stranger_open(int family, uint16_t port)
{
	const struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0), dont_fragment = IP_PMTUDISC_DO;

	assert_true(fd >= 0);
	if (family == AF_INET)
		assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &dont_fragment, sizeof(int)), 0);
	assert_int_equal(bind(fd, family == AF_INET ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6,
			      family == AF_INET ? sizeof(v4) : sizeof(v6)),
			 0);
	return fd;
}

static inline uint16_t stranger_port(int fd)
{
	struct sockaddr_in6 name;
	socklen_t length = sizeof(name);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &length), 0);
	return ntohs(name.sin6_port); /* at the same offset as in struct sockaddr_in */
}

static inline bool stranger_waits(int fd, int ms)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	return poll(&ready, 1, ms) == 1;
}

/* ---- GIDs ------------------------------------------------------------------------------------------------------ */

static inline union ibv_gid gid_from(const char *text)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	if (inet_pton(AF_INET, text, gid.raw + 12) != 1)
		assert_int_equal(inet_pton(AF_INET6, text, gid.raw), 1);
	return gid;
}

/* ---- ICRC ------------------------------------------------------------------------------------------------------ */

static inline uint32_t crc_of_byte(uint32_t crc, uint8_t byte)
{
	crc ^= byte;
	for (int i = 0; i < 8; i++)
		crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	return crc;
}

static inline uint32_t crc_of(uint32_t crc, const uint8_t *bytes, size_t length)
{
	while (length--)
		crc = crc_of_byte(crc, *bytes++);
	return crc;
}

/* Returns the ICRC of @length bytes from BTH on, without ICRC. The four bytes are in memory order. */
static inline uint32_t model_icrc(const union ibv_gid *source, const union ibv_gid *destination, uint16_t source_port,
				  uint16_t port, uint16_t identification, bool may_fragment, const uint8_t *bytes,
				  size_t length)
{
	static const uint8_t ones[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	bool v4 = !memcmp(source->raw, mapped, sizeof(mapped));
	uint16_t datagram = (uint16_t)(length + 4 + 8);
	uint8_t ip[40] = {0}, udp[8], bth[12];
	uint32_t crc = crc_of(0xffffffff, ones, sizeof(ones));

	if (v4) {
		const uint8_t header[12] = {0x45,
					    0xff,
					    (uint8_t)((datagram + 20) >> 8),
					    (uint8_t)(datagram + 20),
					    (uint8_t)(identification >> 8),
					    (uint8_t)identification,
					    may_fragment ? 0 : 0x40,
					    0,
					    0xff,
					    17,
					    0xff,
					    0xff};

		memcpy(ip, header, sizeof(header));
		memcpy(ip + 12, source->raw + 12, 4);
		memcpy(ip + 16, destination->raw + 12, 4);
	} else {
		const uint8_t header[8] = {0x6f, 0xff, 0xff, 0xff, (uint8_t)(datagram >> 8), (uint8_t)datagram,
					   17,   0xff};

		memcpy(ip, header, sizeof(header));
		memcpy(ip + 8, source->raw, 16);
		memcpy(ip + 24, destination->raw, 16);
	}
	memcpy(udp, (const uint16_t[]){htons(source_port), htons(port), htons(datagram), 0xffff}, sizeof(udp));
	memcpy(bth, bytes, sizeof(bth));
	bth[4] = 0xff;
	crc = crc_of(crc, ip, v4 ? 20 : 40);
	crc = crc_of(crc, udp, sizeof(udp));
	crc = crc_of(crc, bth, sizeof(bth));
	return htole32(~crc_of(crc, bytes + sizeof(bth), length - sizeof(bth)));
}

/* ---- explanations ---------------------------------------------------------------------------------------------- */

/* Waits for an explanation by @rule; ignores others. */
static inline bool udp_explained(enum explain_rule rule, struct explain_record *record)
{
	for (int i = 0; i < 400; i++) {
		uint64_t before = 0;

		while (explain_previous(hca_device(0), 0, before, record)) {
			if (record->rule == rule)
				return true;
			before = record->serial;
		}
		usleep(10000);
	}
	return false;
}

#endif
