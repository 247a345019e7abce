/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contents of a drawing of a key. The size is fixed: parts of a long layout that do not fit are elided and counted.
 *
 * A picture is plain data without pointers, owned by the caller of picture_make().
 */
#ifndef SOFTHCA_DRAW_PICTURE_H
#define SOFTHCA_DRAW_PICTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "explain/explain.h"
#include "mkey/key.h"

enum {
	PICTURE_FACTS = 24,
	PICTURE_ROWS = 48,
	PICTURE_REGIONS = PICTURE_ROWS, /* a row may have its own */
	PICTURE_SLOTS = 3 * PICTURE_ROWS,
	PICTURE_BLOCKS = 24,
	PICTURE_USES = 8,
	PICTURE_FAILURES = 4,
};

/* How a refused access concerns a row. */
enum picture_mark {
	MARK_NONE,
	MARK_TOUCHED, /* the access covers some of the row */
	MARK_REFUSED, /* the row is the reason for the refusal */
};

enum picture_row_kind {
	ROW_PIECE,   /* part of the range with its memory */
	ROW_ELIDED,  /* number of rows left out */
	ROW_OUTSIDE, /* bytes of an access outside the range, or of the range without memory */
};

/* In all structures below, "" is an absent text. */
struct picture_fact {
	char name[24];
	char value[200];
};

/* Part of the range, in its order. */
struct picture_row {
	enum picture_row_kind kind;
	enum picture_mark mark;
	uint16_t first, last; /* covered by the refused access, in thousandths */
	uint32_t colour;      /* equal for rows of the same entry of the layout */
	uint32_t region;      /* region of its memory; PICTURE_REGIONS: none */
	uint64_t address;     /* address in that region */
	uint64_t bytes;
	char offset[40]; /* "+0x40" */
	char size[72];   /* "64 bytes"; the whole text of an elision: "… 1,234 more (78,976 bytes)" */
	char memory[40]; /* "0x7f7dade24040" */
	char note[64];   /* "entry 1, repetition 3" */
	char problem[96];
};

/* A region or another key, with the memory of rows. */
struct picture_region {
	uint32_t key;
	bool bounded; /* start and length are valid */
	uint64_t start, length;
	char name[64];   /* "memory region 0x12cf00" */
	char range[80];  /* "[0x7f7dade24000, +4,096)" */
	char rights[96]; /* or the problem if `bad` */
	bool bad;
};

/* A row or gap in a region, by address. */
struct picture_slot {
	uint32_t region;
	uint32_t row; /* PICTURE_ROWS: a gap */
	char gap[48]; /* "448 bytes between" */
};

/* A block of a signature, or a data unit of a cipher. */
struct picture_block {
	enum picture_row_kind kind;
	enum picture_mark mark;
	char number[72]; /* "7"; the whole text of an elision */
	char memory[96]; /* "+0x1040, 512 + 8 bytes" */
	char memory_field[96];
	char wire[96];
	char wire_field[96];
	char problem[120];
};

struct picture_use {
	char line[160];
};

/* An explanation, and the access that it explains. */
struct picture_failure {
	char line[1100];
	char access[160];
	uint32_t more; /* explanations with the same text */
};

struct picture {
	uint32_t number; /* tag included */
	uint64_t serial, version;
	char title[160];
	char state[120];
	bool live;
	struct picture_fact fact[PICTURE_FACTS];
	struct picture_row row[PICTURE_ROWS];
	struct picture_region region[PICTURE_REGIONS];
	struct picture_slot slot[PICTURE_SLOTS];
	struct picture_block block[PICTURE_BLOCKS];
	struct picture_use use[PICTURE_USES + 1];
	struct picture_failure failure[PICTURE_FAILURES];
	uint32_t facts, rows, regions, slots, blocks, uses, failures;
	bool memory_fields, wire_fields; /* blocks have fields there */
};

/* Uses of a key by a queue pair (draw/book.h). */
struct key_use {
	uint32_t qpn;
	uint8_t rights; /* enum key_rights */
	uint64_t times, bytes;
	uint64_t first, end; /* lowest address, end of the highest access */
};

struct key_uses {
	uint32_t count;
	uint64_t more; /* accesses not in `use` */
	struct key_use use[PICTURE_USES];
};

/** Returns true if @rule concerns a key, its first figure, but not an access through it. */
bool rule_concerns_key(enum explain_rule rule);

/**
 * Fills @picture from the current mapping of @key. @uses may be NULL. Call inside an epoch section. Takes the locks of
 * explanations and of refused accesses, which are leaves.
 */
void picture_make(struct picture *picture, const struct mkey *key, const struct key_uses *uses);

#endif
