/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIG_ERR CQEs, written byte by byte (mlx5-formats 3.5), from polling to mlx5dv_mkey_check(3) (4.6), in profile
 * connectx. In profile man polling skips them. CQ and keys are made by hand.
 */
#include <pthread.h>

#include "../support/cq_fixture.h"

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "verbs/memory/signature.h"

enum {
	KEYS = 3,
	FIRST_INDEX = 0x123456,

	GUARD = 0x2000,
	APP = 0x1000,
	REF = 0x0800,
	WIRE = 0,
	MEMORY = 1,
};

struct keys {
	struct cq_fixture f;
	struct user_pd pd;
	struct user_mkey mkey[KEYS];
	struct key_signature signature[KEYS];
};

/* Key 0 has T10-DIF of 512 bytes in memory and CRC64 of 4160 on the wire; 1 and 2 share a list of the table with it. */
static void keys_init(struct keys *k, uint32_t cqe_size)
{
	fixture_init(&k->f, 8, cqe_size, 0);
	memset(&k->pd, 0, sizeof(k->pd));
	memset(k->mkey, 0, sizeof(k->mkey));
	memset(k->signature, 0, sizeof(k->signature));
	k->pd.base.context = &k->f.context.verbs.context;
	for (uint32_t i = 0; i < KEYS; i++) {
		uint32_t index = FIRST_INDEX + 256 * i;

		k->mkey[i].pd = &k->pd;
		k->mkey[i].signature = &k->signature[i];
		k->mkey[i].base.lkey = index << 8 | 0x77; /* as a program may change it */
		k->signature[i].index = index;
		k->signature[i].error_count = 1;
		k->signature[i].next = k->f.context.signatures.list[index % 256];
		k->f.context.signatures.list[index % 256] = &k->mkey[i];
		k->signature[i].memory = (struct key_domain){
			.kind = SIGNATURE_T10DIF, .block_size = MLX5DV_BLOCK_SIZE_512, .dif = {.app_tag = 1}};
		k->signature[i].wire = (struct key_domain){.kind = SIGNATURE_CRC,
							   .block_size = MLX5DV_BLOCK_SIZE_4160,
							   .crc = {MLX5DV_SIG_CRC_TYPE_CRC64_XP10, 0}};
	}
	cq_poll_ex_fill(&k->f.cq, 0);
}

static void set_profile(enum setting_PROFILE profile)
{
	((struct settings *)hca_settings(hca_device(0)))->profile = profile;
}

struct error {
	uint16_t syndrome;
	uint8_t type, domain;
	uint64_t expected, actual, offset;
	uint32_t mkey;
};

/* Bytes outside the fields of the error have a pattern. The offsets come from the table in mlx5-formats 3.5. */
static void write_error(struct cq_fixture *f, struct error e)
{
	uint32_t index = f->producer++;
	uint8_t *cqe =
		(uint8_t *)f->cq.buffer + (size_t)(index % f->cq.cqe_count) * f->cq.cqe_size + f->cq.cqe_size - 64;

	memset(cqe, 0xa5, 63);
	put(cqe + 16, e.expected >> 32, 4);
	put(cqe + 20, e.actual >> 32, 4);
	put(cqe + 24, e.expected & 0xffffffff, 4);
	put(cqe + 28, e.actual & 0xffffffff, 4);
	put(cqe + 32, e.syndrome, 2);
	put(cqe + 34, e.type, 1);
	put(cqe + 35, e.domain, 1);
	put(cqe + 36, e.mkey, 4);
	put(cqe + 40, e.offset, 8);
	put(cqe + 56, 0x4001, 4);
	__atomic_store_n(cqe + 63, (uint8_t)(12 << 4 | (index / f->cq.cqe_count & 1)), __ATOMIC_RELEASE);
}

static struct error plain_error(void)
{
	return (struct error){
		.syndrome = GUARD,
		.domain = MEMORY,
		.expected = 0x9916567812345678,
		.actual = 0xec7d1234f0debc9a,
		.offset = 519,
		.mkey = FIRST_INDEX << 8,
	};
}

