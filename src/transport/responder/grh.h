/* SPDX-License-Identifier: BSD-2-Clause */
/* The header that a receiver of datagrams finds in the first 40 bytes of its buffer. */
#ifndef SOFTHCA_TRANSPORT_RESPONDER_GRH_H
#define SOFTHCA_TRANSPORT_RESPONDER_GRH_H

#include "wire/packet.h"

/**
 * Writes the 40 bytes before a received datagram (IBTA 8.3; for RoCE v2 over IPv4 the IPv4 header is in the last 20).
 * The datagram has @payload bytes and, if @immediate, immediate data.
 */
void grh_build(uint8_t grh[40], const struct packet_path *path, uint64_t payload, bool immediate);

#endif
