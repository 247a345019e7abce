/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that links and filters call, see struct delivery in wire/run.h. */
#include "core/epoch.h"
#include "core/thread_memory.h"
#include "transport/requester/requester.h"
#include "transport/responder/reach.h"
#include "transport/run/run.h"
#include "wire/mad.h"

static void delivery_drain(struct run *run)
{
	run_drain(run, NULL);
}

static struct hca *delivery_device(uint32_t qpn)
{
	const struct hca_qp *qp = qp_find(qpn);

	if (qpn == GSI_QPN)
		return first_device();
	return qp ? qp->hca : NULL;
}

static bool delivery_view(uint32_t qpn, struct receiver_view *view)
{
	struct hca_qp *qp = qp_find(qpn);

	if (qpn == GSI_QPN)
		*view = (struct receiver_view){.hca = first_device(), .peer_qpn = GSI_QPN};
	if (!qp)
		return qpn == GSI_QPN;
	queue_lock(&qp->lock);
	*view = (struct receiver_view){
		.hca = qp->hca, .path = qp->path, .peer_qpn = qp->attr.dest_qp_num, .mtu_shift = qp->mtu_shift};
	queue_unlock(&qp->lock);
	return true;
}

static void notice_end_of_peer(void)
{
	uint32_t number = 0;
	struct hca_qp *qp;
	THREAD_VARIABLE(struct run, run);

	epoch_enter();
	run_begin(run);
	for (; (qp = id_table_next(&the_registry.qps, &number)); number++)
		requester_notice_end(qp);
	run_finish(run);
	epoch_leave();
}

const struct delivery transport_delivery = {.drain = delivery_drain,
					    .finish = run_finish,
					    .take_whole = run_take_whole,
					    .let_go = run_let_go,
					    .reach = transport_reach,
					    .peer_ended = notice_end_of_peer,
					    .device_of = delivery_device,
					    .view = delivery_view};
