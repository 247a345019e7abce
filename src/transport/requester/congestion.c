/* SPDX-License-Identifier: BSD-2-Clause */
/* Congestion notification. */
#include "transport/requester/congestion.h"

#include "observe/counters.h"
#include "transport/qp/packet_begin.h"
#include "transport/requester/requester.h"

#define RESERVED_BYTES 16 /* annex A17.9.3 */
/* DSCP 48 (network control) and ECT(0), as on adapters: notifications must bypass the congestion. */
#define TRAFFIC_CLASS 0xc2

static void cnp_build(const struct hca_qp *qp, struct packet *packet)
{
	static const uint8_t reserved[RESERVED_BYTES];

	packet_begin(packet, qp, TRANSPORT_NONE, MESSAGE_CONGESTION);
	packet->psn = 0;
	packet->mtu = RESERVED_BYTES;
	packet->own_path = qp->path;
	packet->own_path.traffic_class = TRAFFIC_CLASS;
	packet->path = &packet->own_path;
	stream_begin(&packet->payload, NULL, 0);
	stream_add_memory(&packet->payload, reserved, sizeof(reserved));
}

void congestion_notify(struct hca_qp *qp, const struct packet *packet, struct run *run)
{
	uint64_t now_ns;

	if (!qp->transport->connected || packet->link != qp->link)
		return;
	now_ns = clock_now_ns();
	if (qp->notified_ns && now_ns - qp->notified_ns < LIMIT_CNP_INTERVAL_US * UINT64_C(1000))
		return;
	cnp_build(qp, run_slot(run));
	/* The next marked packet causes another notification. */
	if (link_send(qp->hca, run) != LINK_SENT)
		return;
	qp->notified_ns = now_ns;
	counter_add(qp->hca, COUNTER_UDP_CNPS_SENT, 1);
}

static void requester_congested(struct hca_qp *qp)
{
	if (qp->transport->requests && qp->transport->reliable)
		requester_narrow_window(qp);
}

void congestion_notified(struct hca_qp *qp)
{
	counter_add(qp->hca, COUNTER_UDP_CNPS_RECEIVED, 1);
	requester_congested(qp);
}
