/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Executes a single request in the model: the table of errors of ibv_poll_cq(3) and mlx5-formats 2.1, 3.4, 4.12, 6.
 *
 * A message is copied in pieces of model.packet_bytes. Access to all of a piece is checked before it is copied: a
 * refused piece has written nothing, earlier ones have.
 */
#include "execute.h"

#include <string.h>

#include "link.h"
#include "transfer.h"

#define STATUS(name) (1u << IBV_WC_##name)

/* The two ends of a request. */
struct exchange {
	struct model *model;
	struct model_qp *from, *to;
	const struct request *request;
	struct accessor here, there;
	uint64_t length;
	struct outcome *outcome;
};

static bool reliable(const struct exchange *x)
{
	return x->from->type == IBV_QPT_RC;
}

/* Returns the bytes of a packet. A datagram is one packet. */
static uint64_t packet_bytes(const struct exchange *x)
{
	return x->from->type == IBV_QPT_UD ? UINT64_MAX : x->model->packet_bytes;
}

static bool with_immediate(const struct request *request)
{
	return request->opcode == IBV_WR_SEND_WITH_IMM || request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool receives(const struct model_qp *qp)
{
	return qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQE;
}

static struct side own_side(const struct exchange *x, unsigned int wanted)
{
	const struct request *request = x->request;

	return (struct side){
		.span = request->span,
		.count = request->count,
		.wanted = wanted,
		.accessor = x->here,
		.bytes = request->is_inline ? (uint8_t *)request->data : NULL,
		.early = true,
	};
}

/* Handles a request refused by the responder: reported at both ends of a reliable connection, at neither end of others. */
static void refuse(struct exchange *x, uint32_t statuses)
{
	if (!reliable(x))
		return;
	x->outcome->statuses |= statuses;
	x->outcome->peer_fails = true;
}

/* Ends the receive used by a message in error, and fails its QP. */
static void fail_receive(struct exchange *x, uint32_t statuses)
{
	struct model_qp *to = x->to;
	const struct receive *receive = &to->receive[to->receives.first++ % OUTSTANDING];

	expect_receive(to, &(struct expectation){.id = receive->id, .statuses = statuses});
	x->outcome->peer_fails = true;
}

/* Also reports the error to the sender. */
static void refuse_receive(struct exchange *x, uint32_t receive_statuses, uint32_t statuses)
{
	fail_receive(x, receive_statuses);
	if (reliable(x))
		x->outcome->statuses |= statuses;
}

/* Handles a missing receive: an unreliable message is lost, a reliable one waits or fails (ibv_modify_qp(3), rnr_retry). */
static bool lacks_receive(struct exchange *x)
{
	if (queued(&x->to->receives))
		return false;
	if (reliable(x) && x->from->waits_for_receives)
		x->outcome->waits = true;
	else if (reliable(x))
		x->outcome->statuses = STATUS(RNR_RETRY_EXC_ERR);
	return true;
}

static void complete_receive(struct exchange *x, uint64_t length)
{
	const struct request *request = x->request;
	struct model_qp *to = x->to;
	struct expectation expectation = {
		.id = to->receive[to->receives.first++ % OUTSTANDING].id,
		.statuses = STATUS(SUCCESS),
		.success = true,
		.opcode = request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
		.has_length = true,
		.length = (uint32_t)length,
		.has_immediate = with_immediate(request),
		.immediate = request->immediate,
		.has_invalidated = request->opcode == IBV_WR_SEND_WITH_INV,
		.invalidated = request->invalidate,
		.is_datagram = to->type == IBV_QPT_UD,
		.source_qp = x->from->number,
	};

	expect_receive(to, &expectation);
}

/* ---- messages into receives ------------------------------------------------------------------------------------ */

/* Places one piece of a SEND; returns false if it was refused. */
static bool place_piece(struct exchange *x, const struct side *from, const struct side *to, uint64_t offset,
			uint64_t bytes, uint64_t header)
{
	const struct receive *receive = &x->to->receive[x->to->receives.first % OUTSTANDING];
	uint64_t at = header ? 0 : offset, end = header + offset + bytes;
	uint32_t here = 0, there = 0;

	/* IBTA 9.9.3, class D: an unreliable message is dropped, its receive waits for the next one. */
	if (end > spans_length(receive->span, receive->count) && !reliable(x))
		return false;
	if (end > spans_length(receive->span, receive->count)) {
		here |= STATUS(LOC_LEN_ERR);
		there |= STATUS(REM_INV_REQ_ERR);
	} else if (!side_allows(x->model, to, at, end - at)) {
		here |= STATUS(LOC_PROT_ERR);
		there |= STATUS(REM_OP_ERR);
	}
	if (here) {
		refuse_receive(x, here, there);
		return false;
	}
	if (header)
		side_loosen(x->model, to, 0, header);
	side_copy(x->model, to, header + offset, from, offset, bytes);
	return true;
}

static void send_message(struct exchange *x)
{
	struct side from = own_side(x, LOCAL_READ);
	uint64_t header = x->to->type == IBV_QPT_UD ? GRH_BYTES : 0, offset = 0, bytes;
	const struct receive *receive;
	struct side to = {.wanted = LOCAL_WRITE, .accessor = x->there};

	if (lacks_receive(x))
		return;
	receive = &x->to->receive[x->to->receives.first % OUTSTANDING];
	to.span = receive->span;
	to.count = receive->count;
	from.overlaps = sides_overlap(x->model, &to, header, &from, x->length);
	do {
		bytes = x->length - offset < packet_bytes(x) ? x->length - offset : packet_bytes(x);
		if (!place_piece(x, &from, &to, offset, bytes, header))
			return;
		offset += bytes;
	} while (offset < x->length);
	/* IBTA 9.9.6.3, class J: an error of the receiver only. */
	if (x->request->opcode == IBV_WR_SEND_WITH_INV &&
	    !key_invalidate_remotely(x->model, x->request->invalidate, x->there, true)) {
		fail_receive(x, STATUS(LOC_ACCESS_ERR));
		return;
	}
	complete_receive(x, header + x->length);
}

/* ---- RDMA ------------------------------------------------------------------------------------------------------ */

static bool permits(const struct exchange *x, unsigned int access)
{
	return (x->to->access & access) == access;
}

/* "The operation is not supported by this receive queue" (IBTA 11.6.2, Remote Invalid Request Error). */
static void refuse_operation(struct exchange *x)
{
	refuse(x, STATUS(REM_INV_REQ_ERR));
	if (reliable(x))
		x->to->events |= 1u << IBV_EVENT_QP_REQ_ERR;
}

/* The key of an RDMA of length zero is not checked (IBTA C9-88). */
static bool target_allowed(const struct exchange *x, unsigned int wanted)
{
	return keys_allow(&x->model->keys, x->request->rkey, x->request->remote_address, x->length, wanted, x->there);
}

/*
 * A refused WRITE with immediate of one packet ends its receive with a local access error (IBTA 11.6.2); with several
 * packets the first is refused, which uses no receive (IBTA C9-82). An unreliable one is dropped, and the receive waits
 * for the next message.
 */
static void refuse_write(struct exchange *x)
{
	if (with_immediate(x->request) && x->length <= UINT64_C(128) << link_mtu() && reliable(x))
		refuse_receive(x, STATUS(LOC_ACCESS_ERR), STATUS(REM_ACCESS_ERR));
	else
		refuse(x, STATUS(REM_ACCESS_ERR));
	if (reliable(x))
		x->to->events |= 1u << IBV_EVENT_QP_ACCESS_ERR;
}

static void write_message(struct exchange *x)
{
	struct span target = {x->request->rkey, x->request->remote_address, (uint32_t)x->length};
	struct side from = own_side(x, LOCAL_READ), to = {&target, 1, REMOTE_WRITE, x->there, NULL, false, false};
	bool immediate = with_immediate(x->request), single = x->length <= packet_bytes(x);
	uint64_t last = 0;

	/* A QP that permits no WRITE refuses the packet before it checks for a receive. */
	if (!permits(x, IBV_ACCESS_REMOTE_WRITE)) {
		refuse_operation(x);
		return;
	}
	if (single && immediate && lacks_receive(x))
		return;
	if (!target_allowed(x, REMOTE_WRITE)) {
		refuse_write(x);
		return;
	}
	from.overlaps = sides_overlap(x->model, &to, 0, &from, x->length);
	if (!single)
		last = (x->length - 1) / packet_bytes(x) * packet_bytes(x);
	side_copy(x->model, &to, 0, &from, 0, last);
	/* The last piece uses the receive. */
	if (immediate && lacks_receive(x))
		return;
	side_copy(x->model, &to, last, &from, last, x->length - last);
	if (immediate)
		complete_receive(x, x->length);
}

static void read_message(struct exchange *x)
{
	struct span source = {x->request->rkey, x->request->remote_address, (uint32_t)x->length};
	struct side from = {&source, 1, REMOTE_READ, x->there, NULL, false, false}, to = own_side(x, LOCAL_WRITE);

	if (!permits(x, IBV_ACCESS_REMOTE_READ)) {
		refuse_operation(x);
		return;
	}
	if (!target_allowed(x, REMOTE_READ)) {
		refuse(x, STATUS(REM_ACCESS_ERR));
		x->to->events |= 1u << IBV_EVENT_QP_ACCESS_ERR;
		return;
	}
	from.overlaps = sides_overlap(x->model, &to, 0, &from, x->length);
	for (uint64_t offset = 0; offset < x->length;) {
		uint64_t bytes = x->length - offset;

		if (bytes > packet_bytes(x))
			bytes = packet_bytes(x);
		if (!side_allows(x->model, &to, offset, bytes)) {
			x->outcome->statuses = STATUS(LOC_PROT_ERR);
			return;
		}
		side_copy(x->model, &to, offset, &from, offset, bytes);
		offset += bytes;
	}
}

static void atomic(struct exchange *x)
{
	const struct request *request = x->request;
	struct span target = {request->rkey, request->remote_address, 8};
	struct side there = {&target, 1, ATOMIC, x->there, NULL, false, false}, here = own_side(x, LOCAL_WRITE);
	uint64_t before = 0, after;
	struct side original = {.bytes = (uint8_t *)&before}, changed = {.bytes = (uint8_t *)&after};
	uint32_t refused = 0;
	bool unknown;

	if (!permits(x, IBV_ACCESS_REMOTE_ATOMIC)) {
		refuse_operation(x);
		return;
	}
	if (request->remote_address % 8)
		refused |= STATUS(REM_INV_REQ_ERR);
	if (!target_allowed(x, ATOMIC))
		refused |= STATUS(REM_ACCESS_ERR);
	if (refused) {
		refuse(x, refused);
		if (refused == STATUS(REM_INV_REQ_ERR))
			x->to->events |= 1u << IBV_EVENT_QP_REQ_ERR;
		else if (refused == STATUS(REM_ACCESS_ERR))
			x->to->events |= 1u << IBV_EVENT_QP_ACCESS_ERR;
		return;
	}
	unknown = side_is_loose(x->model, &there, 0, 8);
	side_copy(x->model, &original, 0, &there, 0, 8);
	if (request->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		after = before + request->compare_add;
	else
		after = before == request->compare_add ? request->swap : before;
	side_copy(x->model, &there, 0, &changed, 0, 8);
	if (unknown)
		side_loosen(x->model, &there, 0, 8);
	if (!side_allows(x->model, &here, 0, 8)) {
		x->outcome->statuses = STATUS(LOC_PROT_ERR);
		return;
	}
	side_copy(x->model, &here, 0, &original, 0, 8);
	if (unknown)
		side_loosen(x->model, &here, 0, 8);
}

/* ---- all ------------------------------------------------------------------------------------------------------- */

/* Executes a request on keys, which affects only the QP itself. Returns true if @request was one. */
static bool local_operation(struct exchange *x)
{
	bool done;

	switch (x->request->opcode) {
	case IBV_WR_BIND_MW:
		/* ibv_bind_mw(3): "The QP Transport Service Type must be either UC, RC or XRC_SEND" */
		done = x->from->type != IBV_QPT_UD && key_bind(x->model, &x->request->bind, x->here);
		break;
	case IBV_WR_LOCAL_INV:
		done = key_invalidate(x->model, x->request->invalidate, x->here);
		break;
	case OP_CONFIGURE:
		done = key_configure(x->model, &x->request->configure, x->here);
		break;
	default:
		return false;
	}
	if (!done)
		x->outcome->statuses = STATUS(MW_BIND_ERR);
	return true;
}

/* Returns the error that occurs before the QP sends anything. */
static uint32_t local_fault(struct exchange *x)
{
	uint64_t limit = x->from->type == IBV_QPT_UD ? x->from->mtu : MAX_MESSAGE;
	unsigned int opcode = x->request->opcode;
	struct side from = own_side(x, LOCAL_READ);
	uint32_t faults = 0;

	if (x->length > limit)
		faults |= STATUS(LOC_LEN_ERR);
	if (opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		return faults;
	if (!side_allows(x->model, &from, 0, x->length))
		faults |= STATUS(LOC_PROT_ERR);
	return faults;
}

void execute(struct model *model, int index, const struct request *request, struct outcome *outcome)
{
	struct model_qp *from = &model->qp[index];
	int peer = from->peer;
	struct model_qp *to = &model->qp[peer];
	struct exchange x = {
		.model = model,
		.from = from,
		.to = to,
		.request = request,
		.here = {from->domain, index},
		.there = {to->domain, peer},
		.length = spans_length(request->span, request->count),
		.outcome = outcome,
	};

	if (local_operation(&x))
		return;
	outcome->statuses = local_fault(&x);
	if (outcome->statuses)
		return;
	if (!receives(to)) {
		if (reliable(&x))
			outcome->statuses = STATUS(RETRY_EXC_ERR);
		return;
	}
	if (from->type == IBV_QPT_UD && request->qkey != to->qkey)
		return;
	switch (request->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		write_message(&x);
		break;
	case IBV_WR_RDMA_READ:
		read_message(&x);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		atomic(&x);
		break;
	default:
		send_message(&x);
	}
}
