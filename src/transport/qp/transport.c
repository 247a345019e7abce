/* SPDX-License-Identifier: BSD-2-Clause */
/* Differences between the transports. */
#include "transport/qp/transport.h"

#include "format/qp_types.h"

const struct transport *transport_of(enum ibv_qp_type type)
{
#define BOTH .requests = true, .responds = true
	static const struct transport rc = TRANSPORT_RC;
	static const struct transport uc = {IBV_QPT_UC, WQE_UC, BOTH, .connected = true};
	static const struct transport ud = {IBV_QPT_UD, WQE_UD, BOTH, .datagram = true, .any_peer = true};
	static const struct transport xrc_send = {IBV_QPT_XRC_SEND, WQE_XRC, .requests = true, .reliable = true,
						  .connected = true};
	static const struct transport xrc_recv = {IBV_QPT_XRC_SEND, 0, .responds = true, .reliable = true,
						  .connected = true};
	static const struct transport dci = {QP_TYPE_DCI, WQE_DC, .requests = true, .reliable = true};
	static const struct transport dct = {QP_TYPE_DCI, 0, .responds = true, .reliable = true, .any_peer = true};
#undef BOTH

	switch ((int)type) {
	case IBV_QPT_RC:
		return &rc;
	case IBV_QPT_UC:
		return &uc;
	case IBV_QPT_XRC_SEND:
		return &xrc_send;
	case IBV_QPT_XRC_RECV:
		return &xrc_recv;
	case QP_TYPE_DCI:
		return &dci;
	case QP_TYPE_DCT:
		return &dct;
	default:
		return &ud;
	}
}
