/* SPDX-License-Identifier: BSD-2-Clause */
/* The udp link: sending, see parts.h. */
#include <endian.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <string.h>

#include "core/cancellation.h"
#include "core/descriptor.h"
#include "core/tunables.h"
#include "observe/counters.h"
#include "wire/mad.h"
#include "wire/roce.h"
#include "link/udp/parts.h"
#include "progress/progress.h"

/* Values chosen for speed. */
enum {
	/*
	 * ns for which a check of a sending socket of the udp link holds: a program that closes it does not get its
	 * number, from 4096 on, at once
	 */
	DESCRIPTOR_VALID_NS = 50000,
	/* packets of one train: the maximum into which Linux (since 4.18) cuts a datagram */
	UDP_TRAIN_PACKETS = 64,
	/*
	 * ms that a sender waits for a socket without room: its queue takes longer only if the interface is stuck
	 */
	UDP_ROOM_MS = 20,
	/* ns that requests wait only if the program has paused */
	UDP_STREAM_PAUSE_NS = 50000,
	/* limit for doubling the requests that do not wait after some waited in vain */
	UDP_STREAM_FAILURES = 10,
	/* bytes that a QP may have in flight even with the smallest buffers */
	UDP_LEAST_WINDOW = 64 * 1024,
};

/* ---- system calls ---------------------------------------------------------------------------------------------- */

static struct cmsghdr *way_segment_control(struct udp_way *way)
{
	return (struct cmsghdr *)(way->control + way->control_length);
}

static bool way_has_label(const struct udp_way *way)
{
	return way->ipv6 && way->control_length > way->unlabelled;
}

/* Returns true if @fd is our socket, or was a moment ago: comparing the file takes a system call. */
static bool sender_check(struct udp_socket *socket, int fd)
{
	uint64_t now_ns = clock_now_ns();

	if (fd == socket->fd && now_ns - socket->checked_ns < DESCRIPTOR_VALID_NS)
		return true;
	if (!descriptor_check(fd))
		return false;
	if (fd == socket->fd)
		socket->checked_ns = now_ns;
	return true;
}

