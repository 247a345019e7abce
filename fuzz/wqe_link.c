/* SPDX-License-Identifier: BSD-2-Clause */
/* See wqe_link.h. */
#include "wqe_link.h"

#include <stdlib.h>

#include "../tests/unit/support/wire_link.h"
#include "link/local/local.h"
#include "format/qp_types.h"
#include "wire/link.h"
#include "format/opcode.h"

/* Longer messages only cost time: a layout can repeat one byte a billion times. */
#define LONGEST_MESSAGE (UINT64_C(1) << 18)
#define LONGEST_CUT_MESSAGE (UINT64_C(1) << 14)
/* Packets that one operation causes: some messages, and their retransmissions. */
#define MOST_PACKETS 4096

static const struct input_config *config;
static const struct world_pair_of_qps *pair;
static const struct link *own;    /* the link below the fuzzer's */
static const struct link *before; /* the previous override of the device: none */
static uint32_t packets;

static uint32_t damage_value(void)
{
	return config->value[0] | (uint32_t)config->value[1] << 8 | (uint32_t)config->value[2] << 16;
}

static uint32_t any_rkey(uint32_t value)
{
	return WORLD_KEY(value % WORLD_KEYS) | (value >> 16);
}

static uint32_t any_qpn(uint32_t value)
{
	return pair->end[value & 1].qp->number + (value >> 1 & 7);
}

/* ---- whole messages ------------------------------------------------------------------------------------------- */

/* Damages a header such that it still parses. */
static void damage(struct packet *packet)
{
	uint32_t value = damage_value();

	switch (config->field % 19) {
	case 0:
		packet->message = (uint8_t)(1 + value % (MESSAGE_COUNT - 1));
		break;
	case 1:
		packet->place = value % 4;
		break;
	case 2:
		packet->psn = value & PSN_MASK;
		break;
	case 3:
		packet->psn = psn_add(packet->psn, value);
		break;
	case 4:
		packet->count = 1 + value % 1000;
		break;
	case 5:
		packet->destination_qpn = any_qpn(value);
		break;
	case 6:
		packet->transport =
			(uint8_t[]){IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND, QP_TYPE_DCI}[value % 5];
		break;
	case 7:
		packet->remote_address += (int64_t)value - 0x800000;
		break;
	case 8:
		packet->rkey = any_rkey(value);
		break;
	case 9:
		packet->dma_length = value;
		break;
	case 10:
		packet->invalidate_rkey = any_rkey(value);
		break;
	case 11:
		packet->syndrome = (uint8_t)value;
		break;
	case 12:
		packet->acknowledge = value & 1;
		break;
	case 13:
		packet->qkey = value;
		break;
	case 14:
		packet->xrc_srqn = WORLD_XRC_SRQ + value % 5;
		break;
	case 15:
		packet->dc_key ^= value;
		break;
	case 16:
		packet->dc_connection += (int64_t)value - 0x800000;
		break;
	case 17:
		packet->dc_first_psn = value & PSN_MASK;
		break;
	default:
		packet->operand_bytes = value & 1 ? 4 : 8;
		packet->swap_mask ^= value;
		packet->compare_mask ^= value;
	}
}

/* Parsers never produce a packet with an opcode that its transport lacks. */
static bool parses(const struct packet *packet)
{
	for (int i = 0; i < 256; i++)
		if (packet_opcodes[i].name && packet_opcodes[i].transport == packet->transport &&
		    packet_opcodes[i].message == packet->message)
			return true;
	return false;
}

static void damage_or_not(struct packet *packet)
{
	uint8_t message = packet->message, transport = packet->transport;

	damage(packet);
	if (!parses(packet)) {
		packet->message = message;
		packet->transport = transport;
	}
}

static enum link_result deliver_twice(struct hca *hca, struct run *run)
{
	const struct packet *first = run_slot(run);
	struct packet *second;

	own->send(hca, run);
	second = run_slot(run);
	*second = *first;
	if (first->path == &first->own_path)
		second->path = &second->own_path;
	return own->send(hca, run);
}

static bool is_longer(const struct packet *packet, uint64_t limit)
{
	return packet->payload.length > limit || packet->dma_length > limit;
}

