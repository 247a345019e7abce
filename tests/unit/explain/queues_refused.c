/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each rule of explain/rules_queues.def is broken once: the record contains the call, the errno value, the rule and the
 * figures. The last test checks that every rule is covered.
 */
#include "test_case.h"

#include <fcntl.h>

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "verbs/queue/cqe.h"
#include "verbs/object/ops.h"

static struct hca *hca;
static struct ibv_context *context;
static struct ibv_pd *pd;
static bool seen[1000];

static int setup(void **state)
{
	struct ibv_device **list = softhca_ibv_get_device_list(NULL);

	(void)state;
	hca = hca_device(0);
	context = softhca_ibv_open_device(list[0]);
	softhca_ibv_free_device_list(list);
	pd = softhca_ibv_alloc_pd(context);
	return hca && pd ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return softhca_ibv_dealloc_pd(pd) || softhca_ibv_close_device(context);
}

/* Checks that the last record is of @call, which failed with @error by @rule, and that its text contains @figures. */
static void expect(const char *call, int error, enum explain_rule rule, const char *figures)
{
	struct explain_record record;
	char text[1000];

	assert_true(explain_previous(hca, 0, 0, &record));
	explain_render(hca_name(hca), &record, text, sizeof(text));
	if (record.rule != rule || !record.subject.call || strcmp(record.subject.call, call) != 0 ||
	    record.subject.error != error || !strstr(text, figures))
		fail_msg("expected %s, errno %d, rule %d, \"%s\"; the record says: %s", call, error, rule, figures,
			 text);
	seen[rule] = true;
}

/* ---- CQs ------------------------------------------------------------------------------------------------------ */

TEST(plain_cqs)
{
	struct ibv_context *other = softhca_ibv_open_device(context->device);
	struct ibv_comp_channel *foreign = softhca_ibv_create_comp_channel(other);

	assert_null(softhca_ibv_create_cq(context, 1, NULL, foreign, 0));
	assert_int_equal(errno, EBADF);
	expect("ibv_create_cq", EBADF, RULE_CQ_CHANNEL, "belongs to another context");
	assert_int_equal(foreign->refcnt, 0);
	assert_int_equal(softhca_ibv_destroy_comp_channel(foreign), 0);
	assert_int_equal(softhca_ibv_close_device(other), 0);
	assert_null(softhca_ibv_create_cq(context, -3, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	expect("ibv_create_cq", EINVAL, RULE_CQ_CQE, "-3 CQEs are requested; a CQ has 1 to 4194303");
	assert_null(softhca_ibv_create_cq(context, 1, NULL, NULL, -1));
	assert_int_equal(errno, EINVAL);
	expect("ibv_create_cq", EINVAL, RULE_CQ_COMP_VECTOR, "vector -1 does not exist");
}

static void refuse_ex(struct ibv_cq_init_attr_ex attr, int error, enum explain_rule rule, const char *figures)
{
	assert_null(softhca_ibv_create_cq_ex(context, &attr));
	assert_int_equal(errno, error);
	expect("ibv_create_cq_ex", error, rule, figures);
}

static void *no_memory(struct ibv_pd *domain, void *pd_context, size_t size, size_t alignment, uint64_t type)
{
	(void)domain;
	(void)pd_context;
	(void)size;
	(void)alignment;
	(void)type;
	return NULL;
}

TEST(extended_cqs)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = pd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
		.alloc = no_memory,
	};
	struct ibv_pd *domain = softhca_ibv_alloc_parent_domain(context, &attr);

	refuse_ex((struct ibv_cq_init_attr_ex){.cqe = 1, .comp_mask = 0x14}, EINVAL, RULE_CQ_COMP_MASK,
		  "is 0x14; the known bits are 0x3");
	refuse_ex((struct ibv_cq_init_attr_ex){.cqe = 1, .comp_mask = 1, .flags = 9}, EINVAL, RULE_CQ_FLAGS,
		  "are 0x9; the known flags are 0x3");
	refuse_ex((struct ibv_cq_init_attr_ex){.cqe = 1, .wc_flags = 0x1001}, EOPNOTSUPP, RULE_CQ_WC_FLAGS,
		  "wc_flags 0x1001");
	refuse_ex((struct ibv_cq_init_attr_ex){.cqe = 1, .comp_mask = 2, .parent_domain = pd}, EINVAL,
		  RULE_CQ_PARENT_DOMAIN, "not a parent domain");
	refuse_ex((struct ibv_cq_init_attr_ex){.cqe = 100, .comp_mask = 2, .parent_domain = domain}, ENOMEM,
		  RULE_QUEUE_MEMORY, "a ring of 8192 bytes");
	assert_int_equal(softhca_ibv_dealloc_pd(domain), 0);
}

