/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending: converts runs to records, see peer.h. */
#include <errno.h>
#include <string.h>

#include "core/copy_small.h"
#include "core/descriptor.h"
#include "core/epoch.h"
#include "core/limits.h"
#include "core/tunables.h"
#include "core/thread_memory.h"
#include "explain/limit.h"
#include "hca/hca.h"
#include "progress/progress.h"
#include "link/host/inner.h"
#include "link/shm/peer.h"
#include "wire/mad.h"
#include "wire/roce_whole.h"

/* Values chosen for speed. */
enum {
	/* bytes of a long run that count as one unit of work (progress_worked()) */
	SHM_WORK_BYTES = 32u << 10,
	/*
	 * minimum bytes of a record for writing its lines past the caches: shorter records arrive later that way (2 KiB
	 * in 0.9 us instead of 0.6)
	 */
	SHM_PAST_CACHES = 4096,
};

_Static_assert(sizeof(struct shm_path) == SHM_LINE, "a path takes a line");
_Static_assert((uint32_t)TUNABLE_SHM_LONG_FROM <= SHM_MOST_PAYLOAD, "a run is one record");

struct draft {
	struct shm_slot slot;
	uint32_t at; /* slot number */
	uint8_t *data;
};

static uint8_t *draft_headers(struct draft *draft)
{
	return draft->slot.bytes;
}

/* ---- places ---------------------------------------------------------------------------------------------------- */

/* The consumer claims to have taken records that were never sent. */
static void head_reject(struct shm_peer *peer)
{
	EXPLAIN_LIMITED(first_device(), (&(const struct explain_subject){0}), LIMIT_EXPLAINED_DROPS, RULE_SHM_HEAD,
			(uint64_t)peer->host->pid);
	shm_break(peer);
}

/* Returns 0, -ENOBUFS or -EPROTO. */
static int draft_reserve(struct shm_producer *out, struct draft *draft)
{
	uint32_t line;
	int error = shm_reserve_one(out, shm_record_lines(&draft->slot), &draft->at, &line);

	draft->data = out->ring->data + (uint64_t)line * SHM_LINE;
	return error;
}

/*
 * Evaluates @reserve, which returns an error as shm_reserve(); if the ring is full, once more after marking this
 * process as starved.
 */
#define RESERVE(peer, reserve)                                                                                         \
	({                                                                                                             \
		int error_ = (reserve);                                                                                \
		if (__builtin_expect(error_ == -ENOBUFS, 0)) {                                                         \
			shm_starve(peer);                                                                              \
			error_ = (reserve);                                                                            \
		}                                                                                                      \
		if (__builtin_expect(error_ == -EPROTO, 0))                                                            \
			head_reject(peer);                                                                             \
		error_;                                                                                                \
	})

/*
 * Returns the nanoseconds for which the other side has taken nothing since the first call. `stuck`: the slot in the
 * upper half, in the lower half the time in microseconds, which wraps after 71 minutes and then starts over.
 */
static uint64_t peer_stuck_ns(struct shm_peer *peer)
{
	uint32_t head = shm_unpack(__atomic_load_n(&peer->out.ring->head, __ATOMIC_RELAXED)).slot;
	uint64_t stuck = __atomic_load_n(&peer->stuck, __ATOMIC_RELAXED);
	uint32_t now_us = (uint32_t)(clock_now_ns() / 1000);

	if (stuck && stuck >> 32 == head)
		return (now_us - (uint32_t)stuck) * UINT64_C(1000);
	__atomic_store_n(&peer->stuck, (uint64_t)head << 32 | now_us, __ATOMIC_RELAXED);
	return 0;
}

