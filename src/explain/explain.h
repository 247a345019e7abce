/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Explanations: every refused call, failed completion, dropped packet, failed bind and invalid state change leaves one
 * record, made where the check fails. rules.def is the table, and DESIGN.md describes the way of a record.
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

/* RULE_<NAME> = number. */
enum explain_rule {
	RULE_NONE = 0,
#define RULE(number, name, text, source, advice) RULE_##name = number,
#include "explain/rules.def"
#undef RULE
};

#define EXPLAIN_ARGS 8

/*
 * Location of a queue pair, as three figures: the id of its process, or a value below; with ORIGIN_HOST, subnet prefix
 * and interface id of its host's GID, otherwise 0.
 */
#define EXPLAIN_ORIGIN 3
#define ORIGIN_THIS_PROCESS 0
#define ORIGIN_OTHER_PROCESS UINT64_MAX
#define ORIGIN_HOST (UINT64_MAX - 1)

/* Three figures: start and length of a key's range, and an address outside it. */
#define EXPLAIN_HINT 3

/* Objects that use a protection domain: three figures of three counts each, 21 bits per count, the first one lowest. */
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

/** Counts that do not fit become the maximum. */
static inline void explain_users_pack(const uint32_t counts[EXPLAIN_USER_COUNT], uint64_t figures[EXPLAIN_USERS])
{
	const uint64_t most = (UINT64_C(1) << EXPLAIN_USER_BITS) - 1;

	for (int i = 0; i < EXPLAIN_USERS; i++)
		figures[i] = 0;
	for (int i = 0; i < EXPLAIN_USER_COUNT; i++)
		figures[i / 3] |= (counts[i] < most ? counts[i] : most) << i % 3 * EXPLAIN_USER_BITS;
}

/* Fields that do not apply are 0. */
struct explain_subject {
	const char *call; /* refused call by name ("ibv_reg_mr"), static string; NULL for a work request */
	uint32_t qpn;
	bool receive;        /* a request that arrived, or a receive */
	uint64_t wr_id;      /* wr_id of the work request, if known; not known for receives */
	uint8_t opcode;      /* MLX5_OPCODE_*, for a send request */
	const char *request; /* static name of the send request; NULL: named by its opcode */
	uint8_t syndrome;    /* MLX5_CQE_SYNDROME_*, or 0 without a completion */
	uint8_t qp_state;    /* enum ibv_qp_state at the check */
	int error;           /* errno value of a refused call, or 0 */
	/* Many programs ignore this failure: the line is held back until something else fails (explain/sink.h). */
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

/** Makes a record. Any thread, leaf lock, never fails. Returns the record's serial number. */
uint64_t explain_make(struct hca *hca, const struct explain_subject *subject, enum explain_rule rule,
		      const uint64_t *figures, size_t count);

/** For a record that another process or host can cause; use explain/limit.h. */
uint64_t explain_make_of_others(struct hca *hca, const struct explain_subject *subject, enum explain_rule rule,
				const uint64_t *figures, size_t count);

/** Writes the line of an existing, expected record. Any thread. */
void explain_tell(struct hca *hca, const struct explain_subject *subject, enum explain_rule rule, const uint64_t *args);

/** A queue pair was created: earlier refusals by a limit were steps of a search (explain/search.h). Any thread. */
void explain_found(struct hca *hca);

/*
 * FIGURES(a, b, …): the figures of a rule, in the order of its text, at least one (0 if it has none), as two arguments:
 * array and count.
 */
#define FIGURES(...) (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)

/* EXPLAIN(hca, &subject, RULE_X, figures…) */
#define EXPLAIN(hca, subject, rule, ...) explain_make(hca, subject, rule, FIGURES(__VA_ARGS__))

/*
 * Explains a refused call and evaluates to the errno value: `return -REFUSE(hca, "ibv_reg_mr", EINVAL, RULE_X,
 * figures…)`.
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
 * Finds the newest record before number @before (0: of all) about QP @qpn (0: any subject). Returns false if there is
 * none. Any thread.
 */
bool explain_previous(struct hca *hca, uint32_t qpn, uint64_t before, struct explain_record *out);

/** Renders a line: "mlx5_0 qp 0x4011 RDMA_WRITE wr_id 7 → …". @device: its name. Returns the length, as snprintf. */
size_t explain_render(const char *device, const struct explain_record *record, char *buffer, size_t size);

#endif
