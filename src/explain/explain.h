/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Explanations: every refused call, failed completion, dropped packet, failed bind and invalid state change leaves one
 * record, made where the check fails. rules.def is the one table: a stable number per rule, the sentence with its
 * figures, the source of the rule, what to do about it. docs/reference/explanations.md is generated from it.
 *
 * A record holds figures, not text: making one needs no formatting and no allocation. Text is rendered on request
 * (softhca.h) or when SOFTHCA_EXPLAIN names a sink. Numbers 1..255 are also the vendor syndrome of an error CQE.
 *
 * Records live in the rings of struct explain_log, owned by struct hca; its lock is a leaf. Any thread may call.
 * Records that other processes and hosts can cause (explain/limit.h) have a separate ring, so that they do not displace
 * the program's own.
 */
#ifndef SOFTHCA_EXPLAIN_EXPLAIN_H
#define SOFTHCA_EXPLAIN_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca;

/* The rules by name: RULE_<NAME> = number. */
enum explain_rule {
	RULE_NONE = 0,
#define RULE(number, name, text, source, advice) RULE_##name = number,
#include "explain/rules.def"
#undef RULE
};

#define EXPLAIN_ARGS 8

/*
 * Location of a queue pair, as three figures: the id of its process, or one of the values below; then the subnet prefix
 * and the interface id of its host's GID, which are 0 unless the first figure is ORIGIN_HOST. For queue pairs of other
 * hosts the process id is not known.
 */
#define EXPLAIN_ORIGIN 3
#define ORIGIN_THIS_PROCESS 0
#define ORIGIN_OTHER_PROCESS UINT64_MAX
#define ORIGIN_HOST (UINT64_MAX - 1)

/* Start and length of a key's range, and an address outside of it, as three figures. */
#define EXPLAIN_HINT 3

/*
 * Objects that use a protection domain, as three figures of three counts each, in the order of this list: 21 bits per count, the
 * first one lowest.
 */
#define EXPLAIN_USERS 3
#define EXPLAIN_USER_KINDS(KIND)                                                                                       \
	KIND(MR, "MR")                                                                                                 \
	KIND(MW, "MW")                                                                                                 \
	KIND(MKEY, "mkey")                                                                                             \
	KIND(AH, "AH")                                                                                                 \
	KIND(QP, "QP")                                                                                                 \
	KIND(SRQ, "SRQ")                                                                                               \
	KIND(CQ, "CQ")                                                                                                 \
	KIND(DEK, "DEK")                                                                                               \
	KIND(PD, "parent domain")

#define EXPLAIN_USER_NAME_(NAME, name) EXPLAIN_USER_##NAME,
enum explain_user { EXPLAIN_USER_KINDS(EXPLAIN_USER_NAME_) EXPLAIN_USER_COUNT };
#undef EXPLAIN_USER_NAME_

#define EXPLAIN_USER_BITS 21

/** Packs @counts, one for each kind, into @figures. A count that does not fit is replaced by the maximum. */
static inline void explain_users_pack(const uint32_t counts[EXPLAIN_USER_COUNT], uint64_t figures[EXPLAIN_USERS])
{
	const uint64_t most = (UINT64_C(1) << EXPLAIN_USER_BITS) - 1;

	for (int i = 0; i < EXPLAIN_USERS; i++)
		figures[i] = 0;
	for (int i = 0; i < EXPLAIN_USER_COUNT; i++)
		figures[i / 3] |= (counts[i] < most ? counts[i] : most) << i % 3 * EXPLAIN_USER_BITS;
}

/* The subject of a record. Fields that do not apply are 0. */
struct explain_subject {
	const char *call;    /* refused call by name ("ibv_reg_mr"), static string; NULL for a work request */
	uint32_t qpn;        /* QP number, 0 if none */
	bool receive;        /* concerns the receive side of the QP: a request that arrived, or a receive */
	uint64_t wr_id;      /* wr_id of the work request, if known; not known for receives */
	uint8_t opcode;      /* WQE opcode (MLX5_OPCODE_*), meaningful for a send request */
	const char *request; /* the program's name for the send request, a static string; NULL: named by its opcode */
	uint8_t syndrome;    /* CQE syndrome (MLX5_CQE_SYNDROME_*), or 0 without a completion */
	uint8_t qp_state;    /* enum ibv_qp_state when the check was made */
	int error;           /* errno value of a refused call, 0 if none */
	/*
	 * The call failed, but many programs ignore that: the line is held back until the program shows signs of
	 * failure (explain/sink.h).
	 */
	bool ignorable;
	bool expected; /* not a mistake (docs/inside/decisions.md, Quiet runs): recorded, printed only with "all" */
};

