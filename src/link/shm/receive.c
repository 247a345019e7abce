/* SPDX-License-Identifier: BSD-2-Clause */
/* The poller: converts records to packets, see peer.h. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "core/limits.h"
#include "hca/hca.h"
#include "explain/explain.h"
#include "explain/limit.h"
#include "link/host/inner.h"
#include "link/shm/peer.h"
#include "wire/roce_whole.h"
#include "wire/routes.h"

/* Values chosen for speed. */
enum {
	/*
	 * records of one connection at a time, so that other connections are served and the sender gets its answers
	 */
	SHM_RECORDS = 8,
	/* QPs that resume at a time when there is room: a quarter of the ring is free then */
	SHM_RESUMED = 8,
	/*
	 * bytes of payload of a batch of whole messages: the lock of a QP is held no longer than for one long record
	 */
	SHM_WHOLE_BYTES = 4096,
};

/* Path of packets for QPs that know theirs. */
static const struct packet_path no_path;

static void record_reject(const struct refusal *why)
{
	struct hca *hca = first_device();

	counter_add(hca, COUNTER_SHM_MALFORMED, 1);
	explain_limited(hca, &(struct explain_subject){0}, LIMIT_EXPLAINED_DROPS, why->rule, why->args, EXPLAIN_ARGS);
}

/* The ring cannot be used any more. */
static void ring_reject(struct shm_peer *peer, uint64_t field, uint64_t value)
{
	record_reject(&(struct refusal){RULE_SHM_RECORD, {(uint64_t)peer->host->pid, field, value}});
	shm_break(peer);
}

/* ---- one record ------------------------------------------------------------------------------------------------ */

/* GID type and hop limit need no check: invalid values only go back to their sender in the reply. */
static void path_read(struct packet_path *path, const uint8_t *from)
{
	struct shm_path line;

	memcpy(&line, from, sizeof(line));
	*path = (struct packet_path){
		.type = line.type == IBV_GID_TYPE_ROCE_V1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2,
		.service_level = line.service_level & 7,
		.traffic_class = line.traffic_class,
		.hop_limit = line.hop_limit,
		.flow_label = line.flow_label & 0xfffff,
		.udp_source_port = line.udp_source_port,
	};
	memcpy(path->source.raw, line.source, sizeof(line.source));
	memcpy(path->destination.raw, line.destination, sizeof(line.destination));
}

/* Shows @packet to the filters, with the reverse of its QP's path if it has none. */
static struct hca *packet_show_to_filters(struct packet *packet)
{
	struct receiver_view qp;

	if (!delivery->view(packet->destination_qpn, &qp))
		return NULL;
	if (packet->path == &no_path) {
		packet->own_path = qp.path;
		packet->own_path.source = qp.path.destination;
		packet->own_path.destination = qp.path.source;
		packet->path = &packet->own_path;
	}
	link_filters(qp.hca)->received(qp.hca, packet);
	return qp.hca;
}

/*
 * Returns the refusal for headers that do not fit the payload. The fault lies with the other side or, for a frame, with
 * the host that sent it.
 */
static struct refusal record_misfit(const struct shm_peer *peer, const struct shm_record *record,
				    const struct packet *packet)
{
	uint64_t pid = (uint64_t)peer->host->pid, source[2];

	if (!(record->slot.flags & SHM_FLAG_FRAME))
		return (struct refusal){RULE_SHM_PACKET, {pid, packet->destination_qpn, record->slot.length}};
	memcpy(source, record->path + offsetof(struct shm_path, source), sizeof(source));
	return (struct refusal){RULE_FRAME_HANDED_ON,
				{be64toh(source[0]), be64toh(source[1]), packet->destination_qpn, record->slot.length,
				 pid}};
}

static bool record_parse_payload(struct shm_peer *peer, const struct shm_record *record, const uint8_t *headers,
				 struct packet *packet, struct refusal *why)
{
	uint32_t length = record->slot.length;
	uint8_t masks[2 * sizeof(uint64_t)];

