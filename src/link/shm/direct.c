/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READ and WRITE directly in the memory of a process that does not poll, through /proc/PID/mem; see DESIGN.md. Neither
 * side gains rights: the kernel lets a process open the memory only of a process that it fully controls anyway, and a
 * grant leads only to memory of the process that wrote it.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/cancellation.h"
#include "core/descriptor.h"
#include "core/guarded_call.h"
#include "hca/hca.h"
#include "link/shm/peer.h"

/* Values chosen for speed. */
enum {
	/* attempts at such an access if the thread loses its processor each time before the system call */
	SHM_DIRECT_TRIES = 4,
	/* ns from one access of a stream to the next, at most: several times the duration of one */
	SHM_STREAM_PAUSE_NS = 50000,
	/* ns of a stream until it changes to the ring: about what waking the device thread of the peer costs */
	SHM_STREAM_NS = 100000,
	/* factor and limit by which that grows with each stream that was none */
	SHM_STREAM_GROWTH = 8,
	SHM_STREAM_MOST_NS = 100000000,
	/* ns until a stream changes back, to find out whether it still is one */
	SHM_STREAM_RING_NS = 20000000,
	/* consecutive requests for which the program waits that end a stream */
	SHM_STREAM_WAITS = 4,
};

static bool direct_open(struct shm_peer *peer)
{
	uint64_t value = 0;
	pid_t pid = peer->host->pid;

	/* Direct accesses bypass the filters. */
	return pid && peer->other->process == (uint32_t)pid && !the_registry.filters && guarded_call_works() &&
	       host_open_memory(peer->host) && descriptor_check(peer->host->process_memory) &&
	       pread(peer->host->process_memory, &value, sizeof(value), (off_t)peer->other->probe) == sizeof(value) &&
	       value == peer->other->probe_value && shm_is_still_there(peer);
}

void shm_direct_try(struct shm_peer *peer)
{
	WITHOUT_CANCELLATION;

	if (!__atomic_load_n(&peer->other->granted, __ATOMIC_ACQUIRE) ||
	    __atomic_exchange_n(&peer->tried_direct, true, __ATOMIC_ACQUIRE) || !direct_open(peer))
		return;
	__atomic_store_n(&peer->can_direct, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&link_has_access, 1, __ATOMIC_RELAXED);
}

static bool grant_find(struct shm_peer *peer, const struct link_access *access, struct shm_grant *copy)
{
	const struct shm_grant *grant = shm_grant_place(peer->in.ring, access->destination_qpn, access->rkey);
	uint64_t offset;

	copy->sequence = __atomic_load_n(&grant->sequence, __ATOMIC_ACQUIRE);
	memcpy(&copy->source, &grant->source, sizeof(*copy) - offsetof(struct shm_grant, source));
	order_after_loads();
	if (copy->sequence & 1 || __atomic_load_n(&grant->sequence, __ATOMIC_RELAXED) != copy->sequence ||
	    !copy->generation)
		return false;
	if (copy->source != access->source_qpn || copy->destination != access->destination_qpn ||
	    copy->rkey != access->rkey || !(access->reads ? copy->reads : copy->writes))
		return false;
	offset = access->address - copy->start;
	return access->address >= copy->start && offset <= copy->length && access->length <= copy->length - offset;
}

/* Returns the ID of this thread, cached per generation, because a forked child's thread has another ID. */
static uint32_t access_thread_id(void)
{
	static __thread struct {
		uint32_t id, generation;
	} known __attribute__((tls_model("initial-exec")));

	if (unlikely(known.generation != progress_generation())) {
		known.id = (uint32_t)syscall(SYS_gettid);
		known.generation = progress_generation();
	}
	return known.id;
}

/*
 * Writes the last bytes as a separate range (DESIGN.md): the kernel copies one range after the other, and takes a lock
 * for each.
 */
static long access_transfer(const struct shm_peer *peer, const struct shm_grant *grant,
			    const struct link_access *access)
{
	uint32_t tail = access->length < 8 ? access->length : 8;
	const struct iovec parts[] = {{access->bytes, access->length - tail},
				      {access->bytes + (access->length - tail), tail}};
	long place = (long)(grant->memory + (access->address - grant->start));
	long arguments[5] = {peer->host->process_memory, (long)(uintptr_t)access->bytes, access->length, place, 0};
	long number = access->reads ? SYS_pread64 : SYS_pwrite64;
	long result = -EAGAIN;

	if (!access->reads && access->length > tail) {
		number = SYS_pwritev;
		arguments[1] = (long)(uintptr_t)parts;
		arguments[2] = 2;
	}
	if (!descriptor_check(peer->host->process_memory))
		return -EBADF;
	for (unsigned int i = 0; i < SHM_DIRECT_TRIES && result == -EAGAIN; i++)
		result = guarded_call(&peer->in.ring->generation, grant->generation, number, arguments);
	return result;
}

static bool access_is_done(struct shm_peer *peer, const struct link_access *access, long result)
{
	if (result == access->length)
		return true;
	if (result == -EAGAIN)
		return false;
	counter_add(access->hca, COUNTER_SHM_DIRECT_REFUSED, 1);
	/* The process has ended, or the kernel refuses access to its memory. Absent pages fail with other errors. */
	if (!result || result == -EPERM || result == -EACCES || result == -ENOSYS || result == -EBADF)
		__atomic_store_n(&peer->can_direct, 0, __ATOMIC_RELAXED);
	return false;
}