static void refuse_dv(struct mlx5dv_cq_init_attr dv, enum explain_rule rule, const char *figures)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 1};

	assert_null(softhca_mlx5dv_create_cq(context, &attr, &dv));
	assert_int_equal(errno, EINVAL);
	expect("mlx5dv_create_cq", EINVAL, rule, figures);
}

TEST(dv_cqs)
{
	refuse_dv((struct mlx5dv_cq_init_attr){.comp_mask = 4, .cqe_size = 100}, RULE_CQ_CQE_SIZE, "CQEs of 100 bytes");
	refuse_dv((struct mlx5dv_cq_init_attr){.comp_mask = 9}, RULE_CQ_DV_COMP_MASK, "is 0x9; the known bits are 0x7");
	refuse_dv((struct mlx5dv_cq_init_attr){.comp_mask = 2, .flags = 6}, RULE_CQ_DV_FLAGS,
		  "are 0x6; the known flags are 0x1");
	refuse_dv((struct mlx5dv_cq_init_attr){.comp_mask = 2, .flags = 1}, RULE_CQ_PADDING, "CQEs of 64 bytes");
	refuse_dv((struct mlx5dv_cq_init_attr){.comp_mask = 1, .cqe_comp_res_format = 9}, RULE_CQ_COMPRESSION,
		  "cqe_comp_res_format is 0x9");
}

TEST(use_of_cqs)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 7};
	struct ibv_poll_cq_attr poll_attr = {.comp_mask = 8};
	struct ibv_modify_cq_attr modify = {.attr_mask = 6};
	struct ibv_cq_ex *ex = softhca_ibv_create_cq_ex(context, &attr);
	struct ibv_cq *cq = ibv_cq_ex_to_cq(ex);
	struct user_cq *user = to_user_cq(cq);
	struct mlx5_cqe64 *cqe = cqe_at(user->buffer, user->cqe_count, user->cqe_size, 0);
	struct ibv_wc wc;

	assert_int_equal(ibv_start_poll(ex, &poll_attr), EINVAL);
	expect("ibv_start_poll", EINVAL, RULE_POLL_COMP_MASK, "is 0x8;");
	assert_int_equal(softhca_ibv_modify_cq(cq, &modify), EINVAL);
	expect("ibv_modify_cq", EINVAL, RULE_CQ_MODIFY_MASK, "is 0x6;");
	modify = (struct ibv_modify_cq_attr){.attr_mask = 1, .moderate.cq_period = 5000};
	assert_int_equal(softhca_ibv_modify_cq(cq, &modify), EINVAL);
	expect("ibv_modify_cq", EINVAL, RULE_CQ_PERIOD, "of 5000 microseconds is requested; at most 4095");

	cqe->sop_drop_qpn = htobe32(0xabc);
	cqe->srqn_uidx = htobe32(0xdef);
	cqe->wqe_counter = htobe16(77);
	cqe->op_own = MLX5_CQE_RESP_SEND << 4;
	assert_int_equal(softhca_ibv_poll_cq(cq, 1, &wc), -2);
	expect("ibv_poll_cq", 0, RULE_CQE_OF_NO_QP, "opcode 2 for QP 0xabc, user index 0xdef, counter 77");
	cqe++;
	cqe->imm_inval_pkey = htobe32(0x54321 << 8 | 0xff);
	cqe->op_own = MLX5_CQE_SIG_ERR << 4;
	((struct settings *)hca_settings(hca_of_context(context)))->profile = PROFILE_CONNECTX;
	assert_int_equal(softhca_ibv_poll_cq(cq, 1, &wc), -2);
	expect("ibv_poll_cq", 0, RULE_SIGNATURE_ERROR_OF_NO_KEY, "of key index 0x54321,");
	((struct settings *)hca_settings(hca_of_context(context)))->profile = PROFILE_MAN;
	assert_int_equal(softhca_ibv_destroy_cq(cq), 0);
}

/* ---- SRQs ----------------------------------------------------------------------------------------------------- */

static void refuse_srq(uint32_t max_wr, uint32_t max_sge, enum explain_rule rule, const char *figures)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = max_wr, .max_sge = max_sge}};

	assert_null(softhca_ibv_create_srq(pd, &attr));
	assert_int_equal(errno, EINVAL);
	expect("ibv_create_srq", EINVAL, rule, figures);
}

