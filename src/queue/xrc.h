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

#include <stdint.h>
#include <sys/stat.h>

#include "queue/commands.h"

struct hca;
struct hca_context;
struct hca_qp;

struct xrc_domain {
	struct xrc_domain *next; /* of the device */
	struct hca *hca;
	int fd; /* holds the inode, whose number is free for another file otherwise; -1: of no inode */
	dev_t device;
	ino_t inode;
	uint32_t opened;
	struct hca_qp *qps; /* of the transport, as is what follows; transport/control/xrc_qps.h */
	/* Takes back the receives of @srq that messages under way hold, and forgets its CQ. NULL: there never was a QP. */
	void (*forget_srq)(struct xrc_domain *domain, const struct hca_srq *srq);
};

/* One opening of a domain. */
struct hca_xrcd {
	struct xrc_domain *domain;
	struct hca_context *context;
	uint32_t references; /* atomic: SRQs, and openers of QPs */
};

/** Has the QPs of @domain forget @srq, which can be found no more. */
void xrc_forget_srq(struct xrc_domain *domain, const struct hca_srq *srq);

#endif