/* The key stays alive during the check. */
static int check_of_size(struct keys *k, uint32_t key, struct mlx5dv_mkey_err *info, size_t size)
{
	struct user_mkey *mkey = &k->mkey[key];
	int result;

	object_enter(&mkey->base, &mkey->alive, &k->f.context.verbs.context);
	result = softhca__mlx5dv_mkey_check(&mkey->base, info, size);
	object_leave(&mkey->alive);
	return result;
}

static int check(struct keys *k, uint32_t key, struct mlx5dv_mkey_err *info)
{
	memset(info, 0xee, sizeof(*info));
	return check_of_size(k, key, info, sizeof(*info));
}

static void expect_no_error(struct keys *k, uint32_t key)
{
	struct mlx5dv_mkey_err info;

	assert_int_equal(check(k, key, &info), 0);
	assert_int_equal(info.err_type, MLX5DV_MKEY_NO_ERR);
}

static void poll_nothing(struct keys *k)
{
	struct ibv_wc wc;

	assert_int_equal(poll_one(&k->f, &wc), 0);
}

/* Every relevant byte of the CQE is used, and the two values are kept apart. */
TEST(every_field_is_taken)
{
	struct keys k;

	for (uint32_t size = 64; size <= 128; size += 64) {
		const struct key_error *error = &k.signature[0].error;

		keys_init(&k, size);
		write_error(&k.f, (struct error){
					  .syndrome = 0x1234,
					  .type = 0xfd,
					  .domain = 0xf9,
					  .expected = 0x0123456789abcdef,
					  .actual = 0xfedcba9876543210,
					  .offset = 0x1122334455667788,
					  .mkey = FIRST_INDEX << 8 | 0x99,
				  });
		poll_nothing(&k);
		assert_int_equal(error->syndrome, 0x1234);
		assert_int_equal(error->type, 5);   /* 3 bits */
		assert_int_equal(error->domain, 1); /* 3 bits */
		assert_int_equal(error->expected, 0x0123456789abcdef);
		assert_int_equal(error->actual, 0xfedcba9876543210);
		assert_int_equal(error->offset, 0x1122334455667788);
		assert_true(k.signature[0].error_exists);
		assert_true(k.signature[0].rearm);
		assert_int_equal(k.signature[0].error_count, 2);
		assert_int_equal(k.signature[1].error_count, 1);
		assert_int_equal(published(&k.f), 1);
		fixture_free(&k.f);
	}
}

/* Each key has its own error. The tag in the CQE and the lkey seen by the program do not matter. */
TEST(errors_go_to_their_key)
{
	struct mlx5dv_mkey_err info;
	struct keys k;

	for (uint32_t key = 0; key < KEYS; key++) {
		struct error error = plain_error();

		keys_init(&k, 64);
		error.mkey = (FIRST_INDEX + 256 * key) << 8 | 3 * key;
		write_error(&k.f, error);
		poll_nothing(&k);
		for (uint32_t i = 0; i < KEYS; i++) {
			if (i != key) {
				expect_no_error(&k, i);
				continue;
			}
			assert_int_equal(check(&k, i, &info), 0);
			assert_int_equal(info.err_type, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD);
			expect_no_error(&k, i); /* reported once */
		}
		fixture_free(&k.f);
	}
}

/* The newest of several polled errors is kept; each counts. */
TEST(a_later_error_overwrites)
{
	struct error error = plain_error();
	struct mlx5dv_mkey_err info;
	struct keys k;

	keys_init(&k, 64);
	write_error(&k.f, error);
	error.syndrome = REF;
	write_error(&k.f, error);
	poll_nothing(&k);
	assert_int_equal(published(&k.f), 2);
	assert_int_equal(k.signature[0].error_count, 3);
	assert_int_equal(check(&k, 0, &info), 0);
	assert_int_equal(info.err_type, MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG);
	expect_no_error(&k, 0);
	fixture_free(&k.f);
}

