/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * State of the warnings about misuse; docs/use/lint.md lists them.
 *
 * One lock covers all state, because the warnings need not be fast. It is taken under the locks of queues
 * (core/locks.def); under it only the locks of explanations are taken. The state of an object is freed with the object.
 */
#ifndef SOFTHCA_LINT_STATE_H
#define SOFTHCA_LINT_STATE_H

#include "core/lock.h"
#include "core/timer.h"
#include "observe/page_guard.h"
#include "explain/misuse.h"
#include "process/ends.h"
#include "verbs/object/lint.h"

struct lint_piece {
	uint64_t address; /* translated by the key */
	uint32_t length, lkey;
	bool written; /* the device writes it: a READ, an atomic, a copy */
	uint64_t memory,
		sum; /* address in the process, and checksum of the bytes that the device reads there; 0: not known */
};

enum { LINT_PIECES = 4, LINT_INLINE_WORDS = 16, LINT_KEYS = 16 };

/* A send request for which neither its completion nor a later one was polled. */
struct lint_send {
	uint8_t opcode; /* MLX5_OPCODE_* */
	bool signalled, fenced;
	uint64_t moment; /* lint.moment when it was posted */
	uint64_t wr_id;
	/* Remote range of a READ, WRITE or atomic; length 0 for other requests. */
	uint64_t remote_address, remote_length;
	uint32_t rkey;
	uint32_t bound_rkey; /* that a bind gives its window; 0: not a bind */
	uint8_t pieces;      /* entries of `piece`; the request's other ranges are not watched */
	struct lint_piece piece[LINT_PIECES];
	uint32_t inlined;       /* words of inline data in `inline_words` */
	uint32_t inline_length; /* bytes of inline data */
	uint32_t inline_words[LINT_INLINE_WORDS];
};

/* Pages [first, end) of a region. `range`: protected (observe/page_guard.h), or -1. */
struct lint_buffer {
	uint32_t lkey;
	int range;
	uint64_t first, end;
};

struct lint_receive {
	uint64_t wr_id;
	uint32_t buffers; /* 0: not posted, or not watched */
	struct lint_buffer buffer[LINT_PIECES];
};

/*
 * Receives of a queue pair, by place in its ring, for receive_queue.head in [first, end); or of an SRQ, by entry, `end`
 * of them.
 */
struct lint_receives {
	struct lint_receive *entry;
	uint32_t first, end;
	struct user_qp *qp; /* or NULL */
	struct user_srq *srq;
	uint64_t warned; /* as in struct lint_qp, for an SRQ */
};

/* Attributes set by ibv_modify_qp(3). */
struct lint_end {
	uint32_t peer;           /* dest_qp_num */
	uint8_t asks, grants;    /* max_rd_atomic, max_dest_rd_atomic */
	uint32_t sq_psn, rq_psn; /* 24 bits, and LINT_SET */
	uint32_t sgid_index;     /* LINT_SET */
	union ibv_gid dgid;      /* valid if sgid_index is set */
	bool rnr_retry_zero;
};

/* Marks attributes that were set. */
#define LINT_SET SHM_END_SET

/* The queue pair at the other end of a connection, if known. */
struct lint_other_end {
	uint32_t qp_num;
	uint32_t rq_psn, sgid_index; /* LINT_SET */
	uint32_t roce_version;       /* of that GID */
	uint8_t grants;              /* max_dest_rd_atomic */
};

struct lint_qp {
	struct user_qp *qp;
	struct lint_qp *next; /* in the same bucket */
	uint64_t warned;      /* misuse_bit() of warnings made about it */
	/* Send requests by number, as in send_queue.head: [first, end) are pending. */
	struct lint_send *send;
	uint32_t mask; /* number to place in `send` */
	uint32_t first, end;
	uint32_t unsignalled;      /* since the last signalled one */
	uint32_t binds, signalled; /* requests in [first, end) */
	uint32_t writers;          /* requests in [first, end) that write memory here */
	uint32_t fence;            /* number of the last request with a fence */
	/* Keys that got a signature since ibv_wr_start(3); the key configured without a signature that it needs. */
	struct user_mkey *set[LINT_KEYS], *suspect;
	uint32_t set_count;
	struct lint_receives receives; /* no entries until the first is posted */
	struct lint_end end_attr;      /* all 0 in RESET */
	/* Completions that posted requests can generate, part of lint_due of the CQs. */
	uint32_t sends_due, receives_due;
};

