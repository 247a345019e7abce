/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Refusals of the key builders, their order, and the state after a refused chain: mlx5dv_wr_mkey_configure(3),
 * mlx5-formats 4.2 and 4.4. The QP is made by hand; only chains that post nothing are completed.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../support/umr_fixture.h"
#include "verbs/post/wr.h"

static struct fixture *fixture;
static struct mlx5dv_qp_ex *dv;
static struct mlx5dv_mkey *mkey;

static int set_up(void **state)
{
	(void)state;
	fixture = fixture_new();
	dv = &fixture->qp.dv;
	mkey = &fixture->mkey.base;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fixture_free(fixture);
	return 0;
}

static struct ibv_sge sges[64];
static struct mlx5dv_mr_interleaved pieces[64];

static void start(void)
{
	for (int i = 0; i < 64; i++) {
		sges[i] = (struct ibv_sge){.addr = 4096, .length = 64, .lkey = 0x100};
		pieces[i] = (struct mlx5dv_mr_interleaved){.addr = 4096, .bytes_count = 64, .lkey = 0x100};
	}
	fixture_place(fixture, 0);
	wr_start(&fixture->qp.ex);
	fixture->qp.ex.wr_flags = IBV_SEND_INLINE;
}

static void end(int error)
{
	assert_int_equal(fixture->qp.builder.error, error);
	if (error)
		assert_int_equal(wr_complete(&fixture->qp.ex), error);
	else
		wr_abort(&fixture->qp.ex);
	assert_int_equal(fixture->qp.sq.cur_post, 0);
	assert_int_equal(fixture->qp.sq.fence_cache, 0);
}

/* Expects the one call since start() to refuse the chain with @error under @rule. */
static void end_refused(int error, uint64_t before, enum explain_rule rule)
{
	expect_record(before, rule);
	end(error);
}

/* ---- mlx5dv_wr_mkey_configure ---------------------------------------------------------------------- */

static void configure_needs_inline(void **state)
{
	struct mlx5dv_mkey_conf_attr bad = {.conf_flags = 2};
	uint64_t before;

	(void)state;
	start();
	before = fixture_last_serial();
	fixture->qp.ex.wr_flags = IBV_SEND_SIGNALED;
	mlx5dv_wr_mkey_configure(dv, mkey, 0, &bad); /* checked before the attributes */
	end_refused(EOPNOTSUPP, before, RULE_MKEY_CONFIGURE_INLINE);
}

static void configure_refuses_unknown_attributes(void **state)
{
	struct mlx5dv_mkey_conf_attr flag = {.conf_flags = 2}, high = {.conf_flags = UINT32_C(1) << 31};
	struct mlx5dv_mkey_conf_attr mask = {.comp_mask = UINT64_C(1) << 40};
	struct mlx5dv_mkey_conf_attr *bad[] = {&flag, &high, &mask};

	(void)state;
	for (int i = 0; i < 3; i++) {
		uint64_t before;

		start();
		before = fixture_last_serial();
		mlx5dv_wr_mkey_configure(dv, mkey, 1, bad[i]);
		expect_record(before, RULE_MKEY_CONFIGURE_ATTR);
		/* The error is latched: setters do nothing, and report nothing. */
		mlx5dv_wr_set_mkey_access_flags(dv, UINT32_MAX);
		mlx5dv_wr_set_mkey_layout_list(dv, UINT16_MAX, NULL);
		mlx5dv_wr_set_mkey_layout_interleaved(dv, 1, UINT16_MAX, NULL);
		end_refused(EOPNOTSUPP, before, RULE_MKEY_CONFIGURE_ATTR);
	}
}

static void configure_refuses_a_foreign_tag(void **state)
{
	uint64_t before;

	(void)state;
	start();
	before = fixture_last_serial();
	mkey->lkey |= 1;
	mlx5dv_wr_mkey_configure(dv, mkey, 0, &no_attributes);
	end_refused(EOPNOTSUPP, before, RULE_MKEY_CONFIGURE_TAG);
}

static void configure_in_a_full_queue(void **state)
{
	uint64_t before;

	(void)state;
	fixture->qp.sq.max_post = 3;
	start();
	for (int i = 0; i < 3; i++)
		mlx5dv_wr_mkey_configure(dv, mkey, 0, &no_attributes);
	assert_int_equal(fixture->qp.builder.error, 0);
	assert_int_equal(fixture->qp.builder.count, 3);
	before = fixture_last_serial();
	mlx5dv_wr_mkey_configure(dv, mkey, 0, &no_attributes);
	end_refused(ENOMEM, before, RULE_SQ_FULL);
}

