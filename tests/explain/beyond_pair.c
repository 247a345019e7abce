/* SPDX-License-Identifier: BSD-2-Clause */
/* The two QPs, see beyond.h. */
#include "test_case.h"

#include "abi/entry_points.h"
#include "core/epoch.h"
#include "transport/responder/answer.h"
#include "softhca.h"
#include "transport/run/run.h"
#include "verbs/object/ops.h"
#include "beyond.h"

struct ibv_context *context;
struct ibv_pd *pd;
struct ibv_mr *mr;
struct ibv_cq *cq;
struct ibv_qp *qp[2];
uint8_t memory[4096] __attribute__((aligned(4096)));

void modify(int i, struct ibv_qp_attr attr, int mask)
{
	assert_int_equal(softhca_ibv_modify_qp(qp[i], &attr, mask), 0);
}

void to_rts(int i)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp[!i]->qp_num,
		.rq_psn = FIRST_PSN,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 0}},
	};

	assert_int_equal(softhca_ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid), 0);
	modify(i, attr,
	       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	/* A timeout of 0 waits forever. */
	modify(i, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = FIRST_PSN, .retry_cnt = 7, .rnr_retry = 7},
	       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC);
}

int open_pair(void **state)
{
	struct ibv_device **list = softhca_ibv_get_device_list(NULL);

	(void)state;
	context = softhca_ibv_open_device(list[0]);
	softhca_ibv_free_device_list(list);
	pd = softhca_ibv_alloc_pd(context);
	mr = softhca_ibv_reg_mr(pd, memory, sizeof(memory),
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	cq = softhca_ibv_create_cq(context, 15, NULL, NULL, 0);
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = cq,
			.recv_cq = cq,
			.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
			.qp_type = IBV_QPT_RC,
		};

		qp[i] = softhca_ibv_create_qp(pd, &attr);
		assert_non_null(qp[i]);
		modify(i,
		       (struct ibv_qp_attr){
			       .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE},
		       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	}
	to_rts(CLIENT);
	return 0;
}

int close_pair(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(softhca_ibv_destroy_qp(qp[i]), 0);
	assert_int_equal(softhca_ibv_destroy_cq(cq), 0);
	assert_int_equal(softhca_ibv_dereg_mr(mr), 0);
	assert_int_equal(softhca_ibv_dealloc_pd(pd), 0);
	assert_int_equal(softhca_ibv_close_device(context), 0);
	return 0;
}

void post(enum ibv_wr_opcode opcode, uint32_t rkey)
{
	struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = BYTES, .lkey = mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = WR_ID,
		.sg_list = &sge,
		.num_sge = opcode != IBV_WR_LOCAL_INV,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = rkey,
	};
	struct ibv_send_wr *bad;

	assert_int_equal(softhca_ibv_post_send(qp[CLIENT], &wr, &bad), 0);
}

void deliver_packet(const struct packet *packet)
{
	const struct hca_qp *device;
	struct run run;

	epoch_enter();
	run_begin(&run);
	*run_slot(&run) = *packet;
	device = qp_find(packet->destination_qpn);
	if (!packet->link && device)
		run_slot(&run)->link = device->link;
	run_slot(&run)->count = 1;
	run_slot(&run)->mtu = 1024;
	run_commit(&run);
	run_drain(&run, NULL);
	run_finish(&run);
	epoch_leave();
}

void deliver(int to, struct packet packet)
{
	/* RC headers do not name the sender. */
	packet.transport = IBV_QPT_RC;
	packet.source_qpn = 0;
	packet.destination_qpn = qp[to]->qp_num;
	deliver_packet(&packet);
}

void expect_completion(enum ibv_wc_status status, enum explain_rule rule)
{
	struct ibv_wc wc = {.vendor_err = 0};

	assert_int_equal(softhca_ibv_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.status, status);
	assert_int_equal(wc.vendor_err, rule);
}

void expect_line(const struct ibv_qp *about, enum explain_rule rule, const char *format, ...)
{
	struct softhca_explanation newest;
	char expected[512], line[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(expected, sizeof(expected), format, arguments);
	va_end(arguments);
	assert_int_equal(softhca_explanations(context, about ? about->qp_num : 0, &newest, 1), 1);
	assert_int_equal(newest.rule, rule);
	softhca_explanation_text(&newest, line, sizeof(line));
	if (strncmp(line, expected, strlen(expected)))
		fail_msg("the line is\n    %s\n  not\n    %s", line, expected);
}
