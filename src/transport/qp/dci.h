/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the requester of a DCI has beside that of RC: a target that changes, and streams.
 *
 * A DCI has one connection at a time: with the target of the WQE that is started, on that WQE's stream. Requests to the
 * same target on the same stream are pipelined as on RC. Before a WQE that goes elsewhere is started, all that is in
 * flight is waited for; then the old target is told that the connection is over, and the next packet begins a new one.
 * Sequence numbers run on from connection to connection, so a late answer of an old one is a ghost as on RC. What the
 * target makes of it: transport/responder/dct.h.
 *
 * So what is in flight is of one stream. A stream that fails takes what is in flight with it; what is posted on it is
 * flushed when its turn comes, until the program resets the stream (mlx5dv_dci_stream_id_reset(3)). The connection in
 * which it failed is not used again: its target may be out of step.
 *
 * A struct dci belongs to its QP, whose lock covers it.
 */
#ifndef SOFTHCA_TRANSPORT_QP_DCI_H
#define SOFTHCA_TRANSPORT_QP_DCI_H

#include "core/limits.h"
#include "wire/packet.h"

struct hca_qp;
struct wqe;

struct dc_target {
	uint32_t number; /* of the DCT */
	uint16_t stream;
	uint64_t key;
	const struct link *link;
	uint32_t connection; /* as that of a connected QP (transport/qp/qp.h) */
	struct packet_path path;
};

struct dci {
	struct dc_target target; /* of the present or the last connection */
	uint64_t connection;     /* its number */
	uint32_t first_psn;
	bool connected; /* the target has been told of no end */
	bool broken;    /* and must not be used any more */
	bool flushing;  /* what is in flight is to be flushed by the thread that delivers it */
	/* Streams in error. limit: so many put the QP into ERR; 0: any error does, and `stream` of a WQE means nothing. */
	uint32_t limit, errored;
	struct {
		uint16_t stream;
		uint64_t record; /* serial of the explanation */
	} error[1 << LIMIT_LOG_DCI_ERRORED];
};

/** A new one, or NULL without memory. @limit: as above. To be freed with free(). */
struct dci *dci_new(uint32_t limit);

/** The record of the failure of @stream, 0 if it is not in error. */
uint64_t dci_stream_error(const struct dci *dci, uint16_t stream);
/** Notes that @stream failed by @record; returns false if the QP goes to ERR for it. */
bool dci_stream_failed(struct dci *dci, uint16_t stream, uint64_t record);

enum dci_step {
	DCI_CONNECTED, /* the packet can be sent */
	DCI_WAIT,      /* for what is in flight */
	DCI_LEAVE,     /* the packet is now the old target's, to be sent first; then ask again */
};

/** Makes the target of @packet, which has its address and is the next new one of @stream, that of the connection. */
enum dci_step dci_connect(struct hca_qp *qp, uint16_t stream, struct packet *packet);
/** True if @packet, which has its address, goes where the connection leads; then it gets what the connection adds. */
bool dci_continue(struct dci *dci, uint16_t stream, struct packet *packet);

/** Builds the packet that ends the connection of the DCI @qp with its present target. Nobody answers it. */
void dci_build_disconnect(const struct hca_qp *qp, struct packet *packet);
/** The next request begins a new connection. */
void dci_break(struct dci *dci);
/** No stream is in error, none of it has a connection (RESET). */
void dci_reset(struct dci *dci);
#endif
