/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A case: two ends of a transfer, the content of the source, and steps. It can be written as a line of text
 * (case_text.c), which a difference prints and `replay` runs:
 *
 *	man data=7:random s.key=0 s.mem=t10:512:crc:0:5678:f0debc9a:remap s.wire=none s.check=ff
 *	s.list=256+520,900+520 t.plain=3 cs=als send:0+1024
 *
 * The first word is the profile. Words with the prefix s. or t. describe source or target:
 *
 *	key=N                      a key of the pool, or
 *	plain=N                    no key: the message at address p is at PLAIN_START + N + p of the region
 *	mem=DOMAIN wire=DOMAIN     none; t10:BLOCK:crc|csum:0|1:APP:REF[:FLAGS]; crc32|crc32c|crc64:BLOCK:0|1. The 0 or 1 is
 *	                           the seed; FLAGS are remap, app and appref, joined by +
 *	check=XX copy=XX           check_mask, copy_mask (COPY_MASK is given), in hex
 *	list=PIECES                the layout; piece AT+BYTES[/SKIP], joined by commas
 *	rep=Nx:PIECES              an interleaved layout of N repetitions
 *	under=PIECES               the layout's pieces are in a plain list key with these pieces
 *	over=[Nx:]PIECES           a plain key with its pieces in the key, in wire bytes; with the prefix p: in the region
 *
 * Other words:
 *
 *	data=SEED:PATTERN          random, zeros, ones or same: the raw data
 *	nofields                   fields of the input are as random as the data
 *	patch=P=HEX,P^HEX,…        bytes of the input stream from P on are replaced, or flipped
 *	header=N                   each message has N bytes of plain memory before those of the keys
 *	late                       SIG_ERR of a passive end is polled only at the end of the case
 *	lazy                       keys are checked only at the end of the case
 *	extended                   CQs are polled by ibv_start_poll(3)
 *	together                   requests between two configurations are posted before any is polled
 *
 * Steps, in order:
 *
 *	cs=LETTERS, ct=LETTERS     a configuration of the source or target key: i invalidate it first, r RESET_SIG_ATTR,
 *	                           a access, l layout, k another layout, s signature, j another signature, u unsignalled and
 *	                           not waited for
 *	OPERATION:START+LENGTH     a transfer of bytes START … of both ends; with /N, local ends have two SGEs, N bytes of the
 *	                           key in the first; with the prefix <, from the target to the source; with the prefix 2,
 *	                           on another RC pair, which is not ordered with the first
 */
#ifndef SOFTHCA_TESTS_SIGNATURE_CASE_H
#define SOFTHCA_TESTS_SIGNATURE_CASE_H

#include "signature.h"

enum {
	REGION = 1 << 20, /* memory of an end */
	HEADER_MOST = 256,
	PLAIN_START = 256,
	STREAM_MOST = 700 * 1024,
	LAYOUT_MOST = 600 * 1024, /* length of a key in memory; with wire fields it is less than STREAM_MOST */
	MESSAGE_MOST = STREAM_MOST + HEADER_MOST,
	PIECES = 20,
	STEPS = 24,
	PATCHES = 12,
	KEYS = 3, /* in the pool of each end */
	LETTERS = 10,
	LINE = 8192,
};

struct piece {
	bool plain;
	uint32_t at, bytes, skip;
};

struct layout {
	uint32_t repeat; /* 0: a list */
	uint32_t count;  /* 0: none */
	struct piece piece[PIECES];
};

struct end {
	bool is_key;
	uint32_t key, plain;
	bool has_signature;
	struct signature signature;
	struct layout layout, under, over;
};

enum operation {
	SEND,
	SEND_IMM,
	WRITE,
	WRITE_IMM,
	READ,
	MEMCPY,
	UC_SEND,
	UC_SEND_IMM,
	UC_WRITE,
	UC_WRITE_IMM,
	UD_SEND,
	UD_SEND_IMM,
	OPERATIONS,
};

struct step {
	bool configures;
	bool of_target;
	char letters[LETTERS];
	enum operation operation;
	bool back;  /* from target to source */
	bool other; /* over the other RC pair */
	uint32_t start, length;
	uint32_t cut; /* 0: one SGE */
};

struct patch {
	uint32_t at, count;
	bool flips;
	uint8_t bytes[8];
};

enum pattern { PATTERN_RANDOM, PATTERN_ZEROS, PATTERN_ONES, PATTERN_SAME, PATTERNS };

struct test_case {
	bool connectx;
	uint64_t data;
	enum pattern pattern;
	bool no_fields, late, lazy, together, extended;
	uint32_t header;
	struct end source, target;
	uint32_t patch_count, step_count;
	struct patch patch[PATCHES];
	struct step step[STEPS];
};

/** Prints the line of a case, without newline. */
void case_print(const struct test_case *test_case, char line[LINE]);
/**
 * Returns false if @line is not a case, with the reason on stderr. Checks bounds: a line cannot make the test exceed its
 * memory.
 */
bool case_parse(const char *line, struct test_case *test_case);

const char *operation_name(enum operation operation);
bool operation_is_send(enum operation operation);
bool operation_has_immediate(enum operation operation);

#endif
