/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers before BTH in a capture. Pure functions, any thread may call. */
#ifndef SOFTHCA_FILTER_CAPTURE_ETHERNET_H
#define SOFTHCA_FILTER_CAPTURE_ETHERNET_H

#include "hca/gid.h"
#include "wire/ip.h"

struct hca;

#define ETHERNET_BYTES 14
#define CAPTURE_MOST_HEADERS (ETHERNET_BYTES + IP_MOST_HEADERS)

/**
 * Writes Ethernet, IP and UDP headers for @bytes, BTH to ICRC, sent along @path. MAC addresses are from the GID table
 * of @hca or derived from the GIDs of other hosts. RoCE v1, which has no IP, becomes v2 with the same GIDs. Returns the
 * number of bytes written.
 */
uint32_t capture_headers_write(uint8_t *to, const struct hca *hca, const struct packet_path *path, uint16_t source_port,
			       const uint8_t *bytes, uint32_t length);

#endif
