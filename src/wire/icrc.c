/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The invariant CRC (docs/inside/wire.md): CRC-32 of eight bytes 0xff, which replace the LRH that RoCE does not have,
 * and of the frame from the IP header on, with all bits set in fields that may change on the way.
 */
#include <endian.h>
#include <isa-l/crc.h>
#include <string.h>

#if defined(__x86_64__) && !defined(ICRC_PORTABLE)
#include <immintrin.h>
#elif defined(__aarch64__) && !defined(ICRC_PORTABLE)
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "wire/icrc_powers.h"
#include "wire/ip.h"
#include "wire/roce.h"

#define SEED 0x2144df1c /* CRC-32 of eight bytes 0xff */
#define BTH_VARIANT 4   /* FECN, BECN, six reserved bits */
/* Bytes from the IPv4 identification to the BTH. */
#define BEHIND_IDENTIFICATION (IPV4_BYTES - 4 + UDP_BYTES)

uint16_t roce_source_port(const struct packet_path *path, uint32_t source_qpn, uint32_t destination_qpn)
{
	uint64_t product = (uint64_t)source_qpn * destination_qpn;
	uint32_t label = path->flow_label;

	if (path->udp_source_port)
		return path->udp_source_port;
	if (!label) {
		product ^= product >> 20;
		product ^= product >> 40;
		label = product & 0xfffff;
	}
	return (uint16_t)(0xc000 | ((label & 0x3fff) ^ (label >> 14)));
}

static uint32_t icrc_headers_write(uint8_t *to, const struct packet_path *path, uint16_t source_port,
				   uint16_t destination_port, uint16_t identification, size_t length)
{
	uint32_t bytes =
		ip_headers_write(to, path, source_port, destination_port, identification, length + ROCE_ICRC_BYTES);

	if (bytes == IPV4_BYTES + UDP_BYTES) {
		to[IPV4_TYPE_OF_SERVICE] = 0xff;
		to[IPV4_TIME_TO_LIVE] = 0xff;
		memset(to + IPV4_CHECKSUM, 0xff, 2);
	} else {
		/* Traffic class and flow label. */
		to[0] |= 0x0f;
		memset(to + 1, 0xff, 3);
		to[IPV6_HOP_LIMIT] = 0xff;
	}
	memset(to + bytes - UDP_BYTES + UDP_CHECKSUM, 0xff, 2);
	return bytes;
}

/* ---- multiplication ------------------------------------------------------------------------------------------- */

/* Returns a b x modulo the polynomial; bit 31 is x^0. */
static uint32_t crc_multiply_bitwise(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (int i = 0; i < 32; i++) {
		product = product >> 1 ^ (product & 1 ? 0xedb88320 : 0);
		product ^= b >> i & 1 ? a : 0;
	}
	return product >> 1 ^ (product & 1 ? 0xedb88320 : 0);
}

#if defined(__x86_64__) && !defined(ICRC_PORTABLE)
/*
 * As crc_multiply_bitwise(), by Barrett reduction: multiplies by the inverse of the polynomial, then subtracts that
 * multiple of the polynomial.
 */
__attribute__((target("pclmul,sse4.1"))) static uint32_t crc_multiply_clmul(uint32_t a, uint32_t b)
{
	const __m128i constants = _mm_set_epi64x(0xf7011641, 0x1db710641);
	__m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)a), _mm_cvtsi32_si128((int)b), 0x00);
	uint32_t low = (uint32_t)_mm_cvtsi128_si32(product);
	__m128i times = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)low), constants, 0x10);

	times = _mm_cvtsi32_si128(_mm_cvtsi128_si32(times));
	times = _mm_clmulepi64_si128(times, constants, 0x00);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(product, times), 1);
}
#elif defined(__aarch64__) && !defined(ICRC_PORTABLE)
/* As on x86-64. */
__attribute__((target("+crypto"))) static uint32_t crc_multiply_pmull(uint32_t a, uint32_t b)
{
	uint64_t product = (uint64_t)vmull_p64(a, b);
	uint64_t times = (uint32_t)vmull_p64((uint32_t)product, 0xf7011641);

	return (uint32_t)((product ^ (uint64_t)vmull_p64(times, 0x1db710641)) >> 32);
}
#endif

