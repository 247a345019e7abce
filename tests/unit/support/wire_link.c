/* SPDX-License-Identifier: BSD-2-Clause */
/* The wire, see wire_link.h. */
#include "wire_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/epoch.h"
#include "transport/qp/qp.h"
#include "wire/link.h"
#include "transport/responder/atomic.h"
#include "format/opcode.h"
#include "transport/run/run.h"

static struct {
	pthread_mutex_t lock;
	struct wire_packet *first, **last;
	uint64_t sent;
	wire_filter *filter;
	void *argument;
	const struct link *before;
	struct wire_manner manner;
	bool keeps; /* the requester has announced more packets, or flush() */
	bool waits; /* run->streams of the last flush */
} wire = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A packet that cannot be encoded on a wire is a bug of the device. */
#define MUST(condition)                                                                                                \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                        \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

/* ---- sending --------------------------------------------------------------------------------------------------- */

static void put_last(struct wire_packet *packet)
{
	packet->next = NULL;
	*wire.last = packet;
	wire.last = &packet->next;
}

/* Sent after the next packet, or at the end if there is none. */
static struct wire_packet *delayed;

static void put(struct wire_packet *packet)
{
	enum wire_verdict verdict = wire.filter ? wire.filter(wire.argument, ++wire.sent, packet) : WIRE_PASS;
	struct wire_packet *twin;

	if (!wire.filter)
		wire.sent++;
	if (verdict == WIRE_DROP) {
		free(packet);
		return;
	}
	if (verdict == WIRE_DELAY && !delayed) {
		delayed = packet;
		return;
	}
	put_last(packet);
	if (verdict == WIRE_DOUBLE) {
		twin = malloc(sizeof(*twin));
		MUST(twin);
		*twin = *packet;
		put_last(twin);
	}
	if (delayed) {
		put_last(delayed);
		delayed = NULL;
	}
}

/*
 * The opcode of the message, as for a packet that is not last: the last packet's differences are not known earlier
 * (IBTA table 38).
 */
static int opcode_of(const struct packet *packet, enum packet_place place)
{
	enum message message = packet->message;

	if (!(place & PLACE_LAST)) {
		if (message == MESSAGE_SEND_IMM || message == MESSAGE_SEND_INVALIDATE)
			message = MESSAGE_SEND;
		if (message == MESSAGE_WRITE_IMM)
			message = MESSAGE_WRITE;
	}
	return packet_opcode_of(packet->transport, message, place);
}

/* Masks of an atomic are carried as payload (format/opcodes.def). */
static void put_masks(struct wire_packet *to, const struct packet *from)
{
	const uint64_t masks[] = {from->swap_mask, from->compare_mask};
	uint32_t bytes = from->operand_bytes;

	MUST(bytes == 4 || bytes == 8);
	for (uint32_t i = 0; i < 2 * bytes; i++)
		to->payload[i] = (uint8_t)(masks[i / bytes] >> 8 * (bytes - 1 - i % bytes));
	to->length = 2 * bytes;
}

static void take_masks(struct packet *to, const struct wire_packet *from)
{
	uint32_t bytes = from->length / 2;
	uint64_t masks[2] = {0, 0};

	for (uint32_t i = 0; i < from->length; i++)
		masks[i / bytes] = masks[i / bytes] << 8 | from->payload[i];
	to->operand_bytes = (uint8_t)bytes;
	to->swap_mask = masks[0];
	to->compare_mask = masks[1];
}

