/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting, from the program to the device and back: each operation by ibv_post_send(3) and by its ibv_wr_* builder,
 * with data pointers and inline, on RC, UC and UD, through every place of a small ring and over the wrap of the
 * 16-bit index; unsignalled accounting, RESET, and a QP that goes while an event of it is not acknowledged.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "mlx5dv_pair.h"

enum { BYTES = 4096, IMM = 0x01020304, QKEY = 0x7777, GRH = 40, WRS = 5 };

static struct pair pair;
static struct ibv_mr *mr;
static struct ibv_ah *ah;
static uint8_t *memory, *source, *target; /* target: where the peer writes or receives */

/* Two QPs of @type that have all operations; the ring of WRS WRs is no power of two of them. */
static void create(enum ibv_qp_type type)
{
	static const uint64_t ud_ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	static const uint64_t uc_ops = 0x38f; /* WRITE, SEND, their variants, BIND_MW, LOCAL_INV */
	static const uint64_t rc_ops = 0x3ff | IBV_QP_EX_WITH_ATOMIC_WRITE;

	memset(&pair, 0, sizeof(pair));
	pair.context = open_first_device();
	pair.pd = ibv_alloc_pd(pair.context);
	pair.cq = ibv_create_cq(pair.context, 256, NULL, NULL, 0);
	assert_non_null(pair.cq);
	pair_find_gid(&pair);
	memory = aligned_alloc(4096, 4 * BYTES);
	source = memory;
	target = memory + 2 * BYTES;
	mr = ibv_reg_mr(pair.pd, memory, 4 * BYTES,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
	assert_non_null(mr);
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr_ex attr = {
			.send_cq = pair.cq,
			.recv_cq = pair.cq,
			.cap = {.max_send_wr = WRS,
				.max_recv_wr = 16,
				.max_send_sge = 3,
				.max_recv_sge = 2,
				.max_inline_data = 200},
			.qp_type = type,
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			.pd = pair.pd,
			.send_ops_flags = type == IBV_QPT_RC   ? rc_ops
					  : type == IBV_QPT_UC ? uc_ops
							       : ud_ops,
		};

		pair.qp[i] = ibv_create_qp_ex(pair.context, &attr);
		assert_non_null(pair.qp[i]);
		pair.ex[i] = ibv_qp_to_qp_ex(pair.qp[i]);
		assert_non_null(pair.ex[i]);
	}
}

static void modify(int i, struct ibv_qp_attr attr, int mask)
{
	assert_int_equal(ibv_modify_qp(pair.qp[i], &attr, mask), 0);
	assert_int_equal(pair.qp[i]->state, attr.qp_state);
}

static void connect_uc(int i)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = pair.qp[1 - i]->qp_num,
		.rq_psn = 0xffffff,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = pair.gid, .hop_limit = 1}},
	};

	attr.ah_attr.grh.sgid_index = (uint8_t)pair.gid_index;
	modify(i, attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN);
	modify(i, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = 0xffffff},
	       IBV_QP_STATE | IBV_QP_SQ_PSN);
}

static void to_rts_ud(int i)
{
	modify(i, (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY},
	       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	modify(i, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR}, IBV_QP_STATE);
	modify(i, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS}, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

static void ready(void)
{
	enum ibv_qp_type type = pair.qp[0]->qp_type;
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = pair.gid, .hop_limit = 1}};

	for (int i = 0; i < 2; i++) {
		if (type == IBV_QPT_UD)
			to_rts_ud(i);
		else
			pair_to_init(&pair, i);
	}
	for (int i = 0; i < 2 && type != IBV_QPT_UD; i++) {
		if (type == IBV_QPT_RC)
			pair_to_rts(&pair, i);
		else
			connect_uc(i);
	}
	if (type == IBV_QPT_UD) {
		attr.grh.sgid_index = (uint8_t)pair.gid_index;
		ah = ibv_create_ah(pair.pd, &attr);
		assert_non_null(ah);
	}
}

static int setup_rc(void **state)
{
	(void)state;
	create(IBV_QPT_RC);
	ready();
	return 0;
}

static int setup_uc(void **state)
{
	(void)state;
	create(IBV_QPT_UC);
	ready();
	return 0;
}

static int setup_ud(void **state)
{
	(void)state;
	create(IBV_QPT_UD);
	ready();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (ah)
		assert_int_equal(ibv_destroy_ah(ah), 0);
	ah = NULL;
	assert_int_equal(ibv_dereg_mr(mr), 0);
	pair_close(&pair);
	free(memory);
	return 0;
}

