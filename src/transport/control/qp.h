/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that the commands share. Locks as in transport/qp/qp.h. */
#ifndef SOFTHCA_TRANSPORT_CONTROL_QP_H
#define SOFTHCA_TRANSPORT_CONTROL_QP_H

#include "transport/control/commands.h"
#include "transport/qp/qp.h"

extern const struct qp_halves transport_halves;

/** Prepares @opener; its events name @object. */
void qp_opener_init(struct qp_opener *opener, struct hca_context *context, void *object);
/** Drops unread events of @opener. */
void qp_opener_purge(struct qp_opener *opener);
/** Destroys a QP without an owner. */
void qp_destroy(struct hca_qp *qp);

/**
 * Completes an SRQ receive of an unfinished message before RESET or destruction. The driver purges the completion and
 * returns the entry. The lock is held.
 */
void qp_return_receive(struct hca_qp *qp);
/** Disconnects from the target of the DCI @qp, after dci_reset() or before destruction. No lock is held. */
void qp_leave_target(struct hca_qp *qp);

/* ---- rings in memory that may be unmapped, and watched doorbell records (rings.c) ---- */

/** Makes the device use copies of the rings, after the fields that @attr determines are set. Returns 0 or -ENOMEM. */
int qp_copy_rings(struct hca_qp *qp, const struct hca_qp_attr *attr);
void qp_free_rings(struct hca_qp *qp);
/** Begins to watch the doorbell @records (@in_umem: in a umem). Returns 0, -ENOMEM or -EAGAIN. */
int qp_start_watch(struct hca_qp *qp, const uint32_t *records, bool in_umem);
/** Fetches announced requests if the rings are in memory that may be unmapped. No lock is held. */
void qp_fetch_requests(struct hca_qp *qp);
/** Empties the ring copies. The lock is held. */
void qp_reset_shadows(struct hca_qp *qp);
/** Makes the send queue of a watched QP ignore its doorbell record until qp_obey_record(). The lock is held. */
void qp_ignore_record(struct hca_qp *qp);
/** Ends qp_ignore_record(). The lock is held. */
void qp_obey_record(struct hca_qp *qp);

#endif
