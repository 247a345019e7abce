/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A QP without a device: rings that the driver's posting functions fill, and replacements for the few device functions
 * that they call. Include in one file per program, which is linked with only the sources under test.
 */
#ifndef TESTS_UNIT_POSTING_FIXTURE_H
#define TESTS_UNIT_POSTING_FIXTURE_H

#include "test_case.h"

#include "core/settings.h"
#include "observe/timeline.h"
#include "explain/explain.h"
#include "verbs/memory/signature.h"
#include "verbs/object/objects.h"
#include "verbs/object/ops.h"
#include "verbs/qp/qp_sizing.h"
#include "verbs/post/send_operations.h"
#include "verbs/post/wqe_builder.h"
#include "verbs/post/wr.h"

/* ---- replacements of the device ---- */

static struct {
	unsigned int send_doorbells, recv_doorbells;
	struct settings settings;
	enum explain_rule rule; /* of the last explanation */
	uint64_t figures[EXPLAIN_ARGS];
	unsigned int explanations;
} device;

void hca_qp_send_doorbell(struct hca_qp *qp)
{
	(void)qp;
	device.send_doorbells++;
}

void hca_qp_recv_doorbell(struct hca_qp *qp)
{
	(void)qp;
	device.recv_doorbells++;
}

/* No timeline is recorded. */
bool timeline_on;
__thread uint64_t timeline_time_of_call;
__thread struct epoch_slot *epoch_this_thread;
bool timeline_ticks;

uint64_t timeline_monotonic(void)
{
	return 0;
}

void timeline_put_slowly(uint64_t time, uint32_t what, uint32_t number, uint32_t psn, uint32_t length, uint64_t value)
{
	(void)time, (void)what, (void)number, (void)psn, (void)length, (void)value;
}

enum ibv_qp_state hca_qp_state(const struct hca_qp *qp)
{
	(void)qp;
	return IBV_QPS_INIT;
}

void block_state_forget(struct user_qp *qp, uint32_t rkey)
{
	(void)qp, (void)rkey;
}

uint32_t hca_srq_number(const struct hca_srq *srq)
{
	(void)srq;
	return 5;
}

const struct settings *hca_settings(const struct hca *hca)
{
	(void)hca;
	return &device.settings;
}

