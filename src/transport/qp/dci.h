/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester of a DCI as far as it differs from RC's: target and streams.
 *
 * A DCI has one connection: to the target and stream of the WQE started last. Requests on it are pipelined. A WQE for
 * another target or stream waits until everything in flight is complete; then a disconnect is sent, and the next packet
 * begins a new connection. Sequence numbers continue across connections, so late answers of an old one are ignored.
 *
 * So all requests in flight belong to one stream, and are flushed when it fails. Later requests on it are flushed in
 * turn, until the program resets it (mlx5dv_dci_stream_id_reset(3)). The failed connection is not reused: its target
 * may be out of step.
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
	uint32_t connection; /* as in struct hca_qp */
	struct packet_path path;
};

struct dci {
	struct dc_target target; /* of the current or last connection */
	uint64_t connection;     /* its number */
	uint32_t first_psn;
	bool connected; /* no disconnect was sent yet */
	bool broken;    /* the connection must not be reused */
	bool flushing;  /* the delivering thread flushes requests in flight */
	/* Streams in error. limit: how many move the QP to ERR; 0: any error does, and the WQE's stream is ignored. */
	uint32_t limit, errored;
	struct {
		uint16_t stream;
		uint64_t record; /* serial of the explanation */
	} error[1 << LIMIT_LOG_DCI_ERRORED];
};

/** Returns a new struct dci, or NULL. The caller frees it with free(). */
struct dci *dci_new(uint32_t limit);

/** Returns the record of the failure of @stream, or 0. */
uint64_t dci_stream_error(const struct dci *dci, uint16_t stream);
/** Records that @stream failed, explained by @record. Returns false if that moves the QP to ERR. */
bool dci_stream_failed(struct dci *dci, uint16_t stream, uint64_t record);

enum dci_step {
	DCI_CONNECTED, /* the packet can be sent */
	DCI_WAIT,      /* until everything in flight is complete */
	DCI_LEAVE,     /* the packet now ends the old connection; send it, then call again */
};

/** Connects to the target that @packet, the next new one of @stream, is addressed to. */
enum dci_step dci_connect(struct hca_qp *qp, uint16_t stream, struct packet *packet);
/** Returns true if the addressed @packet belongs to the current connection, and adds its fields. */
bool dci_continue(struct dci *dci, uint16_t stream, struct packet *packet);

/** Builds the packet that ends the connection of @qp. It is not answered. */
void dci_build_disconnect(const struct hca_qp *qp, struct packet *packet);
void dci_break(struct dci *dci);
/** Clears all stream errors and ends the connection (RESET). */
void dci_reset(struct dci *dci);
#endif
