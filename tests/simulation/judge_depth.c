/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts READs and atomics in flight, by the packets of both directions; see judge.h. */
#include <string.h>

#include "judge.h"
#include "format/opcode.h"

/* Requests of one end that were sent and not answered yet, in the order of sending. */
struct ledger {
	uint32_t most_due;  /* pending at the requester when one of its requests arrived */
	uint32_t responder; /* number of the QP that receives them */
	uint64_t connection;
	uint32_t next_psn; /* after the newest of them */
	bool begun;
	uint32_t open;
	uint32_t last_psn[MOST_REQUESTS * 64]; /* of the answer to each */
};

static struct {
	const struct plan *plan;
	struct ledger ledger[ENDS];
} depth;

void judge_depth_begin(const struct plan *plan)
{
	memset(&depth, 0, sizeof(depth));
	depth.plan = plan;
}

/* Returns the end that sends requests to QP @number. */
static int requester_of(uint32_t number)
{
	for (int end = 0; end < ENDS; end++) {
		for (int target = 0; target < TARGETS; target++)
			if (ends[!end].responder[target] && ends[!end].responder[target]->number == number)
				return end;
		if (ends[!end].qp && ends[!end].qp->number == number)
			return end;
	}
	wrong("a packet is for QP %#x, which neither end has", number);
}

static uint32_t packets_asked_for(const struct wire_packet *packet)
{
	uint32_t mtu = 128u << depth.plan->attr.path_mtu;

	if (packet_opcodes[packet->opcode].message != MESSAGE_READ_REQUEST || !packet->dma_length)
		return 1;
	return (packet->dma_length + mtu - 1) / mtu;
}

static void request_sent(const struct wire_packet *packet)
{
	int end = requester_of(packet->destination_qpn);
	struct ledger *ledger = &depth.ledger[end];

	/* Another target of a DCI, which has received the answers of the one before. */
	if (!ledger->begun || ledger->responder != packet->destination_qpn ||
	    ledger->connection != packet->dc_connection)
		*ledger = (struct ledger){.most_due = ledger->most_due,
					  .responder = packet->destination_qpn,
					  .connection = packet->dc_connection,
					  .next_psn = packet->psn,
					  .begun = true};
	/* A repetition, in whole or in part. */
	if (psn_distance(packet->psn, ledger->next_psn) < 0)
		return;
	ledger->next_psn = psn_add(packet->psn, packets_asked_for(packet));
	if (ledger->open == sizeof(ledger->last_psn) / sizeof(ledger->last_psn[0]))
		wrong("end %d has more READs and atomics under way than it can have posted", end);
	ledger->last_psn[ledger->open++] = psn_add(ledger->next_psn, PSN_MASK);
	if (ledger->open > depth.plan->attr.max_rd_atomic)
		wrong("end %d has %u READs and atomics under way, and its max_rd_atomic is %u", end, ledger->open,
		      depth.plan->attr.max_rd_atomic);
}

/* Handles an answer. Answers arrive in order, so that to @psn is the last of those up to it. */
static void answer_arrived(const struct wire_packet *packet)
{
	struct ledger *ledger = &depth.ledger[!requester_of(packet->destination_qpn)];
	uint32_t done = 0;

	while (done < ledger->open && psn_distance(packet->psn, ledger->last_psn[done]) >= 0)
		done++;
	ledger->open -= done;
	memmove(ledger->last_psn, ledger->last_psn + done, ledger->open * sizeof(ledger->last_psn[0]));
}

static bool is_answer(const struct wire_packet *packet)
{
	uint8_t message = packet_opcodes[packet->opcode].message;

	return message == MESSAGE_READ_RESPONSE || message == MESSAGE_ATOMIC_ACKNOWLEDGE;
}

static bool is_refusal(const struct wire_packet *packet)
{
	return packet_opcodes[packet->opcode].message == MESSAGE_ACKNOWLEDGE &&
	       packet->syndrome == (AETH_NAK | NAK_INVALID_REQUEST);
}

static bool takes_resource(const struct wire_packet *packet)
{
	uint8_t message = packet_opcodes[packet->opcode].message;

	return message == MESSAGE_READ_REQUEST || message_is_atomic(message);
}

void judge_depth_sent(const struct wire_packet *packet)
{
	if (takes_resource(packet))
		request_sent(packet);
	else if (is_refusal(packet) &&
		 depth.ledger[!requester_of(packet->destination_qpn)].most_due <= depth.plan->attr.max_dest_rd_atomic)
		wrong("a request is refused as invalid, and never more than %u READs and atomics were under way",
		      depth.plan->attr.max_dest_rd_atomic);
}

static void request_arrived(const struct wire_packet *packet)
{
	int end = requester_of(packet->destination_qpn);
	uint32_t due = ends[end].qp->requester.responses_due;

	if (due > depth.ledger[end].most_due)
		depth.ledger[end].most_due = due;
}

void judge_depth_arrived(const struct wire_packet *packet)
{
	if (takes_resource(packet))
		request_arrived(packet);
	else if (is_answer(packet))
		answer_arrived(packet);
}
