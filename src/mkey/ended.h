/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keys that ended last, to explain their use after deregistration. Adapters may hide this fault: the kernel caches
 * keys and may reuse the number for the next region.
 *
 * Each device owns a ring. Lock: hca.refused_lock, a leaf. Any thread.
 */
#ifndef SOFTHCA_MKEY_ENDED_H
#define SOFTHCA_MKEY_ENDED_H

#include <stdbool.h>
#include <stdint.h>

#include "explain/refusal.h"

struct hca;
struct ended_ring;

struct ended_key {
	uint32_t number;
	uint8_t kind; /* enum key_kind */
	uint64_t at;  /* clock_now_ns() of its end */
};

/** Returns NULL without memory; the functions below then do nothing. */
struct ended_ring *ended_ring_new(void);

void ended_keep(struct hca *hca, uint32_t number, uint8_t kind);

/** Finds the latest end of @number, tag included. Returns false if there is none. */
bool ended_find(struct hca *hca, uint32_t number, struct ended_key *out);

uint64_t ended_ms(const struct ended_key *key);

/**
 * Replaces *@why by rule 148 if the end of @number is recorded. For requests that change a key or bind a window to it.
 */
void ended_explain(struct hca *hca, uint32_t number, struct refusal *why);

#endif
