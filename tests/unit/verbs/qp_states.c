/* SPDX-License-Identifier: BSD-2-Clause */
/* Effects of a state change (mlx5-formats 4.2): limits of posting, RESET; queries and options of a QP. */
#include "../support/qp_fixture.h"

static int move(struct user_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	return softhca_ibv_modify_qp(&qp->base, &attr, IBV_QP_STATE);
}

static int complete(struct user_qp *qp)
{
	ibv_wr_start(&qp->ex);
	return ibv_wr_complete(&qp->ex);
}

TEST(limits_of_states)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_RC);
	struct user_qp *qp;
	struct ibv_recv_wr *bad_recv, recv = {.num_sge = 0};
	struct ibv_send_wr *bad_send, send = {.opcode = IBV_WR_SEND};

	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	qp = create(&attr, NULL);
	assert_int_equal(softhca_ibv_post_recv(&qp->base, &recv, &bad_recv), EINVAL);
	assert_int_equal(softhca_ibv_post_send(&qp->base, &send, &bad_send), ENOMEM);
	assert_int_equal(complete(qp), EINVAL);

	assert_int_equal(move(qp, IBV_QPS_INIT), 0);
	assert_int_equal(qp->base.state, IBV_QPS_INIT);
	assert_int_equal(softhca_ibv_post_recv(&qp->base, &recv, &bad_recv), 0);
	assert_int_equal(move(qp, IBV_QPS_RTR), 0);
	assert_int_equal(softhca_ibv_post_send(&qp->base, &send, &bad_send), ENOMEM);
	assert_int_equal(complete(qp), EINVAL);

	assert_int_equal(move(qp, IBV_QPS_RTS), 0);
	assert_int_equal(softhca_ibv_post_send(&qp->base, &send, &bad_send), 0);
	assert_int_equal(complete(qp), 0);
	assert_int_equal(move(qp, IBV_QPS_SQD), 0);
	assert_int_equal(softhca_ibv_post_send(&qp->base, &send, &bad_send), 0);
	assert_int_equal(move(qp, IBV_QPS_ERR), 0);
	assert_int_equal(softhca_ibv_post_send(&qp->base, &send, &bad_send), 0);
	assert_int_equal(softhca_ibv_post_recv(&qp->base, &recv, &bad_recv), 0);
	assert_int_equal(complete(qp), 0);

	/* RESET clears all state, after the device did. */
	around.log[0] = 0;
	sq_set_fence(&qp->sq, 0x20);
	qp->sq.oversized = true;
	assert_int_equal(move(qp, IBV_QPS_RESET), 0);
	assert_string_equal(around.log, "modify purge ");
	assert_int_equal(qp->sq.head | qp->sq.tail | qp->sq.cur_post | qp->sq.fence_cache | qp->sq.oversized, 0);
	assert_int_equal(qp->rq.head | qp->rq.tail, 0);
	assert_int_equal(qp->dbrec[0] | qp->dbrec[1], 0);
	assert_int_equal(softhca_ibv_post_recv(&qp->base, &recv, &bad_recv), EINVAL);
	assert_int_equal(softhca_ibv_post_send(&qp->base, &send, &bad_send), ENOMEM);
	assert_int_equal(complete(qp), EINVAL);
	destroy(qp);
}

/* A refused change has no effect. */
TEST(refused_change)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_RC);
	struct user_qp *qp = create(&attr, NULL);
	struct ibv_qp_attr change = {.qp_state = IBV_QPS_RTS};

	around.modify_result = -EINVAL;
	assert_int_equal(move(qp, IBV_QPS_RTS), EINVAL);
	assert_int_equal(qp->base.state, IBV_QPS_RESET);
	assert_int_equal(qp->sq.max_gs, -1);
	around.modify_result = 0;
	around.log[0] = 0;
	assert_int_equal(softhca_ibv_modify_qp(&qp->base, &change, 1 << 26), EOPNOTSUPP);
	assert_int_equal(device.rule, RULE_QP_ATTR_MASK);
	assert_string_equal(around.log, "");
	/* Without IBV_QP_STATE the state stays, whatever attr contains. */
	assert_int_equal(softhca_ibv_modify_qp(&qp->base, &change, IBV_QP_QKEY), 0);
	assert_int_equal(qp->base.state, IBV_QPS_RESET);
	assert_int_equal(qp->sq.max_gs, -1);
	destroy(qp);
}

