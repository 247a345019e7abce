/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A picture has the complete contents of a drawing of a key, in words, rows and marks, taken from the key and from
 * refused accesses. It is made once, and then written as text (draw/text.h) and as SVG (draw/svg.h). Both use only the
 * picture, so they cannot disagree. The size of a picture is fixed; parts of a long layout that do not fit are elided
 * and counted.
 *
 * A picture is plain data without pointers. Its owner is the caller of picture_make().
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
	PICTURE_REGIONS = PICTURE_ROWS, /* each row may have its own region */
	PICTURE_SLOTS = 3 * PICTURE_ROWS,
	PICTURE_BLOCKS = 24,
	PICTURE_USES = 8,
	PICTURE_FAILURES = 4,
};

/* How a refused access concerns a row. */
enum picture_mark {
	MARK_NONE,
	MARK_TOUCHED, /* the access covers the row or a part of it */
	MARK_REFUSED, /* the row is the reason for the refusal */
};

enum picture_row_kind {
	ROW_PIECE,   /* a part of the range with its memory */
	ROW_ELIDED,  /* number of rows left out */
	ROW_OUTSIDE, /* bytes of an access outside the range, or of the range without memory */
};

/* A named property of the key. In all structures below, "" is an absent text. */
struct picture_fact {
	char name[24];
	char value[200];
};

/* A part of the key's range, in the order of the range. */
struct picture_row {
	enum picture_row_kind kind;
	enum picture_mark mark;
	uint16_t first, last; /* part covered by the refused access, in thousandths of the row */
	uint32_t colour;      /* equal for rows of the same entry of the layout */
	uint32_t region;      /* region of its memory; PICTURE_REGIONS: none */
	uint64_t address;     /* address in that region */
	uint64_t bytes;
	char offset[40]; /* "+0x40" */
	char size[72];   /* "64 bytes"; the whole text of an elision: "… 1,234 more (78,976 bytes)" */
	char memory[40]; /* the address: "0x7f7dade24040" */
	char note[64];   /* "entry 1, repetition 3" */
	char problem[96];
};

/* A region, or another key, that contains the memory of rows. */
struct picture_region {
	uint32_t key;
	bool bounded; /* start and length are valid */
	uint64_t start, length;
	char name[64];   /* "memory region 0x12cf00" */
	char range[80];  /* "[0x7f7dade24000, +4,096)" */
	char rights[96]; /* rights, or the problem if `bad` */
	bool bad;
};

/* A row or gap in a region, in the order of addresses. */
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

/* The text of an explanation, and the access that it explains. */
struct picture_failure {
	char line[1100];
	char access[160];
	uint32_t more; /* number of further explanations with the same text */
};

struct picture {
	uint32_t number; /* key number, tag included */
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
	bool memory_fields, wire_fields; /* blocks have fields in memory, on the wire */
};

/* How a queue pair used a key, as counted by the book (draw/book.h). */
struct key_use {
	uint32_t qpn;
	uint8_t rights; /* enum key_rights */
	uint64_t times, bytes;
	uint64_t first, end; /* lowest address, and end of the highest access */
};

struct key_uses {
	uint32_t count;
	uint64_t more; /* accesses that are not in `use` */
	struct key_use use[PICTURE_USES];
};

/** Returns true if @rule concerns a key, named by its first figure, but not an access through the key. */
bool rule_concerns_key(enum explain_rule rule);

/**
 * Fills @picture from the current mapping of @key. @uses may be NULL. Call inside an epoch section; another thread may change
 * the key meanwhile. Takes the locks of explanations and of refused accesses, which are leaves.
 */
void picture_make(struct picture *picture, const struct mkey *key, const struct key_uses *uses);

#endif
