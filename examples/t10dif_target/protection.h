/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * T10-DIF by the adapter: an mkey whose data has a tuple behind each block on the wire, on the way between memory and
 * peer. Whether memory has tuples as well is the owner's choice:
 *
 *	the initiator's memory     block block block …                  tuples are added when the key is read,
 *	                                                             checked and taken off when it is written
 *	the wire                block tuple block tuple …
 *	the target's memory     block tuple block tuple …            checked and copied, in both directions
 *
 * A tuple is the guard (a CRC of the block), an application tag that the owner chooses, and a reference tag: the block's
 * address, so that a good block in the wrong place is found too.
 */
#ifndef T10DIF_TARGET_PROTECTION_H
#define T10DIF_TARGET_PROTECTION_H

#include "protocol.h"

enum { APPLICATION_TAG = 0x0da7 };

/* What a key shall give access to. */
struct range {
	struct ibv_sge memory;
	unsigned int access; /* IBV_ACCESS_* */
	int tuples;          /* 0: the blocks as they are, no tuples anywhere */
	int tuples_in_memory;
	uint32_t lba; /* of the first block: its reference tag */
};

struct mlx5dv_mkey *protection_key(struct end *end);
/** Adds the configuration of @key to a list of requests that ibv_wr_start() began. Takes up to 3 places of the queue. */
void add_configuration(struct end *end, uint64_t wr_id, struct mlx5dv_mkey *key, const struct range *range);

/** What a request of @blocks is long on the wire: the length of every request that goes through such a key. */
static inline uint32_t wire_bytes(uint32_t blocks, int tuples)
{
	return blocks * (tuples ? SECTOR : BLOCK);
}

/**
 * Asks @key what it has found; to be called when the transfer through it is known to be over. Returns 0 if all is well,
 * else the error is in @error: the first one that was not asked for before.
 */
int protection_error(struct mlx5dv_mkey *key, struct mlx5dv_mkey_err *error);
/**
 * Prints what the adapter says about it, and what that means.
 * @blocks: the data of the request as it is in memory, the n-th block at @blocks + n * @stride; @lba: of the first.
 */
void protection_explain(const char *who, const struct mlx5dv_mkey_err *error, const uint8_t *blocks, size_t stride,
			uint32_t lba);

#endif