static void post_receive(uint64_t wr_id)
{
	struct ibv_sge sge = {(uintptr_t)target, BYTES, mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

	assert_int_equal(ibv_post_recv(pair.qp[1], &wr, &bad), 0);
}

/* ---- one message, in each way ---- */

enum way { POST, POST_INLINE, BUILD_SGE, BUILD_LIST, BUILD_INLINE, BUILD_INLINE_LIST, WAYS };

static bool is_inline(enum way way)
{
	return way == POST_INLINE || way == BUILD_INLINE || way == BUILD_INLINE_LIST;
}

static void build_operation(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(ex);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(ex, htobe32(IMM));
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)target);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(ex, mr->rkey, (uintptr_t)target, htobe32(IMM));
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(ex, mr->rkey, (uintptr_t)target);
		break;
	default:
		fail();
	}
}

static void build(enum ibv_wr_opcode opcode, enum way way, struct ibv_sge *sge, uint32_t length,
		  uint64_t wr_id)
{
	struct ibv_qp_ex *ex = pair.ex[0];
	struct ibv_data_buf bufs[3];

	for (int i = 0; i < 3; i++)
		bufs[i] = (struct ibv_data_buf){(void *)(uintptr_t)sge[i].addr, sge[i].length};
	ibv_wr_start(ex);
	ex->wr_id = wr_id;
	ex->wr_flags = IBV_SEND_SIGNALED;
	build_operation(ex, opcode);
	if (ah && wr_id % 2)
		ibv_wr_set_ud_addr(ex, ah, pair.qp[1]->qp_num, QKEY);
	if (way == BUILD_SGE)
		ibv_wr_set_sge(ex, mr->lkey, sge[0].addr, length);
	else if (way == BUILD_LIST)
		ibv_wr_set_sge_list(ex, 3, sge);
	else if (way == BUILD_INLINE)
		ibv_wr_set_inline_data(ex, bufs[0].addr, length);
	else
		ibv_wr_set_inline_data_list(ex, 3, bufs);
	if (ah && !(wr_id % 2))
		ibv_wr_set_ud_addr(ex, ah, pair.qp[1]->qp_num, QKEY);
	assert_int_equal(ibv_wr_complete(ex), 0);
}

static void post(enum ibv_wr_opcode opcode, unsigned int flags, struct ibv_sge *sge, uint64_t wr_id)
{
	struct ibv_send_wr *bad, wr = {
					 .wr_id = wr_id,
					 .sg_list = sge,
					 .num_sge = 3,
					 .opcode = opcode,
					 .send_flags = flags,
					 .imm_data = htobe32(IMM),
				 };

	if (ah) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = pair.qp[1]->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)target;
		wr.wr.rdma.rkey = mr->rkey;
	}
	assert_int_equal(ibv_post_send(pair.qp[0], &wr, &bad), 0);
}

static bool consumes_receive(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
	       opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* Both completions of a message that consumes a receive, in whichever order they are found. */
static void expect_both(uint64_t wr_id, enum ibv_wc_opcode opcode, bool imm, uint32_t length)
{
	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc = pair_poll(&pair);

		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.wr_id == wr_id) {
			assert_int_equal(wc.opcode, opcode);
			continue;
		}
		assert_int_equal(wc.wr_id, ~wr_id);
		assert_int_equal(wc.opcode,
				 opcode == IBV_WC_RDMA_WRITE ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
		assert_int_equal(wc.byte_len, length + (ah ? GRH : 0));
		assert_int_equal(!!(wc.wc_flags & IBV_WC_WITH_IMM), imm);
		if (imm)
			assert_int_equal(be32toh(wc.imm_data), IMM);
	}
}

