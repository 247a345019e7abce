/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC domains (IBTA annex A14): a packet for an XRC_RECV QP names an SRQ in the QP's domain. A domain belongs to an
 * inode, by which programs share it, and lives while open anywhere. Its QPs belong to it and all their openers, not to
 * one context.
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
	int fd; /* keeps the inode open, whose number could be reused otherwise; -1: no inode */
	dev_t device;
	ino_t inode;
	uint32_t opened;
	struct hca_qp *qps; /* for the transport (control/xrc_qps.h), like the next field */
	/* Returns the receives of @srq that unfinished messages hold, and drops its CQ. NULL: never had a QP. */
	void (*forget_srq)(struct xrc_domain *domain, const struct hca_srq *srq);
};

struct hca_xrcd {
	struct xrc_domain *domain;
	struct hca_context *context;
	uint32_t references; /* atomic: SRQs, and openers of QPs */
};

/** Makes the QPs of @domain drop @srq, which lookups no longer find. */
void xrc_forget_srq(struct xrc_domain *domain, const struct hca_srq *srq);

#endif
