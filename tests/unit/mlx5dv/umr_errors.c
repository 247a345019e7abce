/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Refusals of the key builders, their order, and the state after a refused chain: mlx5dv_wr_mkey_configure(3),
 * mlx5-formats 4.2 and 4.4. The QP is made by hand; only chains that post nothing are completed.
 */
#include "test_case.h"

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

TEST(configure_needs_inline)
{
	struct mlx5dv_mkey_conf_attr bad = {.conf_flags = 2};
	uint64_t before;

	start();
	before = fixture_last_serial();
	fixture->qp.ex.wr_flags = IBV_SEND_SIGNALED;
	mlx5dv_wr_mkey_configure(dv, mkey, 0, &bad); /* checked before the attributes */
	end_refused(EOPNOTSUPP, before, RULE_MKEY_CONFIGURE_INLINE);
}

TEST(configure_refuses_unknown_attributes)
{
	struct mlx5dv_mkey_conf_attr flag = {.conf_flags = 2}, high = {.conf_flags = UINT32_C(1) << 31};
	struct mlx5dv_mkey_conf_attr mask = {.comp_mask = UINT64_C(1) << 40};
	struct mlx5dv_mkey_conf_attr *bad[] = {&flag, &high, &mask};

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

TEST(configure_refuses_a_foreign_tag)
{
	uint64_t before;

	start();
	before = fixture_last_serial();
	mkey->lkey |= 1;
	mlx5dv_wr_mkey_configure(dv, mkey, 0, &no_attributes);
	end_refused(EOPNOTSUPP, before, RULE_MKEY_CONFIGURE_TAG);
}

TEST(configure_in_a_full_queue)
{
	uint64_t before;

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
TEST(configure_replaces_an_earlier_error)
{
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

TEST(setters_need_an_open_configuration)
{
	uint64_t before;

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
TEST(access_flags_beyond)
{
	const uint32_t rights =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	const uint32_t of_the_enum = rights | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND |
				     IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING;

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

TEST(access_flags_twice)
{
	uint64_t before;

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
TEST(layouts_are_bounded_by_the_work_request)
{
	static const struct {
		uint32_t max_inline, list, interleaved;
	} row[] = {{60, 4, 3}, {572, 36, 35}, {828, 52, 51}, {44, 3, 2}, {12, 1, 0}, {11, 0, 0}, {0, 0, 0}};

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
TEST(layouts_are_bounded_by_the_key)
{
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

TEST(one_layout_per_work_request)
{
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

TEST(interleaved_length_beyond_64_bits)
{
	uint64_t before;

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

TEST(more_setters_than_announced)
{
	uint64_t before;

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

TEST(fewer_setters_in_profile_man)
{
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

TEST(fewer_setters_in_profile_connectx)
{
	uint8_t wqe[128];

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

TEST(nothing_of_a_refused_chain_is_posted)
{
	static uint32_t dbrec[2];

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

TEST(builders_by_transport)
{
	static const enum ibv_qp_type others[] = {IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND, IBV_QPT_RAW_PACKET};
	struct explain_record record;

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
TEST(key_builders_by_flag)
{
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

TEST(addresses_of_other_types)
{
	struct ibv_ah ah = {0};

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
TEST(operations_of_other_queues)
{
	uint64_t raw[8] = {0}, before;

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
	return run_cases(.setup = set_up, .teardown = tear_down);
}
