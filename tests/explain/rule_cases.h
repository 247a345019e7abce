/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One case for each rule of src/explain/rules.def. It breaks the rule through the public API, or through a send ring obtained
 * by mlx5dv_init_obj(3), and compares the explanation read by softhca.h: number, name, status and the whole line.
 *
 * A case has the sides and the connected RC pair of support/program.h. It expects its own rule at least once, and any others
 * that occur on the way (at the other end of a refused request).
 */
#ifndef SOFTHCA_TESTS_EXPLAIN_RULE_CASES_H
#define SOFTHCA_TESTS_EXPLAIN_RULE_CASES_H

#include <inttypes.h>

#include "softhca.h"
#include "support/program.h"

enum {
#define RULE(number, name, text, source, advice) RULE_##name = number,
#include "explain/rules.def"
#undef RULE
};

struct rule_case {
	uint32_t rule;
	const char *name;
	void (*provoke)(void);
	const char *profile; /* NULL: "man" */
	const char *crypto;  /* value of SOFTHCA_CRYPTO; NULL: its default */
	const char *lint;    /* value of SOFTHCA_LINT; NULL: its default */
	struct rule_case *next;
};

/** Adds @new, which must stay valid, to the cases of the program. */
void rule_case_register(struct rule_case *new);

/**
 * Defines and registers the case of a rule:
 *
 *	RULE_CASE(MODIFY_CUR_STATE, .profile = "connectx")
 *	{
 *		… breaks the rule and expects its explanation …
 *	}
 */
#define RULE_CASE(of, ...)                                                                                             \
	static void case_##of(void);                                                                                   \
	static __attribute__((constructor)) void case_##of##_register(void)                                            \
	{                                                                                                              \
		static struct rule_case entry = {.rule = RULE_##of, .name = #of, .provoke = case_##of, ##__VA_ARGS__}; \
                                                                                                                       \
		rule_case_register(&entry);                                                                            \
	}                                                                                                              \
	static void case_##of(void)

/**
 * Expects @explanation to be of @rule; its line, without the name of the device, is @format and the source and advice of the
 * table.
 */
#define expect_explanation(explanation, rule, ...) expect_explanation_(HERE, explanation, RULE_##rule, __VA_ARGS__)
__attribute__((format(printf, 4, 5))) void expect_explanation_(struct place place,
							       const struct softhca_explanation *explanation,
							       uint32_t rule, const char *format, ...);

/**
 * Expects the newest explanation of the device to be of @rule and not about a completion. @format: from the call on:
 * "ibv_query_port → EINVAL: port 9 does not exist: …".
 */
#define expect_refusal(rule, ...) expect_refusal_(HERE, RULE_##rule, __VA_ARGS__)
__attribute__((format(printf, 3, 4))) void expect_refusal_(struct place place, uint32_t rule, const char *format, ...);

/** Expects the newest explanation about QP @qp_num. @format: the text after "qp 0x40". */
#define expect_about_qp(rule, qp_num, ...) expect_about_qp_(HERE, RULE_##rule, qp_num, __VA_ARGS__)
__attribute__((format(printf, 4, 5))) void expect_about_qp_(struct place place, uint32_t rule, uint32_t qp_num,
							    const char *format, ...);

/**
 * Expects the next completion of @endpoint to be that of its send request @wr_id, with @status and @rule as vendor_err, and an
 * explanation of it about the QP. @opcode: as its line names it. @format: the sentence.
 */
#define expect_failure(endpoint, wr_id, status, rule, opcode, ...)                                                     \
	expect_failure_(HERE, endpoint, wr_id, IBV_WC_##status, #status, RULE_##rule, opcode, __VA_ARGS__)
__attribute__((format(printf, 8, 9))) void expect_failure_(struct place place, struct endpoint *endpoint,
							   uint64_t wr_id, enum ibv_wc_status status,
							   const char *status_name, uint32_t rule, const char *opcode,
							   const char *format, ...);

/** As expect_failure(), for a receive: its line names neither wr_id nor opcode. */
#define expect_receive_failure(endpoint, wr_id, status, rule, ...)                                                     \
	expect_failure_(HERE, endpoint, wr_id, IBV_WC_##status, #status, RULE_##rule, NULL, __VA_ARGS__)

/** Expects the newest explanation of @rule, a warning of misuse. @format: the line without the name of the device. */
#define expect_misuse(rule, ...) expect_misuse_(HERE, RULE_##rule, __VA_ARGS__)
__attribute__((format(printf, 3, 4))) void expect_misuse_(struct place place, uint32_t rule, const char *format, ...);
/** Expects no explanation of @rule, from this case or an earlier one. */
#define expect_no_misuse(rule) expect_no_misuse_(HERE, RULE_##rule)
void expect_no_misuse_(struct place place, uint32_t rule);

/** Reports to main() each explanation that was as expected. */
void rule_was_expected(uint32_t rule);

/** Returns the serial number of the newest explanation about @qp_num (0: about anything) that is of @rule; fails if none
 * exists. */
uint64_t serial_of(uint32_t qp_num, uint32_t rule);

/* ---- requests --------------------------------------------------------------------------------------------------- */

enum { WR_ID = 0x7e57, BYTES = 16 };

/** Returns a signalled request with WR_ID from the client's memory (its first @length bytes). */
struct ibv_send_wr request(enum ibv_wr_opcode opcode, uint32_t length);
/** Posts a WRITE of BYTES to @address of @rkey by the client. */
void write_to(uint32_t rkey, uint64_t address);

/** Binds @mw (type 2) to @length bytes at the start of the server's memory; the server posts the bind, which succeeds. */
void lend(struct ibv_mw *mw, struct ibv_mr *mr, uint64_t length, unsigned int access);

/* ---- rings ------------------------------------------------------------------------------------------------------ */

/* Access to the WQEs of @endpoint in its send ring. */
struct raw {
	struct endpoint *endpoint;
	uint8_t *wqe;     /* place of the next WQE */
	__be32 *doorbell; /* doorbell record of the send queue */
	uint32_t blocks;  /* size of the ring, in blocks of 64 bytes */
};

/** Stops the send queue (SQD): requests posted from now on wait and can be changed. */
struct raw raw_begin(struct endpoint *endpoint);
/** Starts the send queue again (RTS). */
void raw_run(const struct raw *raw);

void raw_put8(const struct raw *raw, uint32_t offset, uint8_t value);
void raw_put16(const struct raw *raw, uint32_t offset, uint16_t value);
void raw_put32(const struct raw *raw, uint32_t offset, uint32_t value);
void raw_put64(const struct raw *raw, uint32_t offset, uint64_t value);
uint32_t raw_get32(const struct raw *raw, uint32_t offset);

/** Accepts the new contents of the memory of @side as correct. */
void side_accept(struct side *side);

#endif
