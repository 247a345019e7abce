/* SPDX-License-Identifier: BSD-2-Clause */
/* The poller: converts datagrams to packets, see parts.h. All input is hostile until checked. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "core/cancellation.h"
#include "core/descriptor.h"
#include "core/limits.h"
#include "core/timer.h"
#include "progress/progress.h"
#include "observe/counters.h"
#include "explain/explain.h"
#include "explain/limit.h"
#include "link/host/host.h"
#include "wire/mad.h"
#include "wire/roce.h"
#include "wire/roce_fields.h"
#include "link/udp/groups.h"
#include "link/udp/parts.h"
#include "wire/routes.h"

/* Values chosen for speed. */
enum {
	/* reads from a socket of the udp link between checks that the program has not closed it */
	DESCRIPTOR_LOOKS = 16,
	/* ns within which a program must answer for its acknowledgement to leave with the answer */
	UDP_HELD_NS = 50000,
	/*
	 * datagrams per poll: enough to amortize its overhead, and few enough not to delay timers and other links
	 */
	UDP_BATCH = 16,
	/*
	 * bytes per poll, about two trains: acknowledgements leave between polls, so the sender continues before its
	 * window is used up
	 */
	UDP_BATCH_BYTES = 100000,
	/* consecutive polls that have found something after which the next datagram usually waits already */
	UDP_ROW = 2,
	/* bytes from which a datagram is usually followed by another one */
	UDP_LONG_DATAGRAM = 4096,
	/*
	 * A poll of the program looks into the sockets if this part of the time since the last datagram has passed since the
	 * last look, or these ns. A look is a system call, even if the program waits for another link.
	 */
	UDP_QUIET_PART = 64,
	UDP_QUIET_NS = 3000,
};

#define DATAGRAM_BYTES 65536
#define CONTROL_BYTES 256
#define LEAST_MTU 256
#define ECN_MASK 3
#define ECN_CONGESTION 3

/* What recvmsg(2) says of a datagram, and what that means. */
struct udp_label {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} from;
	socklen_t from_length;
	size_t control_length;
	_Alignas(struct cmsghdr) uint8_t control[CONTROL_BYTES];
	struct udp_arrival arrival;
};

static struct {
	struct poller poller;
	struct watched_fd watched; /* descriptor -1: another process receives; atomic */
	bool armed;                /* atomic */
	struct udp_turn *page;     /* atomic; NULL: no other process has the socket */
	uint32_t turn;             /* atomic; this process's turn number on the page */
	bool by_right;             /* atomic; this process owns the port, and always reclaims its turn */
	bool careful;              /* atomic; datagrams stay in the socket while they are handled */
	bool leaving;              /* atomic */
	struct hca *hca;           /* counts and explains packets without a QP */
	/* for the poller only: */
	struct run *run;
	const struct packet_path *path;
	bool group;                     /* the datagram in hand arrived for a multicast group */
	uint32_t row;                   /* consecutive polls that have found something */
	bool due;                       /* the next poll looks into the sockets */
	uint64_t looked_ns, arrived_ns; /* times of the program's last look, and of the last that found something */
	bool pending;                   /* run_slot(run) is not committed yet: packets may continue it */
	/* Last packet of the pending run, if it was joined and is the middle of a message, or NULL. */
	const uint8_t *middle;
	uint32_t middle_length; /* without ICRC */
	struct roce_icrc_start icrc[ROCE_ICRC_STARTS];
	struct udp_label label[2];     /* of the newest datagram, and of the one before it */
	uint32_t newest;               /* index */
	uint8_t bytes[DATAGRAM_BYTES]; /* the datagram in hand */
	uint8_t taken[DATAGRAM_BYTES]; /* taken out of the socket after it was handled */
} receiver = {.watched.fd = -1};

/* ---- packets --------------------------------------------------------------------------------------------------- */

/* Delivers the pending run, at the latest at the end of the datagram that contains its bytes. */
static void pending_deliver(void)
{
	if (!receiver.pending)
		return;
	receiver.pending = false;
	receiver.middle = NULL;
	if (receiver.hca->filters)
		link_filters(receiver.hca)->received(receiver.hca, run_slot(receiver.run));
	run_commit(receiver.run);
	deliver_queued(receiver.run);
	if (receiver.hca->filters)
		link_filters(receiver.hca)->handled(receiver.hca);
}

