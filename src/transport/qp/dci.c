/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections and streams of a DCI. */
#include "transport/qp/dci.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "format/wqe.h"
#include "transport/qp/origin.h"
#include "transport/qp/packet_begin.h"
#include "wire/link.h"

struct dci *dci_new(uint32_t limit)
{
	struct dci *dci = calloc(1, sizeof(*dci));
	struct timespec now;

	if (!dci)
		return NULL;
	dci->limit = limit;
	/* Exceeds the last number of an earlier QP of this number: no QP begins a connection per nanosecond. */
	clock_gettime(CLOCK_REALTIME, &now);
	dci->connection = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	return dci;
}

/* ---- streams -------------------------------------------------------------------------------------------------- */

uint64_t dci_stream_error(const struct dci *dci, uint16_t stream)
{
	for (uint32_t i = 0; i < dci->errored; i++)
		if (dci->error[i].stream == stream)
			return dci->error[i].record;
	return 0;
}

bool dci_stream_failed(struct dci *dci, uint16_t stream, uint64_t record)
{
	if (!dci->limit)
		return false;
	if (dci_stream_error(dci, stream))
		return true;
	dci->error[dci->errored].stream = stream;
	dci->error[dci->errored].record = record;
	/* mlx5dv_dci_stream_id_reset(3): "once the number of unique stream_id in error reaches" the limit. */
	return ++dci->errored < dci->limit;
}

static bool same_target(const struct dc_target *target, uint16_t stream, const struct packet *packet)
{
	const struct packet_path *path = packet->path;

	return target->number == packet->destination_qpn && target->stream == stream && target->key == packet->dc_key &&
	       target->path.type == path->type && same_gid(&target->path.source, &path->source) &&
	       same_gid(&target->path.destination, &path->destination);
}

/* ---- connections ---------------------------------------------------------------------------------------------- */

static void dci_stamp(const struct dci *dci, struct packet *packet)
{
	packet->dc_connection = dci->connection;
	packet->dc_first_psn = dci->first_psn;
}

bool dci_continue(struct dci *dci, uint16_t stream, struct packet *packet)
{
	if (!same_target(&dci->target, stream, packet))
		return false;
	/* The target's number may have had no owner at first. Answers arrive over the link of the requests. */
	dci->target.link = packet->link;
	dci_stamp(dci, packet);
	return true;
}

void dci_build_disconnect(const struct hca_qp *qp, struct packet *packet)
{
	const struct dci *dci = qp->dci;

	packet_begin(packet, qp, qp->transport->packets, MESSAGE_DISCONNECT);
	packet->destination_qpn = dci->target.number;
	packet->link = dci->target.link;
	packet->path = &packet->own_path;
	packet->own_path = dci->target.path;
	packet->psn = qp->requester.psn;
	packet->dc_key = dci->target.key;
	dci_stamp(dci, packet);
}

static void dci_set_target(struct dci *dci, uint16_t stream, const struct packet *packet)
{
	dci->target = (struct dc_target){
		.number = packet->destination_qpn,
		.stream = stream,
		.key = packet->dc_key,
		.link = packet->link,
		.path = *packet->path,
	};
}

enum dci_step dci_connect(struct hca_qp *qp, uint16_t stream, struct packet *packet)
{
	struct dci *dci = qp->dci;

	if (dci->connected && !dci->broken && dci_continue(dci, stream, packet))
		return DCI_CONNECTED;
	if (qp->requester.first != qp->requester.last)
		return DCI_WAIT;
	if (dci->connected) {
		dci->connected = false;
		dci_build_disconnect(qp, packet);
		return DCI_LEAVE;
	}
	dci_set_target(dci, stream, packet);
	qp->requester.window = packet->link ? link_first_window(qp->hca, packet->link) : 0;
	dci->connected = true;
	dci->broken = false;
	dci->connection++;
	dci->first_psn = qp->requester.psn;
	dci_stamp(dci, packet);
	return DCI_CONNECTED;
}

void dci_break(struct dci *dci)
{
	dci->broken = true;
}

void dci_reset(struct dci *dci)
{
	dci->errored = 0;
	dci->broken = true;
	dci->flushing = false;
}