/* mlx5-formats 3.5: polls that meet only signature errors return nothing; completions around them are returned as usual. */
TEST(polls_absorb_them)
{
	struct ibv_poll_cq_attr no_attr = {0};
	struct ibv_wc wc[4];
	struct keys k;

	keys_init(&k, 64);
	write_error(&k.f, plain_error());
	write_plain(&k.f, 0, 0x0a, 0, 3);
	write_error(&k.f, plain_error());
	write_plain(&k.f, 2, 0, 1, 0);
	write_error(&k.f, plain_error());
	assert_int_equal(softhca_ibv_poll_cq(&k.f.cq.base, 1, wc), 1);
	assert_int_equal(wc[0].wr_id, 3);
	assert_int_equal(softhca_ibv_poll_cq(&k.f.cq.base, 4, wc), 1);
	assert_int_equal(wc[0].wr_id, 1500);
	assert_int_equal(k.signature[0].error_count, 4);
	assert_int_equal(published(&k.f), 5);

	write_error(&k.f, plain_error());
	assert_int_equal(ibv_start_poll(&k.f.cq.ex, &no_attr), ENOENT);
	assert_int_equal(published(&k.f), 6);
	write_plain(&k.f, 0, 0x0a, 0, 9);
	write_error(&k.f, plain_error());
	assert_int_equal(ibv_start_poll(&k.f.cq.ex, &no_attr), 0);
	assert_int_equal(k.f.cq.ex.wr_id, 9);
	assert_int_equal(ibv_next_poll(&k.f.cq.ex), ENOENT);
	ibv_end_poll(&k.f.cq.ex);
	assert_int_equal(published(&k.f), 8);
	assert_int_equal(k.signature[0].error_count, 6);
	fixture_free(&k.f);
}

TEST(an_unknown_key)
{
	static const uint32_t indices[] = {1, FIRST_INDEX + 1, FIRST_INDEX + 256 * KEYS, 0xffffff};
	struct ibv_poll_cq_attr no_attr = {0};
	struct explain_record record;
	struct ibv_wc wc;
	struct keys k;

	for (int i = 0; i < 4; i++) {
		struct error error = plain_error();

		keys_init(&k, 64);
		error.mkey = indices[i] << 8;
		write_error(&k.f, error);
		assert_int_equal(poll_one(&k.f, &wc), -2);
		assert_true(explain_previous(hca_device(0), 0, 0, &record));
		assert_int_equal(record.rule, RULE_SIGNATURE_ERROR_OF_NO_KEY);
		assert_int_equal(record.args[0], indices[i]);
		assert_int_equal(published(&k.f), 1);
		write_error(&k.f, error);
		assert_int_equal(ibv_start_poll(&k.f.cq.ex, &no_attr), -2);
		write_plain(&k.f, 0, 0x0a, 0, 9);
		assert_int_equal(poll_one(&k.f, &wc), 1);
		fixture_free(&k.f);
	}
}

