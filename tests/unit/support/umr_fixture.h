/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hand-made QP for tests of the key builders: a ring, its side tables, one key; device 0 of the process for
 * explanations and settings.
 */
#ifndef SOFTHCA_TESTS_UMR_FIXTURE_H
#define SOFTHCA_TESTS_UMR_FIXTURE_H

#include "test_case.h"

#include "explain/explain.h"
#include "mlx5dv/wr_table.h"
#include "verbs/object/objects.h"
#include "verbs/post/send_operations.h"
#include "verbs/post/wqe_builder.h"

enum {
	TEST_BLOCKS = 32,
	TEST_QPN = 0x123456,
	TEST_LKEY = 0x00abcd00,
	TEST_MAX_INLINE = 828, /* for a WQE of 1024 bytes: 52 entries */
	TEST_FILLING = 0xa5,
};

struct fixture {
	struct user_device device;
	struct user_context context;
	struct user_qp qp;
	struct user_mkey mkey;
	uint64_t wr_id[TEST_BLOCKS];
	uint32_t wqe_head[TEST_BLOCKS], wqe_post[TEST_BLOCKS];
	uint8_t wc_opcode[TEST_BLOCKS];
	uint8_t *ring;
};

static __attribute__((unused)) struct mlx5dv_mkey_conf_attr no_attributes;

/* Sets the producer to @index and fills the ring with a pattern. */
static inline void fixture_place(struct fixture *f, uint32_t index)
{
	memset(f->ring, TEST_FILLING, TEST_BLOCKS * 64);
	f->qp.sq.cur_post = index;
	f->qp.sq.head = f->qp.sq.tail = index;
	sq_set_fence(&f->qp.sq, 0);
	memset(&f->qp.builder, 0, sizeof(f->qp.builder));
}

static inline struct fixture *fixture_new(void)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->ring = aligned_alloc(64, TEST_BLOCKS * 64);
	f->device.hca = hca_device(0);
	f->context.verbs.context.device = &f->device.base;
	f->qp.base.context = &f->context.verbs.context;
	f->qp.base.qp_num = TEST_QPN;
	f->qp.base.qp_type = IBV_QPT_RC;
	f->qp.type = IBV_QPT_RC;
	f->qp.has_ex = true;
	f->qp.dv_send_ops =
		MLX5DV_QP_EX_WITH_MR_LIST | MLX5DV_QP_EX_WITH_MR_INTERLEAVED | MLX5DV_QP_EX_WITH_MKEY_CONFIGURE;
	queue_lock_init(&f->qp.sq.lock, LOCK_LEVEL_SEND_QUEUE, true);
	f->qp.sq.buffer = f->ring;
	f->qp.sq.wqebb_count = TEST_BLOCKS;
	f->qp.sq.wqe_size = 1024;
	f->qp.sq.max_post = TEST_BLOCKS / 2;
	f->qp.sq.max_gs = 1;
	f->qp.sq.max_inline = TEST_MAX_INLINE;
	f->qp.sq.wr_id = f->wr_id;
	f->qp.sq.wqe_head = f->wqe_head;
	f->qp.sq.wqe_post = f->wqe_post;
	f->qp.sq.wc_opcode = f->wc_opcode;
	f->mkey.base.lkey = f->mkey.base.rkey = TEST_LKEY;
	f->mkey.max_entries = 64;
	f->mkey.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT;
	assert_int_equal(dv_wr_table_fill(&f->qp, f->qp.dv_send_ops), 0);
	send_queue_derive(&f->qp);
	fixture_place(f, 0);
	return f;
}

static inline void fixture_free(struct fixture *f)
{
	queue_lock_destroy(&f->qp.sq.lock);
	free(f->ring);
	free(f);
}

/* As ibv_wr_start(3) and the assignments that follow it. */
static inline void fixture_start(struct fixture *f, unsigned int wr_flags)
{
	memset(&f->qp.builder, 0, sizeof(f->qp.builder));
	f->qp.builder.rollback_cur_post = f->qp.sq.cur_post;
	f->qp.builder.rollback_fence_cache = f->qp.sq.fence_cache;
	f->qp.ex.wr_flags = wr_flags;
}

/* Copies @length bytes of the WQE at block @index out of the ring, byte by byte. */
static inline void fixture_read(const struct fixture *f, uint32_t index, uint8_t *out, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		out[i] = f->ring[(index % TEST_BLOCKS * 64 + i) % (TEST_BLOCKS * 64)];
}

static inline void fixture_expect_untouched(const struct fixture *f, uint32_t index, uint32_t blocks)
{
	for (uint32_t i = 0; i < blocks * 64; i++)
		if (f->ring[(index % TEST_BLOCKS * 64 + i) % (TEST_BLOCKS * 64)] != TEST_FILLING)
			fail_msg("byte %u after the WQE was written", i);
}

static inline uint16_t be16_at(const uint8_t *bytes, uint32_t offset)
{
	return (uint16_t)(bytes[offset] << 8 | bytes[offset + 1]);
}

static inline uint32_t be32_at(const uint8_t *bytes, uint32_t offset)
{
	return (uint32_t)be16_at(bytes, offset) << 16 | be16_at(bytes, offset + 2);
}

static inline uint64_t be64_at(const uint8_t *bytes, uint32_t offset)
{
	return (uint64_t)be32_at(bytes, offset) << 32 | be32_at(bytes, offset + 4);
}

static inline void expect_zero(const uint8_t *bytes, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		if (bytes[i])
			fail_msg("byte %u is 0x%02x, not 0", i, bytes[i]);
}

static inline uint64_t fixture_last_serial(void)
{
	struct explain_record record;

	return explain_previous(hca_device(0), 0, 0, &record) ? record.serial : 0;
}

/* Checks that exactly one record was made since serial @before, by @rule, about the QP. */
static inline void expect_record(uint64_t before, enum explain_rule rule)
{
	struct explain_record record;

	assert_int_equal(explain_previous(hca_device(0), 0, 0, &record), 1);
	assert_int_equal(record.serial, before + 1);
	assert_int_equal(record.rule, rule);
	assert_int_equal(record.subject.qpn, TEST_QPN);
}

#endif
