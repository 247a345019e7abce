/* SPDX-License-Identifier: BSD-2-Clause */
/* XRC domains and the QPs that are shared through them, see xrc.h. */
#include "core/cancellation.h"
#include "queue/xrc.h"
#include "transport/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- domains --------------------------------------------------------------------------------------------------- */

/* The domain of the inode of @status, or NULL. The lock of @hca is held. */
static struct xrc_domain *find_domain(const struct hca *hca, const struct stat *status)
{
	struct xrc_domain *domain = hca->xrc_domains;

	while (domain && (domain->fd < 0 || domain->device != status->st_dev || domain->inode != status->st_ino))
		domain = domain->next;
	return domain;
}

static void free_domain(struct xrc_domain *domain)
{
	if (domain->fd >= 0)
		close(domain->fd);
	free(domain);
}

static int new_domain(struct hca *hca, int fd, const struct stat *status, struct xrc_domain **out)
{
	struct xrc_domain *domain = calloc(1, sizeof(*domain));
	int error;

	if (!domain)
		return -ENOMEM;
	domain->hca = hca;
	domain->fd = -1;
	if (fd >= 0) {
		domain->device = status->st_dev;
		domain->inode = status->st_ino;
		domain->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (domain->fd < 0) {
			error = -errno;
			free(domain);
			return error;
		}
	}
	domain->next = hca->xrc_domains;
	hca->xrc_domains = domain;
	*out = domain;
	return 0;
}

static void leave_domain(struct xrc_domain *domain)
{
	struct xrc_domain **place = &domain->hca->xrc_domains;

	if (--domain->opened)
		return;
	while (*place != domain)
		place = &(*place)->next;
	*place = domain->next;
	free_domain(domain);
}

/* Without an inode there is nothing to find: the kernel makes a domain whether O_CREAT is there or not. */
static int find_or_make(struct hca *hca, int fd, int oflags, struct xrc_domain **domain)
{
	struct stat status;

	if (fd == -1)
		return new_domain(hca, fd, NULL, domain);
	if (fstat(fd, &status))
		return -EBADF;
	*domain = find_domain(hca, &status);
	if (*domain)
		return oflags & O_EXCL ? -EINVAL : 0;
	return oflags & O_CREAT ? new_domain(hca, fd, &status, domain) : -EAGAIN;
}

int hca_xrcd_open(struct hca_context *context, int fd, int oflags, struct hca_xrcd **out)
{
	WITHOUT_CANCELLATION;
	struct hca_xrcd *xrcd = calloc(1, sizeof(*xrcd));
	int error;

	if (!xrcd)
		return -ENOMEM;
	pthread_mutex_lock(&context->hca->lock);
	error = find_or_make(context->hca, fd, oflags, &xrcd->domain);
	if (!error)
		xrcd->domain->opened++;
	pthread_mutex_unlock(&context->hca->lock);
	if (error) {
		free(xrcd);
		return error;
	}
	xrcd->context = context;
	reference_get(&context->references);
	*out = xrcd;
	return 0;
}

int hca_xrcd_close(struct hca_xrcd *xrcd)
{
	WITHOUT_CANCELLATION;
	struct hca_context *context = xrcd->context;

	if (reference_count(&xrcd->references))
		return -EBUSY;
	pthread_mutex_lock(&context->hca->lock);
	leave_domain(xrcd->domain);
	pthread_mutex_unlock(&context->hca->lock);
	reference_put(&context->references);
	free(xrcd);
	return 0;
}

/* ---- QPs ------------------------------------------------------------------------------------------------------- */

static struct qp_opener *new_opener(struct hca_xrcd *xrcd, void *cookie)
{
	struct qp_opener *opener = calloc(1, sizeof(*opener));

	if (!opener)
		return NULL;
	qp_opener_init(opener, xrcd->context, cookie);
	opener->xrcd = xrcd;
	return opener;
}

/* The lock of the device is held, so that no one else changes the list; that of the QP, for who raises events. */
static void add_opener(struct hca_qp *qp, struct qp_opener *opener)
{
	reference_get(&opener->xrcd->references);
	queue_lock(&qp->lock);
	opener->next = qp->openers;
	qp->openers = opener;
	queue_unlock(&qp->lock);
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
	add_opener(qp, opener);
	pthread_mutex_unlock(&domain->hca->lock);
	return 0;
}

static struct hca_qp *find_qp(const struct xrc_domain *domain, uint32_t number)
{
	struct hca_qp *qp = domain->qps;

	/* Without an opener it is on its way out. */
	while (qp && (qp->number != number || !qp->openers))
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

/* The opener of @cookie, out of the list; the lock of the device is held. */
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
	/* Out of the list, it gets no event any more. */
	qp_opener_purge(opener);
	reference_put(&opener->xrcd->references);
	free(opener);
}

void xrc_forget_srq(struct xrc_domain *domain, const struct hca_srq *srq)
{
	pthread_mutex_lock(&domain->hca->lock);
	for (struct hca_qp *qp = domain->qps; qp; qp = qp->next_in_domain) {
		queue_lock(&qp->lock);
		if (qp->responder.srq == srq) {
			qp->responder.srq = NULL;
			qp->responder.has_receive = false;
		}
		if (qp->signature_cq == srq->cq)
			__atomic_store_n(&qp->signature_cq, NULL, __ATOMIC_RELAXED);
		/* What is left of a message continues nothing, even if another SRQ gets the number meanwhile. */
		if (qp->responder.xrc_srqn == srq->number)
			qp->responder.in_message = false;
		queue_unlock(&qp->lock);
	}
	pthread_mutex_unlock(&domain->hca->lock);
}