/* mlx5-formats 4.2, "which error wins": configure replaces an earlier error, the rest keep the first. */
static void configure_replaces_an_earlier_error(void **state)
{
	(void)state;
	start();
	mlx5dv_wr_set_mkey_access_flags(dv, 0);
	assert_int_equal(fixture->qp.builder.error, EINVAL);
	mlx5dv_wr_mkey_configure(dv, mkey, 0, &no_attributes); /* a valid one */
	assert_int_equal(fixture->qp.builder.error, EINVAL);
	mlx5dv_wr_set_mkey_layout_list(dv, UINT16_MAX, NULL); /* ENOMEM on its own */
	assert_int_equal(fixture->qp.builder.error, EINVAL);
	fixture->qp.ex.wr_flags = 0;
	mlx5dv_wr_mkey_configure(dv, mkey, 0, &no_attributes);
	end(EOPNOTSUPP);

	/* The tag is checked after the queue. */
	fixture->qp.sq.max_post = 0;
	start();
	mlx5dv_wr_mkey_configure(dv, mkey, 0, &no_attributes);
	assert_int_equal(fixture->qp.builder.error, ENOMEM);
	mkey->lkey |= 1;
	mlx5dv_wr_mkey_configure(dv, mkey, 0, &no_attributes);
	end(EOPNOTSUPP);
}

/* ---- setters --------------------------------------------------------------------------------------- */

static void setters_need_an_open_configuration(void **state)
{
	uint64_t before;

	(void)state;
	start();
	before = fixture_last_serial();
	mlx5dv_wr_set_mkey_access_flags(dv, UINT32_MAX);
	end_refused(EINVAL, before, RULE_MKEY_SETTER_NOT_OPEN);
	start();
	before = fixture_last_serial();
	mlx5dv_wr_set_mkey_layout_list(dv, UINT16_MAX, NULL);
	end_refused(EINVAL, before, RULE_MKEY_SETTER_NOT_OPEN);
	start();
	before = fixture_last_serial();
	mlx5dv_wr_set_mkey_layout_interleaved(dv, 1, UINT16_MAX, NULL);
	end_refused(EINVAL, before, RULE_MKEY_SETTER_NOT_OPEN);
}

static void set_profile(enum setting_PROFILE profile)
{
	((struct settings *)hca_settings(hca_device(0)))->profile = profile;
}

/* Profile man: bits outside enum ibv_access_flags; connectx: all except the four rights. */
static void access_flags_beyond(void **state)
{
	const uint32_t rights =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	const uint32_t of_the_enum = rights | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND |
				     IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING;

	(void)state;
	for (int i = 0; i < 2 * 32; i++) {
		enum setting_PROFILE profile = i & 1 ? PROFILE_CONNECTX : PROFILE_MAN;
		uint32_t flag = UINT32_C(1) << i / 2;
		uint64_t before;

		if (flag & (profile == PROFILE_MAN ? of_the_enum : rights))
			continue;
		set_profile(profile);
		start();
		mlx5dv_wr_mkey_configure(dv, mkey, 2, &no_attributes);
		mlx5dv_wr_set_mkey_access_flags(dv, 0);
		before = fixture_last_serial();
		mlx5dv_wr_set_mkey_access_flags(dv, flag | IBV_ACCESS_REMOTE_READ); /* checked before "twice" */
		end_refused(EINVAL, before, RULE_MKEY_ACCESS_FLAGS);
	}
	set_profile(PROFILE_MAN);
}

static void access_flags_twice(void **state)
{
	uint64_t before;

	(void)state;
	start();
	mlx5dv_wr_mkey_configure(dv, mkey, 3, &no_attributes);
	mlx5dv_wr_set_mkey_access_flags(dv, 0);
	mlx5dv_wr_set_mkey_layout_list(dv, 1, sges);
	before = fixture_last_serial();
	mlx5dv_wr_set_mkey_access_flags(dv, 0);
	end_refused(EINVAL, before, RULE_MKEY_ACCESS_TWICE);
}

static void set_layout(bool interleaved, uint32_t count)
{
	if (interleaved)
		mlx5dv_wr_set_mkey_layout_interleaved(dv, 2, count, count > 64 ? NULL : pieces);
	else
		mlx5dv_wr_set_mkey_layout_list(dv, count, count > 64 ? NULL : sges);
}