/* Explains at most once per second. */
static void run_drop(struct hca *hca, struct shm_peer *peer, const struct packet *packet, uint64_t stuck_ns)
{
	uint64_t now_ns = clock_now_ns(),
		 drop_explained_ns = __atomic_load_n(&peer->drop_explained_ns, __ATOMIC_RELAXED);

	counter_add(hca, COUNTER_SHM_DROPPED, 1);
	if ((drop_explained_ns && now_ns - drop_explained_ns < UINT64_C(1000000000)) ||
	    !__atomic_compare_exchange_n(&peer->drop_explained_ns, &drop_explained_ns, now_ns, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return;
	EXPLAIN(hca, (&(const struct explain_subject){.qpn = packet->source_qpn}), RULE_SHM_DROPPED, packet->message,
		packet->source_qpn, packet->destination_qpn, (uint64_t)peer->host->pid, stuck_ns / 1000000);
}

/*
 * UC and UD are unreliable, and waiting for a process that does not run would hold up later requests to other
 * destinations. The same holds for the queue of the filters, which holds packets for all destinations.
 */
static bool packet_may_drop(const struct hca *hca, const struct packet *packet)
{
	return hca->filters || packet->transport == IBV_QPT_UD || packet->transport == IBV_QPT_UC;
}

static enum link_result run_without_room(struct hca *hca, struct shm_peer *peer, struct run *run, int error)
{
	const struct packet *packet = run_slot(run);

	if (error != -ENOBUFS)
		return LINK_SENT;
	if (packet_may_drop(hca, packet)) {
		uint64_t stuck_ns = peer_stuck_ns(peer);

		if (stuck_ns >= LIMIT_UNRELIABLE_WAIT_MS * UINT64_C(1000000)) {
			run_drop(hca, peer, packet, stuck_ns);
			return LINK_SENT;
		}
	}
	counter_add(hca, COUNTER_SHM_RING_FULL, 1);
	run->full = &peer->waiting;
	return LINK_BUSY;
}

/* ---- records --------------------------------------------------------------------------------------------------- */

static void path_write(uint8_t *to, const struct packet_path *path)
{
	struct shm_path line = {
		.flow_label = path->flow_label,
		.udp_source_port = path->udp_source_port,
		.type = (uint8_t)path->type,
		.service_level = path->service_level,
		.traffic_class = path->traffic_class,
		.hop_limit = path->hop_limit,
	};

	memcpy(line.source, path->source.raw, sizeof(line.source));
	memcpy(line.destination, path->destination.raw, sizeof(line.destination));
	memcpy(to, &line, sizeof(line));
}

/* For the requester's explanation. Rules above 255 do not refuse packets. */
static uint16_t packet_nak_rule(const struct packet *packet)
{
	bool refuses = packet->message == MESSAGE_ACKNOWLEDGE && packet->why.rule <= UINT8_MAX;

	return refuses ? (uint16_t)packet->why.rule : 0;
}

/* Writes headers and sizes of the record of a run. Returns false if it cannot be sent. */
static bool draft_make(struct draft *draft, const struct packet *packet, uint32_t length)
{
	uint8_t *headers = draft_headers(draft);

	draft->slot.headers = (uint8_t)roce_headers_write(headers, packet, 0, packet->place, length);
	if (!draft->slot.headers)
		return false;
	/* A record stands for all packets of its payload, so an acknowledgement requested by the last applies to it. */
	if (packet->acknowledge)
		roce_ask_acknowledge(headers);
	/* Replies to these need the path. */
	draft->slot.flags = packet_opcodes[headers[0]].headers & (HEADER_DETH | HEADER_DCETH) ? SHM_FLAG_PATH : 0;
	draft->slot.rule = packet_nak_rule(packet);
	draft->slot.length = length;
	return true;
}

/* Returns the place of the payload. */
static uint8_t *draft_write_path(struct draft *draft, const struct packet_path *path)
{
	uint8_t *at = draft->data;

	if (draft->slot.flags & SHM_FLAG_PATH) {
		path_write(at, path);
		at += SHM_LINE;
	}
	return shm_payload_lines(&draft->slot) ? at : draft_headers(draft) + draft->slot.headers;
}

static inline void lines_copy(uint8_t *to, const uint8_t *from, uint32_t length)
{
	if (length >= SHM_PAST_CACHES)
		shm_write_lines(to, from, length);
	else
		memcpy(to, from, length);
}

static __attribute__((noinline)) void payload_write_scattered(uint8_t *to, struct stream *payload, uint32_t length)
{
	THREAD_VARIABLE(struct stream, memory);

	stream_begin(memory, NULL, 0);
	stream_add_memory(memory, to, length);
	stream_copy(memory, payload, length);
}

static void payload_write(uint8_t *to, struct stream *payload, uint32_t length)
{
	if (!length)
		return;
	if (likely(payload->whole != NULL))
		lines_copy(to, payload->whole, length);
	else
		payload_write_scattered(to, payload, length);
}

static enum link_result run_send_record(struct hca *hca, struct shm_peer *peer, struct run *run)
{
	struct packet *packet = run_slot(run);
	uint8_t masks[2 * sizeof(uint64_t)];
	uint32_t length = (uint32_t)packet->payload.length;
	struct draft draft;
	bool masked = message_is_masked_atomic(packet->message);
	uint8_t *at;
	int error;

	if (__builtin_expect(masked, 0))
		length = roce_masks_write(masks, packet);
	if (!draft_make(&draft, packet, length))
		return LINK_SENT;
	error = RESERVE(peer, draft_reserve(&peer->out, &draft));
	if (error)
		return run_without_room(hca, peer, run, error);
	shm_prepare(&peer->out);
	at = draft_write_path(&draft, packet->path);
	if (__builtin_expect(masked, 0))
		memcpy(at, masks, length);
	else
		payload_write(at, &packet->payload, length);
	shm_publish(peer->out.ring, draft.at, &draft.slot);
	return LINK_SENT;
}

/* ---- whole messages of RC -------------------------------------------------------------------------------------- */

/* As run_send_record(), compiled for the most frequent messages. */
static inline SPECIALISED enum link_result run_send_whole(struct hca *hca, struct shm_peer *peer, struct run *run,
							  const enum roce_whole opcode)
{
	const struct packet *packet = run_slot(run);
	const uint32_t headers = roce_whole_bytes(opcode);
	uint32_t length = roce_whole_has_payload(opcode) ? (uint32_t)packet->payload.length : 0;
	uint32_t lines = headers + length <= SHM_INLINE_BYTES ? 0 : shm_lines(length), at, line = 0;
	struct shm_ring *ring = peer->out.ring;
	struct shm_slot *slot;
	int error = RESERVE(peer,
			    lines ? shm_reserve_one(&peer->out, lines, &at, &line) : shm_reserve_slot(&peer->out, &at));

	if (unlikely(error))
		return run_without_room(hca, peer, run, error);
	slot = &ring->slot[at % SHM_SLOTS];
	memcpy((uint8_t *)slot + sizeof(slot->sequence),
	       &(struct shm_sizes){.headers = (uint8_t)headers, .length = length}, sizeof(struct shm_sizes));
	roce_whole_write(slot->bytes, packet, opcode, length);
	if (lines) {
		if (length < SHM_PAST_CACHES)
			shm_prepare(&peer->out);
		else
			shm_prepare_slot(&peer->out, at);
		lines_copy(ring->data + (uint64_t)line * SHM_LINE, packet->payload.whole, length);
	} else {
		shm_prepare_slot(&peer->out, at);
		if (length)
			copy_small(slot->bytes + headers, packet->payload.whole, length);
	}
	shm_publish_filled(ring, at);
	return LINK_SENT;
}

static inline bool packet_is_whole(const struct packet *packet)
{
	return packet->transport == IBV_QPT_RC && packet->place == PLACE_ONLY &&
	       (!packet->payload.length || (packet->payload.length < TUNABLE_SHM_LONG_FROM && packet->payload.whole));
}

static inline enum link_result run_send_short(struct hca *hca, struct shm_peer *peer, struct run *run)
{
	const struct packet *packet = run_slot(run);

	if (unlikely(!packet_is_whole(packet)))
		return run_send_record(hca, peer, run);
	switch (packet->message) {
	case MESSAGE_WRITE:
		return run_send_whole(hca, peer, run, ROCE_WHOLE_WRITE);
	case MESSAGE_SEND:
		return run_send_whole(hca, peer, run, ROCE_WHOLE_SEND);
	case MESSAGE_ACKNOWLEDGE:
		if (unlikely(packet->why.rule != RULE_NONE))
			return run_send_record(hca, peer, run);
		return run_send_whole(hca, peer, run, ROCE_WHOLE_ACKNOWLEDGE);
	case MESSAGE_READ_REQUEST:
		return run_send_whole(hca, peer, run, ROCE_WHOLE_READ_REQUEST);
	case MESSAGE_READ_RESPONSE:
		return run_send_whole(hca, peer, run, ROCE_WHOLE_READ_RESPONSE);
	default:
		return run_send_record(hca, peer, run);
	}
}

/* ---- long runs ------------------------------------------------------------------------------------------------- */

static enum link_result run_send_long(struct hca *hca, struct shm_peer *peer, struct run *run)
{
	const struct packet *packet = run_slot(run);
	enum link_result result = run_send_record(hca, peer, run);

	if (result == LINK_SENT)
		progress_worked(1 + (uint32_t)(packet->payload.length / SHM_WORK_BYTES));
	return result;
}

/* ---- the link -------------------------------------------------------------------------------------------------- */

/* Returns NULL if @host is NULL or has ended: the caller then drops its packets. */
static struct shm_peer *peer_alive(const struct host_peer *host)
{
	struct shm_peer *peer = shm_of(host);

	if (!peer || __atomic_load_n(&host->gone, __ATOMIC_RELAXED) || __atomic_load_n(&peer->broken, __ATOMIC_RELAXED))
		return NULL;
	return peer;
}

/* Returns NULL as peer_alive(). */
static struct shm_peer *peer_find(uint32_t qpn)
{
	struct host_peer *host = host_peer_known(qpn);

	if (__builtin_expect(!host, 0))
		host = host_peer_of(qpn);
	return peer_alive(host);
}

static void sent_count(struct hca *hca, uint64_t length)
{
	uint64_t *counters = counters_here(hca);

	if (unlikely(!counters))
		return;
	counters_add(counters, COUNTER_SHM_RUNS_SENT, 1);
	counters_add(counters, COUNTER_SHM_BYTES_SENT, length);
}

/* ---- datagrams of the connection manager ----------------------------------------------------------------------- */

static enum link_result mad_send(struct hca *hca, const struct host_peer *host, struct run *run, const uint8_t *mad)
{
	struct packet *packet = run_slot(run);
	struct shm_peer *peer = peer_alive(host);
	enum link_result result;

	if (!peer)
		return LINK_SENT;
	stream_begin(&packet->payload, NULL, 0);
	stream_add_memory(&packet->payload, mad, MAD_BYTES);
	result = run_send_record(hca, peer, run);
	if (result == LINK_BUSY)
		return result;
	shm_wake(peer, false);
	sent_count(hca, MAD_BYTES);
	return result;
}

/* A message for all processes is lost on connections with a full ring: a retry would duplicate it on the others. */
static enum link_result mad_send_run(struct hca *hca, struct run *run)
{
	const struct packet *packet = run_slot(run);
	const uint8_t *mad = packet->payload.whole;
	struct mad_address address;

	/* A program may have sent an invalid one through a datagram queue pair. */
	if (packet->payload.length != MAD_BYTES || !mad)
		return LINK_SENT;
	address = mad_address(mad);
	if (address.addressee != MAD_FOR_ALL)
		return mad_send(hca, host_peer_for(&address), run, mad);
	for (const struct host_peer *host = host_peers(); host; host = host_next(host))
		mad_send(hca, host, run, mad);
	return LINK_SENT;
}

enum link_result shm_send(struct hca *hca, struct run *run)
{
	struct packet *packet = run_slot(run);
	uint64_t length = packet->payload.length;
	enum link_result result;
	struct shm_peer *peer;

	if (__builtin_expect(packet->destination_qpn == GSI_QPN, 0))
		return mad_send_run(hca, run);
	peer = peer_find(packet->destination_qpn);
	if (!peer)
		return LINK_SENT;
	result = __builtin_expect(length >= TUNABLE_SHM_LONG_FROM, 0) ? run_send_long(hca, peer, run)
								      : run_send_short(hca, peer, run);
	if (result == LINK_BUSY)
		return result;
	shm_wake(peer, false);
	sent_count(hca, length);
	return result;
}

/* ---- loss detection ---------------------------------------------------------------------------------------------- */

uint64_t shm_mark(uint32_t qpn)
{
	struct shm_peer *peer = shm_of(host_peer_known(qpn));

	return peer ? shm_tail(&peer->out).slot : 0;
}

/*
 * Returns true if the process at the other end of @host waits for room for its replies, over any of its connections
 * (DESIGN.md). Processes without visible IDs (PID namespaces) count as one. Adds the records that arrived over them to
 * *@progress.
 */
static bool peer_awaits_room(const struct host_peer *host, uint64_t *progress)
{
	bool waits = false;

	for (const struct host_peer *each = host_peers(); each; each = host_next(each)) {
		const struct shm_peer *peer = each->pid == host->pid ? peer_alive(each) : NULL;

		if (!peer)
			continue;
		*progress += __atomic_load_n(&peer->taken, __ATOMIC_RELAXED);
		waits |= __atomic_load_n(&peer->other->starved, __ATOMIC_RELAXED) != 0;
	}
	return waits;
}

bool shm_pending(uint32_t qpn, uint64_t mark, uint64_t *progress)
{
	const struct host_peer *host = host_peer_known(qpn);
	struct shm_peer *peer = peer_alive(host);
	uint32_t handled;

	*progress = 0;
	if (!peer)
		return false;
	/* The other side took the closed socket for the end of this process. */
	if (!descriptor_check(host->socket.fd))
		return false;
	/* Acquire: replies to these records were already in the other ring, or wait for room. */
	handled = __atomic_load_n(&peer->out.ring->handled, __ATOMIC_ACQUIRE);
	*progress = handled;
	if ((int32_t)((uint32_t)mark - handled) <= 0)
		return peer_awaits_room(host, progress);
	/* A timer expired: the peer should have seen the record by polling, and did not. */
	shm_wake_anyway(peer);
	return true;
}

/* ---- frames of other hosts -------------------------------------------------------------------------------------- */

/* Returns false if the frame is lost. */
static bool frame_forward(struct shm_peer *peer, const struct packet_path *path, const uint8_t *bytes, size_t length)
{
	THREAD_VARIABLE(struct packet, packet);
	struct packet_path wire = *path;
	struct draft draft = {0};
	struct refusal why;
	int headers = roce_headers_parse(packet, bytes, length, &why);
	uint32_t pad = length > ROCE_BTH_BYTES ? roce_pad_of(bytes) : 0;
	uint8_t *at;

	if (headers < 0 || length - (size_t)headers < pad || length - (size_t)headers > SHM_MOST_PAYLOAD)
		return false;
	draft.slot.headers = (uint8_t)headers;
	draft.slot.flags = SHM_FLAG_PATH | SHM_FLAG_FRAME;
	draft.slot.length = (uint32_t)(length - (size_t)headers) - pad;
	memcpy(draft_headers(&draft), bytes, (size_t)headers);
	if (!peer || draft_reserve(&peer->out, &draft))
		return false;
	inner_path_make(first_device(), &wire);
	at = draft_write_path(&draft, &wire);
	memcpy(at, bytes + headers, draft.slot.length);
	shm_publish(peer->out.ring, draft.at, &draft.slot);
	shm_wake(peer, false);
	return true;
}

void shm_forward(uint32_t qpn, const struct packet_path *path, const uint8_t *bytes, size_t length)
{
	bool forwarded;

	epoch_enter();
	forwarded = frame_forward(peer_find(qpn), path, bytes, length);
	counter_add(first_device(), forwarded ? COUNTER_SHM_FORWARDED : COUNTER_SHM_FORWARD_LOST, 1);
	epoch_leave();
}

void shm_forward_to(struct host_peer *host, const struct packet_path *path, const uint8_t *bytes, size_t length)
{
	bool forwarded = frame_forward(peer_alive(host), path, bytes, length);

	counter_add(first_device(), forwarded ? COUNTER_SHM_FORWARDED : COUNTER_SHM_FORWARD_LOST, 1);
}