/* @length bytes in three pieces, the middle one empty; the pieces follow each other in memory. */
static void message(enum ibv_wr_opcode opcode, enum way way, uint32_t length, uint64_t wr_id)
{
	bool read = opcode == IBV_WR_RDMA_READ;
	uint8_t *from = read ? target : source, *to = read ? source : target;
	struct ibv_sge sge[3] = {
		{(uintptr_t)source, length / 3, mr->lkey},
		{(uintptr_t)source + length / 3, 0, mr->lkey},
		{(uintptr_t)source + length / 3, length - length / 3, mr->lkey},
	};
	enum ibv_wc_opcode done = read ? IBV_WC_RDMA_READ
				  : opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM
					  ? IBV_WC_RDMA_WRITE
					  : IBV_WC_SEND;

	for (uint32_t i = 0; i < length; i++)
		from[i] = (uint8_t)(wr_id * 31 + i * 7);
	memset(to, 0xee, length + GRH + 1);
	if (consumes_receive(opcode))
		post_receive(~wr_id);
	if (way == POST || way == POST_INLINE)
		post(opcode, IBV_SEND_SIGNALED | (way == POST_INLINE ? IBV_SEND_INLINE : 0), sge, wr_id);
	else
		build(opcode, way, sge, length, wr_id);
	if (consumes_receive(opcode))
		expect_both(wr_id, done, opcode != IBV_WR_SEND, length);
	else
		pair_expect(&pair, wr_id, done);
	to += ah ? GRH : 0;
	assert_memory_equal(from, to, length);
	assert_int_equal(to[length], 0xee);
}

/* Lengths around the ends of segments, in all ways, while the ring is gone through many times. */
static void all_ways(const enum ibv_wr_opcode *opcodes, size_t count)
{
	static const uint32_t lengths[] = {0, 1, 8, 11, 12, 13, 27, 28, 60, 123, 124, 200, 1000};
	uint64_t wr_id = 0;

	for (int round = 0; round < 8; round++)
		for (size_t o = 0; o < count; o++)
			for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++)
				for (enum way way = 0; way < WAYS; way++)
					if (!is_inline(way) ||
					    (lengths[l] <= 200 && opcodes[o] != IBV_WR_RDMA_READ))
						message(opcodes[o], way, lengths[l], wr_id++);
}

static void rc(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
						     IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ};

	(void)state;
	all_ways(opcodes, 5);
}

static void uc(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
						     IBV_WR_RDMA_WRITE_WITH_IMM};

	(void)state;
	all_ways(opcodes, 4);
}

static void ud(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM};

	(void)state;
	all_ways(opcodes, 2);
}

/* More WQEs than 16 bits count. */
static void index_wrap(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 40000; i++)
		message(IBV_WR_RDMA_WRITE, i % 2 ? BUILD_INLINE : POST, 200, i);
}

static void atomics(void **state)
{
	uint64_t *there = (uint64_t *)target, *here = (uint64_t *)source;
	struct ibv_sge sge = {(uintptr_t)source, 8, mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.atomic = {(uintptr_t)target, 5, 0, mr->rkey},
				 };
	struct ibv_qp_ex *ex = pair.ex[0];

	(void)state;
	*there = 100;
	assert_int_equal(ibv_post_send(pair.qp[0], &wr, &bad), 0);
	pair_expect(&pair, 0, IBV_WC_FETCH_ADD);
	assert_int_equal(*there, 105);
	assert_int_equal(*here, 100);
	/* Compare and swap by the builder: in vain, then not. */
	for (uint64_t compare = 104; compare <= 105; compare++) {
		ibv_wr_start(ex);
		ex->wr_id = compare;
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_atomic_cmp_swp(ex, mr->rkey, (uintptr_t)target, compare, 7);
		ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)source, 8);
		assert_int_equal(ibv_wr_complete(ex), 0);
		pair_expect(&pair, compare, IBV_WC_COMP_SWAP);
		assert_int_equal(*here, 105);
		assert_int_equal(*there, compare == 105 ? 7 : 105);
	}
	/* The length of the SGE does not matter to ibv_post_send. */
	sge.length = 64;
	wr.wr.atomic.compare_add = 1;
	assert_int_equal(ibv_post_send(pair.qp[0], &wr, &bad), 0);
	pair_expect(&pair, 0, IBV_WC_FETCH_ADD);
	assert_int_equal(*there, 8);

	ibv_wr_start(ex);
	ex->wr_id = 9;
	ibv_wr_atomic_write(ex, mr->rkey, (uintptr_t)target, "ABCDEFGH");
	assert_int_equal(ibv_wr_complete(ex), 0);
	pair_expect(&pair, 9, IBV_WC_ATOMIC_WRITE);
	assert_memory_equal(target, "ABCDEFGH", 8);
	*here = 55;
	sge.length = 8;
	wr.opcode = IBV_WR_ATOMIC_WRITE;
	wr.wr.rdma.remote_addr = (uintptr_t)target;
	wr.wr.rdma.rkey = mr->rkey;
	assert_int_equal(ibv_post_send(pair.qp[0], &wr, &bad), 0);
	pair_expect(&pair, 0, IBV_WC_ATOMIC_WRITE);
	assert_int_equal(*there, 55);
}