	*why = record_misfit(peer, record, packet);
	if (roce_pad_of(headers) != roce_pad(length))
		return false;
	if (!(packet_opcodes[headers[0]].headers & HEADER_PAYLOAD))
		return !length;
	if (message_is_masked_atomic(packet->message)) {
		if (length > sizeof(masks))
			return false;
		memcpy(masks, record->payload, length);
		return !roce_masks_parse(packet, masks, length, why);
	}
	stream_begin(&packet->payload, NULL, 0);
	stream_add_memory(&packet->payload, record->payload, length);
	return true;
}

/* Returns false with *@why if the record is not valid. */
static bool record_parse(struct shm_peer *peer, const struct shm_record *record, struct packet *packet,
			 struct refusal *why)
{
	const struct shm_slot *slot = &record->slot;
	uint8_t headers[ROCE_MOST_HEADERS];
	int length;

	memcpy(headers, record->headers, slot->headers);
	length = roce_headers_parse(packet, headers, slot->headers, why);
	if (length < 0)
		return false;
	if (length != slot->headers) {
		*why = record_misfit(peer, record, packet);
		return false;
	}
	if (!record_parse_payload(peer, record, headers, packet, why))
		return false;
	/* The responder computes the number of packets from the length. A frame is one packet. */
	if (slot->length && !(slot->flags & SHM_FLAG_FRAME))
		packet->count = 0;
	packet->mtu = 0;
	packet->handed_on = slot->flags & SHM_FLAG_FRAME;
	packet->peer_rule = packet->handed_on ? 0 : (uint8_t)slot->rule;
	packet->link = packet->handed_on ? routes->udp() : routes->shm();
	packet->connection = peer->host->serial;
	packet->path = &no_path;
	if (record->path) {
		path_read(&packet->own_path, record->path);
		packet->own_path.process = packet->handed_on ? 0 : peer->host->serial;
		if (packet->handed_on)
			inner_path_resolve(first_device(), &packet->own_path);
		packet->path = &packet->own_path;
	}
	return true;
}

/* Counts for a batch, as long as its queue pairs belong to the same device. */
struct tally {
	struct hca *hca;
	const struct link *link; /* routes->shm() */
	uint64_t records, ring_pieces, ring_bytes;
};

static void tally_add(const struct shm_slot *slot, struct tally *tally)
{
	tally->records++;
	tally->ring_pieces += slot->length != 0;
	tally->ring_bytes += slot->length;
}

static void tally_flush(const struct tally *tally)
{
	uint64_t *counters = tally->records ? counters_here(tally->hca) : NULL;

	if (!counters)
		return;
	counters_add(counters, COUNTER_SHM_RUNS_RECEIVED, tally->records);
	if (tally->ring_pieces) {
		counters_add(counters, COUNTER_SHM_BYTES_RECEIVED, tally->ring_bytes);
		counters_add(counters, COUNTER_SHM_RING_PIECES, tally->ring_pieces);
		counters_add(counters, COUNTER_SHM_RING_BYTES, tally->ring_bytes);
	}
}

/* Makes @tally count for the device of QP @qpn, or for the first device if the QP does not exist. */
static void tally_switch_to(struct tally *tally, uint32_t qpn)
{
	struct hca *hca = delivery->device_of(qpn);

	if (!hca)
		hca = first_device();
	if (hca == tally->hca)
		return;
	tally_flush(tally);
	*tally = (struct tally){.hca = hca, .link = tally->link};
}

static void record_handle(struct shm_peer *peer, const struct shm_record *record, struct run *run, struct tally *tally)
{
	struct packet *packet = run_slot(run);
	struct hca *shown = NULL;
	struct refusal why;

	if (!record_parse(peer, record, packet, &why)) {
		record_reject(&why);
		return;
	}
	if (__builtin_expect(the_registry.count > 1, 0))
		tally_switch_to(tally, packet->destination_qpn);
	tally_add(&record->slot, tally);
	if (__builtin_expect(the_registry.filters, 0))
		shown = packet_show_to_filters(packet);
	run_commit(run);
	deliver_queued(run);
	if (shown)
		link_filters(shown)->handled(shown);
}

/* ---- whole messages of RC -------------------------------------------------------------------------------------- */

/*
 * As shm_take() and record_handle(), compiled for the most frequent opcodes. Returns false if the record needs those.
 */
