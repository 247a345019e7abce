/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * softhca.h: functions of the software device that verbs and mlx5dv do not have: explanations, counters, faults,
 * drawings of keys.
 *
 * Link with `pkg-config --libs softhca`. Any thread may call any function at any time. Every context must be of a
 * device of softhca: do not call these functions with a context of another libibverbs (softhca_version() takes none
 * and is always allowed).
 */
#ifndef SOFTHCA_H
#define SOFTHCA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct ibv_context;

/* Returns the version of the loaded library as "major.minor.patch", a constant string. */
const char *softhca_version(void);

/*
 * Explanations.
 *
 * Every refused call, failed completion, dropped packet and refused change of state leaves one explanation with its
 * device: the rule that was broken, its figures, and advice. A device keeps the last 1024, plus the last 256 of those
 * that other processes and hosts can cause, such as dropped packets of unknown senders. The rules have stable
 * numbers, listed in docs/reference/explanations.md; numbers 1 to 255 are also the vendor_err of the failed work completion:
 *
 *	struct softhca_explanation last[16];
 *	size_t count = softhca_explanations(context, wc.qp_num, last, 16);
 *	char text[512];
 *
 *	for (size_t i = 0; i < count; i++) {
 *		if (last[i].rule != wc.vendor_err || last[i].wr_id != wc.wr_id)
 *			continue;
 *		softhca_explanation_text(&last[i], text, sizeof(text));
 *		puts(text);
 *		break;
 *	}
 *
 * The strings of a struct softhca_explanation are constant and never freed. Members that do not apply are 0 or NULL.
 */
#define SOFTHCA_FIGURES 8

struct softhca_explanation {
	uint64_t serial;                  /* 1, 2, … in the order in which the device made the explanations */
	uint64_t time_ns;                 /* CLOCK_MONOTONIC, nanoseconds */
	uint32_t rule;                    /* number of the rule */
	uint32_t qp_num;                  /* number of the QP concerned; 0: none */
	const char *name;                 /* name of the rule: "KEY_RANGE" */
	const char *source;               /* source of the rule: "IBTA C10-57" */
	const char *advice;               /* recommended action */
	const char *device;               /* "mlx5_0" */
	const char *call;                 /* the refused call: "ibv_reg_mr"; NULL: a work request or a packet */
	int32_t error;                    /* errno value of that call; 0: none */
	uint32_t status;                  /* enum ibv_wc_status of the resulting completion; 0: none */
	uint64_t wr_id;                   /* wr_id of the send request */
	uint32_t opcode;                  /* MLX5_OPCODE_* of the send request */
	uint32_t receive;                 /* 1: concerns the receive side of the QP, which has neither wr_id nor
					   * opcode */
	uint32_t qp_state;                /* enum ibv_qp_state when the rule was checked */
	uint32_t figures;                 /* number of valid elements of figure[] */
	uint64_t figure[SOFTHCA_FIGURES]; /* in the order of docs/reference/explanations.md */
	const char *request; /* "LOCAL_INV", "BIND_MW": verbs name of a request of opcode UMR; otherwise NULL */
};

/*
 * The functions behind the inline functions below. They take the size of the structure with which the program was
 * compiled. The structure may grow at its end: a program with a shorter or a longer one gets the members that both
 * have, and zeros for the rest.
 */
size_t softhca_read_explanations(struct ibv_context *context, uint32_t qp_num, struct softhca_explanation *out,
				 size_t max, size_t structure_size);
size_t softhca_render_explanation(const struct softhca_explanation *explanation, size_t structure_size, char *buffer,
				  size_t size);

/*
 * Reads the last explanations of the device of @context, newest first.
 *
 * - @qp_num: only those about this QP; 0: all
 * - @out: receives the explanations; room for @max
 *
 * Returns the number written, at most @max and at most the number that the device still keeps. Any thread.
 */
static inline size_t softhca_explanations(struct ibv_context *context, uint32_t qp_num, struct softhca_explanation *out,
					  size_t max)
{
	return softhca_read_explanations(context, qp_num, out, max, sizeof(*out));
}