enum { LINT_BUCKETS = 1024 };

struct lint {
	struct queue_lock lock;
	struct lint_qp *qps[LINT_BUCKETS]; /* by number */
	uint64_t moment;                   /* counts posts and polls */
	uint32_t binds;                    /* uncompleted binds of all QPs */
	struct user_mr *mrs[LINT_BUCKETS]; /* by index of the key */
	struct user_cq *stale;             /* atomic; CQs armed with old completions (sleeps.c) */
	struct timer sleep_timer;          /* looks for threads that sleep on `stale` */
};

extern struct lint lint;

/* Bits of enabled warnings (explain/misuse.h). Constant after the first start of the driver's hooks. */
extern uint64_t lint_wanted;

/* Functions that lint.c registers, see verbs/object/lint_hooks.def. */
#define LINT_HOOK(name, parameters) void lint_##name parameters;
#include "verbs/object/lint_hooks.def"
#undef LINT_HOOK

/** Returns the state of QP @qp_num, or NULL. The lock is held. */
struct lint_qp *lint_qp_find(uint32_t qp_num);
/** The lock is held. */
void lint_qp_add(struct lint_qp *state);
void lint_qp_remove(struct lint_qp *state);

/**
 * Returns true if nothing was polled from the CQs of the queue pair since @send was posted. Otherwise the peer's answer
 * may have told the program that @send is done.
 */
bool lint_send_is_new(const struct lint_qp *state, const struct lint_send *send);
/** As above, for signalled request @number; false if it is unsignalled. */
bool lint_send_is_open(const struct lint_qp *state, uint32_t number);

/** Returns this process's region with @lkey, or NULL. The lock is held. */
struct user_mr *lint_mr_find(uint32_t lkey);
/** The lock is held. @mr need not be there to be removed. */
void lint_mr_add(struct user_mr *mr);
void lint_mr_remove(struct user_mr *mr);

/** Removes completed send requests from @state. The lock is held. */
void lint_sends_complete(struct lint_qp *state);

/** Records posted SGEs to which the device will write. The lock is held. */
void lint_memory_written(const struct ibv_sge *sge, int count);

/** Fills in @send from the WQE at block @index of the ring. */
void lint_send_read(const struct user_qp *qp, uint32_t index, struct lint_send *send);

/** Records addresses and checksums of the memory that @send reads. The lock is held. */
void lint_memory_note(struct lint_send *send);
/** Warns if memory read by the completed @send is changed or gone. The lock is held. */
void lint_memory_check(struct lint_qp *state, const struct lint_send *send);
/** Copies @size bytes from @address. Returns false if they cannot be read. */
bool lint_memory_read(uint64_t address, void *out, size_t size);
/** Warns if @send contains the rkey of a window whose bind has not completed. The lock is held. */
void lint_window_look(struct lint_qp *state, const struct lint_send *send, const char *call);

/** Returns true if the device writes to memory of @send. */
bool lint_send_writes(const struct lint_send *send);
/**
 * Warns if @send reads memory to which an earlier request writes without a fence between them, and stops watching
 * memory to which either writes. The lock is held.
 */
void lint_fence_look(struct lint_qp *state, struct lint_send *send, uint32_t number, const char *call);
/** Returns the connected queue pair of this process, or NULL. The lock is held. (ends.c) */
struct lint_qp *lint_peer_of(const struct lint_qp *state);
/**
 * Fills in the other end of the connection, in any process of the host. Returns false if it is not known. The lock is
 * held. (ends.c)
 */