static inline SPECIALISED bool record_take_as(struct shm_peer *peer, struct run *run, struct tally *tally,
					      const struct shm_sizes *sizes, const enum roce_whole opcode)
{
	struct shm_consumer *in = &peer->in;
	const struct shm_slot *slot = peer->next;
	const uint32_t bytes = roce_whole_bytes(opcode);
	struct packet *packet = run_slot(run);
	uint32_t length = sizes->length, lines, line;
	uint8_t headers[ROCE_MOST_HEADERS];

	if (unlikely(sizes->flags || sizes->rule || sizes->headers != bytes ||
		     length > (roce_whole_has_payload(opcode) ? SHM_WHOLE_BYTES : 0)))
		return false;
	memcpy(headers, slot->bytes, bytes);
	/* The compiler must not read the slot again. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (unlikely(!roce_whole_parse(packet, headers, opcode, length)))
		return false;
	lines = bytes + length <= SHM_INLINE_BYTES ? 0 : shm_lines(length);
	line = shm_step(&in->at, lines);
	shm_await(peer);
	if (shm_has_come(peer)) {
		if (lines)
			shm_look_ahead(in);
		else
			shm_look_ahead_slot(in);
	}
	if (roce_whole_has_payload(opcode)) {
		stream_begin(&packet->payload, NULL, 0);
		stream_add_memory(&packet->payload,
				  lines ? in->ring->data + (uint64_t)line * SHM_LINE : slot->bytes + bytes, length);
	}
	packet->mtu = 0;
	packet->link = tally->link;
	packet->connection = peer->host->serial;
	packet->path = &no_path;
	if (unlikely(the_registry.count > 1))
		tally_switch_to(tally, packet->destination_qpn);
	tally->records++;
	tally->ring_pieces += length != 0;
	tally->ring_bytes += length;
	delivery->take_whole(run);
	if (unlikely(peer->grants) && (opcode == ROCE_WHOLE_WRITE || opcode == ROCE_WHOLE_READ_REQUEST))
		shm_grant(peer, run, packet);
	return true;
}

/* Takes the next record if it is a small, complete message of RC. */
static inline bool record_take_whole(struct shm_peer *peer, struct run *run, struct tally *tally)
{
	const struct shm_slot *slot = peer->next;
	struct shm_sizes sizes;

	/* Filters must see every packet. */
	if (unlikely(the_registry.filters))
		return false;
	memcpy(&sizes, (const uint8_t *)slot + sizeof(slot->sequence), sizeof(sizes));
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	/* A wrong guess here is harmless: the opcode is parsed again. */
	switch (slot->bytes[0]) {
	case ROCE_WHOLE_WRITE:
		return record_take_as(peer, run, tally, &sizes, ROCE_WHOLE_WRITE);
	case ROCE_WHOLE_SEND:
		return record_take_as(peer, run, tally, &sizes, ROCE_WHOLE_SEND);
	case ROCE_WHOLE_ACKNOWLEDGE:
		return record_take_as(peer, run, tally, &sizes, ROCE_WHOLE_ACKNOWLEDGE);
	case ROCE_WHOLE_READ_REQUEST:
		return record_take_as(peer, run, tally, &sizes, ROCE_WHOLE_READ_REQUEST);
	case ROCE_WHOLE_READ_RESPONSE:
		return record_take_as(peer, run, tally, &sizes, ROCE_WHOLE_READ_RESPONSE);
	default:
		return false;
	}
}

/* ---- the poller ------------------------------------------------------------------------------------------------ */

static void ring_give_room(struct shm_peer *peer)
{
	shm_release(&peer->in);
	__atomic_store_n(&peer->taken, peer->in.at.slot, __ATOMIC_RELEASE);
}

/*
 * Takes any other record, and frees its room at once, because the sender may wait for it. Returns false if the ring
 * cannot be used any more.
 */
static __attribute__((noinline)) bool record_take_any(struct shm_peer *peer, struct run *run, struct tally *tally)
{
	struct shm_record record;
	uint32_t field, value;

	delivery->let_go(run);
	if (shm_take(&peer->in, &record, &field, &value)) {
		ring_reject(peer, field, value);
		return false;
	}
	shm_await(peer);
	/* Do not prefetch lines that the sender may be writing: they would be transferred twice. */
	if (shm_has_come(peer))
		shm_look_ahead(&peer->in);
	record_handle(peer, &record, run, tally);
	ring_give_room(peer);
	if (__builtin_expect(__atomic_load_n(&peer->other->starved, __ATOMIC_RELAXED), 0))
		shm_wake(peer, true);
	return true;
}

static void ring_take_batch(struct shm_peer *peer, struct run *run)
{
	struct tally tally = {.hca = first_device(), .link = routes->shm()};
	uint32_t taken = 0;

	peer->polls = 0;
	/* If the program were polling, it would have taken these records. */
	peer->grants = progress_on_thread();
	do {
		if (!record_take_whole(peer, run, &tally) && !record_take_any(peer, run, &tally))
			break;
	} while (++taken < SHM_RECORDS && shm_has_come(peer));
	ring_give_room(peer);
	/* Send pending acknowledgements before handling other connections. */
	delivery->let_go(run);
	tally_flush(&tally);
	/* The last check of `starved` may have come before the other side saw the room. */
	shm_wake(peer, true);
}

/*
 * Lets a few of the QPs that wait for room retry if the other side has made some. Returns true if more are to retry;
 * those that wait again require no other poll. `starved` stays set until all have continued: this process has more to
 * send.
 */
static bool waiters_resume(struct shm_peer *peer, struct run *run)
{
	uint32_t head = shm_unpack(__atomic_load_n(&peer->out.ring->head, __ATOMIC_ACQUIRE)).slot;
	uint32_t waiters = link_waiters(&peer->waiting), now;
	bool room = shm_has_room(&peer->out);

	if (!waiters) {
		__atomic_store_n(&peer->own->starved, 0, __ATOMIC_RELAXED);
		/*
		 * A sender that begins to wait after this sets it again; one that began before may have relied on the
		 * old value.
		 */
		if (link_has_waiters(&peer->waiting))
			shm_starve(peer);
		return false;
	}
	if (!room)
		return false;
	if (head != peer->tried_head)
		peer->to_try = waiters;
	peer->tried_head = head;
	now = peer->to_try < SHM_RESUMED ? peer->to_try : SHM_RESUMED;
	peer->to_try -= now;
	link_resume(&peer->waiting, now, run);
	return peer->to_try;
}

/* Publishes how many records have been handled: their replies were sent, or wait for room, which `starved` shows. */
static void peer_report_handled(struct shm_peer *peer)
{
	if (peer->handled == peer->in.at.slot)
		return;
	peer->handled = peer->in.at.slot;
	__atomic_store_n(&peer->in.ring->handled, peer->handled, __ATOMIC_RELEASE);
}

bool shm_poll_peer(struct host_peer *host, struct run *run)
{
	struct shm_peer *peer = shm_of(host);
	bool found = false;

	if (__builtin_expect(!peer || __atomic_load_n(&peer->broken, __ATOMIC_RELAXED), 0))
		return false;
	peer_report_handled(peer);
	if (shm_has_come(peer)) {
		ring_take_batch(peer, run);
		found = true;
	} else {
		shm_nudge(peer);
	}
	if (__builtin_expect(__atomic_load_n(&peer->own->starved, __ATOMIC_RELAXED), 0))
		found |= waiters_resume(peer, run);
	return found;
}

static bool shm_peer_is_idle(struct shm_peer *peer)
{
	return peer && peer->handled == peer->in.at.slot && !shm_has_come(peer) &&
	       !__atomic_load_n(&peer->own->starved, __ATOMIC_RELAXED) && !shm_nudge_is_due(peer);
}

bool shm_idle(struct poller *poller)
{
	if (__atomic_load_n(&((struct shm_poller *)poller)->leaving, __ATOMIC_RELAXED))
		return false;
	for (struct host_peer *host = host_peers(); host; host = host_next(host))
		if (!shm_peer_is_idle(shm_of(host)))
			return false;
	return true;
}

bool shm_poll(struct poller *poller, struct run *run)
{
	struct host_peer *leaving = __atomic_load_n(&((struct shm_poller *)poller)->leaving, __ATOMIC_ACQUIRE);
	bool found = false;

	for (struct host_peer *host = host_peers(); host; host = host_next(host))
		if (!shm_peer_is_idle(shm_of(host)))
			found |= shm_poll_peer(host, run);
	if (__builtin_expect(leaving != NULL, 0))
		found |= shm_poll_peer(leaving, run);
	return found;
}
