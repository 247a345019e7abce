/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the driver tells of itself if warnings about misuse were asked for (SOFTHCA_LINT, docs/lint.md). src/lint/ has the
 * functions: it looks at the driver's objects and changes none of them.
 *
 * Without warnings a call that makes or destroys an object tests one word, and what posts and polls is not touched: the
 * functions that call these are others, chosen when a context is opened, a queue pair or CQ created.
 */
#ifndef SOFTHCA_VERBS_LINT_H
#define SOFTHCA_VERBS_LINT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/compiler.h"
#include "verbs/objects.h"

/* The warnings that are asked for (explain/misuse.h); 0: none. Constant after lint_start(). */
extern uint64_t lint_wanted;

static inline bool lint_is_on(void)
{
	return unlikely(lint_wanted);
}

/* LINT(qp_created, qp): tells it if there is somebody to tell. */
#define LINT(what, ...)                                                                                                \
	do {                                                                                                           \
		if (lint_is_on())                                                                                      \
			lint_##what(__VA_ARGS__);                                                                      \
	} while (0)

/** Reads the setting, the first time. No lock is held. Any thread, several at once. */
void lint_start(void);

/** @context is about to be closed; what is left on it is alive. No lock is held. */
void lint_context_closing(struct ibv_context *context);

/** @qp was created, is about to be destroyed, is destroyed in the device. No lock is held. */
void lint_qp_created(struct user_qp *qp);
void lint_qp_destroying(struct user_qp *qp);
void lint_qp_destroyed(struct user_qp *qp);

/** An address handle of @attr was created. No lock is held. */
void lint_ah_created(struct ibv_context *context, const struct ibv_ah_attr *attr);

/** @mr was registered, or is about to be deregistered. No lock is held. */
void lint_mr_registered(struct user_mr *mr);
void lint_mr_deregistering(struct user_mr *mr);

/**
 * @call, which destroys an object called @kind (at most eight characters), waits, and has for a while, for the acknowledgement of
 * @events events. No lock is held.
 */
void lint_events_wait(struct ibv_context *context, const char *call, const char *kind, uint32_t events);

/**
 * The @count newest WRs of @qp are about to be the device's: sq.head already counts them, the doorbell record does not.
 * @call posts them. sq.lock is held.
 */
void lint_sends_posted(struct user_qp *qp, uint32_t count, const char *call);

/** Receives are about to be posted; may have been posted to @qp. No lock is held. */
void lint_receives_posting(void);
void lint_receives_posted(struct user_qp *qp);

/**
 * The receive @wr is about to be the device's: the one of that @number of @qp, as receive_queue.head counts them, or in entry @index
 * of @srq. The lock of the queue is held.
 */
void lint_receive_posting(struct user_qp *qp, uint32_t number, const struct ibv_recv_wr *wr);
void lint_srq_receive_posting(struct user_srq *srq, uint32_t index, const struct ibv_recv_wr *wr);
/** The receive in entry @index of @srq is over. The lock of the SRQ is held. */
void lint_srq_receive_over(struct user_srq *srq, uint32_t index);
/** @srq is destroyed in the device. No lock is held. */
void lint_srq_destroyed(struct user_srq *srq);
/** ibv_modify_qp(3) has set what @mask says of @attr. No lock is held. */
void lint_qp_modified(struct user_qp *qp, const struct ibv_qp_attr *attr, int mask);
/** ibv_modify_qp(3) has brought @qp into @state. No lock is held. */
void lint_qp_entered(struct user_qp *qp, enum ibv_qp_state state);
/** @mr is another range now. No lock is held. */
void lint_mr_changed(struct user_mr *mr);
/** The program has got a ring, which it may fill or empty by itself. No lock is held. */
void lint_ring_given(void);

/** ibv_modify_srq(3) has armed @srq, the program has taken the event, is about to post, has posted. No lock is held. */
void lint_srq_armed(struct user_srq *srq, uint32_t limit);
void lint_srq_limit_reached(struct user_srq *srq);
void lint_srq_posting(struct user_srq *srq);
void lint_srq_posted(struct user_srq *srq);

/**
 * Of builders, under sq.lock: @mkey is configured with @conf_flags (enum mlx5dv_mkey_conf_flags); a signature was set of which
 * @check_mask is to be checked; what was built since ibv_wr_start(3) is not posted.
 */
void lint_key_configuring(struct user_qp *qp, struct user_mkey *mkey, uint32_t conf_flags);
void lint_signature_set(struct user_qp *qp, struct user_mkey *mkey, uint8_t check_mask);
void lint_chain_dropped(struct user_qp *qp);

/** mlx5dv_mkey_check(3) was asked for @mkey; it is about to be destroyed. No lock is held. */
void lint_key_checked(struct user_mkey *mkey);
void lint_key_destroying(struct user_mkey *mkey);

/**
 * @call passes, and the other profile would refuse it by @rule, which is said once and then counted. Locks of the driver may be held.
 */
void lint_profile_differs(struct hca *hca, const char *call, uint32_t rule);

/** ibv_fork_init(3), or ibv_is_fork_initialized(3), which says that there is no need. Any time, also before lint_start(). */
void lint_fork_prepared(void);

/**
 * ibv_poll_cq(3) or extended polling took a completion of queue pair @qp_num from @cq. @last: of those that the program gets by one
 * call. The lock of the CQ may be held.
 */
void lint_polled(struct user_cq *cq, uint32_t qp_num, bool last);

#endif