/* Copies only the fields that the headers of the opcode carry. */
static void fill(struct wire_packet *to, const struct packet *from, uint32_t number, enum packet_place place)
{
	int opcode = opcode_of(from, place);
	uint16_t headers;

	MUST(opcode >= 0);
	headers = packet_opcodes[opcode].headers;
	to->opcode = (uint8_t)opcode;
	to->solicited = from->solicited && place & PLACE_LAST;
	/* The last packet of the run, regardless of its place in the message. */
	to->acknowledge = from->acknowledge && (number + 1 == from->count || place == PLACE_ONLY);
	to->destination_qpn = from->destination_qpn;
	MUST(from->psn <= PSN_MASK);
	to->psn = psn_add(from->psn, number);
	to->path = *from->path;
	to->link = from->link;
	if (headers & HEADER_DETH) {
		to->qkey = from->qkey;
		to->source_qpn = from->source_qpn;
	}
	if (headers & HEADER_DCETH) {
		to->source_qpn = from->source_qpn;
		to->dc_key = from->dc_key;
		to->dc_connection = from->dc_connection;
		MUST(from->dc_first_psn <= PSN_MASK);
		to->dc_first_psn = from->dc_first_psn;
	}
	if (headers & HEADER_XRCETH) {
		MUST(from->xrc_srqn <= 0xffffff);
		to->xrc_srqn = from->xrc_srqn;
	}
	if (headers & (HEADER_RETH | HEADER_ATOMICETH)) {
		to->remote_address = from->remote_address;
		to->rkey = from->rkey;
	}
	if (headers & HEADER_RETH)
		to->dma_length = from->dma_length;
	if (headers & HEADER_ATOMICETH) {
		to->swap_add = from->swap_add;
		to->compare = from->compare;
	}
	if (headers & HEADER_AETH) {
		/* Other implementations would take any other value for a credit count, and wait for more. */
		MUST(from->syndrome == ACKNOWLEDGED || (from->syndrome & AETH_KIND_MASK) != AETH_ACK);
		to->syndrome = from->syndrome;
		to->msn = from->msn;
	}
	if (headers & HEADER_ATOMICACKETH)
		to->original = from->original;
	if (headers & HEADER_IMMDT)
		to->immediate = from->immediate;
	if (headers & HEADER_IETH)
		to->invalidate_rkey = from->invalidate_rkey;
	if (message_is_masked_atomic(from->message))
		put_masks(to, from);
	MUST(!to->length || headers & HEADER_PAYLOAD);
}

/* Checks a piece against the limits that the link announced. */
static void check_piece(const struct packet *packet)
{
	MUST(!wire.manner.most || packet->payload.length <= wire.manner.most);
	MUST(packet->place & PLACE_LAST || packet->payload.length % packet->mtu == 0);
}

static const struct link *link_of_wire(void);

/* Cuts the run into packets; the payload is read from front to back, one packet at a time. */
static enum link_result send_run(struct hca *hca, struct run *run)
{
	struct packet *packet = run_slot(run);
	uint64_t left = packet->payload.length;
	/* A READ request uses the sequence numbers of its response, but is a single packet. */
	uint32_t count = packet->message == MESSAGE_READ_REQUEST ? 1 : packet->count;

	(void)hca;
	if (wire.manner.busy && wire.manner.busy(wire.manner.argument))
		return LINK_BUSY;
	check_piece(packet);
	pthread_mutex_lock(&wire.lock);
	for (uint32_t i = 0; i < count; i++) {
		struct wire_packet *cut = calloc(1, sizeof(*cut));
		unsigned int place =
			(i == 0 ? packet->place & PLACE_FIRST : 0) | (i == count - 1 ? packet->place & PLACE_LAST : 0);

		MUST(cut);
		/* All packets but the last of a message are full. */
		cut->length = left > packet->mtu ? packet->mtu : (uint32_t)left;
		MUST(cut->length == packet->mtu || place & PLACE_LAST);
		if (cut->length)
			stream_read(&packet->payload, cut->payload, cut->length);
		left -= cut->length;
		fill(cut, packet, i, place);
		cut->more = run->more;
		cut->streams = run->streams;
		put(cut);
	}
	MUST(!left);
	wire.keeps = run->more && !wire.manner.immediate;
	if (wire.keeps)
		run->flushes = link_of_wire();
	pthread_mutex_unlock(&wire.lock);
	return LINK_SENT;
}

static void flush_run(struct run *run)
{
	wire.keeps = false;
	wire.waits = run->streams;
}

bool wire_lets_wait(void)
{
	return wire.waits;
}

static struct link link_to_wire = {
	.name = "wire", .immediate = true, .shared = true, .send = send_run, .flush = flush_run};

static const struct link *link_of_wire(void)
{
	return &link_to_wire;
}

void wire_behave(const struct wire_manner *manner)
{
	wire.manner = *manner;
	link_to_wire.immediate = manner->immediate;
	link_to_wire.routed = manner->routed;
	link_to_wire.most = manner->most;
	link_to_wire.window = manner->window;
}

