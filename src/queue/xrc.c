/* SPDX-License-Identifier: BSD-2-Clause */
/* XRC domains. */
#include "queue/xrc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/cancellation.h"
#include "core/descriptor.h"
#include "hca/hca.h"

/* Returns the domain of @status's inode, or NULL. The lock of @hca is held. */
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
		descriptor_close(domain->fd);
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
		domain->fd = descriptor_keep_duplicate(fd);
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

/* Without an inode makes a domain even without O_CREAT, as the kernel does. */
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

void xrc_forget_srq(struct xrc_domain *domain, const struct hca_srq *srq)
{
	pthread_mutex_lock(&domain->hca->lock);
	if (domain->forget_srq)
		domain->forget_srq(domain, srq);
	pthread_mutex_unlock(&domain->hca->lock);
}
