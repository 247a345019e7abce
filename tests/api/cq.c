/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests completion queues through the ABI: invalid arguments and their errno values, sizes, resize, purge, overrun, moderation,
 * timestamps.
 */
#include "support/words.h"

#include <time.h>

/* Both QPs are on one side, so that they may share a CQ. */
static struct side side;
static struct pair pair;

static int set_up(void **state)
{
	(void)state;
	note_clear();
	side_open(&side, "side", SIDE_BYTES, 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	side_close(&side);
	return 0;
}

static struct ibv_cq *make_cq(int cqe)
{
	struct ibv_cq *cq = ibv_create_cq(side.context, cqe, NULL, NULL, 0);

	assert_non_null(cq);
	return cq;
}

/* Connects the QPs, on CQs of the test. */
static void connect(struct ibv_cq *client_cq, struct ibv_cq *server_cq)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	options.client_cq = client_cq;
	options.server_cq = server_cq;
	pair_open(&pair, &side, &side, &options);
}

static void expect_written(uint64_t wr_id)
{
	expect_completion(&pair.client, wr_id, IBV_WC_RDMA_WRITE);
}

static void expect_empty(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
}

static int max_cqe(void)
{
	struct ibv_device_attr attr;

	expect_error(ibv_query_device(side.context, &attr), 0);
	return attr.max_cqe;
}

/* ---- creation ------------------------------------------------------------------------------------------------- */

TEST(basic_refusals)
{
	struct ibv_context *context = side.context;

	expect_null(ibv_create_cq(context, 0, NULL, NULL, 0), EINVAL);
	expect_null(ibv_create_cq(context, -1, NULL, NULL, 0), EINVAL);
	expect_null(ibv_create_cq(context, INT32_MIN, NULL, NULL, 0), EINVAL);
	expect_null(ibv_create_cq(context, max_cqe() + 1, NULL, NULL, 0), EINVAL);
	expect_null(ibv_create_cq(context, INT32_MAX, NULL, NULL, 0), EINVAL);
	expect_null(ibv_create_cq(context, 1, NULL, NULL, -1), EINVAL);
	expect_null(ibv_create_cq(context, 1, NULL, NULL, context->num_comp_vectors), EINVAL);
}

static void expect_ex_refused(struct ibv_cq_init_attr_ex attr, int error)
{
	expect_null(ibv_create_cq_ex(side.context, &attr), error);
}

TEST(extended_refusals)
{
	expect_ex_refused((struct ibv_cq_init_attr_ex){.cqe = 0}, EINVAL);
	expect_ex_refused((struct ibv_cq_init_attr_ex){.cqe = max_cqe() + 1}, EINVAL);
	expect_ex_refused((struct ibv_cq_init_attr_ex){.cqe = UINT32_MAX}, EINVAL);
	expect_ex_refused((struct ibv_cq_init_attr_ex){.cqe = 1, .comp_vector = side.context->num_comp_vectors},
			  EINVAL);
	expect_ex_refused((struct ibv_cq_init_attr_ex){.cqe = 1, .comp_mask = 1 << 2}, EINVAL);
	expect_ex_refused(
		(struct ibv_cq_init_attr_ex){.cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = 1 << 2},
		EINVAL);
	expect_ex_refused((struct ibv_cq_init_attr_ex){.cqe = 1, .wc_flags = 1 << 12}, EOPNOTSUPP);
	expect_ex_refused((struct ibv_cq_init_attr_ex){.cqe = 1, .wc_flags = UINT64_C(1) << 63}, EOPNOTSUPP);
	/* wc_flags are checked last. */
	expect_ex_refused((struct ibv_cq_init_attr_ex){.cqe = 0, .wc_flags = 1 << 12}, EINVAL);
	expect_ex_refused((struct ibv_cq_init_attr_ex){.cqe = 1, .wc_flags = 1 << 12, .comp_mask = 1 << 2}, EINVAL);
	expect_ex_refused(
		(struct ibv_cq_init_attr_ex){.cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = side.pd},
		EINVAL); /* not a parent domain */
	expect_ex_refused((struct ibv_cq_init_attr_ex){.cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD}, EINVAL);
}

