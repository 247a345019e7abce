/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the warnings about misuse need to know of a process, and how they are made. docs/use/lint.md tells what each sees.
 *
 * All of it is covered by one lock: warnings are asked for to find faults, not for speed. The lock is taken under those of queues
 * (core/locks.def), and under it nothing but the locks of explanations. State of an object belongs to that object, and goes
 * with it.
 */
#ifndef SOFTHCA_LINT_STATE_H
#define SOFTHCA_LINT_STATE_H

#include "core/lock.h"
#include "observe/page_guard.h"
#include "explain/misuse.h"
#include "verbs/object/lint.h"

/* A range of memory that a send request names. */
struct lint_piece {
	uint64_t address; /* as the key translates it */
	uint32_t length, lkey;
	bool written; /* by the device: a READ, an atomic, a copy */
	/* If it is read from memory of the process: where that is, and what was there. 0: that is not known. */
	uint64_t memory, sum;
};

enum { LINT_PIECES = 4, LINT_INLINE_WORDS = 16, LINT_KEYS = 16 };

/* A send request that was posted, and whose completion, or that of one behind it, has not been polled. */
struct lint_send {
	uint8_t opcode; /* MLX5_OPCODE_* */
	bool signalled, fenced;
	uint64_t moment; /* of lint.moment, when it was posted */
	uint64_t wr_id;
	/* The remote range of a READ, WRITE or atomic; length 0: there is none. */
	uint64_t remote_address, remote_length;
	uint32_t rkey;
	uint32_t bound_rkey; /* that a bind gives its window; 0: it is none */
	uint8_t pieces;      /* of `piece`; what a request names beyond them is not watched */
	struct lint_piece piece[LINT_PIECES];
	/* The beginning of what it carries in the WQE: so many words. */
	uint32_t inlined;
	uint32_t inline_length; /* bytes of all of it */
	uint32_t inline_words[LINT_INLINE_WORDS];
};

/* Memory of a receive: pages [first, end) of its region, of which `range` is closed, or -1. */
struct lint_buffer {
	uint32_t lkey;
	int range;
	uint64_t first, end;
};

struct lint_receive {
	uint64_t wr_id;
	uint32_t buffers; /* 0: it is not posted, or nothing of it is watched */
	struct lint_buffer buffer[LINT_PIECES];
};

/* The receives of a queue pair, by the place in its ring, [first, end) of receive_queue.head; or of an SRQ, by entry, of which there are `end`. */
struct lint_receives {
	struct lint_receive *entry;
	uint32_t first, end;
	struct user_qp *qp; /* or NULL */
	struct user_srq *srq;
	uint64_t warned; /* of an SRQ: as in struct lint_qp */
};

/* What ibv_modify_qp(3) set at one end of a connection. */
struct lint_end {
	uint32_t peer;           /* dest_qp_num */
	uint8_t asks, grants;    /* max_rd_atomic, max_dest_rd_atomic */
	uint32_t sq_psn, rq_psn; /* 24 bits, and LINT_SET */
	uint32_t sgid_index;     /* LINT_SET */
	bool rnr_retry_zero;     /* rnr_retry was set to 0 */
};

/* Marks attributes of struct lint_end that were set. */
#define LINT_SET UINT32_C(0x80000000)

struct lint_qp {
	struct user_qp *qp;
	struct lint_qp *next; /* of those with the same hash */
	uint64_t warned;      /* misuse_bit() of what was said of it */
	/* Sends by number, as send_queue.head counts them: [first, end) are posted and not completed. */
	struct lint_send *send;
	uint32_t mask; /* of a number: its place in `send` */
	uint32_t first, end;
	uint32_t unsignalled;      /* posted last, one behind the other */
	uint32_t binds, signalled; /* of [first, end) */
	uint32_t writers;          /* of [first, end): those with a piece that is written */
	uint32_t fence;            /* the last one that had a fence, and all before it, are waited for */
	/* Keys whose signature was set since ibv_wr_start(3); the one that is configured without it although it should not be. */
	struct user_mkey *set[LINT_KEYS], *suspect;
	uint32_t set_count;
	struct lint_receives receives; /* without entries as long as none was posted */
	struct lint_end end_attr;      /* all 0 in RESET */
	/* Completions that can come of what is posted, as its CQs have them in lint_due. */
	uint32_t sends_due, receives_due;
};