struct explain_record {
	uint64_t serial;  /* 1, 2, … in order of making; 0 = empty */
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	enum explain_rule rule;
	struct explain_subject subject;
	uint64_t args[EXPLAIN_ARGS];
};

/**
 * Makes a record of @count @figures. Any thread, leaf lock, never fails.
 * Returns its serial number.
 */
uint64_t explain_make(struct hca *hca, const struct explain_subject *subject, enum explain_rule rule,
		      const uint64_t *figures, size_t count);

/** Makes a record that another process or host can cause. Use through explain/limit.h only. */
uint64_t explain_make_of_others(struct hca *hca, const struct explain_subject *subject, enum explain_rule rule,
				const uint64_t *figures, size_t count);

/** Writes the line of an existing record that was marked as expected. Makes no new record. Any thread. */
void explain_tell(struct hca *hca, const struct explain_subject *subject, enum explain_rule rule, const uint64_t *args);

/**
 * Reports that a queue pair of @hca was created: earlier refusals by a limit were steps of a search (explain/search.h).
 * Any thread.
 */
void explain_found(struct hca *hca);

/*
 * FIGURES(a, b, …): the figures of a rule, in the order of its text, at least one (0 if it has none). Two arguments of a function:
 * the array and its count.
 */
#define FIGURES(...) (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)

/* EXPLAIN(hca, &subject, RULE_X, figures…) */
#define EXPLAIN(hca, subject, rule, ...) explain_make(hca, subject, rule, FIGURES(__VA_ARGS__))

/*
 * Explains a refused call: REFUSE(hca, "ibv_reg_mr", EINVAL, RULE_X, figures…) makes the record and evaluates to the
 * errno value, so that a refusal reads `return -REFUSE(…)` or `errno = REFUSE(…); return NULL;`.
 */
#define REFUSE(hca, call_name, errno_value, rule, ...)                                                                 \
	(EXPLAIN(hca, (&(const struct explain_subject){.call = (call_name), .error = (errno_value)}), rule,            \
		 __VA_ARGS__),                                                                                         \
	 (errno_value))

/** As REFUSE(), for failures that many programs ignore (docs/inside/decisions.md, Quiet runs). Returns @error. */
static inline int refuse_ignorable(struct hca *hca, const char *call, int error, enum explain_rule rule,
				   const uint64_t *figures, size_t count)
{
	const struct explain_subject subject = {.call = call, .error = error, .ignorable = true};

	explain_make(hca, &subject, rule, figures, count);
	return error;
}

/** As REFUSE(), for a call on QP @qpn. Returns @error. */
static inline int refuse_on_qp(struct hca *hca, const char *call, uint32_t qpn, int error, enum explain_rule rule,
			       const uint64_t *figures, size_t count)
{
	const struct explain_subject subject = {.call = call, .qpn = qpn, .error = error};

	explain_make(hca, &subject, rule, figures, count);
	return error;
}

/** Returns the serial number of the latest record, or 0. Any thread; no lock. */
uint64_t explain_latest(const struct hca *hca);

/**
 * Finds the newest record that is older than number @before (0: the newest of all) and about QP @qpn (0: any subject).
 * Returns false if there is none, or it was overwritten. Any thread.
 */
bool explain_previous(struct hca *hca, uint32_t qpn, uint64_t before, struct explain_record *out);

/**
 * Renders @record as text, one line: "mlx5_0 qp 0x4011 RDMA_WRITE wr_id 7 → …". @device: its name. Returns the length,
 * as snprintf.
 */
size_t explain_render(const char *device, const struct explain_record *record, char *buffer, size_t size);

#endif
