/* SPDX-License-Identifier: BSD-2-Clause */
/* READ and WRITE by direct access. */
#include "transport/requester/direct.h"

#include <string.h>

#include "core/thread_memory.h"
#include "observe/timeline.h"
#include "queue/cq_write.h"
#include "transport/qp/transport.h"
#include "transport/requester/acknowledge.h"
#include "transport/requester/wqe_parse.h"
#include "wire/link.h"

/* Values chosen for speed. */
enum {
	/*
	 * bytes of a READ or WRITE that is done directly in the memory of a process that does not poll: they are copied
	 * twice
	 */
	SHM_DIRECT_BYTES = 4096,
};

/*
 * Returns true if a direct access may replace @packet. The peer must have acknowledged a packet since the QP was reset,
 * as its grants may date from before its own reset. A timeline must show packets.
 */
static bool may_access(const struct hca_qp *qp, const struct packet *packet)
{
	const struct requester *requester = &qp->requester;

	return requester->first == requester->last && requester->peer_signs &&
	       (packet->message == MESSAGE_WRITE || packet->message == MESSAGE_READ_REQUEST) && packet->dma_length &&
	       packet->dma_length <= SHM_DIRECT_BYTES && packet->link->access && !timeline_is_on();
}

static bool direct_scatter(struct hca_qp *qp, const struct wqe *wqe, uint8_t *bytes, uint32_t length)
{
	THREAD_VARIABLE(struct stream, source);
	THREAD_VARIABLE(struct stream, sink);
	struct refusal ignored;

	qp->requester.progress.valid = false;
	if (wqe_scatter(wqe, &qp->send_access, 0, length, sink, &ignored) || sink->length != length)
		return false;
	stream_begin(source, NULL, 0);
	stream_add_memory(source, bytes, length);
	stream_copy(sink, source, length);
	return true;
}

struct direct_bytes {
	uint8_t bytes[SHM_DIRECT_BYTES];
};

/* Returns true if the program has posted a request without waiting for the one before, as far as the device knows. */
static bool direct_streams(const struct hca_qp *qp)
{
	struct hca_cq *cq = qp->send_cq;
	bool unpolled;

	if (qp->requester.unsignaled || cq->umem)
		return qp->requester.unsignaled;
	queue_lock(&cq->lock);
	unpolled = cq_outstanding(cq);
	queue_unlock(&cq->lock);
	return unpolled;
}

bool direct_execute(struct hca_qp *qp, const struct wqe *wqe, struct packet *packet)
{
	/* Thread-local, so that neither a key check nor a missing page can interrupt the access. */
	THREAD_VARIABLE(struct direct_bytes, buffer);
	uint8_t *bytes = buffer->bytes;
	struct link_access access = {
		.hca = qp->hca,
		.source_qpn = qp->number,
		.destination_qpn = packet->destination_qpn,
		.rkey = packet->rkey,
		.reads = packet->message == MESSAGE_READ_REQUEST,
		.address = packet->remote_address,
		.bytes = bytes,
		.length = packet->dma_length,
	};

	if (!may_access(qp, packet))
		return false;
	access.streams = direct_streams(qp);
	if (access.reads) {
		/* Data for the CQE: requester/response.c. */
		if (qp->scatter_to_cqe || !packet->link->access(&access) ||
		    !direct_scatter(qp, wqe, bytes, access.length))
			return false;
	} else {
		if (!packet->payload.whole)
			return false;
		memcpy(bytes, packet->payload.whole, access.length);
		if (!packet->link->access(&access))
			return false;
	}
	qp->requester.next = (uint16_t)(wqe->index + wqe->blocks);
	qp->requester.unsignaled = WQE_COMPLETION(wqe->fm_ce_se) < WQE_CQE_ALWAYS;
	if (!qp->requester.unsignaled)
		requester_complete_send(qp, MLX5_CQE_REQ, wqe->opcode, wqe->fm_ce_se, wqe->index, access.length, 0,
					RULE_NONE);
	return true;
}
