/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Refusals of mlx5dv_wr_set_mkey_sig_block(3) and their order (mlx5-formats 4.5); the signature in later configurations
 * of a key; the state after a failed or aborted chain. The QP is made by hand; only chains that post nothing are
 * completed.
 */
#include "test_case.h"

#include "../support/umr_fixture.h"

#include "../support/signature_fixture.h"
#include "verbs/post/wr.h"

enum {
	COPY = MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK,

	MASK_BASE = 1 << 29 | 1 << 13,
	MASK_SIG_ERR = 1 << 9,
	MASK_BSF = 1 << 12,
	BSF_ON = 0x40000000, /* in flags_pd */
	COUNT_ODD = 0x04000000,
};

static struct fixture *fixture;
static struct mlx5dv_qp_ex *dv;
static struct mlx5dv_mkey *mkey;
static struct key_signature *signature;

static const struct test_domain none = NONE, crc = CRC(CRC32, 512, 0xffffffff), dif = DIF(CRC, 4096, 0, 1, 2, 0);

static int set_up(void **state)
{
	(void)state;
	fixture = fixture_new();
	fixture_sign(fixture);
	dv = &fixture->qp.dv;
	mkey = &fixture->mkey.base;
	signature = fixture->mkey.signature;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fixture_free(fixture);
	return 0;
}

static void set_profile(enum setting_PROFILE profile)
{
	((struct settings *)hca_settings(hca_device(0)))->profile = profile;
}

static void start(void)
{
	fixture_place(fixture, 0);
	wr_start(&fixture->qp.ex);
	fixture->qp.ex.wr_flags = IBV_SEND_INLINE;
}

static void configure(uint8_t setters, uint32_t flags)
{
	struct mlx5dv_mkey_conf_attr attr = {.conf_flags = flags};

	mlx5dv_wr_mkey_configure(dv, mkey, setters, &attr);
}

static void expect_refused(int error)
{
	assert_int_equal(fixture->qp.builder.error, error);
	assert_int_equal(wr_complete(&fixture->qp.ex), error);
	assert_int_equal(fixture->qp.sq.cur_post, 0);
	assert_int_equal(fixture->qp.sq.head, 0);
	assert_int_equal(fixture->qp.sq.fence_cache, 0);
}

/* ---- refusals --------------------------------------------------------------------------------------------------- */

/* Each attribute set has one more fault than the one before: the fault that is checked first is named. */
TEST(attributes_in_order)
{
	struct mlx5dv_sig_crc bad_crc = {.type = 3, .seed = 7};
	struct mlx5dv_sig_block_domain bad = {
		.sig_type = MLX5DV_SIG_TYPE_CRC, .sig.crc = &bad_crc, .block_size = 5, .comp_mask = 1};
	struct mlx5dv_sig_crc good_crc = {0};
	struct mlx5dv_sig_block_domain good = {.sig_type = MLX5DV_SIG_TYPE_CRC, .sig.crc = &good_crc};
	struct mlx5dv_sig_block_attr attr = {.mem = &good, .wire = &bad};
	static const enum explain_rule expected[] = {
		RULE_SIG_BLOCK_SIZE, RULE_SIG_BLOCK_SIZE, RULE_SIG_COMP_MASK, RULE_SIG_FLAGS,
		RULE_SIG_NO_DOMAIN,  RULE_SIG_TWICE,      RULE_SIG_KEY,       RULE_MKEY_SETTER_NOT_OPEN,
	};

	for (int fault = 0; fault < 8; fault++) {
		struct key_signature *own = fixture->mkey.signature;
		uint64_t before;

		switch (fault) {
		case 1:
			attr.mem = &bad;
			break;
		case 2:
			attr.comp_mask = 1;
			break;
		case 3:
			attr.flags = 2;
			break;
		case 4:
			attr.mem = attr.wire = NULL;
			break;
		}
		start();
		fixture->mkey.signature_state = BLOCK_INIT;
		if (fault < 7)
			configure(3, 0);
		if (fault == 5)
			fixture_set_signature(fixture, &crc, &none, 0, 0, 0);
		if (fault == 6)
			fixture->mkey.signature = NULL;
		assert_int_equal(fixture->qp.builder.error, 0);
		before = fixture_last_serial();
		mlx5dv_wr_set_mkey_sig_block(dv, &attr);
		expect_record(before, expected[fault]);
		/* Latched: later errors are not reported. */
		mlx5dv_wr_set_mkey_sig_block(dv, NULL);
		assert_int_equal(fixture_last_serial(), before + 1);
		expect_refused(EINVAL);
		fixture->mkey.signature = own;
	}
}

