/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A picture of a key: all that a drawing of it says, in words, rows and marks, taken from the key and from what was refused.
 * It is made once, and then written as text (draw/text.h) or as SVG (draw/svg.h): neither knows anything of keys, so they cannot
 * disagree. It is of fixed size whatever the layout has: what does not fit is elided, and counted.
 *
 * A picture is plain data that refers to nothing; whoever allocates it frees it.
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
	PICTURE_REGIONS = PICTURE_ROWS, /* each row may have one of its own */
	PICTURE_SLOTS = 3 * PICTURE_ROWS,
	PICTURE_BLOCKS = 24,
	PICTURE_USES = 8,
	PICTURE_FAILURES = 4,
};

/* What a refused access has to do with a row. */
enum picture_mark {
	MARK_NONE,
	MARK_TOUCHED, /* it covers the row, or a part of it */
	MARK_REFUSED, /* it was refused because of it */
};

enum picture_row_kind {
	ROW_PIECE,   /* a part of the range, and memory that it stands for */
	ROW_ELIDED,  /* so many more */
	ROW_OUTSIDE, /* bytes that an access wanted, and the range does not have; or that no memory stands for */
};

/* "" is nothing to be said. */
struct picture_fact {
	char name[24];
	char value[200];
};

/* A part of the key's range, in the order of the range. */
struct picture_row {
	enum picture_row_kind kind;
	enum picture_mark mark;
	uint16_t first, last; /* in thousandths of the row: what the refused access covers of it */
	uint32_t colour;      /* equal for equal entries of the layout */
	uint32_t region;      /* of its memory; PICTURE_REGIONS: none */
	uint64_t address;     /* in the space of that */
	uint64_t bytes;
	char offset[40]; /* "+0x40" */
	char size[72];   /* "64 bytes"; of an elision all of it: "… 1,234 more (78,976 bytes)" */
	char memory[40]; /* the address: "0x7f7dade24040" */
	char note[64];   /* "entry 1, repetition 3" */
	char problem[96];
};

/* What rows lie in: a region, or another key. */
struct picture_region {
	uint32_t key;
	bool bounded; /* start and length are known */
	uint64_t start, length;
	char name[64];   /* "memory region 0x12cf00" */
	char range[80];  /* "[0x7f7dade24000, +4,096)" */
	char rights[96]; /* and what is wrong with it */
	bool bad;
};

/* What lies in a region, in the order of its addresses. */
struct picture_slot {
	uint32_t region;
	uint32_t row; /* PICTURE_ROWS: a gap */
	char gap[48]; /* "448 bytes between" */
};

/* A block of a signature, or a unit of a cipher. */
struct picture_block {
	enum picture_row_kind kind;
	enum picture_mark mark;
	char number[72]; /* "7"; of an elision all of it */
	char memory[96]; /* "+0x1040, 512 + 8 bytes" */
	char memory_field[96];
	char wire[96];
	char wire_field[96];
	char problem[120];
};

struct picture_use {
	char line[160];
};

/* The text of an explanation, and which access it is of. */
struct picture_failure {
	char line[1100];
	char access[160];
	uint32_t more; /* such explanations, word by word */
};

struct picture {
	uint32_t number; /* of the key, with its tag */
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
	bool memory_fields, wire_fields; /* blocks have some there */
};

/* How a queue pair used a key: counted by whoever looks on (draw/book.h). */
struct key_use {
	uint32_t qpn;
	uint8_t rights; /* enum key_rights */
	uint64_t times, bytes;
	uint64_t first, end; /* addresses: the lowest, and behind the highest */
};

struct key_uses {
	uint32_t count;
	uint64_t more; /* accesses by others than these */
	struct key_use use[PICTURE_USES];
};

/** True if an explanation by @rule, which no access broke, is about the key that its first figure is. */
bool picture_tells(enum explain_rule rule);

/**
 * Fills @picture from what @key says now. @uses may be NULL. In an epoch section; the key may be that of another thread. Takes
 * the locks of explanations and of refused accesses, which are leaves.
 */
void picture_make(struct picture *picture, const struct mkey *key, const struct key_uses *uses);

#endif
