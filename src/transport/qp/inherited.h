/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs in a forked child. A QP belongs to the process that created it: its number leads to that process, and a packet
 * that another process sends in its name moves the sequence numbers of the peer. The child has copies of its parent's QPs,
 * which it can query and destroy; rule 236 refuses everything else.
 *
 * Owner of a copy: the child's program, which destroys it like any other QP.
 */
#ifndef SOFTHCA_TRANSPORT_QP_INHERITED_H
#define SOFTHCA_TRANSPORT_QP_INHERITED_H

struct hca_qp;

/**
 * Marks all QPs of the process as inherited and removes them from the table of numbers, so that their numbers lead to the
 * parent. In a forked child that has one thread; no lock is held.
 */
void qps_after_fork(void);

/** Explains that a request to the inherited QP @qp is ignored. It was posted by a call that cannot return an error. */
void inherited_qp_explain(const struct hca_qp *qp);

#endif