static void frame_explain_drop(uint32_t qpn, enum explain_rule rule, const uint64_t *figures, size_t count)
{
	const struct explain_subject subject = {.qpn = qpn};

	explain_limited(receiver.hca, &subject, LIMIT_EXPLAINED_DROPS, rule, figures, count);
}

/* Builds the packet in the slot of the run, where it waits for packets that may join it. */
static void packet_take(const uint8_t *bytes, uint32_t length)
{
	struct packet *packet = run_slot(receiver.run);
	struct refusal why;

	if (roce_parse(packet, bytes, length, &why)) {
		counter_add(receiver.hca, COUNTER_UDP_MALFORMED, 1);
		frame_explain_drop(roce_destination(bytes), why.rule, why.args, EXPLAIN_ARGS);
		return;
	}
	packet->link = routes->udp();
	packet->handed_on = false;
	packet->own_path = *receiver.path;
	packet->path = &packet->own_path;
	packet->mtu = (uint16_t)packet->payload.length;
	if (receiver.group && udp_is_own_datagram(receiver.hca, packet))
		return;
	counter_add(receiver.hca, COUNTER_UDP_BYTES_RECEIVED, packet->payload.length);
	receiver.pending = true;
}

/* Returns true if packets of this kind may form a run. Only the last one shows the opcode of the message. */
static bool packet_may_join(const struct packet *packet)
{
	return message_has(packet->message, MESSAGE_IS_LONG) &&
	       (packet->transport == IBV_QPT_RC || packet->transport == IBV_QPT_UC);
}

static bool message_continues(uint8_t begun, uint8_t message)
{
	return begun == message ||
	       (begun == MESSAGE_SEND && (message == MESSAGE_SEND_IMM || message == MESSAGE_SEND_INVALIDATE)) ||
	       (begun == MESSAGE_WRITE && message == MESSAGE_WRITE_IMM);
}

/*
 * Returns true if @next continues the run @packet and joining them hides nothing that the QP must check: all packets of
 * a message except the last must have the length of some path MTU, which the QP compares with its own by the length of
 * the run.
 */
static bool packet_continues(const struct packet *packet, const struct packet *next)
{
	uint64_t length = next->payload.length;

	return next->destination_qpn == packet->destination_qpn && next->transport == packet->transport &&
	       !(next->place & PLACE_FIRST) && !(packet->place & PLACE_LAST) && packet_may_join(packet) &&
	       message_continues(packet->message, next->message) && next->psn == psn_add(packet->psn, packet->count) &&
	       packet->payload.count < STREAM_PARTS && packet->mtu >= LEAST_MTU && !(packet->mtu & (packet->mtu - 1)) &&
	       (next->place & PLACE_LAST ? length && length <= packet->mtu : length == packet->mtu);
}

static void packet_join(struct packet *packet, const struct packet *next)
{
	stream_add_memory(&packet->payload, next->payload.part[0].address, next->payload.length);
	packet->count++;
	packet->place |= next->place;
	packet->message = next->message;
	packet->solicited |= next->solicited;
	packet->acknowledge |= next->acknowledge;
	if (!(next->place & PLACE_LAST))
		return;
	packet->immediate = next->immediate;
	packet->invalidate_rkey = next->invalidate_rkey;
	packet->syndrome = next->syndrome;
	packet->msn = next->msn;
}

static bool pending_join(const uint8_t *bytes, uint32_t length)
{
	static struct packet next;
	struct refusal ignored;

	if (!receiver.pending || receiver.hca->filters || roce_parse(&next, bytes, length, &ignored) ||
	    !packet_continues(run_slot(receiver.run), &next))
		return false;
	counter_add(receiver.hca, COUNTER_UDP_BYTES_RECEIVED, next.payload.length);
	packet_join(run_slot(receiver.run), &next);
	receiver.middle = next.place == PLACE_MIDDLE ? bytes : NULL;
	receiver.middle_length = length;
	return true;
}

