/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A key in the model: a rule that gives the place of a byte, or refuses the access. The rules are those of the man pages
 * (ibv_reg_mr, ibv_bind_mw, ibv_alloc_mw, ibv_alloc_null_mr, mlx5dv_wr_mkey_configure) and of mlx5-formats 1.8 to 1.10,
 * 1.15, 4.12 and 6; no code is shared with the device.
 */
#ifndef SOFTHCA_TESTS_MODEL_KEYS_H
#define SOFTHCA_TESTS_MODEL_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "memory.h"

/* An address that may exceed 2^64. */
__extension__ typedef unsigned __int128 wide;

enum {
	REGIONS = 20, /* slots of memory regions, including device memory and null regions */
	LAYOUTS = 8,  /* slots of mkeys */
	WINDOWS = 8,
	FIRST_LAYOUT = REGIONS,
	FIRST_WINDOW = FIRST_LAYOUT + LAYOUTS,
	KEYS = FIRST_WINDOW + WINDOWS,
	ENTRIES = 20,
	DEPTH = 4, /* docs/reference/limits.md, MKEY_DEPTH: most keys between a request and memory */
	ANY_QP = -1,
};

enum model_kind { MODEL_ABSENT, MODEL_REGION, MODEL_NULL, MODEL_LAYOUT, MODEL_WINDOW_1, MODEL_WINDOW_2 };

enum want {
	LOCAL_READ = 1,
	LOCAL_WRITE = 2,
	REMOTE_READ = 4,
	REMOTE_WRITE = 8,
	ATOMIC = 16,
};

struct entry {
	uint32_t key;
	uint64_t address;
	uint64_t bytes;
	uint64_t stride; /* from one repetition to the next */
};

struct key {
	enum model_kind kind;
	uint32_t number;
	bool live;
	int domain;
	unsigned int rights;    /* enum want */
	uint64_t start, length; /* addresses as requests name them */
	uint64_t serial;        /* unique among keys */
	/* regions */
	int block;
	uint64_t offset;
	bool bindable, zero_based;
	/* mkeys: the entries in order, `repeat` times */
	uint32_t capacity; /* max_entries as created */
	bool remote_invalidate;
	uint32_t count;
	uint64_t repeat;
	struct entry entries[ENTRIES];
	/* windows */
	int qp; /* the only one that may use it, or ANY_QP */
	uint32_t region;
	uint64_t region_serial, region_address;
};

struct keys {
	struct key key[KEYS];
	uint64_t last_serial;
};

/* The requester: domain and index of the QP that performs the access. */
struct accessor {
	int domain, qp;
};

/* Place of a byte, and the number of contiguous bytes from there on. */
struct spot {
	int block; /* or NOWHERE */
	uint64_t offset, run;
};

/** Returns the slot of the key with the index of @number, or -1. */
int keys_find(const struct keys *keys, uint32_t number);

/** Finds byte @address of key @number; returns false if the access is refused. */
bool keys_locate(const struct keys *keys, uint32_t number, uint64_t address, unsigned int wanted,
		 struct accessor accessor, struct spot *spot);

/** Returns true if none of the @length bytes from @address on is refused. */
bool keys_allow(const struct keys *keys, uint32_t number, uint64_t address, uint64_t length, unsigned int wanted,
		struct accessor accessor);

#endif