enum { LINT_BUCKETS = 1024 };

struct lint {
	struct queue_lock lock;
	struct lint_qp *qps[LINT_BUCKETS]; /* by number */
	uint64_t moment;                   /* counts what is posted and polled */
	uint32_t binds;                    /* of all QPs that have not completed */
	struct user_mr *mrs[LINT_BUCKETS]; /* by index of the key */
};

extern struct lint lint;

/* The warnings that are asked for (explain/misuse.h); 0: none. Constant after the first start of the driver's hooks. */
extern uint64_t lint_wanted;

/* The functions that lint.c registers with the driver; verbs/object/lint_hooks.def describes them. */
#define LINT_HOOK(name, parameters) void lint_##name parameters;
#include "verbs/object/lint_hooks.def"
#undef LINT_HOOK

/** The state of the QP with that number; NULL: there is none. The lock is held. (state.c) */
struct lint_qp *lint_qp_find(uint32_t qp_num);
/** Adds @state to the table of queue pairs; removes it. The lock is held. */
void lint_qp_add(struct lint_qp *state);
void lint_qp_remove(struct lint_qp *state);

/**
 * True if no completion was polled from the CQs of its queue pair since @send was posted, but those that this is about. The peer's
 * answer, perhaps on another queue pair, may tell a program without its completion that a send is done.
 */
bool lint_send_is_new(const struct lint_qp *state, const struct lint_send *send);
/** True of one that is signalled, too. */
bool lint_send_is_open(const struct lint_qp *state, uint32_t number);

/** The region of @lkey, NULL if it is none that was registered here. The lock is held. */
struct user_mr *lint_mr_find(uint32_t lkey);
/** Adds @mr to the table of regions; removes it if it is there. The lock is held. */
void lint_mr_add(struct user_mr *mr);
void lint_mr_remove(struct user_mr *mr);

/** Takes what is completed out of @state. The lock is held. */
void lint_sends_complete(struct lint_qp *state);

/** Receives of these @count SGEs are posted: the device will write there. The lock is held. */
void lint_memory_written(const struct ibv_sge *sge, int count);

/** Fills @send with what the WQE at block @index of the ring of @qp says. */
void lint_send_read(const struct user_qp *qp, uint32_t index, struct lint_send *send);

/** Notes where the pieces of @send are that it reads from memory of the process, and what is there. The lock is held. */
void lint_memory_note(struct lint_send *send);
/** @send is complete: looks whether that is there still. The lock is held. */
void lint_memory_check(struct lint_qp *state, const struct lint_send *send);
/** Copies @size bytes of the process at @address. Returns false if they are not there, or that cannot be known. */
bool lint_memory_read(uint64_t address, void *out, size_t size);
/** Looks into what @send of @state carries for rkeys of windows whose binds have not completed. The lock is held. */
void lint_window_look(struct lint_qp *state, const struct lint_send *send, const char *call);

/** True if a piece of @send is written. */
bool lint_send_writes(const struct lint_send *send);
/**
 * Warns if @send reads memory to which a request before it writes, without a fence between them; and stops watching memory to which
 * either of the two writes. The lock is held.
 */
void lint_fence_look(struct lint_qp *state, struct lint_send *send, uint32_t number, const char *call);
/** The queue pair of this process that is connected to that of @state; NULL: there is none. The lock is held. (ends.c) */
struct lint_qp *lint_peer_of(const struct lint_qp *state);
/** Warns if the range of @send overlaps that of a READ before it, without a fence between them. The lock is held. */
void lint_overtaking_look(struct lint_qp *state, const struct lint_send *send, uint32_t number, const char *call);
/** Warns if @send reaches on-demand memory of this process, and the queue pair does not repeat after an RNR NAK. The lock is held. */
void lint_on_demand_look(struct lint_qp *state, const struct lint_send *send, const char *call);
/** Looks whether @send is one READ or atomic more than the peer grants, if that is in this process. The lock is held. */
void lint_depth_look(struct lint_qp *state, const struct lint_send *send, uint32_t number, const char *call);
/** The chain of @state is posted. The lock is held. */
void lint_keys_posted(struct lint_qp *state);

