/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes and revokes grants, see DESIGN.md. The poller makes them, and only on the device thread. */
#include <string.h>
#include <unistd.h>

#include "core/epoch.h"
#include "hca/hca.h"
#include "hca/grants.h"
#include "link/shm/memory_kind.h"
#include "link/shm/peer.h"

/* The other side reads this word to verify that it has opened the right memory. */
static uint64_t probe;

static void probe_prepare(struct shm_state *own)
{
	/* Written only once, because peers already have the value. */
	if (!__atomic_load_n(&probe, __ATOMIC_RELAXED))
		__atomic_store_n(&probe, hca_random(first_device()) | 1, __ATOMIC_RELAXED);
	own->probe_value = __atomic_load_n(&probe, __ATOMIC_RELAXED);
	own->probe = (uintptr_t)&probe;
}

void shm_grants_prepare(struct shm_peer *peer)
{
	probe_prepare(peer->own);
	peer->own->process = (uint32_t)getpid();
	peer->own->attends = __atomic_load_n(&shm_poller.attends, __ATOMIC_RELAXED);
	__atomic_store_n(&peer->out.ring->generation, 1, __ATOMIC_RELEASE);
}

void shm_attend(struct poller *poller, bool attends)
{
	struct shm_poller *shm = (struct shm_poller *)poller;

	__atomic_store_n(&shm->attends, attends, __ATOMIC_RELAXED);
	epoch_enter();
	for (struct host_peer *host = host_peers(); host; host = host_next(host))
		__atomic_store_n(&shm_of(host)->own->attends, attends, __ATOMIC_RELAXED);
	epoch_leave();
}

static void grant_write(struct shm_grant *grant, const struct shm_grant *wanted)
{
	uint32_t sequence = __atomic_load_n(&grant->sequence, __ATOMIC_RELAXED) | 1;

	/* Before the stores that follow; on x86-64 the exchange alone orders it. */
	__atomic_exchange_n(&grant->sequence, sequence, __ATOMIC_SEQ_CST);
	order_before_stores();
	memcpy(&grant->source, &wanted->source, sizeof(*grant) - offsetof(struct shm_grant, source));
	__atomic_store_n(&grant->sequence, sequence + 1, __ATOMIC_RELEASE);
}

static bool grant_has_same_memory(const struct shm_grant *one, const struct shm_grant *other)
{
	return one->rkey == other->rkey && one->memory == other->memory && one->length == other->length &&
	       one->writes == other->writes;
}

/*
 * Returns true if accesses to the memory of @wanted never wait for another process or a server. Determined once per
 * key: @former is the grant previously in this place.
 */
static bool grant_is_safe(struct shm_peer *peer, const struct shm_grant *former, const struct shm_grant *wanted)
{
	if (grant_has_same_memory(former, wanted))
		return true;
	if (grant_has_same_memory(&peer->refused, wanted))
		return false;
	if (memory_kind_is_local(wanted->memory, wanted->length, wanted->writes))
		return true;
	peer->refused = *wanted;
	return false;
}

void shm_grant(struct shm_peer *peer, struct run *run, const struct packet *packet)
{
	struct shm_grant *grant = shm_grant_place(peer->out.ring, packet->destination_qpn, packet->rkey);
	uint32_t attends = __atomic_load_n(&shm_poller.attends, __ATOMIC_RELAXED);
	/*
	 * This precedes all reads of what the grant depends on, including the end of the connection. A thread that
	 * changes any of these increments the generation afterwards.
	 */
	uint64_t generation = __atomic_load_n(&peer->out.ring->generation, __ATOMIC_ACQUIRE);
	struct run_reach reach;
	struct shm_grant wanted;

	/* The value may have changed while the connection was being made. */
	if (__atomic_load_n(&peer->own->attends, __ATOMIC_RELAXED) != attends)
		__atomic_store_n(&peer->own->attends, attends, __ATOMIC_RELAXED);
	/*
	 * With different process IDs on the two sides (PID namespaces), drain.c could not wait for the other process.
	 */
	if (!peer->host->pid || peer->other->process != (uint32_t)peer->host->pid ||
	    __atomic_load_n(&peer->broken, __ATOMIC_RELAXED) || __atomic_load_n(&peer->host->gone, __ATOMIC_RELAXED) ||
	    !delivery->reach(run, packet, &reach))
		return;
	memset(&wanted, 0, sizeof(wanted));
	wanted.source = reach.peer_qpn;
	wanted.destination = packet->destination_qpn;
	wanted.rkey = packet->rkey;
	wanted.start = reach.start;
	wanted.length = reach.length;
	wanted.memory = reach.memory;
	wanted.reads = reach.reads;
	wanted.writes = reach.writes;
	wanted.generation = generation;
	wanted.sequence = grant->sequence;
	if (!memcmp(grant, &wanted, sizeof(wanted)) || !grant_is_safe(peer, grant, &wanted))
		return;
	grant_write(grant, &wanted);
	__atomic_add_fetch(&peer->own->granted, 1, __ATOMIC_RELEASE);
	counter_add(first_device(), COUNTER_SHM_GRANTS, 1);
}

static void grants_revoke_all(void)
{
	epoch_enter();
	for (struct host_peer *host = host_peers(); host; host = host_next(host))
		shm_grants_revoke(shm_of(host));
	epoch_leave();
}

const struct grants shm_grants = {.revoke = grants_revoke_all, .drain = shm_drain};
