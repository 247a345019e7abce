/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plan of a seed: two ends, the requests that each posts and their times, the receives of the other, the attributes
 * of the connection, the link between them and its weather. Also the expected result: the memory of both ends and their
 * completions, from a model that executes one request after the other, without packets.
 *
 * To make the result independent of timing, each request has separate memory at both ends; a request that depends on
 * another follows a fence (ibv_post_send(3), IBV_SEND_FENCE) or the order of the connection.
 */
#ifndef SOFTHCA_TESTS_SIMULATION_PLAN_H
#define SOFTHCA_TESTS_SIMULATION_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

enum {
	ENDS = 2,
	MOST_REQUESTS = 40,
	MOST_RECEIVES = 4 * MOST_REQUESTS,
	TARGETS = 2, /* receive queues of an end: one; for XRC two SRQs; for DC those of two DCTs */
	MOST_PIECES = 3,
	COUNTERS = 4,      /* of 8 bytes, at the beginning of an area: targets of atomics */
	INVALIDATED = 6,   /* keys of an end that its peer can invalidate */
	PASSING = 6,       /* keys of an end that end as soon as the request that names them has completed */
	AREA = 3 << 18,    /* bytes for one direction at one end */
	MEMORY = 2 * AREA, /* of an end: the area of its own requests, then that of its peer's */
	STAGED = 4096, /* offset in an area of the memory for the keys with a signature, then for those with a cipher */
	STAGED_BYTES = 64 << 10,           /* of each of the two */
	PLAIN = STAGED + 2 * STAGED_BYTES, /* offset of the rest of an area */
	SLACK = 8192,                      /* memory after the used part, checked as well */
	GRH_BYTES = 40,
	BLOCK = 512, /* of the signature */
	FIELD = 4,   /* of the signature, on the wire */
	UNIT = 520,  /* of the cipher: not a multiple of 16, so that its last bytes depend on where it ends */
};

/* The kind of key that a request names at each end. */
enum keys { KEYS_PLAIN, KEYS_SIGNATURE, KEYS_CIPHER, KEYS_KINDS };

struct range {
	uint32_t offset, length; /* in the memory of an end */
};

struct request {
	uint64_t at_ns; /* time of posting, from the beginning of the run */
	uint8_t opcode, opmod;
	uint8_t fence; /* bits of fm_ce_se */
	bool signalled, solicited;
	uint8_t target;
	uint8_t keys; /* enum keys; other than KEYS_PLAIN for data with one piece */
	uint8_t pieces;
	struct range local[MOST_PIECES];
	uint32_t length;     /* of memory; of the pieces together */
	uint32_t remote;     /* offset in the peer's memory; for a SEND that of its receive */
	uint32_t imm;        /* in host order */
	uint8_t invalidates; /* SEND_INVAL: number of the key */
	uint8_t passing;     /* number of the passing key named at the peer, from 1; 0: none */
	uint8_t operand_bytes;
	uint64_t swap_add, compare, swap_mask, compare_mask;
};

struct receive {
	uint64_t at_ns;
	uint8_t keys; /* enum keys */
	struct range buffer;
};

/* A completion of a receive. */
struct received {
	uint8_t opcode; /* MLX5_CQE_RESP_*, or MLX5_CQE_RESP_ERR */
	uint8_t syndrome;
	uint32_t bytes, imm;
	uint32_t number; /* of the receive, in the order of posting */
};

struct direction {
	uint32_t requests, receives[TARGETS];
	struct request request[MOST_REQUESTS];
	struct receive receive[TARGETS][MOST_RECEIVES];
	/* Expected receives, if nothing is lost permanently. */
	uint32_t received[TARGETS];
	struct received expected[TARGETS][MOST_RECEIVES];
	/*
	 * Bytes in use, from the beginning of the areas; and of the memory of the keys of each kind, the same at both
	 * ends.
	 */
	uint32_t local_used, remote_used, staged_used[KEYS_KINDS];
};

struct weather {
	/* Percent of the packets. */
	unsigned int drop, twice, late;
	unsigned int joined; /* arrive together with the packets that continue them, if there are any */
	uint64_t latency_ns, jitter_ns, lateness_ns;
	/* Percent of the calls that find no room, and the duration of that. */
	unsigned int busy;
	uint64_t busy_ns;
	/* Number of the packet from which on none arrives; 0: never. */
	uint64_t dead_after;
};

struct plan {
	uint64_t seed;
	enum ibv_qp_type type;
	bool srq; /* RC: receives come from an SRQ */
	/*
	 * Losses may use up the retries, or max_rd_atomic exceeds the grant of the peer: then a run ends early.
	 * Otherwise losses stop before that.
	 */
	bool mortal;
	struct ibv_qp_attr attr;
	uint32_t psn[ENDS];
	bool immediate;
	uint32_t most, window;
	struct weather weather;
	struct direction direction[ENDS]; /* of the requests of an end */
	bool invalidated[ENDS][INVALIDATED];
	uint8_t expected[ENDS][MEMORY];
};

/** Draws the plan of @seed. */
void plan_draw(struct plan *plan, uint64_t seed);
/** Fills in the expected results. */
void plan_carry_out(struct plan *plan);
/** Returns the memory of @end before the run. */
const uint8_t *plan_memory(int end);
/** Prints one line about the plan. */
void plan_print(const struct plan *plan);

bool plan_is_reliable(const struct plan *plan);
bool opcode_is_atomic(uint8_t opcode);
bool opcode_is_masked(uint8_t opcode);
bool opcode_is_rdma(uint8_t opcode);
bool opcode_takes_receive(uint8_t opcode);
bool opcode_is_send(uint8_t opcode);

/**
 * Returns the bytes of the request on the wire: those of memory, with a signature field after each block if its key has
 * a signature.
 */
uint32_t request_wire_bytes(const struct request *request);

/** Returns where an area begins: that of the requests of an end, or of its peer's. */
static inline uint32_t area_of(bool remote)
{
	return remote ? AREA : 0;
}

#endif
