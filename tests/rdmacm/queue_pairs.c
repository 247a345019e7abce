/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_create_qp(3), rdma_create_qp_ex(), rdma_destroy_qp(3), rdma_create_srq(3), rdma_create_srq_ex(), rdma_destroy_srq(3),
 * rdma_init_qp_attr(3). Expected values: rdma-cm 2.5.
 */
#include "support.h"

static struct rdma_event_channel *channel;

static struct ibv_qp_init_attr attributes(enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}, .qp_type = type};
}

static enum ibv_qp_state state_of(struct ibv_qp *qp, uint32_t *qkey)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_QKEY, &init), 0);
	*qkey = attr.qkey;
	return attr.qp_state;
}

static struct rdma_cm_id *resolved(enum rdma_port_space space)
{
	struct rdma_cm_id *id = new_id(channel, space);

	resolve_address(id, 7471);
	return id;
}

TEST(test_library_cqs)
{
	struct ibv_qp_init_attr attr = attributes(IBV_QPT_RC);
	struct rdma_cm_id *id = resolved(RDMA_PS_TCP);
	uint32_t qkey;

	assert_success(rdma_create_qp(id, NULL, &attr));
	assert_ptr_equal(id->qp->pd, id->pd);
	assert_ptr_equal(id->send_cq->cq_context, id);
	assert_ptr_equal(id->recv_cq->cq_context, id);
	assert_ptr_equal(id->send_cq->channel, id->send_cq_channel);
	assert_ptr_equal(id->recv_cq->channel, id->recv_cq_channel);
	assert_ptr_not_equal(id->send_cq, id->recv_cq);
	assert_ptr_equal(attr.send_cq, id->send_cq);
	assert_int_equal(state_of(id->qp, &qkey), IBV_QPS_INIT);
	assert_errno(rdma_create_qp(id, NULL, &attr), EINVAL);
	rdma_destroy_qp(id);
	assert_null(id->qp);
	assert_null(id->send_cq);
	assert_null(id->recv_cq);
	assert_null(id->send_cq_channel);
	/* No receives, so no CQ for them. */
	attr = attributes(IBV_QPT_UD);
	assert_success(rdma_destroy_id(id));
	id = resolved(RDMA_PS_UDP);
	assert_success(rdma_create_qp(id, NULL, &attr));
	assert_int_equal(state_of(id->qp, &qkey), IBV_QPS_RTS);
	assert_int_equal(qkey, RDMA_UDP_QKEY);
	rdma_destroy_qp(id);
	assert_success(rdma_destroy_id(id));
}

TEST(test_own_cqs)
{
	struct rdma_cm_id *id = resolved(RDMA_PS_TCP);
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd};

	assert_non_null(pd);
	assert_non_null(cq);
	attr.cap = attributes(IBV_QPT_RC).cap;
	assert_success(rdma_create_qp_ex(id, &attr));
	assert_ptr_equal(id->pd, pd);
	assert_null(id->send_cq);
	assert_ptr_equal(id->qp->send_cq, cq);
	rdma_destroy_qp(id);
	/* CQs of the program are kept. */
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_success(rdma_destroy_id(id));
}

TEST(test_refused)
{
	struct ibv_qp_init_attr attr = attributes(IBV_QPT_RC);
	struct rdma_cm_id *unbound = new_id(channel, RDMA_PS_TCP), *id = resolved(RDMA_PS_TCP);
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *foreign = ibv_open_device(list[0]);
	struct ibv_qp_attr to_init = {.qp_state = IBV_QPS_INIT};
	struct ibv_pd *pd = ibv_alloc_pd(foreign);
	int mask;

	assert_errno(rdma_create_qp(unbound, NULL, &attr), EINVAL);
	assert_errno(rdma_init_qp_attr(unbound, &to_init, &mask), EINVAL);
	/* The library uses a context of its own. */
	assert_ptr_not_equal(foreign, id->verbs);
	assert_errno(rdma_create_qp(id, pd, &attr), EINVAL);
	/* A failure leaves no CQs. */
	attr.cap.max_send_sge = 10000;
	assert_errno(rdma_create_qp(id, NULL, &attr), EINVAL);
	assert_null(id->send_cq);
	assert_null(id->qp);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(foreign), 0);
	ibv_free_device_list(list);
	assert_success(rdma_destroy_id(id));
	assert_success(rdma_destroy_id(unbound));
}

