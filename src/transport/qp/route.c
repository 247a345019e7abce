/* SPDX-License-Identifier: BSD-2-Clause */
/* The link to the peer of a QP. */
#include "transport/qp/qp.h"
#include "transport/qp/transport.h"
#include "wire/link.h"
#include "wire/routes.h"

void qp_route(struct hca_qp *qp)
{
	qp->link = routes->route(qp->hca, &qp->path.destination, qp->attr.dest_qp_num);
	qp->in_process = qp->type == IBV_QPT_RC && qp->link && qp->link->in_process;
	qp->whole = qp->type == IBV_QPT_RC && qp->link ? qp->link->whole : 0;
	/* Looked up now: the peer may have ended when its first packet is handled. */
	qp->connection = qp->link && qp->link->paired ? routes->connection_to(qp->attr.dest_qp_num) : 0;
	if (qp->link)
		qp->requester.window = link_first_window(qp->hca, qp->link);
	/* The shm link detects the end of a peer by its connection. */
	qp->requester.sees_peer = qp->transport->reliable && qp->link == routes->udp() &&
				  routes->sees_process(qp->hca, &qp->path.destination, qp->attr.dest_qp_num);
}

bool qp_route_again(struct hca_qp *qp)
{
	if (qp->link != routes->local() || routes->owns(qp->attr.dest_qp_num))
		return false;
	qp_route(qp);
	return qp->link != routes->local();
}