/* The first fault of a domain in both places; the record names the place. */
TEST(faults_of_a_domain)
{
	struct mlx5dv_sig_t10dif t10 = {.bg_type = 2, .bg = 1, .flags = 8};
	struct mlx5dv_sig_crc bad_crc = {.type = 3, .seed = 7};
	static const struct {
		enum explain_rule rule;
		uint64_t value;
	} expected[] = {
		{RULE_SIG_BLOCK_SIZE, 5},  {RULE_SIG_DOMAIN_COMP_MASK, 4}, {RULE_SIG_TYPE, 2},
		{RULE_SIG_T10DIF_SEED, 1}, {RULE_SIG_T10DIF_GUARD, 2},     {RULE_SIG_T10DIF_FLAGS, 8},
		{RULE_SIG_CRC_TYPE, 3},    {RULE_SIG_CRC_SEED, 7},
	};

	for (int wire = 0; wire < 2; wire++) {
		struct mlx5dv_sig_block_domain bad = {.sig_type = 2, .sig.dif = &t10, .block_size = 5, .comp_mask = 4};

		t10 = (struct mlx5dv_sig_t10dif){.bg_type = 2, .bg = 1, .flags = 8};
		bad_crc.type = 3;
		for (int step = 0; step < 8; step++) {
			struct mlx5dv_sig_block_attr attr = {.mem = wire ? NULL : &bad, .wire = wire ? &bad : NULL};
			struct explain_record record;
			uint64_t before;

			/* Repairs the fault found in the step before. */
			if (step == 1)
				bad.block_size = 4;
			else if (step == 2)
				bad.comp_mask = 0;
			else if (step == 3)
				bad.sig_type = MLX5DV_SIG_TYPE_T10DIF;
			else if (step == 4)
				t10.bg = 0xffff;
			else if (step == 5)
				t10.bg_type = MLX5DV_SIG_T10DIF_CSUM;
			else if (step == 6)
				bad.sig_type = MLX5DV_SIG_TYPE_CRC, bad.sig.crc = &bad_crc;
			else if (step == 7)
				bad_crc.type = MLX5DV_SIG_CRC_TYPE_CRC64_XP10;
			start();
			configure(1, 0);
			before = fixture_last_serial();
			mlx5dv_wr_set_mkey_sig_block(dv, &attr);
			expect_record(before, expected[step].rule);
			assert_true(explain_previous(hca_device(0), 0, 0, &record));
			assert_int_equal(record.args[0], !wire);
			assert_int_equal(record.args[1], expected[step].value);
			expect_refused(EINVAL);
			assert_int_equal(fixture->mkey.signature_state, BLOCK_INIT);
		}
	}
}

static int try_seed(enum mlx5dv_sig_crc_type type, uint64_t seed)
{
	struct test_domain domain = {.type = MLX5DV_SIG_TYPE_CRC, .crc = {type, seed}};
	int error;

	start();
	configure(1, 0);
	fixture_set_signature(fixture, &domain, &none, 0, 0, 0);
	error = fixture->qp.builder.error;
	wr_abort(&fixture->qp.ex);
	return error;
}