/* Checks that the text of a rule refers only to figures in the record. */
static inline void check_figures(enum explain_rule rule, size_t count)
{
	static const struct {
		int number;
		const char *text;
	} rules[] = {
#define RULE(number, name, text, source, advice) {number, text},
#include "explain/rules_posting.def"
#undef RULE
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		for (const char *at = rules[i].text; rules[i].number == (int)rule && (at = strchr(at, '{')); at++)
			if ((size_t)(at[1] - '0') >= count)
				fail_msg("rule %d: %zu figures for \"%s\"", rule, count, rules[i].text);
}

void explain_found(struct hca *hca)
{
	(void)hca;
}

uint64_t explain_make(struct hca *hca, const struct explain_subject *subject, enum explain_rule rule,
		      const uint64_t *args, size_t count)
{
	(void)hca;
	assert_int_equal(subject->call != NULL, true);
	assert_in_range(count, 1, EXPLAIN_ARGS);
	check_figures(rule, count);
	device.rule = rule;
	memcpy(device.figures, args, count * sizeof(args[0]));
	return ++device.explanations;
}

/* Objects here belong to the test; alive.c knows only those of a program. */
bool object_refused_(const char *call, const struct ibv_context *context, enum object_kind kind, const void *object)
{
	(void)call, (void)context, (void)kind;
	return !object;
}

bool object_alive_(enum object_kind kind, const void *object)
{
	(void)kind;
	return object;
}

void object_enter_(enum object_kind kind, const void *object, struct alive *entry, struct ibv_context *owner)
{
	(void)owner;
	*entry = (struct alive){.object = object, .kind = kind};
}

void object_leave(struct alive *entry)
{
	assert_non_null(entry->object);
}

/* ---- the QP ---- */

enum { TEST_QPN = 0x00abcdef };

struct posting {
	struct user_device user_device;
	struct user_context context;
	struct user_qp qp;
	uint32_t dbrec[2];
};

/* Makes a QP of @type in RTS, as created with @cap; IBV_QPT_DRIVER: a DCI. @send_ops 0: as ibv_create_qp(3) makes it. */
static inline struct posting *posting_new(enum ibv_qp_type type, uint64_t send_ops, struct ibv_qp_cap cap)
{
	struct posting *p = calloc(1, sizeof(*p));
	enum mlx5dv_dc_type dc_type = type == IBV_QPT_DRIVER ? MLX5DV_DCTYPE_DCI : 0;
	const struct qp_type_info *info = qp_type_info(type, dc_type);
	struct qp_sizing_request request = {
		.type = info,
		.cap = cap,
		.send_ops = send_ops ? send_ops : info->assumed_ops,
	};
	struct qp_sizing sizing;
	uint32_t pointers, inlined;

	memset(&device, 0, sizeof(device));
	assert_int_equal(qp_sizing_compute(&request, &sizing), 0);
	p->context.verbs.context.device = &p->user_device.base;
	p->qp.base.context = &p->context.verbs.context;
	p->qp.base.qp_num = TEST_QPN;
	p->qp.has_ex = true;
	p->qp.type = type;
	p->qp.dc_type = dc_type;
	p->qp.dbrec = p->dbrec;
	p->qp.cap = sizing.cap;
	queue_lock_init(&p->qp.sq.lock, LOCK_LEVEL_SEND_QUEUE, false);
	queue_lock_init(&p->qp.rq.lock, LOCK_LEVEL_RECEIVE_QUEUE, false);

	p->qp.sq.address_bytes = info->address_bytes;
	p->qp.sq.wqebb_count = sizing.wqebb_count;
	p->qp.sq.wqe_size = sizing.wqe_size;
	p->qp.sq.max_post = sizing.wqebb_count ? sizing.cap.max_send_wr : 0;
	p->qp.sq.max_gs = sizing.cap.max_send_sge;
	p->qp.sq.max_inline = sizing.cap.max_inline_data;
	pointers = 16 * sizing.cap.max_send_sge;
	inlined = (4 + sizing.cap.max_inline_data + 15) / 16 * 16;
	p->qp.sq.max_payload = pointers > inlined ? pointers : inlined;
	p->qp.sq.buffer = calloc(sizing.wqebb_count, 64);
	p->qp.sq.wr_id = calloc(sizing.wqebb_count, sizeof(uint64_t));
	p->qp.sq.wqe_head = calloc(sizing.wqebb_count, sizeof(uint32_t));
	p->qp.sq.wqe_post = calloc(sizing.wqebb_count, sizeof(uint32_t));
	p->qp.sq.wc_opcode = calloc(sizing.wqebb_count, 1);

	p->qp.rq.count = sizing.rq_count;
	p->qp.rq.shift = sizing.rq_shift;
	rq_set_limit(&p->qp.rq, sizing.cap.max_recv_sge);
	p->qp.rq.buffer = calloc(sizing.rq_count, (size_t)1 << sizing.rq_shift);
	p->qp.rq.wr_id = calloc(sizing.rq_count, sizeof(uint64_t));

	assert_int_equal(wr_table_fill(&p->qp, send_ops), 0);
	wr_set_state(&p->qp, IBV_QPS_RTS);
	send_queue_derive(&p->qp);
	return p;
}

static inline void posting_free(struct posting *p)
{
	queue_lock_destroy(&p->qp.sq.lock);
	queue_lock_destroy(&p->qp.rq.lock);
	free(p->qp.sq.buffer);
	free(p->qp.sq.wr_id);
	free(p->qp.sq.wqe_head);
	free(p->qp.sq.wqe_post);
	free(p->qp.sq.wc_opcode);
	free(p->qp.rq.buffer);
	free(p->qp.rq.wr_id);
	free(p);
}

/* Empties the send queue and sets its producer index to @index; fills the ring with a pattern that must not matter. */
static inline void place_producer(struct posting *p, uint32_t index)
{
	p->qp.sq.cur_post = index;
	p->qp.sq.tail = p->qp.sq.head;
	sq_set_fence(&p->qp.sq, 0);
	memset(p->qp.sq.buffer, 0xa5, (size_t)p->qp.sq.wqebb_count * 64);
}

/* Returns byte @offset of the WQE at @index, computed in the simple, slow way. */
static inline uint8_t wqe_byte(const struct posting *p, uint32_t index, uint32_t offset)
{
	uint64_t ring_bytes = (uint64_t)p->qp.sq.wqebb_count * 64;

	return ((const uint8_t *)p->qp.sq.buffer)[((uint64_t)index * 64 + offset) % ring_bytes];
}

/* ---- expected WQEs: written by hand, big-endian, field by field as the format sheet lists them ---- */

struct expected {
	uint8_t bytes[1024];
	bool any[1024]; /* bytes that may have any value */
	uint32_t length;
};

static inline void expect_be(struct expected *e, uint64_t value, unsigned int bytes)
{
	while (bytes--)
		e->bytes[e->length++] = (uint8_t)(value >> 8 * bytes);
}

static inline void expect_bytes(struct expected *e, const void *data, uint32_t length)
{
	memcpy(e->bytes + e->length, data, length);
	e->length += length;
}

static inline void expect_zeros(struct expected *e, uint32_t length)
{
	memset(e->bytes + e->length, 0, length);
	e->length += length;
}

static inline void expect_garbage(struct expected *e, uint32_t length)
{
	memset(e->any + e->length, true, length);
	e->length += length;
}

/* mlx5-formats 1.2; check_wqe() fills in `ds`. */
static inline void expect_ctrl(struct expected *e, uint32_t index, uint8_t opcode, uint8_t fm_ce_se, uint32_t imm)
{
	memset(e, 0, sizeof(*e));
	expect_be(e, 0, 1);
	expect_be(e, index & 0xffff, 2);
	expect_be(e, opcode, 1);
	expect_be(e, TEST_QPN, 3);
	expect_be(e, 0, 1);
	expect_be(e, 0, 3);
	expect_be(e, fm_ce_se, 1);
	expect_be(e, imm, 4);
}

static inline void expect_raddr(struct expected *e, uint64_t addr, uint32_t rkey)
{
	expect_be(e, addr, 8);
	expect_be(e, rkey, 4);
	expect_be(e, 0, 4);
}

static inline void expect_pointer(struct expected *e, uint32_t length, uint32_t lkey, uint64_t addr)
{
	expect_be(e, length, 4);
	expect_be(e, lkey, 4);
	expect_be(e, addr, 8);
}

static inline void expect_inline(struct expected *e, const void *data, uint32_t length)
{
	expect_be(e, UINT32_C(0x80000000) | length, 4);
	expect_bytes(e, data, length);
	expect_garbage(e, (16 - (4 + length) % 16) % 16);
}

/* Checks that the WQE at @index equals @e, and that the producer index is just after it. */
static inline void check_wqe(const struct posting *p, uint32_t index, struct expected *e)
{
	assert_int_equal(e->length % 16, 0);
	e->bytes[7] = e->length / 16;
	for (uint32_t i = 0; i < e->length; i++)
		if (!e->any[i] && wqe_byte(p, index, i) != e->bytes[i])
			fail_msg("WQE at %u: byte %u is 0x%02x, not 0x%02x", index, i, wqe_byte(p, index, i),
				 e->bytes[i]);
	assert_int_equal(p->qp.sq.cur_post, index + (e->length + 63) / 64);
}

/*
 * Checks that WR number @head starts at @index, is recorded with @wr_id and @wc_opcode, and has been passed to the
 * device.
 */
static inline void check_tables(const struct posting *p, uint32_t index, uint32_t head, uint64_t wr_id,
				uint8_t wc_opcode)
{
	uint32_t slot = index % p->qp.sq.wqebb_count;

	assert_int_equal(p->qp.sq.wr_id[slot], wr_id);
	assert_int_equal(p->qp.sq.wqe_head[slot], head);
	assert_int_equal(p->qp.sq.wc_opcode[slot], wc_opcode);
	assert_int_equal(p->qp.sq.head, head + 1);
	assert_int_equal(be32toh(p->dbrec[1]), p->qp.sq.cur_post & 0xffff);
	assert_int_equal(p->dbrec[0], 0);
}

#endif
