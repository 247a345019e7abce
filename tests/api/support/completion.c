/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting and polling, see completion.h. */
#include "support/completion.h"

#include "test_clock.h"

void post_send_(struct place place, struct endpoint *endpoint, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	if (endpoint->ah) {
		wr->wr.ud.ah = endpoint->ah;
		wr->wr.ud.remote_qpn = endpoint->peer->qp->qp_num;
		wr->wr.ud.remote_qkey = PAIR_QKEY;
	}
	expect_error_(place, "ibv_post_send()", ibv_post_send(endpoint->qp, wr, &bad), 0);
}

void post_receive_(struct place place, struct endpoint *endpoint, uint64_t wr_id, struct ibv_sge *sge, int count)
{
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = count}, *bad;

	expect_error_(place, "ibv_post_recv()", ibv_post_recv(endpoint->qp, &wr, &bad), 0);
}

struct ibv_wc next_completion_(struct place place, struct endpoint *endpoint)
{
	double end = seconds_now() + DEADLINE_SECONDS;
	struct ibv_wc wc;
	int found;

	memset(&wc, 0xa5, sizeof(wc)); /* makes members visible that the call does not set */
	do
		found = ibv_poll_cq(endpoint->cq, 1, &wc);
	while (!found && seconds_now() < end);
	if (found != 1)
		fail_at(place, "the %s waits for a completion, ibv_poll_cq() returns %d", endpoint->side->name, found);
	if (wc.qp_num != endpoint->qp->qp_num)
		fail_at(place, "wr_id %#lx: completion of QP %#x, not %#x", wc.wr_id, wc.qp_num, endpoint->qp->qp_num);
	return wc;
}

struct ibv_wc expect_status_(struct place place, struct endpoint *endpoint, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = next_completion_(place, endpoint);

	if (wc.status != status)
		fail_at(place, "wr_id %#lx of the %s: %s (vendor_err %u), not %s", wc.wr_id, endpoint->side->name,
			ibv_wc_status_str(wc.status), wc.vendor_err, ibv_wc_status_str(status));
	if (wc.wr_id != wr_id)
		fail_at(place, "completion of wr_id %#lx, not %#lx", wc.wr_id, wr_id);
	return wc;
}

struct ibv_wc expect_completion_(struct place place, struct endpoint *endpoint, uint64_t wr_id, int opcode)
{
	struct ibv_wc wc = expect_status_(place, endpoint, wr_id, IBV_WC_SUCCESS);

	if ((int)wc.opcode != opcode)
		fail_at(place, "wr_id %#lx has opcode %d, not %d", wr_id, wc.opcode, opcode);
	return wc;
}

void expect_idle_(struct place place, struct endpoint *endpoint)
{
	struct ibv_wc wc;
	int found = ibv_poll_cq(endpoint->cq, 1, &wc);

	if (found)
		fail_at(place, "the %s has a completion: wr_id %#lx, %s", endpoint->side->name, wc.wr_id,
			found == 1 ? ibv_wc_status_str(wc.status) : "ibv_poll_cq() fails");
}

void expect_nothing_posted_(struct place place, struct endpoint *endpoint)
{
	enum { SENT = 0x5e4d, RECEIVED = 0x4ec1 };
	struct ibv_send_wr wr = send_wr(SENT, IBV_WR_SEND, NULL);

	post_receive_(place, endpoint->peer, RECEIVED, NULL, 0);
	post_send_(place, endpoint, &wr);
	expect_completion_(place, endpoint, SENT, IBV_WC_SEND);
	expect_completion_(place, endpoint->peer, RECEIVED, IBV_WC_RECV);
	expect_idle_(place, endpoint);
	expect_idle_(place, endpoint->peer);
}
