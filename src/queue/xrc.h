/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC domains (IBTA annex A14): the SRQs that a packet may name on an XRC_RECV QP are those of the QP's domain. A domain
 * belongs to an inode, so that programs meet in it, and lives as long as somebody has it open. Its QPs belong to it, and
 * to all who opened them, and to no single context.
 *
 * The lock of the device covers domains, openings and the openers of QPs; the lock of a QP is taken under it.
 */
#ifndef SOFTHCA_QUEUE_XRC_H
#define SOFTHCA_QUEUE_XRC_H

#include <sys/stat.h>

#include "transport/qp.h"

struct xrc_domain {
	struct xrc_domain *next; /* of the device */
	struct hca *hca;
	int fd; /* holds the inode, whose number is free for another file otherwise; -1: of no inode */
	dev_t device;
	ino_t inode;
	uint32_t opened;
	struct hca_qp *qps;
};

/* One opening of a domain. */
struct hca_xrcd {
	struct xrc_domain *domain;
	struct hca_context *context;
	uint32_t references; /* atomic: SRQs, and openers of QPs */
};

/** Makes the creator of @qp, a new XRC_RECV QP, its first opener. Returns 0 or -ENOMEM. */
int xrc_qp_join(struct hca_qp *qp, struct hca_xrcd *xrcd, void *cookie);
/** Takes @qp, which receives nothing any more and holds no receive, out of its domain. */
void xrc_qp_leave(struct hca_qp *qp);

/** Takes back the receives of @srq that messages under way on the domain's QPs hold. It can be found no more. */
void xrc_forget_srq(struct xrc_domain *domain, const struct hca_srq *srq);

#endif
