/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * T10-DIF by the adapter: an mkey with a tuple after each block of its data on the wire, between memory and peer. The
 * owner chooses whether memory has tuples as well:
 *
 *	the initiator's memory     block block block …                  tuples are added when the key is read,
 *	                                                             checked and removed when it is written
 *	the wire                block tuple block tuple …
 *	the target's memory     block tuple block tuple …            checked and copied, in both directions
 *
 * A tuple is the guard (a CRC of the block), an application tag that the owner chooses, and a reference tag: the block's
 * address, so that a good block in the wrong place is detected too.
 */
#ifndef T10DIF_TARGET_PROTECTION_H
#define T10DIF_TARGET_PROTECTION_H

#include "protocol.h"

enum { APPLICATION_TAG = 0x0da7 };

/* Memory that a key gives access to. */
struct range {
	struct ibv_sge memory;
	unsigned int access; /* IBV_ACCESS_* */
	int tuples;          /* 0: plain blocks, without tuples anywhere */
	int tuples_in_memory;
	uint32_t lba; /* address of the first block; its reference tag */
};

struct mlx5dv_mkey *protection_key(struct end *end);
/** Adds the configuration of @key to a list of requests that ibv_wr_start() began. Takes up to 3 entries of the queue. */
void add_configuration(struct end *end, uint64_t wr_id, struct mlx5dv_mkey *key, const struct range *range);

/** Returns the length of @blocks on the wire, which is the length of a request through such a key. */
static inline uint32_t wire_bytes(uint32_t blocks, int tuples)
{
	return blocks * (tuples ? SECTOR : BLOCK);
}

/**
 * Returns the errors that @key found; to be called when the transfer through it is over. Returns 0 if there is none, otherwise
 * sets @error to the first one not yet returned.
 */
int protection_error(struct mlx5dv_mkey *key, struct mlx5dv_mkey_err *error);
/**
 * Prints the error that the adapter reports, and its meaning.
 * @blocks: the data of the request as in memory, the n-th block at @blocks + n * @stride; @lba: of the first.
 */
void protection_explain(const char *finder, const struct mlx5dv_mkey_err *error, const uint8_t *blocks, size_t stride,
			uint32_t lba);

#endif