static enum link_result send_whole(struct hca *hca, struct run *run)
{
	struct packet *packet = run_slot(run);
	uint32_t number = packets++;

	if (config->damage == number + 1)
		damage_or_not(packet);
	if (is_longer(packet, LONGEST_MESSAGE) || (number < 8 && config->lose >> number & 1))
		return LINK_SENT;
	/* A run has room for one duplicate. */
	if (number < 8 && config->double_ >> number & 1 && run->last - run->first <= 1)
		return deliver_twice(hca, run);
	return own->send(hca, run);
}

/* ---- packets -------------------------------------------------------------------------------------------------- */

/* UC has no opcode for a SEND with invalidation (IBTA table 38), though a program can request it (ibv_post_send(3)). */
static bool has_opcode(const struct packet *packet)
{
	return packet_opcode_of(packet->transport, packet->message, PLACE_ONLY) >= 0;
}

static enum link_result send_cut(struct hca *hca, struct run *run)
{
	const struct packet *packet = run_slot(run);

	if (is_longer(packet, LONGEST_CUT_MESSAGE) || !has_opcode(packet))
		return LINK_SENT;
	return own->send(hca, run);
}

/* A packet that is both lost and duplicated is delayed. */
static enum wire_verdict judge(void *argument, uint64_t number, const struct wire_packet *packet)
{
	bool loses, doubles;

	(void)argument;
	(void)packet;
	if (number > 8)
		return WIRE_PASS;
	loses = config->lose >> (number - 1) & 1;
	doubles = config->double_ >> (number - 1) & 1;
	if (loses)
		return doubles ? WIRE_DELAY : WIRE_DROP;
	return doubles ? WIRE_DOUBLE : WIRE_PASS;
}

static void damage_cut(struct wire_packet *packet)
{
	uint32_t value = damage_value();

	switch (config->field % 16) {
	case 0:
		if (packet_opcodes[value & 0xff].name)
			packet->opcode = (uint8_t)value;
		break;
	case 1:
		packet->psn = value & PSN_MASK;
		break;
	case 2:
		packet->psn = psn_add(packet->psn, value);
		break;
	case 3:
		packet->length = value % (LIMIT_MAX_MTU + 1);
		break;
	case 4:
		packet->destination_qpn = any_qpn(value);
		break;
	case 5:
		packet->remote_address += (int64_t)value - 0x800000;
		break;
	case 6:
		packet->rkey = any_rkey(value);
		break;
	case 7:
		packet->dma_length = value & (LONGEST_CUT_MESSAGE - 1);
		break;
	case 8:
		packet->invalidate_rkey = any_rkey(value);
		break;
	case 9:
		packet->syndrome = (uint8_t)value;
		break;
	case 10:
		packet->acknowledge = value & 1;
		break;
	case 11:
		packet->qkey = value;
		break;
	case 12:
		packet->xrc_srqn = WORLD_XRC_SRQ + value % 5;
		break;
	case 13:
		packet->dc_key ^= value;
		break;
	case 14:
		packet->dc_connection += (int64_t)value - 0x800000;
		break;
	default:
		packet->dc_first_psn = value & PSN_MASK;
	}
}

void link_deliver(void)
{
	struct wire_packet *packet;

	if (!(config->flags & INPUT_PACKETS))
		return;
	for (uint32_t i = 0; i < MOST_PACKETS && (packet = wire_take()); i++) {
		if (config->damage == ++packets)
			damage_cut(packet);
		wire_receive(packet);
		free(packet);
	}
}

/* ---- beginning and end ---------------------------------------------------------------------------------------- */

void link_begin(const struct input_config *input, const struct world_pair_of_qps *qps)
{
	static struct link above;

	config = input;
	pair = qps;
	packets = 0;
	before = world.hca->link;
	if (config->flags & INPUT_PACKETS)
		wire_attach(world.hca, judge, NULL);
	own = world.hca->link ? world.hca->link : link_local();
	above = *own;
	above.send = config->flags & INPUT_PACKETS ? send_cut : send_whole;
	world.hca->link = &above;
}

void link_end(void)
{
	if (config->flags & INPUT_PACKETS)
		wire_detach(world.hca);
	world.hca->link = before;
}