/* ---- receiving ------------------------------------------------------------------------------------------------- */

struct wire_packet *wire_take(void)
{
	struct wire_packet *packet;

	pthread_mutex_lock(&wire.lock);
	if (!wire.first && delayed) {
		put_last(delayed);
		delayed = NULL;
	}
	packet = wire.keeps ? NULL : wire.first;
	if (packet) {
		wire.first = packet->next;
		if (!wire.first)
			wire.last = &wire.first;
	}
	pthread_mutex_unlock(&wire.lock);
	return packet;
}

static uint32_t mtu_shift_of(uint32_t qpn)
{
	struct hca_qp *qp = qp_find(qpn);

	return qp ? qp->mtu_shift : 8;
}

/* Fields that are not on the wire are filled with values that must not matter. */
static void parse(struct packet *to, const struct wire_packet *from)
{
	const struct packet_opcode *opcode = &packet_opcodes[from->opcode];
	uint32_t shift = mtu_shift_of(from->destination_qpn);

	memset(to, 0xa5, offsetof(struct packet, payload));
	to->transport = opcode->transport;
	to->message = opcode->message;
	to->place = opcode->place;
	to->solicited = from->solicited;
	to->acknowledge = from->acknowledge;
	to->link = from->link ? from->link : link_of_wire();
	to->destination_qpn = from->destination_qpn;
	to->psn = from->psn;
	/* As in roce_parse(): the receiver of a READ request computes how many packets it counts for. */
	to->count = opcode->message != MESSAGE_READ_REQUEST;
	to->mtu = (uint16_t)(1u << shift);
	to->why.rule = RULE_NONE;
	to->own_path = from->path;
	to->path = &to->own_path;
	if (opcode->headers & HEADER_DETH) {
		to->qkey = from->qkey;
		to->source_qpn = from->source_qpn;
	}
	if (opcode->headers & HEADER_XRCETH)
		to->xrc_srqn = from->xrc_srqn;
	if (opcode->headers & HEADER_DCETH) {
		to->source_qpn = from->source_qpn;
		to->dc_key = from->dc_key;
		to->dc_connection = from->dc_connection;
		to->dc_first_psn = from->dc_first_psn;
	}
	if (opcode->headers & (HEADER_RETH | HEADER_ATOMICETH)) {
		to->remote_address = from->remote_address;
		to->rkey = from->rkey;
	}
	if (opcode->headers & HEADER_RETH)
		to->dma_length = from->dma_length;
	if (opcode->headers & HEADER_ATOMICETH) {
		to->swap_add = from->swap_add;
		to->compare = from->compare;
	}
	if (opcode->headers & HEADER_AETH) {
		to->syndrome = from->syndrome;
		to->msn = from->msn;
	}
	if (opcode->headers & HEADER_ATOMICACKETH)
		to->original = from->original;
	if (opcode->headers & HEADER_IMMDT)
		to->immediate = from->immediate;
	if (opcode->headers & HEADER_IETH)
		to->invalidate_rkey = from->invalidate_rkey;
	stream_begin(&to->payload, NULL, 0);
	if (message_is_masked_atomic(to->message))
		take_masks(to, from);
	else
		stream_add_memory(&to->payload, from->payload, from->length);
}

/* A link drops a masked atomic with masks of another width than an operand. */
static bool has_good_masks(const struct wire_packet *packet)
{
	return !message_is_masked_atomic(packet_opcodes[packet->opcode].message) || packet->length == 8 ||
	       packet->length == 16;
}

/* The fields of a message's last packet apply to the run that ends with it. */
static void take_end(struct packet *packet, const struct wire_packet *last)
{
	const struct packet_opcode *opcode = &packet_opcodes[last->opcode];

	packet->message = opcode->message;
	packet->place |= opcode->place & PLACE_LAST;
	packet->solicited = last->solicited;
	packet->acknowledge = last->acknowledge;
	packet->immediate = last->immediate;
	packet->invalidate_rkey = last->invalidate_rkey;
}