/*
 * Renders @explanation as the line of text that `softhca run` prints, without a line feed. Writes at most @size bytes
 * to @buffer, the terminating 0 included. Returns the length of the whole line in bytes, as snprintf(3) does. Any
 * thread.
 */
static inline size_t softhca_explanation_text(const struct softhca_explanation *explanation, char *buffer, size_t size)
{
	return softhca_render_explanation(explanation, sizeof(*explanation), buffer, size);
}

/*
 * Counters of links and transport: packets sent, received, retransmitted, dropped and so on by this process.
 * docs/reference/limits.md lists them. They start at 0 when the device is created, and again in a forked child. Traffic between
 * QPs of one process is not counted.
 *
 *	struct softhca_counter counters[128];
 *	size_t count = softhca_counters(context, counters, 128);
 *
 *	for (size_t i = 0; i < count; i++)
 *		printf("%s %llu\n", counters[i].name, (unsigned long long)counters[i].value);
 */
struct softhca_counter {
	const char *name; /* "udp_packets_sent"; constant, like doc */
	const char *doc;
	uint64_t value;
};

size_t softhca_read_counters(struct ibv_context *context, struct softhca_counter *out, size_t max,
			     size_t structure_size);

/*
 * Reads the counters of the device of @context in a fixed order. @out has room for @max. Returns the number written,
 * at most @max. Any thread.
 */
static inline size_t softhca_counters(struct ibv_context *context, struct softhca_counter *out, size_t max)
{
	return softhca_read_counters(context, out, max, sizeof(*out));
}

/* Returns the counter called @name of the device of @context, or UINT64_MAX if no counter has this name. Any thread. */
uint64_t softhca_counter(struct ibv_context *context, const char *name);

/*
 * Faults: makes the device of @context drop, duplicate, delay, reorder or corrupt packets that it sends.
 *
 * - @script: rules in the language of docs/use/faults.md ("drop 1%; corrupt payload 0.1%; seed 7"), or the path of a file
 *   with such rules. NULL or "off" removes all faults. The script replaces that of SOFTHCA_FAULTS; packet numbers
 *   restart.
 * - @error: receives one line of text if the script is wrong: line, column, what was expected. At most @size bytes,
 *   the terminating 0 included; may be NULL.
 *
 * Returns 0 or an errno value: EINVAL for a wrong script, ENOMEM, or that of opening or reading the file. Any thread.
 */
int softhca_set_faults(struct ibv_context *context, const char *script, char *error, size_t size);

/* Checks @script as softhca_set_faults() does, without applying it. Same return values. Any thread. */
int softhca_check_faults(const char *script, char *error, size_t size);

/*
 * Writes the effect of the faults of the device of @context so far: one line for the seed and one for each rule.
 * Writes at most @size bytes to @buffer, the terminating 0 included. Returns the length of the whole text in bytes,
 * as snprintf(3) does; 0 without faults. Any thread.
 */
size_t softhca_fault_summary(struct ibv_context *context, char *buffer, size_t size);

/*
 * Drawings of keys: the range of an mkey, window or region, the memory that it maps, its blocks and their signatures,
 * its rights, and the accesses that were refused. docs/use/keys.md explains how to read one. The users of the key are
 * shown only with SOFTHCA_KEYS.
 */
enum softhca_drawing {
	SOFTHCA_DRAWING_TEXT = 0,
	SOFTHCA_DRAWING_SVG = 1,
};

/*
 * Writes a drawing of the current state of a key to a file descriptor.
 *
 * - @context: the device to search; NULL: the first device that has the key, for use in a debugger
 * - @key: lkey or rkey. Its lowest 8 bits are ignored, since a bind or an invalidation changes them
 * - @fd: descriptor that the drawing is written to
 * - @format: text or SVG
 *
 *	(gdb) call (int)softhca_draw_mkey(0, mkey->lkey, 1, 0)
 *
 * Returns 0 or an errno value: ENOENT if no such key exists, EINVAL for another @format, ENOMEM, or those of
 * write(2). Any thread.
 */
int softhca_draw_mkey(struct ibv_context *context, uint32_t key, int fd, enum softhca_drawing format);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
