/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A CQ without a device: the test writes the CQEs, byte by byte at the offsets of the format sheet (mlx5-formats 3.2,
 * 3.4, 3.5), and checks how the driver interprets them. Three QPs use it, the last of them with an SRQ.
 */
#ifndef TESTS_UNIT_CQ_FIXTURE_H
#define TESTS_UNIT_CQ_FIXTURE_H

#include "test_case.h"

#include "verbs/memory/signature.h"
#include "verbs/queue/cq.h"
#include "verbs/queue/cqe.h"
#include "verbs/object/ops.h"
#include "verbs/post/send_operations.h"
#include "verbs/queue/srq.h"

enum {
	QPS = 3,
	SRQ_QP = 2,
	SQ_BLOCKS = 64,
	RQ_ENTRIES = 16,
	SRQ_ENTRIES = 64,
	FIRST_QPN = 0x4001,
};

struct cq_fixture {
	struct user_device device;
	struct user_context context;
	struct user_cq cq;
	uint32_t dbrec[2];
	struct user_qp qp[QPS];
	struct user_srq srq;
	uint32_t srq_dbrec;
	struct user_mkey mkey; /* index 0: the key of the SIG_ERR CQEs of write_plain() */
	struct key_signature signature;
	uint32_t producer; /* index of the next CQE to write */
};

/* Fields of a CQE; all other bytes are filled with a pattern that must not matter. */
struct cqe_spec {
	uint8_t opcode;
	uint8_t send_opcode;
	uint16_t counter;
	uint32_t user_index, qpn;
	uint32_t byte_count, imm, flags_rqpn;
	uint16_t slid, vlan;
	uint8_t ml_path, syndrome, vendor;
	uint64_t timestamp;
	uint8_t format_solicited; /* bits 3:1 of op_own */
};

static inline void put(uint8_t *at, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = value >> 8 * (bytes - 1 - i);
}

/* Writes entry @index of any ring as the device does, op_own last. */
static inline void write_cqe_at(void *ring, uint32_t count, uint32_t size, uint32_t index, const struct cqe_spec *spec)
{
	uint8_t *entry = (uint8_t *)ring + (size_t)(index % count) * size;
	uint8_t *cqe = entry + size - 64;
	uint8_t owner = index / count & 1;

	memset(entry, 0xa5, size - 1);
	put(cqe + 17, spec->ml_path, 1);
	put(cqe + 22, spec->slid, 2);
	put(cqe + 24, spec->flags_rqpn, 4);
	put(cqe + 30, spec->vlan, 2);
	put(cqe + 32, spec->user_index, 4);
	put(cqe + 36, spec->imm, 4);
	put(cqe + 44, spec->byte_count, 4);
	put(cqe + 48, spec->timestamp, 8);
	if (spec->opcode == 13 || spec->opcode == 14) {
		put(cqe + 54, spec->vendor, 1);
		put(cqe + 55, spec->syndrome, 1);
	}
	put(cqe + 56, (uint32_t)spec->send_opcode << 24 | spec->qpn, 4);
	put(cqe + 60, spec->counter, 2);
	__atomic_store_n(cqe + 63, (uint8_t)(spec->opcode << 4 | spec->format_solicited | owner), __ATOMIC_RELEASE);
}

static inline void write_cqe(struct cq_fixture *f, const struct cqe_spec *spec)
{
	write_cqe_at(f->cq.buffer, f->cq.cqe_count, f->cq.cqe_size, f->producer++, spec);
}

/* Writes a CQE of QP @qp with a @counter and default values in all other fields. */
static inline void write_plain(struct cq_fixture *f, uint8_t opcode, uint8_t send_opcode, uint32_t qp, uint16_t counter)
{
	struct cqe_spec spec = {
		.opcode = opcode,
		.send_opcode = send_opcode,
		.counter = counter,
		.user_index = 0xa5000000 | f->qp[qp].user_index, /* byte count of 24 bits */
		.qpn = FIRST_QPN + qp,
	};

	write_cqe(f, &spec);
}

/* Makes a ring in the state before its first lap. */
static inline void *make_ring(uint32_t count, uint32_t size)
{
	uint8_t *ring = aligned_alloc(4096, ((size_t)count * size + 4095) & ~(size_t)4095);

	assert_non_null(ring);
	for (size_t i = 0; i < (size_t)count * size; i++)
		ring[i] = i % 64 == 63 ? 0xf0 : 0;
	return ring;
}

/*
 * Initializes a fixture whose consumer index is @first. The ring is in the state that earlier laps leave, that is, full
 * of CQEs of the previous lap if there was one.
 */
