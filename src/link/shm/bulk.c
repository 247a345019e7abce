/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Payload that is read from the memory of its sender, process_vm_readv(2). One copy instead of two, and by the receiver
 * alone; but the kernel copies at a quarter of the speed of two processors that copy through the ring, and even one
 * processor copies twice in less time. So it is for receivers that have no processor: while the ring is full and they take
 * nothing, the sender goes on with references, of which hundreds find room, and the receiver takes all of them at once.
 *
 * Only of requests of a reliable QP: their memory stays as it is until they have completed. When they complete although
 * nobody acknowledged them (the QP is flushed, reset, destroyed), the ticket that a record carries is withdrawn first: who
 * has read looks at it afterwards, and at whether the sender still lives. Then nothing was read that is not the message.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/uio.h>

#include "core/cancellation.h"
#include "core/epoch.h"
#include "core/tunables.h"
#include "device/device.h"
#include "format/qp_types.h"
#include "link/shm/peer.h"

/* Read by the other side to see whether it can. */
static uint64_t probe;

void shm_bulk_prepare(struct shm_peer *peer)
{
	uint64_t value = hca_random(first_device());

	/* Written once, so that those who were told before are right, too. */
	if (!__atomic_load_n(&probe, __ATOMIC_RELAXED))
		__atomic_store_n(&probe, value | 1, __ATOMIC_RELAXED);
	peer->own->probe_value = __atomic_load_n(&probe, __ATOMIC_RELAXED);
	peer->own->probe = (uintptr_t)&probe;
}

static struct iovec remote(uint64_t address, uint64_t length)
{
	return (struct iovec){(void *)(uintptr_t)address, length};
}

void shm_bulk_probe(struct shm_peer *peer)
{
	uint64_t value = 0;
	struct iovec to = {&value, sizeof(value)}, from = remote(peer->other->probe, sizeof(value));
	pid_t pid = peer->host->pid;
	/* A filter sees packets, whose bytes have to be there. */
	bool can = pid && !first_device()->filters && process_vm_readv(pid, &to, 1, &from, 1, 0) == sizeof(value) &&
		   value == peer->other->probe_value;

	__atomic_store_n(&peer->own->can_read, can, __ATOMIC_RELEASE);
}

/* The slot in the upper half, the time in microseconds in the lower: it wraps after 71 minutes, and counts anew then. */
uint64_t shm_stuck_ns(struct shm_peer *peer)
{
	uint32_t head = shm_unpack(__atomic_load_n(&peer->out.ring->head, __ATOMIC_RELAXED)).slot;
	uint64_t stuck = __atomic_load_n(&peer->stuck, __ATOMIC_RELAXED);
	uint32_t now_us = (uint32_t)(clock_now_ns() / 1000);

	if (stuck && stuck >> 32 == head)
		return (now_us - (uint32_t)stuck) * UINT64_C(1000);
	__atomic_store_n(&peer->stuck, (uint64_t)head << 32 | now_us, __ATOMIC_RELAXED);
	return 0;
}

bool shm_is_stuck(struct shm_peer *peer)
{
	return __atomic_load_n(&peer->other->can_read, __ATOMIC_RELAXED) && shm_stuck_ns(peer) >= TUNABLE_SHM_STUCK_NS;
}

/* ---- offering -------------------------------------------------------------------------------------------------- */

static bool is_readable(const struct packet *packet)
{
	return packet->message < MESSAGE_READ_REQUEST &&
	       (packet->transport == IBV_QPT_RC || packet->transport == IBV_QPT_XRC_SEND ||
		packet->transport == QP_TYPE_DCI);
}

static uint32_t *withdrawn(struct shm_ring *ring, uint32_t qpn)
{
	return &ring->withdrawn[qpn % SHM_WITHDRAWN];
}

uint32_t shm_bulk_offer(const struct shm_peer *peer, const struct packet *packet, struct shm_ticket *ticket,
			struct shm_piece *pieces)
{
	const struct stream *payload = &packet->payload;

