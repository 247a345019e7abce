/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests two devices of one process (SOFTHCA_DEVICES=2): activity of the second one is counted and recorded there, and not on the
 * first.
 */
#include <softhca.h>

#include "support/program.h"

enum {
	RECORDS = 16,
	BYTES = 512,
	NO_SUCH_QP = 80, /* the rule, docs/reference/explanations.md */
};

static struct ibv_context *other; /* of the first device */

static int open_second(void **state)
{
	side_use_device(0);
	other = open_device();
	side_use_device(1);
	return program_open(state);
}

static int close_both(void **state)
{
	int error = program_close(state);

	expect_error(ibv_close_device(other), 0);
	return error;
}

static size_t records_of(struct ibv_context *context, uint32_t qpn, uint32_t rule)
{
	struct softhca_explanation last[RECORDS];
	size_t count = softhca_explanations(context, qpn, last, RECORDS), found = 0;

	for (size_t i = 0; i < count; i++)
		found += last[i].rule == rule;
	return found;
}

/* Returns the number of a destroyed QP: it still belongs to this process, and is not reused soon. */
static uint32_t unused_qp_number(void)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UD,
		.send_cq = pair.client.cq,
		.recv_cq = pair.client.cq,
		.cap = {.max_send_wr = 1, .max_send_sge = 1},
	};
	struct ibv_qp *qp = ibv_create_qp(client.pd, &attr);
	uint32_t number;

	assert_non_null(qp);
	number = qp->qp_num;
	expect_error(ibv_destroy_qp(qp), 0);
	return number;
}

TEST(datagram_to_an_unknown_qp)
{
	struct pair_options options = pair_defaults(IBV_QPT_UD);
	const char *link = getenv("SOFTHCA_LINK");
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	uint32_t unused;

	/* Over the other links the datagram returns to the process, and its first device records datagrams for unknown QPs. */
	if (link && strcmp(link, "local") && strcmp(link, "auto"))
		return;
	pair_replace(&pair, &options);
	unused = unused_qp_number();
	sge = side_sge(&client, 0, BYTES);
	wr = (struct ibv_send_wr){
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = {pair.client.ah, unused, PAIR_QKEY},
	};
	expect_error(ibv_post_send(pair.client.qp, &wr, &bad), 0);
	expect_completion(&pair.client, 1, IBV_WC_SEND);
	assert_int_equal(softhca_counter(client.context, "dropped_no_qp"), 1);
	assert_int_equal(softhca_counter(other, "dropped_no_qp"), 0);
	assert_int_equal(records_of(client.context, unused, NO_SUCH_QP), 1);
	assert_int_equal(records_of(other, unused, NO_SUCH_QP), 0);
}

TEST(traffic_is_counted_where_it_goes)
{
	static const char *const names[] = {"shm_runs_received", "shm_bytes_received", "shm_ring_bytes"};
	const char *link = getenv("SOFTHCA_LINK");

	expect_write(&pair, view_memory(&client, 0, BYTES), view_memory(&server, BYTES, BYTES), IBV_WC_SUCCESS);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(softhca_counter(other, names[i]), 0);
	if (link && !strcmp(link, "shm"))
		assert_true(softhca_counter(client.context, "shm_runs_received") >= 2);
}

int main(void)
{
	setenv("SOFTHCA_DEVICES", "2", 1);
	return run_cases(.setup = open_second, .teardown = close_both);
}