/* An operation that the transport lacks fails as a completion, and the QP with it (mlx5-formats 3.8). */
static void foreign_operation(void **state)
{
	struct ibv_sge sge[3] = {{(uintptr_t)source, 8, mr->lkey}, {0}, {0}};
	enum ibv_qp_type type = pair.qp[0]->qp_type;

	(void)state;
	post(type == IBV_QPT_UD ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, sge, 4);
	pair_expect_error(&pair, 4, IBV_WC_LOC_QP_OP_ERR);
}

/* Unsignalled WRs take room until a later completion is polled. */
static void unsignalled(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_sge sge[3] = {{(uintptr_t)source, 8, mr->lkey}, {0}, {0}};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .wr.rdma = {(uintptr_t)target, mr->rkey},
				 };

	(void)state;
	assert_int_equal(ibv_query_qp(pair.qp[0], &attr, IBV_QP_CAP, &init), 0);
	for (int round = 0; round < 50; round++) {
		for (uint32_t i = 1; i < init.cap.max_send_wr; i++)
			post(IBV_WR_RDMA_WRITE, 0, sge, 1);
		post(IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, sge, 2);
		assert_int_equal(ibv_post_send(pair.qp[0], &wr, &bad), ENOMEM);
		assert_ptr_equal(bad, &wr);
		pair_expect(&pair, 2, IBV_WC_RDMA_WRITE);
	}
}

/* RESET forgets what was not polled; the QP then works from the start. */
static void reset(void **state)
{
	struct ibv_sge sge[3] = {{(uintptr_t)source, 8, mr->lkey}, {0}, {0}};
	struct ibv_wc wc;

	(void)state;
	for (int round = 0; round < 3; round++) {
		post_receive(1);
		post(IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, sge, 2);
		modify(1, (struct ibv_qp_attr){.qp_state = IBV_QPS_ERR},
		       IBV_QP_STATE); /* flushes the receive */
		for (int i = 0; i < 2; i++)
			modify(i, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE);
		assert_int_equal(ibv_poll_cq(pair.cq, 1, &wc), 0);
		ready();
		message(IBV_WR_SEND, POST, 100, 3);
		message(IBV_WR_SEND, BUILD_LIST, 100, 4);
	}
}

static void *destroy_first(void *done)
{
	assert_int_equal(ibv_destroy_qp(pair.qp[0]), 0);
	__atomic_store_n((int *)done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* ibv_destroy_qp(3) returns once the events of the QP are acknowledged (ibv_get_async_event(3)). */
static void event_before_destroy(void **state)
{
	struct ibv_async_event event;
	pthread_t thread;
	int done = 0;

	(void)state;
	modify(0, (struct ibv_qp_attr){.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1},
	       IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
	assert_int_equal(ibv_get_async_event(pair.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_SQ_DRAINED);
	assert_ptr_equal(event.element.qp, pair.qp[0]);
	assert_int_equal(pthread_create(&thread, NULL, destroy_first, &done), 0);
	usleep(50000);
	assert_int_equal(__atomic_load_n(&done, __ATOMIC_ACQUIRE), 0);
	ibv_ack_async_event(&event);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(done, 1);
	/* For the teardown. */
	pair_create_qp(&pair, 0, IBV_QPT_RC, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rc, setup_rc, teardown),
		cmocka_unit_test_setup_teardown(uc, setup_uc, teardown),
		cmocka_unit_test_setup_teardown(ud, setup_ud, teardown),
		cmocka_unit_test_setup_teardown(index_wrap, setup_rc, teardown),
		cmocka_unit_test_setup_teardown(atomics, setup_rc, teardown),
		cmocka_unit_test_setup_teardown(foreign_operation, setup_uc, teardown),
		cmocka_unit_test_setup_teardown(foreign_operation, setup_ud, teardown),
		cmocka_unit_test_setup_teardown(unsignalled, setup_rc, teardown),
		cmocka_unit_test_setup_teardown(reset, setup_rc, teardown),
		cmocka_unit_test_setup_teardown(event_before_destroy, setup_rc, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
