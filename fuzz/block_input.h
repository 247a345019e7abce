/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Input of the fuzzer of block stages: contents of the BSFs, layout of the key, the transfer, and its division into parts.
 * Fields have fixed places; missing bytes of a short input are zero, which is valid everywhere. make-seeds.py writes the same
 * structure. Numbers are little-endian.
 */
#ifndef SOFTHCA_FUZZ_BLOCK_INPUT_H
#define SOFTHCA_FUZZ_BLOCK_INPUT_H

#include <stdint.h>

#define INPUT_CUTS 12
#define INPUT_PATCHES 3

enum input_form {
	FORM_SAME = 1 << 0,     /* the same structure in both domains: bytes are copied */
	FORM_CIPHER = 1 << 1,   /* with a cipher BSF; alone, if there is no signature */
	FORM_STARTS = 1 << 2,   /* the key begins at an address other than 0 */
	FORM_AT_END = 1 << 3,   /* memory ends before a missing page; otherwise it begins after one */
	FORM_NULL = 1 << 4,     /* an entry of the layout uses the null key */
	FORM_NESTED = 1 << 5,   /* an entry uses another key, which has its own layout */
	FORM_VANISHES = 1 << 6, /* that key disappears during the transfer */
	FORM_REMOTE = 1 << 7,   /* the transfer is a remote one */
};

enum input_contents { CONTENTS_RANDOM, CONTENTS_ZERO, CONTENTS_ONES, CONTENTS_COUNT };

struct input_domain {
	uint8_t kind;   /* enum guard_type, modulo */
	uint8_t block;  /* one of five sizes, modulo */
	uint8_t seed;   /* bit 0: ones */
	uint8_t checks; /* for T10-DIF: bits 0, 1, 6 as in the BSF */
	uint8_t app[2], ref[4];
};

struct input {
	struct input_domain memory, wire;
	uint8_t form; /* enum input_form */
	uint8_t check_mask, copy_mask;
	uint8_t order, unit; /* of the cipher; modulo */
	uint8_t tweak[8];
	uint8_t limit[2]; /* limit of data bytes, 0: none */
	struct {
		uint8_t place, change; /* byte of the BSFs, and the value it is xored with */
	} patch[INPUT_PATCHES];
	uint8_t bytes[2];                 /* of the key; modulo */
	uint8_t entry[INPUT_CUTS / 2][2]; /* lengths of the entries of the layout; the last one takes the rest */
	uint8_t wire_first[2], length[2]; /* of the transfer; modulo the length of the key on the wire */
	uint8_t cut[INPUT_CUTS][2];       /* lengths of the parts of the transfer, used cyclically */
	uint8_t contents;                 /* of memory and wire: enum input_contents, modulo */
	uint8_t seed;                     /* of random contents */
};

#endif