static void refuse_srq_ex(uint32_t comp_mask, enum ibv_srq_type type, int error, enum explain_rule rule,
			  const char *figures)
{
	struct ibv_srq_init_attr_ex attr = {.comp_mask = comp_mask, .srq_type = type, .pd = pd};

	assert_null(softhca_ibv_create_srq_ex(context, &attr));
	assert_int_equal(errno, error);
	expect("ibv_create_srq_ex", error, rule, figures);
}

TEST(creation_of_srqs)
{
	refuse_srq(40000, 1, RULE_SRQ_MAX_WR, "for 40000 WRs is requested; at most 32767");
	refuse_srq(1, 32, RULE_SRQ_MAX_SGE, "with 32 SGEs per WR is requested; at most 31");
	refuse_srq_ex(0x42, 0, EOPNOTSUPP, RULE_SRQ_COMP_MASK, "is 0x42; the known bits are 0x1f");
	refuse_srq_ex(3, IBV_SRQT_TM, EOPNOTSUPP, RULE_SRQ_TYPE, "srq_type 2 is");
	refuse_srq_ex(1, 0, EINVAL, RULE_SRQ_PD, "comp_mask 0x1 does not give");
}

TEST(xrc_srqs)
{
	struct ibv_context *other = softhca_ibv_open_device(context->device);
	struct ibv_xrcd_init_attr own = {.comp_mask = 3, .fd = -1, .oflags = O_CREAT};
	struct ibv_xrcd *xrcd = softhca_ibv_open_xrcd(context, &own), *foreign = softhca_ibv_open_xrcd(other, &own);
	struct ibv_cq *foreign_cq = softhca_ibv_create_cq(other, 1, NULL, NULL, 0);
	struct ibv_cq *cq = softhca_ibv_create_cq(context, 1, NULL, NULL, 0);
	struct ibv_srq_init_attr_ex attr = {.pd = pd, .srq_type = IBV_SRQT_XRC, .comp_mask = 0xf};
	const struct {
		uint32_t comp_mask;
		struct ibv_xrcd *xrcd;
		struct ibv_cq *cq;
		enum explain_rule rule;
		const char *figures;
	} rows[] = {
		{0xb, xrcd, cq, RULE_SRQ_XRCD, "comp_mask 0xb does not give"},
		{0xf, NULL, cq, RULE_SRQ_XRCD, "XRC domain"},
		{0xf, foreign, cq, RULE_OBJECT_FOREIGN, "the XRCD at"},
		{0x7, xrcd, cq, RULE_SRQ_CQ, "comp_mask 0x7 does not give"},
		{0xf, xrcd, NULL, RULE_SRQ_CQ, "CQ of its context"},
		{0xf, xrcd, foreign_cq, RULE_OBJECT_FOREIGN, "the CQ at"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int error = rows[i].rule == RULE_OBJECT_FOREIGN ? ENOENT : EINVAL;

		attr.comp_mask = rows[i].comp_mask;
		attr.xrcd = rows[i].xrcd;
		attr.cq = rows[i].cq;
		errno = 0;
		assert_null(softhca_ibv_create_srq_ex(context, &attr));
		assert_int_equal(errno, error);
		expect("ibv_create_srq_ex", error, rows[i].rule, rows[i].figures);
	}
	assert_int_equal(softhca_ibv_destroy_cq(cq) | softhca_ibv_destroy_cq(foreign_cq), 0);
	assert_int_equal(softhca_ibv_close_xrcd(xrcd) | softhca_ibv_close_xrcd(foreign), 0);
	assert_int_equal(softhca_ibv_close_device(other), 0);
}

static void refuse_open(struct ibv_qp_open_attr attr, int error, enum explain_rule rule, const char *figures)
{
	errno = 0;
	assert_null(softhca_ibv_open_qp(context, &attr));
	assert_int_equal(errno, error);
	expect("ibv_open_qp", error, rule, figures);
}

TEST(xrc_qps)
{
	struct ibv_context *other = softhca_ibv_open_device(context->device);
	struct ibv_xrcd_init_attr own = {.comp_mask = 3, .fd = -1, .oflags = O_CREAT};
	struct ibv_xrcd *xrcd = softhca_ibv_open_xrcd(context, &own), *foreign = softhca_ibv_open_xrcd(other, &own);
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV};
	struct ibv_send_wr send = {0}, *bad_send;
	struct ibv_recv_wr receive = {0}, *bad_receive;
	struct ibv_qp *qp;

	errno = 0;
	assert_null(softhca_ibv_create_qp_ex(context, &attr));
	assert_int_equal(errno, EINVAL);
	expect("ibv_create_qp_ex", EINVAL, RULE_QP_XRCD, "comp_mask 0x0 does not give");
	attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
	attr.xrcd = foreign;
	errno = 0;
	assert_null(softhca_ibv_create_qp_ex(context, &attr));
	assert_int_equal(errno, ENOENT);
	expect("ibv_create_qp_ex", ENOENT, RULE_OBJECT_FOREIGN, "the XRCD at");
	attr.xrcd = NULL;
	errno = 0;
	assert_null(softhca_ibv_create_qp_ex(context, &attr));
	assert_int_equal(errno, EINVAL);
	expect("ibv_create_qp_ex", EINVAL, RULE_QP_XRCD, "comp_mask 0x2 does not give");

	attr.xrcd = xrcd;
	qp = softhca_ibv_create_qp_ex(context, &attr);
	assert_non_null(qp);
	assert_int_equal(qp->context->ops.post_send(qp, &send, &bad_send), ENOMEM);
	expect("ibv_post_send", ENOMEM, RULE_QP_NO_QUEUE, "type XRC_RECV does not have the queue");
	assert_int_equal(qp->context->ops.post_recv(qp, &receive, &bad_receive), ENOMEM);
	expect("ibv_post_recv", ENOMEM, RULE_QP_NO_QUEUE, "type XRC_RECV does not have the queue");
	assert_int_equal(softhca_ibv_destroy_qp(qp), 0);

	refuse_open((struct ibv_qp_open_attr){0x1b, 0, xrcd, NULL, 9}, EOPNOTSUPP, RULE_QP_OPEN_MASK,
		    "is 0x1b; it must have 0xb, and may have 0xf");
	refuse_open((struct ibv_qp_open_attr){0x3, 0, xrcd, NULL, 9}, EINVAL, RULE_QP_OPEN_MASK, "is 0x3; it must");
	refuse_open((struct ibv_qp_open_attr){0xb, 5, foreign, NULL, 9}, ENOENT, RULE_OBJECT_FOREIGN, "the XRCD at");
	refuse_open((struct ibv_qp_open_attr){0xb, 5, NULL, NULL, 9}, EINVAL, RULE_QP_OPEN_XRCD, "0x5");
	refuse_open((struct ibv_qp_open_attr){0xb, 5, xrcd, NULL, 9}, EINVAL, RULE_QP_OPEN_NONE, "XRC_SEND");
	refuse_open((struct ibv_qp_open_attr){0xb, 5, xrcd, NULL, 10}, EINVAL, RULE_QP_OPEN_NONE,
		    "0x5 of type XRC_RECV");
	assert_int_equal(softhca_ibv_close_xrcd(xrcd) | softhca_ibv_close_xrcd(foreign), 0);
	assert_int_equal(softhca_ibv_close_device(other), 0);
}