/* mlx5-formats 4.6, the rows measured on adapters, and 6, point 14. */
TEST(values_by_type)
{
	static const struct {
		struct key_domain domain;
		uint16_t syndrome;
		uint64_t expected, actual, offset; /* fields of the CQE */
		enum mlx5dv_mkey_err_type type;
		uint64_t computed, found;
	} row[] = {
		{{.kind = SIGNATURE_T10DIF, .block_size = MLX5DV_BLOCK_SIZE_512},
		 GUARD,
		 0x99165678f0debc9a,
		 0xec7d5678f0debc9a,
		 519,
		 MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD,
		 0x9916,
		 0xec7d},
		{{.kind = SIGNATURE_T10DIF, .block_size = MLX5DV_BLOCK_SIZE_512},
		 APP,
		 0x99165678f0debc9a,
		 0x9916a978f0debc9a,
		 1039,
		 MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG,
		 0x5678,
		 0xa978},
		{{.kind = SIGNATURE_T10DIF, .block_size = MLX5DV_BLOCK_SIZE_520},
		 REF,
		 0x99165678f0debc9a,
		 0x991656780fdebc9a,
		 1583,
		 MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG,
		 0xf0debc9a,
		 0x0fdebc9a},
		{{.kind = SIGNATURE_CRC, .block_size = MLX5DV_BLOCK_SIZE_512, .crc = {MLX5DV_SIG_CRC_TYPE_CRC32, 0}},
		 GUARD,
		 0x699aca2100000000,
		 0x969aca2100000000,
		 515,
		 MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD,
		 0x699aca21,
		 0x969aca21},
		{{.kind = SIGNATURE_CRC, .block_size = MLX5DV_BLOCK_SIZE_4048, .crc = {MLX5DV_SIG_CRC_TYPE_CRC32C, 0}},
		 GUARD,
		 0x4207e6b4ffffffff,
		 0x4207e6b5eeeeeeee,
		 4052 * UINT64_C(0x100000001) - 1,
		 MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD,
		 0x4207e6b4,
		 0x4207e6b5},
		{{.kind = SIGNATURE_CRC,
		  .block_size = MLX5DV_BLOCK_SIZE_4096,
		  .crc = {MLX5DV_SIG_CRC_TYPE_CRC64_XP10, 0}},
		 GUARD,
		 0x8c8adb450cce85aa,
		 0x8c8adb450cce85ab,
		 3 * 4104 - 1,
		 MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD,
		 0x8c8adb450cce85aa,
		 0x8c8adb450cce85ab},
		{{.kind = SIGNATURE_T10DIF, .block_size = MLX5DV_BLOCK_SIZE_4160},
		 GUARD,
		 0x99165678f0debc9a,
		 0xec7d5678f0debc9a,
		 2 * 4168 - 1,
		 MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD,
		 0x9916,
		 0xec7d},
	};
	struct mlx5dv_mkey_err info;
	struct keys k;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		for (int domain = WIRE; domain <= MEMORY; domain++) {
			struct key_domain *set;

			keys_init(&k, 64);
			set = domain == MEMORY ? &k.signature[0].memory : &k.signature[0].wire;
			*set = row[i].domain;
			write_error(&k.f, (struct error){row[i].syndrome, 0, (uint8_t)domain, row[i].expected,
							 row[i].actual, row[i].offset, FIRST_INDEX << 8});
			poll_nothing(&k);
			assert_int_equal(check(&k, 0, &info), 0);
			assert_int_equal(info.err_type, row[i].type);
			assert_int_equal(info.err.sig.actual_value, row[i].found);
			assert_int_equal(info.err.sig.expected_value, row[i].computed);
			assert_int_equal(info.err.sig.offset, row[i].offset);
			fixture_free(&k.f);
		}
	}
}

/* Several bits: guard before application tag before reference tag. Undefined bits are ignored. */
TEST(priority)
{
	struct mlx5dv_mkey_err info;
	struct keys k;

	for (uint32_t bits = 1; bits < 8; bits++) {
		struct error error = plain_error();

		keys_init(&k, 64);
		error.syndrome = (uint16_t)(bits << 11 | 0x8001);
		write_error(&k.f, error);
		poll_nothing(&k);
		assert_int_equal(check(&k, 0, &info), 0);
		assert_int_equal(info.err_type, bits & 4   ? MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD
						: bits & 2 ? MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG
							   : MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG);
		fixture_free(&k.f);
	}
}