bool lint_other_end_find(const struct lint_qp *state, struct lint_other_end *other);
/** Hides the attributes of @state from other processes, after reset or destruction. (ends.c) */
void lint_end_hide(const struct lint_qp *state);
/** Warns if the two ends of the connection do not match. The lock is held. */
void lint_ends_look(struct lint_qp *state, const char *call);
/** Warns if the ranges of @send and an earlier READ overlap without a fence between them. The lock is held. */
void lint_overtaking_look(struct lint_qp *state, const struct lint_send *send, uint32_t number, const char *call);
/** Warns if @send accesses on-demand memory of this process and is not repeated after an RNR NAK. The lock is held. */
void lint_on_demand_look(struct lint_qp *state, const struct lint_send *send, const char *call);
/** Warns if @send is a READ or atomic beyond those that the peer grants. The lock is held. */
void lint_depth_look(struct lint_qp *state, const struct lint_send *send, uint32_t number, const char *call);
/** Records that a chain of work requests was posted. The lock is held. */
void lint_keys_posted(struct lint_qp *state);

/** Updates the completions that posted requests can generate. The lock is held. */
void lint_due_count(struct lint_qp *state);
/** Calls lint_due_count() and warns if a CQ lacks room. The lock is held. */
void lint_room_check(struct lint_qp *state, const char *call);
/** Records that @state generates no more completions. The lock is held. */
void lint_due_forget(struct lint_qp *state);

/** Prepares the search for sleeping threads. (sleeps.c) */
void lint_sleeps_start(void);
/**
 * Returns true if @thread of this process waits without a time limit for @fd to become readable. Any thread. (waits.c)
 */
bool lint_thread_waits(pid_t thread, int fd);

/** Warns of recorded reads of receive buffers. The lock is held. */
void lint_reads_tell(void);
/** Removes receives whose completions were polled. The lock is held. */
void lint_receives_complete(struct lint_qp *state);
/** Frees the receives of @state. The queue pair has been destroyed. The lock is held. */
void lint_receives_end(struct lint_qp *state);
/** The lock is held. */
void lint_receive_region_registered(struct user_mr *mr);
void lint_receive_region_gone(struct user_mr *mr);
/** Implements page_guard_write_was_read. */
void lint_write_was_read(struct hca *hca, uint32_t qp_num, uint64_t address, uint64_t start, uint64_t length);

/**
 * Makes and counts a warning if it is enabled. @warned: misuse_bit() of warnings made about the object, each of which
 * is made once; NULL: each time. Any thread; the lock may be held.
 */
void lint_warn(struct hca *hca, const struct explain_subject *subject, uint64_t *warned, enum explain_rule rule,
	       const uint64_t *figures, size_t count);

enum { LINT_SUMMARY_PART = 48, LINT_SUMMARY_BYTES = MISUSE_RULES * LINT_SUMMARY_PART + 64 };

/** Writes "lint: 3 warnings: 2 LEAKED_OBJECTS, 1 QUEUE_UNSIGNALED" to @text. Any thread. (warn.c) */
void lint_warn_summary(char text[LINT_SUMMARY_BYTES]);
/** Sets the counts to 0. In a forked child, before it has threads. */
void lint_warn_reset(void);

/** Warns each time: lint_warn_call(hca, "ibv_close_device", RULE_X, FIGURES(…)). */
static inline void lint_warn_call(struct hca *hca, const char *call, enum explain_rule rule, const uint64_t *figures,
				  size_t count)
{
	const struct explain_subject subject = {.call = call};

	lint_warn(hca, &subject, NULL, rule, figures, count);
}

/** Warns once for each queue pair. */
static inline void lint_warn_qp(struct lint_qp *state, const char *call, enum explain_rule rule,
				const uint64_t *figures, size_t count)
{
	const struct explain_subject subject = {.call = call, .qpn = state->qp->base.qp_num};

	lint_warn(hca_of_context(state->qp->base.context), &subject, &state->warned, rule, figures, count);
}

/** As lint_warn_qp(), naming @send. */
static inline void lint_warn_send(struct lint_qp *state, const struct lint_send *send, const char *call,
				  enum explain_rule rule, const uint64_t *figures, size_t count)
{
	const struct explain_subject subject = {.call = call, .qpn = state->qp->base.qp_num, .wr_id = send->wr_id};

	lint_warn(hca_of_context(state->qp->base.context), &subject, &state->warned, rule, figures, count);
}

#endif