/*
 * Joins a packet that differs from the middle packet before it only by the next sequence number, and so passes the same
 * checks.
 */
static bool pending_extend(const uint8_t *bytes, uint32_t length)
{
	const uint8_t *before = receiver.middle;
	struct packet *packet = run_slot(receiver.run);
	uint32_t psn;

	if (!before || length != receiver.middle_length || packet->payload.count == STREAM_PARTS ||
	    receiver.hca->filters)
		return false;
	psn = psn_add(packet->psn, packet->count);
	/* All of BTH except the reserved bits before the number of the queue pair. */
	if (memcmp(bytes, before, 4) != 0 || memcmp(bytes + 5, before + 5, 3) != 0 || roce_get32(bytes + 8) != psn)
		return false;
	counter_add(receiver.hca, COUNTER_UDP_BYTES_RECEIVED, packet->mtu);
	stream_add_memory(&packet->payload, bytes + ROCE_BTH_BYTES, packet->mtu);
	packet->count++;
	receiver.middle = bytes;
	return true;
}

/* Handles a packet of @length bytes without ICRC, which has been checked. */
static void packet_handle(const uint8_t *bytes, uint32_t length)
{
	uint32_t qpn = roce_destination(bytes);

	/* A datagram for a group must have this QP number (IBTA 10.5.1), and must not reach a QP by another number. */
	if (receiver.group != (qpn == MULTICAST_QPN)) {
		counter_add(receiver.hca, COUNTER_UDP_MALFORMED, 1);
		frame_explain_drop(qpn, RULE_FRAME_GROUP, FIGURES(qpn));
		return;
	}
	/* Datagrams for queue pair 1 are forwarded by their own handler. */
	if (!receiver.group && !host_owns(qpn) && qpn != GSI_QPN) {
		pending_deliver();
		counter_add(receiver.hca, COUNTER_UDP_FORWARDED, 1);
		host_carrier->forward(qpn, receiver.path, bytes, length);
		return;
	}
	if (pending_join(bytes, length))
		return;
	pending_deliver();
	packet_take(bytes, length);
}

/* ---- datagrams ------------------------------------------------------------------------------------------------- */

/*
 * Checks the ICRC after @length bytes of packet @number of its datagram. 32 bits are checked if @number is the
 * identification of the IPv4 header, otherwise 15 (docs/inside/wire.md).
 */
static bool frame_check_icrc(const struct udp_arrival *arrival, uint32_t number, const uint8_t *bytes, uint32_t length)
{
	struct ipv4_unseen unseen = {.identification = (uint16_t)number};
	uint32_t qpn = roce_destination(bytes);

	if (!roce_icrc_fits_from(roce_icrc_start(receiver.icrc, &arrival->wire, arrival->source_port,
						 (uint16_t)receiver.hca->settings.roce_port, length),
				 &unseen, bytes)) {
		counter_add(receiver.hca, COUNTER_UDP_BAD_ICRC, 1);
		frame_explain_drop(qpn, RULE_FRAME_ICRC, FIGURES(qpn, length));
		return false;
	}
	if (unseen.solved)
		counter_add(receiver.hca, COUNTER_UDP_ICRC_15_BITS, 1);
	return true;
}

static void frame_handle(const struct udp_arrival *arrival, uint32_t number, const uint8_t *bytes, uint32_t length)
{
	counter_add(receiver.hca, COUNTER_UDP_PACKETS_RECEIVED, 1);
	if (length < ROCE_BTH_BYTES + ROCE_ICRC_BYTES) {
		counter_add(receiver.hca, COUNTER_UDP_MALFORMED, 1);
		frame_explain_drop(0, RULE_FRAME_SHORT, FIGURES(length, ROCE_BTH_BYTES + ROCE_ICRC_BYTES));
		return;
	}
	length -= ROCE_ICRC_BYTES;
	if (frame_check_icrc(arrival, number, bytes, length) && !pending_extend(bytes, length))
		packet_handle(bytes, length);
}

/*
 * Returns true if the packet @last of a train is an acknowledgement after requests only: it is older, but udp.c had to
 * put it last (DESIGN.md). Trains with responses are in order.
 */