/* Sends a train, or one packet if @segment is 0. Returns 0 or a negative errno. */
static int datagram_send_once(struct udp_transmission *sent, int fd, const uint8_t *bytes, uint32_t length,
			      uint16_t segment)
{
	struct udp_way *way = &sent->socket->way;
	struct iovec vector = {(void *)bytes, length};
	struct msghdr message = {
		.msg_name = &way->to,
		.msg_namelen = way->to_length,
		.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = way->control,
		.msg_controllen = way->control_length,
	};

	if (segment) {
		struct cmsghdr *header = way_segment_control(way);

		header->cmsg_level = IPPROTO_UDP;
		header->cmsg_type = UDP_SEGMENT;
		header->cmsg_len = CMSG_LEN(sizeof(segment));
		memcpy(CMSG_DATA(header), &segment, sizeof(segment));
		message.msg_controllen += CMSG_SPACE(sizeof(segment));
	}
	if (!sender_check(sent->socket, fd))
		return -EBADF;
	counter_add(sent->hca, COUNTER_UDP_SEND_CALLS, 1);
	progress_sent();
	return sendmsg(fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/*
 * Returns true if sendmsg(2) may have failed by the error of an earlier datagram, which ICMP reported (udp(7)); the
 * kernel has not tried to send then. These are the errors to which Linux translates unreachable destinations.
 */
static bool error_may_be_late(int error)
{
	switch (-error) {
	case ECONNREFUSED:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case EHOSTDOWN:
	case ENONET:
	case ENOPROTOOPT:
	case EOPNOTSUPP:
	case EPROTO:
	case EACCES:
		return true;
	default:
		return false;
	}
}

/*
 * Sends a datagram, if necessary without its flow label. Since Linux 5.3, the kernel sends a label that no program has
 * leased, unless some program of the host has leased one exclusively (ipv6(7)).
 */
static int udp_datagram_send(struct udp_transmission *sent, int fd, const uint8_t *bytes, uint32_t length,
			     uint16_t segment)
{
	struct udp_way *way = &sent->socket->way;
	size_t labelled = way->control_length;
	int error = datagram_send_once(sent, fd, bytes, length, segment);

	if (error_may_be_late(error))
		error = datagram_send_once(sent, fd, bytes, length, segment);
	if (error != -EINVAL || !way_has_label(way))
		return error;
	way->control_length = way->unlabelled;
	error = datagram_send_once(sent, fd, bytes, length, segment);
	if (error)
		way->control_length = labelled;
	else
		sent->socket->no_labels = true;
	return error;
}

static int datagram_send_or_wait(struct udp_transmission *sent, int fd, const uint8_t *bytes, uint32_t length,
				 uint16_t segment)
{
	struct pollfd room = {.fd = fd, .events = POLLOUT};
	int error = udp_datagram_send(sent, fd, bytes, length, segment);

	if (error != -EAGAIN)
		return error;
	counter_add(sent->hca, COUNTER_UDP_BUSY, 1);
	poll(&room, 1, UDP_ROOM_MS);
	return udp_datagram_send(sent, fd, bytes, length, segment);
}

/* Explains fragmentation once for each QP, as far as remembered: every later packet would repeat it. */
static void fragments_explain(const struct udp_transmission *sent, uint32_t length)
{
	static uint32_t explained[256]; /* atomic; QP numbers by hash */
	uint32_t *last = &explained[sent->source_qpn % 256];

	if (__atomic_exchange_n(last, sent->source_qpn + 1, __ATOMIC_RELAXED) != sent->source_qpn + 1)
		udp_explain(sent->hca, sent->source_qpn, RULE_UDP_TOO_LONG, FIGURES(sent->destination_qpn, length));
}

/*
 * Sends a packet longer than the interface's MTU. The kernel chooses the identification of the fragments and does not
 * set "do not fragment". A receiver of UDP, which sees neither field, nevertheless accepts the usual ICRC
 * (docs/inside/wire.md).
 */
static int packet_send_fragments(struct udp_transmission *sent, const uint8_t *bytes, uint32_t length)
{
	int fd = udp_socket_fragmenting(sent->socket);

	if (fd < 0)
		return fd;
	fragments_explain(sent, length);
	counter_add(sent->hca, COUNTER_UDP_FRAGMENTED, 1);
	return datagram_send_or_wait(sent, fd, bytes, length, 0);
}

/* Sends one packet: as one unfragmented datagram if *@whole. Clears *@whole if that is impossible. */
static int packet_send(struct udp_transmission *sent, const uint8_t *bytes, uint32_t length, bool *whole)
{
	int error = *whole ? datagram_send_or_wait(sent, sent->socket->fd, bytes, length, 0) : -EMSGSIZE;

	if (error != -EMSGSIZE)
		return error;
	*whole = false;
	return packet_send_fragments(sent, bytes, length);
}

static void loss_explain(const struct udp_transmission *sent, const union ibv_gid *to, int error)
{
	uint32_t qpn = sent->source_qpn, peer = sent->destination_qpn;

	if (error == -EAGAIN)
		udp_explain(sent->hca, qpn, RULE_UDP_NO_ROOM, FIGURES(peer, UDP_ROOM_MS));
	else
		udp_explain(sent->hca, qpn, RULE_UDP_NOT_SENT,
			    FIGURES(peer, be64toh(to->global.subnet_prefix), be64toh(to->global.interface_id),
				    (uint64_t)-error));
}

/* ---- trains ---------------------------------------------------------------------------------------------------- */

static void packet_put_icrc(const struct udp_transmission *sent, uint8_t *bytes, uint32_t length, uint32_t number)
{
	/* IPv4 identification: the kernel numbers the packets of a train from 0. IPv6 has none. */
	uint32_t icrc =
		roce_icrc_from(roce_icrc_start(sent->socket->icrc, &sent->socket->way.path, sent->socket->port,
					       (uint16_t)sent->hca->settings.roce_port, length - ROCE_ICRC_BYTES),
			       sent->socket->ipv6 ? 0 : (uint16_t)number, bytes);

	memcpy(bytes + length - ROCE_ICRC_BYTES, &icrc, sizeof(icrc));
}

/* Returns 0 or the last error. Sets *@longest if the first packet, which is the longest, was sent unfragmented. */
static int train_send_singly(struct udp_transmission *sent, bool *longest)
{
	uint8_t *at = sent->socket->buffer;
	uint32_t left = sent->used;
	int result = 0, error;
	bool whole = true;

	*longest = false;
	while (left) {
		uint32_t length = left < sent->segment ? left : sent->segment;

		/* The identification of the first packet is 0 already. */
		if (at != sent->socket->buffer)
			packet_put_icrc(sent, at, length, 0);
		/* The last packet, which is shorter, may fit. */
		whole |= length < sent->segment;
		error = packet_send(sent, at, length, &whole);
		if (error) {
			counter_add(sent->hca, COUNTER_UDP_SEND_ERRORS, 1);
			result = error;
		}
		if (at == sent->socket->buffer)
			*longest = !error && whole;
		at += length;
		left -= length;
	}
	return result;
}

/* The kernel refused the train; its acknowledgement must leave before the other packets. */
static void train_send_ack_first(struct udp_transmission *sent)
{
	uint32_t length = sent->socket->held.length;
	uint8_t *at = sent->socket->buffer + sent->used - length;
	bool whole = true;

	sent->answers = false;
	sent->used -= length;
	sent->count--;
	packet_put_icrc(sent, at, length, 0);
	if (packet_send(sent, at, length, &whole))
		counter_add(sent->hca, COUNTER_UDP_SEND_ERRORS, 1);
}

static void train_send(struct udp_transmission *sent)
{
	bool longest;
	int error = datagram_send_or_wait(sent, sent->socket->fd, sent->socket->buffer, sent->used,
					  (uint16_t)sent->segment);
	int refused;

	if (!error) {
		counter_add(sent->hca, COUNTER_UDP_TRAINS_SENT, 1);
		return;
	}
	if (error == -EAGAIN) {
		counter_add(sent->hca, COUNTER_UDP_SEND_ERRORS, sent->count);
		loss_explain(sent, &sent->socket->way.path.destination, error);
		return;
	}
	/* EIO without checksum offload, EINVAL before Linux 4.18, or an error that single packets meet as well. */
	refused = error;
	if (sent->answers)
		train_send_ack_first(sent);
	error = train_send_singly(sent, &longest);
	if (longest) {
		sent->socket->no_trains = true;
		udp_explain(sent->hca, sent->source_qpn, RULE_UDP_NO_TRAINS, FIGURES((uint64_t)-refused));
	}
	if (error)
		loss_explain(sent, &sent->socket->way.path.destination, error);
}

/* Implements udp_held.send. */
static void held_send(struct udp_socket *socket)
{
	struct udp_held *held = &socket->held;
	struct udp_transmission sent = {
		.hca = held->hca,
		.source_qpn = held->source_qpn,
		.destination_qpn = held->destination_qpn,
		.socket = socket,
	};
	bool whole = true;
	int error;

	packet_put_icrc(&sent, held->bytes, held->length, 0);
	counter_add(sent.hca, COUNTER_UDP_PACKETS_SENT, 1);
	error = packet_send(&sent, held->bytes, held->length, &whole);
	if (error) {
		counter_add(sent.hca, COUNTER_UDP_SEND_ERRORS, 1);
		loss_explain(&sent, &socket->way.path.destination, error);
	}
	udp_held_gone(socket);
}

/*
 * Appends the held acknowledgement to the first train that leaves, as its last packet (DESIGN.md). If that is
 * impossible, sends it before the train and returns false.
 */
static bool train_add_held(struct udp_transmission *sent)
{
	struct udp_held *held = &sent->socket->held;
	uint8_t *at = sent->socket->buffer + sent->used;

	sent->users++;
	if (sent->complete || held->length > sent->segment || sent->used + held->length > TUNABLE_UDP_TRAIN_BYTES ||
	    sent->count == UDP_TRAIN_PACKETS || sent->socket->no_trains) {
		held_send(sent->socket);
		return false;
	}
	memcpy(at, held->bytes, held->length);
	packet_put_icrc(sent, at, held->length, sent->count);
	sent->used += held->length;
	sent->count++;
	sent->answers = true;
	counter_add(sent->hca, COUNTER_UDP_ACKS_JOINED, 1);
	return true;
}

static void train_flush(struct udp_transmission *sent)
{
	bool joined = sent->count && sent->socket->held.length && train_add_held(sent), whole = true;
	int error;

	counter_add(sent->hca, COUNTER_UDP_PACKETS_SENT, sent->count);
	if (sent->count > 1) {
		train_send(sent);
	} else if (sent->count) {
		error = packet_send(sent, sent->socket->buffer, sent->used, &whole);
		if (error) {
			counter_add(sent->hca, COUNTER_UDP_SEND_ERRORS, 1);
			loss_explain(sent, &sent->socket->way.path.destination, error);
		}
	}
	if (joined || sent->waits)
		udp_held_gone(sent->socket);
	sent->waits = false;
	sent->answers = false;
	sent->count = 0;
	sent->used = 0;
	sent->complete = false;
}

static bool train_has_room(const struct udp_transmission *sent, uint32_t length)
{
	if (!sent->count)
		return true;
	return !sent->complete && length <= sent->segment && sent->used + length <= TUNABLE_UDP_TRAIN_BYTES &&
	       sent->count < (sent->socket->no_trains ? 1 : UDP_TRAIN_PACKETS);
}

/* ---- packets --------------------------------------------------------------------------------------------------- */

/* A masked atomic carries its masks as payload (format/opcodes.def). */
static uint32_t train_put_payload(uint8_t *to, struct packet *packet, uint32_t bytes)
{
	uint32_t pad = roce_pad(bytes);

	if (message_is_masked_atomic(packet->message))
		roce_masks_write(to, packet);
	else if (bytes)
		stream_read(&packet->payload, to, bytes);
	memset(to + bytes, 0, pad);
	return bytes + pad;
}

static bool train_put_packet(struct udp_transmission *sent, struct packet *packet, uint32_t number, unsigned int place,
			     uint32_t payload)
{
	uint8_t *start = sent->socket->buffer, *at = start + sent->used;
	uint32_t headers = roce_headers_write(at, packet, number, place, payload);
	uint32_t length = headers + payload + roce_pad(payload) + ROCE_ICRC_BYTES;

	if (!headers)
		return false;
	if (!train_has_room(sent, length)) {
		uint8_t kept[ROCE_MOST_HEADERS];

		/* The headers were written after the end of the train that is sent now. */
		memcpy(kept, at, headers);
		train_flush(sent);
		memcpy(start, kept, headers);
		at = start;
	}
	if (!sent->count)
		sent->segment = length;
	sent->complete = length < sent->segment;
	train_put_payload(at + headers, packet, payload);
	packet_put_icrc(sent, at, length, sent->count);
	sent->used += length;
	sent->count++;
	return true;
}

/* Cuts the run at the path MTU. */
static void train_put_run(struct udp_transmission *sent, struct packet *packet)
{
	uint64_t left = message_is_masked_atomic(packet->message) ? 2 * (uint64_t)packet->operand_bytes
								  : packet->payload.length;
	uint32_t mtu = packet->mtu, number = 0;

	counter_add(sent->hca, COUNTER_UDP_BYTES_SENT, left);
	do {
		uint32_t payload = left < mtu ? (uint32_t)left : mtu;
		unsigned int place = PLACE_MIDDLE;

		left -= payload;
		if (number == 0)
			place |= packet->place & PLACE_FIRST;
		if (left == 0)
			place |= packet->place & PLACE_LAST;
		if (!train_put_packet(sent, packet, number, place, payload))
			break;
		number++;
	} while (left);
}

/* Returns true if another packet as long as the first may join the train. */
static bool train_may_grow(const struct udp_transmission *sent)
{
	return sent->count && train_has_room(sent, sent->segment);
}

/* Continues the train that another packet left in the socket. */
static void kept_continue(struct udp_transmission *sent)
{
	struct udp_transmission *kept = &sent->socket->kept;

	sent->waits = kept->waits;
	sent->users += kept->users;
	sent->segment = kept->segment;
	sent->count = kept->count;
	sent->used = kept->used;
	kept->count = 0;
}

static bool way_serves(const struct udp_socket *socket, const struct hca *hca, const struct packet_path *path)
{
	const struct packet_path *made = &socket->way_for;

	return socket->way_hca == hca && made->type == path->type &&
	       !memcmp(&made->source, &path->source, sizeof(made->source)) &&
	       !memcmp(&made->destination, &path->destination, sizeof(made->destination)) &&
	       made->traffic_class == path->traffic_class && made->hop_limit == path->hop_limit &&
	       made->flow_label == path->flow_label;
}

/* What waits in the socket goes another way, so it leaves first: a packet must not overtake those before it. */
static void way_leave(struct udp_transmission *sent)
{
	struct udp_transmission kept = sent->socket->kept;

	if (kept.count) {
		sent->socket->kept.count = 0;
		train_flush(&kept);
		sent->users += kept.users;
	}
	if (sent->socket->held.length) {
		held_send(sent->socket);
		sent->users++;
	}
}

/* Makes the way of @path that of the socket. Returns false if there is none. */
static bool way_take(struct udp_transmission *sent, const struct packet_path *path)
{
	struct udp_socket *socket = sent->socket;

	if (way_serves(socket, sent->hca, path))
		return true;
	way_leave(sent);
	socket->way_hca = NULL;
	if (udp_way_make(&socket->way, sent->hca, path))
		return false;
	if (way_has_label(&socket->way) && socket->no_labels)
		socket->way.control_length = socket->way.unlabelled;
	socket->way_for = *path;
	socket->way_hca = sent->hca;
	return true;
}

/* Returns false if the path cannot be used, or no socket is available. */
static bool transmission_begin(struct udp_transmission *sent, struct hca *hca, const struct packet_path *path,
			       uint16_t port)
{
	struct udp_sockets *table = hca->registry->udp_sockets;
	bool manager = sent->destination_qpn == GSI_QPN, ipv6 = udp_path_is_ipv6(hca, path);

	sent->hca = hca;
	sent->users = 1;
	udp_begin(hca);
	/* A packet that leaves by another socket must not overtake the held acknowledgement. */
	if (manager || udp_holding() != udp_flow_key(ipv6, port))
		udp_let_go();
	sent->socket =
		manager ? udp_socket_of_manager(table, ipv6) : udp_socket_get(table, ipv6, port, path->udp_source_port);
	if (!sent->socket) {
		counter_add(hca, COUNTER_UDP_SEND_ERRORS, 1);
		loss_explain(sent, &path->destination, -errno);
		return false;
	}
	if (!way_take(sent, path)) {
		pthread_mutex_unlock(&sent->socket->lock);
		udp_socket_forget(sent->socket, sent->users);
		return false;
	}
	if (sent->socket->kept.count)
		kept_continue(sent);
	return true;
}

static void transmission_end(struct udp_transmission *sent)
{
	train_flush(sent);
	pthread_mutex_unlock(&sent->socket->lock);
	udp_socket_forget(sent->socket, sent->users);
}

/* Keeps the train for the next packet of the requester, which calls udp_flush() at the end. */
static void transmission_keep(struct udp_transmission *sent, struct run *run)
{
	uint32_t users = sent->users - 1;

	sent->users = 1;
	sent->socket->kept = *sent;
	run->flushes = link_udp();
	run->kept = sent->socket;
	pthread_mutex_unlock(&sent->socket->lock);
	if (users)
		udp_socket_forget(sent->socket, users);
}

/* Sends the train kept in @socket, whose lock is held, and released. */
static void kept_send(struct udp_socket *socket)
{
	struct udp_transmission sent = socket->kept;

	socket->kept.count = 0;
	transmission_end(&sent);
}

static bool kept_may_wait(struct udp_socket *socket)
{
	if (socket->held.length)
		return false;
	if (socket->stream.skip) {
		socket->stream.skip--;
		return false;
	}
	return udp_kept_wait(socket, udp_flow_key(socket->ipv6, socket->wanted));
}

/*
 * Requests have waited for @age_ns. A program that posts and then makes no call, such as one that spins on memory, had better
 * not let them wait.
 */
static void stream_note_release(struct udp_stream *stream, uint64_t age_ns)
{
	if (!progress_on_thread()) {
		stream->failures = 0;
	} else if (age_ns >= UDP_STREAM_PAUSE_NS) {
		stream->failures += stream->failures < UDP_STREAM_FAILURES;
		stream->skip = 1u << stream->failures;
	}
}

/* Implements link.flush. */
static void udp_flush(struct run *run)
{
	WITHOUT_CANCELLATION;
	struct udp_socket *socket = run->kept;
	struct udp_transmission *kept = &socket->kept;

	pthread_mutex_lock(&socket->lock);
	/* Another thread may have sent it together with its own packet. */
	if (!kept->count) {
		pthread_mutex_unlock(&socket->lock);
	} else if (run->streams && (kept->waits || kept_may_wait(socket))) {
		kept->waits = true;
		pthread_mutex_unlock(&socket->lock);
	} else {
		kept_send(socket);
	}
}

void udp_kept_release(uint64_t age_ns)
{
	WITHOUT_CANCELLATION;
	struct udp_socket *socket = udp_held_socket();
	uint64_t waited_ns;

	if (!socket)
		return;
	pthread_mutex_lock(&socket->lock);
	waited_ns = clock_now_ns() - socket->held.since_ns;
	if (socket->kept.count && socket->kept.waits && waited_ns >= age_ns) {
		stream_note_release(&socket->stream, waited_ns);
		kept_send(socket);
	} else {
		pthread_mutex_unlock(&socket->lock);
	}
}

static bool packet_is_positive_ack(const struct packet *packet)
{
	return packet->message == MESSAGE_ACKNOWLEDGE && (packet->syndrome & AETH_KIND_MASK) == AETH_ACK;
}

/* Holds the acknowledgement @packet for the program's reply, or returns false if that is not worthwhile. */
static bool ack_hold(struct udp_transmission *sent, const struct packet *packet, uint16_t port)
{
	struct udp_held *held = &sent->socket->held;
	uint8_t headers[ROCE_MOST_HEADERS];
	uint32_t length = roce_headers_write(headers, packet, 0, PLACE_ONLY, 0);

	if (held->length) {
		sent->users++;
		held_send(sent->socket);
	}
	if (!length || length + ROCE_ICRC_BYTES > sizeof(held->bytes) ||
	    !udp_held_keep(sent->socket, udp_flow_key(sent->socket->ipv6, port)))
		return false;
	memcpy(held->bytes, headers, length);
	held->length = length + ROCE_ICRC_BYTES;
	held->hca = sent->hca;
	held->send = held_send;
	held->source_qpn = sent->source_qpn;
	held->destination_qpn = sent->destination_qpn;
	return true;
}

static enum link_result udp_send_run(struct hca *hca, struct run *run)
{
	WITHOUT_CANCELLATION;
	struct packet *packet = run_slot(run);
	struct udp_transmission sent = {.source_qpn = packet->source_qpn, .destination_qpn = packet->destination_qpn};
	uint16_t port = roce_source_port(packet->path, packet->source_qpn, packet->destination_qpn);

	if (!transmission_begin(&sent, hca, packet->path, port))
		return LINK_SENT;
	if (!sent.count && packet_is_positive_ack(packet) && ack_hold(&sent, packet, port)) {
		pthread_mutex_unlock(&sent.socket->lock);
		if (sent.users > 1)
			udp_socket_forget(sent.socket, sent.users - 1);
		return LINK_SENT;
	}
	if (!message_has(packet->message, MESSAGE_IS_RESPONSE))
		udp_held_note_request(sent.socket);
	train_put_run(&sent, packet);
	if (run->more && train_may_grow(&sent))
		transmission_keep(&sent, run);
	else
		transmission_end(&sent);
	return LINK_SENT;
}

/* ---- frames ---------------------------------------------------------------------------------------------------- */

/*
 * Updates the ICRC of a frame built for @path and @port if it leaves with other addresses or another port. A wrong ICRC
 * stays wrong.
 */
static void frame_change_icrc(const struct udp_transmission *sent, const struct packet_path *path, uint16_t port,
			      uint8_t *bytes, uint32_t length)
{
	uint16_t to = (uint16_t)sent->hca->settings.roce_port;
	uint32_t made = roce_icrc(path, port, to, 0, bytes, length - ROCE_ICRC_BYTES), icrc, fault;

	memcpy(&icrc, bytes + length - ROCE_ICRC_BYTES, sizeof(icrc));
	fault = icrc ^ made;
	icrc = roce_icrc(&sent->socket->way.path, sent->socket->port, to, 0, bytes, length - ROCE_ICRC_BYTES) ^ fault;
	memcpy(bytes + length - ROCE_ICRC_BYTES, &icrc, sizeof(icrc));
}

static enum link_result udp_send_frame(struct hca *hca, const struct packet_path *path, const uint8_t *bytes,
				       uint32_t length)
{
	WITHOUT_CANCELLATION;
	struct udp_transmission sent = {.source_qpn = 0};
	uint16_t port;

	if (length < ROCE_BTH_BYTES + ROCE_ICRC_BYTES || length > TUNABLE_UDP_TRAIN_BYTES)
		return LINK_SENT;
	sent.destination_qpn = roce_destination(bytes);
	port = roce_source_port(path, 0, sent.destination_qpn);
	if (!transmission_begin(&sent, hca, path, port))
		return LINK_SENT;
	train_flush(&sent);
	memcpy(sent.socket->buffer, bytes, length);
	frame_change_icrc(&sent, path, port, sent.socket->buffer, length);
	sent.segment = sent.used = length;
	sent.count = 1;
	transmission_end(&sent);
	return LINK_SENT;
}

static void udp_link_let_go(void)
{
	udp_let_go();
}

static struct link udp = {
	.name = "udp",
	.shared = true,
	.routed = true,
	.most = TUNABLE_UDP_RUN_BYTES,
	.window = TUNABLE_UDP_WINDOW_BYTES, /* atomic */
	.shares = true,
	.send = udp_send_run,
	.flush = udp_flush,
	.send_frame = udp_send_frame,
	.has_backlog = udp_port_has_backlog,
	.let_go = udp_link_let_go,
};

void udp_set_window(uint32_t bytes)
{
	__atomic_store_n(&udp.host_buffer, bytes, __ATOMIC_RELAXED);
	bytes = bytes / 2 < UDP_LEAST_WINDOW ? UDP_LEAST_WINDOW : bytes / 2;
	__atomic_store_n(&udp.window, bytes < TUNABLE_UDP_WINDOW_BYTES ? bytes : TUNABLE_UDP_WINDOW_BYTES,
			 __ATOMIC_RELAXED);
}

const struct link *link_udp(void)
{
	return &udp;
}
