/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_join_multicast(3), rdma_join_multicast_ex(3), rdma_leave_multicast(3): the event, and reception by the id's QP of
 * messages sent to the group. Expected values: rdma-cm 2.6 and 2.7.
 */
#include "support.h"

#include <arpa/inet.h>
#include <poll.h>

static struct sockaddr_in group = {.sin_family = AF_INET};
static const uint8_t mgid[16] = {[10] = 0xff, 0xff, 239, 1, 2, 3};

static struct rdma_cm_id *new_member(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_UDP);

	resolve_address(id, 7471);
	new_qp(id);
	return id;
}

static void drop(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	assert_success(rdma_destroy_id(id));
}

static void send_to(struct rdma_cm_id *id, struct ibv_ah *ah, uint32_t qpn, void *memory, struct ibv_mr *mr)
{
	struct ibv_wc wc;

	assert_success(rdma_post_ud_send(id, NULL, memory, 64, mr, 0, ah, qpn));
	assert_int_equal(rdma_get_send_comp(id, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

TEST(test_group)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id = new_member(channel), *sender = new_member(channel);
	char *memory = calloc(1, 256);
	struct rdma_cm_event *event;
	struct ibv_mr *mr, *receive;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	uint32_t qpn;

	assert_success(rdma_join_multicast(id, (struct sockaddr *)&group, &group));
	event = next_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	assert_ptr_equal(event->id, id);
	assert_int_equal(event->status, 0);
	assert_ptr_equal(event->param.ud.private_data, &group);
	assert_int_equal(event->param.ud.private_data_len, 0);
	assert_int_equal(event->param.ud.qp_num, 0xffffff);
	assert_int_equal(event->param.ud.qkey, RDMA_UDP_QKEY);
	assert_int_equal(event->param.ud.ah_attr.is_global, 1);
	assert_memory_equal(event->param.ud.ah_attr.grh.dgid.raw, mgid, 16);
	ah = ibv_create_ah(sender->pd, &event->param.ud.ah_attr);
	assert_non_null(ah);
	qpn = event->param.ud.qp_num;
	assert_success(rdma_ack_cm_event(event));

	mr = rdma_reg_msgs(sender, memory, 64);
	receive = rdma_reg_msgs(id, memory + 64, 128);
	assert_success(rdma_post_recv(id, NULL, memory + 64, 128, receive));
	strcpy(memory, "to all");
	send_to(sender, ah, qpn, memory, mr);
	assert_int_equal(rdma_get_recv_comp(id, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	/* After the header. */
	assert_string_equal(memory + 64 + 40, "to all");

	/* An id that has left receives no more. */
	assert_success(rdma_leave_multicast(id, (struct sockaddr *)&group));
	assert_success(rdma_post_recv(id, NULL, memory + 64, 128, receive));
	send_to(sender, ah, qpn, memory, mr);
	assert_int_equal(poll(&(struct pollfd){.fd = id->recv_cq_channel->fd, .events = POLLIN}, 1, 100), 0);
	assert_errno(rdma_leave_multicast(id, (struct sockaddr *)&group), EADDRNOTAVAIL);

	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_success(rdma_dereg_mr(mr));
	assert_success(rdma_dereg_mr(receive));
	drop(id);
	drop(sender);
	free(memory);
	rdma_destroy_event_channel(channel);
}

TEST(test_refused)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id = new_member(channel), *unbound = new_id(channel, RDMA_PS_UDP);
	struct rdma_cm_join_mc_attr_ex attr = {.comp_mask = 7, .addr = (struct sockaddr *)&group};

	assert_errno(rdma_join_multicast(unbound, (struct sockaddr *)&group, NULL), EINVAL);
	assert_errno(rdma_join_multicast(id, loopback(0), NULL), EINVAL);
	assert_errno(rdma_join_multicast_ex(id, &attr, NULL), ENOTSUP);
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS;
	assert_errno(rdma_join_multicast_ex(id, &attr, NULL), EINVAL);
	attr.comp_mask |= RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	attr.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
	assert_errno(rdma_join_multicast_ex(id, &attr, NULL), EINVAL);
	/* A send-only member joins without receiving, and destroying the id leaves the group. */
	attr.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
	assert_success(rdma_join_multicast_ex(id, &attr, NULL));
	expect_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	drop(id);
	assert_success(rdma_destroy_id(unbound));
	rdma_destroy_event_channel(channel);
}

static void assert_silent(struct rdma_cm_id *id)
{
	assert_int_equal(poll(&(struct pollfd){.fd = id->recv_cq_channel->fd, .events = POLLIN}, 1, 100), 0);
}

/* A QP that cannot be attached: RC, set by the program itself. */
TEST(test_error)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_UDP);
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC};
	struct rdma_cm_event *event;

	resolve_address(id, 7471);
	attr.send_cq = attr.recv_cq = ibv_create_cq(id->verbs, 4, NULL, NULL, 0);
	id->qp = ibv_create_qp(id->pd, &attr);
	assert_non_null(id->qp);
	assert_success(rdma_join_multicast(id, (struct sockaddr *)&group, &group));
	event = next_event(channel, RDMA_CM_EVENT_MULTICAST_ERROR);
	/* ibv_attach_mcast(3): EINVAL. */
	assert_int_equal(event->status, -EINVAL);
	assert_ptr_equal(event->param.ud.private_data, &group);
	assert_success(rdma_ack_cm_event(event));
	assert_success(rdma_leave_multicast(id, (struct sockaddr *)&group));
	assert_int_equal(ibv_destroy_qp(id->qp), 0);
	assert_int_equal(ibv_destroy_cq(attr.send_cq), 0);
	id->qp = NULL;
	assert_success(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
	/* A synchronous id returns the error. */
	id = new_id(NULL, RDMA_PS_UDP);
	assert_success(rdma_resolve_addr(id, NULL, loopback(7471), TIMEOUT_MS));
	attr.send_cq = attr.recv_cq = ibv_create_cq(id->verbs, 4, NULL, NULL, 0);
	id->qp = ibv_create_qp(id->pd, &attr);
	assert_non_null(id->qp);
	assert_errno(rdma_join_multicast(id, (struct sockaddr *)&group, NULL), EINVAL);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_MULTICAST_ERROR);
	assert_int_equal(ibv_destroy_qp(id->qp), 0);
	assert_int_equal(ibv_destroy_cq(attr.send_cq), 0);
	id->qp = NULL;
	assert_success(rdma_destroy_id(id));
}