TEST(seeds_by_profile)
{
	static const struct {
		uint64_t seed;
		int man_32, connectx_32, both_64;
	} row[] = {
		{0, 0, 0, 0},
		{1, EINVAL, EINVAL, EINVAL},
		{0xffffffff, 0, 0, EINVAL},
		{0xfffffffe, EINVAL, EINVAL, EINVAL},
		{0x100000000, 0, EINVAL, EINVAL},
		{0xffffffff00000000, 0, EINVAL, EINVAL},
		{0xffffffffffffffff, 0, EINVAL, 0},
		{0x8000000080000000, EINVAL, EINVAL, EINVAL},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		for (int connectx = 0; connectx < 2; connectx++) {
			int expected = connectx ? row[i].connectx_32 : row[i].man_32;

			set_profile(connectx ? PROFILE_CONNECTX : PROFILE_MAN);
			assert_int_equal(try_seed(MLX5DV_SIG_CRC_TYPE_CRC32, row[i].seed), expected);
			assert_int_equal(try_seed(MLX5DV_SIG_CRC_TYPE_CRC32C, row[i].seed), expected);
			assert_int_equal(try_seed(MLX5DV_SIG_CRC_TYPE_CRC64_XP10, row[i].seed), row[i].both_64);
		}
	}
	set_profile(PROFILE_MAN);
}

/* The full ranges of the fields of a T10-DIF. */
TEST(guards_and_flags_of_t10dif)
{
	for (uint32_t seed = 0; seed <= UINT16_MAX; seed++) {
		struct test_domain domain = DIF(CRC, 512, 0, 0, 0, 0);

		domain.dif.bg = (uint16_t)seed;
		start();
		configure(1, 0);
		fixture_set_signature(fixture, &none, &domain, 0, 0, 0);
		assert_int_equal(fixture->qp.builder.error, seed == 0 || seed == 0xffff ? 0 : EINVAL);
		wr_abort(&fixture->qp.ex);
	}
	for (uint32_t flags = 0; flags < 16; flags++) {
		struct test_domain domain = DIF(CSUM, 512, 0, 0, 0, 0);

		domain.dif.flags = (uint16_t)flags;
		start();
		configure(1, 0);
		fixture_set_signature(fixture, &domain, &none, 0, 0, 0);
		assert_int_equal(fixture->qp.builder.error, flags < 8 ? 0 : EINVAL);
		wr_abort(&fixture->qp.ex);
	}
}

/* Expects a refusal when the work request is closed, by either call that closes it. */
static void expect_copy_mask(const struct test_domain *memory, const struct test_domain *wire, bool refused)
{
	uint64_t before;

	start();
	configure(2, 0);
	fixture_set_signature(fixture, memory, wire, COPY, 0xff, 0xf0);
	assert_int_equal(fixture->qp.builder.error, 0);
	before = fixture_last_serial();
	mlx5dv_wr_set_mkey_access_flags(dv, 0);
	if (!refused) {
		assert_int_equal(fixture->qp.builder.error, 0);
		wr_abort(&fixture->qp.ex);
		return;
	}
	expect_record(before, RULE_SIG_COPY_MASK);
	expect_refused(EINVAL);
}

TEST(copy_mask_needs_one_structure)
{
	static const struct test_domain others[] = {CRC(CRC32, 520, 0), CRC(CRC32C, 512, 0), DIF(CRC, 512, 0, 0, 0, 0),
						    NONE};

	for (int connectx = 0; connectx < 2; connectx++) {
		set_profile(connectx ? PROFILE_CONNECTX : PROFILE_MAN);
		for (size_t i = 0; i < 4; i++) {
			expect_copy_mask(&others[i], &crc, true);
			/* The library of a ConnectX does not check it without a wire domain (mlx5-formats 4.5). */
			expect_copy_mask(&crc, &others[i], !(connectx && others[i].none));
		}
		expect_copy_mask(&crc, &crc, false);
	}
	set_profile(PROFILE_MAN);
}

