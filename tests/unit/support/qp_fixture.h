/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's QP. This file replaces everything around it: device, memory, user index, CQs. Include in one file per
 * program, as posting_fixture.h.
 */
#ifndef TESTS_UNIT_QP_FIXTURE_H
#define TESTS_UNIT_QP_FIXTURE_H

#include "posting_fixture.h"

#include "abi/entry_points.h"
#include "verbs/object/events.h"

/* ---- replacements ---- */

static struct {
	char log[256]; /* one word per call */
	int fail_at;   /* number of the fallible call that fails; 0: none */
	int calls;     /* number of fallible calls so far */
	struct hca_qp_attr created;
	int modify_result, destroy_result;
	enum ibv_qp_state state;
	bool single_threaded;
} around;

static void note(const char *word)
{
	strcat(around.log, word);
	strcat(around.log, " ");
}

static bool fails(const char *word)
{
	if (++around.calls == around.fail_at)
		return true;
	note(word);
	return false;
}

void *ring_alloc(struct user_pd *pd, size_t size, uint64_t type)
{
	(void)pd;
	assert_int_equal(type, MLX5DV_RES_TYPE_QP);
	assert_int_equal(size % 64, 0);
	if (fails("ring")) {
		errno = ENOMEM;
		return NULL;
	}
	return aligned_alloc(64, size);
}

void ring_free(struct user_pd *pd, void *memory, size_t size, uint64_t type)
{
	(void)pd;
	(void)size;
	(void)type;
	note("-ring");
	free(memory);
}

uint32_t *dbrec_alloc(struct user_pd *pd)
{
	(void)pd;
	if (fails("dbrec")) {
		errno = ENOMEM;
		return NULL;
	}
	return calloc(2, sizeof(uint32_t));
}

void dbrec_free(struct user_pd *pd, uint32_t *dbrec)
{
	(void)pd;
	note("-dbrec");
	free(dbrec);
}

bool queue_single_threaded(const struct user_pd *pd)
{
	(void)pd;
	return around.single_threaded;
}

void user_pd_get(struct user_pd *pd)
{
	pd->references++;
}

void user_pd_put(struct user_pd *pd)
{
	pd->references--;
}

int user_index_add(struct user_index_table *table, struct user_qp *qp, uint32_t *index)
{
	(void)table;
	(void)qp;
	if (fails("index"))
		return -ENOMEM;
	*index = 77;
	return 0;
}

void user_index_remove(struct user_index_table *table, uint32_t index)
{
	(void)table;
	assert_int_equal(index, 77);
	note("-index");
}

void user_cq_purge_qp(struct user_qp *qp)
{
	(void)qp;
	note("purge");
}

void events_wait(struct ibv_context *context, const char *call, const char *kind, const uint32_t *taken,
		 const uint32_t *acknowledged)
{
	(void)context;
	(void)call;
	(void)kind;
	(void)taken;
	(void)acknowledged;
	note("wait");
}

static char qp_in_device;

int hca_qp_create(struct hca_context *context, const struct hca_qp_attr *attr, struct hca_qp **qp)
{
	(void)context;
	around.created = *attr;
	if (fails("qp"))
		return -EAGAIN;
	*qp = (struct hca_qp *)&qp_in_device;
	return 0;
}

uint32_t hca_qp_number(const struct hca_qp *qp)
{
	(void)qp;
	return TEST_QPN;
}

int hca_qp_destroy(struct hca_qp *qp)
{
	(void)qp;
	if (!around.destroy_result)
		note("-qp");
	return around.destroy_result;
}

int hca_xrcd_open(struct hca_context *context, int fd, int oflags, struct hca_xrcd **xrcd)
{
	(void)context, (void)fd, (void)oflags, (void)xrcd;
	return -ENOMEM;
}

int hca_xrcd_close(struct hca_xrcd *xrcd)
{
	(void)xrcd;
	return 0;
}

int hca_qp_open(struct hca_xrcd *xrcd, uint32_t number, void *opener, struct hca_qp **qp)
{
	(void)xrcd, (void)opener;
	if (number != TEST_QPN)
		return -EINVAL;
	*qp = (struct hca_qp *)&qp_in_device;
	return 0;
}

void hca_qp_close(struct hca_qp *qp, const void *opener)
{
	(void)qp, (void)opener;
	note("-opener");
}

int hca_qp_modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int attr_mask)
{
	(void)qp;
	if (!around.modify_result && attr_mask & IBV_QP_STATE)
		around.state = attr->qp_state;
	note("modify");
	return around.modify_result;
}

void hca_qp_disconnect(struct hca_qp *qp)
{
	(void)qp;
	around.state = IBV_QPS_ERR;
	note("disconnect");
}

int hca_qp_query(struct hca_qp *qp, struct ibv_qp_attr *attr)
{
	(void)qp;
	attr->qp_state = around.state;
	attr->qkey = 0x1111;
	return 0;
}

/* ---- objects of the program ---- */

static struct user_device user_device;
static struct user_context context, other_context;
static struct user_pd pd;
static struct user_cq send_cq, recv_cq;
static struct user_srq srq;
static struct user_xrcd xrcd;
static struct ibv_context *program;

static int fill_five_builders(struct user_qp *qp, uint64_t dv_send_ops)
{
	(void)qp;
	return dv_send_ops & ~UINT64_C(0x1f) ? -EOPNOTSUPP : 0;
}

static int reset_all(void **state)
{
	static const struct dv_builders five = {.table_fill = fill_five_builders};

	(void)state;
	dv_builders = &five;
	memset(&device, 0, sizeof(device));
	memset(&around, 0, sizeof(around));
	memset(&pd, 0, sizeof(pd));
	memset(&send_cq, 0, sizeof(send_cq));
	memset(&recv_cq, 0, sizeof(recv_cq));
	memset(&srq, 0, sizeof(srq));
	program = &context.verbs.context;
	program->device = &user_device.base;
	other_context.verbs.context.device = &user_device.base;
	pd.base.context = send_cq.base.context = recv_cq.base.context = srq.base.context = program;
	xrcd = (struct user_xrcd){.base = {.context = program}, .device = (struct hca_xrcd *)&xrcd};
	srq.type = IBV_SRQT_BASIC;
	return 0;
}

static struct ibv_qp_init_attr_ex attributes(enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr_ex){
		.qp_context = &around,
		.send_cq = &send_cq.base,
		.recv_cq = &recv_cq.base,
		.cap = {.max_send_wr = 16, .max_recv_wr = 5, .max_send_sge = 2, .max_recv_sge = 3},
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = &pd.base,
	};
}

static inline struct user_qp *create(struct ibv_qp_init_attr_ex *attr, struct mlx5dv_qp_init_attr *dv)
{
	struct ibv_qp *qp = user_qp_create(program, attr, dv);

	assert_non_null(qp);
	around.log[0] = 0;
	return to_user_qp(qp);
}

static inline void destroy(struct user_qp *qp)
{
	assert_int_equal(softhca_ibv_destroy_qp(&qp->base), 0);
	assert_int_equal(pd.references, 0);
}

#endif
