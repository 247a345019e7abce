/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * softhca.h: what a program may ask of the software device beyond verbs and mlx5dv.
 *
 * Link with `pkg-config --libs softhca`. All functions may be called from any thread. A context is one of a device of
 * softhca: under another libibverbs these functions must not be called (softhca_version() may be).
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

/* Version of the loaded library as "major.minor.patch"; a constant string. */
const char *softhca_version(void);

/*
 * Explanations.
 *
 * Every refused call, failed completion, dropped packet and refused change of state leaves one explanation with its
 * device: which rule was broken, with which figures, and what to do about it. A device keeps the last 1024, and beside
 * these the last 256 of what others can cause, such as packets of strangers that were dropped. The rules have stable
 * numbers, listed in docs/reference/explanations.md; number 1 to 255 is also the vendor_err of the failed work completion:
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
 * Strings in a struct softhca_explanation are constant and stay valid. Members that do not apply are 0 or NULL.
 */
#define SOFTHCA_FIGURES 8

struct softhca_explanation {
	uint64_t serial;    /* 1, 2, … in the order in which the device made them */
	uint64_t time_ns;   /* CLOCK_MONOTONIC */
	uint32_t rule;      /* number of the rule */
	uint32_t qp_num;    /* the QP it is about; 0: none */
	const char *name;   /* of the rule: "KEY_RANGE" */
	const char *source; /* where the rule comes from: "IBTA C10-57" */
	const char *advice; /* what to do about it */
	const char *device; /* "mlx5_0" */
	const char *call;   /* the call that was refused: "ibv_reg_mr"; NULL: a work request or a packet */
	int32_t error;      /* errno value of that call */
	uint32_t status;    /* enum ibv_wc_status of the completion that came of it; 0: none */
	uint64_t wr_id;     /* of a send request */
	uint32_t opcode;    /* its opcode, MLX5_OPCODE_* */
	uint32_t receive;   /* 1: of the receive side of the QP, which knows no wr_id and no opcode */
	uint32_t qp_state;  /* enum ibv_qp_state when the rule was checked */
	uint32_t figures;   /* how many figures there are */
	uint64_t figure[SOFTHCA_FIGURES]; /* in the order in which docs/reference/explanations.md has them */
	const char
		*request; /* "LOCAL_INV" or "BIND_MW": a request of opcode UMR that the program calls so; else NULL */
};

/*
 * The two functions take the size that the structure has in the program: it may grow at its end, and a program that was
 * compiled with a shorter or a longer one gets what both have, and zeros for the rest. Programs in C call the inline
 * functions below.
 */
size_t softhca_read_explanations(struct ibv_context *context, uint32_t qp_num, struct softhca_explanation *out,
				 size_t max, size_t structure_size);
size_t softhca_render_explanation(const struct softhca_explanation *explanation, size_t structure_size, char *buffer,
				  size_t size);

/*
 * Reads the last explanations about QP @qp_num (0: about anything) of the device of @context, the newest first. Returns
 * how many were written to @out: at most @max, and only those that the device still has.
 */
static inline size_t softhca_explanations(struct ibv_context *context, uint32_t qp_num, struct softhca_explanation *out,
					  size_t max)
{
	return softhca_read_explanations(context, qp_num, out, max, sizeof(*out));
}

/*
 * Renders @explanation as one line of text, without a line feed: the line that `softhca run` prints. Writes at most
 * @size bytes, the final 0 included; returns the length of the whole line, as snprintf(3) does.
 */
static inline size_t softhca_explanation_text(const struct softhca_explanation *explanation, char *buffer, size_t size)
{
	return softhca_render_explanation(explanation, sizeof(*explanation), buffer, size);
}

/*
 * Counters of links and transport: what this process sent, received, sent again, dropped. docs/reference/limits.md lists them. They
 * begin at 0 when the device is made, and in a forked child. What QPs of one process tell each other is not counted.
 *
 *	struct softhca_counter counters[128];
 *	size_t count = softhca_counters(context, counters, 128);
 *
 *	for (size_t i = 0; i < count; i++)
 *		printf("%s %llu\n", counters[i].name, (unsigned long long)counters[i].value);
 */
struct softhca_counter {
	const char *name; /* "udp_packets_sent"; constant, as is the next */
	const char *doc;
	uint64_t value;
};

size_t softhca_read_counters(struct ibv_context *context, struct softhca_counter *out, size_t max,
			     size_t structure_size);

/* Reads the counters of the device of @context, in a fixed order. Returns how many were written to @out: at most @max. */
static inline size_t softhca_counters(struct ibv_context *context, struct softhca_counter *out, size_t max)
{
	return softhca_read_counters(context, out, max, sizeof(*out));
}

/* The counter called @name of the device of @context; UINT64_MAX: there is none of that name. */
uint64_t softhca_counter(struct ibv_context *context, const char *name);

/*
 * Faults: packets that the device of @context sends are lost, doubled, delayed, reordered or spoilt, as @script says, in
 * the language of docs/use/faults.md: "drop 1%; corrupt payload 0.1%; seed 7", or the path of a file with such lines. NULL or
 * "off" ends that. The faults replace those of SOFTHCA_FAULTS; numbers of packets begin anew.
 *
 * Returns 0, or an errno value: EINVAL for what is no such script, with one line of text in @error (line, column, what was
 * expected), others if a file cannot be read. @error, of @size bytes, may be NULL.
 */
int softhca_set_faults(struct ibv_context *context, const char *script, char *error, size_t size);

/* Checks @script, as softhca_set_faults() would, and applies it to nothing. */
int softhca_check_faults(const char *script, char *error, size_t size);

/*
 * Writes what the faults of the device of @context have done so far: a line for the seed, and one for each rule. Writes at
 * most @size bytes, the final 0 included; returns the length of all, as snprintf(3) does; 0 without faults.
 */
size_t softhca_fault_summary(struct ibv_context *context, char *buffer, size_t size);

/*
 * Drawings of keys: the range of an mkey, a window or a region, the memory behind it, blocks with their signatures, rights, and
 * the accesses that were refused. docs/use/keys.md tells how to read one. The users of the key are in it with SOFTHCA_KEYS only.
 */
enum softhca_drawing {
	SOFTHCA_DRAWING_TEXT = 0,
	SOFTHCA_DRAWING_SVG = 1,
};

/*
 * Writes a drawing of key @key, an lkey or an rkey of the device of @context, to the descriptor @fd, as the key is now; of its
 * number the lowest 8 bits do not matter, since a window or an mkey that was invalidated may have others. @context may be NULL:
 * then it is the first device that has the key, which is meant for debuggers:
 *
 *	(gdb) call (int)softhca_draw_mkey(0, mkey->lkey, 1, 0)
 *
 * Returns 0, or an errno value: ENOENT if there is no such key, EINVAL for another @format, ENOMEM, those of write(2).
 */
int softhca_draw_mkey(struct ibv_context *context, uint32_t key, int fd, enum softhca_drawing format);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