TEST(dv_attributes)
{
	static const struct {
		struct mlx5dv_cq_init_attr dv;
		const char *variable; /* MLX5_CQE_SIZE */
		uint32_t cqe_size;    /* 0: refused with EINVAL */
	} rows[] = {
		{{0}, NULL, 64},
		{{0}, "64", 64},
		{{0}, "128", 128},
		{{0}, "100", 0},
		{{0}, "x", 0},
		{{.comp_mask = 4, .cqe_size = 64}, "128", 64},
		{{.comp_mask = 4, .cqe_size = 128}, "100", 128},
		{{.comp_mask = 4, .cqe_size = 100}, NULL, 0},
		{{.comp_mask = 4, .cqe_size = 0}, NULL, 0},
		{{.comp_mask = 6, .cqe_size = 128, .flags = 1}, NULL, 128},
		{{.comp_mask = 6, .cqe_size = 64, .flags = 1}, NULL, 0},
		{{.comp_mask = 2, .flags = 1}, "128", 128},
		{{.comp_mask = 2, .flags = 2}, NULL, 0},
		{{.flags = 2}, NULL, 64}, /* not in comp_mask: ignored */
		{{.comp_mask = 1, .cqe_comp_res_format = 1}, NULL, 64},
		{{.comp_mask = 1, .cqe_comp_res_format = 2}, NULL, 64},
		{{.comp_mask = 5, .cqe_comp_res_format = 4, .cqe_size = 128}, NULL, 128},
		{{.comp_mask = 1, .cqe_comp_res_format = 0}, NULL, 0},
		{{.comp_mask = 1, .cqe_comp_res_format = 8}, NULL, 0},
		{{.comp_mask = 1, .cqe_comp_res_format = 9}, NULL, 0},
		{{.comp_mask = 1, .cqe_comp_res_format = 3},
		 NULL,
		 0}, /* two formats: rdma-core's own suite expects EINVAL */
		{{.comp_mask = 8}, NULL, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibv_cq_init_attr_ex attr = {.cqe = 10, .wc_flags = IBV_WC_STANDARD_FLAGS};
		struct mlx5dv_cq_init_attr dv = rows[i].dv;
		struct mlx5dv_cq direct = {0};
		struct mlx5dv_obj object = {.cq.out = &direct};
		struct ibv_cq_ex *cq;

		if (rows[i].variable)
			setenv("MLX5_CQE_SIZE", rows[i].variable, 1);
		errno = 0;
		cq = mlx5dv_create_cq(side.context, &attr, &dv);
		unsetenv("MLX5_CQE_SIZE");
		if (!rows[i].cqe_size) {
			if (cq)
				fail_msg("row %zu is not refused", i);
			assert_int_equal(errno, EINVAL);
			continue;
		}
		if (!cq)
			fail_msg("row %zu is refused: %s", i, strerror(errno));
		object.cq.in = ibv_cq_ex_to_cq(cq);
		assert_int_equal(mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ), 0);
		assert_int_equal(direct.cqe_size, rows[i].cqe_size);
		assert_int_equal(direct.cqe_cnt, 16);
		assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	}
}

