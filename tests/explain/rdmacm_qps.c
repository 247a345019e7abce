/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 840 to 844, 860 to 863 and 867: QPs, SRQs and multicast groups of an id of librdmacm. */
#include "../rdmacm/support.h"
#include "rule_cases.h"

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;

static void open_id(enum rdma_port_space space)
{
	channel = new_channel();
	id = new_id(channel, space);
	resolve_address(id, 7471);
}

static void close_id(void)
{
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	assert_success(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

static struct ibv_qp_init_attr attributes(void)
{
	return (struct ibv_qp_init_attr){
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC};
}

RULE_CASE(RDMACM_HAS_QP)
{
	struct ibv_qp_init_attr attr = attributes();

	open_id(RDMA_PS_TCP);
	new_qp(id);
	assert_errno(rdma_create_qp(id, NULL, &attr), EINVAL);
	expect_refusal(RDMACM_HAS_QP, "rdma_create_qp → EINVAL: the id already has QP 0x%x", id->qp->qp_num);
	close_id();
}

RULE_CASE(RDMACM_QP_DESTROYED)
{
	struct ibv_qp_init_attr attr = attributes();

	open_id(RDMA_PS_TCP);
	new_qp(id);
	assert_int_equal(ibv_destroy_qp(id->qp), 0);
	assert_errno(rdma_create_qp(id, NULL, &attr), EINVAL);
	expect_refusal(RDMACM_QP_DESTROYED,
		       "rdma_create_qp → EINVAL: id->qp points to 0x%lx, where no QP exists any more",
		       (unsigned long)(uintptr_t)id->qp);
	close_id();
}

RULE_CASE(RDMACM_FOREIGN_PD)
{
	struct ibv_qp_init_attr attr = attributes();

	open_id(RDMA_PS_TCP);
	assert_errno(rdma_create_qp(id, client.pd, &attr), EINVAL);
	expect_refusal(RDMACM_FOREIGN_PD,
		       "rdma_create_qp → EINVAL: the protection domain at 0x%lx belongs to another context than the id",
		       (unsigned long)(uintptr_t)client.pd);
	close_id();
}

RULE_CASE(RDMACM_HAS_SRQ)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};

	open_id(RDMA_PS_TCP);
	assert_success(rdma_create_srq(id, NULL, &attr));
	assert_errno(rdma_create_srq(id, NULL, &attr), EINVAL);
	expect_refusal(RDMACM_HAS_SRQ, "rdma_create_srq → EINVAL: the id already has an SRQ");
	close_id();
}

RULE_CASE(RDMACM_QP_ATTR)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	int mask;

	open_id(RDMA_PS_TCP);
	assert_errno(rdma_init_qp_attr(id, &attr, &mask), EINVAL);
	expect_refusal(
		RDMACM_QP_ATTR,
		"rdma_init_qp_attr → EINVAL: attributes for state RTR are not available while the connection is in state IDLE");
	close_id();
}

RULE_CASE(RDMACM_TWO_CQS)
{
	struct ibv_qp_init_attr attr = attributes();
	struct ibv_cq *own, *other;

	open_id(RDMA_PS_TCP);
	own = ibv_create_cq(id->verbs, 4, NULL, NULL, 0);
	other = ibv_create_cq(id->verbs, 4, NULL, NULL, 0);
	id->send_cq = own;
	attr.send_cq = attr.recv_cq = other;
	assert_errno(rdma_create_qp(id, NULL, &attr), EINVAL);
	expect_refusal(RDMACM_TWO_CQS,
		       "rdma_create_qp → EINVAL: the id already has a CQ, but the attributes name another one");
	id->send_cq = NULL;
	expect_error(ibv_destroy_cq(own), 0);
	expect_error(ibv_destroy_cq(other), 0);
	close_id();
}

RULE_CASE(RDMACM_NOT_DATAGRAM)
{
	open_id(RDMA_PS_TCP);
	assert_errno(rdma_join_multicast(id, loopback(0), NULL), EINVAL);
	expect_refusal(
		RDMACM_NOT_DATAGRAM,
		"rdma_join_multicast → EINVAL: the id is of type RC, and has a device: yes; it must be UD and have a device");
	close_id();
}

RULE_CASE(RDMACM_NO_GROUP)
{
	open_id(RDMA_PS_UDP);
	assert_errno(rdma_join_multicast(id, loopback(0), NULL), EINVAL);
	expect_refusal(RDMACM_NO_GROUP,
		       "rdma_join_multicast → EINVAL: address 0x0:0xffff7f000001 is not an IPv4 multicast address");
	close_id();
}

RULE_CASE(RDMACM_JOIN_FLAGS)
{
	struct rdma_cm_join_mc_attr_ex attr = {.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS, .addr = loopback(0)};

	open_id(RDMA_PS_UDP);
	assert_errno(rdma_join_multicast_ex(id, &attr, NULL), EINVAL);
	expect_refusal(
		RDMACM_JOIN_FLAGS,
		"rdma_join_multicast_ex → EINVAL: comp_mask is 0x1 and join_flags 0; the call needs an address and one of two flags");
	close_id();
}

RULE_CASE(RDMACM_NOT_JOINED)
{
	open_id(RDMA_PS_UDP);
	assert_errno(rdma_leave_multicast(id, loopback(0)), EADDRNOTAVAIL);
	expect_refusal(RDMACM_NOT_JOINED, "rdma_leave_multicast → EADDRNOTAVAIL: the id has not joined group "
					  "0x0:0xffff7f000001");
	close_id();
}
