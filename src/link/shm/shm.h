/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shm link: runs of packets through a pair of rings in memory that two processes of a host share, one ring for each
 * direction. What the host part (link/host/host.h) calls of it.
 */
#ifndef SOFTHCA_LINK_SHM_SHM_H
#define SOFTHCA_LINK_SHM_SHM_H

#include <stddef.h>
#include <stdint.h>

struct host_peer;

/** Bytes of the memory of a connection. */
size_t shm_memory_size(void);

/**
 * A connection was made: @peer->memory is mapped (all zero if this side created it, and then the other side does not have
 * it yet). Makes @peer->shm and the poller, if it is the first. Returns 0 or a negative errno; then the connection is given
 * up. The lock of the host table is held, perhaps a QP's lock: call nothing of link/host/host.h.
 */
int shm_peer_begin(struct host_peer *peer);
/**
 * The other side has gone: fails what waits for it (see link_resume). @peer->gone is set, nobody finds it any more, its
 * memory is still there: what the other side had sent before it ended can be taken out. On the device thread, no lock held,
 * in no epoch section.
 */
void shm_peer_gone(struct host_peer *peer);
/** An epoch after it was removed, or in a forked child, or if the connection was given up: frees @peer->shm. */
void shm_peer_end(struct host_peer *peer);

/**
 * Completions of QP @qpn are about to give memory back that the peer has not acknowledged: nobody reads it any more for
 * those packets that were sent so far. Any thread, any lock.
 */
void shm_withdraw(uint32_t qpn);

/**
 * Hands a frame, that came from another host and is for QP @qpn of another process of this one, to that process: @bytes
 * from BTH to the end of the payload, without ICRC, which was checked. What cannot be handed on is lost,
 * and counted.
 */
struct packet_path;
void shm_forward(uint32_t qpn, const struct packet_path *path, const uint8_t *bytes, size_t length);

#endif