/* (max_inline + 4) / 16 entries, one less for the header: 4 and 3 with the 60 bytes of a default QP. */
static void layouts_are_bounded_by_the_work_request(void **state)
{
	static const struct {
		uint32_t max_inline, list, interleaved;
	} row[] = {{60, 4, 3}, {572, 36, 35}, {828, 52, 51}, {44, 3, 2}, {12, 1, 0}, {11, 0, 0}, {0, 0, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		for (int interleaved = 0; interleaved < 2; interleaved++) {
			uint32_t limit = interleaved ? row[i].interleaved : row[i].list;
			uint32_t above[] = {limit + 1, UINT16_MAX};

			fixture->qp.sq.max_inline = row[i].max_inline;
			start();
			mlx5dv_wr_mkey_configure(dv, mkey, 1, &no_attributes);
			set_layout(interleaved, limit);
			end(0);
			for (int j = 0; j < 2; j++) {
				uint64_t before;

				start();
				mlx5dv_wr_mkey_configure(dv, mkey, 1, &no_attributes);
				before = fixture_last_serial();
				set_layout(interleaved, above[j]);
				end_refused(ENOMEM, before, RULE_MKEY_LAYOUT_WQE);
			}
		}
	}
}

/* The header of an interleaved layout is not counted here: that is the device's check (mlx5-formats 4.3). */
static void layouts_are_bounded_by_the_key(void **state)
{
	(void)state;
	fixture->mkey.max_entries = 8;
	for (int interleaved = 0; interleaved < 2; interleaved++) {
		uint64_t before;

		start();
		mlx5dv_wr_mkey_configure(dv, mkey, 1, &no_attributes);
		set_layout(interleaved, 8);
		end(0);
		start();
		mlx5dv_wr_mkey_configure(dv, mkey, 1, &no_attributes);
		before = fixture_last_serial();
		set_layout(interleaved, 9);
		end_refused(ENOMEM, before, RULE_MKEY_LAYOUT_KEY);
	}
}

static void one_layout_per_work_request(void **state)
{
	(void)state;
	for (uint32_t first_count = 0; first_count < 2; first_count++) {
		for (int kinds = 0; kinds < 4; kinds++) {
			uint64_t before;

			start();
			mlx5dv_wr_mkey_configure(dv, mkey, 2, &no_attributes);
			set_layout(kinds & 1, first_count);
			before = fixture_last_serial();
			set_layout(kinds & 2, 1);
			end_refused(EINVAL, before, RULE_MKEY_LAYOUT_TWICE);

			start();
			mlx5dv_wr_mkey_configure(dv, mkey, 2, &no_attributes);
			set_layout(kinds & 1, first_count);
			before = fixture_last_serial();
			set_layout(kinds & 2, 60); /* the length is checked first */
			end_refused(ENOMEM, before, RULE_MKEY_LAYOUT_WQE);
		}
	}
}

static void interleaved_length_beyond_64_bits(void **state)
{
	uint64_t before;

	(void)state;
	for (uint32_t fits = 0; fits < 2; fits++) {
		start();
		pieces[0].bytes_count = UINT32_MAX;
		pieces[1].bytes_count = fits ? 2 : 3; /* (2^32 + 1) * (2^32 - 1) is the last that fits */
		mlx5dv_wr_mkey_configure(dv, mkey, 1, &no_attributes);
		before = fixture_last_serial();
		mlx5dv_wr_set_mkey_layout_interleaved(dv, UINT32_MAX, 2, pieces);
		if (fits)
			end_refused(EINVAL, before, RULE_MKEY_INTERLEAVED_WIDE);
		else
			end_refused(EINVAL, before, RULE_MKEY_INTERLEAVED_LENGTH);
	}
}

/* ---- num_setters ----------------------------------------------------------------------------------- */

static void more_setters_than_announced(void **state)
{
	uint64_t before;

	(void)state;
	start();
	mlx5dv_wr_mkey_configure(dv, mkey, 0, &no_attributes);
	before = fixture_last_serial();
	mlx5dv_wr_set_mkey_access_flags(dv, 0);
	end_refused(EINVAL, before, RULE_MKEY_SETTER_NOT_OPEN);

	start();
	mlx5dv_wr_mkey_configure(dv, mkey, 1, &no_attributes);
	mlx5dv_wr_set_mkey_access_flags(dv, 0);
	before = fixture_last_serial();
	mlx5dv_wr_set_mkey_layout_list(dv, 1, sges);
	end_refused(EINVAL, before, RULE_MKEY_SETTER_NOT_OPEN);
}

static void fewer_setters_in_profile_man(void **state)
{
	(void)state;
	set_profile(PROFILE_MAN);
	start();
	mlx5dv_wr_mkey_configure(dv, mkey, 0, &no_attributes);
	mlx5dv_wr_mkey_configure(dv, mkey, 2, &no_attributes);
	mlx5dv_wr_set_mkey_access_flags(dv, 0);
	assert_int_equal(fixture->qp.builder.error, 0);
	assert_int_equal(wr_complete(&fixture->qp.ex), EINVAL);
	assert_int_equal(fixture->qp.sq.cur_post, 0); /* the whole chain, the first one too */

	/* A call of another builder does not count. */
	start();
	mlx5dv_wr_mkey_configure(dv, mkey, 1, &no_attributes);
	mlx5dv_wr_mkey_configure(dv, mkey, 0, &no_attributes);
	assert_int_equal(wr_complete(&fixture->qp.ex), EINVAL);
	assert_int_equal(fixture->qp.sq.cur_post, 0);
}

static void fewer_setters_in_profile_connectx(void **state)
{
	uint8_t wqe[128];

	(void)state;
	set_profile(PROFILE_CONNECTX);
	start();
	mlx5dv_wr_mkey_configure(dv, mkey, 2, &no_attributes);
	mlx5dv_wr_set_mkey_access_flags(dv, 0);
	assert_int_equal(wr_complete(&fixture->qp.ex), 0);
	assert_int_equal(fixture->qp.sq.cur_post, 0);
	assert_int_equal(fixture->qp.sq.head, 0);

	/* The next builder takes its place. */
	start();
	mlx5dv_wr_mkey_configure(dv, mkey, 1, &no_attributes);
	mlx5dv_wr_mkey_configure(dv, mkey, 0, &no_attributes);
	assert_int_equal(fixture->qp.builder.count, 1);
	assert_int_equal(fixture->qp.sq.cur_post, 2);
	fixture_read(fixture, 0, wqe, sizeof(wqe));
	assert_int_equal(be64_at(wqe, 24), 1 << 29 | 1 << 13);
	end(0);
	set_profile(PROFILE_MAN);
}

/* ---- a refused chain ------------------------------------------------------------------------------- */

static void nothing_of_a_refused_chain_is_posted(void **state)
{
	static uint32_t dbrec[2];

	(void)state;
	dbrec[0] = htobe32(7);
	dbrec[1] = htobe32(11);
	fixture->qp.dbrec = dbrec;
	for (int aborted = 0; aborted < 2; aborted++) {
		fixture_place(fixture, 11);
		sq_set_fence(&fixture->qp.sq, 0x20);
		wr_start(&fixture->qp.ex);
		fixture->qp.ex.wr_flags = IBV_SEND_INLINE;
		mlx5dv_wr_mr_list(dv, mkey, 0, 4, sges);
		mlx5dv_wr_mr_interleaved(dv, mkey, 0, 9, 3, pieces);
		assert_int_equal(fixture->qp.sq.cur_post, 11 + 3 + 3);
		if (aborted) {
			wr_abort(&fixture->qp.ex);
		} else {
			mlx5dv_wr_mr_list(dv, mkey, 1u << 31, 4, sges);
			assert_int_equal(wr_complete(&fixture->qp.ex), EINVAL);
		}
		assert_int_equal(fixture->qp.sq.cur_post, 11);
		assert_int_equal(fixture->qp.sq.head, 11);
		assert_int_equal(fixture->qp.sq.fence_cache, 0x20);
		assert_int_equal(be32toh(dbrec[0]), 7);
		assert_int_equal(be32toh(dbrec[1]), 11);
	}
}

/* ---- builders of each QP --------------------------------------------------------------------------- */

static void builders_by_transport(void **state)
{
	static const enum ibv_qp_type others[] = {IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND, IBV_QPT_RAW_PACKET};
	struct explain_record record;

	(void)state;
	for (uint64_t ops = 0; ops < 8; ops++) {
		fixture->qp.type = IBV_QPT_RC;
		assert_int_equal(dv_wr_table_fill(&fixture->qp, ops), 0);
		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
			fixture->qp.type = others[i];
			assert_int_equal(dv_wr_table_fill(&fixture->qp, ops), ops ? -EOPNOTSUPP : 0);
		}
	}
	/* mlx5dv_wr_post(3): a DCI has the builders of RC. */
	fixture->qp.type = IBV_QPT_DRIVER;
	fixture->qp.dc_type = MLX5DV_DCTYPE_DCI;
	for (uint64_t ops = 0; ops < 32; ops++)
		if (!(ops & MLX5DV_QP_EX_WITH_MEMCPY))
			assert_int_equal(dv_wr_table_fill(&fixture->qp, ops), 0);
	fixture->qp.dc_type = 0;
	/* All of them have raw WQEs; copies are for RC and DCI. */
	fixture->qp.type = IBV_QPT_RC;
	assert_int_equal(dv_wr_table_fill(&fixture->qp, MLX5DV_QP_EX_WITH_RAW_WQE), 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		fixture->qp.type = others[i];
		assert_int_equal(dv_wr_table_fill(&fixture->qp, MLX5DV_QP_EX_WITH_RAW_WQE), 0);
		assert_int_equal(dv_wr_table_fill(&fixture->qp, MLX5DV_QP_EX_WITH_MEMCPY), -EOPNOTSUPP);
	}
	fixture->qp.type = IBV_QPT_RC;
	for (int bit = 5; bit < 64; bit++) {
		assert_int_equal(dv_wr_table_fill(&fixture->qp, UINT64_C(1) << bit | 1), -EOPNOTSUPP);
		explain_previous(hca_device(0), 0, 0, &record);
		assert_int_equal(record.rule, RULE_DV_SEND_OPS);
	}
}