	if (!is_readable(packet) || payload->count > SHM_PIECES || payload->current || payload->piece.length ||
	    payload->fetch)
		return 0;
	for (uint32_t i = 0; i < payload->count; i++) {
		const struct stream_part *part = &payload->part[i];

		if (part->key || part->stage || !part->address)
			return 0;
		pieces[i] = (struct shm_piece){(uintptr_t)part->address, part->length};
	}
	ticket->qpn = packet->source_qpn;
	ticket->number = __atomic_load_n(withdrawn(peer->out.ring, ticket->qpn), __ATOMIC_RELAXED);
	return payload->count;
}

void shm_withdraw(uint32_t qpn)
{
	epoch_enter();
	for (struct host_peer *host = host_peers(); host; host = host_next(host))
		__atomic_add_fetch(withdrawn(shm_of(host)->out.ring, qpn), 1, __ATOMIC_SEQ_CST);
	epoch_leave();
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* The ranges that hold [@offset, +@length) of the payload. Returns their number; all of them have as many bytes. */
static unsigned int ranges(const struct shm_fetch *fetch, uint64_t offset, uint64_t length, struct iovec *from)
{
	unsigned int count = 0;

	for (uint32_t i = 0; i < fetch->pieces && length; i++) {
		const struct shm_piece *piece = &fetch->piece[i];
		uint64_t bytes;

		if (offset >= piece->length) {
			offset -= piece->length;
			continue;
		}
		bytes = piece->length - offset < length ? piece->length - offset : length;
		from[count++] = remote(piece->address + offset, bytes);
		offset = 0;
		length -= bytes;
	}
	return count;
}

bool shm_is_still_there(const struct shm_peer *peer)
{
	WITHOUT_CANCELLATION;
	struct pollfd socket = {.fd = peer->host->socket.fd, .events = POLLRDHUP};

	return !__atomic_load_n(&peer->host->gone, __ATOMIC_ACQUIRE) && poll(&socket, 1, 0) >= 0 &&
	       !(socket.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL));
}

static bool read_memory(struct stream_fetch *stream, const struct iovec *to, unsigned int count, uint64_t offset)
{
	struct shm_fetch *fetch = (struct shm_fetch *)stream;
	struct shm_peer *peer = fetch->peer;
	struct iovec from[SHM_PIECES];
	uint64_t length = 0;
	unsigned int pieces;
	ssize_t taken;

	for (unsigned int i = 0; i < count; i++)
		length += to[i].iov_len;
	pieces = ranges(fetch, offset, length, from);
	taken = process_vm_readv(peer->host->pid, to, count, from, pieces, 0);
	if (taken == (ssize_t)length &&
	    __atomic_load_n(withdrawn(peer->in.ring, fetch->ticket.qpn), __ATOMIC_ACQUIRE) == fetch->ticket.number &&
	    shm_is_still_there(peer))
		return true;
	counter_add(first_device(), COUNTER_SHM_READ_REFUSED, 1);
	/* What the kernel forbids, it forbids the next time as well. */
	if (taken < 0 && (errno == EPERM || errno == ENOSYS))
		__atomic_store_n(&peer->own->can_read, 0, __ATOMIC_RELEASE);
	return false;
}

bool shm_bulk_accept(struct shm_peer *peer, const struct shm_record *record, struct shm_fetch *fetch,
		     struct packet *packet)
{
	uint64_t left = record->slot.length;

	if (!is_readable(packet) || !peer->host->pid)
		return false;
	fetch->fetch = (struct stream_fetch){.fetch = read_memory};
	fetch->peer = peer;
	fetch->pieces = record->slot.pieces;
	memcpy(&fetch->ticket, record->payload, sizeof(fetch->ticket));
	memcpy(fetch->piece, record->payload + sizeof(fetch->ticket), fetch->pieces * sizeof(fetch->piece[0]));
	/* Filters that came later: the other side takes the ring. */
	if (first_device()->filters) {
		__atomic_store_n(&peer->own->can_read, 0, __ATOMIC_RELEASE);
		fetch->fetch.failed = true;
	}
	for (uint32_t i = 0; i < fetch->pieces; i++) {
		if (fetch->piece[i].length > left)
			return false;
		left -= fetch->piece[i].length;
	}
	if (left)
		return false;
	stream_set_fetch(&packet->payload, &fetch->fetch, record->slot.length);
	return true;
}
