/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that the commands share (commands.h). Locks as in transport/qp/qp.h. */
#ifndef SOFTHCA_TRANSPORT_CONTROL_QP_H
#define SOFTHCA_TRANSPORT_CONTROL_QP_H

#include "transport/control/commands.h"
#include "transport/qp/qp.h"

/* Implements struct qp_halves by the requester and the responder. */
extern const struct qp_halves transport_halves;

/** Prepares @opener; its events will name @object. */
void qp_opener_init(struct qp_opener *opener, struct hca_context *context, void *object);
/** Drops unread events of @opener. */
void qp_opener_purge(struct qp_opener *opener);
/** Destroys a QP without an owner. */
void qp_destroy(struct hca_qp *qp);

/**
 * Before RESET or destruction, completes an SRQ receive that an unfinished message has taken. The driver purges the
 * completion and returns the entry. The lock is held.
 */
void qp_return_receive(struct hca_qp *qp);
/**
 * Sends a disconnect to the target of the DCI @qp, after dci_reset() or before destruction. No lock is held.
 */
void qp_leave_target(struct hca_qp *qp);

/* ---- rings in memory that may be unmapped, and watched doorbell records (rings.c) ---- */

/**
 * Makes the device use copies of the rings of @qp. The fields that @attr determines are already set. Returns 0 or
 * -ENOMEM.
 */
int qp_copy_rings(struct hca_qp *qp, const struct hca_qp_attr *attr);
/** Frees the copies, if there are any. */
void qp_free_rings(struct hca_qp *qp);
/**
 * Begins to watch the doorbell @records of @qp; @in_umem tells whether they are in a umem. Returns 0, -ENOMEM or
 * -EAGAIN.
 */
int qp_start_watch(struct hca_qp *qp, const uint32_t *records, bool in_umem);
/**
 * Fetches the requests that the doorbell record announces, if the rings are in memory that may be unmapped. No lock
 * is held.
 */
void qp_fetch_requests(struct hca_qp *qp);
/** Empties the copies of the rings, in RESET. The lock is held. */
void qp_reset_shadows(struct hca_qp *qp);
/**
 * Makes the send queue of a watched QP ignore its doorbell record: from RESET on, until qp_obey_record(). A no-op for
 * other QPs. The lock is held.
 */
void qp_ignore_record(struct hca_qp *qp);
/** Ends qp_ignore_record(). The lock is held. */
void qp_obey_record(struct hca_qp *qp);

#endif
