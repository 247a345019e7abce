/* SPDX-License-Identifier: BSD-2-Clause */
/* The first 40 bytes in the buffer of a received datagram. */
#ifndef SOFTHCA_TRANSPORT_RESPONDER_GRH_H
#define SOFTHCA_TRANSPORT_RESPONDER_GRH_H

#include "wire/packet.h"

/**
 * Writes the 40 bytes before a received datagram (IBTA 8.3; for RoCE v2 over IPv4 the IPv4 header is in the last 20).
 * It has @payload bytes and perhaps @immediate data.
 */
void grh_build(uint8_t grh[40], const struct packet_path *path, uint64_t payload, bool immediate);

#endif