TEST(sizes)
{
	static const int asked[] = {1, 2, 3, 4, 7, 8, 100, 1000, 65535, 65536};
	static const int got[] = {1, 3, 3, 7, 7, 15, 127, 1023, 65535, 131071};
	struct ibv_cq *cq;

	for (int i = 0; i < 10; i++) {
		cq = make_cq(asked[i]);
		assert_int_equal(cq->cqe, got[i]);
		assert_int_equal(ibv_destroy_cq(cq), 0);
	}
	cq = make_cq(max_cqe());
	assert_true(cq->cqe >= max_cqe());
	assert_int_equal(ibv_destroy_cq(cq), 0);
	cq = ibv_create_cq(side.context, 1, &side, NULL, side.context->num_comp_vectors - 1);
	assert_non_null(cq);
	assert_ptr_equal(cq->cq_context, &side);
	assert_ptr_equal(cq->context, side.context);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* ibv_create_cq(3): "fails if any queue pair is still associated with this CQ". */
TEST(a_cq_in_use_stays)
{
	struct ibv_cq *cq;

	cq = make_cq(10);
	connect(cq, cq);
	assert_int_equal(ibv_destroy_cq(cq), EBUSY);
	write_word(&pair.client, 5);
	expect_written(5);
	pair_close(&pair);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* ---- resize --------------------------------------------------------------------------------------------------- */

TEST(resize_keeps_unpolled_completions)
{
	static const int sizes_in_turn[] = {7, 31, 15, 63, 9, 5, 7};
	struct ibv_cq *cq;
	uint64_t sent = 0, polled = 0;

	cq = make_cq(15);
	connect(cq, cq);
	for (int round = 0; round < 40; round++) {
		int cqe = sizes_in_turn[round % 7];
		int unpolled = round % 6;

		while (sent - polled < (uint64_t)unpolled)
			write_word(&pair.client, sent++);
		assert_int_equal(ibv_resize_cq(cq, cqe), 0);
		assert_true(cq->cqe >= cqe);
		while (sent - polled < 5)
			write_word(&pair.client, sent++);
		/* Every second round leaves one completion, to vary the consumer index. */
		while (sent - polled > (uint64_t)(round & 1))
			expect_written(polled++);
	}
	while (polled < sent)
		expect_written(polled++);
	expect_empty(cq);
	pair_close(&pair);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* Resizes a full CQ; later completions follow the existing ones. */
TEST(resize_when_full)
{
	static const int larger[] = {7, 30, 255};

	for (int i = 0; i < 3; i++)
		for (uint64_t before = 0; before < 9; before++) {
			struct ibv_cq *cq = make_cq(3);
			uint64_t sent = 0, polled = 0;

			connect(cq, cq);
			/* Fill the ring at each consumer index, in laps of both parities. */
			while (polled < before) {
				write_word(&pair.client, sent++);
				expect_written(polled++);
			}
			while (sent - polled < 4)
				write_word(&pair.client, sent++);
			assert_int_equal(ibv_resize_cq(cq, larger[i]), 0);
			while (sent - polled < 8)
				write_word(&pair.client, sent++);
			while (polled < sent)
				expect_written(polled++);
			expect_empty(cq);
			pair_close(&pair);
			assert_int_equal(ibv_destroy_cq(cq), 0);
		}
}

TEST(resize_refusals)
{
	struct ibv_cq *cq;

	cq = make_cq(7);
	connect(cq, cq);
	assert_int_equal(ibv_resize_cq(cq, -1), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, 0), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, max_cqe() + 1), EINVAL);
	for (int i = 0; i < 6; i++)
		write_word(&pair.client, i);
	assert_int_equal(ibv_resize_cq(cq, 1), EINVAL); /* six completions are pending */
	assert_int_equal(cq->cqe, 7);
	assert_int_equal(ibv_resize_cq(cq, 6), 0);
	assert_int_equal(ibv_resize_cq(cq, max_cqe()), 0);
	for (int i = 0; i < 6; i++)
		expect_written(i);
	assert_int_equal(ibv_resize_cq(cq, 1), 0);
	write_word(&pair.client, 77);
	expect_written(77);
	pair_close(&pair);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* ---- purge ---------------------------------------------------------------------------------------------------- */

/* Completions of a QP are removed with it; those of others on the same CQ stay (ibv_modify_qp(3) to RESET, ibv_destroy_qp(3)). */
TEST(reset_and_destroy_purge)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct ibv_cq *cq;

	cq = make_cq(31);
	connect(cq, cq);
	for (int i = 0; i < 4; i++) {
		struct ibv_sge sink = word_sink(&side, 100 + i);

		post_receive(&pair.server, 100 + i, &sink, 1);
		send_word(&pair.client, i, 100 + i, 0);
	}
	assert_int_equal(ibv_modify_qp(pair.client.qp, &reset, IBV_QP_STATE), 0);
	for (int i = 0; i < 4; i++)
		expect_completion(&pair.server, 100 + i, IBV_WC_RECV);
	expect_idle(&pair.client);
	pair_close(&pair);

	connect(cq, cq);
	write_word(&pair.client, 1);
	pair_close(&pair);
	expect_empty(cq);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* ---- overrun -------------------------------------------------------------------------------------------------- */

TEST(overrun_breaks_the_cq)
{
	struct ibv_send_wr wr = send_wr(0, IBV_WR_RDMA_WRITE, NULL);
	struct ibv_cq *cq = make_cq(3), *other = make_cq(3);
	struct ibv_async_event event;

	connect(cq, other);
	for (int i = 0; i < 5; i++)
		post_send(&pair.client, &wr);
	do {
		expect_error(ibv_get_async_event(side.context, &event), 0);
		ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_CQ_ERR);
	assert_ptr_equal(event.element.cq, cq);
	pair_close(&pair);
	expect_error(ibv_destroy_cq(cq), 0);
	expect_error(ibv_destroy_cq(other), 0);
}

/* ---- moderation ----------------------------------------------------------------------------------------------- */

TEST(moderation_refusals)
{
	struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {.cq_count = 1}};
	struct ibv_cq *cq;

	cq = make_cq(3);
	assert_int_equal(ibv_modify_cq(cq, &attr), 0);
	attr.attr_mask = 0;
	assert_int_equal(ibv_modify_cq(cq, &attr), EINVAL);
	attr.attr_mask = 3;
	assert_int_equal(ibv_modify_cq(cq, &attr), EINVAL);
	attr.attr_mask = IBV_CQ_ATTR_MODERATE;
	attr.moderate.cq_period = UINT16_MAX;
	assert_int_equal(ibv_modify_cq(cq, &attr), EINVAL);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* ---- extended polling with the device's CQEs ------------------------------------------------------------------ */

static int64_t wallclock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

TEST(timestamps)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 15,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct ibv_poll_cq_attr poll_attr = {0};
	struct ibv_cq_ex *cq;
	uint64_t last = 0;
	int64_t before, after;

	cq = ibv_create_cq_ex(side.context, &attr);
	assert_non_null(cq);
	connect(ibv_cq_ex_to_cq(cq), ibv_cq_ex_to_cq(cq));
	for (int i = 0; i < 100; i++) {
		before = wallclock_now();
		write_word(&pair.client, i);
		after = wallclock_now();
		assert_int_equal(ibv_start_poll(cq, &poll_attr), 0);
		assert_int_equal(cq->wr_id, i);
		assert_int_equal(cq->status, IBV_WC_SUCCESS);
		assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RDMA_WRITE);
		assert_true(ibv_wc_read_completion_ts(cq) >= last);
		last = ibv_wc_read_completion_ts(cq);
		/* The two clocks are read one after the other: allow 50 ms between the reads. */
		assert_true((int64_t)ibv_wc_read_completion_wallclock_ns(cq) > before - 50000000);
		assert_true((int64_t)ibv_wc_read_completion_wallclock_ns(cq) < after + 50000000);
		assert_int_equal(ibv_next_poll(cq), ENOENT);
		ibv_end_poll(cq);
	}
	pair_close(&pair);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/* Tests CQEs of 128 bytes, a single-threaded CQ, and a parent domain with allocators, each with several laps of traffic. */
static int allocated;

static void *counting_alloc(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment, uint64_t type)
{
	void *memory = aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);

	(void)pd;
	(void)pd_context;
	(void)type;
	memset(memory, 0, size);
	allocated++;
	return memory;
}