static bool train_ends_with_older(const uint8_t *bytes, uint32_t length, uint32_t segment, uint32_t last)
{
	if (!last || segment < ROCE_BTH_BYTES || length - last < ROCE_BTH_BYTES ||
	    packet_opcodes[bytes[last]].message != MESSAGE_ACKNOWLEDGE)
		return false;
	for (uint32_t at = 0; at < last; at += segment)
		if (message_has(packet_opcodes[bytes[at]].message, MESSAGE_IS_RESPONSE))
			return false;
	return true;
}

static void datagram_handle(const struct udp_arrival *arrival, const uint8_t *bytes, uint32_t length)
{
	uint32_t segment = arrival->segment && arrival->segment < length ? arrival->segment : length;
	uint32_t last = length ? (length - 1) / segment * segment : 0, number = 0;

	if (segment < length)
		counter_add(receiver.hca, COUNTER_UDP_TRAINS_RECEIVED, 1);
	if ((arrival->wire.traffic_class & ECN_MASK) == ECN_CONGESTION)
		counter_add(receiver.hca, COUNTER_UDP_CONGESTION_MARKS, 1);
	receiver.path = &arrival->path;
	if (train_ends_with_older(bytes, length, segment, last)) {
		frame_handle(arrival, last / segment, bytes + last, length - last);
		length = last;
	}
	for (uint32_t at = 0; at < length; at += segment) {
		frame_handle(arrival, number++, bytes + at, length - at < segment ? length - at : segment);
	}
	pending_deliver();
}

static bool label_is_same(const struct udp_label *a, const struct udp_label *b)
{
	return a->from_length == b->from_length && a->control_length == b->control_length &&
	       !memcmp(&a->from, &b->from, a->from_length) && !memcmp(a->control, b->control, a->control_length);
}

/*
 * Receives a datagram. Returns its length or a negative errno. With MSG_PEEK in @flags it stays in the socket. Most
 * datagrams come the same way as the one before them, which was understood then.
 */
static ssize_t udp_datagram_receive(int fd, const struct udp_arrival **arrival, uint8_t bytes[static DATAGRAM_BYTES],
				    int flags)
{
	struct udp_label *before = &receiver.label[receiver.newest], *label = &receiver.label[!receiver.newest];
	struct iovec vector = {bytes, DATAGRAM_BYTES};
	struct msghdr message = {
		.msg_name = &label->from,
		.msg_namelen = sizeof(label->from),
		.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = label->control,
		.msg_controllen = sizeof(label->control),
	};
	/* The file status flags are shared: another process may have made the socket blocking. */
	ssize_t length = recvmsg(fd, &message, MSG_DONTWAIT | flags);

	*arrival = &before->arrival;
	if (length < 0)
		return -errno;
	counter_add(receiver.hca, COUNTER_UDP_RECEIVE_CALLS, 1);
	label->from_length = message.msg_namelen;
	label->control_length = message.msg_controllen;
	if (label_is_same(before, label))
		return length;
	if (!udp_arrival_read(&label->arrival, &message))
		return 0;
	receiver.newest = !receiver.newest;
	*arrival = &label->arrival;
	return length;
}

static bool receiver_has_turn(const struct udp_turn *page)
{
	return __atomic_load_n(&page->turn, __ATOMIC_SEQ_CST) == __atomic_load_n(&receiver.turn, __ATOMIC_RELAXED);
}

/*
 * Takes the handled datagram, @length bytes of receiver.bytes, out of the socket. If another process took it while this
 * one was stopped, the first datagram is a new one, which is handled here. Returns false if the handled datagram was
 * not taken.
 */
static bool datagram_take_out(int fd, const struct udp_turn *page, ssize_t length)
{
	const struct udp_arrival *arrival;
	ssize_t taken;

	if (!receiver_has_turn(page))
		return false;
	taken = udp_datagram_receive(fd, &arrival, receiver.taken, 0);
	if (taken == length && !memcmp(receiver.taken, receiver.bytes, (size_t)length))
		return true;
	if (taken > 0)
		datagram_handle(arrival, receiver.taken, (uint32_t)taken);
	return false;
}

