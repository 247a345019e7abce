/* SPDX-License-Identifier: BSD-2-Clause */
/* Domains, SRQs and QPs of XRC, see xrc.h. */
#include "support/xrc.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test_clock.h"

enum { FIRST_PSN = 0xfffff0, DEADLINE = 10 /* seconds */, CQES = 255 };

int xrc_file(void)
{
	int fd = memfd_create("xrc", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

int xrc_same_file(int fd)
{
	char name[64];
	int same;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	same = open(name, O_RDONLY | O_CLOEXEC);
	assert_true(same >= 0);
	return same;
}

struct ibv_xrcd *xrc_open(struct ibv_context *context, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = oflags};

	errno = 0;
	return ibv_open_xrcd(context, &attr);
}

struct ibv_xrcd *expect_xrcd_(struct place place, struct ibv_context *context, int fd, int oflags)
{
	struct ibv_xrcd *xrcd = xrc_open(context, fd, oflags);

	if (!xrcd)
		fail_at(place, "ibv_open_xrcd(): %s", strerror(errno));
	return xrcd;
}

struct xrc_srq xrc_srq_open_(struct place place, struct side *side, struct ibv_xrcd *xrcd, uint32_t max_wr)
{
	struct xrc_srq srq = {.side = side, .cq = ibv_create_cq(side->context, CQES, NULL, NULL, 0)};
	struct ibv_srq_init_attr_ex attr = {
		.srq_context = side,
		.attr = {.max_wr = max_wr, .max_sge = 4},
		.comp_mask =
			IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = side->pd,
		.xrcd = xrcd,
		.cq = srq.cq,
	};

	srq.srq = srq.cq ? ibv_create_srq_ex(side->context, &attr) : NULL;
	if (!srq.srq)
		fail_at(place, "ibv_create_srq_ex(): %s", strerror(errno));
	expect_error_(place, "ibv_get_srq_num()", ibv_get_srq_num(srq.srq, &srq.number), 0);
	return srq;
}

void xrc_srq_close_(struct place place, struct xrc_srq *srq)
{
	expect_error_(place, "ibv_destroy_srq()", ibv_destroy_srq(srq->srq), 0);
	expect_error_(place, "ibv_destroy_cq()", ibv_destroy_cq(srq->cq), 0);
}

struct ibv_qp *xrc_create_recv(struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};

	errno = 0;
	return ibv_create_qp_ex(xrcd->context, &attr);
}

struct ibv_qp *xrc_create_send(struct side *side, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_SEND,
		.send_cq = cq,
		.cap = {.max_send_wr = 64, .max_send_sge = 4, .max_inline_data = 200},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = side->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_INV |
				  IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_BIND_MW |
				  IBV_QP_EX_WITH_LOCAL_INV,
	};

	errno = 0;
	return ibv_create_qp_ex(side->context, &attr);
}

struct ibv_qp *xrc_open_qp(struct ibv_xrcd *xrcd, uint32_t number)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = number,
		.xrcd = xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	errno = 0;
	return ibv_open_qp(xrcd->context, &attr);
}

static void move(struct place place, struct ibv_qp *qp, enum ibv_qp_state state, struct ibv_qp_attr attr, int mask)
{
	attr.qp_state = state;
	expect_error_(place, "ibv_modify_qp()", ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE), 0);
}

void xrc_connect_(struct place place, struct ibv_qp *qp, const struct side *side, uint32_t peer,
		  const struct side *peer_side, uint8_t rnr_retry)
{
	bool sends = qp->qp_type == IBV_QPT_XRC_SEND;
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.qp_access_flags = SIDE_REMOTE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.rq_psn = FIRST_PSN,
		.sq_psn = FIRST_PSN,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = rnr_retry,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer_side->gid, .sgid_index = side->gid_index, .hop_limit = 1}},
	};

	move(place, qp, IBV_QPS_RESET, attr, 0);
	move(place, qp, IBV_QPS_INIT, attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	move(place, qp, IBV_QPS_RTR, attr,
	     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		     (sends ? 0 : IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	move(place, qp, IBV_QPS_RTS, attr,
	     IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
		     (sends ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0));
}

void xrc_post_receive_(struct place place, struct xrc_srq *srq, uint64_t wr_id, struct ibv_sge *sge, int count)
{
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = count}, *bad;

	expect_error_(place, "ibv_post_srq_recv()", ibv_post_srq_recv(srq->srq, &wr, &bad), 0);
}

struct ibv_wc xrc_completion_(struct place place, struct ibv_cq *cq, uint64_t wr_id, uint32_t qp_num,
			      enum ibv_wc_status status)
{
	double end = seconds_now() + DEADLINE;
	struct ibv_wc wc;
	int found;

	memset(&wc, 0xa5, sizeof(wc)); /* makes members visible that the call does not set */
	do
		found = ibv_poll_cq(cq, 1, &wc);
	while (!found && seconds_now() < end);
	if (found != 1)
		fail_at(place, "wr_id %#lx: ibv_poll_cq() returns %d", wr_id, found);
	if (wc.status != status)
		fail_at(place, "wr_id %#lx: %s (vendor_err %u), not %s", wc.wr_id, ibv_wc_status_str(wc.status),
			wc.vendor_err, ibv_wc_status_str(status));
	if (wc.wr_id != wr_id)
		fail_at(place, "completion of wr_id %#lx, not %#lx", wc.wr_id, wr_id);
	if (wc.qp_num != qp_num)
		fail_at(place, "wr_id %#lx: completion of QP %#x, not %#x", wr_id, wc.qp_num, qp_num);
	return wc;
}

void xrc_idle_(struct place place, struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int found = ibv_poll_cq(cq, 1, &wc);

	if (found)
		fail_at(place, "there is a completion: wr_id %#lx, %s", wc.wr_id,
			found == 1 ? ibv_wc_status_str(wc.status) : "ibv_poll_cq() fails");
}
