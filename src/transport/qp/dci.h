/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester of a DCI, where it differs from that of RC: a changing target, and streams.
 *
 * A DCI has one connection at a time: to the target of the WQE that was started last, on the stream of that WQE.
 * Requests to the same target on the same stream are pipelined as on RC. A WQE for another target or stream waits until
 * everything in flight is complete. Then a disconnect is sent to the old target, and the next packet begins a new
 * connection. Sequence numbers continue from one connection to the next, so a late answer of an old connection is
 * ignored, as on RC. transport/responder/dct.h describes the target's side.
 *
 * All requests in flight therefore belong to one stream. When a stream fails, they are flushed with it. Requests posted
 * on it later are flushed when they are reached, until the program resets the stream (mlx5dv_dci_stream_id_reset(3)).
 * The connection in which it failed is not used again: its target may be out of step.
 *
 * A struct dci belongs to its QP; the lock of the QP covers it.
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
	uint32_t connection; /* as in struct hca_qp */
	struct packet_path path;
};

struct dci {
	struct dc_target target; /* of the current or the last connection */
	uint64_t connection;     /* its number */
	uint32_t first_psn;
	bool connected; /* no disconnect was sent to the target yet */
	bool broken;    /* the connection must not be reused */
	bool flushing;  /* the delivering thread flushes requests in flight */
	/*
	 * Streams in error. limit: the number of them that moves the QP to ERR; 0: any error does, and the WQE's stream
	 * field is ignored.
	 */
	uint32_t limit, errored;
	struct {
		uint16_t stream;
		uint64_t record; /* serial of the explanation */
	} error[1 << LIMIT_LOG_DCI_ERRORED];
};

/** Returns a new struct dci, or NULL without memory. @limit: as above. The caller frees it with free(). */
struct dci *dci_new(uint32_t limit);

/** Returns the record of the failure of @stream, 0 if it is not in error. */
uint64_t dci_stream_error(const struct dci *dci, uint16_t stream);
/** Records that @stream failed, explained by @record. Returns false if that moves the QP to ERR. */
bool dci_stream_failed(struct dci *dci, uint16_t stream, uint64_t record);

enum dci_step {
	DCI_CONNECTED, /* the packet can be sent */
	DCI_WAIT,      /* until everything in flight is complete */
	DCI_LEAVE,     /* the packet now ends the old connection; send it first, then call again */
};

/**
 * Connects to the target of @packet. @packet contains the address of the target, and is the next new packet of @stream.
 */
enum dci_step dci_connect(struct hca_qp *qp, uint16_t stream, struct packet *packet);
/**
 * Returns true if @packet, which contains its address, belongs to the current connection, and adds the fields of the
 * connection to it.
 */
bool dci_continue(struct dci *dci, uint16_t stream, struct packet *packet);

/** Builds the packet that ends the connection of the DCI @qp with its current target. The target does not answer it. */
void dci_build_disconnect(const struct hca_qp *qp, struct packet *packet);
/** Makes the next request begin a new connection. */
void dci_break(struct dci *dci);
/** Clears the errors of all streams and ends the connection (RESET). */
void dci_reset(struct dci *dci);
#endif
