/* SPDX-License-Identifier: BSD-2-Clause */
/* The header that a datagram's receiver finds in the first 40 bytes of its buffer. */
#ifndef SOFTHCA_TRANSPORT_RESPONDER_GRH_H
#define SOFTHCA_TRANSPORT_RESPONDER_GRH_H

#include "wire/packet.h"

/**
 * The 40 bytes in front of a received datagram (IBTA 8.3; for RoCE v2 over IPv4 the IPv4 header in the last 20), which
 * brought @payload bytes and perhaps an @immediate.
 */
void grh_build(uint8_t grh[40], const struct packet_path *path, uint64_t payload, bool immediate);

#endif
