/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_post_recv(3) on a QP's own ring: entries (mlx5-formats 2.1), limits and errno values (4.2). */
#include "../support/posting_fixture.h"

static int post_recv(struct posting *p, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	*bad = NULL;
	device.rule = RULE_NONE;
	return softhca_ibv_post_recv(&p->qp.base, wr, bad);
}

static void check_entry(struct posting *p, uint32_t slot, uint32_t seg, uint32_t length, uint32_t lkey, uint64_t addr)
{
	const uint8_t *at = (uint8_t *)p->qp.rq.buffer + ((size_t)slot << p->qp.rq.shift) + seg * 16;
	struct expected e = {.length = 0};

	expect_pointer(&e, length, lkey, addr);
	assert_memory_equal(at, e.bytes, 16);
}

TEST(recv_entries)
{
	struct posting *p = posting_new(IBV_QPT_RC, 0, (struct ibv_qp_cap){.max_recv_wr = 4, .max_recv_sge = 3});
	struct ibv_sge sge[4] = {{0x1000, 16, 7}, {0x2000, 0, 8}, {0x3000, INT32_MAX, 9}, {0x4000, 1, 10}};
	struct ibv_recv_wr *bad, wr = {.wr_id = 3, .sg_list = sge, .num_sge = 4};

	assert_int_equal(p->qp.rq.max_gs, 4); /* 3 requested */
	/* Empty SGEs are omitted; a terminator follows if there is room. */
	assert_int_equal(post_recv(p, &wr, &bad), 0);
	check_entry(p, 0, 0, 16, 7, 0x1000);
	check_entry(p, 0, 1, INT32_MAX, 9, 0x3000);
	check_entry(p, 0, 2, 1, 10, 0x4000);
	check_entry(p, 0, 3, 0, 0x100, 0);
	assert_int_equal(p->qp.rq.wr_id[0], 3);
	assert_int_equal(be32toh(p->dbrec[0]), 1);
	assert_int_equal(p->dbrec[1], 0);
	assert_int_equal(device.recv_doorbells, 1);
	sge[1].length = 5;
	assert_int_equal(post_recv(p, &wr, &bad), 0);
	check_entry(p, 1, 3, 1, 10, 0x4000);
	wr.num_sge = 0;
	assert_int_equal(post_recv(p, &wr, &bad), 0);
	check_entry(p, 2, 0, 0, 0x100, 0);

	sge[0].length = UINT32_C(1) << 31;
	wr.num_sge = 1;
	assert_int_equal(post_recv(p, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(device.rule, RULE_SGE_LENGTH);
	sge[0].length = 1;
	wr.num_sge = 5;
	assert_int_equal(post_recv(p, &wr, &bad), EINVAL);
	assert_int_equal(device.rule, RULE_RECV_SGE_COUNT);
	posting_free(p);
}

/* Exactly max_recv_wr fit, over the wrap of the 16-bit record and of all counters. */
TEST(recv_full)
{
	static const uint32_t heads[] = {0, 0xfffe, UINT32_MAX - 1};
	struct posting *p = posting_new(IBV_QPT_RC, 0, (struct ibv_qp_cap){.max_recv_wr = 5, .max_recv_sge = 1});
	struct ibv_recv_wr *bad, wr[10];

	assert_int_equal(p->qp.cap.max_recv_wr, 8);
	for (size_t h = 0; h < 3; h++) {
		p->qp.rq.head = p->qp.rq.tail = heads[h];
		for (int i = 0; i < 10; i++)
			wr[i] = (struct ibv_recv_wr){.wr_id = 100 + i, .next = i < 9 ? &wr[i + 1] : NULL};
		device.recv_doorbells = 0;
		assert_int_equal(post_recv(p, wr, &bad), ENOMEM);
		assert_ptr_equal(bad, &wr[8]);
		assert_int_equal(device.rule, RULE_RQ_FULL);
		assert_int_equal(device.recv_doorbells, 1);
		assert_int_equal(be32toh(p->dbrec[0]), (heads[h] + 8) & 0xffff);
		for (uint32_t i = 0; i < 8; i++)
			assert_int_equal(p->qp.rq.wr_id[(heads[h] + i) % 8], 100 + i);
		p->qp.rq.tail++;
		wr[0].next = NULL;
		assert_int_equal(post_recv(p, wr, &bad), 0);
		assert_int_equal(post_recv(p, wr, &bad), ENOMEM);
	}
	posting_free(p);
}

TEST(recv_states)
{
	struct posting *p = posting_new(IBV_QPT_RC, 0, (struct ibv_qp_cap){.max_recv_wr = 1, .max_recv_sge = 1});
	struct user_srq srq = {0};
	struct ibv_recv_wr *bad, wr = {.num_sge = 0};

	rq_set_limit(&p->qp.rq, -1); /* RESET */
	assert_int_equal(post_recv(p, &wr, &bad), EINVAL);
	assert_int_equal(device.rule, RULE_RECV_IN_RESET);
	wr.num_sge = -1;
	assert_int_equal(post_recv(p, &wr, &bad), EINVAL);
	posting_free(p);

	p = posting_new(IBV_QPT_RC, 0, (struct ibv_qp_cap){.max_send_wr = 1});
	assert_int_equal(post_recv(p, &wr, &bad), ENOMEM);
	p->qp.base.srq = &srq.base;
	assert_int_equal(post_recv(p, &wr, &bad), ENOMEM);
	assert_int_equal(device.rule, RULE_RECV_ON_SRQ);
	posting_free(p);
}