/* Each flag enables its builder; in profile connectx any of the three enables all, as in drivers. */
static void key_builders_by_flag(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 2 * 8; i++) {
		bool connectx = i & 1;
		uint64_t ops = i / 2, enabled = connectx && ops ? 7 : ops;

		set_profile(connectx ? PROFILE_CONNECTX : PROFILE_MAN);
		assert_int_equal(dv_wr_table_fill(&fixture->qp, ops), 0);
		start();
		mlx5dv_wr_mkey_configure(dv, mkey, 0, &no_attributes);
		end(enabled & MLX5DV_QP_EX_WITH_MKEY_CONFIGURE ? 0 : EOPNOTSUPP);
		start();
		mlx5dv_wr_mr_list(dv, mkey, 0, 1, sges);
		end(enabled & MLX5DV_QP_EX_WITH_MR_LIST ? 0 : EOPNOTSUPP);
		start();
		mlx5dv_wr_mr_interleaved(dv, mkey, 0, 1, 1, pieces);
		end(enabled & MLX5DV_QP_EX_WITH_MR_INTERLEAVED ? 0 : EOPNOTSUPP);
	}
	set_profile(PROFILE_MAN);
}

static void addresses_of_other_types(void **state)
{
	struct ibv_ah ah = {0};

	(void)state;
	for (int stream = 0; stream < 2; stream++) {
		uint64_t before;

		start();
		mlx5dv_wr_mkey_configure(dv, mkey, 1, &no_attributes);
		before = fixture_last_serial();
		if (stream)
			mlx5dv_wr_set_dc_addr_stream(dv, &ah, 1, 2, 3);
		else
			mlx5dv_wr_set_dc_addr(dv, &ah, 1, 2);
		end_refused(EOPNOTSUPP, before, RULE_WR_NOT_OF_TYPE);
	}
}

