/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues of the device (mlx5-formats 3.1 to 3.4).
 *
 * hca_cq.lock covers the position of the producer and the arm state. It is taken under a QP's lock, and the event
 * queue's under it. The consumer side belongs to the driver.
 */
#ifndef SOFTHCA_QUEUE_CQ_H
#define SOFTHCA_QUEUE_CQ_H

#include <linux/types.h>

#include "core/lock.h"
#include "core/timer.h"
#include "progress/watch.h"
#include "queue/commands.h"

enum cq_note {
	CQ_TIMESTAMP = 1 << 0,
	CQ_TIMELINE = 1 << 1, /* observe/timeline.h */
	CQ_GUARD = 1 << 2,    /* observe/page_guard.h */
};

struct hca_cq {
	struct queue_lock lock;
	uint8_t *buffer;
	uint32_t cqe_count;
	uint32_t cqe_size;
	uint32_t *dbrec;
	uint32_t producer_index; /* free running */
	bool armed;              /* atomic: also read without the lock */
	bool armed_solicited;
	bool attentive;   /* each CQE needs more work: the CQ is armed or exported */
	bool fired;       /* fired_sn is valid */
	uint8_t fired_sn; /* arm_sn of the last arming that fired */
	uint8_t armed_sn;
	uint32_t notified; /* producer_index when it last fired, reporting all earlier CQEs */
	/* Newest CQE that raises the event even if it is not solicited, and the producer_index after it. */
	bool forced;
	uint32_t forced_index;
	uint8_t notes; /* enum cq_note */
	bool ignore_overrun, overrun;
	/* CQE before which one entry was left, and the record then: cq_find_room(). */
	uint32_t one_left_at, one_left_consumer;
	bool ring_exported; /* atomic; the program reads the ring itself (mlx5dv_init_obj(3)) */
	uint32_t number;
	struct hca_context *context;
	struct event_queue *channel;
	struct event_source completion;
	struct event_source error; /* IBV_EVENT_CQ_ERR */
	uint32_t references;       /* atomic: QPs, SRQs */
	uint16_t moderate_count, moderate_period_us;
	uint16_t waiting; /* CQEs since arming that the delayed event reports */
	struct timer moderate_timer;
	struct watch watch; /* of a CQ that its program arms itself */
	/*
	 * For a CQ in memory that may be unmapped: buffer and dbrec are the device's. Each CQE is copied to the
	 * program's ring.
	 */
	struct umem_cq *umem;
};

struct signature_error;

/* In host order unless the type says otherwise. */
struct completion {
	uint8_t opcode;      /* MLX5_CQE_* */
	uint8_t send_opcode; /* requester: of the WQE */
	bool solicited;
	bool grh;                          /* responder: UD */
	uint8_t syndrome, vendor_syndrome; /* MLX5_CQE_REQ_ERR, RESP_ERR */
	uint8_t sl;
	uint16_t wqe_counter;
	uint32_t user_index;
	uint32_t qpn;        /* local */
	uint32_t remote_qpn; /* responder: UD */
	uint32_t byte_count;
	__be32 immediate; /* or invalidated rkey, or pkey index */
	bool event;       /* raise the event even if not armed for it (CE 3, mlx5-formats 6 point 45) */
	const struct signature_error *signature; /* MLX5_CQE_SIG_ERR */
	const uint8_t *scattered; /* byte_count bytes for the CQE itself, at most cq_scatter_room(); or NULL */
};

/**
 * Writes one CQE, and raises the event if due. Returns false if the ring was full: the CQE is lost, IBV_EVENT_CQ_ERR
 * was raised, and the QP must go to the error state (IBTA C11-39).
 */
bool hca_cq_write(struct hca_cq *cq, const struct completion *completion);

/** Returns true if the next CQE may wake the program. Any thread; with or without the lock. */
static inline bool cq_is_armed(const struct hca_cq *cq)
{
	return __atomic_load_n(&cq->armed, __ATOMIC_RELAXED);
}

/** Handles @word in dbrec[1] of a watched CQ. The lock is not held. */
void cq_rung(struct hca_cq *cq, uint32_t word);

#endif