/* The id itself acknowledges the event of a synchronous join: leaving and destroying do not wait for it. */
TEST(test_synchronous)
{
	struct rdma_cm_id *id = new_id(NULL, RDMA_PS_UDP);

	alarm(20);
	assert_success(rdma_resolve_addr(id, NULL, loopback(7471), TIMEOUT_MS));
	new_qp(id);
	assert_success(rdma_join_multicast(id, (struct sockaddr *)&group, NULL));
	assert_int_equal(id->event->event, RDMA_CM_EVENT_MULTICAST_JOIN);
	assert_success(rdma_leave_multicast(id, (struct sockaddr *)&group));
	assert_null(id->event);
	assert_success(rdma_join_multicast(id, (struct sockaddr *)&group, NULL));
	drop(id);
	alarm(0);
}

/* Destroys the CQ with its channel, after acknowledging the event that rdma_get_recv_comp(3) took. */
static void destroy_cq(struct ibv_cq *cq)
{
	struct ibv_comp_channel *events = cq->channel;

	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(events), 0);
}

/* Send-only members do not receive; full members do both; an id that leaves before the event is not a member. */
TEST(test_members)
{
	struct rdma_cm_join_mc_attr_ex attr = {.comp_mask =
						       RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
					       .join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
					       .addr = (struct sockaddr *)&group};
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *sender = new_member(channel), *full = new_member(channel), *left = new_member(channel);
	char *memory = calloc(1, 512);
	struct ibv_mr *mr[3];
	struct rdma_cm_event *event;
	struct ibv_cq *cq, *send_cq;
	struct ibv_ah *ah;
	struct ibv_qp *qp;
	struct ibv_wc wc;

	assert_success(rdma_join_multicast_ex(sender, &attr, NULL));
	event = next_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	ah = ibv_create_ah(sender->pd, &event->param.ud.ah_attr);
	assert_non_null(ah);
	assert_success(rdma_ack_cm_event(event));
	attr.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER;
	assert_success(rdma_join_multicast_ex(full, &attr, NULL));
	expect_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	assert_success(rdma_join_multicast_ex(left, &attr, NULL));
	assert_success(rdma_leave_multicast(left, (struct sockaddr *)&group));
	assert_false(has_event(channel, 0));

	mr[0] = rdma_reg_msgs(sender, memory, 512);
	mr[1] = rdma_reg_msgs(full, memory, 512);
	mr[2] = rdma_reg_msgs(left, memory, 512);
	assert_success(rdma_post_recv(sender, NULL, memory + 64, 128, mr[0]));
	assert_success(rdma_post_recv(full, NULL, memory + 192, 128, mr[1]));
	assert_success(rdma_post_recv(left, NULL, memory + 320, 128, mr[2]));
	strcpy(memory, "to full members");
	send_to(sender, ah, 0xffffff, memory, mr[0]);
	assert_int_equal(rdma_get_recv_comp(full, &wc), 1);
	assert_string_equal(memory + 192 + 40, "to full members");
	assert_silent(sender);
	assert_silent(left);

	/* Destroying an id leaves its groups: a QP that outlives it receives nothing more. */
	assert_success(rdma_post_recv(full, NULL, memory + 192, 128, mr[1]));
	qp = full->qp;
	cq = full->recv_cq;
	assert_success(rdma_destroy_id(full));
	send_to(sender, ah, 0xffffff, memory, mr[0]);
	assert_silent(left);
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
	send_cq = qp->send_cq;
	assert_int_equal(ibv_destroy_qp(qp), 0);
	destroy_cq(cq);
	destroy_cq(send_cq);
	assert_success(rdma_dereg_mr(mr[1]));
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_success(rdma_dereg_mr(mr[0]));
	assert_success(rdma_dereg_mr(mr[2]));
	drop(sender);
	drop(left);
	free(memory);
	rdma_destroy_event_channel(channel);
}

int main(void)
{
	inet_pton(AF_INET, "239.1.2.3", &group.sin_addr);
	return run_cases();
}