/* Makes a QP that uses both queues; there is no traffic. */
static struct ibv_qp *make_qp(struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.cap = {.max_send_wr = 1, .max_send_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = softhca_ibv_create_qp(pd, &attr);

	assert_non_null(qp);
	return qp;
}

static void refuse_modify(struct ibv_srq *srq, struct ibv_srq_attr attr, int mask, enum explain_rule rule,
			  const char *figures)
{
	assert_int_equal(softhca_ibv_modify_srq(srq, &attr, mask), EINVAL);
	expect("ibv_modify_srq", EINVAL, rule, figures);
}

TEST(use_of_srqs)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 3, .max_sge = 1}};
	struct ibv_srq *srq = softhca_ibv_create_srq(pd, &attr);
	struct ibv_recv_wr wr = {.wr_id = 0x99, .num_sge = -1}, *bad;

	assert_int_equal(softhca_ibv_post_srq_recv(srq, &wr, &bad), EINVAL);
	expect("ibv_post_srq_recv", EINVAL, RULE_SRQ_SGES, "has -1 SGEs; the SRQ takes 0 to 1 (wr_id 0x99)");
	wr.num_sge = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(softhca_ibv_post_srq_recv(srq, &wr, &bad), 0);
	assert_int_equal(softhca_ibv_post_srq_recv(srq, &wr, &bad), ENOMEM);
	expect("ibv_post_srq_recv", ENOMEM, RULE_SRQ_FULL, "3 receives are posted and not yet polled");
	refuse_modify(srq, (struct ibv_srq_attr){0}, 12, RULE_SRQ_MODIFY_MASK, "is 0xc;");
	refuse_modify(srq, (struct ibv_srq_attr){.max_wr = 2}, IBV_SRQ_MAX_WR, RULE_SRQ_SHRINK,
		      "to become 2, but 3 receives");
	refuse_modify(srq, (struct ibv_srq_attr){.srq_limit = 4}, IBV_SRQ_LIMIT, RULE_SRQ_LIMIT,
		      "srq_limit 4 exceeds max_wr 3");
	assert_int_equal(softhca_ibv_destroy_srq(srq), 0);
}