/* mlx5-formats 4.5: entries and BSF fit into max_inline_data + 4; QPs of one SGE have 60 and 124. */
TEST(room_for_layout_and_signature)
{
	static const struct {
		uint32_t max_inline, entries;
		bool fits;
	} row[] = {
		{59, 0, false}, {60, 0, true},   {60, 1, false},  {123, 4, false},  {124, 1, true},
		{124, 4, true}, {124, 5, false}, {572, 32, true}, {572, 33, false},
	};
	struct ibv_sge sge[64] = {{0}};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		uint64_t before;

		fixture->qp.sq.max_inline = row[i].max_inline;
		for (uint32_t e = 0; e < 64; e++)
			sge[e] = (struct ibv_sge){.addr = 4096, .length = 512, .lkey = 1};
		start();
		configure(2, 0);
		mlx5dv_wr_set_mkey_layout_list(dv, row[i].entries, sge);
		assert_int_equal(fixture->qp.builder.error, 0);
		before = fixture_last_serial();
		fixture_set_signature(fixture, &crc, &none, 0, 0, 0);
		if (row[i].fits) {
			assert_int_equal(fixture->qp.builder.error, 0);
			wr_abort(&fixture->qp.ex);
		} else {
			expect_record(before, RULE_MKEY_BSF_ROOM);
			expect_refused(ENOMEM);
		}
	}
}

static void set_length(uint64_t length)
{
	struct ibv_sge sge[3] = {{.addr = 0, .length = UINT32_MAX, .lkey = 1}, {.addr = 0, .length = 1, .lkey = 1}};

	mlx5dv_wr_set_mkey_layout_list(dv, length > UINT32_MAX ? 2 : 1, sge);
}

TEST(a_layout_beyond_32_bits)
{
	uint64_t before;

	start();
	configure(2, 0);
	set_length(UINT32_MAX);
	fixture_set_signature(fixture, &crc, &none, 0, 0, 0);
	assert_int_equal(fixture->qp.builder.error, 0);
	wr_abort(&fixture->qp.ex);

	/* In one work request, and with an earlier layout. */
	for (int earlier = 0; earlier < 2; earlier++) {
		start();
		if (earlier) {
			configure(1, MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR);
			set_length(UINT32_MAX + UINT64_C(1));
			assert_int_equal(fixture->qp.builder.error, 0);
		}
		configure(2 - earlier, 0);
		if (!earlier)
			set_length(UINT32_MAX + UINT64_C(1));
		before = fixture_last_serial();
		fixture_set_signature(fixture, &crc, &none, 0, 0, 0);
		expect_record(before, RULE_MKEY_BSF_LENGTH);
		expect_refused(EINVAL);
	}
}

/* One request for the UMR, one for each domain; a request that does not fit rolls back all of them. */
TEST(requests_that_a_configuration_takes)
{
	for (int domains = 1; domains <= 3; domains++) {
		uint32_t needed = domains == 3 ? 3 : 2;

		for (uint32_t slots = 0; slots <= 3; slots++) {
			fixture_sign(fixture);
			start();
			fixture->qp.sq.max_post = slots;
			configure(1, 0);
			fixture_set_signature(fixture, domains & 1 ? &crc : &none, domains & 2 ? &dif : &none, 0, 0, 0);
			if (slots < needed) {
				expect_refused(ENOMEM);
			} else {
				assert_int_equal(fixture->qp.builder.error, 0);
				assert_int_equal(fixture->qp.builder.count, needed);
				wr_abort(&fixture->qp.ex);
			}
		}
	}
}

/* ---- states ----------------------------------------------------------------------------------------------------- */

/* Expects these fields of the BSF in the UMR at @index, and @more requests after it. */
static void expect_umr(uint32_t index, uint64_t mask, uint32_t flags_pd, uint32_t octowords, uint32_t more)
{
	uint32_t blocks = 2 + octowords / 4 + more;
	uint8_t wqe[128];

	assert_int_equal(fixture->qp.builder.error, 0);
	fixture_read(fixture, index, wqe, sizeof(wqe));
	assert_int_equal(wqe[3], 0x25);
	assert_int_equal(be16_at(wqe, 22), octowords);
	assert_int_equal(be64_at(wqe, 24), mask);
	assert_int_equal(be32_at(wqe, 76), flags_pd);
	assert_int_equal(fixture->qp.sq.cur_post, index + blocks);
}

/* Does what ibv_poll_cq(3) does with an error CQE. */
static void meet_error(void)
{
	signature->error_count++;
	signature->rearm = true;
}