static inline void fixture_init(struct cq_fixture *f, uint32_t count, uint32_t size, uint32_t first)
{
	memset(f, 0, sizeof(*f));
	f->device.hca = hca_device(0);
	f->context.verbs.context.device = &f->device.base;
	user_index_init(&f->context.qps);
	f->mkey.signature = &f->signature;
	queue_lock_init(&f->context.signatures.lock, LOCK_LEVEL_SIGNATURES, false);
	f->context.signatures.list[0] = &f->mkey;
	queue_lock_init(&f->cq.lock, LOCK_LEVEL_USER_CQ, false);
	f->cq.base.context = &f->context.verbs.context;
	f->cq.base.cqe = count - 1;
	f->cq.cqe_size = size;
	f->cq.dbrec = f->dbrec;
	cq_set_ring(&f->cq, make_ring(count, size), count);
	f->cq.consumer_index = f->producer = first;
	if (first / count)
		for (uint32_t i = 0; i < count; i++)
			write_cqe_at(f->cq.buffer, count, size, first - count + i, &(struct cqe_spec){.opcode = 12});

	for (uint32_t i = 0; i < QPS; i++) {
		struct user_qp *qp = &f->qp[i];

		assert_int_equal(user_index_add(&f->context.qps, qp, &qp->user_index), 0);
		qp->base.send_cq = qp->base.recv_cq = &f->cq.base;
		qp->sq.wqebb_count = SQ_BLOCKS;
		send_queue_derive(qp);
		qp->sq.wr_id = calloc(SQ_BLOCKS, sizeof(*qp->sq.wr_id));
		qp->sq.wqe_head = calloc(SQ_BLOCKS, sizeof(*qp->sq.wqe_head));
		qp->sq.wc_opcode = malloc(SQ_BLOCKS);
		memset(qp->sq.wc_opcode, WC_OPCODE_FROM_CQE, SQ_BLOCKS);
		qp->rq.count = RQ_ENTRIES;
		qp->rq.wr_id = calloc(RQ_ENTRIES, sizeof(*qp->rq.wr_id));
		for (uint32_t slot = 0; slot < SQ_BLOCKS; slot++)
			qp->sq.wr_id[slot] = 1000 * i + slot;
		for (uint32_t slot = 0; slot < RQ_ENTRIES; slot++)
			qp->rq.wr_id[slot] = 1000 * i + 500 + slot;
	}

	f->srq.base.context = &f->context.verbs.context;
	queue_lock_init(&f->srq.lock, LOCK_LEVEL_USER_SRQ, false);
	srq_size_entries(&f->srq, 1);
	f->srq.entry_count = SRQ_ENTRIES;
	f->srq.max_wr = SRQ_ENTRIES - 1;
	f->srq.buffer = calloc(SRQ_ENTRIES, 1 << f->srq.entry_shift);
	f->srq.wr_id = calloc(SRQ_ENTRIES, sizeof(*f->srq.wr_id));
	f->srq.dbrec = &f->srq_dbrec;
	srq_chain(&f->srq, 0);
	f->qp[SRQ_QP].base.srq = &f->srq.base;
}

static inline void fixture_free(struct cq_fixture *f)
{
	for (uint32_t i = 0; i < QPS; i++) {
		free(f->qp[i].sq.wr_id);
		free(f->qp[i].sq.wqe_head);
		free(f->qp[i].sq.wc_opcode);
		free(f->qp[i].rq.wr_id);
	}
	free(f->srq.buffer);
	free(f->srq.wr_id);
	free(f->cq.buffer);
	queue_lock_destroy(&f->srq.lock);
	queue_lock_destroy(&f->cq.lock);
	queue_lock_destroy(&f->context.signatures.lock);
	user_index_destroy(&f->context.qps);
}

/* Posts a receive with @wr_id to the SRQ; returns the index of its entry. */
static inline uint32_t post_to_srq(struct cq_fixture *f, uint64_t wr_id)
{
	struct ibv_recv_wr wr = {.wr_id = wr_id}, *bad;
	uint32_t index = f->srq.head;

	assert_int_equal(softhca_ibv_post_srq_recv(&f->srq.base, &wr, &bad), 0);
	return index;
}

static inline int poll_one(struct cq_fixture *f, struct ibv_wc *wc)
{
	memset(wc, 0xee, sizeof(*wc));
	return softhca_ibv_poll_cq(&f->cq.base, 1, wc);
}

/* Returns the consumer index in the doorbell record, as the device reads it. */
static inline uint32_t published(const struct cq_fixture *f)
{
	const uint8_t *bytes = (const uint8_t *)&f->dbrec[0];

	return (uint32_t)bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

#endif