TEST(queues_in_use)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 3, .max_sge = 1}};
	struct ibv_srq *srq = softhca_ibv_create_srq(pd, &attr);
	struct ibv_cq *cq = softhca_ibv_create_cq(context, 15, NULL, NULL, 0);
	struct ibv_qp *qp = make_qp(cq, srq);

	assert_int_equal(softhca_ibv_destroy_srq(srq), EBUSY);
	expect("ibv_destroy_srq", EBUSY, RULE_SRQ_IN_USE, "QPs still use SRQ 0x");
	assert_int_equal(softhca_ibv_destroy_cq(cq), EBUSY);
	expect("ibv_destroy_cq", EBUSY, RULE_CQ_IN_USE, "QPs or SRQs still use CQ 0x");
	assert_int_equal(softhca_ibv_destroy_qp(qp), 0);
	assert_int_equal(softhca_ibv_destroy_srq(srq), 0);
	assert_int_equal(softhca_ibv_destroy_cq(cq), 0);
}

/* Receives that are flushed when posted: completions without a peer. */
TEST(qp_in_a_group)
{
	struct ibv_cq *cq = softhca_ibv_create_cq(context, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD};
	const union ibv_gid group = {.raw = {0xff, 0x0e}};
	struct ibv_qp *qp = softhca_ibv_create_qp(pd, &attr);

	assert_int_equal(softhca_ibv_attach_mcast(qp, &group, 0), 0);
	assert_int_equal(softhca_ibv_destroy_qp(qp), EBUSY);
	expect("ibv_destroy_qp", EBUSY, RULE_QP_IN_GROUP, "is attached to multicast groups");
	assert_int_equal(softhca_ibv_detach_mcast(qp, &group, 0), 0);
	assert_int_equal(softhca_ibv_destroy_qp(qp), 0);
	assert_int_equal(softhca_ibv_destroy_cq(cq), 0);
}

TEST(resize_below_unpolled_cqes)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_cq *cq = softhca_ibv_create_cq(context, 15, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_recv_wr = 8, .max_recv_sge = 1},
		.qp_type = IBV_QPT_UC,
	};
	struct ibv_qp *qp = softhca_ibv_create_qp(pd, &init);
	struct ibv_recv_wr wr = {0}, *bad;

	assert_int_equal(softhca_ibv_modify_qp(qp, &attr,
					       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
			 0);
	attr.qp_state = IBV_QPS_ERR;
	assert_int_equal(softhca_ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(softhca_ibv_post_recv(qp, &wr, &bad), 0);
	assert_int_equal(softhca_ibv_resize_cq(cq, 3), EINVAL);
	expect("ibv_resize_cq", EINVAL, RULE_CQ_UNPOLLED, "in a ring of 3 CQEs");
	assert_int_equal(softhca_ibv_destroy_qp(qp), 0);
	assert_int_equal(softhca_ibv_destroy_cq(cq), 0);
}

/* A DCT has its number, and responds, from RTR on (mlx5dv_create_qp(3)). */
TEST(query_of_a_dct)
{
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_cq *cq = softhca_ibv_create_cq(context, 1, NULL, NULL, 0);
	struct ibv_srq *srq = softhca_ibv_create_srq(pd, &srq_attr);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr.dc_type = MLX5DV_DCTYPE_DCT,
	};
	struct ibv_qp *dct = softhca_mlx5dv_create_qp(context, &attr, &dv);
	struct ibv_qp_init_attr created;
	struct ibv_qp_attr got;

	assert_non_null(dct);
	assert_int_equal(softhca_ibv_query_qp(dct, &got, IBV_QP_STATE, &created), EINVAL);
	expect("ibv_query_qp", EINVAL, RULE_QP_QUERY_DCT, "a DCT in state RESET was queried for STATE");
	assert_int_equal(softhca_ibv_destroy_qp(dct), 0);
	assert_int_equal(softhca_ibv_destroy_srq(srq), 0);
	assert_int_equal(softhca_ibv_destroy_cq(cq), 0);
}

TEST(no_rule_was_forgotten)
{
#define RULE(number, name, text, source, advice)                                                                       \
	if (!seen[RULE_##name])                                                                                        \
		fail_msg("nothing in this file breaks rule %d, %s", number, #name);
#include "explain/rules_queues.def"
#undef RULE
}

int main(void)
{
	return run_cases(.group_setup = setup, .group_teardown = teardown);
}
