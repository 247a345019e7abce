/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last accesses through keys that were refused: which range of which key a request wanted. An explanation names the key
 * that refused, which may lie deep inside of the one that the request named; a drawing of the latter (draw/picture.h) needs
 * both.
 *
 * They are kept for each device in a ring, which belongs to it. Lock: hca.refused_lock, a leaf. Any thread.
 */
#ifndef SOFTHCA_MKEY_REFUSED_H
#define SOFTHCA_MKEY_REFUSED_H

#include "mkey/walk.h"

struct refused_access {
	uint64_t number; /* 1, 2, … in the order in which they were refused */
	uint32_t key;    /* as the request named it */
	uint32_t qpn;
	uint8_t rights; /* enum key_rights: what was wanted */
	uint64_t address, length;
	uint64_t serial, version; /* of the mapping under the key's index (mkey/key.h); 0: there was none */
	struct refusal why;
};

struct refused_ring;

/** Makes the ring of a device; NULL without memory, and then nothing is kept. */
struct refused_ring *refused_ring_new(void);

/** Keeps an access. In an epoch section. */
void refused_keep(const struct walk_access *access, uint8_t rights, uint32_t key, uint64_t address, uint64_t length,
		  const struct refusal *why);

/**
 * The newest access older than number @before (0: the newest of all) to the key of @index, whatever its tag. Returns false if
 * there is none any more.
 */
bool refused_previous(struct hca *hca, uint32_t index, uint64_t before, struct refused_access *out);

/** The newest access through @qpn that was refused by @rule with the figures @args. Returns false if there is none any more. */
bool refused_latest(struct hca *hca, uint32_t qpn, enum explain_rule rule, const uint64_t *args,
		    struct refused_access *out);

#endif