/** Counts again how many completions can come of what is posted on @state. The lock is held. */
void lint_due_count(struct lint_qp *state);
/** The same, and warns where a CQ has no room for that; @call has posted. */
void lint_room_check(struct lint_qp *state, const char *call);
/** Nothing can come of it any more. */
void lint_due_forget(struct lint_qp *state);

/** Warns of buffers of receives that were read since the last time. The lock is held. */
void lint_reads_tell(void);
/** Takes the receives of @state whose completions were polled out of it. The lock is held. */
void lint_receives_complete(struct lint_qp *state);
/** @state goes, and its queue pair is no more in the device. The lock is held. */
void lint_receives_end(struct lint_qp *state);
/** @mr is registered, or about to go. The lock is held. */
void lint_receive_region_registered(struct user_mr *mr);
void lint_receive_region_gone(struct user_mr *mr);
/** page_guard_write_was_read. */
void lint_write_was_read(struct hca *hca, uint32_t qp_num, uint64_t address, uint64_t start, uint64_t length);

/**
 * Makes a warning, if it was asked for, and counts it. @warned: misuse_bit() of what was said already of the object that it
 * is about, which is said once; NULL: it is said each time. Any thread; the lock may be held.
 */
void lint_warn(struct hca *hca, const struct explain_subject *subject, uint64_t *warned, enum explain_rule rule,
	       const uint64_t *figures, size_t count);

enum { LINT_SUMMARY_PART = 48, LINT_SUMMARY_BYTES = MISUSE_RULES * LINT_SUMMARY_PART + 64 };

/** Writes "lint: 3 warnings: 2 LEAKED_OBJECTS, 1 QUEUE_UNSIGNALED" to @text. Any thread. (warn.c) */
void lint_warn_summary(char text[LINT_SUMMARY_BYTES]);
/** Sets the counts to 0. In a forked child, before it has threads. */
void lint_warn_reset(void);

/* WARN(hca, "ibv_close_device", RULE_X, figures…) */
#define WARN(hca, call_name, rule, ...) WARN_UNLESS(NULL, hca, call_name, rule, __VA_ARGS__)
/* WARN_UNLESS(&warned, hca, "ibv_close_device", RULE_X, figures…): is only counted if @warned has the rule's bit, which it then has. */
#define WARN_UNLESS(warned, hca, call_name, rule, ...)                                                                 \
	lint_warn(hca, &(const struct explain_subject){.call = (call_name)}, warned, rule,                             \
		  (const uint64_t[]){__VA_ARGS__}, EXPLAIN_COUNT_(__VA_ARGS__))
/* WARN_ABOUT(&subject, &warned, hca, RULE_X, figures…): the same of any subject. */
#define WARN_ABOUT(subject, warned, hca, rule, ...)                                                                    \
	lint_warn(hca, subject, warned, rule, (const uint64_t[]){__VA_ARGS__}, EXPLAIN_COUNT_(__VA_ARGS__))
/* WARN_OF_QP(struct lint_qp *, "ibv_post_send", RULE_X, figures…): once of each queue pair. */
#define WARN_OF_QP(state, call_name, rule, ...)                                                                        \
	lint_warn(hca_of_context((state)->qp->base.context),                                                           \
		  &(const struct explain_subject){.call = (call_name), .qpn = (state)->qp->base.qp_num},               \
		  &(state)->warned, rule, (const uint64_t[]){__VA_ARGS__}, EXPLAIN_COUNT_(__VA_ARGS__))

/* WARN_OF_SEND(state, &send, "ibv_poll_cq", RULE_X, figures…): the same, of a work request. */
#define WARN_OF_SEND(state, send, call_name, rule, ...)                                                                \
	lint_warn(hca_of_context((state)->qp->base.context),                                                           \
		  &(const struct explain_subject){                                                                     \
			  .call = (call_name), .qpn = (state)->qp->base.qp_num, .wr_id = (send)->wr_id},               \
		  &(state)->warned, rule, (const uint64_t[]){__VA_ARGS__}, EXPLAIN_COUNT_(__VA_ARGS__))

#endif