static void counting_free(struct ibv_pd *pd, void *pd_context, void *memory, uint64_t type)
{
	(void)pd;
	(void)pd_context;
	(void)type;
	allocated--;
	free(memory);
}

static void laps(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = {0};

	assert_non_null(cq);
	connect(ibv_cq_ex_to_cq(cq), ibv_cq_ex_to_cq(cq));
	for (int i = 0; i < 200; i++) {
		write_word(&pair.client, i);
		if (i & 1) {
			expect_written(i);
			continue;
		}
		assert_int_equal(ibv_start_poll(cq, &attr), 0);
		assert_int_equal(cq->wr_id, i);
		assert_int_equal(ibv_wc_read_qp_num(cq), pair.client.qp->qp_num);
		ibv_end_poll(cq);
	}
	pair_close(&pair);
	assert_int_equal(ibv_resize_cq(ibv_cq_ex_to_cq(cq), 20), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

TEST(kinds_of_cq)
{
	struct ibv_parent_domain_init_attr domain = {
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
		.alloc = counting_alloc,
		.free = counting_free,
	};
	struct ibv_cq_init_attr_ex attr = {.cqe = 7, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct mlx5dv_cq_init_attr dv = {.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE, .cqe_size = 128};

	laps(ibv_create_cq_ex(side.context, &attr));
	laps(mlx5dv_create_cq(side.context, &attr, &dv));
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	attr.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	laps(ibv_create_cq_ex(side.context, &attr));
	domain.pd = side.pd;
	attr.parent_domain = ibv_alloc_parent_domain(side.context, &domain);
	assert_non_null(attr.parent_domain);
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
	attr.cqe = 100;
	laps(ibv_create_cq_ex(side.context, &attr));
	assert_int_equal(allocated, 0);
	assert_int_equal(ibv_dealloc_pd(attr.parent_domain), 0);
}

int main(void)
{
	return run_cases(.setup = set_up, .teardown = tear_down);
}
