/* SPDX-License-Identifier: BSD-2-Clause */
/* QPs shared through XRC domains. */
#include "transport/control/xrc_qps.h"

#include <errno.h>
#include <stdlib.h>

#include "transport/control/qp.h"

static struct qp_opener *new_opener(struct hca_xrcd *xrcd, void *cookie)
{
	struct qp_opener *opener = calloc(1, sizeof(*opener));

	if (!opener)
		return NULL;
	qp_opener_init(opener, xrcd->context, cookie);
	opener->xrcd = xrcd;
	return opener;
}

/* The caller holds the lock of the device, which protects the list; threads that raise events hold the QP's. */
static void add_opener(struct hca_qp *qp, struct qp_opener *opener)
{
	reference_get(&opener->xrcd->references);
	queue_lock(&qp->lock);
	opener->next = qp->openers;
	qp->openers = opener;
	queue_unlock(&qp->lock);
}

/* Ends the use of @srq by the QPs of @domain. The lock of the device is held. */
static void forget_srq(struct xrc_domain *domain, const struct hca_srq *srq)
{
	for (struct hca_qp *qp = domain->qps; qp; qp = qp->next_in_domain) {
		queue_lock(&qp->lock);
		if (qp->responder.srq == srq) {
			qp->responder.srq = NULL;
			qp->responder.has_receive = false;
		}
		if (qp->signature_cq == srq->cq)
			__atomic_store_n(&qp->signature_cq, NULL, __ATOMIC_RELAXED);
		/* Drops the rest of the message, even if another SRQ gets the number. */
		if (qp->responder.xrc_srqn == srq->number)
			qp->responder.in_message = false;
		queue_unlock(&qp->lock);
	}
}

int xrc_qp_join(struct hca_qp *qp, struct hca_xrcd *xrcd, void *cookie)
{
	struct xrc_domain *domain = xrcd->domain;
	struct qp_opener *opener = new_opener(xrcd, cookie);

	if (!opener)
		return -ENOMEM;
	pthread_mutex_lock(&domain->hca->lock);
	qp->domain = domain;
	qp->next_in_domain = domain->qps;
	domain->qps = qp;
	domain->forget_srq = forget_srq;
	add_opener(qp, opener);
	pthread_mutex_unlock(&domain->hca->lock);
	return 0;
}

static struct hca_qp *find_qp(const struct xrc_domain *domain, uint32_t number)
{
	struct hca_qp *qp = domain->qps;

	/* Without an opener it is being destroyed. */
	while (qp && (qp->number != number || !qp->openers || qp->inherited))
		qp = qp->next_in_domain;
	return qp;
}

int hca_qp_open(struct hca_xrcd *xrcd, uint32_t number, void *cookie, struct hca_qp **out)
{
	struct hca *hca = xrcd->domain->hca;
	struct qp_opener *opener = new_opener(xrcd, cookie);
	struct hca_qp *qp;

	if (!opener)
		return -ENOMEM;
	pthread_mutex_lock(&hca->lock);
	qp = find_qp(xrcd->domain, number);
	if (qp)
		add_opener(qp, opener);
	pthread_mutex_unlock(&hca->lock);
	if (!qp) {
		free(opener);
		return -EINVAL;
	}
	*out = qp;
	return 0;
}

/* Removes and returns the opener with @cookie. The lock of the device is held. */
static struct qp_opener *remove_opener(struct hca_qp *qp, const void *cookie)
{
	struct qp_opener **place, *opener;

	queue_lock(&qp->lock);
	for (place = &qp->openers; (*place)->event[0].object != cookie; place = &(*place)->next)
		;
	opener = *place;
	*place = opener->next;
	queue_unlock(&qp->lock);
	return opener;
}

void xrc_qp_leave(struct hca_qp *qp)
{
	struct hca_qp **place = &qp->domain->qps;

	pthread_mutex_lock(&qp->hca->lock);
	while (*place != qp)
		place = &(*place)->next_in_domain;
	*place = qp->next_in_domain;
	pthread_mutex_unlock(&qp->hca->lock);
}

void hca_qp_close(struct hca_qp *qp, const void *cookie)
{
	struct hca *hca = qp->hca;
	struct qp_opener *opener;
	bool last;

	pthread_mutex_lock(&hca->lock);
	opener = remove_opener(qp, cookie);
	last = !qp->openers;
	pthread_mutex_unlock(&hca->lock);
	if (last)
		qp_destroy(qp);
	/* Removed openers get no more events. */
	qp_opener_purge(opener);
	reference_put(&opener->xrcd->references);
	free(opener);
}
