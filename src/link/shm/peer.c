/* SPDX-License-Identifier: BSD-2-Clause */
/* State of connections and of the poller, see peer.h. */
#include "link/shm/peer.h"

#include <poll.h>
#include <sys/socket.h>

#include "core/cancellation.h"

struct shm_poller shm_poller;

bool shm_is_still_there(const struct shm_peer *peer)
{
	WITHOUT_CANCELLATION;
	struct pollfd socket = {.fd = peer->host->socket.fd, .events = POLLRDHUP};

	return !__atomic_load_n(&peer->host->gone, __ATOMIC_ACQUIRE) && poll(&socket, 1, 0) >= 0 &&
	       !(socket.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL));
}

struct shm_grant *shm_grant_place(struct shm_ring *ring, uint32_t destination, uint32_t rkey)
{
	uint32_t hash = (destination ^ rkey << 8 ^ rkey >> 8) * 0x9e3779b1u;

	return &ring->grant[hash >> 16 & (SHM_GRANTS - 1)];
}

void shm_grants_revoke(struct shm_peer *peer)
{
	__atomic_add_fetch(&peer->out.ring->generation, 1, __ATOMIC_SEQ_CST);
}

void shm_break(struct shm_peer *peer)
{
	__atomic_store_n(&peer->broken, 1, __ATOMIC_RELEASE);
	shm_grants_revoke(peer);
	/* link/host then detects the end of the connection, here and in the other process. */
	shutdown(peer->host->socket.fd, SHUT_RDWR);
}
