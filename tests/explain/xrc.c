/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 140, 141, 391 to 395, 470 to 476: XRC. */
#include "rule_cases.h"

#include <fcntl.h>
#include <unistd.h>

#include "support/xrc.h"

/* ---- the device ------------------------------------------------------------------------------------------------- */

/* The client sends to the server's SRQs; the case chooses which. */
static struct ibv_xrcd *xrcd;
static struct endpoint sender;
static struct ibv_qp *receiver;

static void open_all(void)
{
	xrcd = expect_xrcd(server.context, -1, O_CREAT);
	sender = (struct endpoint){.side = &client, .cq = ibv_create_cq(client.context, 15, NULL, NULL, 0)};
	sender.qp = xrc_create_send(&client, sender.cq);
	receiver = xrc_create_recv(xrcd);
	assert_non_null(sender.qp);
	assert_non_null(receiver);
	xrc_connect(receiver, &server, sender.qp->qp_num, &client, 7);
	xrc_connect(sender.qp, &client, receiver->qp_num, &server, 7);
}

static void close_all(void)
{
	expect_error(ibv_destroy_qp(sender.qp), 0);
	expect_error(ibv_destroy_qp(receiver), 0);
	expect_error(ibv_destroy_cq(sender.cq), 0);
	expect_error(ibv_close_xrcd(xrcd), 0);
}

static void send_to(uint32_t srq_number)
{
	struct ibv_send_wr wr = request(IBV_WR_SEND, BYTES);

	wr.qp_type.xrc.remote_srqn = srq_number;
	post_send(&sender, &wr);
}

/* Both ends get an explanation. */
RULE_CASE(XRC_SRQ_UNKNOWN)
{
	open_all();
	send_to(0xabcdef);
	expect_failure(&sender, WR_ID, REM_INV_REQ_ERR, XRC_SRQ_UNKNOWN, "SEND",
		       "SEND names the XRC SRQ 0xabcdef, which does not exist");
	assert_true(serial_of(receiver->qp_num, RULE_XRC_SRQ_UNKNOWN) > 0);
	close_all();
}

RULE_CASE(XRC_SRQ_DOMAIN)
{
	struct ibv_xrcd *other = expect_xrcd(server.context, -1, O_CREAT);
	struct xrc_srq srq = xrc_srq_open(&server, other, 1);

	open_all();
	send_to(srq.number);
	expect_failure(&sender, WR_ID, REM_INV_REQ_ERR, XRC_SRQ_DOMAIN, "SEND",
		       "SEND names the SRQ 0x%x, which is not in the XRC domain of queue pair 0x%x", srq.number,
		       receiver->qp_num);
	close_all();
	xrc_srq_close(&srq);
	expect_error(ibv_close_xrcd(other), 0);
}

/* ---- domains ---------------------------------------------------------------------------------------------------- */

RULE_CASE(XRCD_COMP_MASK)
{
	struct ibv_xrcd_init_attr attr = {.comp_mask = 7, .fd = -1, .oflags = O_CREAT};

	expect_null(ibv_open_xrcd(client.context, &attr), EOPNOTSUPP);
	expect_refusal(XRCD_COMP_MASK,
		       "ibv_open_xrcd → EOPNOTSUPP: comp_mask of struct ibv_xrcd_init_attr is 0x7; it must be 0x3");
	attr.comp_mask = IBV_XRCD_INIT_ATTR_OFLAGS;
	expect_null(ibv_open_xrcd(client.context, &attr), EINVAL);
	expect_refusal(XRCD_COMP_MASK,
		       "ibv_open_xrcd → EINVAL: comp_mask of struct ibv_xrcd_init_attr is 0x2; it must be 0x3");
}

RULE_CASE(XRCD_DESCRIPTOR)
{
	expect_null(xrc_open(client.context, -7, O_CREAT), EBADF);
	expect_refusal(XRCD_DESCRIPTOR, "ibv_open_xrcd → EBADF: -7 is not an open descriptor");
}

RULE_CASE(XRCD_NONE)
{
	int fd = xrc_file();

	expect_null(xrc_open(client.context, fd, 0), EAGAIN);
	expect_refusal(XRCD_NONE, "ibv_open_xrcd → EAGAIN: no XRC domain is open for the file of descriptor %d", fd);
	close(fd);
}

RULE_CASE(XRCD_EXISTS)
{
	int fd = xrc_file();
	struct ibv_xrcd *first = expect_xrcd(client.context, fd, O_CREAT);

	expect_null(xrc_open(server.context, fd, O_CREAT | O_EXCL), EINVAL);
	expect_refusal(XRCD_EXISTS, "ibv_open_xrcd → EINVAL: an XRC domain is open for the file of descriptor %d", fd);
	expect_error(ibv_close_xrcd(first), 0);
	close(fd);
}