/* The device supports them, but the QP was not created for them. */
static void operations_of_other_queues(void **state)
{
	uint64_t raw[8] = {0}, before;

	(void)state;
	start();
	before = fixture_last_serial();
	mlx5dv_wr_raw_wqe(dv, raw);
	end_refused(EOPNOTSUPP, before, RULE_DV_BUILDER_NOT_ENABLED);
	start();
	before = fixture_last_serial();
	mlx5dv_wr_memcpy(dv, 0x100, 0, 0x100, 64, 8);
	end_refused(EOPNOTSUPP, before, RULE_DV_BUILDER_NOT_ENABLED);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(configure_needs_inline),
		TEST(configure_refuses_unknown_attributes),
		TEST(configure_refuses_a_foreign_tag),
		TEST(configure_in_a_full_queue),
		TEST(configure_replaces_an_earlier_error),
		TEST(setters_need_an_open_configuration),
		TEST(access_flags_beyond),
		TEST(access_flags_twice),
		TEST(layouts_are_bounded_by_the_work_request),
		TEST(layouts_are_bounded_by_the_key),
		TEST(one_layout_per_work_request),
		TEST(interleaved_length_beyond_64_bits),
		TEST(more_setters_than_announced),
		TEST(fewer_setters_in_profile_man),
		TEST(fewer_setters_in_profile_connectx),
		TEST(nothing_of_a_refused_chain_is_posted),
		TEST(builders_by_transport),
		TEST(key_builders_by_flag),
		TEST(addresses_of_other_types),
		TEST(operations_of_other_queues),
	};

	return cmocka_run_group_tests_name("umr_errors", tests, NULL, NULL);
}
