/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomic operations, plain and masked (mlx5-formats 1.5): their arithmetic, and how they get at memory. */
#ifndef SOFTHCA_TRANSPORT_ATOMIC_H
#define SOFTHCA_TRANSPORT_ATOMIC_H

#include "wire/packet.h"

/** What @before becomes by the atomic of @packet, whose operands are those of the packet. Pure. */
uint64_t atomic_result(const struct packet *packet, uint64_t before);

/**
 * Executes the atomic of @packet on @sink, which holds the target with the right for it, and was not used yet. Returns
 * what was there before. Inside an epoch section; takes the device's lock of atomics where memory is not one aligned
 * word.
 */
uint64_t atomic_execute(const struct walk_access *access, const struct packet *packet, struct stream *sink);

#endif
