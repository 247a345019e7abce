/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The latest refused accesses. An explanation names the key that refused, which may be nested in the key of the request;
 * a drawing (draw/picture.h) needs both.
 *
 * Each device owns a ring. Lock: hca.refused_lock, a leaf. Any thread.
 */
#ifndef SOFTHCA_MKEY_REFUSED_H
#define SOFTHCA_MKEY_REFUSED_H

#include "mkey/walk.h"

struct refused_access {
	uint64_t number; /* 1, 2, … */
	uint32_t key;    /* key number in the request */
	uint32_t qpn;
	uint8_t rights; /* enum key_rights needed */
	uint64_t address, length;
	uint64_t serial, version; /* those of the key's mapping (mkey/key.h); 0: no such key */
	struct refusal why;
};

struct refused_ring;

/** Returns NULL without memory; the functions below then do nothing. */
struct refused_ring *refused_ring_new(void);

/** Call inside an epoch section. */
void refused_keep(const struct walk_access *access, uint8_t rights, uint32_t key, uint64_t address, uint64_t length,
		  const struct refusal *why);

/**
 * Finds the newest access older than @before (0: any) to the key with @index, whatever its tag. Returns false if there
 * is none.
 */
bool refused_previous(struct hca *hca, uint32_t index, uint64_t before, struct refused_access *out);

/** Finds the newest access through @qpn refused by @rule with @args. Returns false if there is none. */
bool refused_latest(struct hca *hca, uint32_t qpn, enum explain_rule rule, const uint64_t *args,
		    struct refused_access *out);

#endif