/* An error that cannot be decoded stays recorded. */
TEST(refused_checks)
{
	static const struct {
		uint16_t syndrome;
		uint8_t type, domain;
		enum explain_rule rule;
	} row[] = {
		{0, 0, 1, RULE_MKEY_CHECK_UNKNOWN_ERROR},     {0xc7ff, 0, 1, RULE_MKEY_CHECK_UNKNOWN_ERROR},
		{GUARD, 1, 1, RULE_MKEY_CHECK_UNKNOWN_ERROR}, {GUARD, 0, 2, RULE_MKEY_CHECK_UNKNOWN_ERROR},
		{GUARD, 0, 0, RULE_MKEY_CHECK_NO_DOMAIN},
	};
	struct mlx5dv_mkey_err info, untouched;
	struct explain_record record;
	struct keys k;

	memset(&untouched, 0xee, sizeof(untouched));
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct error error = plain_error();

		keys_init(&k, 64);
		k.signature[0].wire.kind = SIGNATURE_NONE;
		error.syndrome = row[i].syndrome;
		error.type = row[i].type;
		error.domain = row[i].domain;
		write_error(&k.f, error);
		poll_nothing(&k);
		for (int again = 0; again < 2; again++) {
			assert_int_equal(check(&k, 0, &info), EINVAL);
			assert_true(explain_previous(hca_device(0), 0, 0, &record));
			assert_int_equal(record.rule, row[i].rule);
			assert_memory_equal(&info, &untouched, sizeof(info));
		}
		/* Once the domain has a signature again, the error is decoded with it. */
		k.signature[0].wire.kind = SIGNATURE_CRC;
		assert_int_equal(check(&k, 0, &info), row[i].rule == RULE_MKEY_CHECK_NO_DOMAIN ? 0 : EINVAL);
		fixture_free(&k.f);
	}

	keys_init(&k, 64);
	k.mkey[0].signature = NULL;
	assert_int_equal(check(&k, 0, &info), EINVAL);
	assert_true(explain_previous(hca_device(0), 0, 0, &record));
	assert_int_equal(record.rule, RULE_MKEY_CHECK_NO_SIGNATURE);
	fixture_free(&k.f);
}

/* A program built with an older header has a shorter structure; bytes after it are not written. */
TEST(shorter_structures)
{
	struct mlx5dv_mkey_err info, full, untouched;
	struct keys k;

	memset(&untouched, 0xee, sizeof(untouched));
	for (size_t size = 0; size <= sizeof(info); size += 4) {
		keys_init(&k, 64);
		write_error(&k.f, plain_error());
		write_error(&k.f, plain_error());
		poll_nothing(&k);
		memset(&info, 0xee, sizeof(info));
		assert_int_equal(check_of_size(&k, 0, &info, size), 0);
		k.signature[0].error_exists = true;
		assert_int_equal(check(&k, 0, &full), 0);
		assert_memory_equal(&info, &full, size);
		assert_memory_equal((char *)&info + size, (char *)&untouched + size, sizeof(info) - size);
		fixture_free(&k.f);
	}
}

/* CQEs of a QP are dropped with it; errors of keys stay. */
TEST(purges_leave_them)
{
	struct error error = plain_error();
	struct keys k;

	keys_init(&k, 64);
	write_plain(&k.f, 0, 0x0a, 0, 3);
	write_error(&k.f, error);
	write_plain(&k.f, 0, 0x0a, 0, 4);
	user_cq_purge_qp(&k.f.qp[0]);
	poll_nothing(&k);
	assert_int_equal(k.signature[0].error_count, 2);
	fixture_free(&k.f);
}

/* Profile man: such CQEs are for programs that read the ring themselves. They change no key, existing or not. */
TEST(profile_man_passes_over_them)
{
	struct ibv_poll_cq_attr no_attr = {0};
	struct error error = plain_error();
	struct ibv_wc wc;
	struct keys k;

	set_profile(PROFILE_MAN);
	for (int known = 0; known < 2; known++) {
		keys_init(&k, 64);
		if (!known)
			error.mkey = (FIRST_INDEX + 1) << 8;
		write_error(&k.f, error);
		write_plain(&k.f, 0, 0x0a, 0, 3);
		assert_int_equal(poll_one(&k.f, &wc), 1);
		write_error(&k.f, error);
		assert_int_equal(poll_one(&k.f, &wc), 0);
		write_error(&k.f, error);
		assert_int_equal(ibv_start_poll(&k.f.cq.ex, &no_attr), ENOENT);
		assert_int_equal(published(&k.f), 4);
		assert_false(k.signature[0].error_exists);
		assert_int_equal(k.signature[0].error_count, 1);
		fixture_free(&k.f);
	}
	set_profile(PROFILE_CONNECTX);
}

int main(void)
{
	hca_count();
	set_profile(PROFILE_CONNECTX);
	return run_cases();
}
