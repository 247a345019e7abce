/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Environment of fuzzed WQEs: one device, a protection domain with keys of each kind over memory at a fixed address, and pairs
 * of QPs of each type. It is made once; world_reset() restores the same state with the same numbers, so that an input always
 * behaves the same and make-seeds.py can name keys and addresses.
 *
 * It uses the device as a driver does (process/commands.h), and its structures where a reset or a check needs them.
 */
#ifndef SOFTHCA_FUZZ_WORLD_H
#define SOFTHCA_FUZZ_WORLD_H

#include "transport/qp/qp.h"
#include "mkey/key.h"

#define WORLD_BASE UINT64_C(0x10000000)

/* Keys in order of making; the number of the n-th is (16 + n) << 8. make-seeds.py has the same list. */
enum world_key {
	WORLD_FULL,       /* all rights, 0x1f80 bytes at WORLD_BASE + 0x1040 */
	WORLD_ZERO_BASED, /* all rights, 0xe00 bytes, addresses from 0 */
	WORLD_READ_ONLY,  /* a read-only page, WORLD_BASE + 0x6000 */
	WORLD_LOCAL,      /* no remote rights, a page at WORLD_BASE + 0x8000 */
	WORLD_FOREIGN,    /* of another domain, a page at WORLD_BASE + 0xa000 */
	WORLD_ON_DEMAND,  /* two pages at WORLD_BASE + 0xc000, the second of which is missing */
	WORLD_NULL,
	WORLD_DEVICE, /* 4 KiB of device memory, addresses from 0 */
	WORLD_GONE,   /* deregistered */
	WORLD_MKEY_4, /* indirect, 4 entries */
	WORLD_MKEY_8,
	WORLD_MKEY_64,      /* with room for block setup; remote invalidation and tag updates allowed */
	WORLD_MKEY_FOREIGN, /* of another domain */
	WORLD_WINDOW_1,
	WORLD_WINDOW_2,
	WORLD_WINDOW_2_ALSO,
	WORLD_MKEY_SIGNATURE, /* indirect, 8 entries, room for a block signature */
	WORLD_MKEY_CIPHER,    /* as WORLD_MKEY_SIGNATURE, for a signature and a cipher; made for a cipher */
	WORLD_KEYS,
};

#define WORLD_KEY(n) ((16u + (n)) << 8)

/* Each mkey with room for block setup takes two PSVs in order of creation, as its driver would; the last PSV is foreign. */
#define WORLD_PSV 1u
#define WORLD_PSVS 5
/* DEKs without a key tag, with a key tag of eight times WORLD_KEYTAG, and of another domain. */
#define WORLD_DEK 1u
#define WORLD_DEKS 3
#define WORLD_KEYTAG 0x74

#define WORLD_SQ_BLOCKS 16
#define WORLD_RQ_ENTRIES 8
#define WORLD_RQ_SHIFT 5 /* two segments */
#define WORLD_SRQ_ENTRIES 8
#define WORLD_SRQ_SHIFT 6 /* a link and three segments */

enum world_pair {
	WORLD_RC,
	WORLD_UC,
	WORLD_UD,
	/* CQs of four entries of 128 bytes; the responder has an SRQ; signature errors drain the requester's queue. */
	WORLD_RC_SMALL,
	/* A DCI and a DCT, which has the SRQ. Another DCT has its own CQ, which is never polled. */
	WORLD_DC,
	WORLD_XRC,
	WORLD_PAIRS,
};

/* QPs in order of creation. make-seeds.py has the same numbers. */
#define WORLD_QPN(pair, end) (0x40u + 2 * (pair) + (end))
#define WORLD_OTHER_TARGET WORLD_QPN(WORLD_PAIRS, 0)
#define WORLD_DC_KEY UINT64_C(0x5eed)
/* Number of streams in error that move a DCI with streams to ERR. */
#define WORLD_STREAMS 2

/* XRC SRQs; the last one is of another XRC domain, and of another protection domain. */
#define WORLD_XRC_SRQ 2u
#define WORLD_XRC_SRQS 3
#define WORLD_CQS 5

/* A CQ with its consumer side. */
struct world_cq {
	struct hca_cq *cq;
	uint8_t *buffer;
	uint32_t count, size, consumer;
	uint32_t dbrec[2];
};

struct world_qp {
	struct hca_qp *qp;
	uint8_t *sq; /* WORLD_SQ_BLOCKS blocks, an exact allocation; NULL: it does not send */
	uint8_t *rq; /* NULL: it has none, or uses an SRQ */
	uint32_t dbrec[2];
	struct world_cq *send_cq, *recv_cq;
	struct hca_srq *srq;
};

struct world_pair_of_qps {
	struct world_qp end[2];
};

struct world {
	struct hca *hca;
	struct hca_context *context;
	struct event_queue async;
	struct hca_pd *pd, *foreign_pd;
	struct mkey *key[WORLD_KEYS];
	void *device_memory;
	struct world_cq cq[WORLD_CQS];
	struct hca_xrcd *xrcd, *foreign_xrcd;
	struct hca_srq *srq, *xrc_srq[WORLD_XRC_SRQS];
	uint8_t *srq_ring; /* ring of all SRQs */
	uint32_t srq_dbrec;
	struct world_pair_of_qps pair[WORLD_PAIRS];
	struct world_qp other_target;
	union ibv_gid gid;
	bool narrowed; /* WORLD_FULL is narrowed */
};

extern struct world world;

/* Connection of a pair; fields as in struct ibv_qp_attr. */
struct world_connection {
	bool to_itself;   /* connects each end to itself instead of to the other */
	bool unreachable; /* to a GID that does not exist */
	bool peer_in_rtr;
	bool streams;                /* a DCI has streams */
	uint16_t sq_start, rq_start; /* 16-bit index at which the rings begin, instead of 0 */
	unsigned int access;
	uint8_t mtu; /* enum ibv_mtu */
	uint8_t retry_cnt, rnr_retry;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
};

/** Makes the world. Aborts if the result differs from this file. */
void world_make(void);
/** Makes the part in world_queues.c. */
void world_make_queues(void);
/** Restores memory, keys, CQs and SRQs, and drops events. QPs are left to world_disconnect(). */
void world_reset(void);
void world_reset_queues(void);
/** Restores an indirect key or window: free and empty. Other keys are not changed. */
void world_reset_key(enum world_key key);
/** Registers WORLD_FULL again with half its length and no remote rights, until the next world_reset(). */
void world_narrow(void);
/** Brings both QPs of @pair from RESET to RTS. The caller fills rings and doorbell records before. */
void world_connect(struct world_pair_of_qps *pair, const struct world_connection *connection);
/** Brings both QPs back to RESET. */
void world_disconnect(struct world_pair_of_qps *pair);
/** Returns memory of exactly the size that the device is given: AddressSanitizer detects accesses beyond it. */
void *world_exact(size_t size);
/** Aborts if memory changed that requests must not write. */
void world_check_memory(void);
/** Takes all asynchronous events; aborts if one belongs to an object outside of the world. */
void world_take_events(void);

#define WORLD_CHECK(condition)                                                                                         \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			world_abort(__FILE__, __LINE__, #condition);                                                   \
	} while (0)
void world_abort(const char *file, int line, const char *condition) __attribute__((noreturn));

#endif