/*
 * Returns true if the datagram starts with a READ, an atomic or an ATOMIC WRITE. Its response leaves after the poll, so
 * further requests are taken first, for the responder to count how many of them wait (IBTA 9.7.4.1.5).
 */
static bool datagram_wants_response(const uint8_t *bytes, ssize_t length)
{
	return length > 0 && message_has(packet_opcodes[bytes[0]].message, MESSAGE_IS_ANSWERED);
}

/* Checks the descriptor, but not on every poll: nothing is written to the sockets, and most polls find nothing. */
static bool descriptor_look(int fd)
{
	static uint32_t looks;

	return __atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED) % DESCRIPTOR_LOOKS || descriptor_check(fd);
}

/*
 * Handles the next datagrams of @fd. With @careful, a process that is killed or stopped leaves a datagram in the socket
 * for the other processes.
 */
static bool socket_poll(int fd, const struct udp_turn *careful)
{
	const struct udp_arrival *arrival;
	ssize_t length, bytes = 0;
	int i;

	if (!descriptor_look(fd))
		return false;
	for (i = 0; i < UDP_BATCH; i++) {
		length = udp_datagram_receive(fd, &arrival, receiver.bytes, careful ? MSG_PEEK : 0);
		if (length < 0)
			break;
		if (length > 0)
			datagram_handle(arrival, receiver.bytes, (uint32_t)length);
		if (careful && !datagram_take_out(fd, careful, length))
			return true;
		bytes += length;
		if (bytes >= UDP_BATCH_BYTES)
			return true;
		if (length < UDP_LONG_DATAGRAM && receiver.row < UDP_ROW &&
		    !datagram_wants_response(receiver.bytes, length))
			return true;
	}
	return i > 0;
}

static bool receiver_take_turn(struct udp_turn *page)
{
	uint32_t own;

	if (receiver_has_turn(page))
		return true;
	if (!__atomic_load_n(&receiver.by_right, __ATOMIC_RELAXED)) {
		udp_port_turn_lost();
		return false;
	}
	own = __atomic_add_fetch(&page->turn, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&receiver.turn, own, __ATOMIC_RELAXED);
	return true;
}