void wire_receive_run(const struct wire_packet *const *packets, uint32_t count)
{
	uint8_t *payload = malloc((size_t)count * LIMIT_MAX_MTU);
	uint32_t bytes = 0;
	struct run run;

	MUST(payload);
	epoch_enter();
	run_begin(&run);
	parse(run_slot(&run), packets[0]);
	if (count > 1) {
		for (uint32_t i = 0; i < count; i++) {
			memcpy(payload + bytes, packets[i]->payload, packets[i]->length);
			bytes += packets[i]->length;
		}
		take_end(run_slot(&run), packets[count - 1]);
		stream_begin(&run_slot(&run)->payload, NULL, 0);
		stream_add_memory(&run_slot(&run)->payload, payload, bytes);
		run_slot(&run)->count = 0;
		run_slot(&run)->mtu = 0;
	}
	run_commit(&run);
	run_drain(&run, NULL);
	run_finish(&run);
	epoch_leave();
	free(payload);
}

void wire_receive_poll(const struct wire_packet *const *packets, uint32_t count, void (*before_end)(void))
{
	struct run run;

	epoch_enter();
	run_begin(&run);
	for (uint32_t i = 0; i < count; i++) {
		parse(run_slot(&run), packets[i]);
		run_commit(&run);
		run_drain(&run, NULL);
	}
	before_end();
	run_finish(&run);
	epoch_leave();
}

bool wire_goes_on(const struct wire_packet *packet, const struct wire_packet *next)
{
	const struct packet_opcode *a = &packet_opcodes[packet->opcode], *b = &packet_opcodes[next->opcode];
	bool writes = a->message == MESSAGE_WRITE;

	if (a->transport != b->transport || a->place & PLACE_LAST || b->place & PLACE_FIRST ||
	    packet->destination_qpn != next->destination_qpn || psn_add(packet->psn, 1) != next->psn)
		return false;
	if (a->message == MESSAGE_READ_RESPONSE || b->message == MESSAGE_READ_RESPONSE)
		return a->message == b->message;
	return writes == (b->message == MESSAGE_WRITE || b->message == MESSAGE_WRITE_IMM);
}

void wire_receive(const struct wire_packet *packet)
{
	if (has_good_masks(packet))
		wire_receive_run(&packet, 1);
}

bool wire_deliver(void)
{
	struct wire_packet *packet = wire_take();

	if (!packet)
		return false;
	wire_receive(packet);
	free(packet);
	return true;
}

/* ---- attaching ------------------------------------------------------------------------------------------------- */

void wire_attach(struct hca *hca, wire_filter *filter, void *argument)
{
	static const struct wire_manner at_once = {.immediate = true}, in_pieces = {.most = 4096, .window = 8192};
	const char *pieces = getenv("WIRE_PIECES");

	pthread_mutex_lock(&wire.lock);
	wire.first = NULL;
	wire.last = &wire.first;
	wire.sent = 0;
	wire.filter = filter;
	wire.argument = argument;
	pthread_mutex_unlock(&wire.lock);
	wire_behave(pieces ? &in_pieces : &at_once);
	wire.before = hca->link;
	hca->link = link_of_wire();
}

void wire_detach(struct hca *hca)
{
	struct wire_packet *packet;

	hca->link = wire.before;
	while ((packet = wire_take()))
		free(packet);
}

uint64_t wire_sent(void)
{
	uint64_t sent;

	pthread_mutex_lock(&wire.lock);
	sent = wire.sent;
	pthread_mutex_unlock(&wire.lock);
	return sent;
}

static unsigned int throw(struct wire_dice * dice)
{
	dice->state = dice->state * 6364136223846793005 + 1442695040888963407;
	return (unsigned int)(dice->state >> 33) % 100;
}

enum wire_verdict wire_dice(void *argument, uint64_t number, const struct wire_packet *packet)
{
	struct wire_dice *dice = argument;
	unsigned int thrown = throw(dice);

	(void)number;
	if (!(dice->transports & 1u << packet_opcodes[packet->opcode].transport))
		return WIRE_PASS;
	if (thrown < dice->drop)
		return WIRE_DROP;
	if (thrown < dice->drop + dice->twice)
		return WIRE_DOUBLE;
	return thrown < dice->drop + dice->twice + dice->delay ? WIRE_DELAY : WIRE_PASS;
}