RULE_CASE(XRCD_IN_USE)
{
	struct ibv_xrcd *domain = expect_xrcd(client.context, -1, O_CREAT);
	struct ibv_qp *qp = xrc_create_recv(domain);

	expect_error(ibv_close_xrcd(domain), EBUSY);
	expect_refusal(
		XRCD_IN_USE,
		"ibv_close_xrcd → EBUSY: the XRC domain still has SRQs or queue pairs that were created or opened in it");
	expect_error(ibv_destroy_qp(qp), 0);
	expect_error(ibv_close_xrcd(domain), 0);
}

/* ---- SRQs and queue pairs --------------------------------------------------------------------------------------- */

static struct ibv_srq_init_attr_ex srq_attr(struct ibv_xrcd *domain, struct ibv_cq *cq)
{
	return (struct ibv_srq_init_attr_ex){
		.attr = {.max_wr = 1, .max_sge = 1},
		.comp_mask =
			IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = client.pd,
		.xrcd = domain,
		.cq = cq,
	};
}

RULE_CASE(SRQ_XRCD)
{
	struct ibv_srq_init_attr_ex attr = srq_attr(NULL, pair.client.cq);

	expect_null(ibv_create_srq_ex(client.context, &attr), EINVAL);
	expect_refusal(
		SRQ_XRCD,
		"ibv_create_srq_ex → EINVAL: comp_mask 0xf does not give the XRC SRQ an XRC domain of its context");
}

RULE_CASE(SRQ_CQ)
{
	struct ibv_xrcd *domain = expect_xrcd(client.context, -1, O_CREAT);
	struct ibv_srq_init_attr_ex attr = srq_attr(domain, NULL);

	expect_null(ibv_create_srq_ex(client.context, &attr), EINVAL);
	expect_refusal(SRQ_CQ,
		       "ibv_create_srq_ex → EINVAL: comp_mask 0xf does not give the XRC SRQ a CQ of its context");
	expect_error(ibv_close_xrcd(domain), 0);
}

RULE_CASE(QP_XRCD)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV};

	expect_null(ibv_create_qp_ex(client.context, &attr), EINVAL);
	expect_refusal(
		QP_XRCD,
		"ibv_create_qp_ex → EINVAL: comp_mask 0x0 does not give the XRC_RECV queue pair an XRC domain of its context");
}

RULE_CASE(QP_NO_QUEUE)
{
	struct ibv_send_wr send = {.wr_id = WR_ID}, *bad_send;
	struct ibv_recv_wr receive = {.wr_id = WR_ID}, *bad_receive;

	open_all();
	expect_error(ibv_post_send(receiver, &send, &bad_send), ENOMEM);
	expect_about_qp(
		QP_NO_QUEUE, receiver->qp_num,
		" ibv_post_send wr_id %d → ENOMEM: a queue pair of type XRC_RECV does not have the queue that this call needs",
		WR_ID);
	expect_error(ibv_post_recv(sender.qp, &receive, &bad_receive), ENOMEM);
	expect_about_qp(
		QP_NO_QUEUE, sender.qp->qp_num,
		" ibv_post_recv wr_id %d → ENOMEM: a queue pair of type XRC_SEND does not have the queue that this call needs",
		WR_ID);
	close_all();
}

RULE_CASE(QP_OPEN_MASK)
{
	struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM, .qp_num = 9};

	expect_null(ibv_open_qp(client.context, &attr), EINVAL);
	expect_refusal(QP_OPEN_MASK, "ibv_open_qp → EINVAL: comp_mask of struct ibv_qp_open_attr is 0x1; it must have "
				     "0xb, and may have 0xf");
}

RULE_CASE(QP_OPEN_XRCD)
{
	struct ibv_qp_open_attr attr = {.comp_mask = 0xb, .qp_num = 9, .qp_type = IBV_QPT_XRC_RECV};

	expect_null(ibv_open_qp(client.context, &attr), EINVAL);
	expect_refusal(QP_OPEN_XRCD,
		       "ibv_open_qp → EINVAL: queue pair 0x9 is to be opened without an XRC domain of the context");
}

RULE_CASE(QP_OPEN_NONE)
{
	struct ibv_xrcd *domain = expect_xrcd(client.context, -1, O_CREAT);

	expect_null(xrc_open_qp(domain, pair.client.qp->qp_num), EINVAL);
	expect_refusal(
		QP_OPEN_NONE,
		"ibv_open_qp → EINVAL: queue pair 0x%x of type XRC_RECV does not exist in the XRC domain; only XRC_RECV queue pairs are shared",
		pair.client.qp->qp_num);
	expect_error(ibv_close_xrcd(domain), 0);
}