TEST(never_configured)
{
	start();
	/* The first one sets the count, and that there is no BSF; the next ones only that there is none. */
	configure(0, 0);
	expect_umr(0, MASK_BASE | MASK_BSF | MASK_SIG_ERR, COUNT_ODD, 0, 0);
	configure(0, 0);
	expect_umr(2, MASK_BASE | MASK_BSF, 0, 0, 0);
	assert_int_equal(fixture->qp.builder.count, 2);
	wr_abort(&fixture->qp.ex);
}

TEST(kept_until_reset)
{
	start();
	configure(1, 0);
	fixture_set_signature(fixture, &crc, &dif, 0, 0, 0);
	expect_umr(0, MASK_BASE | MASK_BSF | MASK_SIG_ERR, BSF_ON | COUNT_ODD, 4, 2);
	assert_int_equal(fixture->mkey.signature_state, BLOCK_UPDATED);

	/* Configured without the setter: no field is set, any number of times. */
	for (uint32_t i = 0; i < 3; i++) {
		configure(0, 0);
		expect_umr(5 + 2 * i, MASK_BASE, 0, 0, 0);
		assert_int_equal(fixture->mkey.signature_state, BLOCK_SET);
	}
	/* Set again. */
	configure(1, 0);
	fixture_set_signature(fixture, &none, &crc, 0, 0, 0);
	expect_umr(11, MASK_BASE | MASK_BSF, BSF_ON, 4, 1);
	/* Reset, and it stays reset. */
	configure(0, MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR);
	expect_umr(15, MASK_BASE | MASK_BSF, 0, 0, 0);
	assert_int_equal(fixture->mkey.signature_state, BLOCK_RESET);
	configure(0, 0);
	expect_umr(17, MASK_BASE | MASK_BSF, 0, 0, 0);
	assert_int_equal(fixture->mkey.signature_state, BLOCK_INIT);
	assert_int_equal(signature->memory.kind, SIGNATURE_NONE);
	assert_int_equal(signature->wire.kind, SIGNATURE_NONE);
	/* Reset and set in one work request: set. */
	configure(1, MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR);
	fixture_set_signature(fixture, &crc, &none, 0, 0, 0);
	expect_umr(19, MASK_BASE | MASK_BSF, BSF_ON, 4, 1);
	wr_abort(&fixture->qp.ex);
}

/* A polled error is acknowledged once, by the next configuration; with SET_PSVs if there is a signature. */
TEST(errors_are_acknowledged)
{
	uint8_t wqe[128];

	start();
	fixture->qp.ex.wr_flags |= IBV_SEND_SIGNALED;
	configure(1, 0);
	fixture_set_signature(fixture, &crc, &dif, 0, 0, 0);
	meet_error();
	configure(0, 0);
	expect_umr(5, MASK_BASE | MASK_SIG_ERR, 0, 0, 2); /* a count of 2 */
	assert_int_equal(fixture->qp.builder.count, 6);
	fixture_read(fixture, 5, wqe, 16);
	assert_int_equal(wqe[11], 0x20); /* completes by the last SET_PSV */
	fixture_read(fixture, 7, wqe, 32);
	assert_int_equal(wqe[3], 0x20);
	assert_int_equal(wqe[11], 0x20);
	assert_int_equal(be32_at(wqe, 16), TEST_MEMORY_PSV);
	assert_int_equal(be64_at(wqe, 24), 0xffffffff00000000);
	fixture_read(fixture, 8, wqe, 32);
	assert_int_equal(wqe[11], 0x28);
	assert_int_equal(be32_at(wqe, 16), TEST_WIRE_PSV);
	assert_int_equal(be64_at(wqe, 24), 0x0000000100000002);

	configure(0, 0);
	expect_umr(9, MASK_BASE, 0, 0, 0);
	fixture_read(fixture, 9, wqe, 16);
	assert_int_equal(wqe[11], 0x28);

	meet_error();
	configure(1, 0);
	fixture_set_signature(fixture, &crc, &none, 0, 0, 0);
	expect_umr(11, MASK_BASE | MASK_BSF | MASK_SIG_ERR, BSF_ON | COUNT_ODD, 4, 1);
	meet_error();
	meet_error();
	configure(0, MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR);
	expect_umr(15, MASK_BASE | MASK_BSF | MASK_SIG_ERR, COUNT_ODD, 0, 0);
	wr_abort(&fixture->qp.ex);
}

