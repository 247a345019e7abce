/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs in a forked child. A QP belongs to the process that created it: its number leads there, and a packet that
 * another process sends in its name moves the peer's sequence numbers. The child owns copies, which it can query and
 * destroy; rule 236 refuses everything else.
 */
#ifndef SOFTHCA_TRANSPORT_QP_INHERITED_H
#define SOFTHCA_TRANSPORT_QP_INHERITED_H

struct hca_qp;

/**
 * Marks all QPs as inherited and removes them from the table of numbers, which then lead to the parent. In a forked
 * child with one thread; no lock is held.
 */
void qps_after_fork(void);

/** Explains an ignored request, posted by a call that cannot return an error. */
void inherited_qp_explain(const struct hca_qp *qp);

#endif