static void access_count(const struct link_access *access)
{
	uint64_t *counters = counters_here(access->hca);

	if (unlikely(!counters))
		return;
	counters_add(counters, access->reads ? COUNTER_SHM_DIRECT_READS : COUNTER_SHM_DIRECT_WRITES, 1);
	counters_add(counters, COUNTER_SHM_DIRECT_BYTES, access->length);
	counters_add(counters, COUNTER_SHM_RUNS_SENT, 1);
	counters_add(counters, access->reads ? COUNTER_SHM_BYTES_RECEIVED : COUNTER_SHM_BYTES_SENT, access->length);
	if (access->reads)
		counters_add(counters, COUNTER_SHM_RUNS_RECEIVED, 1);
}

/* Returns a number that changes when the peer sends anything, or accesses memory of this process. */
static uint32_t peer_activity(const struct shm_peer *peer)
{
	return __atomic_load_n(&peer->taken, __ATOMIC_RELAXED) +
	       __atomic_load_n(&peer->in.ring->access.count, __ATOMIC_RELAXED);
}

/* Returns true if the program waited for the request before @access; nothing is in flight. */
static bool program_waited(struct shm_peer *peer, const struct link_access *access)
{
	struct shm_stream *stream = &peer->stream;
	uint32_t tail = shm_tail(&peer->out).slot, sent = tail - stream->tail;
	uint32_t activity = peer_activity(peer), answers = activity - stream->activity;

	stream->tail = tail;
	stream->activity = activity;
	/* By the ring, several requests were posted since nothing was in flight. */
	return stream->by_ring ? sent <= 1 : !access->streams || answers;
}

/* The program waits for its requests, so they are direct from now on. */
static void stream_end(struct shm_stream *stream)
{
	uint64_t longer_ns = stream->enough_ns * SHM_STREAM_GROWTH;

	if (stream->by_ring)
		stream->enough_ns = longer_ns < SHM_STREAM_MOST_NS ? longer_ns : SHM_STREAM_MOST_NS;
	stream->by_ring = false;
	stream->began_ns = 0;
}

/* Notes a request at @now_ns for which the program did not wait. */
static void stream_continue(struct shm_stream *stream, uint64_t now_ns)
{
	if (!stream->began_ns || (!stream->by_ring && now_ns - stream->latest_ns > SHM_STREAM_PAUSE_NS))
		stream->began_ns = now_ns;
	stream->latest_ns = now_ns;
	if (!stream->by_ring && now_ns - stream->began_ns > stream->enough_ns) {
		stream->by_ring = true;
		stream->began_ns = now_ns;
	} else if (stream->by_ring && now_ns - stream->began_ns > SHM_STREAM_RING_NS) {
		stream->by_ring = false;
		stream->began_ns = now_ns;
		stream->enough_ns = SHM_STREAM_NS;
	}
}

/*
 * Returns true if the ring is faster for @access: it takes a fraction of the time of a system call, once the device thread
 * of the peer is awake. So a program that posts without waiting changes to the ring after as much time as waking costs. It
 * changes back if it waits for several requests in a row after all, or after a while.
 */
static bool ring_is_faster(struct shm_peer *peer, const struct link_access *access)
{
	struct shm_stream *stream = &peer->stream;

	if (!stream->enough_ns)
		stream->enough_ns = SHM_STREAM_NS;
	if (!program_waited(peer, access)) {
		stream->waits = 0;
		stream_continue(stream, clock_now_ns());
	} else if (++stream->waits >= SHM_STREAM_WAITS) {
		stream_end(stream);
	}
	return stream->by_ring;
}

/*
 * One access per connection at a time, because one word records whether one is in progress; other threads use the ring.
 */
static bool access_alone(struct shm_peer *peer, const struct shm_grant *grant, const struct link_access *access)
{
	struct shm_access *own = &peer->out.ring->access;
	long result;

	if (__atomic_exchange_n(&peer->accesses, 1, __ATOMIC_ACQUIRE))
		return false;
	if (ring_is_faster(peer, access)) {
		__atomic_store_n(&peer->accesses, 0, __ATOMIC_RELEASE);
		return false;
	}
	__atomic_store_n(&own->thread, access_thread_id(), __ATOMIC_RELAXED);
	/*
	 * This precedes the read of the generation. A process that changes the generation reads the ticket after the
	 * change.
	 */
	__atomic_exchange_n(&own->ticket, ++peer->ticket, __ATOMIC_SEQ_CST);
	order_after_exchange();
	result = access_transfer(peer, grant, access);
	__atomic_store_n(&own->ticket, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&own->count, own->count + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&peer->accesses, 0, __ATOMIC_RELEASE);
	return access_is_done(peer, access, result);
}

bool shm_direct_access(const struct link_access *access)
{
	struct host_peer *host = host_peer_known(access->destination_qpn);
	struct shm_peer *peer = shm_of(host);
	struct shm_grant grant;

	if (!peer || !__atomic_load_n(&peer->can_direct, __ATOMIC_ACQUIRE) ||
	    __atomic_load_n(&peer->other->attends, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&host->gone, __ATOMIC_RELAXED) || __atomic_load_n(&peer->broken, __ATOMIC_RELAXED))
		return false;
	if (!grant_find(peer, access, &grant) || !guarded_call_works() || !access_alone(peer, &grant, access))
		return false;
	access_count(access);
	return true;
}