TEST(test_init_attributes)
{
	struct rdma_cm_id *id = resolved(RDMA_PS_TCP), *udp = resolved(RDMA_PS_UDP);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	int mask;

	assert_success(rdma_init_qp_attr(id, &attr, &mask));
	assert_int_equal(mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(attr.qp_access_flags, 0);
	assert_success(rdma_init_qp_attr(udp, &attr, &mask));
	assert_int_equal(mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	assert_int_equal(attr.qkey, RDMA_UDP_QKEY);
	assert_success(rdma_destroy_id(id));
	assert_success(rdma_destroy_id(udp));
}

TEST(test_srq)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_srq_init_attr_ex xrc = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_qp_init_attr qp = attributes(IBV_QPT_RC);
	struct rdma_cm_id *id = resolved(RDMA_PS_TCP), *unbound = new_id(channel, RDMA_PS_TCP);
	uint32_t number;

	assert_errno(rdma_create_srq(unbound, NULL, &attr), EINVAL);
	assert_success(rdma_create_srq(id, NULL, &attr));
	assert_errno(rdma_create_srq(id, NULL, &attr), EINVAL);
	assert_ptr_equal(id->srq->pd, id->pd);
	/* A QP of the id uses it. */
	assert_success(rdma_create_qp(id, NULL, &qp));
	assert_ptr_equal(id->qp->srq, id->srq);
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	assert_null(id->srq);
	/* XRC: with a CQ and a domain of the library. */
	id->qp_type = IBV_QPT_XRC_RECV;
	assert_success(rdma_create_srq_ex(id, &xrc));
	assert_non_null(id->recv_cq);
	assert_int_equal(ibv_get_srq_num(id->srq, &number), 0);
	rdma_destroy_srq(id);
	assert_null(id->recv_cq);
	assert_success(rdma_destroy_id(id));
	assert_success(rdma_destroy_id(unbound));
}

/* Some programs (fio, rping) destroy the QP without the id, and continue. */
TEST(test_qp_destroyed_by_program)
{
	struct ends ends;
	struct ibv_qp *qp;

	begin(&ends, RDMA_PS_TCP);
	establish(&ends);
	qp = ends.client->qp;
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_success(rdma_disconnect(ends.client));
	expect_event(ends.server_channel, RDMA_CM_EVENT_DISCONNECTED);
	assert_success(rdma_disconnect(ends.server));
	expect_event(ends.client_channel, RDMA_CM_EVENT_DISCONNECTED);
	ends.client->qp = NULL;
	end(&ends);
}

/* Later calls never read freed memory: they fail, and the peer is not left waiting. */
TEST(test_dangling_qp)
{
	struct ibv_qp_init_attr attr = attributes(IBV_QPT_RC);
	struct rdma_conn_param param = {.retry_count = 7};
	struct rdma_cm_event *event;
	struct ends ends;

	begin(&ends, RDMA_PS_TCP);
	assert_int_equal(ibv_destroy_qp(ends.client->qp), 0);
	assert_errno(rdma_connect(ends.client, &param), EINVAL);
	assert_errno(rdma_create_qp(ends.client, NULL, &attr), EINVAL);
	/* Its CQs still have to be freed. */
	rdma_destroy_qp(ends.client);
	assert_null(ends.client->qp);
	assert_null(ends.client->send_cq);
	new_qp(ends.client);
	assert_success(rdma_connect(ends.client, &param));
	event = next_event(ends.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ends.server = event->id;
	assert_success(rdma_ack_cm_event(event));
	new_qp(ends.server);
	assert_int_equal(ibv_destroy_qp(ends.server->qp), 0);
	assert_errno(rdma_accept(ends.server, &param), EINVAL);
	rdma_destroy_qp(ends.server);
	new_qp(ends.server);
	assert_success(rdma_accept(ends.server, &param));
	/* Destroyed before the program sees the answer. */
	assert_true(has_event(ends.client_channel, 10000));
	assert_int_equal(ibv_destroy_qp(ends.client->qp), 0);
	assert_errno(rdma_establish(ends.client), EINVAL);
	event = next_event(ends.client_channel, RDMA_CM_EVENT_CONNECT_ERROR);
	assert_int_equal(event->status, -1);
	assert_success(rdma_ack_cm_event(event));
	event = next_event(ends.server_channel, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(event->status, 28);
	assert_success(rdma_ack_cm_event(event));
	/* The program gets no more events about it. */
	assert_false(has_event(ends.client_channel, 50));
	end(&ends);

	begin(&ends, RDMA_PS_UDP);
	assert_success(rdma_connect(ends.client, &param));
	event = next_event(ends.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ends.server = event->id;
	assert_success(rdma_ack_cm_event(event));
	new_qp(ends.server);
	assert_int_equal(ibv_destroy_qp(ends.server->qp), 0);
	assert_errno(rdma_accept(ends.server, &param), EINVAL);
	end(&ends);
}

/* Calls return at least the requested capabilities, equal to those of the object. */
TEST(test_capabilities)
{
	struct ibv_qp_init_attr asked = attributes(IBV_QPT_RC), init;
	struct ibv_srq_init_attr srq_asked = {.attr = {.max_wr = 5, .max_sge = 1}};
	struct rdma_cm_id *id = resolved(RDMA_PS_TCP);
	struct ibv_srq_attr srq;
	struct ibv_qp_attr attr;

	asked.cap.max_send_wr = 5;
	asked.cap.max_recv_wr = 5;
	asked.cap.max_inline_data = 1;
	assert_success(rdma_create_qp(id, NULL, &asked));
	assert_int_equal(ibv_query_qp(id->qp, &attr, IBV_QP_CAP, &init), 0);
	assert_memory_equal(&asked.cap, &init.cap, sizeof(init.cap));
	assert_in_range(asked.cap.max_send_wr, 5, UINT32_MAX);
	/* Queue sizes are powers of two (mlx5). */
	assert_int_equal(asked.cap.max_recv_wr, 8);
	assert_in_range(asked.cap.max_inline_data, 1, UINT32_MAX);
	rdma_destroy_qp(id);

	assert_success(rdma_create_srq(id, NULL, &srq_asked));
	assert_int_equal(ibv_query_srq(id->srq, &srq), 0);
	assert_int_equal(srq_asked.attr.max_wr, srq.max_wr);
	assert_int_equal(srq_asked.attr.max_sge, srq.max_sge);
	assert_in_range(srq.max_wr, 5, UINT32_MAX);
	/* One entry of an SRQ stays free: 7 of 8 can be posted (mlx5). */
	assert_int_equal(srq_asked.attr.max_wr, 7);
	rdma_destroy_srq(id);
	assert_success(rdma_destroy_id(id));
}

int main(void)
{
	int result;

	channel = rdma_create_event_channel();
	if (!channel)
		return 1;
	result = run_cases();
	rdma_destroy_event_channel(channel);
	return result;
}