/* A key without signatures is configured as usual. */
TEST(a_plain_key_says_nothing)
{
	fixture->mkey.signature = NULL;
	start();
	configure(0, MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR);
	expect_umr(0, MASK_BASE, 0, 0, 0);
	wr_abort(&fixture->qp.ex);
}

/* ---- chains that are not posted --------------------------------------------------------------------------------- */

/* mlx5dv_wr_set_mkey_sig_block(3), Notes: attributes stay as set, and must be set or reset anew. */
TEST(attributes_outlive_a_dropped_chain)
{
	for (int aborted = 0; aborted < 2; aborted++) {
		fixture_sign(fixture);
		start();
		configure(1, 0);
		fixture_set_signature(fixture, &crc, &none, 0, 0, 0);
		if (aborted) {
			wr_abort(&fixture->qp.ex);
		} else {
			mlx5dv_wr_set_mkey_access_flags(dv, 0);
			expect_refused(EINVAL);
		}
		assert_int_equal(fixture->qp.sq.cur_post, 0);
		/* "on the next configuration of the MKey, if signature is not needed, it should be reset" */
		start();
		configure(0, MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR);
		expect_umr(0, MASK_BASE | MASK_BSF | MASK_SIG_ERR, COUNT_ODD, 0, 0);
		configure(1, 0);
		fixture_set_signature(fixture, &crc, &none, 0, 0, 0);
		expect_umr(2, MASK_BASE | MASK_BSF, BSF_ON, 4, 1);
		wr_abort(&fixture->qp.ex);
	}
}

/* An acknowledgement in a dropped chain is repeated by the next one; otherwise no further error would be reported. */
TEST(acknowledgement_outlives_a_dropped_chain)
{
	for (int aborted = 0; aborted < 2; aborted++) {
		fixture_sign(fixture);
		signature->rearm = false;
		meet_error();
		start();
		configure(0, 0);
		configure(1, 0);
		fixture_set_signature(fixture, &crc, &dif, 0, 0, 0);
		expect_umr(2, MASK_BASE | MASK_BSF, BSF_ON, 4, 2);
		if (aborted) {
			wr_abort(&fixture->qp.ex);
		} else {
			mlx5dv_wr_set_mkey_access_flags(dv, 0);
			expect_refused(EINVAL);
		}
		start();
		configure(0, 0);
		expect_umr(0, MASK_BASE | MASK_SIG_ERR, 0, 0, 2);
		configure(0, 0);
		expect_umr(4, MASK_BASE, 0, 0, 0);
		wr_abort(&fixture->qp.ex);
	}
}

/* The walk over a dropped chain: other requests, raw WQEs with a wrong length, the ring's end. */
TEST(chains_of_other_requests)
{
	for (uint32_t index = 0; index < TEST_BLOCKS; index++) {
		uint8_t raw[64] = {[3] = 0x25};

		signature->rearm = false;
		meet_error();
		fixture_place(fixture, index);
		wr_start(&fixture->qp.ex);
		fixture->qp.ex.wr_flags = IBV_SEND_INLINE;
		fixture->qp.dv_send_ops |= MLX5DV_QP_EX_WITH_RAW_WQE;
		assert_int_equal(dv_wr_table_fill(&fixture->qp, fixture->qp.dv_send_ops), 0);
		mlx5dv_wr_raw_wqe(dv, raw); /* a length of 0 */
		raw[7] = 4;
		mlx5dv_wr_raw_wqe(dv, raw);
		configure(0, 0);
		assert_int_equal(fixture->qp.builder.error, 0);
		assert_false(signature->rearm);
		wr_abort(&fixture->qp.ex);
		assert_true(signature->rearm);
		assert_int_equal(fixture->qp.sq.cur_post, index);
	}
}

int main(void)
{
	return run_cases(.setup = set_up, .teardown = tear_down);
}