static uint32_t crc_multiply(uint32_t a, uint32_t b)
{
#if defined(__x86_64__) && !defined(ICRC_PORTABLE)
	if (__builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1"))
		return crc_multiply_clmul(a, b);
#elif defined(__aarch64__) && !defined(ICRC_PORTABLE)
	if (getauxval(AT_HWCAP) & HWCAP_PMULL)
		return crc_multiply_pmull(a, b);
#endif
	return crc_multiply_bitwise(a, b);
}

/* ---- the CRC -------------------------------------------------------------------------------------------------- */

/* Returns the index of the start. Lengths differ in few bits. */
static size_t start_place(uint16_t source_port, size_t length)
{
	return (((uint32_t)length << 16 ^ source_port) * UINT32_C(0x9e3779b1)) >> 16 & (ROCE_ICRC_STARTS - 1);
}

static bool start_is_for(const struct roce_icrc_start *start, const struct packet_path *path, uint16_t source_port,
			 uint16_t destination_port, size_t length)
{
	return start->length == length && start->source_port == source_port &&
	       start->destination_port == destination_port &&
	       !memcmp(&start->source, &path->source, sizeof(path->source)) &&
	       !memcmp(&start->destination, &path->destination, sizeof(path->destination));
}

static void start_compute(struct roce_icrc_start *start, const struct packet_path *path, uint16_t source_port,
			  uint16_t destination_port, size_t length)
{
	uint8_t bytes[IP_MOST_HEADERS];
	uint32_t headers = icrc_headers_write(bytes, path, source_port, destination_port, 0, length);

	start->source = path->source;
	start->destination = path->destination;
	start->source_port = source_port;
	start->destination_port = destination_port;
	start->length = (uint32_t)length;
	start->crc = crc32_gzip_refl(SEED, bytes, headers);
}

const struct roce_icrc_start *roce_icrc_start(struct roce_icrc_start starts[static ROCE_ICRC_STARTS],
					      const struct packet_path *path, uint16_t source_port,
					      uint16_t destination_port, size_t length)
{
	struct roce_icrc_start *start = &starts[start_place(source_port, length)];

	if (!start_is_for(start, path, source_port, destination_port, length))
		start_compute(start, path, source_port, destination_port, length);
	return start;
}

/* A CRC is linear, so the bits of the identification add their parts to it. */
static uint32_t identification_part(uint16_t identification)
{
	return icrc_identification[0][identification >> 12] ^ icrc_identification[1][identification >> 8 & 15] ^
	       icrc_identification[2][identification >> 4 & 15] ^ icrc_identification[3][identification & 15];
}

/*
 * Returns what the fifth byte of the BTH adds to the register before the first byte: its difference from 0xff, as which
 * it counts, divided by x^32. Senders usually set it to 0.
 */
static uint32_t variant_part(uint8_t byte)
{
	return __builtin_expect(!byte, 1) ? ICRC_VARIANT_OF_0 : crc_multiply(0xff ^ byte, icrc_powers_fine[1]);
}

uint32_t roce_icrc_from(const struct roce_icrc_start *start, uint16_t identification, const uint8_t *bytes)
{
	uint32_t crc = start->crc ^ identification_part(identification);

	if (start->length > BTH_VARIANT)
		crc ^= variant_part(bytes[BTH_VARIANT]);
	return htole32(crc32_gzip_refl(crc, bytes, start->length));
}

uint32_t roce_icrc(const struct packet_path *path, uint16_t source_port, uint16_t destination_port,
		   uint16_t identification, const uint8_t *bytes, size_t length)
{
	struct roce_icrc_start start;

	start_compute(&start, path, source_port, destination_port, length);
	return roce_icrc_from(&start, ip_is_version_4(path) ? identification : 0, bytes);
}

/* ---- unseen fields ---------------------------------------------------------------------------------------------- */

/*
 * A difference in bytes 4 to 7 of the IPv4 header (identification, flags, fragment offset) changes the CRC by that
 * difference times x to the number of bits that follow. Division by that power gives the difference of these bytes,
 * with the least significant bit of the first byte as its lowest bit.
 */
#define IDENTIFICATION_DIFFERENCE 0x0000ffff
#define DONT_FRAGMENT_DIFFERENCE 0x00400000

/*
 * Returns the difference of the bytes from the identification on that changes the CRC of @length bytes by @difference.
 */
static uint32_t unseen_difference(uint32_t difference, size_t length)
{
	size_t words = (BEHIND_IDENTIFICATION + length) / 4;

	difference = crc_multiply(difference, icrc_powers_fine[words % ICRC_POWERS]);
	return crc_multiply(difference, icrc_powers_coarse[words / ICRC_POWERS]);
}

bool roce_icrc_fits_from(const struct roce_icrc_start *start, struct ipv4_unseen *unseen, const uint8_t *bytes)
{
	bool old = gid_is_ipv4(&start->source);
	uint16_t expected = old ? unseen->identification : 0;
	uint32_t icrc = roce_icrc_from(start, expected, bytes), length = start->length, found, difference;

	memcpy(&found, bytes + length, sizeof(found));
	*unseen = (struct ipv4_unseen){.identification = expected};
	if (__builtin_expect(found == icrc, 1))
		return true;
	if (!old || length % 4 || (BEHIND_IDENTIFICATION + length) / 4 >= ICRC_POWERS * ICRC_POWERS)
		return false;
	difference = unseen_difference(le32toh(found ^ icrc), length);
	if (difference & ~(uint32_t)(IDENTIFICATION_DIFFERENCE | DONT_FRAGMENT_DIFFERENCE))
		return false;
	unseen->identification ^= be16toh((uint16_t)difference);
	unseen->may_fragment = difference & DONT_FRAGMENT_DIFFERENCE;
	unseen->solved = true;
	return true;
}

bool roce_icrc_fits(const struct packet_path *path, uint16_t source_port, uint16_t destination_port,
		    struct ipv4_unseen *unseen, const uint8_t *bytes, size_t length)
{
	struct roce_icrc_start start;

	start_compute(&start, path, source_port, destination_port, length);
	return roce_icrc_fits_from(&start, unseen, bytes);
}