static bool port_poll(void)
{
	int fd = __atomic_load_n(&receiver.watched.fd, __ATOMIC_ACQUIRE);
	struct udp_turn *page;

	if (fd < 0 || __atomic_load_n(&receiver.leaving, __ATOMIC_SEQ_CST))
		return false;
	page = __atomic_load_n(&receiver.page, __ATOMIC_RELAXED);
	if (page && !receiver_take_turn(page))
		return false;
	if (!socket_poll(fd, __atomic_load_n(&receiver.careful, __ATOMIC_RELAXED) ? page : NULL))
		return false;
	/* Other processes may increment it at the same time; one visible change is sufficient. */
	if (page)
		__atomic_store_n(&page->beats, __atomic_load_n(&page->beats, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
	return true;
}

static bool group_poll(int fd)
{
	return socket_poll(fd, NULL);
}

/* Implements poller.idle. */
static bool udp_poller_idle(struct poller *poller)
{
	uint64_t now_ns, interval_ns;

	(void)poller;
	if (receiver.due || __builtin_expect(udp_holding() != 0, 0))
		return false;
	now_ns = clock_now_ns();
	interval_ns = (now_ns - receiver.arrived_ns) / UDP_QUIET_PART;
	if (now_ns - receiver.looked_ns < (interval_ns < UDP_QUIET_NS ? interval_ns : UDP_QUIET_NS))
		return true;
	receiver.looked_ns = now_ns;
	receiver.due = true;
	return false;
}

static bool udp_poll(struct poller *poller, struct run *run)
{
	WITHOUT_CANCELLATION;
	bool found;

	(void)poller;
	receiver.due = false;
	if (__builtin_expect(udp_holding() != 0, 0)) {
		/* Avoids a system call when a program checks its send queue before it replies. */
		if (udp_held_just_now())
			return false;
		udp_held_release(UDP_HELD_NS);
	}
	receiver.run = run;
	found = port_poll();
	receiver.group = true;
	found |= udp_groups_poll(receiver.hca->registry->udp_groups, group_poll);
	receiver.group = false;
	/* The program has nothing else to send now. */
	if (!found && __builtin_expect(udp_holding() != 0, 0))
		udp_kept_release(0);
	receiver.row = found ? receiver.row + 1 : 0;
	if (found)
		receiver.arrived_ns = receiver.looked_ns;
	return found;
}

/* ---- registering ----------------------------------------------------------------------------------------------- */

static uint32_t receiver_events(bool armed)
{
	return armed && !__atomic_load_n(&receiver.leaving, __ATOMIC_SEQ_CST) ? EPOLLIN : 0;
}

static void udp_poller_arm(struct poller *poller, bool armed)
{
	(void)poller;
	__atomic_store_n(&receiver.armed, armed, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&receiver.watched.fd, __ATOMIC_SEQ_CST) >= 0)
		progress_rewatch_arrivals(&receiver.watched, receiver_events(armed));
}

/* Implements poller.rest. The sockets wake the thread; only packets that wait must be sent. */
static void udp_poller_rest(struct poller *poller, bool stays)
{
	(void)poller;
	if (!udp_holding())
		return;
	if (stays)
		udp_held_release(0);
	udp_kept_release(0);
}

int udp_receive_begin(struct hca *hca)
{
	receiver.hca = hca;
	receiver.armed = true;
	receiver.poller = (struct poller){
		.poll = udp_poll, .idle = udp_poller_idle, .arm = udp_poller_arm, .rest = udp_poller_rest};
	receiver.watched = (struct watched_fd){.fd = -1};
	return progress_add(&receiver.poller);
}

static void receiver_start(int fd, struct udp_turn *page)
{
	bool armed = __atomic_load_n(&receiver.armed, __ATOMIC_SEQ_CST);

	__atomic_store_n(&receiver.page, page, __ATOMIC_SEQ_CST);
	/* A descriptor may be watched already, if this process was a substitute before. */
	__atomic_store_n(&receiver.watched.fd, fd, __ATOMIC_SEQ_CST);
	progress_watch_arrivals(&receiver.watched, receiver_events(armed));
	/* udp_poller_arm() may have been called before the descriptor was watched. */
	while (armed != __atomic_load_n(&receiver.armed, __ATOMIC_SEQ_CST)) {
		armed = !armed;
		progress_rewatch_arrivals(&receiver.watched, receiver_events(armed));
	}
	progress_wake();
}

void udp_receive_from(int fd, struct udp_turn *page)
{
	if (page)
		__atomic_store_n(&receiver.turn, __atomic_add_fetch(&page->turn, 1, __ATOMIC_SEQ_CST),
				 __ATOMIC_SEQ_CST);
	__atomic_store_n(&receiver.by_right, true, __ATOMIC_SEQ_CST);
	receiver_start(fd, page);
}

void udp_receive_carefully(bool careful)
{
	__atomic_store_n(&receiver.careful, careful, __ATOMIC_RELAXED);
}

void udp_receive_in_place(int fd, struct udp_turn *page, uint32_t turn)
{
	udp_receive_carefully(true);
	__atomic_store_n(&receiver.turn, turn, __ATOMIC_SEQ_CST);
	receiver_start(fd, page);
}

bool udp_receive_has_turn(void)
{
	const struct udp_turn *page = __atomic_load_n(&receiver.page, __ATOMIC_SEQ_CST);

	return __atomic_load_n(&receiver.watched.fd, __ATOMIC_SEQ_CST) >= 0 && (!page || receiver_has_turn(page));
}

void udp_receive_stop(void)
{
	progress_unwatch(&receiver.watched);
	__atomic_store_n(&receiver.watched.fd, -1, __ATOMIC_SEQ_CST);
}

void udp_receive_leave(void)
{
	if (__atomic_load_n(&receiver.watched.fd, __ATOMIC_SEQ_CST) < 0)
		return;
	__atomic_store_n(&receiver.leaving, true, __ATOMIC_SEQ_CST);
	progress_rewatch_arrivals(&receiver.watched, 0);
	progress_wait_for_poll();
}

void udp_receive_after_fork(void)
{
	receiver.watched.fd = -1;
	receiver.page = NULL;
	receiver.by_right = false;
	receiver.careful = false;
	receiver.leaving = false;
}