TEST(query)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_UD);
	struct user_qp *qp = create(&attr, NULL);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr now;

	around.state = IBV_QPS_ERR;
	assert_int_equal(softhca_ibv_query_qp(&qp->base, &now, IBV_QP_CAP, &init), 0);
	assert_int_equal(qp->base.state, IBV_QPS_RESET); /* not requested */
	assert_int_equal(now.qkey, 0x1111);
	assert_memory_equal(&now.cap, &attr.cap, sizeof(attr.cap));
	assert_memory_equal(&init.cap, &attr.cap, sizeof(attr.cap));
	assert_ptr_equal(init.qp_context, &around);
	assert_ptr_equal(init.send_cq, &send_cq.base);
	assert_ptr_equal(init.recv_cq, &recv_cq.base);
	assert_int_equal(init.qp_type, IBV_QPT_UD);
	assert_int_equal(softhca_ibv_query_qp(&qp->base, &now, IBV_QP_STATE, &init), 0);
	assert_int_equal(qp->base.state, IBV_QPS_ERR);
	assert_int_equal(softhca_ibv_query_qp(&qp->base, &now, IBV_QP_RATE_LIMIT, &init), EOPNOTSUPP);
	/* Older programs have a structure without the last member, followed by other data. */
	memset(&now, 0xa5, sizeof(now));
	assert_int_equal(softhca_ibv_query_qp(&qp->base, &now, IBV_QP_CAP, &init), 0);
	for (size_t i = offsetof(struct ibv_qp_attr, rate_limit); i < sizeof(now); i++)
		assert_int_equal(((uint8_t *)&now)[i], 0xa5);
	assert_int_equal(softhca_ibv_query_qp_data_in_order(&qp->base, IBV_WR_SEND, 0), 0);
	destroy(qp);
}

TEST(options)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_RC);
	struct user_qp *qp = create(&attr, NULL);
	struct ibv_qp_rate_limit_attr rate = {.rate_limit = 1000};
	struct ibv_ece ece = {.options = 5};

	assert_int_equal(softhca_ibv_set_ece(&qp->base, &ece), EOPNOTSUPP);
	assert_int_equal(device.rule, RULE_ECE_VENDOR);
	ece.vendor_id = 0x8086;
	assert_int_equal(softhca_ibv_set_ece(&qp->base, &ece), EINVAL);
	assert_int_equal(device.figures[0], 0x8086);
	assert_int_equal(device.figures[1], 0x15b3);
	ece.vendor_id = 0x15b3;
	ece.comp_mask = 1;
	assert_int_equal(softhca_ibv_set_ece(&qp->base, &ece), EINVAL);
	assert_int_equal(device.rule, RULE_ECE_COMP_MASK);
	ece.comp_mask = 0;
	assert_int_equal(softhca_ibv_set_ece(&qp->base, &ece), 0);
	assert_int_equal(ece.options, 0);
	memset(&ece, 0xff, sizeof(ece));
	assert_int_equal(softhca_ibv_query_ece(&qp->base, &ece), 0);
	assert_int_equal(ece.vendor_id, 0x15b3);
	assert_int_equal(ece.options | ece.comp_mask, 0);
	assert_int_equal(softhca_ibv_modify_qp_rate_limit(&qp->base, &rate), EOPNOTSUPP);
	assert_int_equal(device.rule, RULE_QP_RATE_LIMIT);
	destroy(qp);
}

int main(void)
{
	return run_cases(.setup = reset_all);
}
