/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs in the model: a list of requests that are executed one after the other, at once, and the completions that
 * this must produce. Statuses and states follow ibv_post_send(3), ibv_poll_cq(3), ibv_modify_qp(3) and mlx5-formats 2.1,
 * 3.4, 4.12 and 6.
 */
#ifndef SOFTHCA_TESTS_MODEL_QUEUES_H
#define SOFTHCA_TESTS_MODEL_QUEUES_H

#include "keys.h"

enum {
	QPS = 9,
	SPANS = 6,        /* SGEs of a request */
	OUTSTANDING = 64, /* requests and receives of a QP */
	INLINE_BYTES = 1024,
	GRH_BYTES = 40,
	OP_CONFIGURE = 1000, /* beyond enum ibv_wr_opcode */
};

#define MAX_MESSAGE (UINT64_C(1) << 30) /* max_msg_sz of ibv_query_port(3) */

/* A piece of a gather or scatter list. */
struct span {
	uint32_t key;
	uint64_t address;
	uint32_t length;
};

struct configure {
	int slot; /* slot of the mkey */
	bool set_access, set_layout, interleaved;
	bool by_mr_call;     /* mlx5dv_wr_mr_list, mlx5dv_wr_mr_interleaved */
	unsigned int access; /* enum ibv_access_flags */
	uint32_t repeat;
	uint16_t count;
	struct {
		uint32_t key;
		uint64_t address;
		uint32_t bytes, skip;
	} entries[ENTRIES];
};

struct bind {
	int slot;   /* slot of the window */
	int region; /* slot, or -1: no region (unbinding) */
	uint32_t new_number;
	uint64_t address, length;
	unsigned int access; /* enum ibv_access_flags */
};

struct request {
	uint64_t id;
	unsigned int opcode; /* enum ibv_wr_opcode or OP_CONFIGURE */
	bool signalled, solicited, fence, is_inline;
	uint32_t count;
	struct span span[SPANS];
	uint8_t data[INLINE_BYTES]; /* is_inline: data at the time of posting */
	uint64_t remote_address;
	uint32_t rkey;
	uint64_t compare_add, swap;
	uint32_t immediate;
	uint32_t invalidate;
	uint32_t qkey;
	struct bind bind;
	struct configure configure;
};

struct receive {
	uint64_t id;
	uint32_t count;
	struct span span[SPANS];
};

/* An expected completion. Fields that are 0 or false are not compared. */
struct expectation {
	uint64_t id;
	uint32_t statuses; /* bit per enum ibv_wc_status: one of these */
	bool success;      /* then the other fields are valid */
	unsigned int opcode;
	bool has_length, has_immediate, has_invalidated, is_datagram;
	uint32_t length, immediate, invalidated, source_qp;
};

struct queue {
	uint32_t first, last; /* free running */
};

struct model_qp {
	enum ibv_qp_type type;
	int domain, peer;
	uint32_t number;
	bool sig_all;
	unsigned int access;     /* enum ibv_access_flags that it permits */
	bool waits_for_receives; /* rnr_retry 7 */
	uint32_t qkey;
	uint32_t mtu; /* UD: longest message */
	enum ibv_qp_state state;
	bool stalled;    /* the first request of the send queue waits for a receive of the peer */
	uint32_t events; /* bit per enum ibv_event_type that must have been raised */
	/* The requests of this step: the first, and the one refused by the peer (0: none). */
	uint64_t first_posted, refused;
	struct queue sends, receives, send_completions, receive_completions;
	struct request send[OUTSTANDING];
	struct receive receive[OUTSTANDING];
	struct expectation send_completion[OUTSTANDING];
	struct expectation receive_completion[2 * OUTSTANDING];
};

struct model {
	struct memory memory;
	struct keys keys;
	struct model_qp qp[QPS];
	/*
	 * Bytes that travel together: all of a message, or a packet of it; then earlier packets of a refused message
	 * have arrived.
	 */
	uint64_t packet_bytes;
	/* Requests of a step are in flight together. */
	bool pipelined;
	/* Packets are sometimes lost: with them, the answer that a request was executed, or refused. */
	bool loses;
	bool connectx; /* the profile */
};

static inline uint32_t queued(const struct queue *queue)
{
	return queue->last - queue->first;
}

/** Returns the bytes of a gather or scatter list. */
uint64_t spans_length(const struct span *span, uint32_t count);

/** Posts @request, which the call must have accepted, and executes all requests that can be executed. */
void model_post_send(struct model *model, int qp, const struct request *request);
void model_post_receive(struct model *model, int qp, const struct receive *receive);

/**
 * Handles a completion of @id with RETRY_EXC_ERR. If a lost answer explains it, the expectations change: this request
 * fails, later ones are flushed, although they were executed up to the refused one.
 */
void model_answer_lost(struct model *model, int qp, uint64_t id);

/** Move QPs to ERR (all is flushed), to RESET and back to RTS (all is dropped); from SQE to RTS. */
void model_fail(struct model *model, int qp);
void model_reset(struct model *model, int qp);
void model_resume(struct model *model, int qp);

#endif
